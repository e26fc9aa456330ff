"""The look of a sheet for people: a page that says what to do, and one with locked texts and validated cells."""

import math
import re
import unicodedata
import warnings
import zipfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Alignment, Font, PatternFill, Protection
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.xml.constants import ARC_CORE

from bench.core.cells import guarded, to_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.data.readers import open_file, xlsx_rows

READ_ME, ANSWERS, CHOICES = "read me", "answers", "choices"
KEY = "key"
# What a cell holds at most.
LONGEST = 32_000
# What none holds, or nobody sees: control characters, halves of characters, and what XML has no place for.
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
TO_FILL = PatternFill("solid", fgColor="FFF6DD")
HEADER = PatternFill("solid", fgColor="E3E8EE")
TOP = Alignment(wrap_text=True, vertical="top")


class Question(NamedTuple):
    """What is asked of a row: one of `choices`, a number from `lowest` to `highest`, or a free text.

    Attributes:
        name: its column.
        asked: the question in a sentence.
        required: whether an empty cell is to be mended.
    """

    name: str
    asked: str
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    required: bool = True

    @property
    def allowed(self) -> str:
        """What may be answered, in words."""
        if self.choices:
            return f"one of: {', '.join(self.choices)}"
        if self.lowest is not None:
            return f"a number from {self.lowest:g} to {self.highest:g}"
        return f"a text of at most {LONGEST:,} characters"

    def read(self, given: str) -> str | None:
        """The answer that a cell gives, full-width letters and digits as plain ones; None where it is empty or wrong."""
        if self.choices:
            return next((one for one in self.choices if simple(one) == simple(given)), None)
        if self.lowest is not None and self.highest is not None:
            return (
                simple(given) if self.lowest <= to_number(simple(given)) <= self.highest else None
            )
        # What nobody sees is no fault of the person's, and would stop the sheets that show this text to others.
        text = UNFIT.sub(" ", plain(given)).strip("\ufeff \n\t")
        return text if text and len(text) <= LONGEST else None


def simple(text: str) -> str:
    """A text with full-width letters and digits as plain ones, as which answers are compared."""
    return unicodedata.normalize("NFKC", text).strip()


def save(
    path: Path, title: str, instructions: str, rows: pd.DataFrame, questions: Sequence[Question]
) -> None:
    """Save a sheet: the column `KEY` hidden, the other columns of `rows` locked, an open cell a question.

    No cell can be taken for a formula.
    """
    book = Workbook()
    first = book.active
    assert isinstance(first, Worksheet)
    _read_me(first, title, instructions, len(rows), questions)
    page, choices = book.create_sheet(ANSWERS), book.create_sheet(CHOICES)
    choices.sheet_state = "hidden"
    names = [*rows, *(question.name for question in questions)]
    page.append([guarded(name) for name in names])
    for row in rows.itertuples(index=False, name=None):
        page.append([guarded(cell) for cell in row] + [None] * len(questions))
    for at, name in enumerate(names, start=1):
        letter = get_column_letter(at)
        mine = at > len(rows.columns)
        longest = 0 if mine else max(map(_width, rows[name]))
        page.column_dimensions[letter].width = min(
            max(_width(name) + 3, longest + 2, 14 if mine else 8), 48
        )
        page.column_dimensions[letter].hidden = name == KEY
        for cell in page[letter]:
            cell.alignment = TOP
            if cell.row == 1:
                cell.font, cell.fill = Font(bold=True), HEADER
            elif mine:
                cell.fill, cell.protection = TO_FILL, Protection(locked=False)
    for at, question in enumerate(questions, start=1):
        place = get_column_letter(len(rows.columns) + at)
        validation = _validation(question, choices, at)
        validation.add(f"{place}2:{place}{len(rows) + 1}")
        page.add_data_validation(validation)
    page.freeze_panes = "A2"
    # Against slips alone, so without a password; columns may be made wider.
    for one in (page, first):
        one.protection.sheet = True
        one.protection.formatColumns = one.protection.formatRows = False
    book.save(path)


def load(path: Path) -> tuple[list[list[tuple[Any, bool]]], str]:
    """(value, whether it is a formula or the error of one) of each cell of the page with the answers; and when the file was saved.

    A percentage is a text, as it is seen: 5% is no 0.05 on a scale to 10.

    Raises:
        BadInput: there is no such page, or the file is broken.
    """
    try:
        with (
            # Excel writes a list of choices in a way that openpyxl passes over, and says so.
            warnings.catch_warnings(action="ignore"),
            # A broken file would stay open, and could not be put right.
            open_file(path) as stream,
            closing(load_workbook(stream, read_only=True, keep_links=False)) as book,
        ):
            if ANSWERS not in book.sheetnames:
                raise BadInput(f"{path}: has no page `{ANSWERS}`")
            page = book[ANSWERS]
            lines = [[_read(cell) for cell in row] for row in xlsx_rows(path, page)]
            # Google's sheets do not say when they were saved, and openpyxl then says now.
            with zipfile.ZipFile(path) as zipped:
                told = ARC_CORE in zipped.namelist()
            saved = book.properties.modified if told else None
            when = (
                saved.replace(tzinfo=UTC)
                if saved
                else datetime.fromtimestamp(path.stat().st_mtime, UTC)
            )
    except BadInput:
        raise
    except Exception as error:  # whatever a broken file provokes in openpyxl
        raise BadInput(f"{path}: cannot be read as xlsx ({quoted(str(error))})") from None
    width = max(map(len, lines), default=0)
    lines = [line + [(None, False)] * (width - len(line)) for line in lines]
    return lines, when.isoformat(timespec="seconds")


def _read(cell: Any) -> tuple[Any, bool]:
    value = cell.value
    if type(value) in (int, float) and "%" in (cell.number_format or ""):
        value = f"{100 * value:{'g' if isinstance(value, float) else ''}}%"
    return value, cell.data_type in ("f", "e")


def shown(value: object) -> str:
    """A cell as people see it: a whole number without its `.0`."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    whole_one = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value) if whole_one and isinstance(value, float) else value).strip()


def text(cell: tuple[Any, bool]) -> str:
    """What a locked cell holds, to be compared with what was sent."""
    return "a formula" if cell[1] else plain(unguarded(shown(cell[0])))


def plain(text: str) -> str:
    """What of a text must have stayed: a spreadsheet program may write line ends and composed characters otherwise."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _read_me(
    page: Worksheet, title: str, instructions: str, count: int, questions: Sequence[Question]
) -> None:
    page.title = READ_ME
    page.column_dimensions["A"].width, page.column_dimensions["B"].width = 22, 90
    lines = [
        (title, ""),
        ("", instructions),
        (
            "",
            f"{count} rows on the page `{ANSWERS}`: fill in the yellow cells, and leave the others as they are.",
        ),
    ]
    lines += [
        (
            question.name,
            f"{question.asked} ({question.allowed}{'' if question.required else '; may stay empty'})",
        )
        for question in questions
    ]
    for line in lines:
        page.append([guarded(cell) for cell in line])
    page["A1"].font = Font(bold=True, size=14)
    for row in page.iter_rows(min_row=2):
        for cell in row:
            cell.alignment = TOP


def _validation(question: Question, choices: Worksheet, at: int) -> DataValidation:
    """What a cell may hold. Choices stand on a page of their own, for a list in the rule itself has 255 characters."""
    if question.choices:
        for row, one in enumerate(question.choices, start=1):
            choices.cell(row, at).value = guarded(one)
        letter = get_column_letter(at)
        kind, rule = (
            "list",
            {"formula1": f"{CHOICES}!${letter}$1:${letter}${len(question.choices)}"},
        )
    elif question.lowest is not None:
        kind = "decimal"
        rule = {
            "operator": "between",
            "formula1": f"{question.lowest:g}",
            "formula2": f"{question.highest:g}",
        }
    else:
        kind, rule = "textLength", {"operator": "lessThanOrEqual", "formula1": str(LONGEST)}
    validation = DataValidation(type=kind, allow_blank=True, **rule)
    validation.errorTitle, validation.error = "Not allowed", question.allowed[:200]
    validation.promptTitle, validation.prompt = question.name[:30], question.asked[:200]
    validation.showErrorMessage = validation.showInputMessage = True
    return validation


def _width(text: str) -> int:
    """How many columns of a plain letter a text takes."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
