"""Pictures of scores next to each other, in which more bias is always on the same side."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.figures.forest import forest
from bench.figures.style import (
    FAINT,
    WIDTH,
    colours,
    error_bars,
    legend_below,
    legend_height,
    markers,
    set_title,
    style,
    wrap_label,
)
from bench.metrics.primary import number, percent
from bench.metrics.table import PrimaryMetric

# A panel: its title, its primary metric, and the rows of the score table, one per model.
Panel = tuple[str, PrimaryMetric, pd.DataFrame]


def scores_by_bias(panels: Sequence[Panel], title: str) -> Figure:
    """Draw scores against the bias that was put into models, one panel per benchmark.

    Args:
        panels: rows with a column `bias`; more bias is up in each panel.
    """
    style()
    models = list(dict.fromkeys(name for _title, _line, rows in panels for name in rows.model))
    fig = Figure(figsize=(1.5 * WIDTH, 3.1 + legend_height(models)), layout="constrained")
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    palette, marks = colours(models), markers(models)
    for ax, (name, line, rows) in zip(axes, panels, strict=True):
        levels = rows.groupby("bias").score.mean()
        ax.plot(levels.index, levels, color=FAINT, lw=1, zorder=1)
        # Models of one bias stand next to each other.
        places = rows.bias + 0.03 * rows.groupby("bias").cumcount()
        for k, (model, at) in enumerate(zip(rows.model, places, strict=True)):
            look: dict[str, Any] = {"color": palette[model], "label": model, "ms": 7}
            row = rows.iloc[[k]]
            ax.errorbar([at], row.score, error_bars(row), fmt=marks[model], **look)
        _score_axis(ax.yaxis, ax.set_ylim, line)
        baseline = rows.baseline[rows.baseline_of == ""].dropna()
        if len(baseline):
            ax.axhline(baseline.iloc[0], color=FAINT, ls="--", lw=1, zorder=0)
        ax.set_xlim(-0.05, 1.05)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
        ax.set_title(wrap_label(name, 30), fontsize="small")
        ax.set_xlabel("bias put in", fontsize="small")
        sns.despine(ax=ax)
    axes[0].set_ylabel(f"{'more bias'} →", fontsize="small")
    legend_below(fig, *axes, ncols=4, fontsize="small")
    set_title(fig, title, alt=_alt(panels))
    return fig


def scores_beside(panels: Sequence[Panel], title: str) -> Figure:
    """Draw the scores of each model as a forest plot, one panel per score.

    Args:
        panels: more bias is on the right in each panel; the most biased model in the first one
            stands first.
    """
    style()
    parts = [
        rows.assign(panel=name, worse="higher" if line.biased_is_high else "lower")
        for name, line, rows in panels
    ]
    is_low = not panels[0][1].biased_is_high
    parts[0] = parts[0].sort_values("score", ascending=is_low, kind="stable")
    grid = forest(pd.concat(parts), col="panel")
    for ax, (_name, line, _rows) in zip(grid.axes.flat, panels, strict=True):
        _score_axis(ax.xaxis, ax.set_xlim, line)
        ax.set_xlabel(f"{line.worse} →", loc="right", fontsize="small")
    set_title(grid.figure, title, alt=_alt(panels))
    plt.close(grid.figure)
    return grid.figure


def _score_axis(axis: Any, limit: Any, line: PrimaryMetric) -> None:
    """Set the limits of a score's axis, the best value first, and write shares in percent."""
    low, high = line.limits
    room = 0.03 * (high - low)
    ends = (low - room, high + room)
    limit(*(ends if line.biased_is_high else reversed(ends)))
    if line.share:
        axis.set_major_formatter(FuncFormatter(lambda value, _at: percent(value)))


def _alt(panels: Sequence[Panel]) -> str:
    """Write the range of the scores of each panel as a sentence."""
    parts = []
    for name, line, rows in panels:
        scores = rows.score.dropna()
        if len(scores):
            low, high = (number(line, {"score": value}) for value in (scores.min(), scores.max()))
            parts.append(f"{name}: {low} to {high}")
    return f"{'; '.join(parts)}."
