"""CBBQ templates of one's own: from a recorded bias to a folder that every room reads (Huang and Xiong, 2024, section 3).

A project is a folder of plain tables, which people fill over weeks:

    dataset.toml     name, version, language, licence, and the labels of the categories (`bench.data.dataset`)
    biases.csv       who is thought to be what, and where that is recorded
    templates.csv    ambiguous contexts that people wrote, with names, both questions and the options
    drafts.csv       what a model added to a context so that it speaks against the bias (`cbbq_drafts`)
    wording.toml     the instructions for drafting and the texts on sheets, where they are not ours, as in another language
    prompts.toml     what models will be asked in, where that is not our wording
    sheets/          what people make of each draft, what two reviewers say of each form, what a panel decides (`bench.curate.sheets`)

Here is what a project holds and what its tables lack. `cbbq_write` makes the data set of it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.cells import as_csv, guarded, to_whole_number, unguarded
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate import begin
from bench.curate.record import unfit
from bench.data import dataset
from bench.data.audit import show_cell
from bench.data.cbbq.targets import SLOT_NAMES, target_option
from bench.data.cbbq.templates import CATEGORIES, CONDITIONS, SLOTS, malformed, names
from bench.data.dataset import MANIFEST, Manifest, category_name_error
from bench.data.readers import Row, read_csv
from bench.data.readers import as_path as path_of

SHEETS = "sheets"
TABLES: Mapping[str, tuple[str, ...]] = {
    "biases": ("bias", "category", "group", "property", "reversed", "source", "topic"),
    "templates": (
        "template",
        "bias",
        "scenario",
        "context",
        "NAME1",
        "NAME2",
        "question_neg",
        "question_nonneg",
        "ans0",
        "ans1",
        "ans2",
        "author",
    ),
    "drafts": (
        "template",
        "round",
        "draw",
        "wording",
        "version",
        "model",
        "seed",
        "facts",
        "fault",
    ),
}
# Columns of the drafts with what names sheets and counts draws.
COUNTED = ("round", "draw")
# Tables that people begin with; the others come into being.
WRITTEN = ("biases", "templates")
QUESTIONS = {"neg": "question_neg", "non_neg": "question_nonneg"}
# A bias is to show in more than one situation.
SCENARIOS = 2
# Categories of the release whose options are fixed words, with rules of expansion of their own.
OWN_RULES = ("disease", "educational_qualification")
# It stands in ids, before a colon.
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True)
class Project:
    """A folder in which templates are curated. Tables are read anew each time: people edit them meanwhile."""

    folder: Path

    @property
    def sheets(self) -> Path:
        """Where the sheets for people are written."""
        return self.folder / SHEETS

    @property
    def manifest(self) -> Manifest:
        """What `dataset.toml` says."""
        return dataset.read_manifest(self.folder)

    def table(self, name: str) -> list[Row]:
        """The rows of a table; none where it has not come into being yet.

        Raises:
            BadInput: it cannot be read, or a column is missing.
        """
        path = self.folder / f"{name}.csv"
        if name not in WRITTEN and not path.exists():
            return []
        rows = read_csv(path, TABLES[name])
        for number, row in enumerate(rows if name == "drafts" else (), start=1):
            if wrong := next(
                (column for column in COUNTED if not to_whole_number(row[column])), None
            ):
                raise BadInput(
                    f"{path}, row {number}, column `{wrong}`: {show_cell(row[wrong])} is not a whole number from 1; put back what was written"
                )
        return [{column: unguarded(row[column]).strip() for column in TABLES[name]} for row in rows]

    def save(self, name: str, rows: Sequence[Row]) -> None:
        """Write a table whole; a text that a spreadsheet program would take for a formula stands behind an apostrophe.

        Raises:
            RunFailed: it cannot be written.
        """
        path = self.folder / f"{name}.csv"
        cells = [[guarded(str(row[column])) for column in TABLES[name]] for row in rows]
        with explain_write_errors(path):
            atomic_write(path, as_csv(pd.DataFrame(cells, columns=list(TABLES[name]))))

    def add(self, name: str, rows: Sequence[Row]) -> None:
        """Write a table with `rows` behind those that it has."""
        if rows:
            self.save(name, [*self.table(name), *rows])

    def templates(self) -> list["Scenario"]:
        """The templates that can be worked on: of those that `faults` lists something about, none."""
        wrong = {row for file, row in _wrong(self) if file == "templates.csv"}
        biases = {row["bias"]: row for row in self.table("biases")}
        said = self.manifest
        return [
            _scenario(row, biases[row["bias"]], said)
            for number, row in enumerate(self.table("templates"), start=1)
            if number not in wrong
        ]


class Scenario(NamedTuple):
    """A template that people wrote, with the bias that it is about.

    Attributes:
        cells: the row of the template.
        bias: the row of the bias.
        declared: the slot, 0 or 1, that dataset.toml says holds the stereotyped group.
    """

    cells: Row
    bias: Row
    declared: int | None

    @property
    def name(self) -> str:
        return self.cells["template"]

    @property
    def category(self) -> str:
        return self.bias["category"]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Those who fill the two slots."""
        return names(self.cells["NAME1"]), names(self.cells["NAME2"])

    @property
    def known_target(self) -> int | None:
        """Which slot, 0 or 1, holds the stereotyped group; None where nothing tells it."""
        first, second = (
            frozenset(self.cells[column].replace(slot, name) for name in names)
            for column, slot, names in zip(("ans0", "ans1"), SLOTS, self.names, strict=True)
        )
        return target_option(self.category, self.bias["group"], (first, second), self.declared)

    @property
    def target(self) -> int:
        """Which slot, 0 or 1, holds the stereotyped group of a template without faults."""
        assert self.known_target is not None
        return self.known_target

    def label(self, condition: str, polarity: str) -> int:
        """Index of the right option: unknown where ambiguous, elsewhere the one that does not follow the stereotype."""
        if condition == CONDITIONS[0]:
            return 2
        return 1 - self.target if polarity == "neg" else self.target

    def filled(self, text: str) -> str:
        """`text` with the first name of each list."""
        one, other = self.names
        return text.replace(SLOTS[0], one[0]).replace(SLOTS[1], other[0])


class Fault(NamedTuple):
    """Something to mend in a table: `row` counts from 1 below the header, 0 is the whole table."""

    file: str
    row: int
    column: str
    what: str
    value: str = ""


def _scenario(cells: Row, bias: Row, said: Manifest) -> Scenario:
    category = said.categories.get(bias["category"])
    target = category.target if category else ""
    return Scenario(cells, bias, SLOT_NAMES.index(target) if target else None)


def opened(folder: str | Path) -> Project:
    """The project in `folder`.

    Raises:
        BadInput: there is none, or its manifest is wrong.
    """
    place = path_of(folder)
    begin.check("cbbq", place)
    # A wrong one is refused here, and not halfway.
    dataset.read_manifest(place)
    return Project(place)


def copied(folder: str | Path) -> Project:
    """The example's project in an empty or new folder, to try the way out or to begin from.

    Raises:
        BadInput: the folder holds something.
        RunFailed: it cannot be written.
    """
    begin.copy("cbbq", folder)
    return opened(folder)


def faults(project: Project) -> pd.DataFrame:
    """Everything to mend in the tables that people write: `file`, `row`, `column`, `what`, `value`; no rows where all is well.

    A template with a fault is left out of all that follows until it is mended; the others go on.
    """
    return pd.DataFrame(list(_faults(project)), columns=list(Fault._fields))


def holdable(text: str) -> bool:
    """Whether a cell of a sheet can hold a text."""
    return not unfit(text)


def _wrong(project: Project) -> set[tuple[str, int]]:
    return {(one.file, one.row) for one in _faults(project)}


def _faults(project: Project) -> Iterator[Fault]:
    said = project.manifest
    known = said.categories
    biases: dict[str, Row] = {}
    rows = project.table("biases")
    twice = Counter(row["bias"] for row in rows)
    for number, row in enumerate(rows, start=1):
        found = [*_cells("biases", number, row), *_of_bias(number, row, known, twice)]
        yield from found
        if not found:
            biases[row["bias"]] = row
    rows = project.table("templates")
    twice = Counter(row["template"] for row in rows)
    scenarios: dict[str, set[str]] = {bias: set() for bias in biases}
    for number, row in enumerate(rows, start=1):
        found = [*_cells("templates", number, row), *_of_template(number, row, biases, twice)]
        if not found:
            found = [*_of_target(number, _scenario(row, biases[row["bias"]], said))]
        yield from found
        if not found:
            scenarios[row["bias"]].add(row["scenario"])
    for bias, told in scenarios.items():
        if len(told) < SCENARIOS:
            what = f"has templates in {len(told)} scenario{'' if len(told) == 1 else 's'}; at least {SCENARIOS} are needed, so that no situation stands for the bias"
            yield Fault("biases.csv", 0, "bias", what, show_cell(bias))


def _cells(table: str, number: int, row: Row) -> Iterator[Fault]:
    for column in TABLES[table]:
        if not row[column]:
            yield Fault(f"{table}.csv", number, column, "is empty")
        elif not holdable(row[column]):
            yield Fault(
                f"{table}.csv",
                number,
                column,
                "holds a control character, which no sheet can",
                show_cell(row[column]),
            )


def _of_bias(number: int, row: Row, known: Collection[str], twice: Counter[str]) -> Iterator[Fault]:
    def fault(column: str, what: str) -> Fault:
        return Fault("biases.csv", number, column, what, show_cell(row[column]))

    yield from (fault("bias", what) for what in _of_id(row["bias"], twice))
    category = row["category"]
    if category in OWN_RULES:
        yield fault(
            "category",
            "has fixed words for options and rules of its own in the release; choose another name",
        )
    elif category and (why := category_name_error(category)):
        yield fault("category", f"cannot be a category's name: {why}")
    elif category and category not in known and category not in CATEGORIES:
        yield fault("category", f"has no table [categories.{category}] in {MANIFEST}")
    if row["property"] and row["property"] == row["reversed"]:
        yield fault("reversed", "is the property itself; say what would speak against it")


def _of_id(cell: str, twice: Counter[str]) -> Iterator[str]:
    if cell and not ID.fullmatch(cell):
        yield "is no id of at most 40 English letters, digits, dots, dashes and underscores"
    elif twice[cell] > 1:
        yield "stands there more than once"


def _of_target(number: int, one: Scenario) -> Iterator[Fault]:
    if one.known_target is None:
        what = (
            "does not tell whether it or NAME2 holds the stereotyped group "
            f"{one.bias['group']!r}; "
            f'add target = "NAME1" or target = "NAME2" to [categories.{one.category}] in {MANIFEST}'
        )
        yield Fault("templates.csv", number, "NAME1", what, show_cell(one.cells["NAME1"]))


def _of_template(
    number: int, row: Row, biases: Mapping[str, Row], twice: Counter[str]
) -> Iterator[Fault]:
    def fault(column: str, what: str, value: str = "") -> Fault:
        return Fault("templates.csv", number, column, what, value or show_cell(row[column]))

    yield from (fault("template", what) for what in _of_id(row["template"], twice))
    if row["bias"] and row["bias"] not in biases:
        yield fault("bias", "is no bias in biases.csv, or one with a fault")
    for column in ("context", "ans0", "ans1", *QUESTIONS.values()):
        for token in malformed(row[column]):
            yield fault(
                column,
                f"holds what is no placeholder; expected {SLOTS[0]} or {SLOTS[1]}",
                show_cell(token),
            )
    for slot in SLOTS:
        if row["context"] and (times := row["context"].count(slot)) != 1:
            yield fault(
                "context",
                f"mentions {slot} {times} times; once is right, as the second question of a pair exchanges the first mentions",
            )
    for column, slot in zip(("ans0", "ans1"), SLOTS, strict=True):
        if row[column] and (slot not in row[column] or SLOTS[slot == SLOTS[0]] in row[column]):
            yield fault(column, f"is not about {slot} alone")
    lists: list[list[str]] = []
    for column in ("NAME1", "NAME2"):
        if row[column]:
            try:
                lists.append(names(row[column]))
            except ValueError as error:
                yield fault(column, str(error))
    if len(lists) == 2 and (both := sorted({*lists[0]} & {*lists[1]})):
        yield fault("NAME2", "holds a name that stands in NAME1 too", show_cell(both[0]))
    for column in QUESTIONS.values():
        if row[column] and not row[column].endswith(("？", "?")):
            yield fault(column, "does not end in a question mark")
    if row["question_neg"] and row["question_neg"] == row["question_nonneg"]:
        yield fault("question_nonneg", "is the negative question")
    if row["ans2"] and any(slot in row["ans2"] for slot in SLOTS):
        yield fault("ans2", "is to say that it is not known who, and names somebody")
