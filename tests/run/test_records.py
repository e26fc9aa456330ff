"""Records: what a row holds, damaged files, journals, locks, and runs of older versions."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import data, records, run, scorers
from bench.core.errors import RunFailed
from bench.records import Journal
from tests.helpers.recorded import columns


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 16)


def ask(out: str = "out", model: str = "simulated:bias=0.6,refuse=0.1", **options) -> run.Run:
    samples = data.SAMPLES / "mcbe"
    given = {"tasks": ["ss"], "categories": ["age"], "data": samples, "out": out}
    return run.evaluate("mcbe", model, **{**given, **options})


def shard(number: int) -> Path:
    return records.shard_path(Path("out"), number)


def test_a_row_holds_what_was_asked_and_what_came_back() -> None:
    result = ask()
    rows = result.records
    assert list(rows) == [name for name in records.SCHEMA.names if name != "place"]
    row = rows.iloc[0]
    same = (row.benchmark, row.category, row.task, row["repeat"], row.seed, row.error)
    assert same == ("mcbe", "age", "ss", 0, 0, "")
    assert row.item_id.startswith("age:")
    assert all(word in row.prompt for word in row.request.split("|"))
    assert row.valid == bool(row.parsed)
    assert row.seconds >= 0
    assert not rows.duplicated(["item_id", "request"]).any()
    # They are asked by prompt, and read in the order of the plan.
    files = sorted((result.folder / "records").iterdir())
    asked = [text for path in files for text in pq.read_table(path)["prompt"].to_pylist()]
    assert asked == sorted(asked) != rows.prompt.tolist()
    ids = rows.item_id.tolist()
    assert ids == sorted(ids, key=lambda name: int(name.partition(":")[2]))


def test_stored_records_are_scored_under_every_preset_without_a_model(monkeypatch, refusal) -> None:
    ask()
    monkeypatch.setattr(scorers, "load", None)
    result = run.Run.open("out")
    tables = {preset: result.scores(preset) for preset in run.PRESETS}
    best = {
        preset: table[(table.metric == "score") & (table.preset == preset)].score.iloc[0]
        for preset, table in tables.items()
    }
    assert best["paper"] < best["robust"]
    assert result.scores().equals(tables["robust"])
    message = "preset 'strict' is unknown; allowed: robust, official, paper"
    assert message in refusal(result.scores, "strict")
    assert ask(preset="official").about["preset"] == "official"
    assert run.Run.open("out").about["preset"] == "official"


# Damaged files.


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes, position: int | None = None) -> bytes:
    k = len(content) // 3 if position is None else position
    return content[:k] + bytes([content[k] ^ 4]) + content[k + 1 :]


DAMAGES = [cut, flipped, lambda _: b"", lambda _: b"<html>", lambda content: content + b"\0"]


@pytest.mark.parametrize("damage", DAMAGES, ids=["cut", "flipped", "empty", "other", "longer"])
def test_a_damaged_shard_is_found_moved_aside_and_asked_again(damage, capsys, refusal) -> None:
    ask()
    expected, stamp = columns("out"), shard(0).stat().st_mtime_ns
    broken = damage(shard(1).read_bytes())
    shard(1).write_bytes(broken)
    message = refusal(run.Run.open("out").scores)
    assert message.startswith(f"{shard(1)}: is not a complete record file")
    assert "moves it aside and asks it anew" in message
    ask()
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert shard(0).stat().st_mtime_ns == stamp, "undamaged shards are not touched"
    assert shard(1).with_name("000001.parquet.damaged").read_bytes() == broken
    err = capsys.readouterr().err
    assert "out/records/000001.parquet: is no complete record file of this run" in err
    assert "moved to 000001.parquet.damaged, and asked again" in err


def test_a_changed_byte_anywhere_is_found_or_changes_nothing() -> None:
    ask()
    content, expected = shard(0).read_bytes(), pq.read_table(shard(0))
    n_found = 0
    for position in range(0, len(content), 11):
        shard(0).write_bytes(flipped(content, position))
        if records.missing_shards(Path("out"), {0: 16}):
            n_found += 1
        else:  # the name of the seal
            assert pq.read_table(shard(0)).equals(expected)
    assert n_found >= len(content) // 11 - 2


def test_a_shard_of_another_run_or_another_number_is_asked_again(capsys) -> None:
    ask()
    expected = columns("out")
    ask("other", model="simulated:bias=0")
    shutil.copy("other/records/000000.parquet", shard(0))
    shutil.copy(shard(1), shard(2))
    ask()
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert capsys.readouterr().err.count("it is another run's, or has another place in it") == 2


def test_a_shard_that_may_not_be_read_is_not_taken_for_damaged(monkeypatch) -> None:
    ask()

    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=PermissionError(13, "Not for you")))
    with pytest.raises(RunFailed, match=r"000000.parquet: cannot be read \(Not for you\)"):
        records.missing_shards(Path("out"), {0: 16})


def test_damaged_items_are_written_again(capsys) -> None:
    scores, path = ask().scores(), Path("out/items.parquet")
    for broken in (cut(path.read_bytes()), flipped(path.read_bytes()), None):
        path.write_bytes(broken) if broken else path.unlink()
        pd.testing.assert_frame_equal(ask().scores(), scores)
    message = "items.parquet: was missing, damaged or of an earlier version"
    assert capsys.readouterr().err.count(message) == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"{", "run.json: cannot be read"),
        ("run.json", b"\xff\0", "run.json: cannot be read"),
        ("run.json", b"[]", "run.json: was not written by `bench run` (`benchmark` is missing)"),
        ("run.json", None, "out: holds no run (no run.json)"),
        ("items.parquet", b"PAR1", "items.parquet: is missing or damaged"),
        ("records", None, "out: holds no records yet"),
    ],
)
def test_a_damaged_or_missing_file_is_named(refusal, name, content, message: str) -> None:
    path = ask().folder / name
    if content:
        path.write_bytes(content)
    else:
        path.rename("moved")
    assert message in refusal(lambda: run.Run.open("out").scores())


# Locks.


def test_a_locked_run_is_read_and_nothing_in_it_is_moved(refusal) -> None:
    scores = ask().scores()
    with records.run_lock(Path("out")) as first, records.run_lock(Path("out")) as second:
        assert first == ""
        assert "another process is asking this run" in second
        pd.testing.assert_frame_equal(ask().scores(), scores)
        shard(0).write_bytes(b"PAR1")
        assert "another process is asking this run" in refusal(ask)
    assert shard(0).read_bytes() == b"PAR1"


def test_a_folder_in_which_no_run_was_begun_is_removed(refusal) -> None:
    refusal(ask, "new", model="replay:nothing.jsonl")
    with records.run_lock(Path("new/one")):
        assert Path("new/one/.lock").is_file()
    assert not Path("new/one").exists()


# Journals.


def keep(answers: list[list[Any]], start: int = 0) -> None:
    """Write answers to the journal of a run that is then interrupted."""
    journal = Journal(Path("out"))
    for k, answer in enumerate(answers, start):
        journal.add(3, k, "prompt", answer)
    journal.__exit__(KeyboardInterrupt)


def test_a_journal_returns_complete_lines_only() -> None:
    path = Path("out/records/journal.jsonl")
    answers = [
        ["甲\n\x1b[31m", [-0.5, float("-inf")], "", 0.25, None],
        ["", None, "refused", 0.0, None],
        ["x" * 10**6, None, "", 0.0, True],
    ]
    keep(answers)
    with path.open("ab") as stream:
        stream.write(b"\0" * 50 + b"\n[1, 2]\n{}\nnull\n" + b"[" * 10**5 + b"\n" + b"z" * 10**6)
    journal = Journal(Path("out"))
    assert [journal.get(3, k, "prompt") for k in range(3)] == answers
    assert journal.get(3, 0, "another prompt") is None
    keep(answers[:1], start=3)
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.26", 1))
    with Journal(Path("out")) as journal:
        known = [journal.get(3, k, "prompt") for k in range(4)]
        assert known == [None, answers[1], answers[2], answers[0]]
    assert not path.exists(), "a run that is complete needs none"


# Runs of older versions.


def test_a_recorded_run_of_version_0_1_is_scored_and_continued(monkeypatch) -> None:
    recorded = Path(__file__).parent / "recorded_run"
    shutil.copytree(recorded, "out")
    old = run.Run.open("out")
    before, scores = columns("out"), old.scores()
    assert len(before) == old.about["requests"] == 9
    assert (scores.metric == "coal").any()

    def again() -> run.Run:
        given = {"categories": ["zh"], "limit": 3, "data": "samples", "out": "out"}
        return run.evaluate("nli_coal", "simulated:bias=0.6,seed=4", **given)

    with monkeypatch.context() as patch:
        patch.setattr(scorers, "load", None)
        assert again().about == old.about
    shard(1).unlink()
    pd.testing.assert_frame_equal(again().scores(), scores)
    pd.testing.assert_frame_equal(columns("out"), before)
    for path in (recorded / "records").iterdir():
        assert pq.read_metadata(path).metadata[b"bench.seal"].split()[1] == path.stem[-1:].encode()


def test_a_run_without_seals_places_and_cut_replies_continues_in_its_own_order() -> None:
    result = ask()
    expected, about = result.records, records.read_run_json(result.folder)
    schema = pa.schema([field for field in records.SCHEMA if field.name not in ("place", "cut")])
    paths = sorted((result.folder / "records").iterdir())
    for k, path in enumerate(paths):
        rows = expected[k * 16 : (k + 1) * 16]
        pq.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False), path)
    assert "16 rows, not 15" in records.missing_shards(Path("out"), {0: 15})[0]
    paths[1].unlink()
    paths[0].write_bytes(cut(paths[0].read_bytes()))
    del about["order"]
    records.write_run_json(result.folder, about)
    again = ask().records
    assert again.drop(columns="seconds").equals(expected.drop(columns="seconds"))
