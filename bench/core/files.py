"""Write files atomically: complete or not at all, however the process ends."""

import errno
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.core.errors import CONTINUES, RunFailed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Errors of a disk or its permissions.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
# Prefix of the names of drafts; a killed process can leave one next to a file.
DRAFT = ".part-"
# Valid names of files on all systems, except for Windows' devices and names that it truncates.
FILE_NAME = re.compile(r"\w[\w .+-]{0,60}")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[. ]", re.IGNORECASE)


def file_name_error(name: str) -> str:
    """Return the reason why a name from outside cannot become a part of a path; "" if it can.

    Examples:
        >>> file_name_error("age")
        ''
        >>> file_name_error("../age")
        'expected letters, digits, blanks, `.`, `+`, `-`, a letter or digit first'
    """
    if not FILE_NAME.fullmatch(name):
        return "expected letters, digits, blanks, `.`, `+`, `-`, a letter or digit first"
    return "Windows does not take it for a file" if RESERVED.fullmatch(name) else ""


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


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield an empty draft that replaces `path` if this block succeeds.

    Several threads and processes may write one file, and the last one counts. We also remove the
    drafts of killed processes in this folder, and explain errors of the disk.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unlocked(path.parent)
        with _draft(path) as draft:
            try:
                yield draft
                with draft.open("rb+") as stream:
                    os.fsync(stream.fileno())  # else the file may be empty after a power cut
                os.replace(draft, path)
            finally:
                draft.unlink(missing_ok=True)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Make a draft of `path` for this block, and lock it if the system has locks."""
    while True:
        draft = path.with_name(f"{DRAFT}{secrets.token_hex(4)}-{path.name}")
        with draft.open("xb") as stream:
            if fcntl is None:
                stream.close()  # Windows does not replace a file by an open one
            else:
                with suppress(OSError):
                    fcntl.flock(stream, fcntl.LOCK_EX)
            # Another writer may have removed it before we locked it.
            if draft.exists():
                yield draft
                return


def _remove_unlocked(folder: Path) -> None:
    """Remove the drafts in a folder that no process is writing."""
    for draft in folder.glob(f"{DRAFT}*") if fcntl else ():
        with suppress(OSError), draft.open("rb+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()


def atomic_write(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically, with its line ends as they are; see `atomic_path`."""
    with atomic_path(path) as draft:
        draft.write_text(text, "utf-8", newline="\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; {} for a missing or incomplete file."""
    with suppress(OSError, ValueError):
        content = json.loads(path.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    return {}
