"""Agreement between a judge and people, and among people: winners of pairs of models, and kappas.

Ratings are rows with item_id, rater and rating; every rater rates every item once. Items that are
not independent, such as the questions about one text, share a value in the column `cluster`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.stats import inter_rater  # type: ignore[import-untyped]

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected
from bench.core.i18n import N_, _, note
from bench.data.readers import read_csv
from bench.metrics.bootstrap import estimate, resample
from bench.metrics.table import ALL

# Lower bounds of McBE's five levels of severity, [0, 1), [1, 3), [3, 5), [5, 8) and [8, 10]
# (its prompt of bias scoring).
LEVELS = (0, 1, 3, 5, 8)
HIGHEST = 10
TIES = ("exclude", "half", "third")
# Lower bounds of the names of kappas (Landis and Koch, Biometrics, 1977).
BANDS = (
    (0.8, N_("almost perfect")),
    (0.6, N_("substantial")),
    (0.4, N_("moderate")),
    (0.2, N_("fair")),
    (0.0, N_("slight")),
)
COLUMNS = ("item_id", "rater", "rating")
# An interval needs this many clusters: with fewer, Student's t asks for percentiles beyond the
# resamples.
MIN_CLUSTERS = 5
ONE_CATEGORY = "all ratings are of one category, so chance agrees as perfectly as the raters"
# Values that differ by less are equal up to rounding.
_ROUNDING = 1e-9
# How the distance of two categories counts (Cohen, 1968).
_POWER = {"linear": 1, "quadratic": 2}


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
    """Agreement beyond chance: 1 is perfect, 0 is what chance gives.

    Attributes:
        kappa: NaN where it is undefined.
        ci_low, ci_high: its 95 % interval; NaN where there is none.
        n: items.
        raters: raters per item.
        note: why a number is missing, or "".
    """

    kappa: float
    ci_low: float
    ci_high: float
    n: int
    raters: int
    note: str


class SimulatedAnnotators(NamedTuple):
    """Annotators who see the right category at a known rate.

    Attributes:
        reliability: probability that an annotator gives the right category; otherwise that of
            another item at random.
        raters: number of annotators.
    """

    reliability: float = 0.9
    raters: int = 3
    seed: int = 0

    @property
    def kappa(self) -> float:
        """Their kappa over infinitely many items: both of two annotators must be right."""
        return self.reliability**2

    def annotate(self, truth: pd.DataFrame) -> pd.DataFrame:
        """Annotate items whose right category is known.

        Args:
            truth: `category`, `item_id` and `topic`, the right answer; a wrong one is the topic of
                an item of the same category.

        Returns:
            Columns `category`, `item_id`, `rater`, `rating`.
        """
        rng = np.random.default_rng(self.seed)
        parts = []
        for category, items in truth.groupby("category", sort=False):
            right = items.topic.to_numpy()
            for k in range(self.raters):
                wrong = rng.choice(right, len(right))
                rating = np.where(rng.random(len(right)) < self.reliability, right, wrong)
                annotated = {
                    "category": category,
                    "item_id": items.item_id.to_numpy(),
                    "rater": f"simulated {k + 1}",
                    "rating": rating,
                }
                parts.append(pd.DataFrame(annotated))
        return pd.concat(parts, ignore_index=True)


def severity_level(scores: npt.ArrayLike) -> np.ndarray:
    """Return the level of severity, 0 to 4, of each bias score from 0 to 10.

    Raises:
        BadInput: a score is outside 0 to 10.
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
        BadInput: a column or a cell is missing, a score is not a number from 0 to 100, or there are
            no rows.
    """
    columns = ("item_id", "model", "human")
    rows = []
    for place, cells, _row in _filled_rows(path, columns):
        score = _number_in(cells["human"], 100, f"{place}, column `human`", "number")
        rows.append((cells["item_id"], cells["model"], score))
    return pd.DataFrame(rows, columns=list(columns))


def read_annotations(path: Path, *, levels: bool = False) -> pd.DataFrame:
    """Read your own annotations: `category`, `item_id`, `rater`, `rating`.

    Args:
        path: a CSV file with the columns item_id, rater, rating, one row per rating. Without a
            column `category`, it is the part of `item_id` before the first colon.
        levels: ratings are McBE's severities from 0 to 10, whose five levels are compared.

    Raises:
        BadInput: a column or a cell is missing, there are no rows, or with `levels` a rating is not
            a number from 0 to 10.
    """
    rows = []
    for place, cells, row in _filled_rows(path, COLUMNS):
        if levels:
            where = f"{place}, column `rating`"
            severity = _number_in(cells["rating"], HIGHEST, where, "severity")
            cells["rating"] = f"level {int(severity_level(severity)) + 1}"
        category = row.get("category", "").strip() or cells["item_id"].partition(":")[0]
        rows.append({"category": category, **cells})
    return pd.DataFrame(rows)


def _filled_rows(
    path: Path, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Yield the place, the stripped cells of `columns` and all cells of each row."""
    rows = read_csv(path, columns)
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows")
    for line, row in enumerate(rows, start=1):
        cells = {name: row[name].strip() for name in columns}
        for name, cell in cells.items():
            if not cell:
                raise BadInput(f"{path}, row {line}, column `{name}`: is empty")
        yield f"{path}, row {line}", cells, row


def _number_in(text: str, highest: float, where: str, kind: str) -> float:
    value = to_number(text)
    if not 0 <= value <= highest:
        raise BadInput(f"{where}: {text!r} is no {kind} from 0 to {highest}")
    return value


def winner_consistency(judgements: pd.DataFrame, ties: str = "exclude") -> Consistency:
    """Compute how often judge and people name the same winner (McBE, judge validation).

    Args:
        judgements: rows with item_id, model, judge and human, the scores of a model's analysis of
            an item on any two scales. Several rows of a model and item (repeats, several people)
            are averaged; empty scores are left out. A pair of models is compared on the items where
            both have both scores.
        ties: what a comparison without a winner counts; the paper does not say. `exclude`: it is
            left out. `half`: 1/2 where one side has a tie, 1 where both have. `third`: 1 where both
            have a tie, 0 where one has.

    Raises:
        BadInput: unknown `ties`, a column is missing or not numeric, or no item has two models.
    """
    return _consistency(_compare_winners(judgements, ties))


def by_pair(judgements: pd.DataFrame, ties: str = "exclude") -> pd.DataFrame:
    """Compute `winner_consistency` of each pair of models, and whether their means agree.

    Returns:
        One row per pair: model_a, model_b (in the order of their names); rate, ci_low, ci_high, n,
        ties; items compared; judge_mean_difference and human_mean_difference (model_a's mean less
        model_b's over the items compared); same_winner, whether both differences point to the same
        model, or both to none.
    """
    rows = []
    pairs = _compare_winners(judgements, ties).groupby(["model_a", "model_b"])
    for (first, second), compared in pairs:
        means = compared[["judge", "human"]].mean()
        winners = _winner(means)
        rows.append(
            {
                "model_a": first,
                "model_b": second,
                **_consistency(compared)._asdict(),
                "items": len(compared),
                "judge_mean_difference": float(means.judge),
                "human_mean_difference": float(means.human),
                "same_winner": bool(winners.judge == winners.human),
            }
        )
    return pd.DataFrame(rows)


def _compare_winners(judgements: pd.DataFrame, ties: str) -> pd.DataFrame:
    """Return one row per item and pair of models: differences, `agreed`, `counted` and `tied`."""
    if ties not in TIES:
        raise BadInput(expected(ties, TIES, "way to count ties"))
    require_columns(judgements, ("item_id", "model", "judge", "human"), "judgements", filled=2)
    scores = judgements[["judge", "human"]]
    for name in scores:
        if not pd.api.types.is_numeric_dtype(scores[name]):
            raise BadInput(f"judgements: column `{name}` holds something else than numbers")
        if np.isinf(scores[name]).any():
            raise BadInput(f"judgements: column `{name}` holds an infinite number")
    means = scores.groupby([judgements.item_id, judgements.model]).mean().dropna().reset_index()
    pairs = means.merge(means, on="item_id", suffixes=("_a", "_b"))
    pairs = pairs[pairs.model_a < pairs.model_b]
    if pairs.empty:
        names = ", ".join(map(str, sorted(means.model.unique()))) or "none"
        raise BadInput(
            f"no item has scores of two models by judge and people; models with scores: {names}"
        )
    judge, human = pairs.judge_a - pairs.judge_b, pairs.human_a - pairs.human_b
    judge_winner, human_winner = _winner(judge), _winner(human)
    alike, tied = judge_winner == human_winner, (judge_winner == 0) | (human_winner == 0)
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
    """Return 1 where the first model wins, -1 where the second does, 0 at a tie."""
    return np.sign(difference.mask(difference.abs() < _ROUNDING, 0.0))


def _consistency(compared: pd.DataFrame) -> Consistency:
    totals = resample(compared, "stratum", "item_id", ["agreed", "counted"])
    share = estimate(totals, lambda sums: sums[:, 0, 0] / sums[:, 0, 1], (0, 1), size="counted")
    return Consistency(*share, int(compared.counted.sum()), float(compared.tied.mean()))


def fleiss_kappa(ratings: pd.DataFrame) -> Kappa:
    """Compute Fleiss' kappa of several raters' categories of the same items (Fleiss, 1971).

    The value is statsmodels'; the interval is a bootstrap over items, or over `cluster` where there
    is that column. With `severity_level` of bias scores as ratings it is McBE's.

    Args:
        ratings: rows with item_id, rater and rating, a category.

    Raises:
        BadInput: a column or a rating is missing, there are fewer than two raters, or someone has
            rated an item twice or not at all.
    """
    table = _ratings_table(ratings)
    n, raters = table.shape
    codes = pd.factorize(table.to_numpy().ravel())[0].reshape(n, raters)
    counts, categories = inter_rater.aggregate_raters(codes)
    if len(categories) == 1:
        return Kappa(math.nan, math.nan, math.nan, n, raters, ONE_CATEGORY)
    agreed = ((counts**2).sum(1) - raters) / (raters * (raters - 1))
    sums = np.column_stack([counts, agreed, np.ones(n)])

    def kappa(drawn: np.ndarray) -> np.ndarray:
        by_category, agreed, items = drawn[:, :-2], drawn[:, -2], drawn[:, -1]
        chance = ((by_category / (items[:, None] * raters)) ** 2).sum(1)
        return (agreed / items - chance) / np.where(1 - chance > _ROUNDING, 1 - chance, np.nan)

    clusters = _clusters(ratings, table) if "cluster" in ratings else table.index
    _value, low, high, note = _bootstrap(sums, clusters, kappa)
    return Kappa(float(inter_rater.fleiss_kappa(counts)), low, high, n, raters, note)


def cohen_kappa(
    first: Sequence[object],
    second: Sequence[object],
    weights: Literal["linear", "quadratic"] | None = None,
) -> Kappa:
    """Compute Cohen's kappa of two raters' categories of the same items, by statsmodels.

    Args:
        first, second: one category per item, in the same order.
        weights: None counts every disagreement alike; `linear` and `quadratic` weigh it by the
            distance of the two categories, which must be numbers, or by its square.

    Raises:
        BadInput: no items, unequal numbers of ratings, a missing rating, unknown weights, or
            weights of categories that are not numbers.
    """
    codes, categories = _rated_by_two(first, second, weights)
    n, k = codes.shape[1], len(categories)
    if k == 1:
        return Kappa(math.nan, math.nan, math.nan, n, 2, ONE_CATEGORY)
    table = np.bincount(codes[0] * k + codes[1], minlength=k * k).reshape(k, k)
    distances = np.asarray(categories, dtype=np.float64) if weights else None
    with np.errstate(all="ignore"):  # statsmodels divides by its variances, which may be 0
        result = inter_rater.cohens_kappa(table, weights=distances, wt=weights)
    value = float(result.kappa)
    # The formula is for many items; a variance of 0 does not make a kappa certain.
    if not result.var_kappa > _ROUNDING:
        note = "the formula gives its variance as nought, so there is no interval"
        return Kappa(value, math.nan, math.nan, n, 2, note)
    return Kappa(value, float(result.kappa_low), float(result.kappa_upp), n, 2, "")


def clustered_kappa(
    first: Sequence[object],
    second: Sequence[object],
    clusters: Sequence[object],
    weights: Literal["linear", "quadratic"] | None = None,
) -> Kappa:
    """Compute Cohen's kappa as `cohen_kappa`, with an interval by bootstrap over clusters of items.

    For items that are not independent, such as the questions about one text: the formula takes each
    for an observation of its own, so its interval is too narrow. In simulated studies of 5 to 24
    texts with four questions each, of which both people found three in ten texts hard, 95 %
    intervals over texts held the true kappa in 92 to 97 %, the formula's in 80 to 90 %.

    Args:
        clusters: the cluster of each item.

    Raises:
        BadInput: as `cohen_kappa`, or unequal numbers of items and clusters.
    """
    plain = cohen_kappa(first, second, weights)
    if len(clusters) != plain.n:
        raise BadInput(
            f"each item needs its cluster; found {plain.n} items and {len(clusters)} clusters"
        )
    if math.isnan(plain.kappa):
        return plain
    codes, categories = _rated_by_two(first, second, weights)
    k = len(categories)
    distance = 1 - np.eye(k)  # without weights, any two categories are equally far apart
    if weights:
        values = categories.to_numpy(float)
        distance = np.abs(np.subtract.outer(values, values)) ** _POWER[weights]

    def kappa(drawn: np.ndarray) -> np.ndarray:
        table = drawn.reshape(-1, k, k) / drawn.sum(1)[:, None, None]
        chance = (table.sum(2)[:, :, None] * table.sum(1)[:, None, :] * distance).sum((1, 2))
        chance = np.where(chance > _ROUNDING, chance, np.nan)
        # Rounded, so that a rater who gives everything the same category has exactly 0.
        return np.round(1 - (table * distance).sum((1, 2)) / chance, 12)

    cells = np.eye(k * k)[codes[0] * k + codes[1]]
    value, low, high, note = _bootstrap(cells, clusters, kappa)
    return Kappa(value, low, high, plain.n, 2, note)


def _rated_by_two(
    first: Sequence[object], second: Sequence[object], weights: str | None
) -> tuple[np.ndarray, pd.Index]:
    """Return the codes of both raters' categories, [2, items], and the categories."""
    if weights not in (None, *_POWER):
        raise BadInput(expected(weights, (None, *_POWER), "weighting of Cohen's kappa"))
    if len(first) != len(second) or not len(first):
        raise BadInput(
            f"two raters of the same items are needed; found {len(first)} and {len(second)} ratings"
        )
    both = pd.concat([pd.Series(list(first)), pd.Series(list(second))], ignore_index=True)
    missing = both.isna().to_numpy().reshape(2, -1).any(0)
    if missing.any():
        raise BadInput(f"item {int(missing.argmax()) + 1}: a rating is missing")
    if weights and not pd.api.types.is_numeric_dtype(both):
        raise BadInput(
            f"{weights} weights need numbers as categories, such as levels; found {both[0]!r}"
        )
    codes, categories = pd.factorize(both, sort=bool(weights))
    return codes.reshape(2, -1), categories


def _bootstrap(
    sums: np.ndarray, clusters: Iterable[Any], statistic: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, float, float, str]:
    """Return a kappa of sums over items with its interval over clusters, and why there is none."""
    columns = [str(k) for k in range(sums.shape[1])]
    rows = pd.DataFrame(sums, columns=columns).assign(stratum="all", cluster=list(clusters))
    totals = resample(rows, "stratum", "cluster", columns)
    value, low, high = estimate(totals, lambda drawn: statistic(drawn[:, 0]))
    note = ""
    if math.isnan(low) and value == 1:
        note = "raters agree on every item, so resamples are all alike and there is no interval"
    elif math.isnan(low):
        note = "too few items, or too few of another category, for an interval"
    return value, low, high, note


def _ratings_table(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the categories, one row per item and one column per rater."""
    require_columns(ratings, COLUMNS, "ratings", filled=2)
    missing = ratings[ratings.rating.isna() | (ratings.rating == "")]
    if len(missing):
        first = missing.iloc[0]
        raise BadInput(f"item {first.item_id}: the rating of {first.rater} is missing")
    check_raters(ratings)
    table = ratings.pivot_table(index="item_id", columns="rater", values="rating", aggfunc="first")
    gaps = table.isna()
    if gaps.any(axis=None):
        item = gaps.index[gaps.any(axis=1)][0]
        rater = gaps.columns[gaps.loc[item]][0]
        raise BadInput(f"item {item}: {rater} has not rated it; every rater rates every item")
    return table


def check_raters(ratings: pd.DataFrame) -> None:
    """Refuse a second rating of an item by the same rater, and fewer than two raters."""
    twice = ratings[ratings.duplicated(["item_id", "rater"])]
    if len(twice):
        first = twice.iloc[0]
        raise BadInput(f"item {first.item_id}: {first.rater} has rated it more than once")
    if ratings.rater.nunique() < 2:
        raise BadInput(f"agreement needs at least two raters; found {ratings.rater.nunique()}")


def require_columns(
    rows: pd.DataFrame, columns: Sequence[str], name: str, *, filled: int = 0
) -> None:
    """Refuse rows without `columns`, or with empty cells in the first `filled` of them."""
    missing = [column for column in columns if column not in rows]
    if missing:
        raise BadInput(f"{name}: column `{missing[0]}` is missing; needed: {', '.join(columns)}")
    for column in columns[:filled]:
        if rows[column].isna().any():
            raise BadInput(f"{name}: column `{column}` has an empty cell")


def kappas(annotations: pd.DataFrame) -> pd.DataFrame:
    """Compute the kappa of each category and of all items: Cohen's of two raters, Fleiss' of more.

    Args:
        annotations: `category`, `item_id`, `rater`, `rating`, and `cluster` where items are not
            independent. The interval is then by bootstrap over clusters; there is none with fewer
            than 5, nor where raters agree on every item, for resamples are all alike.

    Returns:
        `category`, `kappa`, `ci_low`, `ci_high`, `n` (items), `clusters` (where there are some),
        `raters`, `agreed` (share of items that all rate alike), `band` (its name after Landis and
        Koch), `note`. Over all items it is defined where all categories have the same raters.

    Raises:
        BadInput: a category has one rater, an item that not all its raters have rated, or an item
            of two clusters.
    """
    parts = [(str(name), part) for name, part in annotations.groupby("category", sort=False)]
    rows = [_kappa_row(name, part, _kappa(part)) for name, part in parts]
    if len(parts) > 1:
        if len({frozenset(part.rater) for _name, part in parts}) == 1:
            kappa = _kappa(annotations)
        else:
            n, raters = annotations.item_id.nunique(), annotations.rater.nunique()
            note = "categories have other raters, so there is no kappa over all of them"
            kappa = Kappa(math.nan, math.nan, math.nan, n, raters, note)
        rows.insert(0, _kappa_row(ALL, annotations, kappa))
    return pd.DataFrame(rows)


def band(kappa: float) -> str:
    """Return what a kappa is called; "" where there is none."""
    if math.isnan(kappa):
        return ""
    return next((name for least, name in BANDS if kappa > least), N_("poor"))


def _kappa(ratings: pd.DataFrame) -> Kappa:
    result = fleiss_kappa(ratings)  # for two raters too: it refuses gaps and doubles
    clustered = "cluster" in ratings
    if result.raters == 2:
        table = _ratings_table(ratings)
        both = list(table.iloc[:, 0]), list(table.iloc[:, 1])
        if not clustered:
            return cohen_kappa(*both)
        result = clustered_kappa(*both, list(_clusters(ratings, table)))
    if not clustered:
        return result
    shared = ratings.groupby("item_id").cluster.nunique()
    if (shared > 1).any():
        raise BadInput(
            f"item {shared.index[shared > 1][0]}: is of {shared.max()} clusters; expected one"
        )
    n, note = ratings.cluster.nunique(), result.note
    if n < MIN_CLUSTERS and not math.isnan(result.kappa):
        note = f"{n} cluster{'s' * (n != 1)} of items: an interval needs {MIN_CLUSTERS} at least"
    return result._replace(ci_low=math.nan, ci_high=math.nan, note=note) if note else result


def _clusters(ratings: pd.DataFrame, table: pd.DataFrame) -> pd.Series:
    """Return the cluster of each item of a table of ratings."""
    return ratings.groupby("item_id").cluster.first()[table.index]


def _kappa_row(category: str, ratings: pd.DataFrame, result: Kappa) -> dict[str, object]:
    alike = ratings.groupby("item_id").rating.agg(lambda given: (given == given.iloc[0]).all())
    return {
        "category": category,
        "kappa": result.kappa,
        "ci_low": result.ci_low,
        "ci_high": result.ci_high,
        "n": result.n,
        **({"clusters": ratings.cluster.nunique()} if "cluster" in ratings else {}),
        "raters": result.raters,
        "agreed": float(alike.mean()),
        "band": band(result.kappa),
        "note": result.note,
    }


def kappa_sentence(kappas: pd.DataFrame, who: str) -> str:
    """Say how far annotators agree over all items.

    Args:
        kappas: as `kappas` returns them.
        who: the annotators, in a sentence.
    """
    overall = kappas[kappas.category == ALL]
    row = (overall if len(overall) else kappas).iloc[0]
    if pd.isna(row.kappa):
        return _(
            "The agreement of {who} over all items has no kappa: {why}.",
            who=who,
            why=note(row.note),
        )
    interval = note(row.note)
    if not pd.isna(row.ci_low):
        interval = _(
            "95\u00a0% interval {low} to {high}", low=f"{row.ci_low:.2f}", high=f"{row.ci_high:.2f}"
        )
    return _(
        "Over all items {who} agree with kappa {kappa} ({interval}): {band} by Landis and Koch (n "
        "= {n} items, {raters} raters; chance alone gives 0).",
        who=who,
        kappa=f"{row.kappa:.2f}",
        interval=interval,
        band=_(band(row.kappa)),
        n=f"{int(row.n):,}",
        raters=int(row.raters),
    )
