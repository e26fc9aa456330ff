"""Correlations: by hand, against scipy, and where they are undefined."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.metrics.correlation import COEFFICIENTS, by_group, correlations


def values(x: list[float], y: list[float]) -> dict[str, float]:
    return {one.coefficient: one.value for one in correlations(x, y)}


def test_by_hand() -> None:
    # Means 2.5 and 2.5; products of deviations 2.25 + .25 - .25... = 4 of 5; one pair of six is in the wrong order.
    found = {one.coefficient: one for one in correlations([1, 2, 3, 4], [1, 3, 2, 4])}
    assert found["pearson"].value == pytest.approx(0.8)
    assert found["spearman"].value == pytest.approx(0.8)
    assert found["kendall"].value == pytest.approx(4 / 6)
    # t = .8 sqrt(2 / .36) with 2 degrees of freedom, for which p has a closed form.
    t = 0.8 * math.sqrt(2 / 0.36)
    assert found["pearson"].p == pytest.approx(1 - t / math.sqrt(2 + t * t))
    # Fisher's z = atanh r has a standard error of 1 / sqrt(n - 3).
    assert (found["pearson"].ci_low, found["pearson"].ci_high) == pytest.approx(
        (math.tanh(math.atanh(0.8) - 1.959964), math.tanh(math.atanh(0.8) + 1.959964)), abs=1e-6
    )
    assert math.isnan(found["kendall"].ci_low)
    # Of the 24 orders of four, 8 have as many or more pairs in order or in disorder.
    assert found["kendall"].p == pytest.approx(8 / 24)
    assert all(one.n == 4 and one.reason == "" for one in found.values())


def test_the_papers_p_is_not_what_it_says() -> None:
    # Specification 5.1: r = -.263 with eleven models has p = .43, and -.535 has .09.
    for r, p in ((-0.263, 0.43), (-0.535, 0.09)):
        x = np.arange(11.0) - 5
        other = np.cos(np.arange(11.0) * 2)
        other -= other.mean() + (other @ x) / (x @ x) * x
        y = r * x / np.linalg.norm(x) + math.sqrt(1 - r * r) * other / np.linalg.norm(other)
        found = correlations(x, y)[0]
        assert found.value == pytest.approx(r)
        assert round(found.p, 2) == p


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20).filter(
        lambda rows: len({x for x, _ in rows}) > 1 and len({y for _, y in rows}) > 1
    )
)
def test_against_scipy(rows: list[tuple[int, int]]) -> None:
    x, y = [row[0] / 10 for row in rows], [row[1] / 10 for row in rows]
    for one, compute in zip(
        correlations(x, y), (stats.pearsonr, stats.spearmanr, stats.kendalltau), strict=True
    ):
        should = compute(x, y)
        assert one.value == pytest.approx(should.statistic, abs=1e-9)
        assert one.p == pytest.approx(should.pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "n", "said"),
    [
        (
            [0, 0.5, 1],
            [2 / 3, 1 - 1 / 3, 0.6666666666666667],
            3,
            "the score is 0.667 at every point",
        ),
        ([1, 1, 1], [0, 1, 2], 3, "the rate is 1 at every point"),
        ([0, 1], [0, 1], 2, "2 points; 3 are needed"),
        ([0, 1, 2], [0, math.nan, 1], 2, "2 points"),
        ([0], [1], 1, "1 point; 3"),
        ([], [], 0, "0 points"),
    ],
)
def test_undefined_is_nan_with_a_reason(x: list[float], y: list[float], n: int, said: str) -> None:
    for one in correlations(x, y):
        assert math.isnan(one.value)
        assert math.isnan(one.p)
        assert math.isnan(one.ci_low)
        assert one.n == n
        assert said in one.reason


def test_shapes_that_do_not_fit_are_refused(refusal: Any) -> None:
    assert "as many x as y" in refusal(correlations, [1, 2, 3], [1, 2])


def test_ties_are_ties_however_they_were_computed() -> None:
    assert values([0, 1, 2, 3], [0.1 + 0.2, 0.3, 0.5, 0.7]) == pytest.approx(
        values([0, 1, 2, 3], [0.3, 0.3, 0.5, 0.7])
    )


def test_by_group_has_a_row_a_group_and_coefficient() -> None:
    rows = pd.DataFrame(
        {"language": list("aaabbb"), "rate": [0, 1, 2] * 2, "score": [0, 1, 2, 5, 5, 5.0]}
    )
    found = by_group(rows, ["language"])
    assert list(found.language) == ["a"] * 3 + ["b"] * 3
    assert list(found.coefficient) == [*COEFFICIENTS] * 2
    assert found.value[:3].tolist() == pytest.approx([1, 1, 1])
    assert found.value[3:].isna().all()
    assert (found.reason[3:] != "").all()
