"""Trouble around a run: a second writer, full disks, read-only folders, damaged files, clocks that jump, interruptions."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from bench import data, lock, records, run, sealed
from bench.core.errors import BadInput, RunFailed
from bench.core.files import DRAFT
from bench.journal import FILE, Journal
from bench.run import run_json
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns

pytestmark = pytest.mark.slow

MODEL = "simulated:bias=0.6,refuse=0.1"
CALL = [
    "mcbe",
    "--model",
    MODEL,
    "--tasks",
    "ss",
    "--categories",
    "age",
    "--repeats",
    "2",
    "--data",
    str(data.SAMPLES / "mcbe"),
]


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 32)


def ask(out: Path | str = "out", model: str = MODEL, **options) -> run.Run:
    given = {"tasks": ["ss"], "categories": ["age"], "repeats": 2, "data": data.SAMPLES / "mcbe"}
    return run.evaluate("mcbe", model, out=out, **{**given, **options})


def start(script: str) -> subprocess.Popen[str]:
    """A process that asks slowly, and says so when it has begun; `script` is done before."""
    code = f"""
import sys, time
from bench import cli, run
from bench.scorers.stand_ins.simulated import Simulated
run.SHARD = 32
answer = Simulated.answer
def slowly(self, requests):
    print("asking", flush=True)
    time.sleep(0.2)
    return answer(self, requests)
Simulated.answer = slowly
{script}
sys.argv = ["bench", "run", *{CALL!r}, "--out", "out"]
cli.main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "asking\n", process.stderr.read()
    return process


# One writer.


def test_a_second_process_is_refused_while_the_first_asks_and_goes_on_once_that_is_killed(
    refusal,
) -> None:
    first = start("")
    assert "out: another process is asking this run; wait until it has ended" in refusal(ask)
    first.kill()
    first.communicate()
    ask()
    ask("whole")
    pd.testing.assert_frame_equal(columns("out"), columns("whole"))


@pytest.mark.parametrize("which", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_ends_in_a_line_and_the_same_command_continues(which: str) -> None:
    process = start("")
    process.send_signal(getattr(signal, which))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.splitlines()[-1]
        == "bench: interrupted; the same command continues from what is recorded"
    )
    assert "Traceback" not in err
    ask()
    ask("whole")
    pd.testing.assert_frame_equal(columns("out"), columns("whole"))


def test_interrupted_while_the_package_is_loaded_it_ends_in_a_line(monkeypatch, capsys) -> None:
    from bench import __main__, cli

    monkeypatch.setattr(cli, "main", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "bench: interrupted before it began\n"


def test_two_threads_do_not_write_into_one_folder(monkeypatch) -> None:
    answer, go = Simulated.answer, threading.Event()

    def waits(self: Simulated, requests: list) -> list[Answer]:
        go.wait(30)
        return answer(self, requests)

    monkeypatch.setattr(Simulated, "answer", waits)
    first = threading.Thread(target=ask)
    first.start()
    try:
        while not Path("out/run.json").is_file():
            time.sleep(0.01)
        with pytest.raises(BadInput, match="another process is asking this run"):
            ask()
    finally:
        go.set()
        first.join()
    assert not ask().records.empty


def test_a_complete_run_is_read_while_another_holds_it() -> None:
    wanted = ask().scores()
    with lock.hold(Path("out")) as held, lock.hold(Path("out")) as second:
        assert not held.why_not
        assert second.why_not
        pd.testing.assert_frame_equal(ask().scores(), wanted)


def test_who_does_not_hold_a_run_moves_nothing(refusal) -> None:
    ask()
    path = records.shard_path(Path("out"), 0)
    path.write_bytes(b"PAR1")
    with lock.hold(Path("out")):
        assert "another process is asking this run" in refusal(ask)
    assert path.read_bytes() == b"PAR1"


def test_nothing_is_left_of_a_folder_where_no_run_was_begun(refusal) -> None:
    refusal(ask, "new", model="replay:nothing.jsonl")
    with lock.hold(Path("new/one")):
        assert Path("new/one/.lock").is_file()
    assert not Path("new/one").exists()


# Damaged files.


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 3
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [cut, flipped, lambda _: b"", lambda _: b"<html>", lambda c: c + b"\0"],
    ids=["cut", "flipped", "empty", "other", "longer"],
)
def test_a_damaged_record_file_is_found_moved_aside_and_asked_again(
    damage, capsys, refusal
) -> None:
    ask()
    wanted, path = columns("out"), records.shard_path(Path("out"), 1)
    stamp = records.shard_path(Path("out"), 0).stat().st_mtime_ns
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    said = refusal(run.Run.open("out").scores)
    assert "000001.parquet: is not a whole record file" in said
    assert "moves it aside and asks it anew" in said
    capsys.readouterr()
    ask()
    pd.testing.assert_frame_equal(columns("out"), wanted)
    assert records.shard_path(Path("out"), 0).stat().st_mtime_ns == stamp, (
        "the others are left as they are"
    )
    assert path.with_name("000001.parquet.damaged").read_bytes() == broken
    err = capsys.readouterr().err
    assert "out/records/000001.parquet: is no whole record file of this run" in err
    assert "moved to 000001.parquet.damaged, and asked again" in err


def test_a_record_file_of_another_run_or_another_place_is_not_taken_for_one(capsys) -> None:
    ask()
    wanted = columns("out")
    ask("other", model="simulated:bias=0")
    shutil.copy("other/records/000000.parquet", "out/records/000000.parquet")
    shutil.copy("out/records/000001.parquet", "out/records/000002.parquet")
    ask()
    pd.testing.assert_frame_equal(columns("out"), wanted)
    assert capsys.readouterr().err.count("it is another run's, or has another place in it") == 2


def test_a_changed_byte_anywhere_is_found_or_changes_nothing() -> None:
    ask()
    path = records.shard_path(Path("out"), 0)
    content, wanted = path.read_bytes(), sealed.read(path)
    for k in range(0, len(content), 29):
        path.write_bytes(content[:k] + bytes([content[k] ^ 4]) + content[k + 1 :])
        if not records.lacking(Path("out"), {0: 32}):
            assert sealed.read(path).equals(wanted)


def test_a_file_that_may_not_be_read_is_no_damaged_one(monkeypatch) -> None:
    ask()

    def refused(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(RunFailed, match=r"000000.parquet: cannot be read \(Permission denied\)"):
        records.lacking(Path("out"), {0: 32})


def test_an_older_file_without_a_seal_counts_if_it_can_be_read() -> None:
    import pyarrow.parquet as pq

    ask()
    path = records.shard_path(Path("out"), 0)
    pq.write_table(sealed.read(path), path)
    assert records.lacking(Path("out"), {0: 32}) == {}
    assert "32 rows, not 31" in records.lacking(Path("out"), {0: 31})[0]
    path.write_bytes(cut(path.read_bytes()))
    assert 0 in records.lacking(Path("out"), {0: 32})


def test_damaged_items_are_written_anew_from_the_same_data(capsys) -> None:
    wanted = ask().scores()
    path = Path("out/items.parquet")
    for broken in (cut(path.read_bytes()), flipped(path.read_bytes()), None):
        path.write_bytes(broken) if broken else path.unlink()
        pd.testing.assert_frame_equal(ask().scores(), wanted)
    assert (
        capsys.readouterr().err.count(
            "items.parquet: was missing, damaged or of an earlier version"
        )
        == 3
    )


def test_a_damaged_run_json_is_a_sentence(refusal) -> None:
    ask()
    path = Path("out/run.json")
    path.write_bytes(cut(path.read_bytes()))
    assert "run.json: cannot be read" in refusal(ask)
    path.write_bytes(b"\xff\0")
    assert "run.json: cannot be read" in refusal(ask)


def test_a_journal_gives_back_whole_lines_alone() -> None:
    path = Path("out/records") / FILE
    said = [
        Answer("甲\n\x1b[31m", (-0.5, float("-inf")), seconds=0.25),
        Answer("", error="refused"),
        Answer("x" * 10**6),
    ]
    journal = Journal(path)
    for k, answer in enumerate(said):
        journal.add(3, k, "h", answer)
    journal.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    with path.open("ab") as stream:
        stream.write(b"\0" * 50 + b"\n[1, 2]\n{}\nnull\n" + b"[" * 10**5 + b"\n" + b"z" * 10**6)
    journal = Journal(path)
    assert [journal.known(3, k, "h") for k in range(3)] == said
    assert journal.known(3, 0, "other") is None
    journal.add(3, 3, "h", said[0])
    journal.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    lines = path.read_bytes().split(b"\n")
    first = next(k for k, line in enumerate(lines) if line)
    lines[first] = lines[first].replace(b"0.25", b"0.26")
    path.write_bytes(b"\n".join(lines))
    with Journal(path) as journal:
        assert [journal.known(3, k, "h") for k in range(4)] == [None, said[1], said[2], said[0]]
    assert not path.exists(), "a block that ended well needs no journal"


# A disk that takes no more, and one that takes nothing.


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_a_sentence_whatever_is_written(monkeypatch) -> None:
    ask("whole")
    replace = os.replace
    for name in ("items.parquet", "run.json", "000001.parquet"):

        def some(old: Path, new: Path, name: str = name) -> None:
            full() if Path(new).name == name else replace(old, new)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", some)
            with pytest.raises(
                RunFailed,
                match=rf"{name}: cannot be written \(No space left on device\); once that is mended, the same command continues",
            ):
                ask()
        assert not list(Path("out").rglob(f"{DRAFT}*"))
    ask()
    pd.testing.assert_frame_equal(columns("out"), columns("whole"))


def test_a_journal_on_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    code = f"""
import resource, sys
from pathlib import Path
from bench.core.errors import RunFailed
from bench.journal import Journal
from bench.scorers.base import Answer
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
path = Path({str(tmp_path / FILE)!r})
try:
    with Journal(path) as journal:
        for k in range(100):
            journal.add(0, k, "h", Answer("x" * 100))
except RunFailed as error:
    print(error)
journal = Journal(path)
print(sum(journal.known(0, k, "h") is not None for k in range(100)))
"""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    said, known = done.stdout.splitlines()
    assert "cannot be written (File too large)" in said, done.stderr
    assert 20 < int(known) < 40


def test_a_run_in_an_archive_is_read_and_scored_and_not_written(monkeypatch, refusal) -> None:
    wanted = ask().scores()
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}

    def denied(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(lock.FileLock, "acquire", denied)
    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, denied)
    monkeypatch.setattr(Path, "unlink", denied)
    pd.testing.assert_frame_equal(ask().scores(), wanted)
    ask(preset="official")
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    assert "cannot be written (Read-only file system)" in refusal(ask, seed=1, out="other")


# A clock that jumps.


def test_only_the_date_of_a_run_depends_on_the_clock(monkeypatch) -> None:
    ask("whole")
    steps = iter(range(10**9))

    class Clock(run_json.datetime):
        @classmethod
        def now(cls, tz=None):
            return run_json.datetime.fromtimestamp(0, tz)

    monkeypatch.setattr(run_json, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: (-1) ** next(steps) * 4e9)
    ask()
    pd.testing.assert_frame_equal(columns("out"), columns("whole"))
    first, second = (
        json.loads(Path(name, "run.json").read_text("utf-8")) for name in ("out", "whole")
    )
    assert {name for name in first if first[name] != second[name]} == {"when"}
    assert records.read(Path("out")).seconds.min() >= 0


def test_what_killed_processes_left_half_written_is_swept_away() -> None:
    ask()
    left = [Path("out") / f"{DRAFT}1-run.json", Path("out/records") / f"{DRAFT}1-000000.parquet"]
    for path in left:
        path.write_bytes(b"PAR1")
    records.shard_path(Path("out"), 0).unlink()
    ask()
    assert not any(path.exists() for path in left)
