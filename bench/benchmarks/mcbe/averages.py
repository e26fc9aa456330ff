"""McBE's averages: scores of each category and task, and means of them over both."""

import math
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from bench.benchmarks.mcbe.instances import BOUNDS, KEYS, MEASURES, Values
from bench.benchmarks.mcbe.requests import TASKS
from bench.core.numbers import decimals
from bench.metrics.bootstrap import Sample
from bench.metrics.engine import Metric, Scoring
from bench.metrics.table import ALL

# A category and a task.
Cell = tuple[str, str]
# The scores that have bounds.
BOUNDED = ("score", "score_common")


class Averages(Scoring):
    """Scores as arrays: the observed one, then the resampled ones, then one of each repeat.

    A score over tasks is the mean of the tasks that a category was asked, undefined if one of them
    is undefined. A score over categories is the mean of the categories with a score.

    Attributes:
        known: see `bench.benchmarks.mcbe.instances.Values`.
        all_cells: the pairs of category and task.
        sums: by pair, the sums [n, columns] as observed, in each resample, and in each repeat.
        measures: the measures of each task, its score first.
    """

    def __init__(self, known: Values, order: Sequence[str], preset: str) -> None:
        self.known, terms = known, known.terms
        part = terms.category + "|" + terms.task
        rows = terms.assign(stratum=terms.category, cluster=terms.item_id, part=part)
        columns = [str(name) for name in terms if name not in KEYS]
        super().__init__(rows, columns, (), preset)
        cells = terms[["category", "task"]].drop_duplicates()
        self.all_cells: list[Cell] = list(cells.itertuples(index=False, name=None))
        self.categories = [name for name in order if name in set(cells.category)]
        self.tasks = [name for name in TASKS if name in set(cells.task)]
        self.repeats = sorted(set(terms["repeat"]))
        totals = self.totals
        by_repeat = rows.groupby(["repeat", "part"])[columns].sum()
        index = pd.MultiIndex.from_product([self.repeats, totals.strata])
        shape = (len(self.repeats), len(totals.strata), len(columns))
        repeats = by_repeat.reindex(index, fill_value=0.0).to_numpy().reshape(shape)
        every = np.concatenate([totals.observed, totals.resamples, repeats])
        self.sums = {cell: every[:, totals.strata.index("|".join(cell))] for cell in self.all_cells}
        words = sorted(name.rpartition(" ")[0] for name in columns if name.endswith("_words top"))
        self.measures = {
            task: ["score", *(name for name in MEASURES[task] if f"{name} top" in columns)]
            for task in self.tasks
        }
        if "ss" in self.measures:
            self.measures["ss"] += words
        keys = ["category", "task", "item_id"]
        counts = terms[columns].gt(0).groupby([terms[key] for key in keys], sort=False).any()
        self._instances = counts.groupby(level=[0, 1], sort=False).sum().to_dict("index")
        self._known: dict[tuple[str, str, str], np.ndarray] = {}

    def cells_of(self, category: str, tasks: Collection[str]) -> list[Cell]:
        """List the cells of one category, or of `all`, that were asked."""
        return [(c, t) for c, t in self.all_cells if category in (ALL, c) and t in tasks]

    def cells(self, metric: Metric, category: str) -> list[Cell]:
        """List the cells of a score; over categories, we skip categories without a score."""
        own = self.cells_of(category, metric.own_tasks)
        if category != ALL or metric.task != ALL or metric.name not in BOUNDED:
            return own
        names = {name for name, _ in own}
        known = {c for c in names if not math.isnan(self.mean(c, metric.own_tasks)[0])}
        return [(name, task) for name, task in own if name in known]

    def of_cell(self, category: str, task: str, measure: str = "score") -> np.ndarray:
        """Return a measure of one category and task."""
        key = (category, task, measure)
        if key not in self._known:
            values = self.pooled([(category, task)], measure)
            if measure == "score" and self.known.printed is not None:
                printed = self.known.printed.score[category, task]
                values[0] = printed.mean(skipna=False)
                # A run that is not finished may lack a repeat.
                values[-len(self.repeats) :] = printed.reindex(self.repeats)
            # The numbers that the released code prints may not be finite.
            values[~np.isfinite(values)] = math.nan
            self._known[key] = values
        return self._known[key]

    def pooled(self, cells: Collection[Cell], measure: str) -> np.ndarray:
        """Return a measure over all instances of several cells."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.total(cells, f"{measure} top") / self.total(cells, f"{measure} bottom")
        repeats = values[-len(self.repeats) :]
        if self.known.by_repeat and len(defined := repeats[~np.isnan(repeats)]):
            # Resamples are of all repeats together, so we move them to lie around the mean.
            values[: -len(self.repeats)] += defined.mean() - values[0]
        return values

    def total(self, cells: Collection[Cell], column: str) -> np.ndarray:
        """Return the sums of a column over several cells."""
        k = self.totals.columns.index(column)
        return np.sum([self.sums[cell][:, k] for cell in cells], axis=0)

    def mean(self, category: str, tasks: Collection[str], measure: str = "score") -> np.ndarray:
        """Return the mean over the tasks that a category was asked; of `all`, over categories."""
        if category != ALL:
            cells = self.cells_of(category, tasks)
            return np.mean([self.of_cell(*cell, measure) for cell in cells], axis=0)
        having = {c for c, _ in self.cells_of(ALL, tasks)}
        means = [self.mean(c, tasks, measure) for c in self.categories if c in having]
        known = [mean for mean in means if not math.isnan(mean[0])]
        return np.mean(known, axis=0) if known else np.full_like(means[0], math.nan)

    def values(self, metric: Metric, category: str) -> np.ndarray:
        tasks, repeats = metric.own_tasks, len(self.repeats)
        if metric.name == "score_sd":
            return np.array([np.std(self.mean(category, tasks)[-repeats:], ddof=1)])
        if metric.name == "score_by_task":
            values = np.mean([self.mean(category, [task]) for task in tasks], axis=0)
        elif metric.name == "score_by_instance" or metric.name.endswith("_words"):
            values = self.pooled(self.cells_of(category, tasks), measure(metric))
        else:
            values = self.mean(category, tasks, measure(metric))
        return values[:-repeats]

    def sample(self, metric: Metric, category: str) -> Sample:
        """Count the instances with a number."""
        cells, name = self.cells(metric, category), measure(metric)
        units: dict[str, int] = {}
        for cell in cells:
            if not math.isnan(self.of_cell(*cell, name)[0]):
                # Lists of so many words are sampled among lists of any length.
                own = [self.instances([cell], each) for each in (name, "score")]
                units[cell[0]] = max(units.get(cell[0], 1), *own)
        having = self.instances(cells, name)
        if not units:
            return Sample(0, 0, 0)
        if having < 2:  # no spread
            return Sample(len(units), len(units), float(len(units)))
        effective = len(units) ** 2 / sum(1 / n for n in units.values())
        return Sample(sum(units.values()), len(units), min(effective, having))

    def instances(self, cells: Collection[Cell], name: str) -> int:
        """Count the instances with a number."""
        return sum(int(self._instances[cell][f"{name} bottom"]) for cell in cells)

    def n(self, cells: Collection[Cell], name: str) -> int:
        """Count the answers or instances that a measure rests on."""
        return round(self.total(cells, f"{name} bottom")[0])

    def counts(self, metric: Metric, category: str) -> tuple[float, float, float]:
        cells = self.cells(metric, category)
        if not cells:
            return 0, 0, math.nan
        n = len(self.repeats) if metric.name == "score_sd" else self.n(cells, measure(metric))
        answers = self.total(cells, "valid bottom")[0]
        return n, answers, answers * self.pooled(cells, "valid")[0]

    def ends(self, metric: Metric, category: str) -> tuple[float, float]:
        value, low, high = (
            float(self.mean(category, metric.own_tasks, name)[0]) for name in ("score", *BOUNDS)
        )
        # A readable instance may score lower or higher than an unreadable one could.
        return min(low, value), max(high, value)

    def reason(self, metric: Metric, category: str) -> str:
        _, answers, readable = self.counts(metric, category)
        if readable > 0:
            share = decimals(100 * readable / answers)
            return f"no instance has all its answers ({share}% could be read)"
        return "no answer could be read"


def measure(metric: Metric) -> str:
    """Return the measure that a score is made of: its own, or the task's score."""
    is_mean = metric.task == ALL or metric.name in ("score_sd", "score_by_instance")
    return "score" if is_mean else metric.name
