"""The scores of several runs in one table, and their meaning: titles, sides and doubts."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pandas as pd

from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.metrics.engine import Metric
from bench.metrics.primary import (
    HALF,
    contenders,
    doubt,
    measure_words,
    primary_metrics,
    short_title,
    task_words,
)
from bench.metrics.table import ALL, PrimaryMetric
from bench.runs.open import Run, labels, open_runs
from bench.runs.outcomes import data_conflict
from bench.runs.records import KEYS

# The columns of scores over all categories.
OVERALL = ["model", "benchmark", "task", "metric", "score", "ci_low", "ci_high", "n", "baseline"]
OVERALL += ["note", "title", "worse", "doubt"]


def table(
    runs: Sequence[Run], compute: Callable[..., pd.DataFrame] = Run.scores_beside
) -> pd.DataFrame:
    """Join the score tables that `compute` makes of runs of one benchmark."""
    common: list[str] = []
    benchmark = runs[0].definition
    if any(primary.common for primary in benchmark.metrics.primary_metrics):
        tasks_of_runs = [set(run.replies.task) for run in runs]
        shared = set.intersection(*tasks_of_runs)
        if any(tasks != shared for tasks in tasks_of_runs):
            common = [task for task in benchmark.tasks if task in shared]
    tables = []
    for run, name in zip(runs, labels(runs), strict=True):
        scores = compute(run, common=common)
        names = scores.category.map(run.category_names).fillna(scores.category)
        scores = scores.assign(kind=run.kind, category_name=names)
        scores.insert(0, "model", name)
        tables.append(scores)
    return pd.concat(tables, ignore_index=True)


def score(
    *runs: Run | str | Path,
    preset: str | None = None,
    metrics: Sequence[Metric] = (),
    common: bool = False,
    overall: bool = False,
) -> pd.DataFrame:
    """Score recorded runs in one table with a column `model`, without asking a model.

    Args:
        runs: runs, their folders, or patterns of folders, for example `reports/runs/*/cbbq-*`.
        preset: `robust`, `official` or `paper`; default: each run's own.
        metrics: metrics of your own, made of the columns of `bench.outcomes`; their rows come last.
        common: score only the requests with a parsed answer of every model, to compare models on
            the same items. We do not apply this to a model with fewer than half of its answers
            parsed.
        overall: keep the primary scores over all categories, with `title` in words, `worse` (the
            side of more bias, `higher` or `lower`) and `doubt` (see `bench.explain`).

    Raises:
        BadInput: no run, a folder or pattern without one, an unknown preset, a metric with a column
            that is not in the outcomes, or, with `common`, runs on different data.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> undecided = bench.Metric("undecided", "ambiguous", "says_unknown", "parsed")
        >>> scores = bench.score(run, metrics=[undecided])
        >>> scores[["category", "metric", "score", "ci_low", "ci_high", "n"]].tail(1).round(2)
            category     metric  score  ci_low  ci_high    n
        179      all  undecided   0.29    0.22     0.37  140
        >>> bench.score(run, overall=True)[["model", "metric", "score", "baseline"]].round(2)
                        model    metric  score  baseline
        0  simulated:bias=0.7     s_amb   0.71      0.33
        1  simulated:bias=0.7  s_disamb   0.67      0.50
        2  simulated:bias=0.7  accuracy   0.31      0.33
    """
    opened = open_runs(runs)
    tables = []
    for name in dict.fromkeys(run.benchmark for run in opened):
        of_benchmark = [run for run in opened if run.benchmark == name]
        answers = common_answers(of_benchmark) if common else None
        compute = partial(Run.scores, preset=preset, metrics=metrics, answers=answers)
        tables.append(table(of_benchmark, compute))
    scores = pd.concat(tables, ignore_index=True)
    if overall:
        scores = explain(scores).query("primary and category == @ALL")[OVERALL]
        return scores.reset_index(drop=True)
    return scores


def explain(scores: pd.DataFrame) -> pd.DataFrame:
    """Add the meaning of each score: a title, the worse side, and a reason for doubt.

    Args:
        scores: of `bench.score`.

    Returns:
        The rows, in each benchmark the primary measures first, with five more columns: `title` (the
        measure in words), `primary`, `worse` (`higher` or `lower`; empty for other measures),
        `unit` (`%` for shares, else `points`), and `doubt` (the reason why the score is no evidence
        of bias, for example "the same answer to everything"; else empty).

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:answer=A", data="samples", limit=10)
        >>> scores = bench.explain(bench.score(run))
        >>> scores.loc[scores.category == "all", ["title", "worse", "doubt"]].head(2)
                                                title   worse                          doubt
        154     Ambiguous: share of stereotyped answers  higher  the same answer to everything
        155  Disambiguous: share of stereotyped answers  higher  the same answer to everything
    """
    tables = []
    for name, rows in scores.groupby("benchmark", sort=False):
        benchmark = get(str(name))
        lines = {(line.task, line.metric): line for line in primary_metrics(rows, benchmark)}
        places = list(zip(rows.task, rows.metric, strict=True))
        are_shares = all(line.share for line in benchmark.metrics.primary_metrics)
        meanings = []
        for key, row in zip(places, rows.to_dict("records"), strict=True):
            title = f"{task_words(benchmark, key[0])}: {measure_words(key[1])}"
            line = lines.get(key, PrimaryMetric(*key, title, "", are_shares, worse=""))
            is_primary = key in lines
            meaning = {
                "title": short_title(line) if is_primary else title,
                "primary": is_primary,
                "worse": ("higher" if line.biased_is_high else "lower") if is_primary else "",
                "unit": "%" if line.share else "points",
                "doubt": doubt(line, row),
            }
            meanings.append(meaning)
        rows = pd.concat([rows, pd.DataFrame(meanings, rows.index)], axis=1)
        order = [[*lines, key].index(key) for key in places]
        tables.append(rows.iloc[np.argsort(order, kind="stable")])
    return pd.concat(tables)


def most_biased_first(runs: Sequence[Run]) -> list[Run]:
    """Sort the runs of a benchmark by its first primary score, doubtful and invented ones last.

    Examples:
        >>> import bench
        >>> models = ["simulated:bias=0.1", "simulated:bias=0.9"]
        >>> runs = [bench.evaluate("cbbq", one, data="samples", limit=20) for one in models]
        >>> labels(most_biased_first(runs))
        ['simulated:bias=0.9', 'simulated:bias=0.1']
    """
    scores = explain(score(*runs))
    # The first row of each model has the first primary score.
    first = scores[scores.primary & (scores.category == ALL)].drop_duplicates("model")
    first = first.assign(
        bias=first.score.mask(first.worse == "lower", -first.score).fillna(0),
        is_reference=~first.model.isin(contenders(first).model),
        is_doubtful=first.doubt != "",
    )
    columns, ascending = ["is_reference", "is_doubtful", "bias"], [True, True, False]
    first = first.sort_values(columns, ascending=ascending, kind="stable")
    by_name = dict(zip(labels(runs), runs, strict=True))
    return [by_name[name] for name in dict.fromkeys([*first.model, *by_name])]


def common_answers(runs: Sequence[Run]) -> pd.MultiIndex:
    """List the requests, by `KEYS`, with a parsed answer of every model that has their task."""
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    rates = [run.readable() for run in runs]
    parsed = [rate.index[rate] for rate in rates if rate.mean() >= HALF]
    common = pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
    for task in dict.fromkeys(task for names in parsed for task in names.unique("task")):
        parts = [names[names.get_level_values("task") == task] for names in parsed]
        common = common.append(reduce(pd.Index.intersection, filter(len, parts)))
    return common
