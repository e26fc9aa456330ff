"""Runs that are killed, interrupted or hindered: nothing is lost, or asked twice, or wrong."""

import errno
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from bench import __main__, records, run
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.files import DRAFT
from bench.scorers.simulated import Simulated
from tests.helpers.recorded import columns, watch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_blocks")]

MODEL = "simulated:bias=0.6,refuse=0.1,seed=4"
BLOCK = 16
# The files of a run, in the order in which they are written.
WRITTEN = ["items.parquet", "run.json", "answers.jsonl", "answers.parquet", "run.json"]


def ask(out="out", **options):
    given = {"tasks": ["ss"], "categories": ["age"], "repeats": 2, "data": "samples"}
    return run.evaluate("mcbe", MODEL, out=out, **{**given, **options})


@pytest.mark.parametrize(("number", "name"), list(enumerate(WRITTEN)))
def test_a_full_disk_is_explained_and_the_run_continues(monkeypatch, number, name):
    replace, written = os.replace, []

    def full(old, new):
        written.append(new)
        if len(written) == number + 1:
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


@pytest.mark.skipif(sys.platform != "linux", reason="this system limits no file sizes")
def test_a_line_that_a_full_disk_cut_off_is_asked_again_alone(monkeypatch):
    """The answers of a block come in one piece, of which the disk takes a part."""
    import resource

    ask("undisturbed")
    expected, limit, asked = columns("undisturbed"), resource.RLIMIT_FSIZE, []
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (20_000, before[1]))
    try:
        with pytest.raises(RunFailed, match=r"answers.jsonl: cannot be written \(File too large\)"):
            ask()
    finally:
        resource.setrlimit(limit, before)
    n_recorded = len(columns("out"))
    assert n_recorded % BLOCK, "the block was cut"
    watch(monkeypatch, asked.extend)
    ask()
    assert len(asked) == len(expected) - n_recorded
    pd.testing.assert_frame_equal(columns("out"), expected)


def test_a_run_on_a_read_only_disk_is_scored_and_not_written(monkeypatch, refusal):
    scores = ask().scores()
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}

    def denied(*_, **__):
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
INTERRUPTS = {signal.SIGINT, signal.SIGTERM}
KILLS = 25


def fork(out, asked, streamed, arguments):
    """Fork `bench run`, slowed down, and return the process; `asked` lists what it asks."""
    # A signal right after the fork must not find the caller's code in the fork.
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    asked.touch()
    asked.with_suffix(".err").touch()
    given = asked, streamed, ["bench", "run", *arguments, "--out", str(out)]
    process = multiprocessing.get_context("fork").Process(target=command, args=given)
    process.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    return process


def command(asked, streamed, arguments):
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        os.dup2(os.open(asked.with_suffix(".err"), os.O_WRONLY), 2)
        sys.stdout, sys.stderr = open(os.devnull, "w"), open(2, "w", closefd=False)  # noqa: SIM115
        slow_down(asked, streamed)
        sys.argv = arguments
        __main__.main()
    except KeyboardInterrupt:
        sys.exit(130)


def slow_down(asked, streamed):
    def log(requests):
        with asked.open("a", encoding="utf-8") as file:
            for r in requests:
                time.sleep(0.002)
                file.write(f"{r.task} {r.item_id} {r.request} {r.repeat}\n")

    def stream(self, blocks):
        requests = [request for block in blocks for request in block]
        random.Random(os.getpid()).shuffle(requests)  # another order in each process
        for request in requests:
            yield [(request, self.answer([request])[0])]

    watch(pytest.MonkeyPatch(), log)
    if streamed:
        Simulated.stream = stream


def recorded(folder):
    """The answers that a run has, by request."""
    try:
        return columns(folder).set_index(records.KEYS)
    except BadInput:  # none
        return pd.DataFrame()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("options", [ONE, STAGES], ids=len)
def test_kills_at_random_moments_leave_no_trace(options, streamed):
    arguments = ["mcbe", "--model", MODEL, "--repeats", "2", *options, "--data", "samples"]
    rng, began, undisturbed = random.Random(len(options)), time.monotonic(), Path("undisturbed")
    process = fork(undisturbed, Path("0.txt"), streamed, arguments)
    process.join()
    assert process.exitcode == 0, Path("0.err").read_text("utf-8")
    seconds, expected = time.monotonic() - began, recorded(undisturbed)
    n_kills = n_runs = 0
    while n_kills < KILLS:
        n_runs, n_starts, n_asked, status = n_runs + 1, 0, 0, None
        folder = Path(f"killed {n_runs}")
        while status != 0:
            asked, number = Path(f"{n_runs}-{n_starts}.txt"), rng.choice(SIGNALS)
            before = recorded(folder)
            process = fork(folder, asked, streamed, arguments)
            if len(before) < len(expected):
                time.sleep(rng.uniform(0, seconds))
                os.kill(process.pid, number)
            process.join()
            status, err = process.exitcode, asked.with_suffix(".err").read_text("utf-8")
            names, now = asked.read_text("utf-8").splitlines(), recorded(folder)
            assert not {" ".join(map(str, key)) for key in before.index} & set(names)
            assert set(before.index) <= set(now.index)
            shared = expected.loc[now.index, list(now)] if len(now) else now
            pd.testing.assert_frame_equal(now, shared)
            n_starts, n_asked = n_starts + 1, n_asked + len(names)
            assert "Traceback" not in err
            # Before the command begins it cannot say anything.
            ends = {130, -number} if number == signal.SIGINT else {-number}
            assert status in {0, *ends}, err
            if status > 0 and err and not records.is_complete(folder):
                assert err.splitlines()[-1] == f"bench: interrupted; {CONTINUES}"
        pd.testing.assert_frame_equal(columns(folder), columns(undisturbed))
        assert not list(folder.rglob(f"{DRAFT}*"))
        # Beside them are kept score tables.
        files = [path for path in folder.rglob("*") if path.is_file()]
        left = {path.name for path in files if path.parent.name != "cache"}
        assert left == {"run.json", "items.parquet", "answers.parquet", "scores.json", ".lock"}
        scores = [run.Run.open(one).scores() for one in (folder, undisturbed)]
        pd.testing.assert_frame_equal(*scores)
        # Each kill loses what was under way: a block, or one streamed answer.
        assert n_asked - len(expected) <= (n_starts - 1) * (1 if streamed else BLOCK)
        n_kills += n_starts - 1
