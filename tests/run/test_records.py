"""Records: what a row holds, damaged files, journals, locks, and runs of older versions."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import data, records, run, scorers
from bench.records import Journal
from tests.helpers.recorded import cell, columns


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 16)


def ask(out: str = "out", model: str = "simulated:bias=0.6,refuse=0.1", **options) -> run.Run:
    given = {"tasks": ["ss"], "categories": ["age"], "data": data.SAMPLES / "mcbe", "out": out}
    return run.evaluate("mcbe", model, **{**given, **options})


def shard(number: int) -> Path:
    return records.shard_path(Path("out"), number)


def test_a_row_holds_what_was_asked_and_what_came_back() -> None:
    result = ask()
    rows = result.records
    assert list(rows) == [name for name in records.SCHEMA.names if name != "place"]
    names = ["benchmark", "category", "task", "repeat", "seed", "error"]
    assert rows[names].iloc[0].tolist() == ["mcbe", "age", "ss", 0, 0, ""]
    assert all(word in rows.prompt[0] for word in rows.request[0].split("|"))
    # They are asked by prompt, and read in the order of the plan.
    files = sorted((result.folder / "records").iterdir())
    asked = [text for path in files for text in pq.read_table(path)["prompt"].to_pylist()]
    assert asked == sorted(asked) != rows.prompt.tolist()
    assert rows.item_id.str.partition(":")[2].astype(int).is_monotonic_increasing


def test_stored_records_are_scored_under_every_preset_without_a_model(monkeypatch) -> None:
    ask()
    monkeypatch.setattr(scorers, "load", None)
    result = run.Run.open("out")
    best = {name: cell(result.scores(name), task="ss", preset=name).score for name in run.PRESETS}
    assert best["paper"] < best["robust"]
    assert ask(preset="official").about["preset"] == "official"
    assert run.Run.open("out").about["preset"] == "official"


@pytest.mark.parametrize("damage", [lambda content: content[:99], lambda content: content + b"\0"])
def test_a_damaged_shard_is_found_moved_aside_and_asked_again(damage, capsys, refusal) -> None:
    ask()
    expected, stamp = columns("out"), shard(0).stat().st_mtime_ns
    broken = damage(shard(1).read_bytes())
    shard(1).write_bytes(broken)
    message = refusal(run.Run.open("out").scores)
    assert message.startswith(f"{shard(1)}: is not a complete record file")
    ask("other", model="simulated:bias=0")
    shutil.copy("other/records/000002.parquet", shard(2))
    Path("out/items.parquet").write_bytes(broken)
    ask()
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert shard(0).stat().st_mtime_ns == stamp, "undamaged shards are not touched"
    assert shard(1).with_name("000001.parquet.damaged").read_bytes() == broken
    err = capsys.readouterr().err
    assert "moved to 000001.parquet.damaged, and asked again" in err
    assert err.count("it is another run's, or has another place in it") == 1
    assert "items.parquet: was missing, damaged or of an earlier version" in err


def test_a_changed_byte_anywhere_is_found_or_changes_nothing() -> None:
    ask()
    content, expected = shard(0).read_bytes(), pq.read_table(shard(0))
    n_found = 0
    for position in range(0, len(content), 11):
        changed = bytes([content[position] ^ 4])
        shard(0).write_bytes(content[:position] + changed + content[position + 1 :])
        if records.missing_shards(Path("out"), {0: 16}):
            n_found += 1
        else:  # the name of the seal
            assert pq.read_table(shard(0)).equals(expected)
    assert n_found >= len(content) // 11 - 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"\xff\0", "run.json: cannot be read"),
        ("run.json", b"[]", "run.json: [] is not a mapping of names to values; put back"),
        ("run.json", b"{}", "run.json: key `benchmark`: is missing; put back the file"),
        ("run.json", b"[NaN]", "run.json: cannot be read (NaN is no value of JSON)"),
        ("run.json", None, "out: holds no run (no run.json)"),
        ("items.parquet", b"PAR1", "items.parquet: is missing or damaged"),
        ("records", None, "out: holds no records yet"),
    ],
)
def test_a_damaged_or_missing_file_is_named(refusal, name, content, message: str) -> None:
    path = ask().folder / name
    path.write_bytes(content) if content else path.rename("moved")
    assert message in refusal(lambda: run.Run.open("out").scores())


def test_a_locked_run_is_read_and_nothing_in_it_is_moved(refusal) -> None:
    scores = ask().scores()
    with records.run_lock(Path("out")) as first, records.run_lock(Path("out")) as second:
        assert first == ""
        assert "is asking this run; wait" in second
        pd.testing.assert_frame_equal(ask().scores(), scores)
        shard(0).write_bytes(b"PAR1")
        assert "is asking this run; wait" in refusal(ask)
    assert shard(0).read_bytes() == b"PAR1"
    # A folder in which no run was begun is removed.
    refusal(ask, "new", model="replay:nothing.jsonl")
    assert not Path("new").exists()


def test_a_journal_returns_complete_lines_only() -> None:
    path = Path("out/records/journal.jsonl")
    answers: list[list[Any]] = [
        ["甲\n\x1b[31m", [-0.5, float("-inf")], "", 0.25, None],
        ["", None, "refused", 0.0, None],
    ]
    journal = Journal(Path("out"))
    for k, answer in enumerate(answers):
        journal.add(3, k, "prompt", answer)
    journal.__exit__(KeyboardInterrupt)
    with path.open("ab") as stream:
        stream.write(b"\0" * 50 + b"\n[1, 2]\nnull\n" + b"[" * 10**5 + b"\n" + b"z" * 10**6)
    journal = Journal(Path("out"))
    assert [journal.get(3, k, "prompt") for k in range(2)] == answers
    assert journal.get(3, 0, "another prompt") is None
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.26", 1))
    with Journal(Path("out")) as journal:
        assert [journal.get(3, k, "prompt") for k in range(2)] == [None, answers[1]]
    assert not path.exists(), "a run that is complete needs none"


def test_a_recorded_run_of_version_0_1_is_scored_and_continued() -> None:
    shutil.copytree(Path(__file__).parent / "recorded_run", "out")
    before, scores = columns("out"), run.Run.open("out").scores()
    assert (len(before), (scores.metric == "coal").any()) == (9, True)
    shard(1).unlink()
    given = {"categories": ["zh"], "limit": 3, "data": "samples", "out": "out"}
    run.evaluate("nli_coal", "simulated:bias=0.6,seed=4", **given)
    pd.testing.assert_frame_equal(columns("out"), before)


def test_files_without_a_checksum_and_items_of_another_run_give_no_score(refusal: Any) -> None:
    expected = ask().scores()
    ask("other", limit=1)
    pq.write_table(pq.read_table(shard(0)).replace_schema_metadata(), shard(0))
    assert "(it has no checksum); start its `bench run`" in refusal(run.Run.open("out").scores)
    ask()
    shutil.copy("other/items.parquet", "out")
    assert "(it is another run's, or has" in refusal(run.Run.open("out").scores)
    pd.testing.assert_frame_equal(ask().scores(), expected)


def test_items_that_version_0_1_wrote_have_to_be_those_that_were_answered(refusal: Any) -> None:
    shutil.copytree(Path(__file__).parent / "recorded_run", "out")
    items = run.Run.open("out").items
    records._write(pa.Table.from_pandas(items[3:]), Path("out/items.parquet"), "items.parquet")
    message = refusal(run.Run.open("out").scores)
    assert f"it has no item {min(items.item_id[:3])!r}, which the records answer" in message
