"""The items, replies and outcomes of several runs in frames, for your own statistics."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput
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
    return _joined(all_runs, [run.outcomes(preset) for run in all_runs])


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
    return _joined(all_runs, [run.answers() for run in all_runs])


def _joined(runs: Sequence[Run], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join a table of each run; columns that name the run come first."""
    parts = []
    for run, name, table in zip(runs, labels(runs), tables, strict=True):
        columns = {
            "model": name,
            "benchmark": run.benchmark,
            "prompts": str(run.metadata["asked"]["prompts"]),
            "run": str(run.folder),
        }
        others = table.drop(columns="benchmark", errors="ignore")
        parts.append(pd.concat([pd.DataFrame(columns, table.index), others], axis=1))
    return pd.concat(parts, ignore_index=True)


def items(*runs: Run | str | Path) -> pd.DataFrame:
    """List the items of some runs, each once, with the fields of the data.

    Args:
        runs: as in `outcomes`.

    Returns:
        `benchmark`, `item_id`, `cluster`, `category`, and the other fields of a benchmark's items,
        which are NaN for items of other benchmarks.

    Raises:
        BadInput: two runs have different items of one name.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> bench.items(run)[["item_id", "topic", "polarity"]].head(2)
                   item_id topic polarity
         0   SES:ambiguous:1  公共物品      neg
        1  SES:ambiguous:13  学业表现      neg
    """
    all_runs = open_runs(runs)
    parts = []
    for benchmark in dict.fromkeys(run.benchmark for run in all_runs):
        frame = all_items([run for run in all_runs if run.benchmark == benchmark])
        parts.append(pd.concat({benchmark: frame}, names=["benchmark"]).reset_index("benchmark"))
    return pd.concat(parts, ignore_index=True)


def all_items(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the items of runs of one benchmark, each once; refuse different items of one name."""
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    joined = runs[0].items
    for run in runs[1:]:
        joined = pd.concat([joined, run.items]).drop_duplicates("item_id", ignore_index=True)
    return joined


def data_conflict(runs: Sequence[Run]) -> str:
    """Describe different items with the same name in some runs; "" if there are none."""
    # The first run on each version of the data.
    versions = {run.metadata["data"]["sha256"]: run for run in reversed(runs)}
    if len(versions) < 2:
        return ""
    # A field that a version lacks is NaN.
    hashes = pd.concat({sha256: _hashes(run) for sha256, run in reversed(versions.items())})
    items = hashes.groupby(level="item_id", sort=False)
    differs = items.nunique().gt(1)
    item_ids = differs.index[differs.any(axis=1)]
    if item_ids.empty:
        return ""
    field = differs.columns[differs.loc[item_ids[0]]][0]
    values = hashes.xs(item_ids[0], level="item_id")[field].dropna()
    pair = [versions[values.index[0]], versions[values.index[values != values.iloc[0]][0]]]
    described = [
        "{name}, version {version} (SHA-256 {sha256:.8})".format_map(run.metadata["data"])
        for run in pair
    ]
    return (
        f"{pair[0].folder} and {pair[1].folder} were asked different data, "
        f"{' and '.join(described)}: {len(item_ids):,} of {(items.size() > 1).sum():,} items of "
        f"the same name are not the same, the first is {item_ids[0]}; name runs on one data set"
    )


def _hashes(run: Run) -> pd.DataFrame:
    """Return a hash of each field of each item, by `item_id`."""
    texts = run.items.set_index("item_id").astype(str)
    return texts.apply(lambda column: pd.util.hash_array(column.to_numpy(object)))
