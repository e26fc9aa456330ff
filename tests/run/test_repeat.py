"""Repeating a run from its `run.json`: the same records, and no run that would be another one."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import records
from bench.benchmarks import get
from bench.run import Run, evaluate, repeat, repeating
from tests.helpers.recorded import columns, command

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
OPTIONS = {"categories": ["gender", "age"], "limit": 6, "seed": 3, "repeats": 2}
OPTIONS |= {"settings": {"prompting": "Q+IF"}, "prompts": "bare"}


@pytest.fixture
def first(own_folder: Path) -> Run:
    return evaluate("cbbq", MODEL, out="first", **OPTIONS)


def edited(run: Run, folder: str, **about: Any) -> Path:
    """A copy of a run's `run.json` alone, with other entries."""
    records.write_run_json(Path(folder), {**run.about, **about})
    return Path(folder) / records.RUN_JSON


def assert_repeated(folder: Path | str = "again", of: Path | str = "first") -> None:
    pd.testing.assert_frame_equal(columns(folder), columns(of), check_exact=True)


def test_run_json_alone_gives_the_same_records(first: Run, capsys, monkeypatch) -> None:
    # Data that were found in a usual place are found there again.
    shutil.copytree(get("cbbq").metadata.samples, "other/cbbq")
    monkeypatch.setenv("BENCH_DATA", "other")
    found = {"found": "$BENCH_DATA", "folder": "no/longer/there"}
    repeat(edited(first, "alone", data={**first.about["data"], **found}), out="again")
    assert_repeated()
    repeat("first", out="again", seed=3, categories=["gender", "age"])
    assert "all 48 answers are the same" in capsys.readouterr().err
    place = f"reports/runs/{MODEL.replace(':', '_')}/cbbq-{first.about['identity']}-repeat"
    assert repeat(first).folder == Path.cwd() / place


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("nli_coal", {"categories": ["zh"]}),
        ("mcbe", {"judge": "simulated:bias=0.2", "settings": {"context_order": "judge"}}),
    ],
)
def test_any_benchmark_is_repeated(own_folder, benchmark, options) -> None:
    evaluate(benchmark, MODEL, out="first", partial=True, limit=2, **options)
    repeat("first", "again")
    assert_repeated()


def test_a_model_or_data_that_moved_are_the_same_and_changed_ones_are_refused(
    own_folder: Path, refusal: Any
) -> None:
    shutil.copytree(get("cbbq").metadata.samples, "data")
    options = {"categories": ["age"], "limit": 2, "data": "data"}
    rows = evaluate("cbbq", MODEL, out="asked", **options).records
    answers = rows[["prompt", "response"]]
    answers.to_json("said.jsonl", orient="records", lines=True)
    evaluate("cbbq", "replay:said.jsonl", out="first", **options)
    repeat("first", "again")
    assert_repeated()
    Path("data").rename("moved")
    assert "data: no such folder or file (--data)" in refusal(repeat, "first", "moved again")
    Path("said.jsonl").rename("moved/said.jsonl")
    moved = {"model": "replay:moved/said.jsonl", "data": "moved"}
    repeat("first", "moved again", **moved)
    assert_repeated("moved again")
    answers[:-1].to_json("moved/said.jsonl", orient="records", lines=True)
    message = "the model (its files or recipe) is another one"
    assert message in refusal(repeat, "first", "another", **moved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "seed was 3, now 4; leave it out, or ask anew without --from"),
        ({"benchmark": "mcbe"}, "is a run of cbbq, not of mcbe"),
        ({"preset": "official"}, "preset was robust, now official"),
        ({"out": "first"}, "is the run itself"),
        ({"data": "data"}, "--from: the data set is another one (hash was "),
    ],
)
def test_what_would_ask_something_else_is_refused(first, refusal, options, message) -> None:
    shutil.copytree(get("cbbq").metadata.samples, "data")
    file = Path("data/age/ambiguous/templates_generate_neg.csv")
    file.write_text(file.read_text("utf-8").replace("谁", "哪位", 1), "utf-8")
    assert message in refusal(repeat, first, **{"out": "again", **options})
    assert not Path("again").exists()


def test_another_model_or_code_of_its_own_is_refused(first: Run, refusal: Any) -> None:
    """Code is never run because a file says so."""
    for about, message in (
        ({"revision": "2"}, "the model is another one (revision was 2, now 1)"),
        ({"trust_remote_code": True}, "add --trust-remote-code"),
    ):
        path = edited(first, "other", model={**first.about["model"], **about})
        assert message in refusal(repeat, path, "again")
    assert not Path("again").exists(), "nothing is written"


def test_nothing_that_can_run_code_or_send_a_key_is_taken_from_a_run_json(first: Run) -> None:
    foreign = {"trust_remote_code": True, "keys": {"host": "KEY"}, "scheduler": "tcp://host"}
    asked = {**first.about["asked"], **foreign, "generation": foreign}
    assert not foreign.keys() & repeating.options({**first.about, "asked": asked}).keys()


def test_other_versions_are_reported(first: Run, capsys) -> None:
    records.write_run_json(Path("old"), {**first.about, "packages": {"torch": "1.0"}})
    repeat("old", "again")
    assert "not as in old: torch was 1.0, now " in capsys.readouterr().err
    assert_repeated()


def test_the_command(first: Run, monkeypatch, capsys) -> None:
    words = ("run", "--from", edited(first, "small"), "--out", "again")
    assert command(monkeypatch, capsys, *words)[0] == 0
    assert_repeated()
    status, _, err = command(monkeypatch, capsys, "run", "--from", "first", "--seed", "4")
    assert (status, "seed was 3, now 4" in err) == (2, True)


def test_differences_by_hand() -> None:
    """One letter of three turns, and a log-probability moves by 0.5."""

    def rows(*answers: Any) -> pd.DataFrame:
        frame = pd.DataFrame(answers, columns=["response", "logprobs"])
        same = {"task": "t", "request": "r", "repeat": 0, "error": "", "seconds": 1.0}
        return frame.assign(**same, item_id=frame.index.astype(str))

    before = rows(("A", np.array([-1.0, -2.0])), ("1.5", np.array([-1.0, -2.0])), ("yes", None))
    after = rows(("B", np.array([-1.25, -2.0])), ("1.75", np.array([-1.5, -2.0])), ("yes", None))
    difference = repeating.difference(before, after)
    assert difference == (3, 1, 0.5, False)
    assert repeating.difference(before, before.assign(seconds=9.0)) == (3, 0, 0, True)
    never = rows(("A", np.array([-np.inf, 0.0])), ("nan", np.array([np.nan])))
    assert repeating.difference(never, never).same
