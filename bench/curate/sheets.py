"""Write sheets for people to fill in, and read back what they answered.

    folder/NAME/sheet.json        what was asked of whom; sheets that come back are compared with it
    folder/NAME/PERSON.xlsx       what goes out, and is read back from there or from another folder

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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
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
from bench.core.files import DRAFT, atomic_path, atomic_write, explain_write_errors
from bench.data.readers import (
    BOM,
    XLSX_ADVICE,
    check_xlsx,
    open_file,
    read_text,
    xlsx_rows,
)

RECORD = "sheet.json"
READ_ME, ANSWERS, CHOICES = "read me", "answers", "choices"
KEY = "key"
# Characters of a cell.
MAX_CELL = 32_000
# Control characters, lone surrogates, and what XML cannot hold.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
FILE_NAME = re.compile(r"\w[\w .+-]{0,60}")
# Names that an operating system keeps for devices, or drops the end of.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[. ]", re.IGNORECASE)
# Formats that other programs save a sheet in; they are named, not read.
OTHER_FORMATS = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".csv", ".tsv")
# Files that a spreadsheet program keeps next to an open one, and our own unfinished ones.
TEMPORARY = ("~$", ".~", DRAFT)
ANSWER_COLUMNS = ["item_id", "person", "question", "answer", "when"]
# Problems of a file, and doubles of a row, that are listed: a returned file may be anything.
MAX_LISTED, MAX_DOUBLES = 1000, 20
SENT_ROW = "a row of the sheet that was sent"
SENT_FILE = "an xlsx file that was sent"
ABSENT = "has not come back"
TO_FILL, HEADER = (PatternFill("solid", fgColor=colour) for colour in ("FFF6DD", "E3E8EE"))
TOP = Alignment(wrap_text=True, vertical="top")
STRICT = ConfigDict(strict=True, extra="forbid")
Bound = Annotated[float, Field(allow_inf_nan=False)]


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


def file_name_fault(name: str) -> str:
    """Say why a sheet or a person's file cannot be called `name`; "" if it can."""
    if FILE_NAME.fullmatch(name) and not RESERVED.fullmatch(name):
        return ""
    return (
        f"{quoted(name)} cannot name a file; allowed: letters, digits, blanks, `.`, `+`, `-`, "
        "a letter or digit first"
    )


def is_column(name: str) -> bool:
    """Return whether a column can have this name and be found again by it."""
    return bool(name) and name.isprintable() and name.strip() == name


def _repeats(names: Iterable[str]) -> bool:
    names = list(names)
    return len({*names}) < len(names)


def _refused_if(fault_of: Callable[[str], str]) -> AfterValidator:
    """Return a validator that refuses a text of which `fault_of` says what is wrong."""

    def check(text: str) -> str:
        if fault := fault_of(text):
            raise ValueError(fault)
        return text

    return AfterValidator(check)


# What a cell can hold, and what can name a file.
Text = Annotated[str, _refused_if(cell_fault)]
Name = Annotated[str, _refused_if(file_name_fault)]


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
        if self.choices:
            return next((one for one in self.choices if normalized(one) == normalized(text)), None)
        if self.lowest is not None and self.highest is not None:
            value = normalized(text)
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
    people: list[Name]
    questions: list[Question]
    rows: list[dict[str, Text]]
    instructions: Text
    former: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.people or _repeats(normalized(name).casefold() for name in self.people):
            raise ValueError(f"needs people, each once; found {', '.join(self.people) or 'none'}")
        if not self.rows or any({*row} != {*self.shown, "item_id"} for row in self.rows):
            raise ValueError("has no rows with a column `item_id`, or rows with unlike columns")
        ids = [row["item_id"] for row in self.rows]
        if "" in ids or _repeats(ids):
            repeated = max(ids, key=lambda item: (item == "", ids.count(item)))
            raise ValueError(f"item {quoted(repeated)} is there twice or has no name")
        if not self.questions or _repeats(self.columns) or not all(map(is_column, self.columns)):
            names = ", ".join(self.columns)
            raise ValueError(f"needs questions whose names are no other column's; found {names}")
        for one in self.questions:
            choices = [normalized(choice) for choice in one.choices]
            if "" in choices or _repeats(choices):
                raise ValueError(f"question `{one.name}`: needs choices that differ")
            if (one.lowest is None) != (one.highest is None):
                raise ValueError(f"question `{one.name}`: needs two bounds or none")
        return self

    @property
    def shown(self) -> list[str]:
        """The columns that people judge."""
        return [name for name in self.rows[0] if name != "item_id"]

    @property
    def columns(self) -> list[str]:
        """All columns of the page: key, texts, questions."""
        return [KEY, *self.shown, *(question.name for question in self.questions)]

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame(self.rows)

    def keys(self, person: str) -> dict[str, str]:
        """Return the item of each key in a person's file."""
        keys = {}
        for row in self.rows:
            parts = [self.name, person, row["item_id"], *(row[name] for name in self.shown)]
            keys[hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]] = row["item_id"]
        return keys

    def order(self, person: str) -> np.ndarray:
        """Return the positions of the rows in a person's file, shuffled by seed and person."""
        digest = hashlib.sha256(f"{self.name}\0{person}".encode()).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(digest[:8])])
        return rng.permutation(len(self.rows))


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
        return rows.pivot_table(index="item_id", columns="person", values="answer", aggfunc="first")

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
    """Write a sheet for each person; files that are there already may be filled in and stay.

    Args:
        name: of the sheet and its folder, such as `severity-1`.
        rows: `item_id` and the texts to be judged, one column each.
        people: their names, which name their files. They may differ from before, see `ask`.
        instructions: printed on the first page.

    Returns:
        The files, in the order of `people`.

    Raises:
        BadInput: the sheet cannot be written or read back, or another sheet has this name.
    """
    place = Path(folder) / name
    cells: Any = rows.fillna("").astype(str).to_dict("records")
    try:
        sheet = Sheet(name, seed, list(people), list(questions), cells, instructions)
    except ValidationError as error:
        raise BadInput(f"{place}: {_reason(error)}") from None
    if (place / RECORD).exists():
        before = load(folder, name)
        if before != replace(sheet, people=before.people, former=before.former):
            raise BadInput(
                f"{place}: holds another sheet of this name; "
                "give this one another name, so that no answers are lost"
            )
        ask(folder, name, people)
    else:
        _keep(place, sheet)
        send(folder, name)
    return [place / f"{person}.xlsx" for person in people]


def load(folder: Path, name: str) -> Sheet:
    """Return the sheet that was written as `name`.

    Raises:
        BadInput: there is none, or its record was changed so that it is no sheet.
    """
    path = Path(folder) / name / RECORD
    try:
        return TypeAdapter(Sheet).validate_json(read_text(path))
    except ValidationError as error:
        raise BadInput(
            f"{path}: is no record of a sheet ({_reason(error)}); put back the one that was written"
        ) from None


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place and f'`{place}`: '}{first['msg'].removeprefix('Value error, ')}"


def _keep(place: Path, sheet: Sheet) -> None:
    text = json.dumps(asdict(sheet), ensure_ascii=False, indent=1)
    with explain_write_errors(place):
        atomic_write(place / RECORD, text + "\n")


def ask(folder: Path, name: str, people: Sequence[str]) -> None:
    """Set the people of a sheet, and write the files that are missing.

    Whoever is no longer named is not waited for, and their answers do not count; the file stays.
    """
    before, place = load(folder, name), Path(folder) / name
    if list(people) != before.people:
        everybody = dict.fromkeys([*before.former, *before.people])
        try:
            sheet = replace(
                before, people=list(people), former=[who for who in everybody if who not in people]
            )
        except ValidationError as error:
            raise BadInput(f"{place}: {_reason(error)}") from None
        _keep(place, sheet)
    send(folder, name)


def send(folder: Path, name: str) -> None:
    """Write the files of a sheet that are missing and did not come back under another name."""
    sheet, place = load(folder, name), Path(folder) / name
    lost = [person for person in sheet.people if not (place / f"{person}.xlsx").exists()]
    problems = read(folder, name).to_mend if lost else pd.DataFrame(columns=MEND_COLUMNS)
    for person in problems.person[(problems.what == ABSENT) & problems.person.isin(lost)]:
        path = place / f"{person}.xlsx"
        with explain_write_errors(path), atomic_path(path) as draft:
            _save(draft, sheet, person)


def read(folder: Path, name: str, returned: Path | None = None) -> Returned:
    """Read what people have answered so far, and list what they have to fix.

    Not allowed, missing, doubled and foreign rows, changed texts and formulas are listed; every
    other answer is taken.

    Args:
        returned: a folder with the files that came back; default: the sheet's own.
    """
    sheet, place = load(folder, name), returned or Path(folder) / name
    try:
        paths = sorted(path for path in place.iterdir() if not path.name.startswith(TEMPORARY))
    except OSError as error:
        raise BadInput(
            f"{place}: cannot be read ({error.strerror}); expected the folder with the xlsx files"
        ) from None
    owners = {
        key: (person, item) for person in sheet.people for key, item in sheet.keys(person).items()
    }
    former = {key for person in sheet.former for key in sheet.keys(person)}
    foreign = _foreign_keys(Path(folder), name)
    rows: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    problems: list[Problem] = []
    for path in paths:
        found = _rows(path, sheet)
        if isinstance(found, Problem):
            problems.append(found)
            continue
        people = [owners[row.key][0] for row in found if row.key in owners]
        if not people and former.intersection(row.key for row in found):
            continue
        # Whose file it is, its rows say; its name may have changed on the way.
        person = max(sheet.people, key=people.count) if people else ""
        for row in found:
            owner, item = owners.get(row.key, ("", ""))
            if item and owner == person:
                rows[person, item].append(row)
                continue
            belongs = foreign.get(row.key, "of no sheet that is known here")
            belongs = f"of {owner}, and this file is {person}'s" if item else belongs
            what = f"is a row {belongs}; its answers are not taken"
            problems.append(
                Problem(person, row.file, row.number, item, "", what, row.key, SENT_ROW)
            )
    answers: list[tuple[str, ...]] = []
    broken = {problem.person for problem in problems if problem.row == 0}
    for person in sheet.people:
        own = [row for (owner, _), some in rows.items() if owner == person for row in some]
        if any(row.cells[question.name][0] for row in own for question in sheet.questions):
            for texts in sheet.rows:
                found_rows = rows.get((person, texts["item_id"]), [])
                answers += _answers(sheet, person, texts, found_rows, problems)
        elif person not in broken:
            what = "nothing is filled in yet" if own else ABSENT
            allowed = "the sheet, filled in"
            problems.append(Problem(person, f"{person}.xlsx", what=what, allowed=allowed))
    problems.sort(key=lambda problem: (problem.person, problem.file, problem.row, problem.column))
    return Returned(
        sheet,
        pd.DataFrame(answers, columns=ANSWER_COLUMNS, dtype=str),
        pd.DataFrame(_limited(problems), columns=MEND_COLUMNS),
    )


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

    file: str
    number: int
    cells: dict[str, tuple[str, bool]]
    when: str

    @property
    def key(self) -> str:
        return self.cells[KEY][0]


def _rows(path: Path, sheet: Sheet) -> list[_Row] | Problem:
    """Return the rows of a file, or why it cannot be read."""
    suffix, person = path.suffix.lower(), path.stem if path.stem in sheet.people else ""
    if suffix in OTHER_FORMATS:
        what = "is no xlsx file; save it as one (Excel workbook, .xlsx)"
        return Problem("", path.name, what=what, allowed=SENT_FILE)
    if suffix != ".xlsx":
        return []
    try:
        if not path.is_file():
            raise BadInput(f"{path}: is no file")
        check_xlsx(path)
        lines, when = _page(path)
    except (BadInput, OSError) as error:
        # The advice of the message is for tables that people write themselves.
        reason = str(error).removeprefix(str(path)).lstrip(":, ").removesuffix(f"; {XLSX_ADVICE}")
        what = reason if reason.startswith("cannot be read") else f"cannot be read: {reason}"
        return Problem(person, path.name, what=what, allowed=SENT_FILE)
    names = [unguarded(text) for text, _ in lines[0]] if lines else []
    wrong = next((name for name in sheet.columns if names.count(name) != 1), None)
    if wrong is not None:
        fault = "is there more than once" if wrong in names else "is missing"
        what = f"column `{wrong}` {fault}, so that nothing of the file is read"
        return Problem("", path.name, 1, "", wrong, what, allowed="the header as it was sent")
    return [
        _Row(path.name, number, dict(zip(names, line, strict=False)), when)
        for number, line in enumerate(lines[1:], start=2)
        if any(text for text, _ in line)
    ]


def _answers(
    sheet: Sheet, person: str, texts: Mapping[str, str], rows: list[_Row], problems: list[Problem]
) -> Iterator[tuple[str, ...]]:
    """Yield the allowed answers of a person about an item; add to `problems` what is wrong."""
    item = texts["item_id"]
    if not rows:
        what = "the row is missing"
        problems.append(Problem(person, f"{person}.xlsx", 0, item, "", what, "", SENT_ROW))
        return
    at = [Problem(person, row.file, row.number, item) for row in rows]
    changed: list[list[str]] = []
    for row, problem in zip(rows, at, strict=True):
        text_of = {name: "" if row.cells[name][1] else row.cells[name][0] for name in sheet.shown}
        changed.append(
            [
                name
                for name, text in text_of.items()
                if _stable(unguarded(text)) != _stable(texts[name])
            ]
        )
        what = "its text was changed, so the row's answers wait until it is put back"
        for name in changed[-1]:
            value, allowed = row.cells[name][0], texts[name]
            problems.append(problem._replace(column=name, what=what, value=value, allowed=allowed))
    for question in sheet.questions:
        given: list[tuple[_Row, str | None]] = []
        for row, problem, is_changed in zip(rows, at, changed, strict=True):
            text, is_formula = row.cells[question.name]
            answer = None if is_changed or is_formula else question.read(unguarded(text))
            what = "holds a formula instead of a value" if is_formula else "is not allowed"
            if is_formula or (text and answer is None and not is_changed):
                place, value = problem[:4], unguarded(text)
                problems.append(Problem(*place, question.name, what, value, question.allowed))
            if text:
                given.append((row, answer))
        right = [(row, answer) for row, answer in given if answer is not None]
        first = at[0]._replace(column=question.name, allowed=question.allowed)
        if len({answer for _, answer in right}) > 1:
            what = "the row is there more than once, with unlike answers; none is taken"
            doubles = [f"{row.file}, row {row.number}: {answer}" for row, answer in right]
            value = "; ".join(doubles[:MAX_DOUBLES])
            problems.append(first._replace(what=what, value=value))
        elif right:
            yield item, person, question.name, str(right[0][1]), right[0][0].when
        elif not given and question.required:
            problems.append(first._replace(what="is empty"))
    if len(rows) > 1:
        doubles = [f"{row.file}, row {row.number}" for row in rows[:MAX_DOUBLES]]
        what = "the row is there more than once"
        problems.append(
            at[1]._replace(what=what, value=", ".join(doubles), allowed="each row once")
        )


def _limited(problems: list[Problem]) -> list[Problem]:
    """Keep at most `MAX_LISTED` problems of each file, and say how many more there are."""
    count = Counter(problem.file for problem in problems)
    rank = Counter[str]()
    kept = []
    for problem in problems:
        rank[problem.file] += 1
        if rank[problem.file] <= MAX_LISTED:
            kept.append(problem)
        elif rank[problem.file] == count[problem.file]:
            more = count[problem.file] - MAX_LISTED
            what = f"{more:,} more things are to be fixed; the first {MAX_LISTED:,} are listed"
            kept.append(Problem("", problem.file, what=what, allowed="the sheet, filled in"))
    return kept


def _foreign_keys(folder: Path, name: str) -> dict[str, str]:
    """Return where each key of the project's other sheets belongs."""
    others = [path.parent.name for path in sorted(folder.glob(f"*/{RECORD}"))]
    return {
        key: f"of the sheet {sheet.name}, of {person}"
        for sheet in (load(folder, other) for other in others if other != name)
        for person in sheet.people
        for key in sheet.keys(person)
    }


def _stable(text: str) -> str:
    """Normalise what a spreadsheet program may change: line ends and composed characters."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _page(path: Path) -> tuple[list[list[tuple[str, bool]]], str]:
    """Return the page with the answers, and when the file was saved.

    Each cell is its text as people see it, and whether it is a formula or a formula's error.
    """
    try:
        with (
            # openpyxl warns of lists of choices in the form that Excel writes.
            warnings.catch_warnings(action="ignore"),
            open_file(path) as stream,
            closing(load_workbook(stream, read_only=True, keep_links=False)) as book,
        ):
            if ANSWERS not in book.sheetnames:
                raise BadInput(f"{path}: has no page `{ANSWERS}`")
            page = book[ANSWERS]
            lines = [[_text(cell) for cell in row] for row in xlsx_rows(path, page)]
            # Google's sheets do not say when they were saved, and openpyxl then says now.
            with zipfile.ZipFile(path) as zipped:
                is_dated = ARC_CORE in zipped.namelist()
            saved = book.properties.modified if is_dated else None
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            when = saved.replace(tzinfo=UTC) if saved else changed
    except BadInput:
        raise
    except Exception as error:  # whatever a broken file provokes in openpyxl
        raise BadInput(f"{path}: cannot be read as xlsx ({quoted(str(error))})") from None
    width = max(map(len, lines), default=0)
    lines = [line + [("", False)] * (width - len(line)) for line in lines]
    return lines, when.isoformat(timespec="seconds")


def _text(cell: Any) -> tuple[str, bool]:
    value = cell.value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "", cell.data_type in ("f", "e")
    if type(value) in (int, float) and "%" in (cell.number_format or ""):
        # 5 % is seen, and is not 0.05 on a scale to 10.
        value = f"{100 * value:{'g' if isinstance(value, float) else ''}}%"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value).strip(), cell.data_type in ("f", "e")


def _save(path: Path, sheet: Sheet, person: str) -> None:
    """Save a person's file: hidden key, locked texts, validated cells to fill in; no formulas."""
    book = Workbook()
    page, choices = book.create_sheet(ANSWERS), book.create_sheet(CHOICES)
    choices.sheet_state = "hidden"
    key_of = {item: key for key, item in sheet.keys(person).items()}
    rows = [sheet.rows[position] for position in sheet.order(person)]
    page.append([guarded(name) for name in sheet.columns])
    for row in rows:
        page.append([key_of[row["item_id"]], *(guarded(row[name]) for name in sheet.shown)])
    for at, name in enumerate(sheet.columns, start=1):
        letter, is_question = get_column_letter(at), at > len(sheet.shown) + 1
        page.column_dimensions[letter].width = 18 if is_question else 40
        page.column_dimensions[letter].hidden = name == KEY
        for cell in (page.cell(place, at) for place in range(1, len(rows) + 2)):
            cell.alignment = TOP
            if cell.row == 1:
                cell.font, cell.fill = Font(bold=True), HEADER
            elif is_question:
                cell.fill, cell.protection = TO_FILL, Protection(locked=False)
    for at, question in enumerate(sheet.questions, start=1):
        # A list within the rule itself has at most 255 characters.
        for row_number, choice in enumerate(question.choices, start=1):
            choices.cell(row_number, at).value = guarded(choice)
        letter = get_column_letter(len(sheet.shown) + 1 + at)
        validation = _validation(question, get_column_letter(at))
        validation.add(f"{letter}2:{letter}{len(rows) + 1}")
        page.add_data_validation(validation)
    page.freeze_panes = "A2"
    first: Any = book.active
    _read_me(first, sheet, person)
    for each in (page, first):
        # Against slips only, so without a password; columns may be made wider.
        each.protection.sheet = True
        each.protection.formatColumns = each.protection.formatRows = False
    book.save(path)


def _read_me(page: Any, sheet: Sheet, person: str) -> None:
    page.title = READ_ME
    page.column_dimensions["A"].width, page.column_dimensions["B"].width = 22, 90
    page.append([f"{sheet.name}: {person}", ""])
    page.append(["", guarded(sheet.instructions)])
    filling = "fill in the yellow cells, and leave the others as they are."
    page.append(["", f"{len(sheet.rows)} rows on the page `{ANSWERS}`: {filling}"])
    for question in sheet.questions:
        optional = "" if question.required else "; may stay empty"
        text = f"{question.asked} ({question.allowed}{optional})"
        page.append([guarded(question.name), guarded(text)])
    page["A1"].font = Font(bold=True, size=14)
    for row in page.iter_rows(min_row=2):
        for cell in row:
            cell.alignment = TOP


def _validation(question: Question, letter: str) -> DataValidation:
    """Return the rule for a question's cells; `letter` is its column on the page of choices."""
    rule: dict[str, str]
    if question.choices:
        rule = {
            "type": "list",
            "formula1": f"{CHOICES}!${letter}$1:${letter}${len(question.choices)}",
        }
    elif question.lowest is not None:
        low, high = f"{question.lowest:g}", f"{question.highest:g}"
        rule = {"type": "decimal", "operator": "between", "formula1": low, "formula2": high}
    else:
        rule = {"type": "textLength", "operator": "lessThanOrEqual", "formula1": str(MAX_CELL)}
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
