"""Check data sets: what the loader refuses, and what is odd, by one table of rules.

A benchmark reads its files into tables: a row for each row of a file, with its cells and

- `file`, `row`: its place;
- `name`: its category, and `counts_as`: what it is counted as, such as "rows";
- `id`, `key`: texts that no other row of the file, or no other row at all, should have;
- `part`, `balance`: rows of a part should be in balance, as many of each `balance`.

The last four may be missing.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from bench.core.errors import BadInput, plain, quoted
from bench.data import frame
from bench.data.manifest import GLOSSES, read_manifest

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark

COLUMNS = ["file", "row", "column", "kind", "fault", "what", "value"]
FAULTS = ["file", "rows", "column", "fault", "times", "items", "effect", "robust"]
# The endings of tables. The JSON files of NLI-CoAL's release are more than the sets that are asked.
TABLES = (".csv", ".gz", ".jsonl", ".ods", ".parquet", ".tsv", ".xls", ".xlsx")
# A message of a loader: the file, the row, the column, and the reason.
ERROR = re.compile(
    r"(?P<file>.*?)(?:, (?:row|line) (?P<row>\d+))?(?P<header> \(header\))?"
    r"(?:[,:] (?:column|field) `(?P<column>[^`]+)`:?|:) (?P<what>.+)",
    re.DOTALL,
)
Tables = Iterator[pd.DataFrame]
# The errors of the loader.
Errors = list[BadInput]
Find = Callable[[pd.DataFrame, str], "pd.Series[str]"]
# The number of rows of the release, by category and by what they are counted as.
Released = Mapping[str, Mapping[str, int]]


class Rule(NamedTuple):
    """One fault, and how it is found.

    Attributes:
        columns: where we look for it.
        find: returns what is wrong with each row of a table in a column, or "".
        what: the finding in words. `{found}` is what was found, other braces hold columns.
    """

    fault: str
    columns: Sequence[str]
    find: Find
    what: str


def in_cells(find: Callable[[str], str]) -> Find:
    """Look at one cell at a time."""
    return lambda table, column: table[column].map(find)


@contextmanager
def noted(errors: Errors) -> Iterator[None]:
    """Note the error of the loader that ends this block, and go on."""
    try:
        yield
    except BadInput as error:
        errors.append(error)


def invisible(cell: str) -> str:
    """Name up to eight invisible characters of a cell, or ones that a conversion has lost.

    Examples:
        >>> invisible("a\\u200bb\\ufffd")
        'U+200B, U+FFFD'
    """
    odd = [
        f"U+{ord(char):04X}"
        for char in sorted(set(cell) - {"\n"})
        if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")
    ]
    return ", ".join(odd[:8])


def repeated(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Find rows with the cell of an earlier row: of any, or of one of the same kind for an id."""
    position = table.file + ", row " + table.row.astype(str)
    same = [column] if column == "key" else ["file", "name", "counts_as", column]
    first = position.groupby([table[name] for name in same]).transform("first")
    return first.where((first != position) & (table[column] != ""), "")


def unequal(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Find parts whose rows are not in balance, at their first row."""
    problems = pd.Series("", index=table.index, dtype=object)
    for _, rows in table[table[column] != ""].groupby("part", sort=False):
        counts = rows[column].value_counts(sort=False)
        if len(set(counts)) > 1:
            problems[rows.index[0]] = _numbers(counts.to_dict())
    return problems


RULES = (
    Rule("double_id", ("id", "question_index"), repeated, "is the number of {found} too"),
    Rule("repeated_row", ("key",), repeated, "repeats {found}"),
    Rule("unequal_groups", ("balance",), unequal, "are not as many of each: {found}"),
)


def check_tables(
    benchmark: "Benchmark",
    folder: Path,
    read: Callable[[Errors], Tables],
    columns: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    released: Released | None = None,
) -> pd.DataFrame:
    """List everything wrong or odd in a folder of data, by file and row; numbers come last.

    Args:
        read: yields the tables of the files, and notes the errors of the loader.
        columns: of texts, in which we look for invisible characters.
        rules: the benchmark's own ones.

    Returns:
        A table with the columns `COLUMNS`. A finding is *refused* (the loader takes no such row or
        file), *odd* (it is read) or a *count*. Row 0 is the whole file.
    """
    tables = [pd.DataFrame()]
    errors = Errors()
    with noted(errors):
        tables.extend(read(errors))
    rows = pd.concat(tables, ignore_index=True)
    if rows.empty and not errors:
        errors.append(BadInput(f"{folder}: {benchmark.metadata.no_data}"))
    # An error of a manifest or a header may be met several times.
    findings = [_refused(text, folder) for text in dict.fromkeys(map(str, errors))]
    what = "has control, invisible or broken characters: {found}"
    characters = Rule("invisible_characters", columns, in_cells(invisible), what)
    for rule in (*RULES, characters, *rules):
        for column in rows.columns.intersection(list(rule.columns)):
            problems = rule.find(rows, column)
            for row in rows.assign(found=problems)[problems != ""].to_dict("records"):
                findings.append(_odd(rule, column, row))
    with suppress(BadInput):  # the loader's error, which is among the findings
        findings += _other_files(benchmark, folder)
    findings += _counts(benchmark, folder, rows, released or {})
    findings.sort(key=lambda finding: (finding["kind"] == "count", finding["file"], finding["row"]))
    return pd.DataFrame(findings, columns=COLUMNS)


def items_of(benchmark: "Benchmark", folder: Path, errors: Errors, **settings: str) -> Tables:
    """Read the items of each category, for a benchmark that has no rules of its own."""
    for category, paths in benchmark.files(folder).items():
        with noted(errors):
            items = frame(benchmark.load(folder, [category], **settings).items)
            yield items.assign(
                file=file_name(paths[0], folder),
                row=range(1, len(items) + 1),
                name=category,
                counts_as="items",
                id=items.item_id,
            )


def faults(benchmark: "Benchmark") -> pd.DataFrame:
    """Return the faults of a benchmark's released data: place, fault, and what they do to scores.

    `times` counts the findings in the rows, and `items` the questions or pairs of these rows. There
    are no rows for a benchmark without a file `faults.csv`.

    Examples:
        >>> from bench import benchmarks
        >>> list(faults(benchmarks.get("mcbe")))
        ['file', 'rows', 'column', 'fault', 'times', 'items', 'effect', 'robust']
    """
    path = benchmark.metadata.folder / "faults.csv"
    if not path.is_file():
        return pd.DataFrame(columns=FAULTS).astype({"times": int, "items": int})
    return pd.read_csv(path, keep_default_na=False)


def file_name(path: Path, folder: Path) -> str:
    """Return a file's name within a data folder, or the name of a single file."""
    return plain(path.name if path == folder else path.relative_to(folder).as_posix())


def _finding(**cells: Any) -> dict[str, Any]:
    return {"file": "", "row": 0, "column": "", "kind": "odd", "fault": "", "value": "", **cells}


def _refused(message: str, folder: Path) -> dict[str, Any]:
    """Take the error of a loader apart into its place and its reason."""
    inside = folder.name if folder.is_file() else ""
    text = plain(message).replace(str(folder), inside, 1).lstrip("/\\")
    match = ERROR.fullmatch(text)
    cells: dict[str, Any] = {"what": text}
    if match:
        cells = {name: text or "" for name, text in match.groupdict().items()}
        cells["row"] = 0 if cells.pop("header") else int(cells["row"] or 0)
    return _finding(**cells, kind="refused", fault="refused")


def _odd(rule: Rule, column: str, row: Mapping[Any, Any]) -> dict[str, Any]:
    what = plain(rule.what.format_map(row))
    if column == "balance":
        return _finding(file=row["part"], fault=rule.fault, what=what)
    cells = {"file": row["file"], "row": row["row"], "fault": rule.fault, "what": what}
    if column != "key":
        cells |= {"column": plain(column), "value": quoted(row[column]) if row[column] else ""}
    return _finding(**cells)


def _other_files(benchmark: "Benchmark", folder: Path) -> Iterator[dict[str, Any]]:
    """Find tables that are not read, in the folders of the files that are read and above these."""
    read = {path for paths in benchmark.files(folder).values() for path in paths}
    folders = {
        parent for path in read for parent in path.parents if folder in (parent, *parent.parents)
    }
    for path in sorted(path for parent in folders for path in parent.glob("[!.]*")):
        if path.suffix.lower() in TABLES and path.name != GLOSSES and path not in read:
            what = f"is not read; expected {benchmark.metadata.layout}"
            yield _finding(file=file_name(path, folder), fault="other_file", what=what)


def _counts(
    benchmark: "Benchmark", folder: Path, rows: pd.DataFrame, released: Released
) -> Iterator[dict[str, Any]]:
    """Count the rows of each category and of all, next to the release's."""
    if rows.empty:
        return
    names = list(dict.fromkeys(rows.name))
    is_release = any(name in benchmark.metadata.categories for name in names)
    with suppress(BadInput):  # the loader's error, which is reported
        names += read_manifest(folder).categories
    names += benchmark.metadata.categories if is_release else ()
    for name in dict.fromkeys([*names, "all"]):
        counted_rows = rows[((rows.name == name) | (name == "all")) & (rows.counts_as != "")]
        numbers = counted_rows.counts_as.value_counts(sort=False).to_dict()
        what = f"{'all' if name == 'all' else f'category {name}'}: {_numbers(numbers) or 'no rows'}"
        if is_release and name in released:
            same = numbers == released[name]
            what += (
                f"; {'as ' * same}the release has{'' if same else ' ' + _numbers(released[name])}"
            )
        yield _finding(kind="count", what=what, value=f"{len(counted_rows):,}")


def _numbers(numbers: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in numbers.items())
