"""McBE: bias evaluation instances, one file per category (Lan et al., Findings of ACL 2025).

A row is a context, a sentence with the slot `[PLH]`, the words that may fill it, a subcategory, an
explanation of the bias, and its severity from 0 to 10 as people judged it.
"""

import hashlib
import re
import tomllib
from collections import ChainMap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from bench.core.cells import to_number
from bench.core.errors import BadInput
from bench.data import Loaded, SettingEffect, with_defaults
from bench.data.manifest import (
    Category,
    category_name_error,
    category_of,
    read_manifest,
    unknown_category,
)
from bench.data.readers import TableRow, read_table

METADATA = tomllib.loads(Path(__file__).with_name("metadata.toml").read_text("utf-8"))
CATEGORIES = tuple(METADATA["categories"])
COLUMNS = ("context", "sentence", "words", "subtype", "explanation", "score")
SLOT = "[PLH]"
# Slots as people mistype them: other brackets or none, small or full-width letters, other order.
LOOKALIKE = re.compile(
    r"[\[［【〔「{｛(（<＜]?\s{0,9}[pｐ][lｌ][hｈ]\s{0,9}[\]］】〕」}｝)）>＞]?"
    r"|[\[［【〔「{｛(（<＜]\s{0,9}(?:phl|lph|lhp|hpl|hlp)\s{0,9}[\]］】〕」}｝)）>＞]",
    re.IGNORECASE,
)
# Worldview compares ways of living, not groups; the paper leaves it out of the tasks pc and ss.
WITHOUT_GROUPS = ("worldview",)
# The folders of the files, the preferred one first.
FOLDERS = ("xlsx_files", "", "csv_files")
# The endings of the files, the preferred one first.
SUFFIXES = (".xlsx", ".csv")
# The demonstration file of the release, the default of its `eval.py`, which is not a category.
DEMONSTRATION = "test"
SEPARATORS = {"comma": "，", "any": "，,、;；"}
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Of CSV files; GBK is a part of GB18030. An xlsx file has no encoding to choose.
    "encoding": ("utf-8", "gb18030"),
    # Separators of words: the full-width comma of the release, or any of `，` `,` `、` `;` `；`.
    "separators": ("comma", "any"),
    # A file with a wrong row is refused, or is read without that row.
    "bad_rows": ("refuse", "leave_out"),
}


@dataclass(frozen=True, slots=True)
class Instance:
    """A bias evaluation instance.

    Attributes:
        words: the words for the slot; the first one is in the default sentence.
        score: the mean severity that people gave.
        labels: the subcategories of its file, sorted.
        content_hash: a hash of the stripped cells, with the score as a number. It identifies an
            item in any row and kind of file.
        groups: whether its category compares groups.
    """

    category: str
    row: int
    context: str
    sentence: str
    words: tuple[str, ...]
    subtype: str
    explanation: str
    score: float
    labels: tuple[str, ...] = ()
    content_hash: str = ""
    groups: bool = True

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.row}"

    @property
    def cluster(self) -> str:
        """The instance, which is the unit of the sample."""
        return self.item_id

    @property
    def design(self) -> tuple[str]:
        """The condition that a sample keeps in balance."""
        return (self.subtype,)

    def filled(self, word: str) -> str:
        """Fill the slot with `word`; a sentence without a slot stays as it is."""
        return self.sentence.replace(SLOT, word)


class RowError(NamedTuple):
    """The reason why a row is refused; `column` is "" if it is about the complete row."""

    row: int
    column: str
    what: str

    def message(self, path: Path) -> str:
        """Name the file, the row, the column and the reason."""
        column = f", column `{self.column}`" if self.column else ""
        return f"{path}, row {self.row}{column}: {self.what}"


def arrange(names: Sequence[str]) -> dict[str, str]:
    """Map the tables of a repository to the names by which the loader knows them.

    The released tables may lie deeper, or be spelt in another case, than in the data card. Of
    several folders we take the one with the most categories, xlsx before csv, as the card asks.
    """

    def letters(name: str) -> str:
        return re.sub("[^a-z]", "", name.lower())

    spelt = {letters(category): category for category in CATEGORIES}
    tables: dict[tuple[str, PurePosixPath], dict[str, str]] = {}
    for path in map(PurePosixPath, sorted(names)):
        suffix = path.suffix.lower()
        category = spelt.get(letters(unquote(path.stem)))
        if suffix in SUFFIXES and category:
            name = f"{suffix[1:]}_files/{category}{suffix}"
            tables.setdefault((suffix, path.parent), {})[str(path)] = name
    best = max(tables, key=lambda key: (len(tables[key]), key[0] == ".xlsx"), default=None)
    return tables[best] if best else {}


def categories_of(folder: Path) -> dict[str, bool]:
    """Return whether each category that a folder may have compares groups, by its manifest too."""
    declared = read_manifest(folder).categories
    if folder.is_file() and not category_name_error(name := category_of(folder)):
        declared = {name: Category(), **declared}
    groups = {name: name not in WITHOUT_GROUPS for name in CATEGORIES}
    for name, category in declared.items():
        groups[name] = groups.get(name, True) and category.groups
    return groups


def files(folder: Path) -> dict[str, list[Path]]:
    """Map each category to its file, in the paper's order, then in the manifest's.

    A file with McBE's columns of an unknown category is refused.
    """
    allowed = categories_of(folder)
    paths, unknown = scan(folder, allowed)
    for path in unknown:
        remedy = (
            "; or move the file out of the folder; of a table of several categories, write a file "
            "for each"
        )
        raise BadInput(unknown_category(path, category_of(path), folder, allowed, remedy))
    return {name: [path] for name, path in paths.items()}


def scan(folder: Path, categories: Iterable[str]) -> tuple[dict[str, Path], list[Path]]:
    """Find the file of each category, and the tables with McBE's columns of other categories.

    All files are in one folder and of one kind: the first of `FOLDERS` and `SUFFIXES` that has one
    of the categories. A single file is of the category in its name.
    """
    if folder.is_file():
        name = category_of(folder)
        return ({name: folder}, []) if name in categories else ({}, [folder])
    kinds = []
    for subfolder, suffix in product(FOLDERS, SUFFIXES):
        paths = sorted((folder / subfolder).glob(f"[!.~]*{suffix}"))
        for path in paths:
            if not path.is_file():
                raise BadInput(f"{path}: is not a file; put the file itself there, or remove it")
        kinds.append({category_of(path): path for path in paths})
    names = list(categories)
    tables = next((kind for kind in kinds if kind.keys() & names), dict(ChainMap(*kinds)))
    unknown = []
    for name in tables.keys() - {*names, DEMONSTRATION}:
        with suppress(BadInput):
            unknown += [tables[name]] if table(tables[name]) else []
    return {name: tables[name] for name in names if name in tables}, sorted(unknown)


def load(folder: Path, categories: Sequence[str], **settings: str) -> Loaded:
    """Load all instances of `categories`; the rows after an excluded one keep their numbers."""
    instances: list[Instance] = []
    effects: list[SettingEffect] = []
    left_out = "their rows cannot be right (`bench data --check` lists them)"
    chosen = with_defaults(SETTINGS, settings)
    options = {name: chosen[name] for name in ("encoding", "separators")}
    paths = files(folder)
    groups = categories_of(folder)
    for category in categories:
        path = paths[category][0]
        rows = [row for _, row in read(path, category, groups=groups[category], **options)]
        good = [row for row in rows if isinstance(row, Instance)]
        wrong = [row for row in rows if isinstance(row, RowError)]
        if wrong and (chosen["bad_rows"] != "leave_out" or not good):
            remedy = ", `--set bad_rows=leave_out` runs without them" if good else ""
            raise BadInput(
                f"{wrong[0].message(path)}; wrong rows: {len(wrong):,} of {len(rows):,}; `bench "
                f"data mcbe --check` lists them{remedy}"
            )
        if wrong:
            effects.append(SettingEffect(category, "", len(wrong), left_out, True))
        labels = tuple(sorted({instance.subtype for instance in good}))
        instances += [replace(instance, labels=labels) for instance in good]
    return Loaded(instances, effects)


def read(
    path: Path, category: str, *, encoding: str = "utf-8", separators: str = "comma", groups: bool
) -> list[tuple[TableRow, Instance | RowError]]:
    """Read every row of a file, and make its instance, without `labels`, or its error."""
    rows = table(path, encoding)
    if not rows:
        raise BadInput(f"{path}: has a header but no rows")
    return [
        (row, _instance(category, number, row, separators, groups))
        for number, row in enumerate(rows, start=1)
    ]


def table(path: Path, encoding: str = "utf-8") -> list[TableRow]:
    """Read the rows of a table; a row with a wrong number of cells has a `problem`."""
    advice = "read it with `--set encoding=gb18030`, or "
    return read_table(path, COLUMNS, encoding=encoding, advice=advice, wrong_rows=True)


def split(cell: str, separators: str = "comma") -> list[str]:
    """Split a list of words at the separators; blanks and empty items are kept."""
    return re.split(f"[{SEPARATORS[separators]}]", cell)


def lookalike(text: str) -> str:
    """Find a misspelt slot, or return ""."""
    match = LOOKALIKE.search(text.replace(SLOT, ""))
    return match.group().strip() if match else ""


def _instance(
    category: str, number: int, row: TableRow, separators: str, groups: bool
) -> Instance | RowError:
    """Make the instance of a row, or give the first reason why there is none.

    `number` counts the filled rows, so that blank rows do not change an `item_id`.
    """
    if row.problem:
        return RowError(row.number, "", row.problem)
    cells = {name: row[name].strip() for name in COLUMNS}
    sentence = cells["sentence"]
    listed = cells["words"]
    has_slot = SLOT in sentence
    words = tuple(word.strip() for word in split(listed, separators) if word.strip())
    score = to_number(cells["score"])
    other = "" if has_slot else lookalike(sentence)
    instead = f" (it has {other!r} instead)" if other else ""
    # Without a slot, the list of words may be empty.
    optional = "" if groups or has_slot else "words"
    empty = next((name for name in COLUMNS if not cells[name] and name != optional), "")
    rules = (
        (empty, empty, "is empty"),
        (
            groups and not has_slot,
            "sentence",
            f"has no placeholder {SLOT}{instead}: {sentence[:40]!r}",
        ),
        (listed and not words, "words", f"holds no word: {listed[:200]!r}; separate words by `，`"),
        (len(set(words)) < len(words), "words", f"names a word twice: {listed[:200]!r}"),
        (not 0 <= score <= 10, "score", f"{cells['score'][:40]!r} is not a number from 0 to 10"),
    )
    for is_broken, column, what in rules:
        if is_broken:
            return RowError(row.number, column, what)
    # The score as a number, because 7.0 in a CSV file is 7 in a spreadsheet. No cell holds a NUL.
    text = "\0".join((cells | {"score": repr(score)}).values())
    fields: dict[str, Any] = cells | {"words": words, "score": score}
    content_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Instance(category, number, **fields, content_hash=content_hash, groups=groups)
