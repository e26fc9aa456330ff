"""Do two prompt sets give the same scores: correlation, ranks, and how far single scores move.

A correlation over categories and models says whether the order stays; it is high wherever models
differ much, whatever the prompts do. So the paired differences are shown next to it (Bland and
Altman, Lancet 1986).
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

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
from bench.metrics.table import ALL, Headline

# Nineteen of twenty normal differences are within so many standard deviations of their mean.
LIMITS = 1.96
HEADLINE = ["task", "metric"]
TESTED = ["difference", "ci_low", "ci_high", "p", "detectable"]
SHARES = ["same", "valid_first", "valid_second"]
SHOWN = [*HEADLINE, "first", "second", *TESTED, "n", *SHARES, "note"]
NAMES = ("the score under the first wording", "the score under the second wording")


class Points(NamedTuple):
    """Scores under two prompt sets.

    Attributes:
        table: one row per model, category (or `all`) and headline: `title`, `higher` (what a higher
            score means), `first`, `second`, `difference` (second less first) with `ci_low`,
            `ci_high`, `p` and `detectable`, `n` (answers of each), `same` (the share that was read
            alike), `valid_first`, `valid_second`, `note`.
        values: of each row, by its number, both scores: float64 [1 + draws], observed first.
        samples: of each row, by its number, what it rests on.
    """

    table: pd.DataFrame
    values: Mapping[int, tuple[np.ndarray, np.ndarray]]
    samples: Mapping[int, Sample] = MappingProxyType({})


def points(
    pairs: Mapping[str, tuple[Replicates, Replicates, pd.DataFrame]], headlines: Sequence[Headline]
) -> Points:
    """Compare the scores of several models under two prompt sets.

    Args:
        pairs: by model, its scores of the same answers under the first and the second; and a frame
            with the index (category, task) and columns `n`, `same`, `valid_first`, `valid_second`.
    """
    rows: list[dict[str, Any]] = []
    values, samples = {}, {}
    for model, (first, second, answered) in pairs.items():
        for headline in headlines:
            length = headline.limits[1] - headline.limits[0]
            score = (headline.task, headline.metric)
            for place in [key for key in first if key[1:] == score and key in second]:
                one, other = first[place], second[place]
                rests_on = min(first.samples[place], second.samples[place])
                with np.errstate(invalid="ignore"):
                    tested = compare_resamples(other - one, rests_on, length)
                own = answered[
                    [
                        place[0] in (ALL, category) and place[1] in (ALL, task)
                        for category, task in answered.index
                    ]
                ]
                n = int(own.n.sum())
                values[len(rows)], samples[len(rows)] = (one, other), rests_on
                rows.append(
                    {
                        **dict(zip(["model", "category", *HEADLINE], (model, *place), strict=True)),
                        "title": headline.title,
                        "higher": higher(headline),
                        "first": one[0],
                        "second": other[0],
                        **{name: getattr(tested, name) for name in TESTED},
                        "n": n,
                        **{
                            name: float(np.average(own[name], weights=own.n)) if n else np.nan
                            for name in SHARES
                        },
                        "note": _note(one[0], other[0], tested.ci_low),
                    }
                )
    return Points(pd.DataFrame(rows), values, samples)


def higher(headline: Headline) -> str:
    """Say what a higher score means."""
    if headline.biased_is_high:
        return headline.worse
    return N_("less bias") if headline.worse == "more bias" else N_("better")


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of scores over all categories, for reading."""
    return table.loc[table.category == ALL, ["model", *SHOWN]].reset_index(drop=True)


def by_category(table: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of single categories, for reading."""
    return table.loc[table.category != ALL, ["model", "category", *SHOWN]].reset_index(drop=True)


def correlate(found: Points) -> pd.DataFrame:
    """Correlate scores of single categories under both prompt sets.

    Returns:
        One row per headline and coefficient: `value`, `ci_low`, `ci_high`, `p`, `n` and `reason`
        over all points; `reliability_first`, `reliability_second` and their geometric mean, the
        `ceiling`, which chance of items keeps a correlation below; and of the coefficients within
        each category their mean (`within_category`), `lowest`, `highest`, and in how many of all
        `categories` there is one (`defined`).
    """
    every = found.table[found.table.category != ALL]
    over_all = pd.DataFrame(
        [
            dict(zip(HEADLINE, keys, strict=True)) | row
            for keys, rows in every.groupby(HEADLINE, sort=False)
            for row in _over_all(found, rows)
        ]
    )
    keys = [*HEADLINE, "coefficient"]
    each = by_group(every, [*HEADLINE, "category"], "first", "second", NAMES)
    within = each.groupby(keys, sort=False).value.agg(
        within_category="mean", lowest="min", highest="max", defined="count", categories="size"
    )
    return over_all.merge(within.reset_index(), on=keys, how="left")


def _over_all(found: Points, rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Correlate all points of a headline, with intervals and reliability if there are resamples."""
    every = correlations(rows["first"].to_numpy(float), rows.second.to_numpy(float), NAMES)
    reliable = [np.nan, np.nan]
    if set(rows.index) <= set(found.values):
        sides = [np.array([found.values[k][side] for k in rows.index]) for side in (0, 1)]
        freedom = _rests_on(found, rows).freedom
        every = [with_interval(one, sides[0], sides[1], freedom) for one in every]
        reliable = [reliability(side) for side in sides]
    for one in every:
        yield {
            **one._asdict(),
            "reliability_first": reliable[0],
            "reliability_second": reliable[1],
            "ceiling": float(np.sqrt(reliable[0] * reliable[1])),
        }


def correlation_table(correlated: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations of `correlate` for reading."""
    names = {"value": "pooled", "lowest": "lowest_within", "highest": "highest_within"}
    columns = [*HEADLINE, "coefficient", "pooled", "ci_low", "ci_high", "p", "n", "ceiling"]
    columns += ["within_category", "lowest_within", "highest_within", "defined", "categories"]
    order = {name: k for k, name in enumerate(COEFFICIENTS)}
    return correlated.rename(columns=names)[[*columns, "reason"]].sort_values(
        "coefficient", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def limits(found: Points) -> pd.DataFrame:
    """Say how far scores of single categories move (Bland and Altman).

    Returns:
        One row per headline: `title`, `n`, `mean` difference with its interval, `sd`, `limits_low`,
        `limits_high`, `most` (the largest distance), `beyond_chance`, and `of`, those with an
        interval.
    """
    rows = []
    every = found.table[found.table.category != ALL]
    for (task, metric), own in every.groupby(HEADLINE, sort=False):
        known = own[own.difference.notna()]
        mean, sd = known.difference.mean(), known.difference.std(ddof=1)
        tested = _mean_difference(found, known)
        # Published scores have no intervals.
        ends = known.reindex(columns=["ci_low", "ci_high"]).dropna()
        beyond = (ends.ci_low > NOISE) | (ends.ci_high < -NOISE)
        rows.append(
            {
                "task": task,
                "metric": metric,
                "title": own.title.iloc[0],
                "n": len(known),
                "mean": mean,
                "ci_low": tested.ci_low,
                "ci_high": tested.ci_high,
                "sd": sd,
                "limits_low": mean - LIMITS * sd,
                "limits_high": mean + LIMITS * sd,
                "most": known.difference.abs().max(),
                "beyond_chance": int(beyond.sum()),
                "of": len(ends),
            }
        )
    return pd.DataFrame(rows)


def rank_changes(table: pd.DataFrame, headlines: Sequence[Headline]) -> pd.DataFrame:
    """Rank models under both prompt sets, 1 for least bias; ties share the mean of their ranks.

    Returns:
        One row per headline and model with both scores: `title`, `model`, `first`, `second`,
        `rank_first`, `rank_second` and `change`.
    """
    whole = table[(table.category == ALL) & table.difference.notna()]
    parts = []
    for headline in headlines:
        own = whole[(whole.task == headline.task) & (whole.metric == headline.metric)]
        own = own[[*HEADLINE, "title", "model", "first", "second"]].copy()
        for name in ("first", "second"):
            own[f"rank_{name}"] = own[name].round(9).rank(ascending=headline.biased_is_high)
        parts.append(own.assign(change=own.rank_second - own.rank_first))
    return pd.concat(parts, ignore_index=True)


def same_order(table: pd.DataFrame) -> pd.DataFrame:
    """Count the categories in which all models have the same order under both prompt sets.

    Categories with fewer than two models do not count.
    """
    rows = []
    known = table[(table.category != ALL)]
    for (task, metric), own in known.groupby(HEADLINE, sort=False):
        every = [
            part for _name, part in own[own.difference.notna()].groupby("category") if len(part) > 1
        ]
        same = [
            (part["first"].round(9).rank() == part.second.round(9).rank()).all() for part in every
        ]
        rows.append((task, metric, int(sum(same)), len(every)))
    return pd.DataFrame(rows, columns=[*HEADLINE, "same", "categories"])


def _mean_difference(found: Points, rows: pd.DataFrame) -> Comparison:
    """Test the mean difference over categories and models, which were asked the same items."""
    if not set(rows.index) <= set(found.values) or rows.empty:
        return compare_resamples(np.array([np.nan]), Sample(0, 0))
    differences = [second - first for first, second in (found.values[k] for k in rows.index)]
    return compare_resamples(np.mean(differences, axis=0), _rests_on(found, rows))


def _rests_on(found: Points, rows: pd.DataFrame) -> Sample:
    """Return what rows rest on together; models were asked the same items."""
    return pooled(list({rows.category[k]: found.samples[k] for k in rows.index}.values()))


def _note(first: float, second: float, low: float) -> str:
    lost = [name for name, value in (("first", first), ("second", second)) if np.isnan(value)]
    if lost:
        return f"no score under the {' and the '.join(lost)} wording"
    return "no interval: too few items" if np.isnan(low) else ""
