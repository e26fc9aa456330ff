"""Read tables of users, which are frames or files; name the row and column of a wrong cell."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.core.cells import read_cell, to_billions, unguarded
from bench.core.errors import BadInput, expected, quoted
from bench.data.readers import as_path, read_table
from bench.metrics.table import ALL

# What pandas infers of columns with points in time, and lengths of time.
TIMES = dict.fromkeys(("datetime64", "datetime", "date", "period"), "dates")
TIMES |= dict.fromkeys(("timedelta64", "timedelta"), "durations")
# A frame of pandas or of another library, or the file that holds it.
Frame = pd.DataFrame | str | Path
# Names of an average over all categories or tasks. The font of the package has no traditional
# characters, so we write them by their numbers.
OVERALL = (
    f"{ALL}|overall|average|avg|avg.|mean|total|all categories|all tasks|macro average|macro avg|"
    "micro average|micro avg|总体|总计|总分|合计|平均|平均值|平均分|均值|全部|整体|所有|"
    "\u7e3d\u9ad4|\u7e3d\u8a08|\u5408\u8a08|全体|\u5168\u9ad4"
).split("|")
TRUTH = {"true": 1.0, "false": 0.0}
# Columns in which two rows of the same thing differ anyway.
NUMBERS = ["score", "estimate", "ci_low", "ci_high", "p", "n", "note"]


class Table:
    """A frame of a user, or a file, with the name that messages give it.

    Texts have no blanks around them, and a missing value is empty: see `bench.core.cells`.

    Attributes:
        original: the frame before we read its cells, with an index from 0; the cells of a file are
            texts.
        rows: the same with `bench.core.cells.read_cell` of each text.
        row_numbers: the numbers of the rows in messages, default: from 0. In a file they are from 1
            below the header, and blank rows count.
    """

    def __init__(
        self, frame: Frame, name: str = "frame", row_numbers: Sequence[int] | None = None
    ) -> None:
        if isinstance(frame, str | Path):
            name = str(frame)
            rows = read_table(as_path(frame), [])
            row_numbers = [row.number for row in rows]
            cells = pd.DataFrame(rows).map(unguarded)
            frame = cells.rename(columns=lambda column: read_cell(unguarded(column)))
        elif not isinstance(frame, pd.DataFrame) and hasattr(frame, "to_pandas"):
            frame = frame.to_pandas()
        if not isinstance(frame, pd.DataFrame):
            raise BadInput(
                f"{name}: is a {type(frame).__name__}; give a frame of pandas or a file such as a "
                "CSV, for example the frame that bench.outcomes(RUN) returns"
            )
        if frame.columns.nlevels > 1:
            raise BadInput(
                f"{name}: has {frame.columns.nlevels} levels of column names; give each column one "
                "name, for example by frame.stack().reset_index()"
            )
        repeated = frame.columns[frame.columns.duplicated()]
        if len(repeated):
            raise BadInput(f"{name}: column `{repeated[0]}` occurs more than once")
        if frame.empty:
            raise BadInput(f"{name}: has no rows")
        self.name = name
        self.row_numbers = range(len(frame)) if row_numbers is None else row_numbers
        levels = [level for level in frame.index.names if level and level not in frame]
        self.original = frame.reset_index(levels).reset_index(drop=True)
        self.rows = self.original.copy(deep=False)
        for column in self.original:
            self.rows[column] = _read_cells(self.original[column])

    def place(self, row: int, column: str = "") -> str:
        """Name a row, and a column of it, as its user does."""
        text = f"{self.name}, row {self.row_numbers[row]}"
        return f"{text}, column `{column}`" if column else text

    def check_columns(self, *columns: str) -> None:
        """Refuse a frame that lacks one of the columns."""
        for column in columns:
            if column not in self.rows:
                raise BadInput(f"{self.name}: {expected(column, self.rows.columns, 'column')}")

    def check_filled(self, *columns: str, rows: "pd.Series[bool] | bool" = True) -> None:
        """Refuse an empty cell in one of the columns, in some rows."""
        self.check_columns(*columns)
        for column in columns:
            empty = is_empty(self.rows[column]) & rows
            if empty.any():
                row = int(empty.argmax())
                mark = self.marks(column)[row]
                written = f" (given as {mark})" if mark else ""
                raise BadInput(f"{self.place(row, column)}: is empty{written}")

    def check_unique(self, columns: Sequence[str], advice: str) -> None:
        """Refuse two rows that are equal in all of the columns."""
        repeated = self.rows.duplicated(list(columns))
        if not repeated.any():
            return
        row = int(repeated.argmax())
        same = (self.rows[list(columns)] == self.rows.loc[row, list(columns)]).all(axis=1)
        first = int(same.argmax())
        pair = self.rows.loc[[first, row]].drop(columns=[*columns, *NUMBERS], errors="ignore")
        differ = [str(name) for name in pair if len(set(pair[name].astype(str))) > 1]
        values = ", ".join(f"{name} {quoted(self.rows[name].tolist()[row])}" for name in columns)
        differences = ", ".join(f"`{name}`" for name in differ)
        raise BadInput(
            f"{self.place(row)}: has the same {values} as row {self.row_numbers[first]}"
            f"{f', and another {differences}' if differ else ''}; {advice}"
        )

    def numbers(self, column: str, least: float = -math.inf, most: float = math.inf) -> pd.Series:
        """Return a column as floats from `least` to `most`, NaN for empty cells."""
        self.check_columns(column)
        if kind := self.kind_of_time(column):
            # pandas reads these as numbers of nanoseconds, and a missing one as -2^63.
            raise BadInput(
                f"{self.name}, column `{column}`: holds {kind}; give numbers, for example of days"
            )
        cells = self.rows[column]
        values = pd.to_numeric(cells, errors="coerce").astype(float)
        if not pd.api.types.is_numeric_dtype(cells):
            texts = cells.astype(str)
            values = values.fillna(texts.str.lower().map(TRUTH))
            if column == "billions":
                values = values.fillna(texts.map(to_billions, na_action="ignore"))
        wrong = (~np.isfinite(values) & ~is_empty(cells)) | (values < least) | (values > most)
        if wrong.any():
            row = int(wrong.argmax())
            wanted = "such as 7 or 7B" if column == "billions" else "like 0.25"
            wanted = wanted if least == -math.inf else f"of {least:g} or more"
            wanted = wanted if most == math.inf else f"from {least:g} to {most:g}"
            value = quoted(cells.tolist()[row])
            raise BadInput(f"{self.place(row, column)}: {value} is not a number {wanted}")
        return values

    def kind_of_time(self, column: str) -> str:
        """Return `dates` or `durations` if a column holds these; else an empty text."""
        return TIMES.get(pd.api.types.infer_dtype(self.rows[column], skipna=True), "")

    def days(self, column: str) -> pd.Series:
        """Return dates as days after the first one, and durations in days."""
        cells = self.rows[column]
        if self.kind_of_time(column) == "durations":
            return (pd.to_timedelta(cells) / pd.Timedelta(days=1)).astype(float)
        dates = pd.to_datetime(cells.astype(str), format="ISO8601", utc=True)
        return (dates - dates.min()) / pd.Timedelta(days=1)

    def scores(self) -> pd.Series:
        """Return the scores: the column `score`, or `estimate` in the result of a statistic.

        A score is NaN if a `note` says why it is undefined; an empty cell without one is refused.
        """
        column = "estimate" if "estimate" in self.rows and "score" not in self.rows else "score"
        values = self.numbers(column)
        missing = values.isna() & (self.notes() == "")
        if missing.any():
            empty = self.place(int(missing.argmax()), column)
            raise BadInput(f"{empty}: is empty; give a number, or say in `note` why there is none")
        return values

    def notes(self) -> pd.Series:
        """Return the column `note`, and how a file says that it has no score, for example NA."""
        notes = self.original.get("note", pd.Series("", self.rows.index))
        notes = notes.fillna("").astype(str).str.strip()  # a note can be NA
        for column in {"score", "estimate"} & set(self.rows):
            marks = self.marks(column)
            notes = notes.mask((notes == "") & (marks != ""), "the score is given as " + marks)
        return notes

    def marks(self, column: str) -> pd.Series:
        """Return how each cell says that it has no value, for example NA; else empty texts."""
        cells = self.original[column]
        if pd.api.types.is_numeric_dtype(cells):
            return pd.Series("", cells.index)
        cells = cells.astype(object).fillna("").astype(str).str.strip()
        return cells.where(is_empty(self.rows[column]), "")

    def texts(self, *columns: str) -> pd.DataFrame:
        """Return columns as texts, in which 1 and 1.0 are the same and empty cells are empty."""
        return self.rows[list(columns)].astype(str).apply(_read_cells).fillna("")

    def groups(self, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.Index]]:
        """Yield the values of `by` and the rows of each group; without `by`, all rows together."""
        self.check_filled(*by)
        if not by:
            yield {}, self.rows.index
            return
        for keys, part in self.rows.groupby(list(by), sort=False, observed=True):
            yield dict(zip(by, keys, strict=True)), part.index

    def is_single(self, columns: Sequence[str]) -> pd.Series:
        """Return which rows are no averages: rows with `all` beside rows with other values."""
        is_all = self.rows[list(columns)].apply(is_overall)
        return ~is_all.loc[:, ~is_all.all()].any(axis=1)


def as_list(columns: str | Sequence[str] | None) -> list[str]:
    """Return the names of columns that a caller gave as one name, several, or none."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def is_empty(cells: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(cells):
        return cells.isna()
    return cells.isna() | (cells.astype(str).str.strip() == "")


def as_numbers(cells: pd.Series) -> pd.Series:
    """Return a column as numbers if each cell is a number or empty; else as it is."""
    numbers = pd.to_numeric(cells.replace("", np.nan), errors="coerce")
    are_numbers = numbers.notna().any() and (numbers.notna() | is_empty(cells)).all()
    return numbers if are_numbers else cells


def is_overall(cells: pd.Series) -> "pd.Series[bool]":
    """Return which cells are names of an average."""
    return cells.astype(str).str.casefold().isin(OVERALL)


def _read_cells(cells: pd.Series) -> pd.Series:
    """Read the texts of a column; other values stay as they are."""
    if pd.api.types.is_numeric_dtype(cells):
        return cells
    try:
        texts = [text for text in cells.unique() if isinstance(text, str)]
    except TypeError:  # such as lists
        return cells
    read = {text: cell for text in texts if (cell := read_cell(text)) != text}
    return cells.astype(object).map(lambda cell: read.get(cell, cell)) if read else cells
