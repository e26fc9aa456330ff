"""Cells of a table that is written for people: what a spreadsheet program must not take for a formula.

After OWASP, CSV injection: a cell that begins with one of a few characters is run as a formula when the file is opened,
and what stands in our cells comes from data and from models. An apostrophe before it makes it text.
"""

import csv
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,3})?", re.ASCII)
WHOLE_NUMBER = re.compile("[0-9]{1,15}")
# What a spreadsheet program takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@")
# With the full-width forms, which some languages' programs take for the same, and what they may drop before one.
RISKY = (*FORMULA, "＝", "＋", "－", "＠", "\t", "\r", "\n")
GUARDED = re.compile(f"'+[{''.join(map(re.escape, RISKY))}]")


def guarded(cell: str) -> str:
    """A cell that no spreadsheet program takes for a formula. A plain number, such as -1.5, is harmless and stays."""
    risky = cell.startswith(RISKY) or GUARDED.match(cell)
    # What has apostrophes already gets one more, so that `unguarded` can tell.
    return f"'{cell}" if risky and math.isnan(to_number(cell)) else cell


def unguarded(cell: str) -> str:
    """The cell of which `guarded` made this one."""
    return cell[1:] if GUARDED.match(cell) else cell


def as_csv(table: "pd.DataFrame") -> str:
    """A table as CSV whose cells come back as they are: a carriage return, which pandas writes bare, is in quotes."""
    bare = any(
        isinstance(cell, str) and "\r" in cell
        for column in table
        for cell in (column, *table[column])
    )
    text: str = table.to_csv(
        index=False, quoting=csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL
    )
    return text


def to_number(text: str) -> float:
    """Return the value of a plain decimal number; NaN for anything else, such as `1_000` or `inf`."""
    return float(text) if NUMBER.fullmatch(text) else math.nan


def to_whole_number(text: str) -> int | None:
    """Return the value of 1 to 15 ASCII digits; None for anything else."""
    return int(text) if WHOLE_NUMBER.fullmatch(text) else None
