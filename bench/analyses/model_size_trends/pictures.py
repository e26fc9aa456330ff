"""Pictures of scores over size: lines with a band, slopes by category, what changes beside them."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.analyses.model_size_trends import (
    Result,
    at_place,
    defined,
    findings,
    format_size,
    is_shown,
    title_of,
)
from bench.figures.style import (
    FAINT,
    INK,
    MARKS,
    WIDTH,
    colours,
    error_bars,
    forest,
    forest_axis,
    label,
    legend_below,
    legend_height,
    set_title,
    style,
    wrap_label,
)
from bench.metrics.table import ALL, Headline
from bench.metrics.trend import band

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
    palette, lines = colours(list(result.series)), -(-len(headlines) // COLUMNS)
    height = 0.75 + 2.2 * lines + legend_height([*result.series, *papers, ""])
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = np.ravel(fig.subplots(lines, COLUMNS))
    for ax, headline in zip(grid, headlines, strict=False):
        place = (ALL, headline.task, headline.metric)
        own, printed = at_place(points, headline), at_place(published, headline)
        for k, (name, models) in enumerate(result.series.items()):
            known = defined(models, place)
            if len(known) > 2:  # two sizes make no trend
                sizes = [sized.billions for sized in known]
                at = np.geomspace(min(sizes), max(sizes), 40)
                values = np.array([sized.replicates[place] for sized in known])
                line, low, high = band(np.log2(sizes), values, np.log2(at))
                ax.plot(at, line, color=palette[name], lw=1.2)
                ax.fill_between(at, low, high, color=palette[name], alpha=0.15, lw=0)
            part = own[own.series == name]
            ax.errorbar(
                part.billions,
                part.score,
                yerr=error_bars(part),
                fmt=MARKS[k % len(MARKS)],
                ms=5,
                lw=1.2,
                mec="white",
                color=palette[name],
                label=name,
                zorder=3,
            )
        for k, name in enumerate(papers):
            part = printed[printed.series == name]
            mark = f"{HOLLOW[k % len(HOLLOW)]}:"
            ax.plot(
                part.billions, part.score, mark, color=INK, mfc="white", ms=5, lw=0.8, label=name
            )
        if own.baseline.notna().any():
            who = "a random answerer, or the best constant one"
            ax.axhline(own.baseline.mean(), color=FAINT, ls="--", lw=1, zorder=1, label=who)
        _size_axis(ax, [*points.billions, *published.billions], 1.3)
        _score_axis(ax, headline)
        ax.set_title(wrap_label(title_of(headline), 30), fontsize="small")
        best = 0 if headline.biased_is_high else headline.limits[1]
        ax.set_ylabel(f"score ({best:g} is best)", fontsize="small")
        ax.set_xlabel("parameters (each doubling the same step)", fontsize="small")
        sns.despine(ax=ax)
    for ax in grid[len(headlines) :]:
        ax.set_visible(False)
    legend_below(fig, *grid[: len(headlines)])
    alt = next(iter(findings(result)), "Nothing could be scored.")
    set_title(fig, _title(result), letters=LETTERS, alt=alt)
    return fig


def _title(result: Result) -> str:
    """Say which headlines change with size, in all series alike."""
    if result.trends.sizes.max() <= 2:
        return "Two sizes make no trend"
    titles: dict[str, list[str]] = {}
    for headline in result.headlines:
        rows = at_place(result.trends, headline)
        rows = rows[rows.per_doubling.notna()]
        ways = np.where(rows.per_doubling > 0, "rises with size", "falls with size")
        changes = {str(way) for way in np.where(is_shown(rows), ways, "no change shown")}
        change = "differs between series" if changes else "no number"
        if len(changes) == 1:
            (change,) = changes
        titles.setdefault(change, []).append(re.split("[,，]", title_of(headline))[0])
    return "; ".join(f"{', '.join(names)}: {change}" for change, names in titles.items())


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
    names = list(dict.fromkeys(rows.series))
    means = rows.groupby("category", sort=False).per_doubling.mean()
    order = list(means.sort_values(ascending=headline.biased_is_high).index)
    height = 1.25 + max(0.24, 0.11 * len(names)) * len(order) + legend_height(names)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = fig.subplots()
    scale, step = 100 if headline.limits[1] <= 1 else 1, min(0.28, 0.8 / len(names))
    shown = is_shown(rows)
    scaled = rows.assign(score=rows.per_doubling * scale)
    scaled = scaled.assign(ci_low=rows.ci_low * scale, ci_high=rows.ci_high * scale)
    for k, (name, colour) in enumerate(colours(names).items()):
        for drawn, fill in ((shown, colour), (~shown, "white")):
            part = scaled[(scaled.series == name) & drawn]
            y = np.array([order.index(each) for each in part.category], dtype=float)
            y += (k - (len(names) - 1) / 2) * step
            forest(ax, part, y, colour, marker=MARKS[k % len(MARKS)], ms=4.5, mfc=fill)
        ax.plot([], [], MARKS[k % len(MARKS)], color=colour, label=name)
    ax.plot([], [], "o", color=FAINT, mfc="white", label="hollow: no change shown")
    forest_axis(ax, [label(result.benchmark, str(category)) for category in order], 0)
    worse = headline.worse
    ax.set_xlabel(
        f"change per doubling of parameters, points of 100 ({worse} to the right)"
        if headline.biased_is_high
        else f"change per doubling of parameters, points of 100 ({worse} to the left)",
        fontsize="small",
    )
    legend_below(fig, ax)
    heading = (
        f"{title_of(headline)}: a change with size shown in {int(shown.sum())} of {len(rows)} "
        "categories and series"
    )
    set_title(fig, heading, letters=LETTERS)
    return fig


def beside(result: Result) -> Figure | None:
    """Draw readable answers and preference for a position next to each score over size.

    One row per headline whose task has such a preference, or answers that could not be read; None
    where there is none.
    """
    tables = {headline: at_place(result.points, headline) for headline in result.headlines}
    tables = {
        headline: rows
        for headline, rows in tables.items()
        if rows.position.notna().any() or (rows.valid_rate < 1).any()
    }
    if not tables:
        return None
    style()
    names = list(dict.fromkeys(result.points.series))
    fig = Figure(
        figsize=(WIDTH, 0.7 + 1.5 * len(tables) + legend_height(names)), layout="constrained"
    )
    grid = fig.subplots(len(tables), 3, sharex=True, squeeze=False)
    columns = {"score": "score", "valid_rate": "share of readable answers"}
    columns["position"] = "by position"
    for line, (headline, rows) in zip(grid, tables.items(), strict=True):
        for ax, column in zip(line, columns, strict=True):
            for k, (name, colour) in enumerate(colours(names).items()):
                part = rows[rows.series == name].sort_values("billions")
                mark = f"{MARKS[k % len(MARKS)]}-"
                look: Any = {"ms": 4, "lw": 1.2, "color": colour, "label": name}
                bars = error_bars(part) if column == "score" else None
                ax.errorbar(part.billions, part[column], bars, fmt=mark, elinewidth=0.8, **look)
            _size_axis(ax, list(result.points.billions), 2)
            if column == "score":
                _score_axis(ax, headline)
            else:
                ax.set_ylim(-0.05, 1.05)
            if rows[column].isna().all():
                none = {"transform": ax.transAxes, "ha": "center", "color": FAINT}
                ax.text(0.5, 0.5, "none in this task", fontsize="small", **none)
            sns.despine(ax=ax)
        line[0].set_ylabel(textwrap.fill(title_of(headline), 18), fontsize="small")
    for ax, title in zip(grid[0], columns.values(), strict=True):
        ax.set_title(title, fontsize="small")
    for ax in grid[-1]:
        ax.set_xlabel("parameters", fontsize="small")
    legend_below(fig, grid[0, 0])
    heading = "Scores, readable answers and answers by position over size"
    set_title(fig, heading, letters=LETTERS)
    return fig


def _score_axis(ax: Axes, headline: Headline) -> None:
    """Show all that a score can be, so that a small change looks small."""
    low, high = headline.limits
    ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


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
    ax.tick_params(labelsize="small")
