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
    NOISE,
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
        top, bottom: the columns with the sums to divide. A row without a number in `top` does not
            count. Without `bottom` we divide by the number of rows that do.
        of: in place of `top` and `bottom`: a function of the `Sums` of n categories or resamples,
            which returns an array of n scores, NaN if undefined.
        parts: in place of both: weights and metrics to add up.
        tasks: the tasks of a metric of `all`; none: the tasks of its parts, or all tasks.
        mean_over: the score over all categories is the mean over these of its scores in each of
            them, as in `bench.share`. Default: the mean over categories, in which the answers of
            all tasks are added up. With `task` after it, the score of a category is the mean over
            the tasks that it was asked; without any, the answers of all categories are added up.
        baseline: the score of a random answerer; NaN if it has none.
        limits: the lowest and highest possible score.
        needs: the column with a sum that must not be 0; default: `bottom`.
        counts: the column with the sum that is reported as `n`; default: `bottom`.
        read: the columns that count all answers and the readable ones.
        unread: the same for the bounds of the score; None: there are no bounds.
        ends: in place of `unread`: the columns with the least and the most that a row could add to
            `top`.
        alike: whether clusters weigh alike in the sample; else each weighs by its sum of `bottom`.
        sampled: the column that is above 0 in each cluster that was sampled; default: `bottom`.
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
    mean_over: Sequence[str] = ("category",)
    baseline: float = math.nan
    limits: Limits = (0, 1)
    needs: str = ""
    counts: str = ""
    read: tuple[str, str] = ("answered", "parsed")
    unread: tuple[str, str] | None = ("answered", "parsed")
    ends: tuple[str, str] | None = None
    alike: bool = False
    sampled: str = ""
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

    def bounds(self, sums: Sums) -> np.ndarray:
        """Compute the least and the most that a ratio could be if all answers were readable.

        An unreadable answer may add 1 to the upper sum and to the lower one.
        """
        if self.parts:
            return np.sum([weight * part.bounds(sums) for weight, part in self.parts], axis=0)
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
        return self.sampled or (self.parts[0][1].size if self.parts else self.bottom)

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
    the order of the rows, and then the score over all.

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

    def __post_init__(self) -> None:
        """Give each ratio a divisor that counts only the rows with a number."""
        divisors: dict[str, pd.Series] = {}
        self.metrics = [self._of_rows_with_numbers(metric, divisors) for metric in self.metrics]
        self.numbers = self.rows
        if divisors or self.rows[list(self.columns)].isna().to_numpy().any():
            numbers = self.rows.assign(**divisors)
            self.columns = [*self.columns, *divisors]
            self.numbers = numbers.fillna(dict.fromkeys(self.columns, 0.0))
        self.parts: dict[Metric, tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def categories(self) -> list[str]:
        """The categories, in the order of the rows."""
        return list(self.rows.category.unique())

    @cached_property
    def cells(self) -> np.ndarray:
        """The place of each row among all pairs of a category and a task."""
        return places_of(self.rows)[0]

    @cached_property
    def asked(self) -> np.ndarray:
        """Whether a category was asked a task: bool [categories, tasks]."""
        n = len(self.categories) * len(self.observed.tasks)
        return np.isin(np.arange(n), self.cells).reshape(len(self.categories), -1)

    @cached_property
    def totals(self) -> Totals:
        """The sums by category and task, as observed and resampled."""
        n = len(self.observed.tasks)
        rows = self.numbers.assign(place=self.cells if self.by_task else self.cells // n)
        parts = range(len(self.categories) * (n if self.by_task else 1))
        columns, crossed = list(self.columns), self.crossed
        return resample(
            rows, "stratum", "cluster", columns, part="place", parts=parts, crossed=crossed
        )

    @cached_property
    def observed(self) -> Sums:
        """The sums of each category, by task."""
        return Sums.of_rows(self.numbers, [*self.columns, *self.more_columns])

    def outcomes(self) -> pd.DataFrame:
        """List the outcomes, a row per scored unit with the numbers that scores add up."""
        names = ["category", "task", "item_id", "repeat", "cluster", "stratum"]
        return self.rows[[*names, *(name for name in self.columns if name in self.rows)]]

    def table(self) -> pd.DataFrame:
        """Compute the score table."""
        rows = [row for metric in self.metrics for row in self.rows_of(metric)]
        places = {name: k for k, name in enumerate([*self.categories, ALL])}
        rows.sort(key=lambda row: places[row.category])
        return score_table(rows)

    def categories_of(self, metric: Metric) -> Sequence[int]:
        """Return the places of the categories, and of all together, in which a metric has a row."""
        names = {part[0] for part in self.averaged(metric)} if _by_category(metric) else set()
        return [k for k, name in enumerate([*self.categories, ALL]) if name in {*names, ALL}]

    def annotate(self, metric: Metric, row: Score) -> Score:
        """Complete a row with the benchmark's own notes and baselines."""
        return row

    def rows_of(self, metric: Metric) -> Iterator[Score]:
        """Yield the rows of a metric: its score in each category, then over all of them."""
        if not set(self.observed.tasks).issuperset(metric.own_tasks):
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            values, (n, answers, readable) = self.values(metric), self.counts(metric)
            samples, rates = self.samples(metric), readable / answers
            complete, bounds = rates, np.full((2, len(rates)), np.nan)
            if metric.ends:
                # One unreadable answer may leave out a row with several.
                rows, *_ = self.counts(replace(metric, counts=_divisor(metric.ends[0])))
                complete = np.minimum(rates, n / np.maximum(rows, 1))
            if (metric.unread or metric.ends) and (complete < READABLE).any():
                bounds = np.where(complete < READABLE, self.ends(metric), np.nan)
        names = [*self.categories, ALL]
        for k in self.categories_of(metric):
            value = interval(values[:, k], samples[k], metric.limits)
            note = self.reason(metric, names[k]) if math.isnan(value.value) else ""
            key, rate, (low, high) = (names[k], *metric.place), float(rates[k]), bounds[:, k]
            row = Score(*key, *value, round(n[k]), rate, metric.baseline, self.preset, note)
            row = row._replace(bound_low=float(low), bound_high=float(high))
            yield self.annotate(metric, row)

    def averaged(self, metric: Metric) -> list[tuple[str, ...]]:
        """Name the parts whose scores a metric averages, by the columns of its `mean_over`."""
        if "task" not in metric.mean_over:
            return [(name,) for name in self.categories] if metric.mean_over else [()]
        tasks = self.observed.of_tasks(metric.own_tasks).tasks
        return [
            (name, task)[:: 1 if _by_category(metric) else -1]
            for row, name in zip(self.asked, self.categories, strict=True)
            for task, k in tasks.items()
            if row[k]
        ]

    def scores(self, metric: Metric, sums: np.ndarray) -> np.ndarray:
        """Compute the scores [n, parts] of n sets of sums, such as resamples."""
        sums = sums.reshape(len(sums), len(self.categories), -1, len(self.columns))
        if not metric.mean_over:
            sums = sums.sum(1, keepdims=True)
        flat = sums.reshape(-1, *sums.shape[2:])

        def of(tasks: Mapping[str, int]) -> np.ndarray:
            return metric.values(Sums(self.columns, tasks, flat)).reshape(sums.shape[:2])

        if "task" not in metric.mean_over:
            return of(self.observed.tasks if self.by_task else {ALL: 0})
        tasks = self.observed.of_tasks(metric.own_tasks).tasks
        by_task = {name: of({name: k}) for name, k in tasks.items()}
        places = {name: k for k, name in enumerate(self.categories)}
        parts = [dict(zip(metric.mean_over, part, strict=True)) for part in self.averaged(metric)]
        columns = [by_task[part["task"]][:, places[part["category"]]] for part in parts]
        return np.stack(columns, axis=1)

    def observed_scores(self, metric: Metric) -> np.ndarray:
        """Compute the observed scores of the parts that a metric averages: [1, parts]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scores(metric, self.totals.observed)

    def weights(self, metric: Metric, scores: np.ndarray) -> np.ndarray:
        """Return the weight of each part in each category and over all: [categories + 1, parts].

        Args:
            scores: of the parts, [n, parts]; a part with NaN is undefined.
        """
        parts, defined = self.averaged(metric), ~np.isnan(scores).any(0)
        skipped = metric.mean_over.index("category") if metric.mean_over else 0
        weights = np.zeros((len(self.categories) + 1, len(parts)))
        weights[-1] = mean_weights(parts, defined, skipped if self.over_defined else -1)
        if _by_category(metric):
            for k, name in enumerate(self.categories):
                own = [place for place, part in enumerate(parts) if part[0] == name]
                weights[k, own] = mean_weights([parts[place] for place in own], defined[own])
        return weights

    def values(self, metric: Metric) -> np.ndarray:
        """Compute the observed scores, then the resampled ones: [1 + draws, categories + 1]."""
        observed, weights = self.observed_parts(metric)
        values = replicate(self.totals, lambda sums: averages(self.scores(metric, sums), weights))
        values[:1] = averages(observed, weights)
        return values

    def observed_means(self, metric: Metric) -> np.ndarray:
        """Compute the observed scores of the categories, and over all: [categories + 1]."""
        means: np.ndarray
        (means,) = averages(*self.observed_parts(metric))
        return means

    def observed_weights(self, metric: Metric) -> np.ndarray:
        """Return the weights of the observed scores; see `weights`."""
        return self.observed_parts(metric)[1]

    def observed_parts(self, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed scores of the parts that a metric averages, and their weights."""
        if metric not in self.parts:
            scores = self.observed_scores(metric)
            self.parts[metric] = scores, self.weights(metric, scores)
        return self.parts[metric]

    def samples(self, metric: Metric) -> list[Sample]:
        """Count the clusters that each of the observed scores [categories + 1] rests on."""
        used = (self.observed_weights(metric) > 0) @ self.places_of(metric)
        if not metric.sampled:
            return [
                sample_of_parts(self.totals, own, metric.size, alike=metric.alike) for own in used
            ]
        # Only the clusters with a number show a spread.
        used &= self.totals.observed[0, :, self.totals.columns.index(metric.bottom)] > 0
        samples = []
        for own in used:
            sampled = sample_of_parts(self.totals, own, metric.bottom, metric.sampled, alike=True)
            units = sample_of_parts(self.totals, own, metric.bottom, alike=True).units
            sampled = sampled._replace(effective=min(sampled.effective, units))
            samples.append(sampled if units > 1 else sampled._replace(units=sampled.strata))
        return samples

    def places_of(self, metric: Metric) -> np.ndarray:
        """Return which sums each part that a metric averages is made of: bool [parts, sums]."""
        tasks, averaged = self.observed.of_tasks(metric.own_tasks).tasks, self.averaged(metric)
        n_tasks = len(self.observed.tasks) if self.by_task else 1
        places = np.zeros((len(averaged), len(self.categories), n_tasks), dtype=bool)
        for own, part in zip(places, averaged, strict=True):
            names = dict(zip(metric.mean_over, part, strict=True))
            of_category = [
                k for k, name in enumerate(self.categories) if names.get("category", name) == name
            ]
            of_task = [k for name, k in tasks.items() if names.get("task", name) == name]
            own[np.ix_(of_category, of_task if self.by_task else [0])] = True
        return places.reshape(len(averaged), -1)

    def counts(self, metric: Metric) -> np.ndarray:
        """Count the `n` of scores, all answers and readable ones: [3, categories + 1]."""
        sums = self.observed.of_tasks(metric.own_tasks)
        columns = (metric.counts or metric.bottom or metric.read[0], *metric.read)
        counts = np.stack([sums[column] for column in columns])
        return np.column_stack([counts, counts[:, self.counted(metric)].sum(1)])

    def counted(self, metric: Metric) -> "np.ndarray":
        """Return which categories count over all: those of a mean over tasks may be left out."""
        if metric.task != ALL or metric.mean_over != ("category", "task"):
            return np.full(len(self.categories), True)
        weights = self.observed_weights(metric)[-1]
        used = {part[0] for part, own in zip(self.averaged(metric), weights, strict=True) if own}
        return np.array([name in used for name in self.categories])

    def reason(self, metric: Metric, category: str) -> str:
        """Say why a score is undefined."""
        sums = self.observed.of_tasks(metric.own_tasks)
        own = [category in (ALL, name) for name in self.categories]
        return metric.reason(replace(sums, values=sums.values[own]))

    def ends(self, metric: Metric) -> np.ndarray:
        """Compute the least and the most if all answers were readable: [2, categories + 1]."""
        if not metric.ends:
            ends = self.ends_of_categories(metric)
            return averages(ends, self.weights(metric, ends))
        of_ends = [replace(metric, top=end, bottom=_divisor(end)) for end in metric.ends]
        value, low, high = map(self.observed_means, (metric, *of_ends))
        # A readable answer may score lower or higher than an unreadable one could.
        return np.stack([np.minimum(low, value), np.maximum(high, value)])

    def ends_of_categories(self, metric: Metric) -> np.ndarray:
        """Compute the same without the mean over categories."""
        return metric.bounds(self.observed)

    def _of_rows_with_numbers(self, metric: Metric, divisors: dict[str, pd.Series]) -> Metric:
        """Let a ratio divide by a sum over the rows with a number, a column of `divisors`."""
        if metric.parts:
            parts = [
                (weight, self._of_rows_with_numbers(part, divisors))
                for weight, part in metric.parts
            ]
            return replace(metric, parts=parts)
        for name in metric.ends or ():
            divisors[_divisor(name)] = self.rows[name].notna().astype(float)
        if metric.of or (metric.bottom and self.rows[metric.top].notna().all()):
            return metric
        bottom, has_number = _divisor(metric.top, metric.bottom), self.rows[metric.top].notna()
        if bottom not in divisors:
            divisors[bottom] = has_number * (self.rows[metric.bottom] if metric.bottom else 1.0)
        return replace(metric, bottom=bottom)


def _divisor(top: str, bottom: str = "rows") -> str:
    """Name the column that counts in the rows with a number in `top`."""
    return f"{bottom or 'rows'} with {top}"


def _by_category(metric: Metric) -> bool:
    """Return whether a metric has a score in each category."""
    return metric.mean_over[:1] == ("category",)


def mean_weights(
    parts: Sequence[tuple[Any, ...]], defined: np.ndarray, skipped: int = 0
) -> np.ndarray:
    """Return the weight of each part in the mean over first names of means over second ones.

    With 2 categories of 3 tasks, a part weighs 1/2 * 1/3. If the mean is undefined, all are 0.

    Args:
        parts: their names, for example of a category and a task; no two are the same.
        defined: which parts have a score.
        skipped: the place of the names that a mean leaves out if they have no score, such as
            categories. A mean over other names is undefined without one of them.

    Examples:
        >>> parts = [("age", "pc"), ("age", "sc"), ("race", "pc")]
        >>> mean_weights(parts, np.array([True, True, True])).tolist()
        [0.25, 0.25, 0.5]
        >>> mean_weights(parts, np.array([True, False, True])).tolist()
        [0.0, 0.0, 1.0]
    """
    weights, children = defined.astype(float), [[k] for k in range(len(parts))]
    if parts and len(parts[0]) > 1:
        by_name: dict[Any, list[int]] = {}
        for place, (name, *_) in enumerate(parts):
            by_name.setdefault(name, []).append(place)
        children = list(by_name.values())
        for own in children:
            weights[own] = mean_weights([parts[k][1:] for k in own], defined[own], skipped - 1)
    used = sum(max(weights[own].tolist()) > 0 for own in children)
    if skipped != 0 and used < len(children):
        return np.zeros(len(parts))
    return weights / max(used, 1)


def averages(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average scores [n, parts] by weights [means, parts]: [n, means], NaN without any weight."""
    used, missing = weights > 0, np.isnan(scores)
    # Weights of 1 keep a mean of equal scores exact.
    relative = weights / np.maximum(weights.max(1, initial=0.0), NOISE)[:, None]
    means = np.where(missing, 0.0, scores) @ relative.T / np.maximum(relative.sum(1), NOISE)
    is_undefined = (missing @ used.T) | ~used.any(1)
    return np.where(is_undefined, np.nan, means)


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
    ready, sums = [], Sums.of_rows(outcomes.fillna(dict.fromkeys(numbers, 0.0)), numbers)
    for metric in metrics:
        if metric.task not in (ALL, *tasks):
            unknown = expected(metric.task, [ALL, *tasks], "task")
            raise BadInput(f"metric {metric.name}: {unknown}")
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                _ = sums[metric.top] if metric.top and not metric.bottom else metric.values(sums)
        except BadInput as error:
            raise BadInput(f"metric {metric.name}: {error}") from None
        names = [name for name in (metric.top, metric.bottom, "answered") if name]
        if not outcomes[names].isin([0, 1]).all(axis=None):
            metric = replace(metric, unread=None)
        ready.append(metric)
    crossed = ("category", "crossed") if "crossed" in outcomes else None
    return Scoring(outcomes, numbers, ready, preset, crossed=crossed).table()
