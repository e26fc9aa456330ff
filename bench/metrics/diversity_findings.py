"""What a look at a data set found, in sentences made by rule."""

import math

import pandas as pd

from bench.core.i18n import _, note, sentences
from bench.data.dataset import language_name
from bench.metrics.annotators import band
from bench.metrics.coverage import counted
from bench.metrics.diversity import HALF, LOW, NEAR, Diversity, by_each
from bench.metrics.table import ALL


def findings(
    title: str, texts: pd.DataFrame, rows: str, items: str, found: Diversity, doubles: pd.DataFrame
) -> list[str]:
    """A sentence each on coverage, on what the texts share, and on near-duplicates and duplicates.

    Args:
        title: the data set's name.
        texts: as `bench.data.texts.texts` gives them.
        rows, items: what a row of them, and what is asked, is called.
        found, doubles: results of `bench.metrics.diversity.diversity` and `duplicates`.
    """
    return [
        _covered(title, texts, rows, items),
        _shared(title, found),
        _twice(title, found, doubles, rows),
    ]


def of_overlaps(found: pd.DataFrame) -> list[str]:
    """A sentence on the two data sets that share most, and on near-duplicates between any two."""
    if found.empty:
        return [
            _(
                "No two data sets have texts in the same language, so there is nothing to compare between them."
            )
        ]
    top = found.iloc[int(found["mean"].argmax())]
    total = int(found.near_duplicates.sum())
    near = (
        _(
            "No text has a near-duplicate in another data set (ROUGE-L of {near} or more).",
            near=f"{NEAR:g}",
        )
        if not total
        else _(
            "{n} texts have a near-duplicate in another data set; they are listed below (ROUGE-L of {near} or more).",
            n=f"{total:,}",
            near=f"{NEAR:g}",
        )
    )
    return [
        near,
        _(
            "The texts of {first} ({language}) come nearest to those of {second}: the most similar one shares {mean} on average"
            "{interval}, {highest} at most (n = {n} texts).",
            first=top["first"],
            language=language_name(str(top.language)),
            second=top.second,
            mean=f"{top['mean']:.2f}",
            interval=_bracketed(top),
            highest=f"{top.highest:.2f}",
            n=f"{int(top.texts):,}",
        ),
    ]


def of_kappas(found: pd.DataFrame, who: str) -> str:
    """What the kappas say, over all and at the ends."""
    whole = found[found.category == ALL]
    row = (whole if len(whole) else found).iloc[0]
    if math.isnan(row.kappa):
        return _(
            "The agreement of {who} over all items has no kappa: {why}.",
            who=who,
            why=note(row.note),
        )
    told = _(
        "Over all items {who} agree with kappa {kappa}{interval}: {band} by Landis and Koch (n = {n} items, {raters} raters; chance alone gives 0).",
        who=who,
        kappa=f"{row.kappa:.2f}",
        interval=_bracketed(row) or _because(row),
        band=_(band(row.kappa)),
        n=f"{int(row.n):,}",
        raters=int(row.raters),
    )
    parts = found[(found.category != ALL) & found.kappa.notna()]
    if len(parts) < 2:
        return told
    if parts.kappa.min() == parts.kappa.max():
        return sentences([told, _("It is the same in every category.")])
    low, high = parts.iloc[int(parts.kappa.argmin())], parts.iloc[int(parts.kappa.argmax())]
    ends = _(
        "By category it runs from {low} ({first}) to {high} ({last}).",
        low=f"{low.kappa:.2f}",
        first=_beside(low.category, low),
        high=f"{high.kappa:.2f}",
        last=_beside(high.category, high),
    )
    return sentences([told, ends])


def coverage_title(counted: pd.DataFrame, by: str, rows: str) -> str:
    """Which value has most rows, and which fewest."""
    most, least = counted.iloc[0], counted.iloc[-1]
    if most.texts == least.texts:
        return _("Every {by} has {n} {rows}", by=_(by), n=f"{int(most.texts):,}", rows=_(rows))
    return _(
        "From {low} to {high} {rows} a {by}",
        low=f"{int(least.texts):,}",
        high=f"{int(most.texts):,}",
        rows=_(rows),
        by=_(by),
    )


def overlap_title(found: Diversity) -> str:
    """Whether texts of a category share more than texts of two categories, by their intervals."""
    within, across = _row(found.table, ALL), _row(found.table, "across")
    if math.isnan(across["mean"]) or math.isnan(within.ci_low):
        return _("Two texts of a category share {mean} on average", mean=f"{within['mean']:.2f}")
    means = {"within": f"{within['mean']:.2f}", "across": f"{across['mean']:.2f}"}
    if within.ci_low > across.ci_high:
        return _(
            "Texts of one category share more ({within}) than texts of two ({across})", **means
        )
    return _(
        "Texts of one category ({within}) share hardly more than texts of two ({across})", **means
    )


def _covered(title: str, texts: pd.DataFrame, rows: str, items: str) -> str:
    total = _("{n} {units}", n=f"{len(texts):,}", units=_(rows))
    if texts["items"].sum() != len(texts):
        asked = _("{n} {units}", n=f"{texts['items'].sum():,}", units=_(items))
        total = _("{what} ({more})", what=total, more=asked)
    sizes = texts.category.value_counts()
    topics = texts[["category", "topic"]].drop_duplicates()
    groups = by_each(texts, "group")[["category", "group"]].drop_duplicates()
    ends = (
        _("each with {n}", n=f"{sizes.iloc[0]:,}")
        if sizes.iloc[0] == sizes.iloc[-1]
        else _(
            "from {low} ({first}) to {high} ({last})",
            low=f"{sizes.iloc[-1]:,}",
            first=sizes.index[-1],
            high=f"{sizes.iloc[0]:,}",
            last=sizes.index[0],
        )
    )
    return _(
        "{title} has {total} in {categories}, {ends}; they are about {topics} topics and {groups} groups.",
        title=title,
        total=total,
        categories=counted(len(sizes)),
        ends=ends,
        topics=f"{len(topics):,}",
        groups=f"{len(groups):,}",
    )


def _shared(title: str, found: Diversity) -> str:
    within, across = _row(found.table, ALL), _row(found.table, "across")
    if math.isnan(within["mean"]):
        return _(
            "{title}: no category has two different texts, so that they cannot be compared.",
            title=title,
        )
    told = [
        _(
            "{title}: two texts of one category share {mean} on average ({around}; {pairs} pairs of {n} distinct texts); {share} of these "
            "pairs lie below {half} and {fewer} below {low}.",
            title=title,
            mean=f"{within['mean']:.2f}",
            around=_beside("ROUGE-L", within),
            pairs=f"{int(within.pairs):,}",
            n=f"{int(within.compared):,}",
            share=f"{within.below_half:.0%}",
            half=f"{HALF:g}",
            fewer=f"{within.below_low:.0%}",
            low=f"{LOW:g}",
        )
    ]
    if not math.isnan(across["mean"]):
        told.append(
            _(
                "Texts of two categories share {mean}{interval}.",
                mean=f"{across['mean']:.2f}",
                interval=_bracketed(across),
            )
        )
    if within.compared < within.distinct:
        counts = {"n": f"{int(within.compared):,}", "all": f"{int(within.distinct):,}"}
        told.append(_("Compared were {n} of {all} distinct texts, drawn at random.", **counts))
    return sentences(told)


def _twice(title: str, found: Diversity, doubles: pd.DataFrame, rows: str) -> str:
    again = int(doubles.rows.sum() - len(doubles))
    same = (
        _("{n} {rows} say the very same as an earlier one", n=f"{again:,}", rows=_(rows))
        if again
        else _("no two {rows} say the very same", rows=_(rows))
    )
    near = len(found.near)
    if near > 1:
        pairs = _("{n} pairs of distinct texts are near-duplicates", n=f"{near:,}")
    elif near:
        pairs = _("one pair of distinct texts is a near-duplicate")
    else:
        pairs = _("no pair of distinct texts is a near-duplicate")
    return _(
        "{title}: {same}; {pairs} (ROUGE-L of {near} or more).",
        title=title,
        same=same,
        pairs=pairs,
        near=f"{NEAR:g}",
    )


def _row(table: pd.DataFrame, category: str) -> pd.Series:
    return table.iloc[list(table.category).index(category)]


def _interval(row: pd.Series) -> str:
    if math.isnan(row.ci_low):
        return ""
    return _(
        "95\u00a0% interval {low} to {high}", low=f"{row.ci_low:.2f}", high=f"{row.ci_high:.2f}"
    )


def _bracketed(row: pd.Series) -> str:
    """The interval behind a number, in brackets."""
    return _(" ({text})", text=_interval(row)) if _interval(row) else ""


def _because(row: pd.Series) -> str:
    """Why there is no interval, in brackets."""
    return _(" ({text})", text=note(row.note)) if row.note else ""


def _beside(what: str, row: pd.Series) -> str:
    """A name with the interval behind it."""
    return _("; ").join(filter(None, (what, _interval(row))))
