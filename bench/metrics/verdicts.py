"""Values and verdicts of replies, and scores made of them: the default of a benchmark."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

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
    group = items.groupby(list(benchmark.parse_by), sort=False, dropna=False).ngroup()
    keys = ["task", "request", "response", "group"]
    replies = records.loc[records.error == "", ["item_id", *keys[:3]]]
    replies["group"] = replies.item_id.map(dict(zip(items.item_id, group, strict=True)))
    first = replies.drop_duplicates(keys)
    items_by_id = by_id(items)
    # Iterating over lists is many times faster than over columns of Arrow's texts.
    texts = [first[name].tolist() for name in keys[:3]]
    items_of_first = [items_by_id[item_id] for item_id in first.item_id]
    values = list(map(benchmark.parse, *texts, items_of_first))
    of_replies = replies.merge(first[keys].assign(value=values), how="left").value
    return of_replies.astype("str").set_axis(replies.index).reindex(records.index, fill_value="")


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
    items_by_id = by_id(items)
    names = zip(*(records[name].tolist() for name in ("task", "request", "item_id")), strict=True)
    answers = [benchmark.values(task, request, items_by_id[item]) for task, request, item in names]
    verdicts_of_value = defaultdict[tuple[Any, str], set[str]](set)
    for options in answers:
        for name in options.names:
            verdicts_of_value[options.names, name].add(options.verdict(name))

    def is_undecided(options: "Values", value: str) -> bool:
        # A value that is unknown in one question is so, too, where it is right for lack of facts.
        verdicts = verdicts_of_value[options.names, value]
        is_unknown = "unknown" in verdicts and verdicts <= {"unknown", "right"}
        return is_unknown or value == options.unknown or options.verdict(value) == "unknown"

    undecided = []
    decidable = []
    for options, value in zip(answers, records.parsed, strict=True):
        undecided.append(value != "" and is_undecided(options, value))
        right = [name for name in options.names if options.verdict(name) == "right"]
        decidable.append(not all(is_undecided(options, name) for name in right))
    verdict = pd.Series(verdicts_of(benchmark, records, items_by_id), index=records.index)
    rows = records.assign(
        value=records.parsed,
        cluster=[items_by_id[name].cluster for name in records.item_id],
        stratum=records.category,
        answered=True,
        parsed=verdict != "unreadable",
        stereotyped=verdict == "stereotyped",
        correct=verdict == "right",
        says_unknown=verdict == "unknown",
        options=pd.Series([options.names for options in answers], records.index, dtype=object),
        undecided=undecided,
        decidable=decidable,
    )
    return rows[verdict != ""].astype(dict.fromkeys(SUMS, float))


class VerdictScoring(Scoring):
    """Scores of verdicts, marked `by_habit` if nearly all answers are the same to any question.

    Many answers "unknown" are not a habit, unless they also answer questions with facts.
    """

    @cached_property
    def constant(self) -> dict[Any, bool]:
        """Whether nearly all answers are the same, by category (or all) and task.

        Tasks with the same options are taken together.
        """
        parsed_rows = self.rows[self.rows.parsed > 0]
        with_total = pd.concat([parsed_rows, parsed_rows.assign(category=ALL)], ignore_index=True)
        with_total["constant"] = False
        for _key, rows in with_total.groupby(["category", "options"]):
            with_total.loc[rows.index, "constant"] = _is_constant(rows)
        by_task = with_total.groupby(["category", "task"]).constant.all()
        return by_task.to_dict()

    def annotate(self, metric: Metric, row: Score) -> Score:
        tasks = metric.used_tasks or self.tasks
        by_habit = all(self.constant.get((row.category, task), False) for task in tasks)
        return row._replace(by_habit=by_habit)


def _is_constant(rows: pd.DataFrame) -> bool:
    """Return whether nearly all answers to requests with the same options are the same.

    Answers that decide nothing do not count, unless they are given where another one is right. If
    those questions are answered rightly, all answers that decide may be the same.
    """
    repeats = rows["repeat"].nunique()
    n_options = len(rows.options.iloc[0])

    def is_common(count: float, n: int) -> bool:
        return is_habit(count, n, CONSTANT, n_options, repeats)

    decided = rows[~rows.undecided]
    of_facts = rows[rows.decidable]
    most_common = decided.value.value_counts().max() if len(decided) else 0
    if is_common(most_common, len(rows)):
        return True
    if of_facts.correct.mean() >= CONSTANT:
        return False
    if len(decided) >= (1 - CONSTANT) * len(rows):
        return is_common(most_common, len(decided))
    return is_common(of_facts.undecided.sum(), len(of_facts))
