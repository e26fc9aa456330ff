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
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import (
    NOISE,
    Limits,
    Sample,
    Totals,
    count_clusters,
    interval,
    replicate,
    resample,
)
from bench.metrics.table import ALL, READABLE, PrimaryMetric, Score, score_table

UNREADABLE = "no answer could be read"


@dataclass(frozen=True)
class Sums:
    """Sums of columns: `sums["correct"]` is an array of n x m numbers, for m categories.

    Attributes:
        columns: names of the columns.
        values: float64 [n, cells, columns], for example of n resamples.
        cells: int [m, k], the indices of the k cells that each of m numbers adds up. None if each
            number is one cell.

    Examples:
        >>> Sums(["right", "n"], np.array([[[1.0, 4.0], [2.0, 5.0]]]))["right"]
        array([[1., 2.]])
    """

    columns: Sequence[str]
    values: np.ndarray
    cells: np.ndarray | None = None

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise BadInput(expected(column, self.columns, "column"))
        return self.added(self.columns.index(column))

    def added(self, columns: int | slice) -> np.ndarray:
        """Return the sums of a column, or of a slice of columns."""
        values: np.ndarray = self.values[..., columns]
        return values if self.cells is None else values[:, self.cells].sum(2)


@dataclass(frozen=True, eq=False)
class Metric:
    """A score of each category: a ratio of two sums, or another function of sums.

    Attributes:
        name: the name in the column `metric`.
        task: the task of the answers, or `all`.
        top, bottom: the columns with the sums to divide. A row without a number in `top` does not
            count. Without `bottom`, we divide by the number of rows that count.
        of: instead of `top` and `bottom`: a function of `Sums`, which returns an array of scores
            of the same shape, NaN if undefined.
        parts: instead of these: weights and metrics, for a weighted sum.
        tasks: the tasks of a metric of `all`. Default: the tasks of its parts, or all tasks.
        mean_over: the score over all categories is the mean over these of its scores in each of
            them, as in `bench.share`. Default: the mean over categories, in which the answers of
            all tasks are added up. With `task` after it, the score of a category is the mean over
            the tasks that it was asked. If empty, the answers of all categories are added up.
        baseline: the score of a random answerer; NaN if it has none.
        limits: the lowest and highest possible score.
        needs: the column with a sum that must not be 0; default: `bottom`.
        counts: the column with the sum that is reported as `n`; default: `bottom`.
        read: the columns that count all answers and the readable ones.
        unread: the same columns for the bounds of the score; None if it has no bounds.
        ends: instead of `unread`: the columns with the least and the most that a row could add to
            `top`.
        alike: whether all clusters have the same weight in the sample size; else the weight of a
            cluster is its sum of `bottom`.
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
    def key(self) -> tuple[str, str]:
        """The task and the name, which identify its rows in a score table."""
        return self.task, self.name

    def primary(self, title: str, finding: str, **options: Any) -> PrimaryMetric:
        """Make it a primary metric of a benchmark; the arguments are fields of `PrimaryMetric`."""
        fields = {"limits": self.limits, "column": self.top, "of": self.bottom, **options}
        return PrimaryMetric(self.task, self.name, title, finding, **fields)

    @property
    def used_tasks(self) -> Sequence[str]:
        """The tasks whose answers it uses; empty for all tasks."""
        if self.parts:
            return [task for _, part in self.parts for task in part.used_tasks]
        return self.tasks if self.task == ALL else [self.task]

    def values(self, sums: Sums) -> np.ndarray:
        """Compute the scores of sums, of the same shape."""
        if self.of:
            return self.of(sums)
        return np.where(
            sums[self.needs or self.bottom] > 0, sums[self.top] / sums[self.bottom], np.nan
        )

    def bounds(self, sums: Sums) -> np.ndarray:
        """Compute the lowest and highest possible value of a ratio, had all answers been readable.

        Each unreadable answer adds 1 to the divisor, and 0 or 1 to the dividend.
        """
        if self.unread is None or self.of:
            return np.full((2, *self.values(sums).shape), np.nan)
        answers, readable = (sums[name] for name in self.unread)
        unread = answers - readable
        # The sum of all answers counts the unreadable ones already.
        bottom = answers if self.bottom == self.unread[0] else sums[self.bottom] + unread
        return np.stack([sums[self.top], sums[self.top] + unread]) / bottom

    @property
    def size(self) -> str:
        """The column with the weights of clusters; "" if all have the same weight."""
        return self.sampled or (self.parts[0][1].size if self.parts else self.bottom)

    def reason(self, sums: Mapping[str, float]) -> str:
        """Return the reason why it is undefined."""
        for column, text in self.undefined_without.items():
            if sums[column] == 0:
                return text
        if self.undefined:
            return self.undefined
        return f"the sum of `{self.bottom}` is 0" if sums[self.read[1]] else UNREADABLE


class Parts(NamedTuple):
    """The parts of the data whose scores a metric averages.

    Attributes:
        names: the names of each part, for example a category and a task (see `mean_over`).
        cells: int [parts, k], the indices of the sums that make up each part.
        of_category: bool [categories, parts], the parts that the score of a category averages.
    """

    names: list[tuple[str, ...]]
    cells: np.ndarray
    of_category: np.ndarray


@dataclass
class Scoring:
    """The answers of a run, their metrics, and the scores in a category or over `all` of them.

    We compute a metric in all categories at once. The last axis of arrays has the categories, in
    the order of the rows, and then the score over all.

    Attributes:
        rows: one row per answer: `category`, `task`, `stratum` and `cluster` (the bootstrap
            resamples clusters within strata), and columns of numbers.
        columns: the columns that scores add up.
        metrics: the metrics in the order of the table; those of skipped tasks have no rows.
        preset: the value of the column `preset`.
        by_task: whether metrics need the sums of each task. If not, each column is of one task.
        crossed: see `bench.metrics.bootstrap.resample`.
        over_defined: whether the mean over categories leaves out those without a score; else it is
            undefined if one of them is.

    Examples:
        >>> rows = pd.DataFrame({"category": "age", "task": "qa", "right": [1.0, 0.0], "n": 1.0})
        >>> Scoring(rows, ["right", "n"], [], "robust").observed
        array([[[1., 2.]]])
    """

    rows: pd.DataFrame
    columns: Sequence[str]
    metrics: Sequence[Metric]
    preset: str
    by_task: bool = True
    crossed: tuple[str, str] | None = None
    over_defined: bool = True

    def __post_init__(self) -> None:
        """Give each ratio a divisor that counts only the rows with a number."""
        divisors: dict[str, pd.Series] = {}
        self.metrics = [self._of_rows_with_numbers(metric, divisors) for metric in self.metrics]
        self.columns = [*self.columns, *divisors]
        self.numbers = self.rows.assign(**divisors).fillna(dict.fromkeys(self.columns, 0.0))
        category, categories = pd.factorize(self.rows.category)
        task, tasks = pd.factorize(self.rows.task)
        self.categories: list[str] = list(categories)
        self.tasks: list[str] = list(tasks)
        # The index of each row's pair of a category and a task, among all such pairs.
        self.cells = category * len(tasks) + task
        self.observed_scores_and_weights: dict[Metric, tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def asked(self) -> np.ndarray:
        """Whether a category was asked a task: bool [categories, tasks]."""
        shape = len(self.categories), len(self.tasks)
        return np.isin(np.arange(math.prod(shape)), self.cells).reshape(shape)

    @cached_property
    def totals(self) -> Totals:
        """The sums by category and task, as observed and resampled."""
        return resample(
            self.numbers.assign(cell=self.cells),
            "stratum",
            "cluster",
            list(self.columns),
            part="cell",
            parts=range(self.asked.size),
            crossed=self.crossed,
        )

    @cached_property
    def observed(self) -> np.ndarray:
        """The sums by category and task: [categories, tasks, columns]."""
        (sums,) = self.sums_of(self.numbers)
        return sums.reshape(len(self.categories), len(self.tasks), -1)

    def sums_of(self, rows: pd.DataFrame, group: Any = 0, n: int = 1) -> np.ndarray:
        """Add up the columns of rows that replace the answers: [n, categories * tasks, columns].

        Args:
            group: which of the `n` sums each row is added to.
        """
        sums = np.zeros((n, self.asked.size, len(self.columns)))
        np.add.at(sums, (group, self.cells), rows[list(self.columns)].to_numpy(np.float64))
        return sums

    def of_tasks(self, tasks: Collection[str]) -> Sums:
        """Return the sums of the categories over some tasks, or over all if none is given."""
        places = [k for k, name in enumerate(self.tasks) if not tasks or name in tasks]
        return Sums(self.columns, self.observed[:, places].sum(1))

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
        """Return the indices of the categories, and of `all`, for which a metric has a row."""
        has_parts = self.parts(metric).of_category.any(1)
        return [*np.flatnonzero(has_parts).tolist(), len(self.categories)]

    def annotate(self, metric: Metric, row: Score) -> Score:
        """Add the notes and baselines of the benchmark to a row."""
        return row

    def rows_of(self, metric: Metric) -> Iterator[Score]:
        """Yield the rows of a metric: its score in each category, then over all of them."""
        if not set(self.tasks).issuperset(metric.used_tasks):
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.values(metric)
            n, answers, readable = self.counts(metric)
            samples = self.samples(metric)
            rates = readable / answers
            complete = rates
            bounds = np.full((2, len(rates)), np.nan)
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
            row = Score(
                category=names[k],
                task=metric.task,
                metric=metric.name,
                score=value.value,
                ci_low=value.low,
                ci_high=value.high,
                n=round(n[k]),
                valid_rate=float(rates[k]),
                baseline=metric.baseline,
                preset=self.preset,
                note=note,
                bound_low=float(bounds[0, k]),
                bound_high=float(bounds[1, k]),
            )
            yield self.annotate(metric, row)

    def parts(self, metric: Metric) -> Parts:
        """Return the parts of the data whose scores a metric averages."""
        tasks = (self.by_task and metric.used_tasks) or self.tasks
        is_used = np.array([name in tasks for name in self.tasks], dtype=bool)
        mean_over = metric.mean_over
        if "task" in mean_over:
            cells = np.flatnonzero(self.asked & is_used)[:, None]
            pairs = list(product(self.categories, self.tasks))
            names = [
                pairs[k] if mean_over[0] == "category" else pairs[k][::-1] for k in cells[:, 0]
            ]
        else:
            cells = np.arange(self.asked.size).reshape(self.asked.shape)[:, is_used]
            names = [(name,) for name in self.categories]
            if not mean_over:
                cells = cells.reshape(1, -1)
                names = [()]
        of_category = np.zeros((len(self.categories), len(names)), dtype=bool)
        if "category" in mean_over[:1]:
            for k, name in enumerate(names):
                of_category[self.categories.index(name[0]), k] = True
        return Parts(names, cells, of_category)

    def scores(self, metric: Metric, sums: np.ndarray) -> np.ndarray:
        """Compute the scores [n, parts] of n sets of sums, such as resamples."""
        if metric.parts:
            return np.sum([w * self.scores(part, sums) for w, part in metric.parts], axis=0)
        return metric.values(self.sums_of_parts(metric, sums))

    def sums_of_parts(self, metric: Metric, sums: np.ndarray) -> Sums:
        """Return the sums [n, parts] of the parts that a metric averages."""
        return Sums(self.columns, sums, self.parts(metric).cells)

    def observed_scores(self, metric: Metric) -> np.ndarray:
        """Compute the observed scores of the parts that a metric averages: [1, parts]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scores(metric, self.totals.observed)

    def weights(self, metric: Metric, scores: np.ndarray) -> np.ndarray:
        """Return the weight of each part in each category and over all: [categories + 1, parts].

        Args:
            scores: of the parts, [n, parts]; a part with NaN is undefined.
        """
        names, _, of_category = self.parts(metric)
        defined = ~np.isnan(scores).any(0)
        skipped = metric.mean_over.index("category") if metric.mean_over else 0
        over_all = mean_weights(names, defined, skipped if self.over_defined else -1)
        # A category is undefined if one of its tasks is.
        is_complete = ~(of_category & ~defined).any(1, keepdims=True)
        n = of_category.sum(1, keepdims=True)
        return np.vstack([of_category * is_complete / np.maximum(n, 1), over_all])

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

    def observed_parts(self, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed scores of the parts that a metric averages, and their weights."""
        if metric not in self.observed_scores_and_weights:
            scores = self.observed_scores(metric)
            self.observed_scores_and_weights[metric] = scores, self.weights(metric, scores)
        return self.observed_scores_and_weights[metric]

    def samples(self, metric: Metric) -> list[Sample]:
        """Count the clusters that each of the observed scores [categories + 1] rests on."""
        _, weights = self.observed_parts(metric)
        used = np.zeros((len(weights), len(self.totals.strata)), dtype=bool)
        for part, cells_of_part in enumerate(self.parts(metric).cells):
            used[:, cells_of_part] |= weights[:, [part]] > 0
        if not metric.sampled:
            return count_clusters(self.totals, used, metric.size, alike=metric.alike)
        # Only clusters with a number tell about the spread.
        used &= self.totals.observed[0, :, self.totals.columns.index(metric.bottom)] > 0
        samples_by_weight = count_clusters(
            self.totals, used, metric.bottom, metric.sampled, alike=True
        )
        with_number = count_clusters(self.totals, used, metric.bottom, alike=True)
        samples = []
        for sample, (units, *_) in zip(samples_by_weight, with_number, strict=True):
            sample = sample._replace(effective=min(sample.effective, units))
            samples.append(sample if units > 1 else sample._replace(units=sample.strata))
        return samples

    def counts(self, metric: Metric) -> np.ndarray:
        """Return `n`, and the numbers of answers and readable answers: [3, categories + 1]."""
        sums = self.of_tasks(metric.used_tasks)
        columns = (metric.counts or metric.bottom or metric.read[0], *metric.read)
        counts = np.stack([sums[column] for column in columns])
        return np.column_stack([counts, counts[:, self.in_mean(metric)].sum(1)])

    def in_mean(self, metric: Metric) -> np.ndarray:
        """Return which categories the score over all averages; some may be left out."""
        if metric.task != ALL or metric.mean_over != ("category", "task"):
            return np.full(len(self.categories), True)
        weights = self.observed_parts(metric)[1][-1]
        return (self.parts(metric).of_category & (weights > 0)).any(1)

    def reason(self, metric: Metric, category: str) -> str:
        """Say why a score is undefined."""
        is_counted = [category in (ALL, name) for name in self.categories]
        sums = self.of_tasks(metric.used_tasks).values[is_counted].sum(0)
        return metric.reason(dict(zip(self.columns, sums, strict=True)))

    def ends(self, metric: Metric) -> np.ndarray:
        """Compute the bounds of the scores of all answers, read or not: [2, categories + 1]."""
        if not metric.ends:
            ends = self.ends_of_parts(metric)
            return averages(ends, self.weights(metric, ends))
        of_ends = [replace(metric, top=end, bottom=_divisor(end)) for end in metric.ends]
        value, low, high = map(self.observed_means, (metric, *of_ends))
        # A readable answer may score lower or higher than an unreadable one could.
        return np.stack([np.minimum(low, value), np.maximum(high, value)])

    def ends_of_parts(self, metric: Metric) -> np.ndarray:
        """Compute the bounds of the parts that a metric averages: [2, parts]."""
        if metric.parts:
            return np.sum([w * self.ends_of_parts(part) for w, part in metric.parts], axis=0)
        return metric.bounds(self.sums_of_parts(metric, self.totals.observed))[:, 0]

    def _of_rows_with_numbers(self, metric: Metric, divisors: dict[str, pd.Series]) -> Metric:
        """Make a ratio divide by a sum over the rows with a number; add this sum to `divisors`."""
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
        bottom = _divisor(metric.top, metric.bottom)
        has_number = self.rows[metric.top].notna()
        if bottom not in divisors:
            divisors[bottom] = has_number * (self.rows[metric.bottom] if metric.bottom else 1.0)
        return replace(metric, bottom=bottom)


def _divisor(top: str, bottom: str = "rows") -> str:
    """Name the column that counts in the rows with a number in `top`."""
    return f"{bottom or 'rows'} with {top}"


def mean_weights(
    parts: Sequence[Sequence[Any]], defined: np.ndarray, skipped: int = 0
) -> np.ndarray:
    """Return the weight of each part in the mean over first names of means over second ones.

    With 2 categories of 3 tasks, a part weighs 1/2 * 1/3. If the mean is undefined, all are 0.

    Args:
        parts: their names, for example of a category and a task; no two are the same.
        defined: which parts have a score.
        skipped: the index in `parts` of the names that a mean may leave out if they have no score,
            such as categories. A mean over other names is undefined if one has no score.

    Examples:
        >>> parts = [("age", "pc"), ("age", "sc"), ("race", "pc")]
        >>> mean_weights(parts, np.array([True, True, True])).tolist()
        [0.25, 0.25, 0.5]
        >>> mean_weights(parts, np.array([True, False, True])).tolist()
        [0.0, 0.0, 1.0]
    """
    weights = defined.astype(float)
    groups = [[k] for k in range(len(parts))]
    if parts and len(parts[0]) > 1:
        by_name: dict[Any, list[int]] = {}
        for k, (name, *_) in enumerate(parts):
            by_name.setdefault(name, []).append(k)
        groups = list(by_name.values())
        for group in groups:
            further_names = [parts[k][1:] for k in group]
            weights[group] = mean_weights(further_names, defined[group], skipped - 1)
    used = sum(max(weights[group].tolist()) > 0 for group in groups)
    if skipped != 0 and used < len(groups):
        return np.zeros(len(parts))
    return weights / max(used, 1)


def averages(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average scores [n, parts] by weights [means, parts]: [n, means], NaN if all weights are 0."""
    used = weights > 0
    missing = np.isnan(scores)
    # Weights of 1 keep a mean of equal scores exact.
    relative = weights / np.maximum(weights.max(1, initial=0.0), NOISE)[:, None]
    means = np.where(missing, 0.0, scores) @ relative.T / np.maximum(relative.sum(1), NOISE)
    is_undefined = ~used.any(1)
    if missing.any():
        is_undefined = is_undefined | (missing.astype(float) @ used.T.astype(float) > 0)
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
    some_sums = Sums(numbers, np.zeros((1, 1, len(numbers))))
    ready = []
    for metric in metrics:
        if metric.task not in (ALL, *tasks):
            unknown = expected(metric.task, [ALL, *tasks], "task")
            raise BadInput(f"metric {metric.name}: {unknown}")
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                has_columns = metric.of or metric.bottom
                _ = metric.values(some_sums) if has_columns else some_sums[metric.top]
        except BadInput as error:
            raise BadInput(f"metric {metric.name}: {error}") from None
        names = [name for name in (metric.top, metric.bottom, "answered") if name]
        if not outcomes[names].isin([0, 1]).all(axis=None):
            metric = replace(metric, unread=None)
        ready.append(metric)
    crossed = ("category", "crossed") if "crossed" in outcomes else None
    return Scoring(outcomes, numbers, ready, preset, crossed=crossed).table()
