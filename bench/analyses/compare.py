"""Runs against each other: the scores of every pair of models on what both answered.

for benchmark, runs in by_benchmark(opened(["reports/mine/runs/*/*"])).items():
    result = compared(runs)
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from bench.errors import BadInput, NoRuns
from bench.metrics.bootstrap import Replicates
from bench.metrics.comparison import Pair, pairs, ranks
from bench.results import Run, labels
from bench.tasks.request import of_judge

KEYS = ["task", "item_id", "request", "repeat"]


class Compared(NamedTuple):
    """What came of comparing runs on one benchmark.

    Attributes:
        pairs: see `bench.metrics.comparison.pairs`.
        ranks: see `bench.metrics.comparison.ranks`.
        common: answers that all models gave; 0 where there is none, and then there are no ranks.
    """

    benchmark: str
    pairs: pd.DataFrame
    ranks: pd.DataFrame
    common: int


def by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs on each benchmark that has two or more; what is alone cannot be compared.

    Raises:
        NoRuns: there is none.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.benchmark, []).append(run)
    kept = {name: some for name, some in found.items() if len(some) > 1}
    if not kept:
        raise NoRuns(f"{len(runs)} runs, and no two on one benchmark; to compare models, give two or more")
    return kept


def compared(runs: Sequence[Run], preset: str | None = None) -> Compared:
    """Every pair of `runs` on the answers that both have, and ranks on those that all have.

    Args:
        runs: a run a model, all on one benchmark.

    Raises:
        BadInput: fewer than two runs, several benchmarks, two runs of a model, or an unknown preset.
    """
    benchmarks, names = list(dict.fromkeys(run.benchmark for run in runs)), labels(runs)
    if len(runs) < 2 or len(benchmarks) > 1:
        raise BadInput(
            f"{len(runs)} run{'s' * (len(runs) != 1)} on {', '.join(benchmarks) or 'nothing'}: to compare models, give two or "
            "more runs on one benchmark"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        folders = ", ".join(
            str(run.folder) for run, name in zip(runs, names, strict=True) if name == twice[0]
        )
        raise BadInput(f"{twice[0]} has several runs on {benchmarks[0]}: {folders}; leave one of them")
    answered = [_answered(run) for run in runs]
    everyone = answered[0]
    for one in answered[1:]:
        everyone = everyone.intersection(one)
    every = [_replicates(run, runs, preset, len(everyone)) for run in runs]
    found: dict[tuple[str, str], Pair] = {}
    for a, b in combinations(range(len(runs)), 2):
        both = answered[a].intersection(answered[b])
        first, second = every[a], every[b]
        if len(both) > len(everyone):  # these two answered more than all did
            first, second = (_replicates(runs[k], [runs[a], runs[b]], preset, len(both)) for k in (a, b))
        found[names[a], names[b]] = Pair(first, second, _by_task(both))
    table = pairs(found, benchmarks[0])
    of_all = dict(zip(names, every, strict=True))
    return Compared(
        benchmarks[0], table, ranks(of_all, table, benchmarks[0]), sum(_by_task(everyone).values())
    )


def _answered(run: Run) -> pd.MultiIndex:
    """What a run was asked and answered."""
    rows = run.records
    return pd.MultiIndex.from_frame(rows.loc[rows.error == "", KEYS].drop_duplicates())


def _replicates(run: Run, like: Sequence[Run], preset: str | None, common: int) -> Replicates:
    return run.replicates(preset, [other for other in like if other is not run]) if common else Replicates()


def _by_task(common: pd.MultiIndex) -> Counter[str]:
    """Answers by task; what a judge says of them is none."""
    return Counter(task for task, _, request, _ in common if not of_judge(str(request)))
