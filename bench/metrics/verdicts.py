"""Values and verdicts of replies, and scores made of them: the default of a benchmark."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench.data import by_id
from bench.metrics.engine import Metric, Scoring
from bench.metrics.table import ALL, CONSTANT, Score, is_habit

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark, Values

# Items by their ids, as `bench.data.by_id` returns them.
Items = Mapping[str, Any]
SUMS = ("answered", "parsed", "stereotyped", "correct", "says_unknown")


def parsed(benchmark: "Benchmark", records: pd.DataFrame, items: pd.DataFrame) -> "pd.Series[str]":
    """Parse the replies, equal ones once; "" for a reply that holds no value or did not come."""
    came = (records.error == "").to_numpy()
    replies = records[came]
    alike = items.groupby(list(benchmark.parse_by), sort=False, dropna=False).ngroup().to_numpy()
    places = pd.Series(range(len(items)), items.item_id).loc[replies.item_id].to_numpy()
    keys = [replies.task, replies.request, replies.response, alike[places]]
    groups = replies.groupby(keys, sort=False).ngroup()
    is_first = ~groups.duplicated()
    first, own = replies[is_first], by_id(items.iloc[places[is_first]])
    # Iterating over lists is many times faster than over columns of Arrow's texts.
    texts = [first[name].tolist() for name in ("task", "request", "response")]
    read = list(map(benchmark.parse, *texts, [own[item_id] for item_id in first.item_id]))
    values = np.full(len(records), "", dtype=object)
    values[came] = np.array(read, dtype=object)[groups]
    return pd.Series(values, records.index, dtype="str")


def verdicts_of(benchmark: "Benchmark", records: pd.DataFrame, items: Items) -> list[str]:
    """Return the verdict of each parsed reply, one of `bench.tasks.VERDICTS`, or ""."""

    @cache
    def verdict(task: str, request: str, item_id: str, value: str) -> str:
        return benchmark.values(task, request, items[item_id]).verdict(value)

    columns = (records[name].tolist() for name in ("task", "request", "item_id", "parsed"))
    return list(map(verdict, *columns))


def scoring(
    benchmark: "Benchmark", records: pd.DataFrame, items: pd.DataFrame, preset: str
) -> "VerdictScoring":
    """Prepare the scores of a run from the verdicts on its answers."""
    rows = outcomes_of(benchmark, records, items)
    return VerdictScoring(rows, SUMS, benchmark.metrics.of_verdicts, preset)


def outcomes_of(benchmark: "Benchmark", records: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """List the answers of a run that have a verdict, in columns of 0 and 1.

    These are `answered` (always 1), `parsed`, `stereotyped`, `correct` and `says_unknown`. Columns
    that tell a habit from caution are `options` (the values that could be answered), `undecided`
    (whether the answer decides nothing), and `decidable` (whether a value that decides is right).
    """
    fields, values = by_id(items), records.parsed.tolist()
    verdict = pd.Series(verdicts_of(benchmark, records, fields), index=records.index)
    names = zip(*(records[name].tolist() for name in ("task", "request", "item_id")), strict=True)
    possible = [benchmark.values(task, request, fields[item]) for task, request, item in names]
    seen = defaultdict[tuple[Any, str], set[str]](set)
    for own in possible:
        for name in own.names:
            seen[own.names, name].add(own.verdict(name))

    def decides(own: "Values", name: str) -> bool:
        # A value that is unknown in one question is so, too, where it is right for lack of facts.
        given = seen[own.names, name]
        is_unknown = "unknown" in given and given <= {"unknown", "right"}
        return name != own.unknown and own.verdict(name) != "unknown" and not is_unknown

    decidable = [
        any(own.verdict(name) == "right" and decides(own, name) for name in own.names)
        for own in possible
    ]
    rows = records.assign(
        value=values,
        cluster=[fields[name].cluster for name in records.item_id],
        stratum=records.category,
        answered=1.0,
        parsed=(verdict != "unreadable").astype(float),
        stereotyped=(verdict == "stereotyped").astype(float),
        correct=(verdict == "right").astype(float),
        says_unknown=(verdict == "unknown").astype(float),
        options=pd.Series([own.names for own in possible], records.index, dtype=object),
        undecided=[
            value != "" and not decides(own, value)
            for value, own in zip(values, possible, strict=True)
        ],
        decidable=decidable,
    )
    return rows[verdict != ""]


class VerdictScoring(Scoring):
    """Scores of verdicts, with a mark if nearly all answers are the same, whatever is asked.

    To say that it is not known is no habit, unless it is said where another answer is right, too.
    """

    @cached_property
    def constant(self) -> dict[Any, bool]:
        """Whether nearly all answers are the same, by category (or all) and task.

        Tasks with the same options are judged together.
        """
        read = self.rows[self.rows.parsed > 0]
        both = pd.concat([read, read.assign(category=ALL)], ignore_index=True)
        keys = ["category", "options"]
        groups = {key: _is_constant(own) for key, own in both.groupby(keys)}
        both["constant"] = [groups[key] for key in zip(*(both[key] for key in keys), strict=True)]
        constant: dict[Any, bool] = both.groupby(["category", "task"]).constant.all().to_dict()
        return constant

    def annotate(self, metric: Metric, row: Score) -> Score:
        tasks = metric.own_tasks or self.tasks
        by_habit = all(self.constant.get((row.category, task), False) for task in tasks)
        return row._replace(by_habit=by_habit)


def _is_constant(rows: pd.DataFrame) -> bool:
    """Return whether nearly all answers to requests with the same options are the same.

    Answers that decide nothing do not count, unless they are given where another one is right. If
    those questions are answered rightly, all answers that decide may be the same.
    """
    repeats, n_options = rows["repeat"].nunique(), len(rows.options.iloc[0])

    def is_common(count: float, n: int) -> bool:
        return is_habit(count, n, CONSTANT, n_options, repeats)

    decided, of_facts = rows[~rows.undecided], rows[rows.decidable]
    most = decided.value.value_counts().max() if len(decided) else 0
    if is_common(most, len(rows)):
        return True
    if of_facts.correct.mean() >= CONSTANT:
        return False
    if len(decided) >= (1 - CONSTANT) * len(rows):
        return is_common(most, len(decided))
    return is_common(of_facts.undecided.sum(), len(of_facts))
