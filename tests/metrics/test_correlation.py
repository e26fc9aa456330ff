"""Correlations: by hand, against scipy, and where they are undefined."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.metrics.correlation import COEFFICIENTS, correlations


def test_by_hand():
    # Means 2.5 and 2.5; products of deviations 4 of 5; one pair of six is in the wrong order.
    pearson, spearman, kendall = correlations([1, 2, 3, 4], [1, 3, 2, 4])
    assert [pearson.value, spearman.value, kendall.value] == pytest.approx([0.8, 0.8, 4 / 6])
    # t = .8 sqrt(2 / .36) with 2 degrees of freedom, for which p has a closed form.
    t = 0.8 * math.sqrt(2 / 0.36)
    assert pearson.p == pytest.approx(1 - t / math.sqrt(2 + t * t))
    # Fisher's z = atanh r has a standard error of 1 / sqrt(n - 3).
    ends = [math.tanh(math.atanh(0.8) + sign * 1.959964) for sign in (-1, 1)]
    assert [pearson.ci_low, pearson.ci_high] == pytest.approx(ends, abs=1e-6)
    assert math.isnan(kendall.ci_low)
    # Of the 24 orders of four, 8 have as many or more pairs in order or in disorder.
    assert kendall.p == pytest.approx(8 / 24)
    assert kendall[5:] == (4, "")


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20).filter(
        lambda rows: all(len(set(values)) > 1 for values in zip(*rows, strict=True))
    )
)
def test_against_scipy_also_where_ties_differ_in_the_last_digit(rows):
    x, y = np.array(rows).T / 10
    nearly = np.where(np.arange(len(y)) % 2, y, y + 0.1 + 0.2 - 0.3)
    for result, name in zip(correlations(x, nearly), COEFFICIENTS.values(), strict=True):
        wanted = getattr(stats, name)(x, y)
        assert result.value == pytest.approx(wanted.statistic)
        # Near r = 1, p of three points is proportional to the square root of 1 - r * r, so a
        # rounding of 1e-16 in r is one of 1e-8 in p.
        assert result.p == pytest.approx(wanted.pvalue, abs=1e-7)


@pytest.mark.parametrize(
    ("x", "y", "n", "reason"),
    [
        ([0, 0.5, 1], [2 / 3, 1 - 1 / 3, 0.6666666666666667], 3, "the score is 0.667 at every"),
        ([1, 1, 1], [0, 1, 2], 3, "the rate is 1 at every point"),
        ([0, 1, 2], [0, math.nan, 1], 2, "2 points; 3 are needed"),
        ([0], [1], 1, "1 point; 3"),
    ],
)
def test_undefined_is_nan_with_a_reason(x, y, n, reason):
    for result in correlations(x, y):
        assert np.isnan(result[1:5]).all()
        assert result.n == n
        assert result.reason.startswith(reason)
