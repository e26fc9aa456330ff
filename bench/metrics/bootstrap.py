"""Intervals by bootstrap over clusters: resample the sampled units within strata.

A sampled unit, or cluster, is for example a scene with all its answers. Every score is a function
of sums over clusters, so a resample is a weighting of clusters, and we compute all resamples in one
matrix product (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 2.4 and
chapter 5).

- A score on a scale with two ends gets Wilson's interval (1927), for the number of answers that has
  the resamples' standard error. If all resamples are alike, for example because all units score 0,
  we take the exact interval of a share that is 0 in the sample (Clopper and Pearson, 1934): 24
  units that all score 0 give 0 to 0.14.
- Any other number gets percentiles, taken further out the fewer clusters there are (Hesterberg,
  What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, section 4.2:
  expanded percentile interval). Below five degrees of freedom, there are too few different
  resamples for percentiles, so the interval is Student's t with the resamples' standard error. If
  all resamples are alike, there is no interval.

Both use Student's t with clusters less strata degrees of freedom (Korn and Graubard, Analysis of
Health Surveys, 1999, section 5.2). tests/benchmarks/coverage.py simulates how often 95 %
intervals hold the true value.

If two crossed units were sampled, for example occupations and sentences, we add the variances over
both and subtract the variance over their pairs (Cameron, Gelbach and Miller, Robust Inference with
Multiway Clustering, Journal of Business & Economic Statistics 29, 2011; Owen, The Pigeonhole
Bootstrap, Annals of Applied Statistics 1, 2007, shows that resampling both at once counts the noise
of single answers three times).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

# The lowest and the highest value of a score.
Limits = Sequence[float]
# A function of sums [n, strata, columns] that returns n numbers, NaN if undefined.
Statistic = Callable[[np.ndarray], np.ndarray]
# By stratum and kind of resampled units, the weights of clusters: float64 [draws, clusters].
Weights = dict[tuple[str, str], np.ndarray]
DRAWS = 1000
LEVEL = 0.95
# With fewer degrees of freedom, percentiles of resamples make intervals too narrow.
FEW = 5
# The largest relative rounding error of a number.
NOISE = 1e-12


class Sample(NamedTuple):
    """The numbers of clusters and of strata that a score rests on.

    Attributes:
        effective: the effective sample size (Kish, 1965): the number of clusters of equal size
            that would give the same precision.
        widening: a factor on the standard error of the resamples, which is too small if clusters
            differ in size: a large cluster pulls the mean to itself.
    """

    units: int
    strata: int
    effective: float
    widening: float = 1.0

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the standard error."""
        freedom = self.units - self.strata
        return freedom if freedom < 1 else max(self.effective - self.strata, 1.0)


class Estimate(NamedTuple):
    """A value with its interval; NaN ends if there is none."""

    value: float
    low: float
    high: float


class Clusters(NamedTuple):
    """Sums of clusters: a row for each cluster and each part in which it has rows.

    Attributes:
        strata: names of the strata.
        parts: names of the parts.
        stratum: int [clusters], the number of each cluster's stratum, in rising order.
        cluster, part: int [rows], the numbers of both.
        sums: float64 [rows, columns].
    """

    strata: list[object]
    parts: list[object]
    stratum: np.ndarray
    cluster: np.ndarray
    part: np.ndarray
    sums: np.ndarray


class Totals(NamedTuple):
    """Sums by part of the data, as observed and as resampled.

    Attributes:
        strata: names of the parts, in the order of the axis: the strata, or parts of them.
        columns: names of the sums.
        observed: float64 [1, strata, columns].
        resamples: float64 [draws, strata, columns].
        clusters: the sums of each cluster.
        second, pairs: as `resamples`, for units that are crossed with the clusters, and for pairs
            of both.
    """

    strata: list[object]
    columns: list[str]
    observed: np.ndarray
    resamples: np.ndarray
    clusters: Clusters
    second: np.ndarray | None = None
    pairs: np.ndarray | None = None


def resample(
    rows: pd.DataFrame,
    stratum: str,
    cluster: str,
    columns: list[str],
    *,
    part: str = "",
    parts: Sequence[object] | None = None,
    crossed: tuple[str, str] | None = None,
    draws: int = DRAWS,
    weights: Weights | None = None,
) -> Totals:
    """Sum `columns` by `part`, as observed and in `draws` resamples of clusters within strata.

    The resamples of a stratum with a single cluster are NaN, because its spread is unknown.

    Args:
        part: a column that divides strata; we resample a cluster with its rows in all parts.
            Default: the stratum itself.
        parts: names of all parts; one without rows has sums of 0. Default: the parts of the rows.
        crossed: the columns of the stratum and the cluster of a second sampled unit, which is
            crossed with `cluster`.
        weights: the weights of the resamples of each stratum. Pass the same dictionary to calls
            with the same `draws`, and they are drawn once; this function replaces the weights of a
            stratum that has another number of clusters.
    """
    part = part or stratum
    weights = {} if weights is None else weights
    names = list(parts or sorted(rows[part].unique()))
    values = rows[columns].to_numpy(np.float64)
    clusters = _add_up(rows, [stratum, cluster], part, names, values)
    observed = np.zeros((1, len(names), len(columns)))
    np.add.at(observed[0], clusters.part, clusters.sums)
    resampled = _resample(clusters, draws, "", weights)
    totals = Totals(names, columns, observed, resampled, clusters)
    if not crossed:
        return totals
    second = _add_up(rows, list(crossed), part, names, values)
    pairs = _add_up(rows, [stratum, cluster, crossed[1]], part, names, values)
    return totals._replace(
        second=_resample(second, draws, "second", weights),
        pairs=_resample(pairs, draws, "pairs", weights),
    )


def _add_up(
    rows: pd.DataFrame, units: list[str], part: str, parts: list[object], values: np.ndarray
) -> Clusters:
    """Add up values [rows, columns] by stratum (the first column of units), cluster and part."""
    keys = [rows[name] for name in (*units, part)]
    sums = pd.DataFrame(values, rows.index).groupby(keys, observed=True).sum()
    cells: Any = sums.index
    *codes, part_codes = map(np.asarray, cells.codes)
    # The rows are sorted: a cluster begins where its stratum or unit differs from the one before.
    begins = np.append([True], (np.diff(codes) != 0).any(0))[: len(sums)]
    strata, *_, names = cells.levels
    return Clusters(
        list(strata),
        parts,
        codes[0][begins],
        np.cumsum(begins) - 1,
        pd.Index(parts).get_indexer(names)[part_codes],
        sums.to_numpy(),
    )


def _resample(clusters: Clusters, draws: int, kind: str, shared: Weights) -> np.ndarray:
    """Resample the clusters of each stratum: [draws, parts, columns]."""
    resamples = np.zeros((draws, len(clusters.parts), clusters.sums.shape[1]))
    for k, name in enumerate(clusters.strata):
        first, last = np.searchsorted(clusters.stratum, [k, k + 1])
        n = int(last - first)
        key = (str(name), kind)
        weights = shared.get(key)
        if weights is None or weights.shape[1] != n:
            weights = np.full((draws, n), np.nan)
            if n > 1:
                # With a generator per stratum, an interval does not depend on the other categories.
                rng = np.random.default_rng([0, *str(name).encode(), *kind.encode()])
                # We draw n - 1 of n clusters: n would make intervals too narrow by
                # sqrt((n - 1) / n) (Rao and Wu, 1988).
                counts = rng.multinomial(n - 1, np.full(n, 1 / n), size=draws)
                weights = counts * (n / (n - 1))
            shared[key] = weights
        rows = slice(*np.searchsorted(clusters.cluster, [first, last]))
        parts, part_of_row = np.unique(clusters.part[rows], return_inverse=True)
        sums = np.zeros((n, len(parts), clusters.sums.shape[1]))
        sums[clusters.cluster[rows] - first, part_of_row] = clusters.sums[rows]
        # Most columns belong to other parts and are 0 in this stratum.
        part, column = np.nonzero(sums.any(0) | (n == 1))
        resamples[:, parts[part], column] += weights @ sums[:, part, column]
    return resamples


def estimate_of_items(
    sums: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    clusters: Sequence[object] | None = None,
) -> Estimate:
    """Compute a statistic of the sums over items, with an interval over clusters of items.

    Args:
        sums: float64 [items, columns].
        statistic: a function of sums [n, columns] that returns n numbers.
        clusters: the cluster of each item; default: the item itself.
    """
    columns = [str(k) for k in range(sums.shape[1])]
    rows = pd.DataFrame(sums, columns=columns).assign(stratum="all", cluster=range(len(sums)))
    if clusters is not None:
        rows["cluster"] = np.array(clusters, dtype=object)
    totals = resample(rows, "stratum", "cluster", columns)
    (rests_on,) = count_clusters(totals)
    return interval(replicate(totals, lambda values: statistic(values[:, 0])), rests_on)


def replicate(totals: Totals, statistic: Statistic) -> np.ndarray:
    """Compute `statistic` of the observed sums, then of each resample: float64 [1 + draws].

    Resamples of the same clusters have the same draws, so we can subtract two models' one by one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, resamples = statistic(totals.observed), statistic(totals.resamples)
        if totals.second is None or totals.pairs is None:
            return np.concatenate([observed, resamples])
        first, second, pairs = (
            statistic(resampled) - observed
            for resampled in (totals.resamples, totals.second, totals.pairs)
        )
        both = first + second
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # if no resample is defined
            variances = np.nanvar([first, second, pairs, both], axis=1)
        of_first, of_second, of_pairs, of_both = variances
        # At least the larger of the two variances, even if the variance of pairs exceeds the other.
        variance = np.maximum(of_first + of_second - of_pairs, np.maximum(of_first, of_second))
        combined = observed + both * np.sqrt(variance / of_both)
    has_spread = of_both > (NOISE * observed) ** 2
    return np.concatenate([observed, np.where(has_spread, combined, resamples)])


def count_clusters(
    totals: Totals, parts: np.ndarray | None = None, *sizes: str, alike: bool = False
) -> list[Sample]:
    """Count the clusters of some parts of the data, for each of m scores.

    Args:
        parts: bool [m, parts], the parts that each score rests on. Default: one score, on all.
        sizes: columns whose sum is the weight of a cluster, such as its number of answers. A
            cluster of weight 0 does not count. Default: all clusters have the same weight.
        alike: whether all clusters with a weight above 0 count as equal. In each stratum, we then
            count the clusters of its largest part.
    """
    clusters = totals.clusters
    if parts is None:
        parts = np.full((1, len(totals.strata)), True)
    columns = [totals.columns.index(size) for size in sizes if size]
    sums = clusters.sums[:, columns].sum(1) if columns else np.ones(len(clusters.sums))
    if not alike:
        return [
            _sample(clusters, sums, uses_part[clusters.part], by_size=bool(columns))
            for uses_part in parts
        ]
    has_size = sums > 0
    counts = np.zeros((len(totals.strata), len(clusters.strata)))
    places = clusters.part[has_size], clusters.stratum[clusters.cluster[has_size]]
    np.add.at(counts, places, 1)
    samples = []
    for uses_part in parts:
        units = counts[uses_part].max(0, initial=0.0)
        units = units[units > 0]
        n = len(units)
        samples.append(Sample(int(units.sum()), n, n**2 / float((1 / units).sum()) if n else 0.0))
    return samples


def _sample(clusters: Clusters, sums: np.ndarray, rows: np.ndarray, *, by_size: bool) -> Sample:
    """Count the clusters of some rows, each with the weight of its sums."""
    weights = np.bincount(clusters.cluster[rows], sums[rows], len(clusters.stratum))
    if not by_size:
        weights = np.sign(weights)
    has_weight = weights > 0
    strata = clusters.stratum[has_weight]
    weights = weights[has_weight]
    shares = weights / np.bincount(strata, weights)[strata]
    units = np.bincount(strata)
    squares = np.bincount(strata, shares**2)
    cubes = np.bincount(strata, shares**3)
    is_single = units == 1
    is_several = units > 1
    n = int((units > 0).sum())
    if not n:
        return Sample(0, 0, 0)
    # The part of the variance that resamples show, if all clusters' means have the same variance.
    variances = (squares - 2 * cubes + squares**2)[is_several]
    seen_variance = float((variances * units[is_several] / (units[is_several] - 1)).sum())
    widening = 1.0
    if seen_variance > 0:
        widening = math.sqrt((squares.sum() - is_single.sum()) / seen_variance)
    return Sample(int(units.sum()), n, n**2 / float(squares.sum()), widening)


def interval(values: np.ndarray, rests_on: Sample, limits: Limits | None = None) -> Estimate:
    """Compute the interval of a value from its resamples; it always holds the value.

    Args:
        values: the value, then its resamples: [1 + draws].
        limits: the ends of its scale, if it has two.
    """
    value = float(values[0])
    resamples = values[1:][~np.isnan(values[1:])]
    low = high = math.nan
    # If most resamples leave the value undefined, they make no interval.
    has_spread = len(resamples) > 0 and len(resamples) >= (len(values) - 1) / 2
    if has_spread and rests_on.freedom >= 1 and not math.isnan(value):
        if limits and limits[0] <= value <= limits[1]:
            low, high = _on_scale(value, resamples, rests_on, limits)
        else:
            t = float(stdtrit(rests_on.freedom, (1 + LEVEL) / 2))
            if rests_on.freedom < FEW:
                arm = t * float(np.std(resamples)) * rests_on.widening
                low, high = value - arm, value + arm
            else:
                tail = 100 * float(ndtr(-t))
                low, high = map(float, np.percentile(resamples, [tail, 100 - tail]))
            if high - low <= NOISE * max(abs(low), abs(high)):
                low = high = math.nan
    # A zero has no sign.
    return Estimate(value + 0.0, min(low, value) + 0.0, max(high, value) + 0.0)


def unseen_share(n: float) -> float:
    """Return the upper limit of a share that is 0 among `n` units (Clopper-Pearson)."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / n))


def _on_scale(
    value: float, resamples: np.ndarray, rests_on: Sample, limits: Limits
) -> tuple[float, float]:
    """Compute the interval of a value on a scale with two ends."""
    length = limits[1] - limits[0]
    share = (value - limits[0]) / length
    error = float(np.std(resamples)) * rests_on.widening / length
    if error < NOISE or not 0 < share < 1:
        unseen = unseen_share(rests_on.effective)
        low, high = share - unseen * share, share + unseen * (1 - share)
    else:  # Wilson's, with the number of answers that has this standard error
        t = float(stdtrit(rests_on.freedom, (1 + LEVEL) / 2))
        fraction = (t * error) ** 2 / (share * (1 - share))  # t squared over the number of answers
        centre = (share + fraction / 2) / (1 + fraction)
        arm = math.sqrt(fraction * share * (1 - share) + fraction**2 / 4) / (1 + fraction)
        low, high = centre - arm, centre + arm
    return limits[0] + length * low, limits[0] + length * high
