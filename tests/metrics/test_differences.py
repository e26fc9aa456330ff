"""Models against each other: verdicts and open ranks, of outcomes and scores made by hand."""

import numpy as np
import pandas as pd
import pytest

import bench
from bench.metrics.table import LETTERS_ALONE

CATEGORIES = [f"c{k}" for k in range(5)]
# A row of a model's own score, in which nothing is odd.
OWN = {"category": "all", "task": "ambiguous", "metric": "s_amb", "preset": "robust"}
OWN |= {"valid_rate": 1.0, "note": "", "baseline": 0.4, "baseline_of": "", "by_habit": False}
OWN |= {"ci_low": 0.38, "ci_high": 0.44, "bound_low": np.nan, "bound_high": np.nan}
LIKE_LETTERS = {"baseline_of": LETTERS_ALONE}
ABOVE_LETTERS = LIKE_LETTERS | {"ci_low": 0.67, "ci_high": 0.73}


def outcomes(unread=0.0, **shares):
    """List ambiguous questions, of which each model answers a share with the stereotype.

    Args:
        unread: the share of the last model's stereotyped answers that cannot be read.
    """
    parts = []
    for k, (model, share) in enumerate(shares.items()):
        rng = np.random.default_rng(k)
        rows = pd.DataFrame({"item_id": range(200), "category": np.repeat(CATEGORIES, 40)})
        rows["stereotyped"] = (rng.permutation(200) < 200 * share).astype(float)
        rows["parsed"] = 1.0
        if model == [*shares][-1]:
            is_lost = (rows.stereotyped == 1) & (rng.random(200) < unread)
            rows.loc[is_lost, ["stereotyped", "parsed"]] = 0.0
        parts.append(rows.assign(model=model))
    metadata = {"benchmark": "cbbq", "task": "ambiguous", "repeat": 0, "run": "a folder"}
    table = pd.concat(parts, ignore_index=True).assign(answered=1.0, **metadata)
    return table.assign(
        stratum=table.category, cluster=table.item_id // 4, names_person=1.0, correct=0.0
    )


def scores(table, **own):
    """Return the models' own scores; `own` changes some columns of a model."""
    means = table.groupby("model", sort=False).stereotyped.mean()
    rows = [
        {"benchmark": "cbbq", **OWN, "model": model, "score": score, **own.get(str(model), {})}
        for model, score in means.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("own", "first", "second", "verdict"),
    [
        ({}, 0.4, 0.1, "different"),
        ({}, 0.4, 0.4, "no difference shown"),
        (LIKE_LETTERS, 0.4, 0.1, "by letters"),
        (LIKE_LETTERS, 0.4, 0.7, "by letters"),
        # It shows more bias than its letters give, so it has more than a model with less.
        (ABOVE_LETTERS, 0.7, 0.1, "different"),
        # Its letters may be why it shows less than the other model.
        (ABOVE_LETTERS, 0.7, 0.95, "by letters"),
        (LIKE_LETTERS, 0.4, 0.4, "no difference shown"),
        ({"by_habit": True}, 0.4, 0.1, "by letters"),
    ],
)
def test_no_pair_differs_in_bias_because_of_a_preferred_letter(own, first, second, verdict):
    table = outcomes(a=first, b=second)
    pairs = bench.differences(scores(table, a=own), table)
    assert list(pairs.verdict[pairs.metric == "s_amb"]) == [verdict]


@pytest.mark.parametrize(
    ("shares", "unread", "verdict"),
    [
        # The less readable model has more bias, which speaks against it.
        ((0.1, 0.8), 0.2, "different"),
        # It has less, but its unreadable answers may all have been stereotyped.
        ((0.5, 0.5), 0.7, "less readable"),
        # It would have less even so.
        ((0.95, 0.2), 0.5, "different"),
        ((0.4, 0.4), 0.0, "no difference shown"),
    ],
)
def test_no_model_has_less_bias_because_it_cannot_be_read(shares, unread, verdict):
    table = outcomes(unread, a=shares[0], b=shares[1])
    pairs = bench.differences(scores(table), table)
    assert pairs.verdict[0] == verdict
    assert pairs.n[0] == (table.parsed[table.model == "b"] == 1).sum()


def test_a_model_without_a_score_makes_no_pair():
    table = outcomes(a=0.2, b=0.5, c=0.5)
    pairs = bench.differences(scores(table, c={"score": np.nan, "note": "no answer"}), table)
    assert {*pairs["first"], *pairs.second} == {"a", "b"}


def test_ranks_are_those_that_the_tests_leave_open():
    table = outcomes(mild=0.2, alike=0.22, harsh=0.8)
    ranks = bench.open_ranks(bench.differences(scores(table), table)).set_index("model")
    assert ranks.ranks_from.to_dict() == {"mild": 1, "alike": 1, "harsh": 3}
    assert ranks.ranks_to.to_dict() == {"mild": 2, "alike": 2, "harsh": 3}


def test_several_runs_of_a_model_and_single_runs_are_refused(refusal):
    table = outcomes(a=0.2, b=0.5)
    twice = pd.concat([table, table.assign(run="another")])
    message = refusal(bench.differences, scores(table), twice)
    assert message == "a has several runs on cbbq: a folder, another; name only one"
    alone = outcomes(a=0.2)
    assert "no two on one benchmark" in refusal(bench.differences, scores(alone), alone)


def test_scores_from_elsewhere_are_paired_by_category(tmp_path, refusal):
    rng = np.random.default_rng(0)
    rows = [
        f"{model},{name},ss,{score + rng.normal(0, 2):.1f}"
        for name in range(12)
        for model, score in (("a", 80), ("b", 60), ("c", 61))
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["model,category,task,score", *rows]), "utf-8")
    table = bench.read_scores(path)
    assert len(table[table.category == "all"]) == 3
    pairs = bench.differences(table).set_index(["first", "second"])
    assert pairs.verdict.to_dict() == {
        ("a", "b"): "different",
        ("a", "c"): "different",
        ("b", "c"): "no difference shown",
    }
    assert set(pairs.n) == {12}
    message = refusal(bench.differences, table[table.category == "all"])
    assert "give a row for each" in message
