"""Compare what two data sets cover: topics and groups in both or in one, and near texts.

Topics or groups are the same if they have the same name within the same category, but for case,
width and blanks. Texts are near if their ROUGE-L is at least a given one.
"""

import unicodedata
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, quoted
from bench.core.i18n import N_, _
from bench.metrics.diversity import NEAR, by_each, nearest
from bench.metrics.table import ALL

BY = ("topic", "group")
PLURAL = {"topic": N_("topics"), "group": N_("groups")}
SIDES = ("first", "second")


class SetComparison(NamedTuple):
    """What two data sets share.

    Attributes:
        counts: numbers of different values by `by` (of `BY`) and `category` (or `all`): `both`,
            `first_only`, `second_only`.
        values: one row per value: `by`, `category`, `value`, `first`, `second` (texts in each),
            `where` (both, first or second).
        near: by `side` and `category` (or `all`): `texts` (distinct ones that have a text of their
            language in the other set), `near`, `share`.
        pairs: each text that is near one of the other set, the nearest first: `side`, `category`,
            `rouge_l`, `item_a`, `item_b`, `text_a`, `text_b`.
        least: from which ROUGE-L on texts are near.
    """

    counts: pd.DataFrame
    values: pd.DataFrame
    near: pd.DataFrame
    pairs: pd.DataFrame
    least: float

    def overall(self, by: str) -> tuple[int, int, int]:
        """Count the values in both sets, in the first alone and in the second alone."""
        row = self.counts[(self.counts.by == by) & (self.counts.category == ALL)].iloc[0]
        return int(row.both), int(row.first_only), int(row.second_only)


def compare(first: pd.DataFrame, second: pd.DataFrame, least: float = NEAR) -> SetComparison:
    """Compare the texts of two data sets, as `bench.data.texts.texts` returns them.

    Args:
        least: from which ROUGE-L on two texts are near, above 0 and at most 1.

    Raises:
        BadInput: `least` is no such number, or a set has no texts.
    """
    if not (isinstance(least, int | float) and 0 < least <= 1):
        raise BadInput(
            f"least {quoted(least)}: is not above 0 and at most 1; texts are near from this "
            "ROUGE-L on"
        )
    if first.empty or second.empty:
        raise BadInput("compare: a data set has no texts, so that there is nothing to compare")
    values = pd.concat([_values(first, second, by) for by in BY], ignore_index=True)
    return SetComparison(_counts(values), values, *_near(first, second, least), float(least))


def findings(shared: SetComparison, first: str, second: str) -> list[str]:
    """Say what two data sets with these names share: topics, groups, and near texts."""
    texts = []
    for by in BY:
        both, here, there = shared.overall(by)
        texts.append(
            _(
                "Of {total} different {values} {both} are in both; {here} are in {first} alone, "
                "{there} in {second} alone.",
                total=f"{both + here + there:,}",
                values=_(PLURAL[by]),
                both=f"{both:,}",
                here=f"{here:,}",
                first=first,
                there=f"{there:,}",
                second=second,
            )
        )
    overall = shared.near[shared.near.category == ALL].set_index("side")
    for side, name, other in zip(SIDES, (first, second), (second, first), strict=True):
        row = overall.loc[side]
        if row.texts:
            text = _(
                "{near} of {texts} texts of {name} ({share}) have a near-duplicate in {other} "
                "(ROUGE-L of {least} or more).",
                near=f"{row.near:,.0f}",
                texts=f"{row.texts:,.0f}",
                name=name,
                share=f"{row.share:.0%}",
                other=other,
                least=f"{shared.least:g}",
            )
            texts.append(text)
    if not shared.near.texts.sum():
        texts.append(
            _("{first} and {second} have no texts in one language.", first=first, second=second)
        )
    return texts


def _values(first: pd.DataFrame, second: pd.DataFrame, by: str) -> pd.DataFrame:
    """Count the texts of each set by value within a category."""
    parts = [
        by_each(texts, by).assign(**{own: 1, other: 0})
        for texts, own, other in ((first, *SIDES), (second, *SIDES[::-1]))
    ]
    rows = pd.concat(parts, ignore_index=True).rename(columns={by: "value"})
    rows["key"] = rows.value.map(_normalized)
    grouped = rows.groupby(["category", "key"], sort=False)
    table = grouped.agg({"value": "first", **dict.fromkeys(SIDES, "sum")}).reset_index()
    one, other = table["first"] > 0, table.second > 0
    table["where"] = np.select([one & other, one], ["both", "first"], "second")
    return table.assign(by=by)[["by", "category", "value", *SIDES, "where"]]


def _normalized(value: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def _counts(values: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for by, own in values.groupby("by", sort=False):
        for name, part in [(ALL, own), *own.groupby("category", sort=False)]:
            numbers = (int((part["where"] == where).sum()) for where in ("both", *SIDES))
            rows.append((by, name, *numbers))
    return pd.DataFrame(rows, columns=["by", "category", "both", "first_only", "second_only"])


def _near(
    first: pd.DataFrame, second: pd.DataFrame, least: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows, pairs = [], []
    for side, own, other in (("first", first, second), ("second", second, first)):
        found = nearest(own, other)
        category = dict(zip(own.item_id, own.category, strict=True))
        found = found.assign(side=side, category=[category[item] for item in found.item_a])
        close = found.rouge_l >= np.float32(least)  # as the scores are, so that a tie is one
        for name in (ALL, *dict.fromkeys(own.category)):
            chosen = (found.category == name) | (name == ALL)
            texts, near = int(chosen.sum()), int((chosen & close).sum())
            rows.append((side, name, texts, near, near / texts if texts else np.nan))
        pairs.append(found[close])
    columns = ["side", "category", "rouge_l", "item_a", "item_b", "text_a", "text_b"]
    listed = pd.concat(pairs)[columns].sort_values("rouge_l", ascending=False, kind="stable")
    table = pd.DataFrame(rows, columns=["side", "category", "texts", "near", "share"])
    return table, listed.reset_index(drop=True)
