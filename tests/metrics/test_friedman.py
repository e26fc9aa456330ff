"""Friedman's test and what follows it: by hand, by SciPy and statsmodels, by published tables."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from bench.metrics import friedman

NAN = math.nan


def blocks_of(matrix):
    """Blocks (rows) by models (columns a, b, ...), a higher score the more biased one."""
    scores = pd.DataFrame(np.asarray(matrix, dtype=float))
    scores.columns = list("abcdefghijklm"[: len(scores.columns)])
    return friedman.Blocks("category", scores, friedman.ranked(scores), pd.DataFrame())


def random_scores(seed, blocks=12, models=5):
    return np.random.default_rng(seed).normal(np.arange(models) * 0.4, 1, (blocks, models))


@given(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=3, max_size=12))
def test_against_scipy_and_an_analysis_of_variance_of_ranks(matrix):
    scores = np.asarray(matrix) / 10
    result, ranks = friedman.test(blocks_of(scores)), stats.rankdata(scores, axis=1)
    assert result.tied_blocks == sum(len(set(row)) < 4 for row in matrix)
    if (np.ptp(ranks, axis=1) == 0).all():
        assert "same score in every block" in result.note
        assert math.isnan(result.statistic)
        return
    assert (result.statistic, result.p) == pytest.approx(tuple(stats.friedmanchisquare(*scores.T)))
    assert result.kendall_w == pytest.approx(result.statistic / (len(ranks) * 3))
    if (ranks == ranks[0]).all():
        return
    # Iman and Davenport's F is that of two-way analysis of variance of the ranks, ties or not.
    rows = [(i, f"m{j}", ranks[i, j]) for i, j in np.ndindex(ranks.shape)]
    long = pd.DataFrame(rows, columns=["block", "model", "rank"])
    table = anova_lm(ols("rank ~ C(model) + C(block)", data=long).fit()).loc["C(model)"]
    assert (result.iman_davenport, result.p_iman_davenport) == pytest.approx(
        (table["F"], table["PR(>F)"])
    )


def test_critical_differences_are_those_of_demsar():
    # Demšar, 2006, Table 5(a): q for 2 to 10 models; section 3.2.2: four models on 14 data sets.
    table = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
    for k, q in enumerate(table, start=2):
        wanted = q * math.sqrt(k * (k + 1) / 180)
        assert friedman.critical_difference(k, 30) == pytest.approx(wanted, rel=5e-4)
    assert friedman.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_pairs_are_by_the_formulas_of_their_authors():
    rows = random_scores(1)
    n, k = rows.shape
    sums = stats.rankdata(rows, axis=1).sum(0)
    table = friedman.pairs(blocks_of(rows))
    # Conover, 1999, section 5.8, without ties: A = n k (k + 1) (2 k + 1) / 6.
    left = 2 * (n * n * k * (k + 1) * (2 * k + 1) / 6 - (sums**2).sum()) / ((n - 1) * (k - 1))
    conover, wilcoxon = [], []
    for row in table.itertuples():
        i, j = "abcde".index(row.first), "abcde".index(row.second)
        apart = sums[i] / n - sums[j] / n
        assert row.rank_difference == pytest.approx(apart)
        q = abs(apart) / math.sqrt(k * (k + 1) / (6 * n)) * math.sqrt(2)
        assert row.p_nemenyi == pytest.approx(stats.studentized_range.sf(q, k, np.inf), abs=1e-6)
        assert (row.p_nemenyi < 0.05) == (row.ci_low > 0 or row.ci_high < 0)
        conover.append(2 * stats.t.sf(abs(sums[i] - sums[j]) / math.sqrt(left), (n - 1) * (k - 1)))
        wilcoxon.append(stats.wilcoxon(rows[:, i], rows[:, j], method="exact").pvalue)
    assert list(table.p_conover) == pytest.approx(multipletests(conover, method="holm")[1])
    assert list(table.p_wilcoxon) == pytest.approx(multipletests(wilcoxon, method="holm")[1])


@pytest.mark.parametrize("parts", [3, 7, 10, 30])
def test_wilcoxon_s_p_is_that_of_the_counts_whatever_the_shares_are_divided_by(parts):
    counts = np.random.default_rng(3).integers(0, parts + 1, (10, 2))
    (p,) = friedman.pairs(blocks_of(counts / parts)).p_wilcoxon
    assert p == pytest.approx(stats.wilcoxon(*counts.T).pvalue)


def test_what_is_undefined_says_so():
    two, one = blocks_of(random_scores(0, models=2)), blocks_of(random_scores(0, blocks=1))
    same = blocks_of([[1, 2, 3, 4]] * 6)
    for blocks, note, p in (
        (two, "3 are needed", NAN),
        (one, "2 are needed", NAN),
        (same, "F is infinite", stats.chi2.sf(18, 3)),
    ):
        result = friedman.test(blocks)
        assert note in result.note
        assert [result.iman_davenport, result.p] == pytest.approx([NAN, p], nan_ok=True)
    table = friedman.pairs(same)
    assert table.p_conover.isna().all()
    assert (table.note != "").all()
    assert friedman.pairs(two)[["p_nemenyi", "p_wilcoxon"]].notna().all(axis=None)
    assert friedman.mean_ranks(one).ci_low.isna().all()


def test_scores_that_differ_in_the_last_digit_are_ties_and_are_counted():
    blocks = blocks_of([[0.1 + 0.2, 0.3, 0.5], [0.1, 0.2, 0.3], [0.2, 0.2, 0.2]])
    result = friedman.test(blocks)
    assert list(blocks.ranks.iloc[0]) == [1.5, 1.5, 3]
    assert (result.tied_blocks, result.tied_scores) == (2, 5)


def test_what_is_missing_is_left_out_with_its_reason():
    scores = {
        "a": {"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.3},
        "b": {"x": 0.2, "y": NAN, "z": 0.3, "w": 0.4},
        "c": {"x": 0.3, "y": 0.4, "w": 0.1},
        "never": dict.fromkeys("xyzw", NAN),
    }
    rows = pd.DataFrame(
        (block, model, score, "" if score == score else "no answer could be read")
        for model, row in scores.items()
        for block, score in row.items()
    )
    rows.columns = ["block", "model", "score", "note"]
    complete, left_out = friedman.complete_blocks(rows, list(scores))
    assert list(complete.index) == ["x", "w"]
    assert left_out.to_numpy().tolist() == [
        ["model", "never", "never", "no answer could be read"],
        ["block", "y", "b", "no answer could be read"],
        ["block", "z", "c", "no score"],
    ]
