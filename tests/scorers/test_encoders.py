"""Masked models, multiple-choice heads and NLI classifiers: equal to a slow reference."""

from itertools import permutations

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bench.benchmarks.nli_coal.requests import LABELS
from bench.run import evaluate
from bench.scorers import load
from bench.scorers.local.encoders import Classifier, label_columns
from tests.helpers.cases import cases
from tests.helpers.checkpoints import BERT, CODE, LETTERS, SHAPE, characters, codes, headed, save

TEXTS = ["the doctor is here.", "他是医生。", "", "x", "she is an engineer. is she?", "🙂a"]
TURNS = ("who?", "she.", "is she?")
OPTIONS = {
    "is she a doctor? ": ("yes", "no", "who is she?"),
    "他是医生，她是护士。谁是工程师？": ("他", "她", "不是他。"),
    "x": ("A", "B", "A B C"),
    TURNS: ("", "the engineer", "no"),
}
# A tokenizer leaves nothing of an empty option, which a head reads as an empty text.
NOT_EMPTY = {**OPTIONS, TURNS: ("she", "the engineer", "no")}
# The encoders of CBBQ's paper; RoBERTa has no token types.
HEADS = {"Bert": {}, "Roberta": {}, "Albert": {"embedding_size": 16}}


def masked(folder, around=BERT, **options):
    save(folder, "BertForMaskedLM", characters(around), max_position_embeddings=64)
    return load(str(folder), **options)


def joined(prompt):
    return prompt if isinstance(prompt, str) else "\n".join(prompt)


def encoded(text, around=BERT):
    """The token ids of `text`, looked up by hand."""
    first, last = ([CODE[name]] if name in around else [] for name in ("[CLS]", "[SEP]"))
    return [*first, *codes(text), *last]


def reference(scorer, ids, position):
    """Log-probability of the token at `position` with it alone masked, from float64 logits."""
    shown = [*ids[:position], CODE["[MASK]"], *ids[position + 1 :]]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([shown])).logits[0, position].double()
    return float(logits.log_softmax(-1)[ids[position]])


@pytest.mark.parametrize("batch_tokens", [100, 100_000])
def test_pseudo_likelihoods_are_the_reference(tmp_path, batch_tokens):
    rng = np.random.default_rng(0)
    texts = [*TEXTS, *("".join(rng.choice(LETTERS, size)) for size in (31, 7, 29, 13))]
    scorer = masked(tmp_path, batch_tokens=batch_tokens)
    expected = [
        [reference(scorer, ids, i) for i in range(1, len(ids) - 1)] for ids in map(encoded, texts)
    ]
    for values, row in zip(expected, scorer.token_logprobs(texts), strict=True):
        np.testing.assert_allclose(row, values, rtol=1e-4, atol=1e-5)
    means = [-np.mean(values) if values else np.nan for values in expected]
    np.testing.assert_allclose(scorer.nll(texts), means, rtol=1e-4)
    assert scorer.nll([]).shape == (0,)


@pytest.mark.parametrize("shared", [(), ("A", "B", "yes", "不是")])
@pytest.mark.parametrize("around", [BERT, "[CLS] $A", "$A [SEP]", ""])
def test_choose_reads_the_options_positions(tmp_path, around, shared):
    scorer, first = masked(tmp_path, around, batch_tokens=90), "[CLS]" in around
    expected = [
        [
            sum(
                reference(scorer, encoded(text + option, around), first + len(text) + n)
                for n in range(len(option))
            )
            for option in shared or options
        ]
        for prompt, options in NOT_EMPTY.items()
        for text in [joined(prompt)]
    ]
    values = scorer.choose(list(NOT_EMPTY), shared or list(NOT_EMPTY.values()))
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_a_heads_choices_are_those_of_transformers(tmp_path, name):
    kind = f"{name}ForMultipleChoice"
    headed(tmp_path, kind, max_position_embeddings=65, **HEADS[name])
    scorer = load(str(tmp_path), batch_tokens=100)
    assert ("token_type_ids" in scorer.tokenizer("a", "b")) is (name != "Roberta")
    pairs = [(joined(prompt), option) for prompt, row in OPTIONS.items() for option in row]
    batch = scorer.tokenizer(pairs, padding=True, return_tensors="pt")
    network = getattr(transformers, kind).from_pretrained(tmp_path).double().eval()
    with torch.no_grad():
        shaped = {key: values.reshape(len(OPTIONS), 3, -1) for key, values in batch.items()}
        expected = network(**shaped).logits.log_softmax(-1).numpy()
    assert np.ptp(expected, 1).min() > 1e-3, "the options differ"
    values = scorer.choose(list(OPTIONS), list(OPTIONS.values()))
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="shape"):
        scorer.choose(["a", "b"], [("A", "B"), ("A", "B", "yes", "no")])


def test_what_an_encoder_lacks_is_named(tmp_path, refusal):
    folder = headed(tmp_path / "h")
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    message = refusal(load, str(folder))
    assert message.startswith(f"{folder}: lacks the weights classifier.weight of")
    assert "multiple choice model, which would be random" in message


ORDER = ("neutral", "entailment", "contradiction")
SENTENCES = [
    ("a man is a doctor", "she is a doctor"),
    ("x", "y"),
    ("他是医生", "她是护士，不是医生。"),
    ("the engineer is here. " * 20, "the nurse"),
    ("she is a doctor", "a man is a doctor"),
]


def classifier(folder, labels):
    coder = characters(BERT, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    names = {"id2label": labels, "label2id": {name: k for k, name in labels.items()}}
    return str(save(folder, "BertForSequenceClassification", coder, **names))


def label_probabilities(scorer, pair):
    """Probability of each label, by the checkpoint's own name."""
    first, second = map(codes, pair)
    ids = [CODE["[CLS]"], *first, CODE["[SEP]"], *second, CODE["[SEP]"]]
    types = torch.tensor([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids]), token_type_ids=types).logits[0].double()
    names = scorer.network.config.id2label
    return {names[i].lower(): float(p) for i, p in enumerate(logits.softmax(-1))}


@pytest.mark.parametrize("labels", list(permutations(["entailment", "neutral", "CONTRADICTION"])))
def test_probabilities_are_the_reference(tmp_path, labels):
    scorer = load(classifier(tmp_path, dict(enumerate(labels))))
    values = scorer.classify(SENTENCES)
    expected = [[label_probabilities(scorer, pair)[name] for name in LABELS] for pair in SENTENCES]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    assert abs(values[0] - values[4]).max() > 1e-3, "premise and hypothesis are not the same"
    assert scorer.classify([]).shape == (0, 3)
    columns = {name.lower(): k for k, name in enumerate(labels)}
    assert scorer.describe()["labels"] == {name: columns[name] for name in LABELS}


@cases(__file__, "label_names.csv")
def test_columns_are_found_by_name(refusal, case):
    names, given = case["labels"].split(), case["given"].split()
    labels = dict(enumerate(names))
    if case["columns"]:
        assert label_columns(labels, "m", given) == [int(k) for k in case["columns"].split()]
    else:
        message = refusal(label_columns, labels, "m", given)
        assert message.startswith(f"m: its labels are {', '.join(names)}, ")
        assert case["refusal"] in message


def test_wrong_label_names_are_refused(refusal):
    expected = "--label-names yes,no,maybe: expected entailment, contradiction, neutral"
    assert refusal(load, "m/x", label_names=["yes", "no", "maybe"]).startswith(expected)


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_probe_is_recorded_and_a_failed_one_is_reported(own_folder, monkeypatch, capsys, wrong):
    def classify(self, pairs):
        labels = [0 if a == b else 2 if "doctor" in a or "nurse" in a else 1 for a, b in pairs]
        return np.eye(3)[[(k + wrong) % 3 for k in labels]]

    monkeypatch.setattr(Classifier, "classify", classify)
    folder = classifier(own_folder / "m", dict(enumerate(ORDER)))
    run = evaluate("nli_coal", folder, limit=1, categories=["en"], tasks=["ps"], out="run")
    probe = [(row["language"], row["expected"]) for row in run.metadata["probe"]]
    assert probe == [("en", "entailment")] * 3 + [("en", "contradiction")] * 3
    assert all(
        (row["found"] == row["expected"]) is not bool(wrong) for row in run.metadata["probe"]
    )
    assert len(run.records) == 1, "the run goes on"
    message = (
        "the probe failed: of 6 plain pairs 6 got a wrong label (en), "
        "the first 'A dog is sleeping on the sofa.'"
    )
    assert (message in capsys.readouterr().err) is bool(wrong)
    noted = run.scores()[run.scores().note.str.contains(message, regex=False)]
    assert noted.category.tolist() == ["all"] * wrong


PADS = [(None, None), ("<pad>", None), (None, 0), ("<pad>", 0), ("[SEP]", 0)]
NAMED = {"id2label": dict(enumerate(["contradiction", "neutral", "entailment"]))}


@pytest.mark.parametrize(("of_tokenizer", "of_model"), PADS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_classifier_needs_no_pad_token(tmp_path, of_tokenizer, of_model, side):
    coder = characters("$A [SEP]")
    coder.pad_token, coder.padding_side = of_tokenizer, side
    torch.manual_seed(4)
    config = transformers.LlamaConfig(
        vocab_size=len(coder), pad_token_id=of_model, **SHAPE, **NAMED
    )
    built = transformers.LlamaForSequenceClassification(config).eval()
    built.save_pretrained(tmp_path)
    coder.save_pretrained(tmp_path)
    scorer = load(str(tmp_path))
    pairs = [("the nurse was late", "he"), ("he", "she"), ("a doctor spoke to a nurse", "a b")]
    for pair, values in zip(pairs, scorer.classify(pairs), strict=True):
        with torch.no_grad():
            ids = torch.tensor([coder(*pair)["input_ids"]])
            expected = built(ids).logits[0].softmax(-1).numpy()[[2, 0, 1]]
        np.testing.assert_allclose(values, expected, atol=1e-4)
