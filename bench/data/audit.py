"""Findings of audits of data sets, in one form for every benchmark."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.errors import plain

# The most characters of a cell that `show_cell` shows.
SHOWN = 60


class Finding(NamedTuple):
    """One finding of an audit.

    Attributes:
        row: from 1; 0 for the whole file.
        column: empty for the whole row.
        kind: refused (the loader refuses the row or file), odd (read, but worth a look) or count
            (a number next to the release's).
        what: the finding as a sentence.
        value: the cell as `show_cell` shows it.
        fault: the name of the fault, for benchmarks that name them.
        items: the number of items with it.
    """

    file: str
    row: int
    column: str
    kind: str
    what: str
    value: str = ""
    fault: str = ""
    items: int = 0


def to_table(findings: Iterable[Finding], items: str = "") -> pd.DataFrame:
    """Return one row per finding.

    Args:
        items: the benchmark's name of its items, a column; default: no columns for faults and
            items.
    """
    table = pd.DataFrame(list(findings), columns=list(Finding._fields))
    table = table.astype({"row": int, "items": int})
    return (
        table.rename(columns={"items": items}) if items else table.drop(columns=["fault", "items"])
    )


def invisible(cell: str) -> str:
    """Name the invisible characters of a cell, or the ones that a conversion has lost; "" if none.

    We name at most eight.

    Examples:
        >>> invisible("a\\u200bb\\ufffd")
        'U+200B, U+FFFD'
    """
    odd = [
        f"U+{ord(char):04X}"
        for char in sorted(set(cell))
        if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")
    ]
    return ", ".join(odd[:8])


def show_cell(cell: str) -> str:
    """Return the beginning of a cell in quotes and with escapes; "" for an empty one."""
    return cell and repr(cell if len(cell) <= SHOWN else cell[: SHOWN - 1] + "…")


def error_reason(path: Path, error: Exception) -> str:
    """Return a message without the name of the file."""
    return plain(str(error).removeprefix(str(path)).lstrip(":, /\\"))


def file_name(path: Path, folder: Path) -> str:
    """Return a file's name within a data folder."""
    return plain(path.name if path == folder else path.relative_to(folder).as_posix())
