"""Lock a folder for one process at a time, also on file systems without locks."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from bench.core.progress import say

# Errors of file systems without locks, for example network disks.
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
# On these, a file with this suffix is the lock.
HELD = "-held"
# Within this time we find out that such a lock is stale.
STALE_SECONDS = 1.0


class Held(Exception):
    """Another process holds a lock; the message names this process."""


@contextmanager
def lock(path: Path, waiting: str = "") -> Iterator[None]:
    """Hold the lock of the file `path` until this block ends or this process dies.

    If another process holds it, we raise `Held`, or wait and report its activity `waiting`, for
    example "making this report".
    """
    held: BaseFileLock = FileLock(path)
    try:
        try:
            held.acquire(timeout=0)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            held = SoftFileLock(f"{path}{HELD}")
            say(f"{path.parent}: its disk has no locks ({error.strerror}); uses {held.lock_file}")
            held.acquire(timeout=STALE_SECONDS)
    except Timeout:
        holder = "another process"
        with suppress(OSError, ValueError):
            process, host, *_ = Path(held.lock_file).read_text("utf-8").split("\n")
            holder += f" ({process} on {host})"
        if isinstance(held, SoftFileLock):
            holder += f", which holds {held.lock_file} (remove that file if it has ended),"
        if not waiting:
            raise Held(holder) from None
        say(f"{holder} is {waiting}; waiting for it")
        held.acquire()
    try:
        if not isinstance(held, SoftFileLock):
            with suppress(OSError):
                path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n", "utf-8")
        yield
    finally:
        held.release()
