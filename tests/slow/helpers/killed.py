"""`bench run` as a process that is to be killed: small shards, slow answers, and a list of what it asked.

A fork of the one that calls, so that nothing is loaded anew: most kills then come while something is done.
"""

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
SECONDS = 0.002  # an answer


def line(request: Request) -> str:
    return f"{request.task} {request.item_id} {request.request} {request.repeat}\n"


def start(out: Path, asked: Path, stream: bool, arguments: Sequence[str]) -> int:
    """Start a run in the folder `out`, which says what it asks in the file `asked`, and what it tells beside it; its process."""
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
        for number, name in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(asked.with_suffix(name), os.O_CREAT | os.O_WRONLY), number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        _slow(asked, stream)
        sys.argv = ["bench", "run", *arguments, "--out", str(out), "--format", "json"]
        cli.main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # whatever it is: it is to be seen in the file beside
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _slow(asked: Path, stream: bool) -> None:
    run.SHARD = SHARD
    whole = Simulated.answer

    def answer(self: Simulated, requests: Sequence[Request]) -> list[Answer]:
        with asked.open("a", encoding="utf-8") as list_:
            for request in requests:
                time.sleep(SECONDS)
                list_.write(line(request))
        return whole(self, requests)

    def streamed(self: Simulated, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        order = list(range(len(requests)))
        random.Random(os.getpid()).shuffle(order)  # another one in each process
        for k in order:
            yield k, answer(self, [requests[k]])[0]

    Simulated.answer = answer
    if stream:
        Simulated.stream = streamed
