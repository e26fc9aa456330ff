"""Scores made of verdicts: the default of a benchmark that lists its metrics only."""

from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

from bench.data import by_id
from bench.metrics.engine import Scoring
from bench.metrics.table import ALL

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark

SUMS = ("answered", "parsed", "stereotyped", "correct", "says_unknown")


def scoring(
    benchmark: "Benchmark", records: pd.DataFrame, items: pd.DataFrame, preset: str
) -> "VerdictScoring":
    """Prepare the scores of a run from the verdicts on its answers.

    The outcomes are `answered` (always 1), `parsed`, `stereotyped`, `correct` and `says_unknown`.
    """
    fields = by_id(items)

    @cache
    def read(task: str, request: str, response: str, item_id: str, error: str) -> tuple[str, str]:
        item = fields[item_id]
        value = "" if error else benchmark.parse(task, request, response, item)
        return value, benchmark.values(task, request, item).verdict(value)

    names = ("task", "request", "response", "item_id", "error")
    answers = list(map(read, *(records[name].tolist() for name in names)))
    verdict = pd.Series([verdict for _, verdict in answers], index=records.index)
    rows = records.assign(
        value=[value for value, _ in answers],
        cluster=[fields[name].cluster for name in records.item_id],
        stratum=records.category,
        part=records.category + "|" + records.task,
        answered=1.0,
        parsed=(verdict != "unreadable").astype(float),
        stereotyped=(verdict == "stereotyped").astype(float),
        correct=(verdict == "right").astype(float),
        says_unknown=(verdict == "unknown").astype(float),
    )
    metrics = benchmark.metrics.of_verdicts
    return VerdictScoring(rows[verdict != ""], SUMS, metrics, preset)


class VerdictScoring(Scoring):
    """Scores of verdicts, with a mark if all answers to a task are the same."""

    def annotate(self, table: pd.DataFrame) -> pd.DataFrame:
        for category in [*self.categories, ALL]:
            own = self.rows[self.rows.category.isin(self.names(category))]
            for task, values in own[own.parsed > 0].groupby("task").value:
                same = (table.category == category) & (table.task == task)
                table.loc[same, "by_habit"] = len(set(values)) == 1
        return table
