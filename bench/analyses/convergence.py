"""The measures of models that were run on several benchmarks, for a multitrait matrix.

every = measured(by_benchmark(opened(["reports/mine/runs/*/*"])))
"""

from collections.abc import Mapping, Sequence

from bench.metrics.bootstrap import Replicates
from bench.metrics.convergence import Measure, measures
from bench.run.results import Run, labels


def measured(runs: Mapping[str, Sequence[Run]], preset: str | None = None) -> list[Measure]:
    """The measures of each benchmark, each model on all that it was asked.

    Args:
        runs: by benchmark, a run per model (see `bench.analyses.compare.by_benchmark`).
    """
    every = [run for some in runs.values() for run in some]
    found: dict[str, dict[str, Replicates]] = {}
    for run, name in zip(every, labels(every), strict=True):
        found.setdefault(run.benchmark, {})[name] = run.replicates(preset)
    return measures(found)
