"""Draw judges against people: mark against mark, their differences, and distances by category."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.analyses.judge_agreement import Scale, title
from bench.core.numbers import decimals, signed
from bench.figures.scores import bland_altman
from bench.figures.style import (
    FAINT,
    WIDTH,
    colours,
    forest,
    forest_axis,
    label,
    legend_below,
    set_title,
    style,
)
from bench.metrics.headline import percent
from bench.metrics.table import ALL

# Marks on a coarse scale lie on top of each other; they are drawn apart by this share of it.
JITTER = 0.008
# Of more judges, marks are drawn of those that correlate with people most and least, and distances
# over all categories alone.
MANY = 2


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
    described = []
    for (left, right), row in zip(grid, summed.to_dict("records"), strict=True):
        own = marks[marks.by == row["by"]]
        jitter = np.random.default_rng(0).normal(0, JITTER * length, (2, len(own)))
        names = {"mean": "difference", "limits_low": "limit_low", "limits_high": "limit_high"}
        who = f"{_shortened(row['by'])}, n = {row['n']:,}"
        r = "r undefined" if np.isnan(row["pearson"]) else f"r = {decimals(row['pearson'], 2)}"
        people = f"people: {scale.name}"
        bland_altman(
            left,
            right,
            [(own.human + jitter[0], own.judge + jitter[1], {"color": palette[row["by"]]})],
            {name: row[column] for name, column in names.items()},
            ends,
            (who, r, people, "judge", "judge less people"),
            partial(signed, digits=scale.digits),
        )
        described.append(f"{row['by']}: {r}")
    best = ranked.iloc[0]
    heading = "No marks go with people's"
    if not np.isnan(best.pearson):
        r = decimals(best.pearson, 2)
        heading = f"{_shortened(str(best.by))} and people: r = {r}"
    set_title(fig, heading, alt=f"{'; '.join(described)}.")
    return fig


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
    if len(judges) > MANY:  # one row per judge, else one per category
        compared, row_of, column = overall, list(overall.by), "by"
        names, ends, height = [_shortened(name) for name in row_of], 0.0, 0.3
    else:
        means = compared.groupby("category", sort=False).constant.mean().drop(ALL)
        row_of = [ALL, *map(str, means.sort_values(ascending=False).index)]
        names = ["all" if name == ALL else label(benchmark, name) for name in row_of]
        column, ends = "category", 0.28 if len(judges) > 1 else 0.0
        height = 0.18 + 0.15 * len(judges)
    fig = Figure(figsize=(WIDTH, 1.5 + height * len(row_of)), layout="constrained")
    ax = fig.subplots()
    rows = compared.rename(columns={"distance": "score"})
    for (by, colour), offset in zip(
        colours(judges).items(), np.linspace(-ends, ends, len(judges)), strict=True
    ):
        own = rows[rows.by == by]
        y = np.array([row_of.index(name) + offset for name in own[column]])
        shown = _shortened(by) if column == "category" else ""
        constant = "always the same mark, at its best" if by == judges[0] else ""
        ax.vlines(own.constant, y - 0.13, y + 0.13, color=FAINT, lw=2.5, label=constant)
        forest(ax, own, y, colour, ms=4.5, label=shown)
    forest_axis(ax, names)
    ax.tick_params(axis="y", labelsize="small")
    reach = float(np.nanmax(rows[["ci_high", "score", "constant"]].to_numpy()))
    ax.set_xlim(-0.02 * reach, 1.05 * reach)
    axis = "mean distance from people in points (farther from people →)"
    if scale.share:
        axis = "verdicts that are not people's (less agreement →)"
        ax.xaxis.set_major_formatter(lambda value, _position: percent(value))
    ax.set_xlabel(axis, fontsize="small")
    legend_below(fig, ax)
    best = str(overall.by.iloc[0])
    heading = title(compared, best).replace(best, _shortened(best), 1)
    set_title(fig, heading)
    return fig


def _shortened(name: str) -> str:
    """Cut the middle of a long name: models of a family differ at the end."""
    return name if len(name) <= 36 else f"{name[:12]}…{name[-23:]}"
