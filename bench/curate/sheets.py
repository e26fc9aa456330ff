"""Write sheets for people to fill in, and read back what they answered.

    folder/NAME/sheet.json        what was asked of whom; sheets that come back are compared with it
    folder/NAME/PERSON.xlsx       what goes out; it may come back under another name

Each row has a key in a hidden column, made of sheet, person and texts: rows may be sorted and files
renamed, and a row of another person or sheet is recognised.
"""

import hashlib
import json
import math
import re
import unicodedata
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Alignment, Font, PatternFill, Protection
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.xml.constants import ARC_CORE
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from bench.core.cells import guarded, to_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.core.files import (
    DRAFT,
    atomic_path,
    atomic_write,
    explain_write_errors,
    file_name_error,
)
from bench.data.readers import BOM, XLSX_ADVICE, check_xlsx, open_file, read_text, xlsx_rows

RECORD = "sheet.json"
READ_ME, ANSWERS, CHOICES = "read me", "answers", "choices"
KEY = "key"
# Characters of a cell.
MAX_CELL = 32_000
# Control characters, lone surrogates, and what XML cannot hold.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Formats that other programs save a sheet in; they are named, not read.
OTHER_FORMATS = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".csv", ".tsv")
# Files that a spreadsheet program keeps next to an open one, and our own unfinished ones.
TEMPORARY = ("~$", ".~", DRAFT)
ANSWER_COLUMNS = ["item_id", "person", "question", "answer", "when"]
# Problems of a file, and doubles of a row, that are listed: a returned file may be anything.
MAX_LISTED, MAX_DOUBLES = 1000, 20
SENT_ROW = "a row of the sheet that was sent"
SENT_FILE = "an xlsx file that was sent"
FILLED_IN = "the sheet, filled in"
ABSENT = "has not come back"
TO_FILL, HEADER = (PatternFill("solid", fgColor=colour) for colour in ("FFF6DD", "E3E8EE"))
TOP = Alignment(wrap_text=True, vertical="top")
STRICT = ConfigDict(strict=True, extra="forbid")


def normalized(text: str) -> str:
    """Replace full-width letters and digits by plain ones; answers are compared in this form."""
    return unicodedata.normalize("NFKC", text).strip()


def cell_fault(text: str) -> str:
    """Say why no cell of a sheet can hold `text`; "" if one can."""
    if text.startswith(BOM):
        return "begins with a byte order mark, which nobody sees; remove it"
    if FORBIDDEN.search(text) or len(text) > MAX_CELL:
        return f"holds a control character or more than {MAX_CELL:,} characters, which no cell can"
    return ""


def check_texts(path: Path, table: str, texts: Any, names: Iterable[str]) -> None:
    """Check that a table of `wording.toml` has texts of these names that a sheet can show."""
    for name in names:
        text = texts.get(name) if isinstance(texts, dict) else None
        if fault := cell_fault(text) if isinstance(text, str) else "is missing":
            raise BadInput(f"{path}, table [{table}], `{name}`: {fault}")


def is_column(name: str) -> bool:
    """Return whether a column can have this name and be found again by it."""
    return bool(name) and name.isprintable() and name.strip() == name


def repeats(texts: Iterable[str]) -> bool:
    """Return whether two texts are the same but for full-width letters."""
    texts = [normalized(text) for text in texts]
    return len({*texts}) < len(texts)


def error_text(error: ValidationError) -> str:
    """Return the key and the message of the first error."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place and f'key `{place}`: '}{first['msg'].removeprefix('Value error, ')}"


def _file_name_fault(name: str) -> str:
    error = file_name_error(name)
    return error and f"{quoted(name)} cannot name a file: {error}"


def _refuse(fault_of: Callable[[str], str], text: str) -> str:
    if fault := fault_of(text):
        raise ValueError(fault)
    return text


def _differ(names: list[str]) -> list[str]:
    if not names or repeats(name.casefold() for name in names):
        raise ValueError(f"needs names, each once; found {', '.join(names) or 'none'}")
    return names


# What a cell can hold, what can name a file, and people, who name files on any system.
Text = Annotated[str, AfterValidator(partial(_refuse, cell_fault))]
Name = Annotated[str, AfterValidator(partial(_refuse, _file_name_fault))]
Names = Annotated[list[Name], AfterValidator(_differ)]
Bound = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class Question:
    """A question about each row: one of `choices`, a number within bounds, or a free text.

    Attributes:
        name: the name of its column.
        asked: the question in a sentence.
        required: whether an empty cell is reported.
    """

    name: str
    asked: Text
    choices: tuple[Text, ...] = ()
    lowest: Bound | None = None
    highest: Bound | None = None
    required: bool = True

    @property
    def allowed(self) -> str:
        """The allowed answers, in words."""
        if self.choices:
            return f"one of: {', '.join(self.choices)}"
        if self.lowest is not None:
            return f"a number from {self.lowest:g} to {self.highest:g}"
        return f"a text of at most {MAX_CELL:,} characters"

    def read(self, text: str) -> str | None:
        """Return the answer that a cell gives, None where it is empty or not allowed."""
        value = normalized(text)
        if self.choices:
            return next((choice for choice in self.choices if normalized(choice) == value), None)
        if self.lowest is not None and self.highest is not None:
            return value if self.lowest <= to_number(value) <= self.highest else None
        # Invisible characters are not the person's fault, and would stop sheets that show the text.
        answer = FORBIDDEN.sub(" ", _stable(text)).strip("\ufeff \n\t")
        return answer if answer and len(answer) <= MAX_CELL else None


@dataclass(frozen=True, config=STRICT)
class Sheet:
    """What is asked of whom: the record of a sheet, checked whenever it is made or read.

    Attributes:
        rows: `item_id`, unique, and the texts to be judged, by column.
        former: people who were asked before and are no longer; their files are skipped.
    """

    name: Name
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    people: Names
    questions: list[Question]
    rows: list[dict[str, Text]]
    instructions: Text
    former: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.rows or any({*row} != {*self.shown, "item_id"} for row in self.rows):
            raise ValueError("has no rows with a column `item_id`, or rows with unlike columns")
        ids = [row["item_id"] for row in self.rows]
        for item in ids if "" in ids or len({*ids}) < len(ids) else ():
            if not item or ids.count(item) > 1:
                raise ValueError(f"item {quoted(item)} is there twice or has no name")
        is_named = all(map(is_column, self.columns)) and len({*self.columns}) == len(self.columns)
        if not self.questions or not is_named:
            names = ", ".join(self.columns)
            raise ValueError(f"needs questions whose names are no other column's; found {names}")
        for question in self.questions:
            bounds = (question.lowest, question.highest)
            if repeats(["", *question.choices]) or bounds.count(None) == 1:
                fault = "needs choices that differ, and two bounds or none"
                raise ValueError(f"question `{question.name}`: {fault}")
        return self

    @property
    def shown(self) -> list[str]:
        """The columns that people judge."""
        return [name for name in self.rows[0] if name != "item_id"]

    @property
    def columns(self) -> list[str]:
        """All columns of the page: key, texts, questions."""
        return [KEY, *self.shown, *(question.name for question in self.questions)]

    def keys(self, person: str) -> dict[str, str]:
        """Return the item of each key in a person's file."""
        keys = {}
        for row in self.rows:
            parts = [self.name, person, row["item_id"], *(row[name] for name in self.shown)]
            keys[hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]] = row["item_id"]
        return keys


class Returned(NamedTuple):
    """What came back of a sheet.

    Attributes:
        answers: `item_id`, `person`, `question`, `answer` (a text, or a number as a text), `when`
            (the file was saved, UTC). Allowed answers only, each once.
        to_mend: what people have to fix, see `Problem`.
    """

    sheet: Sheet
    answers: pd.DataFrame
    to_mend: pd.DataFrame

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """The required answers that are not there: item, person, question."""
        columns = ["item_id", "person", "question"]
        given = {*self.answers[columns].itertuples(index=False, name=None)}
        items = [row["item_id"] for row in self.sheet.rows]
        required = [question.name for question in self.sheet.questions if question.required]
        needed = product(items, self.sheet.people, required)
        return [answer for answer in needed if answer not in given]

    def wide(self, question: str) -> pd.DataFrame:
        """Return the answers to a question: one row per item, one column per person."""
        rows = self.answers[self.answers.question == question]
        return rows.pivot_table(aggfunc="first", index="item_id", columns="person", values="answer")

    def answers_to(self, question: str) -> dict[tuple[str, str], str]:
        """Return the answers to a question by item and person."""
        rows = self.answers[self.answers.question == question]
        return dict(zip(zip(rows.item_id, rows.person, strict=True), rows.answer, strict=True))


class Problem(NamedTuple):
    """Something to fix in a file that came back.

    `row` counts as a spreadsheet does, the header is row 1; 0 means the file.
    """

    person: str
    file: str
    row: int = 0
    item_id: str = ""
    column: str = ""
    what: str = ""
    value: str = ""
    allowed: str = ""


MEND_COLUMNS = list(Problem._fields)


def write(
    folder: Path,
    name: str,
    rows: pd.DataFrame,
    questions: Sequence[Question],
    people: Sequence[str],
    seed: int,
    instructions: str = "",
) -> list[Path]:
    """Write a sheet for each person, and return the files in the order of `people`.

    Args:
        name: of the sheet and its folder, such as `severity-1`.
        rows: `item_id` and the texts to be judged, one column each.
        people: their names, which name their files.
        instructions: printed on the first page.

    Raises:
        BadInput: the sheet cannot be written or read back, or there is one of this name.
    """
    place = folder / name
    cells: Any = rows.fillna("").astype(str).to_dict("records")
    if (place / RECORD).exists():
        raise BadInput(f"{place}: holds a sheet; give this one another name, so that none is lost")
    _keep(place, lambda: Sheet(name, seed, [*people], [*questions], cells, instructions))
    send(folder, name)
    return [place / f"{person}.xlsx" for person in people]


def load(folder: Path, name: str) -> Sheet:
    """Return the sheet that was written as `name`.

    Raises:
        BadInput: there is none, or its record was changed so that it is no sheet.
    """
    path = folder / name / RECORD
    try:
        return TypeAdapter(Sheet).validate_json(read_text(path))
    except ValidationError as error:
        problem = (
            f"is no record of a sheet ({error_text(error)}); put back the one that was written"
        )
        raise BadInput(f"{path}: {problem}") from None


def _keep(place: Path, make: Callable[[], Sheet]) -> None:
    try:
        text = json.dumps(asdict(make()), ensure_ascii=False, indent=1)
    except ValidationError as error:
        raise BadInput(f"{place}: {error_text(error)}") from None
    with explain_write_errors(place):
        atomic_write(place / RECORD, text + "\n")


def ask(folder: Path, name: str, people: Sequence[str]) -> None:
    """Set the people of a sheet, and write the files that are missing.

    Whoever is no longer named is not waited for, and their answers do not count; the file stays.
    """
    before = load(folder, name)
    if [*people] != before.people:
        known = dict.fromkeys([*before.former, *before.people])
        former = [person for person in known if person not in people]
        _keep(folder / name, lambda: replace(before, people=[*people], former=former))
    send(folder, name)


def send(folder: Path, name: str) -> None:
    """Write the files of a sheet that are missing and did not come back under another name."""
    sheet = load(folder, name)
    paths = {person: folder / name / f"{person}.xlsx" for person in sheet.people}
    lost = {person: path for person, path in paths.items() if not path.exists()}
    problems = read(folder, name).to_mend if lost else pd.DataFrame(columns=MEND_COLUMNS)
    for person in problems.person[problems.what == ABSENT]:
        if path := lost.get(person):
            with explain_write_errors(path), atomic_path(path) as draft:
                _save(draft, sheet, person)


def read(folder: Path, name: str) -> Returned:
    """Read what people have answered so far, and list what they have to fix.

    Not allowed, missing, doubled and foreign rows, changed texts and formulas are listed; every
    other answer is taken.
    """
    sheet = load(folder, name)
    known = [load(folder, path.parent.name) for path in sorted(folder.glob(f"*/{RECORD}"))]
    owners = {
        key: (each.name, person, item)
        for each in known
        for person in [*each.former, *each.people]
        for key, item in each.keys(person).items()
    }
    rows: dict[str, dict[str, list[_Row]]] = {person: defaultdict(list) for person in sheet.people}
    problems: list[Problem] = []
    for path in sorted((folder / name).iterdir()):
        lines = [] if path.name.startswith(TEMPORARY) else _rows(path, sheet)
        if isinstance(lines, Problem):
            problems.append(lines)
            continue
        # Whose file it is, its rows say; its name may have changed on the way.
        people = [owners[row.key][1] for row in lines if owners.get(row.key, ("",))[0] == name]
        person = max([*sheet.people, *sheet.former], key=people.count) if people else ""
        for row in () if person in sheet.former else lines:
            origin, owner, item = owners.get(row.key, ("", "", ""))
            place = row.place._replace(person=person, item_id=item if origin == name else "")
            if (origin, owner) == (name, person):
                rows[person][item].append(row._replace(place=place))
                continue
            belongs = f"of the sheet {origin}, of {owner}" if origin else "of no known sheet"
            if origin == name:
                belongs = f"of {owner}, and this file is {person}'s"
            what = f"is a row {belongs}; its answers are not taken"
            problems.append(place._replace(what=what, value=row.key, allowed=SENT_ROW))
    answers: list[tuple[str, ...]] = []
    broken = {problem.person for problem in problems if problem.row == 0}
    for person, items in rows.items():
        own = [row for doubles in items.values() for row in doubles]
        file = Problem(person, f"{person}.xlsx", allowed=FILLED_IN)
        if any(row.cells[question.name][0] for row in own for question in sheet.questions):
            for texts in sheet.rows:
                item = texts["item_id"]
                place = file._replace(item_id=item, what="the row is missing", allowed=SENT_ROW)
                problems += [] if items[item] else [place]
                answers += _answers(sheet, texts, items[item], problems)
        elif person not in broken:
            problems.append(file._replace(what="nothing is filled in yet" if own else ABSENT))
    problems.sort(key=lambda problem: (problem.person, problem.file, problem.row, problem.column))
    listed = pd.DataFrame(problems, columns=MEND_COLUMNS)
    short = listed.groupby("file").head(MAX_LISTED)
    for file_name, n in (listed.file.value_counts() - MAX_LISTED).items():
        if n > 0:
            what = f"{n:,} more things are to be fixed; the first {MAX_LISTED:,} are listed"
            more = Problem("", str(file_name), what=what, allowed=FILLED_IN)
            short = pd.concat([short, pd.DataFrame([more])], ignore_index=True)
    return Returned(sheet, pd.DataFrame(answers, columns=ANSWER_COLUMNS, dtype=str), short)


def fill(
    path: Path, sheet: Sheet, person: str, answer: Callable[[Mapping[str, str]], Mapping[str, Any]]
) -> None:
    """Fill in a person's file, for simulated people and demonstrations.

    Args:
        answer: from a row to its answers by question; cells that are left out stay as they are.
    """
    book = load_workbook(path)
    page = book[ANSWERS]
    columns = {str(cell.value): cell.column for cell in page[1]}
    keys, rows = sheet.keys(person), {row["item_id"]: row for row in sheet.rows}
    for at in range(2, page.max_row + 1):
        row = rows[keys[str(page.cell(at, columns[KEY]).value)]]
        for question, value in answer(row).items():
            cell = guarded(value) if isinstance(value, str) else value
            page.cell(at, columns[question]).value = cell
    with atomic_path(path) as draft:
        book.save(draft)


class _Row(NamedTuple):
    """A row of a file that came back: of each column the text, and whether it is a formula."""

    place: Problem
    cells: dict[str, tuple[str, bool]]
    when: str

    @property
    def key(self) -> str:
        return self.cells[KEY][0]


def _rows(path: Path, sheet: Sheet) -> list[_Row] | Problem:
    """Return the rows of a file, or why it cannot be read."""
    suffix, file = path.suffix.lower(), Problem("", path.name, allowed=SENT_FILE)
    if suffix in OTHER_FORMATS:
        return file._replace(what="is no xlsx file; save it as one (Excel workbook, .xlsx)")
    if suffix != ".xlsx":
        return []
    try:
        if not path.is_file():
            raise BadInput(f"{path}: is no file")
        check_xlsx(path)
        with (
            # openpyxl warns of lists of choices in the form that Excel writes.
            warnings.catch_warnings(action="ignore"),
            open_file(path) as stream,
            closing(load_workbook(stream, read_only=True, keep_links=False)) as book,
        ):
            lines = [[_text(cell) for cell in row] for row in xlsx_rows(path, book[ANSWERS])]
            # Google's sheets do not say when they were saved, and openpyxl then says now.
            with zipfile.ZipFile(path) as zipped:
                saved = book.properties.modified if ARC_CORE in zipped.namelist() else None
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            when = (saved.replace(tzinfo=UTC) if saved else changed).isoformat(timespec="seconds")
    except Exception as error:  # whatever a broken file provokes in openpyxl
        reason = f"cannot be read as xlsx ({quoted(str(error))})"
        if isinstance(error, BadInput):
            # The advice of the message is for tables that people write themselves.
            reason = str(error).removeprefix(str(path)).lstrip(":, ")
            reason = reason if reason.startswith("cannot be") else f"cannot be read: {reason}"
        person = path.stem if path.stem in sheet.people else ""
        return file._replace(person=person, what=reason.removesuffix(f"; {XLSX_ADVICE}"))
    names = [unguarded(text) for text, _ in lines[0]] if lines else []
    wrong = next((name for name in sheet.columns if names.count(name) != 1), None)
    if wrong is not None:
        what = f"column `{wrong}` is missing or doubled, so that nothing of the file is read"
        return Problem("", path.name, 1, "", wrong, what, allowed="the header as it was sent")
    empty = [("", False)] * len(names)
    return [
        _Row(file._replace(row=number), dict(zip(names, [*line, *empty], strict=False)), when)
        for number, line in enumerate(lines[1:], start=2)
        if any(text for text, _ in line)
    ]


def _answers(
    sheet: Sheet, texts: Mapping[str, str], rows: list[_Row], problems: list[Problem]
) -> Iterator[tuple[str, ...]]:
    """Yield the allowed answers in a person's rows about an item; add what is wrong in them."""

    def report(row: _Row, what: str, value: str, allowed: str, column: str = "") -> None:
        place = row.place._replace(column=column, what=what, value=value, allowed=allowed)
        problems.append(place)

    listed = [f"{row.place.file}, row {row.place.row}" for row in rows]
    if len(rows) > 1:
        what = "the row is there more than once"
        report(rows[1], what, ", ".join(listed[:MAX_DOUBLES]), "each row once")
    spoilt = set()
    for name, (k, row) in product(sheet.shown, enumerate(rows)):
        text, is_formula = row.cells[name]
        if is_formula or _stable(unguarded(text)) != _stable(texts[name]):
            spoilt.add(k)
            what = "its text was changed, so the row's answers wait until it is put back"
            report(row, what, text, texts[name], name)
    for question in sheet.questions:
        about = question.allowed, question.name
        cells = [row.cells[question.name] for row in rows]
        given: dict[int, str] = {}
        for k, (text, is_formula) in enumerate(cells):
            value = unguarded(text)
            answer = None if is_formula or k in spoilt else question.read(value)
            if answer is not None:
                given[k] = answer
            elif is_formula or (text and k not in spoilt):
                what = "holds a formula instead of a value" if is_formula else "is not allowed"
                report(rows[k], what, value, *about)
        if len({*given.values()}) > 1:
            what = "the row is there more than once, with unlike answers; none is taken"
            unlike = [f"{listed[k]}: {answer}" for k, answer in given.items()]
            report(rows[0], what, "; ".join(unlike[:MAX_DOUBLES]), *about)
        elif given:
            k, answer = next(iter(given.items()))
            place = rows[k].place
            yield place.item_id, place.person, question.name, answer, rows[k].when
        elif question.required and rows and not any(text for text, _ in cells):
            report(rows[0], "is empty", "", *about)


def _stable(text: str) -> str:
    """Normalise what a spreadsheet program may change: line ends and composed characters."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _text(cell: Any) -> tuple[str, bool]:
    value, is_formula = cell.value, cell.data_type in ("f", "e")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "", is_formula
    if type(value) in (int, float) and "%" in (cell.number_format or ""):
        # 5 % is seen, and is not 0.05 on a scale to 10.
        value = f"{100 * value:{'g' if isinstance(value, float) else ''}}%"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value).strip(), is_formula


def _save(path: Path, sheet: Sheet, person: str) -> None:
    """Save a person's file: hidden key, locked texts, validated cells to fill in; no formulas."""
    book = Workbook()
    read_me: Any = book.active
    read_me.title = READ_ME
    page, choices = book.create_sheet(ANSWERS), book.create_sheet(CHOICES)
    choices.sheet_state = "hidden"
    digest = hashlib.sha256(f"{sheet.name}\0{person}".encode()).digest()
    rng = np.random.default_rng([sheet.seed, int.from_bytes(digest[:8])])
    keyed = [*zip(sheet.keys(person), sheet.rows, strict=True)]
    page.append([guarded(name) for name in sheet.columns])
    for position in rng.permutation(len(keyed)):
        key, row = keyed[position]
        page.append([key, *(guarded(row[name]) for name in sheet.shown)])
    first = len(sheet.shown) + 2  # the first column of a question
    for at, cells in enumerate(page.iter_cols(), start=1):
        column = page.column_dimensions[get_column_letter(at)]
        column.width, column.hidden = 18 if at >= first else 40, at == 1
        for cell in cells:
            cell.alignment = TOP
            if cell.row == 1:
                cell.font, cell.fill = Font(bold=True), HEADER
            elif at >= first:
                cell.fill, cell.protection = TO_FILL, Protection(locked=False)
    filling = "fill in the yellow cells, and leave the others as they are."
    texts = [
        [f"{sheet.name}: {person}", ""],
        ["", sheet.instructions],
        ["", f"{len(sheet.rows)} rows on the page `{ANSWERS}`: {filling}"],
    ]
    for at, question in enumerate(sheet.questions):
        # A list within the rule itself has at most 255 characters.
        for row_number, choice in enumerate(question.choices, start=1):
            choices.cell(row_number, at + 1).value = guarded(choice)
        letter = get_column_letter(first + at)
        validation = _validation(question, get_column_letter(at + 1))
        validation.add(f"{letter}2:{letter}{len(sheet.rows) + 1}")
        page.add_data_validation(validation)
        optional = "" if question.required else "; may stay empty"
        texts.append([question.name, f"{question.asked} ({question.allowed}{optional})"])
    for line in texts:
        read_me.append([guarded(text) for text in line])
    for row in read_me.iter_rows():
        for cell in row:
            cell.alignment = TOP
    read_me["A1"].font = Font(bold=True, size=14)
    read_me.column_dimensions["A"].width, read_me.column_dimensions["B"].width = 22, 90
    page.freeze_panes = "A2"
    for each in (page, read_me):
        # Against slips only, so without a password; columns may be made wider.
        each.protection.sheet = True
        each.protection.formatColumns = each.protection.formatRows = False
    book.save(path)


def _validation(question: Question, letter: str) -> DataValidation:
    """Return the rule for a question's cells; `letter` is its column on the page of choices."""
    rule = {"type": "textLength", "operator": "lessThanOrEqual", "formula1": str(MAX_CELL)}
    if question.choices:
        last = len(question.choices)
        rule = {"type": "list", "formula1": f"{CHOICES}!${letter}$1:${letter}${last}"}
    elif question.lowest is not None:
        bounds = {"formula1": f"{question.lowest:g}", "formula2": f"{question.highest:g}"}
        rule = {"type": "decimal", "operator": "between", **bounds}
    return DataValidation(
        allow_blank=True,
        errorTitle="Not allowed",
        error=question.allowed[:200],
        promptTitle=question.name[:30],
        prompt=question.asked[:200],
        showErrorMessage=True,
        showInputMessage=True,
        **rule,
    )
