"""Neither refusing nor answering by habit pays: bounds, baselines, comparisons and verdicts."""

import numpy as np
import pytest

import bench
from bench import run
from bench.benchmarks import get
from bench.benchmarks.cbbq import scores as cbbq
from bench.metrics.differences import LESS_READABLE
from bench.metrics.primary import findings, summary
from bench.metrics.table import LETTERS_ALONE
from bench.run import results
from tests.helpers.recorded import cell, replay


def evaluate(benchmark, folder, *models, **options):
    options = {"data": "samples", **options}
    return [
        run.evaluate(benchmark, model, out=folder / str(k), **options)
        for k, model in enumerate(models)
    ]


@pytest.fixture(scope="module")
def selective(tmp_path_factory):
    """Two models with the same 60 right answers of 96; else one is wrong, the other refuses."""
    folder = tmp_path_factory.mktemp("selective")
    (asked,) = evaluate("mcbe", folder / "asked", "simulated:", tasks=["sc", "bs"])
    rows = asked.records.merge(asked.items, on="item_id", suffixes=("", "_of_item"))
    is_right = rows.item_id.isin(asked.items.item_id[np.arange(len(asked.items)) % 8 < 5])
    right = rows.subtype.where(rows.task == "sc", rows.score.map("{:g}".format))
    labels = zip(rows.labels, rows.subtype, strict=True)
    other = [next(x for x in names if x != subtype) for names, subtype in labels]
    wrong = np.where(rows.task == "sc", other, np.where(rows.score > 5, "0", "10"))
    models = []
    for name, reply in (("wrong", wrong), ("refusing", "我无法判断")):
        replies = right.where(is_right, reply)
        places = zip(rows.task, rows.item_id, rows.request, strict=True)
        models.append(replay(folder / f"{name}.jsonl", dict(zip(places, replies, strict=True))))
    return evaluate("mcbe", folder, *models, tasks=["sc", "bs"])


def test_a_model_that_refuses_what_it_would_get_wrong_is_not_the_better_one(selective):
    pairs = bench.differences(bench.score(*selective), bench.outcomes(*selective))
    assert set(pairs.title) == {"All tasks", "Subcategory classification", "Bias scoring"}
    for row in pairs[pairs.task != "all"].itertuples():
        assert (row.verdict, row.n, row.asked, row.estimate) == (LESS_READABLE, 60, 96, 0)
        assert (row.readable_first, row.readable_second) == (1, 60 / 96)
    ranks = bench.open_ranks(pairs)
    assert set(zip(ranks.ranks_from, ranks.ranks_to, strict=True)) == {(1, 2)}
    table = results.table(selective)
    sentences = summary(table[table.model == "refusing"], "mcbe", 3)
    assert "Only 63\u00a0% of its answers could be read" in " ".join(sentences)
    low = cell(table[table.model == "refusing"], task="sc", preset="robust")
    assert (low.score, low.bound_low, low.bound_high) == pytest.approx((62.5, 62.5, 100))
    assert np.isnan(cell(table[table.model == "wrong"], task="sc", preset="robust").bound_low)
    # On the answers that could be read of both, the models are alike.
    scores = bench.score(*selective, common=True).query("task == 'sc' and metric == 'score'")
    assert set(scores.valid_rate) == {1}
    assert scores.groupby("category").score.nunique().eq(1).all()


def lowest_and_highest(benchmark, rows):
    """By metric and task: replies with which it is lowest, and highest."""
    if benchmark == "mcbe":
        yield "score", "bs", np.where(rows.score > 5, "0", "10"), rows.score.astype(str)
    elif benchmark == "nli_coal":
        biased = {"ps": "entailment", "as": "contradiction", "ns": "entailment"}
        yield "coal", "all", "neutral", rows.task.map(biased)
    else:
        letters = np.array(list("ABC"))
        biased = np.where(rows.polarity == "neg", rows.target, 1 - rows.target).astype(int)
        for metric, task in (("s_amb", "ambiguous"), ("s_disamb", "disambiguous")):
            yield metric, task, letters[1 - biased], letters[biased]
        yield "s_total", "all", letters[1 - biased], letters[biased]
        wrong = np.where(rows.label == biased, 1 - biased, biased)
        yield "accuracy", "all", letters[wrong], letters[rows.label]


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
    rows = asked.records[["item_id", "task"]].merge(asked.items, on="item_id")
    metrics = get(benchmark)
    table = metrics.scoring(asked.records, asked.items, "robust").table()
    for metric, task, *ends in lowest_and_highest(benchmark, rows):
        for end, reply in zip(("low", "high"), ends, strict=True):
            replies = asked.records.response.where(asked.records.valid, reply)
            scores = metrics.scoring(
                asked.records.assign(response=replies), asked.items, "robust"
            ).table()
            bound = cell(table, metric, task=task)[f"bound_{end}"]
            assert bound == pytest.approx(cell(scores, metric, task=task).score), (metric, end)


def test_the_baseline_of_a_preferred_letter_is_what_shuffled_answers_give(tmp_path):
    options = {"categories": ["age", "gender", "race", "region"]}
    (asked,) = evaluate("cbbq", tmp_path, "simulated:position=0.7,bias=0.4", **options)
    table, rng, shuffled = asked.scores(), np.random.default_rng(0), []
    for _ in range(10):
        by_cell = asked.records.groupby(["category", "task"])
        replies = asked.records.assign(response=by_cell.response.transform(rng.permutation))
        rows = cbbq.answers(replies, asked.items, "robust")
        means = rows.groupby(["task", "category"])[["biased", "decided", "correct"]].mean()
        amb, dis = (means.loc[task].mean() for task in ("ambiguous", "disambiguous"))
        decided = means.loc["disambiguous"].biased / means.loc["disambiguous"].decided
        shuffled.append((amb.biased, decided.mean(), (amb.correct + dis.correct) / 2))
    places = (("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("accuracy", "all"))
    for (metric, task), wanted in zip(places, np.mean(shuffled, axis=0), strict=True):
        row = cell(table, metric, task=task)
        assert (row.baseline_of, row.baseline) == (LETTERS_ALONE, pytest.approx(wanted, abs=0.01))
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
    assert set(findings(results.table(runs), benchmark).model) == {models[1]}


@pytest.mark.parametrize(
    ("benchmark", "metric", "task", "model", "options", "by_habit"),
    [
        # Three of five letters alike are no evidence, nor are five of five, nor repeats.
        ("cbbq", "s_amb", "ambiguous", "answer=A", {"limit": 3}, True),
        ("cbbq", "s_amb", "ambiguous", "answer=A", {"limit": 2, "repeats": 4}, False),
        ("mcbe", "score", "ss", "answer=A", {"tasks": ["ss"], "limit": 1}, False),
        ("nli_coal", "coal", "all", "label=entailment", {"limit": 1}, False),
        ("nli_coal", "coal", "all", "label=entailment", {"limit": 20}, True),
    ],
)
def test_few_answers_make_no_habit(tmp_path, benchmark, metric, task, model, options, by_habit):
    categories = {"nli_coal": None}.get(benchmark, ["gender"])
    options = {**options, "categories": categories}
    (asked,) = evaluate(benchmark, tmp_path, f"simulated:{model}", **options)
    assert cell(asked.scores(), metric, task=task).by_habit == by_habit
