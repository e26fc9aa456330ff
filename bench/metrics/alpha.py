"""Krippendorff's alpha: agreement of raters where some ratings are missing, of categories, ranks or numbers.

alpha = 1 - (observed disagreement) / (expected disagreement), each the mean squared difference of pairs of ratings: of pairs
within items, and of all pairs. The difference is 0 or 1 (nominal), of midranks (ordinal), or of numbers (interval). After
Krippendorff, Content Analysis, 4th edition, 2019, chapter 12.
"""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import estimate, resample
from bench.metrics.table import ALL, Card

Measurement = Literal["nominal", "ordinal", "interval"]
MEASUREMENTS = get_args(Measurement)
# Different ranks: an interval needs their square in sums, of each resample.
MOST_RANKS = 60
_SAME = 1e-9
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


class Alpha(NamedTuple):
    """Agreement beyond chance, 1 where it is perfect and 0 where it is what chance gives.

    Attributes:
        alpha: NaN where it is undefined.
        ci_low, ci_high: its 95 % interval, by bootstrap over items; NaN where there is none.
        n: items with two ratings or more; others tell nothing of agreement.
        raters: how many people rated them.
        ratings: of these items.
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
    """Krippendorff's alpha of ratings of items, with a bootstrap interval over items.

    Args:
        ratings: rows with item_id, rater and rating; a rating that is missing is an empty cell, or has no row.
        measurement: `nominal` (ratings are categories), `ordinal` (numbers of which only the order counts), or `interval`.

    Raises:
        BadInput: a column is missing, an unknown measurement, a rating that is no number where numbers are needed, someone
            has rated an item twice, there are no two raters, or more than 60 different ranks.
    """
    if measurement not in MEASUREMENTS:
        raise BadInput(expected(measurement, MEASUREMENTS, "measurement of Krippendorff's alpha"))
    codes, values = _table(ratings, measurement)
    raters = codes.shape[1]
    counts = np.stack([(codes == k).sum(1) for k in range(len(values))], axis=1).astype(float)
    counts = counts[counts.sum(1) >= 2]
    n, given = len(counts), int(counts.sum())
    if (counts.sum(0) > 0).sum() < 2:
        note = (
            "all ratings are alike, so chance agrees as perfectly as the raters"
            if n
            else "no item has two ratings"
        )
        return Alpha(math.nan, math.nan, math.nan, n, raters, given, note)
    numbers = values if measurement != "nominal" else np.arange(len(values), dtype=float)
    sums = {"nominal": _nominal, "ordinal": _ordinal, "interval": _interval}[measurement]
    columns, statistic = sums(counts, numbers)
    names = [str(k) for k in range(columns.shape[1])]
    frame = pd.DataFrame(columns, columns=names).assign(stratum=ALL, item_id=range(n))
    found = estimate(
        resample(frame, "stratum", "item_id", names), lambda drawn: statistic(drawn[:, 0])
    )
    note = (
        "too few items, or too few of another rating, for an interval"
        if math.isnan(found.low)
        else ""
    )
    return Alpha(found.value, found.low, found.high, n, raters, given, note)


def alphas(ratings: pd.DataFrame, measurement: Measurement) -> pd.DataFrame:
    """`krippendorff_alpha` of each category, and of all items where there are several.

    Args:
        ratings: with a column `category` beside those of `krippendorff_alpha`.

    Returns:
        `category`, `measurement`, and the fields of `Alpha`.
    """
    parts = [(str(name), some) for name, some in ratings.groupby("category", sort=False)]
    parts = [(ALL, ratings), *parts] if len(parts) > 1 else parts
    return pd.DataFrame(
        [
            {
                "category": name,
                "measurement": measurement,
                **krippendorff_alpha(some, measurement)._asdict(),
            }
            for name, some in parts
        ]
    )


def _table(ratings: pd.DataFrame, measurement: str) -> tuple[np.ndarray, np.ndarray]:
    """Ratings as codes, a row an item and a column a rater, -1 where there is none; and what the codes stand for."""
    for name in ("item_id", "rater", "rating"):
        if name not in ratings:
            raise BadInput(f"ratings: column `{name}` is missing; needed: item_id, rater, rating")
    there = ratings[ratings.rating.notna() & (ratings.rating != "")]
    twice = there[there.duplicated(["item_id", "rater"])]
    if len(twice):
        raise BadInput(
            f"item {twice.item_id.iloc[0]}: {twice.rater.iloc[0]} has rated it more than once"
        )
    if there.rater.nunique() < 2:
        raise BadInput(f"agreement needs at least two raters; found {there.rater.nunique()}")
    if measurement == "nominal":
        codes, labels = pd.factorize(there.rating)
        values = np.asarray(labels)
    else:
        numbers = pd.to_numeric(there.rating, errors="coerce").to_numpy(np.float64)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            one = there[wrong].iloc[0]
            raise BadInput(
                f"item {one.item_id}: the rating of {one.rater}, {one.rating!r}, is no number, which {measurement} ratings are"
            )
        values, codes = np.unique(numbers, return_inverse=True)
    if measurement == "ordinal" and len(values) > MOST_RANKS:
        raise BadInput(
            f"{len(values)} different ratings are too many ranks; at most {MOST_RANKS}, or take `interval`"
        )
    wide = there.assign(code=codes).pivot_table(
        index="item_id", columns="rater", values="code", aggfunc="first"
    )
    return wide.fillna(-1).to_numpy(np.int64), values


def _nominal(counts: np.ndarray, _: np.ndarray):  # type: ignore[no-untyped-def]
    """Sums an item, and alpha of them: of each category, and of pairs that agree."""
    agreed = (counts * (counts - 1)).sum(1) / (counts.sum(1) - 1)

    def alpha(drawn: np.ndarray) -> np.ndarray:
        of, same = drawn[:, :-1], drawn[:, -1]
        n = of.sum(1)
        by_chance = (n**2 - (of**2).sum(1)) / (n - 1)
        return 1 - (n - same) / np.where(by_chance > _SAME * n, by_chance, np.nan)

    return np.column_stack([counts, agreed]), alpha


def _interval(counts: np.ndarray, values: np.ndarray):  # type: ignore[no-untyped-def]
    """Sums an item, and alpha of them: ratings, their sum, their squares, squared differences within the item."""
    # Far from nought, squares would swallow the differences.
    values = values - values.mean()
    n, total, squares = counts.sum(1), counts @ values, counts @ values**2
    within = 2 * (n * squares - total**2) / (n - 1)

    def alpha(drawn: np.ndarray) -> np.ndarray:
        n, total, squares, within = drawn.T
        by_chance = 2 * (n * squares - total**2) / (n - 1)
        return 1 - within / np.where(by_chance > _SAME * np.abs(squares), by_chance, np.nan)

    return np.column_stack([n, total, squares, within]), alpha


def _ordinal(counts: np.ndarray, _: np.ndarray):  # type: ignore[no-untyped-def]
    """Sums an item, and alpha of them: pairs of each two ranks, for the distance of ranks is that of midranks in all."""
    k = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(k), range(k)] -= counts
    pairs /= (counts.sum(1) - 1)[:, None, None]

    def alpha(drawn: np.ndarray) -> np.ndarray:
        together = drawn.reshape(-1, k, k)
        of = together.sum(1)
        ranks = np.cumsum(of, axis=1) - of / 2
        n = of.sum(1)
        within = np.einsum("dij,dij->d", together, (ranks[:, :, None] - ranks[:, None, :]) ** 2)
        by_chance = 2 * (n * (of * ranks**2).sum(1) - (of * ranks).sum(1) ** 2) / (n - 1)
        return 1 - within / np.where(by_chance > _SAME * n**3, by_chance, np.nan)

    return pairs.reshape(len(counts), k * k), alpha
