"""Lines of least squares: how a score changes with the size of a model, and how sure that is."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr, stdtrit

from bench.metrics.bootstrap import LEVEL
from bench.metrics.significance import POWER, Comparison

# Distances from a line, and differences of scores, that are smaller are of computing.
NOISE = 1e-9


def slopes(x: Sequence[float] | np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute the slope over `x` of each column of `values` [points, n]."""
    from_mean = np.asarray(x) - np.mean(x)
    per_step: np.ndarray = from_mean @ values / (from_mean @ from_mean)
    return per_step


def slope_test(x: Sequence[float] | np.ndarray, values: np.ndarray) -> Comparison:
    """Test a slope by how far the points lie from the line, with points - 2 degrees of freedom.

    Args:
        x: at least two different numbers, such as logarithms of sizes.
        values: float64 [points], one per model.
    """
    from_mean, n = np.asarray(x) - np.mean(x), len(values)
    slope = float(slopes(x, values[:, None])[0]) + 0.0
    if n < 3:
        return Comparison(slope, np.nan, np.nan, np.nan, n, np.nan, "two sizes make no trend")
    residuals, freedom = values - values.mean() - slope * from_mean, n - 2
    error = float(np.sqrt((residuals**2).sum() / freedom / (from_mean @ from_mean)))
    if error < NOISE and abs(slope) < NOISE:
        return Comparison(slope, np.nan, np.nan, 1.0, n, np.nan, "")
    p = 2 * float(stdtr(freedom, -abs(slope) / max(error, NOISE)))
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    detectable = arm + float(stdtrit(freedom, POWER)) * error
    return Comparison(slope, slope - arm, slope + arm, p, n, detectable, "", error, freedom)
