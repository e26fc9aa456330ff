"""Do two wordings of the same questions give the same scores: correlation, ranks, and how far single scores move.

A correlation over categories and models says whether the order stays; it is high wherever models differ much, whatever the
wording does. So the differences themselves stand beside it (Bland and Altman, Lancet 1986), each paired on its answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.core.i18n import N_
from bench.metrics.bootstrap import Replicates, Sample, pooled
from bench.metrics.correlation import (
    COEFFICIENTS,
    NOISE,
    by_group,
    correlations,
    reliability,
    with_interval,
)
from bench.metrics.significance import Comparison, compare_resamples
from bench.metrics.table import ALL, Card, Headline

# Nineteen of twenty differences lie within so many standard deviations of their mean, where they are spread normally.
LIMITS = 1.96
# A headline, in the columns of points.
HEADLINE = ["task", "metric"]
SHOWN = [
    *HEADLINE,
    "first",
    "second",
    "difference",
    "ci_low",
    "ci_high",
    "p",
    "detectable",
    "n",
    "same",
    "valid_first",
    "valid_second",
    "note",
]
NAMES = ("the score under the first wording", "the score under the second wording")
CARDS = (
    Card(
        "difference",
        "the score under the second wording less that under the first, on the answers that both have; the interval draws templates or instances again, the same for both",
        "s_2 - s_1",
        "Efron and Tibshirani, 1993, chapter 13",
        "the score's",
        "0",
    ),
    Card(
        "same",
        "share of questions that were answered alike: both replies could be read, and as the same",
        "alike / all",
        "ours",
        "0 to 1",
        "1",
    ),
    Card(
        "detectable",
        "the difference that these data would show in four of five samples",
        "(t_.975 + t_.80) x standard error",
        "ours",
        "0 or more",
        "small",
    ),
    Card(
        "spearman, pearson, kendall, pooled",
        "correlation of the two scores over all categories and models at once",
        "rho, r, tau-b",
        "scipy; the McBE paper's Table 12 has the first two",
        "-1 to 1",
        "1; models that differ much raise it, whatever the wording does",
    ),
    Card(
        "ci_low, ci_high",
        "of a correlation: its interval over other items of the same kind, with the same categories and models",
        "resamples",
        "Efron and Tibshirani, 1993, chapter 13",
        "-1 to 1",
        "-",
    ),
    Card(
        "ceiling",
        "what a correlation can reach where scores are no surer than these: the chance of items alone keeps it below 1",
        "sqrt(r_1 r_2), r = 1 - mean squared standard error / variance",
        "Spearman, American Journal of Psychology 15, 1904",
        "0 to 1",
        "1",
    ),
    Card(
        "within_category",
        "mean over categories of the coefficient over models: whether a category's order of models stays",
        "mean of rho, r, tau-b",
        "ours",
        "-1 to 1",
        "1",
    ),
    Card(
        "limits_low, limits_high",
        "between these nineteen of twenty differences of single categories lie: the limits of agreement",
        "mean - 1.96 sd to mean + 1.96 sd",
        "Bland and Altman, Lancet 1986",
        "the score's",
        "0 to 0",
    ),
    Card(
        "beyond_chance",
        "differences of single categories whose interval excludes 0; were there no effect, one of twenty would",
        "count",
        "ours",
        "0 to n",
        "n / 20",
    ),
)


class Points(NamedTuple):
    """Scores under two wordings.

    Attributes:
        table: a row a model, category (`all` for the whole) and headline: `model`, `category`, `task`, `metric`, `title`,
            `higher` (what a higher score means), `first`, `second`, `difference` (second less first), `ci_low`, `ci_high`, `p`, `detectable`, `n` (answers of each
            wording), `same` (share of them that were read as the same), `valid_first`, `valid_second`, `note`.
        values: of each row, by its number, both scores, observed and resampled: float64 [1 + draws] each.
        samples: of each row, by its number, what it rests on.
    """

    table: pd.DataFrame
    values: Mapping[int, tuple[np.ndarray, np.ndarray]]
    samples: Mapping[int, Sample] = MappingProxyType({})


def points(
    pairs: Mapping[str, tuple[Replicates, Replicates, pd.DataFrame]], headlines: Sequence[Headline]
) -> Points:
    """The scores of several models under two wordings, and their differences.

    Args:
        pairs: by model, its scores observed and resampled under the first and the second wording, of the same answers; and
            a frame with the index (category, task) and columns `n`, `same`, `valid_first`, `valid_second`.
        headlines: what to compare.
    """
    rows: list[dict[str, object]] = []
    values, samples = {}, {}
    for model, (first, second, answered) in pairs.items():
        for headline in headlines:
            places = [
                key
                for key in first
                if key[1:] == (headline.task, headline.metric) and key in second
            ]
            for category, task, metric in places:
                one, other = first[category, task, metric], second[category, task, metric]
                with np.errstate(invalid="ignore"):
                    less = other - one
                rests_on = min(one.samples[category, task, metric] for one in (first, second))
                length = headline.limits[1] - headline.limits[0]
                found = compare_resamples(less, rests_on, length)
                some = answered[_within(answered, category, task)]
                values[len(rows)], samples[len(rows)] = (one, other), rests_on
                rows.append(
                    {
                        "model": model,
                        "category": category,
                        "task": task,
                        "metric": metric,
                        "title": headline.title,
                        "higher": higher(headline),
                        "first": one[0],
                        "second": other[0],
                        "difference": found.difference,
                        "ci_low": found.ci_low,
                        "ci_high": found.ci_high,
                        "p": found.p,
                        "detectable": found.detectable,
                        "n": int(some.n.sum()),
                        "same": _mean(some.same, some.n),
                        "valid_first": _mean(some.valid_first, some.n),
                        "valid_second": _mean(some.valid_second, some.n),
                        "note": _note(one[0], other[0], found.ci_low),
                    }
                )
    return Points(pd.DataFrame(rows), values, samples)


def higher(headline: Headline) -> str:
    """What a higher score means."""
    if headline.biased_is_high:
        return headline.worse
    return N_("less bias") if headline.worse == "more bias" else N_("better")


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """The differences of whole scores, for reading."""
    return table.loc[table.category == ALL, ["model", *SHOWN]].reset_index(drop=True)


def single(table: pd.DataFrame) -> pd.DataFrame:
    """The differences of single categories, for reading."""
    return table.loc[table.category != ALL, ["model", "category", *SHOWN]].reset_index(drop=True)


def correlated(found: Points) -> pd.DataFrame:
    """How scores of single categories go together under both wordings.

    Returns:
        A row a headline and coefficient: `value`, `ci_low`, `ci_high`, `p`, `n`, `reason` of all points pooled (see
        `bench.metrics.correlation`); `reliability_first`, `reliability_second` and their geometric mean,
        the `ceiling`, above which scores of these items correlate by chance alone; and of the coefficients within each category, `within_category` (their mean), `lowest`,
        `highest`, and in how many of all categories there is one: `defined`, `categories`.
    """
    every = found.table[found.table.category != ALL]
    pooled = pd.DataFrame(
        [
            dict(zip(HEADLINE, keys, strict=True)) | one
            for keys, some in every.groupby(HEADLINE, sort=False)
            for one in _pooled(found, some)
        ]
    )
    inside = by_group(every, [*HEADLINE, "category"], "first", "second", NAMES)
    each = inside.groupby([*HEADLINE, "coefficient"], sort=False).value.agg(
        within_category="mean", lowest="min", highest="max", defined="count", categories="size"
    )
    return pooled.merge(each.reset_index(), on=[*HEADLINE, "coefficient"], how="left")


def _pooled(found: Points, some: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Correlate all points of a headline, with intervals and reliability where there are resamples."""
    every = correlations(some["first"].to_numpy(float), some.second.to_numpy(float), NAMES)
    if set(some.index) <= set(found.values):
        first, second = (np.array([found.values[k][side] for k in some.index]) for side in (0, 1))
        freedom = _rests_on(found, some).freedom
        every = [with_interval(one, first, second, freedom) for one in every]
        reliable = {
            "reliability_first": reliability(first),
            "reliability_second": reliability(second),
        }
    else:
        reliable = {"reliability_first": np.nan, "reliability_second": np.nan}
    ceiling = float(np.sqrt(reliable["reliability_first"] * reliable["reliability_second"]))
    for one in every:
        yield {**one._asdict(), **reliable, "ceiling": ceiling}


def limits(found: Points) -> pd.DataFrame:
    """How far scores of single categories move (Bland and Altman).

    Returns:
        A row a headline: `title`, `n`, `mean` difference with `ci_low`, `ci_high` (of the same draws for all models), `sd`,
        `limits_low`, `limits_high`, `most` (the largest distance), `beyond_chance`, and `of`, those with an interval.
    """
    rows = []
    kept = found.table[found.table.category != ALL]
    for (task, metric), every in kept.groupby(HEADLINE, sort=False):
        some = every[every.difference.notna()]
        mean, sd = some.difference.mean(), some.difference.std(ddof=1)
        around = _mean_difference(found, some)
        known = some[some.ci_low.notna()] if "ci_low" in some else some[:0]
        beyond = (
            (known.ci_low > NOISE) | (known.ci_high < -NOISE)
            if len(known)
            else known.difference > 0
        )
        rows.append(
            {
                "task": task,
                "metric": metric,
                "title": every.title.iloc[0],
                "n": len(some),
                "mean": mean,
                "ci_low": around.ci_low,
                "ci_high": around.ci_high,
                "sd": sd,
                "limits_low": mean - LIMITS * sd,
                "limits_high": mean + LIMITS * sd,
                "most": some.difference.abs().max(),
                "beyond_chance": int(beyond.sum()),
                "of": len(known),
            }
        )
    return pd.DataFrame(rows)


def rank_changes(table: pd.DataFrame, headlines: Sequence[Headline]) -> pd.DataFrame:
    """The place of each model under both wordings, 1 for least bias; ties share the mean of their ranks.

    Returns:
        A row a headline and model: `title`, `model`, `first`, `second` (scores over all categories), `rank_first`,
        `rank_second`, `change`; models without a score under one of them are not ranked.
    """
    parts = []
    for headline in headlines:
        some = table[
            (table.task == headline.task)
            & (table.metric == headline.metric)
            & (table.category == ALL)
        ]
        some = some[some.difference.notna()][
            [*HEADLINE, "title", "model", "first", "second"]
        ].copy()
        for name in ("first", "second"):
            some[f"rank_{name}"] = some[name].round(9).rank(ascending=headline.biased_is_high)
        some["change"] = some.rank_second - some.rank_first
        parts.append(some)
    return pd.concat(parts, ignore_index=True)


def same_order(table: pd.DataFrame) -> pd.DataFrame:
    """In how many categories all models stand in the same order under both wordings: `task`, `metric`, `same`, `categories`.

    Categories with fewer than two models do not count.
    """
    rows = []
    for (task, metric), some in table[table.category != ALL].groupby(HEADLINE, sort=False):
        kept = some[some.difference.notna()]
        each = [part for _unused, part in kept.groupby("category", sort=False) if len(part) > 1]
        same = [
            (part["first"].round(9).rank() == part["second"].round(9).rank()).all() for part in each
        ]
        rows.append(
            {"task": task, "metric": metric, "same": int(sum(same)), "categories": len(each)}
        )
    return pd.DataFrame(rows)


def wide(found: pd.DataFrame) -> pd.DataFrame:
    """`correlated` for reading: a row a headline and coefficient, what is undefined with its reason."""
    names = {"value": "pooled", "lowest": "lowest_within", "highest": "highest_within"}
    columns = [
        "task",
        "metric",
        "coefficient",
        "pooled",
        "ci_low",
        "ci_high",
        "p",
        "n",
        "ceiling",
        "within_category",
        "lowest_within",
        "highest_within",
        "defined",
        "categories",
        "reason",
    ]
    order = {name: k for k, name in enumerate(COEFFICIENTS)}
    shown = found.rename(columns=names)[columns]
    return shown.sort_values(
        "coefficient", key=lambda some: some.map(order), kind="stable", ignore_index=True
    )


def _mean_difference(found: Points, some: pd.DataFrame) -> Comparison:
    """Test the mean of differences of categories and models; models were asked the same items."""
    if not set(some.index) <= set(found.values) or some.empty:
        return compare_resamples(np.array([np.nan]), Sample(0, 0))
    values = np.mean(
        [second - first for first, second in (found.values[k] for k in some.index)], axis=0
    )
    return compare_resamples(values, _rests_on(found, some))


def _rests_on(found: Points, some: pd.DataFrame) -> Sample:
    """Count what rows rest on together; models were asked the same items."""
    return pooled(list({some.category[k]: found.samples[k] for k in some.index}.values()))


def _within(answered: pd.DataFrame, category: str, task: str) -> np.ndarray:
    categories, tasks = (answered.index.get_level_values(k) for k in (0, 1))
    here = np.full(len(answered), True)
    if category != ALL:
        here &= categories == category
    if task != ALL:
        here &= tasks == task
    return here


def _mean(values: pd.Series, weights: pd.Series) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() else np.nan


def _note(first: float, second: float, low: float) -> str:
    lost = [name for name, value in (("first", first), ("second", second)) if value != value]
    if lost:
        return f"no score under the {' and the '.join(lost)} wording"
    return "no interval: too few items" if low != low else ""
