"""Pictures of scores next to each other, in which more bias is always on the same side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.benchmarks import module
from bench.figures.style import (
    FAINT,
    WIDTH,
    colours,
    error_bars,
    forest,
    forest_axis,
    legend_below,
    legend_height,
    markers,
    set_title,
    style,
    wrap_label,
)
from bench.metrics.headline import (
    LOW_VALIDITY,
    findings,
    headline_rows,
    headlines,
    is_informative,
    number,
    percent,
    short_title,
    top_findings,
)
from bench.metrics.table import ALL, Headline

# A panel: its title, its headline, and the rows of the score table, one per model.
Panel = tuple[str, Headline, pd.DataFrame]


def scores_by_bias(panels: Sequence[Panel], title: str) -> Figure:
    """Draw scores against the bias that was put into models, one panel per benchmark.

    Args:
        panels: rows with a column `bias`; more bias is up in each panel.
        title: what is seen.
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


def scores_by_model(scores: pd.DataFrame, benchmark: str) -> Figure | None:
    """Draw the headline scores of each model with `scores_beside`.

    Args:
        scores: score tables with a column `model`.

    Returns:
        None where no headline's tasks were asked.
    """
    panels = []
    for line in headlines(scores, benchmark):
        rows = headline_rows(scores, line)
        if len(rows):
            panels.append((short_title(line), line, rows[rows.category == ALL]))
    if not panels:
        return None
    every = findings(scores, benchmark)
    worst = top_findings(every, benchmark).iloc[0]
    title, rows = module("data", benchmark).TITLE, panels[0][2]
    compared = rows[is_informative(rows, panels[0][1])]
    if len(compared) > 1 and worst.model in set(compared.model):
        title = f"{title}: {worst.model} shows the most bias"
    else:
        title = f"{title}: scores by model"
    return scores_beside(panels, title)


def scores_beside(panels: Sequence[Panel], title: str) -> Figure:
    """Draw scores with intervals, one row per model, one panel per score.

    Dashed is the baseline; an upright stroke is what a model's own letters would give if they did
    not know the groups. A thin bar is what the score could have been, had all answers been
    readable; a hollow dot marks a score of which too few answers could be read.

    Args:
        panels: more bias is on the right in each panel; the rows are in the order of the first one.
        title: what is seen.
    """
    style()
    _name, first, rows = panels[0]
    ascending = not first.biased_is_high
    order = rows.sort_values("score", ascending=ascending, na_position="last").model
    every = [name for _title, _line, rows in panels for name in rows.model]
    models = list(dict.fromkeys([*order, *every]))
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    size = (1.25 * WIDTH, lines * (0.75 + 0.26 * len(models)) + 0.35)
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(lines, columns, sharey=True, squeeze=False).flatten()
    palette = colours(list(dict.fromkeys(every)))
    for ax, (name, line, rows) in zip(axes, panels, strict=False):
        by_model = rows.set_index("model").reindex(models)
        for y, (model, row) in enumerate(by_model.iterrows()):
            colour = palette[str(model)]
            if isinstance(row.baseline_of, str) and row.baseline_of:
                ax.plot(row.baseline, y, "|", ms=11, mew=1.2, color=FAINT, zorder=0)
            if np.isnan(row.score):
                text = "undefined" if isinstance(row.note, str) else "not asked"
                middle = float(np.mean(line.limits))
                ax.text(middle, y, text, color=FAINT, va="center", ha="center", fontsize="small")
                continue
            if not np.isnan(row.bound_low):
                bounds = [row.bound_low, row.bound_high]
                ax.plot(bounds, [y, y], color=colour, lw=0.8, marker="|", ms=5)
            fill = "white" if row.valid_rate < LOW_VALIDITY else colour
            forest(ax, by_model.loc[[model]], [y], colour, mfc=fill)
        baseline = rows.baseline[rows.baseline_of == ""].dropna()
        forest_axis(ax, models, float([*baseline, np.nan][0]))
        _score_axis(ax.xaxis, ax.set_xlim, line)
        ax.set_title(wrap_label(name, 30), fontsize="small")
        ax.set_xlabel(f"{line.worse} →", loc="right", fontsize="small")
        ax.tick_params(labelsize="small")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    set_title(fig, title, alt=_alt(panels))
    return fig


def _score_axis(axis: Any, limit: Any, line: Headline) -> None:
    """Set the limits of a score's axis, the best value first, and write shares in percent."""
    low, high = line.limits
    room = 0.03 * (high - low)
    ends = (low - room, high + room)
    limit(*(ends if line.biased_is_high else reversed(ends)))
    if line.share:
        axis.set_major_formatter(FuncFormatter(lambda value, _at: percent(value)))


def _alt(panels: Sequence[Panel]) -> str:
    """Say in a sentence where the scores of each panel lie."""
    parts = []
    for name, line, rows in panels:
        scores = rows.score.dropna()
        if len(scores):
            low, high = (number(line, {"score": value}) for value in (scores.min(), scores.max()))
            parts.append(f"{name}: {low} to {high}")
    return f"{'; '.join(parts)}."
