"""What a trend over size says, in sentences made by rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.core import i18n
from bench.metrics.bootstrap import LEVEL
from bench.metrics.headline import LOW_VALIDITY, listing, short_title
from bench.metrics.significance import detectable_sentence, format_p
from bench.metrics.table import ALL, Headline

# A change of this much in the share of readable answers, or in the preference for a position, is told beside a trend.
TOLD = 0.1
# Scores that differ by less are the same number computed in two ways.
NOISE = 1e-9
POSITIONS = {
    "position_bias": i18n.N_("the share of pairs answered by position"),
    "first_option": i18n.N_("the share of the first option"),
}


def findings(
    trends: pd.DataFrame, points: pd.DataFrame, headlines: Sequence[Headline]
) -> pd.DataFrame:
    """A `sentence` a series and headline, over all categories.

    Args:
        trends: of `bench.metrics.trend.trends`.
        points: of `bench.analyses.sizes.points`.
    """
    rows = []
    for headline in headlines:
        here = (
            (trends.category == ALL)
            & (trends.task == headline.task)
            & (trends.metric == headline.metric)
        )
        for row in trends[here].to_dict("records"):
            same = (
                (points.series == row["series"])
                & (points.category == ALL)
                & (points.task == headline.task)
            )
            some = points[same & (points.metric == headline.metric)].sort_values("billions")
            title = title_of(headline)
            of = i18n._("{title}, {measure}", title=row["series"], measure=title)
            told = i18n.sentences([*_changed(row, headline), *_beside(some, row, headline)])
            rows.append(
                {
                    **row,
                    "title": title,
                    "sentence": i18n._("{title}: {sentence}", title=of, sentence=told),
                }
            )
    # What was shown comes first.
    rows.sort(key=lambda row: not shown(row))
    return pd.DataFrame(rows, columns=[*trends.columns, "title", "sentence"])


def title_of(headline: Headline) -> str:
    """What a headline measures, in one phrase, without what its ends mean."""
    return short_title(headline).replace(": ", ", ").replace("：", "，")


def shown(row: Mapping[Any, Any]) -> bool:
    """Whether a trend over models was shown: at 5 % in all comparisons of its table, and no interval that reaches to 0."""
    apart = row["ci_low"] > NOISE or row["ci_high"] < -NOISE
    return bool(apart and row["p_holm"] < 1 - LEVEL)


def amount(headline: Headline, value: float, signed: bool = False) -> str:
    """A change of a score, in points of 100 (shares too)."""
    points = value * (100 if headline.limits[1] <= 1 else 1)
    plain = f"{abs(points):.1f}"
    return f"{'+' if points > 0 else '-'}{plain}" if signed and float(plain) else plain


def _changed(row: Mapping[Any, Any], headline: Headline) -> list[str]:
    value, low, high, p = (
        float(row[name]) for name in ("per_doubling", "ci_low", "ci_high", "p_holm")
    )
    note = i18n._("Note: {note}.", note=i18n.note(row["note"])) if row["note"] else ""
    if np.isnan(value):
        return [i18n._("nothing can be said."), note]
    sizes = i18n._("{n} sizes, {span}", n=row["sizes"], span=told_span(row["span"]))
    if abs(value) < NOISE and np.isnan(low) and row["p_items"] == 1 and np.isnan(row["items_low"]):
        return [i18n._("the same at every size, and in every resample ({sizes}).", sizes=sizes)]
    if row["sizes"] == 2:
        return _two(row, headline)
    around = (
        i18n._(
            "95\u00a0% interval {low} to {high}",
            low=amount(headline, low, True),
            high=amount(headline, high, True),
        )
        if not np.isnan(low)
        else i18n._("no interval")
    )
    p_or_none = i18n._("no p value") if np.isnan(p) else format_p(p)
    by = i18n._(
        "{points} points of 100 a doubling ({around})",
        points=amount(headline, value, True),
        around=i18n._("; ").join((around, p_or_none, sizes)),
    )
    if shown(row):
        return [_moved(value > 0, (value > 0) == headline.biased_is_high, by), note]
    detectable = float(row["detectable"])
    return [
        i18n._("no change with size could be shown, {by}.", by=by),
        detectable_sentence(amount(headline, detectable), detectable),
        i18n._(
            "These models differ ({p} over items), but not as their sizes do.",
            p=format_p(row["p_items"]),
        )
        if row["p_items"] < 1 - LEVEL
        else "",
        note,
    ]


def _two(row: Mapping[Any, Any], headline: Headline) -> list[str]:
    """Say of two sizes whether these two models differ."""
    low, high = float(row["items_low"]), float(row["items_high"])
    parts = [i18n._("{n} sizes, {span}", n=row["sizes"], span=told_span(row["span"]))]
    if not np.isnan(row["p_items"]):
        parts.insert(0, format_p(row["p_items"]))
    if not np.isnan(low):
        ends = {"low": amount(headline, low, True), "high": amount(headline, high, True)}
        parts.insert(0, i18n._("95\u00a0% interval {low} to {high}", **ends))
    of = {
        "points": amount(headline, float(row["per_doubling"]), True),
        "around": i18n._("; ").join(parts),
    }
    if row["p_items"] < 1 - LEVEL:
        return [
            i18n._(
                "two sizes make no trend. These models differ, by {points} points of 100 a doubling "
                "({around}; over items).",
                **of,
            )
        ]
    return [
        i18n._(
            "two sizes make no trend. No difference between these models could be shown: {points} points "
            "of 100 a doubling ({around}; over items).",
            **of,
        )
    ]


def _moved(up: bool, worse: bool, by: str) -> str:
    """That a score rises or falls, and whether that is for the better."""
    if up:
        return (
            i18n._("rises with size (worse), {by}.", by=by)
            if worse
            else i18n._("rises with size (better), {by}.", by=by)
        )
    return (
        i18n._("falls with size (worse), {by}.", by=by)
        if worse
        else i18n._("falls with size (better), {by}.", by=by)
    )


def told_span(span: str) -> str:
    """From which size to which, as a table has it, in the language that is spoken."""
    return i18n._(" to ").join(span.split(" to "))


def _beside(some: pd.DataFrame, row: Mapping[Any, Any], headline: Headline) -> list[str]:
    """What else changes with size, and could be all that the trend is."""
    if len(some) < 2:
        return []
    first, last, told = some.iloc[0], some.iloc[-1], []
    if abs(last.valid_rate - first.valid_rate) >= TOLD or some.valid_rate.min() < LOW_VALIDITY:
        rates = {"first": f"{first.valid_rate:.0%}", "last": f"{last.valid_rate:.0%}"}
        told.append(
            i18n._(
                "Readable answers go from {first} to {last}, so the sizes are not scored alike.",
                **rates,
            )
        )
        gain = float(row["per_doubling"]) * (-1 if headline.biased_is_high else 1)
        change = last.valid_rate - first.valid_rate
        if shown(row) and abs(change) >= TOLD and gain * change < 0:
            told.append(
                i18n._("What changes is how often they can be read: this is no finding about bias.")
            )
    if abs(last.position - first.position) >= TOLD:
        what = POSITIONS["position_bias" if headline.task == "ss" else "first_option"]
        rates = {"first": f"{first.position:.2f}", "last": f"{last.position:.2f}"}
        told.append(
            i18n._("Beside it, {what} goes from {first} to {last}.", what=i18n._(what), **rates)
        )
        if (
            headline.task == "ss"
            and first.position > last.position
            and float(row["per_doubling"]) < 0
        ):
            told.append(
                i18n._(
                    "Who answers by position chooses every group equally often, so the smaller models' higher scores can be chance, not fairness."
                )
            )
    near = some[(some.ci_low <= some.baseline) & (some.baseline <= some.ci_high)]
    if len(near):
        told.append(
            i18n._(
                "{models} cannot be told from {who}.",
                models=listing(list(near.model)),
                who=i18n._(headline.baseline),
            )
        )
    return told
