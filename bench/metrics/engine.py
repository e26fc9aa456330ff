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
    Statistic,
    Totals,
    interval,
    replicate,
    resample,
    sample,
)
from bench.metrics.table import ALL, READABLE, PrimaryMetric, Score, score_table

UNREADABLE = "no answer could be read"


@dataclass(frozen=True)
class Sums:
    """Sums of columns: `sums["correct"]` is an array of n numbers.

    Attributes:
        columns: names of the columns.
        values: float64 [n, parts, columns]; n is 1 for observed sums, else the resamples.
        parts: the places of the parts that count. A part is a category, and a task in it or another
            division.

    Examples:
        >>> rows = pd.DataFrame({"category": "age", "task": "ss", "correct": [1.0, 0.0, 1.0]})
        >>> Sums.of_rows(rows, ["correct"])["correct"]
        array([2.])
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
        answers, readable = (own[name] for name in self.unread)
        unread = answers - readable
        # The sum of all answers counts the unreadable ones already.
        bottom = answers if self.bottom == self.unread[0] else own[self.bottom] + unread
        return np.concatenate([own[self.top], own[self.top] + unread]) / bottom

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

    Attributes:
        rows: one row per answer: `category`, `task`, `stratum` and `cluster` (the bootstrap
            resamples clusters within strata), `part`, and columns of numbers.
        columns: the columns that scores are made of.
        metrics: in the order of the table; metrics of tasks that were not asked are left out.
        preset: the preset, for the column of this name.
        part: the column that divides a category: its values are the category, |, and a name.
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
    part: str = "part"
    more_columns: Sequence[str] = ()
    crossed: tuple[str, str] | None = None
    over_defined: bool = True

    @cached_property
    def categories(self) -> list[str]:
        """The categories, in the order of the rows."""
        return list(self.rows.category.unique())

    @cached_property
    def totals(self) -> Totals:
        """The sums by part, as observed and resampled."""
        columns = list(self.columns)
        return resample(
            self.rows, "stratum", "cluster", columns, part=self.part, crossed=self.crossed
        )

    @cached_property
    def observed(self) -> Sums:
        """The sums by category and task."""
        return Sums.of_rows(self.rows, [*self.columns, *self.more_columns])

    def names(self, category: str) -> list[str]:
        """Return the category itself, or all of them."""
        return self.categories if category == ALL else [category]

    def table(self) -> pd.DataFrame:
        """Compute the score table."""
        rows = [self.row(metric, category) for category, metric in self.rows_of_table()]
        return self.annotate(score_table(rows))

    def outcomes(self) -> pd.DataFrame:
        """List the outcomes, a row per scored unit with the numbers that scores add up."""
        names = ["category", "task", "item_id", "repeat", "cluster", "stratum"]
        return self.rows[[*names, *self.columns]]

    def row(self, metric: Metric, category: str) -> Score:
        """Compute a row of the score table."""
        values, rests_on = self.values(metric, category), self.sample(metric, category)
        value = interval(values, rests_on, metric.limits)
        n, answers, readable = self.counts(metric, category)
        rate = readable / answers if answers else math.nan
        note = self.reason(metric, category) if math.isnan(value.value) else ""
        key = (category, *metric.place)
        row = Score(*key, *value, round(n), rate, metric.baseline, self.preset, note)
        if rate < READABLE and metric.unread:
            low, high = self.ends(metric, category)
            row = row._replace(bound_low=low, bound_high=high)
        return row

    def annotate(self, table: pd.DataFrame) -> pd.DataFrame:
        """Complete the table with the benchmark's own notes and baselines."""
        return table

    def rows_of_table(self) -> Iterator[tuple[str, Metric]]:
        """Yield the category and the metric of each row, in the order of the table."""
        tasks = set(self.rows.task.unique())
        for category in [*self.categories, ALL]:
            for metric in self.metrics:
                if tasks.issuperset(metric.own_tasks):
                    yield category, metric

    def statistic(self, metric: Metric, category: str) -> Statistic:
        """Return a metric, or its mean over all categories, as a function of sums."""
        names = self.names(category)
        if self.over_defined:
            observed = self._by_category(metric, names, self.totals.observed)
            known = zip(names, observed, strict=True)
            names = [name for name, value in known if not np.isnan(value[0])]
        if not names:
            return lambda values: np.full(len(values), np.nan)
        return lambda values: np.mean(self._by_category(metric, names, values), axis=0)

    def _by_category(
        self, metric: Metric, names: Sequence[str], values: np.ndarray
    ) -> list[np.ndarray]:
        sums = Sums.of_totals(self.totals, values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return [metric.values(sums.of_categories([name])) for name in names]

    def values(self, metric: Metric, category: str) -> np.ndarray:
        """Compute a score: the observed one, then the resampled ones."""
        return replicate(self.totals, self.statistic(metric, category))

    def sample(self, metric: Metric, category: str) -> Sample:
        """Count the clusters that a score rests on."""
        return sample(self.totals, self.statistic(metric, category), metric.size)

    def counts(self, metric: Metric, category: str) -> tuple[float, float, float]:
        """Return the `n` of a score, the answers that it rests on, and the readable ones."""
        sums = self._asked(metric, category)
        n = sums[metric.counts or metric.bottom or metric.read[0]]
        answers, readable = (sums[column] for column in metric.read)
        return float(n[0]), float(answers[0]), float(readable[0])

    def reason(self, metric: Metric, category: str) -> str:
        """Say why a score is undefined."""
        return metric.reason(self._asked(metric, category))

    def _asked(self, metric: Metric, category: str) -> Sums:
        """Return the sums over all answers that a metric rests on."""
        return self.observed.of_categories(self.names(category)).of_tasks(metric.own_tasks)

    def ends(self, metric: Metric, category: str) -> tuple[float, float]:
        """Compute the least and the most that a score could be if all answers were readable."""
        ends = [self.ends_of_category(metric, name) for name in self.names(category)]
        known = [pair for pair in ends if not (self.over_defined and np.isnan(pair).any())]
        low, high = np.mean(known, axis=0) if known else (math.nan, math.nan)
        return float(low), float(high)

    def ends_of_category(self, metric: Metric, category: str) -> np.ndarray:
        """Compute the least and the most that the score of one category could be."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return metric.ends(self.observed.of_categories([category]))


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
    rows = outcomes.assign(part=outcomes.category + "|" + outcomes.task)
    rows[numbers] = rows[numbers].fillna(0.0)
    columns, ready = list(numbers), []
    for metric in metrics:
        if metric.task not in (ALL, *tasks):
            unknown = expected(metric.task, [ALL, *tasks], "task")
            raise BadInput(f"metric {metric.name}: {unknown}")
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                metric.values(Sums.of_rows(rows, numbers))
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
