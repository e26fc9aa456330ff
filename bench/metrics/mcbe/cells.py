"""McBE's scores by category and task, observed, resampled and by repeat, and means of them."""

import math
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from bench.metrics.bootstrap import Draw, Sample, resample
from bench.metrics.mcbe.instances import BOUNDS, Values
from bench.metrics.table import ALL
from bench.tasks.mcbe import TASKS

# A category and a task.
Cell = tuple[str, str]


class Cells:
    """Scores of each category and task, as arrays: the observed one, resampled ones, one a repeat.

    Attributes:
        asked: the pairs of category and task.
        printed: what the released code prints, by category, task and repeat.
        measures: what each task measures, its score first.
        draws: number of resamples.
        left_out: after `leave_one_out`, the stratum and instance that each resample lacks.
    """

    def __init__(self, values: Values, order: Sequence[str], draw: Draw = resample) -> None:
        terms = values.terms
        self.printed, self._by_repeat = values.printed, values.by_repeat
        self.asked = list(dict.fromkeys(zip(terms.category, terms.task, strict=True)))
        self.categories = [name for name in order if name in {c for c, _ in self.asked}]
        self.tasks = [name for name in TASKS if name in {t for _, t in self.asked}]
        self.repeats = sorted(set(terms.repeat))
        measured = terms[~terms.measure.isin(["valid", *BOUNDS])]
        self.measures = {
            task: sorted(
                measured.measure[measured.task == task].unique(),
                key=lambda name: (name != "score", name if name.endswith("_words") else ""),
            )
            for task in self.tasks
        }
        counted = terms[terms.bottom > 0].groupby(["category", "task", "measure"])
        self._instances = counted.item_id.nunique()
        sums = _wide(terms)
        totals = draw(sums, "category", "item_id", [str(name) for name in sums.columns[2:]])
        self.draws, self.left_out = len(totals.drawn), totals.left_out
        by_repeat = [
            _wide(terms[terms.repeat == repeat]).groupby("category").sum(numeric_only=True)
            for repeat in self.repeats
        ]
        self._none = np.zeros(1 + self.draws + len(self.repeats))
        self._sums = {
            (category, name): np.concatenate(
                [
                    totals.observed[:, k, j],
                    totals.drawn[:, k, j],
                    [part[name].get(category, 0.0) if name in part else 0.0 for part in by_repeat],
                ]
            )
            for k, category in enumerate(totals.strata)
            for j, name in enumerate(totals.columns)
        }

    def asked_of(self, category: str, tasks: Collection[str]) -> list[Cell]:
        """List the cells of one category, or of `all`, that were asked."""
        return [(c, t) for c, t in self.asked if category in (ALL, c) and t in tasks]

    def scored(self, tasks: Collection[str]) -> list[Cell]:
        """List the cells of the categories that have a number in all tasks that they were asked."""
        asked = self.asked_of(ALL, tasks)
        known = {c for c in {c for c, _ in asked} if not math.isnan(self.mean(c, tasks)[0])}
        return [(category, task) for category, task in asked if category in known]

    def n(self, cells: Collection[Cell], measure: str) -> int:
        """Count the answers or instances that a measure rests on."""
        return round(self._total(cells, measure, "bottom")[0])

    def valid_rate(self, cells: Collection[Cell]) -> float:
        """Return the share of answers that could be read."""
        return float(self.pooled(cells, "valid")[0])

    def instances(self, cells: Collection[Cell], measure: str) -> int:
        """Count the instances with a number."""
        return sum(int(self._instances.get((c, t, measure), 0)) for c, t in cells)

    def sample(self, cells: Collection[Cell], measure: str = "score") -> Sample:
        """Count what is drawn again: the instances with a number."""
        units: dict[str, int] = {}
        for category, task in cells:
            if not math.isnan(self.of_cell(category, task, measure)[0]):
                # A list of so many words is drawn among lists of any length.
                own = [self.instances([(category, task)], name) for name in (measure, "score")]
                units[category] = max(units.get(category, 1), *own)
        if not units:
            return Sample(0, 0)
        effective = len(units) ** 2 / sum(1 / n for n in units.values())
        having = self.instances(cells, measure)
        return Sample(sum(units.values()), len(units), min(effective, having))

    def of_cell(self, category: str, task: str, measure: str = "score") -> np.ndarray:
        """Return a measure of one category and task."""
        values = self.pooled([(category, task)], measure)
        if measure == "score" and self.printed:
            printed = [self.printed.get((category, task, k)) for k in self.repeats]
            values[0] = float(np.mean([result.score for result in printed if result]))
            # A run that is not finished may lack a repeat.
            values[1 + self.draws :] = [r.score if r else math.nan for r in printed]
        # What the released code prints may be no finite number.
        values[~np.isfinite(values)] = math.nan
        return values

    def pooled(self, cells: Collection[Cell], measure: str) -> np.ndarray:
        """Return a measure over all instances of several cells."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._total(cells, measure, "top") / self._total(cells, measure, "bottom")
        repeats = values[1 + self.draws :]
        if self._by_repeat and len(known := repeats[~np.isnan(repeats)]):
            # Resamples are of all repeats together, so they are moved to lie around the mean.
            values[: 1 + self.draws] += known.mean() - values[0]
        return values

    def mean(self, category: str, tasks: Collection[str], measure: str = "score") -> np.ndarray:
        """Return the mean over the tasks that a category was asked; NaN where one has no number.

        Of `all`, it is the mean over the categories that have a number.
        """
        if category != ALL:
            asked = [task for task in tasks if (category, task) in self.asked]
            return np.mean([self.of_cell(category, task, measure) for task in asked], axis=0)
        having = {c for c, _ in self.asked_of(ALL, tasks)}
        means = [self.mean(c, tasks, measure) for c in self.categories if c in having]
        known = [mean for mean in means if not math.isnan(mean[0])]
        return np.mean(known, axis=0) if known else np.full(len(self._none), math.nan)

    def bounds(self, category: str, tasks: Collection[str]) -> tuple[float, float]:
        """Return the least and the most that a score could have been, had all been readable."""
        value, low, high = (
            float(self.mean(category, tasks, name)[0]) for name in ("score", *BOUNDS)
        )
        # The instances that could be read may be scored lower, or higher, than any of the others
        # could be.
        return min(low, value), max(high, value)

    def _total(self, cells: Collection[Cell], measure: str, part: str) -> np.ndarray:
        total = self._none.copy()
        for category, task in cells:
            total += self._sums.get((category, f"{task} {measure} {part}"), 0.0)
        return total


def _wide(terms: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance, one column per sum."""
    named = terms[["category", "item_id"]].assign(name=terms.task + " " + terms.measure)
    parts = [
        named.assign(name=named.name + f" {part}", value=terms[part].astype(float))
        for part in ("top", "bottom")
    ]
    wide = pd.concat(parts).pivot_table(
        index=["category", "item_id"],
        columns="name",
        values="value",
        aggfunc="sum",
        fill_value=0.0,
        sort=False,
    )
    return wide.rename_axis(columns=None).reset_index()
