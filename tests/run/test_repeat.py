"""Repeating a run from its `run.json`: the same records, and no run that would be another one."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import data, records
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


def test_run_json_alone_gives_the_same_records(first: Run, capsys) -> None:
    again = repeat(edited(first, "alone"), out="again")
    assert_repeated()
    assert again.about["identity"] == first.about["identity"]
    capsys.readouterr()
    # The same options may be given again.
    given = {name: OPTIONS[name] for name in ("seed", "categories", "settings")}
    repeat("first", out="again", **given)
    assert "all 48 answers are the same" in capsys.readouterr().err
    place = f"reports/runs/{MODEL.replace(':', '_')}/cbbq-{first.about['identity']}-repeat"
    assert repeat(first).folder == Path.cwd() / place


def test_a_run_on_the_samples_is_repeated_on_them_wherever_they_are(first, monkeypatch) -> None:
    shutil.copytree(data.SAMPLES / "cbbq" / "gender", "other/cbbq/gender")
    monkeypatch.setenv("BENCH_DATA", "other")
    moved = edited(first, "alone", data={**first.about["data"], "folder": "no/longer/there"})
    repeat(moved, out="again")
    assert_repeated()


JUDGED = {"judge": "simulated:bias=0.2", "settings": {"context_order": "judge"}}
# Sampled replies, likelihoods and probabilities.
COMPUTED = {"categories": ["gender"], "limit": 3, "repeats": 2, "batch_tokens": 100}


@pytest.mark.parametrize(
    ("benchmark", "model", "options"),
    [
        ("nli_coal", MODEL, {"categories": ["zh"], "limit": 5}),
        ("mcbe", MODEL, {"categories": ["age"], "limit": 2, **JUDGED}),
        ("mcbe", MODEL, {"categories": ["age"], "tasks": ["ss"], "preset": "official"}),
        pytest.param("cbbq", "tiny:s,bias=0.5", COMPUTED, marks=pytest.mark.slow),
        pytest.param("mcbe", "tiny:s,bias=0.5", COMPUTED, marks=pytest.mark.slow),
    ],
)
def test_any_benchmark_is_repeated(own_folder, benchmark, model, options) -> None:
    evaluate(benchmark, model, out="first", partial=True, **options)
    again = repeat("first", "again")
    assert_repeated()
    assert again.about["model"].get("batch_tokens") == options.get("batch_tokens")


def test_a_model_or_data_that_moved_are_the_same_and_changed_ones_are_refused(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, refusal: Any
) -> None:
    shutil.copytree(data.SAMPLES / "cbbq", "there/cbbq")
    options = {"categories": ["age"], "limit": 2}
    rows = evaluate("cbbq", MODEL, out="asked", data="there/cbbq", **options).records
    answers = rows[["prompt", "response"]]
    answers.to_json("there/said.jsonl", orient="records", lines=True)
    monkeypatch.chdir("there")
    evaluate("cbbq", "replay:said.jsonl", out="first", data="cbbq", **options)
    # Paths are meant from where the run was made.
    monkeypatch.chdir("/")
    repeat(own_folder / "there/first", own_folder / "again")
    assert_repeated(own_folder / "again", own_folder / "there/first")
    monkeypatch.chdir(own_folder)
    Path("elsewhere").mkdir()
    Path("there/said.jsonl").rename("elsewhere/said.jsonl")
    assert "said.jsonl: no such file" in refusal(repeat, "there/first", "moved")
    repeat("there/first", "moved", model="replay:elsewhere/said.jsonl")
    assert_repeated("moved", "there/first")
    answers[:-1].to_json("there/said.jsonl", orient="records", lines=True)
    message = "the model (its files or recipe) is another one"
    assert message in refusal(repeat, "there/first", "another")


def test_another_data_set_prompt_set_or_model_is_refused(first: Run, refusal: Any) -> None:
    shutil.copytree(data.SAMPLES / "cbbq", "data")
    file = Path("data/age/ambiguous/templates_generate_neg.csv")
    file.write_text(file.read_text("utf-8").replace("谁", "哪位", 1), "utf-8")
    message = refusal(repeat, first, "again", data="data")
    assert "--from: the data set is another one (hash was " in message
    assert message.endswith("give the same by --data")
    asked = first.about["asked"]
    for about, text in [
        ({"asked": {**asked, "wording_hash": "0" * 16}}, "the prompt set is another one"),
        (
            {"asked": {**asked, "model": "tiny:s", "model_content": "recipe 0"}},
            "the model (its files or recipe) is another one",
        ),
        (
            {"model": {**first.about["model"], "revision": "2"}},
            "the model is another one (revision was 2, now 1)",
        ),
        # Code is never run because a file says so.
        (
            {"model": {**first.about["model"], "trust_remote_code": True}},
            "add --trust-remote-code",
        ),
    ]:
        assert text in refusal(repeat, edited(first, "other", **about), "again")
    assert not Path("again").exists(), "nothing is written"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "seed was 3, now 4; leave it out, or ask anew without --from"),
        ({"limit": 7}, "limit was 6, now 7"),
        ({"model": "simulated:bias=1"}, "model was simulated:bias=0.6"),
        ({"benchmark": "mcbe"}, "is a run of cbbq, not of mcbe"),
        ({"categories": ["age"]}, "categories was"),
        ({"settings": {"prompting": "Q"}}, "prompting was Q+IF, now Q"),
        ({"preset": "official"}, "preset was robust, now official"),
        ({"prompts": ""}, "prompts was"),
        ({"out": "first"}, "is the run itself"),
    ],
)
def test_what_would_ask_something_else_is_refused(first, refusal, options, message) -> None:
    assert message in refusal(repeat, first, **{"out": "again", **options})
    assert not Path("again").exists()


def test_other_versions_are_reported_and_an_older_run_is_repeated(first: Run, capsys) -> None:
    packages = {**first.about["packages"], "torch": "1.0"}
    repeat(edited(first, "old", packages=packages, git_commit="0" * 40), "again")
    err = capsys.readouterr().err
    assert "not as in old: torch was 1.0, now " in err
    assert f"the workbench's commit was {'0' * 40}, now " in err
    assert_repeated()
    about = {name: value for name, value in first.about.items() if name != "folder"}
    about["wording"] = {name: value for name, value in about["wording"].items() if name != "file"}
    records.write_run_json(Path("older"), about)
    repeat("older", "older again")
    assert_repeated("older again")


def test_a_repeat_that_was_interrupted_continues(first: Run, monkeypatch) -> None:
    edited(first, "small", shard=8)
    write = records.write_shard

    def breaks(folder: Path, number: int, rows: Any) -> None:
        if number == 2:
            raise KeyboardInterrupt
        write(folder, number, rows)

    with monkeypatch.context() as patch:
        patch.setattr(records, "write_shard", breaks)
        with pytest.raises(KeyboardInterrupt):
            repeat("small", "again")
    assert len(columns("again")) == 16
    repeat("small", "again")
    assert_repeated()


def test_the_command(first: Run, monkeypatch, capsys) -> None:
    words = ("run", "--from", "first/run.json", "--out", "again", "--format", "json")
    status, out, err = command(monkeypatch, capsys, *words)
    assert status == 0, err
    assert json.loads(out)["run"]["asked"] == first.about["asked"]
    assert "all 48 answers are the same" in err
    for call, message in [
        ("--from first --seed 4", "seed was 3, now 4"),
        ("mcbe --from first", "--from: first is a run of cbbq, not of mcbe"),
        ("--from nowhere", "nowhere: holds no run"),
        ("--model simulated:", "Missing argument 'BENCHMARK'"),
        ("cbbq", "Missing option '--model'"),
    ]:
        status, out, err = command(monkeypatch, capsys, "run", *call.split())
        assert (status, out) == (2, ""), call
        assert message in err.splitlines()[-1]


def rows(*answers: Any) -> pd.DataFrame:
    """Records of one task, a row for each (response, logprobs)."""
    frame = pd.DataFrame(answers, columns=["response", "logprobs"])
    same = {"task": "t", "request": "r", "repeat": 0, "error": ""}
    return frame.assign(**same, item_id=frame.index.astype(str), seconds=frame.index * 1.0)


def test_differences_by_hand() -> None:
    """One letter of three turns, the likelihood moves by 0.25, and a log-probability by 0.5."""
    before = rows(("A", np.array([-1.0, -2.0])), ("1.5", np.array([-1.0, -2.0])), ("yes", None))
    after = rows(("B", np.array([-1.25, -2.0])), ("1.75", np.array([-1.5, -2.0])), ("yes", None))
    difference = repeating.difference(before, after)
    assert difference == (3, 1, 0.5, 0.25, False)
    assert str(difference) == "1 of 3 answers differ, and log-probabilities by at most 0.5"
    assert repeating.difference(before, before.assign(seconds=9.0)) == (3, 0, 0, 0, True)
    assert not repeating.difference(before, before[:2]).same
    never = rows(("A", np.array([-np.inf, 0.0])), ("nan", np.array([])))
    assert repeating.difference(never, never).same
    # One NaN of a likelihood is another's NaN.
    undefined = rows(("nan", np.array([np.nan])))
    assert repeating.difference(undefined, rows(("nan", np.array([np.nan])))).same
