"""Numbers that are not finite and texts that are too long are an error of their request alone."""

import math

import numpy as np
import pytest
import torch

from bench.run import evaluate
from bench.scorers import load
from bench.scorers.base import Answer, checked
from bench.scorers.simulated import Simulated
from tests.helpers.answering import request
from tests.helpers.cases import cases, json_lines
from tests.helpers.checkpoints import BERT, CODE, characters, save


@cases(__file__, "not_finite.csv")
def test_numbers_that_are_not_finite_are_an_error_but_an_option_can_be_impossible(case):
    answer = Answer("A", tuple(map(float, case["logprobs"].split())))
    found = checked(answer, case["request_type"])
    assert (found == answer) is (found.error == "") is (case["is_answer"] == "yes")


@pytest.mark.parametrize(
    ("request_type", "dtype", "advice"),
    [
        ("nll", "float16", "use --dtype bfloat16 or float32"),
        ("choose", "bfloat16", "use --dtype float32"),
        ("generate", "float32", "its weights may be damaged"),
    ],
)
def test_a_local_models_error_names_the_remedy(tmp_path, request_type, dtype, advice):
    save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A", chat=True))
    scorer = load(str(tmp_path), dtype=dtype)
    with torch.no_grad():
        scorer.network.lm_head.weight[5:] = math.nan
    options = {"options": ("A", "B"), "max_new_tokens": 4}
    [answer] = scorer.answer([request(request_type=request_type, **options)])
    assert (answer.response, answer.logprobs) == ("", None)
    assert answer.error.startswith("the model gave nan")
    assert advice in answer.error


def test_one_text_that_overflows_does_not_spoil_the_others(tmp_path):
    scorer = load(str(save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A"))))
    texts = ["the doctor is", "the doctor was", "the doctor is here", "the doctoX is"]
    expected = scorer.token_logprobs(texts)
    with torch.no_grad():
        scorer.network.model.embed_tokens.weight[CODE["X"]] = math.nan
    values = scorer.token_logprobs(texts)
    assert np.isnan(values[3]).any()
    for row, alone in zip(values[:3], expected, strict=False):
        np.testing.assert_allclose(row, alone, atol=1e-4)


def test_a_prompt_that_overflows_does_not_spoil_the_replies_to_others(tmp_path):
    scorer = load(str(save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A"))))
    prompts = ["the doctor is", "the doctoX is", "the doctor was", "the teacher is"]
    expected = scorer.generate(prompts, max_new_tokens=4, greedy=True)
    with torch.no_grad():
        scorer.network.model.embed_tokens.weight[CODE["X"]] = math.nan
    replies = scorer.answer([request(text, max_new_tokens=4) for text in prompts])
    assert [bool(reply.error) for reply in replies] == [False, True, False, False]
    assert [replies[k].response for k in (0, 2, 3)] == [expected[k] for k in (0, 2, 3)]


def test_a_plug_ins_numbers_are_checked_too(own_folder, monkeypatch):
    def answer(self, requests):
        return [Answer("A", (-1.0, math.nan, -2.0)) for _ in requests]

    monkeypatch.setattr(Simulated, "answer", answer)
    run = evaluate("cbbq", "simulated:bias=0.5", limit=2, categories=["gender"], out="run")
    assert not run.answers().valid.any()
    assert run.records.error.str.contains("nan").all()


# `more` tokens are read besides those of the text: special ones, a line break, the reply, and all
# but the last of an option's tokens.
@pytest.mark.parametrize("case", json_lines(__file__, "too_long.jsonl"))
def test_a_long_text_is_an_error_and_the_others_are_answered(tmp_path, refusal, case):
    request_type, name, longest = case["request_type"], case["name"], 16 - case["more"]
    scorer = load(str(save(tmp_path, case["network"], characters(BERT), **case["shape"])))
    options = {"options": ("A", "不是"), "max_new_tokens": 4, "hypothesis": "b"}
    sizes = (1, longest + 1, longest, longest + 4)
    requests = [request("a" * size, "r", request_type, **options) for size in sizes]
    answers = scorer.answer(requests)
    for k, size in ((1, 17), (3, 20)):
        error = f"too long for the model: it reads 16 tokens, {name} has {size}"
        assert (answers[k].response, answers[k].error) == ("", error)
    for answer, alone in zip(answers[::2], scorer.answer(requests[::2]), strict=True):
        assert (answer.response, answer.logprobs) == (alone.response, alone.logprobs)
        assert answer.error == alone.error == ""
    assert all(answer.error for answer in scorer.answer(requests[1::2])), "all may be too long"
    if request_type == "nll":
        message = refusal(scorer.nll, ["a", "a" * (longest + 1)])
        assert f"it reads 16 tokens, {name} has 17 (number 2 of 2)" in message
