"""Outcomes of runs: shares of them are the scores, with the intervals of the score tables."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bench
from bench import run
from bench.run import Run

MODELS = ["simulated:bias=0.7,seed=1", "simulated:bias=0.3,seed=2"]
INTERVAL = ["estimate", "ci_low", "ci_high"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Run]]:
    """Both models' runs on the samples of each benchmark."""
    folder = tmp_path_factory.mktemp("runs")
    options: dict[str, Any] = {"mcbe": {"judge": "simulated:"}, "cbbq": {}, "nli_coal": {}}
    return {
        name: run.evaluate_all(name, MODELS, folder, **given) for name, given in options.items()
    }


@pytest.fixture(scope="module")
def tables(runs: dict[str, list[Run]]) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
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
    tables: dict[str, tuple[pd.DataFrame, pd.DataFrame]],
    benchmark: str,
    task: str,
    metric: str,
    column: str,
    of: str,
    limits: Any,
    category: str,
) -> None:
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


@pytest.mark.parametrize(
    ("benchmark", "task", "metric", "column", "of"),
    [
        ("cbbq", "all", "accuracy", "correct", "answered"),
        ("nli_coal", "all", "coal", "biased", "parsed"),
        ("mcbe", "all", "score", "score", "scored"),
    ],
)
def test_a_mean_over_tasks_and_categories_is_the_score(
    tables: dict[str, tuple[pd.DataFrame, pd.DataFrame]],
    benchmark: str,
    task: str,
    metric: str,
    column: str,
    of: str,
) -> None:
    outcomes, scores = tables[benchmark]
    part = outcomes[outcomes.task != "nt"]
    shares = bench.share(part, column, of=of, by="model", mean_over=["category", "task"])
    scores = scores[(scores.category == "all") & (scores.task == task) & (scores.metric == metric)]
    assert list(shares.estimate) == pytest.approx(list(scores.score))


def test_a_model_that_cannot_be_read_has_no_share_of_stereotyped_answers(tmp_path: Path) -> None:
    silent = run.evaluate("cbbq", "simulated:refuse=1", out=tmp_path, limit=4)
    outcomes = bench.outcomes(silent)
    for of in ("answered", "names_person"):
        (stereotyped,) = bench.share(outcomes, "stereotyped", of=of).to_dict("records")
        assert pd.isna(stereotyped["estimate"])
        assert "rows have no `stereotyped`" in stereotyped["note"]
    (parsed,) = bench.share(outcomes, "parsed").to_dict("records")
    assert parsed["estimate"] == 0


def test_runs_are_given_as_runs_folders_or_patterns(
    runs: dict[str, list[Run]], refusal: Any
) -> None:
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


def test_frames_of_several_benchmarks_are_one(runs: dict[str, list[Run]]) -> None:
    outcomes = bench.outcomes(*(asked[0] for asked in runs.values()))
    assert list(outcomes.benchmark.unique()) == [*runs]
    assert outcomes[["model", "category", "item_id", "cluster", "stratum"]].notna().all(axis=None)
    items = bench.items(*(run for asked in runs.values() for run in asked))
    assert list(items.benchmark.unique()) == [*runs]
    assert items.item_id.is_unique
    assert len(items[items.benchmark == "cbbq"]) == len(runs["cbbq"][0].items)
