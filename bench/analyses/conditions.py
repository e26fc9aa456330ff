"""Models that were asked under several conditions, for example two prompt sets:

outcomes, runs = open_conditions(["reports/mine/runs/*/cbbq*"], condition=prompt_set)
scores, _no_runs = open_conditions([], "mine.csv")
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyses import opened, parameters
from bench.analyses.elsewhere import read_scores
from bench.core.errors import BadInput, NoRuns
from bench.data import OWN_SAMPLES
from bench.metrics.statistics import KEYS
from bench.metrics.table import ALL
from bench.run import evaluate
from bench.runs.open import Run, labels, model_names
from bench.runs.outcomes import data_conflict, outcomes
from bench.runs.scores import explain, score


def prompt_set(run: Run) -> str:
    """Return the name of a run's prompt set."""
    return str(run.metadata["asked"]["prompts"])


def open_conditions(
    runs: Sequence[str | Path | Run] | str,
    csv: str | Path = "",
    condition: Callable[[Run], str] = prompt_set,
    *,
    name: str = "prompt sets",
    benchmark: str = "",
    models: Sequence[str] | str = (),
    preset: str = "",
    demo: Sequence[Mapping[str, Any]] = (),
    **options: Any,
) -> tuple[pd.DataFrame, list[Run]]:
    """Open the outcomes of models that were asked under two conditions or more.

    If a model has several runs under one condition, for example at two temperatures, we take the
    runs with the fewest different settings.

    Args:
        runs, models: as in `bench.analyses.opened`, or JSON texts, as papermill's `-p` gives them.
        csv: a file of scores, in place of runs: see `bench.read_scores`. Its column `prompts` is
            the condition.
        benchmark: default: the first one with two conditions, or the only one of the file. The
            demonstration is about CBBQ.
        condition: the function that returns the condition of a run.
        name: the name of the conditions in messages.
        preset: the preset of the outcomes; default: the runs' own.
        demo: options of `bench.evaluate`. If no runs are given, we make a run about the package's
            samples for each of these, with the `options` that all have in common.

    Returns:
        Outcomes as `bench.outcomes` returns them, with the condition in the column `prompts`, of
        the questions that a model was asked under all its conditions; and the runs. Of a CSV: its
        primary scores without averages over categories or tasks, and no runs; a category is a
        cluster.

    Raises:
        BadInput: two runs of a model under one condition are equally like its other runs, or the
            runs of a model are on different data or have no question in common; or as
            `bench.read_scores`.
        NoRuns: no model has two conditions.
    """
    runs, models = parameters(runs=runs, models=models)
    benchmarks = [benchmark] if benchmark else []
    if csv:
        scores = read_scores(csv, "prompts", benchmarks=benchmarks, models=models)
        return _of_categories(str(csv), scores), []
    runs = runs or [
        evaluate(benchmark or "cbbq", partial=True, data=OWN_SAMPLES, **options, **model)
        for model in demo
    ]
    kept = opened(runs, benchmarks=benchmarks, models=models)
    chosen: list[Run] = []
    parts = []
    for value, runs_of_value in _by_condition(kept, condition, name).items():
        chosen += runs_of_value
        parts.append(outcomes(*runs_of_value, preset=preset or None).assign(prompts=value))
    rows = pd.concat(parts, ignore_index=True)
    if "request" in rows:
        # The same question of CBBQ, asked with an explanation, is a request of another name.
        rows["request"] = rows.request.str.replace("explanation", "answer")
    return _in_common(rows), chosen


def _of_categories(name: str, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the primary scores of single categories and tasks."""
    rows = scores[scores.primary & (scores.category != ALL)]
    has_tasks = rows.groupby("metric").task.transform("nunique") > 1
    rows = rows[(rows.task != ALL) | ~has_tasks]
    benchmarks = list(rows.benchmark.unique())
    if len(benchmarks) > 1:
        raise BadInput(f"{name}: has scores of {', '.join(benchmarks)}; keep one of them")
    if rows.empty:
        raise BadInput(
            f"{name}: has scores over all categories alone, which cannot be tested; give a row for "
            "each category"
        )
    return _in_common(rows).assign(cluster=lambda rows: rows.category, stratum=ALL)


def doubts(rows: pd.DataFrame, runs: Sequence[Run], preset: str = "") -> "pd.Series[str]":
    """Return why a score says nothing of bias under any of the conditions, for each row.

    For example, a model that says A to everything has no change of bias, and is not robust.

    Args:
        rows: `model` and `task` of changes.
        runs: of `open_conditions`; without any, there is no doubt.
        preset: the preset of the scores; default: the runs' own.

    Returns:
        The `doubt` of the first primary score of the task, or else of the first one over all tasks;
        empty if the score has none under one of the conditions.
    """
    by_task: dict[Any, str] = {}
    if runs:
        scores = explain(score(*runs, preset=preset or None))
        scores["model"] = scores.model.map(dict(zip(labels(runs), model_names(runs), strict=True)))
        scores = scores[scores.primary & (scores.category == ALL)]
        of_scores = scores.groupby(["model", "task", "metric"], sort=False).doubt
        least = of_scores.agg(lambda doubts: doubts.iloc[0] if doubts.all() else "")
        by_task = least.groupby(["model", "task"]).first().to_dict()
    texts = [
        by_task.get((model, task), by_task.get((model, ALL), ""))
        for model, task in zip(rows.model, rows.task, strict=True)
    ]
    return pd.Series(texts, rows.index, dtype=object)


def _in_common(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of questions, or scores, that a model has under all its conditions."""
    keys = [name for name in KEYS if name in rows]
    under = rows.groupby(keys, sort=False, dropna=False).prompts.transform("nunique")
    common = rows[under == rows.groupby("model").prompts.transform("nunique")]
    if common.empty:
        raise BadInput(
            f"{', '.join(map(str, rows.model.unique()))}: no question was asked under all of "
            f"{', '.join(map(str, rows.prompts.unique()))}"
        )
    return common.reset_index(drop=True)


def _by_condition(
    runs: Sequence[Run], condition: Callable[[Run], str], name: str
) -> dict[str, list[Run]]:
    """Group the runs of models that were asked under two conditions or more, on one benchmark."""
    rows = pd.DataFrame({"model": model_names(runs), "value": [condition(run) for run in runs]})
    rows["benchmark"] = [run.benchmark for run in runs]
    n_conditions = rows.groupby(["benchmark", "model"]).value.transform("nunique")
    compared = rows[n_conditions > 1]
    if compared.empty:
        values = rows.groupby(rows.model + " on " + rows.benchmark, sort=False).value.unique()
        have = "; ".join(f"{model}: {', '.join(names)}" for model, names in values.items())
        raise NoRuns(f"no model was asked under two {name}; there is {have}")
    compared = compared[compared.benchmark == compared.benchmark.iloc[0]]
    sides: dict[str, list[Run]] = {value: [] for value in compared.value}
    for _model, values in compared.groupby("model", sort=False).value:
        chosen = _most_alike([runs[k] for k in values.index], list(values))
        if conflict := data_conflict(list(chosen.values())):
            raise BadInput(conflict)
        for value, run in chosen.items():
            sides[value].append(run)
    return sides


def _most_alike(runs: Sequence[Run], values: Sequence[str]) -> dict[str, Run]:
    """Return a run of each condition, so that these runs have the fewest different settings."""
    options = pd.json_normalize([run.metadata["asked"] for run in runs])
    texts = options.astype(str).fillna("").to_numpy()  # unlike a missing value, "" is equal to ""
    differences = pd.DataFrame((texts[:, None] != texts).sum(axis=2))
    least = differences.T.groupby(list(values), sort=False).min()  # by condition and run
    first = least.sum().idxmin()
    chosen = {}
    for value, distance in least[first].items():
        is_nearest = differences[first] == distance
        nearest = [run for k, run in enumerate(runs) if values[k] == value and is_nearest[k]]
        if len(nearest) > 1:
            raise BadInput(
                f"{nearest[0].folder} and {nearest[1].folder}: {nearest[0].label} was asked under "
                "one condition in both; name one of them in runs"
            )
        chosen[str(value)] = nearest[0]
    return chosen
