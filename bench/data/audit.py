"""What an audit of a data set finds, in one form for every benchmark: a finding, and how cells and places are told."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.errors import plain

SHOWN = 60


class Finding(NamedTuple):
    """One thing found: `row` counts from 1, 0 is the whole file; `value` is the cell as `shown`.

    `kind` is refused, odd or count. `fault` is the name of the fault where the benchmark names them, `items` how many
    items it touches.
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
    """The findings, a row each. `items` is what the benchmark calls them; without it there are no faults and no counts."""
    found = pd.DataFrame(list(findings), columns=list(Finding._fields)).astype(
        {"row": int, "items": int}
    )
    return (
        found.rename(columns={"items": items}) if items else found.drop(columns=["fault", "items"])
    )


def show_cell(cell: str) -> str:
    """The beginning of a cell in quotes and with escapes, which neither a terminal nor a spreadsheet acts on; "" of nothing."""
    return cell and repr(cell if len(cell) <= SHOWN else cell[: SHOWN - 1] + "…")


def error_reason(path: Path, error: Exception) -> str:
    """A message without the name of the file, which stands beside it."""
    return plain(str(error).removeprefix(str(path)).lstrip(":, /\\"))


def file_name(path: Path, folder: Path) -> str:
    """A file as a report names it, whatever folder it lies in."""
    return plain(path.relative_to(folder).as_posix())
