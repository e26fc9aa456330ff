"""Audit a McBE folder: list every refused row, everything odd, and the size next to the release's.

The loader decides which rows are refused; this module only lists them.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path

import pandas as pd

from bench.benchmarks.mcbe import METADATA
from bench.benchmarks.mcbe import items as mcbe
from bench.benchmarks.mcbe.items import SLOT, Instance, RowError
from bench.core.cells import FORMULA, to_number
from bench.core.errors import BadInput, plain
from bench.data import audit, with_defaults
from bench.data.audit import Finding, show_cell
from bench.data.dataset import GLOSSES, MANIFEST, category_of, unknown_category
from bench.data.readers import Row

PLAIN_NUMBER = re.compile(r"(0|[1-9]\d?)(\.\d+)?", re.ASCII)
TABLES = (".csv", ".xlsx", ".xls", ".ods", ".tsv", ".json", ".jsonl")
# Divisors of the row counts, by the published scores: a score of N rows is k/N. This is our guess.
MULTIPLES = {"race": 150, "health": 135, "appearance": 235}
AS_FORMULA = "begins with `{}`, which a spreadsheet may take for a formula"
# The column, the oddity, and the text.
Odd = Iterator[tuple[str, str, str]]


def check(
    folder: Path, *, encoding: str = "utf-8", separators: str = "comma", bad_rows: str = "refuse"
) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `Finding`.

    Args:
        encoding, separators: as in `mcbe.SETTINGS`.
        bad_rows: makes no difference.
    """
    settings = {"encoding": encoding, "separators": separators, "bad_rows": bad_rows}
    with_defaults(mcbe.SETTINGS, settings)
    return audit.to_table(_findings(Path(folder), encoding, separators))


def _findings(folder: Path, encoding: str, separators: str) -> Iterator[Finding]:
    """Audit file by file, then the folder."""
    known = {name: name not in mcbe.WITHOUT_GROUPS for name in mcbe.CATEGORIES}
    try:
        known = mcbe.categories_of(folder)
    except BadInput as error:
        reason = audit.error_reason(folder / MANIFEST, error)
        yield Finding(MANIFEST, 0, "", "refused", reason)
    paths, unknown = mcbe.scan(folder, known)
    if not paths:
        what = f"the folder holds no data of {METADATA.title}; expected {METADATA.layout}"
        yield Finding("", 0, "", "refused", what)
    counts: dict[str, int] = {}
    instances: list[Instance] = []
    # The first place, and its instance, by content hash and by sentence and words.
    first: dict[object, tuple[str, Instance]] = {}
    resplit = 0
    for category, path in paths.items():
        name, groups = audit.file_name(path, folder), known[category]
        try:
            rows = mcbe.read(
                path, category, encoding=encoding, separators=separators, groups=groups
            )
        except BadInput as error:
            yield Finding(name, 0, "", "refused", audit.error_reason(path, error))
            continue
        counts[category] = len(rows)
        lists = [cells["words"] for cells, _ in rows if cells]
        resplit += sum(_words(cell, "comma") != _words(cell, "any") for cell in lists)
        for column in next((cells for cells, _ in rows if cells), {}):
            if column not in mcbe.COLUMNS:
                what = "is a column that is not read"
                yield Finding(name, 0, plain(column), "odd", what, show_cell(column))
        if len(rows) % MULTIPLES.get(category, 1):
            what = f"no multiple of {MULTIPLES[category]} as the published scores suggest"
            what = f"has {len(rows):,} rows, {what}"
            yield Finding(name, 0, "", "odd", what, str(len(rows)))
        of_file = []
        for cells, instance in rows:
            number, odd = cells.number, list(_cells(cells, separators, groups))
            if isinstance(instance, RowError):
                _, column, what, value = instance
                yield Finding(name, number, column, "refused", what, show_cell(value))
            else:
                odd += _instance(f"{name}, row {number}", instance, first)
                of_file.append((number, instance))
            for column, what, value in odd:
                yield Finding(name, number, column, "odd", what, show_cell(value))
        for number, what, value in _labels(of_file):
            yield Finding(name, number, "subtype", "odd", what, show_cell(value))
        instances += [instance for _, instance in of_file]
    yield from _other_files(folder, known, paths, unknown, counts, encoding)
    if resplit:
        what = f"`--set separators=any` reads {resplit:,} rows otherwise than the default does"
        yield Finding("", 0, "words", "odd", what, str(resplit))
    places = [(instance.category, instance.subtype) for instance in instances]
    categories = {category for category, _ in places}
    numbers = {
        "rows": len(places),
        "categories": len(categories),
        "subcategories": len(set(places)),
    }
    refused = sum(counts.values()) - len(places)
    for name, number in numbers.items():
        what = f"{number:,} {name} found"
        what += f" and {refused:,} refused" if name == "rows" and refused else ""
        if categories & set(mcbe.CATEGORIES):
            what += f", the release has {mcbe.RELEASED[name]:,}"
        yield Finding("", 0, "", "count", what, str(number))


def _cells(cells: Row, separators: str, groups: bool) -> Odd:
    """Find odd cells, whether or not the row is refused: the column, the oddity, and the text."""
    for column, cell in cells.items():
        codes = audit.invisible(cell)
        text, known = cell.strip(), column in mcbe.COLUMNS
        other = mcbe.lookalike(text) if column in ("context", "sentence", "words") else ""
        rules = {
            f"holds control, invisible or broken characters: {codes}": codes,
            "has blanks around it, which are dropped": known and cell != text,
            AS_FORMULA.format(text[:1]): known and column != "score" and text.startswith(FORMULA),
            f"holds the placeholder {SLOT}, which is filled in `sentence` alone": SLOT in text
            and column in ("context", "words"),
            f"holds {other!r}, which looks like the placeholder {SLOT}": other,
        }
        yield from ((plain(column), what, cell) for what, is_odd in rules.items() if is_odd)
    if not cells:  # their number is wrong
        return
    if not groups and SLOT not in cells["sentence"]:
        what = f"has no placeholder {SLOT}, so that no word is filled in"
        yield "sentence", what, cells["sentence"]
    score = cells["score"].strip()
    if not math.isnan(to_number(score)) and not PLAIN_NUMBER.fullmatch(score):
        yield "score", "is not written as a plain number, such as 4.5", score
    cell = cells["words"].strip()
    items = mcbe.split(cell, separators)
    if cell and not all(map(str.strip, items)):
        yield "words", "has an empty item in its list of words, which is dropped", cell
    for number, item in enumerate(items):
        word = item.strip()
        if word and item != word:
            yield "words", "has blanks around a word, which are dropped", item
        if number and word.startswith(FORMULA):  # the first one was reported with the cell
            yield "words", AS_FORMULA.format(word[0]), item
    comma, any_separator = (len(mcbe.split(cell, name)) for name in ("comma", "any"))
    if comma != any_separator:
        what = f"is split into {comma} at `，` alone, and into {any_separator} at any separator"
        yield "words", what, cell


def _instance(place: str, instance: Instance, first: dict[object, tuple[str, Instance]]) -> Odd:
    """Find oddities of a row next to the rows before it, and of its words."""
    template = (instance.sentence, instance.words)
    same, _ = first.setdefault(instance.content_hash, (place, instance))
    similar, earlier = first.setdefault(template, (place, instance))
    if same != place:
        yield "", f"repeats {same}", instance.sentence
    elif similar != place:
        columns = ("context", "subtype", "explanation", "score")
        differing = [c for c in columns if getattr(instance, c) != getattr(earlier, c)]
        other = f"with another {', '.join(differing)}" if differing else "written otherwise"
        what = f"repeats the sentence and the words of {similar} {other}"
        yield "sentence", what, instance.sentence
    if len(instance.words) == 1 and instance.groups:
        what = "lists one word, so that the row has no place in pc and ss"
        yield "words", what, instance.words[0]
    for part, longer in permutations(instance.words, 2):
        if part in longer:
            yield "words", f"has a word that is part of another, {show_cell(longer)}", part


def _labels(rows: Sequence[tuple[int, Instance]]) -> Iterator[tuple[int, str, str]]:
    """Find oddities in the labels of a file: the row, the oddity, and the label."""
    uses = Counter(instance.subtype for _, instance in rows)
    for part, longer in permutations(sorted(uses), 2):
        if part in longer:
            what = (
                f"is a label that is part of another, {show_cell(longer)}: "
                "the released code takes one for the other"
            )
            yield 0, what, part
    folded = {
        label: "".join(unicodedata.normalize("NFKC", label).casefold().split()) for label in uses
    }
    for label, other in combinations(sorted(uses), 2):
        if folded[label] == folded[other]:
            what = f"is a label that differs from {show_cell(other)} in case, width or blanks alone"
            yield 0, what, label
    for number, instance in rows:
        if uses[instance.subtype] == 1:
            yield number, "is a label that no other row has", instance.subtype


def _other_files(
    folder: Path,
    known: Mapping[str, bool],
    paths: Mapping[str, Path],
    unknown: Sequence[Path],
    counts: Mapping[str, int],
    encoding: str,
) -> Iterator[Finding]:
    """Report files that are not read, or that stop the loader, and missing categories."""
    for path in [path for place in mcbe.FOLDERS for path in sorted((folder / place).glob("*"))]:
        if path in paths.values() or path.suffix.lower() not in TABLES or not path.is_file():
            continue
        if path.name == GLOSSES:
            continue
        kind, value, category = "odd", path.stem, category_of(path)
        if path in unknown:
            error = BadInput(unknown_category(path, category, folder, known))
            kind, what = "refused", audit.error_reason(path, error)
        elif category in known and path.suffix in mcbe.SUFFIXES:
            try:
                rows = len(mcbe.table(path, encoding))
            except BadInput:
                rows = 0
            count = counts.get(category, rows) if category in paths else 0
            if rows == count:
                continue
            used = audit.file_name(paths.get(category, next(iter(paths.values()))), folder)
            what, value = f"is not read, as {used} goes first; rows: {rows:,} and {count:,}", ""
        elif path.stem == mcbe.DEMONSTRATION:
            what, value = "is the demonstration file of the release, which is not counted", ""
        else:
            meant = category.strip().lower()
            named = f"; if it is {meant}, name it {meant}.xlsx or {meant}.csv"
            what = f"is no category of {METADATA.title}, and is not read"
            what += named if meant in known else ""
        yield Finding(audit.file_name(path, folder), 0, "", kind, what, show_cell(value))
    # Without any category of the release, no category is missing.
    for category in known if set(paths) & set(mcbe.CATEGORIES) else ():
        if category not in paths:
            what = f"category {category} has no file that is read"
            yield Finding("", 0, "", "odd", what, show_cell(category))


def _words(cell: str, separators: str) -> list[str]:
    return [item.strip() for item in mcbe.split(cell, separators) if item.strip()]
