"""Runs: the same records after a kill as without one, folders that are refused, and run.json."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from bench import data, records, run, scorers
from bench.core.errors import RunFailed
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns, replay

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
# How each test asks, so that a subprocess can ask the same: two categories, eight times over.
ASK = f"""
import os
from bench import run, records
run.SHARD = 64
def ask(out, model={MODEL!r}, **options):
    given = dict(tasks=["ss"], categories=["age", "race"], repeats=8, seed=3, data="samples")
    return run.evaluate("mcbe", model, out=out, **{{**given, **options}})
"""
exec(ASK, namespace := {})
ask = namespace["ask"]


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 64)


def small(
    out: Path | str | None = "small", model: str = "simulated:bias=0.5", **options
) -> run.Run:
    given = {"tasks": ["ss"], "limit": 1, "categories": ["age"], **options}
    return run.evaluate("mcbe", model, out=out, **given)


def shards(folder: Path | str) -> list[str]:
    return sorted(path.stem for path in (Path(folder) / "records").glob("[0-9]*.parquet"))


def python(script: str, **environment: str) -> int:
    command, env = [sys.executable, "-c", ASK + script], {**os.environ, **environment}
    return subprocess.run(command, env=env, capture_output=True, timeout=60).returncode


# Where a process dies: before a shard, with a shard half written, before run.json.
KILLS = {
    """
write_shard = records.write_shard
def write(folder, number, rows):
    if number == 3: os._exit(9)
    write_shard(folder, number, rows)
records.write_shard = write
""": 3,
    """
from pathlib import Path
write_bytes = Path.write_bytes
def write(path, content):
    if path.name.endswith('000003.parquet'):
        write_bytes(path, content[:100])
        os._exit(9)
    write_bytes(path, content)
Path.write_bytes = write
""": 3,
    "records.write_run_json = lambda *a: os._exit(9)\n": 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("kill", KILLS)
def test_a_run_that_died_and_continued_has_the_records_of_one_that_did_not(kill: str) -> None:
    assert python(kill + "ask('killed')") == 9
    assert len(shards("killed")) == KILLS[kill]
    ask("killed")
    ask("undisturbed")
    pd.testing.assert_frame_equal(columns("killed"), columns("undisturbed"))
    assert shards("killed") == shards("undisturbed")


@pytest.mark.slow
def test_the_hash_seed_of_python_decides_no_order() -> None:
    for seed in ("1", "2"):
        assert python(f"ask('seed{seed}')", PYTHONHASHSEED=seed) == 0
    pd.testing.assert_frame_equal(columns("seed1"), columns("seed2"))


def test_a_missing_shard_is_asked_again_and_a_complete_run_loads_no_model(monkeypatch) -> None:
    ask("out")
    expected, stamp = columns("out"), records.shard_path(Path("out"), 0).stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(scorers, "load", None)
        pd.testing.assert_frame_equal(columns(ask("out").folder), expected)
        # A judge that no task needs is no part of a run.
        about = ask("out", judge="simulated:").about
        assert (about["asked"]["judge"], about["judge"]) == (None, None)
    records.shard_path(Path("out"), 2).unlink()
    ask("out")
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert records.shard_path(Path("out"), 0).stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_a_folder_of_another_run_is_refused(refusal, change: dict, message: str) -> None:
    ask("out")
    assert refusal(ask, "out", **change).startswith(f"out: holds another run ({message}")


def test_other_data_or_prompts_of_the_same_name_are_another_run(refusal) -> None:
    text = "version = 'v'\n[scenario_selection]\nprompt = '1 {sentence1} 2 {sentence2}'\n"
    header = "context,sentence,words,subtype,explanation,score\n"
    Path("own.toml").write_text(text, "utf-8")
    Path("age.csv").write_text(header + "开会，,[PLH]先说。,甲，乙,x,y,1\n", "utf-8")
    small(prompts="own.toml", data=".")
    Path("own.toml").write_text(text.replace("1 {", "a {"), "utf-8")
    assert "wording_hash was" in refusal(small, prompts="own.toml", data=".")
    Path("own.toml").write_text(text, "utf-8")
    Path("age.csv").write_text(header + "开会，,[PLH]先走。,丙，丁,x,y,1\n", "utf-8")
    assert "data_sha256 was" in refusal(small, prompts="own.toml", data=".")


def test_a_model_of_another_revision_may_not_continue(refusal) -> None:
    about = ask("out").about
    records.write_run_json(Path("out"), {**about, "model": {**about["model"], "revision": "0"}})
    records.shard_path(Path("out"), 1).unlink()
    message = "out: was begun with another model (revision was 0, now 1)"
    assert refusal(ask, "out").startswith(message)
    assert shards("out")[:2] == ["000000", "000002"]


def test_a_folder_that_holds_something_else_is_refused_and_an_empty_one_taken(refusal) -> None:
    Path("out").mkdir()
    Path("out/thesis.txt").write_text("x", "utf-8")
    assert refusal(ask, "out") == "out: is not empty and holds no run; give another --out"
    assert [path.name for path in Path("out").iterdir()] == ["thesis.txt"]
    Path("small").mkdir()
    assert len(small().records) > 0


def test_a_replay_of_a_run_s_records_or_prompts_gives_its_answers(refusal) -> None:
    rows = ask("first").records
    for k, names in enumerate(
        (["task", "item_id", "request", "repeat", "response"], ["prompt", "response"])
    ):
        answers = rows[rows["repeat"] == 0][names]
        answers.to_json(f"{k}.jsonl", orient="records", lines=True, force_ascii=False)
        again = ask(f"again{k}", model=f"replay:{k}.jsonl", repeats=1, seed=3)
        assert again.records.response.tolist() == answers.response.tolist()
    item, request = rows.item_id[0], rows.request[0]
    model = replay(Path("few.jsonl"), {("ss", item, request): "A"})
    message = refusal(ask, "few", model=model)
    assert message.startswith("few.jsonl: has no answer for task 'ss', item_id '")
    assert message.endswith("', repeat 0")


def test_a_limit_is_by_category_and_task_and_spread_over_templates() -> None:
    given = {"limit": 10, "categories": ["age", "gender"], "out": "out"}
    result = run.evaluate("cbbq", "simulated:bias=0.5", **given)
    rows, items = result.records, result.items
    assert Counter(zip(rows.category, rows.task, strict=True)) == {
        (name, task): 10 for name in ("age", "gender") for task in ("ambiguous", "disambiguous")
    }
    assert set(items.item_id) == set(rows.item_id)
    # Ten templates per context, five of each polarity: one question of each.
    assert items.groupby(["category", "condition"]).template.nunique().tolist() == [10] * 4


def test_tasks_come_in_the_benchmark_s_order() -> None:
    rows = small(tasks=["ss", "pc"], categories=["race", "age"], limit=2).records
    assert list(dict.fromkeys(rows.task)) == ["pc", "ss"]
    assert set(rows.category) == {"race", "age"}
    assert rows.item_id.nunique() == 4


def test_repeats_ask_everything_again_with_the_next_seed() -> None:
    rows = ask("out").records
    assert sorted(set(zip(rows.repeat, rows.seed, strict=True))) == [(k, 3 + k) for k in range(8)]
    parts = [part.reset_index(drop=True) for _, part in rows.groupby("repeat")]
    names = ["item_id", "request", "prompt"]
    assert all(part[names].equals(parts[0][names]) for part in parts)
    assert parts[0].response.tolist() != parts[1].response.tolist()


def test_run_json_says_all_that_the_design_lists() -> None:
    about = json.loads((small(seed=2, repeats=3).folder / "run.json").read_text("utf-8"))
    asked, model = about["asked"], about["model"]
    assert (about["benchmark"], about["preset"]) == ("mcbe", "robust")
    described = ("simulated respondent", "simulated:bias=0.5", "1")
    assert (model["kind"], model["id"], model["revision"]) == described
    assert (about["data"]["name"], about["data"]["version"]) == ("McBE samples", "samples-1")
    assert about["data"]["sha256"] == asked["data_sha256"] == data.find("mcbe").sha256
    assert about["wording"]["version"] == "bench-mcbe-3"
    assert (asked["seed"], asked["repeats"], asked["limit"]) == (2, 3, 1)
    assert {"bias-workbench", "python", "numpy", "pandas", "pyarrow"} <= set(about["packages"])
    assert "git_commit" in about
    assert pd.Timestamp(about["when"]).tzinfo is not None


def test_run_json_of_a_language_model_has_dtype_tokenizer_and_chat_template() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.helpers import checkpoints

    tokenizer = checkpoints.characters(chat=True)
    checkpoints.save(Path("model"), LlamaForCausalLM, LlamaConfig, tokenizer)
    about = small(model="./model", device="cpu", read="letters").about["model"]
    assert (about["id"], about["dtype"], about["device"]) == ("./model", "float32", "cpu")
    assert all(about[name] for name in ("kind", "revision", "tokenizer_hash", "chat_template_hash"))


@pytest.mark.parametrize(
    ("project", "reports"), [("bias-workbench", "reports"), ("other", "work/reports")]
)
def test_without_out_a_run_goes_to_the_reports_of_the_checkout_or_working_folder(
    own_folder: Path, monkeypatch, capsys, project: str, reports: str
) -> None:
    (own_folder / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    (own_folder / "work").mkdir()
    monkeypatch.chdir(own_folder / "work")
    first, again, other = small(None), small(None), small(None, seed=1)
    assert first.folder == again.folder != other.folder
    expected = own_folder / reports / "runs/simulated_bias=0.5"
    assert first.folder.parent == other.folder.parent == expected
    assert f"records go to {first.folder}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "--limit 0: has to be at least 1"),
        ({"repeats": 0}, "--repeats 0: has to be at least 1"),
        ({"preset": "strict"}, "preset 'strict' is unknown"),
        ({"max_new_tokens": 0}, "--max-new-tokens 0: has to be at least 1"),
        ({"settings": {"mood": "1"}}, "setting of mcbe 'mood' is unknown; allowed: encoding"),
        ({"settings": {"bos": "yes"}}, "value of bos 'yes' is unknown; allowed: tokenizer, forced"),
        ({"judge": "simulated:bias=2"}, "bias=2 is outside 0 to 1"),
        ({"judge": "./no-such-judge"}, "no such model folder"),
        ({"tasks": ["ba"]}, "(it needs a judge; give --judge MODEL); tasks that remain: none"),
        ({"prompts": "official"}, "`bench fetch mcbe` brings them"),
        ({"tasks": ["sc9"]}, "task of mcbe 'sc9' is unknown"),
        ({"categories": ["sport"]}, "category of mcbe 'sport' is unknown"),
        ({"categories": ["worldview"]}, "leaves nothing to ask"),
        ({"model": ""}, "is empty"),
        ({"model": "replay:no.jsonl"}, "no.jsonl: no such file"),
        ({"resources": {"GPU": 1}}, "--resources: says what workers of a cluster have to offer"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(refusal, options, message) -> None:
    assert message in refusal(ask, "out", **options)
    assert not Path("out").exists()


def test_a_model_that_breaks_ends_the_run_and_keeps_what_was_answered(monkeypatch) -> None:
    original, calls = Simulated.answer, []

    def answer(self: Simulated, requests: list) -> list:
        calls.append(len(requests))
        if len(calls) == 3:
            raise RuntimeError("out of memory\nat line 1")
        return original(self, requests)

    monkeypatch.setattr(Simulated, "answer", answer)
    message = r"did not answer \(out of memory\); the same command continues"
    with pytest.raises(RunFailed, match=message):
        ask("out")
    assert shards("out") == ["000000", "000001"]
    ask("out")
    pd.testing.assert_frame_equal(columns("out"), columns(ask("undisturbed").folder))
