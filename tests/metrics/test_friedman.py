"""Friedman's test and what follows it: by hand, by SciPy and statsmodels, by published tables."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

import bench
from bench.metrics.friedman import critical_difference

NAN = math.nan


def scores_of(matrix, notes=""):
    """Scores of blocks (rows) and models (columns a, b, ...)."""
    rows = pd.DataFrame(np.asarray(matrix, dtype=float)).rename(columns=dict(enumerate("abcdefgh")))
    rows = rows.rename_axis("category").reset_index()
    table = rows.melt("category", var_name="model", value_name="score")
    return table.assign(note=np.where(table.score.isna(), notes, ""))


def friedman(matrix):
    return bench.friedman(scores_of(matrix))


def random_scores(seed, blocks=12, models=5):
    return np.random.default_rng(seed).normal(np.arange(models) * 0.4, 1, (blocks, models))


@settings(max_examples=10)
@given(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=3, max_size=7))
def test_against_scipy_and_an_analysis_of_variance_of_ranks(matrix):
    scores = np.asarray(matrix) / 10
    test, ranks = friedman(scores).test, stats.rankdata(scores, axis=1)
    if (np.ptp(ranks, axis=1) == 0).all():
        assert "same score in every block" in test.note[0]
        assert test.estimate.isna().all()
        return
    wanted = stats.friedmanchisquare(*scores.T)
    assert (test.estimate[0], test.p[0]) == pytest.approx(tuple(wanted))
    assert test.estimate[2] == pytest.approx(wanted.statistic / (len(ranks) * 3))
    if (ranks == ranks[0]).all():
        return
    # Iman and Davenport's F is that of two-way analysis of variance of the ranks, ties or not.
    means = ranks.mean(0, keepdims=True)
    rest = ranks - means - ranks.mean(1, keepdims=True) + ranks.mean()
    freedom = ranks.shape[1] - 1, rest.size - sum(ranks.shape) + 1
    f = len(ranks) * np.var(means) * 4 / freedom[0] / ((rest**2).sum() / freedom[1])
    assert (test.estimate[1], test.p[1]) == pytest.approx((f, stats.f.sf(f, *freedom)))


def test_blocks_are_the_combinations_of_columns_and_the_lowest_rank_may_be_for_the_highest():
    rows = scores_of(random_scores(2, blocks=6))
    parts = rows.assign(category=rows.category // 3, task=rows.category % 3)
    up = bench.friedman(parts, blocks=["category", "task"])
    assert up.test.equals(bench.friedman(rows).test)
    down = bench.friedman(rows, ascending=False)
    assert down.test.estimate[0] == pytest.approx(up.test.estimate[0])
    assert down.ranks.model.iloc[-1] == up.ranks.model.iloc[0]


def test_critical_differences_are_those_of_demsar():
    # Demšar, 2006, Table 5(a): q for 2 to 10 models; section 3.2.2: four models on 14 data sets.
    table = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
    wanted = [q * math.sqrt(k * (k + 1) / 180) for k, q in enumerate(table, start=2)]
    found = [critical_difference(k, 30) for k in range(2, 11)]
    assert found == pytest.approx(wanted, rel=5e-4)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_pairs_are_by_the_formulas_of_their_authors():
    rows = random_scores(1)
    n, k = rows.shape
    sums = stats.rankdata(rows, axis=1).sum(0)
    table = friedman(rows).pairs
    first, second = (table[side].map("abcde".index) for side in ("first", "second"))
    apart = sums[first] - sums[second]
    assert list(table.estimate) == pytest.approx(list(apart / n))
    q = abs(apart / n) / math.sqrt(k * (k + 1) / (6 * n)) * math.sqrt(2)
    nemenyi = stats.studentized_range.sf(q, k, np.inf)
    assert list(table.p_adjusted) == pytest.approx(list(nemenyi), abs=1e-6)
    assert (table.p_adjusted < 0.05).equals((table.ci_low > 0) | (table.ci_high < 0))
    # Conover, 1999, section 5.8, without ties: A = n k (k + 1) (2 k + 1) / 6.
    left = 2 * (n * n * k * (k + 1) * (2 * k + 1) / 6 - (sums**2).sum()) / ((n - 1) * (k - 1))
    conover = 2 * stats.t.sf(abs(apart) / math.sqrt(left), (n - 1) * (k - 1))
    wilcoxon = stats.wilcoxon(rows[:, first], rows[:, second], method="exact").pvalue
    for name, p in (("p_conover", conover), ("p_wilcoxon", wilcoxon)):
        assert list(table[name]) == pytest.approx(list(multipletests(p, method="holm")[1]))


@pytest.mark.parametrize(("parts", "most"), [(3, 3), (30, 30), (10, 7)])
def test_wilcoxon_s_p_is_that_of_the_counts_whatever_the_shares_are_divided_by(parts, most):
    counts = np.random.default_rng(3).integers(0, most + 1, (10, 2))
    (p,) = friedman(counts / parts).pairs.p_wilcoxon
    assert p == pytest.approx(stats.wilcoxon(*counts.T).pvalue)


@pytest.mark.parametrize(
    ("scores", "note", "p"),
    [
        (random_scores(0, models=2), "3 are needed", NAN),
        (random_scores(0, blocks=1), "2 are needed", NAN),
        ([[1, 2, 3, 4]] * 6, "F is infinite", stats.chi2.sf(18, 3)),
        ([[1, 2, 3, 4]] * 6, "p of Q is rough for 6 blocks of 4 models", stats.chi2.sf(18, 3)),
    ],
)
def test_what_is_undefined_says_so(scores, note, p):
    test = friedman(scores).test
    assert note in test.note[0]
    assert [test.estimate[1], test.p[0]] == pytest.approx([NAN, p], nan_ok=True)


def test_a_single_order_leaves_conover_s_test_no_variance_and_a_block_no_interval():
    table = friedman([[1, 2, 3, 4]] * 6).pairs
    assert table.p_conover.isna().all()
    assert (table.note != "").all()
    assert friedman(random_scores(0, blocks=1)).ranks.ci_low.isna().all()
    ranks = friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3]]).ranks
    assert ranks.ci_low.isna().equals(ranks.note == "no interval: the same rank in every block")
    assert list(ranks.ci_low.isna()) == [True, False, False]


def test_ties_of_all_models_are_named_in_pairs_too():
    tables = friedman([[1, 1, 1]] * 4)
    assert set(tables.pairs.note) == {"all models have the same score in every block"}


def test_scores_that_differ_in_the_last_digit_are_ties():
    ranks = friedman([[0.1 + 0.2, 0.3, 0.5], [0.1, 0.2, 0.3], [0.2, 0.2, 0.2]]).ranks
    assert list(ranks.estimate * 3) == pytest.approx([1.5 + 1 + 2, 1.5 + 2 + 2, 3 + 3 + 2])


def test_what_is_missing_is_left_out_with_its_reason():
    matrix = [[0.1, 0.2, 0.3, NAN], [0.2, NAN, 0.4, NAN], [0.3, 0.3, 0, NAN], [0.3, 0.4, 0.1, NAN]]
    rows = scores_of(matrix, "no answer could be read")
    test = bench.friedman(rows[(rows.category != 2) | (rows.model != "c")]).test
    assert test.n[0] == 2
    assert test.note[0] == (
        "p of Q is rough for 2 blocks of 3 models; model d left out (d: no answer could be read); "
        "block 1 left out (b: no answer could be read); block 2 left out (c: no score)"
    )
