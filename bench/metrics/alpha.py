"""Krippendorff's alpha: agreement of raters where some ratings are missing.

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
from bench.metrics.agreement import COLUMNS, check_raters, require_columns
from bench.metrics.bootstrap import estimate, resample
from bench.metrics.table import ALL, Card

Measurement = Literal["nominal", "ordinal", "interval"]
MEASUREMENTS = get_args(Measurement)
# An interval needs the square of the number of ranks in sums, of each resample.
MOST_RANKS = 60
_ROUNDING = 1e-9
CARDS = (
    Card(
        "alpha",
        "How far raters agree beyond chance, where not all need have rated everything.",
        "1 - observed / expected squared difference of two ratings; within items, over all ratings",
        "Krippendorff, Content Analysis, 2019, chapter 12",
        "-1 to 1; 0 is chance",
        "1",
    ),
)
# Sums of each item, and alpha of resampled sums [draws, columns].
Sums = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


class Alpha(NamedTuple):
    """Agreement beyond chance: 1 is perfect, 0 is what chance gives.

    Attributes:
        alpha: NaN where it is undefined.
        ci_low, ci_high: its 95 % interval, by bootstrap over items; NaN where there is none.
        n: items with two ratings or more; others tell nothing of agreement.
        raters: people who rated them.
        ratings: number of ratings of these items.
        note: why a number is missing, or "".
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
            counts), or `interval`.

    Raises:
        BadInput: a missing column, an unknown measurement, a rating that should be a number and is
            not, an item rated twice by the same rater, fewer than two raters, or more than 60
            ranks.
    """
    if measurement not in MEASUREMENTS:
        raise BadInput(expected(measurement, MEASUREMENTS, "measurement of Krippendorff's alpha"))
    codes, values = _codes(ratings, measurement)
    raters = codes.shape[1]
    counts = np.stack([(codes == k).sum(1) for k in range(len(values))], axis=1).astype(float)
    counts = counts[counts.sum(1) >= 2]
    n, total = len(counts), int(counts.sum())
    if (counts.sum(0) > 0).sum() < 2:
        note = "all ratings are alike, so chance agrees as perfectly as the raters"
        note = note if n else "no item has two ratings"
        return Alpha(math.nan, math.nan, math.nan, n, raters, total, note)
    if measurement == "nominal":
        sums, statistic = _nominal(counts)
    elif measurement == "ordinal":
        sums, statistic = _ordinal(counts)
    else:
        sums, statistic = _interval(counts, values)
    names = [str(k) for k in range(sums.shape[1])]
    rows = pd.DataFrame(sums, columns=names).assign(stratum=ALL, item_id=range(n))
    totals = resample(rows, "stratum", "item_id", names)
    value, low, high = estimate(totals, lambda drawn: statistic(drawn[:, 0]))
    note = "too few items, or too few of another rating, for an interval" if low != low else ""
    return Alpha(value, low, high, n, raters, total, note)


def alphas(ratings: pd.DataFrame, measurement: Measurement) -> pd.DataFrame:
    """Compute `krippendorff_alpha` of each `category`, and of all items where there are several.

    Returns:
        `category`, `measurement`, and the fields of `Alpha`.
    """
    parts = [(str(name), part) for name, part in ratings.groupby("category", sort=False)]
    parts = [(ALL, ratings), *parts] if len(parts) > 1 else parts
    return pd.DataFrame(
        {"category": name, "measurement": measurement}
        | krippendorff_alpha(part, measurement)._asdict()
        for name, part in parts
    )


def _codes(ratings: pd.DataFrame, measurement: str) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings as codes [items, raters], -1 where one is missing, and the codes' values."""
    require_columns(ratings, COLUMNS, "ratings")
    ratings = ratings[ratings.rating.notna() & (ratings.rating != "")]
    check_raters(ratings)
    if measurement == "nominal":
        codes, labels = pd.factorize(ratings.rating)
        values = np.asarray(labels)
    else:
        numbers = pd.to_numeric(ratings.rating, errors="coerce").to_numpy(np.float64)
        wrong = ratings[~np.isfinite(numbers)]
        if len(wrong):
            row = wrong.iloc[0]
            raise BadInput(
                f"item {row.item_id}: the rating of {row.rater}, {row.rating!r}, is no number, "
                f"which {measurement} ratings are"
            )
        values, codes = np.unique(numbers, return_inverse=True)
    if measurement == "ordinal" and len(values) > MOST_RANKS:
        raise BadInput(
            f"{len(values)} different ratings are too many ranks; "
            f"at most {MOST_RANKS}, or take `interval`"
        )
    wide = ratings.assign(code=codes).pivot_table(
        index="item_id", columns="rater", values="code", aggfunc="first"
    )
    return wide.fillna(-1).to_numpy(np.int64), values


def _nominal(counts: np.ndarray) -> Sums:
    """Sum each category and the pairs that agree."""
    agreed = (counts * (counts - 1)).sum(1) / (counts.sum(1) - 1)

    def alpha(drawn: np.ndarray) -> np.ndarray:
        sizes, same = drawn[:, :-1], drawn[:, -1]
        n = sizes.sum(1)
        chance = (n**2 - (sizes**2).sum(1)) / (n - 1)
        return 1 - (n - same) / np.where(chance > _ROUNDING * n, chance, np.nan)

    return np.column_stack([counts, agreed]), alpha


def _interval(counts: np.ndarray, values: np.ndarray) -> Sums:
    """Sum ratings, their values and squares, and squared differences within the item."""
    # Far from zero, squares would swallow the differences.
    values = values - values.mean()
    n, total, squares = counts.sum(1), counts @ values, counts @ values**2
    within = 2 * (n * squares - total**2) / (n - 1)

    def alpha(drawn: np.ndarray) -> np.ndarray:
        n, total, squares, within = drawn.T
        chance = 2 * (n * squares - total**2) / (n - 1)
        return 1 - within / np.where(chance > _ROUNDING * np.abs(squares), chance, np.nan)

    return np.column_stack([n, total, squares, within]), alpha


def _ordinal(counts: np.ndarray) -> Sums:
    """Sum the pairs of each two ranks, for the distance of ranks is that of midranks in all."""
    k = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(k), range(k)] -= counts
    pairs /= (counts.sum(1) - 1)[:, None, None]

    def alpha(drawn: np.ndarray) -> np.ndarray:
        together = drawn.reshape(-1, k, k)
        sizes = together.sum(1)
        ranks = np.cumsum(sizes, axis=1) - sizes / 2
        n = sizes.sum(1)
        within = np.einsum("dij,dij->d", together, (ranks[:, :, None] - ranks[:, None, :]) ** 2)
        chance = 2 * (n * (sizes * ranks**2).sum(1) - (sizes * ranks).sum(1) ** 2) / (n - 1)
        return 1 - within / np.where(chance > _ROUNDING * n**3, chance, np.nan)

    return pairs.reshape(len(counts), k * k), alpha
