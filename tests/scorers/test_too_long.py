"""Texts that are longer than a model: an error each, never cut, and the others of the call answered as without them."""

from pathlib import Path
from typing import Any

import pytest
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from bench.scorers import load
from bench.scorers.base import Answer
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import BERT, characters, save


def answered(scorer: Any, requests: list[Request]) -> list[tuple[str, Any, str]]:
    return [(answer.response, answer.logprobs, answer.error) for answer in scorer.answer(requests)]


def test_a_text_longer_than_the_model_is_refused_by_its_length(
    tmp_path: Path, refusal: Any
) -> None:
    scorer: Any = load(
        str(save(tmp_path, GPT2LMHeadModel, GPT2Config, characters(), n_positions=16))
    )
    assert len(scorer.token_logprobs(["a" * 16])[0]) == 15
    for call in (
        lambda: scorer.nll(["a", "a" * 18]),
        lambda: scorer.generate(["b", "a" * 10], max_new_tokens=8),
        lambda: scorer.choose(["a", "a" * 14], ["A", "yes"]),
    ):
        message = refusal(call)
        assert "at most 16 tokens" in message
        assert "(number 2 of 2)" in message


@pytest.mark.parametrize("sampling", [None, {"temperature": 2.0, "top_k": 0}])
def test_a_request_longer_than_the_model_is_an_error_and_its_neighbours_are_answered(
    tmp_path: Path, sampling: dict[str, Any] | None
) -> None:
    scorer: Any = load(
        str(save(tmp_path, GPT2LMHeadModel, GPT2Config, characters(), sampling, n_positions=16))
    )
    # With the line break behind it and four tokens of a reply, 11 letters fit; with that of an option's last but one, 14.
    fits = {"nll": 16, "generate": 11, "choose": 14}
    requests = [
        Request("c", "t", "i", "r", verb, text, "v", Key(), options=("A", "不是"), max_new_tokens=4)
        for text in ("b", "a" * 17, "a" * 11, "a" * 12, "a" * 14, "a" * 15, "a" * 17, "c", "a" * 16)
        for verb in fits
    ]
    answers = scorer.answer(requests)
    for request, answer in zip(requests, answers, strict=True):
        size, reply = len(request.prompt), {"nll": 0, "generate": 5, "choose": 2}[request.verb]
        if size <= fits[request.verb]:
            assert answer.error == ""
        else:
            what = "the text with its reply" if reply else "the text"
            why = f"too long for the model: it reads 16 tokens, {what} has {size + reply}"
            assert answer == Answer("", error=why)
    fitting = [request for request in requests if len(request.prompt) <= fits[request.verb]]
    assert [one for one in answered(scorer, requests) if not one[2]] == answered(scorer, fitting)
    assert {answer.error != "" for answer in scorer.answer(requests[3:6])} == {True}, (
        "all of a kind may be too long"
    )


def test_what_is_too_long_for_a_masked_model_is_refused_and_not_cut(
    tmp_path: Path, refusal: Any
) -> None:
    scorer: Any = load(
        str(
            save(
                tmp_path, BertForMaskedLM, BertConfig, characters(BERT), max_position_embeddings=64
            )
        )
    )
    assert len(scorer.token_logprobs(["a" * 62])[0]) == 62
    for message in (
        refusal(scorer.nll, ["a", "a" * 63]),
        refusal(scorer.choose, ["a", "a" * 60], ["A", "yes"]),
    ):
        assert "at most 64 tokens" in message
        assert "65 (number 2 of 2)" in message


def test_a_masked_models_request_that_is_too_long_is_an_error_and_its_neighbours_are_answered(
    tmp_path: Path,
) -> None:
    scorer: Any = load(
        str(
            save(
                tmp_path, BertForMaskedLM, BertConfig, characters(BERT), max_position_embeddings=64
            )
        )
    )
    requests = [
        Request("c", "t", "i", "r", verb, text, "v", Key(), options=("A", "yes"))
        for text in ("is she?", "a" * 63, "a" * 59, "x")
        for verb in ("nll", "choose")
    ]
    found = answered(scorer, requests)
    too_long = "too long for the model: it reads 64 tokens, the text"
    assert found[2:4] == [
        ("", None, f"{too_long} has 65"),
        ("", None, f"{too_long} with its reply has 68"),
    ]
    assert found[:2] + found[4:] == answered(scorer, requests[:2] + requests[4:])
    assert [error for _, _, error in found[:2] + found[4:]] == [""] * 6


def test_a_pair_that_is_too_long_is_an_error_and_not_cut(tmp_path: Path, refusal: Any) -> None:
    labels = dict(enumerate(["contradiction", "entailment", "neutral"]))
    scorer: Any = load(
        str(
            save(
                tmp_path,
                BertForSequenceClassification,
                BertConfig,
                characters(BERT),
                id2label=labels,
            )
        )
    )
    requests = [
        Request("c", "t", "i", "r", "classify", premise, "v", Key(), hypothesis=hypothesis)
        for premise, hypothesis in [
            ("x", "y"),
            ("a" * 300, "b" * 210),
            ("a" * 300, "b" * 209),
            ("is she?", "no"),
        ]
    ]
    found = answered(scorer, requests)
    assert found[1] == ("", None, "too long for the model: it reads 512 tokens, the pair has 513")
    assert [found[0], *found[2:]] == answered(scorer, [requests[0], *requests[2:]])
    assert [error for _, _, error in found].count("") == 3
    assert "513 (number 1 of 2)" in refusal(scorer.classify, [("a" * 300, "b" * 210), ("x", "y")])


def test_what_is_too_long_for_a_tiny_model_is_an_error(tmp_path: Path) -> None:
    scorer: Any = load("tiny:s")
    scorer.causal = load(
        str(save(tmp_path, LlamaForCausalLM, LlamaConfig, characters(), max_position_embeddings=16))
    )
    requests = [Request("c", "t", "i", "r", "nll", text, "v", Key()) for text in ("ab", "a" * 17)]
    assert ["too long" in answer.error for answer in scorer.answer(requests)] == [False, True]
