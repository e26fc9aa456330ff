"""Refusing never pays: bounds beside scores, comparisons on what both could be read in, verdicts."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.analyses import compare_models
from bench.analyses.compare_models import common_scores, compare
from bench.metrics import cbbq, friedman, mcbe, nli_coal
from bench.metrics.headline import findings
from bench.metrics.significance import LESS_READABLE, favours_less_readable
from bench.run import results
from tests.helpers.recorded import cell

REFUSED = "我无法判断"


@pytest.fixture(scope="module")
def selective(tmp_path_factory: pytest.TempPathFactory) -> list[results.Run]:
    """Two models with the same 60 right answers of 96; on the other 36 the one is wrong, the other refuses."""
    folder = tmp_path_factory.mktemp("selective")
    options = {"data": "samples", "tasks": ["sc", "bs"]}
    asked = run.evaluate("mcbe", "simulated:", out=folder / "asked", **options)
    items = asked.items.set_index("item_id")
    right = set(items.index[np.arange(len(items)) % 8 < 5])
    runs = []
    for name in ("wrong", "refusing"):
        rows = []
        for one in asked.records.itertuples():
            item = items.loc[one.item_id]
            wrong = {
                "sc": next(label for label in item.labels if label != item.subtype),
                "bs": "0" if item.score > 5 else "10",
            }
            reply = item.subtype if one.task == "sc" else f"{item.score:g}"
            if one.item_id not in right:
                reply = wrong[one.task] if name == "wrong" else REFUSED
            rows.append(
                {
                    "task": one.task,
                    "item_id": one.item_id,
                    "request": one.request,
                    "repeat": 0,
                    "response": reply,
                }
            )
        path = folder / f"{name}.jsonl"
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8"
        )
        runs.append(run.evaluate("mcbe", f"replay:{path}", out=folder / name, **options))
    assert (len(right), len(items)) == (60, 96)
    return runs


def test_a_model_that_refuses_what_it_would_get_wrong_is_not_the_better_one(
    selective: list[results.Run],
) -> None:
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


def test_refusing_half_of_the_questions_is_no_lower_bias(tmp_path: Path) -> None:
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


def test_a_gain_of_the_less_readable_side_is_no_gain() -> None:
    assert favours_less_readable(gain=1, readable=-0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=0.1, p=0.01)
    assert not favours_less_readable(gain=1, readable=-0.1, p=0.2)


def test_bounds_of_cbbq_are_reached_by_replies(tmp_path: Path) -> None:
    asked = run.evaluate(
        "cbbq",
        "simulated:bias=0.5,refuse=0.3",
        categories=["age", "gender"],
        data="samples",
        out=tmp_path,
    )
    records, items = asked.records, asked.items
    table = cbbq.score_records(records, items, "robust")
    known = records[["item_id"]].merge(items, on="item_id")
    stereotyped = np.where(known.polarity == "neg", known.target, 1 - known.target).astype(int)
    unread = ~records.valid.to_numpy()
    for name, letters in {
        "biased": stereotyped,
        "other": 1 - stereotyped,
        "right": known.label,
        "wrong": np.where(known.label == stereotyped, 1 - stereotyped, stereotyped),
    }.items():
        given = records.assign(
            response=np.where(unread, np.array(list("ABC"))[letters], records.response)
        )
        scores = (
            cbbq.score_records(given, items, "robust")
            .set_index(["category", "task", "metric"])
            .score
        )
        for metric, task, end in (
            ("s_amb", "ambiguous", {"biased": "high", "other": "low"}),
            ("s_disamb", "disambiguous", {"biased": "high", "other": "low"}),
            ("s_total", "all", {"biased": "high", "other": "low"}),
            ("accuracy", "all", {"right": "high", "wrong": "low"}),
        ):
            if name in end:
                row = cell(table, metric, task=task)
                assert row[f"bound_{end[name]}"] == pytest.approx(scores["all", task, metric])


def test_bounds_of_nli_coal_are_reached_by_replies(tmp_path: Path) -> None:
    asked = run.evaluate("nli_coal", "simulated:bias=0.5,refuse=0.3", data="samples", out=tmp_path)
    records, items = asked.records, asked.items
    row = cell(nli_coal.score_records(records, items, "robust"), "coal", task="all")
    for end, labels in {
        "high": {"ps": "entailment", "as": "contradiction", "ns": "entailment"},
        "low": {"ps": "neutral", "as": "neutral", "ns": "neutral"},
    }.items():
        given = records.assign(
            response=records.response.where(records.valid, records.task.map(labels))
        )
        scores = nli_coal.score_records(given, items, "robust")
        assert row[f"bound_{end}"] == pytest.approx(cell(scores, "coal", task="all").score)


def test_bounds_of_severities_are_reached_by_replies(tmp_path: Path) -> None:
    asked = run.evaluate(
        "mcbe", "simulated:bias=0.5,refuse=0.3", tasks=["bs"], data="samples", out=tmp_path
    )
    records, items = asked.records, asked.items
    row = cell(mcbe.score_records(records, items, "robust"), task="bs")
    people = records[["item_id"]].merge(items, on="item_id").score
    for end, reply in {"high": people, "low": pd.Series(np.where(people > 5, 0, 10))}.items():
        given = records.assign(response=records.response.where(records.valid, reply.astype(str)))
        scores = mcbe.score_records(given, items, "robust")
        assert row[f"bound_{end}"] == pytest.approx(cell(scores, task="bs").score)


def test_a_model_that_is_never_read_in_a_task_takes_no_rank_from_the_others(tmp_path: Path) -> None:
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


def test_friedman_ranks_what_could_be_read_of_all(selective: list[results.Run]) -> None:
    scores = common_scores(selective)
    assert set(scores.valid_rate) == {1}
    blocks = friedman.blocks(scores, "mcbe", task="sc")
    assert (blocks.ranks == 1.5).all(axis=None)
