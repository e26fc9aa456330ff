"""How many units (scenes, instances, occupations) a difference needs, before any model is called.

Of n units in some strata, whose values (or differences between two models, paired) have a standard
deviation s within strata, a two-sided test at 5 % shows a difference of (t_.975 + t_power) s /
sqrt(n) with that power; t has n - strata degrees of freedom (Cohen, Statistical Power Analysis for
the Behavioral Sciences, 1988, chapter 2; `detectable` of a comparison is the same for its own
data).
"""

from math import ceil, sqrt

import numpy as np
from scipy.special import stdtrit

from bench.metrics.bootstrap import LEVEL
from bench.metrics.significance import POWER


def detectable(sd: float, units: int, strata: int = 1, power: float = POWER) -> float:
    """Compute the difference that this many units show with this power; NaN with too few units."""
    freedom = units - strata
    return _steps(freedom, power) * sd / sqrt(units) if freedom >= 1 else np.nan


def units_needed(sd: float, difference: float, strata: int = 1, power: float = POWER) -> float:
    """Compute how many units show a difference with this power; NaN for unknown sd."""
    if np.isnan(sd):
        return np.nan
    units = max(strata + 1, ceil((_steps(np.inf, power) * sd / difference) ** 2))
    while detectable(sd, units, strata, power) > difference:
        units += 1
    return units


def _steps(freedom: float, power: float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2) + stdtrit(freedom, power))
