"""Models against each other: verdicts and open ranks, of outcomes and scores made by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bench
from bench.analyses.differences import _better, badness, scored_units
from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.metrics.primary import primary_metrics
from bench.metrics.table import LETTERS_ALONE, PrimaryMetric
from tests.helpers.cases import cases
from tests.helpers.notebooks import run_cells

# A row of a model's own score, in which nothing is odd.
OWN = {"benchmark": "cbbq", "category": "all", "task": "ambiguous", "metric": "s_amb"}
OWN |= {"preset": "robust", "valid_rate": 1.0, "note": "", "baseline": 0.4, "baseline_of": ""}
OWN |= {"by_habit": False, "ci_low": 0.38, "ci_high": 0.44}
OWN |= {"bound_low": np.nan, "bound_high": np.nan}
# Doubts about the score of model `a`.
ODD = {"": {}, "habit": {"by_habit": True}, "letters": {"baseline_of": LETTERS_ALONE}}
ODD["above letters"] = ODD["letters"] | {"ci_low": 0.67, "ci_high": 0.73}


def outcomes(unread=0.0, **shares):
    """List ambiguous questions, of which each model answers a share with the stereotype.

    Args:
        unread: the share of the last model's stereotyped answers that cannot be read.
    """
    parts = []
    for k, (model, share) in enumerate(shares.items()):
        rng = np.random.default_rng(k)
        rows = pd.DataFrame({"model": model, "item_id": range(200), "parsed": 1.0})
        rows["stereotyped"] = (rng.permutation(200) < 200 * share).astype(float)
        if model == [*shares][-1]:
            is_lost = (rows.stereotyped == 1) & (rng.random(200) < unread)
            rows.loc[is_lost, ["stereotyped", "parsed"]] = 0.0
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    table["category"] = table["stratum"] = "c" + (table.item_id // 40).astype(str)
    metadata = {"benchmark": "cbbq", "task": "ambiguous", "repeat": 0, "run": "a folder"}
    numbers = {"answered": 1.0, "names_person": 1.0, "correct": 0.0}
    return table.assign(cluster=table.item_id // 4, **numbers, **metadata)


def scores(table, **own):
    """Return the models' own scores; `own` changes some columns of a model."""
    means = table.groupby("model", sort=False).stereotyped.mean()
    rows = [
        OWN | {"model": name, "score": mean} | own.get(name, {}) for name, mean in means.items()
    ]
    return pd.DataFrame(rows)


@cases(__file__, "pairs.csv")
def test_no_model_has_less_bias_because_of_its_letters_or_because_it_cannot_be_read(case):
    table = outcomes(float(case["unread"]), a=float(case["a"]), b=float(case["b"]))
    pairs = bench.differences(scores(table, a=ODD[case["own"]]), table)
    pair = pairs[pairs.metric == "s_amb"].squeeze()
    assert pair.verdict == case["verdict"]
    assert pair.n == (table.parsed[table.model == "b"] == 1).sum()


def test_a_model_without_a_score_makes_no_pair():
    table = outcomes(a=0.2, b=0.5, c=0.5)
    pairs = bench.differences(scores(table, c={"score": np.nan, "note": "no answer"}), table)
    assert {*pairs["first"], *pairs.second} == {"a", "b"}


def test_ranks_are_those_that_the_tests_leave_open():
    table = outcomes(mild=0.2, alike=0.22, harsh=0.8)
    ranks = bench.open_ranks(bench.differences(scores(table), table)).set_index("model")
    assert ranks.ranks_from.to_dict() == {"mild": 1, "alike": 1, "harsh": 3}
    assert ranks.ranks_to.to_dict() == {"mild": 2, "alike": 2, "harsh": 3}


# A signed score, of which 0 is the best; pair, estimate of their difference, and the better one.
SIGNED = PrimaryMetric("t", "m", "", "", limits=(-1, 1), best=0.0)
BETTER = [
    (SIGNED, 0.2, 0.6, -0.4, "a"),
    (SIGNED, -0.2, -0.6, 0.4, "a"),
    (SIGNED, -0.6, -0.2, -0.4, "b"),
    (SIGNED, -0.2, 0.6, -0.8, ""),
    (SIGNED, 0.2, 0.2, 0.0, ""),
    (SIGNED._replace(best=None), -0.6, -0.2, -0.4, "a"),
    (SIGNED._replace(best=None, biased_is_high=False), -0.6, -0.2, -0.4, "b"),
]


@pytest.mark.parametrize(("line", "first", "second", "estimate", "better"), BETTER)
def test_of_two_scores_on_one_side_of_the_best_value_the_nearer_one_is_better(
    line, first, second, estimate, better
):
    pairs = pd.DataFrame({"first": ["a"], "second": ["b"], "estimate": [estimate]})
    assert list(_better(line, {"a": first, "b": second}, pairs)) == [better]


def test_scores_are_ranked_by_the_side_that_is_worse():
    rows = pd.DataFrame({"benchmark": "mine", "task": "t", "metric": "m", "score": [1.0, 3.0]})
    values = {side: list(badness(rows.assign(worse=side))) for side in ("higher", "lower", "")}
    assert values == {"higher": [1, 3], "lower": [-1, -3], "": [1, 3]}


def test_a_score_by_a_field_of_the_items_is_on_the_answers_that_are_read_of_all(tmp_path, refusal):
    models = ["simulated:bias=0.3,refuse=0.3,seed=1", "simulated:bias=0.7,seed=2"]
    options = {"data": "samples", "limit": 20, "categories": ["age", "race"]}
    runs = [bench.evaluate("cbbq", name, out=tmp_path / name, **options) for name in models]
    measure = bench.measure(bench.explain(bench.score(*runs)))
    names = {"scored_units": scored_units, "bench": bench, "BadInput": BadInput, "get": get}
    names["primary_metrics"] = primary_metrics
    by_fields = run_cells("friedman_test", only="by-fields", **names)["by_fields"]
    rows = by_fields(measure, runs, ["topic"]).set_index(["topic", "model"])
    answers = bench.outcomes(*runs).query("task == 'ambiguous'")
    answers = answers.merge(bench.items(*runs)[["item_id", "topic"]])
    is_read = answers.groupby("item_id").parsed.transform("min") == 1
    expected = answers[is_read].groupby(["topic", "model"]).stereotyped.mean()
    assert rows.score.to_dict() == pytest.approx(expected.to_dict())
    assert "did you mean topic" in refusal(by_fields, measure, runs, ["topik"])
    habit = bench.measure(bench.explain(bench.score(*runs)), metric="first_option")
    assert "only a primary score" in refusal(by_fields, habit, runs, ["topic"])


def test_several_runs_of_a_model_and_single_runs_are_refused(refusal):
    table, alone = outcomes(a=0.2, b=0.5), outcomes(a=0.2)
    twice = pd.concat([table, table.assign(run="another")])
    message = refusal(bench.differences, scores(table), twice)
    assert message == "a has several runs on cbbq: a folder, another; name only one"
    assert "no two on one benchmark" in refusal(bench.differences, scores(alone), alone)


def test_scores_from_elsewhere_are_paired_by_category(refusal):
    table = bench.read_scores(Path(__file__).with_name("elsewhere.csv"))
    assert len(table[table.category == "all"]) == 3
    pairs = bench.differences(table)
    assert pairs[["first", "second", "verdict", "n"]].to_numpy().tolist() == [
        ["a", "b", "different", 12],
        ["a", "c", "different", 12],
        ["b", "c", "no difference shown", 12],
    ]
    message = refusal(bench.differences, table[table.category == "all"])
    assert "give a row for each" in message
