"""A fourth benchmark from another package runs through everything, with no edit in this one."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

PLUGIN = Path(__file__).parent / "plugin"
STUDY = """
title: A fourth benchmark
question: Does it run through everything?
models: ["simulated:bias=0.2", "simulated:bias=0.9", "tiny:s"]
benchmarks:
  everyday: {data: samples}
analyses:
  data_quality: {}
  compare_models: {benchmarks: []}
  explore: {}
"""


def bench(folder: Path, *arguments: str) -> str:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PLUGIN)]))
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_is_asked_and_scored(tmp_path: Path) -> None:
    asked = ("run", "everyday", "--model", "simulated:bias=1", "--data", "samples", "--out", "run")
    bench(tmp_path, *asked)
    (tmp_path / "scores.csv").write_text(bench(tmp_path, "score", "run", "--format", "csv"))
    scores = pd.read_csv(tmp_path / "scores.csv").set_index(["category", "task", "metric"])
    # Whoever always follows the stereotype is never right: three scenes a category, two categories.
    assert scores.loc[("all", "ambiguous", "stereotyped"), "score"] == 1
    assert scores.loc[("all", "disambiguated", "accuracy"), "score"] == 0
    assert scores.loc[("age", "ambiguous", "stereotyped"), "n"] == 3
    assert scores.loc[("all", "ambiguous", "stereotyped"), "n"] == 6


@pytest.mark.slow
def test_a_study_has_its_page_and_analyses(tmp_path: Path) -> None:
    (tmp_path / "study.yml").write_text(STUDY)
    bench(tmp_path, "report", "study.yml", "--out", "report")
    pages = {path.stem for path in (tmp_path / "report").glob("*.html")}
    assert pages == {"index", "everyday", "data_quality", "compare_models", "explore"}
    assert "Ambiguous: stereotyped answers" in (tmp_path / "report/index.html").read_text("utf-8")
    ranks = pd.read_csv(tmp_path / "report/tables/compare_models/leaderboard_everyday.csv")
    assert len(ranks) == 3
    assert (tmp_path / "report/tables/data_quality/duplicates.csv").is_file()
