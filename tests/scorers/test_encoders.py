"""Masked models and multiple-choice heads: equal to a slow reference, whatever the batch."""

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bench.scorers import load
from tests.helpers.checkpoints import BERT, CODE, LETTERS, characters, codes, headed, save

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
