"""Paired comparisons: against scipy's and statsmodels' t tests, and how often they err where nothing differs."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from bench.metrics.bootstrap import resample
from bench.metrics.significance import (
    benjamini_hochberg,
    compare_totals,
    comparison_sentence,
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


def test_the_detectable_difference_has_a_power_of_four_fifths():
    # statsmodels' power of a t test of 12 pairs; ours takes the noncentral t for a shifted one.
    less = stats.zscore(np.random.default_rng(7).normal(0, 1, 12), ddof=1)
    wanted = TTestPower().solve_power(nobs=12, power=0.8, alpha=0.05)
    assert difference(less, np.zeros(12)).detectable == pytest.approx(wanted, rel=0.08)


def test_units_are_drawn_with_all_their_items():
    units = np.repeat(["a", "b", "c", "d"], [1, 3, 2, 2])
    less = np.array([0.5, 0.1, 0.2, -0.1, 0.3, 0.2, 0.4, -0.2])
    result = difference(less, np.zeros(8), units)
    # Copies of a unit's items tell nothing new, so that the interval is as wide.
    copies = difference(np.repeat(less, 3), np.zeros(24), np.repeat(units, 3))
    assert copies[:5] == pytest.approx(result[:5])
    # The cluster-robust regression on a constant, from statsmodels, with the same degrees of freedom.
    groups = {"groups": pd.factorize(units)[0], "df_correction": True}
    robust = sm.OLS(less, np.ones(8)).fit(cov_type="cluster", cov_kwds=groups, use_t=True)
    # Its small-sample factor is G / (G - 1) times (n - 1) / (n - k), the second of which is one here.
    assert (result.ci_high - result.ci_low) / 2 == pytest.approx(
        stats.t.ppf(0.975, 3) * robust.bse[0], rel=0.2
    )


def test_interval_and_p_are_one_test():
    rng = np.random.default_rng(4)
    for _ in range(60):
        result = difference(rng.normal(0.4, 1, 20), rng.normal(0, 1, 20))
        assert (result.p < 0.05) == (result.ci_low > 0 or result.ci_high < 0)


@pytest.mark.slow
def test_where_nothing_differs_one_in_twenty_is_called_a_difference():
    rng = np.random.default_rng(2)
    results = [difference(*rng.binomial(1, 0.4, (2, 40)).astype(float)) for _ in range(300)]
    assert np.mean([result.p < 0.05 for result in results]) == pytest.approx(0.05, abs=0.035)
    covered = [result.ci_low <= 0 <= result.ci_high for result in results]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.035)


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
        text = comparison_sentence(result, "A", "B", "score")
        assert text == f"A and B cannot be compared in score: {note}."


@pytest.mark.parametrize(
    ("first", "second", "units", "shapes"),
    [
        ([1, 2], [1], None, "(2,) and (1,), 2 units"),
        ([], [], None, "(0,) and (0,), 0 units"),
        ([1, np.nan], [1, 2], None, "(2,) and (2,), 2 units"),
        ([1, 2], [1, 2], ["a"], "(2,) and (2,), 1 units"),
    ],
)
def test_what_cannot_be_paired_is_refused(refusal, first, second, units, shapes):
    assert f"found shapes {shapes}" in refusal(difference, first, second, units)


def test_a_sentence_is_never_stronger_than_the_test():
    clear = difference(np.linspace(0.3, 0.5, 50), np.zeros(50))
    lower = difference(np.zeros(50), np.linspace(0.3, 0.5, 50))
    unclear = difference([0.1, -0.1, 0.2, -0.2, 0.1], np.zeros(5))
    for result, p, text in (
        (clear, None, "score is 0.40 higher in A than in B (95\u00a0% interval +0.38 to +0.42;"),
        (lower, None, "score is 0.40 lower in A than in B (95"),
        (clear, 0.3, "No difference in score could be shown between A and B: +0.40 (95"),
        (unclear, None, "These data would have shown one of 0."),
    ):
        assert text in comparison_sentence(result, "A", "B", "score", p=p)


@pytest.mark.parametrize(("adjust", "method"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_adjustments_are_statsmodels_s(adjust, method):
    rng = np.random.default_rng(3)
    for n in range(1, 9):
        p = rng.beta(0.5, 3, n)
        wanted = [*multipletests(p, method=method)[1], np.nan]
        assert adjust([*p, np.nan]) == pytest.approx(wanted, nan_ok=True)
    # Benjamini and Hochberg, 1995, section 4: of fifteen, four are rejected at 5 %; by Bonferroni three.
    small = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p = [*small, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert (adjust(p) < 0.05).sum() == (4 if adjust is benjamini_hochberg else 3)


def test_a_gain_of_the_less_readable_side_is_no_gain():
    assert favours_less_readable(gain=1, readable=-0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=-0.1, p=0.2)
