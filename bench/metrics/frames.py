"""Frames and files of users: their columns, numbers and rows, with a sentence for each mistake."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected, quoted
from bench.data.readers import as_path, read_table
from bench.metrics.table import ALL

# What pandas infers of columns with points in time, and lengths of time.
TIMES = dict.fromkeys(("datetime64", "datetime", "date", "period"), "dates")
TIMES |= dict.fromkeys(("timedelta64", "timedelta"), "durations")
# A frame, or the CSV file that holds it.
Frame = pd.DataFrame | str | Path


class Table:
    """A frame of a user, or a CSV file, with the name that messages give it.

    Attributes:
        rows: the rows, numbered from 0; the cells of a file are texts.
        first: the number of the first row in messages: 1 in a file.
    """

    def __init__(self, given: Frame, name: str = "frame") -> None:
        if isinstance(given, pd.DataFrame):
            self.name, self.rows, self.first = name, given.reset_index(drop=True), 0
        elif isinstance(given, str | Path):
            rows = pd.DataFrame(read_table(as_path(given), []))
            self.name, self.rows, self.first = str(given), rows, 1
        else:
            raise BadInput(
                f"{name}: is a {type(given).__name__}; give a frame or a CSV file, such as the "
                "frame that bench.outcomes(RUN) returns"
            )
        if self.rows.empty:
            raise BadInput(f"{self.name}: has no rows")

    def place(self, row: int, column: str = "") -> str:
        """Name a row, and a column of it, as its user does."""
        text = f"{self.name}, row {self.first + row}"
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
                raise BadInput(f"{self.place(int(empty.argmax()), column)}: is empty")

    def check_unique(self, columns: Sequence[str], advice: str) -> None:
        """Refuse two rows that are equal in all of the columns."""
        repeated = self.rows.duplicated(list(columns))
        if not repeated.any():
            return
        row = int(repeated.argmax())
        same = (self.rows[list(columns)] == self.rows.loc[row, list(columns)]).all(axis=1)
        values = ", ".join(f"{name} {quoted(self.rows.loc[row, name])}" for name in columns)
        raise BadInput(
            f"{self.place(row)}: has the same {values} as row {self.first + int(same.argmax())}; "
            f"{advice}"
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
        wrong = (~np.isfinite(values) & ~is_empty(cells)) | (values < least) | (values > most)
        if wrong.any():
            row = int(wrong.argmax())
            wanted = "like 0.25" if least == -math.inf else f"of {least:g} or more"
            wanted = wanted if most == math.inf else f"from {least:g} to {most:g}"
            value = quoted(cells.tolist()[row])
            raise BadInput(f"{self.place(row, column)}: {value} is not a number {wanted}")
        return values

    def kind_of_time(self, column: str) -> str:
        """Return `dates` or `durations` if a column holds these; else an empty text."""
        self.check_columns(column)
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
            place = self.place(int(missing.argmax()), column)
            raise BadInput(f"{place}: is empty; give a number, or say in `note` why there is none")
        return values

    def notes(self) -> pd.Series:
        """Return the column `note`; empty texts without it."""
        notes = self.rows.get("note", pd.Series("", self.rows.index))
        return notes.fillna("").astype(str)

    def groups(self, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.Index]]:
        """Yield the values of `by` and the rows of each group; without `by`, all rows together."""
        self.check_filled(*by)
        if not by:
            yield (), self.rows.index
            return
        for keys, part in self.rows.groupby(list(by), sort=False, observed=True):
            yield keys if isinstance(keys, tuple) else (keys,), part.index

    def is_single(self, columns: Sequence[str]) -> pd.Series:
        """Return which rows are no averages: rows with `all` beside rows with other values."""
        is_all = self.rows[list(columns)] == ALL
        return ~is_all.loc[:, ~is_all.all()].any(axis=1)


def read_scores(path: str | Path, *needed: str) -> pd.DataFrame:
    """Read a CSV of scores measured elsewhere, in the columns that notebooks use.

    Args:
        path: a table with `model` and `score`, and as many of `benchmark`, `category`, `task`,
            `metric`, `title`, `worse` (`higher` or `lower`: the side of more bias) and `note` as it
            has; other columns, for example `billions` or `topic`, are kept.
        needed: other columns that it has to have, for example `prompts`.

    Returns:
        One row per score. A missing `benchmark` or `family` (of models) is the name of the file, a
        missing `category` is `all`; `title` is by default the task and the
        metric; `primary` is true, `doubt` is empty and `unit` is `points`, see `bench.explain`.

    Raises:
        BadInput: the file is no table, lacks a column, or has a score that is no number, or an
            empty one without a note.

    Examples:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "mine.csv")
        >>> _ = file.write_text("model,billions,task,metric,score\\n7B,7,ss,score,77.82\\n")
        >>> read_scores(file)[["model", "billions", "category", "title", "score"]]
          model  billions category      title  score
        0    7B         7      all  ss, score  77.82
    """
    table = Table(path)
    table.check_filled("model", *needed)
    rows = table.rows.assign(score=table.scores(), note=table.notes())
    defaults = {
        "benchmark": Path(path).stem,
        "category": ALL,
        "task": ALL,
        "metric": "score",
        "worse": "",
        "family": Path(path).stem,
    }
    for name, value in defaults.items():
        if name not in rows:
            rows[name] = value
    if "title" not in rows:
        rows["title"] = rows.task + ", " + rows.metric
    for column in set(rows) - {"model", "note", *defaults}:
        numbers = pd.to_numeric(rows[column].replace("", np.nan), errors="coerce")
        if numbers.notna().any() and (numbers.notna() | (rows[column] == "")).all():
            rows[column] = numbers
    by_model = rows.groupby(["title", "model"], sort=False)
    means = by_model.agg("first").reset_index()
    means["score"] = by_model.score.agg(lambda own: own.mean(skipna=False)).to_numpy()
    means["note"] = np.where(means.score.isna(), "a category has no score", "")
    has_all = rows.title[rows.category == ALL]
    means = means[~means.title.isin(has_all)].assign(category=ALL)
    return pd.concat([rows, means], ignore_index=True).assign(primary=True, doubt="", unit="points")


def as_list(columns: str | Sequence[str] | None) -> list[str]:
    """Return the names of columns that a caller gave as one name, several, or none."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def is_empty(cells: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(cells):
        return cells.isna()
    return cells.isna() | (cells.astype(str).str.strip() == "")
