"""McBE: bias evaluation instances, one file a category (Lan et al., Findings of ACL 2025).

A row is a context, a sentence with the slot `[PLH]`, the words that may fill it, a subcategory, an explanation of
the bias, and its severity from 0 to 10 as people judged it. `bench.data.mcbe.audit` lists all that is wrong or odd.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
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
# Settings under which `bench fetch` takes a release that has faults, so that it can be looked at.
TOLERANT: dict[str, str] = {"bad_rows": "leave_out"}
# The language of the release, and of a set whose manifest names none.
LANGUAGE = "zh"
CATEGORIES = (
    "gender",
    "religion",
    "nationality",
    "socioeco",
    "age",
    "appearance",
    "health",
    "region",
    "lgbtq+",
    "worldview",
    "subculture",
    "race",
)
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
COLUMNS = ("context", "sentence", "words", "subtype", "explanation", "score")
SLOT = "[PLH]"
# Slots as people mistype them: other brackets, none, small or full-width letters, letters in another order.
LOOKALIKE = re.compile(
    r"[\[［【〔「{｛(（<＜]?\s{0,9}[pｐ][lｌ][hｈ]\s{0,9}[\]］】〕」}｝)）>＞]?"
    r"|[\[［【〔「{｛(（<＜]\s{0,9}(?:phl|lph|lhp|hpl|hlp)\s{0,9}[\]］】〕」}｝)）>＞]",
    re.IGNORECASE,
)
# Worldview compares ways of living, not groups; the paper leaves it out of preference and scenario tasks.
WITHOUT_GROUPS = ("worldview",)
# The release's demonstration file, the default of its `eval.py`; it is no category and counts for nothing.
DEMONSTRATION = "test"
# The numbers of the release, from the paper's abstract and from the data card on the Hub.
RELEASED = {"rows": 4077, "categories": 12, "subcategories": 82}
SEPARATORS = {"comma": "，", "any": "，,、;；"}
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Of CSV files; GBK is a part of GB18030. An xlsx file has no encoding to choose.
    "encoding": ("utf-8", "gb18030"),
    # What stands between the words of a list: the full-width comma of the release, or any of `，` `,` `、` `;` `；`.
    "separators": ("comma", "any"),
    # What happens to a file with a wrong row: it is refused, or is read without that row.
    "bad_rows": ("refuse", "leave_out"),
}


@dataclass(frozen=True, slots=True)
class Instance:
    """A bias evaluation instance. `words[0]` fills the default sentence; `score` is the mean of human severities.

    `labels` are the subcategories of its category's file, sorted; `content_hash` is that of the six cells, stripped and
    the score as a number, so that an item is recognised in whatever row and kind of file it stands. `groups` says whether
    its category compares groups.
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
        """What was sampled: the instance."""
        return self.item_id

    def filled(self, word: str) -> str:
        """The sentence about `word`; the sentence as it is where it has no slot."""
        return self.sentence.replace(SLOT, word)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row cannot be used; `column` is "" where it concerns the whole row. As a text: place and reason."""

    row: int
    column: str
    what: str
    value: str = ""

    def __str__(self) -> str:
        return f"row {self.row}{f', column `{self.column}`' if self.column else ''}: {self.what}"


def places(folder: Path) -> list[Path]:
    """The folders that may hold the files, the preferred one first."""
    return [folder / "xlsx_files", folder, folder / "csv_files"]


def stems(category: str) -> tuple[str, ...]:
    """The names that a category's file may have; a browser may keep the `%2B` of a download link for `+`."""
    return tuple(dict.fromkeys((category, quote(category))))


def files(folder: Path) -> dict[str, list[Path]]:
    """Category to its file, in the paper's order, behind them those of the manifest. xlsx is preferred, as the data card
    asks; `test` is no category.

    Raises:
        BadInput: the manifest is wrong, or a file with McBE's columns beside those that are read is of no category that
            the benchmark or the manifest knows.
    """
    known = categories_of(folder)
    found = known_files(folder, known)
    for path in strangers(folder, known, found):
        raise BadInput(
            unknown_category(path, path.stem, folder, known, "; or move the file out of the folder")
        )
    return found


def categories_of(folder: Path) -> tuple[str, ...]:
    """The categories that a folder may have: the benchmark's, and those of its manifest."""
    return tuple(dict.fromkeys([*CATEGORIES, *dataset.read_manifest(folder).categories]))


def without_groups(folder: Path) -> set[str]:
    """The categories that compare ways of living and not groups: the benchmark's, and those of the folder's manifest."""
    told = dataset.read_manifest(folder).categories
    return {*WITHOUT_GROUPS, *(name for name, one in told.items() if not one.groups)}


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
    """Category to its file, of the categories that are known."""
    for place in places(folder):
        for suffix in (".xlsx", ".csv"):
            candidates = {name: [place / (stem + suffix) for stem in stems(name)] for name in known}
            found = {
                name: [path for path in paths if path.is_file()]
                for name, paths in candidates.items()
            }
            if any(found.values()):
                return {name: paths[:1] for name, paths in found.items() if paths}
    return {}


def strangers(
    folder: Path, known: Sequence[str], found: Mapping[str, Sequence[Path]]
) -> list[Path]:
    """Files with McBE's columns that are of no known category, of the kind and in the place of those that are read."""
    read = [path for paths in found.values() for path in paths]
    kinds = (
        {(read[0].parent, read[0].suffix)}
        if read
        else {(place, kind) for place in places(folder) for kind in (".xlsx", ".csv")}
    )
    stems_known = {stem for name in known for stem in stems(name)} | {DEMONSTRATION}
    return [
        path
        for place, suffix in sorted(kinds)
        if place.is_dir()
        for path in sorted(place.glob(f"*{suffix}"))
        if path.stem not in stems_known
        and not path.name.startswith((".", "~$"))
        and _has_columns(path)
    ]


def _has_columns(path: Path) -> bool:
    try:
        return path.is_file() and bool(table(path))
    except (BadInput, OSError):
        return False


def load(
    folder: Path,
    categories: Sequence[str],
    *,
    encoding: str = "utf-8",
    separators: str = "comma",
    bad_rows: str = "refuse",
) -> list[Instance]:
    """All instances of `categories`; with `bad_rows="leave_out"` without the wrong rows, whose numbers stay unused.

    Raises:
        BadInput: a missing column, an empty or wrong cell, with file, row and column; a file without a right row; or
            a setting has a value that is not in `SETTINGS`.
    """
    check_settings(encoding=encoding, separators=separators, bad_rows=bad_rows)
    found, alone = files(folder), without_groups(folder)
    instances = []
    for name in categories:
        path = found[name][0]
        rows = [
            one
            for _, one in read(
                path, name, encoding=encoding, separators=separators, groups=name not in alone
            )
        ]
        good = [one for one in rows if isinstance(one, Instance)]
        faults = [one for one in rows if isinstance(one, Fault)]
        if faults and (bad_rows == "refuse" or not good):
            raise BadInput(f"{path}, {faults[0]}; {_way_out(len(faults), len(good))}")
        labels = labels_of(good)
        instances += [replace(one, labels=labels) for one in good]
    return instances


def touched(
    folder: Path,
    categories: Sequence[str] | None,
    *,
    encoding: str = "utf-8",
    separators: str = "comma",
    bad_rows: str = "refuse",
) -> list[SettingEffect]:
    """How many rows `load` leaves out, by category; only those that lose any."""
    found, alone = ({} if bad_rows == "refuse" else files(folder)), without_groups(folder)
    counts = {
        name: sum(
            isinstance(one, Fault)
            for _, one in read(
                path, name, encoding=encoding, separators=separators, groups=name not in alone
            )
        )
        for name, (path,) in found.items()
        if not categories or name in categories
    }
    why = "their rows cannot be right (`bench data --check` lists them)"
    return [SettingEffect(name, "", count, why, True) for name, count in counts.items() if count]


def check_settings(**settings: str) -> None:
    """Refuse a value that a setting cannot have.

    Raises:
        BadInput: such a value; the message names those allowed.
    """
    for name, value in settings.items():
        if value not in SETTINGS[name]:
            raise BadInput(expected(value, SETTINGS[name], f"value of the McBE setting `{name}`:"))


def read(
    path: Path,
    category: str,
    *,
    encoding: str = "utf-8",
    separators: str = "comma",
    groups: bool = True,
) -> list[tuple[Row, Instance | Fault]]:
    """Every row of a file, in order: its cells as they stand (none where their number is wrong), and what it gives.

    `groups` says whether the category compares groups; see `without_groups`. The instances have no `labels` yet: those are known once all rows are read.

    Raises:
        BadInput: the file is no table with the columns it needs, or has no rows.
    """
    rows = table(path, encoding=encoding)
    if not rows:
        raise BadInput(f"{path}: has a header but no rows")
    return [
        ({}, Fault(number, "", row))
        if isinstance(row, str)
        else (row, _parse(category, number, row, separators, groups))
        for number, row in enumerate(rows, start=1)
    ]


def table(path: Path, *, encoding: str = "utf-8") -> list[Row | str]:
    """The rows of an xlsx or CSV file; a text in the place of a row says what is wrong with its number of cells.

    Raises:
        BadInput: the file is no table with the columns it needs.
    """
    if path.suffix == ".xlsx":
        return list(read_xlsx(path, COLUMNS))
    advice = "read it with `--set encoding=gb18030`, or "
    return csv_rows(path, COLUMNS, encoding=encoding, advice=advice)


def split(cell: str, separators: str = "comma") -> list[str]:
    """The items of a list of words as they stand between the separators, blanks and empty ones included."""
    return re.split(f"[{SEPARATORS[separators]}]", cell)


def labels_of(instances: Sequence[Instance]) -> tuple[str, ...]:
    """The subcategories of one file, sorted by code point: the labels to choose from in classification."""
    return tuple(sorted({one.subtype for one in instances}))


def lookalike(text: str) -> str:
    """What looks like the slot but is written otherwise, or ""."""
    found = LOOKALIKE.search(text.replace(SLOT, ""))
    return found.group().strip() if found else ""


def _parse(category: str, number: int, row: Row, separators: str, groups: bool) -> Instance | Fault:
    """The instance of a row, or the first reason why there is none."""
    cells = {name: row[name].strip() for name in COLUMNS}
    without_slot = not groups and SLOT not in cells["sentence"]
    for name in COLUMNS:
        # Where nothing is to be filled in, a list of words may be left out.
        if not cells[name] and not (name == "words" and without_slot):
            return Fault(number, name, "is empty")
    sentence, listed = cells["sentence"], cells["words"]
    if SLOT not in sentence and not without_slot:
        other = lookalike(sentence)
        instead = f" (it has {other!r} instead)" if other else ""
        return Fault(
            number, "sentence", f"has no placeholder {SLOT}{instead}: {sentence[:40]!r}", sentence
        )
    words = tuple(word.strip() for word in split(listed, separators) if word.strip())
    if listed and not words:
        return Fault(
            number, "words", f"holds no word: {listed[:200]!r}; separate words by `，`", listed
        )
    if len(set(words)) < len(words):
        return Fault(number, "words", f"names a word twice: {listed[:200]!r}", listed)
    score = to_number(cells["score"])
    if not 0 <= score <= 10:
        return Fault(
            number, "score", f"{cells['score'][:40]!r} is not a number from 0 to 10", cells["score"]
        )
    # The score as a number, because 7.0 in a CSV file is 7 in a spreadsheet. No cell can hold a NUL, so that cells
    # cannot run into one another.
    digest = hashlib.sha256(
        "\0".join((cells | {"score": repr(score)}).values()).encode()
    ).hexdigest()
    return Instance(
        category,
        number,
        cells["context"],
        sentence,
        words,
        cells["subtype"],
        cells["explanation"],
        score,
        content_hash=digest[:16],
        groups=groups,
    )


def _way_out(wrong: int, right: int) -> str:
    """The end of a refusal: how to see all wrong rows of the file, and how to run without them."""
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
