"""Intervals by bootstrap over clusters: what was sampled (instance, template, occupation) is drawn again, within strata.

Every score here is a function of sums over clusters, so a resample is a weighting of clusters and costs one matrix
product (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 2.4 and chapter 5: percentiles).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

# A score's observed value and its resamples, by category, task and metric: float64 [1 + DRAWS] each.
Replicates = dict[tuple[str, str, str], np.ndarray]
DRAWS = 1000
LEVEL = 0.95


class Totals(NamedTuple):
    """Sums by stratum, as observed and as resampled.

    Attributes:
        strata: names of the strata, in the order of the axis.
        observed: float64 [1, strata, columns].
        drawn: float64 [draws, strata, columns].
    """

    strata: list[object]
    columns: list[str]
    observed: np.ndarray
    drawn: np.ndarray


class Estimate(NamedTuple):
    """A value with its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def resample(
    rows: pd.DataFrame, stratum: str, cluster: str, columns: list[str], *, draws: int = DRAWS, seed: int = 0
) -> Totals:
    """Sums of `columns` by `stratum`, observed and in `draws` resamples of the clusters of each stratum.

    A stratum of a single cluster tells nothing of its spread; its resamples are NaN.
    """
    sums = rows.groupby([stratum, cluster], sort=True, observed=True)[columns].sum()
    strata = list(dict.fromkeys(sums.index.get_level_values(0)))
    observed = np.empty((1, len(strata), len(columns)))
    drawn = np.empty((draws, len(strata), len(columns)))
    for k, name in enumerate(strata):
        values = sums.loc[name].to_numpy(dtype=np.float64)
        observed[0, k] = values.sum(0)
        n = len(values)
        # n - 1 of n clusters: drawing n would make intervals too narrow by sqrt((n - 1) / n) (Rao and Wu, 1988).
        # A generator a stratum, so that a category's interval does not depend on which others were asked.
        dice = np.random.default_rng([seed, *str(name).encode()])
        weights = (
            dice.multinomial(n - 1, np.full(n, 1 / n), size=draws) * (n / (n - 1))
            if n > 1
            else np.full((draws, n), np.nan)
        )
        drawn[:, k] = weights @ values
    return Totals(strata, columns, observed, drawn)


def estimate(totals: Totals, statistic: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    """`statistic` of the observed sums, with the percentile interval of the resampled ones.

    Args:
        statistic: [n, strata, columns] -> [n]; NaN where it is undefined.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return interval(float(statistic(totals.observed)[0]), statistic(totals.drawn))


def whole(totals: Totals, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`statistic` of the observed sums, and of each resample behind it: float64 [1 + draws].

    Resamples of the same clusters draw the same ones, so that two models' can be subtracted one by one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.concatenate([statistic(totals.observed), statistic(totals.drawn)])


def interval(value: float, drawn: np.ndarray) -> Estimate:
    """A value with the percentile interval of its resamples."""
    values = drawn[~np.isnan(drawn)]
    # Where most resamples leave it undefined, the rest are no fair picture of its spread.
    if np.isnan(value) or len(values) == 0 or len(values) < len(drawn) / 2:
        return Estimate(value, np.nan, np.nan)
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(low), float(high))
