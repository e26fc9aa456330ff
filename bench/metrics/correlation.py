"""How closely a measure follows what was put in: Pearson's, Spearman's, Kendall's coefficients."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

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
            else NaN.
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


def _varies(values: npt.ArrayLike) -> bool:
    return bool(np.ptp(np.asarray(values)) >= NOISE)
