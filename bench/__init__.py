"""bench: measure social bias in language models with McBE, CBBQ and NLI-CoAL.

    import bench

    run = bench.evaluate("cbbq", "simulated:bias=0.7")
    run.scores()                        # a score table, with intervals
    run.answers()                       # every answer, with its verdict
    bench.open("reports/runs/...")      # a run that `bench run` or `evaluate` wrote
    bench.score("reports/runs/...", "reports/runs/...", preset="official")
    outcomes = bench.outcomes(run)      # one row per scored unit, with columns of 0 and 1
    bench.share(outcomes, "stereotyped", of="answered", by="category")

Packages in the order of the data: `data`, `tasks`, `scorers`, `metrics`, `figures`, `runs`, `run`,
`analyses`, `show`. We import each when it is first used.
"""

# ruff: noqa: F401
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

# Before other modules, because an update of the files does not change the imported ones.
from bench.core import inputs

if TYPE_CHECKING:  # the same names for type checkers
    from bench import analyses, data, figures, metrics, run, runs, scorers, show, tasks
    from bench.analyses.differences import differences, open_ranks
    from bench.analyses.elsewhere import read_scores
    from bench.metrics.agreement import agreement
    from bench.metrics.engine import Metric
    from bench.metrics.friedman import friedman
    from bench.metrics.primary import measure
    from bench.metrics.statistics import compare, correlate, share, trend
    from bench.run import Run, evaluate, score
    from bench.runs import records
    from bench.runs.models import models
    from bench.runs.outcomes import answers, items, outcomes
    from bench.runs.scores import explain
    from bench.scorers import load
    from bench.show import publish

    open = Run.open

__version__ = "0.3.0"
# The names that each module defines; the first are packages.
_NAMES = {
    "": ["analyses", "data", "figures", "metrics", "run", "runs", "scorers", "show", "tasks"],
    "analyses.differences": ["differences", "open_ranks"],
    "analyses.elsewhere": ["read_scores"],
    "metrics.agreement": ["agreement"],
    "metrics.engine": ["Metric"],
    "metrics.friedman": ["friedman"],
    "metrics.primary": ["measure"],
    "metrics.statistics": ["compare", "correlate", "share", "trend"],
    "run": ["Run", "evaluate", "score"],
    "run:Run": ["open"],
    "runs": ["records"],
    "runs.models": ["models"],
    "runs.outcomes": ["answers", "items", "outcomes"],
    "runs.scores": ["explain"],
    "scorers": ["load"],
    "show": ["publish"],
}
_DEFINED_IN = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, owner = _DEFINED_IN[name].partition(":")
    path = [part for part in (module, owner, name) if part]
    return resolve_name(".".join([__name__, *path]))


def __dir__() -> list[str]:
    return __all__
