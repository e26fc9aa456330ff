"""The engine of score tables: metrics made of sums of columns, with their intervals and bounds.

A benchmark lists the answers of a run, one row each with columns of numbers, and its metrics. The
score of a category is a function of the sums of these columns; over all categories it is the mean.
Its interval comes from the same function of resampled sums (`bench.metrics.bootstrap`), and its
bounds from the sums with all unreadable answers added.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import (
    Draw,
    Limits,
    Place,
    Replicates,
    Statistic,
    Totals,
    estimate,
    resample,
)
from bench.metrics.table import ALL, READABLE, Score, score_table, with_bounds

UNREADABLE = "no answer could be read"


@dataclass(frozen=True)
class Sums:
    """Sums of columns: `sums["correct"]` is an array of n numbers.

    Attributes:
        columns: names of the columns.
        values: float64 [n, parts, columns]; n is 1 for observed sums, else the resamples.
        parts: the places of the parts that count. A part is a category, and a task in it or another
            division.
    """

    columns: Sequence[str]
    values: np.ndarray
    parts: Mapping[tuple[str, str], int]

    @classmethod
    def of_totals(cls, totals: Totals, values: np.ndarray) -> Self:
        """Name the parts and columns of some of the totals, the observed or the resampled ones."""
        named = (str(name).partition("|") for name in totals.strata)
        parts = {(category, rest): k for k, (category, _, rest) in enumerate(named)}
        return cls(totals.columns, values, parts)

    @classmethod
    def of_rows(cls, rows: pd.DataFrame, columns: Sequence[str]) -> Self:
        """Add up columns by category and task."""
        sums = rows.groupby(["category", "task"], sort=False)[list(columns)].sum()
        return cls(
            columns, sums.to_numpy(np.float64)[None], {p: k for k, p in enumerate(sums.index)}
        )

    def of_categories(self, categories: Collection[str]) -> Self:
        """Return the sums of some categories."""
        return replace(self, parts={p: k for p, k in self.parts.items() if p[0] in categories})

    def of_tasks(self, tasks: Collection[str]) -> Self:
        """Return the sums of some tasks; of all, if none is given."""
        own = {p: k for p, k in self.parts.items() if not tasks or p[1] in tasks}
        return replace(self, parts=own)

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise BadInput(expected(column, self.columns, "column"))
        own = self.values[:, list(self.parts.values()), self.columns.index(column)]
        total: np.ndarray = own.sum(1)
        return total


@dataclass(frozen=True, eq=False)
class Metric:
    """A score of each category: a ratio of two sums, or another function of sums.

    Attributes:
        name: the name in the column `metric`.
        task: the task of the answers, or `all`.
        top, bottom: the columns with the sums to divide.
        of: in place of `top` and `bottom`: a function of the `Sums` of a category, which returns an
            array of n scores, NaN if undefined.
        parts: in place of both: metrics with weights, whose weighted sum it is.
        tasks: the tasks of a metric of `all`; none: those of its parts, or all tasks.
        baseline: the score of a random answerer; NaN if it has none.
        limits: the lowest and highest possible score.
        needs: a column whose sum must not be 0; default: `bottom`.
        counts: the column whose sum is reported as `n`; default: `bottom`.
        read: the columns that count all answers and the readable ones.
        unread: the same for the bounds of the score; default: `read`; None: there are no bounds.
        undefined: the reason if there is no score.
        undefined_without: the reason if the sum of this column is 0; the first one counts.

    Examples:
        >>> Metric("undecided", "ambiguous", "says_unknown", "parsed", baseline=1 / 3).bottom
        'parsed'
    """

    name: str
    task: str = ALL
    top: str = ""
    bottom: str = ""
    of: Callable[[Sums], np.ndarray] | None = None
    parts: Sequence[tuple[float, "Metric"]] = ()
    tasks: Sequence[str] = ()
    baseline: float = math.nan
    limits: Limits = (0, 1)
    needs: str = ""
    counts: str = ""
    read: tuple[str, str] = ("answered", "parsed")
    unread: tuple[str, str] | None = ("answered", "parsed")
    undefined: str = UNREADABLE
    undefined_without: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        """Task and name, which find it in a score table."""
        return self.task, self.name

    @property
    def own_tasks(self) -> Sequence[str]:
        """The tasks of the answers that it rests on; none: all tasks."""
        if self.parts:
            return [task for _, part in self.parts for task in part.own_tasks]
        return self.tasks if self.task == ALL else [self.task]

    def values(self, sums: Sums) -> np.ndarray:
        """Compute the scores [n] of the sums of one category."""
        if self.of:
            return self.of(sums)
        if self.parts:
            return np.sum([weight * part.values(sums) for weight, part in self.parts], axis=0)
        own = sums.of_tasks(self.own_tasks)
        return np.where(
            own[self.needs or self.bottom] > 0, own[self.top] / own[self.bottom], np.nan
        )

    def ends(self, sums: Sums) -> np.ndarray:
        """Compute the least and the most that a ratio could be if all answers were readable.

        An unreadable answer may add 1 to the upper sum and to the lower one.
        """
        if self.parts:
            return np.sum([weight * part.ends(sums) for weight, part in self.parts], axis=0)
        if self.unread is None or self.of:
            return np.array([np.nan, np.nan])
        own = sums.of_tasks(self.own_tasks)
        asked, read = (own[name] for name in self.unread)
        # The sum of all answers counts the unreadable ones already.
        bottom = asked if self.bottom == self.unread[0] else own[self.bottom] + asked - read
        return np.concatenate([own[self.top], own[self.top] + asked - read]) / bottom

    @property
    def size(self) -> str:
        """The column that says how much a cluster weighs; see `bench.metrics.bootstrap.sample`."""
        return self.parts[0][1].size if self.parts else self.bottom

    def reason(self, sums: Sums) -> str:
        """Say why it is undefined."""
        for column, text in self.undefined_without.items():
            if sums[column].sum() == 0:
                return text
        return self.undefined


@dataclass(frozen=True)
class Scoring:
    """The answers of a run, and how they are scored.

    Attributes:
        rows: one row per answer: `category`, `task`, `stratum` and `cluster` (the bootstrap
            resamples clusters within strata), the columns of `sums`, and `part`.
        sums: the columns that metrics add up.
        counts: more columns, which only `Metric.counts` and `read` add up.
        metrics: in the order of the table.
        preset: for the column of this name.
        compared: task and name of the metrics that models are compared in.
        part: the column that divides a category: its values are the category, |, and a name.
        crossed: see `bench.metrics.bootstrap.resample`.
        over_defined: whether the mean over categories leaves out those without a score; else it is
            undefined if one of them is.
        extremes: a function from a category to the sums [n, 1, columns] that it could have if all
            answers were readable, for metrics that are no ratio.
        annotate: a function that completes the table with the benchmark's own notes.
    """

    rows: pd.DataFrame
    sums: Sequence[str]
    metrics: Sequence[Metric]
    preset: str
    counts: Sequence[str] = ()
    compared: Collection[tuple[str, str]] = ()
    part: str = "part"
    crossed: tuple[str, str] | None = None
    over_defined: bool = True
    extremes: Callable[[str], Sums] | None = None
    annotate: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table

    @property
    def categories(self) -> list[str]:
        """The categories, in the order of the rows."""
        return list(dict.fromkeys(self.rows.category))

    def groups(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each category with itself, then `all` with all of them."""
        yield from ((category, [category]) for category in self.categories)
        yield ALL, self.categories

    def asked_metrics(self) -> list[Metric]:
        """Return the metrics whose tasks were asked."""
        asked = set(self.rows.task)
        return [metric for metric in self.metrics if asked >= set(metric.own_tasks)]

    def resampled(self, draw: Draw = resample) -> Totals:
        """Add up the columns, as observed and in resamples."""
        columns = list(self.sums)
        return draw(self.rows, "stratum", "cluster", columns, part=self.part, crossed=self.crossed)

    def statistic(self, totals: Totals, metric: Metric, categories: Sequence[str]) -> Statistic:
        """Return the mean of a metric over categories, as a function of sums."""

        def by_category(values: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
            sums = Sums.of_totals(totals, values)
            return [metric.values(sums.of_categories([name])) for name in names]

        names = categories
        if self.over_defined:
            with np.errstate(divide="ignore", invalid="ignore"):
                observed = by_category(totals.observed, categories)
            known = zip(categories, observed, strict=True)
            names = [name for name, value in known if not np.isnan(value[0])]
        if not names:
            return lambda values: np.full(len(values), np.nan)
        return lambda values: np.mean(by_category(values, names), axis=0)

    def bounds(
        self, counts: Sums, metric: Metric, categories: Sequence[str]
    ) -> tuple[float, float]:
        """Compute the least and the most that a mean over categories could be."""
        ends = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for category in categories:
                if self.extremes and metric.unread:
                    values = metric.values(self.extremes(category))
                    ends.append([values.min(), values.max()])
                else:
                    ends.append(metric.ends(counts.of_categories([category])))
        known = [pair for pair in ends if not (self.over_defined and np.isnan(pair).any())]
        low, high = np.mean(known, axis=0) if known else (math.nan, math.nan)
        return float(low), float(high)


def score(scoring: Scoring) -> pd.DataFrame:
    """Compute a score table: each metric of each category, then over all."""
    totals = scoring.resampled()
    counts = Sums.of_rows(scoring.rows, [*scoring.sums, *scoring.counts])
    rows = []
    for category, names in scoring.groups():
        for metric in scoring.asked_metrics():
            statistic = scoring.statistic(totals, metric, names)
            value = estimate(totals, statistic, metric.limits, metric.size)
            own = counts.of_categories(names).of_tasks(metric.own_tasks)
            asked, read = (float(own[column][0]) for column in metric.read)
            rate = read / asked if asked else math.nan
            n = int(own[metric.counts or metric.bottom or metric.read[0]][0])
            note = metric.reason(own) if math.isnan(value.value) else ""
            row = Score(
                category, *metric.place, *value, n, rate, metric.baseline, scoring.preset, note
            )
            if rate < READABLE:
                row = with_bounds(row, scoring.bounds(counts, metric, names), rate)
            rows.append(row)
    return scoring.annotate(score_table(rows))


def replicates(scoring: Scoring, draw: Draw = resample) -> Replicates:
    """Compute the scores that models are compared in, observed and resampled by `draw`."""
    totals = scoring.resampled(draw)
    scores = Replicates()
    for metric in scoring.asked_metrics():
        if metric.place in scoring.compared:
            for category, names in scoring.groups():
                statistic = scoring.statistic(totals, metric, names)
                scores.keep(
                    (category, *metric.place), totals, statistic, metric.limits, metric.size
                )
    return scores


def bounds(scoring: Scoring) -> dict[Place, tuple[float, float]]:
    """Compute the least and the most that each compared score over all categories could be."""
    counts = Sums.of_rows(scoring.rows, [*scoring.sums, *scoring.counts])
    return {
        (ALL, *metric.place): scoring.bounds(counts, metric, scoring.categories)
        for metric in scoring.asked_metrics()
        if metric.place in scoring.compared
    }
