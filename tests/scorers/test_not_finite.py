"""Log-probabilities that are not finite are an error of their request, and never an answer."""

import math

import numpy as np
import pytest
import torch

from bench.run import evaluate
from bench.scorers import load
from bench.scorers.base import Answer, Model
from bench.scorers.simulated import Simulated
from tests.helpers.answering import request
from tests.helpers.checkpoints import CODE, characters, save

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
