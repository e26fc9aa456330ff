"""Are two models different: paired differences, with an interval and a p value by bootstrap.

We resample units, for example occupations, with all their answers, in both models at once. The
standard deviation of the resampled differences is the standard error of the difference. With this
error goes Student's t with units less strata degrees of freedom (Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapters 6 and 12; degrees of freedom: Korn and Graubard,
Analysis of Health Surveys, 1999, section 5.2; paired and clustered, for language models: Miller,
Adding Error Bars to Evals, 2024). The interval and p are one test, so they cannot disagree.

A permutation of units between the models would ask whether the models are alike in everything, and
is wrong about scores if they are not (Chung and Romano, Exact and asymptotically robust permutation
tests, Annals of Statistics 41, 2013). For example, two models follow the stereotype equally often
when they name a person, but name one in 90 % and in 20 % of their answers. A permutation test at
5 % calls 0.2 to 11 % of such models different, this test 3 to 7 %, from 12 units on. If one of the
models decides in a few units only, this test errs in 10 % with 12 units and 7 % with 60, because so
few answers carry the score.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from bench.metrics.bootstrap import LEVEL, Sample

# How often a difference that is called detectable would be found.
POWER = 0.8
# Two ways to compute the same difference differ by less.
_NOISE = 1e-12
# Distances from a line, and slopes, that are smaller are rounding errors.
LINE_NOISE = 1e-9


class Comparison(NamedTuple):
    """A difference, the first less the second, or a slope; NaN is undefined, see `note`.

    Attributes:
        p: for no difference, two-sided.
        detectable: the difference that such data would show in four of five samples.
        units: the number of resampled units.
    """

    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    detectable: float = math.nan
    units: int = 0
    note: str = ""


def compare_resamples(values: np.ndarray, rests_on: Sample, length: float = math.nan) -> Comparison:
    """Test a difference by its observed value and resamples, [1 + draws].

    p is never below the p of a sign test in which all units agree: five units that all show a
    difference of 1, with no spread at all, could be chance in one of sixteen cases. If no unit
    differs from the others, we take the interval of a share of differing units of which none was
    seen (Clopper and Pearson, 1934).

    Args:
        length: of the scale of the scores; if NaN, there is no interval without a spread.
    """
    units, freedom, value = rests_on.units, rests_on.freedom, float(values[0]) + 0.0
    if np.isnan(value):
        return Comparison(units=units, note="undefined for one of the two, or for both")
    resamples = values[1:][~np.isnan(values[1:])]
    if freedom < 1 or len(resamples) < len(values) / 2:
        return Comparison(value, units=units, note="no interval: too few units in a stratum")
    error = float(np.std(resamples)) * rests_on.widening
    arm, detectable = _reach(error, freedom)
    if error > _NOISE:
        p = 2 * float(stdtr(freedom, -abs(value) / error))
    else:  # no resample differs: nothing speaks for chance, or everything does
        p = float(abs(value) < _NOISE)
        arm = length * (1 - ((1 - LEVEL) / 2) ** (1 / units))
    p = max(p, 2.0 ** (1 - units))
    return Comparison(value, value - arm, value + arm, p, detectable, units)


def slope_test(x: Sequence[float] | np.ndarray, values: np.ndarray) -> Comparison:
    """Test a slope by how far the points lie from the line, with points - 2 degrees of freedom.

    Args:
        x: at least two different numbers, for example logarithms of sizes.
        values: float64 [points], one per model.
    """
    from_mean, n = np.asarray(x) - np.mean(x), len(values)
    slope = float(from_mean @ values / (from_mean @ from_mean)) + 0.0
    if n < 3:
        return Comparison(slope, units=n, note="two sizes make no trend")
    residuals, freedom = values - values.mean() - slope * from_mean, n - 2
    error = float(np.sqrt((residuals**2).sum() / freedom / (from_mean @ from_mean)))
    if error < LINE_NOISE and abs(slope) < LINE_NOISE:
        return Comparison(slope, p=1.0, units=n)
    p = 2 * float(stdtr(freedom, -abs(slope) / max(error, LINE_NOISE)))
    arm, detectable = _reach(error, freedom)
    return Comparison(slope, slope - arm, slope + arm, p, detectable, n)


def _reach(error: float, freedom: float) -> tuple[float, float]:
    """Return half the width of an interval, and the detectable difference."""
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    return arm, arm + float(stdtrit(freedom, POWER)) * error


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust p values so that all comparisons together err in at most 5 % (Holm, 1979).

    NaN stays NaN, and does not count.

    Examples:
        >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.06, 0.06]
    """
    adjusted = np.array(p, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(adjusted))
    # statsmodels' multipletests collects garbage at each call: a fifth of a second, hundreds of
    # times a notebook.
    order = defined[np.argsort(adjusted[defined], kind="stable")]
    steps = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
