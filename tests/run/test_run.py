"""Runs: the same records after a kill as without one, folders that are refused, options, and what run.json says."""

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest

from bench import data, records, run, scorers
from bench.core.errors import RunFailed
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
# How each test asks, so that a subprocess can ask the same; two categories of samples, eight times over.
ASK = f"""
import os, sys, time
from bench import run, records
run.SHARD = 64
def ask(out, **options):
    return run.evaluate("mcbe", {MODEL!r}, tasks=["ss"], categories=["age", "race"], repeats=8, seed=3, data={str(data.SAMPLES / "mcbe")!r}, out=out, **options)
"""


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 64)


def ask(out: Path | str, model: str = MODEL, **options) -> run.Run:
    given = {
        "tasks": ["ss"],
        "categories": ["age", "race"],
        "repeats": 8,
        "seed": 3,
        "data": data.SAMPLES / "mcbe",
    }
    return run.evaluate("mcbe", model, out=out, **{**given, **options})


def shards(folder: Path | str) -> list[str]:
    return sorted(path.name for path in (Path(folder) / "records").glob("[0-9]*.parquet"))


def small(out: Path | str = "small", model: str = "simulated:bias=0.5", **options) -> run.Run:
    return run.evaluate(
        "mcbe", model, out=out, **{"tasks": ["ss"], "limit": 1, "categories": ["age"], **options}
    )


# Where a process dies: before a shard, and with a shard half written.
KILLS = {
    "between two shards": """
write_shard = records.write_shard
def write(folder, number, rows):
    if number == 3: os._exit(9)
    write_shard(folder, number, rows)
records.write_shard = write
""",
    "while a shard is written": """
from pathlib import Path
write_bytes = Path.write_bytes
def write(path, content):
    if path.name.endswith('000003.parquet'):
        write_bytes(path, content[:100])
        os._exit(9)
    write_bytes(path, content)
Path.write_bytes = write
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("when", KILLS)
def test_a_run_that_died_and_continued_has_the_records_of_one_that_did_not(when: str) -> None:
    script = ASK + KILLS[when] + "ask('killed')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 9, done.stderr.decode()
    assert shards("killed") == ["000000.parquet", "000001.parquet", "000002.parquet"]
    ask("killed")
    ask("whole")
    assert len(columns("whole")) == 8 * len(columns("whole").query("repeat == 0")) > 64 * 4
    pd.testing.assert_frame_equal(columns("killed"), columns("whole"))
    pd.testing.assert_frame_equal(run.Run.open("killed").scores(), run.Run.open("whole").scores())
    assert shards("killed") == shards("whole")


def test_a_run_that_died_before_it_wrote_run_json_goes_on() -> None:
    script = ASK + "records.write_run_json = lambda *a: os._exit(9)\nask('killed')"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60).returncode
        == 9
    )
    ask("killed")


def test_a_shard_that_is_missing_in_the_middle_is_asked_again_and_no_other() -> None:
    result = ask("out")
    whole, stamp = columns("out"), Path("out/records/000000.parquet").stat().st_mtime_ns
    records.shard_path(result.folder, 2).unlink()
    ask("out")
    pd.testing.assert_frame_equal(columns("out"), whole)
    assert Path("out/records/000000.parquet").stat().st_mtime_ns == stamp


def test_a_complete_run_loads_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask("out").records

    def load(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(scorers, "load", load)
    pd.testing.assert_frame_equal(ask("out").records, whole)
    records.shard_path(Path("out"), 1).unlink()
    with pytest.raises(AssertionError, match="a model was loaded"):
        ask("out")


def test_a_judge_whom_no_task_needs_is_no_part_of_a_run() -> None:
    asked = ask("out", judge="simulated:").about
    assert (asked["asked"]["judge"], asked["judge"]) == (None, None)
    assert ask("out", judge="simulated:competence=0").about["when"] == asked["when"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "simulated:bias=1"}, "model was simulated:bias=0.6"),
        ({"limit": 2}, "limit was None, now 2"),
        ({"repeats": 2}, "repeats was 8, now 2"),
        ({"seed": 0}, "seed was 3, now 0"),
        ({"categories": ["age"]}, "categories was ['age', 'race'], now ['age']"),
        ({"tasks": ["pc"]}, "tasks was ['ss'], now ['pc']"),
        ({"read": "letters"}, "read was None, now letters"),
        ({"max_new_tokens": 9}, "max_new_tokens was None, now 9"),
        ({"settings": {"bos": "forced"}}, "bos was tokenizer, now forced"),
    ],
)
def test_a_folder_of_another_run_is_refused(refusal, change: dict, said: str) -> None:
    ask("out")
    message = refusal(ask, "out", **change)
    assert message.startswith("out: holds another run (")
    assert said in message


def test_a_folder_of_a_run_with_other_data_or_another_wording_is_refused(refusal) -> None:
    text = Path("own.toml")
    text.write_text(
        "version = 'v'\n[scenario_selection]\nprompt = '1 {sentence1} 2 {sentence2}'\n", "utf-8"
    )
    small(prompts="own.toml")
    text.write_text(
        "version = 'v'\n[scenario_selection]\nprompt = 'a {sentence1} b {sentence2}'\n", "utf-8"
    )
    assert "wording_hash was" in refusal(small, prompts="own.toml")
    Path("mine").mkdir()
    Path("mine/age.csv").write_bytes((data.SAMPLES / "mcbe/age.csv").read_bytes() + b"\n")
    small("other")
    assert "data_sha256 was" in refusal(small, "other", data="mine")


def test_a_model_of_another_revision_may_not_go_on(refusal) -> None:
    ask("out")
    about = json.loads(Path("out/run.json").read_text("utf-8"))
    about["model"]["revision"] = "0"
    Path("out/run.json").write_text(json.dumps(about), "utf-8")
    records.shard_path(Path("out"), 1).unlink()
    message = refusal(ask, "out")
    assert message.startswith("out: was begun with another model (revision was 0, now 1)")
    assert shards("out")[:2] == ["000000.parquet", "000002.parquet"]


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(refusal) -> None:
    Path("out").mkdir()
    Path("out/thesis.txt").write_text("x", "utf-8")
    assert refusal(ask, "out") == "out: is not empty and holds no run; give another --out"
    assert [path.name for path in Path("out").iterdir()] == ["thesis.txt"]


def test_an_empty_folder_may_be_given() -> None:
    Path("out").mkdir()
    assert len(small("out").records) > 0


def test_an_answer_that_a_replay_lacks_is_named(refusal) -> None:
    (item,) = [one for one in data.load(data.find("mcbe"), ["age"]) if one.item_id == "age:1"]
    a, b = item.words[:2]
    lines = [{"task": "ss", "item_id": "age:1", "request": f"{a}|{b}", "response": "A"}]
    Path("r.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    message = refusal(small, model="replay:r.jsonl")
    rest = {f"{one}|{other}" for one, other in permutations(item.words, 2)} - {f"{a}|{b}"}
    assert message.partition("request '")[2].partition("'")[0] in rest
    for text in ("r.jsonl: has no answer", "task 'ss'", "item_id 'age:1'", "repeat 0"):
        assert text in message


def test_a_replay_of_a_run_s_own_records_gives_its_scores() -> None:
    result = ask("first")
    names = ["task", "item_id", "request", "repeat", "response"]
    Path("r.jsonl").write_text(
        result.records[names].to_json(orient="records", lines=True, force_ascii=False), "utf-8"
    )
    again = ask("second", model="replay:r.jsonl")
    pd.testing.assert_frame_equal(again.scores(), result.scores())


def test_a_replay_may_be_keyed_by_prompt() -> None:
    first = small("first")
    Path("r.jsonl").write_text(
        first.records[["prompt", "response"]].to_json(orient="records", lines=True), "utf-8"
    )
    assert (
        small("second", model="replay:r.jsonl").records.response.tolist()
        == first.records.response.tolist()
    )


def test_a_limit_is_by_category_and_task_and_spread_over_templates() -> None:
    result = run.evaluate(
        "cbbq", "simulated:bias=0.5", limit=10, categories=["age", "gender"], out="out"
    )
    rows = result.records
    assert Counter(zip(rows.category, rows.task, strict=True)) == {
        (name, task): 10 for name in ("age", "gender") for task in ("ambiguous", "disambiguous")
    }
    items = result.items
    assert set(items.item_id) == set(rows.item_id)
    # Ten templates a context, five of each polarity, in file order: one question of each.
    assert items.groupby(["category", "condition"]).template.nunique().tolist() == [10] * 4


def test_tasks_and_categories_come_in_the_benchmark_s_order_and_no_others() -> None:
    rows = run.evaluate(
        "mcbe",
        "simulated:bias=0.5",
        tasks=["ss", "pc"],
        categories=["race", "age"],
        limit=2,
        out="out",
    ).records
    assert list(dict.fromkeys(rows.task)) == ["pc", "ss"]
    assert set(rows.category) == {"race", "age"}
    assert rows.item_id.nunique() == 4


def test_repeats_ask_everything_again_with_the_next_seed() -> None:
    rows = ask("out").records
    assert sorted(set(zip(rows.repeat, rows.seed, strict=True))) == [(k, 3 + k) for k in range(8)]
    asked = [
        part[["item_id", "request", "prompt"]].reset_index(drop=True)
        for _, part in rows.groupby("repeat")
    ]
    assert all(part.equals(asked[0]) for part in asked)
    answers = [part.response.tolist() for _, part in rows.groupby("repeat")]
    assert answers[0] != answers[1], "a simulated respondent throws its dice anew"


def test_run_json_says_all_that_the_design_lists() -> None:
    about = json.loads((small(seed=2, repeats=3).folder / "run.json").read_text("utf-8"))
    assert about["benchmark"] == "mcbe"
    assert (about["model"]["kind"], about["model"]["id"], about["model"]["revision"]) == (
        "simulated respondent",
        "simulated:bias=0.5",
        "1",
    )
    assert (about["data"]["name"], about["data"]["version"]) == ("McBE samples", "samples-1")
    assert about["data"]["sha256"] == about["asked"]["data_sha256"] == data.find("mcbe").sha256
    assert about["wording"]["version"] == "bench-mcbe-3"
    assert about["preset"] == "robust"
    assert (about["asked"]["seed"], about["asked"]["repeats"], about["asked"]["limit"]) == (2, 3, 1)
    assert {"bias-workbench", "python", "numpy", "pandas", "pyarrow"} <= set(about["packages"])
    assert "git_commit" in about
    assert pd.Timestamp(about["when"]).tzinfo is not None


def test_run_json_of_a_language_model_tells_its_numbers_tokenizer_and_chat_template() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.helpers import checkpoints

    checkpoints.save(
        Path("model"), LlamaForCausalLM, LlamaConfig, checkpoints.characters(chat=True)
    )
    about = small(model="./model", device="cpu", read="letters").about["model"]
    assert about["id"] == "./model"
    assert (about["dtype"], about["device"]) == ("float32", "cpu")
    assert all(about[name] for name in ("kind", "revision", "tokenizer_hash", "chat_template_hash"))


def test_the_same_call_without_a_folder_finds_its_run_and_another_one_its_own() -> None:
    one, again = small(None), small(None)
    other = small(None, seed=1)
    assert one.folder == again.folder != other.folder
    assert (
        one.folder.parent == other.folder.parent == Path.cwd() / "reports/runs/simulated_bias=0.5"
    )


def test_runs_go_to_the_working_folder_whatever_lies_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another-project"\n')
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = small(None).folder
    assert folder.parent == tmp_path / "work/reports/runs/simulated_bias=0.5"
    assert f"records go to {folder}\n" in capsys.readouterr().err


def test_runs_within_a_checkout_of_this_project_go_to_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bias-workbench"\n')
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert small(None).folder.parent == tmp_path / "reports/runs/simulated_bias=0.5"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limit": 0}, "--limit 0: has to be at least 1"),
        ({"repeats": 0}, "--repeats 0: has to be at least 1"),
        ({"preset": "strict"}, "preset 'strict' is unknown"),
        ({"max_new_tokens": 0}, "--max-new-tokens 0: has to be at least 1"),
        (
            {"settings": {"mood": "1"}},
            "--set mood=1: setting of mcbe 'mood' is unknown; allowed: encoding",
        ),
        (
            {"settings": {"bos": "yes"}},
            "--set bos=yes: value of bos 'yes' is unknown; allowed: tokenizer, forced",
        ),
        ({"judge": "simulated:bias=2"}, "bias=2 is outside 0 to 1"),
        ({"judge": "./no-such-judge"}, "no such model folder"),
        (
            {"tasks": ["ba"]},
            "cannot do task ba of mcbe (it needs a judge; give --judge MODEL); tasks that remain: none",
        ),
        ({"prompts": "official"}, "`bench fetch mcbe` brings them"),
        ({"tasks": ["sc9"]}, "task of mcbe 'sc9' is unknown"),
        ({"categories": ["sport"]}, "category of mcbe 'sport' is unknown"),
        ({"categories": ["worldview"]}, "leaves nothing to ask"),
        ({"model": ""}, "is empty"),
        ({"model": "simulated:bias=2"}, "bias=2 is outside 0 to 1"),
        ({"model": "replay:no.jsonl"}, "no.jsonl: no such file"),
        ({"model": "./no-such-model"}, "no such model folder"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    refusal, options: dict, said: str
) -> None:
    assert said in refusal(ask, "out", **options)
    assert not Path("out").exists()


def test_a_model_that_breaks_ends_the_run_and_keeps_what_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, calls = Simulated.answer, []

    def answer(self: Simulated, requests: list) -> list:
        calls.append(len(requests))
        if len(calls) == 3:
            raise RuntimeError("out of memory\nat line 1")
        return whole(self, requests)

    monkeypatch.setattr(Simulated, "answer", answer)
    with pytest.raises(
        RunFailed, match=r"did not answer \(out of memory\); the same command continues"
    ):
        ask("out")
    assert shards("out") == ["000000.parquet", "000001.parquet"]
    ask("out")
    pd.testing.assert_frame_equal(columns("out"), columns(ask("whole").folder))


def test_data_edited_within_a_session_make_another_run(refusal) -> None:
    header = "context,sentence,words,subtype,explanation,score\n"
    Path("age.csv").write_text(header + "开会，,[PLH]先说。,甲，乙,x,y,1\n", "utf-8")
    small("out", data=".")
    Path("age.csv").write_text(header + "开会，,[PLH]先走。,丙，丁,x,y,1\n", "utf-8")
    assert "data_sha256 was" in refusal(small, "out", data=".")


@pytest.mark.slow
def test_the_hash_of_the_process_s_user_is_no_part_of_the_records() -> None:
    # The same run under two hash seeds of Python: sets and dictionaries may not decide an order.
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", ASK + f"ask('seed{seed}')"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()
    pd.testing.assert_frame_equal(columns("seed1"), columns("seed2"))
