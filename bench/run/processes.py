"""Start processes beside this one, which end when it ends."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from bench.core.process import collect_rarely, open_streams


def context(modules: Sequence[str]) -> Any:
    """Return the context of processes that need `modules`.

    On Linux, they are copies of a server that imports these modules once, and nothing from the
    working folder. The libraries of other systems do not survive such a copy.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    copies, before = multiprocessing.get_context("forkserver"), dict(os.environ)
    copies.set_forkserver_preload(list(modules))
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    except OSError:  # for example, a $TMPDIR that is too long for a socket
        return multiprocessing.get_context("spawn")
    finally:
        _set_environment(before)
    return copies


def start(context: Any, target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls `target`, and ends when this process ends."""
    arguments = dict(os.environ), target, *arguments
    process: BaseProcess = context.Process(target=_begin, args=arguments)
    process.start()
    return process


def end() -> None:
    """End the processes that were started."""
    for process in multiprocessing.active_children():
        process.terminate()


@contextmanager
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
        resource_tracker.ensure_running()  # its start would unblock SIGINT in this thread
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _begin(environment: Mapping[str, str], target: Callable[..., None], *arguments: Any) -> None:
    _set_environment(environment)  # the server has the variables of its start

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    collect_rarely()
    open_streams()
    target(*arguments)


def _set_environment(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)
