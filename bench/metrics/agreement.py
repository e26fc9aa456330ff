"""Agreement of raters beyond chance.

Krippendorff's alpha is 1 - (observed disagreement) / (expected disagreement), each the mean squared
difference of pairs of ratings: of pairs within items, and of all pairs. The difference is 0 or 1
(nominal), of midranks (ordinal), or of numbers (interval). After Krippendorff, Content Analysis,
4th edition, 2019, chapter 12.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import estimate_of_items
from bench.metrics.statistics import INTERVAL
from bench.metrics.table import join_notes
from bench.metrics.user_tables import Frame, Table, as_list, as_numbers, is_empty

# Lower bounds of McBE's five levels of severity, [0, 1), [1, 3), [3, 5), [5, 8) and [8, 10]
# (its prompt of bias scoring).
LEVELS = (0, 1, 3, 5, 8)
HIGHEST = 10
# The fewest clusters for an interval of kappa. With fewer, Student's t asks for percentiles beyond
# the resamples.
MIN_CLUSTERS = 5
# The most ranks for alpha: each resample has as many sums as the square of this number.
MOST_RANKS = 60
# Values that differ by less are equal up to rounding.
_ROUNDING = 1e-9
# Sums of each item, and a function that computes a coefficient of resampled sums [draws, columns].
Sums = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]
# The columns of a coefficient, without those that are undefined.
Coefficient = dict[str, Any]


def agreement(
    ratings: Frame, by: str | Sequence[str] | None = None, measurement: str = "nominal"
) -> pd.DataFrame:
    """Compute how far raters agree beyond chance: Krippendorff's alpha, and kappa.

    Kappa is Cohen's for two raters and Fleiss' for more. It needs a rating of every item by every
    rater. It treats ratings as categories, so `interval` ratings have no kappa. Alpha uses the
    items with at least two ratings.

    Args:
        ratings: a row per rating: `item_id`, `rater` and `rating`; an empty rating is missing. With
            a column `cluster`, kappa's interval resamples clusters of items, for example questions
            about one text; the usual formula takes items as independent and is then too narrow.
        by: the columns that name a group, for example `category`. Default: one group.
        measurement: of alpha: `nominal`, `ordinal` or `interval`.

    Returns:
        The columns of `by`, `coefficient`, `estimate`, `ci_low`, `ci_high`, `n` (items), `raters`
        and `note`.

    Raises:
        BadInput: a column that is not there, fewer than two raters in all groups together, an item
            that a rater has rated twice, an item of several clusters, an unknown measurement, more
            than 60 ranks, or a rating that is no number if the measurement needs numbers.

    Examples:
        >>> import pandas as pd
        >>> ratings = pd.DataFrame({
        ...     "item_id": [1, 2, 3, 4, 5, 6] * 2,
        ...     "rater": ["Ann"] * 6 + ["Bo"] * 6,
        ...     "rating": ["yes", "yes", "no", "no", "yes", "no"]
        ...     + ["yes", "no", "no", "no", "yes", "no"],
        ... })
        >>> agreement(ratings)[["coefficient", "estimate", "n", "raters"]].round(2)
                   coefficient  estimate  n  raters
        0  Krippendorff, nominal      0.69  6       2
        1                  Cohen      0.67  6       2
    """
    if measurement not in SUMS:
        raise BadInput(expected(measurement, SUMS, "measurement of Krippendorff's alpha"))
    table = Table(ratings, "ratings")
    groups = as_list(by)
    table.check_filled(*groups, "item_id", "rater")
    table.check_columns("rating")
    table.check_unique(
        [*groups, "item_id", "rater"],
        "a rater rates an item once, so name in by=[...] the column in which these rows differ",
    )
    # Tables of categories would have a row or column for unused ones too.
    table.rows = table.rows.astype(dict.fromkeys(table.rows.select_dtypes("category"), object))
    marks = table.marks("rating")
    is_nominal = measurement == "nominal"
    values = as_numbers(table.rows.rating) if is_nominal else table.numbers("rating")
    table.rows["rating"] = values
    rated = table.rows[~is_empty(values)]
    needed = "agreement needs at least two raters; found"
    if rated.rater.nunique() < 2:
        raise BadInput(f"{table.name}: {needed} {rated.rater.nunique()}")
    rows = []
    for keys, index in table.groups(groups):
        rows_of_group = table.rows.loc[index]
        rated_of_group = rated.loc[rated.index.intersection(index)]
        n = rated_of_group.item_id.nunique()
        raters = rated_of_group.rater.nunique()
        note = f"{', '.join(map(str, keys.values()))}: {needed} {raters}"
        alpha: Coefficient = {"n": n, "raters": raters, "note": note}
        kappa = alpha
        if raters >= 2:
            alpha = _alpha(rated_of_group, measurement)
            kappa = _kappa(rated_of_group, rows_of_group)
        results = {f"Krippendorff, {measurement}": alpha}
        if measurement != "interval":
            results["Fleiss" if rows_of_group.rater.nunique() > 2 else "Cohen"] = kappa
        marks_of_group = marks[index][marks[index] != ""]
        missing = ""
        if len(marks_of_group):
            spellings = ", ".join(marks_of_group.unique())
            missing = f"{len(marks_of_group)} ratings are missing (given as {spellings})"
        for name, result in results.items():
            note = join_notes(result["note"], missing)
            rows.append(keys | {"coefficient": name} | result | {"note": note})
    columns = [*groups, "coefficient", *INTERVAL, "n", "raters", "note"]
    return pd.DataFrame(rows, columns=columns)


def _alpha(ratings: pd.DataFrame, measurement: str) -> Coefficient:
    """Compute Krippendorff's alpha of the items with two ratings or more."""
    if measurement == "ordinal" and ratings.rating.nunique() > MOST_RANKS:
        raise BadInput(
            f"{ratings.rating.nunique()} different ratings are too many ranks; "
            f"at most {MOST_RANKS}, or take `interval`"
        )
    # How often each value (column) was given to each item (row).
    table = pd.crosstab(ratings.item_id, ratings.rating)
    table = table[table.sum(axis=1) >= 2]
    n = len(table)
    coefficient = {"n": n, "raters": ratings.rater.nunique()}
    counts = table.to_numpy(float)
    if (counts.sum(0) > 0).sum() < 2:
        note = "all ratings are alike, so chance agrees as perfectly as the raters"
        return coefficient | {"note": note if n else "no item has two ratings"}
    sums, statistic = SUMS[measurement](counts, np.asarray(table.columns))
    value, low, high = estimate_of_items(sums, statistic)
    note = ""
    if math.isnan(low):
        note = "too few items, or too few of another rating, for an interval"
    estimate = dict(zip(INTERVAL, (value, low, min(high, 1.0)), strict=True))
    return coefficient | estimate | {"note": note}


def _nominal(counts: np.ndarray, values: np.ndarray, correction: int = 1) -> Sums:
    """Sum each category and the pairs that agree; Fleiss' kappa (1971) has no `correction`."""
    agreed = (counts * (counts - 1)).sum(1) / (counts.sum(1) - 1)

    def alpha(sums: np.ndarray) -> np.ndarray:
        sizes = sums[:, :-1]
        same = sums[:, -1]
        n = sizes.sum(1)
        return _beyond_chance(n - same, (n**2 - (sizes**2).sum(1)) / (n - correction), n)

    return np.column_stack([counts, agreed]), alpha


def _interval(counts: np.ndarray, values: np.ndarray) -> Sums:
    """Sum the ratings of each item: number, values, squares, and squared differences of pairs."""
    # Far from zero, squares would swallow the differences.
    values = values - values.mean()
    n = counts.sum(1)
    total = counts @ values
    squares = counts @ values**2
    within = 2 * (n * squares - total**2) / (n - 1)

    def alpha(sums: np.ndarray) -> np.ndarray:
        n, total, squares, within = sums.T
        return _beyond_chance(within, 2 * (n * squares - total**2) / (n - 1), np.abs(squares))

    return np.column_stack([n, total, squares, within]), alpha


def _ordinal(counts: np.ndarray, values: np.ndarray) -> Sums:
    """Sum the pairs of each two ranks; their distance depends on the midranks of all items."""
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
        return _beyond_chance(within, chance, n**3)

    return pairs.reshape(len(counts), k * k), alpha


SUMS = {"nominal": _nominal, "ordinal": _ordinal, "interval": _interval}


def _beyond_chance(observed: np.ndarray, chance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Compute alpha; NaN if chance gives no difference, apart from rounding."""
    return 1 - observed / np.where(chance > _ROUNDING * scale, chance, np.nan)


def _kappa(rated: pd.DataFrame, ratings: pd.DataFrame) -> Coefficient:
    """Compute Cohen's kappa for two raters, Fleiss' for more; `rated`: rows with a rating."""
    table = ratings.pivot_table(
        index="item_id", columns="rater", values="rating", aggfunc="first", dropna=False
    )
    n, raters = table.shape
    coefficient = {"n": n, "raters": raters}
    if len(rated) < n * raters:
        return coefficient | {"note": "kappa needs a rating of every item by every rater"}
    codes, categories = pd.factorize(table.to_numpy().T.ravel())
    if len(categories) == 1:
        note = "all ratings are of one category, so chance agrees as perfectly as the raters"
        return coefficient | {"note": note}
    clusters = None
    if "cluster" in ratings:
        by_item = ratings.groupby("item_id").cluster
        several = by_item.nunique()[lambda n: n > 1]
        if len(several):
            count = several.iloc[0]
            raise BadInput(f"item {several.index[0]}: is of {count} clusters; expected one")
        clusters = list(by_item.first()[table.index])
    of_raters = codes.reshape(raters, n)
    if raters == 2:
        sums, statistic = _cohen(of_raters, len(categories))
        if clusters is None:
            return coefficient | _cohen_formula(sums.sum(0).reshape(len(categories), -1))
    else:
        counts = np.eye(len(categories))[of_raters].sum(0)
        sums, statistic = _nominal(counts, categories, correction=0)
    value, low, high = estimate_of_items(sums, statistic, clusters)
    number = len(set(clusters)) if clusters is not None else n
    if clusters is not None and number < MIN_CLUSTERS:
        low = high = math.nan
        are = "cluster" if number == 1 else "clusters"
        note = f"{number} {are} of items: an interval needs {MIN_CLUSTERS} at least"
    elif not math.isnan(low):
        note = ""
    elif value == 1:
        note = "raters agree on every item, so resamples are all alike and there is no interval"
    else:
        note = "too few items, or too few of another category, for an interval"
    estimate = dict(zip(INTERVAL, (value, low, min(high, 1.0)), strict=True))
    return coefficient | estimate | {"note": note}


def _cohen_formula(counts: np.ndarray) -> Coefficient:
    """Compute Cohen's kappa of independent items by statsmodels' formula."""
    from statsmodels.stats import inter_rater  # type: ignore[import-untyped]  # slow to load

    with np.errstate(all="ignore"):  # statsmodels divides by its variances, which may be 0
        result = inter_rater.cohens_kappa(counts)
    value = float(result.kappa)
    # The formula is for many items; a variance of 0 does not make a kappa certain.
    if not result.var_kappa > _ROUNDING:
        note = "the formula gives a variance of 0, so there is no interval"
        return {"estimate": value, "note": note}
    ends = {"ci_low": float(result.kappa_low), "ci_high": float(result.kappa_upp)}
    return {"estimate": value} | ends | {"note": ""}


def _cohen(codes: np.ndarray, k: int) -> Sums:
    """Count the pair of categories of each item, and compute Cohen's kappa of such counts."""

    def kappa(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(-1, k, k) / sums.sum(1)[:, None, None]
        # Chance is the disagreement expected from each rater's frequencies of categories.
        chance = 1 - (table.sum(2) * table.sum(1)).sum(1)
        differing = 1 - np.trace(table, axis1=1, axis2=2)
        # Rounded, so that kappa is exactly 0 if a rater always gives the same category.
        return np.round(_beyond_chance(differing, chance, np.ones(len(chance))), 12)

    return np.eye(k * k)[codes[0] * k + codes[1]], kappa


def severity_level(scores: npt.ArrayLike) -> np.ndarray:
    """Return the level of severity, 0 to 4, of each bias score from 0 to 10.

    Raises:
        BadInput: a score outside of this range.

    Examples:
        >>> severity_level([0, 2.5, 8]).tolist()
        [0, 1, 4]
    """
    values = np.asarray(scores, dtype=np.float64)
    outside = values[~((values >= 0) & (values <= HIGHEST))]
    if len(outside):
        raise BadInput(
            f"a bias score of {outside[0]:g} has no level of severity; "
            f"scores run from 0 to {HIGHEST}"
        )
    return np.searchsorted(LEVELS, values, side="right") - 1


def read_annotations(path: str | Path, *, levels: bool = False) -> pd.DataFrame:
    """Read your own annotations: `category`, `item_id`, `rater`, `rating`.

    Args:
        path: a CSV file with the columns item_id, rater, rating, one row per rating. Without a
            `category`, it is the part of `item_id` before the first colon.
        levels: ratings are McBE's severities from 0 to 10; we compare their five levels.

    Raises:
        BadInput: no such columns, no rows, an empty cell, or no severity.

    Examples:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "mine.csv")
        >>> _ = file.write_text("item_id,rater,rating\\nage:1,ann,biased\\nage:1,bo,fair\\n")
        >>> read_annotations(file)
          category item_id rater  rating
        0      age   age:1   ann  biased
        1      age   age:1    bo    fair
    """
    table = Table(path)
    table.check_filled("item_id", "rater", "rating")
    rows = table.rows.reindex(columns=["category", "item_id", "rater", "rating"], fill_value="")
    if levels:
        severities = table.numbers("rating", 0, HIGHEST)
        rows["rating"] = [f"level {level + 1}" for level in severity_level(severities)]
    before_colon = rows.item_id.str.partition(":")[0]
    rows["category"] = rows.category.mask(rows.category == "", before_colon)
    return rows
