"""What two data sets cover: which categories, topics and groups are in both, which in one alone, and which texts are near.

A topic or a group is the same in both where it is called the same within the same category, whatever its case, width and
blanks. Two texts are near where their ROUGE-L is at least a stated one (see `bench.metrics.diversity`).
"""

import math
import unicodedata
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, quoted
from bench.core.i18n import N_, _
from bench.metrics.diversity import NEAR, by_each, nearest
from bench.metrics.table import ALL

BY = ("topic", "group")
SIDES = ("first", "second")
# A sentence names so many values.
NAMED = 4


class Compared(NamedTuple):
    """What two data sets share.

    Attributes:
        counts: a row a category and one of `BY`, and one `all` for each of `BY`: `by`, `category`, `both`, `first_only`,
            `second_only`, all numbers of different values.
        values: a row a value: `by`, `category`, `value`, `first`, `second` (texts in each), `where` (both, first or second).
        near: a row a category and side, and one `all` for each side: `side`, `category`, `texts` (distinct ones that have a
            text of their language in the other set), `near` (those whose nearest there is near), `share`.
        pairs: each text that is near to one of the other set, the nearest first: `side`, `category`, `rouge_l`, `item_a`,
            `item_b`, `text_a`, `text_b`.
        least: from which ROUGE-L on texts are near.
    """

    counts: pd.DataFrame
    values: pd.DataFrame
    near: pd.DataFrame
    pairs: pd.DataFrame
    least: float


def compare(first: pd.DataFrame, second: pd.DataFrame, least: float = NEAR) -> Compared:
    """What two data sets share, and what only one of them has.

    Args:
        first, second: as `bench.data.texts.texts` gives them.
        least: from which ROUGE-L on two texts are near, above 0 and at most 1.

    Raises:
        BadInput: `least` is no such number, or a set has no texts.
    """
    if not (isinstance(least, int | float) and 0 < least <= 1):
        raise BadInput(
            f"least {quoted(least)}: is not above 0 and at most 1; texts are near from this ROUGE-L on"
        )
    if first.empty or second.empty:
        raise BadInput("compare: a data set has no texts, so that there is nothing to compare")
    values = pd.concat([_values(first, second, by) for by in BY], ignore_index=True)
    near, pairs = _near(first, second, least)
    return Compared(_counts(values), values, near, pairs, float(least))


def counted(categories: int) -> str:
    """So many categories, in words."""
    return _("one category") if categories == 1 else _("{n} categories", n=categories)


def findings(found: Compared, first: str, second: str) -> list[str]:
    """What the comparison found, in sentences.

    Args:
        first, second: what the data sets are called.
    """
    here, there = (_categories(found.values, side) for side in SIDES)
    both = [name for name in here if name in there]
    told = [
        _(
            "{first} has {here}, {second} has {there}; {both} are in both{alone}.",
            first=first,
            here=counted(len(here)),
            second=second,
            there=counted(len(there)),
            both=len(both),
            alone=_alone(first, [one for one in here if one not in there])
            + _alone(second, [one for one in there if one not in here]),
        )
    ]
    for by in BY:
        row = _all(found.counts[found.counts.by == by])
        total = int(row.both + row.first_only + row.second_only)
        told.append(
            _(
                "Of {total} different {values} {both} are in both; {here} are in {first} alone{some}, {there} in {second} alone{others}.",
                total=f"{total:,}",
                values=_(PLURAL[by]),
                both=f"{int(row.both):,}",
                here=f"{int(row.first_only):,}",
                first=first,
                there=f"{int(row.second_only):,}",
                second=second,
                some=_some(found.values, by, "first"),
                others=_some(found.values, by, "second"),
            )
        )
    for side, name, other in zip(SIDES, (first, second), (second, first), strict=True):
        row = _all(found.near[found.near.side == side])
        if not row.texts:
            continue
        told.append(
            _(
                "{near} of {texts} texts of {name} ({share}) have a near-duplicate in {other} (ROUGE-L of {least} or more).",
                near=f"{int(row.near):,}",
                texts=f"{int(row.texts):,}",
                name=name,
                share=f"{row.share:.0%}",
                other=other,
                least=f"{found.least:g}",
            )
        )
    if not found.near.texts.sum():
        told.append(
            _(
                "The two have no texts in one language, so that near-duplicates cannot be looked for between them."
            )
        )
    return told


def title(found: Compared) -> str:
    """How much the two share, in a line."""
    parts = {by: _all(found.counts[found.counts.by == by]) for by in BY}
    numbers = {by: int(row.both) for by, row in parts.items()}
    totals = {by: int(row.both + row.first_only + row.second_only) for by, row in parts.items()}
    return _(
        "{topics} of {all_topics} topics and {groups} of {all_groups} groups are in both",
        topics=f"{numbers['topic']:,}",
        all_topics=f"{totals['topic']:,}",
        groups=f"{numbers['group']:,}",
        all_groups=f"{totals['group']:,}",
    )


PLURAL = {"topic": N_("topics"), "group": N_("groups")}


def _values(first: pd.DataFrame, second: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many texts each set has of each value of a column within its category."""
    counted: dict[tuple[str, str], list[object]] = {}
    for k, texts in enumerate((first, second)):
        some = by_each(texts, by)
        for category, value in zip(some.category, some[by], strict=True):
            row = counted.setdefault((category, _same(value)), [by, category, value, 0, 0])
            row[3 + k] += 1  # type: ignore[operator]
    table = pd.DataFrame(list(counted.values()), columns=["by", "category", "value", *SIDES])
    table["where"] = [
        "both" if one and other else "first" if one else "second"
        for one, other in zip(table["first"], table["second"], strict=True)
    ]
    return table


def _same(value: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def _counts(values: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for by, some in values.groupby("by", sort=False):
        parts = [(ALL, some), *some.groupby("category", sort=False)]
        rows += [
            (by, name, *(int((part["where"] == where).sum()) for where in ("both", *SIDES)))
            for name, part in parts
        ]
    return pd.DataFrame(rows, columns=["by", "category", "both", "first_only", "second_only"])


def _near(
    first: pd.DataFrame, second: pd.DataFrame, least: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows, pairs = [], []
    for side, one, other in (("first", first, second), ("second", second, first)):
        found = nearest(one, other)
        categories = dict(zip(one.item_id, one.category, strict=True))
        found = found.assign(side=side, category=[categories[item] for item in found.item_a])
        close = found.rouge_l >= np.float32(least)  # as the scores are, so that a tie is one
        for name in (ALL, *dict.fromkeys(one.category)):
            here = pd.Series(True, index=found.index) if name == ALL else found.category == name
            texts, near = int(here.sum()), int((here & close).sum())
            rows.append((side, name, texts, near, near / texts if texts else math.nan))
        pairs.append(found[close])
    names = ["side", "category", "rouge_l", "item_a", "item_b", "text_a", "text_b"]
    listed = pd.concat(pairs)[names].sort_values("rouge_l", ascending=False, kind="stable")
    return pd.DataFrame(
        rows, columns=["side", "category", "texts", "near", "share"]
    ), listed.reset_index(drop=True)


def _categories(values: pd.DataFrame, side: str) -> list[str]:
    return list(dict.fromkeys(values.category[values[side] > 0]))


def _all(table: pd.DataFrame) -> pd.Series:
    return table[table.category == ALL].iloc[0]


def _alone(name: str, categories: list[str]) -> str:
    if not categories:
        return ""
    return _("; only {name} has {categories}", name=name, categories=_listed(categories))


def _some(values: pd.DataFrame, by: str, side: str) -> str:
    """The most frequent values that only one set has, in brackets."""
    some = values[(values.by == by) & (values["where"] == side)].sort_values(
        side, ascending=False, kind="stable"
    )
    named = [_("“{text}”", text=value) for value in dict.fromkeys(some.value) if value]
    return _(" ({text})", text=_listed(named)) if named else ""


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    text = _(", ").join(names[:NAMED])
    return text + (_(", and {n} more", n=f"{more:,}") if more > 0 else "")
