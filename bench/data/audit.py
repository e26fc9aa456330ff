"""Findings of audits of data sets, in one form for every benchmark.

The faults of a benchmark are rows of its `faults.csv`: a name, the column of the cell, and a
description with fields in braces. An audit gives each of them the rows that have it.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.errors import plain

# The most characters of a cell that `show_cell` shows.
SHOWN = 60
# The columns of a finding, and their defaults.
# row: from 1; 0 for the whole file.
# column: empty for the whole row.
# kind: refused (the loader refuses the row or file), odd (read, but worth a look) or count (a
#   number next to the release's).
# value: a cell, or a number.
# items: the number of items with the fault.
COLUMNS = {
    "file": "",
    "row": 0,
    "column": "",
    "kind": "odd",
    "what": "",
    "value": "",
    "fault": "",
    "items": 0,
}


class Faults:
    """The faults that an audit looks for, as its `faults.csv` names and describes them."""

    def __init__(self, path: Path) -> None:
        table = pd.read_csv(path, index_col="fault", keep_default_na=False)
        self.columns, self.descriptions = table["column"].to_dict(), table["what"].to_dict()

    def odd(self, rows: Any, fault: str, **fields: Any) -> pd.DataFrame:
        """Make the finding of a fault for each of some rows.

        Args:
            rows: a table or a list of dictionaries, with `file` and `row`; or the name of a file.
            fields: columns beside or in place of the ones of `rows`. These fill the fault's
                description, and may be columns of a finding. The default for `value` is the cell.
        """
        table = pd.DataFrame([{"file": rows, "row": 0}] if isinstance(rows, str) else rows)
        if table.empty:
            return table
        table = table.assign(**fields)
        column = self.columns[fault]
        defaults = {**COLUMNS, "column": column, "value": table.get(column, "")}
        cells = {name: cell for name, cell in defaults.items() if name not in table}
        describe = self.descriptions[fault].format_map
        what = [plain(describe(row)) for row in table.to_dict("records")]
        return table.assign(**{**cells, "fault": fault, "what": what})


def finding(**cells: Any) -> pd.DataFrame:
    """Make one finding; default: an odd value, and no other column."""
    return pd.DataFrame([{**COLUMNS, **cells}])


def refused(**cells: Any) -> pd.DataFrame:
    """Make the finding of a file or row that the loader refuses."""
    return finding(**{"kind": "refused", "fault": "refused", **cells})


def counted(
    title: str, numbers: Mapping[Any, int], released: Mapping[Any, int] | None, value: int
) -> pd.DataFrame:
    """Make the finding of numbers of a data set, next to the release's if it has them."""

    def text(counts: Mapping[Any, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in counts.items())

    what = f"{title}: {text(numbers)}"
    if released is not None:
        is_same = text(numbers) == text(released)
        what += "; as the release has" if is_same else f"; the release has {text(released)}"
    return finding(kind="count", what=what, value=value)


def to_table(findings: Iterable[pd.DataFrame], items: str = "") -> pd.DataFrame:
    """Sort findings by file and row, counts last.

    Args:
        items: the benchmark's name of its items, a column; default: no columns for faults and
            items.
    """
    table = pd.concat([pd.DataFrame(columns=list(COLUMNS)), *findings])[list(COLUMNS)]
    cells = [show_cell(cell) if isinstance(cell, str) else str(cell) for cell in table.value]
    table = table.astype({"row": int, "items": int})
    is_count = table.kind == "count"
    order = {"is_count": is_count, "place": table.file.where(~is_count, "")}
    table = table.assign(value=cells, **order)
    table = table.sort_values([*order, "row"], kind="stable", ignore_index=True)
    unused = [*order, *([] if items else ["fault", "items"])]
    return table.drop(columns=unused).rename(columns={"items": items})


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


def true_columns(table: pd.DataFrame) -> "pd.Series[str]":
    """Join the names of the columns that are true in each row."""
    names: Any = pd.Series({name: f"{name}, " for name in table}, dtype=object)
    return table.dot(names).str.removesuffix(", ")


def show_cell(cell: str) -> str:
    """Return the beginning of a cell in quotes and with escapes; "" for an empty one."""
    return cell and repr(cell if len(cell) <= SHOWN else cell[: SHOWN - 1] + "…")


def error_reason(path: Path, error: Exception) -> str:
    """Return a message without the name of the file."""
    return plain(str(error).removeprefix(str(path)).lstrip(":, /\\"))


def file_name(path: Path, folder: Path) -> str:
    """Return a file's name within a data folder."""
    return plain(path.name if path == folder else path.relative_to(folder).as_posix())
