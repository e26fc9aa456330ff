"""How closely a measure follows what was put in: Pearson's, Spearman's, Kendall's coefficients."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from bench.metrics.bootstrap import interval

PEARSON = "pearson"
# The function of `scipy.stats` for each. p of Pearson's and Spearman's is by the t distribution
# with n - 2 degrees of freedom, of Kendall's tau-b exact where there are few points and no ties.
COEFFICIENTS = {PEARSON: "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}
# With two points every coefficient is 1 or -1.
LEAST = 3
# Scores that differ by less are the same number computed in two ways.
NOISE = 1e-9


class Correlation(NamedTuple):
    """A coefficient of n points, with its two-sided p; NaN with a `reason` if undefined.

    Attributes:
        ci_low, ci_high: Pearson's 95 % interval by Fisher's z (Fisher, 1921), from four points on;
            that over resamples after `with_interval`; else NaN.
    """

    coefficient: str
    value: float
    ci_low: float
    ci_high: float
    p: float
    n: int
    reason: str


def correlations(
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    names: tuple[str, str] = ("the rate", "the score"),
) -> list[Correlation]:
    """Compute all coefficients of `x` and `y`, which are called by `names` in reasons.

    Points where either is NaN are left out.
    """
    points = np.array([x, y], dtype=np.float64)
    x, y = points[:, np.isfinite(points).all(axis=0)]
    n, reason = len(x), ""
    if n < LEAST:
        reason = f"{n} point{'' if n == 1 else 's'}; {LEAST} are needed at least"
    elif not (_varies(x) and _varies(y)):
        name, value = (names[0], x[0]) if _varies(y) else (names[1], y[0])
        reason = f"{name} is {value:.3g} at every point, so nothing can go with it"
    results = []
    for name, function in COEFFICIENTS.items():
        value = low = high = p = np.nan
        if not reason:
            # Rounded, so that ties are ties: two ways to compute a score differ in the last digit.
            pair = (x, y) if name == PEARSON else (np.round(x, 9), np.round(y, 9))
            result = getattr(scipy.stats, function)(*pair)
            value, p = float(result.statistic), float(result.pvalue)
            if name == PEARSON and n > LEAST:
                low, high = map(float, result.confidence_interval())
        results.append(Correlation(name, value, low, high, p, n, reason))
    return results


def by_group(
    rows: pd.DataFrame,
    groups: Sequence[str],
    x: str = "rate",
    y: str = "score",
    names: tuple[str, str] = ("the rate", "the score"),
) -> pd.DataFrame:
    """Compute `correlations` of columns `x` and `y` in each group of rows.

    Returns:
        One row per group and coefficient: the columns of `groups`, and those of `Correlation`.
    """
    table = [
        (*keys, *result)
        for keys, part in rows.groupby(list(groups), sort=False)
        for result in correlations(part[x].to_numpy(), part[y].to_numpy(), names)
    ]
    return pd.DataFrame(table, columns=[*groups, *Correlation._fields])


def with_interval(result: Correlation, x: np.ndarray, y: np.ndarray, freedom: float) -> Correlation:
    """Give a coefficient the interval of its resamples: for other items, and the same points.

    Resampled scores hold the chance of items twice, which pulls coefficients to 0; so the interval
    reaches further down than up, and it always holds the coefficient.

    Args:
        x, y: scores of each point, float64 [points, 1 + draws], the observed ones first.
        freedom: degrees of freedom of the scores' spread.
    """
    if np.isnan(result.value):
        return result
    known = np.isfinite(x[:, 0]) & np.isfinite(y[:, 0])
    pairs = zip(x[known, 1:].T, y[known, 1:].T, strict=True)
    drawn = np.array([_value(result.coefficient, *pair) for pair in pairs])
    _, low, high = interval(result.value, drawn, freedom)
    return result._replace(ci_low=low, ci_high=high)


def reliability(values: np.ndarray) -> float:
    """Compute the share of the variance between points that is not chance of items.

    1 - mean squared standard error / variance (Spearman, 1904). Scores correlate by no more than
    the geometric mean of both reliabilities, except by chance. NaN of fewer than `LEAST` points.

    Args:
        values: scores of each point, float64 [points, 1 + draws], the observed ones first.
    """
    known = values[np.isfinite(values[:, 0])]
    if len(known) < LEAST or known.shape[1] == 1:
        return float("nan")
    between = float(np.var(known[:, 0], ddof=1))
    if between < NOISE:
        return float("nan")
    return max(0.0, 1 - float(np.mean(np.nanvar(known[:, 1:], axis=1))) / between)


def _value(coefficient: str, x: np.ndarray, y: np.ndarray) -> float:
    """Compute a coefficient without its p, a thousand times a second; NaN where it is undefined."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < LEAST or not (_varies(x) and _varies(y)):
        return float("nan")
    if coefficient == "kendall":
        return float(scipy.stats.kendalltau(np.round(x, 9), np.round(y, 9)).statistic)
    if coefficient == "spearman":
        x, y = (scipy.stats.rankdata(np.round(values, 9)) for values in (x, y))
    return float(np.corrcoef(x, y)[0, 1])


def _varies(values: npt.ArrayLike) -> bool:
    return bool(np.ptp(np.asarray(values)) >= NOISE)
