"""Models against each other: pairs, ranks, what is said of them, and what the pictures show; against numbers made by hand."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize

from bench import run
from bench.analyses.compare import by_benchmark, compared
from bench.figures import comparison as pictures
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.comparison import (
    NOTHING,
    UNEQUAL,
    Pair,
    cohens_h,
    leaderboard,
    pairs,
    ranks,
    shares_of_ranks,
)
from bench.metrics.comparison_findings import findings, on_benchmark
from bench.run import results
from tests.helpers.drawing import drawn, ticks, told

PLACES = (
    ("all", "ambiguous", "s_amb"),
    ("all", "disambiguous", "s_disamb"),
    ("all", "all", "accuracy"),
)
SAMPLE = Sample(140, 14)


def replicates(
    *scores: float, spread: float = 0.02, seed: int = 0, sample: Sample = SAMPLE
) -> Replicates:
    """Headline scores of CBBQ with resamples around them; None of those that are not given."""
    found = Replicates()
    for place, score in zip(PLACES, scores, strict=False):
        found.add(
            place, score + np.r_[0, np.random.default_rng(seed).normal(0, spread, DRAWS)], sample
        )
    return found


def of(models: dict[str, Replicates]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs and ranks of some models."""
    both = {
        (a, b): Pair(models[a], models[b], {"ambiguous": 50, "disambiguous": 30})
        for a, b in combinations(models, 2)
    }
    table = pairs(both, "cbbq")
    return table, ranks(models, table, "cbbq")


@pytest.fixture
def three() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two models nearly alike and one far from both; in accuracy the other way round."""
    return of(
        {
            "mild": replicates(0.30, 0.30, 0.71, seed=1),
            "alike": replicates(0.31, 0.31, 0.70, seed=2),
            "harsh": replicates(0.70, 0.70, 0.30, seed=3),
        }
    )


def test_a_pair_is_what_its_resamples_say(three: Any) -> None:
    table = three[0]
    assert len(table) == 3 * 3
    row = table.set_index(["metric", "model_a", "model_b"]).loc[("s_amb", "mild", "harsh")]
    assert row.difference == pytest.approx(-0.4)
    assert (row.score_a, row.score_b, row.n, row.units) == (0.3, 0.7, 50, 140)
    error = np.std(
        np.random.default_rng(1).normal(0, 0.02, DRAWS)
        - np.random.default_rng(3).normal(0, 0.02, DRAWS)
    )
    # t of 126 degrees of freedom at 97.5 % is 1.979, at 80 % 0.844.
    assert row.ci_high - row.difference == pytest.approx(1.979 * error, rel=1e-3)
    assert row.detectable == pytest.approx((1.979 + 0.844) * error, rel=1e-3)
    assert row.d == pytest.approx(-0.4 / error / np.sqrt(140))
    assert row.h == pytest.approx(proportion_effectsize(0.3, 0.7))
    assert set(table[table.task == "all"].n) == {80}


def test_p_values_are_adjusted_over_the_pairs_of_a_score(three: Any) -> None:
    for _, some in three[0].groupby(["task", "metric"]):
        assert some.p_adjusted.to_numpy() == pytest.approx(
            multipletests(some.p, method="fdr_bh")[1]
        )


def test_effect_sizes_of_points_have_no_h() -> None:
    found = Replicates()
    found.add(("all", "ss", "score"), np.r_[50.0, np.linspace(40, 60, DRAWS)], Sample(40, 4))
    other = Replicates()
    other.add(("all", "ss", "score"), np.full(1 + DRAWS, 45.0), Sample(40, 4))
    row = pairs({("a", "b"): Pair(found, other, {"ss": 8})}, "mcbe").iloc[0]
    assert np.isnan(row.h)
    assert row.d == pytest.approx(5 / np.std(np.linspace(40, 60, DRAWS)) / np.sqrt(40))
    assert cohens_h(0.5, 0.5) == 0
    assert cohens_h(1, 0) == pytest.approx(np.pi)


def test_what_cannot_be_compared_is_told_and_is_no_number() -> None:
    models = {"a": replicates(0.3, 0.5), "b": replicates(np.nan, 0.6, seed=2), "c": Replicates()}
    table, order = of(models)
    some = table[table.metric == "s_amb"].set_index(["model_a", "model_b"])
    assert np.isnan(some.difference.to_numpy()).all()
    assert "undefined" in some.note["a", "b"]
    assert some.note["a", "c"] == NOTHING
    assert list(order[order.metric == "s_amb"].model) == ["a"]
    alone, said = findings(table, order, "cbbq")
    assert "3 pairs could not be compared" in alone
    assert "best" not in alone
    assert (
        "Disambiguous: share of stereotyped answers. a has the best score, ahead of every other model with a score."
        in said
    )


def test_scores_of_unequal_categories_are_compared_with_a_warning() -> None:
    models = {"a": replicates(0.3), "b": replicates(0.5, seed=2, sample=Sample(130, 13))}
    row = of(models)[0].iloc[0]
    assert (row.note, row.units) == (UNEQUAL, 130)
    assert row.sentence.endswith(f"Note: {UNEQUAL}.")


def test_ranks_are_those_that_the_tests_leave_open(three: Any) -> None:
    order = three[1].set_index(["metric", "model"])
    for metric in (
        "s_amb",
        "accuracy",
    ):  # of which one is worse where it is high, one where it is low
        here = order.loc[metric]
        assert list(here["rank"]) == [1, 2, 3]
        assert list(zip(here.ranks_from, here.ranks_to, strict=True)) == [(1, 2), (1, 2), (3, 3)]
        assert np.sum(list(here.shares), axis=0) == pytest.approx(np.ones(3))
        assert here.shares["harsh"] == pytest.approx([0, 0, 1])
        assert here.shares["mild"][0] > 0.5


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_shares_of_ranks_against_a_slow_loop(values: list[list[int]]) -> None:
    scores = np.array(values, dtype=float)
    wanted = np.zeros((len(scores), len(scores)))
    for column in scores.T:
        for k, value in enumerate(column):
            places = [sorted(column).index(value) + j for j in range(list(column).count(value))]
            wanted[k, places] += 1 / len(places) / scores.shape[1]
    assert shares_of_ranks(scores) == pytest.approx(wanted)


def test_a_sentence_is_never_stronger_than_the_tests(three: Any) -> None:
    table, order = three
    said = findings(table, order, "cbbq")
    assert len(said) == 3
    assert said[0].startswith(
        "Ambiguous: share of stereotyped answers. mild has the best score, and cannot be told from alike."
    )
    assert "2 of 3 pairs could be told apart in s_amb (adjusted p < 0.05)." in said[0]
    assert "No difference could be shown between mild and alike (0.01 found; 0.0" in said[0]
    for row in table.itertuples():
        assert ("No difference" in row.sentence) == (row.p_adjusted >= 0.05)
    close = {str(k): replicates(0.3 + k / 1000, seed=k) for k in range(4)}
    said = findings(*of(close), "cbbq")
    assert "Any of the models could be the best. 0 of 6 pairs could be told apart" in said[0]
    assert "No difference could be shown in 6; these data would have shown one of 0.0" in said[0]
    apart = {"a": replicates(0.1), "b": replicates(0.9, seed=2)}
    assert (
        "a has the best score, ahead of every other model. s_amb is 0.80 lower in a than in b"
        in findings(*of(apart), "cbbq")[0]
    )


def test_findings_say_what_they_rest_on() -> None:
    models = {"a": replicates(0.1), "b": replicates(0.9, seed=2)}
    *_, last = shown = on_benchmark("cbbq", *of(models), 80)
    assert shown[0].startswith(
        "CBBQ: Ambiguous: share of stereotyped answers. a has the best score"
    )
    assert last == "CBBQ: Of all 2 models, 80 answers in common could be read."
    assert (
        "no readable answer in common, so there are no ranks"
        in on_benchmark("cbbq", *of(models), 0)[-1]
    )


@pytest.mark.parametrize("n", [2, 3, 12])
def test_pictures_hold_what_was_found(n: int) -> None:
    models = {
        f"some-organisation/Model-{k}-Instruct-7B": replicates(0.2 + 0.05 * k, seed=k)
        for k in range(n)
    }
    table, order = of(models)
    fig = drawn(pictures.ranks_by_model(table, order, "cbbq"))
    assert "Numbers: % of the resamples" in fig.get_supxlabel()
    assert ticks(fig.axes[0].get_yticklabels()) == [
        f"{name}  {k + 1}" for k, name in enumerate(models)
    ]
    assert (
        "may have more than one rank" in fig.axes[0].get_title() + fig.get_label()
        or "every rank is settled" in fig.get_label()
    )
    ((name, matrix),) = pictures.differences(table, order, "cbbq")
    assert name == "differences_ambiguous_s_amb"
    drawn(matrix)
    cells = [text for text in told(matrix.axes[0]) if text]
    assert len(cells) >= n * (n - 1) / 2
    assert "+0.05" in cells
    hatched = sum(bool(patch.get_hatch()) for patch in matrix.axes[0].patches)
    assert hatched == (table.p_adjusted >= 0.05).sum()


def test_nothing_to_rank_has_no_picture() -> None:
    models = {"a": replicates(np.nan), "b": replicates(np.nan)}
    table, order = of(models)
    assert pictures.ranks_by_model(table, order, "cbbq") is None
    assert list(pictures.differences(table, order, "cbbq")) == []


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of four models, of which one was asked less and one about something else."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed, categories in (
        ("a", 1, []),
        ("b", 2, []),
        ("less", 3, ["age"]),
        ("other", 4, ["race"]),
    ):
        wanted = categories or ["age", "gender"]
        run.evaluate(
            "cbbq", f"simulated:bias=0.{seed + 1},seed={seed}", out=folder / name, categories=wanted
        )
    return folder


def test_only_what_both_answered_is_compared(asked: Path, refusal: Any) -> None:
    a, b, less, other = (results.Run.open(asked / name) for name in ("a", "b", "less", "other"))
    found = compared([a, b, less], "paper")
    table = found.pairs[found.pairs.metric == "s_amb"].set_index(["model_a", "model_b"])
    age = (a.records.category == "age") & (a.records.task == "ambiguous")
    assert table.n[a.label, b.label] == (a.records.task == "ambiguous").sum()
    assert table.n[a.label, less.label] == age.sum()
    tables = {one.label: one.scores("paper") for one in (a, b, less)}
    scores = {
        name: rows.set_index(["category", "task", "metric"]).score for name, rows in tables.items()
    }
    place = ("age", "ambiguous", "s_amb")
    assert table.difference[a.label, less.label] == pytest.approx(
        scores[a.label][place] - scores[less.label][place]
    )
    place = ("all", "ambiguous", "s_amb")
    assert table.difference[a.label, b.label] == pytest.approx(
        scores[a.label][place] - scores[b.label][place]
    )
    assert found.common == (less.records.error == "").sum()
    # Ranks are of what all answered, which is one category here.
    assert found.ranks.score.iloc[0] == pytest.approx(scores[a.label]["age", "ambiguous", "s_amb"])
    apart = compared([a, other])
    assert (apart.common, len(apart.ranks), len(apart.pairs)) == (0, 0, 0)
    assert "several runs on cbbq" in refusal(compared, [a, a])
    assert "give two or more runs" in refusal(compared, [a])
    assert by_benchmark([a, b]) == {"cbbq": [a, b]}
    assert "no two on one benchmark" in refusal(by_benchmark, [a])


def test_a_leaderboard_has_the_best_first_and_what_stands_beside_a_score(asked: Path) -> None:
    runs = [results.Run.open(asked / name) for name in ("b", "a")]
    table = leaderboard(results.table(runs), compared(runs).ranks, "cbbq")
    some = table[table.metric == "s_amb"]
    assert list(some.score) == sorted(some.score)
    assert set(some.baseline) == {1 / 3}
    assert all(span in ("1 to 1", "2 to 2", "1 to 2") for span in table.ranks)
    assert list(table[table.metric == "accuracy"].score) == sorted(
        table[table.metric == "accuracy"].score, reverse=True
    )


def test_models_of_two_languages_are_not_called_0_models(own_folder: Path) -> None:
    runs = [
        run.evaluate(
            "nli_coal", f"simulated:bias=0.5,seed={k}", categories=[name], limit=4, data="samples"
        )
        for k, name in enumerate(("en", "zh"))
    ]
    result = compared(runs)
    assert (result.common, len(result.pairs)) == (0, 0)
    (sentence,) = on_benchmark("nli_coal", *result[1:])
    assert sentence == "NLI-CoAL: No two models were asked the same, so none are compared."
