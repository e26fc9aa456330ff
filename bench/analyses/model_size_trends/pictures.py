"""Pictures of scores over size: lines with a band, slopes by category, what changes beside them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.analyses.model_size_trends import (
    CHANGE,
    Result,
    amount,
    at_place,
    findings,
    is_shown,
    title_of,
)
from bench.analyses.model_size_trends.series import format_size
from bench.analyses.model_size_trends.slopes import band
from bench.core.i18n import N_, _, sentences
from bench.figures.style import (
    FAINT,
    INK,
    MARKS,
    WIDTH,
    colours,
    error_bars,
    label,
    set_title,
    style,
    wrap_cjk,
)
from bench.metrics.headline import listing
from bench.metrics.table import ALL, Headline

HOLLOW = "^vDs"
# Sizes that an axis names are at least this part of its length apart.
APART = 0.11
COLUMNS = 2
LETTERS = 78  # of a line of a title
# Published models that are all so many times as large as ours would leave no room to see ours.
FAR = 256


def over_size(result: Result) -> Figure | None:
    """Draw each headline over the logarithm of the parameters, with a line and band per series.

    Published scores are hollow, unless their models are far larger than all of ours. A dashed grey
    line is who gets the headline's baseline. None where there is no headline.
    """
    points, published, headlines = result.points, result.published, result.headlines
    if not headlines:
        return None
    style()
    if len(points) and len(published) and published.billions.min() > FAR * points.billions.max():
        published = published.iloc[:0]
    papers = list(dict.fromkeys(published.series))
    hollow = {name: HOLLOW[k % len(HOLLOW)] for k, name in enumerate(papers)}
    lines = -(-len(headlines) // COLUMNS)
    height = 0.75 + 2.2 * lines + _legend_height([*result.series, *papers])
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = fig.subplots(lines, COLUMNS, squeeze=False).ravel()
    palette, marks = _looks(list(result.series))
    for ax, headline in zip(grid, headlines, strict=False):
        place = (ALL, headline.task, headline.metric)
        own = at_place(points, headline)
        for name, models in result.series.items():
            known = [one for one in models if not np.isnan(one.replicates.get(place, [np.nan])[0])]
            if len(known) > 1:
                sizes = [one.billions for one in known]
                at = np.geomspace(min(sizes), max(sizes), 40)
                values = np.array([one.replicates[place] for one in known])
                line, low, high = band(sizes, values, at)
                ax.plot(at, line, color=palette[name], lw=1.2)
                ax.fill_between(at, low, high, color=palette[name], alpha=0.15, lw=0)
            part = own[own.series == name]
            ax.errorbar(
                part.billions,
                part.score,
                yerr=error_bars(part),
                fmt=marks[name],
                ms=5,
                lw=1.2,
                mec="white",
                color=palette[name],
                zorder=3,
            )
        printed = at_place(published, headline)
        for name, mark in zip(dict.fromkeys(printed.series), HOLLOW * 9, strict=False):
            part = printed[printed.series == name]
            look = {"color": INK, "mfc": "white", "ms": 5, "lw": 0.8}
            ax.plot(part.billions, part.score, f"{mark}:", zorder=2, **look)
        if own.baseline.notna().any():
            ax.axhline(float(own.baseline.dropna().mean()), color=FAINT, ls="--", lw=1, zorder=1)
        _size_axis(ax, [*points.billions, *published.billions], 1.3)
        ax.margins(y=0.12)
        ax.set_title(title_of(headline), fontsize="small")
        best = 0 if headline.biased_is_high else headline.limits[1]
        ax.set_ylabel(_("score ({best} is best)", best=f"{best:g}"), fontsize="x-small")
        sns.despine(ax=ax)
    for ax in grid[len(headlines) :]:
        ax.set_visible(False)
    for ax in grid[max(0, len(headlines) - COLUMNS) : len(headlines)]:
        ax.set_xlabel(_("parameters (each doubling the same step)"), fontsize="small")
    more = [
        Line2D([], [], color=INK, marker=mark, mfc="white", ms=5, lw=0.8, ls=":", label=name)
        for name, mark in hollow.items()
    ]
    if points.baseline.notna().any():
        who = _("a random answerer, or the best constant one")
        more.append(Line2D([], [], color=FAINT, ls="--", lw=1, label=who))
    _legend(fig, list(result.series), more)
    set_title(fig, _title(result), letters=LETTERS)
    fig.set_label(sentences(findings(result)) or _("Nothing could be scored."))
    return fig


def by_category(result: Result, headline: Headline) -> Figure | None:
    """Draw the change per doubling in each category; filled where it was shown (p by Holm).

    None where no category has a number.
    """
    rows = result.trends[result.trends.category != ALL]
    rows = rows[(rows.task == headline.task) & (rows.metric == headline.metric)]
    rows = rows[rows.per_doubling.notna()]
    if rows.empty:
        return None
    style()
    scale = 100 if headline.limits[1] <= 1 else 1
    names = list(dict.fromkeys(rows.series))
    means = rows.groupby("category", sort=False).per_doubling.mean()
    order = list(means.sort_values(ascending=headline.biased_is_high).index)
    palette, marks = _looks(names)
    height = 1.25 + max(0.24, 0.11 * len(names)) * len(order) + _legend_height(names)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = fig.subplots()
    step = min(0.28, 0.8 / len(names))
    for row in rows.to_dict("records"):
        name = row["series"]
        y = order.index(row["category"]) + (names.index(name) - (len(names) - 1) / 2) * step
        ends = [row["ci_low"] * scale, row["ci_high"] * scale]
        colour = palette[name]
        face = colour if is_shown(row) else "white"
        ax.plot(ends, [y, y], color=colour, lw=1.6, alpha=0.6)
        value = row["per_doubling"] * scale
        ax.plot(value, y, marks[name], ms=4.5, color=colour, mfc=face, zorder=3)
    ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=0)
    ax.set_yticks(range(len(order)), [label(result.benchmark, category) for category in order])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    worse = _(headline.worse)
    ax.set_xlabel(
        _("change a doubling of parameters, points of 100 ({worse} to the right)", worse=worse)
        if headline.biased_is_high
        else _("change a doubling of parameters, points of 100 ({worse} to the left)", worse=worse),
        fontsize="small",
    )
    sns.despine(ax=ax, left=True)
    look: dict[str, Any] = {"color": FAINT, "marker": "o", "mfc": "white", "ls": "none", "ms": 4.5}
    hollow = Line2D([], [], label=_("hollow: no change shown"), **look)
    _legend(fig, names, [hollow], ms=4.5, lw=1.6, mec=None)
    records = rows.sort_values("per_doubling").to_dict("records")
    heading = _(
        "{title}: a change with size shown in {n} of {all} categories and series",
        title=title_of(headline),
        n=sum(map(is_shown, records)),
        all=len(records),
    )
    set_title(fig, heading, letters=LETTERS)
    extremes = _(" to ").join(
        _(
            "{points} ({category}, {series})",
            points=amount(headline, row["per_doubling"], True),
            category=row["category"],
            series=row["series"],
        )
        for row in (records[0], records[-1])
    )
    text = _("{title}. Points of 100 a doubling: {told}.", title=heading, told=extremes)
    fig.set_label(text)
    return fig


def beside(result: Result) -> Figure | None:
    """Draw readable answers and preference for a position next to each score over size.

    One row per headline whose task has such a preference, or answers that could not be read; None
    where there is none.
    """
    tables = {one: at_place(result.points, one) for one in result.headlines}
    tables = {
        one: rows
        for one, rows in tables.items()
        if rows.position.notna().any() or (rows.valid_rate < 1).any()
    }
    if not tables:
        return None
    style()
    names = list(dict.fromkeys(result.points.series))
    palette, marks = _looks(names)
    height = 0.7 + 1.5 * len(tables) + _legend_height(names)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = fig.subplots(len(tables), 3, sharex=True, squeeze=False)
    columns = {
        "score": _("score"),
        "valid_rate": _("share of readable answers"),
        "position": _("by position"),
    }
    for line, (headline, rows) in zip(grid, tables.items(), strict=True):
        for ax, column in zip(line, columns, strict=True):
            for name in names:
                part = rows[rows.series == name].sort_values("billions")
                look = {"ms": 4, "lw": 1.2, "mec": "white", "mew": 0.5, "color": palette[name]}
                ax.plot(part.billions, part[column], f"{marks[name]}-", **look)
            _size_axis(ax, list(result.points.billions), 2)
            if column != "score":
                ax.set_ylim(-0.05, 1.05)
            if rows[column].isna().all():
                look = {"fontsize": "x-small", "ha": "center", "va": "center", "color": FAINT}
                ax.text(0.5, 0.5, _("none in this task"), transform=ax.transAxes, **look)
            ax.margins(y=0.15)
            sns.despine(ax=ax)
        line[0].set_ylabel(wrap_cjk(title_of(headline), 1.2, "x-small", 18), fontsize="x-small")
    for ax, title in zip(grid[0], columns.values(), strict=True):
        ax.set_title(title, fontsize="small")
    for ax in grid[-1]:
        ax.set_xlabel(_("parameters"), fontsize="small")
    _legend(fig, names)
    set_title(fig, _beside_title(tables), letters=LETTERS)
    described = [
        _point_text(row, title_of(headline))
        for headline, rows in tables.items()
        for row in rows.to_dict("records")
    ]
    fig.set_label(
        _(
            "Scores, readable answers and answers by position over size. {told}.",
            told=_("; ").join(described),
        )
    )
    return fig


def _point_text(row: Mapping[Any, Any], title: str) -> str:
    about = {
        "model": row["model"],
        "title": title,
        "score": f"{row['score']:.2f}",
        "share": f"{row['valid_rate']:.0%}",
    }
    if row["position"] != row["position"]:
        return _("{model}, {title}: {score}, {share} readable", **about)
    return _(
        "{model}, {title}: {score}, {share} readable, by position {position}",
        position=f"{row['position']:.2f}",
        **about,
    )


def _looks(names: Sequence[str]) -> tuple[dict[str, tuple[float, float, float]], dict[str, str]]:
    """Return a colour and a mark for each series."""
    return colours(names), {name: MARKS[k % len(MARKS)] for k, name in enumerate(names)}


def _legend_height(names: Sequence[str]) -> float:
    return 0.18 * -(-len(names) // 2)


def _legend(
    fig: Figure,
    names: Sequence[str],
    more: Sequence[Line2D] = (),
    ms: float = 5,
    lw: float = 1.2,
    mec: str | None = "white",
) -> None:
    palette, marks = _looks(names)
    handles = [
        Line2D([], [], color=palette[name], marker=marks[name], ms=ms, lw=lw, mec=mec, label=name)
        for name in names
    ]
    look: dict[str, Any] = {"ncols": 2, "frameon": False, "fontsize": "x-small"}
    fig.legend(handles=[*handles, *more], loc="outside lower center", **look)


def _size_axis(ax: Axes, sizes: Sequence[float], room: float) -> None:
    """Make a logarithmic axis that names the sizes, except those too near to the one before."""
    ax.set_xscale("log", base=2)
    low, high = np.log2(min(sizes)), np.log2(max(sizes))
    margin = (high - low or 1.0) * 0.06
    ax.set_xlim(2 ** (low - margin), 2 ** (high + margin))
    ticks: list[float] = []
    for size in sorted(set(sizes)):
        if not ticks or np.log2(size / ticks[-1]) >= (high - low) * APART * room:
            ticks.append(size)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _position: format_size(size)))
    ax.tick_params(labelsize="x-small")


def _title(result: Result) -> str:
    """Say which headlines change with size, in all series alike."""
    titles: dict[str, list[str]] = {}
    for headline in result.headlines:
        rows = at_place(result.trends, headline)
        changes = {
            (N_("rises with size") if row["per_doubling"] > 0 else N_("falls with size"))
            if is_shown(row)
            else N_("no change shown")
            for row in rows[rows.per_doubling.notna()].to_dict("records")
        }
        change = N_("differs between series") if changes else N_("no number")
        if len(changes) == 1:
            (change,) = changes
        titles.setdefault(change, []).append(re.split("[,，]", title_of(headline))[0])
    return _("; ").join(
        _("{title}: {sentence}", title=_(", ").join(names), sentence=_(change))
        for change, names in titles.items()
    )


def _beside_title(tables: dict[Headline, pd.DataFrame]) -> str:
    """Say in which series something changes with size that is not the score."""
    changing: dict[str, dict[str, None]] = {"valid_rate": {}, "position": {}}
    for rows in tables.values():
        for name, part in rows.groupby("series", sort=False):
            ends = part.sort_values("billions").iloc[[0, -1]]
            for column, names in changing.items():
                if abs(np.diff(ends[column])[0]) >= CHANGE:
                    names[str(name)] = None
    readable, position = (
        listing(list(names)) if len(names) < 3 else _("{n} series", n=len(names))
        for names in changing.values()
    )
    parts = []
    if readable:
        parts.append(_("readable answers change with size in {series}", series=readable))
    if position:
        parts.append(_("answers by position change with size in {series}", series=position))
    text = listing(parts) or _("readable answers and answers by position hardly change with size")
    return _("Beside the score, {found}", found=text)
