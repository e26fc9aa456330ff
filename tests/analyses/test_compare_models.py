"""Models against each other: pairs, ranks, equivalence and benchmarks, against numbers by hand."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize

from bench import run
from bench.analyses import compare_models
from bench.analyses.compare_models import (
    NOTHING,
    UNEQUAL,
    Compared,
    Pair,
    by_benchmark,
    cohens_h,
    compare,
    convergence,
    pairs,
    pictures,
    ranks,
    shares_of_ranks,
)
from bench.analyses.compare_models.convergence import Measure, correlate, reliabilities
from bench.analyses.compare_models.equivalence import findings as equivalent_pairs
from bench.analyses.compare_models.equivalence import tests as equivalence
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.significance import LESS_READABLE, Comparison
from bench.run import results
from tests.helpers.drawing import drawn, ticks, told

PLACES = (
    ("all", "ambiguous", "s_amb"),
    ("all", "disambiguous", "s_disamb"),
    ("all", "all", "accuracy"),
)
SAMPLE = Sample(140, 14)
HEADLINES = {"s_amb": "ambiguous", "accuracy": "all"}


def replicates(
    *scores: float, spread: float = 0.02, seed: int = 0, sample: Sample = SAMPLE
) -> Replicates:
    """Return headline scores of CBBQ with resamples around them."""
    found = Replicates()
    for place, score in zip(PLACES, scores, strict=False):
        noise = np.random.default_rng(seed).normal(0, spread, DRAWS)
        found.add(place, score + np.r_[0, noise], sample)
    return found


def compared(models: dict[str, Replicates], common: int = 80) -> Compared:
    """Compare models by their scores."""
    answers = {"ambiguous": 50, "disambiguous": 30}
    both = {(a, b): Pair(models[a], models[b], answers) for a, b in combinations(models, 2)}
    table = pairs(both, "cbbq")
    return Compared("cbbq", table, ranks(models, table, "cbbq"), common)


def findings(models: dict[str, Replicates], common: int = 80) -> list[str]:
    return compare_models.findings(compared(models, common))


# Two models nearly alike and one far from both; in accuracy the other way round.
THREE = {
    "mild": replicates(0.30, 0.30, 0.71, seed=1),
    "alike": replicates(0.31, 0.31, 0.70, seed=2),
    "harsh": replicates(0.70, 0.70, 0.30, seed=3),
}


def test_a_pair_is_what_its_resamples_say() -> None:
    table = compared(THREE).pairs
    assert len(table) == 3 * 3
    row = table.set_index(["metric", "model_a", "model_b"]).loc[("s_amb", "mild", "harsh")]
    assert row.difference == pytest.approx(-0.4)
    assert (row.score_a, row.score_b, row.n, row.units) == (0.3, 0.7, 50, 140)
    noise = [np.random.default_rng(seed).normal(0, 0.02, DRAWS) for seed in (1, 3)]
    error = np.std(noise[0] - noise[1])
    # t of 126 degrees of freedom at 97.5 % is 1.979, at 80 % 0.844.
    assert row.ci_high - row.difference == pytest.approx(1.979 * error, rel=1e-3)
    assert row.detectable == pytest.approx((1.979 + 0.844) * error, rel=1e-3)
    assert row.d == pytest.approx(-0.4 / error / np.sqrt(140))
    assert row.h == pytest.approx(proportion_effectsize(0.3, 0.7))
    assert set(table[table.task == "all"].n) == {80}
    for _, rows in table.groupby(["task", "metric"]):
        adjusted = multipletests(rows.p, method="fdr_bh")[1]
        assert rows.p_adjusted.to_numpy() == pytest.approx(adjusted)


def test_effect_sizes_of_points_have_no_h() -> None:
    first, second = Replicates(), Replicates()
    first.add(("all", "ss", "score"), np.r_[50.0, np.linspace(40, 60, DRAWS)], Sample(40, 4))
    second.add(("all", "ss", "score"), np.full(1 + DRAWS, 45.0), Sample(40, 4))
    row = pairs({("a", "b"): Pair(first, second, {"ss": 8})}, "mcbe").iloc[0]
    assert np.isnan(row.h)
    assert row.d == pytest.approx(5 / np.std(np.linspace(40, 60, DRAWS)) / np.sqrt(40))
    assert (cohens_h(0.5, 0.5), cohens_h(1, 0)) == (0, pytest.approx(np.pi))


def test_what_cannot_be_compared_has_a_reason_and_no_number() -> None:
    models = {"a": replicates(0.3, 0.5), "b": replicates(np.nan, 0.6, seed=2), "c": Replicates()}
    result = compared(models)
    rows = result.pairs[result.pairs.metric == "s_amb"].set_index(["model_a", "model_b"])
    assert np.isnan(rows.difference.to_numpy()).all()
    assert "undefined" in rows.note["a", "b"]
    assert rows.note["a", "c"] == NOTHING
    assert list(result.ranks[result.ranks.metric == "s_amb"].model) == ["a"]
    ambiguous, disambiguous, _basis = compare_models.findings(result)
    assert "3 pairs could not be compared" in ambiguous
    assert "best" not in ambiguous
    assert "a has the best score, ahead of every other model with a score." in disambiguous
    result = compared({"a": replicates(np.nan), "b": replicates(np.nan)})
    assert pictures.ranks_by_model(result.pairs, result.ranks, "cbbq") is None
    assert list(pictures.differences(result.pairs, result.ranks, "cbbq")) == []


def test_scores_of_unequal_categories_are_compared_with_a_warning() -> None:
    models = {"a": replicates(0.3), "b": replicates(0.5, seed=2, sample=Sample(130, 13))}
    result = compared(models)
    assert (result.pairs.note[0], result.pairs.units[0]) == (UNEQUAL, 130)
    assert compare_models.findings(result)[0].endswith(f"Note: {UNEQUAL}.")


# A high share of stereotyped answers is worse, a high accuracy better.
@pytest.mark.parametrize("metric", ["s_amb", "accuracy"])
def test_ranks_are_those_that_the_tests_leave_open(metric: str) -> None:
    order = compared(THREE).ranks.set_index(["metric", "model"]).loc[metric]
    assert list(order["rank"]) == [1, 2, 3]
    assert list(zip(order.ranks_from, order.ranks_to, strict=True)) == [(1, 2), (1, 2), (3, 3)]
    assert np.sum(list(order.shares), axis=0) == pytest.approx(np.ones(3))
    assert order.shares["harsh"] == pytest.approx([0, 0, 1])
    assert order.shares["mild"][0] > 0.5


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_shares_of_ranks_are_those_of_a_slow_loop(values: list[list[int]]) -> None:
    scores = np.array(values, dtype=float)
    expected = np.zeros((len(scores), len(scores)))
    for column in scores.T:
        for k, value in enumerate(column):
            places = [sorted(column).index(value) + j for j in range(list(column).count(value))]
            expected[k, places] += 1 / len(places) / scores.shape[1]
    assert shares_of_ranks(scores) == pytest.approx(expected)


def test_findings_are_never_stronger_than_the_tests() -> None:
    text, *_, basis = findings(THREE)
    assert text.startswith("CBBQ: Ambiguous: share of stereotyped answers. mild has the best score")
    assert "cannot be told from alike." in text
    assert "2 of 3 pairs could be told apart in s_amb (adjusted p < 0.05)." in text
    assert basis == "CBBQ: Answers that could be read of all 3 models: 80."
    close = findings({str(k): replicates(0.3 + k / 1000, seed=k) for k in range(4)})[0]
    assert "Any of the models could be the best. 0 of 6 pairs could be told apart" in close
    two = findings({"a": replicates(0.1), "b": replicates(0.9, seed=2)})[0]
    assert "a has the best score" in two
    assert "s_amb is 0.80 lower in a than in b" in two


@pytest.mark.parametrize("n", [2, 12])
def test_pictures_show_pairs_and_ranks(n: int) -> None:
    names = [f"some-organisation/Model-{k}-Instruct-7B" for k in range(n)]
    result = compared({name: replicates(0.2 + 0.05 * k, seed=k) for k, name in enumerate(names)})
    fig = drawn(pictures.ranks_by_model(result.pairs, result.ranks, "cbbq"))
    rows = ticks(fig.axes[0].get_yticklabels())
    assert rows == [f"{name}  {k + 1}" for k, name in enumerate(names)]
    ((name, matrix),) = pictures.differences(result.pairs, result.ranks, "cbbq")
    assert name == "differences_ambiguous_s_amb"
    cells = [text for text in told(drawn(matrix).axes[0]) if text]
    assert len(cells) >= n * (n - 1) / 2
    assert "+0.05" in cells
    hatched = sum(bool(patch.get_hatch()) for patch in matrix.axes[0].patches)
    assert hatched == (result.pairs.p_adjusted >= 0.05).sum()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, results.Run]:
    """Runs of four models, of which one was asked less and one about something else."""
    folder, both = tmp_path_factory.mktemp("runs"), ["age", "gender"]
    categories = {"a": both, "b": both, "less": ["age"], "other": ["race"]}
    return {
        name: run.evaluate(
            "cbbq", f"simulated:bias=0.{k + 2},seed={k + 1}", out=folder / name, categories=own
        )
        for k, (name, own) in enumerate(categories.items())
    }


def test_only_what_both_answered_is_compared(asked: Any, refusal: Any) -> None:
    a, b, less, other = asked.values()
    result = compare([a, b, less], "paper")
    table = result.pairs[result.pairs.metric == "s_amb"].set_index(["model_a", "model_b"])
    ambiguous = a.records.task == "ambiguous"
    assert table.n[a.label, b.label] == ambiguous.sum()
    assert table.n[a.label, less.label] == (ambiguous & (a.records.category == "age")).sum()
    scores = {
        one.label: one.scores("paper").set_index(["category", "task", "metric"]).score
        for one in (a, b, less)
    }
    for second, category in ((less, "age"), (b, "all")):
        place = (category, "ambiguous", "s_amb")
        expected = scores[a.label][place] - scores[second.label][place]
        assert table.difference[a.label, second.label] == pytest.approx(expected)
    # Ranks are of what all answered, which is one category here.
    assert result.common == (less.records.error == "").sum()
    assert result.ranks.score.iloc[0] == pytest.approx(scores[a.label]["age", "ambiguous", "s_amb"])
    disjoint = compare([a, other])
    assert (disjoint.common, len(disjoint.ranks), len(disjoint.pairs)) == (0, 0, 0)
    (sentence,) = compare_models.findings(disjoint)
    assert sentence == "CBBQ: No two models were asked the same, so none are compared."
    assert "several runs on cbbq" in refusal(compare, [a, a])
    assert "give two or more runs" in refusal(compare, [a])
    assert by_benchmark([a, b]) == {"cbbq": [a, b]}
    assert "no two on one benchmark" in refusal(by_benchmark, [a])


def test_a_leaderboard_has_the_best_first(asked: Any) -> None:
    runs = [asked["b"], asked["a"]]
    table = compare_models.leaderboard(results.table(runs), compare(runs))
    by_metric = {metric: list(rows.score) for metric, rows in table.groupby("metric")}
    assert by_metric["s_amb"] == sorted(by_metric["s_amb"])
    assert by_metric["accuracy"] == sorted(by_metric["accuracy"], reverse=True)
    assert set(table[table.metric == "s_amb"].baseline) == {1 / 3}
    assert set(table.ranks) <= {"1 to 1", "2 to 2", "1 to 2"}


def pair_of(
    values: np.ndarray, metric: str = "s_amb", models: tuple[str, str] = ("a", "b")
) -> dict[str, Any]:
    """Return a pair with these differences of units."""
    error, n = stats.sem(values), len(values)
    about = {"task": HEADLINES[metric], "metric": metric, "verdict": "no difference shown"}
    about |= {"model_a": models[0], "model_b": models[1]}
    nothing = {"p": np.nan, "ci_low": np.nan, "ci_high": np.nan, "detectable": np.nan, "note": ""}
    found = Comparison(difference=values.mean(), units=n, error=error, freedom=n - 1, **nothing)
    return {**about, **found._asdict()}


def test_p_values_are_those_of_two_one_sided_paired_t_tests() -> None:
    values = np.random.default_rng(0).normal(0.01, 0.1, 40)
    row = equivalence(pd.DataFrame([pair_of(values)]), 0.05, "cbbq").iloc[0]
    # A higher s_amb is worse.
    first = stats.ttest_1samp(values, 0.05, alternative="less").pvalue
    second = stats.ttest_1samp(values, -0.05, alternative="greater").pvalue
    adjusted = stats.false_discovery_control([first, second])
    assert (row.p_a_not_worse, row.p_b_not_worse) == pytest.approx(tuple(adjusted))
    assert row.p_equivalent == pytest.approx(max(adjusted))
    low, high = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert (row.low_90, row.high_90) == pytest.approx((low, high))
    assert (row.p_equivalent < 0.05) == (low > -0.05 and high < 0.05)


def test_the_better_side_is_that_of_the_score() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.05, 30)
    found = equivalence(pd.DataFrame([pair_of(values), pair_of(values, "accuracy")]), 0.05, "cbbq")
    found = found.set_index("metric")
    # 0.1 more stereotyped answers are worse, 0.1 more right ones better.
    assert found.p_a_not_worse["s_amb"] > 0.95 > 0.05 > found.p_b_not_worse["s_amb"]
    assert found.p_a_not_worse["accuracy"] < 0.05 < 0.95 < found.p_b_not_worse["accuracy"]
    assert "b is not worse than a" in found.sentence["s_amb"]
    assert "a is not worse than b" in found.sentence["accuracy"]


def test_few_units_show_nothing_and_the_same_answers_are_equivalent() -> None:
    wide = equivalence(pd.DataFrame([pair_of(np.array([0.3, -0.3, 0.1]))]), 0.05, "cbbq").iloc[0]
    assert wide.p_equivalent > 0.05
    assert wide.sentence.startswith("Neither")
    same = equivalence(pd.DataFrame([pair_of(np.zeros(20))]), 0.05, "cbbq").iloc[0]
    assert same.p_equivalent < 0.001
    assert "are equivalent" in same.sentence
    assert equivalent_pairs(pd.DataFrame([same]), "cbbq") == [f"CBBQ: {same.sentence}"]
    assert "no two models" in equivalent_pairs(pd.DataFrame([wide]), "cbbq")[0]
    four = equivalence(pd.DataFrame([pair_of(np.zeros(4))]), 0.05, "cbbq").iloc[0]
    assert four.p_equivalent == pytest.approx(1 / 16)


def test_pairs_without_a_standard_error_are_left_out_and_a_margin_is_above_zero(
    refusal: Any,
) -> None:
    refusing = equivalence(
        pd.DataFrame([{**pair_of(np.zeros(20)), "verdict": LESS_READABLE}]), 0.05, "cbbq"
    )
    assert np.isnan(refusing.p_equivalent[0])
    row = {**pair_of(np.zeros(5)), "error": np.nan}
    assert equivalence(pd.DataFrame([row]), 0.05, "cbbq").empty
    assert "margin -1" in refusal(equivalence, pd.DataFrame([row]), -1.0, "cbbq")


def measure(name: str, trait: str, scores: list[float], error: float = 0.0) -> Measure:
    """Return a measure with these scores of models m0, m1, ..., and their standard error."""
    rng = np.random.default_rng(len(name))
    values = {
        f"m{k}": np.concatenate([[score], score + rng.normal(0, error, 1000)])
        for k, score in enumerate(scores)
    }
    return Measure(f"{name} {trait}", name, trait, values)


@pytest.fixture
def five() -> list[Measure]:
    """Two traits, each measured by two benchmarks; the traits are unrelated."""
    grasp, preference = [1.0, 2, 3, 4, 5], [3.0, 5, 1, 2, 4]
    return [
        measure("A", "grasp", grasp, 0.1),
        measure("B", "grasp", [value**2 for value in grasp], 3),
        measure("A", "preference", preference, 0.1),
        measure("B", "preference", [*preference[:3], 4, 2.0], 0.1),
    ]


def test_correlations_and_p_are_scipy_s(five: list[Measure]) -> None:
    found = correlate(five).set_index(["first", "second"])
    row = found.loc["A preference", "B preference"]
    x, y = [3, 5, 1, 2, 4], [3, 5, 1, 4, 2]
    assert row.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    exact = stats.permutation_test(
        (x,),
        lambda order: stats.spearmanr(order, y).statistic,
        permutation_type="pairings",
    )
    assert row.p == pytest.approx(exact.pvalue)
    assert (row.n, row.kind) == (5, "convergent")
    whole = found.loc["A grasp", "B grasp"]
    assert (whole.rho, whole.p) == pytest.approx((1.0, 2 / 120))
    # Other items could turn close scores round.
    assert whole.ci_low < whole.ci_high == 1
    assert found.loc["A grasp", "B preference"].kind == "discriminant"
    assert found.loc["A grasp", "A preference"].rho == pytest.approx(-0.1)


def test_reliability_is_what_is_not_chance_of_items(five: list[Measure]) -> None:
    found = reliabilities(five).set_index("measure").reliability
    assert found["A grasp"] == pytest.approx(1 - 0.01 / 2.5, abs=0.001)
    noisy = measure("C", "grasp", [1.0, 1.1, 0.9, 1.0], 5)
    assert reliabilities([noisy]).reliability.tolist() == [0.0]
    orders = correlate(five)
    grasp, *others = convergence.findings(orders)
    assert len(others) == 2
    assert "correlate by 1.00" in grasp
    figure = drawn(convergence.matrix(orders, reliabilities(five)))
    assert "1.00\nn = 5" in told(figure.axes[0])


def test_too_few_models_or_one_score_have_no_order(five: list[Measure]) -> None:
    three = [one._replace(values=dict(list(one.values.items())[:3])) for one in five]
    found = correlate(three)
    assert found.rho.isna().all()
    assert set(found.reason) == {"3 models have both; 4 are needed at least"}
    assert "Too few models" in convergence.findings(found)[0]
    assert convergence.matrix(found, reliabilities(three)) is None
    level = correlate([five[0], measure("C", "grasp", [1.0] * 5)])
    assert level.reason.tolist() == ["all models have the same score"]


@pytest.mark.slow
def test_runs_of_respondents_that_differ_in_bias_alone_agree(tmp_path: Path) -> None:
    runs = {
        benchmark: [
            run.evaluate(
                benchmark,
                f"simulated:bias={bias},seed={k}",
                out=tmp_path / f"{benchmark}{k}",
                **options,
            )
            for k, bias in enumerate([0.1, 0.35, 0.6, 0.9])
        ]
        for benchmark, options in (
            ("cbbq", {"data": "samples", "categories": ["gender", "age"]}),
            ("mcbe", {"data": "samples", "tasks": ["ss", "bs"]}),
            ("nli_coal", {"data": "samples", "categories": ["en"]}),
        )
    }
    every = convergence.measure(runs)
    assert [one.name for one in every] == [
        "McBE BS",
        "CBBQ accuracy",
        "McBE SS",
        "CBBQ s_amb",
        "NLI-CoAL directional_gap",
    ]
    found = correlate(every)
    assert (found.n == 4).all()
    across = found.set_index(["first", "second"]).rho
    assert across["CBBQ s_amb", "NLI-CoAL directional_gap"] == pytest.approx(1)
    assert convergence.matrix(found, reliabilities(every)) is not None
