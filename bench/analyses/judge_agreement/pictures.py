"""Draw judges against people: mark against mark, their differences, and distances by category."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.analyses.judge_agreement import Scale, title
from bench.core.i18n import _
from bench.figures.style import FAINT, INK, WIDTH, colours, label, legend_below, set_title, style
from bench.metrics.table import ALL

# Marks on a coarse scale lie on top of each other; they are drawn apart by this share of it.
JITTER = 0.008
# Of more judges, marks are drawn of those that correlate with people most and least, and distances
# over all categories alone.
MANY = 4


def plot_marks(marks: pd.DataFrame, summed: pd.DataFrame, scale: Scale) -> Figure | None:
    """Draw each judge's marks against people's, and their difference against the mean of the two.

    The right panels show the mean difference and the limits of agreement (Bland and Altman, 1986).
    None where there are no marks.

    Args:
        summed: the `summary` of the marks.
    """
    if marks.empty:
        return None
    style()
    palette = colours(list(summed.by))
    ranked = summed.sort_values("pearson", ascending=False, na_position="last", kind="stable")
    if len(summed) > MANY:
        summed = pd.concat([ranked.head(MANY // 2), ranked.tail(MANY // 2)])
    fig = Figure(figsize=(WIDTH, 0.6 + 2.6 * len(summed)), layout="constrained")
    grid = fig.subplots(len(summed), 2, squeeze=False)
    length = scale.high - scale.low
    ends = (scale.low - 0.04 * length, scale.high + 0.04 * length)
    for (left, right), row in zip(grid, summed.to_dict("records"), strict=True):
        own = marks[marks.by == row["by"]]
        x, y = own.human.to_numpy(float), own.judge.to_numpy(float)
        jitter = np.random.default_rng(0).normal(0, JITTER * length, (2, len(own)))
        dots: Any = {"s": 14, "alpha": 0.45, "color": palette[row["by"]], "linewidths": 0}
        left.plot(ends, ends, color=INK, ls="--", lw=1, zorder=0)
        left.scatter(x + jitter[0], y + jitter[1], **dots)
        left.set(xlim=ends, ylim=ends, ylabel=_("judge"))
        left.set_xlabel(_("people: {scale}", scale=_(scale.name)))
        right.scatter((x + y) / 2 + jitter[0], y - x + jitter[1], **dots)
        lines = np.array([row["difference"], row["limit_low"], row["limit_high"]])
        for value, dashes in zip(lines, "-::", strict=True):
            right.axhline(value, color=INK, ls=dashes, lw=1, zorder=0)
        reach = 1.08 * max(np.abs(y - x).max(), *np.nan_to_num(np.abs(lines)), 0.05 * length)
        right.set(xlim=ends, ylim=(-reach, reach), xlabel=_("mean of the two"))
        right.set_ylabel(_("judge less people"))
        who = _("{who}, n = {n}", who=_shortened(row["by"]), n=f"{row['n']:,}")
        left.set_title(who, fontsize="small")
        right.set_title(_summary_text(row, scale), fontsize="small", fontweight="normal")
        for ax in (left, right):
            ax.xaxis.label.set_size("small")
            ax.yaxis.label.set_size("small")
            sns.despine(ax=ax)
    best = ranked.iloc[0]
    if np.isnan(best.pearson):
        heading = _("No marks go with people's")
    else:
        r = f"{best.pearson:.2f}"
        heading = _("{who} and people: r = {r}", who=_shortened(str(best.by)), r=r)
    set_title(fig, heading)
    each = [
        _("{title}: {sentence}", title=row["by"], sentence=_summary_text(row, scale))
        for row in summed.to_dict("records")
    ]
    fig.set_label(
        _(
            "{title}. Marks of the judge against people's, and their difference against the mean "
            "of the two: {parts}.",
            title=heading,
            parts=_("; ").join(each),
        )
    )
    return fig


def _summary_text(row: dict[Any, Any], scale: Scale) -> str:
    r = _("r undefined") if np.isnan(row["pearson"]) else f"r = {row['pearson']:.2f}"
    names = ("difference", "limit_low", "limit_high")
    mean, low, high = (f"{row[name]:+.{scale.digits}f}" for name in names)
    return _("{r}, mean {mean}; limits {low} to {high}", r=r, mean=mean, low=low, high=high)


def plot_distances(compared: pd.DataFrame, benchmark: str, scale: Scale) -> Figure | None:
    """Draw distances from people by category, one colour per judge; bars are the constant mark.

    None where there is nothing to compare.

    Args:
        compared: as `bench.analyses.judge_agreement.by_category` returns it.
    """
    if compared.empty:
        return None
    style()
    overall = compared[compared.category == ALL].sort_values("distance", kind="stable")
    judges = list(dict.fromkeys(compared.by))
    palette = colours(judges)
    many = len(judges) > MANY
    if many:  # one row per judge, else one per category
        compared, row_of = overall, list(overall.by)[::-1]
        names = [_shortened(name) for name in row_of]
        offsets = dict.fromkeys(judges, 0.0)
        height = 0.3
    else:
        means = compared.groupby("category", sort=False).constant.mean().drop(ALL)
        row_of = [*map(str, means.sort_values().index), ALL]
        names = [_("all") if name == ALL else label(benchmark, name) for name in row_of]
        ends = 0.28 if len(judges) > 1 else 0
        offsets = dict(zip(judges, np.linspace(ends, -ends, len(judges)), strict=True))
        height = 0.18 + 0.15 * len(judges)
    fig = Figure(figsize=(WIDTH, 1.5 + height * len(row_of)), layout="constrained")
    ax = fig.subplots()
    constant: Any = {"color": FAINT, "lw": 2.5, "zorder": 2}
    for row in compared.to_dict("records"):
        by = row["by"]
        y = row_of.index(by if many else row["category"]) + offsets[by]
        ax.plot([row["constant"]] * 2, [y - 0.13, y + 0.13], **constant)
        interval = [row["ci_low"], row["ci_high"]]
        ax.plot(interval, [y, y], color=palette[by], lw=2.2, alpha=0.6, solid_capstyle="round")
        ax.plot(row["distance"], y, "o", ms=4.5, color=palette[by], zorder=3)
    ax.plot([], [], label=_("always the same mark, at its best"), **constant)
    for by in [] if many else judges:
        ax.plot([], [], "o", ms=4.5, color=palette[by], label=_shortened(by))
    ax.set_yticks(range(len(row_of)), names)
    ax.tick_params(axis="y", labelsize="small")
    reach = float(np.nanmax(compared[["ci_high", "distance", "constant"]].to_numpy()))
    ax.set(ylim=(-0.6, len(row_of) - 0.4), xlim=(-0.02 * reach, 1.05 * reach))
    axis = _("mean distance from people in points (farther from people →)")
    if scale.share:
        axis = _("verdicts that are not people's (less agreement →)")
        ax.xaxis.set_major_formatter(lambda value, _position: f"{value:.0%}")
    ax.set_xlabel(axis, fontsize="small")
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    legend_below(fig, ax)
    best = str(overall.by.iloc[0])
    heading = title(compared, best)
    set_title(fig, heading.replace(best, _shortened(best), 1))
    each = [
        _(
            "{who} {distance}, always the same mark {constant}",
            who=row.by,
            distance=f"{row.distance:.3g}",
            constant=f"{row.constant:.3g}",
        )
        for row in overall.itertuples()
    ]
    parts = _("; ").join(each)
    text = _("{title}. Mean distance from people over all: {each}.", title=heading, each=parts)
    fig.set_label(text)
    return fig


def _shortened(name: str) -> str:
    """Cut the middle of a long name: models of a family differ at the end."""
    return name if len(name) <= 36 else f"{name[:12]}…{name[-23:]}"
