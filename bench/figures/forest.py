"""The forest plot of scores with their intervals."""

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

from bench.figures.style import FAINT, MARKS, WIDTH, colours, label, markers
from bench.metrics import primary

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
    "ci_low": np.nan,
    "ci_high": np.nan,
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
    rows = frame.rename(columns={"estimate": "score"})
    rows = rows.assign(**{name: rows.get(name, value) for name, value in DEFAULTS.items()})
    lines = _lines(rows, y, col)
    dots = list(dict.fromkeys(rows[hue])) if hue else [""]
    coloured = hue or ("model" if y == "model" else "")
    looks = list(dict.fromkeys(rows[coloured])) if coloured else [""]
    if coloured == "model":
        palette, marks = colours(looks), markers(looks)
    else:  # greys for all that is no model
        greys = sns.color_palette("Greys", len(looks) + 2)[:1:-1]
        palette = dict(zip(looks, greys, strict=True))
        marks = {look: MARKS[k % len(MARKS)] for k, look in enumerate(looks)}
    panels = dict(list(rows.groupby(col, sort=False))) if col else {"": rows}
    columns = min(len(panels), MOST_COLUMNS)
    width = WIDTH / columns
    height = 0.9 + (LINE_HEIGHT + DOT_HEIGHT * (len(dots) - 1)) * len(lines)
    shape = (math.ceil(len(panels) / columns), columns)
    size = (columns * width, shape[0] * height)
    room = 0.03 * (limits[1] - limits[0])
    ends = (limits[0] - room, limits[1] + room)
    fig, axes = plt.subplots(*shape, sharey=True, squeeze=False, figsize=size, layout="constrained")
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=False):
        baselines = panel.baseline[panel.baseline_of == ""].dropna().unique()
        common = float(baselines[0]) if len(baselines) == 1 else np.nan
        for _, row in panel.iterrows():
            k = dots.index(row[hue]) if hue else 0
            at = lines.index(row[y]) + (k - (len(dots) - 1) / 2) * SPREAD / len(dots)
            look = row[coloured] if coloured else ""
            _draw(ax, row, at, common, {"color": palette[look], "marker": marks[look]})
        if not np.isnan(common):
            ax.axvline(common, color=FAINT, ls="--", lw=1, zorder=1)
        ax.set_yticks(range(len(lines)), _names(rows, y, lines))
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
        worse = panel.worse.iloc[0] if len(panel) else ""
        # The worse side is on the right.
        ax.set_xlim(*(ends[::-1] if worse == "lower" else ends))
        if percent:
            ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
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
        # References for real models, such as simulated respondents, stand last.
        return list(dict.fromkeys([*primary.contenders(rows).model, *rows.model]))
    first = rows[rows[col] == rows[col].iloc[0]] if col else rows
    means = first.groupby(y, sort=False).score.mean()
    if first.worse.iloc[0]:
        is_low = first.worse.iloc[0] == "lower"
        means = means.sort_values(ascending=is_low, kind="stable")
    return list(dict.fromkeys([*means.index, *rows[y]]))


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
