"""Equivalence: against SciPy's paired t tests, both directions, and what cannot be said."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.metrics.equivalence import findings
from bench.metrics.equivalence import tests as equivalence
from bench.metrics.readability import LESS_READABLE
from bench.metrics.significance import Comparison

HEADLINES = {"s_amb": "ambiguous", "accuracy": "all"}


def pair(
    values: np.ndarray, metric: str = "s_amb", models: tuple[str, str] = ("a", "b")
) -> dict[str, Any]:
    """A pair with these differences of units."""
    error, n = stats.sem(values), len(values)
    about = {
        "task": HEADLINES[metric],
        "metric": metric,
        "model_a": models[0],
        "model_b": models[1],
    }
    about["verdict"] = "no difference shown"
    nothing = {"p": np.nan, "ci_low": np.nan, "ci_high": np.nan, "detectable": np.nan, "note": ""}
    found = Comparison(difference=values.mean(), units=n, error=error, freedom=n - 1, **nothing)
    return {**about, **found._asdict()}


def test_p_values_are_those_of_two_one_sided_paired_t_tests() -> None:
    values = np.random.default_rng(0).normal(0.01, 0.1, 40)
    row = equivalence(pd.DataFrame([pair(values)]), 0.05, "cbbq").iloc[0]
    # A higher s_amb is worse.
    first = stats.ttest_1samp(values, 0.05, alternative="less").pvalue
    second = stats.ttest_1samp(values, -0.05, alternative="greater").pvalue
    adjusted = stats.false_discovery_control([first, second])
    assert (row.p_a_not_worse, row.p_b_not_worse) == pytest.approx(tuple(adjusted))
    assert row.p_equivalent == pytest.approx(max(adjusted))
    low, high = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert (row.low_90, row.high_90) == pytest.approx((low, high))
    assert (row.p_equivalent < 0.05) == (low > -0.05 and high < 0.05)


def test_the_better_side_is_that_of_the_score() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.05, 30)
    found = equivalence(pd.DataFrame([pair(values), pair(values, "accuracy")]), 0.05, "cbbq")
    found = found.set_index("metric")
    # 0.1 more stereotyped answers are worse, 0.1 more right ones better.
    assert found.p_a_not_worse["s_amb"] > 0.95 > 0.05 > found.p_b_not_worse["s_amb"]
    assert found.p_a_not_worse["accuracy"] < 0.05 < 0.95 < found.p_b_not_worse["accuracy"]
    assert "b is not worse than a" in found.sentence["s_amb"]
    assert "a is not worse than b" in found.sentence["accuracy"]


def test_few_units_show_nothing_and_the_same_answers_are_equivalent() -> None:
    wide = equivalence(pd.DataFrame([pair(np.array([0.3, -0.3, 0.1]))]), 0.05, "cbbq").iloc[0]
    assert wide.p_equivalent > 0.05
    assert wide.sentence.startswith("Neither")
    same = equivalence(pd.DataFrame([pair(np.zeros(20))]), 0.05, "cbbq").iloc[0]
    assert same.p_equivalent < 0.001
    assert "are equivalent" in same.sentence
    (told,) = findings(pd.DataFrame([same]), "cbbq")
    assert same.sentence in told
    (told,) = findings(pd.DataFrame([wide]), "cbbq")
    assert "no two models" in told
    four = equivalence(pd.DataFrame([pair(np.zeros(4))]), 0.05, "cbbq").iloc[0]
    assert four.p_equivalent == pytest.approx(1 / 16)


def test_pairs_without_a_standard_error_are_left_out_and_a_margin_is_above_nought(
    refusal: Any,
) -> None:
    refusing = equivalence(
        pd.DataFrame([{**pair(np.zeros(20)), "verdict": LESS_READABLE}]), 0.05, "cbbq"
    )
    assert np.isnan(refusing.p_equivalent[0])
    row = {**pair(np.zeros(5)), "error": np.nan}
    assert equivalence(pd.DataFrame([row]), 0.05, "cbbq").empty
    assert "margin -1" in refusal(equivalence, pd.DataFrame([row]), -1.0, "cbbq")
