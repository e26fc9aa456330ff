"""CBBQ's templates: their cells, and their questions.

A template has two lists of names and is expanded over their pairs, in both orders of mention. We
follow the rules of the release's scripts, so that with `compat` the questions are the released ones
to the byte, faults included.

A wrong cell raises `BadInput` with the file, the row and the column.
"""

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.core.errors import BadInput, expected, quoted
from bench.data.manifest import TARGETS, category_name_error, composed, read_manifest
from bench.data.readers import Row, TableRow, read_table

METADATA = tomllib.loads(Path(__file__).with_name("metadata.toml").read_text("utf-8"))
CATEGORY_LABELS: dict[str, str] = METADATA["categories"]
CATEGORIES = tuple(CATEGORY_LABELS)
CONDITIONS = ("ambiguous", "disambiguous")
# The file of each polarity. We trust its name: the column is wrong in hundreds of released rows.
FILES = {"neg": "templates_generate_neg.csv", "non_neg": "templates_generate_nonneg.csv"}
TEXTS = ("context", "ans0", "ans1")
# The columns with the category and the condition of a template.
PART = ("category", "context_condition")
# The columns of a template file, in the release's order.
COLUMNS = (
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "subcategory",
    "bias_targeted_groups",
    "source",
    "context",
    "NAME1",
    "NAME2",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)
SLOTS = ("{{NAME1}}", "{{NAME2}}")
# The slots as dataset.toml names them.
SLOT_NAMES = TARGETS
# A placeholder, well spelt or not: the release has {{NAME2}, {{NAME2]}, {NAME1}}, NAME2}},
# {{NMAE1}} and {{NAM1}}.
PLACEHOLDER = re.compile(r"[{\[]{0,9}(?:NAME?|NMAE)([12])[}\]]{0,9}")
# Marks of direction and invisible line breaks; the joiners of Persian and Hindi are kept.
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
HAN_AND_KANA = "\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
NO_BLANKS = re.compile(f"(?<=[{HAN_AND_KANA}]) | (?=[{HAN_AND_KANA}])")
NAME = re.compile(r"\w(?:[\w .·・&+'’ʼ\u2010-\u2013\u200c\u200d-]*[\w.+'’])?")
BRACES = re.compile(r"[{}]")

# The texts of the first and of the second option, with all names.
Options = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True)
class Template:
    """A row of a template file.

    Attributes:
        record: the number of the row among the filled rows, from 1.
        polarity: the polarity that the name of the file tells.
        label: index of the right option in the row.
        declared: the option that names the stereotyped group in dataset.toml.
    """

    path: Path
    record: int
    category: str
    condition: str
    polarity: str
    cells: TableRow
    names: tuple[tuple[str, ...], tuple[str, ...]]
    label: int
    declared: int | None = None

    @property
    def place(self) -> str:
        """The file and the row, for messages."""
        return f"{self.path}, row {self.cells.number}"

    @cached_property
    def name(self) -> str:
        """Polarity and record number, unique within a category and condition."""
        return f"{self.polarity}:{self.record}"

    @property
    def group(self) -> str:
        """The stereotyped group."""
        return self.cells["bias_targeted_groups"].strip()

    @property
    def size(self) -> int:
        """The number of questions that the release's rules make of it."""
        orders = 1 if self.category == "disease" else 2
        return orders * len(self.names[0]) * len(self.names[1])

    @cached_property
    def options(self) -> Options:
        """The texts of the first and the second option, with each name that fills them."""
        first, second = (repaired(self.cells[column]) for column in ("ans0", "ans1"))
        return (
            frozenset(fill(first, name, "") for name in self.names[0]),
            frozenset(fill(second, "", name) for name in self.names[1]),
        )


def read(path: Path, category: str, condition: str) -> Iterator[Template]:
    """Read the templates of a category and condition from their file, or from a table of all."""
    in_folder = path.parent.name in CONDITIONS
    polarities = [polarity for polarity, name in FILES.items() if name == path.name]
    manifest = read_manifest(path.parents[2] if in_folder else path.parent)
    target = manifest.categories[category].target if category in manifest.categories else ""
    declared = SLOT_NAMES.index(target) if target else None
    for record, cells in enumerate(read_table(path, COLUMNS), start=1):
        if not in_folder and [cells[name] for name in PART] != [category, condition]:
            continue
        location = f"{path}, row {cells.number}"
        label = _checked(location, cells, condition, category)
        polarity = polarities[0] if in_folder else cells["question_polarity"]
        lists = []
        for column in SLOT_NAMES:
            try:
                lists.append(tuple(names(cells[column])))
            except ValueError as error:
                text = cells[column][:60]
                raise BadInput(f"{location}, column `{column}`: {error}: {text!r}") from None
        for column, other in (("ans0", SLOTS[1]), ("ans1", SLOTS[0])):
            if other in cells[column]:
                problem = f"holds the other option's placeholder {other}"
                raise BadInput(f"{location}, column `{column}`: {problem}")
        if not PLACEHOLDER.search(cells["context"]):
            problem = f"has no placeholder {SLOTS[0]} or {SLOTS[1]}: {cells['context'][:40]!r}"
            raise BadInput(f"{location}, column `context`: {problem}")
        yield Template(
            path=path,
            record=record,
            category=category,
            condition=condition,
            polarity=polarity,
            cells=cells,
            names=(lists[0], lists[1]),
            label=label,
            declared=declared,
        )


def categories(path: Path) -> tuple[str, ...]:
    """Return the categories in a table of all templates, each with both polarities."""
    present: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in read_table(path, COLUMNS):
        location = f"{path}, row {row.number}"
        category, condition = (row[name] for name in PART)
        if error := category_name_error(category):
            raise BadInput(f"{location}, column `category`: {quoted(category)}: {error}")
        for column, allowed in ((PART[1], CONDITIONS), ("question_polarity", FILES)):
            if row[column] not in allowed:
                raise BadInput(
                    f"{location}: {expected(row[column], allowed, f'column `{column}`')}"
                )
        present[category, condition].add(row["question_polarity"])
    for (category, condition), polarities in present.items():
        for missing in FILES.keys() - polarities:
            raise BadInput(
                f"{path}: has no row of category {category}, {condition} with question_polarity "
                f"{missing}; both polarities are needed"
            )
    return tuple(dict.fromkeys(category for category, _condition in present))


def _checked(location: str, row: Row, condition: str, category: str) -> int:
    """Check every cell of the row at `location`, and return the label.

    Args:
        category: of the file's folder, which need not be one of the release.
    """
    for column in COLUMNS:
        if not row[column].strip():
            raise BadInput(f"{location}, column `{column}`: is empty")
    row["label"] = row["label"].strip().removesuffix(".0")  # programs write 2 as 2.0
    for column, allowed in (
        ("question_polarity", tuple(FILES)),
        ("context_condition", (condition,)),
        ("category", tuple(dict.fromkeys([*CATEGORIES, category]))),
        ("label", ("2",) if condition == "ambiguous" else ("0", "1")),
    ):
        if row[column] not in allowed:
            raise BadInput(f"{location}: {expected(row[column], allowed, f'column `{column}`')}")
    return int(row["label"])


def names(cell: str) -> list[str]:
    """Read the names of a cell `[a, b, c]`, composed and without invisible characters.

    As in the release's scripts, we drop white space beside Chinese and Japanese characters; any
    other becomes one blank.

    Raises:
        ValueError: the cell is not a list of names.

    Examples:
        >>> names("[老 张, John  Smith]")
        ['老张', 'John Smith']
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        raise ValueError("expected names in square brackets, like [甲, 乙]")
    listed = [
        NO_BLANKS.sub("", " ".join(INVISIBLE.sub("", composed(name)).split()))
        for name in cell[1:-1].split(",")
    ]
    for name in listed:
        # `\w` does not match vowel signs and accents.
        bare = "".join(char for char in name if unicodedata.category(char)[0] != "M")
        if not NAME.fullmatch(bare):
            raise ValueError(
                f"{name!r} is not a name: write letters, digits, blanks, hyphens and apostrophes, "
                "and a comma (,) between names"
            )
    return listed


def repaired(text: str) -> str:
    """Spell every placeholder correctly, and remove all other braces.

    Examples:
        >>> repaired("{{NMAE1}}和{NAME2]}")
        '{{NAME1}}和{{NAME2}}'
    """
    # Every other piece is the number of a slot.
    return "".join(
        SLOTS[int(piece) - 1] if k % 2 else BRACES.sub("", piece)
        for k, piece in enumerate(PLACEHOLDER.split(text))
    )


def malformed(text: str) -> list[str]:
    """List misspelt placeholders and stray braces."""
    misspelt = [match[0] for match in PLACEHOLDER.finditer(text) if match[0] not in SLOTS]
    return misspelt + BRACES.findall(PLACEHOLDER.sub("", text))


# Questions


def fill(text: str, name1: str, name2: str) -> str:
    """Fill both slots, the first slot first."""
    return text.replace(SLOTS[0], name1).replace(SLOTS[1], name2)


def contexts(category: str, condition: str, text: str, name1: str, name2: str) -> list[str]:
    """Fill the context with a pair of names, and again with the names in the other order.

    Disease has no second context. In the second context of a disambiguous template, only the
    introduction is swapped, so that the facts stay with their person. Educational qualification
    swaps everything, because its options are fixed words.
    """
    first = fill(text, name1, name2)
    if category == "disease":
        return [first]
    if condition == "ambiguous" or category == "educational_qualification":
        return [first, fill(text, name2, name1)]
    introduced = text.replace(SLOTS[0], name2, 1).replace(SLOTS[1], name1, 1)
    return [first, fill(introduced, name1, name2)]
