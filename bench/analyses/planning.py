"""Planning of a run: how many scenes a difference needs, and what a budget of requests allows.

table = planned("cbbq", difference=0.05)                              # nothing known: even odds
table = planned("cbbq", difference=0.05, runs=[Run.open("reports/runs/tiny_s/cbbq-0a1b2c3d")])
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import analyses, scorers
from bench.benchmarks import module, resolve
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.data import frame
from bench.metrics.bootstrap import Sample, leave_one_out
from bench.metrics.influence import deviations, spread
from bench.metrics.significance import POWER, detectable, units_needed
from bench.metrics.table import ALL, Headline
from bench.run.plan import Plan
from bench.run.results import Run

PAIRED, ALONE = "two models", "one model and a fixed value"
EVEN_ODDS = "even odds"
# Stands for a model that can be asked every task that needs no judge.
ANY_MODEL = "simulated:"


class Available(NamedTuple):
    """What the data hold for a task: units and their strata, requests per unit and model.

    `inflation` is how much more a mean over categories varies for their unequal sizes.
    """

    sample: Sample
    requests: float
    inflation: float


def planned(
    benchmark: str,
    difference: float,
    power: float = POWER,
    runs: Sequence[Run] = (),
    budget_requests: int | None = None,
    data: str = "",
) -> pd.DataFrame:
    """Return how many units a difference needs, for each headline.

    Args:
        difference: in the unit of the scores: 0.05 of a share, 5 of 100 points.
        power: how often an existing difference is to be found.
        runs: none (units that are all or nothing at even odds), one (its spread; a second model is
            taken to vary as much and independently), or two (the spread of their differences).
        budget_requests: say too what this many requests, to all models together, would show.
        data: folder of the data set, default: that of the first run, else as of a run.

    Returns:
        One row per headline and `comparison` (two models; or one model and a fixed value, such as a
        baseline): the standard deviation `sd` of a unit and its source (`from`), `units` and
        `requests` needed, `available` units and what they would show (`shown`); with a budget
        `budget_units` and `budget_shown`.

    Raises:
        BadInput: a difference, power or budget out of range, more than two runs, or other runs.
    """
    name = resolve(benchmark)
    if not (math.isfinite(difference) and difference > 0):
        raise BadInput(f"--difference {difference}: expected a number above 0, like 0.05")
    if not 0.5 <= power < 1:
        raise BadInput(f"--power {power}: expected a number from 0.5 to below 1, like 0.8")
    if budget_requests is not None and budget_requests < 1:
        raise BadInput(f"--budget-requests {budget_requests}: has to be at least 1")
    if len(runs) > 2:
        raise BadInput(f"--from: {len(runs)} runs are given; give one, or two to compare")
    for run in runs:
        if run.benchmark != name:
            raise BadInput(f"--from {run.folder}: is a run of {run.benchmark}, not of {name}")
    analyses.same_data(runs, "--from")
    available = _available(name, runs, data)
    rows = []
    for headline in module("metrics", name).HEADLINES:
        if headline.task not in available:
            continue
        have = available[headline.task]
        most, strata = have.sample.units, have.sample.strata
        for comparison, models in ((PAIRED, 2), (ALONE, 1)):
            sd, source = _spread(headline, comparison, runs, have)
            if sd == 0:
                sd, source = np.nan, f"{source}: its units do not differ"
            units, requests = units_needed(sd, difference, strata, power), have.requests * models
            row: dict[str, Any] = {
                "task": headline.task,
                "metric": headline.metric,
                "comparison": comparison,
                "sd": sd,
                "from": source,
                "units": units,
                "requests": np.nan if np.isnan(units) else math.ceil(units * requests),
                "available": most,
                "shown": detectable(sd, most, strata, power),
            }
            if budget_requests is not None:
                row["budget_units"] = min(most, int(budget_requests / requests))
                row["budget_shown"] = detectable(sd, row["budget_units"], strata, power)
            rows.append(row)
    return pd.DataFrame(rows)


def _available(benchmark: str, runs: Sequence[Run], data: str) -> dict[str, Available]:
    """Return what the data hold by task and for all tasks, asked as the first run was."""
    options: dict[str, Any] = {"data": data or None}
    if runs:
        asked = runs[0].about["asked"]
        names = ("categories", "tasks", "settings", "repeats")
        options = {name: asked[name] for name in names}
        options["data"] = data or runs[0].about["data"]["folder"]
    plan = Plan.make(RunConfig.of(benchmark=benchmark, model=ANY_MODEL, **options))
    scorer = scorers.load(ANY_MODEL)
    requests = plan.requests(scorer.verbs, scorer.reads, (), partial=True)
    counts = pd.Series(
        [request.task for stage in requests.stages for request in stage]
    ).value_counts()
    items = frame(list(plan.by_id.values()))
    items["unit"] = module("metrics", benchmark).units(items)
    available = {}
    for task in (ALL, *requests.ways):
        tasks = list(requests.ways) if task == ALL else [task]
        asked_items = {item.item_id for name in tasks for item in plan.items[name]}
        own = items[items.item_id.isin(asked_items)].drop_duplicates(["category", "unit"])
        sizes = own.category.value_counts()
        units, strata = int(sizes.sum()), len(sizes)
        inflation = math.sqrt(units * float((1 / sizes).sum())) / strata
        total = int(counts[tasks].sum())
        available[task] = Available(Sample(units, strata), total / units, inflation)
    return available


def _spread(
    headline: Headline, comparison: str, runs: Sequence[Run], have: Available
) -> tuple[float, str]:
    """Return the standard deviation of a unit, or of its paired difference, and its source."""
    if not runs:
        # Values at both ends, half and half; two models that vary independently.
        low, high = headline.limits
        sd = have.inflation * (high - low) / 2
        return sd * (math.sqrt(2) if comparison == PAIRED else 1), EVEN_ODDS
    place = (ALL, headline.task, headline.metric)
    used = runs if comparison == PAIRED else runs[:1]
    both = used if len(used) > 1 else ()
    left = [run.replicates(like=both, draw=leave_one_out) for run in used]
    source = ", ".join(run.label for run in used)
    if not all(place in scores for scores in left):
        return np.nan, source
    values, sample = deviations(left[0], place), left[0].samples[place]
    if len(left) == 2:
        values = values - deviations(left[1], place)
    sd = spread(values, sample.units - sample.strata)
    if comparison == PAIRED and len(left) == 1:
        return sd * math.sqrt(2), f"{source}, twice"
    return sd, source
