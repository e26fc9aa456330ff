"""A quantity that is 0 where there is no effect, such as a slope: how sure it is, by the resamples of what it is made of.

effect(slopes(billions, values))          # observed first, resamples behind it (see `bench.metrics.bootstrap.whole`)
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from bench.metrics.bootstrap import interval
from bench.metrics.significance import DETECTABLE

UNSURE = "no interval: too few units in a stratum"
EXACT = "the same in every resample"
# Two ways to compute the same number differ by less.
_NOISE = 1e-12


class Effect(NamedTuple):
    """A quantity with its 95 % interval and the p value of its being 0; NaN where there is none, and `note` says why.

    Attributes:
        p: of z, the value over its standard error by bootstrap, on two sides (Davison and Hinkley, Bootstrap Methods and their
            Application, 1997, section 4.4). Counting resamples could give none below one in a thousand, which is too coarse to
            be adjusted for many comparisons.
        detectable: the size that such data would show in four of five samples.
    """

    value: float
    ci_low: float
    ci_high: float
    p: float
    detectable: float
    note: str


def effect(values: np.ndarray, why: str = "") -> Effect:
    """The effect of which `values` holds the observed size and, behind it, those of resamples.

    Args:
        values: float64 [1 + draws].
        why: the reason, where the observed size is NaN.
    """
    value, drawn = float(values[0]), values[1:]
    if np.isnan(value):
        return Effect(np.nan, np.nan, np.nan, np.nan, np.nan, why or "undefined")
    found = interval(value, drawn)
    if np.isnan(found.low):
        return Effect(value, np.nan, np.nan, np.nan, np.nan, UNSURE)
    drawn = drawn[~np.isnan(drawn)]
    error = float(np.std(drawn))
    if error < _NOISE:
        p = 1.0 if abs(value) < _NOISE else np.nan
        return Effect(value, found.low, found.high, p, np.nan, EXACT)
    p = float(2 * stats.norm.sf(abs(value) / error))
    return Effect(value, found.low, found.high, p, DETECTABLE * error, "")
