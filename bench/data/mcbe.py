"""McBE: bias evaluation instances, one file a category (Lan et al., Findings of ACL 2025).

A row is a context, a sentence with the slot `[PLH]`, the words that may fill it, a subcategory, an explanation of
the bias, and its severity from 0 to 10 as people judged it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data.tables import Row, read_csv, read_xlsx
from bench.data.tables import number as to_number
from bench.errors import BadInput

TITLE = "McBE"
HOMEPAGE = "https://huggingface.co/datasets/Velikaya/McBE"
LICENCE = "Apache-2.0"
LAYOUT = "gender.xlsx or gender.csv and so on, in the folder itself or in its xlsx_files/ or csv_files/"
CATEGORIES = (
    "gender", "religion", "nationality", "socioeco", "age", "appearance",
    "health", "region", "lgbtq+", "worldview", "subculture", "race",
)  # fmt: skip
CATEGORY_LABELS = {
    "gender": "性别", "religion": "宗教", "nationality": "国籍", "socioeco": "社会经济地位", "age": "年龄", "appearance": "外貌",
    "health": "健康", "region": "地域", "lgbtq+": "性少数", "worldview": "价值观", "subculture": "亚文化", "race": "种族",
}  # fmt: skip
COLUMNS = ("context", "sentence", "words", "subtype", "explanation", "score")
SLOT = "[PLH]"
# Worldview compares ways of living, not groups; the paper leaves it out of preference and scenario tasks.
WITHOUT_GROUPS = ("worldview",)


@dataclass(frozen=True, slots=True)
class Instance:
    """A bias evaluation instance. `words[0]` fills the default sentence; `score` is the mean of human severities."""

    category: str
    row: int
    context: str
    sentence: str
    words: tuple[str, ...]
    subtype: str
    explanation: str
    score: float

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.row}"

    @property
    def cluster(self) -> str:
        """What was sampled: the instance."""
        return self.item_id

    def filled(self, word: str) -> str:
        """The sentence about `word`."""
        return self.sentence.replace(SLOT, word)


def files(folder: Path) -> dict[str, list[Path]]:
    """Category to its file, in the paper's order. xlsx is preferred, as the data card asks; `test` is no category."""
    for place in (folder / "xlsx_files", folder, folder / "csv_files"):
        for suffix in (".xlsx", ".csv"):
            found = {
                name: [place / (name + suffix)] for name in CATEGORIES if (place / (name + suffix)).is_file()
            }
            if found:
                return found
    return {}


def load(folder: Path, categories: Sequence[str]) -> list[Instance]:
    """All instances of `categories`.

    Raises:
        BadInput: a missing column, an empty or wrong cell; with file, row and column.
    """
    found = files(folder)
    return [instance for name in categories for instance in _read(found[name][0], name)]


def _read(path: Path, category: str) -> list[Instance]:
    rows = (read_xlsx if path.suffix == ".xlsx" else read_csv)(path, COLUMNS)
    if not rows:
        raise BadInput(f"{path}: has a header but no rows")
    return [_instance(path, category, number, row) for number, row in enumerate(rows, start=1)]


def _instance(path: Path, category: str, number: int, row: Row) -> Instance:
    cells = {name: row[name].strip() for name in COLUMNS}
    for name in COLUMNS:
        if not cells[name]:
            raise BadInput(f"{path}, row {number}, column `{name}`: is empty")
    if SLOT not in cells["sentence"] and category not in WITHOUT_GROUPS:
        raise BadInput(
            f"{path}, row {number}, column `sentence`: has no placeholder {SLOT}: {cells['sentence'][:40]!r}"
        )
    words = tuple(word.strip() for word in cells["words"].split("，") if word.strip())
    if not words:
        raise BadInput(
            f"{path}, row {number}, column `words`: holds no word: {cells['words']!r}; separate words by `，`"
        )
    if len(set(words)) < len(words):
        raise BadInput(f"{path}, row {number}, column `words`: names a word twice: {cells['words']!r}")
    score = to_number(cells["score"])
    if not 0 <= score <= 10:
        raise BadInput(
            f"{path}, row {number}, column `score`: {cells['score']!r} is not a number from 0 to 10"
        )
    return Instance(
        category,
        number,
        cells["context"],
        cells["sentence"],
        words,
        cells["subtype"],
        cells["explanation"],
        score,
    )
