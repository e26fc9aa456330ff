"""One writer a run: a second process in the same folder may read what is whole there, and is refused where it would write."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from bench.core.errors import BadInput
from bench.records import RUN_JSON

FILE = ".lock"


class Hold(NamedTuple):
    """Whether this process may write into a run's folder: `why_not` is empty where it may."""

    why_not: str = ""

    def need(self) -> None:
        """Refuse to go on where this process may not write.

        Raises:
            BadInput: it may not.
        """
        if self.why_not:
            raise BadInput(self.why_not)


@contextmanager
def hold(folder: Path) -> Iterator[Hold]:
    """Keep others from writing into `folder` until the block ends, or until this process dies.

    Where no run was begun, nothing is left of it.
    """
    lock = FileLock(folder / FILE)
    made = not folder.exists()
    why_not = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        why_not = f"{folder}: another process is asking this run; wait until it has ended, or give another --out"
    except OSError as error:
        why_not = f"{folder}: cannot be written ({error.strerror or error}); mend that, or give another --out"
    try:
        yield Hold(why_not)
    finally:
        if lock.is_locked:
            # While it is held, so that nobody else can have begun here.
            if not (folder / RUN_JSON).is_file():
                with suppress(OSError):
                    (folder / FILE).unlink(missing_ok=True)
                    if made:
                        folder.rmdir()  # which refuses where anything is in it
            lock.release()
