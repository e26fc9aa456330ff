"""Files that are there whole or not at all, however the process ends that writes them; and what is said where one cannot be."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.core.errors import CONTINUES, RunFailed

# What a killed process may leave beside a file begins with this: it has never been the file itself.
DRAFT = ".part-"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A draft to be written, which takes the place of `path` where the block ends well, and is gone where it does not.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT}{os.getpid()}-{path.name}")
    try:
        yield draft
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())  # else a file of that name may be empty after a power cut
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def atomic_write(path: Path, text: str) -> None:
    """Write a UTF-8 file whole or not at all, its line ends as they are.

    Raises:
        OSError: it cannot be written.
    """
    with atomic_path(path) as draft:
        draft.write_text(text, "utf-8", newline="\n")


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Say of whatever the system refuses in the block that `path` cannot be written.

    Raises:
        RunFailed: it cannot, because the disk is full, the folder read-only...
    """
    try:
        yield
    except OSError as error:
        raise RunFailed(
            f"{path}: cannot be written ({error.strerror or error}); once that is mended, {CONTINUES}"
        ) from error
