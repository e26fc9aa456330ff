"""Write files atomically: complete or not at all, however the process ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.core.errors import CONTINUES, RunFailed

# Begins the name of what a killed process can leave next to a file.
DRAFT = ".part-"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a draft to write, which replaces `path` if the block succeeds and else is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT}{os.getpid()}-{path.name}")
    try:
        yield draft
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())  # else the file may be empty after a power cut
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def atomic_write(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically, with its line ends as they are."""
    with atomic_path(path) as draft:
        draft.write_text(text, "utf-8", newline="\n")


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Explain errors of the system in the block: `path` cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RunFailed(
            f"{path}: cannot be written ({reason}); once that is mended, {CONTINUES}"
        ) from error
