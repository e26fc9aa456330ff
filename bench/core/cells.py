"""Cells of tables: guard those that a spreadsheet program would run, and read numbers strictly.

A cell that begins with one of a few characters is run as a formula when a CSV file is opened (see
OWASP, CSV injection), and our cells come from data and models. An apostrophe makes it text.
"""

import csv
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,3})?", re.ASCII)
WHOLE_NUMBER = re.compile("[0-9]{1,15}")
# Characters of a number that are shown without rounding.
DIGITS = 6
# How a formula begins.
FORMULA = ("=", "+", "-", "@")
# With full-width forms, which some programs take for the same, and what they may drop before one.
RISKY = (*FORMULA, "＝", "＋", "－", "＠", "\t", "\r", "\n")
GUARDED = re.compile(f"'+[{''.join(map(re.escape, RISKY))}]")


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet program runs; a plain number like -1.5 stays as it is."""
    # A cell that has the apostrophe already gets another, so that `unguarded` can tell.
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
    """Return a number of more than `DIGITS` characters with three digits; other texts unchanged."""
    number = to_number(text)
    return text if math.isnan(number) or len(text) <= DIGITS else f"{number:.3g}"


def to_whole_number(text: str) -> int | None:
    """Return a whole number of 1 to 15 ASCII digits; None for anything else."""
    return int(text) if WHOLE_NUMBER.fullmatch(text) else None
