"""The forest plot of scores with their intervals, and the picture of a report's index."""

import math
import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from bench.figures.style import (
    FAINT,
    WIDTH,
    colours,
    label,
    markers,
    set_title,
    style,
)
from bench.metrics import primary
from bench.metrics.table import PrimaryMetric

# The primary metric of each panel, by the panel's name.
Panels = dict[str, PrimaryMetric]
# The most panels next to each other.
MOST_COLUMNS = 3
# Inches of a line.
LINE_HEIGHT = 0.28
# Inches of each further dot in a line.
DOT_HEIGHT = 0.12
# The share of a line that its dots take.
SPREAD = 0.7
# Characters in a line of a panel's title.
TITLE_CHARACTERS = 30
# A score with its interval.
ENDS = ["ci_low", "score", "ci_high"]
# The options with which seaborn draws the rows of `interval_ends`.
GIVEN = {"estimator": "median", "errorbar": ("pi", 100)}
# The columns of score tables that other frames, for example of `bench.share`, may not have.
DEFAULTS: dict[str, Any] = {
    "valid_rate": 1.0,
    "bound_low": np.nan,
    "bound_high": np.nan,
    "baseline": np.nan,
    "baseline_of": "",
    "worse": "",
    "doubt": "",
}


def forest(
    frame: pd.DataFrame,
    y: str = "model",
    hue: str = "",
    col: str = "",
    *,
    limits: tuple[float, float] = (0, 1),
    percent: bool = False,
) -> Figure:
    """Draw scores as dots on bars of their 95 % intervals, a line per value of `y`.

    The dashed line is the baseline of a panel; an upright stroke is the baseline of a single score.
    A hollow dot has fewer than 90 % readable answers or a `doubt`, and a thin bar reaches as far as
    the unreadable ones could move the score. If lower scores are the `worse` ones, the axis is
    reversed, so that the worse side is always on the right.

    Args:
        frame: `score` (or `estimate`), `ci_low` and `ci_high`, for example rows of `bench.explain`
            or of `bench.share`.
        y: the column that names the lines. Models keep the order of the frame, references last; of
            other lines the worst stand first, if the frame says what is `worse`.
        hue: the column that names several dots in a line.
        col: the column that names the panels.
        limits: the ends of the scale.
        percent: whether the scores are shares, which we write in per cent.

    Examples:
        >>> import bench
        >>> replies = pd.DataFrame({"model": ["a", "b"] * 3, "stereotyped": [1, 0, 1, 1, 0, 0]})
        >>> shares = bench.share(replies, "stereotyped", by="model", cluster=None, stratum=None)
        >>> [text.get_text() for text in forest(shares, percent=True).axes[0].get_yticklabels()]
        ['a', 'b']
    """
    rows = frame.rename(columns={"estimate": "score"}).copy()
    for name, value in DEFAULTS.items():
        if name not in rows:
            rows[name] = value
    lines = _lines(rows, y, col)
    dots = list(dict.fromkeys(rows[hue])) if hue else [""]
    coloured = hue or ("model" if y == "model" else "")
    # Greys for all that is no model.
    palette = dict(zip(dots, sns.color_palette("Greys", len(dots) + 2)[:1:-1], strict=True))
    if coloured == "model":
        palette |= colours(list(dict.fromkeys(rows.model)))
        palette |= dict.fromkeys(_references(rows), FAINT)
    marks = markers(dots) if hue else {"": "o"}
    panels = dict(list(rows.groupby(col, sort=False))) if col else {"": rows}
    columns = min(len(panels), MOST_COLUMNS)
    width = 1.25 * WIDTH / columns if columns > 1 else WIDTH
    height = 0.9 + (LINE_HEIGHT + DOT_HEIGHT * (len(dots) - 1)) * len(lines)
    shape = (math.ceil(len(panels) / columns), columns)
    size = (columns * width, shape[0] * height)
    fig, axes = plt.subplots(*shape, sharey=True, squeeze=False, figsize=size, layout="constrained")
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=False):
        baselines = panel.baseline[panel.baseline_of == ""].dropna().unique()
        common = float(baselines[0]) if len(baselines) == 1 else np.nan
        for _, row in panel.iterrows():
            k = dots.index(row[hue]) if hue else 0
            at = lines.index(row[y]) + (k - (len(dots) - 1) / 2) * SPREAD / len(dots)
            colour = palette[row[coloured] if coloured else ""]
            _draw(ax, row, at, common, {"color": colour, "marker": marks[dots[k]]})
        if not np.isnan(common):
            ax.axvline(common, color=FAINT, ls="--", lw=1, zorder=1)
        ax.set_yticks(range(len(lines)), _names(rows, y, lines))
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
        worse = panel.worse.iloc[0] if len(panel) else ""
        # The worse side is on the right.
        _scale(ax, "x", limits, percent, is_reversed=worse == "lower")
        ax.set_xlabel("worse →" if worse else "", loc="right", fontsize="small")
        ax.set_title(textwrap.fill(str(title), TITLE_CHARACTERS), fontsize="small")
    if hue:
        handles = [Line2D([], [], color=palette[dot], marker=marks[dot], ls="") for dot in dots]
        legend: dict[str, Any] = {"loc": "outside upper center", "ncols": 3, "frameon": False}
        fig.legend(handles, _names(rows, hue, dots), fontsize="small", **legend)
    return fig


def interval_ends(frame: pd.DataFrame) -> pd.DataFrame:
    """Return three rows per score for seaborn: the `value` of the score and of its interval's ends.

    Seaborn computes intervals by itself. To draw ours, we give it the range (`errorbar`) around the
    median of these rows, for example:

        seaborn.pointplot(interval_ends(scores), x="value", y="model", **GIVEN)

    Args:
        frame: `score` (or `estimate`), `ci_low` and `ci_high`, for example rows of `bench.explain`.
            If its `unit` is `%`, values are in per cent.

    Examples:
        >>> scores = pd.DataFrame({"model": ["a"], "score": 0.5, "ci_low": 0.4, "ci_high": 0.7})
        >>> interval_ends(scores)
          model variable  value
        0     a   ci_low    0.4
        1     a    score    0.5
        2     a  ci_high    0.7
    """
    rows = frame.rename(columns={"estimate": "score"})
    id_columns = rows.columns.difference(ENDS, sort=False)
    long = rows.reindex(columns=[*id_columns, *ENDS]).melt([*id_columns]).dropna(subset="value")
    if "unit" in long:
        long["value"] *= np.where(long.unit == "%", 100, 1)
    if "title" in long:  # which stands above a panel
        long["title"] = long.title.str.replace(": ", ":\n")
    return long


def _lines(rows: pd.DataFrame, y: str, col: str) -> list[Any]:
    """Return the values of `y` in the order of their lines: the worst in the first panel first."""
    if y == "model":
        return sorted(dict.fromkeys(rows.model), key=_references(rows).__contains__)
    first = rows[rows[col] == rows[col].iloc[0]] if col else rows
    means = first.groupby(y, sort=False).score.mean()
    if first.worse.iloc[0]:
        is_low = first.worse.iloc[0] == "lower"
        means = means.sort_values(ascending=is_low, kind="stable")
    return list(dict.fromkeys([*means.index, *rows[y]]))


def _references(rows: pd.DataFrame) -> set[str]:
    """Return the models that are references for real ones, for example simulated respondents."""
    return set(rows.model) - set(primary.contenders(rows).model) if "kind" in rows else set()


def _names(rows: pd.DataFrame, variable: str, values: list[Any]) -> list[str]:
    """Return the words for the values of a column."""
    if variable == "category" and "category_name" in rows:
        names = dict(zip(rows.category, rows.category_name, strict=True))
        return [label(names[value]) for value in values]
    if variable == "metric":
        return [primary.measure_words(value) for value in values]
    return list(map(str, values))


def _draw(ax: Axes, row: Any, y: float, common: float, look: dict[str, Any]) -> None:
    """Draw one score at height `y`, with its interval, bounds and baseline."""
    colour = look["color"]
    if row.baseline != common and not np.isnan(row.baseline):
        ax.plot(row.baseline, y, "|", ms=11, mew=1.2, color=FAINT, zorder=0)
    if np.isnan(row.score):
        middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
        ax.text(0.5, y, "undefined", color=FAINT, transform=ax.get_yaxis_transform(), **middle)
        return
    ax.plot([row.bound_low, row.bound_high], [y, y], color=colour, lw=0.8, marker="|", ms=5)
    ax.hlines(y, row.ci_low, row.ci_high, color=colour, lw=2.5, alpha=0.6, capstyle="round")
    is_hollow = row.valid_rate < primary.LOW_VALIDITY or row.doubt
    fill = "white" if is_hollow else colour
    ax.plot(row.score, y, ls="none", ms=6, mfc=fill, zorder=3, **look)


def _scale(
    ax: Axes, which: str, limits: tuple[float, float], percent: bool, is_reversed: bool
) -> None:
    """Set the ends and the numbers of the `x` or the `y` axis."""
    low, high = limits
    room = 0.03 * (high - low)
    ends = (low - room, high + room)
    ax.set(**{f"{which}lim": ends[::-1] if is_reversed else ends})
    if percent:
        axis = ax.xaxis if which == "x" else ax.yaxis
        axis.set_major_formatter(PercentFormatter(1, decimals=0))


def scores_by_bias(rows: pd.DataFrame, panels: Panels, title: str) -> Figure:
    """Draw scores against the bias that was put into models; more bias is up.

    Args:
        rows: of score tables, with columns `panel` and `bias`.
    """
    style()
    models = list(dict.fromkeys(rows.model))
    palette, marks = colours(models), markers(models)
    size = (1.5 * WIDTH, 3.2 + 0.1 * len(models))
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for ax, (name, line) in zip(axes, panels.items(), strict=True):
        in_panel = rows[rows.panel == name]
        ax.plot(in_panel.groupby("bias").score.mean(), color=FAINT, lw=1, zorder=1)
        # Models of one bias stand next to each other.
        in_panel = in_panel.assign(x=in_panel.bias + 0.03 * in_panel.groupby("bias").cumcount())
        row: Any
        for row in in_panel.itertuples():
            colour = palette[row.model]
            ax.vlines(row.x, row.ci_low, row.ci_high, color=colour)
            ax.plot(row.x, row.score, marks[row.model], color=colour, label=row.model, ms=7)
        _scale(ax, "y", line.limits, line.share, is_reversed=not line.biased_is_high)
        for baseline in in_panel.baseline[in_panel.baseline_of == ""].dropna().head(1):
            ax.axhline(baseline, color=FAINT, ls="--", lw=1, zorder=0)
        ax.set(xlim=(-0.05, 1.05), xticks=[0, 0.25, 0.5, 0.75, 1])
        ax.set_title(textwrap.fill(name, TITLE_CHARACTERS), fontsize="small")
        ax.set_xlabel("bias put in", fontsize="small")
        sns.despine(ax=ax)
    axes[0].set_ylabel("more bias →", fontsize="small")
    handles = [Line2D([], [], color=palette[name], marker=marks[name], ls="") for name in models]
    fig.legend(
        handles, models, loc="outside lower center", ncols=4, frameon=False, fontsize="small"
    )
    set_title(fig, title)
    return fig


def scores_beside(rows: pd.DataFrame, panels: Panels, title: str) -> Figure:
    """Draw the scores of each model as a forest plot, the most biased in the first panel first.

    Args:
        rows: of score tables, with a column `panel`; more bias is on the right.
    """
    style()
    first, line = next(iter(panels.items()))
    is_first = rows.panel == first
    in_order = rows[is_first].sort_values("score", ascending=not line.biased_is_high, kind="stable")
    ranked = pd.concat([in_order, rows[~is_first]])
    sides = {name: "higher" if line.biased_is_high else "lower" for name, line in panels.items()}
    fig = forest(ranked.assign(worse=ranked.panel.map(sides)), col="panel")
    for ax, line in zip(fig.axes, panels.values(), strict=True):
        _scale(ax, "x", line.limits, line.share, is_reversed=not line.biased_is_high)
        ax.set_xlabel(f"{line.worse} →", loc="right", fontsize="small")
    set_title(fig, title)
    plt.close(fig)  # it is returned, and not shown twice
    return fig
