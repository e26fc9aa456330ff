"""Repeating a run from its `run.json`: the same records, and a refusal of whatever would be another run."""

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


@pytest.fixture
def first(own_folder: Path) -> Run:
    return evaluate(
        "cbbq",
        MODEL,
        categories=["gender", "age"],
        limit=6,
        seed=3,
        repeats=2,
        out="first",
        settings={"prompting": "Q+IF"},
        prompts="bare",
    )


def edited(run: Run, folder: str, **about: Any) -> Path:
    """A copy of a run's `run.json` alone, with other entries."""
    records.write_run_json(Path(folder), {**run.about, **about})
    return Path(folder) / records.RUN_JSON


def test_run_json_alone_gives_the_same_records(
    first: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    again = repeat(edited(first, "alone"), out="again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))
    assert again.about["identity"] == first.about["identity"]
    capsys.readouterr()
    repeat("first", out="again")
    assert "all 48 answers are the same" in capsys.readouterr().err


def test_without_a_folder_it_lies_beside_others(first: Run) -> None:
    done = repeat(first)
    assert (
        done.folder
        == Path.cwd()
        / "reports/runs"
        / MODEL.replace(":", "_")
        / f"cbbq-{first.about['identity']}-repeat"
    )


def test_a_run_on_the_samples_is_repeated_on_them_wherever_they_are(
    first: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(data.SAMPLES / "cbbq" / "gender", "other/cbbq/gender")
    monkeypatch.setenv("BENCH_DATA", "other")
    moved = edited(first, "alone", data={**first.about["data"], "folder": "no/longer/there"})
    repeat(moved, out="again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("nli_coal", {"categories": ["zh"], "limit": 5}),
        (
            "mcbe",
            {
                "categories": ["age"],
                "limit": 2,
                "judge": "simulated:bias=0.2",
                "settings": {"context_order": "judge"},
            },
        ),
        ("mcbe", {"categories": ["age"], "limit": 2, "tasks": ["ss"], "preset": "official"}),
    ],
)
def test_any_benchmark_is_repeated(
    own_folder: Path, benchmark: str, options: dict[str, Any]
) -> None:
    evaluate(benchmark, MODEL, out="first", partial=True, **options)
    repeat("first", "again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["cbbq", "mcbe"])
def test_a_computed_run_is_repeated_to_the_byte(own_folder: Path, benchmark: str) -> None:
    """Sampled replies, likelihoods and probabilities alike."""
    evaluate(
        benchmark,
        "tiny:s,bias=0.5",
        categories=["gender"],
        limit=3,
        repeats=2,
        out="first",
        batch_tokens=100,
        partial=True,
    )
    again = repeat("first", "again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"), check_exact=True)
    assert again.about["model"]["batch_tokens"] == 100


def test_paths_are_meant_from_where_the_run_was_made(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(data.SAMPLES / "cbbq", "there/cbbq")
    asked = evaluate(
        "cbbq", MODEL, categories=["age"], limit=2, out="there/asked", data="there/cbbq"
    )
    lines = [{"prompt": row.prompt, "response": row.response} for row in asked.records.itertuples()]
    Path("there/said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.chdir("there")
    evaluate("cbbq", "replay:said.jsonl", categories=["age"], limit=2, out="first", data="cbbq")
    monkeypatch.chdir("/")
    repeat(own_folder / "there/first", own_folder / "again")
    pd.testing.assert_frame_equal(
        columns(own_folder / "again"), columns(own_folder / "there/first")
    )
    with Path(own_folder / "there/said.jsonl").open("a") as stream:
        stream.write('{"prompt": "one more", "response": "A"}\n')
    with pytest.raises(Exception, match="the model's files or recipe are others"):
        repeat(own_folder / "there/first", own_folder / "another")


def test_a_model_that_has_moved_is_the_same_one(own_folder: Path, refusal: Any) -> None:
    asked = evaluate("cbbq", MODEL, categories=["age"], limit=2, out="asked")
    lines = [{"prompt": row.prompt, "response": row.response} for row in asked.records.itertuples()]
    Path("said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    evaluate("cbbq", "replay:said.jsonl", categories=["age"], limit=2, out="first")
    Path("elsewhere").mkdir()
    Path("said.jsonl").rename("elsewhere/said.jsonl")
    assert "said.jsonl: no such file" in refusal(repeat, "first", "again")
    repeat("first", "again", model="replay:elsewhere/said.jsonl")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


def test_other_data_another_wording_and_another_model_are_refused(
    first: Run, refusal: Any, tmp_path: Path
) -> None:
    shutil.copytree(data.SAMPLES / "cbbq", "data")
    file = Path("data/age/ambiguous/templates_generate_neg.csv")
    file.write_text(file.read_text("utf-8").replace("谁", "哪位", 1), "utf-8")
    assert "the data are others; give the folder of the same data by --data" in refusal(
        repeat, first, "again", data="data"
    )
    asked = first.about["asked"]
    gone = edited(first, "wording", asked={**asked, "wording_hash": "0" * 16})
    assert "the wording is another one" in refusal(repeat, gone, "again")
    tiny = edited(first, "tiny", asked={**asked, "model": "tiny:s", "model_content": "recipe 0"})
    assert "the model's files or recipe are others" in refusal(repeat, tiny, "again")
    other = edited(first, "revision", model={**first.about["model"], "revision": "2"})
    assert "the model is another one (revision was 2, now 1)" in refusal(repeat, other, "again")
    assert not Path("again").exists(), "nothing is written"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 4}, "seed was 3, now 4"),
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
def test_what_would_ask_something_else_is_refused(
    first: Run, refusal: Any, options: dict[str, Any], said: str
) -> None:
    assert said in refusal(repeat, first, **{"out": "again", **options})
    assert not Path("again").exists()


def test_the_same_option_may_be_said_again(first: Run) -> None:
    repeat(first, "again", seed=3, categories=["gender", "age"], settings={"prompting": "Q+IF"})


def test_other_versions_are_told_and_no_hindrance(
    first: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    old = edited(
        first, "old", packages={**first.about["packages"], "torch": "1.0"}, git_commit="0" * 40
    )
    repeat(old, "again")
    said = capsys.readouterr().err
    assert "not as in old: torch was 1.0, now " in said
    assert f"the workbench's commit was {'0' * 40}, now " in said
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


def test_an_older_run_that_says_less_is_repeated_too(first: Run) -> None:
    about = {name: value for name, value in first.about.items() if name != "folder"}
    about["wording"] = {name: value for name, value in about["wording"].items() if name != "file"}
    records.write_run_json(Path("older"), about)
    repeat("older", "again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


def test_a_file_never_lets_code_run(first: Run, refusal: Any) -> None:
    asked = edited(first, "code", model={**first.about["model"], "trust_remote_code": True})
    assert "add --trust-remote-code" in refusal(repeat, asked, "again")


def test_a_repeat_that_was_interrupted_goes_on(first: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    edited(first, "small", shard=8)
    whole = records.write_shard

    def breaks(folder: Path, number: int, rows: Any) -> None:
        if number == 2:
            raise KeyboardInterrupt
        whole(folder, number, rows)

    monkeypatch.setattr(records, "write_shard", breaks)
    with pytest.raises(KeyboardInterrupt):
        repeat("small", "again")
    monkeypatch.setattr(records, "write_shard", whole)
    assert len(columns("again")) == 16
    repeat("small", "again")
    pd.testing.assert_frame_equal(columns("again"), columns("first"))


def test_the_command(
    first: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = command(
        monkeypatch, capsys, "run", "--from", "first/run.json", "--out", "again", "--format", "json"
    )
    assert status == 0, err
    assert json.loads(out)["run"]["asked"] == first.about["asked"]
    assert "all 48 answers are the same" in err
    for words, said in [
        (
            ("--from", "first", "--seed", "4"),
            "seed was 3, now 4; leave it out, or ask anew without --from",
        ),
        (("mcbe", "--from", "first"), "--from: first is a run of cbbq, not of mcbe"),
        (("--from", "nowhere"), "nowhere: holds no run"),
        (("--model", "simulated:"), "Missing argument 'BENCHMARK'"),
        (("cbbq",), "Missing option '--model'"),
    ]:
        status, out, err = command(monkeypatch, capsys, "run", *words)
        assert (status, out) == (2, ""), words
        assert said in err
        assert err.splitlines()[-1].startswith("bench: ")


def rows(*responses: Any) -> pd.DataFrame:
    """Records of one task, a row for each (response, logprobs)."""
    return pd.DataFrame(
        {
            "task": "t",
            "item_id": str(k),
            "request": "r",
            "repeat": 0,
            "response": said,
            "logprobs": numbers,
            "error": "",
            "seconds": float(k),
        }
        for k, (said, numbers) in enumerate(responses)
    )


def test_differences_are_told_apart() -> None:
    """By hand: one letter of three turns, the likelihood moves by 0.25, and a log-probability by 0.5."""
    before = rows(("A", np.array([-1.0, -2.0])), ("1.5", np.array([-1.0, -2.0])), ("yes", None))
    after = rows(("B", np.array([-1.25, -2.0])), ("1.75", np.array([-1.5, -2.0])), ("yes", None))
    found = repeating.difference(before, after)
    assert found == (3, 1, 0.5, 0.25, False)
    assert str(found) == "1 of 3 answers differ, and log-probabilities by at most 0.5"
    assert repeating.difference(before, before.assign(seconds=9.0)) == (3, 0, 0, 0, True)
    assert not repeating.difference(before, before[:2]).same
    never = rows(("A", np.array([-np.inf, 0.0])), ("nan", np.array([])))
    assert repeating.difference(never, never).same
