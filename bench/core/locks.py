"""Lock a folder for one process at a time, also on file systems without locks."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from bench.core.progress import say


class Held(Exception):
    """Another process holds a lock; the message names this process."""


@contextmanager
def lock(path: Path, waiting: str = "") -> Iterator[None]:
    """Hold the lock of the file `path` until this block ends or this process dies.

    If another process holds it, we raise `Held`, or wait and report its activity `waiting`, for
    example "making this report".
    """
    # On a file system without locks, this becomes a `SoftFileLock`: the file itself is the lock.
    file_lock = FileLock(path)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        holder = "another process"
        with suppress(OSError, ValueError):
            process, host, *_ = path.read_text("utf-8").split("\n")
            holder += f" ({process} on {host})"
        if isinstance(file_lock, SoftFileLock):
            holder += f", which holds {path} (remove that file if it has ended),"
        if not waiting:
            raise Held(holder) from None
        say(f"{holder} is {waiting}; waiting for it")
        file_lock.acquire()
    try:
        if not isinstance(file_lock, SoftFileLock):
            with suppress(OSError):
                path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n", "utf-8")
        yield
    finally:
        file_lock.release()
