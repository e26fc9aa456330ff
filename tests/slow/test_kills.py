"""Kills at random moments: after each one nothing is lost or asked twice, and in the end all is as in an undisturbed run."""

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from bench import data, records, sealed
from tests.helpers.recorded import columns
from tests.slow.helpers import killed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

MODEL = "simulated:bias=0.6,refuse=0.1,seed=4"
JUDGE = "simulated:competence=0.7,seed=9"
ONE = ["mcbe", "--model", MODEL, "--tasks", "ss", "--categories", "age,race", "--repeats", "2"]
STAGES = [
    "mcbe",
    "--model",
    MODEL,
    "--judge",
    JUDGE,
    "--tasks",
    "sc,ba,bs",
    "--categories",
    "age,worldview",
    "--repeats",
    "2",
    "--set",
    "context_order=judge",
]
RUNS = {
    "one stage": (False, ONE),
    "answers that come one at a time": (True, ONE),
    "stages with a judge": (False, STAGES),
    "stages that come one at a time": (True, STAGES),
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


class Folder:
    """A run that is killed and started again until it is complete, and what is known of it from disk alone."""

    def __init__(self, place: Path, what: str, dice: random.Random) -> None:
        self.place, self.dice, self.starts = place, dice, 0
        self.stream, self.arguments = RUNS[what]
        self.stamps: dict[str, int] = {}
        self.asked: Counter[str] = Counter()

    def start(self, out: str) -> int:
        self.starts += 1
        arguments = [*self.arguments, "--data", str(data.SAMPLES / "mcbe")]
        return killed.start(self.place / out, self.told(".txt"), self.stream, arguments)

    def told(self, what: str) -> Path:
        return self.place / f"{self.starts}{what}"

    def undisturbed(self) -> None:
        began = time.monotonic()
        assert os.waitpid(self.start("whole"), 0)[1] == 0, self.told(".err").read_text("utf-8")
        self.seconds = time.monotonic() - began
        self.rows = {
            path.name: shard(path) for path in (self.place / "whole" / "records").glob("*.parquet")
        }
        self.scores = json.loads(self.told(".out").read_text("utf-8"))["scores"]
        self.total = sum(map(len, self.rows.values()))
        begun = (self.place / "whole" / records.RUN_JSON).stat().st_mtime
        shards = (self.place / "whole" / "records").glob("*.parquet")
        self.asking = max(path.stat().st_mtime for path in shards) - begun

    def kill(self) -> tuple[str, str] | None:
        """Start the run, and send it a signal at a random moment; at which stage that was. None where it was done first.

        What is recorded whole is left alone, so that most kills come while something is asked.
        """
        before, which = self.recorded(), self.dice.choice(SIGNALS)
        process = self.start("out")
        if len(self.stamps) < len(self.rows):
            if self.dice.random() < 0.8:
                until = time.monotonic() + self.seconds
                # Nobody has been asked yet, or need be: all may stand in the journal.
                while not self.told(".txt").is_file() and time.monotonic() < until:
                    time.sleep(0.002)
                time.sleep(self.dice.uniform(0, self.asking / 4))
            else:
                time.sleep(self.dice.uniform(0, self.seconds / 2))
            with suppress(ProcessLookupError):
                os.kill(process, which)
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self.look(before)
        if ended == 0:
            self.finished()
            return None
        told = self.told(".err")
        said = told.read_text("utf-8") if told.is_file() else ""
        assert "Traceback" not in said
        # Before the command begins, nobody is there to say something.
        assert ended in ((-which,) if which == signal.SIGKILL else (130, -which)), said
        if ended == 130 and said:
            assert (
                said.splitlines()[-1]
                == "bench: interrupted; the same command continues from what is recorded"
            )
        return which.name, self.stage()

    def stage(self) -> str:
        out = self.place / "out"
        if not (out / records.RUN_JSON).is_file():
            return "before run.json"
        if len(self.stamps) == len(self.rows):
            return "all recorded"
        return "asking, journal" if (out / "records" / "journal.jsonl").is_file() else "asking"

    def recorded(self) -> set[str]:
        """What was asked according to the files of records."""
        found = set()
        for name in self.stamps:
            rows = self.rows[name]
            found |= {
                f"{task} {item} {request} {repeat}\n"
                for task, item, request, repeat in zip(
                    rows.task, rows.item_id, rows.request, rows["repeat"], strict=True
                )
            }
        return found

    def look(self, before: set[str]) -> None:
        """Every file that was there is untouched, every new one is as in the undisturbed run, nothing recorded was asked."""
        files = sorted((self.place / "out" / "records").glob("[0-9]*"))
        stamps = {path.name: path.stat().st_mtime_ns for path in files}
        assert {name: stamps.get(name) for name in self.stamps} == self.stamps, (
            "lost, or written twice"
        )
        for path in files:
            if path.name not in self.stamps:
                pd.testing.assert_frame_equal(shard(path), self.rows[path.name])
        self.stamps = stamps
        list_ = self.told(".txt")
        asked = list_.read_text("utf-8").splitlines(keepends=True) if list_.is_file() else []
        assert not before & set(asked), "asked again although it was recorded"
        self.asked.update(asked)

    def finished(self) -> None:
        assert json.loads(self.told(".out").read_text("utf-8"))["scores"] == self.scores
        whole = columns(self.place / "whole")
        pd.testing.assert_frame_equal(columns(self.place / "out"), whole)
        keys = whole[["task", "item_id", "request", "repeat"]]
        assert not keys.duplicated().any()
        left = {path.name for path in (self.place / "out").rglob("*") if path.is_file()} - set(
            self.rows
        )
        assert left == {records.RUN_JSON, records.ITEMS, ".lock"}


def shard(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = sealed.read(path).to_pandas().drop(columns="seconds")
    return frame


def kills(
    folder: Path, number: int, seed: int
) -> tuple[Counter[tuple[str, str]], Counter[str], int]:
    """Kill runs of all kinds so often; at which stages, how often something was asked once more, and completed runs."""
    dice, found, again, complete = random.Random(seed), Counter(), Counter(), 0
    whole: dict[str, Folder] = {}
    while found.total() < number:
        what = list(RUNS)[complete % len(RUNS)]
        one = Folder(folder / f"{complete}", what, dice)
        one.place.mkdir()
        if what in whole:
            first = whole[what]
            one.rows, one.scores, one.total, one.seconds = (
                first.rows,
                first.scores,
                first.total,
                first.seconds,
            )
            one.asking = first.asking
            (one.place / "whole").symlink_to(first.place / "whole")
        else:
            one.undisturbed()
            whole[what] = one
        here = 0
        one.asked.clear()
        while stage := one.kill():
            found[stage] += 1
            here += 1
        twice = one.asked.total() - one.total
        again[what] += twice
        # What is asked again was on its way: of a shard, or of one answer where each is kept as it comes.
        assert twice <= here * (1 if one.stream else killed.SHARD), what
        complete += 1
    return found, again, complete


def test_a_few_kills_at_random_moments_leave_no_trace(tmp_path: Path) -> None:
    found, _, complete = kills(tmp_path, 4, seed=1)
    assert found.total() >= 4
    assert complete >= 1


def test_a_hundred_kills_at_random_moments_leave_no_trace(tmp_path: Path) -> None:
    began = time.monotonic()
    found, again, complete = kills(tmp_path, 100, seed=0)
    print(f"{found.total()} kills of {complete} runs in {time.monotonic() - began:.0f} s")
    for (name, stage), n in sorted(found.items()):
        print(f"{name:8} {stage:16} {n}")
    print("asked once more:", dict(again))
    assert found.total() >= 100
    assert {stage for _, stage in found} >= {"before run.json", "asking", "asking, journal"}
