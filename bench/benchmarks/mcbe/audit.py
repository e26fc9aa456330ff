"""Audit a McBE folder: list every refused row, everything odd, and the size next to the release's.

The loader decides which rows are refused; this module only lists them.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import permutations
from pathlib import Path

import pandas as pd

from bench.benchmarks.mcbe import METADATA
from bench.benchmarks.mcbe import items as mcbe
from bench.benchmarks.mcbe.items import SLOT, Instance, RowError
from bench.core.cells import FORMULA, to_number
from bench.core.errors import BadInput, plain
from bench.data import audit, with_defaults
from bench.data.audit import refused
from bench.data.dataset import GLOSSES, MANIFEST, category_of, unknown_category

odd = audit.Faults(Path(__file__).with_name("faults.csv")).odd
PLAIN_NUMBER = re.compile(r"(0|[1-9]\d?)(\.\d+)?", re.ASCII)
TABLES = (".csv", ".xlsx", ".xls", ".ods", ".tsv", ".json", ".jsonl", ".gz")
# Divisors of the row counts, by the published scores: a score of N rows is k/N. This is our guess.
MULTIPLES = {"race": 150, "health": 135, "appearance": 235}
# The columns that may differ between rows with the same sentence and words.
VARYING = ["context", "subtype", "explanation", "score"]
Audit = Iterator[pd.DataFrame]


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `bench.data.audit`.

    Args:
        settings: of `mcbe.SETTINGS`; `bad_rows` makes no difference.
    """
    chosen = with_defaults(mcbe.SETTINGS, settings)
    return audit.to_table(_findings(Path(folder), chosen["encoding"], chosen["separators"]))


def _findings(folder: Path, encoding: str, separators: str) -> Audit:
    known = {name: name not in mcbe.WITHOUT_GROUPS for name in mcbe.CATEGORIES}
    try:
        known = mcbe.categories_of(folder)
    except BadInput as error:
        yield refused(file=MANIFEST, what=audit.error_reason(folder / MANIFEST, error))
    paths, unknown = mcbe.scan(folder, known)
    if not paths:
        yield refused(what=f"the folder {METADATA.no_data}")
    cells, items, errors = [], [], []
    counts: dict[str, int] = {}
    for category, path in paths.items():
        file, groups = audit.file_name(path, folder), known[category]
        try:
            rows = mcbe.read(
                path, category, encoding=encoding, separators=separators, groups=groups
            )
        except BadInput as error:
            yield refused(file=file, what=audit.error_reason(path, error))
            continue
        counts[category] = len(rows)
        for row, item in rows:
            cells += [(file, row.number, name, cell, groups) for name, cell in row.items()]
            if isinstance(item, RowError):
                errors.append({"file": file, **item._asdict()})
            else:
                items.append({"file": file, **asdict(item), "row": row.number})
        if len(rows) % MULTIPLES.get(category, 1):
            yield odd(file, "size", value=len(rows), multiple=MULTIPLES[category])
    for row_error in errors:
        yield refused(**row_error)
    yield from _cells(cells, separators)
    names = ["file", *(field.name for field in fields(Instance))]
    table = pd.DataFrame(items, columns=names)
    if items:
        yield from _rows(table)
        yield from _labels(table)
    yield from _other_files(folder, known, paths, unknown, counts, encoding)
    numbers = {
        "rows": len(items),
        "categories": table.category.nunique(),
        "subcategories": len(table[["category", "subtype"]].drop_duplicates()),
    }
    title = f"all files ({len(errors):,} rows are refused)" if errors else "all files"
    is_release = bool(set(table.category) & set(mcbe.CATEGORIES))
    yield audit.counted(title, numbers, mcbe.RELEASED if is_release else None, len(items))


def _cells(rows: Sequence[tuple[str, int, str, str, bool]], separators: str) -> Audit:
    """Find odd cells, whether or not their row is refused, and columns that are not read."""
    table = pd.DataFrame(rows, columns=["file", "row", "name", "value", "groups"], dtype=object)
    name, text = table.name, table.value.str.strip()
    split = text.map(lambda cell: mcbe.split(cell, separators))
    comma = text.str.count(mcbe.SEPARATORS["comma"]) + 1
    any_ = text.str.count(f"[{mcbe.SEPARATORS['any']}]") + 1
    is_read, has_slot = name.isin(mcbe.COLUMNS), text.str.contains(SLOT, regex=False)
    is_text, words = name.isin(["context", "sentence", "words"]), name == "words"
    table = table.assign(
        column=name.map(plain),
        text=text,
        codes=table.value.map(audit.invisible),
        lookalike=text.where(is_text, "").map(mcbe.lookalike),
        comma=comma,
        any=any_,
    )
    unread = table[~is_read].drop_duplicates(["file", "name"])
    yield odd(unread, "unread_column", row=0, value=unread.name)
    rules = {
        "invisible": table.codes != "",
        "blanks": is_read & (table.value != text),
        "formula": is_read & (name != "score") & text.str.startswith(FORMULA),
        "placeholder": is_text & (name != "sentence") & has_slot,
        "lookalike": table.lookalike != "",
        "no_placeholder": (name == "sentence") & ~has_slot & ~table.groups.astype(bool),
        "no_plain_number": (name == "score")
        & text.map(to_number).notna()
        & ~text.str.fullmatch(PLAIN_NUMBER),
        "empty_word": words & (text != "") & ~split.map(lambda items: all(map(str.strip, items))),
        "separators": words & (comma != any_),
    }
    for fault, mask in rules.items():
        yield odd(table[mask], fault)
    listed = table.assign(value=split, first=table.index)[words].explode("value", ignore_index=True)
    listed["text"] = listed.value.str.strip()
    yield odd(listed[(listed.text != "") & (listed.text != listed.value)], "word_blanks")
    # The first word was reported with the cell.
    later = listed[listed["first"].duplicated()]
    yield odd(later[later.text.str.startswith(FORMULA)], "word_formula")
    if resplit := int(rules["separators"].sum()):
        yield odd("", "resplit", value=resplit)


def _rows(table: pd.DataFrame) -> Audit:
    """Find oddities of rows next to the rows before them, and of their words."""
    place = table.file + ", row " + table.row.astype(str)
    template = table.groupby(["sentence", "words"])[VARYING].transform("first")
    differing = audit.true_columns(table[VARYING] != template)
    table = table.assign(
        same=place.groupby(table.content_hash).transform("first"),
        similar=place.groupby([table.sentence, table.words]).transform("first"),
        differs=("with another " + differing).where(differing != "", "written otherwise"),
    )
    is_same = table.same != place
    yield odd(table[is_same], "repeated", value=table.sentence)
    yield odd(table[~is_same & (table.similar != place)], "similar")
    yield odd(
        table[(table.words.map(len) == 1) & table.groups], "one_word", value=table.words.str[0]
    )
    nested = [
        {"file": row["file"], "row": row["row"], "words": part, "longer": longer}
        for row in table.to_dict("records")
        for part, longer in permutations(row["words"], 2)
        if part in longer
    ]
    yield odd(nested, "nested_words")


def _labels(table: pd.DataFrame) -> Audit:
    """Find labels of a file that can be confused, and labels of one row."""
    labels = table[["file", "subtype"]].drop_duplicates().sort_values(["file", "subtype"])
    pairs = labels.merge(labels.rename(columns={"subtype": "longer"}), on="file").assign(row=0)
    pairs = pairs[pairs.subtype != pairs.longer]
    is_part = [part in longer for part, longer in zip(pairs.subtype, pairs.longer, strict=True)]
    yield odd(pairs[is_part], "nested_labels")
    alike = pairs.subtype.map(_folded) == pairs.longer.map(_folded)
    yield odd(pairs[alike & (pairs.subtype < pairs.longer)], "alike_labels")
    uses = table.groupby(["file", "subtype"]).row.transform("size")
    yield odd(table[uses == 1], "rare_label")


def _folded(label: str) -> str:
    return "".join(unicodedata.normalize("NFKC", label).casefold().split())


def _other_files(
    folder: Path,
    known: Mapping[str, bool],
    paths: Mapping[str, Path],
    unknown: Sequence[Path],
    counts: Mapping[str, int],
    encoding: str,
) -> Audit:
    """Report files that are not read, or that stop the loader, and missing categories."""
    for path in [path for place in mcbe.FOLDERS for path in sorted((folder / place).glob("*"))]:
        is_table = path.suffix.lower() in TABLES and path.is_file() and path.name != GLOSSES
        if path in paths.values() or not is_table:
            continue
        category = category_of(path)
        file, value = audit.file_name(path, folder), path.stem
        if path in unknown:
            error = BadInput(unknown_category(path, category, folder, known))
            yield refused(file=file, what=audit.error_reason(path, error), value=value)
        elif category in known and path.suffix in mcbe.SUFFIXES:
            try:
                rows = len(mcbe.table(path, encoding))
            except BadInput:
                rows = 0
            count = counts.get(category, rows) if category in paths else 0
            used = audit.file_name(paths.get(category, next(iter(paths.values()))), folder)
            if rows != count:
                yield odd(file, "other_file", used=used, found=rows, count=count)
        elif path.stem == mcbe.DEMONSTRATION:
            yield odd(file, "demonstration")
        else:
            meant = category.strip().lower()
            remedy = f"; if it is {meant}, name it {meant}.xlsx or {meant}.csv"
            remedy = remedy if meant in known else ""
            yield odd(file, "no_category", value=value, remedy=remedy)
    # Without any category of the release, no category is missing.
    for category in known if set(paths) & set(mcbe.CATEGORIES) else ():
        if category not in paths:
            yield odd("", "no_file", category=category, value=category)
