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
from collections import Counter
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


# One process writes.


def test_a_second_process_is_refused_until_the_first_one_is_gone(refusal) -> None:
    first = start()
    assert "out: another process is asking this run; wait until it has ended" in refusal(ask)
    first.kill()
    first.communicate()
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


# Interruptions.


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_command_ends_in_one_line_and_continues(name: str) -> None:
    process = start()
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == CONTINUES
    assert "Traceback" not in err
    assert_as_undisturbed()


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
# Whether answers come one at a time, and the options.
RUNS = {
    "one stage": (False, ONE),
    "one stage, streamed": (True, ONE),
    "stages with a judge": (False, STAGES),
    "stages with a judge, streamed": (True, STAGES),
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def read_shard(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(path).to_pandas().drop(columns="seconds")
    return frame


def shard_files(folder: Path) -> list[Path]:
    return sorted((folder / "records").glob("[0-9]*"))


class Undisturbed:
    """A run that is left alone: its records, scores and how long it took."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, (self.stream, options) = folder, RUNS[name]
        self.arguments = ["mcbe", "--model", f"{MODEL},seed=4", "--repeats", "2", *options]
        self.arguments += ["--data", SAMPLES]
        folder.mkdir()
        began, asked = time.monotonic(), folder / "0.txt"
        process = killed.start(folder / "whole", asked, self.stream, self.arguments)
        status = os.waitpid(process, 0)[1]
        assert status == 0, asked.with_suffix(".err").read_text("utf-8")
        self.seconds = time.monotonic() - began
        files = shard_files(folder / "whole")
        self.shards = {path.name: read_shard(path) for path in files}
        self.scores = json.loads(asked.with_suffix(".out").read_text("utf-8"))["scores"]
        started = (folder / "whole/run.json").stat().st_mtime
        self.asking = max(path.stat().st_mtime for path in files) - started


class Killed:
    """The same run, killed and started again until it is complete."""

    def __init__(self, folder: Path, undisturbed: Undisturbed, rng: random.Random) -> None:
        self.folder, self.undisturbed, self.rng = folder, undisturbed, rng
        self.starts = 0
        self.stamps: dict[str, int] = {}
        self.asked: Counter[str] = Counter()
        folder.mkdir()

    def kill(self) -> tuple[str, str] | None:
        """Start the run and kill it at a random moment; None if it was complete before.

        Returns:
            The signal, and the stage of the run.
        """
        self.starts += 1
        asked, number = self.folder / f"{self.starts}.txt", self.rng.choice(SIGNALS)
        reference = self.undisturbed
        arguments = reference.arguments
        process = killed.start(self.folder / "out", asked, reference.stream, arguments)
        if len(self.stamps) < len(reference.shards):
            # Most kills shall come while something is asked.
            if self.rng.random() < (0.8 if self.stamps else 0.4):
                until = time.monotonic() + reference.seconds
                while not asked.is_file() and time.monotonic() < until:
                    time.sleep(0.002)
                time.sleep(self.rng.uniform(0, reference.asking / 4))
            else:
                time.sleep(self.rng.uniform(0, reference.seconds - reference.asking))
            with suppress(ProcessLookupError):
                os.kill(process, number)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self.check_files(asked)
        if status == 0:
            self.check_complete(asked)
            return None
        log = asked.with_suffix(".err")
        err = log.read_text("utf-8") if log.is_file() else ""
        assert "Traceback" not in err
        # Before the command begins it cannot say anything.
        assert status in ((-number,) if number == signal.SIGKILL else (130, -number)), err
        if status == 130 and err:
            assert err.splitlines()[-1] == CONTINUES
        return number.name, self.stage()

    def stage(self) -> str:
        out = self.folder / "out"
        if not (out / "run.json").is_file():
            return "before run.json"
        if len(self.stamps) == len(self.undisturbed.shards):
            return "all recorded"
        return "asking, journal" if (out / "records/journal.jsonl").is_file() else "asking"

    def check_files(self, asked: Path) -> None:
        """Check that old shards are untouched and not asked again, and new ones as undisturbed."""
        names = ["task", "item_id", "request", "repeat"]
        recorded = {
            " ".join(map(str, row))
            for name in self.stamps
            for row in self.undisturbed.shards[name][names].itertuples(index=False)
        }
        files = shard_files(self.folder / "out")
        stamps = {path.name: path.stat().st_mtime_ns for path in files}
        assert {name: stamps.get(name) for name in self.stamps} == self.stamps
        for path in files:
            if path.name not in self.stamps:
                expected = self.undisturbed.shards[path.name]
                pd.testing.assert_frame_equal(read_shard(path), expected)
        self.stamps = stamps
        now = asked.read_text("utf-8").splitlines() if asked.is_file() else []
        assert not recorded & set(now), "asked again although it was recorded"
        self.asked.update(now)

    def check_complete(self, asked: Path) -> None:
        scores = json.loads(asked.with_suffix(".out").read_text("utf-8"))["scores"]
        assert scores == self.undisturbed.scores
        expected = columns(self.undisturbed.folder / "whole")
        pd.testing.assert_frame_equal(columns(self.folder / "out"), expected)
        files = {path.name for path in (self.folder / "out").rglob("*") if path.is_file()}
        assert files - {*self.stamps} == {"run.json", "items.parquet", ".lock"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("n_kills", "seed"), [(4, 1), (100, 0)])
def test_kills_at_random_moments_leave_no_trace(tmp_path: Path, n_kills: int, seed: int) -> None:
    rng, stages = random.Random(seed), Counter()
    references: dict[str, Undisturbed] = {}
    n_complete = 0
    while stages.total() < n_kills:
        name = list(RUNS)[n_complete % len(RUNS)]
        if name not in references:
            references[name] = Undisturbed(tmp_path / f"reference {len(references)}", name)
        again = Killed(tmp_path / str(n_complete), references[name], rng)
        before = stages.total()
        while stage := again.kill():
            stages[stage] += 1
        # Each kill loses what was under way: a shard, or one streamed answer.
        lost = again.asked.total() - sum(map(len, references[name].shards.values()))
        assert lost <= (stages.total() - before) * (1 if RUNS[name][0] else killed.SHARD), name
        n_complete += 1
    if n_kills >= 100:
        kinds = {stage for _, stage in stages}
        assert kinds >= {"before run.json", "asking", "asking, journal"}
