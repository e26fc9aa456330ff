"""Cells of tables: read the cells of users, and guard ours against spreadsheet programs.

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
# We round longer numbers.
MAX_NUMBER_CHARS = 6
# First characters of a formula.
FORMULA = ("=", "+", "-", "@")
# With full-width forms, and blanks that programs drop before them.
RISKY = (*FORMULA, "＝", "＋", "－", "＠", "\t", "\r", "\n")
GUARDED = re.compile(f"'+[{''.join(map(re.escape, RISKY))}]")
# Blanks and invisible characters that programs leave at the ends of a cell.
BLANK = r"[\s\u00ad\u200b-\u200f\u2060\ufeff]"
ENDS = re.compile(f"^{BLANK}+|{BLANK}+$")
# How R, SAS, Stata, pandas, SQL, Excel and people write that there is no value. A rating can be
# `none`, so we read only Python's `None` in this way.
MISSING = re.compile(r"(?i:#?n/?a|[#+-]?nan|<na>|null|[./\-\u2010-\u2015\u2212]+)|None")
LONGEST_WORD = len("None")
WHOLE_FLOAT = re.compile(r"^([+-]?[0-9]+)\.0+$")
# A number of parameters such as 7B or 350 M, in billions.
SIZE = re.compile(rf"([0-9]+(?:\.[0-9]+)?|\.[0-9]+){BLANK}*([KMBT])", re.IGNORECASE)
# How many of each unit are a billion.
UNITS = {"K": 1e6, "M": 1e3, "B": 1.0, "T": 1e-3}


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet program runs; a plain number like -1.5 stays as it is."""
    # A cell that already has the apostrophe gets another one, so that `unguarded` restores it.
    risky = cell.startswith(RISKY) or GUARDED.match(cell)
    return f"'{cell}" if risky and not NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Undo `guarded`."""
    return cell[1:] if GUARDED.match(cell) else cell


def read_cell(text: str) -> str:
    """Return a user's cell without blanks around it: "" for a missing value, and 3 for 3.0.

    Examples:
        >>> read_cell(" yes\\u00a0"), read_cell("n/a"), read_cell("3.0")
        ('yes', '', '3')
    """
    if len(text) > LONGEST_WORD and text[0].isalpha() and text[-1].isalnum():
        return text  # most texts of a table end here
    text = ENDS.sub("", text)
    return "" if MISSING.fullmatch(text) else WHOLE_FLOAT.sub(r"\1", text)


def to_billions(text: str) -> float:
    """Return a size such as 7B or 350M in billions; NaN for anything else.

    Examples:
        >>> to_billions("7B"), to_billions("350 m")
        (7.0, 0.35)
    """
    match = SIZE.fullmatch(text)
    return float(match[1]) / UNITS[match[2].upper()] if match else math.nan


def as_csv(table: "pd.DataFrame") -> str:
    """Write a table as CSV that is read back without loss."""
    texts = [cell for column in table for cell in (column, *table[column]) if isinstance(cell, str)]
    # pandas does not put quotes around a carriage return, which ends a line too.
    return table.to_csv(
        index=False,
        quoting=csv.QUOTE_NONNUMERIC if "\r" in "".join(texts) else csv.QUOTE_MINIMAL,
    )


def to_number(text: str) -> float:
    """Return a plain decimal number; NaN for anything else, such as `1_000` or `inf`."""
    return float(text) if NUMBER.fullmatch(text) else math.nan


def rounded(text: str) -> str:
    """Shorten a number of more than `MAX_NUMBER_CHARS` characters to three digits."""
    number = to_number(text)
    return text if math.isnan(number) or len(text) <= MAX_NUMBER_CHARS else f"{number:.3g}"
