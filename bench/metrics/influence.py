"""Influence: how much a score changes without one scene, instance or occupation (the jackknife).

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11; Broderick,
Giordano and Meager, An Automatic Finite-Sample Robustness Metric, 2020, on conclusions that rest on
a few observations.
"""

from typing import Any

import numpy as np
import pandas as pd

from bench.benchmarks import module
from bench.metrics.bootstrap import Place, Replicates, leave_one_out
from bench.metrics.table import ALL, read_cards

TOP = 5
# Two ways to compute the same score differ by less.
NOISE = 1e-9
COLUMNS = ["task", "metric", "category", "unit", "text", "score", "without", "change"]
CARDS = read_cards(__file__, "influence")


def influence(
    records: pd.DataFrame, items: pd.DataFrame, benchmark: str, preset: str, top: int = TOP
) -> pd.DataFrame:
    """List the units without which each headline score over all categories changes most.

    Returns:
        One row per headline and unit, the largest change first: `category` and `unit` as the data
        name them, the `text` of the unit's first item, the `score`, the score `without` it, and the
        `change`. Units that change nothing, and those without which there is no score, are left
        out.
    """
    metrics: Any = module("metrics", benchmark)
    replicates = metrics.replicates(records, items, preset, leave_one_out)
    by_unit = items.assign(unit=metrics.units(items)).drop_duplicates("unit").set_index("unit")
    rows = []
    for headline in metrics.HEADLINES:
        values = replicates.get((ALL, headline.task, headline.metric))
        if values is None:
            continue
        change = pd.Series(values[1:] - float(values[0]))
        change = change[change.abs() > NOISE]
        for k in change.abs().sort_values(ascending=False, kind="stable").index[:top]:
            unit = replicates.left_out[k][1]
            item = by_unit.loc[unit]
            named = (headline.task, headline.metric, item.category, unit)
            numbers = map(float, (values[0], values[1 + k], change[k]))
            rows.append((*named, str(item[metrics.UNIT_TEXT]), *numbers))
    return pd.DataFrame(rows, columns=COLUMNS)


def deviations(left: Replicates, place: Place) -> pd.Series:
    """Compute how far each unit's own value lies from the mean of its stratum.

    These are the jackknife's pseudo-values, centred, on the scale of the score: with n units, n_h
    of them in the unit's stratum, r_hi = (n / n_h) (n_h - 1) (s - s_(-hi)); of a ratio they are
    linearised (Shao and Tu, The Jackknife and Bootstrap, 1995, section 2.1). Their sum of squares
    over n (n - strata) is the score's squared standard error.

    Args:
        left: from `leave_one_out`.

    Returns:
        Indexed by stratum and unit; NaN for the only unit of a stratum that the score needs.
    """
    index = pd.MultiIndex.from_tuples(left.left_out, names=["stratum", "unit"])
    values = pd.Series(left[place][0] - left[place][1:], index=index)
    size = values.groupby(level="stratum").transform("size")
    values *= left.samples[place].units / size * (size - 1)
    return values - values.groupby(level="stratum").transform("mean")


def spread(values: pd.Series, freedom: float) -> float:
    """Compute the standard deviation of units within strata; over sqrt(units), a standard error.

    Args:
        values: from `deviations`, or differences of two models'.
        freedom: units less strata.
    """
    squares = float((values**2).sum(skipna=False))
    return float(np.sqrt(squares / freedom)) if freedom > 0 else np.nan
