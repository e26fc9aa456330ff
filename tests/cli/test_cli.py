"""The command: results on standard output alone; a wrong call is one line and status 2."""

import json
import subprocess
import sys
import webbrowser
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from bench import tasks
from bench.benchmarks import get, names
from bench.report import build


def rows_of(out, *keys):
    """Return the rows of JSON output, by their values in `keys`."""
    printed = json.loads(out)
    rows = [*printed["scores"], *printed["official"]]
    return {tuple(row[key] for key in keys): row for row in rows}


def test_json_output_is_one_object_with_null_for_what_is_undefined(bench):
    call = "run cbbq --model simulated:answer=C --limit 5 --categories age --format json"
    status, out, _ = bench(call)
    assert (status, set(json.loads(out))) == (0, {"run", "scores", "official"})
    row = rows_of(out, "category", "metric", "preset")["all", "s_disamb", "robust"]
    assert row["score"] is None
    assert "decides for one of the two people" in row["note"]
    assert list(row) == [
        *("benchmark", "category", "task", "metric", "score", "ci_low", "ci_high", "n"),
        *("valid_rate", "baseline", "preset", "note", "bound_low", "bound_high"),
        *("baseline_of", "by_habit"),
    ]


def test_formats_agree_and_the_table_names_records_and_warns_of_samples(bench):
    call = "run nli_coal --model simulated: --limit 4 --categories en --out r"
    status, out, err = bench(call)
    assert status == 0
    assert "records: r" in out
    assert "simulated: on nli_coal" in out
    assert "Samples, not the items of the benchmark" in err
    _, out, _ = bench(f"{call} --format csv")
    table = pd.read_csv(StringIO(out)).query("metric == 'coal' and category == 'all'")
    assert table.score.item() == 0
    assert bench(f"{call} --format latex")[1].startswith(r"\begin{tabular}")


def test_a_run_ends_in_sentences_and_tables_are_asked_for(bench):
    call = "cbbq --model simulated:bias=1 --limit 4 --categories age,gender --out r"
    _, out, _ = bench(f"run {call}")
    assert "answered 100\u00a0% of the ambiguous questions with the stereotype" in out
    assert "`bench score r --full`" in out
    assert "released code gets other numbers" in out
    _, out, _ = bench("score r --preset official")
    assert "preset official" in out
    assert "100\u00a0%" not in out
    _, out, _ = bench("score r --full")
    assert "gender" in out
    assert "preset official: where" in out


def test_a_folder_above_runs_stands_for_all_of_them(bench):
    bench("run cbbq --model simulated: --limit 1 --out all/a")
    bench("run nli_coal --model simulated: --limit 1 --out all/b/c")
    status, out, _ = bench("score all")
    assert status == 0
    assert "simulated: on cbbq" in out
    assert "simulated: on nli_coal" in out
    assert "records: all/a all/b/c" in out
    assert bench("score none")[2].startswith("bench: none: holds no run")


def test_where_few_answers_could_be_read_one_reply_is_shown_and_what_to_try(bench):
    _, out, _ = bench("run cbbq --model simulated:refuse=1 --limit 1")
    words = " ".join(out.split())
    assert "ambiguous, disambiguous: 0 of 28 answers could be read" in words
    assert "抱歉" in words
    assert "--answer-mode letters" in words


def test_code_of_others_that_calls_exit_is_a_sentence(bench, monkeypatch):
    monkeypatch.setattr("bench.scorers.simulated.Simulated.check", lambda _: sys.exit("no key"))
    status, out, err = bench("run cbbq --model simulated:bias=1")
    assert (status, out) == (1, "")
    assert err == "bench: code of a model or a plug-in has ended the command: sys.exit('no key')\n"


def test_an_interrupt_within_a_command_stays_one(bench, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.scorers.simulated.Simulated.check", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench("run cbbq --model simulated:bias=1")


def test_records_are_scored_without_a_model_and_official_scores_that_differ_stand_apart(
    bench, monkeypatch
):
    bench("run mcbe --model simulated:refuse=1 --limit 2 --categories age,gender --out r")
    monkeypatch.setattr("bench.scorers.load", lambda *_, **__: pytest.fail("asked a model"))
    printed = json.loads(bench("score r --format json")[1])
    official = json.loads(bench("score r --preset official --format json")[1])["scores"]
    assert {row["preset"] for row in printed["scores"]} == {"robust"}
    for rows in (printed["official"], official):
        assert {row["preset"] for row in rows} == {"official"}
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


def test_a_task_that_needs_a_judge_is_left_out_without_one(bench):
    call = "run mcbe --model simulated: --limit 1 --categories age --format json"
    status, out, err = bench(call)
    reason = "it needs a judge; give --judge MODEL"
    assert status == 0
    assert f"mcbe, simulated:: task ba is left out: {reason}\n" in err
    row = rows_of(out, "task")[("ba",)]
    assert (row["score"], row["n"], row["note"]) == (None, 0, f"not asked: {reason}")
    assert json.loads(out)["run"]["skipped"] == {"ba": reason}


def test_a_local_copy_is_fetched_if_one_is_named(bench, monkeypatch, tmp_path):
    status, out, _ = bench(f"fetch cbbq --from {get('cbbq').metadata.samples}")
    assert status == 0
    assert (Path(out.strip()) / "age").is_dir()
    status, _, err = bench(f"fetch cbbq --from {tmp_path}/none")
    assert (status, "no such file or folder" in err) == (2, True)


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
    assert all(
        setting in out for name in names() for setting in tasks.settings(get(name), {}, "robust")
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("run cbbq", "--model"),
        ("score nowhere", "nowhere: holds no run"),
        ("report nowhere.yml", "nowhere.yml: no such study file"),
        ("data --data x", "name the benchmark, for example `bench data mcbe`"),
        ("rnu cbbq", "Did you mean 'run'?"),
        ("cbqb", "`bench run cbbq --model MODEL`"),
        ("run cbqb --model simulated:", "allowed: mcbe, cbbq, nli_coal; did you mean cbbq?"),
        ("run cbbq --modle simulated:", "--modle"),
        ("run cbbq --model simulated: --read a", "--answer-mode 'a' is unknown; allowed: text"),
        ("run nli-coal --model predictions:no.csv", "no.csv: no such file of predictions"),
        ("run cbbq --model tiny:s --system no.txt", "--system no.txt: cannot be read"),
        ("run mcbe --model simulated: --set bos", "--set bos: expected NAME=VALUE"),
        ("run mcbe --model simulated: --set bos=a --set bos=b", "--set bos: is given twice"),
        ("run mcbe --model simulated: --key sk-secret", "--key: expected HOST=NAME, once per host"),
        ("run mcbe --model simulated: --thinking-tokens=-1", "expected a whole number, or off"),
        (
            "run mcbe --model simulated: --tasks sc --preset official",
            "MODEL, or --set context_order=context_first)",
        ),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(bench, call, message):
    status, out, err = bench(call)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("bench: ")
    assert message in err


def test_a_report_that_cannot_be_written_names_the_option(bench):
    Path("file").touch()
    status, out, err = bench("report --out file/report")
    assert (status, out) == (2, "")
    assert "or give another --out" in err


def test_a_report_can_be_opened_in_a_browser(bench, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    index = Path("out/index.html").resolve()
    monkeypatch.setattr(build, "make", lambda plan, out: build.Made(index, []))
    assert (
        bench("report --out out")[:2] == bench("report --out out --open")[:2] == (0, f"{index}\n")
    )
    assert opened == [index.as_uri()]


UNWRITTEN = "bench: standard output: cannot be written"
GONE = "bench: the working folder is gone; change to another one"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">/dev/full", 1, f"{UNWRITTEN} (No space left on device)"),
        (">&-", 1, f"{UNWRITTEN} (it is closed)"),
        ("2>/dev/full", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
        ("| true", 141, ""),
        ("", 2, GONE),
    ],
)
def test_a_stream_or_a_folder_that_is_gone_is_a_sentence_and_a_status(
    redirected, status, said, tmp_path
):
    leave = "mkdir gone; cd gone; rmdir ../gone;" if said == GONE else ""
    call = f"set -o pipefail; {leave} {sys.executable} -m bench data mcbe {redirected}"
    done = subprocess.run(["bash", "-c", call], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (status, said)
