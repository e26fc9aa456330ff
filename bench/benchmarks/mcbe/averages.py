"""McBE's averages: scores of each category and task, and means of them over both."""

import math
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from bench.benchmarks.mcbe.instances import BOUNDS, Values
from bench.benchmarks.mcbe.requests import TASKS
from bench.core.numbers import decimals
from bench.metrics.bootstrap import Draw, Sample
from bench.metrics.engine import Metric, Scoring, Sums
from bench.metrics.table import ALL

# A category and a task.
Cell = tuple[str, str]
# The scores that have bounds.
BOUNDED = ("score", "score_common")


class Averages(Scoring):
    """Scores as arrays: the observed one, then the resampled ones, then one of each repeat.

    A score over tasks is the mean of the tasks that a category was asked, undefined if one of them
    is; over categories, the mean of the categories with a score.

    Attributes:
        terms, printed: see `bench.benchmarks.mcbe.instances.Values`.
        asked: the pairs of category and task.
        measures: the measures of each task, its score first.
    """

    def __init__(self, known: Values, order: Sequence[str], preset: str, draw: Draw) -> None:
        self.terms, self.printed, self._by_repeat = known
        rows = _wide(self.terms)
        columns = [str(name) for name in rows if str(name).endswith((" top", " bottom"))]
        compared = {(task, "score") for task in (*TASKS, ALL)}
        super().__init__(rows, columns, (), preset, compared, draw=draw)
        self._known: dict[tuple[str, str, str], np.ndarray] = {}
        self.asked = list(dict.fromkeys(zip(self.terms.category, self.terms.task, strict=True)))
        self.categories = [name for name in order if name in {c for c, _ in self.asked}]
        self.tasks = [name for name in TASKS if name in {t for _, t in self.asked}]
        self.repeats = sorted(set(self.terms.repeat))
        measured = self.terms[~self.terms.measure.isin(["valid", *BOUNDS])]
        self.measures = {
            task: sorted(
                measured.measure[measured.task == task].unique(),
                key=lambda name: (name != "score", name if name.endswith("_words") else ""),
            )
            for task in self.tasks
        }
        counted = self.terms[self.terms.bottom > 0].groupby(["category", "task", "measure"])
        self._instances = counted.item_id.nunique()

    @cached_property
    def sums(self) -> Sums:
        """The sums as observed, in each resample, and in each repeat."""
        totals = self.totals
        by_repeat = np.zeros((len(self.repeats), *totals.observed.shape[1:]))
        sums = Sums.of_totals(totals, totals.observed)
        for k, repeat in enumerate(self.repeats):
            own = Sums.of_rows(self.rows[self.rows.repeat == repeat], totals.columns)
            for part, place in own.parts.items():
                by_repeat[k, sums.parts[part]] = own.values[0, place]
        every = np.concatenate([totals.observed, totals.drawn, by_repeat])
        return Sums(totals.columns, every, sums.parts)

    @property
    def _repeats_from(self) -> int:
        """The place of the first repeat in an array of scores."""
        return len(self.sums.values) - len(self.repeats)

    def asked_of(self, category: str, tasks: Collection[str]) -> list[Cell]:
        """List the cells of one category, or of `all`, that were asked."""
        return [(c, t) for c, t in self.asked if category in (ALL, c) and t in tasks]

    def cells(self, metric: Metric, category: str) -> list[Cell]:
        """List the cells that a score rests on: over all, those of the categories with a score."""
        own = self.asked_of(category, metric.own_tasks)
        if category != ALL or metric.task != ALL or metric.name not in BOUNDED:
            return own
        names = {name for name, _ in own}
        known = {c for c in names if not math.isnan(self.mean(c, metric.own_tasks)[0])}
        return [(name, task) for name, task in own if name in known]

    def of_cell(self, category: str, task: str, measure: str = "score") -> np.ndarray:
        """Return a measure of one category and task."""
        key = (category, task, measure)
        if key not in self._known:
            self._known[key] = self._of_cell(*key)
        return self._known[key]

    def _of_cell(self, category: str, task: str, measure: str) -> np.ndarray:
        values = self.pooled([(category, task)], measure)
        if measure == "score" and self.printed:
            printed = [self.printed.get((category, task, k)) for k in self.repeats]
            values[0] = float(np.mean([result.score for result in printed if result]))
            # A run that is not finished may lack a repeat.
            values[self._repeats_from :] = [r.score if r else math.nan for r in printed]
        # The numbers that the released code prints may not be finite.
        values[~np.isfinite(values)] = math.nan
        return values

    def pooled(self, cells: Collection[Cell], measure: str) -> np.ndarray:
        """Return a measure over all instances of several cells."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._total(cells, f"{measure} top") / self._total(cells, f"{measure} bottom")
        repeats = values[self._repeats_from :]
        if self._by_repeat and len(known := repeats[~np.isnan(repeats)]):
            # Resamples are of all repeats together, so they are moved to lie around the mean.
            values[: self._repeats_from] += known.mean() - values[0]
        return values

    def _total(self, cells: Collection[Cell], column: str) -> np.ndarray:
        parts = {cell: place for cell, place in self.sums.parts.items() if cell in set(cells)}
        if column not in self.columns:
            return np.zeros(len(self.sums.values))
        return Sums(self.sums.columns, self.sums.values, parts)[column]

    def mean(self, category: str, tasks: Collection[str], measure: str = "score") -> np.ndarray:
        """Return the mean over the tasks that a category was asked; of `all`, over categories."""
        if category != ALL:
            asked = [task for task in tasks if (category, task) in self.asked]
            return np.mean([self.of_cell(category, task, measure) for task in asked], axis=0)
        having = {c for c, _ in self.asked_of(ALL, tasks)}
        means = [self.mean(c, tasks, measure) for c in self.categories if c in having]
        known = [mean for mean in means if not math.isnan(mean[0])]
        return np.mean(known, axis=0) if known else np.full(len(self.sums.values), math.nan)

    def values(self, metric: Metric, category: str) -> np.ndarray:
        tasks = metric.own_tasks
        if metric.name == "score_sd":
            return np.array([np.std(self.mean(category, tasks)[self._repeats_from :], ddof=1)])
        if metric.name == "score_by_instance":
            values = self.pooled(self.asked_of(category, tasks), "score")
        elif metric.name.endswith("_words"):
            values = self.pooled(self.asked_of(category, tasks), metric.name)
        elif metric.name == "score_by_task":
            values = np.mean([self.mean(category, [task]) for task in tasks], axis=0)
        else:
            values = self.mean(category, tasks, self._measure(metric))
        return values[: self._repeats_from]

    def _measure(self, metric: Metric) -> str:
        """Return the measure whose answers a score rests on: its own, or the task's score."""
        names = {name for own in self.measures.values() for name in own}
        return metric.name if metric.name in names else "score"

    def sample(self, metric: Metric, category: str) -> Sample:
        """Count the instances with a number."""
        cells, measure = self.cells(metric, category), self._measure(metric)
        units: dict[str, int] = {}
        for name, task in cells:
            if not math.isnan(self.of_cell(name, task, measure)[0]):
                # Lists of so many words are sampled among lists of any length.
                own = [self.instances([(name, task)], each) for each in (measure, "score")]
                units[name] = max(units.get(name, 1), *own)
        having = self.instances(cells, measure)
        if not units:
            return Sample(0, 0)
        if having < 2:  # no spread
            return Sample(len(units), len(units), float(len(units)))
        effective = len(units) ** 2 / sum(1 / n for n in units.values())
        return Sample(sum(units.values()), len(units), min(effective, having))

    def instances(self, cells: Collection[Cell], measure: str) -> int:
        """Count the instances with a number."""
        return sum(int(self._instances.get((c, t, measure), 0)) for c, t in cells)

    def n(self, cells: Collection[Cell], measure: str) -> int:
        """Count the answers or instances that a measure rests on."""
        return round(self._total(cells, f"{measure} bottom")[0])

    def counts(self, metric: Metric, category: str) -> tuple[float, float, float]:
        cells = self.cells(metric, category)
        n = self.n(cells, self._measure(metric))
        n = len(self.repeats) if metric.name == "score_sd" else n
        answers = self._total(cells, "valid bottom")[0]
        return n, answers, answers * self.pooled(cells, "valid")[0]

    def ends(self, metric: Metric, category: str) -> tuple[float, float]:
        value, low, high = (
            float(self.mean(category, metric.own_tasks, name)[0]) for name in ("score", *BOUNDS)
        )
        # The instances that could be read may be scored lower, or higher, than any of the others
        # could be.
        return min(low, value), max(high, value)

    def reason(self, metric: Metric, category: str) -> str:
        _, answers, readable = self.counts(metric, category)
        if readable > 0:
            share = decimals(100 * readable / answers)
            return f"no instance has all its answers ({share}% could be read)"
        return "no answer could be read"


def _wide(terms: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance, task and repeat, and two columns per measure."""
    keys, parts = ["category", "task", "item_id", "repeat"], []
    numbers = terms.astype({"top": float, "bottom": float})
    for part in ("top", "bottom"):
        sums = numbers.pivot_table(part, keys, "measure", "sum", fill_value=0.0, sort=False)
        parts.append(sums.add_suffix(f" {part}"))
    wide = pd.concat(parts, axis=1).rename_axis(columns=None).reset_index()
    names = wide.category + "|" + wide.task
    return wide.assign(stratum=wide.category, cluster=wide.item_id, part=names)
