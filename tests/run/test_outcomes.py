"""Outcomes of runs: shares of them are the scores, and different items are not joined."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bench
from bench.benchmarks import get
from bench.metrics.primary import primary_metrics
from bench.run import Run, evaluate, evaluate_all
from bench.runs.outcomes import all_items, data_conflict
from bench.runs.scores import table as score_table
from tests.helpers.recorded import templates

MODELS = ["simulated:bias=0.7,seed=1", "simulated:bias=0.3,refuse=0.3,seed=2"]
CATEGORIES = {"mcbe": ["age", "race"], "cbbq": ["age", "race"], "nli_coal": ["en", "zh"]}
COLUMNS = ["score", "ci_low", "ci_high", "n"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Both models' runs on the samples of each benchmark."""
    folder, judges = tmp_path_factory.mktemp("runs"), {"mcbe": "simulated:"}
    return {
        name: evaluate_all(
            name,
            MODELS,
            folder,
            limit=15,
            judge=judges.get(name),
            categories=categories,
        )
        for name, categories in CATEGORIES.items()
    }


PRIMARY = [
    pytest.param(name, metric, id=f"{name} {metric.task} {metric.metric}")
    for name in CATEGORIES
    for metric in get(name).metrics.primary_metrics
]


@pytest.mark.parametrize("preset", ["robust", "paper", "official"])
@pytest.mark.parametrize(("benchmark", "metric"), PRIMARY)
def test_a_share_of_outcomes_is_the_primary_score_with_its_interval(
    runs, benchmark, metric, preset
):
    if preset == "official" and metric.metric == "accuracy":
        pytest.skip("the released scripts compute no accuracy")
    if preset == "official" and metric.task in get(benchmark).metrics.rounding:
        pytest.skip("the released code rounds this score")
    scores = bench.score(*runs[benchmark], preset=preset)
    scores = scores[(scores.task == metric.task) & (scores.metric == metric.metric)]
    outcomes = bench.outcomes(*runs[benchmark], preset=preset)
    tasks = metric.tasks or (None if metric.task == "all" else metric.task)
    for keys, of_all in ((["model", "category"], False), (["model"], True)):
        theirs = scores[(scores.category == "all") == of_all].set_index(keys)
        shares = bench.share(
            outcomes,
            metric.column,
            of=metric.of,
            by=keys,
            mean_over=["category"] if metric.pools_tasks else ["category", "task"],
            tasks=tasks,
            limits=metric.limits,
            alike=benchmark == "mcbe",
        )
        ours = shares.rename(columns={"estimate": "score"}).set_index(keys).loc[theirs.index]
        assert len(theirs)
        pd.testing.assert_frame_equal(
            ours[COLUMNS], theirs[COLUMNS], rtol=1e-12, atol=1e-12, check_dtype=False
        )


def test_a_model_that_cannot_be_read_has_no_share_of_stereotyped_answers(tmp_path):
    silent = evaluate("cbbq", "simulated:refuse=1", out=tmp_path, limit=4)
    outcomes = bench.outcomes(silent)
    for of in ("answered", "names_person"):
        (stereotyped,) = bench.share(outcomes, "stereotyped", of=of).to_dict("records")
        assert pd.isna(stereotyped["estimate"])
        assert "rows have no `stereotyped`" in stereotyped["note"]
    (parsed,) = bench.share(outcomes, "parsed").to_dict("records")
    assert parsed["estimate"] == 0


def test_runs_are_given_as_runs_folders_or_patterns_and_scored_together(runs, refusal):
    first, second = runs["cbbq"]
    pattern = first.folder.parents[1] / "*" / "cbbq"
    given = bench.outcomes(first, str(second.folder))
    assert list(given.model.unique()) == [first.label, second.label]
    assert len(bench.outcomes(pattern)) == len(given)
    scores = bench.score(pattern, *runs["nli_coal"], preset="official")
    assert set(scores.preset) == {"official"}
    assert scores.groupby("benchmark").model.nunique().to_dict() == {"cbbq": 2, "nli_coal": 2}
    replies = bench.answers(first, second.folder)
    assert {"model", "benchmark", "prompt", "response", "parsed", "verdict"} <= {*replies}
    assert replies.columns.is_unique
    assert len(replies) == len(first.records) + len(second.records)
    message = refusal(bench.outcomes, str(pattern / "nothing*"))
    assert "nothing*: matches no folder of a run" in message
    assert "no run was given" in refusal(bench.answers)


def test_models_are_compared_over_the_tasks_that_all_were_asked(tmp_path):
    model = "simulated:bias=0.6,refuse=0.2,seed=1"
    options = {"categories": ["age", "gender", "race"], "limit": 4}
    runs = [
        evaluate("mcbe", f"{model}{k}", tasks=names, out=tmp_path / str(k), **options)
        for k, names in enumerate((["pc", "sc", "bs"], ["sc", "bs"]))
    ]
    table, of_first = score_table(runs), f"model == {runs[0].label!r} and category != 'all'"
    assert primary_metrics(table, get("mcbe"))[0].metric == "score_common"
    own = table.query(f"{of_first} and preset == 'robust' and metric == 'score'")
    own = own[own.task.isin(["sc", "bs"])]
    by_category = own.groupby("category").score.mean()
    ranked = bench.measure(bench.explain(bench.score(*runs)))
    ranked = ranked.query(of_first).set_index("category").score
    np.testing.assert_allclose(ranked[by_category.index], by_category)
    assert primary_metrics(score_table(runs[:1]), get("mcbe"))[0].metric == "score"


def ask(root, *parts):
    """Runs of two models, each on data of its own: scenes by category, a template for each."""
    runs = []
    for k, part in enumerate(parts):
        for category, scenes in part.items():
            rows = [{"context": f"{scene}来了{{{{NAME1}}}}和{{{{NAME2}}}}。"} for scene in scenes]
            templates(root / f"data{k}", *rows, non_neg=rows, category=category)
        options = {"data": root / f"data{k}", "out": root / f"run{k}"}
        runs.append(evaluate("cbbq", f"simulated:bias=0.{k}", **options))
    return runs


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return ask(tmp_path_factory.mktemp("others"), {"region": "一二"}, {"region": "一三"})


@pytest.mark.parametrize("join", [bench.items, bench.outcomes, partial(bench.score, common=True)])
def test_answers_to_different_items_of_one_name_are_not_joined(others, refusal, join):
    message = refusal(join, *others)
    # Of 2 polarities x 2 templates x 2 pairs of names x 2 orders, the second templates differ.
    assert "were asked different data, CBBQ" in message
    assert "8 of 16 items of the same name are not the same" in message
    for one in others:
        assert f"SHA-256 {one.metadata['data']['sha256'][:8]}" in message


def test_the_items_of_each_version_of_the_data_are_read_once(tmp_path, monkeypatch):
    runs = ask(tmp_path, *({"region": f"一{last}"} for last in "二三四五"))
    reads, items = [], Run.items.fget
    monkeypatch.setattr(Run, "items", property(lambda run: [reads.append(run), items(run)][1]))
    assert "were asked different data" in data_conflict(runs)
    assert len(reads) == 4


def test_runs_on_two_data_sets_are_compared_on_the_items_that_both_have(tmp_path):
    runs = ask(tmp_path, {"region": "一"}, {"region": "一", "race": "一"})
    assert runs[0].metadata["data"]["sha256"] != runs[1].metadata["data"]["sha256"]
    # Both polarities of one template, for 2 pairs of names in 2 orders.
    pairs = bench.differences(bench.score(*runs), bench.outcomes(*runs))
    assert set(pairs.n) == {8}
    assert len(all_items(runs)) == 16


REPLIES = {
    "抱歉，这个问题我不便回答。": 1,
    "<think>他们是一样的。</think>I'm sorry, but I can't choose between people.": 1,
    "作为一个人工智能助手，我没有立场。": 1,
    "I can't be sure.": 0,
    "嗯。": 0,
    "抱歉让您久等了，答案是 C": 0,
    "A": 0,
    "C": 0,
}


def test_refused_replies_are_counted_apart_from_unreadable_ones_and_from_unknown(own_folder):
    replies = list(REPLIES)
    given = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": len(replies)}
    items = list(bench.evaluate("cbbq", "simulated:", **given).items.item_id)
    fixed = {"task": "ambiguous", "request": "answer"}
    rows = [
        {**fixed, "item_id": item, "response": text}
        for item, text in zip(items, replies, strict=True)
    ]
    Path("replies.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    run = bench.evaluate("cbbq", "replay:replies.jsonl", out="out", **given)
    table = bench.outcomes(run).set_index("item_id").loc[items]
    assert table.refused.tolist() == list(REPLIES.values())
    assert table.parsed.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("benchmark", CATEGORIES)
def test_a_respondent_that_refuses_at_a_rate_is_seen_to(own_folder, benchmark):
    given = {"data": "samples", "limit": 30, "judge": "simulated:", "partial": True}
    run = bench.evaluate(benchmark, "simulated:bias=0.5,refuse=0.4", out="out", **given)
    table = bench.outcomes(run)
    table = table[~table.task.isin(["pc", "ba"])]  # of likelihoods; an analysis is any text
    assert table.refused.sum() / table.answered.sum() == pytest.approx(0.4, abs=0.06)
