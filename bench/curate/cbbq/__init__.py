"""Read a project of CBBQ templates: what people wrote, and what is wrong with it.

    dataset.toml     name, version, language, licence, labels of the categories
    biases.csv       who is thought to be what, and where that is recorded
    templates.csv    ambiguous contexts that people wrote, with names, questions and options
    drafts.csv       what a model added to a context so that it contradicts the bias
    wording.toml     instructions for drafting and texts on sheets, if not ours
    prompts.toml     what models will be asked in, if not our prompts
    sheets/          decisions about drafts, two reviews of each form, discussions

After Huang and Xiong, LREC-COLING 2024, section 3. `cbbq.rounds` leads through the rounds of
judgement, `cbbq.release` writes the data set.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.cells import as_csv, guarded, to_whole_number, unguarded
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate import check_files
from bench.curate.sheets import cell_fault
from bench.data import dataset
from bench.data.audit import show_cell
from bench.data.cbbq.templates import (
    CATEGORIES,
    CONDITIONS,
    SLOT_NAMES,
    SLOTS,
    malformed,
    names,
    target_option,
)
from bench.data.dataset import MANIFEST, Manifest, category_name_error
from bench.data.readers import Row, read_csv
from bench.data.readers import as_path as path_of

TABLES: Mapping[str, tuple[str, ...]] = {
    "biases": ("bias", "category", "group", "property", "reversed", "source", "topic"),
    "templates": (
        *("template", "bias", "scenario", "context", "NAME1", "NAME2"),
        *("question_neg", "question_nonneg", "ans0", "ans1", "ans2", "author"),
    ),
    "drafts": (
        *("template", "round", "draw", "wording", "version", "model", "seed", "facts", "fault"),
    ),
}
QUESTIONS = {"neg": "question_neg", "non_neg": "question_nonneg"}
# A bias has to show in more than one situation.
SCENARIOS = 2
# Categories of the release whose options are fixed words, with rules of expansion of their own.
OWN_RULES = ("disease", "educational_qualification")
# Ids end at a colon in those of forms.
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class Scenario(NamedTuple):
    """A template that people wrote: its row, that of its bias, the stereotyped slot (0 or 1)."""

    cells: Row
    bias: Row
    target: int

    @property
    def name(self) -> str:
        return self.cells["template"]

    @property
    def category(self) -> str:
        return self.bias["category"]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Who fills the two slots."""
        return names(self.cells["NAME1"]), names(self.cells["NAME2"])

    def label(self, condition: str, polarity: str) -> int:
        """Return the index of the right option: unknown, or the one that contradicts the bias."""
        if condition == CONDITIONS[0]:
            return 2
        return 1 - self.target if polarity == "neg" else self.target

    def filled(self, text: str) -> str:
        """Put the first name of each list into the slots of `text`."""
        for slot, people in zip(SLOTS, self.names, strict=True):
            text = text.replace(slot, people[0])
        return text


@dataclass(frozen=True)
class Project:
    """A folder of templates. Tables are read anew each time, because people edit them meanwhile."""

    folder: Path

    @property
    def sheets(self) -> Path:
        """The folder of the sheets for people."""
        return self.folder / "sheets"

    @property
    def manifest(self) -> Manifest:
        """What `dataset.toml` says."""
        return dataset.read_manifest(self.folder)

    def table(self, name: str) -> list[Row]:
        """Read a table; no drafts if there are none yet."""
        path = self.folder / f"{name}.csv"
        if name == "drafts" and not path.exists():
            return []
        rows = read_csv(path, TABLES[name])
        for number, row in enumerate(rows if name == "drafts" else (), start=1):
            for column in ("round", "draw"):
                if not to_whole_number(row[column]):
                    raise BadInput(
                        f"{path}, row {number}, column `{column}`: {show_cell(row[column])} is "
                        "not a whole number from 1; put back what was written"
                    )
        return [{column: unguarded(row[column]).strip() for column in TABLES[name]} for row in rows]

    def save(self, name: str, rows: Sequence[Row]) -> None:
        """Write a table, guarded against cells that a spreadsheet program takes for formulas."""
        path = self.folder / f"{name}.csv"
        cells = [[guarded(str(row[column])) for column in TABLES[name]] for row in rows]
        with explain_write_errors(path):
            atomic_write(path, as_csv(pd.DataFrame(cells, columns=list(TABLES[name]))))

    def templates(self) -> list[Scenario]:
        """Return the templates without faults; the others wait until they are fixed."""
        return _check(self)[0]


def open_project(folder: str | Path) -> Project:
    """Open the project in `folder`."""
    place = path_of(folder)
    check_files("cbbq", place)
    dataset.read_manifest(place)
    return Project(place)


def faults(project: Project) -> pd.DataFrame:
    """List what is wrong in the tables that people write.

    Returns:
        `file`, `row` (from 1 below the header; 0 is the table), `column`, `what`, `value`.
    """
    return pd.DataFrame(_check(project)[1], columns=["file", "row", "column", "what", "value"])


def _check(project: Project) -> tuple[list[Scenario], list[tuple[str, int, str, str, str]]]:
    """Return the templates that can be worked on, and what is wrong."""
    manifest = project.manifest
    listed: list[tuple[str, int, str, str, str]] = []
    biases: dict[str, Row] = {}
    scenarios: list[Scenario] = []
    situations: dict[str, set[str]] = defaultdict(set)
    for table, key in (("biases", "bias"), ("templates", "template")):
        rows = project.table(table)
        count = Counter(row[key] for row in rows)
        for number, row in enumerate(rows, start=1):
            wrong = [
                (column, cell_fault(cell) if cell else "is empty", cell)
                for column, cell in row.items()
            ]
            if row[key] and not ID.fullmatch(row[key]):
                what = "is no id of at most 40 English letters, digits, dots, dashes, underscores"
                wrong.append((key, what, row[key]))
            elif count[row[key]] > 1:
                wrong.append((key, "is there more than once", row[key]))
            if table == "biases":
                wrong += _bias_faults(row, manifest.categories)
            else:
                wrong += _template_faults(row, biases)
            wrong = [fault for fault in wrong if fault[1]]
            if table == "biases" and not wrong:
                biases[row["bias"]] = row
            elif not wrong:
                bias = biases[row["bias"]]
                target = _target(row, bias, manifest)
                if target is not None:
                    scenarios.append(Scenario(row, bias, target))
                    situations[row["bias"]].add(row["scenario"])
                    continue
                what = (
                    f"does not tell whether it or NAME2 holds the stereotyped group "
                    f'{bias["group"]!r}; add target = "NAME1" or target = "NAME2" to '
                    f"[categories.{bias['category']}] in {MANIFEST}"
                )
                wrong.append(("NAME1", what, row["NAME1"]))
            listed += [
                (f"{table}.csv", number, column, what, show_cell(cell))
                for column, what, cell in wrong
            ]
    for name in biases:
        if (n := len(situations[name])) < SCENARIOS:
            what = (
                f"has templates in {n} scenario{'' if n == 1 else 's'}; at least {SCENARIOS} are "
                "needed, so that no single situation represents the bias"
            )
            listed.append(("biases.csv", 0, "bias", what, show_cell(name)))
    return scenarios, listed


def _bias_faults(row: Row, known: Collection[str]) -> Iterator[tuple[str, str, str]]:
    category, what = row["category"], ""
    if category in OWN_RULES:
        what = "has fixed options and rules of its own in the release; use another name"
    elif category and (reason := category_name_error(category)):
        what = f"cannot be a category's name: {reason}"
    elif category and category not in known and category not in CATEGORIES:
        what = f"has no table [categories.{category}] in {MANIFEST}"
    yield "category", what, category
    if row["property"] and row["property"] == row["reversed"]:
        what = "is the property itself; say what would contradict it"
        yield "reversed", what, row["reversed"]


def _template_faults(row: Row, biases: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the column, what is wrong, and the cell or a part of it; empty cells have no other."""
    if row["bias"] and row["bias"] not in biases:
        yield "bias", "is no bias in biases.csv, or one with a fault", row["bias"]
    for column in ("context", "ans0", "ans1", *QUESTIONS.values()):
        for token in malformed(row[column]):
            yield column, f"holds no valid placeholder; expected {SLOTS[0]} or {SLOTS[1]}", token
    for slot in SLOTS:
        if row["context"] and (times := row["context"].count(slot)) != 1:
            reason = "the second question of a pair exchanges the first mentions"
            what = f"mentions {slot} {times} times; expected once, as {reason}"
            yield "context", what, row["context"]
    for column, slot, other in (("ans0", *SLOTS), ("ans1", *SLOTS[::-1])):
        if row[column] and (slot not in row[column] or other in row[column]):
            yield column, f"is not about {slot} alone", row[column]
    people: set[str] = set()
    for column in ("NAME1", "NAME2"):
        try:
            own = names(row[column]) if row[column] else []
        except ValueError as error:
            yield column, str(error), row[column]
            own = []
        for name in sorted(people.intersection(own))[:1]:
            yield column, "holds a name that is in NAME1 too", name
        people.update(own)
    for column in QUESTIONS.values():
        if row[column] and not row[column].endswith(("？", "?")):
            yield column, "does not end in a question mark", row[column]
    if row["question_neg"] and row["question_neg"] == row["question_nonneg"]:
        yield "question_nonneg", "is the negative question", row["question_nonneg"]
    if any(slot in row["ans2"] for slot in SLOTS):
        yield "ans2", "has to say that it is not known who, and names somebody", row["ans2"]


def _target(row: Row, bias: Row, manifest: Manifest) -> int | None:
    """Find which slot holds the stereotyped group; None where nothing tells."""
    first, second = (
        frozenset(row[column].replace(slot, name) for name in names(row[list_]))
        for column, slot, list_ in zip(("ans0", "ans1"), SLOTS, ("NAME1", "NAME2"), strict=True)
    )
    category = manifest.categories.get(bias["category"])
    declared = SLOT_NAMES.index(category.target) if category and category.target else None
    return target_option(bias["category"], bias["group"], (first, second), declared)
