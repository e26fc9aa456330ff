"""Everyday's data: one CSV file, one row per question."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.core.errors import BadInput, expected
from bench.data import Paper, SettingEffect, Source
from bench.data import load as load_items
from bench.data.readers import read_table
from bench.data.texts import Text

TITLE = "Everyday"
HOMEPAGE = "https://example.org/everyday"
LICENCE = "MIT"
PAPER = Paper(("A. Author",), "Everyday", "Proceedings of an Example", 2026, HOMEPAGE)
CATEGORIES = ("age", "work")
CATEGORY_LABELS = {"age": "age", "work": "work"}
LANGUAGE = "en"
LAYOUT = "questions.csv"
SETTINGS: dict[str, tuple[str, ...]] = {}
TOLERANT: dict[str, str] = {}
ITEMS = "questions"
CONDITIONS = ("ambiguous", "disambiguated")
ANSWERS = ("stereotyped", "other", "unknown")
COLUMNS = ("category", "scene", "condition", "context", "question", *ANSWERS[:2], "answer")
UNKNOWN = "It is not known"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with three options: the stereotyped person, the other one, and unknown."""

    category: str
    scene: str
    condition: str
    context: str
    question: str
    stereotyped: str
    other: str
    answer: str

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.scene}:{self.condition}"

    @property
    def cluster(self) -> str:
        return f"{self.category}:{self.scene}"

    @property
    def options(self) -> tuple[str, str, str]:
        return (self.stereotyped, self.other, UNKNOWN)


def files(folder: Path) -> dict[str, list[Path]]:
    path = folder / "questions.csv"
    return {category: [path] for category in CATEGORIES} if path.is_file() else {}


def load(folder: Path, categories: Sequence[str], **settings: str) -> list[Question]:
    path = folder / "questions.csv"
    questions = []
    for row in read_table(path, COLUMNS):
        for column, allowed in (("condition", CONDITIONS), ("answer", ANSWERS)):
            if row[column] not in allowed:
                raise BadInput(
                    f"{path}, row {row.number}: {expected(row[column], allowed, column)}"
                )
        if row["category"] in categories:
            questions.append(Question(**{name: row[name] for name in COLUMNS}))
    return questions


def touched(folder: Path, categories: Sequence[str] | None, **settings: str) -> list[SettingEffect]:
    return []


def texts(source: Source) -> list[Text]:
    return [
        Text(
            "everyday",
            one.cluster,
            one.category,
            LANGUAGE,
            one.scene,
            (one.stereotyped,),
            one.context,
            one.context,
            len(CONDITIONS),
        )
        for one in load_items(source)
        if one.condition == CONDITIONS[0]
    ]
