"""Runs that are killed, interrupted or hindered: nothing is lost, or asked twice, or wrong."""

import errno
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bench import __main__, data, run
from bench.core.errors import RunFailed
from bench.core.files import DRAFT
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from bench.tasks.request import Request
from tests.helpers.recorded import columns

pytestmark = pytest.mark.slow

MODEL = "simulated:bias=0.6,refuse=0.1,seed=4"
SAMPLES = str(data.SAMPLES / "mcbe")
CONTINUES = {
    130: "bench: interrupted; the same command continues from what is recorded",
    143: "bench: ended by SIGTERM; the same command continues from what is recorded",
}
SHARD = 16


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", SHARD)


def ask(out: Path | str = "out", **options) -> run.Run:
    given = {"tasks": ["ss"], "categories": ["age"], "repeats": 2, "data": SAMPLES}
    return run.evaluate("mcbe", MODEL, out=out, **{**given, **options})


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
    ask()
    ask("undisturbed")
    pd.testing.assert_frame_equal(columns("out"), columns("undisturbed"))


def test_a_run_on_a_read_only_disk_is_scored_and_not_written(monkeypatch, refusal) -> None:
    scores = ask().scores()
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}

    def denied(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("bench.core.locks.FileLock.acquire", denied)
    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, denied)
    pd.testing.assert_frame_equal(ask().scores(), scores)
    ask(preset="official")
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    assert "cannot be written (Read-only file system)" in refusal(ask, seed=1, out="other")


# Kills at random moments.

ONE = ["--tasks", "ss", "--categories", "age,race"]
STAGES = ["--tasks", "sc,ba,bs", "--categories", "age,worldview", "--set", "context_order=judge"]
STAGES += ["--judge", "simulated:competence=0.7,seed=9"]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS = 25


def fork(out: Path, asked: Path, streamed: bool, arguments: Sequence[str]) -> int:
    """Fork `bench run`, slowed down, and return the process; `asked` lists what it asks."""
    # A signal right after the fork must not find the caller's code in the fork.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    if process := os.fork():
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    status: int | str | None = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.dup2(os.open(asked.with_suffix(".err"), os.O_CREAT | os.O_WRONLY), 2)
        sys.stdout, sys.stderr = open(os.devnull, "w"), open(2, "w", closefd=False)  # noqa: SIM115
        slow_down(asked, streamed)
        sys.argv = ["bench", "run", *arguments, "--out", str(out)]
        __main__.main()
    except SystemExit as ended:
        status = ended.code
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # it is read from the file
        traceback.print_exc()
    finally:
        os._exit(int(status or 0))


def slow_down(asked: Path, streamed: bool) -> None:
    original = Simulated.answer

    def answer(self: Simulated, requests: Sequence[Request]) -> list[Answer]:
        with asked.open("a", encoding="utf-8") as file:
            for r in requests:
                time.sleep(0.002)
                file.write(f"{r.task} {r.item_id} {r.request} {r.repeat}\n")
        return original(self, requests)

    def stream(self: Simulated, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        order = list(range(len(requests)))
        random.Random(os.getpid()).shuffle(order)  # another one in each process
        for k in order:
            yield k, answer(self, [requests[k]])[0]

    Simulated.answer = answer
    if streamed:
        Simulated.stream = stream


def read_shard(path: Path) -> pd.DataFrame:
    return pq.read_table(path).to_pandas().drop(columns="seconds")


def scores_of(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


def text_of(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("options", [ONE, STAGES], ids=len)
def test_kills_at_random_moments_leave_no_trace(options, streamed: bool) -> None:
    arguments = ["mcbe", "--model", MODEL, "--repeats", "2", *options, "--data", SAMPLES]
    rng, began = random.Random(len(options)), time.monotonic()
    process = fork(Path("undisturbed"), Path("0.txt"), streamed, arguments)
    assert os.waitpid(process, 0)[1] == 0, text_of(Path("0.err"))
    seconds = time.monotonic() - began
    shards = {path.name: read_shard(path) for path in Path("undisturbed/records").glob("[0-9]*")}
    n_kills = n_runs = 0
    while n_kills < KILLS:
        n_runs, n_starts, n_asked, status = n_runs + 1, 0, 0, None
        folder, stamps = Path(f"killed {n_runs}"), dict[str, int]()
        while status != 0:
            asked = Path(f"{n_runs}-{n_starts}.txt")
            process, number = fork(folder, asked, streamed, arguments), rng.choice(SIGNALS)
            if len(stamps) < len(shards):
                time.sleep(rng.uniform(0, seconds))
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            # Old shards are untouched and not asked again, new ones are as undisturbed.
            files = list((folder / "records").glob("[0-9]*"))
            now = {path.name: path.stat().st_mtime_ns for path in files}
            assert {name: now.get(name) for name in stamps} == stamps
            keys = [shards[name][["task", "item_id", "request", "repeat"]] for name in stamps]
            recorded = {" ".join(map(str, row)) for key in keys for row in key.to_numpy()}
            names = text_of(asked).splitlines()
            assert not recorded & set(names), "asked again although it was recorded"
            for path in files:
                if path.name not in stamps:
                    pd.testing.assert_frame_equal(read_shard(path), shards[path.name])
            stamps, n_starts, n_asked = now, n_starts + 1, n_asked + len(names)
            err = text_of(asked.with_suffix(".err"))
            assert "Traceback" not in err
            if status != 0:  # before the command begins it cannot say anything
                assert status in ((-9,) if number == signal.SIGKILL else (128 + number, -number)), (
                    err
                )
                assert status < 0 or not err or err.splitlines()[-1] == CONTINUES[status]
        pd.testing.assert_frame_equal(columns(folder), columns("undisturbed"))
        left = {path.name for path in folder.rglob("*") if path.is_file()}
        assert left - {*stamps} == {"run.json", "items.parquet", "scores.json", ".lock"}
        assert scores_of(folder) == scores_of(Path("undisturbed"))
        # Each kill loses what was under way: a shard, or one streamed answer.
        n_lost = n_asked - sum(map(len, shards.values()))
        assert n_lost <= (n_starts - 1) * (1 if streamed else SHARD)
        n_kills += n_starts - 1
