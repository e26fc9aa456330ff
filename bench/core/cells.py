"""Cells of tables: guard cells against spreadsheet programs, and read numbers strictly.

When it opens a CSV file, a spreadsheet program runs a cell as a formula if it begins with one of a
few characters (see OWASP, CSV injection), and our cells come from data and models. For example, we
write =1+1 as '=1+1, because the apostrophe makes it text.
"""

import csv
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,3})?", re.ASCII)
WHOLE_NUMBER = re.compile("[0-9]{1,15}")
# We round longer numbers.
MAX_NUMBER_CHARS = 6
# First characters of a formula.
FORMULA = ("=", "+", "-", "@")
# With full-width forms, and blanks that programs drop before them.
RISKY = (*FORMULA, "＝", "＋", "－", "＠", "\t", "\r", "\n")
GUARDED = re.compile(f"'+[{''.join(map(re.escape, RISKY))}]")


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet program runs; a plain number like -1.5 stays as it is."""
    # A cell that already has the apostrophe gets another one, so that `unguarded` restores it.
    risky = cell.startswith(RISKY) or GUARDED.match(cell)
    return f"'{cell}" if risky and not NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Undo `guarded`."""
    return cell[1:] if GUARDED.match(cell) else cell


def as_csv(table: "pd.DataFrame") -> str:
    """Write a table as CSV that is read back without loss."""
    texts = [cell for column in table for cell in (column, *table[column]) if isinstance(cell, str)]
    # pandas does not put quotes around a carriage return, which ends a line too.
    text: str = table.to_csv(
        index=False,
        quoting=csv.QUOTE_NONNUMERIC if "\r" in "".join(texts) else csv.QUOTE_MINIMAL,
    )
    return text


def to_number(text: str) -> float:
    """Return a plain decimal number; NaN for anything else, such as `1_000` or `inf`."""
    return float(text) if NUMBER.fullmatch(text) else math.nan


def rounded(text: str) -> str:
    """Shorten a number of more than `MAX_NUMBER_CHARS` characters to three digits."""
    number = to_number(text)
    return text if math.isnan(number) or len(text) <= MAX_NUMBER_CHARS else f"{number:.3g}"


def to_whole_number(text: str) -> int | None:
    """Return a whole number of 1 to 15 ASCII digits; None for anything else."""
    return int(text) if WHOLE_NUMBER.fullmatch(text) else None
