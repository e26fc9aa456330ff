"""The sheets of a CBBQ project: which of a kind went out, and to whom they go when people or files are lost.

A kind is `decide`, `review` or `discuss`; its sheets are numbered, `review-1`, `review-2`.
"""

import re
from collections.abc import Collection, Sequence

from bench.core.files import explain_write_errors
from bench.curate import sheets
from bench.curate.cbbq import Project


def sent(project: Project, kind: str) -> list[str]:
    """The sheets of a kind that went out, in the order of their numbers."""
    found = {path.parent.name for path in project.sheets.glob(f"{kind}-*/{sheets.MANIFEST}")}
    # A copy that somebody made beside it is no sheet.
    return sorted(
        (name for name in found if _number(name, kind)), key=lambda name: _number(name, kind)
    )


def following(project: Project, kind: str) -> str:
    """What the next sheet of a kind is called."""
    return f"{kind}-{max((_number(name, kind) for name in sent(project, kind)), default=0) + 1}"


def resend(project: Project, kind: str) -> None:
    """Write the files of sheets that are gone, or were never written because the work was interrupted.

    Raises:
        RunFailed: a file cannot be written.
    """
    for name in sent(project, kind):
        with explain_write_errors(project.sheets / name):
            sheets.send(project.sheets, name)


def hand_over(project: Project, name: str, people: Sequence[str], items: Collection[str]) -> None:
    """Have these people fill in a sheet of whose `items` something is not answered yet: one who gives up is replaced.

    A sheet that is answered stays with those who answered it.

    Raises:
        RunFailed: a file cannot be written.
    """
    sheet, found = sheets.opened(project.sheets, name), sheets.read(project.sheets, name)
    if {item for item, _, _ in found.lacking(sheet)} & set(items):
        with explain_write_errors(project.sheets / name):
            sheets.ask(project.sheets, name, people)


def _number(name: str, kind: str) -> int:
    digits = name.removeprefix(f"{kind}-")
    return int(digits) if re.fullmatch(r"[1-9][0-9]{0,8}", digits) else 0
