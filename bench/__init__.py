"""bench: measure social bias in language models with McBE, CBBQ and NLI-CoAL.

    import bench

    run = bench.evaluate("cbbq", "simulated:bias=0.7")
    run.scores()                        # a score table, with intervals
    run.answers()                       # every answer, with its verdict
    bench.open("reports/runs/...")      # a run that `bench run` or `evaluate` wrote
    bench.score("reports/runs/...", "reports/runs/...", preset="official")
    outcomes = bench.outcomes(run)      # one row per scored unit, with columns of 0 and 1
    bench.share(outcomes, "stereotyped", of="answered", by="category")

Packages in the order of the data: `data`, `tasks`, `scorers`, `records`, `metrics`, `figures`,
`run`, `analyses`, `show`. We import each when it is first used.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench import analyses, data, figures, metrics, records, run, scorers, show, tasks
    from bench.metrics.agreement import agreement
    from bench.metrics.differences import differences, open_ranks
    from bench.metrics.engine import Metric
    from bench.metrics.frames import read_scores
    from bench.metrics.friedman import friedman
    from bench.metrics.primary import explain, measure
    from bench.metrics.statistics import compare, correlate, share, trend
    from bench.run import Run, evaluate, score
    from bench.run.models import models
    from bench.run.outcomes import answers, items, outcomes
    from bench.scorers import load
    from bench.show import publish

    open = Run.open

__version__ = "0.3.0.dev0"
__all__ = [
    "Metric",
    "Run",
    "agreement",
    "analyses",
    "answers",
    "compare",
    "correlate",
    "data",
    "differences",
    "evaluate",
    "explain",
    "figures",
    "friedman",
    "items",
    "load",
    "measure",
    "metrics",
    "models",
    "open",
    "open_ranks",
    "outcomes",
    "publish",
    "read_scores",
    "records",
    "run",
    "score",
    "scorers",
    "share",
    "show",
    "tasks",
    "trend",
]
# The definitions of the names that are not packages.
_DEFINED_IN = {
    "Metric": "bench.metrics.engine:Metric",
    "Run": "bench.run:Run",
    "agreement": "bench.metrics.agreement:agreement",
    "answers": "bench.run.outcomes:answers",
    "compare": "bench.metrics.statistics:compare",
    "correlate": "bench.metrics.statistics:correlate",
    "differences": "bench.metrics.differences:differences",
    "evaluate": "bench.run:evaluate",
    "explain": "bench.metrics.primary:explain",
    "friedman": "bench.metrics.friedman:friedman",
    "items": "bench.run.outcomes:items",
    "load": "bench.scorers:load",
    "measure": "bench.metrics.primary:measure",
    "models": "bench.run.models:models",
    "open": "bench.run:Run.open",
    "open_ranks": "bench.metrics.differences:open_ranks",
    "outcomes": "bench.run.outcomes:outcomes",
    "publish": "bench.show:publish",
    "read_scores": "bench.metrics.frames:read_scores",
    "score": "bench.run:score",
    "share": "bench.metrics.statistics:share",
    "trend": "bench.metrics.statistics:trend",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve_name(_DEFINED_IN.get(name, f"{__name__}.{name}"))


def __dir__() -> list[str]:
    return __all__
