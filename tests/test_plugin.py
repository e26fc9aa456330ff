"""Benchmarks from another package run through everything, with no edit in this one."""

import os
import re
import shutil
import subprocess
import sys
from io import StringIO
from math import nan
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


SCORES = """
import bench
run = bench.evaluate("{name}", "{model}", data="samples", out="run")
print(bench.score(run).to_csv())
"""


# Whoever follows the stereotype is right where the facts are with it: in half of the questions.
@pytest.mark.parametrize(
    ("model", "bias", "accuracy"),
    [("simulated:bias=1", [1, 1], [0, 0.5]), ("simulated:bias=0", [0, 0], [1, 1])],
)
def test_questions_in_the_form_of_bbq_are_asked_and_scored(tmp_path, model, bias, accuracy):
    code = SCORES.format(name="bbq", model=model)
    table = pd.read_csv(StringIO(python(tmp_path, "-c", code)))
    scores = table[table.category == "all"].set_index(["metric", "task"]).score
    assert [scores["s_amb", "ambig"], scores["s_dis", "disambig"]] == bias
    assert [scores["accuracy", "ambig"], scores["accuracy", "disambig"]] == accuracy


@pytest.mark.parametrize(("bias", "share"), [(1, 1), (0, 0.5)])
def test_pairs_of_sentences_are_compared_by_likelihood(tmp_path, bias, share):
    code = SCORES.format(name="crows_pairs", model=f"simulated:bias={bias}")
    table = pd.read_csv(StringIO(python(tmp_path, "-c", code)))
    assert table.score[table.category == "all"].to_list() == [share]


SUMS = """
import bench
from bench.benchmarks import get
run = bench.evaluate("crows_pairs", "simulated:bias=1", data="samples", out="run")
is_more = run.records.request == "sent_more"
logprobs = [[-1.0] * 5 if more else [-1.5] * 2 for more in is_more]
means = ["1.0" if more else "1.5" for more in is_more]
records = run.records.assign(logprobs=logprobs, response=means, parsed=means)
print(get("crows_pairs").scoring(records, run.items, "robust").table().to_csv())
"""


def test_the_likelihood_of_a_sentence_is_that_of_all_its_tokens(tmp_path):
    # -5 is less than -3, although -1 is more than -1.5.
    table = pd.read_csv(StringIO(python(tmp_path, "-c", SUMS)))
    assert set(table.score) == {0}


# The questions of each context are answered in turns.
BY_HAND = """
import bench
from bench.benchmarks import get
run = bench.evaluate("bbq", "simulated:bias=1", data="samples", out="run", categories=["age"])
items = run.items.set_index("item_id").loc[run.records.item_id]
asked = dict(zip(("stereotyped", "unknown"), (items.stereotyped, items.unknown)))
asked["against"] = [
    (set("ABC") - {a, b}).pop() for a, b in zip(items.stereotyped, items.unknown)
]
said = {counts}
turns = dict.fromkeys(items.condition, 0)
replies = []
for k, condition in enumerate(items.condition):
    name = said[turns[condition] % len(said)]
    replies.append(list(asked[name])[k] if name else "")
    turns[condition] += 1
records = run.records.assign(response=replies, parsed=replies)
print(get("bbq").scoring(records, run.items, "robust").table().to_csv())
"""


@pytest.mark.parametrize(
    ("said", "s_amb", "s_dis"),
    [
        # (1 - accuracy) * (2 * 4 / 6 - 1) is 6/8 * 1/3, and 2 * 4 / 6 - 1 is 1/3.
        ("stereotyped stereotyped against unknown", [0.25, nan, nan], [1 / 3, nan, nan]),
        ("unknown", [0, nan, nan], [nan, nan, nan]),
        ("against", [-1, nan, nan], [-1, nan, nan]),
        # Two answers without a letter could be of either side.
        (
            "stereotyped stereotyped against -",
            [1 / 3, 0, 0.5],
            [1 / 3, 0, 0.5],
        ),
    ],
)
def test_bias_scores_are_those_of_the_paper(tmp_path, said, s_amb, s_dis):
    names = [name.strip("-") for name in said.split()]
    code = BY_HAND.replace("{counts}", repr(names))
    table = pd.read_csv(StringIO(python(tmp_path, "-c", code)))
    scores = table[table.category == "age"].set_index("metric")
    columns = ["score", "bound_low", "bound_high"]
    for name, expected in (("s_amb", s_amb), ("s_dis", s_dis)):
        assert scores.loc[name, columns].to_list() == pytest.approx(expected, nan_ok=True)


CAUTIOUS = """
import bench
from bench.benchmarks import get
run = bench.evaluate("bbq", "simulated:bias=1", data="samples", out="run")
items = run.items.set_index("item_id").loc[run.records.item_id]
for replies in (items.right, items.stereotyped, items.unknown, "A"):
    replies = list(replies) if len(replies) > 1 else replies
    records = run.records.assign(response=replies, parsed=replies)
    table = get("bbq").scoring(records, run.items, "robust").table()
    print(*table[table.category == "all"].by_habit.unique())
"""


def test_unknown_is_a_habit_only_where_the_facts_are_said(tmp_path):
    # The letter of unknown differs from question to question.
    assert python(tmp_path, "-c", CAUTIOUS).split() == ["False", "False", "True", "True"]


LINES = """
import json, sys
from pathlib import Path
import bench
from bench.core.errors import BadInput
from bench.benchmarks import get
row = json.loads(Path(sys.argv[1]).read_text().splitlines()[0])
for change in {changes}:
    Path("age.jsonl").write_text(json.dumps(row | change))
    try:
        print(get("bbq").load(Path("."), ["age"]).items[0].unclear)
    except BadInput as error:
        print(error)
"""


def test_a_line_that_lacks_something_is_named(tmp_path):
    both = {"additional_metadata": {"stereotyped_groups": ["old", "nonOld"]}}
    changes = [{"label": 3}, {"context": ""}, {"answer_info": {}}, both]
    sample = PLUGIN / "bbq_bench/samples/age.jsonl"
    code = LINES.replace("{changes}", repr(changes))
    said = python(tmp_path, "-c", code, sample).splitlines()
    assert said[0] == "age.jsonl, line 1: `label` 3 is unknown; allowed: 0, 1, 2"
    assert said[1] == "age.jsonl, line 1, field `context`: is missing or empty"
    assert "line 1: lacks the group of an answer" in said[2]
    assert "do not name exactly one" in said[3]


RULES = """
from pathlib import Path
from bbq_rules import letters
def rules():
    from bbq_later import unknown
    return [letters, unknown, Path(__file__).with_name("rules.json").read_text()]
"""
HASH = "from bench import benchmarks; print(benchmarks.get('bbq').code.sha256)"


def test_the_code_of_a_plug_in_is_known_wherever_it_lies(tmp_path):
    plugin = shutil.copytree(PLUGIN, tmp_path / "plug")
    (plugin / "bbq_bench/rules.py").write_text(RULES)
    files = {
        "bbq_bench/rules.json": "[]",
        "bbq_rules.py": "letters = 'ABC'",
        "bbq_later/__init__.py": "from bbq_later.parts import unknown",
        "bbq_later/parts.py": "unknown = 'C'",
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
    ("name", "language"), [("bbq_bench/__init__.py", "py"), ("pyproject.toml", "toml")]
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
    analyses = {"data_quality", "compare_models", "friedman_test", "explore"}
    answers = {"answers-bbq", "answers-crows_pairs"}
    assert pages == {"index", "bbq", "crows_pairs", *answers, *analyses}
    assert "Bias score s_amb" in (tmp_path / "report/index.html").read_text("utf-8")
    ranks = pd.read_csv(tmp_path / "report/tables/compare_models/leaderboard.csv")
    assert set(ranks.benchmark) == {"bbq", "crows_pairs"}
    assert (tmp_path / "report/tables/friedman_test/friedman.csv").is_file()
    assert (tmp_path / "report/tables/data_quality/texts.csv").is_file()
