"""`bench run` in a forked process: small shards, slow answers, and a list of what it asks."""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import cli, run
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from bench.tasks.request import Request

SHARD = 16
SECONDS_PER_ANSWER = 0.002


def start(out: Path, asked: Path, stream: bool, arguments: Sequence[str]) -> int:
    """Fork a run in the folder `out` and return its process.

    Args:
        asked: file for the names of requests that it asks; `.out` and `.err` beside it get its
            output.
        stream: let answers come one at a time.
    """
    # A signal right after the fork must not find the caller's code in the fork.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, suffix in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(asked.with_suffix(suffix), os.O_CREAT | os.O_WRONLY), number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        _slow_down(asked, stream)
        sys.argv = ["bench", "run", *arguments, "--out", str(out), "--format", "json"]
        cli.main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # it is read from the file
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _slow_down(asked: Path, stream: bool) -> None:
    run.SHARD = SHARD
    original = Simulated.answer

    def answer(self: Simulated, requests: Sequence[Request]) -> list[Answer]:
        with asked.open("a", encoding="utf-8") as file:
            for request in requests:
                time.sleep(SECONDS_PER_ANSWER)
                names = request.task, request.item_id, request.request, request.repeat
                file.write(" ".join(map(str, names)) + "\n")
        return original(self, requests)

    def streamed(self: Simulated, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        order = list(range(len(requests)))
        random.Random(os.getpid()).shuffle(order)  # another one in each process
        for k in order:
            yield k, answer(self, [requests[k]])[0]

    Simulated.answer = answer
    if stream:
        Simulated.stream = streamed
