"""What is wrong or odd in a folder of McBE files: every refused row, everything to look at, and the release's numbers.

The rules by which a row is refused are the loader's own; here they are only listed.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path

import pandas as pd

from bench.core.cells import FORMULA, to_number
from bench.core.errors import BadInput, plain
from bench.data import audit, mcbe
from bench.data.audit import Finding, show_cell
from bench.data.dataset import MANIFEST, unknown_category
from bench.data.mcbe import SLOT, Fault, Instance
from bench.data.readers import Row

PLAIN_NUMBER = re.compile(r"(0|[1-9]\d?)(\.\d+)?", re.ASCII)
TABLES = (".csv", ".xlsx", ".xls", ".ods", ".tsv", ".json", ".jsonl")
# Row counts that the published scores allow: a score of a category of N rows is k/N. A guess, not a fact of the release.
MULTIPLES = {"race": 150, "health": 135, "appearance": 235}


@dataclass
class Seen:
    """Earlier rows of the folder: places by content hash, and the first row by sentence and words."""

    hashes: dict[str, str] = field(default_factory=dict)
    templates: dict[tuple[str, tuple[str, ...]], tuple[str, Instance]] = field(default_factory=dict)


def check(
    folder: Path, *, encoding: str = "utf-8", separators: str = "comma", bad_rows: str = "refuse"
) -> pd.DataFrame:
    """Everything found in `folder`, a row a finding: `file`, `row`, `column`, `kind`, `what`, `value`.

    `kind` is `refused` (a row or a file that `load` refuses), `odd` (read, but look at it) or `count` (the folder's
    numbers against the release's). `row` is 0 and `column` "" where a finding concerns a whole file or the folder.
    `bad_rows` makes no difference.

    Raises:
        BadInput: a setting has a value that is not in `mcbe.SETTINGS`.
    """
    mcbe.check_settings(encoding=encoding, separators=separators, bad_rows=bad_rows)
    folder = Path(folder)
    return audit.to_table(_check(folder, encoding, separators))


def _check(folder: Path, encoding: str, separators: str) -> Iterator[Finding]:
    try:
        known, alone = mcbe.categories_of(folder), mcbe.without_groups(folder)
    except BadInput as error:
        yield Finding(MANIFEST, 0, "", "refused", audit.error_reason(folder / MANIFEST, error))
        known, alone = mcbe.CATEGORIES, set(mcbe.WITHOUT_GROUPS)
    found = mcbe.known_files(folder, known)
    if not found:
        what = f"the folder holds no data of {mcbe.TITLE}; expected {mcbe.LAYOUT}"
        yield Finding("", 0, "", "refused", what)
    seen = Seen()
    counts: dict[str, int] = {}
    good: list[Instance] = []
    resplit = 0
    for category, (path, *_) in found.items():
        name = audit.file_name(path, folder)
        try:
            rows = mcbe.read(
                path,
                category,
                encoding=encoding,
                separators=separators,
                groups=category not in alone,
            )
        except (BadInput, OSError) as error:
            yield Finding(name, 0, "", "refused", audit.error_reason(path, error))
            continue
        instances = [one for _, one in rows if isinstance(one, Instance)]
        yield from _file(name, category, rows, separators, seen, category not in alone)
        yield from _labels(name, instances)
        counts[category] = len(rows)
        good += instances
        resplit += sum(_words(cells, "comma") != _words(cells, "any") for cells, _ in rows)
    yield from _others(folder, known, found, counts, encoding)
    if resplit:
        what = f"`--set separators=any` reads {_rows(resplit)} of the folder otherwise than the default does"
        yield Finding("", 0, "words", "odd", what, str(resplit))
    yield from _counts(good, sum(counts.values()) - len(good))


def _counts(good: Sequence[Instance], refused: int) -> Iterator[Finding]:
    """The folder's numbers, of the rows that can be read; against the release's where it has categories of that."""
    beside = any(one.category in mcbe.CATEGORIES for one in good)
    numbers = {
        "rows": len(good),
        "categories": len({one.category for one in good}),
        "subcategories": len({(one.category, one.subtype) for one in good}),
    }
    for name, found in numbers.items():
        more = f" and {refused:,} refused" if name == "rows" and refused else ""
        release = f", the release has {mcbe.RELEASED[name]:,}" if beside else ""
        what = f"{found:,} {name} found{more}{release}"
        yield Finding("", 0, "", "count", what, str(found))


def _file(
    name: str,
    category: str,
    rows: Sequence[tuple[Row, Instance | Fault]],
    separators: str,
    seen: Seen,
    groups: bool,
) -> Iterator[Finding]:
    """What is refused or odd in a file, but for its labels."""
    yield from _columns(name, rows)
    if category in MULTIPLES and len(rows) % MULTIPLES[category]:
        what = f"has {_rows(len(rows))}, no multiple of {MULTIPLES[category]} as the published scores suggest"
        yield Finding(name, 0, "", "odd", what, str(len(rows)))
    for row, (cells, one) in enumerate(rows, start=1):
        if isinstance(one, Fault):
            yield Finding(name, row, one.column, "refused", one.what, show_cell(one.value))
        for column, what, value in _cells(cells, separators, groups):
            yield Finding(name, row, column, "odd", what, show_cell(value))
        if isinstance(one, Instance):
            yield from _instance(name, one, seen)


def _columns(name: str, rows: Sequence[tuple[Row, object]]) -> Iterator[Finding]:
    """Columns that the loader does not read."""
    header = next((cells for cells, _ in rows if cells), {})
    for column in header:
        if column not in mcbe.COLUMNS:
            yield Finding(
                name, 0, plain(column), "odd", "is a column that is not read", show_cell(column)
            )


def _cells(cells: Row, separators: str, groups: bool) -> Iterator[tuple[str, str, str]]:
    """(column, what, cell) of each odd cell, whether or not the row is refused."""
    for column, cell in cells.items():
        for what in _characters(cell):
            yield plain(column), what, cell
        if column not in mcbe.COLUMNS:
            continue
        text = cell.strip()
        if cell != text:
            yield column, "has blanks around it, which are dropped", cell
        if column != "score" and text.startswith(FORMULA):
            yield (
                column,
                f"begins with `{text[0]}`, which a spreadsheet may take for a formula",
                cell,
            )
        if column in ("context", "words") and SLOT in text:
            yield column, f"holds the placeholder {SLOT}, which is filled in `sentence` alone", cell
        other = mcbe.lookalike(text) if column in ("context", "sentence", "words") else ""
        if other:
            yield column, f"holds {other!r}, which looks like the placeholder {SLOT}", cell
    if not cells:  # their number is wrong
        return
    if not groups and SLOT not in cells["sentence"]:
        yield (
            "sentence",
            f"has no placeholder {SLOT}, so that no word is filled in",
            cells["sentence"],
        )
    yield from (("score", what, value) for what, value in _score(cells["score"].strip()))
    yield from (("words", what, value) for what, value in _list(cells["words"].strip(), separators))


def _score(cell: str) -> Iterator[tuple[str, str]]:
    """(what, cell) of what is odd in how a score is written."""
    if unicodedata.normalize("NFKC", cell) != cell:
        yield "is written in full-width characters", cell
    elif not math.isnan(to_number(cell)) and not PLAIN_NUMBER.fullmatch(cell):
        yield "is not written as a plain number, such as 4.5", cell


def _list(cell: str, separators: str) -> Iterator[tuple[str, str]]:
    """(what, cell or word) of what is odd in how a list of words is written."""
    if not cell:
        return
    items = mcbe.split(cell, separators)
    if not all(item.strip() for item in items):
        yield "has an empty item in its list of words, which is dropped", cell
    for item in items:
        if item.strip() and item != item.strip():
            yield "has blanks around a word, which are dropped", item
    for item in items[1:]:  # the first one begins the cell, and is told with it
        if item.strip().startswith(FORMULA):
            sign = item.strip()[0]
            yield (
                f"has a word with `{sign}` first, which a spreadsheet may take for a formula",
                item,
            )
    comma, any_ = (len(mcbe.split(cell, name)) for name in ("comma", "any"))
    if comma != any_:
        yield f"is split into {comma} at `，` alone, and into {any_} at any separator", cell


def _instance(name: str, one: Instance, seen: Seen) -> Iterator[Finding]:
    """What is odd in a row that is read: beside the rows before it, and in its words."""
    place = f"{name}, row {one.row}"
    first, earlier = seen.templates.setdefault((one.sentence, one.words), (place, one))
    if one.content_hash in seen.hashes:
        what = f"repeats {seen.hashes[one.content_hash]}"
        yield Finding(name, one.row, "", "odd", what, show_cell(one.sentence))
    elif earlier is not one:
        columns = ("context", "subtype", "explanation", "score")
        differing = [name for name in columns if getattr(one, name) != getattr(earlier, name)]
        other = f"with another {', '.join(differing)}" if differing else "written otherwise"
        what = f"repeats the sentence and the words of {first} {other}"
        yield Finding(name, one.row, "sentence", "odd", what, show_cell(one.sentence))
    seen.hashes.setdefault(one.content_hash, place)
    if len(one.words) == 1 and one.groups:
        what = "lists one word, so that the row has no place in pc and ss"
        yield Finding(name, one.row, "words", "odd", what, show_cell(one.words[0]))
    for part, whole in permutations(one.words, 2):
        if part in whole:
            what = f"has a word that is part of another, {show_cell(whole)}"
            yield Finding(name, one.row, "words", "odd", what, show_cell(part))


def _labels(name: str, instances: Sequence[Instance]) -> Iterator[Finding]:
    """What is odd in the labels of a file, taken together."""
    labels = mcbe.labels_of(instances)
    for part, whole in permutations(labels, 2):
        if part in whole:
            what = f"is a label that is part of another, {show_cell(whole)}: the released code takes one for the other"
            yield Finding(name, 0, "subtype", "odd", what, show_cell(part))
    alike = defaultdict(list)
    for label in labels:
        alike["".join(unicodedata.normalize("NFKC", label).casefold().split())].append(label)
    for group in alike.values():
        for one, other in combinations(group, 2):
            what = f"is a label that differs from {show_cell(other)} in case, width or blanks alone"
            yield Finding(name, 0, "subtype", "odd", what, show_cell(one))
    uses = Counter(instance.subtype for instance in instances)
    for instance in instances:
        label = instance.subtype
        if uses[label] == 1:
            what = "is a label that no other row has"
            yield Finding(name, instance.row, "subtype", "odd", what, show_cell(label))


def _others(
    folder: Path,
    categories: Sequence[str],
    found: dict[str, list[Path]],
    counts: dict[str, int],
    encoding: str,
) -> Iterator[Finding]:
    """Files that are not read, or keep the folder from being read, and categories that are missing."""
    used = {path for paths in found.values() for path in paths}
    known = {stem: category for category in categories for stem in mcbe.stems(category)}
    foreign = mcbe.strangers(folder, categories, found)
    for path in [path for path in _tables(mcbe.places(folder)) if path not in used]:
        stem, value = path.stem, ""
        if path in foreign:
            what = audit.error_reason(
                path, BadInput(unknown_category(path, stem, folder, categories))
            )
            yield Finding(audit.file_name(path, folder), 0, "", "refused", what, show_cell(stem))
            continue
        if stem in known and path.suffix in (".csv", ".xlsx"):
            what, value = _second(path, known[stem], found, counts, encoding, folder)
        elif stem == mcbe.DEMONSTRATION:
            what = "is the demonstration file of the release, which is not counted"
        else:
            meant = known.get(stem.strip().lower())
            named = f"; if it is {meant}, name it {meant}.xlsx or {meant}.csv" if meant else ""
            what, value = f"is no category of {mcbe.TITLE}, and is not read{named}", show_cell(stem)
        if what:
            yield Finding(audit.file_name(path, folder), 0, "", "odd", what, value)
    # A set of new categories alone lacks none.
    for category in categories if set(found) & set(mcbe.CATEGORIES) else ():
        if category not in found:
            yield Finding(
                "",
                0,
                "",
                "odd",
                f"category {category} has no file that is read",
                show_cell(category),
            )


def _second(
    path: Path,
    category: str,
    found: dict[str, list[Path]],
    counts: dict[str, int],
    encoding: str,
    folder: Path,
) -> tuple[str, str]:
    """(what, value) of a file of a category that is not read; nothing where another is, with as many rows."""
    read = audit.file_name(found.get(category, next(iter(found.values())))[0], folder)
    if category not in found:
        return f"is not read, because files such as {read} go first", ""
    try:
        rows = len(mcbe.table(path, encoding=encoding))
    except (BadInput, OSError) as error:
        return (
            f"cannot be compared with {read}, which is read: {audit.error_reason(path, error)}",
            "",
        )
    if rows == counts.get(category, rows):
        return "", ""
    return f"has {_rows(rows)}, but {read}, which is read, has {counts[category]:,}", str(rows)


def _tables(places: Iterable[Path]) -> list[Path]:
    folders = [place for place in places if place.is_dir()]
    return [
        path
        for place in folders
        for path in sorted(place.iterdir())
        if path.suffix.lower() in TABLES and path.is_file()
    ]


def _characters(cell: str) -> Iterator[str]:
    """What is said about characters that cannot be seen, or that stand for broken ones."""
    if "\x1b" in cell:
        yield "holds a terminal escape sequence"
    odd = sorted(
        {char for char in cell if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")} - {"\x1b"}
    )
    if odd:
        yield f"holds control or invisible characters: {', '.join(f'U+{ord(char):04X}' for char in odd[:8])}"
    if "\ufffd" in cell:
        yield "holds U+FFFD, which stands for a character lost in a conversion"


def _words(cells: Row, separators: str) -> list[str]:
    items = mcbe.split(cells["words"], separators) if cells else []
    return [item.strip() for item in items if item.strip()]


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
