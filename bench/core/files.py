"""Write files atomically: complete or not at all, however the process ends."""

import errno
import json
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.core.errors import CONTINUES, RunFailed

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
    drafts of ended processes in this folder, and explain errors of the disk.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_drafts_of_ended_processes(path.parent)
        writer = f"{os.getpid()}@{platform.node()}"
        draft = path.with_name(f"{DRAFT}{writer}-{secrets.token_hex(4)}-{path.name}")
        try:
            draft.touch(exist_ok=False)
            yield draft
            with draft.open("rb+") as stream:
                os.fsync(stream.fileno())  # else the file may be empty after a power cut
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)


def _remove_drafts_of_ended_processes(folder: Path) -> None:
    """Remove the drafts of processes of this machine that have ended."""
    for draft in folder.glob(f"{DRAFT}*"):
        from psutil import pid_exists  # importing it takes long, and drafts are rare

        writer = re.match(rf"{DRAFT}(\d+)@{re.escape(platform.node())}-", draft.name)
        if writer and not pid_exists(int(writer[1])):
            with suppress(OSError):
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
