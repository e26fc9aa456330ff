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
    from bench.runs.explain import explain
    from bench.runs.items import items
    from bench.runs.models import models
    from bench.runs.outcomes import answers, outcomes
    from bench.scorers import load
    from bench.show import publish

    open = Run.open

__version__ = "0.3.0.dev0"
# The module of each name.
_DEFINED_IN = {
    "Metric": "metrics.engine",
    "Run": "run",
    "agreement": "metrics.agreement",
    "analyses": "",
    "answers": "runs.outcomes",
    "compare": "metrics.statistics",
    "correlate": "metrics.statistics",
    "data": "",
    "differences": "analyses.differences",
    "evaluate": "run",
    "explain": "runs.explain",
    "figures": "",
    "friedman": "metrics.friedman",
    "items": "runs.items",
    "load": "scorers",
    "measure": "metrics.primary",
    "metrics": "",
    "models": "runs.models",
    "open": "run:Run",
    "open_ranks": "analyses.differences",
    "outcomes": "runs.outcomes",
    "publish": "show",
    "read_scores": "analyses.elsewhere",
    "records": "runs",
    "run": "",
    "runs": "",
    "score": "run",
    "scorers": "",
    "share": "metrics.statistics",
    "show": "",
    "tasks": "",
    "trend": "metrics.statistics",
}
__all__ = list(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, owner = _DEFINED_IN[name].partition(":")
    path = [part for part in (module, owner, name) if part]
    return resolve_name(".".join([__name__, *path]))


def __dir__() -> list[str]:
    return __all__
