"""Masked models and NLI classifiers: numbers against a brute force, labels by name, and what cannot be asked refused."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints import BERT, LETTERS, SPECIAL, characters, save
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from bench.scorers import load
from bench.scorers.classifier import label_columns

CODE = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
TEXTS = ["the doctor is here.", "他是医生。", "", "x", "she is an engineer, not a doctor. is she?", "🙂a"]
# Ways in which tokenizers put special tokens around a text.
AROUND = {"both": BERT, "before": "[CLS] $A", "behind": "$A [SEP]", "none": ""}


def masked(folder: Path, around: str = BERT, **options: Any) -> Any:
    save(folder, BertForMaskedLM, BertConfig, characters(around), max_position_embeddings=64)
    return load(str(folder), **options)


def spelled(text: str, around: str) -> list[int]:
    """The token ids of `text`, looked up by hand."""
    before, behind = (
        [CODE[name]] if name in around else [] for name in ("[CLS]", "[SEP]")
    )  # fmt: skip
    return [*before, *(CODE.get(letter, CODE["<unk>"]) for letter in text), *behind]


def brute(scorer: Any, ids: list[int], position: int) -> float:
    """Log-probability of the token at `position` with it alone masked, from float64 logits."""
    shown = [*ids[:position], CODE["[MASK]"], *ids[position + 1 :]]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([shown])).logits[0, position].double()
    return float(logits.log_softmax(-1)[ids[position]])


def test_pseudo_likelihood_is_the_brute_force(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    found, means = scorer.token_logprobs(TEXTS), scorer.nll(TEXTS)
    for text, row, mean in zip(TEXTS, found, means, strict=True):
        ids = spelled(text, BERT)
        # An unknown token is a special one.
        expected = [brute(scorer, ids, i) for i in range(1, len(ids) - 1) if ids[i] != CODE["<unk>"]]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)
        assert mean == pytest.approx(-np.mean(expected), rel=1e-4) if expected else np.isnan(mean)
    np.testing.assert_allclose(load(str(tmp_path), batch_tokens=1).nll(TEXTS), means, rtol=1e-5)
    np.testing.assert_allclose([scorer.nll([text])[0] for text in TEXTS], means, rtol=1e-5)
    assert scorer.nll([]).shape == (0,)


@pytest.mark.parametrize("name", AROUND)
def test_choose_reads_the_options_positions(tmp_path: Path, name: str) -> None:
    around = AROUND[name]
    scorer = masked(tmp_path, around)
    prompts, options = ["他是医生？答案：", "is she?", "x"], ("A", "B", "yes", "不是")
    expected = np.empty((3, 4))
    for i, prompt in enumerate(prompts):
        for k, option in enumerate(options):
            ids = spelled(prompt + option, around)
            first = ("[CLS]" in around) + len(prompt)
            expected[i, k] = sum(brute(scorer, ids, first + n) for n in range(len(option)))
    np.testing.assert_allclose(scorer.choose(prompts, options), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        load(str(tmp_path), batch_tokens=1).choose(prompts, options), expected, rtol=1e-4, atol=1e-5
    )
    assert (expected < 0).all()
    assert scorer.choose([], options).shape == (0, 4)


def test_a_masked_model_says_what_it_is(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    assert scorer.verbs == ("nll", "choose")
    about = scorer.describe()
    assert "pseudo" in about["kind"]
    assert about["revision"].startswith("sha256:")
    assert about["dtype"] == "float32"


def test_a_tokenizer_without_mask_token_is_refused(tmp_path: Path, refusal: Any) -> None:
    folder = save(tmp_path, BertForMaskedLM, BertConfig, characters(BERT, mask=False))
    assert "no mask token" in refusal(load, str(folder))


PAIRS = [
    ("a man is a doctor", "she is a doctor"),
    ("x", "y"),
    ("他是医生", "她是护士，不是医生。"),
    ("the engineer is here. " * 20, "the nurse"),
    ("she is a doctor", "a man is a doctor"),
]


def classifier(folder: Path, labels: list[str], **options: Any) -> Any:
    coder = characters(BERT, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    save(
        folder, BertForSequenceClassification, BertConfig, coder,
        id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)},
    )  # fmt: skip
    return load(str(folder), **options)


def brute_pair(scorer: Any, pair: tuple[str, str]) -> dict[str, float]:
    """Probability of each label as the checkpoint names it."""
    first, second = (spelled(text, "") for text in pair)
    ids = [CODE["[CLS]"], *first, CODE["[SEP]"], *second, CODE["[SEP]"]]
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0].double()
    return {scorer.network.config.id2label[i].lower(): float(p) for i, p in enumerate(logits.softmax(-1))}


@pytest.mark.parametrize("labels", list(permutations(["entailment", "neutral", "CONTRADICTION"])))
def test_labels_are_found_by_name(tmp_path: Path, labels: list[str]) -> None:
    scorer = classifier(tmp_path, list(labels))
    found = scorer.classify(PAIRS)
    expected = [brute_pair(scorer, pair) for pair in PAIRS]
    for column, label in enumerate(("entailment", "contradiction", "neutral")):
        np.testing.assert_allclose(found[:, column], [one[label] for one in expected], rtol=1e-4, atol=1e-6)


def test_probabilities_sum_to_one_in_the_order_of_the_pairs(tmp_path: Path) -> None:
    scorer = classifier(tmp_path, ["contradiction", "entailment", "neutral"])
    found = scorer.classify(PAIRS)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.vstack([scorer.classify([pair]) for pair in PAIRS]), found, rtol=1e-4)
    np.testing.assert_allclose(
        load(str(tmp_path), batch_tokens=1).classify(PAIRS[::-1]), found[::-1], rtol=1e-4
    )
    assert abs(found[0] - found[4]).max() > 1e-3, "premise and hypothesis are not the same"
    assert scorer.classify([]).shape == (0, 3)
    assert scorer.describe()["labels"] == {"entailment": 1, "contradiction": 0, "neutral": 2}


@pytest.mark.parametrize(
    "labels",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["entailment", "not_entailment"],
        ["entailment", "neutral", "neutral, too"],
        ["entailment", "contradiction", "neutral", "other"],
    ],
)
def test_labels_that_cannot_be_told_are_refused(tmp_path: Path, refusal: Any, labels: list[str]) -> None:
    message = refusal(classifier, tmp_path, labels)
    assert message.startswith(str(tmp_path))
    assert labels[0] in message
    assert "id2label" in message


def test_short_label_names_are_known() -> None:
    assert label_columns({0: "Neutral", 1: "entail", 2: "contradict"}, "m") == [1, 2, 0]
