"""Pictures of scores over the size of models: lines with a band, slopes by category, and what stands beside a score."""

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
from bench.metrics.trend import Series, band, size
from bench.metrics.trend_findings import TOLD, amount, findings, shown, title_of

HOLLOW = "^vDs"
# Sizes that an axis names stand at least so many doublings apart, in parts of its whole length.
APART = 0.11
COLUMNS = 2
# Letters of a line of a title.
LETTERS = 78
# What a score does over the sizes, in all series alike or not.
RISES, FALLS = N_("rises with size"), N_("falls with size")
UNMOVED, DIFFERS = N_("no change shown"), N_("differs between series")
NO_NUMBER = N_("no number")
# Published models that are all so many times as large as ours would leave no room to see ours.
FAR = 256


def over_size(
    points: pd.DataFrame,
    trends: pd.DataFrame,
    series: Series,
    headlines: Sequence[Headline],
    published: pd.DataFrame,
) -> Figure | None:
    """Does size matter: each headline over the logarithm of the parameters, a line with a band a series; hollow: published.

    Published models that are far larger than all of ours are left out. A dashed grey line is the answerer who gets the
    headline's baseline. None where there is no headline.

    Args:
        points, trends: of `bench.analyses.sizes.points` and `bench.metrics.trend.trends`.
        published: of `bench.analyses.sizes.published_beside`.
    """
    if not headlines:
        return None
    style()
    if len(points) and len(published) and published.billions.min() > FAR * points.billions.max():
        published = published.iloc[:0]
    lines = -(-len(headlines) // COLUMNS)
    named = [*series, *dict.fromkeys(published.series)]
    legend = -(-len(named) // 2)
    fig = Figure(figsize=(WIDTH, 0.75 + 2.2 * lines + 0.18 * legend), layout="constrained")
    grid = fig.subplots(lines, COLUMNS, squeeze=False).ravel()
    palette, marks = _looks(list(series))
    every = [*points.billions, *published.billions]
    for ax, headline in zip(grid, headlines, strict=False):
        place = (ALL, headline.task, headline.metric)
        here = _at(points, place)
        for name, models in series.items():
            some = [
                one
                for one in models
                if place in one.replicates and not np.isnan(one.replicates[place][0])
            ]
            if len(some) > 1:
                _line(
                    ax,
                    [one.billions for one in some],
                    np.array([one.replicates[place] for one in some]),
                    palette[name],
                )
            part = here[here.series == name]
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
        for mark, (_unused, part) in zip(
            HOLLOW * 9, _at(published, place).groupby("series", sort=False), strict=False
        ):
            ax.plot(
                part.billions,
                part.score,
                f"{mark}:",
                ms=5,
                lw=0.8,
                color=INK,
                mfc="white",
                zorder=2,
            )
        if here.baseline.notna().any():
            ax.axhline(float(here.baseline.dropna().mean()), color=FAINT, ls="--", lw=1, zorder=1)
        _size_axis(ax, every)
        ax.margins(y=0.12)
        ax.set_title(title_of(headline), fontsize="small")
        ax.set_ylabel(_unit(headline), fontsize="x-small")
        sns.despine(ax=ax)
    for ax in grid[len(headlines) :]:
        ax.set_visible(False)
    for ax in grid[max(0, len(headlines) - COLUMNS) : len(headlines)]:
        ax.set_xlabel(_("parameters (each doubling the same step)"), fontsize="small")
    handles = [
        Line2D(
            [], [], color=palette[name], marker=marks[name], mec="white", ms=5, lw=1.2, label=name
        )
        for name in series
    ]
    handles += [
        Line2D(
            [],
            [],
            color=INK,
            marker=HOLLOW[k % len(HOLLOW)],
            mfc="white",
            ms=5,
            lw=0.8,
            ls=":",
            label=str(name),
        )
        for k, name in enumerate(dict.fromkeys(published.series))
    ]
    if points.baseline.notna().any():
        who = _("a random answerer, or the best constant one")
        handles.append(Line2D([], [], color=FAINT, ls="--", lw=1, label=who))
    fig.legend(
        handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small"
    )
    set_title(fig, _title(trends, headlines), letters=LETTERS)
    said = sentences(findings(trends, points, headlines).sentence)
    fig.set_label(said or _("Nothing could be scored."))
    return fig


def by_category(trends: pd.DataFrame, headline: Headline, benchmark: str) -> Figure | None:
    """In which categories: the change a doubling of each, with its interval; filled where it was shown (p by Holm).

    None where no category has a number.
    """
    here = trends[
        (trends.task == headline.task)
        & (trends.metric == headline.metric)
        & (trends.category != ALL)
    ]
    here = here[here.per_doubling.notna()]
    if here.empty:
        return None
    style()
    scale = 100 if headline.limits[1] <= 1 else 1
    names, mean = (
        list(dict.fromkeys(here.series)),
        here.groupby("category", sort=False).per_doubling.mean(),
    )
    order = list(mean.sort_values(ascending=headline.biased_is_high).index)
    palette, marks = _looks(names)
    height = max(0.24, 0.11 * len(names))
    fig = Figure(
        figsize=(WIDTH, 1.25 + height * len(order) + 0.18 * -(-len(names) // 2)),
        layout="constrained",
    )
    ax = fig.subplots()
    for k, name in enumerate(names):
        shift = (k - (len(names) - 1) / 2) * min(0.28, 0.8 / len(names))
        for row in here[here.series == name].to_dict("records"):
            y, colour = order.index(row["category"]) + shift, palette[name]
            ax.plot(
                [row["ci_low"] * scale, row["ci_high"] * scale],
                [y, y],
                color=colour,
                lw=1.6,
                alpha=0.6,
            )
            face = colour if shown(row) else "white"
            ax.plot(
                row["per_doubling"] * scale,
                y,
                marks[name],
                ms=4.5,
                color=colour,
                mfc=face,
                zorder=3,
            )
    ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=0)
    ax.set_yticks(range(len(order)), [label(benchmark, category) for category in order])
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
    handles = [
        Line2D([], [], color=palette[name], marker=marks[name], ms=4.5, lw=1.6, label=name)
        for name in names
    ]
    hollow = _("hollow: no change shown")
    handles.append(
        Line2D([], [], color=FAINT, marker="o", mfc="white", ls="none", ms=4.5, label=hollow)
    )
    fig.legend(
        handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small"
    )
    found = [row for row in here.to_dict("records") if shown(row)]
    said = _(
        "{title}: a change with size shown in {n} of {all} categories and series",
        title=title_of(headline),
        n=len(found),
        all=len(here),
    )
    set_title(fig, said, letters=LETTERS)
    ends = here.sort_values("per_doubling").iloc[[0, -1]].to_dict("records")
    told = _(" to ").join(
        _(
            "{points} ({category}, {series})",
            points=amount(headline, row["per_doubling"], True),
            category=row["category"],
            series=row["series"],
        )
        for row in ends
    )
    fig.set_label(_("{title}. Points of 100 a doubling: {told}.", title=said, told=told))
    return fig


def beside(points: pd.DataFrame, headlines: Sequence[Headline]) -> Figure | None:
    """Is a trend real or chance: beside each score over size, the share of readable answers and the preference for a position.

    A row a headline whose task has such a preference, or answers that could not be read. None where there is none.
    """
    headlines = [one for one in headlines if _doubtful(_at(points, (ALL, one.task, one.metric)))]
    if not headlines:
        return None
    style()
    names = list(dict.fromkeys(points.series))
    palette, marks = _looks(names)
    fig = Figure(
        figsize=(WIDTH, 0.7 + 1.5 * len(headlines) + 0.18 * -(-len(names) // 2)),
        layout="constrained",
    )
    grid = fig.subplots(len(headlines), 3, sharex=True, squeeze=False)
    columns = (
        ("score", _("score")),
        ("valid_rate", _("share of readable answers")),
        ("position", _("by position")),
    )
    told = []
    for line, headline in zip(grid, headlines, strict=True):
        here = _at(points, (ALL, headline.task, headline.metric))
        for ax, (column, title) in zip(line, columns, strict=True):
            for name in names:
                part = here[here.series == name].sort_values("billions")
                ax.plot(
                    part.billions,
                    part[column],
                    f"{marks[name]}-",
                    ms=4,
                    lw=1.2,
                    mec="white",
                    mew=0.5,
                    color=palette[name],
                )
            _size_axis(ax, list(points.billions), few=True)
            if column != "score":
                ax.set_ylim(-0.05, 1.05)
            if here[column].notna().sum() == 0:
                ax.text(
                    0.5,
                    0.5,
                    _("none in this task"),
                    color=FAINT,
                    fontsize="x-small",
                    ha="center",
                    va="center",
                    transform=ax.transAxes,
                )
            ax.margins(y=0.15)
            ax.set_title(title if ax in grid[0] else "", fontsize="small")
            sns.despine(ax=ax)
        line[0].set_ylabel(wrap_cjk(title_of(headline), 1.2, "x-small", 18), fontsize="x-small")
        told += [_beside_told(row, title_of(headline)) for row in here.to_dict("records")]
    for ax in grid[-1]:
        ax.set_xlabel(_("parameters"), fontsize="small")
    handles = [
        Line2D(
            [], [], color=palette[name], marker=marks[name], mec="white", ms=5, lw=1.2, label=name
        )
        for name in names
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small"
    )
    set_title(fig, _beside_title(points, headlines), letters=LETTERS)
    fig.set_label(
        _(
            "Scores, readable answers and answers by position over size. {told}.",
            told=_("; ").join(told),
        )
    )
    return fig


def _beside_told(row: Mapping[Any, Any], title: str) -> str:
    """A score with what stands beside it, for the alternative text."""
    of = {
        "model": row["model"],
        "title": title,
        "score": f"{row['score']:.2f}",
        "share": f"{row['valid_rate']:.0%}",
    }
    if np.isnan(row["position"]):
        return _("{model}, {title}: {score}, {share} readable", **of)
    return _(
        "{model}, {title}: {score}, {share} readable, by position {position}",
        position=f"{row['position']:.2f}",
        **of,
    )


def _at(table: pd.DataFrame, place: tuple[str, str, str]) -> pd.DataFrame:
    category, task, metric = place
    return table[(table.category == category) & (table.task == task) & (table.metric == metric)]


def _doubtful(rows: pd.DataFrame) -> bool:
    return bool(rows.position.notna().any() or (rows.valid_rate < 1).any())


def _looks(names: Sequence[str]) -> tuple[dict[str, tuple[float, float, float]], dict[str, str]]:
    """A colour and a mark a series."""
    return colours(names), {name: MARKS[k % len(MARKS)] for k, name in enumerate(names)}


def _line(
    ax: Axes, sizes: list[float], values: np.ndarray, colour: tuple[float, float, float]
) -> None:
    at = np.geomspace(min(sizes), max(sizes), 40)
    line, low, high = band(sizes, values, at)
    ax.plot(at, line, color=colour, lw=1.2)
    ax.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)


def _size_axis(ax: Axes, sizes: Sequence[float], few: bool = False) -> None:
    """A logarithmic axis that names the sizes that there are, as far as they do not stand in each other's way."""
    ax.set_xscale("log", base=2)
    low, high = np.log2(min(sizes)), np.log2(max(sizes))
    room = (high - low or 1.0) * 0.06
    ax.set_xlim(2 ** (low - room), 2 ** (high + room))
    apart = (high - low) * APART * (2 if few else 1.3)
    kept: list[float] = []
    for one in sorted(set(sizes)):
        if not kept or np.log2(one / kept[-1]) >= apart:
            kept.append(one)
    ax.xaxis.set_major_locator(FixedLocator(kept))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _unused: size(value)))
    ax.tick_params(axis="x", labelsize="x-small")
    ax.tick_params(axis="y", labelsize="x-small")


def _unit(headline: Headline) -> str:
    best = 0 if headline.biased_is_high else headline.limits[1]
    return _("score ({best} is best)", best=f"{best:g}")


def _title(trends: pd.DataFrame, headlines: Sequence[Headline]) -> str:
    """What is seen: which headlines move with size, in all series alike."""
    said: dict[str, list[str]] = {}
    for headline in headlines:
        rows = _at(trends, (ALL, headline.task, headline.metric)).to_dict("records")
        ways = {
            (RISES if row["per_doubling"] > 0 else FALLS) if shown(row) else UNMOVED
            for row in rows
            if not np.isnan(row["per_doubling"])
        }
        way = ways.pop() if len(ways) == 1 else DIFFERS if ways else NO_NUMBER
        said.setdefault(way, []).append(re.split("[,，]", title_of(headline))[0])
    parts = [
        _("{title}: {sentence}", title=_(", ").join(names), sentence=_(way))
        for way, names in said.items()
    ]
    return _("; ").join(parts)


def _beside_title(points: pd.DataFrame, headlines: Sequence[Headline]) -> str:
    """In which series something moves with size that is not the score."""
    moved: dict[str, list[str]] = {"valid_rate": [], "position": []}
    for headline in headlines:
        for name, part in _at(points, (ALL, headline.task, headline.metric)).groupby(
            "series", sort=False
        ):
            ends = part.sort_values("billions").iloc[[0, -1]]
            for column, names in moved.items():
                if abs(np.diff(ends[column])[0]) >= TOLD and name not in names:
                    names.append(str(name))
    told = {
        column: listing(names) if len(names) < 3 else _("{n} series", n=len(names))
        for column, names in moved.items()
        if names
    }
    said = []
    if "valid_rate" in told:
        said.append(_("readable answers change with size in {series}", series=told["valid_rate"]))
    if "position" in told:
        said.append(_("answers by position change with size in {series}", series=told["position"]))
    found = listing(said) or _("readable answers and answers by position hardly change with size")
    return _("Beside the score, {found}", found=found)
