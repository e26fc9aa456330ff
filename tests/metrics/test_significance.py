"""Paired comparisons: against scipy's and statsmodels' t tests, and how often they err where nothing differs."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from bench.metrics import significance
from bench.metrics.significance import benjamini_hochberg, difference, holm


def test_a_difference_of_means_is_the_paired_t_test() -> None:
    # The bootstrap's standard error is that of the mean but for the dice of a thousand resamples.
    dice = np.random.default_rng(0)
    for n in (6, 9, 30):
        one, other = dice.normal(0.3, 1, n), dice.normal(0, 1, n)
        found, t = difference(one, other), stats.ttest_rel(one, other)
        low, high = t.confidence_interval()
        assert found.difference == pytest.approx(np.mean(one - other))
        assert stats.t.isf(found.p / 2, n - 1) == pytest.approx(abs(t.statistic), rel=0.08)
        assert (found.ci_high - found.ci_low) == pytest.approx(high - low, rel=0.08)
        assert found.units == n


def test_the_detectable_difference_has_a_power_of_four_fifths() -> None:
    # statsmodels' power of a t test of 12 pairs; ours takes the noncentral t for a shifted one.
    dice = np.random.default_rng(7)
    less = stats.zscore(dice.normal(0, 1, 12), ddof=1)
    found = difference(less, np.zeros(12))
    wanted = TTestPower().solve_power(nobs=12, power=0.8, alpha=0.05)
    assert found.detectable == pytest.approx(wanted, rel=0.08)


def test_many_items_agree_with_the_paired_t_test() -> None:
    dice = np.random.default_rng(1)
    one = dice.normal(0.15, 1, 200)
    other = np.zeros(200)
    found, t = difference(one, other), stats.ttest_rel(one, other)
    low, high = t.confidence_interval()
    assert found.p == pytest.approx(t.pvalue, abs=0.02)
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high), abs=0.03)
    assert found.detectable == pytest.approx(significance.DETECTABLE * stats.sem(one), rel=0.1)


def test_units_are_drawn_with_all_their_items() -> None:
    units = np.repeat(["a", "b", "c", "d"], [1, 3, 2, 2])
    less = np.array([0.5, 0.1, 0.2, -0.1, 0.3, 0.2, 0.4, -0.2])
    found = difference(less, np.zeros(8), units)
    assert found.units == 4
    # Copies of a unit's items tell nothing new, so that the interval is as wide.
    twice = difference(np.repeat(less, 3), np.zeros(24), np.repeat(units, 3))
    assert (twice.ci_low, twice.ci_high, twice.p) == pytest.approx(
        (found.ci_low, found.ci_high, found.p)
    )
    # The cluster-robust regression on a constant, from statsmodels, with the same degrees of freedom.
    robust = sm.OLS(less, np.ones(8)).fit(
        cov_type="cluster",
        cov_kwds={"groups": pd.factorize(units)[0], "df_correction": True},
        use_t=True,
    )
    # Its small-sample factor is G / (G - 1) times (n - 1) / (n - k), the second of which is one here.
    assert (found.ci_high - found.ci_low) / 2 == pytest.approx(
        stats.t.ppf(0.975, 3) * robust.bse[0], rel=0.2
    )


def test_interval_and_p_are_one_test() -> None:
    dice = np.random.default_rng(4)
    for _ in range(60):
        found = difference(dice.normal(0.4, 1, 20), dice.normal(0, 1, 20))
        assert (found.p < 0.05) == (found.ci_low > 0 or found.ci_high < 0)


@pytest.mark.slow
def test_where_nothing_differs_one_in_twenty_is_called_a_difference() -> None:
    dice = np.random.default_rng(2)
    p, covered = [], []
    for _ in range(300):
        one, other = dice.binomial(1, 0.4, (2, 40)).astype(float)
        found = difference(one, other)
        p.append(found.p)
        covered.append(found.ci_low <= 0 <= found.ci_high)
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.035)


def test_few_units_that_all_agree_may_be_chance() -> None:
    # As in a sign test, which has 2 ** -4 for five that agree, whatever their spread.
    assert difference(np.ones(5), np.zeros(5)).p == 1 / 16
    assert difference(np.ones(500), np.zeros(500)).p < 1e-6
    assert difference([0.5, 0.25], [0.5, 0.25]).p == 1
    alone = difference([1.0], [0.0])
    assert "no interval" in alone.note
    assert np.isnan(alone.p)
    assert "cannot be compared in score: no interval" in significance.comparison_sentence(
        alone, "A", "B", "score"
    )


@pytest.mark.parametrize(
    ("one", "other", "units", "said"),
    [
        ([1, 2], [1], None, "shapes (2,) and (1,)"),
        ([], [], None, "shapes (0,)"),
        ([1, float("nan")], [1, 2], None, "leave the item out for both"),
        ([1, 2], [1, 2], ["a"], "1 units for 2 items"),
    ],
)
def test_what_cannot_be_paired_is_refused(refusal, one, other, units, said) -> None:
    assert said in refusal(difference, one, other, units)


def test_an_undefined_statistic_is_no_difference() -> None:
    rows = pd.DataFrame({"s": "x", "u": [1, 2, 3], "a": 1.0, "b": 1.0})
    never = lambda strata: lambda sums: np.full(len(sums), np.nan)  # noqa: E731
    found = significance.paired(rows, "s", "u", ["a"], ["b"], never)
    assert np.isnan([found.difference, found.p, found.ci_low]).all()
    assert "cannot be compared in score" in significance.comparison_sentence(
        found, "A", "B", "score"
    )


def test_a_sentence_is_never_stronger_than_the_test() -> None:
    clear = difference(np.linspace(0.3, 0.5, 50), np.zeros(50))
    assert significance.comparison_sentence(clear, "A", "B", "score").startswith(
        "score is 0.40 higher in A than in B (95"
    )
    assert "No difference" in significance.comparison_sentence(clear, "A", "B", "score", p=0.3)
    unclear = difference([0.1, -0.1, 0.2, -0.2, 0.1], np.zeros(5))
    assert "would have shown one of 0." in significance.comparison_sentence(
        unclear, "A", "B", "score"
    )


@pytest.mark.parametrize(("adjust", "method"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_adjustments_are_statsmodels_s(adjust, method) -> None:
    dice = np.random.default_rng(3)
    for n in range(1, 9):
        p = dice.beta(0.5, 3, n)
        assert adjust(p) == pytest.approx(multipletests(p, method=method)[1])
        assert adjust([*p, np.nan])[:-1] == pytest.approx(adjust(p))
        assert np.isnan(adjust([*p, np.nan])[-1])


def test_benjamini_and_hochberg_s_own_example() -> None:
    # Their paper of 1995, section 4: at 5 % the four smallest of fifteen are rejected, by Bonferroni three.
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    assert (benjamini_hochberg(p) < 0.05).sum() == 4
    assert (holm(p) < 0.05).sum() == 3
