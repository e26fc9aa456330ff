"""Paired comparisons: against scipy, against all permutations by hand, and how often they err where nothing differs."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench.metrics import significance
from bench.metrics.significance import difference, holm


def test_few_items_are_permuted_in_all_ways_as_scipy_does() -> None:
    dice = np.random.default_rng(0)
    for _ in range(5):
        one, other = dice.normal(0.3, 1, 9), dice.normal(0, 1, 9)
        found = difference(one, other)
        scipy = stats.permutation_test((one, other), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", n_resamples=np.inf, vectorized=True)  # fmt: skip
        assert found.difference == pytest.approx(np.mean(one - other))
        assert found.p == pytest.approx(scipy.pvalue)
        assert found.units == 9


def test_many_items_agree_with_the_paired_t_test() -> None:
    dice = np.random.default_rng(1)
    one = dice.normal(0.15, 1, 200)
    other = np.zeros(200)
    found, t = difference(one, other), stats.ttest_rel(one, other)
    low, high = t.confidence_interval()
    assert found.p == pytest.approx(t.pvalue, abs=0.02)
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high), abs=0.03)
    assert found.detectable == pytest.approx(2.8 * stats.sem(one), rel=0.1)


def test_units_change_hands_and_are_drawn_with_all_their_items() -> None:
    units = np.repeat(["a", "b", "c", "d"], [1, 3, 2, 2])
    less = np.array([0.5, 0.1, 0.2, -0.1, 0.3, 0.2, 0.4, -0.2])
    found = difference(less, np.zeros(8), units)
    sums = np.array([less[units == name].sum() for name in "abcd"])
    ways = [abs(np.dot(signs, sums)) for signs in product((1, -1), repeat=4)]
    assert found.p == pytest.approx(np.mean([way >= abs(less.sum()) - 1e-12 for way in ways]))
    assert found.units == 4
    # Copies of a unit's items tell nothing new, so that the interval is as wide.
    twice = difference(np.repeat(less, 3), np.zeros(24), np.repeat(units, 3))
    assert (twice.ci_low, twice.ci_high, twice.p) == pytest.approx((found.ci_low, found.ci_high, found.p))


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


def test_no_p_value_is_nought_and_equal_models_have_one_of_one() -> None:
    assert difference(np.ones(500), np.zeros(500)).p == pytest.approx(1 / 1000, rel=0.5)
    assert difference([0.5, 0.25], [0.5, 0.25]).p == 1
    assert "no interval" in difference([1.0], [0.0]).note


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
    assert "cannot be compared in score" in significance.told(found, "A", "B", "score")


def test_a_sentence_is_never_stronger_than_the_test() -> None:
    clear = difference(np.linspace(0.3, 0.5, 50), np.zeros(50))
    assert significance.told(clear, "A", "B", "score").startswith("score is 0.40 higher in A than in B (95")
    assert "No difference" in significance.told(clear, "A", "B", "score", p=0.3)
    unclear = difference([0.1, -0.1, 0.2, -0.2, 0.1], np.zeros(5))
    assert "would have shown one of 0." in significance.told(unclear, "A", "B", "score")


def test_holm_is_statsmodels_s() -> None:
    dice = np.random.default_rng(3)
    for n in range(1, 9):
        p = dice.beta(0.5, 3, n)
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
        assert holm([*p, np.nan])[:-1] == pytest.approx(holm(p))
        assert np.isnan(holm([*p, np.nan])[-1])
