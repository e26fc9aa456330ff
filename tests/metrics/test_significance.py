"""Paired comparisons: against scipy's and statsmodels' t tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from bench.metrics.bootstrap import resample
from bench.metrics.significance import (
    compare_totals,
    difference,
    favours_less_readable,
    holm,
)


@pytest.mark.parametrize(("n", "near"), [(6, 0.08), (9, 0.08), (30, 0.08), (200, 0.05)])
def test_a_difference_of_means_is_the_paired_t_test(n, near):
    # The bootstrap's standard error is that of the mean but for the chance of a thousand resamples.
    rng = np.random.default_rng(n)
    first, second = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
    result, t = difference(first, second), stats.ttest_rel(first, second)
    low, high = t.confidence_interval()
    assert result.difference == pytest.approx(np.mean(first - second))
    assert stats.t.isf(result.p / 2, n - 1) == pytest.approx(abs(t.statistic), rel=near)
    assert result.ci_high - result.ci_low == pytest.approx(high - low, rel=near)
    assert result.units == n
    assert (result.p < 0.05) == (result.ci_low > 0 or result.ci_high < 0)
    # The shifted t makes it a little more than statsmodels' power, by the noncentral one.
    wanted = TTestPower().solve_power(nobs=n, power=0.8, alpha=0.05) * np.std(
        first - second, ddof=1
    )
    assert result.detectable == pytest.approx(wanted, rel=near + 0.03)


def test_few_units_that_all_agree_may_be_chance():
    # As in a sign test, which has 2 ** -4 for five that agree, whatever their spread.
    assert difference(np.ones(5), np.zeros(5)).p == 1 / 16
    assert difference(np.ones(500), np.zeros(500)).p < 1e-6
    assert difference([0.5, 0.25], [0.5, 0.25]).p == 1


def test_a_comparison_that_is_undefined_says_why():
    rows = pd.DataFrame({"s": "x", "u": [1, 2, 3], "a": 1.0, "b": 1.0})
    never = lambda strata: lambda sums: np.full(len(sums), np.nan)  # noqa: E731
    undefined = compare_totals(resample(rows, "s", "u", ["a", "b"]), never)
    for result, note in (
        (difference([1.0], [0.0]), "no interval: too few units in a stratum"),
        (undefined, "undefined for one of the two, or for both"),
    ):
        assert np.isnan([result.p, result.ci_low]).all()
        assert result.note == note


def test_what_cannot_be_paired_is_refused(refusal):
    for first, second, units in (([1, 2], [1], None), ([], [], None), ([1, np.nan], [1, 2], None)):
        assert "found shapes" in refusal(difference, first, second, units)


def test_holm_s_method_is_that_of_statsmodels():
    rng = np.random.default_rng(3)
    for n in range(1, 9):
        p = rng.beta(0.5, 3, n)
        wanted = [*multipletests(p, method="holm")[1], np.nan]
        assert holm([*p, np.nan]) == pytest.approx(wanted, nan_ok=True)


def test_a_gain_of_the_less_readable_side_is_no_gain():
    assert favours_less_readable(gain=1, readable=-0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=-0.1, p=0.2)
