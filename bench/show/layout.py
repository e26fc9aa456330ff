"""Lay out a frame for reading: an interval next to its number, and no column that says nothing."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.cells import cell_len

from bench.core.numbers import decimals
from bench.core.text import column, shortened
from bench.metrics.headline import measure_words, task_words
from bench.metrics.table import ALL

# Rows of a table on a page; a file has all of them.
ROWS = 20
# Characters of a cell, and of one with one line.
CELL, LINE = 2000, 40
# Pairs of columns that are shown as one range, with its heading; that of the interval is shown next
# to the number in the column before it.
RANGES = {
    ("ci_low", "ci_high"): "95\u00a0% interval",
    ("low_90", "high_90"): "90\u00a0% interval",
    ("bound_low", "bound_high"): "if all were readable",
    ("bound_low_a", "bound_high_a"): "a, if all were readable",
    ("bound_low_b", "bound_high_b"): "b, if all were readable",
}


def category_words(category: str) -> str:
    """Return the name of a category in words."""
    return ALL if category == ALL else column(category)


# Columns with codes, and how one is put into words.
CODES: dict[str, Callable[[str], str]] = {
    "task": task_words,
    "metric": measure_words,
    "measure": measure_words,
    "category": category_words,
    "block": category_words,
}
# Columns of counts, of which pandas makes floats where one is missing.
COUNTS = {"n", "of", "answers", "blocks", "categories", "instances", "items", "models", "pairs"}
COUNTS |= {"questions", "replies", "requests", "rows", "scenes", "sentences", "templates", "texts"}
COUNTS |= {"units"}
# A column that says in words what the others say in numbers.
IN_WORDS = "sentence"
# Columns with reasons.
REASONS = ("note", "why", "reason")


class Cell(NamedTuple):
    """A cell: its text, the interval of its number, and whether it is a number."""

    text: str
    interval: str = ""
    is_number: bool = False

    @property
    def is_long(self) -> bool:
        """Whether the text may have several lines; a Chinese character is as wide as two."""
        return cell_len(self.text) > LINE


class Layout(NamedTuple):
    """A table for reading.

    Attributes:
        common: what all rows have in common, such as "preset: robust"; such columns are left out.
        more: the number of rows that are left out.
    """

    head: list[str]
    rows: list[list[Cell]]
    common: list[str]
    more: int


def lay_out(frame: pd.DataFrame, digits: int) -> Layout:
    """Choose the columns of a frame that say something, and write its first rows.

    Empty columns are left out; a text that is the same in all rows is said once.
    """
    blank = frame.isna() | (frame == "")
    # A note on a row that is not shown needs no column.
    of_first = [name for name in frame.columns if name in REASONS]
    is_empty = blank.all()
    is_empty[of_first] = blank[of_first].head(ROWS).all()
    shown = frame.loc[:, ~is_empty].drop(columns=IN_WORDS, errors="ignore")
    if {"task", "metric"} <= {*shown}:
        # The words for a measure say its task, where it has only one.
        measures = shown[["task", "metric"]].drop_duplicates()
        if len(measures) > 1 and measures.metric.is_unique:
            shown = shown.drop(columns="task")
    common = []
    for name in shown.columns:
        values = shown[name]
        is_text = not pd.api.types.is_numeric_dtype(values)
        is_same = len(shown) > 1 and (values == values.iloc[0]).all()
        if is_text and is_same and len(shown.columns) > 2:
            common.append(f"{column(str(name))}: {_text(name, values.iloc[0], digits).text}")
            shown = shown.drop(columns=name)
    columns = _columns(shown, digits)
    head = [name for name, _cells in columns]
    rows = [list(cells) for cells in zip(*(cells for _name, cells in columns), strict=True)]
    return Layout(head, rows, common, max(0, len(shown) - ROWS))


def _columns(frame: pd.DataFrame, digits: int) -> list[tuple[str, list[Cell]]]:
    """Return the heading and the cells of each column that is shown."""
    first = frame.iloc[:ROWS]
    columns: list[tuple[str, list[Cell]]] = []
    ranged = {name.removesuffix("_low") for name in map(str, frame) if name.endswith("_low")}
    pairs = {(f"{name}_low", f"{name}_high"): "low to high" for name in ranged} | RANGES
    ranges = {low: (high, title) for (low, high), title in pairs.items() if {low, high} <= {*frame}}
    seconds = {high for high, _title in ranges.values()}
    before_it = ""
    for name in map(str, first.columns):
        if name in seconds:
            continue
        heading = measure_words(name)
        cells = [_text(name, value, digits) for value in first[name]]
        if name in ranges:
            high, title = ranges[name]
            texts = [
                range_text(low, last, digits)
                for low, last in zip(first[name], first[high], strict=True)
            ]
            if name.startswith("bound_"):  # Bounds that meet are the score.
                is_apart = ~np.isclose(first[name], first[high])
                texts = [text if apart else "" for text, apart in zip(texts, is_apart, strict=True)]
                if not any(texts):
                    continue
            own = name.removesuffix("_low")
            is_number = before_it and all(cell.is_number for cell in columns[-1][1])
            if own in ("ci", "low_90", before_it) and is_number:
                before, numbers = columns.pop()
                heading = f"{before} ({title})"
                cells = [
                    cell._replace(interval=text) for cell, text in zip(numbers, texts, strict=True)
                ]
            else:
                title = title if name in {low for low, _high in RANGES} else ""
                title = title or f"{column(own)}, low to high"
                heading, cells = title, [Cell(text, is_number=True) for text in texts]
        before_it = "" if name in ranges else name
        columns.append((heading, cells))
    return columns


def range_text(low: float, high: float, digits: int) -> str:
    """Write a range of numbers; "" where there is none."""
    if low != low or high != high:
        return ""
    first, last = (decimals(value, digits) for value in (low, high))
    return f"{first} to {last}".replace(" ", "\u00a0")


def _text(name: Any, value: object, digits: int) -> Cell:
    """Write a cell; a p value (`p`, `p_...`) has three digits and is never zero."""
    if name in CODES and isinstance(value, str):
        return Cell(CODES[name](value))
    if name in REASONS:
        return Cell(str(value))
    if isinstance(value, bool | np.bool):
        return Cell("yes" if value else "no")
    if name == "when":
        return Cell(str(value)[:16].replace("T", " "))
    if not isinstance(value, int | float):
        return Cell(shortened(value, CELL))
    if isinstance(value, int) or (name in COUNTS and value.is_integer()):
        return Cell(f"{int(value):,}", is_number=True)
    if re.match(r"p(_|$)", str(name)):
        return Cell("<\u00a00.001" if value < 0.001 else decimals(value, 3), is_number=True)
    return Cell(decimals(value, digits), is_number=True)
