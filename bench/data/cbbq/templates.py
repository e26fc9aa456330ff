"""CBBQ's templates: what a row of a template file holds, and the questions that it yields.

A template has two lists of names and is expanded over their pairs, in both orders of mention. The
rules are those of the release's own scripts, so that with `compat` the questions are the released
ones to the byte, faults included.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import NamedTuple

from bench.core.errors import BadInput, expected
from bench.data.cbbq.targets import Options, declared_option, target_option
from bench.data.readers import Row, read_csv

CATEGORY_LABELS = {
    "SES": "社会经济地位",
    "age": "年龄",
    "disability": "残障",
    "disease": "疾病",
    "educational_qualification": "学历",
    "ethnicity": "民族",
    "gender": "性别",
    "household_registration": "户籍",
    "nationality": "国籍",
    "physical_appearance": "外貌",
    "race": "种族",
    "region": "地域",
    "religion": "宗教",
    "sexual_orientation": "性取向",
}
CATEGORIES = tuple(CATEGORY_LABELS)
CONDITIONS = ("ambiguous", "disambiguous")
# Polarity by the file's name: the column of that name is wrong in hundreds of released rows.
FILES = {"neg": "templates_generate_neg.csv", "non_neg": "templates_generate_nonneg.csv"}
INSTANCE_COLUMNS = (
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "subcategory",
    "bias_targeted_groups",
    "source",
    "context",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)
COLUMNS = (*INSTANCE_COLUMNS, "NAME1", "NAME2")
SLOTS = ("{{NAME1}}", "{{NAME2}}")
# What to do about faults of the release: keep them, repair what can be repaired, refuse them.
EXPANSIONS = ("compat", "repair", "strict")
# A placeholder, well spelt or not: the release has {{NAME2}, {{NAME2]}, {NAME1}}, NAME2}},
# {{NMAE1}} and {{NAM1}}.
PLACEHOLDER = re.compile(r"[{\[]{0,9}(?:NAME?|NMAE)([12])[}\]]{0,9}")
# The largest template of the release yields 666 questions, its largest file 6,764.
MAX_QUESTIONS = 10_000
MAX_IN_ALL = 200_000
MAX_CHARACTERS = 2**27
BRACES = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A row of a template file.

    Attributes:
        record: its number, from 1.
        polarity: that of the file's name.
        cells: as they are written.
        names: the two lists.
        label: index of the right option, as the row says.
        declared: the option that names the stereotyped group, as dataset.toml says.
    """

    path: Path
    record: int
    category: str
    condition: str
    polarity: str
    cells: Row
    names: tuple[tuple[str, ...], tuple[str, ...]]
    label: int
    declared: int | None = None

    @property
    def place(self) -> str:
        """The file and the row, as in messages."""
        return f"{self.path}, row {self.record}"

    @property
    def size(self) -> int:
        """The number of questions that the release's rules make of it."""
        orders = 1 if self.category == "disease" else 2
        return orders * len(self.names[0]) * len(self.names[1])

    @property
    def options(self) -> Options:
        """The texts of the first and the second option, with each name that fills them."""
        first, second = (repaired(self.cells[column]) for column in ("ans0", "ans1"))
        return (
            frozenset(fill(first, name, "") for name in self.names[0]),
            frozenset(fill(second, "", name) for name in self.names[1]),
        )

    @property
    def target(self) -> int | None:
        """Index of the option that names the stereotyped group; None if unknown."""
        group = self.cells["bias_targeted_groups"].strip()
        return target_option(self.category, group, self.options, self.declared)

    @property
    def name(self) -> str:
        """Polarity and record number, unique within a category and condition."""
        return f"{self.polarity}:{self.record}"


class Filling(NamedTuple):
    """A question of a template: who fills the slots, and the texts.

    `number` counts from 0 within the template, left-out questions included. `swapped` says that the
    context mentions the names in the other order.
    """

    number: int
    name1: str
    name2: str
    swapped: bool
    context: str
    ans0: str
    ans1: str


def files(folder: Path) -> list[Path]:
    """List the template files in a folder of one condition, the negative one first.

    Raises:
        BadInput: one polarity is there without the other.
    """
    found = [folder / name for name in FILES.values() if (folder / name).is_file()]
    if len(found) == 1:
        missing = next(name for name in FILES.values() if folder / name != found[0])
        raise BadInput(
            f"{folder / missing}: is missing beside {found[0].name}; both polarities are needed"
        )
    return found


def read(
    path: Path, category: str, condition: str, expansion: str = "compat"
) -> Iterator[Template]:
    """Read the templates of a file, in its order.

    Raises:
        BadInput: a missing column, or an empty or impossible cell, with file, row and column. With
            `strict` also a misspelt placeholder, a name in both lists, or a polarity or category
            other than the file's.
    """
    polarity = next(polarity for polarity, name in FILES.items() if name == path.name)
    declared = declared_option(path, category)
    questions = characters = 0
    for record, cells in enumerate(read_csv(path, COLUMNS), start=1):
        label = checked(path, record, cells, condition, COLUMNS, category)
        lists = tuple(_list(path, record, cells, column) for column in ("NAME1", "NAME2"))
        template = Template(
            path,
            record,
            category,
            condition,
            polarity,
            cells,
            (lists[0], lists[1]),
            label,
            declared,
        )
        for column, other in (("ans0", SLOTS[1]), ("ans1", SLOTS[0])):
            if other in cells[column]:
                raise BadInput(
                    f"{template.place}, column `{column}`: holds the other option's placeholder "
                    f"{other}"
                )
        if not PLACEHOLDER.search(cells["context"]):
            raise BadInput(
                f"{template.place}, column `context`: has no placeholder {SLOTS[0]} or "
                f"{SLOTS[1]}: {cells['context'][:40]!r}"
            )
        if expansion == "strict":
            _refuse_faults(template)
        questions += template.size
        characters += template.size * sum(map(len, cells.values()))
        for total, limit, what in (
            (template.size, MAX_QUESTIONS, "it yields {} questions"),
            (questions, MAX_IN_ALL, "the file yields {} questions up to here"),
            (characters, MAX_CHARACTERS, "the questions of the file up to here have {} characters"),
        ):
            if total > limit:
                raise BadInput(
                    f"{template.place}, columns `NAME1` and `NAME2`: {what.format(f'{total:,}')}, "
                    f"at most {limit:,} are made; write fewer names"
                )
        yield template


def expand(template: Template, expansion: str = "compat") -> Iterator[Filling]:
    """Make the questions of a template: pair by pair of names, in both orders of mention.

    With `repair` misspelt placeholders are filled as they were meant, stray braces are removed, and
    pairs of equal names are left out.
    """
    context, ans0, ans1 = (template.cells[name] for name in ("context", "ans0", "ans1"))
    if expansion == "repair":
        context, ans0, ans1 = repaired(context), repaired(ans0), repaired(ans1)
    number = count()
    for name1, name2 in product(*template.names):
        options = fill(ans0, name1, name2), fill(ans1, name1, name2)
        for swapped, text in enumerate(
            contexts(template.category, template.condition, context, name1, name2)
        ):
            k = next(number)
            if expansion != "repair" or name1 != name2:
                yield Filling(k, name1, name2, bool(swapped), text, *options)


def repaired(text: str) -> str:
    """Spell every placeholder as it was meant, and remove all other braces."""
    pieces = PLACEHOLDER.split(text)
    # Every other piece is the number of a slot.
    return "".join(
        SLOTS[int(piece) - 1] if k % 2 else BRACES.sub("", piece) for k, piece in enumerate(pieces)
    )


def malformed(text: str) -> list[str]:
    """List misspelt placeholders and stray braces."""
    found = [match[0] for match in PLACEHOLDER.finditer(text) if match[0] not in SLOTS]
    return found + BRACES.findall(PLACEHOLDER.sub("", text))


def names(cell: str) -> list[str]:
    """Read the names of a cell `[a, b, c]`, without the white space inside a name.

    Raises:
        ValueError: no brackets, an empty list, or a name with other than letters, digits and `_`.
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        raise ValueError("expected names in square brackets, like [甲, 乙]")
    found = [re.sub(r"\s", "", name) for name in cell[1:-1].split(",")]
    wrong = next((name for name in found if not re.fullmatch(r"\w+", name)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not a name of letters and digits")
    return found


def fill(text: str, name1: str, name2: str) -> str:
    """Fill both slots, the first slot first."""
    return text.replace(SLOTS[0], name1).replace(SLOTS[1], name2)


def contexts(category: str, condition: str, text: str, name1: str, name2: str) -> list[str]:
    """Fill the context with a pair of names, and again with the names in the other order.

    Disease has no second context. The second one of a disambiguous template swaps only the
    introduction, so that the facts stay with the person that they are about; educational
    qualification swaps everything, because its options are fixed words.
    """
    first = fill(text, name1, name2)
    if category == "disease":
        return [first]
    if condition == "ambiguous" or category == "educational_qualification":
        return [first, fill(text, name2, name1)]
    introduced = text.replace(SLOTS[0], name2, 1).replace(SLOTS[1], name1, 1)
    return [first, fill(introduced, name1, name2)]


def checked(
    path: Path, number: int, row: Row, condition: str, columns: Sequence[str], category: str
) -> int:
    """Check that every cell holds something possible, and return the label.

    Args:
        category: that of the file's folder, which may be one that the release does not have.

    Raises:
        BadInput: with file, row and column.
    """
    for column in columns:
        if not row[column].strip():
            raise BadInput(f"{path}, row {number}, column `{column}`: is empty")
    if row["question_polarity"] not in FILES:
        raise BadInput(
            f"{path}, row {number}: "
            + expected(row["question_polarity"], FILES, "column `question_polarity`")
        )
    if row["context_condition"] != condition:
        raise BadInput(
            f"{path}, row {number}, column `context_condition`: {row['context_condition']!r} in a "
            f"folder {condition!r}"
        )
    known = dict.fromkeys([*CATEGORIES, category])
    if row["category"] not in known:
        raise BadInput(
            f"{path}, row {number}: " + expected(row["category"], known, "column `category`")
        )
    allowed = ("2",) if condition == "ambiguous" else ("0", "1")
    if row["label"] not in allowed:
        raise BadInput(
            f"{path}, row {number}: "
            + expected(row["label"], allowed, f"column `label` of {condition} questions")
        )
    return int(row["label"])


def _list(path: Path, record: int, cells: Row, column: str) -> tuple[str, ...]:
    try:
        return tuple(names(cells[column]))
    except ValueError as error:
        raise BadInput(
            f"{path}, row {record}, column `{column}`: {error}: {cells[column][:60]!r}"
        ) from None


def _refuse_faults(template: Template) -> None:
    """Refuse faults that the release has.

    Raises:
        BadInput: with file, row and column.
    """
    cells, way_out = template.cells, "`--repair` or `--set expansion=repair` fixes it"
    for column in ("context", "ans0", "ans1"):
        wrong = malformed(cells[column])
        if wrong:
            raise BadInput(
                f"{template.place}, column `{column}`: {wrong[0]!r} is no placeholder; "
                f"expected {SLOTS[0]} or {SLOTS[1]}; {way_out}"
            )
    both = sorted(set(template.names[0]) & set(template.names[1]))
    if both:
        raise BadInput(
            f"{template.place}, column `NAME2`: {both[0]!r} is in NAME1 too, so that both people "
            f"are called alike; {way_out}"
        )
    for column, wanted in (
        ("question_polarity", template.polarity),
        ("category", template.category),
    ):
        if cells[column] != wanted:
            raise BadInput(
                f"{template.place}, column `{column}`: {cells[column]!r} in a file of {wanted!r}; "
                "without --strict the file's name and folder are believed"
            )
