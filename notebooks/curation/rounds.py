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
from bench.data import readers
from bench.data.manifest import MANIFEST, PROMPTS_FILE, Manifest, manifest_tables, parse_manifest
from bench.data.readers import as_path, read_toml

EXAMPLES = Path(__file__).with_name("examples")
PROJECT, WORDING, SHEETS = "project.toml", "wording.toml", "sheets"
PERSON, ITEM = "person", "item_id"
# A cell of a spreadsheet holds 32,767 characters.
MAX_CELL = 32_000
# The most characters of a list in a sentence.
MAX_LISTED = 200
ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}"
ID_RULE = "up to 40 English letters, digits, `_`, `.` and `-`"
# No limit of people in a role.
MANY = 1000
# A row of a sheet, or of the items: texts by column.
Row = Mapping[str, str]
# A function from prompts to replies, such as `generate` of a model.
Write = Callable[[list[str]], Sequence[str]]
# A column, its wrong rows, the mistake in words, and the allowed values.
Rule = tuple[str, pd.Series, str, str]
# A rule from items and answers to items.
Settle = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Question:
    """A question about each row; its answer is one of some choices, a number, or a text."""

    name: str  # its column in the sheet, and its key in `wording.toml`
    choices: Sequence[str] | Callable[[Row], Sequence[str]] = ()
    limits: tuple[float, float] | None = None  # the lowest and the highest number
    needed: Callable[[Row], bool] = lambda _row: True  # given the answers to earlier questions
    is_right: Callable[[str], bool] = bool  # whether a text is allowed
    allowed: str = "a text"  # the allowed texts, in words

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

    def read(self, row: Row, text: str) -> str:
        """Return the answer that a cell gives; an empty text if it is not allowed."""
        # People type full-width digits and letters.
        value = unicodedata.normalize("NFKC", text).strip()
        if options := self.options(row):
            return {unicodedata.normalize("NFKC", one): one for one in options}.get(value, "")
        if self.limits:
            return value if self.limits[0] <= to_number(value) <= self.limits[1] else ""
        return text if self.is_right(text) else ""


@dataclass(frozen=True)
class Round:
    """A round: some rows, questions to people about them, and a rule for the answers."""

    name: str  # the folder of its sheets, and its key in `wording.toml`
    role: str  # a key of `[people]` in `project.toml`
    questions: Sequence[Question]
    rows: Callable[[pd.DataFrame], pd.DataFrame]  # of remaining items, with visible columns
    settle: Settle = lambda items, _answers: items
    after: Sequence[str] = ()  # the rounds that have to be over before
    prompt: Callable[[Row], str] | None = None  # asks a model the first question

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
    """The state of a project."""

    items: pd.DataFrame  # with the columns that rounds have added
    over: list[str]  # the rounds that are over
    answers: dict[str, pd.DataFrame]  # of each round; no rows before it is over
    progress: pd.DataFrame  # the number of rows that each person has answered
    problems: list[str]  # mistakes in tables and sheets; the header of a table is row 1

    @property
    def is_done(self) -> bool:
        """Whether all rounds are over."""
        return len(self.over) == len(self.answers)


def begin(benchmark: str, folder: str | Path, *, answered: bool = False) -> Path:
    """Copy the example of a benchmark, `answered` or not; an existing project stays as it is."""
    place = as_path(folder)
    if place.is_dir() and any(place.iterdir()):
        return place
    ignore = None if answered else shutil.ignore_patterns(SHEETS)
    return Path(shutil.copytree(EXAMPLES / benchmark, place, ignore=ignore, dirs_exist_ok=True))


def open_project(folder: str | Path, roles: Mapping[str, tuple[int, int]]) -> Project:
    """Open the project in a folder; `roles` has the least and the highest number of people."""
    place = as_path(folder)
    path = place / PROJECT
    values, wording = read_toml(path), read_toml(place / WORDING)
    manifest = parse_manifest(path, values)
    version, people = manifest.texts.get("version", ""), table_of(values, "people")
    if error := file_name_error(version):
        raise BadInput(f"{path}, key `version`: {quoted(version)} is no version; {error}")
    for role, (least, most) in roles.items():
        given = people.get(role)
        names = [str(name).casefold() for name in given] if isinstance(given, list) else []
        is_right = least <= len({*names}) == len(names) <= most
        if not is_right or any(map(file_name_error, names)):
            number = f"{least}" if least == most else f"{least} or more"
            raise BadInput(
                f"{path}, table [people], `{role}`: {quoted(given)} is not allowed; "
                f"expected a list of {number} different names of letters, digits, blanks, `-`"
            )
    return Project(place, manifest, people, values, wording)


def table_of(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a TOML file; an empty one if it has no such table."""
    table = values.get(name)
    return table if isinstance(table, dict) else {}


def wording_of(project: Project, table: str, key: str) -> str:
    """Return a text of `wording.toml`."""
    text = table_of(project.wording, table).get(key)
    if not isinstance(text, str):
        path = project.folder / WORDING
        raise BadInput(f"{path}, table [{table}], `{key}`: is missing; expected a text")
    return plain_text(text)


def fill_prompt(project: Project, key: str, fields: Row) -> str:
    """Fill in a prompt of `wording.toml`, `{field}` by field."""
    prompt = wording_of(project, "prompts", key)
    for name in re.findall(r"\{(\w+)\}", prompt):
        if name not in fields:
            place = f"{project.folder / WORDING}, table [prompts], `{key}`"
            allowed = ", ".join(fields)
            raise BadInput(f"{place}: {{{name}}} is no field; allowed: {allowed}")
    # In one pass, so that nothing in a field is taken for another one.
    return re.sub(r"\{(\w+)\}", lambda found: fields[found[1]], prompt)


def plain_text(text: object) -> str:
    """Return a text as a cell shows it; spreadsheet programs change line ends and marks."""
    lines = unicodedata.normalize("NFC", str(text)).replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(char if char.isprintable() or char == "\n" else " " for char in lines)
    return kept.strip()[:MAX_CELL]


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a table in which people write; its index is the row as a spreadsheet counts it."""
    rows = readers.read_table(path, columns)
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows; write one or more")
    table = pd.DataFrame(rows, [row.number + 1 for row in rows], columns=list(columns), dtype=str)
    return table.map(lambda cell: plain_text(unguarded(cell)))


def check_table(file: str, table: pd.DataFrame, rules: Sequence[Rule]) -> list[str]:
    """List the cells of a table of `read_table` that break a rule, or are empty."""
    is_empty = table == ""
    # An empty cell has one mistake.
    rules = [(name, bad & ~is_empty[name], mistake, rule) for name, bad, mistake, rule in rules]
    rules += [(str(name), is_empty[name], "is empty", "a text") for name in table]
    return [
        problem(file, row, column, cell, mistake, allowed)
        for column, is_wrong, mistake, allowed in rules
        for row, cell in table.loc[is_wrong, column].items()
    ]


def id_rules(table: pd.DataFrame, column: str) -> list[Rule]:
    """Return the rules of a column of ids."""
    return [
        (column, ~table[column].str.fullmatch(ID), "is no id", ID_RULE),
        (column, table[column].duplicated(), "is there twice", "each id once"),
    ]


def problem(file: str, row: Any, column: str, value: str, mistake: str, allowed: str) -> str:
    """Return a sentence about a mistake in a cell; without a row, in a column or a file."""
    places = [file, *([f"row {row}"] if row else []), *([f"column `{column}`"] if column else [])]
    return f"{', '.join(places)}: {quoted(value)} {mistake}; allowed: {allowed}"


def update(items: pd.DataFrame, **columns: pd.Series) -> pd.DataFrame:
    """Change columns of the items that have a new value."""
    return items.assign(**{name: new.combine_first(items[name]) for name, new in columns.items()})


def take(column: str, question: str) -> Settle:
    """Return a rule that takes the answers to a question, of one person, as a column."""
    return lambda items, answers: update(items, **{column: answers.set_index(ITEM)[question]})


def advance(
    project: Project,
    plan: Sequence[Round],
    items: pd.DataFrame,
    faults: Sequence[str] = (),
    write: Write | None = None,
    author: str = "",
) -> State:
    """Read the sheets that came back, settle the rounds that are over, and write new sheets.

    We ask nothing before the `faults` of the items are corrected. `write`, a model with the name
    `author`, takes the place of the person in rounds with a prompt.
    """
    over: list[str] = []
    answers = {round_.name: pd.DataFrame(columns=round_.answer_columns) for round_ in plan}
    progress: list[tuple] = []
    problems = [*faults]
    for round_ in () if faults else plan:
        if not {*round_.after} <= {*over}:
            continue
        rows = round_.rows(remaining(items)).map(plain_text)
        if len(rows):
            _send(project, round_, rows, write, author)
            table, answered, wrong = collect(project, round_, rows)
            progress += answered
            problems += wrong
            if wrong or any(count < len(rows) for _, _, count, _ in answered):
                continue
            answers[round_.name] = table
            items = round_.settle(items, table)
        over.append(round_.name)
    counts = pd.DataFrame(progress, columns=["round", PERSON, "answered", "rows"])
    return State(items, over, answers, counts, problems)


def collect(
    project: Project, round_: Round, rows: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[str, str, int, int]], list[str]]:
    """Read the sheets of a round: the allowed answers, rows of `progress`, and mistakes."""
    people, paths = project.people[round_.role], _files(project, round_)
    place = f"{SHEETS}/{round_.name}"
    names = [f"{person}{suffix}" for person in people for suffix in (".xlsx", ".csv")]
    allowed = f"{truncate(', '.join(names), MAX_LISTED)}; rename it or move it away"
    problems = [
        problem(f"{place}/{name}", 0, "", name, "is nobody's sheet of this round", allowed)
        for name in paths
        if name not in names
    ]
    answers: list[Row] = []
    progress = []
    for person in people:
        sheets: list[str] = []
        before = len(answers)
        for name in sorted({f"{person}.csv", f"{person}.xlsx"} & {*paths}):
            file = f"{place}/{name}"
            try:
                table = read_table(paths[name], round_.columns(rows))
            except BadInput as error:
                reason = str(error).removeprefix(str(paths[name])).lstrip(":, ")
                mistake = f"cannot be read ({reason})"
                problems.append(problem(file, 0, "", name, mistake, "the sheet as it was sent"))
                continue
            if (table[round_.answer_columns[2:]] != "").any(axis=None):
                sheets.append(name)
                read, faults = _check(file, round_, rows, person, table)
                answers += read
                problems += faults
        for name in sheets[1:]:
            mistake = f"is filled in, and so is {sheets[0]}"
            problems.append(problem(f"{place}/{name}", 0, "", name, mistake, "one sheet a person"))
        progress.append((round_.name, person, len(answers) - before, len(rows)))
    table = pd.DataFrame(answers, columns=round_.answer_columns, dtype=str)
    # Sheets have their rows in any order.
    order = table[ITEM].map(rows.index.get_loc).sort_values(kind="stable").index
    return table.loc[order].reset_index(drop=True), progress, problems


def _files(project: Project, round_: Round) -> dict[str, Path]:
    """Return the sheets of a round by name; hidden files are kept by spreadsheet programs."""
    paths = sorted((project.folder / SHEETS / round_.name).glob("[!.~]*"))
    return {path.name: path for path in paths if path.is_file()}


def _check(
    file: str, round_: Round, rows: pd.DataFrame, person: str, table: pd.DataFrame
) -> tuple[list[Row], list[str]]:
    """Return the rows of a sheet that are completely answered, and the mistakes in the others."""
    answers: list[Row] = []
    problems: list[str] = []
    first: dict[str, Any] = {}
    for number, cells in table[(table != "").any(axis=1)].iterrows():
        item = cells[ITEM]
        faults: list[tuple[str, str, str]] = []
        row: dict[str, str] = {}
        if item not in rows.index:
            known = truncate(", ".join(rows.index), MAX_LISTED)
            faults.append((ITEM, "is no item of this round", known))
        elif item in first:
            faults.append((ITEM, f"is there twice, first in row {first[item]}", "each item once"))
        else:
            first[item] = number
            row = {PERSON: person, ITEM: item, **rows.loc[item]}
            for column, text in row.items():
                if cells[column] != text:
                    faults.append((column, "is not what is asked now", quoted(text)))
            for question in round_.questions:
                text = cells[question.name]
                row[question.name] = question.read(row, text)
                if not row[question.name] and (text or question.needed(row)):
                    mistake = "is not an answer" if text else "is empty"
                    faults.append((question.name, mistake, question.allows(row)))
        problems += [problem(file, number, name, cells[name], *texts) for name, *texts in faults]
        if not faults:
            answers.append({name: row[name] for name in round_.answer_columns})
    allowed = f"one row for each of the {len(rows)} items"
    for item in rows.index.difference(pd.Index(first), sort=False):
        problems.append(problem(file, 0, ITEM, item, "has no row", allowed))
    return answers, problems


def _send(
    project: Project, round_: Round, rows: pd.DataFrame, write: Write | None, author: str
) -> None:
    """Write the sheets of people who have none, or have a model fill in theirs."""
    folder, people = project.folder / SHEETS / round_.name, project.people[round_.role]
    names = {path.stem for path in _files(project, round_).values()}
    if names - {*people}:  # a renamed sheet may be of somebody who seems to have none
        return
    for person in people:
        # Whoever has begun to fill in the sheet is not replaced.
        if round_.prompt and write and collect(project, round_, rows)[0].empty:
            replies = write([round_.prompt(row) for row in rows.to_dict("records")])
            sheet = rows.reset_index(names=ITEM).assign(**{PERSON: person, "author": author})
            sheet[round_.questions[0].name] = [plain_text(reply) for reply in replies]
            table = as_csv(sheet[round_.columns(rows)].map(guarded))
            atomic_write(folder / f"{person}.csv", table)
        elif person not in names:
            with atomic_path(folder / f"{person}.xlsx") as draft:
                _workbook(project, round_, rows, person).save(draft)


def _workbook(project: Project, round_: Round, rows: pd.DataFrame, person: str) -> Workbook:
    """Make a person's sheet: rows in an order of their own, yellow cells to fill in, choices."""
    book = Workbook()
    page: Any = book.active
    page.title = "answers"
    choices, read_me = book.create_sheet("choices"), book.create_sheet("read me")
    choices.sheet_state = "hidden"
    wrap, yellow = Alignment(wrap_text=True, vertical="top"), PatternFill("solid", fgColor="FFF6DD")
    seed = zlib.crc32(f"{project.values.get('seed', 0)} {round_.name} {person}".encode())
    shuffled = rows.sample(frac=1, random_state=seed)
    records = shuffled.to_dict("records")
    page.append([guarded(name) for name in round_.columns(rows)])
    for item, row in zip(shuffled.index, records, strict=True):
        page.append([person, guarded(item), *map(guarded, row.values())])
    read_me.append(["", guarded(wording_of(project, "rounds", round_.name))])
    for column, question in enumerate(round_.questions, start=len(rows.columns) + 3):
        text = f"{wording_of(project, 'questions', question.name)} ({question.allows(records[0])})"
        read_me.append([question.name, guarded(text)])
        cells: dict[tuple[str, ...], list[str]] = {}
        for number, row in enumerate(records, start=2):
            cell = page.cell(number, column)
            cell.fill = yellow
            cell.number_format = "@"  # as text, so that 3-5 stays no date and 5 % no 0.05
            cells.setdefault(question.options(row), []).append(cell.coordinate)
        for options, places in cells.items():
            if options:
                choices.append([*map(guarded, options)])
                line, last = choices.max_row, get_column_letter(len(options))
                source = f"choices!$A${line}:${last}${line}"
                rule = DataValidation("list", source, showErrorMessage=True, sqref=" ".join(places))
                page.add_data_validation(rule)
    for number, column_cells in enumerate(page.iter_cols(), start=1):
        page.column_dimensions[get_column_letter(number)].width = 12 if number <= 2 else 36
        for cell in column_cells:
            cell.alignment = wrap
        column_cells[0].font = Font(bold=True)
    page.freeze_panes = "C2"
    read_me.column_dimensions["B"].width = 100
    for cell in read_me["B"]:
        cell.alignment = wrap
    return book


def remaining(items: pd.DataFrame) -> pd.DataFrame:
    """Return the items that were not left out."""
    return items[items.left_out == ""]


def finished(project: Project, state: State) -> pd.DataFrame:
    """Return the remaining items, once all rounds are over."""
    items = remaining(state.items)
    if items.empty or not state.is_done:
        reason = "all items were left out" if state.is_done else "not all rounds are over"
        raise BadInput(f"{project.folder}: {reason}, so there is no data set yet")
    return items


def provenance(state: State) -> pd.DataFrame:
    """Return every answer: `item_id`, `round`, `person`, `question`, `value`."""
    tables = {name: table.melt([ITEM, PERSON]) for name, table in state.answers.items()}
    table = pd.concat(tables, names=["round"]).reset_index("round")
    table = table.rename(columns={"variable": "question"})
    return table.loc[table.value != "", [ITEM, "round", PERSON, "question", "value"]]


def write_release(
    project: Project, tables: Mapping[str, pd.DataFrame], origin: pd.DataFrame
) -> Path:
    """Write tables by path, a manifest, and the source of each answer as `release-VERSION`."""
    place = project.folder / f"release-{project.manifest.texts['version']}"
    files = {name: as_csv(table) for name, table in tables.items()}
    files["provenance.jsonl"] = origin.to_json(orient="records", lines=True, force_ascii=False)
    if (prompts := project.folder / PROMPTS_FILE).is_file():
        files[prompts.name] = readers.read_text(prompts)
    manifest = {**project.manifest.texts, **manifest_tables(project.manifest)}
    files[MANIFEST] = readers.to_toml(manifest)  # last: without it a folder is no data set
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
