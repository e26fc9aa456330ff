"""Sheets for people: one xlsx file a person with validated cells out, and back in with a list of what is to be mended.

    folder/NAME/sheet.json        what was asked, of whom: sheets that come back are held against it
    folder/NAME/PERSON.xlsx       what goes out, and is read back from there or from another folder

A row is known by its key in a hidden column, which depends on sheet, person and text: rows may be sorted and files renamed,
and a row of another person or round is recognised.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from openpyxl import load_workbook

from bench.core.cells import guarded, unguarded
from bench.core.errors import BadInput
from bench.core.files import DRAFT, atomic_path
from bench.curate import workbook
from bench.curate.record import MANIFEST, Sheet, keep, opened, texts
from bench.curate.record import check as check_sheet
from bench.curate.workbook import ANSWERS, KEY, Question, plain, shown, text
from bench.data.readers import XLSX_ADVICE, check_xlsx

# What other programs and menus make of a sheet, and is not read.
OTHERS = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".csv", ".tsv")
ANSWER_COLUMNS = ["item_id", "person", "question", "answer", "when"]
MEND_COLUMNS = ["person", "file", "row", "item_id", "column", "what", "value", "allowed"]
# How much of a file is listed, and of a row's doubles: a file that came back may be anything.
LISTED, DOUBLES = 1000, 20
EMPTY_ROW = "a row of the sheet that was sent"
ABSENT = "has not come back"


class Returned(NamedTuple):
    """What came back.

    Attributes:
        answers: `item_id`, `person`, `question`, `answer` (a text as it was given, or a number as a text), `when` (the
            file was saved, UTC). Only right answers, each once.
        to_mend: `person`, `file`, `row` (as the spreadsheet counts: the header is row 1; 0 a whole file), `item_id`,
            `column`, `what` is wrong, `value` that stands there, what is `allowed`.
    """

    answers: pd.DataFrame
    to_mend: pd.DataFrame

    def lacking(self, sheet: Sheet) -> list[tuple[str, str, str]]:
        """The answers that have to be there and are not: item, person, question."""
        given = set(
            zip(self.answers.item_id, self.answers.person, self.answers.question, strict=True)
        )
        return [one for one in sheet.needed if one not in given]

    def wide(self, question: str) -> pd.DataFrame:
        """The answers to one question, a row an item and a column a person, NaN where there is none yet."""
        some = self.answers[self.answers.question == question]
        return some.pivot_table(index="item_id", columns="person", values="answer", aggfunc="first")

    def of(self, question: str) -> dict[tuple[str, str], str]:
        """The answers to one question, by item and person."""
        some = self.answers[self.answers.question == question]
        return dict(zip(zip(some.item_id, some.person, strict=True), some.answer, strict=True))


def write(
    folder: Path,
    name: str,
    rows: pd.DataFrame,
    questions: Sequence[Question],
    people: Sequence[str],
    seed: int,
    instructions: str = "",
) -> list[Path]:
    """Write a sheet for each person, and leave those that are there already as they are, for they may be filled in.

    Args:
        name: of the sheet, such as `severity-1`; it is its folder's name.
        rows: `item_id`, unique, and the texts to be judged, a column each.
        questions: what is asked of each row.
        people: their names, which are their files' names. They may be others than before, see `ask`.
        instructions: what stands on the first page of the file.

    Returns:
        The files, in the order of `people`.

    Raises:
        BadInput: a name that no file can have, rows or questions that are no sheet, or another sheet of this name is there.
        OSError: a file cannot be written.
    """
    place = Path(folder) / name
    with _about(place):
        sheet = Sheet(name, seed, list(people), list(questions), texts(name, rows), instructions)
        check_sheet(sheet)
    if (place / MANIFEST).exists():
        before = opened(folder, name)
        asked = sheet._replace(people=before.people, rows=before.rows, former=before.former)
        if before != asked or not before.rows.equals(sheet.rows):
            raise BadInput(
                f"{place}: holds another sheet of this name; give this one another name, so that no answers are lost"
            )
        ask(folder, name, people)
    else:
        keep(place, sheet)
        send(folder, name)
    return [place / f"{person}.xlsx" for person in people]


def ask(folder: Path, name: str, people: Sequence[str]) -> None:
    """See that the people of a sheet are these, and that each has a file: one who gives up may be replaced.

    A new one gets a file; one who is no longer named is not waited for, and what that one answered does not count. The file stays.

    Raises:
        BadInput: no sheet of this name was written, or a name that no file can have.
        OSError: a file cannot be written.
    """
    before = opened(folder, name)
    if list(people) != before.people:
        former = [
            one for one in dict.fromkeys([*before.former, *before.people]) if one not in people
        ]
        sheet = before._replace(people=list(people), former=former)
        with _about(Path(folder) / name):
            check_sheet(sheet)
        keep(Path(folder) / name, sheet)
    send(folder, name)


def send(folder: Path, name: str) -> None:
    """Write the files of a sheet that are not there, under whatever name, as they were sent or should have been.

    Raises:
        BadInput: no sheet of this name was written.
        OSError: a file cannot be written.
    """
    sheet = opened(folder, name)
    place = Path(folder) / name
    paths = {person: place / f"{person}.xlsx" for person in sheet.people}
    lost = {person: path for person, path in paths.items() if not path.exists()}
    # One that came back under another name is not lost.
    listed = read(folder, name).to_mend if lost else pd.DataFrame(columns=MEND_COLUMNS)
    for person in listed.person[(listed.what == ABSENT) & listed.person.isin(list(lost))]:
        ordered = sheet.rows.iloc[sheet.order(person)]
        of_item = {item: key for key, item in sheet.keys(person).items()}
        keyed = ordered.assign(**{KEY: [of_item[item] for item in ordered.item_id]})
        with atomic_path(paths[person]) as draft:
            workbook.save(
                draft,
                f"{name}: {person}",
                sheet.instructions,
                keyed[[KEY, *sheet.shown]],
                sheet.questions,
            )


def read(folder: Path, name: str, returned: Path | None = None) -> Returned:
    """What people have answered so far, and what is to be mended. It may be called as often as one likes.

    Wrong, missing, doubled and foreign rows, changed texts and formulas are listed; every other answer is taken.

    Args:
        returned: the folder to which the files came back, under whatever names; where they were written without it.

    Raises:
        BadInput: no sheet of this name was written, or `returned` is no folder.
    """
    sheet = opened(folder, name)
    place = Path(returned) if returned else Path(folder) / name
    if not place.is_dir():
        raise BadInput(
            f"{place}: is no folder; expected the one with the xlsx files that came back"
        )
    reader = _Reader(sheet, _foreign(Path(folder), name))
    try:
        paths = sorted(place.iterdir())
    except OSError as error:
        raise BadInput(f"{place}: cannot be read ({error.strerror or error})") from None
    for path in paths:
        # Beside an open file, a spreadsheet program keeps one whose name begins so.
        if not path.name.startswith(("~$", ".~", DRAFT)):
            reader.file(path)
    return reader.result()


def fill(
    path: Path, sheet: Sheet, person: str, answer: Callable[[Mapping[str, str]], Mapping[str, Any]]
) -> None:
    """Fill in a person's sheet as that person would: for simulated annotators and demonstrations.

    Args:
        answer: from a row's `item_id` and texts to its answers, by question; an answer that is left out stays empty.
    """
    book = load_workbook(path)
    page = book[ANSWERS]
    columns = {str(cell.value): cell.column for cell in page[1]}
    keys: dict[str, str] = sheet.keys(person)
    texts: dict[str, Any] = {row["item_id"]: row for row in sheet.rows.to_dict("records")}
    for row in range(2, page.max_row + 1):
        item = keys[str(page.cell(row, columns[KEY]).value)]
        for question, value in answer(texts[item]).items():
            page.cell(row, columns[question]).value = (
                guarded(value) if isinstance(value, str) else value
            )
    with atomic_path(path) as draft:
        book.save(draft)


class _Cell(NamedTuple):
    """Where an answer was found, and what it is; `value` is None where it is wrong."""

    file: str
    row: int
    value: str | None
    when: str


class _Reader:
    """Goes through files, and keeps right answers and what is to be mended."""

    def __init__(self, sheet: Sheet, foreign: Mapping[str, str]) -> None:
        self.sheet, self.foreign = sheet, foreign
        self.keys = {
            key: (person, item)
            for person in sheet.people
            for key, item in sheet.keys(person).items()
        }
        self.former = {key for person in sheet.former for key in sheet.keys(person)}
        self.texts: dict[str, Any] = {row["item_id"]: row for row in sheet.rows.to_dict("records")}
        self.mend: list[tuple[object, ...]] = []
        # How much there is to mend in a file, and whose files are broken.
        self.count: Counter[str] = Counter()
        self.broken: set[str] = set()
        # Answers of each place, more than one where rows or files are doubled.
        self.found: dict[tuple[str, str, str], list[_Cell]] = {}
        self.rows_of: dict[tuple[str, str], list[tuple[str, int]]] = {}

    def file(self, path: Path) -> None:
        suffix = path.suffix.lower()
        if suffix in OTHERS:
            self._note(
                "",
                path,
                0,
                "",
                "",
                "is no xlsx file; save it as one (Excel workbook, .xlsx)",
                "",
                "an xlsx file that was sent",
            )
        if suffix != ".xlsx":
            return
        try:
            if not path.is_file():
                raise BadInput(f"{path}: is no file")
            check_xlsx(path)
            lines, when = workbook.load(path)
        except (BadInput, OSError) as error:
            person = path.stem if path.stem in self.sheet.people else ""
            self.broken.add(person)
            # The way out of the message is for tables of one's own.
            what = str(error).removeprefix(str(path)).lstrip(":, ").removesuffix(f"; {XLSX_ADVICE}")
            what = what if what.startswith("cannot be read") else f"cannot be read: {what}"
            self._note(person, path, 0, "", "", what, "", "an xlsx file that was sent")
            return
        header = [unguarded(shown(value)) for value, _ in lines[0]] if lines else []
        names = [KEY, *self.sheet.shown, *(question.name for question in self.sheet.questions)]
        wrong = next((name for name in names if header.count(name) != 1), None)
        if wrong is not None:
            count = "is missing" if wrong not in header else "stands there more than once"
            self._note(
                "",
                path,
                1,
                "",
                wrong,
                f"column `{wrong}` {count}, so that nothing of the file is read",
                "",
                "the header as it was sent",
            )
            return
        rows = [dict(zip(header, line, strict=False)) for line in lines[1:]]
        keys = [shown(row[KEY][0]) for row in rows]
        owners = [self.keys[key][0] for key in keys if key in self.keys]
        if not owners and self.former.intersection(keys):
            return
        # Whose file it is, its rows say; its name may have changed on the way.
        person = max(self.sheet.people, key=owners.count) if owners else ""
        for place, row in enumerate(rows, start=2):
            if any(shown(value) for value, _ in row.values()):
                self._row(path, place, person, row, when)

    def _row(
        self, path: Path, place: int, person: str, row: Mapping[str, tuple[Any, bool]], when: str
    ) -> None:
        key = shown(row[KEY][0])
        owner, item = self.keys.get(key, ("", ""))
        if not item or owner != person:
            other = (
                f"of {owner}, and this file is {person}'s"
                if item
                else self.foreign.get(key, "of no sheet that is known here")
            )
            what = f"is a row {other}; its answers are not taken"
            self._note(person, path, place, item, "", what, key, EMPTY_ROW)
            return
        self.rows_of.setdefault((person, item), []).append((path.name, place))
        changed = [
            name for name in self.sheet.shown if text(row[name]) != plain(self.texts[item][name])
        ]
        for name in changed:
            what = "its text was changed, so the row's answers wait until it is put back"
            self._note(
                person, path, place, item, name, what, shown(row[name][0]), self.texts[item][name]
            )
        for question in self.sheet.questions:
            value, formula = row[question.name]
            given = unguarded(shown(value))
            right = None if changed or formula else question.read(given)
            if formula:
                self._note(
                    person,
                    path,
                    place,
                    item,
                    question.name,
                    "holds a formula instead of a value",
                    given,
                    question.allowed,
                )
            elif given and right is None and not changed:
                self._note(
                    person,
                    path,
                    place,
                    item,
                    question.name,
                    "is not allowed",
                    given,
                    question.allowed,
                )
            # An empty cell may be filled in its double; whether it is missing is known at the end.
            if given:
                self.found.setdefault((person, item, question.name), []).append(
                    _Cell(path.name, place, right, when)
                )

    def result(self) -> Returned:
        answers: list[tuple[str, ...]] = []
        for person in self.sheet.people:
            if not any(one == person for one, *_ in self.found):
                if person in self.broken:
                    continue
                came = any(one == person for one, _ in self.rows_of)
                what = "nothing is filled in yet" if came else ABSENT
                self.mend.append(
                    (person, f"{person}.xlsx", 0, "", "", what, "", "the sheet, filled in")
                )
                continue
            for item in self.texts:
                answers += self._item(person, item)
        for file, count in self.count.items():
            if count > LISTED:
                what = f"{count - LISTED:,} more things are to be mended; the first {LISTED:,} are listed"
                self.mend.append(
                    ("", file, 0, "", "", what, "", "the sheet that was sent, filled in")
                )
        # A file at a time, from its top.
        mend = sorted(
            self.mend, key=lambda one: [str(one[0]), str(one[1]), f"{one[2]:9}", str(one[4])]
        )
        return Returned(
            pd.DataFrame(answers, columns=ANSWER_COLUMNS, dtype=str),
            pd.DataFrame(mend, columns=MEND_COLUMNS),
        )

    def _item(self, person: str, item: str) -> Iterator[tuple[str, ...]]:
        places = self.rows_of.get((person, item), [])
        if not places:
            self.mend.append(
                (person, f"{person}.xlsx", 0, item, "", "the row is missing", "", EMPTY_ROW)
            )
            return
        for question in self.sheet.questions:
            cells = self.found.get((person, item, question.name), [])
            values = {cell.value for cell in cells} - {None}
            if len(values) > 1:
                others = "; ".join(
                    f"{cell.file}, row {cell.row}: {cell.value}"
                    for cell in cells[:DOUBLES]
                    if cell.value
                )
                self.mend.append(
                    (
                        person,
                        *places[0],
                        item,
                        question.name,
                        "the row is there more than once, with unlike answers; none is taken",
                        others,
                        question.allowed,
                    )
                )
            elif values:
                first = next(cell for cell in cells if cell.value is not None)
                yield item, person, question.name, str(first.value), first.when
            elif not cells and question.required:
                self.mend.append(
                    (person, *places[0], item, question.name, "is empty", "", question.allowed)
                )
        if len(places) > 1:
            others = ", ".join(f"{file}, row {row}" for file, row in places[:DOUBLES])
            self.mend.append(
                (
                    person,
                    *places[1],
                    item,
                    "",
                    "the row is there more than once",
                    others,
                    "each row once",
                )
            )

    def _note(
        self,
        person: str,
        path: Path,
        row: int,
        item: str,
        column: str,
        what: str,
        value: str,
        allowed: str,
    ) -> None:
        self.count[path.name] += 1
        if self.count[path.name] <= LISTED:
            self.mend.append((person, path.name, row, item, column, what, value, allowed))


@contextmanager
def _about(place: Path) -> Iterator[None]:
    """Put the folder of a sheet before what is wrong with it."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from None


def _foreign(folder: Path, name: str) -> dict[str, str]:
    """Key to where it belongs, of the other sheets of a project."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        if path.parent.name != name:
            other = opened(folder, path.parent.name)
            found |= {
                key: f"of the sheet {other.name}, of {person}"
                for person in other.people
                for key in other.keys(person)
            }
    return found
