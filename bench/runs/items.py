"""The items of several runs in one frame, and conflicts between their data."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput
from bench.runs.open import Run, open_runs


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
        own = all_items([run for run in all_runs if run.benchmark == benchmark])
        parts.append(pd.concat({benchmark: own}, names=["benchmark"]).reset_index("benchmark"))
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
    """Describe a conflict between runs: different items with one name; "" without a conflict."""
    # The first run on each version.
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
