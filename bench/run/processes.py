"""Start processes beside this one, which end when it ends."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any

from bench.core.process import collect_rarely, open_streams

# On Linux, new processes are copies of a server that imports modules once; see `preload`. The
# libraries of other systems do not survive such a copy.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# While a thread starts the server, it changes the environment, which other threads must not copy.
STARTING = threading.Lock()


def preload(modules: Sequence[str]) -> None:
    """Name modules that all processes need, before the first of them is started."""
    multiprocessing.get_context(METHOD).set_forkserver_preload(list(modules))


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls `target`, and ends when this process ends."""
    method = METHOD
    with STARTING:
        if method == "forkserver":
            try:
                _start_server()
            except OSError:  # for example, a $TMPDIR that is too long for a socket
                method = "spawn"
        environment = dict(os.environ)
    context: Any = multiprocessing.get_context(method)
    process: BaseProcess = context.Process(target=_begin, args=(environment, target, *arguments))
    process.start()
    return process


def _start_server() -> None:
    """Start the server if necessary; it imports nothing from the working folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


def end() -> None:
    """End the processes that were started."""
    for process in multiprocessing.active_children():
        process.terminate()


@contextlib.contextmanager
def waiting(threads: int, end: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that wait for processes; if this block fails, `end` ends the processes."""
    pool = ThreadPoolExecutor(threads, initializer=_leave_interrupts)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # A process that is being started appears a little later.
        while any(thread.is_alive() for thread in pool._threads):
            end()
            time.sleep(0.1)
        raise


def _leave_interrupts() -> None:
    """Block SIGINT in this thread and its processes; the main process ends them."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # its start would unblock SIGINT in this thread
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _begin(environment: Mapping[str, str], target: Callable[..., None], *arguments: Any) -> None:
    os.environ.clear()  # the server has the variables of its start
    os.environ.update(environment)

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    collect_rarely()
    open_streams()
    target(*arguments)
