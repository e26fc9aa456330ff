"""Intervals by bootstrap over clusters: draw again what was sampled, within strata.

What was sampled is an instance, a scene or an occupation. Every score here is a function of sums
over clusters, so a resample is a weighting of clusters and costs one matrix product (Davison and
Hinkley, Bootstrap Methods and their Application, 1997, section 2.4 and chapter 5).

Two kinds of interval are made of the resamples:

- of a score on a scale with two ends, Wilson's (1927) with as many answers as have the resamples'
  standard error. Where resamples are all alike, such as at the ends of the scale, it is that of a
  share of units that differ, of which none was seen (Clopper and Pearson, 1934): 24 units that all
  score 0 give 0 to 0.14.
- of any other number, percentiles, taken further out the fewer clusters there are (Hesterberg, What
  Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, section 4.2:
  expanded percentile interval). Resamples that are all alike make no interval.

Both go by Student's t with clusters less strata degrees of freedom (Korn and Graubard, Analysis of
Health Surveys, 1999, section 5.2). How often 95 % intervals hold the true value is simulated by
tests/benchmarks/coverage_study.py.

Where two things were sampled and crossed, such as occupations and sentences, the variance is that
over the first, plus that over the second, less that over their pairs (Cameron, Gelbach and Miller,
Robust Inference with Multiway Clustering, Journal of Business & Economic Statistics 29, 2011; Owen,
The Pigeonhole Bootstrap, Annals of Applied Statistics 1, 2007, shows that resampling both at once
counts the noise of single answers three times).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

# Category, task and metric.
Place = tuple[str, str, str]
# The lowest and the highest value of a score.
Limits = tuple[float, float]
DRAWS = 1000
LEVEL = 0.95
# Resamples that differ by less are alike.
NOISE = 1e-12


class Sample(NamedTuple):
    """What a score rests on: how many clusters, in how many strata.

    Attributes:
        effective: how many clusters of equal size would tell as much (Kish, 1965); as many as
            `units` where NaN.
        widening: how many times as large a standard error is as that of resamples, which is too
            small where clusters differ in size: a large one pulls the mean to itself.
    """

    units: int
    strata: int
    effective: float = math.nan
    widening: float = 1.0

    @property
    def equal_units(self) -> float:
        """Clusters of equal size that would tell as much."""
        return self.units if math.isnan(self.effective) else self.effective

    @property
    def freedom(self) -> float:
        """Degrees of freedom of its spread."""
        freedom = self.units - self.strata
        if math.isnan(self.effective) or freedom < 1:
            return freedom
        return max(self.effective - self.strata, 1.0)


class Estimate(NamedTuple):
    """A value with its interval; NaN where there is none."""

    value: float
    low: float
    high: float


class Replicates(dict[Place, np.ndarray]):
    """A score's observed value and its resamples, by category, task and metric: float64 [1 + DRAWS] each.

    Attributes:
        samples: what each rests on.
        limits: the ends of its scale.
        left_out: after `leave_one_out`, the stratum and cluster that each resample lacks.
    """

    def __init__(self, left_out: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.samples: dict[Place, Sample] = {}
        self.limits: dict[Place, Limits] = {}
        self.left_out = list(left_out)

    def add(
        self, place: Place, values: np.ndarray, sample: Sample, limits: Limits = (0, 1)
    ) -> None:
        """Keep a score's values, what they rest on, and its scale: that of a share if not given."""
        self[place], self.samples[place], self.limits[place] = values, sample, limits

    def estimate(self, place: Place) -> Estimate:
        """A score with its interval, as in the score table."""
        values = self[place]
        return scale_interval(float(values[0]), values[1:], self.samples[place], self.limits[place])


class Totals(NamedTuple):
    """Sums by part of the data, as observed and as resampled.

    Attributes:
        strata: names of the parts, in the order of the axis: the strata, or parts of them.
        columns: names of the sums.
        observed: float64 [1, strata, columns].
        drawn: float64 [draws, strata, columns].
        clusters: of each part, its clusters (stratum and name) with their sums, float64 [columns].
        second: the same as `drawn`, for what is crossed with the clusters.
        pairs: the same, for pairs of a cluster and what is crossed with it.
        left_out: after `leave_one_out`, the stratum and cluster that each draw lacks.
    """

    strata: list[object]
    columns: list[str]
    observed: np.ndarray
    drawn: np.ndarray
    clusters: list[Mapping[tuple[object, object], np.ndarray]]
    second: np.ndarray | None = None
    pairs: np.ndarray | None = None
    left_out: Sequence[tuple[str, str]] = ()

    @property
    def units(self) -> list[int]:
        """How many clusters each part has."""
        return [len(some) for some in self.clusters]


# How sums are drawn again: `resample`, or `leave_one_out`.
Draw = Callable[..., Totals]


def resample(
    rows: pd.DataFrame,
    stratum: str,
    cluster: str,
    columns: list[str],
    *,
    part: str = "",
    crossed: tuple[str, str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Totals:
    """Sum `columns` by `part`, as observed and in `draws` resamples of the clusters of each stratum.

    A stratum of a single cluster tells nothing of its spread; its resamples are NaN.

    Args:
        part: a column that divides strata; a cluster is drawn with its rows in all parts. The
            stratum itself if empty.
        crossed: columns of the stratum and the cluster of what else was sampled, across `cluster`.
    """
    part = part or stratum
    sums = rows.groupby([stratum, cluster, part], sort=True, observed=True)[columns].sum()
    keys = list(zip(*(sums.index.get_level_values(k) for k in range(3)), strict=True))
    names = list(dict.fromkeys(name for _, name in sorted((key[0], key[2]) for key in keys)))
    values = sums.to_numpy(dtype=np.float64)
    clusters: list[dict[tuple[object, object], np.ndarray]] = [{} for _ in names]
    position = {name: k for k, name in enumerate(names)}
    for key, row in zip(keys, values, strict=True):
        clusters[position[key[2]]][key[:2]] = row
    observed = np.array([[sum(some.values()) for some in clusters]])
    totals = Totals(
        names, columns, observed, _drawn(keys, values, names, draws, seed, ""), list(clusters)
    )
    if not crossed:
        return totals
    more = []
    for kind, within, unit in (
        ("second", crossed[0], [crossed[1]]),
        ("pairs", stratum, [cluster, crossed[1]]),
    ):
        numbered = rows.assign(unit=rows.groupby(unit, sort=True, observed=True).ngroup())
        found = numbered.groupby([within, "unit", part], sort=True, observed=True)[columns].sum()
        keys = list(zip(*(found.index.get_level_values(k) for k in range(3)), strict=True))
        more.append(_drawn(keys, found.to_numpy(dtype=np.float64), names, draws, seed, kind))
    return totals._replace(second=more[0], pairs=more[1])


def _drawn(
    keys: list[tuple[object, object, object]],
    values: np.ndarray,
    parts: list[object],
    draws: int,
    seed: int,
    kind: str,
) -> np.ndarray:
    """Resampled sums [draws, parts, columns] of rows with a stratum, a cluster and a part."""
    drawn = np.zeros((draws, len(parts), values.shape[1]))
    position = {name: k for k, name in enumerate(parts)}
    within: dict[object, list[int]] = {}
    for line, key in enumerate(keys):
        within.setdefault(key[0], []).append(line)
    for name, lines in within.items():
        order = {unit: k for k, unit in enumerate(dict.fromkeys(keys[line][1] for line in lines))}
        n = len(order)
        # n - 1 of n clusters: drawing n would make intervals too narrow by sqrt((n - 1) / n) (Rao and Wu, 1988).
        # A generator a stratum, so that a category's interval does not depend on which others were asked.
        dice = np.random.default_rng([seed, *str(name).encode(), *kind.encode()])
        weights = (
            dice.multinomial(n - 1, np.full(n, 1 / n), size=draws) * (n / (n - 1))
            if n > 1
            else np.full((draws, n), np.nan)
        )
        by_part: dict[object, list[int]] = {}
        for line in lines:
            by_part.setdefault(keys[line][2], []).append(line)
        for part, some in by_part.items():
            columns = [order[keys[line][1]] for line in some]
            drawn[:, position[part]] += weights[:, columns] @ values[some]
    return drawn


def leave_one_out(
    rows: pd.DataFrame,
    stratum: str,
    cluster: str,
    columns: list[str],
    *,
    part: str = "",
    crossed: tuple[str, str] | None = None,
) -> Totals:
    """Sum `columns` by `part`, as observed and with each cluster left out in turn: the jackknife.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11.

    Args:
        part: as in `resample`.
        crossed: what is crossed with clusters stays.
    """
    totals = resample(rows, stratum, cluster, columns, part=part, draws=0)
    keys = sorted({key for some in totals.clusters for key in some})
    drawn = np.repeat(totals.observed, len(keys), axis=0)
    for line, key in enumerate(keys):
        for k, some in enumerate(totals.clusters):
            if key in some:
                drawn[line, k] -= some[key]
    return totals._replace(drawn=drawn, left_out=[(str(part), str(name)) for part, name in keys])


def estimate(
    totals: Totals,
    statistic: Callable[[np.ndarray], np.ndarray],
    limits: Limits | None = None,
    size: str = "",
) -> Estimate:
    """Compute `statistic` of the observed sums, with the interval of the resampled ones.

    Args:
        statistic: [n, strata, columns] -> [n]; NaN where it is undefined.
        limits: the ends of its scale, where it has two.
        size: see `sample`.
    """
    values = replicate(totals, statistic)
    value, drawn, rests_on = float(values[0]), values[1:], sample(totals, statistic, size)
    if limits:
        return scale_interval(value, drawn, rests_on, limits)
    return interval(value, drawn, rests_on.freedom)


def replicate(totals: Totals, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute `statistic` of the observed sums, and of each resample behind it: float64 [1 + draws].

    Resamples of the same clusters draw the same ones, so that two models' can be subtracted one by one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, drawn = statistic(totals.observed), statistic(totals.drawn)
        if totals.second is None or totals.pairs is None:
            return np.concatenate([observed, drawn])
        first, second, pairs = (
            values - observed
            for values in (drawn, statistic(totals.second), statistic(totals.pairs))
        )
    both = first + second
    spread = [_variance(values) for values in (first, second, pairs, both)]
    if not spread[3] > NOISE**2:
        return np.concatenate([observed, drawn])
    # No less than what one of the two alone says.
    wanted = max(spread[0] + spread[1] - spread[2], spread[0], spread[1])
    return np.concatenate([observed, observed + both * math.sqrt(wanted / spread[3])])


def _variance(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.var(known)) if len(known) else math.nan


def sample(totals: Totals, statistic: Callable[[np.ndarray], np.ndarray], size: str = "") -> Sample:
    """Count what `statistic` rests on: the clusters of the parts without whose sums it has no value.

    Args:
        size: the column that says how much a cluster weighs, such as answers; one without any is
            none. All weigh alike if empty.
    """
    n = len(totals.strata)
    without = np.repeat(totals.observed, n, axis=0)
    without[np.arange(n), np.arange(n)] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.isnan(statistic(without))
    column = totals.columns.index(size) if size else -1
    weights: dict[object, dict[tuple[object, object], float]] = {}
    for k in np.flatnonzero(lost):
        for key, sums in totals.clusters[k].items():
            within = weights.setdefault(key[0], {})
            within[key] = within.get(key, 0.0) + (float(sums[column]) if size else 1.0)
    each = [np.array([m for m in some.values() if m > 0]) for some in weights.values()]
    each = [some for some in each if len(some)]
    if not each:
        return Sample(0, 0)
    shares = [some / some.sum() for some in each]
    squares = sum(float((w**2).sum()) for w in shares)
    # What resamples show of a variance that is the same for each cluster's mean.
    seen = sum(
        float((w**2).sum() - 2 * (w**3).sum() + (w**2).sum() ** 2) * len(w) / (len(w) - 1)
        for w in shares
        if len(w) > 1
    )
    alone = sum(1.0 for w in shares if len(w) == 1)
    widening = math.sqrt((squares - alone) / seen) if seen > 0 else 1.0
    return Sample(sum(map(len, each)), len(each), len(each) ** 2 / squares, widening)


def pooled(samples: Sequence[Sample]) -> Sample:
    """Count what the mean of scores rests on that were sampled apart from each other."""
    effective = [one.equal_units for one in samples]
    return Sample(
        sum(one.units for one in samples),
        sum(one.strata for one in samples),
        len(samples) ** 2 / sum(1 / many for many in effective) if all(effective) else math.nan,
        math.sqrt(sum(one.widening**2 for one in samples) / len(samples)),
    )


def interval(value: float, drawn: np.ndarray, freedom: float) -> Estimate:
    """Give a value the interval of its resamples' percentiles; it holds the value."""
    values = drawn[~np.isnan(drawn)]
    if not _defined(value, drawn, freedom):
        return Estimate(value + 0.0, math.nan, math.nan)
    tail = 100 * float(ndtr(-stdtrit(freedom, (1 + LEVEL) / 2)))
    low, high = map(float, np.percentile(values, [tail, 100 - tail]))
    if high - low < NOISE:
        return Estimate(value + 0.0, math.nan, math.nan)
    # A zero has no sign.
    return Estimate(value + 0.0, min(low, value) + 0.0, max(high, value) + 0.0)


def scale_interval(value: float, drawn: np.ndarray, rests_on: Sample, limits: Limits) -> Estimate:
    """Give a value on a scale with two ends the interval of its resamples; it holds the value."""
    if not limits[0] <= value <= limits[1]:
        return interval(value, drawn, rests_on.freedom)
    if not _defined(value, drawn, rests_on.freedom):
        return Estimate(value + 0.0, math.nan, math.nan)
    error = float(np.std(drawn[~np.isnan(drawn)])) * rests_on.widening
    t = float(stdtrit(rests_on.freedom, (1 + LEVEL) / 2))
    low, high = _on_scale(value, error, rests_on, limits, t)
    return Estimate(value + 0.0, min(low, value) + 0.0, max(high, value) + 0.0)


def _defined(value: float, drawn: np.ndarray, freedom: float) -> bool:
    """Tell whether resamples make an interval: not where most of them leave the value undefined."""
    known = int((~np.isnan(drawn)).sum())
    return not math.isnan(value) and known > 0 and known >= len(drawn) / 2 and freedom >= 1


def _on_scale(
    value: float, error: float, rests_on: Sample, limits: Limits, t: float
) -> tuple[float, float]:
    """Compute Wilson's interval of a value on a scale, or that of units that are all alike."""
    length = limits[1] - limits[0]
    u, error = (value - limits[0]) / length, error / length
    if error < NOISE or not 0 < u < 1:
        unseen = 1 - ((1 - LEVEL) / 2) ** (1 / rests_on.equal_units)
        low, high = u - unseen * u, u + unseen * (1 - u)
    else:
        low, high = _wilson(u, error, t)
    return limits[0] + length * low, limits[0] + length * high


def _wilson(share: float, error: float, t: float) -> tuple[float, float]:
    """Compute Wilson's interval of a share with the number of answers that has this standard error."""
    fraction = (t * error) ** 2 / (share * (1 - share))  # t squared over the number of answers
    centre = (share + fraction / 2) / (1 + fraction)
    arm = math.sqrt(fraction * share * (1 - share) + fraction**2 / 4) / (1 + fraction)
    return centre - arm, centre + arm
