"""Log-probabilities that are not finite are an error of their request, and never an answer."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from bench.core.errors import RunFailed
from bench.run import evaluate
from bench.scorers import load
from bench.scorers.base import Answer, Model
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.answering import request
from tests.helpers.checkpoints import BERT, CODE, characters, save

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

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = np.array(values)

    def token_logprobs(self, texts: Any, *, bos: bool = False) -> list[np.ndarray]:
        return [self.values for _ in texts]

    def choose(self, prompts: Any, options: Any) -> np.ndarray:
        return np.array([self.values for _ in prompts])

    def classify(self, pairs: Any) -> np.ndarray:
        return np.array([self.values for _ in pairs])


@pytest.mark.parametrize(("verb", "values", "is_answer"), VALUES)
def test_numbers_that_are_not_finite_are_an_error(
    verb: str, values: tuple[float, ...], is_answer: bool
) -> None:
    options: dict[str, Any] = {"options": tuple("ABC"), "hypothesis": "b"}
    [answer] = Given(values).answer([request("who?", "r", verb, **options)])
    assert bool(answer.response) is is_answer
    assert bool(answer.error) is not is_answer


@pytest.mark.parametrize("verb", ["nll", "choose", "generate"])
@pytest.mark.parametrize(
    ("dtype", "advice"),
    [
        ("float16", "use --dtype bfloat16 or float32"),
        ("bfloat16", "use --dtype float32"),
        ("float32", "its weights may be damaged"),
    ],
)
def test_a_local_models_error_names_what_to_do(
    tmp_path: Path, dtype: str, advice: str, verb: str
) -> None:
    kinds = transformers.LlamaForCausalLM, transformers.LlamaConfig
    save(tmp_path, *kinds, characters("[CLS] $A", chat=True))
    scorer: Any = load(str(tmp_path), dtype=dtype)
    with torch.no_grad():
        scorer.network.lm_head.weight[5:] = NAN
    [answer] = scorer.answer([request("who?", "r", verb, options=("A", "B"), max_new_tokens=4)])
    assert (answer.response, answer.logprobs) == ("", None)
    assert answer.error.startswith("the model gave nan")
    assert advice in answer.error


def test_a_classifiers_error_is_no_label(tmp_path: Path) -> None:
    labels = {"id2label": dict(enumerate(["contradiction", "neutral", "entailment"]))}
    kinds = transformers.BertForSequenceClassification, transformers.BertConfig
    scorer: Any = load(str(save(tmp_path, *kinds, characters(BERT), **labels)))
    with torch.no_grad():
        scorer.network.classifier.weight[:] = NAN
    [answer] = scorer.answer([request("a", "r", "classify", hypothesis="b")])
    assert "nan" in answer.error
    assert {row["found"] for row in scorer.probe(["en"])} == {"nan"}


def test_one_text_that_overflows_does_not_spoil_the_others(tmp_path: Path) -> None:
    kinds = transformers.LlamaForCausalLM, transformers.LlamaConfig
    scorer: Any = load(str(save(tmp_path, *kinds, characters("[CLS] $A"))))
    texts = ["the doctor is", "the doctor was", "the doctor is here", "the doctoX is"]
    expected = scorer.token_logprobs(texts)
    with torch.no_grad():
        scorer.network.model.embed_tokens.weight[CODE["X"]] = NAN
    values = scorer.token_logprobs(texts)
    assert np.isnan(values[3]).any()
    for row, alone in zip(values[:3], expected, strict=False):
        np.testing.assert_allclose(row, alone, atol=1e-4)


def test_a_plug_ins_numbers_are_checked_too(own_folder: Path, monkeypatch: Any) -> None:
    def answer(self: Simulated, requests: Any) -> list[Answer]:
        return [Answer("A", (-1.0, NAN, -2.0)) for _ in requests]

    monkeypatch.setattr(Simulated, "answer", answer)
    run = evaluate("cbbq", "simulated:bias=0.5", limit=2, categories=["gender"], out="run")
    assert not run.records.valid.any()
    assert run.records.error.str.contains("nan").all()


@pytest.mark.parametrize("error", [ValueError, TypeError, IndexError, RuntimeError])
def test_an_error_of_a_model_ends_the_run_in_a_sentence(
    own_folder: Path, monkeypatch: Any, error: type[Exception]
) -> None:
    def answer(self: Simulated, requests: Any) -> list[Answer]:
        raise error("index 9 is out of range")

    monkeypatch.setattr(Simulated, "answer", answer)
    with pytest.raises(RunFailed, match=r"the model did not answer .*index 9 is out of range"):
        evaluate("cbbq", "simulated:bias=0.5", limit=2, categories=["gender"], out="run")
