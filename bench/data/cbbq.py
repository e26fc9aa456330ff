"""CBBQ: multiple-choice questions about two people of different groups (Huang and Xiong, LREC-COLING 2024).

The release is a set of templates; a template is expanded over its two lists of names, in both orders of mention. In an
ambiguous question nothing tells who did what, and the third option (unknown) is right. A disambiguous one adds facts
against the stereotype. Expanded files of the release are read too, where a folder holds no templates.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data.tables import Row, read_csv, read_json_array
from bench.errors import BadInput, expected

TITLE = "CBBQ"
HOMEPAGE = "https://github.com/YFHuangxxxx/CBBQ"
LICENCE = "CC-BY-SA-4.0"
SETTINGS: dict[str, tuple[str, ...]] = {}
LAYOUT = "CATEGORY/ambiguous/ and CATEGORY/disambiguous/ with templates_generate_neg.csv and templates_generate_nonneg.csv"
# Settings under which `bench fetch` takes a release that has faults, so that it can be looked at.
TOLERANT: dict[str, str] = {}
CATEGORIES = (
    "SES", "age", "disability", "disease", "educational_qualification", "ethnicity", "gender", "household_registration",
    "nationality", "physical_appearance", "race", "region", "religion", "sexual_orientation",
)  # fmt: skip
CATEGORY_LABELS = {
    "SES": "社会经济地位", "age": "年龄", "disability": "残障", "disease": "疾病", "educational_qualification": "学历",
    "ethnicity": "民族", "gender": "性别", "household_registration": "户籍", "nationality": "国籍",
    "physical_appearance": "外貌", "race": "种族", "region": "地域", "religion": "宗教", "sexual_orientation": "性取向",
}  # fmt: skip
CONDITIONS = ("ambiguous", "disambiguous")
# Polarity by the file's name: the column of that name is wrong in hundreds of released rows.
TEMPLATE_FILES = {"neg": "templates_generate_neg.csv", "non_neg": "templates_generate_nonneg.csv"}
INSTANCE_COLUMNS = (
    "question_index", "question_polarity", "context_condition", "category", "subcategory", "bias_targeted_groups",
    "source", "context", "question", "ans0", "ans1", "ans2", "label",
)  # fmt: skip
TEMPLATE_COLUMNS = (*INSTANCE_COLUMNS, "NAME1", "NAME2")
SLOTS = ("{{NAME1}}", "{{NAME2}}")

# Which option names the stereotyped group; 0 in all others. Age depends on the group (see `target_option`).
SECOND_OPTION = ("gender", "physical_appearance")
# Names that stand in the other slot than the rest of their category.
OLDER_IN_SLOT_1 = ("爷爷", "外公", "奶奶", "外婆")
TARGET_IN_SLOT_1 = ("变性女生", "变性女孩")


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its options. `template` is polarity and record number, the unit that was sampled.

    `polarity` comes from the name of the template file, `polarity_column` is what the row says; `target` is the index
    of the option that names the stereotyped group, `label` that of the right one.
    """

    category: str
    condition: str
    example_id: int
    template: str
    polarity: str
    polarity_column: str
    topic: str
    group: str
    context: str
    question: str
    ans0: str
    ans1: str
    ans2: str
    label: int
    target: int
    name1: str = ""
    name2: str = ""
    swapped: bool = False

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.condition}:{self.example_id}"

    @property
    def cluster(self) -> str:
        """What was sampled: the template."""
        return f"{self.category}:{self.condition}:{self.template}"

    @property
    def biased(self) -> int:
        """The option that follows the stereotype: the target of a negative question, the other of a non-negative one."""
        return self.target if self.polarity == "neg" else 1 - self.target


def files(folder: Path) -> dict[str, list[Path]]:
    """Category to its files: templates of both polarities where there are any, else the expanded csv or json."""
    if (folder / "data").is_dir() and not any((folder / name).is_dir() for name in CATEGORIES):
        folder = folder / "data"
    found = {}
    for place in sorted(folder.iterdir()):
        paths = [path for condition in CONDITIONS for path in _condition_files(place, condition)]
        if paths and place.name not in CATEGORIES:
            raise BadInput(f"{place}: " + expected(place.name, CATEGORIES, "category of CBBQ"))
        if paths:
            found[place.name] = paths
    return found


def load(folder: Path, categories: Sequence[str]) -> list[Question]:
    """All questions of `categories`: ambiguous, then disambiguous; negative templates, then non-negative ones.

    Raises:
        BadInput: a missing column, an empty or impossible cell, an instance without its template; with file and row.
    """
    found = files(folder)
    return [question for name in categories for question in _category(found[name], name)]


def left_out(folder: Path, categories: Sequence[str] | None) -> dict[str, int]:
    """How many rows `load` leaves out, by category: none."""
    return {}


def target_option(category: str, group: str, ans0: str) -> int:
    """Index of the option that names the stereotyped group.

    The first option in most categories, the second in gender and physical appearance, where the names stand the other
    way round; in age, where the first slot is the younger person, it depends on whom the stereotype is about.
    """
    if category == "age":
        older = 0 if ans0 in OLDER_IN_SLOT_1 else 1
        return older if "老" in group else 1 - older
    if category in SECOND_OPTION:
        return 0 if ans0 in TARGET_IN_SLOT_1 else 1
    return 0


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


def _condition_files(place: Path, condition: str) -> list[Path]:
    folder = place / condition
    templates = [folder / name for name in TEMPLATE_FILES.values() if (folder / name).is_file()]
    if len(templates) == 1:
        missing = next(name for name in TEMPLATE_FILES.values() if folder / name != templates[0])
        raise BadInput(
            f"{folder / missing}: is missing beside {templates[0].name}; both polarities are needed"
        )
    expanded = [folder / f"{condition}{suffix}" for suffix in (".csv", ".json")]
    return templates or [path for path in expanded if path.is_file()][:1]


def _category(paths: Sequence[Path], category: str) -> Iterator[Question]:
    polarities = {file: polarity for polarity, file in TEMPLATE_FILES.items()}
    for condition in CONDITIONS:
        example_id = 0
        for path in (path for path in paths if path.parent.name == condition):
            if path.name in polarities:
                for number, row in enumerate(read_csv(path, TEMPLATE_COLUMNS), start=1):
                    for question in _expand(
                        path, number, row, category, condition, polarities[path.name], example_id
                    ):
                        example_id += 1
                        yield question
            else:
                rows = (
                    read_csv(path, INSTANCE_COLUMNS)
                    if path.suffix == ".csv"
                    else read_json_array(path, INSTANCE_COLUMNS)
                )
                for number, row in enumerate(rows, start=1):
                    yield _instance(path, number, row, category, condition)


def _expand(
    path: Path, number: int, row: Row, category: str, condition: str, polarity: str, last_id: int
) -> Iterator[Question]:
    label = _checked(path, number, row, condition, TEMPLATE_COLUMNS)
    lists = []
    for column in ("NAME1", "NAME2"):
        try:
            lists.append(names(row[column]))
        except ValueError as error:
            raise BadInput(
                f"{path}, row {number}, column `{column}`: {error}: {row[column][:60]!r}"
            ) from None
    for column, other in (("ans0", SLOTS[1]), ("ans1", SLOTS[0])):
        if other in row[column]:
            raise BadInput(
                f"{path}, row {number}, column `{column}`: holds the other option's placeholder {other}"
            )
    # Released rows have misspelt placeholders such as {{NAME2]}, which stay as they are; none at all is a fault.
    if "NAM" not in row["context"] and "NMA" not in row["context"]:
        raise BadInput(
            f"{path}, row {number}, column `context`: has no placeholder {SLOTS[0]} or {SLOTS[1]}: {row['context'][:40]!r}"
        )
    for name1 in lists[0]:
        for name2 in lists[1]:
            for swapped, context in enumerate(contexts(category, condition, row["context"], name1, name2)):
                last_id += 1
                ans0, ans1 = fill(row["ans0"], name1, name2), fill(row["ans1"], name1, name2)
                yield Question(
                    category, condition, last_id, f"{polarity}:{number}", polarity, row["question_polarity"],
                    row["subcategory"].strip(), row["bias_targeted_groups"].strip(), context, row["question"],
                    ans0, ans1, row["ans2"], label, target_option(category, row["bias_targeted_groups"], name1),
                    name1, name2, bool(swapped),
                )  # fmt: skip


def _instance(path: Path, number: int, row: Row, category: str, condition: str) -> Question:
    label = _checked(path, number, row, condition, INSTANCE_COLUMNS)
    return Question(
        category, condition, number, f"{row['question_polarity']}:{row['question_index']}", row["question_polarity"],
        row["question_polarity"], row["subcategory"].strip(), row["bias_targeted_groups"].strip(), row["context"],
        row["question"], row["ans0"], row["ans1"], row["ans2"], label,
        target_option(category, row["bias_targeted_groups"], row["ans0"]),
    )  # fmt: skip


def _checked(path: Path, number: int, row: Row, condition: str, columns: Sequence[str]) -> int:
    """The row's label, after every cell was found to hold something possible."""
    for column in columns:
        if not row[column].strip():
            raise BadInput(f"{path}, row {number}, column `{column}`: is empty")
    if row["question_polarity"] not in TEMPLATE_FILES:
        raise BadInput(
            f"{path}, row {number}: "
            + expected(row["question_polarity"], TEMPLATE_FILES, "column `question_polarity`")
        )
    if row["context_condition"] != condition:
        raise BadInput(
            f"{path}, row {number}, column `context_condition`: {row['context_condition']!r} in a folder {condition!r}"
        )
    allowed = ("2",) if condition == "ambiguous" else ("0", "1")
    if row["label"] not in allowed:
        raise BadInput(
            f"{path}, row {number}: "
            + expected(row["label"], allowed, f"column `label` of a {condition} question")
        )
    return int(row["label"])
