"""Signals at random moments of `bench report` and `bench train nli`: what is left, what goes on.

python -m tests.slow.test_signals 60 FOLDER     60 moments of each command, and the table of them
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import psutil
import pytest

from bench.core.files import DRAFT
from bench.core.text import as_json

pytestmark = pytest.mark.slow

STUDY = """
title: Small
models: ["simulated:bias=1", "simulated:refuse=1,seed=1"]
benchmarks:
  cbbq: {data: samples, categories: [gender, age], limit: 2}
analyses:
  compare_models: {}
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
# An environment variable that the processes of a command share.
MARK = "BENCH_TEST_ROUND"
# Seconds after which a command that was told to end counts as hanging, and for what it left to end.
HANGS, LEFT = 30.0, 5.0
# What differs between two equal reports: moments, durations, the folder, and random ids.
VARYING = r"\d{4}-\d\d-\d\d[T ][\d:+.Z]+|\b[0-9a-f]{8,}\b|\d+(\.\d+)? s\b"


class Command(NamedTuple):
    """A command that is ended at random moments: its arguments, and what it results in."""

    name: str
    arguments: list[str]
    result: Callable[[Path], Any]


class Round(NamedTuple):
    """What one signal did; `seconds` to the end of the main process and to that of the others."""

    command: str
    signal: str
    target: str
    moment: float
    status: int
    seconds: float
    seconds_left: float
    left: int
    drafts: int
    drafts_after: int
    same: bool
    message: str


def report(folder: Path) -> Command:
    (folder / "small.yml").write_text(STUDY, "utf-8")

    def result(out: Path) -> Any:
        tables = sorted(path for path in out.glob("tables/*/*") if path.stem != "provenance")
        pages = sorted(out.glob("*.html"))
        contents = {str(path.relative_to(out)): "" for path in tables}
        for path in (path for path in tables if path.suffix == ".csv"):
            contents[str(path.relative_to(out))] = path.read_text("utf-8")
        for path in pages:
            words = re.sub(
                r"<(style|svg).*?</\1>|<[^>]+>", " ", path.read_text("utf-8"), flags=re.S
            )
            kept = re.findall(r"\w+", re.sub(VARYING, "", words.replace(str(out), "")))
            # Moments that all runs have in common are told once, others for each run.
            contents[path.name] = " ".join(sorted(set(kept) - {"when"}))
        return contents

    return Command("report", ["report", str(folder / "small.yml"), "--out"], result)


def train(folder: Path) -> Command:
    from transformers import BertConfig, BertForMaskedLM

    from tests.helpers.checkpoints import BERT, characters, save

    base = save(folder / "base", BertForMaskedLM, BertConfig, characters(BERT))
    rows = [
        {"sentence1": word, "sentence2": letter * 3, "gold_label": label}
        for word in ("he", "she", "a nurse", "one", "no one", "who", "a man", "it")
        for letter, label in (("a", "entailment"), ("b", "contradiction"), ("c", "neutral"))
    ]
    file = folder / "train.jsonl"
    file.write_text("".join(as_json(json.dumps(row)) + "\n" for row in rows), "utf-8")

    def result(out: Path) -> Any:
        about = json.loads((out / "training.json").read_text("utf-8"))
        # Trainer's log has the means of the steps since it was continued.
        kept = {**about, "history": "", "when": ""}
        return kept, (out / "model.safetensors").read_bytes()

    options = ["--epochs", "20", "--batch-size", "2", "--save-every", "20", "--device", "cpu"]
    given = ["train", "nli", str(file), "--model", str(base), *options, "--out"]
    return Command("train nli", given, result)


def start(command: Command, out: Path, mark: str) -> subprocess.Popen[str]:
    call = [sys.executable, "-m", "bench", *command.arguments, str(out)]
    return subprocess.Popen(
        call,
        env={**os.environ, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes(mark: str) -> list[psutil.Process]:
    """Return the processes of a command that still run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def drafts(folder: Path) -> int:
    return sum(1 for _ in folder.rglob(f"{DRAFT}*"))


def disturb(
    command: Command, number: signal.Signals, group: bool, moment: float, out: Path, expected: Any
) -> Round:
    """Send a signal after `moment` seconds, and run the command again until it is done."""
    mark = f"{os.getpid()} {out}"
    process = start(command, out, mark)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        (os.killpg if group else os.kill)(process.pid, number)
    sent = time.monotonic()
    try:
        status = process.wait(HANGS)
    except subprocess.TimeoutExpired:
        status = 999
        for one in processes(mark):
            print(one, one.cmdline(), file=sys.stderr)
            if os.environ.get("BENCH_TEST_STACKS"):
                subprocess.run(["py-spy", "dump", "--pid", str(one.pid)])
    ended = time.monotonic()
    while (left := processes(mark)) and time.monotonic() < ended + LEFT:
        time.sleep(0.05)
    gone = time.monotonic()
    for one in left:
        print("left", one, one.cmdline(), file=sys.stderr)
        one.kill()
    message = process.communicate()[1]
    n_drafts = drafts(out.parent)
    again = start(command, out, mark)
    again_message = again.communicate()[1]
    same = again.returncode == 0 and command.result(out) == expected
    if not same or "Traceback" in message + again_message:
        print(message, "---", again_message, out, file=sys.stderr)
    return Round(
        command.name,
        number.name,
        "group" if group else "main",
        round(moment, 2),
        status,
        ended - sent,
        gone - ended,
        len(left),
        n_drafts,
        drafts(out.parent),
        same,
        message,
    )


def rounds(command: Command, folder: Path, n: int, seed: int) -> Iterator[Round]:
    """Run a command undisturbed, then send it `n` signals, each kind in turn."""
    began = time.monotonic()
    process = start(command, folder / "undisturbed", "undisturbed")
    assert process.wait() == 0, process.communicate()[1]
    seconds, expected = time.monotonic() - began, command.result(folder / "undisturbed")
    rng = random.Random(seed)
    for k in range(n):
        number, group = SIGNALS[k % 4], k // 4 % 2 == 1
        out = folder / f"{k}" / "out"
        out.parent.mkdir()
        yield disturb(command, number, group, rng.uniform(0.1, seconds), out, expected)


def table(done: list[Round]) -> pd.DataFrame:
    """Return a row per command, signal and target."""
    frame = pd.DataFrame(done)
    frame["ended"] = frame.seconds + frame.seconds_left
    return frame.groupby(["command", "signal", "target"], sort=False).agg(
        number=("status", "size"),
        median=("ended", "median"),
        worst=("ended", "max"),
        statuses=("status", lambda column: " ".join(map(str, sorted(set(column))))),
        left=("left", "sum"),
        drafts=("drafts", "sum"),
        drafts_after=("drafts_after", "sum"),
        same=("same", "sum"),
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no such signals")
@pytest.mark.parametrize("make", [report, train])
def test_a_signal_ends_all_and_the_same_command_ends_with_the_same_result(
    make: Callable[[Path], Command], tmp_path: Path
) -> None:
    for one in rounds(make(tmp_path), tmp_path, 4, seed=1):
        assert one.status in (0, -signal.Signals[one.signal], 128 + signal.Signals[one.signal]), one
        assert (one.left, one.drafts_after, one.same) == (0, 0, True), one


if __name__ == "__main__":
    for number in SIGNALS[:3]:  # which a shell's background ignores
        signal.signal(number, signal.SIG_DFL)
    n, where = int(sys.argv[1]), Path(sys.argv[2]).resolve()
    made: list[Round] = []
    for make in (report, train) if len(sys.argv) < 4 else (globals()[sys.argv[3]],):
        folder = where / make.__name__
        folder.mkdir(parents=True)
        for one in rounds(make(folder), folder, n, seed=n):
            made.append(one)
            print(one, flush=True)
    print(table(made).round(1).to_string())
