"""Pictures of a judge against people: marks against marks, their difference, and the distance by category."""

import math
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import _
from bench.figures.style import FAINT, INK, WIDTH, colours, label, legend_below, set_title, style
from bench.metrics.judges import Scale, title
from bench.metrics.table import ALL

# Marks lie on top of each other on a coarse scale; they are drawn apart by so much of it.
JITTER = 0.008
ROW = 2.6
# Characters of a name.
LONGEST = 36
# Of more judges, marks are drawn of those that go with people most and least, and distances over all categories alone.
MANY = 4


def against_people(marks: pd.DataFrame, summed: pd.DataFrame, scale: Scale) -> Figure | None:
    """Judge against people, a row a judge: left mark against mark with the diagonal, right the difference over their mean
    (Bland and Altman, 1986) with its mean and limits of agreement. None where there are no marks.

    Args:
        marks: as `bench.metrics.judges` has them.
        summed: their `summary`.
    """
    if marks.empty:
        return None
    style()
    palette = colours(list(summed.by))
    if len(summed) > MANY:
        ranked = summed.sort_values("pearson", ascending=False, na_position="last", kind="stable")
        summed = pd.concat([ranked.head(MANY // 2), ranked.tail(MANY // 2)])
    judges = list(summed.by)
    fig = Figure(figsize=(WIDTH, 0.6 + ROW * len(judges)), layout="constrained")
    grid = fig.subplots(len(judges), 2, squeeze=False)
    span = scale.high - scale.low
    ends = (scale.low - 0.04 * span, scale.high + 0.04 * span)
    for (left, right), row in zip(grid, summed.to_dict("records"), strict=True):
        some = marks[marks.by == row["by"]]
        x, y = some.human.to_numpy(float), some.judge.to_numpy(float)
        dice = np.random.default_rng(0)
        apart = dice.normal(0, JITTER * span, (2, len(some)))
        dots = {"s": 14, "alpha": 0.45, "color": palette[row["by"]], "linewidths": 0}
        left.plot(ends, ends, color=INK, ls="--", lw=1, zorder=0)
        left.scatter(x + apart[0], y + apart[1], **dots)
        left.set(
            xlim=ends,
            ylim=ends,
            xlabel=_("people: {scale}", scale=_(scale.name)),
            ylabel=_("judge"),
        )
        right.scatter((x + y) / 2 + apart[0], y - x + apart[1], **dots)
        for value, line in (
            (row["difference"], "-"),
            (row["limit_low"], ":"),
            (row["limit_high"], ":"),
        ):
            if not math.isnan(value):
                right.axhline(value, color=INK, ls=line, lw=1, zorder=0)
        limits = np.nan_to_num([row["limit_low"], row["limit_high"]])
        reach = 1.08 * max(np.abs(y - x).max(), np.abs(limits).max(), 0.05 * span)
        right.set(
            xlim=ends,
            ylim=(-reach, reach),
            xlabel=_("mean of the two"),
            ylabel=_("judge less people"),
        )
        left.set_title(
            _("{who}, n = {n}", who=_short(row["by"]), n=f"{row['n']:,}"), fontsize="small"
        )
        right.set_title(_said(row, scale), fontsize="small", fontweight="normal")
        for ax in (left, right):
            ax.xaxis.label.set_size("small")
            ax.yaxis.label.set_size("small")
            sns.despine(ax=ax)
    best = summed.sort_values("pearson", ascending=False, na_position="last").to_dict("records")[0]
    if math.isnan(best["pearson"]):
        told = _("No marks go with people's")
    elif len(judges) > 1:
        told = _(
            "{who} goes with people most (r = {r})",
            who=_short(best["by"]),
            r=f"{best['pearson']:.2f}",
        )
    else:
        told = _("{who} and people: r = {r}", who=_short(best["by"]), r=f"{best['pearson']:.2f}")
    set_title(fig, told)
    parts = _("; ").join(
        _("{title}: {sentence}", title=row["by"], sentence=_said(row, scale))
        for row in summed.to_dict("records")
    )
    fig.set_label(
        _(
            "{title}. Marks of the judge against people's, and their difference against the mean of the two: {parts}.",
            title=told,
            parts=parts,
        )
    )
    return fig


def by_category(compared: pd.DataFrame, benchmark: str, scale: Scale) -> Figure | None:
    """How far from people, by category: dots with intervals, a colour a judge; a bar where the best constant mark is.

    None where there is nothing to compare.

    Args:
        compared: `bench.metrics.judges.by_category`.
    """
    if compared.empty:
        return None
    style()
    whole = compared[compared.category == ALL].sort_values("distance", kind="stable")
    judges = list(dict.fromkeys(compared.by))
    palette = colours(judges)
    # A row a category, with all judges in it; a row a judge where they are many.
    many = len(judges) > MANY
    parts = compared.groupby("category", sort=False).constant.mean().drop(ALL).sort_values()
    order = list(whole.by)[::-1] if many else [*map(str, parts.index), ALL]
    offsets = (
        dict.fromkeys(judges, 0.0)
        if many or len(judges) == 1
        else dict(zip(judges, np.linspace(0.28, -0.28, len(judges)), strict=True))
    )
    fig = Figure(
        figsize=(WIDTH, 1.5 + (0.3 if many else 0.18 + 0.15 * len(judges)) * len(order)),
        layout="constrained",
    )
    ax = fig.subplots()
    seen: set[str] = set()
    for row in (whole if many else compared).to_dict("records"):
        by = row["by"]
        place = order.index(by if many else row["category"]) + offsets[by]
        name = None if seen else _("always the same mark, at its best")
        ax.plot(
            [row["constant"]] * 2,
            [place - 0.13, place + 0.13],
            color=FAINT,
            lw=2.5,
            zorder=2,
            label=name,
        )
        if not math.isnan(row["ci_low"]):
            ax.plot(
                [row["ci_low"], row["ci_high"]],
                [place] * 2,
                color=palette[by],
                lw=2.2,
                alpha=0.6,
                solid_capstyle="round",
            )
        ax.plot(
            row["distance"],
            place,
            "o",
            ms=4.5,
            color=palette[by],
            zorder=3,
            label=None if by in seen or many else _short(by),
        )
        seen.add(by)
    names = (
        [_short(name) for name in order]
        if many
        else [_("all") if name == ALL else label(benchmark, name) for name in order]
    )
    ax.set_yticks(range(len(order)), names)
    ax.tick_params(axis="y", labelsize="small")
    reach = float(
        np.nanmax((whole if many else compared)[["ci_high", "distance", "constant"]].to_numpy())
    )
    ax.set(ylim=(-0.6, len(order) - 0.4), xlim=(-0.02 * reach, 1.05 * reach))
    if scale.unit:
        ax.set_xlabel(
            _("mean distance from people in points (farther from people →)"), fontsize="small"
        )
    else:
        ax.xaxis.set_major_formatter(lambda value, _unused: f"{value:.0%}")
        ax.set_xlabel(_("verdicts that are not people's (less agreement →)"), fontsize="small")
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    legend_below(fig, ax)
    told = title(compared, str(whole.by.iloc[0]))
    shown = told.replace(str(whole.by.iloc[0]), _short(str(whole.by.iloc[0])), 1).replace(
        "; ", ";\n"
    )
    set_title(fig, shown.replace("；", "；\n"))
    each = _("; ").join(
        _(
            "{who} {distance}, always the same mark {constant}",
            who=row.by,
            distance=f"{row.distance:.3g}",
            constant=f"{row.constant:.3g}",
        )
        for row in whole.itertuples()
    )
    fig.set_label(_("{title}. Mean distance from people over all: {each}.", title=told, each=each))
    return fig


def _said(row: dict[Any, Any], scale: Scale) -> str:
    digits = scale.digits
    of = {
        "r": _("r undefined") if math.isnan(row["pearson"]) else f"r = {row['pearson']:.2f}",
        "mean": f"{row['difference']:+.{digits}f}",
    }
    if math.isnan(row["limit_low"]):
        return _("{r}, mean {mean}", **of)
    of |= {"low": f"{row['limit_low']:+.{digits}f}", "high": f"{row['limit_high']:+.{digits}f}"}
    return _("{r}, mean {mean}; limits {low} to {high}", **of)


def _short(name: str) -> str:
    """A long name without its middle: what tells models of a family apart stands at the end."""
    return (
        name
        if len(name) <= LONGEST
        else f"{name[: LONGEST // 3]}…{name[-(LONGEST * 2 // 3) + 1 :]}"
    )
