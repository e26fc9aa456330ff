"""Agreement between a judge and people, and among people: winners of pairs of models, and kappas.

Ratings are rows with item_id, rater and rating; every rater rates every item once. Items that are
not independent, such as the questions about one text, share a value in the column `cluster`.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.stats import inter_rater  # type: ignore[import-untyped]

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected
from bench.data.readers import read_table
from bench.metrics.bootstrap import estimate, estimate_of_items, resample
from bench.metrics.table import ALL

# Lower bounds of McBE's five levels of severity, [0, 1), [1, 3), [3, 5), [5, 8) and [8, 10]
# (its prompt of bias scoring).
LEVELS = (0, 1, 3, 5, 8)
HIGHEST = 10
TIES = ("exclude", "half", "third")
COLUMNS = ("item_id", "rater", "rating")
# An interval needs this many clusters: with fewer, Student's t asks for percentiles beyond the
# resamples.
MIN_CLUSTERS = 5
ONE_CATEGORY = "all ratings are of one category, so chance agrees as perfectly as the raters"
# Values that differ by less are equal up to rounding.
_ROUNDING = 1e-9


class Kappa(NamedTuple):
    """Agreement beyond chance: 1 is perfect, 0 is chance; NaN is undefined, see `note`.

    Attributes:
        n: items.
        raters: raters per item.
    """

    kappa: float
    ci_low: float
    ci_high: float
    n: int
    raters: int
    note: str


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


def read_human(path: Path) -> pd.DataFrame:
    """Read people's scores of models' analyses: item_id, model, human (0 to 100), row by row.

    Args:
        path: a CSV file with these columns; others are ignored. Several people, or repeats, give
            several rows.

    Raises:
        BadInput: no such columns, no rows, an empty cell, or no number.
    """
    columns = ["item_id", "model", "human"]
    return pd.DataFrame(_read_rows(path, columns, 100))[columns]


def read_annotations(path: str | Path, *, levels: bool = False) -> pd.DataFrame:
    """Read your own annotations: `category`, `item_id`, `rater`, `rating`.

    Args:
        path: a CSV file with the columns item_id, rater, rating, one row per rating. Without a
            column `category`, it is the part of `item_id` before the first colon.
        levels: ratings are McBE's severities from 0 to 10; we compare their five levels.

    Raises:
        BadInput: no such columns, no rows, an empty cell, or no severity.
    """
    table = pd.DataFrame(_read_rows(Path(path).expanduser(), COLUMNS, HIGHEST if levels else 0))
    if levels:
        table["rating"] = [f"level {k + 1}" for k in severity_level(table.rating)]
    given = table.category.str.strip() if "category" in table else ""
    before_colon = table.item_id.str.partition(":")[0]
    table["category"] = before_colon.where(pd.Series(given, table.index) == "", given)
    return table[["category", *COLUMNS]]


def _read_rows(path: Path, columns: Sequence[str], highest: float) -> list[dict[str, object]]:
    """Read filled cells of `columns`, the last one a number up to `highest` if that is above 0."""
    rows = []
    for row in read_table(path, columns):
        cells: dict[str, object] = {**row, **{name: row[name].strip() for name in columns}}
        for name in columns:
            if not cells[name]:
                raise BadInput(f"{path}, row {row.number}, column `{name}`: is empty")
        if highest:
            text = str(cells[columns[-1]])
            cells[columns[-1]] = value = to_number(text)
            if not 0 <= value <= highest:
                where = f"{path}, row {row.number}, column `{columns[-1]}`"
                raise BadInput(f"{where}: {text!r} is no number from 0 to {highest}")
        rows.append(cells)
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows")
    return rows


def winner_consistency(
    judgements: pd.DataFrame, ties: str = "exclude", *, by_pair: bool = False
) -> pd.DataFrame:
    """Compute how often judge and people name the same winner (McBE, judge validation).

    Args:
        judgements: rows with item_id, model, judge and human, the scores of a model's analysis of
            an item on any two scales. We average several rows of a model and item (repeats, several
            people), and skip empty scores. A pair of models is compared on the items for which both
            have both scores.
        ties: the value of a comparison without a winner; the paper does not give one. `exclude`:
            it is skipped. `half`: 1/2 if one side has a tie, 1 if both have. `third`: 1 if both
            have a tie, 0 if one has.

    Returns:
        One row, or with `by_pair` one per pair of models, `model_a` and `model_b`: the `rate` with
        its interval by bootstrap over items, `ci_low` and `ci_high`; comparisons that count, `n`;
        the share without a winner on one side or both, `ties`; `items` compared; the mean of
        model_a less the mean of model_b, `judge_mean_difference` and `human_mean_difference`; and
        whether these name the same winner, or both none, `same_winner`.

    Raises:
        BadInput: an unknown rule for ties, scores that are no finite numbers, or no pair of models.

    Examples:
        >>> scores = pd.DataFrame({
        ...     "item_id": [1, 1, 2, 2],
        ...     "model": ["a", "b"] * 2,
        ...     "judge": [90, 70, 80, 60],
        ...     "human": [80, 60, 50, 70],
        ... })
        >>> winner_consistency(scores)[["rate", "n", "items", "same_winner"]]
           rate  n  items  same_winner
        0   0.5  2      2        False
    """
    if ties not in TIES:
        raise BadInput(expected(ties, TIES, "way to count ties"))
    marks = judgements[["judge", "human"]]
    numbers = marks.apply(pd.to_numeric, errors="coerce")
    if (np.isinf(numbers) | (numbers.isna() & marks.notna())).to_numpy().any():
        raise BadInput("judgements: `judge` and `human` must be finite numbers, or empty")
    by_item = numbers.groupby([judgements.item_id, judgements.model])
    means = by_item.mean().dropna().reset_index()
    pairs = means.merge(means, on="item_id", suffixes=("_a", "_b"))
    pairs = pairs[pairs.model_a < pairs.model_b].assign(stratum=ALL)
    if pairs.empty:
        names = ", ".join(map(str, sorted(means.model.unique()))) or "none"
        raise BadInput(
            f"no item has scores of two models by judge and people; models with scores: {names}"
        )
    pairs["judge"], pairs["human"] = pairs.judge_a - pairs.judge_b, pairs.human_a - pairs.human_b
    judge, human = _winner(pairs.judge), _winner(pairs.human)
    alike, tied = judge == human, (judge == 0) | (human == 0)
    agreed = alike.astype(float).mask(tied & ~alike, 0.5 if ties == "half" else 0.0)
    is_counted = ~tied | (ties != "exclude")
    pairs["tied"], pairs["counted"] = tied, is_counted.astype(float)
    pairs["agreed"] = agreed.where(is_counted, 0.0)
    keys = ["model_a", "model_b"] if by_pair else ["stratum"]
    rows = []
    for key, part in pairs.groupby(keys):
        totals = resample(part, "stratum", "item_id", ["agreed", "counted"])
        share = estimate(totals, lambda sums: sums[:, 0, 0] / sums[:, 0, 1], (0, 1), size="counted")
        mean = part[["judge", "human"]].mean()
        numbers = (*share, int(part.counted.sum()), part.tied.mean(), len(part), *mean)
        rows.append((*key, *numbers, bool(np.ptp(_winner(mean)) == 0)))
    of_means = ["judge_mean_difference", "human_mean_difference", "same_winner"]
    columns = [*keys, "rate", "ci_low", "ci_high", "n", "ties", "items", *of_means]
    return pd.DataFrame(rows, columns=columns).drop(columns=[] if by_pair else keys)


def _winner(difference: pd.Series) -> pd.Series:
    """Return 1 if the first model wins, -1 if the second one wins, and 0 at a tie."""
    return np.sign(difference.mask(difference.abs() < _ROUNDING, 0.0))


def fleiss_kappa(table: pd.DataFrame, clusters: Sequence[object] | None = None) -> Kappa:
    """Compute Fleiss' kappa of several raters' categories of the same items (Fleiss, 1971).

    The value is statsmodels'; the interval is a bootstrap over clusters, by default the items.

    Args:
        table, clusters: as in `cohen_kappa`.
    """
    n, raters = table.shape
    codes = pd.factorize(table.to_numpy().ravel())[0].reshape(n, raters)
    counts, categories = inter_rater.aggregate_raters(codes)
    if len(categories) == 1:
        return Kappa(math.nan, math.nan, math.nan, n, raters, ONE_CATEGORY)
    agreed = ((counts**2).sum(1) - raters) / (raters * (raters - 1))

    def kappa(sums: np.ndarray) -> np.ndarray:
        by_category, agreed, items = sums[:, :-2], sums[:, -2], sums[:, -1]
        chance = ((by_category / (items[:, None] * raters)) ** 2).sum(1)
        return (agreed / items - chance) / np.where(1 - chance > _ROUNDING, 1 - chance, np.nan)

    sums = np.column_stack([counts, agreed, np.ones(n)])
    result = _bootstrap(sums, clusters or list(table.index), kappa, raters)
    return result._replace(kappa=float(inter_rater.fleiss_kappa(counts)))


def cohen_kappa(table: pd.DataFrame, clusters: Sequence[object] | None = None) -> Kappa:
    """Compute Cohen's kappa of two raters' categories of the same items.

    Args:
        table: a row per item and a column per rater.
        clusters: the cluster of each item if items are not independent, for example questions about
            one text. The interval is then by bootstrap over clusters, because statsmodels' formula
            would be too narrow. We simulated studies of 5 to 24 texts with four questions each, in
            which both people found three in ten texts hard: 95 % intervals over texts held the true
            kappa in 92 to 97 %, the formula's in 80 to 90 %.
    """
    n = len(table)
    codes, categories = pd.factorize(table.to_numpy().T.ravel())
    k = len(categories)
    if k == 1:
        return Kappa(math.nan, math.nan, math.nan, n, 2, ONE_CATEGORY)
    cells = np.eye(k * k)[codes[:n] * k + codes[n:]]
    if clusters is None:
        with np.errstate(all="ignore"):  # statsmodels divides by its variances, which may be 0
            result = inter_rater.cohens_kappa(cells.sum(0).reshape(k, k))
        # The formula is for many items; a variance of 0 does not make a kappa certain.
        if not result.var_kappa > _ROUNDING:
            why = "the formula gives a variance of 0, so there is no interval"
            return Kappa(float(result.kappa), math.nan, math.nan, n, 2, why)
        interval = float(result.kappa_low), float(result.kappa_upp)
        return Kappa(float(result.kappa), *interval, n, 2, "")

    def kappa(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(-1, k, k) / sums.sum(1)[:, None, None]
        # Chance is the share of disagreement that the raters' own frequencies make.
        alike = (table.sum(2) * table.sum(1)).sum(1)
        chance = np.where(1 - alike > _ROUNDING, 1 - alike, np.nan)
        # We round, so that a rater who gives everything the same category has exactly 0.
        return np.round(1 - (1 - np.trace(table, axis1=1, axis2=2)) / chance, 12)

    return _bootstrap(cells, clusters, kappa, 2)


def _bootstrap(
    sums: np.ndarray,
    clusters: Sequence[object],
    statistic: Callable[[np.ndarray], np.ndarray],
    raters: int,
) -> Kappa:
    """Compute a kappa of sums over items, with its interval over clusters."""
    value, low, high = estimate_of_items(sums, statistic, clusters)
    why = ""
    if math.isnan(low):
        why = "too few items, or too few of another category, for an interval"
        if value == 1:
            why = "raters agree on every item, so resamples are all alike and there is no interval"
    return Kappa(value, low, high, len(sums), raters, why)


def _arranged(ratings: pd.DataFrame) -> tuple[pd.DataFrame, list[object] | None]:
    """Return the categories, a row per item and a column per rater, and each item's cluster."""
    check_raters(ratings)
    ratings = ratings.assign(rating=ratings.rating.mask(ratings.rating == ""))
    table = ratings.pivot_table(
        index="item_id", columns="rater", values="rating", aggfunc="first", dropna=False
    )
    gaps = table.isna()
    if gaps.any(axis=None):
        item = gaps.index[gaps.any(axis=1)][0]
        rater = gaps.columns[gaps.loc[item]][0]
        raise BadInput(f"item {item}: {rater} has not rated it; every rater rates every item")
    if "cluster" not in ratings:
        return table, None
    by_item = ratings.groupby("item_id").cluster
    several = by_item.nunique()[lambda n: n > 1]
    if len(several):
        raise BadInput(f"item {several.index[0]}: is of {several.iloc[0]} clusters; expected one")
    return table, list(by_item.first()[table.index])


def check_raters(ratings: pd.DataFrame) -> None:
    """Refuse a second rating of an item by the same rater, and fewer than two raters.

    Raises:
        BadInput: for these.
    """
    twice = ratings[ratings.duplicated(["item_id", "rater"])]
    if len(twice):
        first = twice.iloc[0]
        raise BadInput(f"item {first.item_id}: {first.rater} has rated it more than once")
    if ratings.rater.nunique() < 2:
        raise BadInput(f"agreement needs at least two raters; found {ratings.rater.nunique()}")


def kappa_of(ratings: pd.DataFrame) -> Kappa:
    """Compute the kappa of a set of items: Cohen's for two raters, Fleiss' for more.

    Args:
        ratings: `item_id`, `rater`, `rating`, and `cluster` if items are not independent. The
            interval is then by bootstrap over clusters; there is none with fewer than 5, nor if
            raters agree on every item, because resamples are all alike.

    Raises:
        BadInput: fewer than two raters, a rater who has not rated every item once, or an item of
            several clusters.
    """
    table, clusters = _arranged(ratings)
    kappa = cohen_kappa if len(table.columns) == 2 else fleiss_kappa
    result = kappa(table, clusters)
    if clusters is None:
        return result
    n, why = len(set(clusters)), result.note
    if n < MIN_CLUSTERS and not math.isnan(result.kappa):
        why = f"{n} cluster{'s' * (n != 1)} of items: an interval needs {MIN_CLUSTERS} at least"
    return result._replace(ci_low=math.nan, ci_high=math.nan, note=why) if why else result
