"""Friedman's test and what follows it: by hand, against SciPy, statsmodels and published tables."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from bench.metrics import friedman
from bench.metrics.friedman import CATEGORY, CELL, Blocks
from bench.metrics.table import ALL


def scores(
    values: dict[str, dict[str, float]], task: str = "ambiguous", metric: str = "s_amb"
) -> pd.DataFrame:
    """A score table from {model: {category: score}}."""
    return pd.DataFrame(
        [
            {
                "model": model,
                "category": category,
                "task": task,
                "metric": metric,
                "score": score,
                "ci_low": math.nan,
                "ci_high": math.nan,
                "n": 4,
                "valid_rate": 1.0,
                "baseline": 1 / 3,
                "preset": "robust",
                "note": "no answer could be read" if math.isnan(score) else "",
            }
            for model, row in values.items()
            for category, score in row.items()
        ]
    )


def of(matrix: Any) -> Blocks:
    """Blocks (rows) by models (columns a, b, ...), a higher score the more biased one."""
    rows = np.asarray(matrix, dtype=float)
    return friedman.blocks(
        scores(
            {
                "abcdefghijklm"[k]: {f"c{n:02d}": v for n, v in enumerate(rows[:, k])}
                for k in range(rows.shape[1])
            }
        ),
        "cbbq",
    )


def dice(seed: int, blocks: int = 12, models: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(np.arange(models) * 0.4, 1, (blocks, models))


def test_by_hand() -> None:
    # Ranks 1 2 3, 1 3 2, 1 2 3, 2 1 3: rank sums 5, 8, 11.
    found = of([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]])
    done = friedman.test(found)
    q = 12 / (4 * 3 * 4) * (25 + 64 + 121) - 3 * 4 * 4
    assert done.statistic == pytest.approx(q) == pytest.approx(4.5)
    assert done.p == pytest.approx(math.exp(-q / 2))  # chi2 with two degrees of freedom
    assert done.kendall_w == pytest.approx(q / 8)
    assert done.iman_davenport == pytest.approx(3 * q / (8 - q))
    assert (done.models, done.blocks, done.df, done.df_blocks, done.tied_blocks) == (3, 4, 2, 6, 0)
    assert list(friedman.mean_ranks(found).mean_rank) == pytest.approx([5 / 4, 8 / 4, 11 / 4])


@given(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=3, max_size=12))
def test_against_scipy_and_an_analysis_of_variance_of_ranks(matrix: list[list[int]]) -> None:
    rows = np.asarray(matrix, dtype=float) / 10
    done = friedman.test(of(rows))
    ranks = stats.rankdata(rows, axis=1)
    assert done.tied_blocks == sum(len(set(row)) < 4 for row in matrix)
    if (np.ptp(ranks, axis=1) == 0).all():
        assert "same score in every block" in done.note
        assert math.isnan(done.statistic)
        return
    should = stats.friedmanchisquare(*rows.T)
    assert (done.statistic, done.p) == pytest.approx(tuple(should))
    # W is tied to the mean of Spearman's coefficients between blocks where there are no ties.
    if not done.tied_blocks:
        n = len(rows)
        rho = [stats.spearmanr(rows[i], rows[j])[0] for i in range(n) for j in range(i)]
        assert np.mean(rho) == pytest.approx((n * done.kendall_w - 1) / (n - 1))
    if (ranks == ranks[0]).all():
        assert "F is infinite" in done.note
        return
    # Iman and Davenport's F is that of two-way analysis of variance of the ranks, ties or not.
    long = (
        pd.DataFrame(ranks)
        .melt(ignore_index=False, var_name="model", value_name="rank")
        .reset_index()
    )
    table = anova_lm(ols("rank ~ C(model) + C(index)", data=long).fit())
    assert done.iman_davenport == pytest.approx(table.F["C(model)"])
    assert done.p_iman_davenport == pytest.approx(table["PR(>F)"]["C(model)"])


def test_critical_differences_are_those_of_demsar() -> None:
    # Demšar, 2006, Table 5(a): q for 2 to 10 models; section 3.2.2: four models on 14 data sets have 1.25.
    table = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
    for k, q in enumerate(table, start=2):
        assert friedman.critical_difference(k, 30) == pytest.approx(
            q * math.sqrt(k * (k + 1) / 180), rel=5e-4
        )
    assert friedman.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_by_the_formulas_of_their_authors(seed: int) -> None:
    rows = dice(seed)
    n, k = rows.shape
    ranks = stats.rankdata(rows, axis=1)
    table, names = friedman.pairs(of(rows)), "abcde"
    sums = ranks.sum(0)
    # Conover, 1999, section 5.8, without ties: A = n k (k + 1) (2 k + 1) / 6.
    left = 2 * (n * n * k * (k + 1) * (2 * k + 1) / 6 - (sums**2).sum()) / ((n - 1) * (k - 1))
    conover, wilcoxon = [], []
    for row in table.itertuples():
        i, j = names.index(row.first), names.index(row.second)
        apart = sums[i] / n - sums[j] / n
        assert row.rank_difference == pytest.approx(apart)
        q = abs(apart) / math.sqrt(k * (k + 1) / (6 * n)) * math.sqrt(2)
        assert row.p_nemenyi == pytest.approx(stats.studentized_range.sf(q, k, np.inf), abs=1e-6)
        assert (row.p_nemenyi < 0.05) == (row.ci_low > 0 or row.ci_high < 0)
        conover.append(2 * stats.t.sf(abs(sums[i] - sums[j]) / math.sqrt(left), (n - 1) * (k - 1)))
        wilcoxon.append(stats.wilcoxon(rows[:, i], rows[:, j], method="exact").pvalue)
    for p, column in ((conover, table.p_conover), (wilcoxon, table.p_wilcoxon)):
        order = np.argsort(p)
        holm = np.maximum.accumulate((len(p) - np.arange(len(p))) * np.array(p)[order]).clip(max=1)
        assert column.to_numpy()[order] == pytest.approx(holm)


def test_where_all_blocks_agree_conover_and_f_are_undefined() -> None:
    found = of([[1, 2, 3, 4]] * 6)
    done, table = friedman.test(found), friedman.pairs(found)
    assert done.kendall_w == pytest.approx(1)
    assert math.isnan(done.iman_davenport)
    assert done.p == pytest.approx(stats.chi2.sf(18, 3))
    assert table.p_conover.isna().all()
    assert (table.note != "").all()


def test_two_models_or_one_block_are_no_friedman_test_and_say_so() -> None:
    two = of(dice(0, models=2))
    assert "3 are needed" in friedman.test(two).note
    assert math.isnan(friedman.test(two).statistic)
    low, high = friedman.pairs(two)[["p_nemenyi", "p_wilcoxon"]].to_numpy()[0]
    assert 0 < low < 1
    assert 0 < high < 1
    one = of(dice(0, blocks=1))
    assert "2 are needed" in friedman.test(one).note
    assert friedman.mean_ranks(one).ci_low.isna().all()


def test_the_rank_follows_the_headline_s_direction() -> None:
    high = friedman.blocks(scores({"a": {"x": 0.9}, "b": {"x": 0.1}, "c": {"x": 0.5}}), "cbbq")
    assert list(high.ranks.loc["x"]) == [3, 1, 2]
    low = friedman.blocks(
        scores({"a": {"x": 0.9}, "b": {"x": 0.1}, "c": {"x": 0.5}}, "all", "accuracy"),
        "cbbq",
        task="all",
    )
    assert list(low.ranks.loc["x"]) == [1, 3, 2]


def test_scores_that_differ_in_the_last_digit_are_ties_and_are_counted() -> None:
    found = of([[0.1 + 0.2, 0.3, 0.5], [0.1, 0.2, 0.3], [0.2, 0.2, 0.2]])
    done = friedman.test(found)
    assert list(found.ranks.iloc[0]) == [1.5, 1.5, 3]
    assert (done.tied_blocks, done.tied_scores) == (2, 5)
    assert list(friedman.ties(found).models) == ["a, b", "a, b, c"]


def test_what_is_missing_is_left_out_and_told() -> None:
    nan = math.nan
    table = scores(
        {
            "a": {"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.3, ALL: 0.2},
            "b": {"x": 0.2, "y": nan, "z": 0.3, "w": 0.4, ALL: 0.2},
            "c": {"x": 0.3, "y": 0.4, "w": 0.1, ALL: 0.3},
            "never": {"x": nan, "y": nan, "z": nan, "w": nan},
        }
    )
    found = friedman.blocks(table, "cbbq")
    assert list(found.scores.index) == ["x", "w"]
    assert found.left_out.to_numpy().tolist() == [
        ["model", "never", "never", "no answer could be read"],
        ["block", "y", "b", "no answer could be read"],
        ["block", "z", "c", "not asked"],
    ]


def test_cells_are_ranked_by_each_task_s_own_score() -> None:
    table = pd.concat(
        [
            scores({"a": {"x": 0.1}, "b": {"x": 0.2}, "c": {"x": 0.3}}),
            scores({"a": {"x": 0.6}, "b": {"x": 0.5}, "c": {"x": 0.4}}, "disambiguous", "s_disamb"),
            scores({"a": {"x": 0.6}, "b": {"x": 0.5}, "c": {"x": 0.4}}, "all", "accuracy"),
        ]
    )
    found = friedman.blocks(table, "cbbq", CELL)
    assert list(found.ranks.index) == ["x, ambiguous", "x, disambiguous"]
    assert found.ranks.to_numpy().tolist() == [[1, 2, 3], [3, 2, 1]]
    assert [one.task for one in found.headlines] == ["ambiguous", "disambiguous"]
    assert list(friedman.blocks(table, "cbbq", CELL, task="ambiguous").ranks.index) == [
        "x, ambiguous"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (pd.DataFrame(), "cbbq", "item"),
            "kind of block 'item' is unknown; allowed: category, category x task",
        ),
        ((pd.DataFrame(), "cbbq", CATEGORY, "sc"), "is no headline; allowed: ambiguous s_amb"),
        ((pd.DataFrame(), "nli_coal", CELL), "no headline of a single task"),
        (
            (scores({"a": {"x": 1.0, "y": math.nan}, "b": {"x": math.nan, "y": 1.0}}), "cbbq"),
            "no category has a score of every model",
        ),
        ((pd.concat([scores({"a": {"x": 1.0}})] * 2), "cbbq"), "a is there with several runs"),
    ],
)
def test_what_cannot_be_ranked_is_refused(refusal: Any, arguments: Any, said: str) -> None:
    assert said in refusal(friedman.blocks, *arguments)


def test_the_interval_of_a_mean_rank_holds_it_and_is_that_of_drawing_blocks_again() -> None:
    rows = dice(3, blocks=40)
    table = friedman.mean_ranks(of(rows)).set_index("model")
    ranks = stats.rankdata(rows, axis=1)[:, 2]
    low, high = stats.norm.interval(0.95, ranks.mean(), stats.sem(ranks))
    assert tuple(table.loc["c", ["ci_low", "ci_high"]]) == pytest.approx((low, high), abs=0.12)
    assert (table.blocks == 40).all()
    assert table.first_in.sum() == table.last_in.sum() == 40
