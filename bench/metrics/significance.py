"""Are two models different: paired differences, with an interval and a p value by bootstrap.

We resample units, for example occupations, with all their answers, in both models at once. The
standard deviation of the resampled differences is the standard error of the difference. With this
error goes Student's t with units less strata degrees of freedom (Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapters 6 and 12; degrees of freedom: Korn and Graubard,
Analysis of Health Surveys, 1999, section 5.2; paired and clustered, for language models: Miller,
Adding Error Bars to Evals, 2024). The interval, p and the detectable difference all come from this
error, so that an interval holds 0 if and only if p is 0.05 or more.

If the k units that differ all differ alike, or if resamples do not differ at all, the spread of the
resamples is too small. For example, five units that all show a difference of 1 have no spread, and
could be chance in one of sixteen cases. Then the error is at least that of a sign test on the k
units, without ties (Dixon and Mood, The Statistical Sign Test, JASA 41, 1946; McNemar's exact test
if a unit is a question): the share of units that differ in the other direction, none of which was
seen, goes up to 1 - 0.025^(1/k) (Clopper and Pearson, 1934), and p is at least 2^(1-k). If no unit
differs, we take the same interval of the share of units that differ.

tests/benchmarks/no_effect.py counts how often the test finds a difference where there is none. At
3 to 14 units and a level of 5 %, these are 0 to 5.5 % for shares, 5 % for normal numbers and 3 to
5 % for skewed ones. Without the rule for units that differ alike, it is up to 5.9 % for shares, at
seven units with two answers each.

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

from bench.metrics.bootstrap import LEVEL, NOISE, Sample, unseen_share

# The power at which a difference is called detectable.
POWER = 0.8


class Comparison(NamedTuple):
    """A difference, the first less the second, or a slope; NaN is undefined, see `note`.

    Attributes:
        p: for no difference, two-sided.
        detectable: the difference that such data would show in four of five samples.
        clusters: the number of resampled units.
    """

    estimate: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    detectable: float = math.nan
    clusters: int = 0
    note: str = ""


def compare_resamples(
    values: np.ndarray, rests_on: Sample, by_unit: np.ndarray, length: float = math.inf
) -> Comparison:
    """Test a difference by its observed value and resamples, [1 + draws].

    Args:
        by_unit: the difference in each unit, without rounding errors (see `tied`).
        length: the length of the scale of the scores, which no difference can exceed.
    """
    units = rests_on.units
    freedom = rests_on.freedom
    value = float(values[0]) + 0.0
    if np.isnan(value):
        return Comparison(clusters=units, note="undefined for one of the two, or for both")
    resamples = values[1:][~np.isnan(values[1:])]
    if freedom < 1 or len(resamples) < len(values) / 2:
        return Comparison(value, clusters=units, note="no interval: too few units in a stratum")
    differing = by_unit[by_unit != 0]
    k = len(differing)
    note = ""
    least_p = 0.0
    t = float(stdtrit(freedom, (1 + LEVEL) / 2))
    error = float(np.std(resamples)) * rests_on.widening
    if not k:
        if math.isinf(length):
            note = "no interval: no unit differs, and the scale has no ends; give limits="
            return Comparison(0.0, p=1.0, clusters=units, note=note)
        value = 0.0
        error = length * unseen_share(units) / t
    elif error <= NOISE * np.abs(differing).max() or np.ptp(differing) == 0:
        largest = float(np.abs(differing).max())
        least_p = 2.0 ** (1 - k)
        size = abs(value) if error > NOISE * largest else largest
        opposite = 2 * size * unseen_share(k)
        error = max(error, opposite / t, largest * unseen_share(units) / t)
        if least_p >= 1 - LEVEL:
            units_differ = "1 unit differs" if k == 1 else f"{k} units differ, all alike"
            note = f"{units_differ}: too few to show a difference"
    return _of_error(value, error, freedom, length, units, note, least_p)


def compare_groups(
    values: Sequence[np.ndarray], samples: Sequence[Sample], length: float = math.inf
) -> Comparison:
    """Test the difference of two groups of units, by Welch's approximate degrees of freedom.

    The variance of the difference is the sum of both groups' variances, less twice the covariance
    of their resamples if units have rows in both groups (Welch, The generalization of Student's
    problem, Biometrika 34, 1947). The resamples of a group have no spread if its units are all
    alike; its error is then the width that unseen units allow, as in the interval of `bench.share`.

    Args:
        values: the observed value of each group, then its resamples: [1 + draws].
        samples: the sample of units behind each value.
        length: the length of the scale of the scores, which no difference can exceed.
    """
    first, second = values
    value = float(first[0] - second[0]) + 0.0
    units = sum(sample.units for sample in samples)
    if np.isnan(value):
        return Comparison(clusters=units, note="undefined for one of the two, or for both")
    both = np.stack([first[1:], second[1:]])
    both = both[:, ~np.isnan(both).any(0)]
    if min(sample.freedom for sample in samples) < 1 or both.shape[1] < (len(first) - 1) / 2:
        return Comparison(value, clusters=units, note="no interval: too few units in a stratum")
    variances = []
    weighted = []
    for sample, resamples in zip(samples, both, strict=True):
        error = float(np.std(resamples)) * sample.widening
        if error <= NOISE * max(abs(first[0]), abs(second[0]), NOISE):
            if math.isinf(length):
                note = "no interval: all units are alike, and the scale has no ends; give limits="
                return Comparison(value, clusters=units, note=note)
            t = float(stdtrit(sample.freedom, (1 + LEVEL) / 2))
            error = length * unseen_share(sample.effective) / t
        variances.append(error**2)
        weighted.append(error**4 / sample.freedom)
    freedom = sum(variances) ** 2 / sum(weighted)
    error = math.sqrt(max(sum(variances) - 2 * float(np.cov(both)[0, 1]), NOISE**2))
    return _of_error(value, error, freedom, length, units)


def _of_error(
    value: float,
    error: float,
    freedom: float,
    length: float,
    units: int,
    note: str = "",
    least_p: float = 0.0,
) -> Comparison:
    """Give a difference its interval, p and detectable difference, all by its standard error."""
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    detectable = arm + float(stdtrit(freedom, POWER)) * error
    if detectable > length:
        detectable = math.nan
        note = note or f"{units} units are too few: not even the largest difference is detectable"
    p = max(2 * float(stdtr(freedom, -abs(value) / error)), least_p)
    low, high = max(value - arm, -length), min(value + arm, length)
    return Comparison(value, low, high, p, detectable, units, note)


def slope_test(x: Sequence[float] | np.ndarray, values: np.ndarray) -> Comparison:
    """Test a slope by the residuals of the line, with n - 2 degrees of freedom.

    Args:
        x: at least two different numbers, for example logarithms of sizes.
        values: float64 [points], one per model.
    """
    n = len(values)
    from_mean = np.asarray(x) - np.mean(x)
    spread = float(np.sqrt(from_mean @ from_mean))
    slope = float(from_mean @ values / spread**2) + 0.0
    if n < 3:
        return Comparison(slope, clusters=n, note="two sizes make no trend")
    residuals = values - values.mean() - slope * from_mean
    freedom = n - 2
    # Residuals of an exact line are rounding errors of the values.
    rounding = NOISE * float(np.abs(values).max()) / spread
    error = max(float(np.sqrt((residuals**2).sum() / freedom)) / spread, rounding)
    if error == rounding and abs(slope) <= rounding:
        note = "no interval: all scores are the same"
        return Comparison(0.0, p=1.0, clusters=n, note=note)
    return _of_error(slope, error, freedom, math.inf, n)


def tied(values: np.ndarray, size: float) -> np.ndarray:
    """Make numbers, or their amounts, equal if only rounding errors differ, as 0.1 + 0.2 and 0.3.

    Args:
        size: the largest of the numbers that the values were computed from.

    Examples:
        >>> tied(np.array([0.1 + 0.2, -0.3, 0.8 - 0.7 - 0.1]), size=0.8).tolist()
        [0.3, -0.3, 0.0]
    """
    amounts = np.where(np.abs(values) <= NOISE * size, 0.0, np.abs(values))
    distinct = np.unique(amounts)
    group = np.cumsum(np.diff(distinct, prepend=distinct[:1]) > NOISE * size)
    lowest = distinct[np.searchsorted(group, group)]
    return np.sign(values) * lowest[np.searchsorted(distinct, amounts)]


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust p values so that the chance of any error among them is at most 5 % (Holm, 1979).

    NaN stays NaN, and does not count.

    Examples:
        >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.06, 0.06]
    """
    adjusted = np.array(p, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(adjusted))
    # We do not call statsmodels' multipletests: it collects garbage each time, which takes a fifth
    # of a second, and notebooks make hundreds of calls.
    order = defined[np.argsort(adjusted[defined], kind="stable")]
    steps = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
