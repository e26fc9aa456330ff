"""Models that were asked under several conditions: which runs are compared, and scores of a CSV."""

from pathlib import Path
from typing import Any

import pytest

import bench
from bench.analyses.conditions import open_conditions, prompting
from bench.run import Run

MODELS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2"]


def ask(folder: Path, model: str = MODELS[0], **options: Any) -> Run:
    out = folder / str(len(list(folder.iterdir())))
    return bench.evaluate("cbbq", model, out=out, data="samples", limit=2, **options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "plain": ask(folder),
        "instructed": ask(folder, settings={"prompting": "Q+IF"}, categories=["age", "race"]),
        "reworded": ask(folder, prompts="reworded"),
        "warm": ask(folder, seed=7, prompts="reworded"),
        "hot": ask(folder, seed=8, prompts="reworded"),
        "other": ask(folder, MODELS[1]),
    }


def test_the_runs_count_that_were_asked_most_alike(runs: dict[str, Run]) -> None:
    for first in ("plain", "instructed"):
        order = sorted(runs, key=lambda name: name != first)
        outcomes, chosen = open_conditions([runs[name].folder for name in order])
        pair = [runs[name].folder for name in ("plain", "reworded")]
        assert [run.folder for run in chosen] == pair
    assert list(outcomes.prompts.unique()) == ["bench-cbbq-3", "bench-cbbq-3#reworded"]
    # A model without a second prompt set is left out.
    assert list(outcomes.model.unique()) == MODELS[:1]
    outcomes, _chosen = open_conditions(list(runs.values()), condition=prompting)
    assert list(outcomes.prompts.unique()) == ["Q", "Q+IF"]
    # Only questions that were asked under both count.
    assert set(outcomes.category) == {"age", "race"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["plain", "other"], "no model was asked under two prompt sets; there is simulated:bias=0"),
        (["plain", "warm", "hot"], "was asked under one condition in both"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    runs: dict[str, Run], refusal: Any, names: list[str], message: str
) -> None:
    assert message in refusal(open_conditions, [runs[name] for name in names])


def test_a_csv_is_compared_over_categories(tmp_path: Path, refusal: Any) -> None:
    file = tmp_path / "mine.csv"
    rows = [
        f"m,{c},{p},0.{k}{n}" for k, c in enumerate(["age", "race"]) for n, p in enumerate("ab")
    ]
    file.write_text("\n".join(["model,category,prompts,score", "m,all,a,0.9", *rows]))
    scores, chosen = open_conditions([], file)
    assert chosen == []
    assert list(scores.category) == ["age", "age", "race", "race"]
    (row,) = bench.compare(scores, "score", between="prompts", by="model").to_dict("records")
    assert (row["estimate"], row["n"]) == (pytest.approx(-0.01), 2)
    file.write_text("model,category,prompts,score\nm,age,a,0.5\nm,race,b,0.5\n")
    assert "m: no question was asked under all of a, b" in refusal(open_conditions, [], file)
    file.write_text("model,score\nm,0.5\n")
    assert "mine.csv: column 'prompts'" in refusal(open_conditions, [], file)
