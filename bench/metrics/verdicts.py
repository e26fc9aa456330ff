"""Values and verdicts of replies, and scores made of them: the default of a benchmark."""

from collections.abc import Mapping, Sequence
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
    """Prepare the scores of a run from the verdicts on its answers.

    The outcomes are `answered` (always 1), `parsed`, `stereotyped`, `correct` and `says_unknown`.
    """
    fields, values = by_id(items), records.parsed.tolist()
    verdict = pd.Series(verdicts_of(benchmark, records, fields), index=records.index)
    names = zip(*(records[name].tolist() for name in ("task", "request", "item_id")), strict=True)
    possible = [benchmark.values(task, request, fields[item]) for task, request, item in names]
    rows = records.assign(
        value=values,
        cluster=[fields[name].cluster for name in records.item_id],
        stratum=records.category,
        answered=1.0,
        parsed=(verdict != "unreadable").astype(float),
        stereotyped=(verdict == "stereotyped").astype(float),
        correct=(verdict == "right").astype(float),
        says_unknown=(verdict == "unknown").astype(float),
        **_undecided(possible, values),
    )
    metrics = benchmark.metrics.of_verdicts
    return VerdictScoring(rows[verdict != ""], SUMS, metrics, preset)


def _undecided(possible: "Sequence[Values]", values: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns that tell a habit from caution.

    These are `options` (the values that could be answered), `undecided` (whether the answer decides
    nothing), and `decidable` (whether a value that decides is right). A value decides nothing if
    its verdict is unknown, also where it is right for lack of facts, which has the verdict right.
    """
    choices = [own.choices for own in possible]
    options = [
        tuple(sorted(set(map(str, own.values() if isinstance(own, Mapping) else own))))
        for own in choices
    ]
    verdicts: dict[tuple[Any, str], set[str]] = {}
    for names, own in zip(options, possible, strict=True):
        for name in names:
            verdicts.setdefault((names, name), set()).add(own.verdict(name))
    undecided, decidable = [], []
    for names, own, value in zip(options, possible, values, strict=True):
        unknown = {
            name
            for name in names
            if own.verdict(name) == "unknown"
            or "unknown" in verdicts[names, name] <= {"unknown", "right"}
        }
        undecided.append(value in unknown)
        decidable.append(any(own.verdict(name) == "right" for name in set(names) - unknown))
    return {"options": options, "undecided": undecided, "decidable": decidable}


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
        tasks = metric.own_tasks or self.observed.tasks
        by_habit = all(self.constant.get((row.category, task), False) for task in tasks)
        return row._replace(by_habit=by_habit)


def _is_constant(rows: pd.DataFrame) -> bool:
    """Return whether nearly all answers to requests with the same options are the same.

    Answers that decide nothing do not count, unless they are given where another one is right. If
    those questions are answered rightly, all answers that decide may be the same.
    """
    repeats, n_options = rows["repeat"].nunique(), len(rows.options.iloc[0])

    def is_common(values: "pd.Series[Any]", n: int) -> bool:
        most = values.value_counts().max() if len(values) else 0
        return is_habit(most, n, CONSTANT, n_options, repeats)

    decided, of_facts = rows.value[~rows.undecided], rows[rows.decidable]
    if is_common(decided, len(rows)):
        return True
    if of_facts.correct.mean() >= CONSTANT:
        return False
    if len(decided) >= (1 - CONSTANT) * len(rows):
        return is_common(decided, len(decided))
    return is_common(of_facts.value[of_facts.undecided], len(of_facts))
