"""A fourth benchmark from another package runs through everything, with no edit in this one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

PLUGIN = Path(__file__).parent / "plugin"
PAGE = Path(__file__).parents[1] / "docs/new_benchmark.md"
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


def bench(folder: Path, *words: str) -> str:
    return python(folder, "-m", "bench", *words)


def python(folder: Path, *words: str) -> str:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PLUGIN)]))
    how = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path}, "text": True}
    done = subprocess.run([sys.executable, *words], capture_output=True, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_is_asked_and_scored(tmp_path: Path) -> None:
    asked = ("run", "everyday", "--model", "simulated:bias=1", "--data", "samples", "--out", "run")
    bench(tmp_path, *asked)
    code = (
        "import bench\n"
        "bench.score('run').to_csv('scores.csv')\n"
        "bench.outcomes('run').groupby('task').stereotyped.sum().to_csv('sums.csv')\n"
    )
    python(tmp_path, "-c", code)
    scores = pd.read_csv(tmp_path / "scores.csv").set_index(["category", "task", "metric"])
    # Whoever always follows the stereotype is never right: three scenes a category, two categories.
    assert scores.score["all", "ambiguous", "stereotyped"] == 1
    assert scores.score["all", "disambiguated", "accuracy"] == 0
    assert scores.n["age", "ambiguous", "stereotyped"] == 3
    assert scores.n["all", "ambiguous", "stereotyped"] == 6
    sums = pd.read_csv(tmp_path / "sums.csv", index_col="task").stereotyped
    assert sums["ambiguous"] == 6


@pytest.mark.parametrize("language", ["py", "toml"])
def test_the_page_shows_parts_of_the_example(language: str) -> None:
    files = {"py": "everyday_bench/__init__.py", "toml": "pyproject.toml"}
    text = (PLUGIN / files[language]).read_text("utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert blocks
    assert [block for block in blocks if block not in text] == []
    lines = sum(
        len(path.read_text("utf-8").splitlines()) for path in PLUGIN.glob("everyday_bench/*.py")
    )
    assert f"a single Python file of {lines} lines" in PAGE.read_text("utf-8")


@pytest.mark.slow
def test_a_study_has_its_page_and_analyses(tmp_path: Path) -> None:
    (tmp_path / "study.yml").write_text(STUDY)
    bench(tmp_path, "report", "study.yml", "--out", "report")
    pages = {path.stem for path in (tmp_path / "report").glob("*.html")}
    assert pages == {
        "index",
        "everyday",
        "answers-everyday",
        "data_quality",
        "compare_models",
        "explore",
    }
    assert "Ambiguous: stereotyped answers" in (tmp_path / "report/index.html").read_text("utf-8")
    ranks = pd.read_csv(tmp_path / "report/tables/compare_models/leaderboard_everyday.csv")
    assert len(ranks) == 3
    assert (tmp_path / "report/tables/data_quality/duplicates.csv").is_file()
