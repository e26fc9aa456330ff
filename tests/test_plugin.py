"""A fourth benchmark from another package runs through everything, with no edit in this one."""

import os
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

PLUGIN = Path(__file__).parent / "plugin"
PAGE = Path(__file__).parents[1] / "docs/new_benchmark.md"


def python(folder, *words, plugin=PLUGIN):
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(plugin)]))
    how = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path}, "text": True}
    done = subprocess.run([sys.executable, *words], capture_output=True, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


CODE = """
import bench
run = bench.evaluate("everyday", "simulated:bias=1", data="samples", out="run")
print(bench.score(run).to_csv(), bench.outcomes(run).to_csv(), sep="@")
"""


def test_a_model_is_asked_and_scored(tmp_path):
    table, outcomes = map(pd.read_csv, map(StringIO, python(tmp_path, "-c", CODE).split("@")))
    scores = table[table.preset == "robust"].set_index(["category", "task", "metric"])
    # Whoever always follows the stereotype is never right: three scenes a category, two categories.
    assert scores.score["all", "ambiguous", "stereotyped"] == 1
    assert scores.score["all", "disambiguated", "accuracy"] == 0
    assert scores.n["age", "ambiguous", "stereotyped"] == 3
    assert outcomes.groupby("task").stereotyped.sum()["ambiguous"] == 6


CAUTIOUS = """
import bench
from bench.benchmarks import get
run = bench.evaluate("everyday", "simulated:bias=1", data="samples", out="run")
letter = {"stereotyped": "A", "other": "B", "unknown": "C"}
right = [letter[run.items.set_index("item_id").answer[name]] for name in run.records.item_id]
for replies in (right, "C", "A", ["C" if letter == "C" else "A" for letter in right]):
    records = run.records.assign(response=replies, parsed=replies)
    table = get("everyday").scoring(records, run.items, "robust").table()
    print(*table[table.category == "all"].by_habit.unique())
"""


def test_unknown_where_not_enough_is_said_is_no_habit(tmp_path):
    # The last one names the person at A whatever the facts are.
    assert python(tmp_path, "-c", CAUTIOUS).split() == ["False", "True", "True", "True"]


RULES = """
from pathlib import Path
from everyday_rules import letters
def rules():
    from everyday_later import unknown
    return [letters, unknown, Path(__file__).with_name("rules.json").read_text()]
"""
HASH = "from bench import benchmarks; print(benchmarks.get('everyday').code.sha256)"


def test_the_code_of_a_plug_in_is_known_wherever_it_lies(tmp_path):
    plugin = shutil.copytree(PLUGIN, tmp_path / "plug")
    (plugin / "everyday_bench/rules.py").write_text(RULES)
    files = {
        "everyday_bench/rules.json": "[]",
        "everyday_rules.py": "letters = 'ABC'",
        "everyday_later/__init__.py": "from everyday_later.parts import unknown",
        "everyday_later/parts.py": "unknown = 'C'",
        "another.py": "",
    }
    for name, text in files.items():
        (plugin / name).parent.mkdir(exist_ok=True)
        (plugin / name).write_text(text)
    hashes = [python(tmp_path, "-c", HASH, plugin=plugin)]
    for name, text in files.items():
        (plugin / name).write_text(f"{text}\n")
        hashes.append(python(tmp_path, "-c", HASH, plugin=plugin))
    # Nothing of the plug-in imports the last one.
    *made_of, other = hashes
    assert len(set(made_of)) == len(made_of)
    assert other == made_of[-1]


@pytest.mark.parametrize(
    ("name", "language"), [("everyday_bench/__init__.py", "py"), ("pyproject.toml", "toml")]
)
def test_the_page_shows_parts_of_the_example(name, language):
    text = (PLUGIN / name).read_text("utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert blocks
    assert [block for block in blocks if block not in text] == []


@pytest.mark.slow
def test_a_study_has_its_page_and_analyses(tmp_path):
    python(tmp_path, "-m", "bench", "report", PLUGIN / "study.yml", "--out", "report")
    pages = {path.stem for path in (tmp_path / "report").glob("*.html")}
    analyses = {"data_quality", "compare_models", "explore"}
    assert pages == {"index", "everyday", "answers-everyday", *analyses}
    assert "Ambiguous: stereotyped answers" in (tmp_path / "report/index.html").read_text("utf-8")
    ranks = pd.read_csv(tmp_path / "report/tables/compare_models/leaderboard.csv")
    assert len(ranks) == 3
    assert (tmp_path / "report/tables/data_quality/duplicates.csv").is_file()
