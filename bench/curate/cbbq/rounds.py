"""Hand out the numbered sheets of a CBBQ project, and find what came back of the texts as they are.

A kind of sheet is `decide`, `review` or `discuss`; its sheets are `review-1`, `review-2` and so on.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from bench.curate import sheets
from bench.curate.cbbq import Project
from bench.curate.sheets import Question, Returned


def sent(project: Project, kind: str) -> list[str]:
    """Return the sheets of a kind that went out, in the order of their numbers."""
    names = [path.parent.name for path in project.sheets.glob(f"{kind}-*/{sheets.RECORD}")]
    # A copy of a folder under another name is no sheet.
    return sorted(filter(lambda name: _number(name) > 0, names), key=_number)


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if re.fullmatch(r"[a-z]+-[1-9][0-9]{0,8}", name) else 0


def resend(project: Project, kind: str) -> None:
    """Write the files of sheets that were lost, or never written after an interruption."""
    for name in sent(project, kind):
        sheets.send(project.sheets, name)


def reassign(project: Project, name: str, people: Sequence[str], items: Collection[str]) -> None:
    """Ask these people if something about `items` is not answered yet: who gives up is replaced."""
    if {item for item, _, _ in sheets.read(project.sheets, name).missing} & {*items}:
        sheets.ask(project.sheets, name, people)


def hand_out(
    project: Project,
    kind: str,
    now: Mapping[str, Mapping[str, str]],
    questions: Sequence[Question],
    people: Sequence[str],
    seed: int,
    instructions: str,
) -> list[Path]:
    """Write sheets of the rows that no sheet of this kind has as they are now; the new files."""
    there: list[dict[str, str]] = []
    names = sent(project, kind)
    for name in names:
        rows = sheets.load(project.sheets, name).rows
        current = [row["item_id"] for row in rows if now.get(row["item_id"]) == row]
        reassign(project, name, people, current)
        there += rows
    new = [row for row in now.values() if row not in there]
    if not new:
        return []
    name = f"{kind}-{max(map(_number, names), default=0) + 1}"
    table = pd.DataFrame(new)
    return sheets.write(project.sheets, name, table, questions, people, seed, instructions)


def current(
    project: Project, kind: str, now: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[Returned, set[str]]]:
    """Yield what came back of each sheet about rows that are as they are now, and these items.

    Of other rows, nothing is to be fixed. A copied sheet asks nothing new.
    """
    asked: set[str] = set()
    for name in sent(project, kind):
        back = sheets.read(project.sheets, name)
        items = {row["item_id"] for row in back.sheet.rows if now.get(row["item_id"]) == row}
        items -= asked
        asked |= items
        about = [*items, ""] if items else []
        answers = back.answers[back.answers.item_id.isin(items)]
        yield back._replace(answers=answers, to_mend=to_mend([back], about)), items


def to_mend(returned: Sequence[Returned], items: Collection[str]) -> pd.DataFrame:
    """Join what is to be fixed of some items; "" for whole files."""
    parts = [back.to_mend[back.to_mend.item_id.isin(items)] for back in returned]
    filled = [part for part in parts if len(part)]
    return (
        pd.concat(filled, ignore_index=True)
        if filled
        else pd.DataFrame(columns=sheets.MEND_COLUMNS)
    )
