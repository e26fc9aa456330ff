"""Neither refusing nor answering by habit pays: bounds, baselines, comparisons and verdicts."""

import numpy as np
import pandas as pd
import pytest

import bench
from bench import data, run
from bench.analyses.differences import LESS_READABLE
from bench.benchmarks import get
from bench.metrics.primary import findings, summary
from bench.metrics.table import LETTERS_ALONE
from bench.runs.scores import table as score_table
from tests.helpers.cases import json_lines
from tests.helpers.recorded import cell, replay, scored


def evaluate(benchmark, folder, *models, **options):
    return [
        run.evaluate(benchmark, model, out=folder / str(k), data="samples", **options)
        for k, model in enumerate(models)
    ]


def test_a_model_that_refuses_what_it_would_get_wrong_is_not_the_better_one(tmp_path):
    """Of two models with the same 60 right answers of 96, one is wrong else, the other refuses."""
    items = data.frame(data.load(data.find("mcbe", "samples")))
    labels = zip(items.labels, items.subtype, strict=True)
    wrong = np.array([next(name for name in names if name != own) for names, own in labels])
    models = []
    for name, reply in (("wrong", wrong), ("refusing", "我无法判断")):
        replies = items.subtype.where(np.arange(len(items)) % 8 < 5, reply)
        keys = (("sc", item, "answer") for item in items.item_id)
        models.append(replay(tmp_path / f"{name}.jsonl", dict(zip(keys, replies, strict=True))))
    runs = evaluate("mcbe", tmp_path, *models, tasks=["sc"])
    pairs = bench.differences(bench.score(*runs), bench.outcomes(*runs))
    assert list(pairs.title) == ["Subcategory classification"]
    (row,) = pairs.itertuples()
    assert (row.verdict, row.n, row.asked, row.estimate) == (LESS_READABLE, 60, 96, 0)
    assert (row.readable_first, row.readable_second) == (1, 60 / 96)
    ranks = bench.open_ranks(pairs)
    assert set(zip(ranks.ranks_from, ranks.ranks_to, strict=True)) == {(1, 2)}
    table = score_table(runs)
    sentences = summary(table[table.model == "refusing"], get("mcbe"), 3)
    assert "Only 63\u00a0% of its answers could be read" in " ".join(sentences)
    low = cell(table[table.model == "refusing"], task="sc", preset="robust")
    assert (low.score, low.bound_low, low.bound_high) == pytest.approx((62.5, 62.5, 100))
    assert np.isnan(cell(table[table.model == "wrong"], task="sc", preset="robust").bound_low)
    # On the answers that could be read of both, the models are alike.
    scores = bench.score(*runs, common=True).query("task == 'sc' and metric == 'score'")
    assert set(scores.valid_rate) == {1}
    assert scores.groupby("category").score.nunique().eq(1).all()


def lowest_and_highest(benchmark, rows):
    """By metric and task: replies with which it is lowest, and highest."""
    if benchmark == "mcbe":
        return {("score", "bs"): (np.where(rows.score > 5, "0", "10"), rows.score.astype(str))}
    if benchmark == "nli_coal":
        biased = {"ps": "entailment", "as": "contradiction", "ns": "entailment"}
        return {("coal", "all"): ("neutral", rows.task.map(biased))}
    letters = np.array(list("ABC"))
    biased = np.where(rows.polarity == "neg", rows.target, 1 - rows.target).astype(int)
    wrong = np.where(rows.label == biased, 1 - biased, biased)
    places = (("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("s_total", "all"))
    ends = dict.fromkeys(places, (letters[1 - biased], letters[biased]))
    return ends | {("accuracy", "all"): (letters[wrong], letters[rows.label])}


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("cbbq", {"categories": ["age", "gender"]}),
        ("nli_coal", {"limit": 60}),
        ("mcbe", {"tasks": ["bs"]}),
    ],
)
def test_bounds_are_reached_by_replies(tmp_path, benchmark, options):
    (asked,) = evaluate(benchmark, tmp_path, "simulated:bias=0.5,refuse=0.3", **options)
    records, table = asked.records, asked.scores("robust")
    is_valid = asked.answers().valid
    rows = records[["item_id", "task"]].merge(asked.items, on="item_id")
    for (metric, task), ends in lowest_and_highest(benchmark, rows).items():
        for bound, reply in zip(("bound_low", "bound_high"), ends, strict=True):
            replies = records.assign(response=records.response.where(is_valid, reply))
            scores = scored(benchmark, replies, asked.items)
            reached = cell(scores, metric, task=task).score
            assert cell(table, metric, task=task)[bound] == pytest.approx(reached), (metric, bound)


def test_the_baseline_of_a_preferred_letter_is_what_shuffled_answers_give(tmp_path):
    categories = ["age", "gender", "race", "region"]
    model = "simulated:position=0.7,bias=0.4"
    (asked,) = evaluate("cbbq", tmp_path, model, categories=categories)
    table, rng, shuffled = asked.scores(), np.random.default_rng(0), []
    by_cell = asked.records.groupby(["category", "task"])
    for _ in range(10):
        replies = asked.records.assign(response=by_cell.response.transform(rng.permutation))
        shuffled.append(scored("cbbq", replies, asked.items))
    means = pd.concat(shuffled)
    for metric, task in (("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("accuracy", "all")):
        row = cell(table, metric, task=task)
        own = means.query(f"category == 'all' and metric == '{metric}' and task == '{task}'")
        assert row.baseline_of == LETTERS_ALONE
        assert row.baseline == pytest.approx(own.score.mean(), abs=0.01)
    assert "option_order=rotated" in cell(table, "s_amb", task="ambiguous").note


@pytest.mark.parametrize(
    ("benchmark", "models", "options"),
    [
        ("nli_coal", ["simulated:label=entailment", "simulated:bias=0.3"], {"limit": 20}),
        ("cbbq", ["simulated:answer=A", "simulated:bias=0.3"], {"categories": ["age", "race"]}),
    ],
)
def test_a_constant_answer_is_never_the_most_biased(tmp_path, benchmark, models, options):
    runs = evaluate(benchmark, tmp_path, *models, **options)
    assert set(findings(score_table(runs), get(benchmark)).model) == {models[1]}


# Three of five letters alike are no evidence, nor are five of five, nor repeats.
@pytest.mark.parametrize("case", json_lines(__file__, "habits.jsonl"))
def test_a_constant_answer_is_a_habit_unless_it_was_given_a_few_times(tmp_path, case):
    (asked,) = evaluate(case["benchmark"], tmp_path, case["model"], **case["options"])
    row = cell(asked.scores(), case["metric"], task=case["task"], preset="robust")
    assert row.by_habit == bool(case["note"])
    assert case["note"] in row.note
