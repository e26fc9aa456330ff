"""Texts that are too long for a model are errors, never cut, and do not affect the others."""

from pathlib import Path
from typing import Any

import pytest
from transformers import (
    AlbertConfig,
    AlbertForMultipleChoice,
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaConfig,
    RobertaForMultipleChoice,
)

from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import BERT, characters, headed, save

LABELS = {"id2label": dict(enumerate(["contradiction", "entailment", "neutral"]))}


def gpt2(folder: Path, sampling: dict[str, Any] | None = None) -> str:
    coder = characters()
    return str(save(folder, GPT2LMHeadModel, GPT2Config, coder, sampling, n_positions=16))


def model_of(kind: str, folder: Path) -> Any:
    """A model that reads 16 tokens."""
    if kind == "sampled":
        return load(gpt2(folder, {"temperature": 2.0, "top_k": 0}))
    if kind == "tiny":
        scorer: Any = load("tiny:s")
        scorer.causal = load(gpt2(folder))
        return scorer
    if kind == "causal":
        return load(gpt2(folder))
    shape = {"max_position_embeddings": 16}
    coder = characters(BERT)
    if kind == "masked":
        return load(str(save(folder, BertForMaskedLM, BertConfig, coder, **shape)))
    if kind == "classifier":
        network = BertForSequenceClassification
        return load(str(save(folder, network, BertConfig, coder, **LABELS, **shape)))
    heads: dict[str, tuple[Any, Any, int]] = {
        "bert": (BertForMultipleChoice, BertConfig, 16),
        "albert": (AlbertForMultipleChoice, AlbertConfig, 16),
        # It counts positions from behind the padding token, whose id is 0.
        "roberta": (RobertaForMultipleChoice, RobertaConfig, 17),
    }
    network, config, n = heads[kind]
    return load(str(headed(folder, network, config, max_position_embeddings=n)))


OPTION, REPLY, PAIR = "the text with an option", "the text with its reply", "the pair"
# By kind of model and verb: tokens besides those of the text, and how messages call it.
CASES = {
    ("causal", "nll"): (0, "the text"),
    ("causal", "generate"): (5, REPLY),  # a line break and four tokens
    ("causal", "choose"): (2, REPLY),  # a line break and all but the last of an option's tokens
    ("sampled", "generate"): (5, REPLY),
    ("tiny", "nll"): (0, "the text"),
    ("masked", "nll"): (2, "the text"),
    ("masked", "choose"): (4, REPLY),
    ("bert", "choose"): (5, OPTION),
    ("albert", "choose"): (5, OPTION),
    ("roberta", "choose"): (5, OPTION),
    ("classifier", "classify"): (4, PAIR),
}


@pytest.mark.parametrize(("kind", "verb"), CASES)
def test_a_long_text_is_an_error_and_the_others_are_answered(
    tmp_path: Path, refusal: Any, kind: str, verb: str
) -> None:
    scorer = model_of(kind, tmp_path)
    more, name = CASES[kind, verb]
    longest = 16 - more
    requests = [
        Request(
            *("c", "t", "i", "r", verb, "a" * size, "v", Key()),
            options=("A", "不是"),
            max_new_tokens=4,
            hypothesis="b",
        )
        for size in (1, longest + 1, longest, longest + 4)
    ]
    answers = scorer.answer(requests)
    for k, size in ((1, 17), (3, 20)):
        error = f"too long for the model: it reads 16 tokens, {name} has {size}"
        assert (answers[k].response, answers[k].error) == ("", error)
    alone = scorer.answer(requests[::2])
    for answer, other in zip(answers[::2], alone, strict=True):
        assert (answer.response, answer.logprobs, answer.error) == (
            other.response,
            other.logprobs,
            "",
        )
    assert all(answer.error for answer in scorer.answer(requests[1::2])), "all may be too long"
    calls: dict[str, Any] = {
        "nll": lambda texts: scorer.nll(texts),
        "generate": lambda texts: scorer.generate(texts, max_new_tokens=4),
        "choose": lambda texts: scorer.choose(texts, ["A", "不是"]),
        "classify": lambda texts: scorer.classify([(text, "b") for text in texts]),
    }
    message = refusal(calls[verb], ["a", "a" * (longest + 1)])
    assert f"reads at most 16 tokens, and {name} has 17 (number 2 of 2)" in message
