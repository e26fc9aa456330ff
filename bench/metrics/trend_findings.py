"""What a trend over size says, in sentences made by rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.metrics.bootstrap import LEVEL
from bench.metrics.findings import LOW_VALIDITY, listing
from bench.metrics.table import ALL, Headline

# A change of this much in the share of readable answers, or in the preference for a position, is told beside a trend.
TOLD = 0.1
# Scores that differ by less are the same number computed in two ways.
NOISE = 1e-9
POSITIONS = {
    "position_bias": "the share of pairs answered by position",
    "first_option": "the share of the first option",
}


def findings(trends: pd.DataFrame, points: pd.DataFrame, headlines: Sequence[Headline]) -> pd.DataFrame:
    """A `sentence` a series and headline, over all categories.

    Args:
        trends: of `bench.metrics.trend.trends`.
        points: of `bench.analyses.sizes.points`.
    """
    rows = []
    for headline in headlines:
        here = (trends.category == ALL) & (trends.task == headline.task) & (trends.metric == headline.metric)
        for row in trends[here].to_dict("records"):
            same = (
                (points.series == row["series"]) & (points.category == ALL) & (points.task == headline.task)
            )
            some = points[same & (points.metric == headline.metric)].sort_values("billions")
            title = title_of(headline)
            told = f"{row['series']}, {title}: {_changed(row, headline)}{_beside(some, row, headline)}"
            rows.append({**row, "title": title, "sentence": told})
    # What was shown comes first.
    rows.sort(key=lambda row: not shown(row))
    return pd.DataFrame(rows, columns=[*trends.columns, "title", "sentence"])


def title_of(headline: Headline) -> str:
    """What a headline measures, in one phrase, without what its ends mean."""
    return headline.title.partition(" (")[0].replace(": ", ", ")


def shown(row: Mapping[Any, Any]) -> bool:
    """Whether a trend was shown: at 5 % in all comparisons of its table, and no interval that reaches to 0."""
    apart = row["ci_low"] > NOISE or row["ci_high"] < -NOISE
    return bool(apart and row["p_holm"] < 1 - LEVEL)


def amount(headline: Headline, value: float, signed: bool = False) -> str:
    """A change of a score, in points of 100 (shares too)."""
    points = value * (100 if headline.limits[1] <= 1 else 1)
    return f"{points:+.1f}" if signed else f"{abs(points):.1f}"


def _changed(row: Mapping[Any, Any], headline: Headline) -> str:
    value, low, high, p = (float(row[name]) for name in ("per_doubling", "ci_low", "ci_high", "p_holm"))
    note = f" Note: {row['note']}." if row["note"] else ""
    if np.isnan(value):
        return f"nothing can be said.{note}"
    sizes = f"{row['sizes']} sizes, {row['span']}"
    if abs(value) < NOISE and high - low < NOISE:
        return f"the same at every size, and in every resample ({sizes})."
    around = (
        f"95\u00a0% interval {amount(headline, low, True)} to {amount(headline, high, True)}"
        if not np.isnan(low)
        else "no interval"
    )
    by = f"{amount(headline, value, True)} points of 100 a doubling ({around}; {_p(p)}; {sizes})"
    if shown(row):
        better = "worse" if (value > 0) == headline.biased_is_high else "better"
        return f"{'rises' if value > 0 else 'falls'} with size ({better}), {by}.{note}"
    detectable = float(row["detectable"])
    seen = f" These data would have shown one of {amount(headline, detectable)}." if detectable > 0 else ""
    return f"no change with size could be shown, {by}.{seen}{note}"


def _beside(some: pd.DataFrame, row: Mapping[Any, Any], headline: Headline) -> str:
    """What else changes with size, and could be all that the trend is."""
    if len(some) < 2:
        return ""
    first, last, told = some.iloc[0], some.iloc[-1], []
    if abs(last.valid_rate - first.valid_rate) >= TOLD or some.valid_rate.min() < LOW_VALIDITY:
        told.append(
            f" Readable answers go from {first.valid_rate:.0%} to {last.valid_rate:.0%}, so the sizes are not scored alike."
        )
    if abs(last.position - first.position) >= TOLD:
        what = POSITIONS["position_bias" if headline.task == "ss" else "first_option"]
        told.append(f" Beside it, {what} goes from {first.position:.2f} to {last.position:.2f}.")
        if headline.task == "ss" and first.position > last.position and float(row["per_doubling"]) < 0:
            told.append(
                " Who answers by position chooses every group equally often, so the smaller models' higher scores can be chance, not fairness."
            )
    near = some[(some.ci_low <= some.baseline) & (some.baseline <= some.ci_high)]
    if len(near):
        told.append(f" {listing(list(near.model))} cannot be told from {headline.baseline}.")
    return "".join(told)


def _p(p: float) -> str:
    if np.isnan(p):
        return "no p value"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
