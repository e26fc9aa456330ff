"""What a sheet asks of whom, as it is kept in its folder: sheets that come back are held against it.

A record is written by `bench.curate.sheets`, and lies for weeks where people may change it; so it is looked at again when
it is read.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, plain, quoted
from bench.core.files import atomic_write
from bench.curate.workbook import KEY, LONGEST, UNFIT, Question, simple
from bench.data.readers import BOM, parse_json, read_text

MANIFEST = "sheet.json"
NAME = re.compile(r"\w[\w .+-]{0,60}")
# What a system takes for no file name.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[. ]", re.IGNORECASE)


class Sheet(NamedTuple):
    """What was asked, of whom; `former` are people who were asked and no longer are, whose files are passed over."""

    name: str
    seed: int
    people: list[str]
    questions: list[Question]
    rows: pd.DataFrame
    instructions: str
    former: Sequence[str] = ()

    @property
    def shown(self) -> list[str]:
        """The columns that are to be judged."""
        return [str(name) for name in self.rows if name != "item_id"]

    @property
    def needed(self) -> list[tuple[str, str, str]]:
        """The answers that have to be there: item, person, question."""
        asked = [one.name for one in self.questions if one.required]
        return [
            (item, who, name) for item in self.rows.item_id for who in self.people for name in asked
        ]

    def keys(self, person: str) -> dict[str, str]:
        """Key to item, of a person's rows."""
        return {
            hashlib.sha256("\0".join([self.name, person, *row]).encode()).hexdigest()[:16]: row[0]
            for row in self.rows[["item_id", *self.shown]].itertuples(index=False, name=None)
        }

    def order(self, person: str) -> np.ndarray:
        """Places of the rows in a person's sheet, shuffled by seed and person."""
        digest = hashlib.sha256(f"{self.name}\0{person}".encode()).digest()
        return np.random.default_rng([self.seed, int.from_bytes(digest[:8])]).permutation(
            len(self.rows)
        )


def keep(place: Path, sheet: Sheet) -> None:
    """Write down what a sheet asks, before its files: those that a killed process left unwritten are sent by it.

    Raises:
        OSError: it cannot be written.
    """
    document = sheet._asdict() | {
        "questions": [one._asdict() for one in sheet.questions],
        "rows": sheet.rows.to_dict("records"),
    }
    atomic_write(place / MANIFEST, json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def opened(folder: Path, name: str) -> Sheet:
    """The sheet that was written under a name.

    Raises:
        BadInput: there is none, or its file was changed so that it cannot be read, or asks what no sheet can.
    """
    path = Path(folder) / name / MANIFEST
    text = read_text(path)
    try:
        found = parse_json(text)
        sheet = _sheet(**found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"{path}: is no record of a sheet ({error}); put back the one that was written"
        ) from None
    try:
        check(sheet._replace(rows=texts(sheet.name, sheet.rows)))
    except BadInput as error:
        raise BadInput(f"{path}: was changed; {error}; put back the one that was written") from None
    return sheet


def _sheet(questions: Any, rows: Any, **found: Any) -> Sheet:
    """A sheet of what a record says.

    Raises:
        ValueError: of another type than it was written; and what else follows from that.
    """
    if not all(isinstance(one, dict) and isinstance(one["choices"], list) for one in questions):
        raise ValueError("expected questions with lists of choices")
    asked = [Question(**(one | {"choices": tuple(one["choices"])})) for one in questions]
    sheet = Sheet(questions=asked, rows=pd.DataFrame(rows, dtype=str), **found)
    # A table of objects that lack a field would say "nan" there.
    whole = isinstance(rows, list) and all(
        isinstance(row, dict) and {*row} == {*rows[0]} for row in rows
    )
    cells = [cell for row in rows for cell in row.values()] if whole else [None]
    words = [sheet.name, sheet.instructions, *sheet.people, *sheet.former, *cells]
    words += [text for one in asked for text in (one.name, one.asked, *one.choices)]
    if not all(isinstance(one, str) for one in words):
        raise ValueError("expected texts")
    if not isinstance(sheet.people, list) or not isinstance(sheet.former, list | tuple):
        raise ValueError("expected lists of people")
    if type(sheet.seed) is not int or not 0 <= sheet.seed < 2**63:
        raise ValueError(f"seed {quoted(sheet.seed)}: expected a whole number from 0")
    for one in asked:
        bounds = (one.lowest, one.highest)
        finite = all(type(bound) in (int, float) and math.isfinite(bound) for bound in bounds)  # type: ignore[arg-type]
        if not (finite or bounds == (None, None)) or type(one.required) is not bool:
            raise ValueError(
                f"question {quoted(one.name)}: expected two numbers or none, and true or false"
            )
    return sheet


def texts(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose cells are all texts.

    Raises:
        BadInput: a cell that no spreadsheet can hold, an item without a name or twice, or no rows.
    """
    if "item_id" not in rows or rows.empty:
        raise BadInput(f"sheet {name}: has no rows with a column `item_id`")
    found = rows.fillna("").astype(str).reset_index(drop=True)
    twice = found[found.item_id.duplicated() | (found.item_id == "")]
    if len(twice):
        raise BadInput(
            f"sheet {name}: item {quoted(twice.item_id.iloc[0])} stands there twice or has no name"
        )
    for column in found:
        for item, cell in zip(found.item_id, found[column], strict=True):
            if why := unfit(cell):
                raise BadInput(f"sheet {name}, item {quoted(item)}, column `{column}`: {why}")
    return found


def unfit(cell: str) -> str:
    """Why no cell of a sheet can hold a text, or ""."""
    if cell.startswith(BOM):
        return "begins with a byte order mark, which nobody sees; remove it"
    if UNFIT.search(cell) or len(cell) > LONGEST:
        return f"holds a control character or more than {LONGEST:,} characters, which no cell can"
    return ""


def wrong_name(name: str) -> str:
    """Why a sheet or a person cannot be called so, as a file is, or ""."""
    if NAME.fullmatch(name) and not RESERVED.fullmatch(name):
        return ""
    return f"{quoted(name)} cannot name a file; allowed: letters, digits, blanks, `.`, `+`, `-`, a letter or digit first"


def is_column(name: str) -> bool:
    """Whether a column can be called so, and be found again by its name."""
    return bool(name) and name.isprintable() and name.strip() == name


def check(sheet: Sheet) -> None:
    """See that files can be written of a sheet, and read again.

    Raises:
        BadInput: names that no file can have, nobody or somebody twice, or questions that cannot be asked.
    """
    for one in (sheet.name, *sheet.people):
        if wrong := wrong_name(one):
            raise BadInput(wrong)
    if not sheet.people or _twice(simple(one).casefold() for one in sheet.people):
        raise BadInput(
            f"sheet {sheet.name}: needs people, each once; found {', '.join(sheet.people) or 'none'}"
        )
    names = [KEY, *sheet.shown, *(question.name for question in sheet.questions)]
    if not all(map(is_column, names)) or _twice(names) or not sheet.questions:
        raise BadInput(
            f"sheet {sheet.name}: needs questions whose names are no other column's; found {', '.join(names)}"
        )
    for text in (
        sheet.instructions,
        *(text for one in sheet.questions for text in (one.asked, *one.choices)),
    ):
        if why := unfit(text):
            raise BadInput(f"sheet {sheet.name}, {quoted(text)}: {why}")
    for question in sheet.questions:
        if _twice(map(simple, question.choices)) or not all(map(simple, question.choices)):
            raise BadInput(
                f"sheet {sheet.name}, question `{question.name}`: needs choices that are not alike; found {', '.join(map(plain, question.choices))}"
            )


def _twice(names: Iterable[str]) -> bool:
    every = list(names)
    return len({*every}) < len(every)
