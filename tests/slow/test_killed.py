"""Runs that are killed, interrupted or hindered: nothing is lost, asked twice, or silently wrong."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bench import data, records, run
from bench.core.errors import BadInput, RunFailed
from bench.core.files import DRAFT
from bench.run import run_json
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns
from tests.slow.helpers import killed

pytestmark = pytest.mark.slow

MODEL = "simulated:bias=0.6,refuse=0.1"
SAMPLES = str(data.SAMPLES / "mcbe")
CONTINUES = "bench: interrupted; the same command continues from what is recorded"


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 32)


def ask(out: Path | str = "out", model: str = MODEL, **options) -> run.Run:
    given = {"tasks": ["ss"], "categories": ["age"], "repeats": 2, "data": SAMPLES}
    return run.evaluate("mcbe", model, out=out, **{**given, **options})


def assert_as_undisturbed() -> None:
    """Continue the run in `out`, and compare it with one that was not disturbed."""
    ask()
    ask("undisturbed")
    pd.testing.assert_frame_equal(columns("out"), columns("undisturbed"))


def start() -> subprocess.Popen[str]:
    """Start `bench run` in a process that answers slowly, and wait until it asks."""
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
sys.argv = ["bench", "run", "mcbe", "--model", {MODEL!r}, "--tasks", "ss", "--categories", "age",
    "--repeats", "2", "--data", {SAMPLES!r}, "--out", "out"]
cli.main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "asking\n", process.stderr.read()
    return process


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_ended_command_says_so_and_continues(refusal, name: str) -> None:
    process = start()
    assert "out: another process is asking this run; wait until it has ended" in refusal(ask)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if name != "SIGKILL":
        assert (process.returncode, err.splitlines()[-1]) == (130, CONTINUES)
    assert_as_undisturbed()


def test_two_threads_do_not_write_into_one_folder(monkeypatch) -> None:
    original, go = Simulated.answer, threading.Event()

    def answer(self: Simulated, requests: list) -> list[Answer]:
        go.wait(30)
        return original(self, requests)

    monkeypatch.setattr(Simulated, "answer", answer)
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


def test_interrupted_while_the_package_is_imported_it_ends_in_a_line(monkeypatch, capsys) -> None:
    from bench import __main__, cli

    monkeypatch.setattr(cli, "main", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "bench: interrupted before it began\n"


def test_drafts_of_killed_processes_are_removed() -> None:
    ask()
    drafts = [Path("out") / f"{DRAFT}1-run.json", Path("out/records") / f"{DRAFT}1-000000.parquet"]
    for path in drafts:
        path.write_bytes(b"PAR1")
    records.shard_path(Path("out"), 0).unlink()
    ask()
    assert not any(path.exists() for path in drafts)


# Disks that are full or read-only, and a clock that jumps.


@pytest.mark.parametrize("name", ["items.parquet", "run.json", "000001.parquet"])
def test_a_full_disk_is_explained_and_the_run_continues(monkeypatch, name: str) -> None:
    replace = os.replace

    def full(old: Path, new: Path) -> None:
        if Path(new).name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(old, new)

    message = rf"{name}: cannot be written \(No space left on device\); .* the same command"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(RunFailed, match=message):
            ask()
    assert not list(Path("out").rglob(f"{DRAFT}*"))
    assert_as_undisturbed()


def test_a_journal_on_a_full_disk_is_explained_and_keeps_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    code = f"""
import resource
from pathlib import Path
from bench.core.errors import RunFailed
from bench.records import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
folder = Path({str(tmp_path)!r})
try:
    with Journal(folder) as journal:
        for k in range(100):
            journal.add(0, k, "prompt", ["x" * 100])
except RunFailed as error:
    print(error)
print(sum(Journal(folder).get(0, k, "prompt") is not None for k in range(100)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    message, n_kept = done.stdout.splitlines()
    assert "cannot be written (File too large)" in message, done.stderr
    assert 20 < int(n_kept) < 40


def test_a_run_on_a_read_only_disk_is_scored_and_not_written(monkeypatch, refusal) -> None:
    scores = ask().scores()
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}

    def denied(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(records.FileLock, "acquire", denied)
    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, denied)
    monkeypatch.setattr(Path, "unlink", denied)
    pd.testing.assert_frame_equal(ask().scores(), scores)
    ask(preset="official")
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    assert "cannot be written (Read-only file system)" in refusal(ask, seed=1, out="other")


def test_only_the_date_of_a_run_depends_on_the_clock(monkeypatch) -> None:
    ask("undisturbed")
    steps = iter(range(10**9))

    class Clock(run_json.datetime):
        @classmethod
        def now(cls, tz=None):
            return run_json.datetime.fromtimestamp(0, tz)

    monkeypatch.setattr(run_json, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: (-1) ** next(steps) * 4e9)
    assert_as_undisturbed()
    first, second = (records.read_run_json(Path(name)) for name in ("out", "undisturbed"))
    assert {name for name in first if first[name] != second[name]} == {"when"}
    assert records.read(Path("out")).seconds.min() >= 0


# Kills at random moments.

ONE = ["--tasks", "ss", "--categories", "age,race"]
STAGES = ["--tasks", "sc,ba,bs", "--categories", "age,worldview", "--set", "context_order=judge"]
STAGES += ["--judge", "simulated:competence=0.7,seed=9"]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS = 25


def read_shard(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(path).to_pandas().drop(columns="seconds")
    return frame


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("options", [ONE, STAGES], ids=["one stage", "stages with a judge"])
def test_kills_at_random_moments_leave_no_trace(tmp_path, options, streamed: bool) -> None:
    arguments = ["mcbe", "--model", f"{MODEL},seed=4", "--repeats", "2", *options]
    arguments += ["--data", SAMPLES]
    rng, names = random.Random(len(options)), ["task", "item_id", "request", "repeat"]

    def start(folder: str, number: int) -> tuple[int, Path]:
        asked = tmp_path / f"{folder}-{number}.txt"
        return killed.start(tmp_path / folder, asked, streamed, arguments), asked

    began = time.monotonic()
    process, asked = start("undisturbed", 0)
    assert os.waitpid(process, 0)[1] == 0, asked.with_suffix(".err").read_text("utf-8")
    seconds = time.monotonic() - began
    scores = json.loads(asked.with_suffix(".out").read_text("utf-8"))["scores"]
    records_of = {
        path.name: read_shard(path) for path in (tmp_path / "undisturbed/records").glob("[0-9]*")
    }
    n_kills = n_runs = 0
    while n_kills < KILLS:
        folder = f"killed {n_runs}"
        stamps: dict[str, int] = {}
        asked_names: list[str] = []
        status, n_starts = None, 0
        while status != 0:
            process, asked = start(folder, n_starts)
            signal_number = rng.choice(SIGNALS)
            if len(stamps) < len(records_of):
                time.sleep(rng.uniform(0, seconds))
                with suppress(ProcessLookupError):
                    os.kill(process, signal_number)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            # Old shards are untouched and not asked again, new ones are as undisturbed.
            files = list((tmp_path / folder / "records").glob("[0-9]*"))
            now = {path.name: path.stat().st_mtime_ns for path in files}
            assert {name: now.get(name) for name in stamps} == stamps
            recorded = {
                " ".join(map(str, row))
                for name in stamps
                for row in records_of[name][names].itertuples(index=False)
            }
            new_names = asked.read_text("utf-8").splitlines() if asked.is_file() else []
            assert not recorded & set(new_names), "asked again although it was recorded"
            for path in files:
                if path.name not in stamps:
                    pd.testing.assert_frame_equal(read_shard(path), records_of[path.name])
            stamps, n_starts, asked_names = now, n_starts + 1, asked_names + new_names
            log = asked.with_suffix(".err")
            err = log.read_text("utf-8") if log.is_file() else ""
            assert "Traceback" not in err
            if status != 0:  # before the command begins it cannot say anything
                is_killed = signal_number == signal.SIGKILL
                assert status in ((-9,) if is_killed else (130, -signal_number)), err
                assert status != 130 or not err or err.splitlines()[-1] == CONTINUES
        assert json.loads(asked.with_suffix(".out").read_text("utf-8"))["scores"] == scores
        pd.testing.assert_frame_equal(columns(tmp_path / folder), columns(tmp_path / "undisturbed"))
        left = {path.name for path in (tmp_path / folder).rglob("*") if path.is_file()}
        assert left - {*stamps} == {"run.json", "items.parquet", ".lock"}
        # Each kill loses what was under way: a shard, or one streamed answer.
        n_lost = len(asked_names) - sum(map(len, records_of.values()))
        assert n_lost <= (n_starts - 1) * (1 if streamed else killed.SHARD)
        n_kills, n_runs = n_kills + n_starts - 1, n_runs + 1
