"""The replies and outcomes of several runs, each in one frame, for your own statistics."""

from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput
from bench.runs.items import data_conflict
from bench.runs.open import Run, labels, open_runs


def outcomes(*runs: Run | str | Path, preset: str | None = None) -> pd.DataFrame:
    """List the outcomes of some runs: a row per scored unit, with columns of numbers.

    A unit is a reply in CBBQ and NLI-CoAL, an instance and a task in McBE. To add fields of the
    items, merge them, for example `outcomes.merge(run.items[["item_id", "topic"]])`.

    Args:
        runs: runs, their folders, or patterns of folders, for example `reports/runs/*/cbbq-*`.
        preset: `robust`, `official` or `paper`; default: each run's own.

    Returns:
        `model`, `benchmark`, `prompts` (the name of the prompt set), `run` (its folder),
        `category`, `task`, `item_id`, `repeat`, `cluster` and `stratum` (intervals resample
        clusters within strata), and the numbers of the benchmark: see `docs/statistics.md`, or
        `help(bench.benchmarks.cbbq.outcomes)` and the same of `nli_coal` and `mcbe.instances`.

    Raises:
        BadInput: a folder or pattern without a run, an unknown preset, or runs on different data,
            whose units must not be paired by their names.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> outcomes = bench.outcomes(run)
        >>> outcomes.groupby("task")[["stereotyped", "correct", "says_unknown"]].mean().round(2)
                      stereotyped  correct  says_unknown
        task
        ambiguous            0.71     0.29          0.29
        disambiguous         0.67     0.33          0.00
    """
    all_runs = open_runs(runs)
    for benchmark in dict.fromkeys(run.benchmark for run in all_runs):
        if conflict := data_conflict([run for run in all_runs if run.benchmark == benchmark]):
            raise BadInput(conflict)
    parts = []
    for run, name in zip(all_runs, labels(all_runs), strict=True):
        parts.append(_with_run(run.outcomes(preset), run, name))
    return pd.concat(parts, ignore_index=True)


def answers(*runs: Run | str | Path) -> pd.DataFrame:
    """List the replies of some runs: prompt, response, the parsed answer, and its verdict.

    Args:
        runs: as in `outcomes`.

    Returns:
        `model`, `benchmark`, `prompts`, `run`, and the columns of `Run.answers`.

    Raises:
        BadInput: a folder or pattern without a run.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> bench.answers(run).verdict.value_counts().to_dict()
        {'stereotyped': 194, 'right': 86}
    """
    all_runs = open_runs(runs)
    names = zip(all_runs, labels(all_runs), strict=True)
    return pd.concat(
        [_with_run(run.answers(), run, name) for run, name in names], ignore_index=True
    )


def _with_run(table: pd.DataFrame, run: Run, name: str) -> pd.DataFrame:
    """Put the columns that name the run before the others."""
    columns = {
        "model": name,
        "benchmark": run.benchmark,
        "prompts": str(run.metadata["asked"]["prompts"]),
        "run": str(run.folder),
    }
    rest = table.drop(columns="benchmark", errors="ignore")
    return pd.concat([pd.DataFrame(columns, index=table.index), rest], axis=1)
