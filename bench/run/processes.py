"""Start processes beside this one: workers that ask models, and the kernels of notebooks.

On Linux they are forked from a server, one process that has imported what all of them need, so that
each begins in milliseconds. Elsewhere a fork is missing or unsafe, and each process imports itself.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

from bench.core.process import OF_WORKER, SIGNALS, Ending, open_streams

# A path of a socket in longer temporary folders would exceed what Linux allows (107 bytes).
LONGEST_FOLDER = 70
# How often a process is started where the server was killed meanwhile, and seconds in between.
TRIES, PAUSE = 4, 0.2


def forks() -> bool:
    """Return whether processes are forked from a server here."""
    folder = os.fsencode(tempfile.gettempdir())
    return sys.platform == "linux" and len(folder) <= LONGEST_FOLDER


def start_server(modules: Sequence[str]) -> None:
    """Start the server that processes are forked from, which imports `modules` meanwhile.

    Does nothing if the server is running already, or if this system has none.
    """
    if forks():
        from multiprocessing import forkserver

        multiprocessing.get_context("forkserver").set_forkserver_preload(list(modules))
        before = dict(os.environ)
        # It imports what this process does; by itself it would look in the working folder first,
        # which can have other packages.
        os.environ["PYTHONSAFEPATH"] = "1"
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
        try:
            with signals_blocked():
                forkserver.ensure_running()
        finally:
            os.environ.clear()
            os.environ.update(before)


def start(name: str, target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls `target` in this environment, and ends when this process ends.

    A signal raises KeyboardInterrupt in it, and ends it soon after.
    """
    context = multiprocessing.get_context("forkserver" if forks() else "spawn")
    for tries_left in reversed(range(TRIES)):
        process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            name=name, target=_begin, args=(dict(os.environ), target, *arguments)
        )
        try:
            with signals_blocked():
                process.start()
            break
        except (EOFError, ConnectionError):
            if not tries_left:
                raise
            # The server was killed. Another one starts by itself, and does not import beforehand,
            # which it would from the working folder.
            context.set_forkserver_preload([])
            time.sleep(PAUSE)
    return process


def end(name: str) -> None:
    """Tell the processes that were started under `name` to end."""
    for process in multiprocessing.active_children():
        if process.name == name:
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


def _begin(environment: Mapping[str, str], target: Callable[..., None], *arguments: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    # Libraries shall start processes as if this one had not been forked.
    multiprocessing.set_start_method(None, force=True)

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
