"""The engine of score tables: metrics made of sums of columns, with their intervals and bounds.

A benchmark lists the answers of a run, one row each with columns of numbers, and its metrics. The
score of a category is a function of the sums of these columns, for example the number of right
answers divided by the number of answers; over all categories it is the mean. We compute the
interval with the same function of resampled sums (`bench.metrics.bootstrap`), and the bounds from
the sums with all unreadable answers added.

`Scoring` makes the score table; a benchmark that averages differently overrides its methods.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import (
    Limits,
    Sample,
    Totals,
    interval,
    replicate,
    resample,
    sample_of_parts,
)
from bench.metrics.table import ALL, READABLE, PrimaryMetric, Score, score_table

UNREADABLE = "no answer could be read"


@dataclass(frozen=True)
class Sums:
    """Sums of columns: `sums["correct"]` is an array of n numbers, for example of n categories.

    Attributes:
        columns: names of the columns.
        tasks: the places of the tasks that count.
        values: float64 [n, tasks, columns].

    Examples:
        >>> rows = pd.DataFrame({"category": "age", "task": "ss", "correct": [1.0, 0.0, 1.0]})
        >>> Sums.of_rows(rows, ["correct"])["correct"]
        array([2.])
    """

    columns: Sequence[str]
    tasks: Mapping[str, int]
    values: np.ndarray

    @classmethod
    def of_rows(cls, rows: pd.DataFrame, columns: Sequence[str]) -> Self:
        """Add up columns by category, in the order of the rows, and task."""
        places, categories, tasks = places_of(rows)
        sums = np.zeros((len(categories) * len(tasks), len(columns)))
        np.add.at(sums, places, rows[list(columns)].to_numpy(np.float64))
        return cls(columns, tasks, sums.reshape(len(categories), len(tasks), len(columns)))

    def of_tasks(self, tasks: Collection[str]) -> Self:
        """Return the sums of some tasks; of all, if none is given."""
        own = {name: k for name, k in self.tasks.items() if not tasks or name in tasks}
        return replace(self, tasks=own)

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise BadInput(expected(column, self.columns, "column"))
        own = self.values[:, list(self.tasks.values()), self.columns.index(column)]
        total: np.ndarray = own.sum(1)
        return total


def places_of(rows: pd.DataFrame) -> tuple[np.ndarray, list[str], dict[str, int]]:
    """Return the place of each row among all pairs of a category and a task, and both."""
    (category, categories), (task, tasks) = (
        pd.factorize(rows[name]) for name in ("category", "task")
    )
    return category * len(tasks) + task, list(categories), {name: k for k, name in enumerate(tasks)}


@dataclass(frozen=True, eq=False)
class Metric:
    """A score of each category: a ratio of two sums, or another function of sums.

    Attributes:
        name: the name in the column `metric`.
        task: the task of the answers, or `all`.
        top, bottom: the columns with the sums to divide.
        of: in place of `top` and `bottom`: a function of the `Sums` of n categories or resamples,
            which returns an array of n scores, NaN if undefined.
        parts: in place of both: weights and metrics to add up.
        tasks: the tasks of a metric of `all`; none: the tasks of its parts, or all tasks.
        baseline: the score of a random answerer; NaN if it has none.
        limits: the lowest and highest possible score.
        needs: the column with a sum that must not be 0; default: `bottom`.
        counts: the column with the sum that is reported as `n`; default: `bottom`.
        read: the columns that count all answers and the readable ones.
        unread: the same for the bounds of the score; None: there are no bounds.
        undefined: the reason if there is no score; default: a sentence with the column.
        undefined_without: reasons by column, each for a sum of 0; the first one counts.

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
    undefined: str = ""
    undefined_without: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        """Task and name. These find it in a score table."""
        return self.task, self.name

    def primary(self, title: str, finding: str, **options: Any) -> PrimaryMetric:
        """Make it a primary metric of a benchmark; the arguments are fields of `PrimaryMetric`."""
        fields = {"limits": self.limits, "column": self.top, "of": self.bottom, **options}
        return PrimaryMetric(self.task, self.name, title, finding, **fields)

    @property
    def own_tasks(self) -> Sequence[str]:
        """The tasks of the answers that it rests on; none: all tasks."""
        if self.parts:
            return [task for _, part in self.parts for task in part.own_tasks]
        return self.tasks if self.task == ALL else [self.task]

    def values(self, sums: Sums) -> np.ndarray:
        """Compute the scores [n] of sums."""
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
            return np.full((2, len(sums.values)), np.nan)
        own = sums.of_tasks(self.own_tasks)
        answers, readable = (own[name] for name in self.unread)
        unread = answers - readable
        # The sum of all answers counts the unreadable ones already.
        bottom = answers if self.bottom == self.unread[0] else own[self.bottom] + unread
        return np.stack([own[self.top], own[self.top] + unread]) / bottom

    @property
    def size(self) -> str:
        """The column that says how much a cluster weighs; see `bench.metrics.bootstrap.sample`."""
        return self.parts[0][1].size if self.parts else self.bottom

    def reason(self, sums: Sums) -> str:
        """Say why it is undefined."""
        for column, text in self.undefined_without.items():
            if sums[column].sum() == 0:
                return text
        if self.undefined:
            return self.undefined
        return f"the sum of `{self.bottom}` is 0" if sums[self.read[1]].sum() else UNREADABLE


@dataclass
class Scoring:
    """The answers of a run, their metrics, and the scores in a category or over `all` of them.

    We compute a metric in all categories at once. The last axis of arrays has the categories, in
    the order of the rows, and then the mean or the sum over all.

    Attributes:
        rows: one row per answer: `category`, `task`, `stratum` and `cluster` (the bootstrap
            resamples clusters within strata), and columns of numbers.
        columns: the columns that scores are made of.
        metrics: in the order of the table; metrics of tasks that were not asked are left out.
        preset: the preset, for the column of this name.
        by_task: whether metrics need the sums of each task; else each column is of one task.
        more_columns: columns that only `Metric.counts` and `read` add up.
        crossed: see `bench.metrics.bootstrap.resample`.
        over_defined: whether the mean over categories leaves out those without a score; else it is
            undefined if one of them is.

    Examples:
        >>> rows = pd.DataFrame({"category": "age", "task": "qa", "right": [1.0, 0.0], "n": 1.0})
        >>> Scoring(rows, ["right", "n"], [], "robust").observed["right"]
        array([1.])
    """

    rows: pd.DataFrame
    columns: Sequence[str]
    metrics: Sequence[Metric]
    preset: str
    by_task: bool = True
    more_columns: Sequence[str] = ()
    crossed: tuple[str, str] | None = None
    over_defined: bool = True

    @cached_property
    def categories(self) -> list[str]:
        """The categories, in the order of the rows."""
        return list(self.rows.category.unique())

    @cached_property
    def cells(self) -> np.ndarray:
        """The place of each row among all pairs of a category and a task."""
        return places_of(self.rows)[0]

    @cached_property
    def totals(self) -> Totals:
        """The sums by category and task, as observed and resampled."""
        n = len(self.observed.tasks)
        rows = self.rows.assign(place=self.cells if self.by_task else self.cells // n)
        parts = range(len(self.categories) * (n if self.by_task else 1))
        columns, crossed = list(self.columns), self.crossed
        return resample(
            rows, "stratum", "cluster", columns, part="place", parts=parts, crossed=crossed
        )

    @cached_property
    def observed(self) -> Sums:
        """The sums of each category, by task."""
        return Sums.of_rows(self.rows, [*self.columns, *self.more_columns])

    def outcomes(self) -> pd.DataFrame:
        """List the outcomes, a row per scored unit with the numbers that scores add up."""
        names = ["category", "task", "item_id", "repeat", "cluster", "stratum"]
        return self.rows[[*names, *self.columns]]

    def table(self) -> pd.DataFrame:
        """Compute the score table."""
        rows = [row for metric in self.metrics for row in self.rows_of(metric)]
        places = {name: k for k, name in enumerate([*self.categories, ALL])}
        rows.sort(key=lambda row: places[row.category])
        return score_table(rows)

    def categories_of(self, metric: Metric) -> Sequence[int]:
        """Return the places of the categories, and of all together, in which a metric has a row."""
        return range(len(self.categories) + 1)

    def annotate(self, metric: Metric, row: Score) -> Score:
        """Complete a row with the benchmark's own notes and baselines."""
        return row

    def rows_of(self, metric: Metric) -> Iterator[Score]:
        """Yield the rows of a metric: its score in each category, then over all of them."""
        if not set(self.observed.tasks).issuperset(metric.own_tasks):
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            values, (n, answers, readable) = self.values(metric), self.counts(metric)
            samples = self.samples(metric, values[0])
            rates = readable / answers
            bounds = np.full((2, len(rates)), np.nan)
            if metric.unread and (rates < READABLE).any():
                bounds = np.where(rates < READABLE, self.ends(metric), np.nan)
        names = [*self.categories, ALL]
        for k in self.categories_of(metric):
            value = interval(values[:, k], samples[k], metric.limits)
            note = self.reason(metric, names[k]) if math.isnan(value.value) else ""
            key, rate, (low, high) = (names[k], *metric.place), float(rates[k]), bounds[:, k]
            row = Score(*key, *value, round(n[k]), rate, metric.baseline, self.preset, note)
            row = row._replace(bound_low=float(low), bound_high=float(high))
            yield self.annotate(metric, row)

    def values(self, metric: Metric) -> np.ndarray:
        """Compute the observed scores, then the resampled ones: [1 + draws, categories + 1]."""
        known = self._counted(self._scores(metric, self.totals.observed))
        return replicate(self.totals, lambda sums: with_mean(self._scores(metric, sums), known))

    def samples(self, metric: Metric, observed: np.ndarray) -> list[Sample]:
        """Count the clusters that each of the observed scores [categories + 1] rests on."""
        n = len(self.categories)
        sums = self.totals.observed.reshape(n, -1, len(self.columns))
        tasks = np.arange(sums.shape[1])
        # A score rests on a task if it is undefined without it.
        without = np.repeat(sums[None], len(tasks), axis=0)
        without[tasks, :, tasks] = np.nan
        rests_on = np.isnan(self._scores(metric, without)).T  # [categories, tasks]
        chosen = [*np.eye(n, dtype=bool), self._counted(observed[None, :-1])]
        return [
            sample_of_parts(self.totals, (rests_on & own[:, None]).ravel(), metric.size)
            for own in chosen
        ]

    def _scores(self, metric: Metric, sums: np.ndarray) -> np.ndarray:
        """Compute the scores [n, categories] of n sets of sums, such as resamples."""
        shape = (len(sums) * len(self.categories), -1, len(self.columns))
        tasks = self.observed.tasks if self.by_task else {ALL: 0}
        scores = metric.values(Sums(self.columns, tasks, sums.reshape(shape)))
        return scores.reshape(len(sums), -1)

    def _counted(self, values: np.ndarray) -> np.ndarray:
        """Return which categories count in the mean, by their values [n, categories]."""
        return ~np.isnan(values).any(0) if self.over_defined else np.full(values.shape[1], True)

    def counts(self, metric: Metric) -> np.ndarray:
        """Count the `n` of scores, all answers and readable ones: [3, categories + 1]."""
        sums = self.observed.of_tasks(metric.own_tasks)
        columns = (metric.counts or metric.bottom or metric.read[0], *metric.read)
        counts = np.stack([sums[column] for column in columns])
        return np.column_stack([counts, counts.sum(1)])

    def reason(self, metric: Metric, category: str) -> str:
        """Say why a score is undefined."""
        sums = self.observed.of_tasks(metric.own_tasks)
        own = [category in (ALL, name) for name in self.categories]
        return metric.reason(replace(sums, values=sums.values[own]))

    def ends(self, metric: Metric) -> np.ndarray:
        """Compute the least and the most if all answers were readable: [2, categories + 1]."""
        ends = self.ends_of_categories(metric)
        return with_mean(ends, self._counted(ends))

    def ends_of_categories(self, metric: Metric) -> np.ndarray:
        """Compute the same without the mean over categories."""
        return metric.ends(self.observed)


def with_mean(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Append to values [n, categories] their mean over the known categories."""
    return np.column_stack([values, values[:, known].sum(1) / known.sum()])


def own_scores(
    outcomes: pd.DataFrame, metrics: Sequence[Metric], preset: str, tasks: Collection[str]
) -> pd.DataFrame:
    """Score metrics of a user's own.

    A row without a number in the column `top` of a metric does not count in it. Bounds are given
    for shares of replies: if both columns are 0 or 1.

    Args:
        outcomes: the outcomes of one run, see `bench.outcomes`.
        tasks: the tasks of the benchmark.

    Raises:
        BadInput: a metric has a column or task that there is not.
    """
    numbers = [str(name) for name in outcomes.select_dtypes("number") if name != "repeat"]
    rows = outcomes.copy()
    rows[numbers] = rows[numbers].fillna(0.0)
    columns, ready, sums = list(numbers), [], Sums.of_rows(rows, numbers)
    for metric in metrics:
        if metric.task not in (ALL, *tasks):
            unknown = expected(metric.task, [ALL, *tasks], "task")
            raise BadInput(f"metric {metric.name}: {unknown}")
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                metric.values(sums)
        except BadInput as error:
            raise BadInput(f"metric {metric.name}: {error}") from None
        if metric.top:
            known = outcomes[metric.top].notna()
            if not known.all():
                bottom = f"{metric.bottom} with {metric.top}"
                rows[bottom] = rows[metric.bottom].where(known, 0.0)
                columns.append(bottom)
                metric = replace(metric, bottom=bottom, unread=None)
            elif not rows[[metric.top, metric.bottom, "answered"]].isin([0, 1]).all(axis=None):
                metric = replace(metric, unread=None)
        ready.append(metric)
    crossed = ("category", "crossed") if "crossed" in outcomes else None
    return Scoring(rows, columns, ready, preset, crossed=crossed).table()
