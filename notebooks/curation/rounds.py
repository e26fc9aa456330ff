"""Ask people about items, round by round: sheets go out, answers come back, rules settle them.

    project.toml               name, version, language, licence, categories; names of people by role
    wording.toml               instructions, questions, and prompts for a model
    sheets/ROUND/PERSON.xlsx   a sheet for each person; it may come back as .xlsx or as .csv

A round is data: a `role`, rows, questions, and a rule in pandas that turns the answers into columns
of the items. These files are the only state, so a project can wait for weeks: `advance` reads all
sheets, lists mistakes, and writes the sheets of the next rounds.

A model can take the place of a person in rounds with a `prompt`.
"""

import re
import shutil
import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from openpyxl import Workbook
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from bench.core.cells import as_csv, guarded, to_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_path, atomic_write, file_name_error
from bench.core.text import truncate
from bench.data import dataset, readers
from bench.data.dataset import MANIFEST, PROMPTS_FILE, Manifest
from bench.data.readers import as_path, read_text, read_toml, to_toml

EXAMPLES = Path(__file__).with_name("examples")
PROJECT, WORDING, SHEETS = "project.toml", "wording.toml", "sheets"
PERSON, ITEM = "person", "item_id"
SUFFIXES = (".xlsx", ".csv")
PROBLEM_COLUMNS = ["file", "row", "column", "value", "sentence"]
PROGRESS_COLUMNS = ["round", "person", "answered", "rows"]
# A cell of a spreadsheet holds 32,767 characters.
MAX_CELL = 32_000
# The most characters of a list in a sentence.
MAX_LISTED = 200
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
ID_RULE = "up to 40 English letters, digits, `_`, `.` and `-`"
# No limit of people in a role.
MANY = 1000
# A row of a sheet, or of the items: texts by column.
Row = Mapping[str, str]
# A row of `State.problems`.
Problem = tuple[str, int, str, str, str]
# A function from prompts to replies, such as `generate` of a model.
Write = Callable[[list[str]], Sequence[str]]
# A column, its wrong rows, the mistake in words, and the allowed values.
Rule = tuple[str, pd.Series, str, str]
# A rule from items and answers to items.
Settle = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Question:
    """A question about each row; its answer is one of some choices, a number, or a text.

    Attributes:
        name: its column in the sheet, and its key in `wording.toml`.
        choices: the allowed answers; a function gives them for a row.
        limits: the lowest and the highest number.
        needed: whether an answer is needed, given the row with the answers to earlier questions.
        is_right: whether a text is allowed.
        allowed: the allowed texts, in words.
    """

    name: str
    choices: Sequence[str] | Callable[[Row], Sequence[str]] = ()
    limits: tuple[float, float] | None = None
    needed: Callable[[Row], bool] = lambda _row: True
    is_right: Callable[[str], bool] = bool
    allowed: str = "a text"

    def options(self, row: Row) -> tuple[str, ...]:
        """Return the choices of a row."""
        return tuple(self.choices(row) if callable(self.choices) else self.choices)

    def allows(self, row: Row) -> str:
        """Say which answers are allowed in a row."""
        if options := self.options(row):
            return f"one of {', '.join(options)}"
        if self.limits:
            return f"a number from {self.limits[0]:g} to {self.limits[1]:g}"
        return self.allowed

    def read(self, row: Row, text: str) -> str | None:
        """Return the answer that a cell gives; None if it is not allowed."""
        # People type full-width digits and letters.
        value = unicodedata.normalize("NFKC", text).strip()
        if options := self.options(row):
            known = {unicodedata.normalize("NFKC", option): option for option in options}
            return known.get(value)
        if self.limits:
            return value if self.limits[0] <= to_number(value) <= self.limits[1] else None
        return text if self.is_right(text) else None


@dataclass(frozen=True)
class Round:
    """A round: some rows, questions to people about them, and a rule for the answers.

    Attributes:
        name: the folder of its sheets, and its key in `wording.toml`.
        role: a key of `[people]` in `project.toml`.
        rows: returns the rows of the sheets, from the items, with the columns that people see.
        settle: returns new items, from items and answers (`item_id`, `person`, and a column a
            question).
        after: the rounds that have to be over before.
        prompt: returns the prompt of a model in place of the person, for the first question.
    """

    name: str
    role: str
    questions: Sequence[Question]
    rows: Callable[[pd.DataFrame], pd.DataFrame]
    settle: Settle = lambda items, _answers: items
    after: Sequence[str] = ()
    prompt: Callable[[Row], str] | None = None

    @property
    def answer_columns(self) -> list[str]:
        """The columns of the answers."""
        return [PERSON, ITEM, *(question.name for question in self.questions)]

    def columns(self, rows: pd.DataFrame) -> list[str]:
        """Return the columns of a sheet."""
        return [PERSON, ITEM, *rows.columns, *self.answer_columns[2:]]


@dataclass(frozen=True)
class Project:
    """A folder in which items are written: its manifest, names of people by role, and texts."""

    folder: Path
    manifest: Manifest
    people: Mapping[str, list[str]]
    values: Mapping[str, Any]
    wording: Mapping[str, Any]


class State(NamedTuple):
    """The state of a project.

    Attributes:
        items: the items with the columns that rounds have added.
        over: the rounds that are over.
        answers: by round: `item_id`, `person`, and a column a question; no rows before it is over.
        progress: `PROGRESS_COLUMNS`: how many rows each person has answered.
        problems: `PROBLEM_COLUMNS`: mistakes in tables and sheets, each as a sentence. Rows count
            as in a spreadsheet, with the header as row 1.
    """

    items: pd.DataFrame
    over: list[str]
    answers: dict[str, pd.DataFrame]
    progress: pd.DataFrame
    problems: pd.DataFrame

    @property
    def is_done(self) -> bool:
        """Whether all rounds are over."""
        return len(self.over) == len(self.answers)


def begin(benchmark: str, folder: str | Path, *, answered: bool = False) -> Path:
    """Copy the example project of a benchmark into a new or empty folder; keep an existing one.

    Args:
        answered: also copy the sheets that its people have filled in.
    """
    place, source = as_path(folder), EXAMPLES / benchmark
    if place.is_dir() and any(place.iterdir()):
        return place
    ignore = None if answered else shutil.ignore_patterns(SHEETS)
    return Path(shutil.copytree(source, place, ignore=ignore, dirs_exist_ok=True))


def open_project(folder: str | Path, roles: Mapping[str, tuple[int, int]]) -> Project:
    """Open the project in a folder.

    Args:
        roles: the least and the highest number of people by role.

    Raises:
        BadInput: a file is missing, or `project.toml` has a wrong value.
    """
    place = as_path(folder)
    values, wording = read_toml(place / PROJECT), read_toml(place / WORDING)
    manifest = dataset.parse_manifest(place / PROJECT, values)
    version, people = manifest.texts.get("version", ""), values.get("people")
    if error := file_name_error(version):
        raise BadInput(
            f"{place / PROJECT}, key `version`: {quoted(version)} is no version; {error}"
        )
    for role, (least, most) in roles.items():
        given = people.get(role) if isinstance(people, dict) else None
        names = [str(name) for name in given] if isinstance(given, list) else []
        is_name = not any(map(file_name_error, names))
        count = len({name.casefold() for name in names})
        if not (is_name and least <= count <= most and count == len(names)):
            number = f"{least}" if least == most else f"{least} or more"
            raise BadInput(
                f"{place / PROJECT}, table [people], `{role}`: {quoted(given)} is not allowed; "
                f"expected a list of {number} different names of letters, digits, blanks, `-`"
            )
    return Project(place, manifest, dict(people or {}), values, wording)


def wording_of(project: Project, table: str, key: str) -> str:
    """Return a text of `wording.toml`.

    Raises:
        BadInput: it has none of this name.
    """
    texts = project.wording.get(table)
    text = texts.get(key) if isinstance(texts, dict) else None
    if not isinstance(text, str):
        path = project.folder / WORDING
        raise BadInput(f"{path}, table [{table}], `{key}`: is missing; expected a text")
    return plain_text(text)


def plain_text(text: object) -> str:
    """Return a text as a cell shows it; spreadsheet programs change line ends and marks."""
    lines = unicodedata.normalize("NFC", str(text)).replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(char if char.isprintable() or char == "\n" else " " for char in lines)
    return kept.strip()[:MAX_CELL]


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file in which people write; its index is the row as a spreadsheet counts it."""
    rows = readers.read_table(path, columns)
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows; write one or more")
    numbers = [row.number + 1 for row in rows]
    table = pd.DataFrame(rows, index=numbers, columns=list(columns), dtype=str)
    return table.map(lambda cell: plain_text(unguarded(cell)))


def check_table(file: str, table: pd.DataFrame, rules: Sequence[Rule]) -> list[Problem]:
    """List the cells of a table of `read_table` that break a rule, or are empty."""
    faults = []
    is_empty = table == ""
    for column in table:
        rules = [*rules, (str(column), is_empty[column], "is empty", "a text")]
    for column, is_wrong, what, allowed in rules:
        # An empty cell has one mistake.
        rows = is_wrong & (~is_empty[column] | (what == "is empty"))
        for row in table.index[rows]:
            faults.append(problem(file, row, column, table.loc[row, column], what, allowed))
    return faults


def id_rules(table: pd.DataFrame, column: str) -> list[Rule]:
    """Return the rules of a column of ids."""
    is_bad = ~table[column].map(lambda name: bool(ID.fullmatch(name))).astype(bool)
    return [
        (column, is_bad, "is no id", ID_RULE),
        (column, table[column].duplicated(), "is there twice", "each id once"),
    ]


def fill_prompt(project: Project, key: str, fields: Row) -> str:
    """Fill in a prompt of `wording.toml`, `{field}` by field.

    Raises:
        BadInput: it names a field that is not there.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in fields:
            raise BadInput(
                f"{project.folder / WORDING}, table [prompts], `{key}`: {found[0]} is no field; "
                f"allowed: {', '.join(fields)}"
            )
        return fields[found[1]]

    # In one pass, so that nothing in a field is taken for another one.
    return re.sub(r"\{(\w+)\}", value, wording_of(project, "prompts", key))


def take(column: str, question: str) -> Settle:
    """Return a rule that takes the answers to a question, of one person, as a column."""
    return lambda items, answers: items.assign(
        **{column: answers.set_index(ITEM)[question].combine_first(items[column])}
    )


def problem(file: str, row: int, column: str, value: str, what: str, allowed: str) -> Problem:
    """Return a row of `State.problems`."""
    places = [file, *([f"row {row}"] if row else []), *([f"column `{column}`"] if column else [])]
    sentence = f"{', '.join(places)}: {quoted(value)} {what}; allowed: {allowed}"
    return file, row, column, value, sentence


def advance(
    project: Project,
    plan: Sequence[Round],
    items: pd.DataFrame,
    faults: Sequence[Problem] = (),
    write: Write | None = None,
    author: str = "",
) -> State:
    """Read the sheets that came back, settle the rounds that are over, and write new sheets.

    Args:
        items: indexed by `item_id`.
        faults: mistakes in the items; nothing is asked before they are corrected.
        write: a model in place of the person in rounds with a prompt.
        author: its name, for the question `author`.
    """
    over: list[str] = []
    answers = {round_.name: pd.DataFrame(columns=round_.answer_columns) for round_ in plan}
    progress: list[tuple] = []
    problems = [*faults]
    for round_ in () if faults else plan:
        if not {*round_.after} <= {*over}:
            continue
        rows = round_.rows(items).map(plain_text)
        wrong: list[Problem] = []
        if len(rows):
            _send(project, round_, rows, write, author)
            table, counts, wrong = collect(project, round_, rows)
            progress += counts
            problems += wrong
            if wrong or any(answered < len(rows) for _, _, answered, _ in counts):
                continue
            answers[round_.name] = table
            items = round_.settle(items, table)
        over.append(round_.name)
    return State(
        items,
        over,
        answers,
        pd.DataFrame(progress, columns=PROGRESS_COLUMNS),
        pd.DataFrame(problems, columns=PROBLEM_COLUMNS),
    )


def collect(
    project: Project, round_: Round, rows: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[str, str, int, int]], list[Problem]]:
    """Read the sheets of a round: the allowed answers, rows of `progress`, and mistakes."""
    people = project.people[round_.role]
    paths = _files(project, round_)
    names = [f"{person}{suffix}" for person in people for suffix in SUFFIXES]
    place = f"{SHEETS}/{round_.name}"
    what = "is nobody's sheet of this round"
    allowed = f"{truncate(', '.join(names), MAX_LISTED)}; rename it or move it away"
    problems = [
        problem(f"{place}/{path.name}", 0, "", path.name, what, allowed)
        for path in paths
        if path.name not in names
    ]
    answers: list[dict[str, str]] = []
    progress = []
    for person in people:
        sheets: list[str] = []
        before = len(answers)
        for path in paths:
            if path.name not in names or path.stem != person:
                continue
            file, lines = f"{place}/{path.name}", _lines(path, round_.columns(rows))
            if isinstance(lines, str):
                what = f"cannot be read ({lines})"
                problems.append(problem(file, 0, "", path.name, what, "the sheet as it was sent"))
            elif any(cells[question.name] for _, cells in lines for question in round_.questions):
                sheets.append(path.name)
                read, faults = _check(file, round_, rows, person, lines)
                answers += read
                problems += faults
        if len(sheets) > 1:
            what = f"is filled in, and so is {sheets[0]}"
            file, allowed = f"{place}/{sheets[1]}", "one sheet a person"
            problems.append(problem(file, 0, "", sheets[1], what, allowed))
        progress.append((round_.name, person, len(answers) - before, len(rows)))
    table = pd.DataFrame(answers, columns=round_.answer_columns, dtype=str)
    # Sheets have their rows in any order.
    order = table[ITEM].map(rows.index.get_loc).sort_values(kind="stable").index
    return table.loc[order].reset_index(drop=True), progress, problems


def _files(project: Project, round_: Round) -> list[Path]:
    folder = project.folder / SHEETS / round_.name
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    # Spreadsheet programs keep hidden files next to an open one.
    return [path for path in paths if path.is_file() and not path.name.startswith((".", "~$"))]


def _lines(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]] | str:
    """Return the numbers and cells of the rows that are not empty, or why there are none."""
    try:
        rows = readers.read_table(path, columns)
    except BadInput as error:
        return str(error).removeprefix(str(path)).lstrip(":, ")
    lines = [
        (row.number + 1, {name: plain_text(unguarded(row[name])) for name in columns})
        for row in rows
    ]
    return [(number, cells) for number, cells in lines if any(cells.values())]


def _check(
    file: str,
    round_: Round,
    rows: pd.DataFrame,
    person: str,
    lines: Sequence[tuple[int, dict[str, str]]],
) -> tuple[list[dict[str, str]], list[Problem]]:
    """Return the rows of a sheet that are completely answered, and the mistakes in the others."""
    answers: list[dict[str, str]] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for number, cells in lines:
        item, faults = cells[ITEM], []
        if item not in rows.index:
            known = truncate(", ".join(rows.index), MAX_LISTED)
            problems.append(problem(file, number, ITEM, item, "is no item of this round", known))
            continue
        if item in first:
            what = f"is there twice, first in row {first[item]}"
            problems.append(problem(file, number, ITEM, item, what, "each item once"))
            continue
        first[item] = number
        row = {PERSON: person, **rows.loc[item]}
        for column, text in row.items():
            if cells[column] != text:
                what = "is not what is asked now"
                faults.append(problem(file, number, column, cells[column], what, quoted(text)))
        for question in round_.questions:
            text = cells[question.name]
            answer = (question.read(row, text) if text else "") or ""
            row[question.name] = answer
            if text and not answer:
                what = "is not an answer"
            elif not text and question.needed(row):
                what = "is empty"
            else:
                continue
            faults.append(problem(file, number, question.name, text, what, question.allows(row)))
        problems += faults
        if not faults:
            row[ITEM] = item
            answers.append({name: row[name] for name in round_.answer_columns})
    for item in rows.index.difference(pd.Index(first), sort=False):
        allowed = f"one row for each of the {len(rows)} items"
        problems.append(problem(file, 0, ITEM, item, "has no row", allowed))
    return answers, problems


def _send(
    project: Project, round_: Round, rows: pd.DataFrame, write: Write | None, author: str
) -> None:
    """Write the sheets of people who have none, or have a model fill in theirs."""
    folder, people = project.folder / SHEETS / round_.name, project.people[round_.role]
    names = {path.stem for path in _files(project, round_)}
    if names - {*people}:  # a renamed sheet may be of somebody who seems to have none
        return
    for person in people:
        # Whoever has begun to fill in the sheet is not replaced.
        if round_.prompt and write and collect(project, round_, rows)[0].empty:
            replies = write([round_.prompt(row) for row in rows.to_dict("records")])
            sheet = rows.reset_index(names=ITEM).assign(**{PERSON: person, "author": author})
            sheet[round_.questions[0].name] = [plain_text(reply) for reply in replies]
            path = folder / f"{person}.csv"
            atomic_write(path, as_csv(sheet[round_.columns(rows)].map(guarded)))
        elif person not in names:
            path = folder / f"{person}.xlsx"
            with atomic_path(path) as draft:
                _workbook(project, round_, rows, person).save(draft)


def _workbook(project: Project, round_: Round, rows: pd.DataFrame, person: str) -> Workbook:
    """Make a person's sheet: rows in an order of their own, yellow cells to fill in, choices."""
    book = Workbook()
    page: Any = book.active
    page.title = "answers"
    choices, read_me = book.create_sheet("choices"), book.create_sheet("read me")
    choices.sheet_state = "hidden"
    page.append([guarded(name) for name in round_.columns(rows)])
    seed = zlib.crc32(f"{project.values.get('seed', 0)} {round_.name} {person}".encode())
    shuffled = rows.sample(frac=1, random_state=seed)
    for item, row in zip(shuffled.index, shuffled.to_dict("records"), strict=True):
        page.append([person, guarded(item), *map(guarded, row.values())])
    first = len(rows.columns) + 3
    wrap, yellow = Alignment(wrap_text=True, vertical="top"), PatternFill("solid", fgColor="FFF6DD")
    for k, question in enumerate(round_.questions):
        column = get_column_letter(first + k)
        by_options: dict[tuple[str, ...], list[str]] = {}
        for number, row in enumerate(shuffled.to_dict("records"), start=2):
            cell = page.cell(number, first + k)
            cell.fill = yellow
            cell.number_format = "@"  # as text, so that 3-5 stays no date and 5 % no 0.05
            by_options.setdefault(question.options(row), []).append(f"{column}{number}")
        for options, cells in by_options.items():
            if options:
                letter = get_column_letter(choices.max_column + 1)
                for number, option in enumerate(options, start=1):
                    choices[f"{letter}{number}"] = guarded(option)
                source = f"choices!${letter}$1:${letter}${len(options)}"
                rule = DataValidation(type="list", formula1=source, showErrorMessage=True)
                rule.sqref = " ".join(cells)
                page.add_data_validation(rule)
    for number, cells in enumerate(page.iter_cols(), start=1):
        page.column_dimensions[get_column_letter(number)].width = 12 if number <= 2 else 36
        for cell in cells:
            cell.alignment = wrap
        cells[0].font = Font(bold=True)
    page.freeze_panes = "C2"
    example = shuffled.iloc[0].to_dict()
    read_me.append(["", guarded(wording_of(project, "rounds", round_.name))])
    for question in round_.questions:
        asked = wording_of(project, "questions", question.name)
        read_me.append([question.name, guarded(f"{asked} ({question.allows(example)})")])
    read_me.column_dimensions["B"].width = 100
    for cell in read_me["B"]:
        cell.alignment = wrap
    return book


def finished(project: Project, state: State) -> pd.DataFrame:
    """Return the items that were not left out, once all rounds are over.

    Raises:
        BadInput: rounds are not over, or all items were left out.
    """
    items = state.items[state.items.left_out == ""]
    if items.empty or not state.is_done:
        reason = "all items were left out" if state.is_done else "not all rounds are over"
        raise BadInput(f"{project.folder}: {reason}, so there is no data set yet")
    return items


def provenance(state: State) -> pd.DataFrame:
    """Return every answer: `item_id`, `round`, `person`, `question`, `value`."""
    parts = [
        given.melt([ITEM, PERSON], var_name="question").assign(round=name)
        for name, given in state.answers.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    return table.loc[table.value != "", [ITEM, "round", PERSON, "question", "value"]]


def write_release(
    project: Project, benchmark: str, tables: Mapping[str, pd.DataFrame], origin: pd.DataFrame
) -> Path:
    """Write tables with a manifest as a data folder, `release-VERSION` in the project.

    Args:
        tables: by their path in the folder.
        origin: the source of each answer, see `provenance`.

    Raises:
        BadInput: the folder holds other data; nothing is overwritten.
    """
    place = project.folder / f"release-{project.manifest.texts['version']}"
    files = {name: as_csv(table) for name, table in tables.items()}
    files["provenance.jsonl"] = origin.to_json(orient="records", lines=True, force_ascii=False)
    if (project.folder / PROMPTS_FILE).is_file():
        files[PROMPTS_FILE] = read_text(project.folder / PROMPTS_FILE)
    manifest = {**project.manifest.texts, **dataset.manifest_tables(project.manifest)}
    files[MANIFEST] = to_toml(manifest)  # last: without it a folder is no data set
    for name, text in files.items():
        path = place / name
        if path.is_file() and path.read_bytes() != text.encode():
            raise BadInput(
                f"{path}: is there and differs; nothing is overwritten, so count up `version` in "
                f"{project.folder / PROJECT}, or move the folder away"
            )
    for name, text in files.items():
        atomic_write(place / name, text)
    return place
