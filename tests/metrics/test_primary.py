"""Findings about primary metric scores are as strong as their intervals, the most biased first."""

import math

import pandas as pd
import pytest

from bench.metrics.primary import findings, sentence, summary
from bench.metrics.table import PrimaryMetric

# Columns of a score in which nothing is odd.
PLAIN = {"benchmark": "cbbq", "category": "all", "n": 40, "valid_rate": 1.0, "note": ""}
PLAIN |= {"baseline": 1 / 3, "preset": "robust", "baseline_of": "", "by_habit": False}


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (
            {"score": 0.61, "ci_low": 0.52, "n": 1200},
            "(95 % interval 52 to 70; above a random answerer, 33",
        ),
        ({"score": 0.2, "ci_low": 0.1, "ci_high": 0.3, "n": 9}, "; below a random answerer, 33;"),
        ({"score": 0.4, "ci_low": 0.3, "n": 9}, " It cannot be told from a random answerer."),
        # The ends would be printed alike: 33 and 33.
        (
            {"score": 0.5, "ci_low": 0.3342, "n": 9},
            "(95 % interval 33.4 to 70.0; above a random answerer, 33.3",
        ),
        # Unreadable answers leave open on which side it is.
        (
            {"score": 0.25, "ci_low": 0.22, "ci_high": 0.29, "n": 9, "valid_rate": 0.5}
            | {"bound_low": 0.25, "bound_high": 0.75},
            "cannot be told from a random answerer. Only 50 % of its answers could be read",
        ),
        (
            {"score": 0.6, "ci_low": 0.5, "n": 9, "bound_low": 0.5, "bound_high": 0.7},
            "; above a random answerer, 33;",
        ),
        ({"score": 0.6, "ci_low": 0.5, "n": 9, "valid_rate": 0.5}, "Only 50 % of its answers"),
    ],
)
def test_a_sentence_is_as_strong_as_its_interval(row, part):
    primary = PrimaryMetric("ambiguous", "s_amb", "Ambiguous", "chose {value}", True, True, (0, 1))
    plain = {"model": "m", "baseline": 1 / 3, "note": "", "ci_high": 0.7, "valid_rate": 1.0}
    assert part in sentence(primary, {**plain, **row}).replace("\u00a0", " ")


def test_the_most_biased_come_first_and_the_undefined_have_a_reason():
    metrics = (("ambiguous", "s_amb"), ("disambiguous", "s_disamb"), ("all", "accuracy"))
    rows = [
        {**PLAIN, "model": model, "task": task, "metric": metric, "score": value}
        for model, value in (("low", 0.1), ("high", 0.8), ("none", math.nan))
        for task, metric in metrics
    ]
    table = pd.DataFrame(rows)
    table = table.assign(ci_low=table.score - 0.05, ci_high=table.score + 0.05)
    table.loc[table.score.isna(), "note"] = "no answer could be read"
    undefined = summary(table[table.model == "none"], "cbbq", 3)
    assert "none: ambiguous is undefined: no answer could be read." in undefined
    # The lowest accuracy is the worst.
    assert list(findings(table, "cbbq").model) == ["high", "high", "low"]


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
    plain = {**PLAIN, "task": "ambiguous", "metric": "s_amb"}
    rows = [
        {**plain, "model": model, "kind": kind, "score": score}
        for model, kind, score in zip("ab", kinds, (0.9, 0.4), strict=True)
    ]
    table = pd.DataFrame(rows)
    table = table.assign(ci_low=table.score - 0.05, ci_high=table.score + 0.05)
    assert list(findings(table, "cbbq").model) == [first]
