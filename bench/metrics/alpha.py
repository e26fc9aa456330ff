"""Krippendorff's alpha: agreement of raters if some ratings are missing.

alpha = 1 - (observed disagreement) / (expected disagreement), each the mean squared difference of
pairs of ratings: of pairs within items, and of all pairs. The difference is 0 or 1 (nominal), of
midranks (ordinal), or of numbers (interval). After Krippendorff, Content Analysis, 4th edition,
2019, chapter 12.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.agreement import check_raters
from bench.metrics.bootstrap import estimate_of_items

Measurement = Literal["nominal", "ordinal", "interval"]
MEASUREMENTS = get_args(Measurement)
# An interval needs the square of the number of ranks in sums, of each resample.
MOST_RANKS = 60
_ROUNDING = 1e-9


class Alpha(NamedTuple):
    """Agreement beyond chance: 1 is perfect, 0 is chance; NaN is undefined, see `note`.

    Attributes:
        ci_low, ci_high: 95 % interval, by bootstrap over items.
        n: items with two ratings or more, because a single rating has nothing to agree with.
        ratings: number of ratings of these items.
    """

    alpha: float
    ci_low: float
    ci_high: float
    n: int
    raters: int
    ratings: int
    note: str


def krippendorff_alpha(ratings: pd.DataFrame, measurement: Measurement) -> Alpha:
    """Compute Krippendorff's alpha of ratings of items, with a bootstrap interval over items.

    Args:
        ratings: rows with item_id, rater and rating; a missing rating is an empty cell or no row.
        measurement: `nominal` (ratings are categories), `ordinal` (numbers of which only the order
            counts, at most 60), or `interval`.

    Raises:
        BadInput: an unknown measurement, too few raters, an item rated twice by one, a rating that
            is no number, or too many ranks.
    """
    if measurement not in MEASUREMENTS:
        raise BadInput(expected(measurement, MEASUREMENTS, "measurement of Krippendorff's alpha"))
    ratings = ratings[ratings.rating.notna() & (ratings.rating != "")]
    check_raters(ratings)
    rating = ratings.rating
    if measurement != "nominal":
        rating = pd.to_numeric(rating, errors="coerce").astype(float)
        wrong = ratings[~np.isfinite(rating)]
        if len(wrong):
            row = wrong.iloc[0]
            raise BadInput(
                f"item {row.item_id}: the rating of {row.rater}, {row.rating!r}, is no number, "
                f"which {measurement} ratings are"
            )
    codes, values = pd.factorize(rating, sort=measurement != "nominal")
    if measurement == "ordinal" and len(values) > MOST_RANKS:
        raise BadInput(
            f"{len(values)} different ratings are too many ranks; "
            f"at most {MOST_RANKS}, or take `interval`"
        )
    # How often each value (column) was given to each item (row).
    counts = np.zeros((ratings.item_id.nunique(), len(values)))
    np.add.at(counts, (pd.factorize(ratings.item_id, sort=True)[0], codes), 1)
    counts = counts[counts.sum(1) >= 2]
    n, raters, total = len(counts), ratings.rater.nunique(), int(counts.sum())
    if (counts.sum(0) > 0).sum() < 2:
        note = "all ratings are alike, so chance agrees as perfectly as the raters"
        note = note if n else "no item has two ratings"
        return Alpha(math.nan, math.nan, math.nan, n, raters, total, note)
    if measurement == "nominal":
        sums, statistic = _nominal(counts)
    elif measurement == "ordinal":
        sums, statistic = _ordinal(counts)
    else:
        sums, statistic = _interval(counts, np.asarray(values))
    value, low, high = estimate_of_items(sums, statistic)
    note = "too few items, or too few of another rating, for an interval" if low != low else ""
    return Alpha(value, low, high, n, raters, total, note)


# Sums of each item, and alpha of resampled sums [draws, columns].
Sums = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


def _nominal(counts: np.ndarray) -> Sums:
    """Sum each category and the pairs that agree."""
    agreed = (counts * (counts - 1)).sum(1) / (counts.sum(1) - 1)

    def alpha(sums: np.ndarray) -> np.ndarray:
        sizes, same = sums[:, :-1], sums[:, -1]
        n = sizes.sum(1)
        return _alpha(n - same, (n**2 - (sizes**2).sum(1)) / (n - 1), n)

    return np.column_stack([counts, agreed]), alpha


def _interval(counts: np.ndarray, values: np.ndarray) -> Sums:
    """Sum ratings, their values and squares, and squared differences within the item."""
    # Far from zero, squares would swallow the differences.
    values = values - values.mean()
    n, total, squares = counts.sum(1), counts @ values, counts @ values**2
    within = 2 * (n * squares - total**2) / (n - 1)

    def alpha(sums: np.ndarray) -> np.ndarray:
        n, total, squares, within = sums.T
        return _alpha(within, 2 * (n * squares - total**2) / (n - 1), np.abs(squares))

    return np.column_stack([n, total, squares, within]), alpha


def _ordinal(counts: np.ndarray) -> Sums:
    """Sum the pairs of each two ranks: their distance depends on the midranks in all items."""
    k = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(k), range(k)] -= counts
    pairs /= (counts.sum(1) - 1)[:, None, None]

    def alpha(sums: np.ndarray) -> np.ndarray:
        together = sums.reshape(-1, k, k)
        sizes = together.sum(1)
        ranks = np.cumsum(sizes, axis=1) - sizes / 2
        n = sizes.sum(1)
        within = np.einsum("dij,dij->d", together, (ranks[:, :, None] - ranks[:, None, :]) ** 2)
        chance = 2 * (n * (sizes * ranks**2).sum(1) - (sizes * ranks).sum(1) ** 2) / (n - 1)
        return _alpha(within, chance, n**3)

    return pairs.reshape(len(counts), k * k), alpha


def _alpha(observed: np.ndarray, chance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Compute alpha; NaN if chance gives no difference, apart from rounding."""
    return 1 - observed / np.where(chance > _ROUNDING * scale, chance, np.nan)
