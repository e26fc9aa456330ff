"""Audit a McBE folder: list every refused row, everything odd, and the size next to the release's.

The rules by which a row is refused are the loader's own; here they are only listed.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path

import pandas as pd

from bench.core.cells import FORMULA, to_number
from bench.core.errors import BadInput, plain
from bench.data import audit, mcbe
from bench.data.audit import Finding, show_cell
from bench.data.dataset import MANIFEST, unknown_category
from bench.data.mcbe import SLOT, Instance, RowError
from bench.data.readers import Row

PLAIN_NUMBER = re.compile(r"(0|[1-9]\d?)(\.\d+)?", re.ASCII)
TABLES = (".csv", ".xlsx", ".xls", ".ods", ".tsv", ".json", ".jsonl")
# Row counts that the published scores allow, because a score of N rows is k/N. A guess, not a fact.
MULTIPLES = {"race": 150, "health": 135, "appearance": 235}


def check(
    folder: Path, *, encoding: str = "utf-8", separators: str = "comma", bad_rows: str = "refuse"
) -> pd.DataFrame:
    """List everything found in a folder.

    Args:
        encoding, separators: as in `mcbe.SETTINGS`.
        bad_rows: makes no difference.

    Returns:
        One row per finding: `file`, `row`, `column`, `kind`, `what`, `value`. `kind` is `refused`
        (a row or a file that the loader refuses), `odd` (read, but worth a look) or `count` (the
        folder's numbers next to the release's). `row` is 0 and `column` "" for a whole file or
        folder.

    Raises:
        BadInput: a setting has an unknown value.
    """
    mcbe.check_settings(encoding=encoding, separators=separators, bad_rows=bad_rows)
    return audit.to_table(_Audit(Path(folder), encoding, separators).findings())


class _Audit:
    """The audit of one folder, with what earlier files and rows tell about later ones."""

    def __init__(self, folder: Path, encoding: str, separators: str) -> None:
        self.folder, self.encoding, self.separators = folder, encoding, separators
        self.counts: dict[str, int] = {}
        self.instances: list[Instance] = []
        # Places by content hash, and the first instance by sentence and words with its place.
        self.hashes: dict[str, str] = {}
        self.templates: dict[tuple[str, tuple[str, ...]], tuple[str, Instance]] = {}

    def findings(self) -> Iterator[Finding]:
        """Audit file by file, then the folder."""
        known, ungrouped = mcbe.CATEGORIES, set(mcbe.WITHOUT_GROUPS)
        try:
            known, ungrouped = mcbe.categories_of(self.folder), mcbe.without_groups(self.folder)
        except BadInput as error:
            reason = audit.error_reason(self.folder / MANIFEST, error)
            yield Finding(MANIFEST, 0, "", "refused", reason)
        paths = mcbe.known_files(self.folder, known)
        if not paths:
            what = f"the folder holds no data of {mcbe.TITLE}; expected {mcbe.LAYOUT}"
            yield Finding("", 0, "", "refused", what)
        resplit = 0
        for category, (path, *_) in paths.items():
            groups = category not in ungrouped
            try:
                rows = mcbe.read(
                    path,
                    category,
                    encoding=self.encoding,
                    separators=self.separators,
                    groups=groups,
                )
            except (BadInput, OSError) as error:
                yield Finding(self._name(path), 0, "", "refused", audit.error_reason(path, error))
                continue
            yield from self._file(self._name(path), category, rows, groups)
            resplit += sum(_words(cells, "comma") != _words(cells, "any") for cells, _ in rows)
        yield from self._other_files(known, paths)
        if resplit:
            what = (
                f"`--set separators=any` reads {_rows(resplit)} of the folder otherwise than the "
                "default does"
            )
            yield Finding("", 0, "words", "odd", what, str(resplit))
        yield from self._numbers()

    def _name(self, path: Path) -> str:
        return audit.file_name(path, self.folder)

    def _file(
        self,
        name: str,
        category: str,
        rows: Sequence[tuple[Row, Instance | RowError]],
        groups: bool,
    ) -> Iterator[Finding]:
        for column in next((cells for cells, _ in rows if cells), {}):
            if column not in mcbe.COLUMNS:
                what = "is a column that is not read"
                yield Finding(name, 0, plain(column), "odd", what, show_cell(column))
        multiple = MULTIPLES.get(category, 1)
        if len(rows) % multiple:
            suggestion = f"no multiple of {multiple} as the published scores suggest"
            what = f"has {_rows(len(rows))}, {suggestion}"
            yield Finding(name, 0, "", "odd", what, str(len(rows)))
        for row, (cells, instance) in enumerate(rows, start=1):
            if isinstance(instance, RowError):
                column, what, value = instance.column, instance.what, show_cell(instance.value)
                yield Finding(name, row, column, "refused", what, value)
            for column, what, value in _cells(cells, self.separators, groups):
                yield Finding(name, row, column, "odd", what, show_cell(value))
            if isinstance(instance, Instance):
                for column, what, value in self._instance(name, instance):
                    yield Finding(name, row, column, "odd", what, show_cell(value))
        instances = [instance for _, instance in rows if isinstance(instance, Instance)]
        for row, what, value in _labels(instances):
            yield Finding(name, row, "subtype", "odd", what, show_cell(value))
        self.counts[category] = len(rows)
        self.instances += instances

    def _instance(self, name: str, instance: Instance) -> Iterator[tuple[str, str, str]]:
        """Find what is odd in a row next to the rows before it, and in its words."""
        place = f"{name}, row {instance.row}"
        key = (instance.sentence, instance.words)
        first, earlier = self.templates.setdefault(key, (place, instance))
        if instance.content_hash in self.hashes:
            yield "", f"repeats {self.hashes[instance.content_hash]}", instance.sentence
        elif earlier is not instance:
            columns = ("context", "subtype", "explanation", "score")
            differing = [c for c in columns if getattr(instance, c) != getattr(earlier, c)]
            other = f"with another {', '.join(differing)}" if differing else "written otherwise"
            what = f"repeats the sentence and the words of {first} {other}"
            yield "sentence", what, instance.sentence
        self.hashes.setdefault(instance.content_hash, place)
        if len(instance.words) == 1 and instance.groups:
            what = "lists one word, so that the row has no place in pc and ss"
            yield "words", what, instance.words[0]
        for part, longer in permutations(instance.words, 2):
            if part in longer:
                yield "words", f"has a word that is part of another, {show_cell(longer)}", part

    def _other_files(
        self, categories: Sequence[str], paths: Mapping[str, list[Path]]
    ) -> Iterator[Finding]:
        """Report files that are not read, or that stop the loader, and missing categories."""
        used = {path for of_category in paths.values() for path in of_category}
        known = {stem: category for category in categories for stem in mcbe.stems(category)}
        foreign = mcbe.strangers(self.folder, categories, paths)
        for path in _tables(self.folder):
            stem, value = path.stem, ""
            if path in used:
                continue
            if path in foreign:
                error = BadInput(unknown_category(path, stem, self.folder, categories))
                what = audit.error_reason(path, error)
                yield Finding(self._name(path), 0, "", "refused", what, show_cell(stem))
                continue
            if stem in known and path.suffix in (".csv", ".xlsx"):
                what, value = self._second(path, known[stem], paths)
            elif stem == mcbe.DEMONSTRATION:
                what = "is the demonstration file of the release, which is not counted"
            else:
                meant = known.get(stem.strip().lower())
                named = f"; if it is {meant}, name it {meant}.xlsx or {meant}.csv" if meant else ""
                what = f"is no category of {mcbe.TITLE}, and is not read{named}"
                value = show_cell(stem)
            if what:
                yield Finding(self._name(path), 0, "", "odd", what, value)
        # A set of new categories alone lacks none.
        for category in categories if set(paths) & set(mcbe.CATEGORIES) else ():
            if category not in paths:
                what = f"category {category} has no file that is read"
                yield Finding("", 0, "", "odd", what, show_cell(category))

    def _second(
        self, path: Path, category: str, paths: Mapping[str, list[Path]]
    ) -> tuple[str, str]:
        """Compare a file that is not read with the one that is read instead."""
        read = self._name(paths.get(category, next(iter(paths.values())))[0])
        if category not in paths:
            return f"is not read, because files such as {read} go first", ""
        try:
            rows = len(mcbe.table(path, encoding=self.encoding))
        except (BadInput, OSError) as error:
            reason = audit.error_reason(path, error)
            return f"cannot be compared with {read}, which is read: {reason}", ""
        count = self.counts.get(category, rows)
        if rows == count:
            return "", ""
        return f"has {_rows(rows)}, but {read}, which is read, has {count:,}", str(rows)

    def _numbers(self) -> Iterator[Finding]:
        """Count what can be read, next to the release if there are categories of it."""
        refused = sum(self.counts.values()) - len(self.instances)
        released = any(one.category in mcbe.CATEGORIES for one in self.instances)
        numbers = {
            "rows": len(self.instances),
            "categories": len({one.category for one in self.instances}),
            "subcategories": len({(one.category, one.subtype) for one in self.instances}),
        }
        for name, count in numbers.items():
            more = f" and {refused:,} refused" if name == "rows" and refused else ""
            release = f", the release has {mcbe.RELEASED[name]:,}" if released else ""
            what = f"{count:,} {name} found{more}{release}"
            yield Finding("", 0, "", "count", what, str(count))


def _cells(cells: Row, separators: str, groups: bool) -> Iterator[tuple[str, str, str]]:
    """Find odd cells, whether or not the row is refused: column, what is odd, and the text."""
    for column, cell in cells.items():
        for what in _characters(cell):
            yield plain(column), what, cell
        if column not in mcbe.COLUMNS:
            continue
        text = cell.strip()
        if cell != text:
            yield column, "has blanks around it, which are dropped", cell
        if column != "score" and text.startswith(FORMULA):
            what = f"begins with `{text[0]}`, which a spreadsheet may take for a formula"
            yield column, what, cell
        if column in ("context", "words") and SLOT in text:
            yield column, f"holds the placeholder {SLOT}, which is filled in `sentence` alone", cell
        other = mcbe.lookalike(text) if column in ("context", "sentence", "words") else ""
        if other:
            yield column, f"holds {other!r}, which looks like the placeholder {SLOT}", cell
    if not cells:  # their number is wrong
        return
    if not groups and SLOT not in cells["sentence"]:
        what = f"has no placeholder {SLOT}, so that no word is filled in"
        yield "sentence", what, cells["sentence"]
    score = cells["score"].strip()
    if unicodedata.normalize("NFKC", score) != score:
        yield "score", "is written in full-width characters", score
    elif not math.isnan(to_number(score)) and not PLAIN_NUMBER.fullmatch(score):
        yield "score", "is not written as a plain number, such as 4.5", score
    for what, value in _list(cells["words"].strip(), separators):
        yield "words", what, value


def _characters(cell: str) -> Iterator[str]:
    """Find characters that cannot be seen, or that stand for broken ones."""
    if "\x1b" in cell:
        yield "holds a terminal escape sequence"
    invisible = {char for char in cell if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")}
    codes = [f"U+{ord(char):04X}" for char in sorted(invisible - {"\x1b"})]
    if codes:
        yield f"holds control or invisible characters: {', '.join(codes[:8])}"
    if "\ufffd" in cell:
        yield "holds U+FFFD, which stands for a character lost in a conversion"


def _list(cell: str, separators: str) -> Iterator[tuple[str, str]]:
    """Find what is odd in how a list of words is written, with the cell or the word."""
    items = mcbe.split(cell, separators)
    if not cell:
        return
    if not all(item.strip() for item in items):
        yield "has an empty item in its list of words, which is dropped", cell
    for item in items:
        if item.strip() and item != item.strip():
            yield "has blanks around a word, which are dropped", item
    for item in items[1:]:  # the first one begins the cell, and is reported with it
        text = item.strip()
        if text.startswith(FORMULA):
            what = f"has a word with `{text[0]}` first, which a spreadsheet may take for a formula"
            yield what, item
    comma, any_separator = (len(mcbe.split(cell, name)) for name in ("comma", "any"))
    if comma != any_separator:
        what = f"is split into {comma} at `，` alone, and into {any_separator} at any separator"
        yield what, cell


def _labels(instances: Sequence[Instance]) -> Iterator[tuple[int, str, str]]:
    """Find what is odd in the labels of a file: row, what is odd, and the label."""
    labels = mcbe.labels_of(instances)
    for part, longer in permutations(labels, 2):
        if part in longer:
            what = (
                f"is a label that is part of another, {show_cell(longer)}: "
                "the released code takes one for the other"
            )
            yield 0, what, part
    alike = defaultdict(list)
    for label in labels:
        alike["".join(unicodedata.normalize("NFKC", label).casefold().split())].append(label)
    for group in alike.values():
        for label, other in combinations(group, 2):
            what = f"is a label that differs from {show_cell(other)} in case, width or blanks alone"
            yield 0, what, label
    uses = Counter(instance.subtype for instance in instances)
    for instance in instances:
        if uses[instance.subtype] == 1:
            yield instance.row, "is a label that no other row has", instance.subtype


def _tables(folder: Path) -> list[Path]:
    return [
        path
        for place in mcbe.places(folder)
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.suffix.lower() in TABLES and path.is_file()
    ]


def _words(cells: Row, separators: str) -> list[str]:
    items = mcbe.split(cells["words"], separators) if cells else []
    return [item.strip() for item in items if item.strip()]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
