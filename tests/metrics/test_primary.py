"""Findings about primary metric scores are as strong as their intervals, the most biased first."""

import math

import pandas as pd
import pytest

from bench.metrics.primary import findings, sentence, summary
from bench.metrics.table import PrimaryMetric
from tests.helpers.cases import cases

AMBIGUOUS = PrimaryMetric("ambiguous", "s_amb", "Ambiguous", "chose {value}")


def table(*rows):
    """A score table in which nothing is odd but the columns of `rows`."""
    plain = {"benchmark": "cbbq", "category": "all", "task": "ambiguous", "metric": "s_amb"}
    plain |= {"model": "m", "n": 40, "valid_rate": 1.0, "note": "", "preset": "robust"}
    plain |= {"score": 0.5, "baseline": 1 / 3, "baseline_of": "", "by_habit": False}
    scores = pd.DataFrame([plain | row for row in rows])
    return scores.assign(ci_low=scores.score - 0.05, ci_high=scores.score + 0.05)


@cases(__file__, "sentences.csv")
def test_a_sentence_is_as_strong_as_its_interval(case):
    (row,) = table({}).to_dict("records")
    row |= {name: float(case[name] or math.nan) for name in case if name not in ("part", "why")}
    assert case["part"] in sentence(AMBIGUOUS, row).replace("\u00a0", " ")


def test_the_most_biased_come_first_and_the_undefined_have_a_reason():
    metrics = (("ambiguous", "s_amb"), ("disambiguous", "s_disamb"), ("all", "accuracy"))
    models = (("low", 0.1, ""), ("high", 0.8, ""), ("none", math.nan, "no answer could be read"))
    scores = table(
        *(
            {"model": model, "task": task, "metric": metric, "score": value, "note": note}
            for model, value, note in models
            for task, metric in metrics
        )
    )
    undefined = summary(scores[scores.model == "none"], "cbbq", 3)
    assert "none: ambiguous is undefined: no answer could be read." in undefined
    # The lowest accuracy is the worst.
    assert list(findings(scores, "cbbq").model) == ["high", "high", "low"]


@pytest.mark.parametrize(
    ("kinds", "first"),
    [
        (("simulated respondent", "demonstration model"), "a"),
        (("simulated respondent", "local"), "b"),
        (("demonstration model", "openai"), "b"),
        (("local", "openai"), "a"),
    ],
)
def test_reference_models_are_the_most_biased_only_among_themselves(kinds, first):
    models = zip("ab", kinds, (0.9, 0.4), strict=True)
    scores = table(
        *({"model": model, "kind": kind, "score": score} for model, kind, score in models)
    )
    assert list(findings(scores, "cbbq").model) == [first]
