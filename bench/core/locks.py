"""Lock what only one process at a time may write, on file systems without locks too."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from bench.core.progress import say

# Errors of file systems without locks, as network disks can be.
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
# Ends the name of the file that stands for a lock there, and seconds to find out that it is stale.
HELD, STALE_WITHIN = "-held", 1.0


class Held(Exception):
    """Another process holds a lock; the message is who."""


@contextmanager
def lock(path: Path, waiting: str = "") -> Iterator[None]:
    """Hold the lock that the file `path` stands for, until the block ends or this process dies.

    Args:
        waiting: what another process is doing that holds it: it is said, and waited for.

    Raises:
        Held: another process holds it, and `waiting` is empty.
        OSError: the file cannot be written.
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
            held.acquire(timeout=STALE_WITHIN)
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
