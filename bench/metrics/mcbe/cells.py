"""McBE's scores by category and task, observed, resampled and by repeat, and the means that are made of them."""

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from bench.metrics.bootstrap import Draw, Sample, resample
from bench.metrics.mcbe.instances import BOUNDS, Values
from bench.metrics.table import ALL
from bench.tasks.mcbe import TASKS


class Cells:
    """Scores of a category and task, as arrays: the observed one, resampled ones, and one a repeat."""

    def __init__(self, found: Values, order: Sequence[str], draw: Draw = resample) -> None:
        terms = found.terms
        self.printed = found.printed
        self.asked = set(zip(terms.category, terms.task, strict=True))
        self.categories = [
            name for name in order if name in {category for category, _ in self.asked}
        ]
        self.tasks = [name for name in TASKS if name in {task for _, task in self.asked}]
        self.repeats = sorted(set(terms.repeat))
        # What each task measures, its score first.
        self.measures: dict[str, list[str]] = {task: [] for task in self.tasks}
        for task, measure in terms[["task", "measure"]].drop_duplicates().itertuples(index=False):
            if measure not in ("valid", *BOUNDS):
                self.measures[task].append(measure)
        for names in self.measures.values():
            names.sort(key=lambda name: (name != "score", name if name.endswith("_words") else ""))
        self._instances = (
            terms[terms.bottom > 0].groupby(["category", "task", "measure"]).item_id.nunique()
        )
        sums = _wide(terms)
        totals = draw(sums, "category", "item_id", [str(name) for name in sums.columns[2:]])
        self.draws, self.left_out = len(totals.drawn), totals.left_out
        each = [
            _wide(terms[terms.repeat == repeat]).groupby("category").sum(numeric_only=True)
            for repeat in self.repeats
        ]
        self._sums = {
            (category, name): np.concatenate(
                [
                    totals.observed[:, k, j],
                    totals.drawn[:, k, j],
                    [part[name].get(category, 0.0) if name in part else 0.0 for part in each],
                ]
            )
            for k, category in enumerate(totals.strata)
            for j, name in enumerate(totals.columns)
        }

    def n(self, scored: Collection[tuple[str, str]], measure: str) -> int:
        """How many answers or instances a measure rests on, over pairs of category and task."""
        return round(sum(self._sum(c, t, measure, "bottom")[0] for c, t in scored))

    def spread(self, scored: Collection[tuple[str, str]], measure: str) -> bool:
        """Whether it rests on more than one instance, so that drawing them again tells something."""
        return sum(int(self._instances.get((c, t, measure), 0)) for c, t in scored) > 1

    def sample(self, scored: Collection[tuple[str, str]], measure: str = "score") -> Sample:
        """Count what is drawn again: the instances with a number of the pairs of category and task."""
        units: dict[str, int] = {}
        for category, task in scored:
            if not math.isnan(self.one(category, task, measure)[0]):
                # A list of so many words is drawn among lists of any length.
                each = [
                    int(self._instances.get((category, task, name), 0))
                    for name in (measure, "score")
                ]
                units[category] = max(units.get(category, 1), *each)
        if not units:
            return Sample(0, 0)
        effective = len(units) ** 2 / sum(1 / many for many in units.values())
        having = sum(int(self._instances.get((c, t, measure), 0)) for c, t in scored)
        return Sample(sum(units.values()), len(units), min(effective, having))

    def valid_rate(self, scored: Collection[tuple[str, str]]) -> float:
        """Share of answers that could be read."""
        top, bottom = (
            sum(self._sum(c, t, "valid", part)[0] for c, t in scored) for part in ("top", "bottom")
        )
        return float(top / bottom) if bottom else math.nan

    def asked_of(self, category: str, task: str) -> list[tuple[str, str]]:
        """Pairs of category and task that were asked, of one category or `all`, and one task or `all`."""
        return [(c, t) for c, t in self.asked if category in (ALL, c) and task in (ALL, t)]

    def scored(self, tasks: Collection[str]) -> list[tuple[str, str]]:
        """Pairs of category and task, of the categories that have a number in all those of `tasks` that they were asked."""
        asked = [(category, task) for category, task in self.asked if task in tasks]
        known = {c for c in {c for c, _ in asked} if not math.isnan(self.category(c, tasks)[0])}
        return [(category, task) for category, task in asked if category in known]

    def one(self, category: str, task: str, measure: str) -> np.ndarray:
        """A measure of one category and task."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._sum(category, task, measure, "top") / self._sum(
                category, task, measure, "bottom"
            )
        if measure == "score" and self.printed:
            each = [self.printed.get((category, task, k)) for k in self.repeats]
            values[0] = float(np.mean([one.score for one in each if one]))
            # A run that is not finished may lack a repeat.
            values[1 + self.draws :] = [one.score if one else math.nan for one in each]
        # What the released code prints may be no finite number.
        values[~np.isfinite(values)] = math.nan
        return values

    def pooled(self, categories: Iterable[str], task: str, measure: str) -> np.ndarray:
        """A measure of one task over all instances of several categories."""
        parts = [
            [self._sum(c, task, measure, part) for c in categories] for part in ("top", "bottom")
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sum(parts[0], axis=0) / np.sum(parts[1], axis=0)

    def category(self, category: str, tasks: Iterable[str], measure: str = "score") -> np.ndarray:
        """Mean over the tasks that the category was asked; NaN where one of them has no number."""
        return np.mean(
            [self.one(category, task, measure) for task in tasks if (category, task) in self.asked],
            axis=0,
        )

    def task(self, task: str, measure: str = "score") -> np.ndarray:
        """Mean over the categories that have a number."""
        return self.over(
            [self.one(c, task, measure) for c in self.categories if (c, task) in self.asked]
        )

    def overall(self, tasks: Sequence[str], measure: str = "score") -> np.ndarray:
        """Mean over the categories' means over `tasks`; a category without a number is left out."""
        some = [c for c in self.categories if any((c, task) in self.asked for task in tasks)]
        return self.over([self.category(c, tasks, measure) for c in some])

    def bounds(self, category: str, tasks: Sequence[str]) -> tuple[float, float]:
        """The least and the most that a score over `tasks` could have been, had all been readable.

        Args:
            category: one category, or `all` for the mean over categories.
        """
        of = self.overall if category == ALL else partial(self.category, category)
        value = float(of(tasks)[0])
        low, high = (float(of(tasks, measure)[0]) for measure in BOUNDS)
        # The instances that could be read may be scored lower, or higher, than any of the others could be.
        return min(low, value), max(high, value)

    def over(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The mean of those that have a number."""
        known = [array for array in arrays if not math.isnan(array[0])]
        if known:
            return np.mean(known, axis=0)
        return np.full(1 + self.draws + len(self.repeats), math.nan)

    def _sum(self, category: str, task: str, measure: str, part: str) -> np.ndarray:
        none = np.zeros(1 + self.draws + len(self.repeats))
        return self._sums.get((category, f"{task} {measure} {part}"), none)


def _wide(terms: pd.DataFrame) -> pd.DataFrame:
    """One row an instance, a column a sum."""
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
