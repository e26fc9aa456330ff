"""Signals at random moments of `bench report` and `bench train`: nothing is left or lost."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from bench.core.files import DRAFT
from tests.helpers.checkpoints import BERT, characters, save

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


def report(folder):
    (folder / "small.yml").write_text(STUDY, "utf-8")
    return ["report", str(folder / "small.yml"), "--out"]


def report_result(out):
    """Return the tables of a report, and the words of its pages without moments and ids."""
    tables = [path for path in out.glob("tables/*/*") if path.stem != "provenance"]
    texts = {
        str(path.relative_to(out)): path.read_text("utf-8") if path.suffix == ".csv" else ""
        for path in tables
    }
    for path in out.glob("*.html"):
        page = path.read_text("utf-8").replace(str(out), "")
        words = re.sub(r"<(style|svg).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
        # Moments that all runs have in common are told once, others for each run.
        texts[path.name] = set(re.findall(r"\b[^\W\d]+\b", words)) - {"when"}
    return texts


def train(folder):
    base = save(folder / "base", "BertForMaskedLM", characters(BERT))
    rows = [
        {"sentence1": word, "sentence2": letter * 3, "gold_label": label}
        for word in ("he", "she", "a nurse", "one", "no one", "who", "a man", "it") * 4
        for letter, label in (("a", "entailment"), ("b", "contradiction"), ("c", "neutral"))
    ]
    file = folder / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return ["train", str(base), "--corpus", str(file), "--epochs", "40", "--out"]


def train_result(out):
    return (out / "training.json").read_text("utf-8"), (out / "model.safetensors").read_bytes()


def start(arguments, out, mark):
    call = [sys.executable, "-m", "bench", *arguments, str(out)]
    given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    env = {**os.environ, MARK: mark}
    return subprocess.Popen(call, env=env, start_new_session=True, **given)


def processes(mark):
    """Return the processes of a command that still run."""
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get(MARK) == mark
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no such signals")
@pytest.mark.parametrize(
    ("command", "result"), [(report, report_result), (train, train_result)], ids=["report", "train"]
)
def test_a_signal_ends_all_and_the_same_command_ends_with_the_same_result(
    command, result, tmp_path
):
    arguments, began, rng = command(tmp_path), time.monotonic(), random.Random(1)
    process = start(arguments, tmp_path / "undisturbed", "undisturbed")
    assert process.wait() == 0, process.communicate()[1]
    seconds, expected = time.monotonic() - began, result(tmp_path / "undisturbed")
    for number in SIGNALS:
        out = tmp_path / number.name / "out"
        out.parent.mkdir()
        mark = f"{os.getpid()} {out}"
        process = start(arguments, out, mark)
        try:
            process.wait(rng.uniform(0.1, seconds))
        except subprocess.TimeoutExpired:
            # Ctrl-C reaches all processes of a terminal.
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(HANGS) in (0, -number, 128 + number)
        ended = time.monotonic()
        while (left := processes(mark)) and time.monotonic() < ended + LEFT:
            time.sleep(0.05)
        for one in left:
            one.kill()
        assert left == []
        again = start(arguments, out, mark)
        message = process.communicate()[1] + again.communicate()[1]
        assert again.returncode == 0, message
        assert "Traceback" not in message
        assert list(out.parent.rglob(f"{DRAFT}*")) == []
        assert result(out) == expected
