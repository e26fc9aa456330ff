"""Outcomes of runs: shares of them are the scores, with the intervals of the score tables."""

import numpy as np
import pandas as pd
import pytest

import bench
from bench import run
from bench.metrics.primary import primary_metrics
from bench.run import results
from tests.helpers.recorded import cell

MODELS = ["simulated:bias=0.7,seed=1", "simulated:bias=0.3,seed=2"]
CATEGORIES = {"mcbe": ["age", "race"], "cbbq": ["age", "race"], "nli_coal": ["en", "zh"]}
INTERVAL = ["estimate", "ci_low", "ci_high"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Both models' runs on the samples of each benchmark."""
    folder, judges = tmp_path_factory.mktemp("runs"), {"mcbe": "simulated:"}
    return {
        name: run.evaluate_all(
            name, MODELS, folder, limit=15, judge=judges.get(name), categories=categories
        )
        for name, categories in CATEGORIES.items()
    }


@pytest.fixture(scope="module")
def tables(runs):
    """Outcomes and scores of each benchmark."""
    return {name: (bench.outcomes(*asked), bench.score(*asked)) for name, asked in runs.items()}


@pytest.mark.parametrize(
    ("benchmark", "task", "metric", "column", "of", "limits"),
    [
        ("cbbq", "ambiguous", "s_amb", "stereotyped", "answered", None),
        ("cbbq", "disambiguous", "s_disamb", "stereotyped", "names_person", None),
        ("cbbq", "disambiguous", "accuracy", "correct", "answered", None),
        ("cbbq", "ambiguous", "unknown", "says_unknown", "parsed", None),
        ("nli_coal", "all", "fn", "not_neutral", "parsed", None),
        ("mcbe", "ss", "score", "score", "scored", (0, 100)),
        ("mcbe", "bs", "score", "score", "scored", (0, 100)),
    ],
)
@pytest.mark.parametrize("category", ["each", "all"])
def test_a_share_of_outcomes_is_the_score_with_its_interval(
    tables, benchmark, task, metric, column, of, limits, category
):
    outcomes, scores = tables[benchmark]
    part = outcomes[outcomes.task.isin(["ps", "as", "ns"] if task == "all" else [task])]
    # Two categories of McBE have no groups to choose from.
    scores = scores[(scores.task == task) & (scores.metric == metric) & scores.score.notna()]
    keys = ["model", "category"] if category == "each" else ["model"]
    scores = scores[(scores.category == "all") == (category == "all")].set_index(keys)
    mean_over = None if category == "each" else "category"
    shares = bench.share(part, column, of=of, by=keys, mean_over=mean_over, limits=limits)
    shares = shares.set_index(keys).reindex(scores.index)
    assert len(shares)
    for ours, theirs in zip(INTERVAL, ["score", "ci_low", "ci_high"], strict=True):
        assert shares[ours].to_numpy() == pytest.approx(
            scores[theirs].to_numpy(), abs=1e-12, rel=1e-12, nan_ok=True
        )
    assert (shares.n == scores.n).all()


def test_a_model_that_cannot_be_read_has_no_share_of_stereotyped_answers(tmp_path):
    silent = run.evaluate("cbbq", "simulated:refuse=1", out=tmp_path, limit=4)
    outcomes = bench.outcomes(silent)
    for of in ("answered", "names_person"):
        (stereotyped,) = bench.share(outcomes, "stereotyped", of=of).to_dict("records")
        assert pd.isna(stereotyped["estimate"])
        assert "rows have no `stereotyped`" in stereotyped["note"]
    (parsed,) = bench.share(outcomes, "parsed").to_dict("records")
    assert parsed["estimate"] == 0


def test_runs_are_given_as_runs_folders_or_patterns(runs, refusal):
    first, second = runs["cbbq"]
    pattern = first.folder.parents[1] / "*" / "cbbq"
    given = bench.outcomes(first, str(second.folder))
    assert list(given.model.unique()) == [first.label, second.label]
    assert len(bench.outcomes(pattern)) == len(given)
    assert len(bench.score(pattern)) == len(bench.score(first, second))
    replies = bench.answers(first, second.folder)
    assert {"model", "benchmark", "prompt", "response", "parsed", "verdict"} <= {*replies}
    assert replies.columns.is_unique
    assert len(replies) == len(first.records) + len(second.records)
    message = refusal(bench.outcomes, str(pattern / "nothing*"))
    assert "nothing*: matches no folder of a run" in message
    assert "no run was given" in refusal(bench.answers)


MODEL = "simulated:bias=0.6,refuse=0.2,seed=1"


def test_models_are_compared_over_the_tasks_that_all_were_asked(tmp_path):
    options = {"categories": ["age", "gender", "race"], "limit": 4}
    runs = [
        run.evaluate("mcbe", f"{MODEL}{k}", tasks=names, out=tmp_path / str(k), **options)
        for k, names in enumerate((["pc", "sc", "bs"], ["sc", "bs"]))
    ]
    table, first = results.table(runs), runs[0].label
    assert primary_metrics(table, "mcbe")[0].metric == "score_common"
    own = table[(table.model == first) & (table.preset == "robust")]
    common = own[(own.metric == "score") & own.task.isin(["sc", "bs"]) & (own.category != "all")]
    by_category = common.groupby("category").score.mean()
    for category, expected in (("gender", by_category["gender"]), ("all", by_category.mean())):
        score = cell(own, "score_common", category=category, task="all").score
        assert score == pytest.approx(expected)
    ranked = bench.measure(bench.explain(bench.score(*runs)))
    ranked = ranked.query("model == @first and category != 'all'")
    ranked = ranked.set_index("category").score[by_category.index]
    np.testing.assert_allclose(ranked, by_category)
    assert primary_metrics(results.table(runs[:1]), "mcbe")[0].metric == "score"
