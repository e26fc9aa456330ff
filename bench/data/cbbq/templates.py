"""CBBQ's templates: what a row of a template file holds, and the questions that it yields.

A template has two lists of names and is expanded over their pairs, in both orders of mention. The rules are those of the
release's own scripts, so that under `compat` the questions are the released ones to the byte, faults included.
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

CATEGORIES = (
    "SES",
    "age",
    "disability",
    "disease",
    "educational_qualification",
    "ethnicity",
    "gender",
    "household_registration",
    "nationality",
    "physical_appearance",
    "race",
    "region",
    "religion",
    "sexual_orientation",
)
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
# What is done about faults that the release has: misspelt placeholders, a name in both lists, another category's name.
EXPANSIONS = ("compat", "repair", "strict")
# A placeholder, well spelt or not: the release has {{NAME2}, {{NAME2]}, {NAME1}}, NAME2}}, {{NMAE1}} and {{NAM1}}.
PLACEHOLDER = re.compile(r"[{\[]{0,9}(?:NAME?|NMAE)([12])[}\]]{0,9}")
# The largest template of the release yields 666 questions, its largest file 6,764.
MAX_QUESTIONS = 10_000
MAX_IN_ALL = 200_000
MAX_CHARACTERS = 2**27
BRACES = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A row of a template file: `record` counts from 1, `cells` are as they stand, `names` the two lists.

    `polarity` is that of the file's name, `label` the index of the right option as the row says,
    `declared` the option that dataset.toml says names the stereotyped group.
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
        """File and row, as messages name them."""
        return f"{self.path}, row {self.record}"

    @property
    def size(self) -> int:
        """How many questions it is expanded to by the release's rules."""
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
        """Index of the option that names the stereotyped group; None where nothing tells it."""
        group = self.cells["bias_targeted_groups"].strip()
        return target_option(self.category, group, self.options, self.declared)

    @property
    def name(self) -> str:
        """Polarity and record number, which a template has to itself within its category and condition."""
        return f"{self.polarity}:{self.record}"


class Filling(NamedTuple):
    """A question that a template yields: who fills the slots, whether the context mentions them in the other order.

    `number` counts from 0 within the template, those that are passed over too.
    """

    number: int
    name1: str
    name2: str
    swapped: bool
    context: str
    ans0: str
    ans1: str


def files(folder: Path) -> list[Path]:
    """The template files in a folder of one condition, the negative one first; none where there are none.

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
    """The templates of a file, in its order.

    Raises:
        BadInput: a missing column, an empty or impossible cell, with file, row and column; under `strict` also a
            misspelt placeholder, a name in both lists, a polarity or category other than the file's.
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
                    f"{template.place}, column `{column}`: holds the other option's placeholder {other}"
                )
        if not PLACEHOLDER.search(cells["context"]):
            raise BadInput(
                f"{template.place}, column `context`: has no placeholder {SLOTS[0]} or {SLOTS[1]}: {cells['context'][:40]!r}"
            )
        if expansion == "strict":
            _strictly(template)
        questions += template.size
        characters += template.size * sum(map(len, cells.values()))
        for found, most, what in (
            (template.size, MAX_QUESTIONS, "it yields {} questions"),
            (questions, MAX_IN_ALL, "the file yields {} questions up to here"),
            (characters, MAX_CHARACTERS, "the questions of the file up to here have {} characters"),
        ):
            if found > most:
                raise BadInput(
                    f"{template.place}, columns `NAME1` and `NAME2`: {what.format(f'{found:,}')}, at most {most:,} are made; write fewer names"
                )
        yield template


def expand(template: Template, expansion: str = "compat") -> Iterator[Filling]:
    """The questions of a template, pair by pair of names, each in both orders of mention.

    Under `repair` misspelt placeholders are filled as they were meant, braces that belong to none are taken out, and a
    pair of one name is passed over.
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
    """`text` with every placeholder as it was meant, and no other brace."""
    pieces = PLACEHOLDER.split(text)
    # Every other piece is the number of a slot.
    return "".join(
        SLOTS[int(piece) - 1] if k % 2 else BRACES.sub("", piece) for k, piece in enumerate(pieces)
    )


def malformed(text: str) -> list[str]:
    """What stands in `text` for a placeholder and is none: misspelt ones, and braces that belong to nothing."""
    found = [match[0] for match in PLACEHOLDER.finditer(text) if match[0] not in SLOTS]
    return found + BRACES.findall(PLACEHOLDER.sub("", text))


def names(cell: str) -> list[str]:
    """The names of a cell `[a, b, c]`; white space inside a name is dropped, as the release's own expansion does.

    Raises:
        ValueError: no brackets, an empty list, or a name with anything but letters, digits and underscores.
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
    """`text` with both slots filled, the first slot first."""
    return text.replace(SLOTS[0], name1).replace(SLOTS[1], name2)


def contexts(category: str, condition: str, text: str, name1: str, name2: str) -> list[str]:
    """The contexts that a template yields for a pair of names; a second one mentions the names in the other order.

    Disease has no second one. Elsewhere the second one of a disambiguous template swaps the introduction alone, so that
    the facts stay with whom they are about; educational qualification swaps everything, its options being fixed words.
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
    """The row's label, after every cell was found to hold something possible.

    Args:
        category: that of the file's folder, which may be one that the benchmark has not.

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
            f"{path}, row {number}, column `context_condition`: {row['context_condition']!r} in a folder {condition!r}"
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


def _strictly(template: Template) -> None:
    """Refuse what the release has and should not."""
    cells, way_out = template.cells, "`--repair` or `--set expansion=repair` mends it"
    for column in ("context", "ans0", "ans1"):
        wrong = malformed(cells[column])
        if wrong:
            raise BadInput(
                f"{template.place}, column `{column}`: {wrong[0]!r} is no placeholder; expected {SLOTS[0]} or {SLOTS[1]}; {way_out}"
            )
    both = sorted(set(template.names[0]) & set(template.names[1]))
    if both:
        raise BadInput(
            f"{template.place}, column `NAME2`: {both[0]!r} stands in NAME1 too, so that both people are called alike; {way_out}"
        )
    for column, wanted in (
        ("question_polarity", template.polarity),
        ("category", template.category),
    ):
        if cells[column] != wanted:
            raise BadInput(
                f"{template.place}, column `{column}`: {cells[column]!r} in a file of {wanted!r}; without --strict the file's name and folder are believed"
            )
