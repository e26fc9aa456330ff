"""Masked models and NLI classifiers: equal to a slow reference."""

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
from tests.helpers.checkpoints import BERT, CODE, characters, codes, reference, save, save_encoder

TEXTS = ["the doctor is here.", "他是医生。", "", "x", "she is an engineer. is she?", "🙂a", "no"]
TURNS = ("who?", "she.", "is she?")
OPTIONS = {
    "is she a doctor? ": ("yes", "no", "who is she?"),
    "他是医生，她是护士。谁是工程师？": ("他", "她", "不是他。"),
    "x": ("A", "B", "A B C"),
    TURNS: ("she", "the engineer", "no"),
}


def joined(prompt):
    return prompt if isinstance(prompt, str) else "\n".join(prompt)


def masked(scorer, around, before, option):
    """Log-probabilities of an option's tokens with each alone masked."""
    first, last = ([CODE[name]] if name in around else [] for name in ("[CLS]", "[SEP]"))
    ids, start = [*first, *codes(before + option), *last], len(first) + len(before)
    return reference(scorer.network, ids, range(start, start + len(option)), CODE["[MASK]"])


@pytest.mark.parametrize("batch_tokens", [90, 100_000])
@pytest.mark.parametrize("around", [BERT, "[CLS] $A", "$A [SEP]", ""])
def test_pseudo_likelihoods_are_the_reference(tmp_path, around, batch_tokens):
    save(tmp_path, "BertForMaskedLM", characters(around), max_position_embeddings=64)
    scorer = load(str(tmp_path), batch_tokens=batch_tokens)
    expected = [masked(scorer, around, "", text) for text in TEXTS]
    for values, row in zip(expected, scorer.token_logprobs(TEXTS), strict=True):
        np.testing.assert_allclose(row, values, rtol=1e-4, atol=1e-5)
    means = [-np.mean(values) if len(values) else np.nan for values in expected]
    np.testing.assert_allclose(scorer.nll(TEXTS), means, rtol=1e-4)
    shared = [("A", "B", "yes", "不是")] * len(OPTIONS)
    for rows, options in ((shared, shared[0]), (OPTIONS.values(), list(OPTIONS.values()))):
        expected = [
            [sum(masked(scorer, around, joined(prompt), option)) for option in row]
            for prompt, row in zip(OPTIONS, rows, strict=True)
        ]
        values = scorer.choose(list(OPTIONS), options)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_missing_weights_of_an_encoder_are_named(tmp_path, refusal):
    save_encoder(tmp_path, "BertForSequenceClassification", ORDER)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    message = refusal(load, str(tmp_path))
    assert message.startswith(f"{tmp_path}: lacks the weights classifier.weight of")
    assert "classifier model, which would be random" in message


SENTENCES = [
    ("a man is a doctor", "she is a doctor"),
    ("x", "y"),
    ("他是医生", "她是护士，不是医生。"),
    ("the engineer is here. " * 20, "the nurse"),
    ("she is a doctor", "a man is a doctor"),
]


@pytest.mark.parametrize("labels", list(permutations(["entailment", "neutral", "CONTRADICTION"])))
def test_probabilities_are_the_reference(tmp_path, labels):
    scorer = load(str(save_encoder(tmp_path, "BertForSequenceClassification", labels)))
    columns = [[label.lower() for label in labels].index(name) for name in LABELS]
    assert scorer.describe()["labels"] == dict(zip(LABELS, columns, strict=True))
    values = scorer.classify(SENTENCES)
    for (premise, hypothesis), row in zip(SENTENCES, values, strict=True):
        first = [CODE["[CLS]"], *codes(premise), CODE["[SEP]"]]
        second = [*codes(hypothesis), CODE["[SEP]"]]
        types = torch.tensor([[0] * len(first) + [1] * len(second)])
        with torch.no_grad():
            logits = scorer.network(torch.tensor([first + second]), token_type_ids=types).logits[0]
        expected = logits.double().softmax(-1)[columns]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-6)
    assert abs(values[0] - values[4]).max() > 1e-3, "premise and hypothesis are not the same"
    assert scorer.classify([]).shape == (0, 3)


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


ORDER = ("neutral", "entailment", "contradiction")


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_probe_is_recorded_and_a_failed_one_is_reported(own_folder, monkeypatch, capsys, wrong):
    def classify(self, pairs):
        labels = [0 if a == b else 2 if "doctor" in a or "nurse" in a else 1 for a, b in pairs]
        return np.eye(3)[[(k + wrong) % 3 for k in labels]]

    monkeypatch.setattr(Classifier, "classify", classify)
    folder = str(save_encoder(own_folder / "m", "BertForSequenceClassification", ORDER))
    run = evaluate("nli_coal", folder, limit=1, categories=["en"], tasks=["ps"], out="run")
    probe = run.metadata["probe"]
    assert {row["language"] for row in probe} == {"en"}
    assert [row["expected"] for row in probe] == ["entailment"] * 3 + ["contradiction"] * 3
    assert {row["found"] == row["expected"] for row in probe} == {not wrong}
    assert len(run.records) == 1, "the run goes on"
    message = (
        "the probe failed: of 6 plain pairs 6 got a wrong label (en), "
        "the first 'A dog is sleeping on the sofa.'"
    )
    assert (message in capsys.readouterr().err) is bool(wrong)
    noted = run.scores()[run.scores().note.str.contains(message, regex=False)]
    assert noted.category.tolist() == ["all"] * wrong


@pytest.mark.parametrize(
    ("of_tokenizer", "of_model"),
    [(None, None), ("<pad>", None), (None, 0), ("<pad>", 0), ("[SEP]", 0)],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_classifier_needs_no_pad_token(tmp_path, of_tokenizer, of_model, side):
    coder = characters("$A [SEP]")
    coder.pad_token, coder.padding_side = of_tokenizer, side
    labels = {"id2label": dict(enumerate(ORDER)), "pad_token_id": of_model}
    scorer = load(str(save(tmp_path, "LlamaForSequenceClassification", coder, **labels)))
    network = transformers.LlamaForSequenceClassification.from_pretrained(tmp_path).eval()
    pairs = [("the nurse was late", "he"), ("he", "she"), ("a doctor spoke to a nurse", "a b")]
    for pair, values in zip(pairs, scorer.classify(pairs), strict=True):
        with torch.no_grad():
            ids = torch.tensor([coder(*pair)["input_ids"]])
            expected = network(ids).logits[0].softmax(-1).numpy()[[1, 2, 0]]
        np.testing.assert_allclose(values, expected, atol=1e-4)
