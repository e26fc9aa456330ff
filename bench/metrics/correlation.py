"""How closely a measure follows what was put in: Pearson's, Spearman's and Kendall's coefficients, with n and p."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench.core.errors import BadInput
from bench.metrics.bootstrap import interval
from bench.metrics.table import Card

PEARSON = "pearson"
# The function of `scipy.stats` for each. p of Pearson's and Spearman's is by the t distribution with
# n - 2 degrees of freedom, of Kendall's tau-b exact where there are few points and no ties.
COEFFICIENTS = {PEARSON: "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}
# With two points every coefficient is 1 or -1.
LEAST = 3
# Scores that differ by less are the same number computed in two ways.
NOISE = 1e-9
CARDS = (
    Card(
        "pearson",
        "how nearly the scores lie on a straight line over the rates",
        "cov(x, y) / (s_x s_y)",
        "Pearson, 1895; the paper's choice",
        "-1 to 1",
        "1",
    ),
    Card(
        "spearman",
        "Pearson's coefficient of the ranks: whether a higher rate has a higher score",
        "pearson(rank x, rank y)",
        "Spearman, 1904; the README's choice, after Kaneko et al., EACL 2023",
        "-1 to 1",
        "1",
    ),
    Card(
        "kendall",
        "pairs of models in the right order less those in the wrong one, ties counted (tau-b)",
        "(C - D) / sqrt((C + D + T_x) (C + D + T_y))",
        "Kendall, 1945",
        "-1 to 1",
        "1",
    ),
)


class Correlation(NamedTuple):
    """A coefficient with its two-sided p for no correlation and the number of points; NaN with a `reason` if undefined.

    `ci_low` and `ci_high` are the 95 % interval over resamples (see `resampled`); without them Pearson's
    by Fisher's z (Fisher, 1921), from four points on, and NaN for the others.
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
    """All coefficients of `x` and `y`, which are called by `names` in reasons. Points where either is NaN are left out.

    Raises:
        BadInput: `x` and `y` are not two sequences of as many numbers.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise BadInput(
            f"correlation: shapes {first.shape} and {second.shape}; expected as many x as y"
        )
    known = np.isfinite(first) & np.isfinite(second)
    first, second = first[known], second[known]
    reason = _undefined(first, second, names)
    if reason:
        return [
            Correlation(name, np.nan, np.nan, np.nan, np.nan, len(first), reason)
            for name in COEFFICIENTS
        ]
    # Rounded, so that ties are ties: two ways to compute the same score differ in the last digit.
    rounded = np.round(first, 9), np.round(second, 9)
    found = []
    for name, function in COEFFICIENTS.items():
        done = getattr(scipy.stats, function)(*(rounded if name != PEARSON else (first, second)))
        low, high = np.nan, np.nan
        if name == PEARSON and len(first) > LEAST:
            low, high = done.confidence_interval()
        found.append(
            Correlation(
                name,
                float(done.statistic),
                float(low),
                float(high),
                float(done.pvalue),
                len(first),
                "",
            )
        )
    return found


def by_group(
    rows: pd.DataFrame,
    groups: Sequence[str],
    x: str = "rate",
    y: str = "score",
    names: tuple[str, str] = ("the rate", "the score"),
) -> pd.DataFrame:
    """A row a group and coefficient: the columns of `groups`, and those of `Correlation`."""
    found = [
        dict(zip(groups, keys, strict=True)) | one._asdict()
        for keys, some in rows.groupby(list(groups), sort=False)
        for one in correlations(some[x].to_numpy(), some[y].to_numpy(), names)
    ]
    return pd.DataFrame(found, columns=[*groups, *Correlation._fields])


def with_interval(found: Correlation, x: np.ndarray, y: np.ndarray, freedom: float) -> Correlation:
    """Give a coefficient the interval of its resamples: for other items, and the same points.

    Resampled scores hold the chance of items twice, which pulls coefficients to 0; so the interval
    reaches further down than up, and it always holds the coefficient.

    Args:
        x, y: scores of each point, float64 [points, 1 + draws], the observed ones first.
        freedom: degrees of freedom of the scores' spread.
    """
    if found.value != found.value:
        return found
    known = np.isfinite(x[:, 0]) & np.isfinite(y[:, 0])
    first, second = x[known, 1:], y[known, 1:]
    drawn = np.array(
        [_value(found.coefficient, *both) for both in zip(first.T, second.T, strict=True)]
    )
    around = interval(found.value, drawn, freedom)
    return found._replace(ci_low=around.low, ci_high=around.high)


def reliability(values: np.ndarray) -> float:
    """Compute the share of the variance between points that is not chance of items.

    1 - mean squared standard error / variance (Spearman, 1904). Scores correlate by no more than the
    geometric mean of both reliabilities, except by chance. NaN of fewer than `LEAST` points.

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
    """Compute a coefficient of numbers; NaN where one side does not vary."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < LEAST or np.ptp(x) < NOISE or np.ptp(y) < NOISE:
        return float("nan")
    if coefficient == PEARSON:
        return float(np.corrcoef(x, y)[0, 1])
    x, y = np.round(x, 9), np.round(y, 9)
    if coefficient == "spearman":
        return float(np.corrcoef(scipy.stats.rankdata(x), scipy.stats.rankdata(y))[0, 1])
    return float(scipy.stats.kendalltau(x, y).statistic)


def _undefined(x: np.ndarray, y: np.ndarray, names: tuple[str, str]) -> str:
    if len(x) < LEAST:
        return f"{len(x)} point{'' if len(x) == 1 else 's'}; {LEAST} are needed at least"
    for values, what in ((y, names[1]), (x, names[0])):
        if np.ptp(values) < NOISE:
            return f"{what} is {values[0]:.3g} at every point, so nothing can go with it"
    return ""
