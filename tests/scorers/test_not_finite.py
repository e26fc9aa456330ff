"""Numbers that are not finite and texts that are too long are an error of their request alone."""

import math

import numpy as np
import pytest
import torch

from bench.run import evaluate
from bench.scorers import load
from bench.scorers.base import Answer, Model
from bench.scorers.simulated import Simulated
from tests.helpers.answering import request
from tests.helpers.cases import cases
from tests.helpers.checkpoints import BERT, CODE, characters, headed, save

INF, NAN = math.inf, math.nan
# Probabilities or log-probabilities of a request, by its type, and whether they are an answer.
VALUES = [
    ("choose", (-1.0, -2.0, -3.0), True),
    ("choose", (-INF, -2.0, -INF), True),  # an option can be impossible
    ("choose", (-1.0, NAN, -3.0), False),
    ("choose", (-1.0, -2.0, INF), False),
    ("choose", (-INF, -INF, -INF), False),
    ("classify", (0.0, 0.4, 0.6), True),
    ("classify", (0.5, NAN, 0.5), False),
    ("classify", (0.0, 0.0, 0.0), False),
    ("nll", (-1.0, -2.0), True),
    ("nll", (-1.0, NAN), False),
    ("nll", (-1.0, -INF), False),
]


class Given(Model):
    """A model whose numbers a test gives."""

    def __init__(self, values):
        self.values = np.array(values)

    def token_logprobs(self, texts, *, bos=False):
        return [self.values for _ in texts]

    def choose(self, prompts, options):
        return np.array([self.values for _ in prompts])

    def classify(self, pairs):
        return np.array([self.values for _ in pairs])


@pytest.mark.parametrize(("request_type", "values", "is_answer"), VALUES)
def test_numbers_that_are_not_finite_are_an_error(request_type, values, is_answer):
    options = {"options": tuple("ABC"), "hypothesis": "b"}
    [answer] = Given(values).answer([request("who?", "r", request_type, **options)])
    assert bool(answer.response) is is_answer
    assert bool(answer.error) is not is_answer


@pytest.mark.parametrize(
    ("request_type", "dtype", "advice"),
    [
        ("nll", "float16", "use --dtype bfloat16 or float32"),
        ("choose", "bfloat16", "use --dtype float32"),
        ("generate", "float32", "its weights may be damaged"),
    ],
)
def test_a_local_models_error_names_what_to_do(tmp_path, request_type, dtype, advice):
    save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A", chat=True))
    scorer = load(str(tmp_path), dtype=dtype)
    with torch.no_grad():
        scorer.network.lm_head.weight[5:] = NAN
    [answer] = scorer.answer(
        [request("who?", "r", request_type, options=("A", "B"), max_new_tokens=4)]
    )
    assert (answer.response, answer.logprobs) == ("", None)
    assert answer.error.startswith("the model gave nan")
    assert advice in answer.error


def test_one_text_that_overflows_does_not_spoil_the_others(tmp_path):
    scorer = load(str(save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A"))))
    texts = ["the doctor is", "the doctor was", "the doctor is here", "the doctoX is"]
    expected = scorer.token_logprobs(texts)
    with torch.no_grad():
        scorer.network.model.embed_tokens.weight[CODE["X"]] = NAN
    values = scorer.token_logprobs(texts)
    assert np.isnan(values[3]).any()
    for row, alone in zip(values[:3], expected, strict=False):
        np.testing.assert_allclose(row, alone, atol=1e-4)


def test_a_plug_ins_numbers_are_checked_too(own_folder, monkeypatch):
    def answer(self, requests):
        return [Answer("A", (-1.0, NAN, -2.0)) for _ in requests]

    monkeypatch.setattr(Simulated, "answer", answer)
    run = evaluate("cbbq", "simulated:bias=0.5", limit=2, categories=["gender"], out="run")
    assert not run.records.valid.any()
    assert run.records.error.str.contains("nan").all()


LABELS = {"id2label": dict(enumerate(["contradiction", "entailment", "neutral"]))}
# Tokens besides those of the text: special ones, a line break, the reply, and all but the last of
# an option's tokens.


def model_of(kind, folder):
    """A model that reads 16 tokens."""
    if "GPT2" in kind:
        return load(str(save(folder, kind, characters(), n_positions=16)))
    # RoBERTa counts positions from behind the padding token, whose id is 0.
    shape = {"max_position_embeddings": 17 if "Roberta" in kind else 16}
    if "MultipleChoice" in kind:
        return load(str(headed(folder, kind, **shape)))
    labels = LABELS if "Classification" in kind else {}
    return load(str(save(folder, kind, characters(BERT), **labels, **shape)))


@cases(__file__, "too_long.csv")
def test_a_long_text_is_an_error_and_the_others_are_answered(tmp_path, refusal, case):
    request_type, name, longest = case["verb"], case["name"], 16 - int(case["more"])
    scorer = model_of(case["network"], tmp_path)
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
