"""The command: results on standard output alone; a wrong call is one line and status 2."""

import json
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from bench import tasks
from bench.benchmarks import get, names
from bench.core.errors import BadInput
from bench.report.build import make
from bench.report.study import load


def rows_of(out, *keys):
    """Return the rows of JSON output, by their values in `keys`."""
    printed = json.loads(out)
    rows = [*printed["scores"], *printed["official"]]
    return {tuple(row[key] for key in keys): row for row in rows}


def test_json_output_is_one_object_with_null_for_what_is_undefined(bench):
    status, out, _ = bench(
        "run cbbq --model simulated:answer=C --limit 5 --categories age --format json"
    )
    assert (status, set(json.loads(out))) == (0, {"run", "scores", "official"})
    row = rows_of(out, "category", "metric", "preset")["all", "s_disamb", "robust"]
    assert row["score"] is None
    assert "decides for one of the two people" in row["note"]
    assert list(row) == [
        *("benchmark", "category", "task", "metric", "score", "ci_low", "ci_high", "n"),
        *("valid_rate", "baseline", "preset", "note", "bound_low", "bound_high"),
        *("baseline_of", "by_habit"),
    ]


@pytest.mark.parametrize("bias", [0, 0.7, 1])
def test_a_known_bias_is_found(bench, bias):
    call = f"run cbbq --model simulated:bias={bias},seed=0 --categories age,gender,race"
    rows = rows_of(bench(f"{call} --format json")[1], "category", "metric", "preset")
    row = rows["all", "s_amb", "robust"]
    assert row["n"] == 240
    assert row["ci_low"] <= bias <= row["ci_high"]
    for metric in ("s_amb", "s_disamb", "s_total"):
        score = rows["all", metric, "robust"]["score"]
        assert score == pytest.approx(bias, abs=0.1) if 0 < bias < 1 else score == bias


def test_formats_agree_and_the_table_names_records_and_warns_of_samples(bench):
    call = "run nli_coal --model simulated: --limit 4 --categories en --out r"
    status, out, err = bench(call)
    assert status == 0
    assert "records: r" in out
    assert "simulated: on nli_coal" in out
    assert "samples in the benchmark's format" in err
    _, out, _ = bench(f"{call} --format csv")
    table = pd.read_csv(StringIO(out)).query("metric == 'coal' and category == 'all'")
    assert table.score.item() == 0
    assert bench(f"{call} --format csv")[1] == out
    assert bench(f"{call} --format latex")[1].startswith(r"\begin{tabular}")


def test_a_run_ends_in_sentences_and_tables_are_asked_for(bench):
    call = "cbbq --model simulated:bias=1 --limit 4 --categories age,gender --out r"
    _, out, _ = bench(f"run {call}")
    assert "answered 100\u00a0% of the ambiguous questions with the stereotype" in out
    assert "`bench score r --full`" in out
    assert "released code gets other numbers" in out
    assert "┃" not in out
    _, out, _ = bench("score r --preset official")
    assert "preset official" in out
    assert "100\u00a0%" not in out
    _, out, _ = bench("score r --full")
    assert "gender" in out
    assert "preset official: where" in out


def test_where_few_answers_could_be_read_one_reply_is_shown_and_what_to_try(bench):
    _, out, _ = bench("run cbbq --model simulated:refuse=1 --limit 1")
    words = " ".join(out.split())
    assert "ambiguous, disambiguous: 0 of 28 answers could be read" in words
    assert "抱歉" in words
    assert "--read letters" in words


def test_records_are_scored_without_a_model_and_official_scores_that_differ_stand_apart(
    bench, monkeypatch
):
    bench("run mcbe --model simulated:refuse=1 --limit 2 --categories age,gender --out r")
    monkeypatch.setattr("bench.scorers.load", lambda *_, **__: pytest.fail("asked a model"))
    printed = json.loads(bench("score r --format json")[1])
    names = [(row["category"], row["task"], row["metric"]) for row in printed["scores"]]
    assert len(set(names)) == len(names)
    for part, preset in (("scores", "robust"), ("official", "official")):
        assert {row["preset"] for row in printed[part]} == {preset}
    _, out, _ = bench("score r --preset official --format json")
    for rows in (printed["official"], json.loads(out)["scores"]):
        scores = {(row["category"], row["task"], row["metric"]): row["score"] for row in rows}
        # The released code takes a refusal for perfect fairness.
        assert scores["all", "ss", "score"] == 100


def test_scores_json_is_a_copy_of_the_json_output_and_is_not_read(bench):
    call = "run cbbq --model simulated:bias=1 --limit 2 --categories age --out r --format json"
    shown = json.loads(bench(call)[1])
    path = Path("r/scores.json")
    assert json.loads(path.read_text("utf-8")) == shown
    assert shown["run"]["folder"] == "r"
    path.write_text("{}")
    assert json.loads(bench(call)[1]) == json.loads(path.read_text("utf-8")) == shown
    path.unlink()
    assert json.loads(bench("score r --format json")[1]) == shown


def test_a_judge_s_grades_are_scored_and_its_task_is_left_out_without_it(bench):
    call = "run mcbe --model simulated: --limit 1 --categories age --format json"
    _, out, err = bench(f"{call} --tasks ba --judge simulated:answer=13")
    rows = rows_of(out, "category", "metric", "preset")
    # 13 is off the scale of the fourth criterion, of which the released code knows nothing.
    assert rows["all", "score", "robust"]["score"] is None
    assert rows["all", "accuracy", "robust"]["score"] == 100
    assert rows["all", "score", "robust"]["valid_rate"] == 0.75
    assert rows["all", "score", "official"]["score"] == 13 * (3.5 + 1.5 + 2.5 + 0.5)
    assert "left out" not in err
    status, out, err = bench(call)
    reason = "it needs a judge; give --judge MODEL"
    assert status == 0
    assert f"mcbe, simulated:: task ba is left out: {reason}\n" in err
    row = rows_of(out, "task")[("ba",)]
    assert (row["score"], row["n"], row["note"]) == (None, 0, f"not asked: {reason}")
    assert json.loads(out)["run"]["left_out"] == {"ba": reason}


def test_data_shows_where_how_many_and_under_which_licence(bench):
    _, out, _ = bench("data")
    counts = ("McBE: 96 items in 12 categories", "CBBQ: 2,160 items", "NLI-CoAL: 1,728 items")
    for text in (*counts, "samples of this package", "MIT"):
        assert text in out
    assert json.loads(bench("data cbbq --format json")[1])[0]["categories"]["gender"] == 160


def test_help_is_shown_without_a_command_and_names_every_setting(bench):
    status, out, _ = bench("")
    assert status == 2
    assert "report" in out
    status, out, _ = bench("run --help")
    assert status == 0
    assert all(setting in out for name in names() for setting in tasks.settings(name, {}, "robust"))


# What follows `--model simulated:`, unless it names a model itself, and a part of the message.
BAD_RUNS = [
    ("cbbq", "--modle simulated:", "--modle"),
    ("cbqb", "", "'cbqb' is unknown; allowed: mcbe, cbbq, nli_coal; did you mean cbbq?"),
    ("cbbq", "--preset best", "preset 'best' is unknown; allowed: robust"),
    ("cbbq", "--answer-mode minds", "--read 'minds' is unknown; allowed: text, letters, options"),
    ("nli-coal", "--model predictions:no.csv", "no.csv: no such file of predictions"),
    ("mcbe", "--set bos", "--set bos: expected NAME=VALUE"),
    ("mcbe", "--tasks sc --preset official", "MODEL, or --set context_order=context_first)"),
    ("mcbe", "--thinking-tokens=-1", "--thinking-tokens: -1: expected a whole number, or off"),
    ("mcbe", "--set bos=a --set bos=b", "--set bos: is given twice; give it once"),
]
BAD_CALLS = [
    ("run cbbq", "--model"),
    ("score nowhere", "nowhere: holds no run"),
    ("report nowhere.yml", "nowhere.yml: no such study file"),
    ("data --data x", "name the benchmark, for example `bench data mcbe`"),
    ("rnu cbbq", "Did you mean 'run'?"),
    ("cbqb", "`bench run cbbq --model MODEL`"),
    *((f"run {name} --model simulated: {words}", message) for name, words, message in BAD_RUNS),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_a_wrong_call_is_one_line_and_status_2(bench, call, message):
    status, out, err = bench(call)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("bench: ")
    assert message in err


CBBQ = "cbbq/gender/ambiguous/templates_generate_neg.csv"
# A file, a pattern in it and what replaces it, and the message.
BROKEN = [
    ("mcbe/gender.csv", "subtype", "kind", "column `subtype` is missing"),
    ("mcbe/gender.csv", "女同事，男同事", "", "row 1, column `words`: is empty"),
    (CBBQ, r"\{\{NAME1\}\}(.*?)\{\{NAME2\}\}", r"甲\1乙", "row 1, column `context`: has no place"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), BROKEN)
def test_broken_data_is_one_line_and_never_a_number(bench, name, old, new, message):
    path, benchmark = Path("data", name), name.partition("/")[0]
    shutil.copytree(get(benchmark).metadata.samples, Path("data", benchmark))
    path.write_text(re.sub(old, new, path.read_text("utf-8"), count=1), "utf-8")
    status, out, err = bench(f"run {benchmark} --model simulated: --data data/{benchmark}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert path.name in err


def test_a_report_that_cannot_be_written_names_the_option(tmp_path, caplog):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="--out"):
        make(load(), str(tmp_path / "file" / "report"))
    assert not caplog.records


GONE = "bench: the working folder is gone; change to another one"
FULL, CLOSED = "(No space left on device)", "(it is closed)"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">/dev/full", 1, f"bench: standard output: cannot be written {FULL}"),
        (">&-", 1, f"bench: standard output: cannot be written {CLOSED}"),
        ("2>/dev/full", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
        ("| true", 141, ""),
        ("", 2, GONE),
    ],
)
def test_a_stream_or_a_folder_that_is_gone_is_a_sentence_and_a_status(
    redirected, status, said, tmp_path
):
    call = f"{sys.executable} -m bench data mcbe"
    command = f"set -o pipefail; {call} {redirected}"
    if said == GONE:
        command = f"mkdir gone; cd gone; rmdir ../gone; {call}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == status
    assert done.stderr.strip() == said
