"""Values and verdicts of replies, and scores made of them: the default of a benchmark."""

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench.data import by_id
from bench.metrics.engine import Metric, Scoring
from bench.metrics.table import ALL, Score

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark

# Items by their ids, as `bench.data.by_id` returns them.
Items = Mapping[str, Any]
SUMS = ("answered", "parsed", "stereotyped", "correct", "says_unknown")


def read_replies(benchmark: "Benchmark", records: pd.DataFrame, items: Items) -> list[str]:
    """Return the value of each reply, or "" if it holds none; we read equal replies once."""

    @cache
    def read(task: str, request: str, response: str, item_id: str, error: str) -> str:
        return "" if error else benchmark.parse(task, request, response, items[item_id])

    # Iterating over lists is many times faster than over columns of Arrow's texts.
    names = ("task", "request", "response", "item_id", "error")
    return list(map(read, *(records[name].tolist() for name in names)))


def verdicts_of(
    benchmark: "Benchmark", records: pd.DataFrame, values: Iterable[str], items: Items
) -> list[str]:
    """Return the verdict of each value, one of `bench.tasks.VERDICTS`, or ""."""

    @cache
    def verdict(task: str, request: str, item_id: str, value: str) -> str:
        return benchmark.values(task, request, items[item_id]).verdict(value)

    columns = (records[name].tolist() for name in ("task", "request", "item_id"))
    return list(map(verdict, *columns, values))


def scoring(
    benchmark: "Benchmark", records: pd.DataFrame, items: pd.DataFrame, preset: str
) -> "VerdictScoring":
    """Prepare the scores of a run from the verdicts on its answers.

    The outcomes are `answered` (always 1), `parsed`, `stereotyped`, `correct` and `says_unknown`.
    """
    fields = by_id(items)
    values = read_replies(benchmark, records, fields)
    verdict = pd.Series(verdicts_of(benchmark, records, values, fields), index=records.index)
    rows = records.assign(
        value=values,
        cluster=[fields[name].cluster for name in records.item_id],
        stratum=records.category,
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

    @cached_property
    def n_values(self) -> dict[Any, int]:
        """The numbers of different values, by category (or all) and task."""
        own = self.rows[self.rows.parsed > 0]
        both = pd.concat([own, own.assign(category=ALL)])
        numbers: dict[Any, int]
        numbers = both.groupby(["category", "task"]).value.nunique().to_dict()
        return numbers

    def annotate(self, metric: Metric, row: Score) -> Score:
        return row._replace(by_habit=self.n_values.get((row.category, row.task)) == 1)
