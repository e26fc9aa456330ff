"""Start processes beside this one, which end when it ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

from bench.core.process import OF_WORKER, SIGNALS, Ending, open_streams


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls `target`, and ends when this process ends.

    A signal raises KeyboardInterrupt in it, and ends it soon after.
    """
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_begin, args=(target, *arguments))
    with signals_blocked():
        process.start()
    return process


def end() -> None:
    """Tell the processes that were started to end."""
    for process in multiprocessing.active_children():
        process.terminate()


@contextlib.contextmanager
def waiting(threads: int, end: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
    """Give threads to wait for processes; if the block is left early, `end` ends the processes."""
    pool = ThreadPoolExecutor(threads)
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


def _begin(target: Callable[..., None], *arguments: Any) -> None:
    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(OF_WORKER)
            os._exit(1)  # it ignores signals, or the main thread never gets to them

    # Signals are still blocked here, so that the main thread gets them.
    threading.Thread(target=end_with_parent, daemon=True).start()
    open_streams()
    Ending(OF_WORKER).listen()
    target(*arguments)


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Let processes that are started in the block get signals only when they listen to them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        resource_tracker.ensure_running()  # which unblocks some of them where it is started
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
