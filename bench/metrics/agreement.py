"""Agreement between a judge and people, and among people: winners of pairs of models, and kappas of categories."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.stats import inter_rater  # type: ignore[import-untyped]

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected
from bench.data.readers import read_csv
from bench.metrics.bootstrap import Estimate, estimate, resample

# Lower bounds of McBE's five levels of severity, [0, 1), [1, 3), [3, 5), [5, 8) and [8, 10] (its prompt of bias scoring).
LEVELS = (0, 1, 3, 5, 8)
HIGHEST = 10
TIES = ("exclude", "half", "third")
# What differs by less is the same but for rounding: means of repeats, a chance agreement and 1, a variance and 0.
_SAME = 1e-9


class Consistency(NamedTuple):
    """How often a judge and people name the same winner.

    Attributes:
        rate: share of comparisons with the same winner, 0 to 1; NaN where none counts.
        ci_low, ci_high: its 95 % interval, by bootstrap over items; NaN with a single item.
        n: comparisons (a pair of models on an item) that count.
        ties: share of all comparisons in which the judge, or people, or both, name no winner.
    """

    rate: float
    ci_low: float
    ci_high: float
    n: int
    ties: float


class Kappa(NamedTuple):
    """Agreement beyond chance, 1 where it is perfect and 0 where it is what chance gives.

    Attributes:
        kappa: NaN where it is undefined.
        ci_low, ci_high: its 95 % interval; NaN where there is none.
        n: items.
        raters: raters an item.
        note: why a number is missing, or "".
    """

    kappa: float
    ci_low: float
    ci_high: float
    n: int
    raters: int
    note: str


def severity_level(scores: npt.ArrayLike) -> np.ndarray:
    """The level of severity, 0 to 4, of each bias score (0 to 10), an array of the same shape.

    Raises:
        BadInput: a score that is not from 0 to 10.
    """
    given = np.asarray(scores, dtype=np.float64)
    outside = given[~((given >= 0) & (given <= HIGHEST))]
    if len(outside):
        raise BadInput(
            f"a bias score of {outside[0]:g} has no level of severity; scores run from 0 to {HIGHEST}"
        )
    return np.searchsorted(LEVELS, given, side="right") - 1


def read_human(path: Path) -> pd.DataFrame:
    """People's scores of models' analyses: item_id, model, human (0 to 100), a row for each score given.

    Args:
        path: a CSV file with these columns, more are passed over. Several people, or repeats, give several rows.

    Raises:
        BadInput: a column or a cell is missing, a score is no number from 0 to 100, or there is no row.
    """
    columns = ["item_id", "model", "human"]
    rows = []
    for place, row in enumerate(read_csv(path, columns), start=1):
        item, model, score = (row[name].strip() for name in columns)
        for name, cell in (("item_id", item), ("model", model)):
            if not cell:
                raise BadInput(f"{path}, row {place}, column `{name}`: is empty")
        value = to_number(score)
        if not 0 <= value <= 100:
            raise BadInput(
                f"{path}, row {place}, column `human`: {score!r} is no number from 0 to 100"
            )
        rows.append((item, model, value))
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows")
    return pd.DataFrame(rows, columns=columns)


def winner_consistency(judgements: pd.DataFrame, ties: str = "exclude") -> Consistency:
    """How often judge and people name the same winner, over all items and pairs of models (McBE, judge validation).

    Args:
        judgements: rows with item_id, model, judge and human, the scores of a model's analysis of an item on any two
            scales. Several rows of a model and item (repeats, several people) are averaged, an empty score is left out.
            A pair is compared on the items where both models have both scores.
        ties: what a comparison counts where someone names no winner; the paper does not say. `exclude`: it is left
            out. `half`: 1/2 where one side has a tie, 1 where both have. `third`: 1 where both have a tie, 0 where one
            has.

    Raises:
        BadInput: an unknown `ties`, a column is missing or holds no numbers, or no item has two models to compare.
    """
    return _consistency(_compared(_means(judgements), ties))


def by_pair(judgements: pd.DataFrame, ties: str = "exclude") -> pd.DataFrame:
    """`winner_consistency` of each pair of models, and whether their means over items name the same winner.

    Returns:
        A row a pair: model_a, model_b (in the order of their names); rate, ci_low, ci_high, n, ties; items compared;
        judge_mean_difference and human_mean_difference (model_a's mean less model_b's over the items compared);
        same_winner, whether both differences point to the same model, or both to none.

    Raises:
        BadInput: as `winner_consistency`.
    """
    rows = []
    for (first, second), some in _compared(_means(judgements), ties).groupby(
        ["model_a", "model_b"]
    ):
        means = some[["judge", "human"]].mean()
        winners = _winner(means)
        rows.append(
            {
                "model_a": first,
                "model_b": second,
                **_consistency(some)._asdict(),
                "items": len(some),
                "judge_mean_difference": float(means.judge),
                "human_mean_difference": float(means.human),
                "same_winner": bool(winners.judge == winners.human),
            }
        )
    return pd.DataFrame(rows)


def fleiss_kappa(ratings: pd.DataFrame) -> Kappa:
    """Fleiss' kappa of the categories that several raters gave the same items (Fleiss, 1971).

    The value is statsmodels'; the interval is a bootstrap over items, because statsmodels gives none. With
    `severity_level` of bias scores as ratings it is McBE's.

    Args:
        ratings: rows with item_id, rater and rating, a category. Raters are numbered or named as one likes, but each
            of them rates every item once. With a column `cluster` the bootstrap is over clusters of items, which are
            not independent, as the questions about one text.

    Raises:
        BadInput: a column or a rating is missing, there are no two raters, or someone has rated an item twice or not.
    """
    table = _by_rater(ratings)
    n, raters = table.shape
    counts, categories = inter_rater.aggregate_raters(
        pd.factorize(table.to_numpy().ravel())[0].reshape(n, raters)
    )
    if len(categories) == 1:
        note = "all ratings are of one category, so chance agrees as perfectly as the raters"
        return Kappa(math.nan, math.nan, math.nan, n, raters, note)
    names = [f"category {k}" for k in range(len(categories))]
    clusters = (
        ratings.groupby("item_id").cluster.first()[table.index]
        if "cluster" in ratings
        else table.index
    )
    sums = pd.DataFrame(counts, columns=names).assign(
        stratum="all",
        cluster=np.asarray(clusters),
        agreed=((counts**2).sum(1) - raters) / (raters * (raters - 1)),
        items=1,
    )

    def kappa(drawn: np.ndarray) -> np.ndarray:
        items = drawn[:, 0, -1]
        agreed = drawn[:, 0, -2] / items
        chance = ((drawn[:, 0, :-2] / (items[:, None] * raters)) ** 2).sum(1)
        # A resample of a single category has none; its chance agreement is 1 but for rounding.
        return (agreed - chance) / np.where(1 - chance > _SAME, 1 - chance, np.nan)

    found = estimate(resample(sums, "stratum", "cluster", [*names, "agreed", "items"]), kappa)
    note = _without_interval(found)
    return Kappa(float(inter_rater.fleiss_kappa(counts)), found.low, found.high, n, raters, note)


def cohen_kappa(
    first: Sequence[object],
    second: Sequence[object],
    weights: Literal["linear", "quadratic"] | None = None,
) -> Kappa:
    """Cohen's kappa of the categories that two raters gave the same items, value and interval as statsmodels gives them.

    Args:
        first: a category an item.
        second: the other rater's, in the same order.
        weights: None counts every disagreement alike; `linear` and `quadratic` weigh it by the distance of the two
            categories, which are numbers then, or its square (Cohen, 1968).

    Raises:
        BadInput: no items, unequally many, a missing rating, unknown weights, or weights over what is no number.
    """
    if weights not in (None, "linear", "quadratic"):
        raise BadInput(
            expected(weights, (None, "linear", "quadratic"), "weighting of Cohen's kappa")
        )
    one, other = pd.Series(list(first)), pd.Series(list(second))
    if len(one) != len(other) or not len(one):
        raise BadInput(
            f"two raters of the same items are needed; found {len(one)} and {len(other)} ratings"
        )
    if one.isna().any() or other.isna().any():
        place = int((one.isna() | other.isna()).argmax())
        raise BadInput(f"item {place + 1}: a rating is missing")
    both = pd.concat([one, other], ignore_index=True)
    if weights and not pd.api.types.is_numeric_dtype(both):
        raise BadInput(
            f"{weights} weights need numbers as categories, such as levels; found {both[0]!r}"
        )
    codes, categories = pd.factorize(both, sort=bool(weights))
    n, k = len(one), len(categories)
    if k == 1:
        note = "all ratings are of one category, so chance agrees as perfectly as the raters"
        return Kappa(math.nan, math.nan, math.nan, n, 2, note)
    table = np.bincount(codes[:n] * k + codes[n:], minlength=k * k).reshape(k, k)
    # statsmodels divides by its variances, which may be nought.
    with np.errstate(all="ignore"):
        found = inter_rater.cohens_kappa(
            table, weights=np.asarray(categories, dtype=np.float64) if weights else None, wt=weights
        )
    # A variance of nought is no certainty: the formula, for many items, gives it also for one item.
    if not found.var_kappa > _SAME:
        note = "the formula gives its variance as nought, so there is no interval"
        return Kappa(float(found.kappa), math.nan, math.nan, n, 2, note)
    return Kappa(float(found.kappa), float(found.kappa_low), float(found.kappa_upp), n, 2, "")


def clustered_kappa(
    first: Sequence[object],
    second: Sequence[object],
    clusters: Sequence[object],
    weights: Literal["linear", "quadratic"] | None = None,
) -> Kappa:
    """Cohen's kappa as `cohen_kappa` gives it, with an interval by bootstrap over clusters of items.

    For items that are not independent, such as the questions about one text: the formula's interval takes each for an
    observation of its own, and is too narrow then. In simulated studies of 5 to 24 texts with four questions each, of which both
    people found three in ten texts hard, 95 % intervals over texts held the true kappa in 92 to 97 %, the formula's in 80 to
    90 % (tests/test_metrics_kappas.py has such a study).

    Args:
        clusters: of each item, what was sampled.

    Raises:
        BadInput: as `cohen_kappa`, or unequally many clusters.
    """
    known = cohen_kappa(first, second, weights)
    if len(clusters) != known.n:
        raise BadInput(
            f"each item needs its cluster; found {known.n} items and {len(clusters)} clusters"
        )
    if math.isnan(known.kappa):
        return known
    both = pd.concat([pd.Series(list(first)), pd.Series(list(second))], ignore_index=True)
    codes, categories = pd.factorize(both, sort=bool(weights))
    n, k = known.n, len(categories)
    cells = np.zeros((n, k * k))
    cells[np.arange(n), codes[:n] * k + codes[n:]] = 1
    names = [f"cell {cell}" for cell in range(k * k)]
    sums = pd.DataFrame(cells, columns=names).assign(
        stratum="all", cluster=pd.Series(list(clusters))
    )
    # Without weights one category is as far from one as from any other.
    power = {"linear": 1, "quadratic": 2}
    far = (
        np.abs(np.subtract.outer(*[categories.to_numpy(float)] * 2)) ** power[weights]
        if weights
        else 1 - np.eye(k)
    )

    def kappa(drawn: np.ndarray) -> np.ndarray:
        table = drawn[:, 0].reshape(-1, k, k) / drawn[:, 0].sum(1)[:, None, None]
        chance = (table.sum(2)[:, :, None] * table.sum(1)[:, None, :] * far).sum((1, 2))
        # Rounded, so that a rater who says the same of everything has just 0.
        return np.round(
            1 - (table * far).sum((1, 2)) / np.where(chance > _SAME, chance, np.nan), 12
        )

    found = estimate(resample(sums, "stratum", "cluster", names), kappa)
    note = _without_interval(found)
    return Kappa(found.value, found.low, found.high, n, 2, note)


def _without_interval(found: Estimate) -> str:
    """Say why a kappa has no interval; "" where it has one."""
    if not math.isnan(found.low):
        return ""
    if found.value == 1:
        return "raters agree on every item, so resamples are all alike and there is no interval"
    return "too few items, or too few of another category, for an interval"


def _means(judgements: pd.DataFrame) -> pd.DataFrame:
    """One row an item and model: the means of judge and human; rows without one of them are left out."""
    _require(judgements, ("item_id", "model", "judge", "human"), "judgements")
    for name in ("item_id", "model"):
        if judgements[name].isna().any():
            raise BadInput(f"judgements: column `{name}` has an empty cell")
    for name in ("judge", "human"):
        if not pd.api.types.is_numeric_dtype(judgements[name]):
            raise BadInput(f"judgements: column `{name}` holds something else than numbers")
        if np.isinf(judgements[name]).any():
            raise BadInput(f"judgements: column `{name}` holds an infinite number")
    means = judgements.groupby(["item_id", "model"], sort=True, as_index=False)[
        ["judge", "human"]
    ].mean()
    return means.dropna()


def _compared(means: pd.DataFrame, ties: str) -> pd.DataFrame:
    """One row an item and pair of models: differences in judge and human, `agreed`, `counted` and `tied`."""
    if ties not in TIES:
        raise BadInput(expected(ties, TIES, "way to count ties"))
    names = sorted(means.model.unique())
    pairs = means.merge(means, on="item_id", suffixes=("_a", "_b"))
    pairs = pairs[pairs.model_a < pairs.model_b]
    if pairs.empty:
        raise BadInput(
            f"no item has scores of two models by judge and people; models with scores: {', '.join(map(str, names)) or 'none'}"
        )
    judge, human = pairs.judge_a - pairs.judge_b, pairs.human_a - pairs.human_b
    of_judge, of_human = _winner(judge), _winner(human)
    alike, tied = of_judge == of_human, (of_judge == 0) | (of_human == 0)
    # Where one side has a tie and the other has none, they are not alike.
    agreed = alike.astype(float).mask(tied & ~alike, 0.5 if ties == "half" else 0.0)
    counted = ~tied | (ties != "exclude")
    return pairs[["item_id", "model_a", "model_b"]].assign(
        judge=judge,
        human=human,
        agreed=agreed.where(counted, 0.0),
        counted=counted.astype(float),
        tied=tied,
        stratum="all",
    )


def _winner(difference: pd.Series) -> pd.Series:
    """1 where the first model wins, -1 where the second does, 0 at a tie."""
    return np.sign(difference.mask(difference.abs() < _SAME, 0.0))


def _consistency(compared: pd.DataFrame) -> Consistency:
    totals = resample(compared, "stratum", "item_id", ["agreed", "counted"])
    found = estimate(totals, lambda sums: sums[:, 0, 0] / sums[:, 0, 1], (0, 1), size="counted")
    return Consistency(*found, int(compared.counted.sum()), float(compared.tied.mean()))


def _by_rater(ratings: pd.DataFrame) -> pd.DataFrame:
    """Categories, a row an item and a column a rater."""
    _require(ratings, ("item_id", "rater", "rating"), "ratings")
    for name in ("item_id", "rater"):
        if ratings[name].isna().any():
            raise BadInput(f"ratings: column `{name}` has an empty cell")
    missing = ratings[ratings.rating.isna() | (ratings.rating == "")]
    if len(missing):
        raise BadInput(
            f"item {missing.item_id.iloc[0]}: the rating of {missing.rater.iloc[0]} is missing"
        )
    twice = ratings[ratings.duplicated(["item_id", "rater"])]
    if len(twice):
        raise BadInput(
            f"item {twice.item_id.iloc[0]}: {twice.rater.iloc[0]} has rated it more than once"
        )
    raters = ratings.rater.nunique()
    if raters < 2:
        raise BadInput(f"agreement needs at least two raters; found {raters}")
    table = ratings.pivot_table(index="item_id", columns="rater", values="rating", aggfunc="first")
    gaps = table.isna()
    if gaps.any(axis=None):
        item = gaps.index[gaps.any(axis=1)][0]
        rater = gaps.columns[gaps.loc[item]][0]
        raise BadInput(f"item {item}: {rater} has not rated it; every rater rates every item")
    return table


def _require(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    missing = [name for name in columns if name not in frame]
    if missing:
        raise BadInput(f"{what}: column `{missing[0]}` is missing; needed: {', '.join(columns)}")
