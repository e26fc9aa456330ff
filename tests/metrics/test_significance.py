"""Paired comparisons: against scipy's and statsmodels' t tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

import bench


def difference(first, second):
    """Compare two models' scores of the same items, in the same order."""
    items = pd.DataFrame({"item_id": range(len(first))})
    sides = [items.assign(model=name, score=s) for name, s in (("a", first), ("b", second))]
    (row,) = bench.compare(pd.concat(sides), "score", cluster=None, stratum=None).itertuples()
    return row


@pytest.mark.parametrize(("n", "near"), [(6, 0.08), (30, 0.08), (200, 0.05)])
def test_a_difference_of_means_is_the_paired_t_test(n, near):
    # The bootstrap's standard error is that of the mean but for the chance of a thousand resamples.
    rng = np.random.default_rng(n)
    first, second = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
    result, t = difference(first, second), stats.ttest_rel(first, second)
    low, high = t.confidence_interval()
    assert result.estimate == pytest.approx(np.mean(first - second))
    assert stats.t.isf(result.p / 2, n - 1) == pytest.approx(abs(t.statistic), rel=near)
    assert result.ci_high - result.ci_low == pytest.approx(high - low, rel=near)
    assert result.clusters == n
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


def test_a_single_unit_has_no_test():
    result = difference([1.0], [0.0])
    assert np.isnan([result.p, result.ci_low]).all()
    assert result.note == "no interval: too few units in a stratum"
