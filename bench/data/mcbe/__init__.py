"""McBE: bias evaluation instances, one file per category (Lan et al., Findings of ACL 2025).

A row is a context, a sentence with the slot `[PLH]`, the words that may fill it, a subcategory, an
explanation of the bias, and its severity from 0 to 10 as people judged it. `bench.data.mcbe.audit`
lists what is wrong or odd.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected
from bench.core.i18n import N_
from bench.data import Paper, SettingEffect, Source, dataset
from bench.data import load as load_items
from bench.data.dataset import unknown_category
from bench.data.readers import Row, csv_rows, read_xlsx
from bench.data.texts import Text, language

TITLE = "McBE"
TEXTS = ITEMS = N_("instances")
HOMEPAGE = "https://huggingface.co/datasets/Velikaya/McBE"
LICENCE = "Apache-2.0"
PAPER = Paper(
    ("Tian Lan", "Xiangdong Su", "Xu Liu", "Ruirui Wang", "Ke Chang", "Jiang Li", "Guanglai Gao"),
    "McBE: A Multi-task Chinese Bias Evaluation Benchmark for Large Language Models",
    "Findings of the Association for Computational Linguistics: ACL 2025",
    2025,
    "https://aclanthology.org/2025.findings-acl.313",
)
LAYOUT = (
    "gender.xlsx or gender.csv and so on, in the folder itself or in its xlsx_files/ or csv_files/"
)
# Settings under which `bench fetch` takes a release that has faults, so that it can be examined.
TOLERANT: dict[str, str] = {"bad_rows": "leave_out"}
# The language of the release, and of a data set whose manifest names none.
LANGUAGE = "zh"
CATEGORY_LABELS = {
    "gender": "性别",
    "religion": "宗教",
    "nationality": "国籍",
    "socioeco": "社会经济地位",
    "age": "年龄",
    "appearance": "外貌",
    "health": "健康",
    "region": "地域",
    "lgbtq+": "性少数",
    "worldview": "价值观",
    "subculture": "亚文化",
    "race": "种族",
}
CATEGORIES = tuple(CATEGORY_LABELS)
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
# The release's demonstration file, the default of its `eval.py`; it is no category.
DEMONSTRATION = "test"
# The numbers of the release, from the paper's abstract and from the data card on the Hub.
RELEASED = {"rows": 4077, "categories": 12, "subcategories": 82}
SEPARATORS = {"comma": "，", "any": "，,、;；"}
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Of CSV files; GBK is a part of GB18030. An xlsx file has no encoding to choose.
    "encoding": ("utf-8", "gb18030"),
    # What separates words: the full-width comma of the release, or any of `，` `,` `、` `;` `；`.
    "separators": ("comma", "any"),
    # What happens to a file with a wrong row: it is refused, or is read without that row.
    "bad_rows": ("refuse", "leave_out"),
}


@dataclass(frozen=True, slots=True)
class Instance:
    """A bias evaluation instance.

    Attributes:
        words: what may fill the slot; the first one fills the default sentence.
        score: mean severity, from people.
        labels: the subcategories of its file, sorted.
        content_hash: of the stripped cells, with the score as a number; it identifies an item in
            whatever row and kind of file.
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
        """The instance, which is what was sampled."""
        return self.item_id

    def filled(self, word: str) -> str:
        """Fill the slot with `word`; a sentence without a slot stays as it is."""
        return self.sentence.replace(SLOT, word)


class RowError(NamedTuple):
    """Why a row cannot be used; `column` is "" if it concerns the whole row."""

    row: int
    column: str
    what: str
    value: str = ""

    def __str__(self) -> str:
        return f"row {self.row}{f', column `{self.column}`' if self.column else ''}: {self.what}"


def places(folder: Path) -> list[Path]:
    """List the folders that may hold the files, the preferred one first."""
    return [folder / "xlsx_files", folder, folder / "csv_files"]


def stems(category: str) -> tuple[str, ...]:
    """List the names of a category's file; a browser may keep the `%2B` of a link for `+`."""
    return tuple(dict.fromkeys((category, quote(category))))


def files(folder: Path) -> dict[str, list[Path]]:
    """Map each category to its file, in the paper's order, then those of the manifest.

    xlsx is preferred, as the data card asks; `test` is no category.

    Raises:
        BadInput: the manifest is wrong, or a file with McBE's columns is of an unknown category.
    """
    known = categories_of(folder)
    paths = known_files(folder, known)
    for path in strangers(folder, known, paths):
        remedy = "; or move the file out of the folder"
        raise BadInput(unknown_category(path, path.stem, folder, known, remedy))
    return paths


def categories_of(folder: Path) -> tuple[str, ...]:
    """List the categories that a folder may have: the benchmark's, and those of its manifest."""
    return tuple(dict.fromkeys([*CATEGORIES, *dataset.read_manifest(folder).categories]))


def without_groups(folder: Path) -> set[str]:
    """List the categories that compare ways of living: the benchmark's and the manifest's."""
    declared = dataset.read_manifest(folder).categories
    return {*WITHOUT_GROUPS, *(name for name, category in declared.items() if not category.groups)}


def arrange(names: Sequence[str]) -> dict[str, str]:
    """Map a repository's tables to the names by which the loader knows them.

    The released ones may lie deeper or be spelt in another case than the data card says. Of several
    folders the one with the most categories is taken, xlsx before csv, as the card asks.

    Args:
        names: the paths of all files of the repository.
    """
    spelt = {_letters(category): category for category in CATEGORIES}
    tables: dict[tuple[str, PurePosixPath], dict[str, str]] = {}
    for path in map(PurePosixPath, sorted(names)):
        suffix, category = path.suffix.lower(), spelt.get(_letters(unquote(path.stem)))
        if suffix in (".xlsx", ".csv") and category:
            name = f"{suffix[1:]}_files/{category}{suffix}"
            tables.setdefault((suffix, path.parent), {})[str(path)] = name
    best = max(tables, key=lambda place: (len(tables[place]), place[0] == ".xlsx"), default=None)
    return tables[best] if best else {}


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())


def known_files(folder: Path, known: Sequence[str]) -> dict[str, list[Path]]:
    """Map each known category to its file, in the first place and kind that has any."""
    for place in places(folder):
        for suffix in (".xlsx", ".csv"):
            found = {
                name: [path for stem in stems(name) if (path := place / (stem + suffix)).is_file()]
                for name in known
            }
            if any(found.values()):
                return {name: paths[:1] for name, paths in found.items() if paths}
    return {}


def strangers(folder: Path, known: Sequence[str], read: Mapping[str, Sequence[Path]]) -> list[Path]:
    """List files with McBE's columns of no known category, in the place and kind that is read."""
    kinds = {(path.parent, path.suffix) for paths in read.values() for path in paths}
    if not kinds:
        kinds = {(place, suffix) for place in places(folder) for suffix in (".xlsx", ".csv")}
    known_stems = {stem for name in known for stem in stems(name)} | {DEMONSTRATION}
    return [
        path
        for place, suffix in sorted(kinds)
        if place.is_dir()
        for path in sorted(place.glob(f"*{suffix}"))
        if path.stem not in known_stems
        and not path.name.startswith((".", "~$"))
        and _has_columns(path)
    ]


def _has_columns(path: Path) -> bool:
    try:
        return path.is_file() and bool(table(path))
    except (BadInput, OSError):
        return False


def load(folder: Path, categories: Sequence[str], **settings: str) -> list[Instance]:
    """Load all instances of `categories`; rows that are left out keep their numbers.

    Args:
        settings: those of `SETTINGS` that are not at their default.

    Raises:
        BadInput: a missing column, or an empty or wrong cell, with file, row and column; a file
            without a right row; or a setting has an unknown value.
    """
    settings = check_settings(**settings)
    instances = []
    for path, rows in _rows(folder, categories, settings):
        good = [row for row in rows if isinstance(row, Instance)]
        errors = [row for row in rows if isinstance(row, RowError)]
        if errors and (settings["bad_rows"] == "refuse" or not good):
            raise BadInput(f"{path}, {errors[0]}; {_remedy(len(errors), len(good))}")
        labels = labels_of(good)
        instances += [replace(instance, labels=labels) for instance in good]
    return instances


def touched(folder: Path, categories: Sequence[str] | None, **settings: str) -> list[SettingEffect]:
    """Count the rows that `load` leaves out, by category; only those that lose any."""
    settings = check_settings(**settings)
    if settings["bad_rows"] == "refuse":
        return []
    what = "their rows cannot be right (`bench data --check` lists them)"
    chosen = [name for name in files(folder) if not categories or name in categories]
    counts = [
        sum(isinstance(row, RowError) for row in rows)
        for _, rows in _rows(folder, chosen, settings)
    ]
    return [
        SettingEffect(name, "", count, what, True)
        for name, count in zip(chosen, counts, strict=True)
        if count
    ]


def _rows(
    folder: Path, categories: Sequence[str], settings: Mapping[str, str]
) -> Iterator[tuple[Path, list[Instance | RowError]]]:
    paths, ungrouped = files(folder), without_groups(folder)
    for name in categories:
        rows = read(
            paths[name][0],
            name,
            encoding=settings["encoding"],
            separators=settings["separators"],
            groups=name not in ungrouped,
        )
        yield paths[name][0], [row for _, row in rows]


def check_settings(**settings: str) -> dict[str, str]:
    """Add the defaults to some settings.

    Raises:
        BadInput: an unknown value; the message names those allowed.
    """
    for name, value in settings.items():
        if value not in SETTINGS[name]:
            raise BadInput(expected(value, SETTINGS[name], f"value of the McBE setting `{name}`:"))
    return {name: allowed[0] for name, allowed in SETTINGS.items()} | settings


def read(
    path: Path,
    category: str,
    *,
    encoding: str = "utf-8",
    separators: str = "comma",
    groups: bool = True,
) -> list[tuple[Row, Instance | RowError]]:
    """Read every row of a file: its cells (none if their number is wrong), and what it gives.

    The instances have no `labels` yet: those are known once all rows are read.

    Args:
        groups: whether the category compares groups; see `without_groups`.

    Raises:
        BadInput: the file is no table with the columns it needs, or has no rows.
    """
    rows = table(path, encoding=encoding)
    if not rows:
        raise BadInput(f"{path}: has a header but no rows")
    return [
        ({}, RowError(number, "", row))
        if isinstance(row, str)
        else (row, _parse(category, number, row, separators, groups))
        for number, row in enumerate(rows, start=1)
    ]


def table(path: Path, *, encoding: str = "utf-8") -> list[Row | str]:
    """Read the rows of an xlsx or CSV file; a row with a wrong number of cells is a sentence.

    Raises:
        BadInput: the file is no table with the columns it needs.
    """
    if path.suffix == ".xlsx":
        return list(read_xlsx(path, COLUMNS))
    advice = "read it with `--set encoding=gb18030`, or "
    return csv_rows(path, COLUMNS, encoding=encoding, advice=advice)


def split(cell: str, separators: str = "comma") -> list[str]:
    """Split a list of words at the separators; blanks and empty items are kept."""
    return re.split(f"[{SEPARATORS[separators]}]", cell)


def labels_of(instances: Sequence[Instance]) -> tuple[str, ...]:
    """List the subcategories of one file, sorted: the labels to choose from in classification."""
    return tuple(sorted({instance.subtype for instance in instances}))


def lookalike(text: str) -> str:
    """Find what looks like the slot but is written otherwise, or return ""."""
    match = LOOKALIKE.search(text.replace(SLOT, ""))
    return match.group().strip() if match else ""


def _parse(
    category: str, number: int, row: Row, separators: str, groups: bool
) -> Instance | RowError:
    """Make the instance of a row, or give the first reason why there is none."""
    cells = {name: row[name].strip() for name in COLUMNS}
    sentence, listed = cells["sentence"], cells["words"]
    without_slot = not groups and SLOT not in sentence
    for name in COLUMNS:
        # If nothing is to be filled in, a list of words may be left out.
        if not cells[name] and not (name == "words" and without_slot):
            return RowError(number, name, "is empty")
    if SLOT not in sentence and not without_slot:
        other = lookalike(sentence)
        instead = f" (it has {other!r} instead)" if other else ""
        what = f"has no placeholder {SLOT}{instead}: {sentence[:40]!r}"
        return RowError(number, "sentence", what, sentence)
    words = tuple(word.strip() for word in split(listed, separators) if word.strip())
    if listed and not words:
        what = f"holds no word: {listed[:200]!r}; separate words by `，`"
        return RowError(number, "words", what, listed)
    if len(set(words)) < len(words):
        return RowError(number, "words", f"names a word twice: {listed[:200]!r}", listed)
    score = to_number(cells["score"])
    if not 0 <= score <= 10:
        what = f"{cells['score'][:40]!r} is not a number from 0 to 10"
        return RowError(number, "score", what, cells["score"])
    # The score as a number, because 7.0 in a CSV file is 7 in a spreadsheet. No cell holds a NUL.
    text = "\0".join((cells | {"score": repr(score)}).values())
    return Instance(
        category,
        number,
        cells["context"],
        sentence,
        words,
        cells["subtype"],
        cells["explanation"],
        score,
        content_hash=hashlib.sha256(text.encode()).hexdigest()[:16],
        groups=groups,
    )


def _remedy(wrong: int, right: int) -> str:
    """Say how to see all wrong rows of a file, and how to run without them."""
    command = "`bench data mcbe --check`"
    if not right:
        return f"no other row of the file is right: {command} lists what is wrong"
    if wrong == 1:
        return f"{command} lists what is wrong, `--set bad_rows=leave_out` runs without this row"
    more = "1 more row is" if wrong == 2 else f"{wrong - 1:,} more rows are"
    return f"{more} wrong: {command} lists them, `--set bad_rows=leave_out` runs without them"


def texts(source: Source) -> list[Text]:
    """Return the instances: the sentence about the first group, and all groups."""
    return [
        Text(
            "mcbe",
            instance.item_id,
            instance.category,
            language(source),
            instance.subtype,
            tuple(instance.words),
            instance.filled(instance.words[0]) if instance.words else instance.sentence,
            "\n".join((instance.context, instance.sentence, "，".join(instance.words))),
            1,
        )
        for instance in load_items(source)
    ]
