"""What a look at a data set found, in sentences made by rule."""

import math

import pandas as pd

from bench.metrics.annotators import band
from bench.metrics.diversity import HALF, LOW, NEAR, Diversity
from bench.metrics.table import ALL


def findings(title: str, texts: pd.DataFrame, rows: str, items: str, found: Diversity, doubles: pd.DataFrame) -> list[str]:  # fmt: skip
    """A sentence each on coverage, on what the texts share, and on near-duplicates and duplicates.

    Args:
        title: the data set's name.
        texts: as `bench.data.overview.texts` gives them.
        rows, items: what a row of them, and what is asked, is called.
        found, doubles: results of `bench.metrics.diversity.diversity` and `duplicates`.
    """
    return [_covered(title, texts, rows, items), _shared(title, found), _twice(title, found, doubles, rows)]


def of_overlaps(found: pd.DataFrame) -> list[str]:
    """A sentence on the two data sets that share most, and on near-duplicates between any two."""
    if found.empty:
        return [
            "No two data sets have texts in the same language, so there is nothing to compare between them."
        ]
    top = found.iloc[int(found["mean"].argmax())]
    total = int(found.near_duplicates.sum())
    near = (
        "No text has a near-duplicate in another data set"
        if not total
        else f"{total:,} texts have a near-duplicate in another data set; they are listed below"
    )
    return [
        f"{near} (ROUGE-L of {NEAR:g} or more).",
        f"The texts of {top['first']} ({top.language}) come nearest to those of {top.second}: the most similar one shares "
        f"{top['mean']:.2f} on average{_interval(top)}, {top.highest:.2f} at most (n = {int(top.texts):,} texts).",
    ]


def of_kappas(found: pd.DataFrame, who: str) -> str:
    """What the kappas say, over all and at the ends."""
    whole = found[found.category == ALL]
    row = (whole if len(whole) else found).iloc[0]
    if math.isnan(row.kappa):
        return f"The agreement of {who} over all items has no kappa: {row.note}."
    told = f"Over all items {who} agree with kappa {row.kappa:.2f}{_interval(row)}: {band(row.kappa)} by Landis and Koch (n = {int(row.n):,} items, {int(row.raters)} raters; chance alone gives 0)."
    parts = found[(found.category != ALL) & found.kappa.notna()]
    if len(parts) < 2:
        return told
    low, high = parts.iloc[int(parts.kappa.argmin())], parts.iloc[int(parts.kappa.argmax())]
    return f"{told} By category it runs from {low.kappa:.2f} ({low.category}{_interval(low, '; ')}) to {high.kappa:.2f} ({high.category}{_interval(high, '; ')})."


def coverage_title(counted: pd.DataFrame, by: str, rows: str) -> str:
    """Which value has most rows, and which fewest."""
    most, least = counted.iloc[0], counted.iloc[-1]
    if most.texts == least.texts:
        return f"Every {by} has {int(most.texts):,} {rows}"
    return f"From {int(least.texts):,} to {int(most.texts):,} {rows} a {by}"


def overlap_title(found: Diversity) -> str:
    """Whether texts of a category share more than texts of two categories, by their intervals."""
    within, across = _row(found.table, ALL), _row(found.table, "across")
    if math.isnan(across["mean"]) or math.isnan(within.ci_low):
        return f"Two texts of a category share {within['mean']:.2f} on average"
    if within.ci_low > across.ci_high:
        return f"Texts of one category share more ({within['mean']:.2f}) than texts of two ({across['mean']:.2f})"
    return f"Texts of one category ({within['mean']:.2f}) share hardly more than texts of two ({across['mean']:.2f})"


def _covered(title: str, texts: pd.DataFrame, rows: str, items: str) -> str:
    total = f"{len(texts):,} {rows}"
    if texts["items"].sum() != len(texts):
        total += f" ({texts['items'].sum():,} {items})"
    sizes = texts.category.value_counts()
    topics = texts[["category", "topic"]].drop_duplicates()
    groups = texts[["category", "group"]].drop_duplicates()
    ends = (
        f"each with {sizes.iloc[0]:,}"
        if sizes.iloc[0] == sizes.iloc[-1]
        else f"from {sizes.iloc[-1]:,} ({sizes.index[-1]}) to {sizes.iloc[0]:,} ({sizes.index[0]})"
    )
    return f"{title} has {total} in {len(sizes)} categories, {ends}; they are about {len(topics):,} topics and {len(groups):,} groups."


def _shared(title: str, found: Diversity) -> str:
    within, across = _row(found.table, ALL), _row(found.table, "across")
    if math.isnan(within["mean"]):
        return f"{title}: no category has two different texts, so that they cannot be compared."
    text = (
        f"{title}: two texts of one category share {within['mean']:.2f} on average (ROUGE-L{_interval(within, '; ')}; {int(within.pairs):,} pairs of "
        f"{int(within.compared):,} distinct texts); {within.below_half:.0%} of these pairs lie below {HALF:g} and {within.below_low:.0%} below {LOW:g}."
    )
    if not math.isnan(across["mean"]):
        text += f" Texts of two categories share {across['mean']:.2f}{_interval(across)}."
    if within.compared < within.distinct:
        text += f" Compared were {int(within.compared):,} of {int(within.distinct):,} distinct texts, drawn at random."
    return text


def _twice(title: str, found: Diversity, doubles: pd.DataFrame, rows: str) -> str:
    again = int(doubles.rows.sum() - len(doubles))
    same = (
        f"{again:,} {rows} say the very same as an earlier one"
        if again
        else f"no two {rows} say the very same"
    )
    near = len(found.near)
    return f"{title}: {same}; {f'{near:,} pairs' if near > 1 else 'one pair' if near else 'no pair'} of distinct texts {'are near-duplicates' if near > 1 else 'is a near-duplicate'} (ROUGE-L of {NEAR:g} or more)."


def _row(table: pd.DataFrame, category: str) -> pd.Series:
    return table.iloc[list(table.category).index(category)]


def _interval(row: pd.Series, before: str = "") -> str:
    if math.isnan(row.ci_low):
        return ""
    told = f"95\u00a0% interval {row.ci_low:.2f} to {row.ci_high:.2f}"
    return f"{before}{told}" if before else f" ({told})"
