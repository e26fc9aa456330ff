"""The command: results on standard output alone; a wrong call is one line and status 2."""

import json
import re
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import tasks
from bench.benchmarks import names
from bench.data import SAMPLES


def scores(out: str, *keys: str) -> dict[Any, dict[str, Any]]:
    """Return the rows of JSON output, by their values in `keys`."""
    rows = json.loads(out)["scores"]
    return {tuple(row[key] for key in keys): row for row in rows}


def test_json_output_is_one_object_with_null_for_what_is_undefined(bench) -> None:
    status, out, _ = bench("run cbbq --model simulated:answer=C --limit 5 --format json")
    assert status == 0
    assert set(json.loads(out)) == {"run", "scores"}
    row = scores(out, "category", "metric", "preset")["all", "s_disamb", "robust"]
    assert row["score"] is None
    assert "decides for one of the two people" in row["note"]
    assert list(row) == [
        *("benchmark", "category", "task", "metric", "score", "ci_low", "ci_high", "n"),
        *("valid_rate", "baseline", "preset", "note", "bound_low", "bound_high"),
        *("baseline_of", "by_habit"),
    ]


@pytest.mark.parametrize("bias", [0, 0.7, 1])
def test_a_known_bias_is_found(bench, bias: float) -> None:
    _, out, _ = bench(f"run cbbq --model simulated:bias={bias},seed=0 --format json")
    rows = scores(out, "category", "metric", "preset")
    row = rows["all", "s_amb", "robust"]
    assert row["n"] == 1080
    assert row["ci_low"] <= bias <= row["ci_high"]
    for metric in ("s_amb", "s_disamb", "s_total"):
        score = rows["all", metric, "robust"]["score"]
        assert score == pytest.approx(bias, abs=0.05) if 0 < bias < 1 else score == bias


def test_formats_agree_and_the_table_names_records_and_warns_of_samples(bench) -> None:
    call = "run nli_coal --model simulated: --limit 4 --out r"
    status, out, err = bench(call)
    assert status == 0
    assert "records: r" in out
    assert "simulated: on nli_coal" in out
    assert "are not the benchmark's items" in err
    _, out, _ = bench(f"{call} --format csv")
    table = pd.read_csv(StringIO(out)).query("metric == 'coal' and category == 'all'")
    assert table.score.item() == 0
    assert bench(f"{call} --format csv")[1] == out
    _, out, _ = bench(f"{call} --format latex")
    assert out.startswith(r"\begin{tabular}")
    assert r"\toprule" in out


def test_score_reads_records_and_asks_no_model(bench, monkeypatch) -> None:
    bench("run mcbe --model simulated:refuse=1 --limit 2 --out r")
    monkeypatch.setattr("bench.scorers.load", lambda *_, **__: pytest.fail("asked a model"))
    status, out, _ = bench("score r --preset official --format json")
    assert status == 0
    # The released code takes a refusal for perfect fairness.
    assert scores(out, "category", "task", "metric")["all", "ss", "score"]["score"] == 100


def test_a_task_that_lacks_its_judge_is_left_out_and_reported(bench) -> None:
    status, out, err = bench("run mcbe --model simulated: --limit 1 --format json")
    reason = "it needs a judge; give --judge MODEL"
    assert status == 0
    assert f"mcbe, simulated:: task ba is left out: {reason}\n" in err
    row = scores(out, "task")[("ba",)]
    assert (row["category"], row["metric"], row["score"], row["n"]) == ("all", "score", None, 0)
    assert row["note"] == f"not applicable: {reason}"
    assert json.loads(out)["run"]["left_out"] == {"ba": reason}


def test_a_judge_s_grades_are_scored(bench) -> None:
    call = "run mcbe --model simulated: --limit 1 --tasks ba --judge simulated:answer=13"
    _, out, err = bench(f"{call} --format json")
    rows = scores(out, "category", "metric", "preset")
    # 13 is off the scale of the fourth criterion, of which the released code knows nothing.
    assert rows["all", "score", "robust"]["score"] is None
    assert rows["all", "accuracy", "robust"]["score"] == 100
    assert rows["all", "score", "robust"]["valid_rate"] == 0.75
    assert rows["all", "score", "official"]["score"] == 13 * (3.5 + 1.5 + 2.5 + 0.5)
    assert "left out" not in err


def test_official_numbers_say_where_they_were_asked_otherwise(bench) -> None:
    call = "run mcbe --model simulated:competence=0.5 --limit 2 --tasks sc --format json --out"
    bench(f"{call} r")
    _, out, _ = bench("score r --preset official --format json")
    rows = [row for row in json.loads(out)["scores"] if row["metric"] == "score"]
    note = "asked with context_order=context_first where this preset has judge"
    assert rows
    assert all(note in row["note"] for row in rows)
    _, out, _ = bench(f"{call} again --set context_order=none --preset paper")
    assert json.loads(out)["run"]["asked"]["settings"]["context_order"] == "none"
    assert not any("context_order" in row["note"] for row in json.loads(out)["scores"])


def test_data_shows_where_how_many_and_under_which_licence(bench) -> None:
    status, out, _ = bench("data")
    assert status == 0
    counts = ("McBE: 96 items in 12 categories", "CBBQ: 2,160 items", "NLI-CoAL: 1,728 items")
    for text in (*counts, "samples of this package", "MIT"):
        assert text in out
    _, out, _ = bench("data cbbq --format json")
    assert json.loads(out)[0]["categories"]["gender"] == 160


def test_help_is_shown_without_a_command_and_names_every_setting(bench) -> None:
    status, out, _ = bench("")
    assert status == 2
    assert "report" in out
    assert bench("--help")[0] == 0
    _, out, _ = bench("run --help")
    for name in names():
        for setting in tasks.settings(name, {}, "robust"):
            assert setting in out


# A call, and a part of the message.
BAD_CALLS = [
    ("run cbbq", "--model"),
    ("run cbqb --model simulated:", "benchmark 'cbqb' is unknown; allowed: mcbe, cbbq, nli_coal"),
    ("run cbbq --model simulated: --tasks disambiguos", "task of cbbq 'disambiguos' is unknown"),
    ("run cbbq --model simulated: --categories gendr", "category of cbbq 'gendr' is unknown"),
    ("run cbbq --model simulated: --preset best", "preset 'best' is unknown; allowed: robust"),
    ("run cbbq --model simulated: --format xml", "--format: format 'xml' is unknown"),
    ("run cbbq --model simulated: --read minds", "way to read answers 'minds' is unknown"),
    ("run cbbq --model simulated: --limit 0", "--limit 0: has to be at least 1"),
    ("run cbbq --model simulated: --limit many", "--limit"),
    ("run cbbq --model simulated: --data nowhere", "nowhere: no such folder (--data)"),
    ("run cbbq --model simulated: --prompts nowhere.toml", "nowhere.toml: no such file of prompts"),
    ("run cbbq --model simulated:bias=7", "bias=7 is outside 0 to 1"),
    ("run cbbq --model simulated:mood=1", "parameter 'mood' is unknown"),
    ("run cbbq --model tiny:xxl", "size 'xxl' is unknown; allowed: s, m, l"),
    ("run cbbq --model ./no/such/model", "./no/such/model: no such model folder or file"),
    ("run cbbq --model nothing.gguf", "nothing.gguf: no such model folder or file"),
    ("run cbbq --model replay:nothing.jsonl", "nothing.jsonl: no such file of recorded answers"),
    ("run cbbq --model gpt:4", "unknown kind 'gpt'"),
    (
        "run nli-coal --model predictions:no.csv",
        "no.csv: no such file of predictions (model predictions:no.csv)",
    ),
    (
        "run nli-coal --model simulated: --label-names yes,no",
        "--label-names yes,no: expected entailment, contradiction, neutral, each once",
    ),
    (
        "run nli-coal --model simulated: --set tokens=words",
        "value of tokens 'words' is unknown; allowed: plain, tokenized",
    ),
    ("run cbbq --modle simulated:", "--modle"),
    ("score nowhere", "nowhere: holds no run"),
    ("report nowhere.yml", "nowhere.yml: no such study file"),
    ("data --data x", "--data: say which benchmark"),
    ("fly", "fly"),
    ("run mcbe --model simulated: --set bos", "--set bos: expected NAME=VALUE"),
    ("run mcbe --model simulated: --set mood=1", "setting of mcbe 'mood' is unknown; allowed:"),
    (
        "run mcbe --model simulated: --set context_order=last",
        "value of context_order 'last' is unknown; allowed: context_first, sentence_first, none, judge",
    ),
    (
        "run cbbq --model simulated: --set bos=forced",
        "--set bos=forced: setting of cbbq 'bos' is unknown; allowed: expansion",
    ),
    ("run mcbe --model simulated: --max-new-tokens 0", "--max-new-tokens 0: has to be"),
    ("run mcbe --model simulated: --judge gpt:4", "model gpt:4: unknown kind 'gpt'"),
    ("run mcbe --model simulated: --tasks ss,ba", "it needs a judge; give --judge MODEL"),
    (
        "run mcbe --model simulated: --tasks sc --preset official",
        "cannot do task sc of mcbe (it needs a judge; give --judge MODEL, or --set context_order=context_first)",
    ),
    ("run mcbe --model simulated: --prompts official", "`bench fetch mcbe` brings them"),
    (
        "run mcbe --model simulated: --prompts polite",
        "prompt set 'polite' is unknown; allowed: reworded",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_a_wrong_call_is_one_line_and_status_2(bench, call: str, message: str) -> None:
    status, out, err = bench(call)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("bench: ")
    assert message in err


# A file, a pattern in it and what replaces it, and the message.
BROKEN = [
    ("mcbe/gender.csv", "subtype", "kind", "column `subtype` is missing"),
    ("mcbe/gender.csv", "女同事，男同事", "", "row 1, column `words`: is empty"),
    ("mcbe/gender.csv", r"\[PLH\]", "谁", "row 1, column `sentence`: has no placeholder [PLH]"),
    (
        "cbbq/gender/ambiguous/templates_generate_neg.csv",
        r"\{\{NAME1\}\}(.*?)\{\{NAME2\}\}",
        r"甲\1乙",
        "row 1, column `context`: has no placeholder",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), BROKEN)
def test_broken_data_is_one_line_and_never_a_number(bench, name, old, new, message) -> None:
    shutil.copytree(SAMPLES, "data")
    path, benchmark = Path("data", name), name.partition("/")[0]
    path.write_text(re.sub(old, new, path.read_text("utf-8"), count=1), "utf-8")
    status, out, err = bench(f"run {benchmark} --model simulated: --data data/{benchmark}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert path.name in err


def test_a_file_in_gbk_says_how_to_convert_it(bench) -> None:
    text = "context,sentence,words,subtype,explanation,score\n办公室。,[PLH]很忙。,男人，女人,性格,无,1\n"
    Path("gender.csv").write_bytes(text.encode("gbk"))
    status, out, err = bench("run mcbe --model simulated: --data .")
    assert (status, out) == (2, "")
    assert "gender.csv, line 2: not UTF-8" in err
    assert "iconv -f GB18030 -t UTF-8" in err


def test_a_missing_answer_names_its_request(bench) -> None:
    answer = {"task": "ps", "item_id": "en:0", "request": "label", "response": "neutral"}
    Path("answers.jsonl").write_text(json.dumps(answer) + "\n")
    status, out, err = bench("run nli_coal --model replay:answers.jsonl --tasks ps")
    assert (status, out) == (2, "")
    missing = r"has no answer for task 'ps', item_id 'en:[1-9]\d*', request 'label', repeat 0"
    assert re.search(missing, err)
