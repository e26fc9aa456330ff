"""Refusing never pays: bounds beside scores, comparisons on what both could be read in, verdicts."""

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.analyses import compare_models
from bench.analyses.compare_models import common_scores, compare
from bench.metrics import cbbq, friedman, mcbe, nli_coal
from bench.metrics.headline import findings
from bench.metrics.significance import LESS_READABLE
from bench.run import results
from tests.helpers.recorded import cell, replay


@pytest.fixture(scope="module")
def selective(tmp_path_factory):
    """Two models with the same 60 right answers of 96; on the other 36 the one is wrong, the other refuses."""
    folder = tmp_path_factory.mktemp("selective")
    options = {"data": "samples", "tasks": ["sc", "bs"]}
    asked = run.evaluate("mcbe", "simulated:", out=folder / "asked", **options)
    rows = asked.records.merge(asked.items, on="item_id", suffixes=("", "_of_item"))
    is_right = rows.item_id.isin(asked.items.item_id[np.arange(len(asked.items)) % 8 < 5])
    right = rows.subtype.where(rows.task == "sc", rows.score.map("{:g}".format))
    other = [
        next(x for x in labels if x != y)
        for labels, y in zip(rows.labels, rows.subtype, strict=True)
    ]
    wrong = np.where(rows.task == "sc", other, np.where(rows.score > 5, "0", "10"))
    runs = []
    for name, reply in (("wrong", wrong), ("refusing", "我无法判断")):
        replies = right.where(is_right, reply)
        places = zip(rows.task, rows.item_id, rows.request, strict=True)
        model = replay(folder / f"{name}.jsonl", dict(zip(places, replies, strict=True)))
        runs.append(run.evaluate("mcbe", model, out=folder / name, **options))
    assert (is_right.sum(), len(rows)) == (120, 192)
    return runs


def test_a_model_that_refuses_what_it_would_get_wrong_is_not_the_better_one(selective):
    result = compare(selective)
    for task in ("sc", "bs"):
        row = result.pairs[result.pairs.task == task].iloc[0]
        assert (row.verdict, row.n, row.n_asked) == (LESS_READABLE, 60, 96)
        assert (row.score_a, row.score_b, row.difference) == (100, 100, 0)
        assert (row.readable_a, row.readable_b) == (1, 60 / 96)
        assert row.bound_high_b == pytest.approx(100)
        assert row.bound_low_a == row.bound_high_a
    said = " ".join(compare_models.findings(result))
    assert "best score, ahead" not in said
    assert "60 of 96" in said
    assert set(zip(result.ranks.ranks_from, result.ranks.ranks_to, strict=True)) == {(1, 2)}
    table = results.table(selective)
    sentences = findings(table, "mcbe").set_index(["model", "task"]).sentence
    assert (
        "Only 62% of its answers could be read: depending on the others"
        in sentences["refusing", "sc"]
    )
    low = cell(table[table.model == "refusing"], task="sc", preset="robust")
    assert (low.score, low.bound_low, low.bound_high) == pytest.approx((62.5, 62.5, 100))
    assert np.isnan(cell(table[table.model == "wrong"], task="sc", preset="robust").bound_low)


def test_refusing_half_of_the_questions_is_no_lower_bias(tmp_path):
    models = ("simulated:bias=0.6", "simulated:bias=0.6,refuse=0.5,seed=1")
    runs = [
        run.evaluate("cbbq", one, data="samples", out=tmp_path / str(k))
        for k, one in enumerate(models)
    ]
    result = compare(runs)
    row = result.pairs[result.pairs.metric == "s_amb"].iloc[0]
    assert row.verdict == LESS_READABLE
    assert abs(row.difference) < 0.1
    refusing = runs[1].readable()
    ambiguous = refusing[refusing.index.get_level_values("task") == "ambiguous"]
    assert (row.n, row.n_asked) == (ambiguous.sum(), len(ambiguous))
    assert row.readable_b == pytest.approx(ambiguous.mean())
    assert row.bound_low_b < row.score_a < row.bound_high_b
    assert all("best score" not in one for one in compare_models.findings(result))


def test_bounds_of_cbbq_are_reached_by_replies(tmp_path):
    options = {"categories": ["age", "gender"], "data": "samples", "out": tmp_path}
    asked = run.evaluate("cbbq", "simulated:bias=0.5,refuse=0.3", **options)
    table = cbbq.score_records(asked.records, asked.items, "robust")
    known = asked.records[["item_id"]].merge(asked.items, on="item_id")
    biased = np.where(known.polarity == "neg", known.target, 1 - known.target).astype(int)
    wrong = np.where(known.label == biased, 1 - biased, biased)
    shares = [("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("s_total", "all")]
    for places, end, options in (
        (shares, "high", biased),
        (shares, "low", 1 - biased),
        ([("accuracy", "all")], "high", known.label.to_numpy()),
        ([("accuracy", "all")], "low", wrong),
    ):
        replies = asked.records.response.where(asked.records.valid, np.array(list("ABC"))[options])
        scores = cbbq.score_records(asked.records.assign(response=replies), asked.items, "robust")
        for metric, task in places:
            bound = cell(table, metric, task=task)[f"bound_{end}"]
            assert bound == pytest.approx(cell(scores, metric, task=task).score)


@pytest.mark.parametrize(
    ("module", "options", "place"),
    [
        (nli_coal, {}, {"metric": "coal", "task": "all"}),
        (mcbe, {"tasks": ["bs"]}, {"metric": "score", "task": "bs"}),
    ],
)
def test_bounds_are_reached_by_replies(tmp_path, module, options, place):
    name = module.__name__.rpartition(".")[2]
    options |= {"data": "samples", "out": tmp_path}
    asked = run.evaluate(name, "simulated:bias=0.5,refuse=0.3", **options)
    rows = asked.records[["item_id", "task"]].merge(asked.items, on="item_id")
    if module is mcbe:
        ends = {"high": rows.score, "low": pd.Series(np.where(rows.score > 5, 0, 10))}
    else:
        biased = {"ps": "entailment", "as": "contradiction", "ns": "entailment"}
        ends = {"high": rows.task.map(biased), "low": rows.task.map(lambda name: "neutral")}
    row = cell(module.score_records(asked.records, asked.items, "robust"), **place)
    for end, reply in ends.items():
        replies = asked.records.response.where(asked.records.valid, reply.astype(str))
        scores = module.score_records(asked.records.assign(response=replies), asked.items, "robust")
        assert row[f"bound_{end}"] == pytest.approx(cell(scores, **place).score)


def test_a_model_that_is_never_read_in_a_task_takes_no_rank_from_the_others(tmp_path):
    models = ("simulated:bias=0.2,seed=1", "simulated:bias=0.5,seed=2", "simulated:answer=A")
    runs = [
        run.evaluate(
            "mcbe", one, tasks=["pc", "sc", "ss"], data="samples", limit=4, out=tmp_path / str(k)
        )
        for k, one in enumerate(models)
    ]
    order = compare(runs).ranks
    assert set(order.model[order.task == "sc"]) == set(models[:2])
    assert set(order.model[order.task == "all"]) == set(models)
    # Over all tasks models are ranked by those in which all can be read.
    pc, ss, whole = (
        order[order.task == task].set_index("model").score[models[0]]
        for task in ("pc", "ss", "all")
    )
    assert min(pc, ss) <= whole <= max(pc, ss)


def test_friedman_ranks_what_could_be_read_of_all(selective):
    scores = common_scores(selective)
    assert set(scores.valid_rate) == {1}
    blocks = friedman.blocks(scores, "mcbe", task="sc")
    assert (blocks.ranks == 1.5).all(axis=None)
