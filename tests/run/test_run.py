"""Runs: what is asked in which order and of whom, kills, folders that are refused, run.json."""

import inspect
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

from bench import records, run, scorers
from bench.core.errors import CONTINUES, RunFailed
from bench.run import ask as asking
from bench.scorers import base
from bench.scorers.base import Answer
from bench.scorers.names import path_slug, short_name
from bench.scorers.simulated import Simulated
from tests.helpers.recorded import cell, columns, watch

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
ASKED = {"tasks": ["ss"], "categories": ["age", "race"], "repeats": 4, "seed": 3, "data": "samples"}

pytestmark = pytest.mark.usefixtures("small_blocks")


def ask(out="out", model=MODEL, **options):
    return run.evaluate("mcbe", model, out=out, **{**ASKED, **options})


@pytest.mark.parametrize("path", [r"C:\models\qwen", "D:/models/qwen", r"c:\models\qwen.gguf"])
def test_a_path_of_windows_is_a_path_and_no_kind(refusal, path):
    assert "no such model folder or file" in refusal(scorers.check, path)
    assert short_name(path) == "qwen"
    assert scorers.split_kind(f"replay:{path}") == ("replay", path)


@pytest.mark.parametrize(
    "model", ["..", "../../x", "/etc", "a/../b", "..\\x", "C:x", "", "a\0\n", "x" * 300]
)
def test_a_model_is_the_name_of_one_folder(model):
    name = path_slug(model)
    assert 0 < len(name) <= 80
    assert Path("runs", name).resolve().parent == Path("runs").resolve()
    assert not set(name) & set("/\\:\0\n")


@pytest.mark.skipif(os.name == "nt", reason="names of files are always Unicode on Windows")
def test_names_and_output_are_utf8_whatever_the_platform_says():
    command = "bench run cbbq --model simulated: --categories gender --limit 1 --out 输出"
    encodings = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"}
    call, env = [sys.executable, "-m", *command.split()], os.environ | encodings
    done = subprocess.run(call, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "records: 输出" in (done.stdout + done.stderr).decode("utf-8")
    assert Path("输出/run.json").is_file()


PROMPT = "version = 'v'\n[scenario_selection]\nprompt = '1 {sentence1} 2 {sentence2}'\n"
TABLE = "context,sentence,words,subtype,explanation,score\n开会，,[PLH]先说。,甲，乙,x,y,1\n"


@pytest.mark.parametrize(
    ("change", "prompt", "table", "message"),
    [
        ({"model": "simulated:bias=1"}, PROMPT, TABLE, "--model was simulated:bias=0.6"),
        ({"tasks": ["ss", "pc"]}, PROMPT, TABLE, "--tasks was ss, now pc,ss"),
        ({"tasks": None}, PROMPT, TABLE, "--tasks was ss, now pc,"),
        ({"max_new_tokens": 9}, PROMPT, TABLE, "--max-new-tokens was not given, now 9"),
        ({"seed": 4, "repeats": 1}, PROMPT, TABLE, "--repeats was 4, now 1; --seed was 3, now 4)"),
        ({"settings": {"bos": "forced"}}, PROMPT, TABLE, "--set bos was tokenizer, now forced"),
        ({}, PROMPT.replace("1 {", "a {"), TABLE, "the content of --prompts was"),
        ({}, PROMPT, TABLE.replace("甲", "丙"), "the content of --data was"),
    ],
)
def test_a_run_that_would_be_another_one_is_refused(refusal, change, prompt, table, message):
    Path("own.toml").write_text(PROMPT, "utf-8")
    Path("age.csv").write_text(TABLE, "utf-8")
    given = {"prompts": "own.toml", "data": ".", "categories": ["age"]}
    ask(**given)
    Path("own.toml").write_text(prompt, "utf-8")
    Path("age.csv").write_text(table, "utf-8")
    assert refusal(ask, **{**given, **change}).startswith(f"out: holds another run ({message}")


def test_the_signature_of_evaluate_has_the_options():
    parameters = inspect.signature(run.evaluate).parameters
    assert list(parameters)[:4] == ["benchmark", "model", "partial", "loaded"]
    assert {"limit", "categories", "prompts", "seed", "out"} <= parameters.keys()
    assert parameters["repeats"].default == 1
    assert "options" not in parameters


def test_a_finished_run_is_opened_without_its_items_under_the_last_preset_and_name(monkeypatch):
    first = ask()
    monkeypatch.setattr("bench.data.read", Mock(side_effect=AssertionError("items were read")))
    again = ask(preset="official", name="mine")
    pd.testing.assert_frame_equal(again.records, first.records)
    assert {"preset": "official", "name": "mine"}.items() <= run.Run.open("out").metadata.items()


def test_tasks_that_were_skipped_are_refused_without_partial_and_get_no_judge_later(refusal):
    ask(tasks=["ss", "ba"], partial=True)
    assert "cannot ask task ba of mcbe (it needs a judge" in refusal(ask, tasks=["ss", "ba"])
    assert "holds another run (--judge was not given" in refusal(
        ask, tasks=["ss", "ba"], judge=JUDGE
    )


def test_a_folder_of_something_else_is_refused(refusal):
    Path("mine.txt").touch()
    assert refusal(ask, ".") == ".: is not empty and holds no run; give another --out"


def test_a_limit_is_by_category_and_task_and_spread_over_templates():
    result = run.evaluate("cbbq", MODEL, limit=10, categories=["age", "gender"], out="out")
    sizes = result.records.groupby(["category", "task"]).size()
    assert sizes.tolist() == [10] * 4
    # Ten templates per context, five of each polarity: one question of each.
    n_templates = result.items.groupby(["category", "condition"]).template.nunique()
    assert n_templates.tolist() == [10] * 4


def test_repeats_ask_everything_again_with_the_next_seed_in_the_order_of_tasks():
    rows = ask(tasks=["ss", "pc"], limit=2).records
    assert sorted(set(zip(rows.repeat, rows.seed, strict=True))) == [(k, 3 + k) for k in range(4)]
    parts = [part.reset_index(drop=True) for _, part in rows.groupby("repeat")]
    assert list(dict.fromkeys(parts[0].task)) == ["pc", "ss"]
    names = ["item_id", "request", "prompt"]
    assert all(part[names].equals(parts[0][names]) for part in parts)
    assert parts[0].response.tolist() != parts[1].response.tolist()


@pytest.mark.parametrize(
    ("project", "reports"), [("bias-workbench", "reports"), ("other", "work/reports")]
)
def test_without_out_a_run_goes_to_the_reports_of_the_checkout_or_working_folder(
    own_folder, monkeypatch, project, reports
):
    (own_folder / "work").mkdir()
    monkeypatch.chdir(own_folder / "work")
    (own_folder / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    first, again, other = ask(None), ask(None), ask(None, seed=1)
    assert first.folder == again.folder != other.folder
    assert first.folder.parent == own_folder / reports / "runs" / MODEL.replace(":", "_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": {"bos": "yes"}}, "value of bos 'yes' is unknown; allowed: tokenizer, forced"),
        ({"tasks": ["ba"]}, "(it needs a judge; give --judge MODEL); tasks that remain: none"),
        ({"categories": ["worldview"]}, "leaves nothing to ask"),
        ({"resources": {"GPU": 1}}, "--resources: says what workers of a cluster have to offer"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(refusal, options, message):
    assert message in refusal(ask, **options)
    assert not Path("out").exists()


# With a judge, in stages.

JUDGE = "simulated:competence=0.7,seed=9"


def judged(out="out", **options):
    """Run the three tasks that can need a judge, who also chooses the order of texts."""
    given = {"judge": JUDGE, "tasks": ["sc", "ba", "bs"], "categories": ["age", "worldview"]}
    given |= {"limit": 2, "repeats": 2, "settings": {"context_order": "judge"}}
    return run.evaluate("mcbe", MODEL, out=out, **{**given, **options})


@pytest.fixture
def asked(monkeypatch):
    """The requests to model and judge: all are answered by 5, but the model refuses age:3."""
    requests = []

    def answer(self, new):
        requests.extend(new)
        refused = [r.item_id == "age:3" and not r.of_judge for r in new]
        return [Answer("", error="refused") if refuses else Answer("5") for refuses in refused]

    monkeypatch.setattr(Simulated, "answer", answer)
    return requests


def test_an_answer_that_did_not_come_is_not_graded(asked):
    result = judged(tasks=["ba"], repeats=1)
    rows = result.answers().set_index(["item_id", "request"])
    row = rows.loc["age:3", "judge:4"]
    assert (row.error, row.response, row.prompt, row.valid) == (asking.NOT_ASKED, "", "", False)
    assert "age:3" not in {request.item_id for request in asked if request.of_judge}
    scores = result.scores()
    # Grades of 5 of 13 in three criteria and of 5 of 5 in one, of three analyses.
    assert cell(scores, preset="robust").score == pytest.approx(5 * (3.5 + 1.5 + 2.5 + 0.5))
    assert cell(scores, category="age", preset="robust").valid_rate == 0.5


@pytest.mark.parametrize("n_blocks", range(5))
def test_a_run_that_was_killed_at_any_block_continues_as_if_it_was_not(monkeypatch, n_blocks):
    judged("undisturbed")
    expected, add, added = columns("undisturbed"), records.add, []
    of_judge = expected.request.str.startswith("judge")
    assert [value for value, _ in groupby(of_judge)] == [False, True]

    def killed(folder, rows):
        if len(added) == n_blocks:
            raise KeyboardInterrupt
        added.append(rows)
        add(folder, rows)

    with monkeypatch.context() as patch:
        patch.setattr(records, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            judged("killed")
    assert records.count(Path("killed")) == sum(map(len, added))
    judged("killed")
    pd.testing.assert_frame_equal(columns("killed"), expected)


def test_answers_that_have_come_are_recorded_at_an_interrupt(asked, monkeypatch):
    waiting = []

    def stream(self, blocks):
        requests = [request for block in blocks for request in block]
        answers = list(zip(requests, self.answer(requests), strict=True))
        yield answers[:1]
        waiting.extend(answers[1:5])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "stream", stream)
        patch.setattr(Simulated, "waiting", lambda self: waiting)
        with pytest.raises(KeyboardInterrupt):
            ask()
    assert records.count(Path("out")) == 5
    ask("undisturbed")
    ask()
    pd.testing.assert_frame_equal(columns("out"), columns("undisturbed"))


@pytest.mark.parametrize(
    ("seconds", "sizes"), [(0.1, [4, 16, 16, 16]), (5, [4, 12, 4, 12]), (30, [4, 4, 4, 4])]
)
def test_the_answers_of_a_slow_model_are_saved_by_the_minute(monkeypatch, seconds, sizes):
    now, asked = [0.0], []

    def wait(requests):
        now[0] += seconds * len(requests)
        asked.append(len(requests))

    monkeypatch.setattr(base.time, "perf_counter", lambda: now[0])
    watch(monkeypatch, wait)
    ask()
    assert asked[:4] == sizes


def test_a_judge_that_fails_is_named_and_the_run_continues(asked, monkeypatch):
    def fail(requests):
        if requests[0].of_judge:
            raise RuntimeError("out of memory\nat line 1")

    message = r"the judge did not answer \(RuntimeError: out of memory\); the same command"
    with monkeypatch.context() as patch:
        watch(patch, fail)
        with pytest.raises(RunFailed, match=message):
            judged(tasks=["ba"])
    analyses = len(asked)
    judged(tasks=["ba"])
    assert all(request.of_judge for request in asked[analyses:]), "the analyses are on record"
    # Four criteria; the analyses of one item were refused in both repeats.
    assert len(asked) - analyses == 4 * (analyses - 2)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (RuntimeError(), "RuntimeError"),
        (KeyError("x"), "KeyError: 'x'"),
        (OSError("no disk"), "OSError: no disk"),
    ],
)
def test_an_error_is_explained_by_its_class_and_its_message(asked, monkeypatch, error, reason):
    def fail(requests):
        raise error

    watch(monkeypatch, fail)
    with pytest.raises(
        RunFailed, match=rf"the model did not answer \({reason}\); the same command"
    ):
        ask()


@pytest.mark.parametrize(
    "reason", ["the server is gone", f"the server is gone; {CONTINUES}"], ids=["short", "whole"]
)
def test_a_failed_run_says_once_that_it_continues(asked, monkeypatch, reason):
    def fail(requests):
        raise RunFailed(reason)

    watch(monkeypatch, fail)
    with pytest.raises(RunFailed, match="the server is gone") as raised:
        ask()
    assert str(raised.value).count(CONTINUES) == 1
    assert str(raised.value).endswith(f"the server is gone; {CONTINUES}")


@pytest.mark.parametrize("role", ["model", "judge"])
def test_another_model_or_judge_of_the_name_may_not_continue_a_run(refusal, role):
    metadata = judged().metadata
    Path("out/records/answers.parquet").unlink()
    records.write_run_json(Path("out"), {**metadata, role: {**metadata[role], "revision": "0"}})
    message = f"out: was begun with another {role} (revision was 0, now 1"
    assert refusal(judged).startswith(message)
