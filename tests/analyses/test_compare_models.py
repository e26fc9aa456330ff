"""Models against each other: pairs, ranks, equivalence and benchmarks, against numbers by hand."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize as effectsize

from bench import run
from bench.analyses import compare_models as models_of
from bench.analyses.compare_models import Compared, Pair, convergence, pictures
from bench.analyses.compare_models.convergence import Measure, correlate, reliabilities
from bench.analyses.compare_models.equivalence import tests as equivalence
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.significance import Comparison
from bench.metrics.table import LETTERS_ALONE
from tests.helpers.drawing import told

PLACES = (("ambiguous", "s_amb"), ("disambiguous", "s_disamb"), ("all", "accuracy"))


def replicates(*scores: float, seed: int = 0, units: int = 140) -> Replicates:
    """Return headline scores of CBBQ with resamples around them."""
    found = Replicates()
    for place, score in zip(PLACES, scores, strict=False):
        noise = np.random.default_rng(seed).normal(0, 0.02, DRAWS)
        found.add(("all", *place), score + np.r_[0, noise], Sample(units, units // 10))
    return found


def compared(models: dict[str, Replicates]) -> Compared:
    """Compare models by their scores, with 50 and 30 answers in common."""
    answers = {"ambiguous": 50, "disambiguous": 30}
    both = {(a, b): Pair(models[a], models[b], answers) for a, b in combinations(models, 2)}
    table = models_of.pairs(both, "cbbq")
    return Compared("cbbq", table, models_of.ranks(models, table, "cbbq"), 80)


# Two models nearly alike and one far from both; in accuracy the other way round.
THREE = {
    "mild": replicates(0.30, 0.30, 0.71, seed=1),
    "alike": replicates(0.31, 0.31, 0.70, seed=2),
    "harsh": replicates(0.70, 0.70, 0.30, seed=3),
}


def test_a_pair_is_what_its_resamples_say() -> None:
    table = compared(THREE).pairs
    row = table.set_index(["metric", "model_a", "model_b"]).loc[("s_amb", "mild", "harsh")]
    assert row.difference == pytest.approx(-0.4)
    assert (row.score_a, row.score_b, row.n, row.units) == (0.3, 0.7, 50, 140)
    noise = [np.random.default_rng(seed).normal(0, 0.02, DRAWS) for seed in (1, 3)]
    error = np.std(noise[0] - noise[1])
    # t of 126 degrees of freedom at 97.5 % is 1.979.
    assert row.ci_high - row.difference == pytest.approx(1.979 * error, rel=1e-3)
    assert (row.d, row.h) == pytest.approx((-0.4 / error / 140**0.5, effectsize(0.3, 0.7)))
    assert list(table.verdict) == ["no difference shown", "different", "different"] * 3


def test_p_is_adjusted_over_all_pairs_and_scores() -> None:
    close = [replicates(*(0.3 + np.array([0.01, 0.03, 0.05]) * k), seed=k) for k in range(3)]
    table = compared(dict(zip("abc", close, strict=True))).pairs
    adjusted = multipletests(table.p, method="fdr_bh")[1]
    assert table.p_adjusted.to_numpy() == pytest.approx(adjusted)
    assert set(table.verdict) == {"no difference shown", "different"}


@pytest.mark.parametrize(("scores", "word"), [((0.3,), "interval"), ((0.3, 0.3), "adjusted p")])
def test_p_of_a_single_test_is_not_called_adjusted(scores: tuple[float, ...], word: str) -> None:
    pair = {"a": replicates(*scores), "b": replicates(0.6, 0.6, seed=2)}
    text = " ".join(models_of.findings([compared(pair)]))
    assert word in text
    assert ("adjusted" in text) == (len(scores) > 1)


OWN = {"by_habit": False, "valid_rate": 1.0, "note": "", "baseline": 0.4}
LIKE_LETTERS = OWN | {"baseline_of": LETTERS_ALONE, "score": 0.41, "ci_low": 0.38, "ci_high": 0.44}
ABOVE_LETTERS = LIKE_LETTERS | {"score": 0.7, "ci_low": 0.67, "ci_high": 0.73}
OF_A_COIN = LIKE_LETTERS | {"baseline_of": ""}


@pytest.mark.parametrize(
    ("own", "first", "second", "verdict"),
    [
        (LIKE_LETTERS, 0.4, 0.1, "by letters"),
        (LIKE_LETTERS, 0.4, 0.7, "by letters"),
        # It shows more bias than its letters give, so it has more than a model with less.
        (ABOVE_LETTERS, 0.7, 0.1, "different"),
        # Its letters may be why it shows less than the other model.
        (ABOVE_LETTERS, 0.7, 0.9, "by letters"),
        (LIKE_LETTERS, 0.4, 0.4, "no difference shown"),
        (OF_A_COIN, 0.4, 0.1, "different"),
        (OF_A_COIN | {"by_habit": True}, 0.4, 0.1, "by letters"),
    ],
)
def test_no_pair_differs_in_bias_because_of_a_preferred_letter(
    own: dict[str, Any], first: float, second: float, verdict: str
) -> None:
    pair = {("a", "b"): Pair(replicates(first), replicates(second, seed=2), {"ambiguous": 50})}
    table = models_of.pairs(pair, "cbbq", {("ambiguous", "s_amb"): {"a": own}})
    assert list(table.verdict) == [verdict]


def test_a_preferred_letter_changes_no_verdict_on_accuracy() -> None:
    pair = {("a", "b"): Pair(replicates(0, 0, 0.4), replicates(0, 0, 0.9), {"ambiguous": 50})}
    table = models_of.pairs(pair, "cbbq", {("all", "accuracy"): {"a": LIKE_LETTERS}})
    assert table.verdict[table.metric == "accuracy"].item() == "different"


def test_a_model_without_a_score_has_no_rank_no_pair_and_no_p() -> None:
    own = {("ambiguous", "s_amb"): {"harsh": {"score": np.nan, "note": "no answer"}}}
    both = {(a, b): Pair(THREE[a], THREE[b], {"ambiguous": 50}) for a, b in combinations(THREE, 2)}
    table = models_of.pairs(both, "cbbq", own)
    order = models_of.ranks(THREE, table, "cbbq", own)
    amb = table[(table.metric == "s_amb") & (table.model_b == "harsh")]
    assert amb[["p", "p_adjusted", "difference", "score_a", "score_b"]].isna().all(axis=None)
    assert set(amb.verdict) == {"undefined"}
    assert set(amb.note) == {"harsh has no score: no answer"}
    assert list(order[order.metric == "s_amb"].model) == ["mild", "alike"]
    assert len(order[order.metric == "s_disamb"]) == 3


def test_what_cannot_be_compared_has_a_reason_and_no_number() -> None:
    models = {"a": replicates(0.3, 0.5), "b": replicates(np.nan, 0.6, seed=2), "c": Replicates()}
    result = compared(models)
    rows = result.pairs[result.pairs.metric == "s_amb"].set_index(["model_a", "model_b"])
    assert np.isnan(rows.difference.to_numpy()).all()
    assert set(rows.verdict) == {"undefined"}
    assert rows.note["a", "c"] == models_of.NOTHING
    assert list(result.ranks[result.ranks.metric == "s_amb"].model) == ["a"]


# A high share of stereotyped answers is worse, a high accuracy better.
@pytest.mark.parametrize("metric", ["s_amb", "accuracy"])
def test_ranks_are_those_that_the_tests_leave_open(metric: str) -> None:
    order = compared(THREE).ranks.set_index("metric").loc[metric]
    ends = zip(order.model, order["rank"], order.ranks_from, order.ranks_to, strict=True)
    assert list(ends) == [("mild", 1, 1, 2), ("alike", 2, 1, 2), ("harsh", 3, 3, 3)]


def test_shares_of_ranks_are_split_between_equal_models() -> None:
    # In the first resample the first two share the first two ranks, in the second one is best.
    shares = models_of.shares_of_ranks(np.array([[1.0, 1], [1, 2], [3, 3]]))
    assert shares.tolist() == [[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1]]


def test_a_matrix_shows_the_row_less_the_column() -> None:
    result = compared(THREE)
    figures = dict(pictures.differences(result.pairs, result.ranks, "cbbq"))
    # In order of rank, below the diagonal: alike - mild, harsh - mild, harsh - alike.
    texts = {*told(figures["differences_ambiguous_s_amb"].axes[0])} - {""}
    assert texts == {"+0.01", "+0.40", "+0.39"}


def test_only_what_both_answered_is_compared(tmp_path: Path, refusal: Any) -> None:
    """Of four models, one was asked less and one about something else."""
    categories = (["age", "gender"], ["age", "gender"], ["age"], ["race"])
    asked = [
        run.evaluate("cbbq", f"simulated:bias=0.{k}", out=tmp_path / str(k), categories=own)
        for k, own in enumerate(categories, 2)
    ]
    a, b, less, other = asked
    result = models_of.compare([a, b, less], "paper")
    table = result.pairs[result.pairs.metric == "s_amb"].set_index(["model_a", "model_b"])
    ambiguous = a.records.task == "ambiguous"
    assert table.n[a.label, b.label] == ambiguous.sum()
    assert table.n[a.label, less.label] == (ambiguous & (a.records.category == "age")).sum()
    scores = [one.scores("paper").set_index(["category", "task", "metric"]).score for one in asked]
    for k, category in ((2, "age"), (1, "all")):
        place = (category, "ambiguous", "s_amb")
        expected = scores[0][place] - scores[k][place]
        assert table.difference[a.label, asked[k].label] == pytest.approx(expected)
    # Ranks are of what all answered, which is one category here.
    assert result.common == (less.records.error == "").sum()
    assert result.ranks.score.iloc[0] == pytest.approx(scores[0]["age", "ambiguous", "s_amb"])
    assert result.unasked == {"gender": f"not asked of {less.label}"}
    assert f"Left out: gender (not asked of {less.label})." in models_of.findings([result])[1]
    assert models_of.compare([a, other]).pairs.empty
    assert "several runs on cbbq" in refusal(models_of.compare, [a, a])
    assert "give two or more runs" in refusal(models_of.compare, [a])
    best_first = models_of.leaderboard(run.table([b, a]), models_of.compare([b, a]))
    assert list(best_first[best_first.metric == "s_amb"].model) == [a.label, b.label]


def pair_of(values: Any, metric: str = "s_amb") -> pd.DataFrame:
    """Return the row of a pair with these differences of units."""
    nothing = {"p": np.nan, "ci_low": np.nan, "ci_high": np.nan, "detectable": np.nan, "note": ""}
    mean, error, n = np.mean(values), stats.sem(values), len(values)
    found = Comparison(difference=mean, units=n, error=error, freedom=n - 1, **nothing)  # type: ignore[arg-type]
    about = {"task": {"s_amb": "ambiguous", "accuracy": "all"}[metric], "metric": metric}
    about |= {"model_a": "a", "model_b": "b", "verdict": "no difference shown"}
    return pd.DataFrame([{**about, **found._asdict()}])


def test_equivalence_is_two_one_sided_paired_t_tests(refusal: Any) -> None:
    values = np.random.default_rng(0).normal(0.01, 0.1, 40)
    row = equivalence(pair_of(values), 0.05, "cbbq").iloc[0]
    # A higher s_amb is worse.
    first = stats.ttest_1samp(values, 0.05, alternative="less").pvalue
    second = stats.ttest_1samp(values, -0.05, alternative="greater").pvalue
    adjusted = stats.false_discovery_control([first, second])
    assert (row.p_a_not_worse, row.p_b_not_worse) == pytest.approx(tuple(adjusted))
    low, high = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert (row.low_90, row.high_90) == pytest.approx((low, high))
    # 0.1 more stereotyped answers are worse, 0.1 more right ones better.
    values = np.random.default_rng(1).normal(0.1, 0.05, 30)
    amb, right = (
        equivalence(pair_of(values, name), 0.05, "cbbq").iloc[0] for name in ("s_amb", "accuracy")
    )
    assert amb.p_a_not_worse > 0.95 > 0.05 > amb.p_b_not_worse
    assert right.p_a_not_worse < 0.05 < 0.95 < right.p_b_not_worse
    # Four units that are all alike could be chance in one of sixteen cases.
    assert equivalence(pair_of(np.zeros(4)), 0.05, "cbbq").p_equivalent[0] == pytest.approx(1 / 16)
    assert "margin -1" in refusal(equivalence, pair_of(values), -1.0, "cbbq")


def measure(name: str, trait: str, scores: list[float], error: float = 0.0) -> Measure:
    """Return a measure with these scores of models m0, m1, ..., and their standard error."""
    rng = np.random.default_rng(len(name))
    values = {
        f"m{k}": np.concatenate([[score], score + rng.normal(0, error, 1000)])
        for k, score in enumerate(scores)
    }
    return Measure(f"{name} {trait}", name, trait, values)


def test_benchmarks_converge_as_scipy_s_correlations_say() -> None:
    five = [
        measure("A", "grasp", [1.0, 2, 3, 4, 5], 0.1),
        measure("B", "grasp", [1.0, 4, 9, 16, 25], 3),
        measure("A", "preference", [3.0, 5, 1, 2, 4], 0.1),
        measure("B", "preference", [3.0, 5, 1, 4, 2], 0.1),
    ]
    found = correlate(five).set_index(["first", "second"])
    row = found.loc["A preference", "B preference"]
    x, y = [3, 5, 1, 2, 4], [3, 5, 1, 4, 2]
    assert row.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    exact = stats.permutation_test(
        (x,), lambda order: stats.spearmanr(order, y).statistic, permutation_type="pairings"
    )
    assert row.p == pytest.approx(exact.pvalue)
    both = found.loc["A grasp", "B grasp"]
    assert (both.rho, both.p) == pytest.approx((1.0, 2 / 120))
    # Other items could turn close scores round.
    assert both.ci_low < both.ci_high == 1
    # What is not chance of items: their variance, 0.01, in that of the scores, 2.5.
    reliable = reliabilities(five).set_index("measure").reliability
    assert reliable["A grasp"] == pytest.approx(1 - 0.01 / 2.5, abs=0.001)
    assert "1.00\nn = 5" in told(convergence.matrix(correlate(five), reliabilities(five)).axes[0])
    three = [one._replace(values=dict(list(one.values.items())[:3])) for one in five]
    assert set(correlate(three).reason) == {"3 models have both; 4 are needed at least"}
