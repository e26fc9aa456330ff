"""Pictures that every benchmark has: scores by model, by category, and against validity."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from bench.benchmarks import module
from bench.figures.style import (
    BIAS_IS_LOW_PALETTE,
    BIAS_PALETTE,
    FAINT,
    WIDTH,
    cell_texts,
    colours,
    heatmap_figure,
    label,
    legend_below,
    legend_height,
    markers,
    models_of,
    style,
    wrap_label,
)
from bench.metrics.headline import headline_rows, headlines, short_title
from bench.metrics.table import ALL, Headline

# Name of an axis for a preference for a position, by its metric.
POSITIONS = {
    "position_bias": "position bias",
    "first_option": "answers that are the first option",
}
# Share of readable answers from which on their share is not drawn.
NEARLY_ALL = 0.9


def by_category(scores: pd.DataFrame, benchmark: str) -> Iterator[tuple[str, Figure]]:
    """Draw `categories_by_model` for each headline with scores by category, with file names."""
    for headline in headlines(scores, benchmark):
        rows = headline_rows(scores, headline)
        if rows[rows.category != ALL].score.notna().any():
            name = f"categories_{headline.task}_{headline.metric}"
            yield name, categories_by_model(scores, benchmark, headline)


def categories_by_model(scores: pd.DataFrame, benchmark: str, headline: Headline) -> Figure:
    """Draw a heatmap of categories by models, ordered by mean; a cell without a score is hatched.

    A star marks a cell of which too few answers could be read.
    """
    rows = headline_rows(scores, headline)
    rows = rows[rows.category != ALL]
    wide = rows.pivot_table(
        index="category", columns="model", values="score", sort=False, dropna=False
    )
    wide = wide.reindex(columns=models_of(scores))
    wide = wide.loc[wide.mean(axis=1).sort_values(ascending=not headline.biased_is_high).index]
    baseline = rows.baseline[rows.baseline_of == ""].dropna()
    centre = float(baseline.mean()) if len(baseline) else float(np.mean(headline.limits))
    texts, starred = cell_texts(wide, rows, "category", 2 if headline.limits[1] <= 1 else 0)
    title = headline.title
    white = f"white: {headline.baseline}" if len(baseline) else ""
    return heatmap_figure(
        wide,
        texts,
        centre,
        headline.limits,
        BIAS_PALETTE if headline.biased_is_high else BIAS_IS_LOW_PALETTE,
        names=[label(benchmark, name) for name in wide.index],
        title=title,
        below=[white, starred],
        height=max(2.6, 1.4 + 0.04 * max(map(len, wide.columns)) + 0.28 * len(wide)),
    )


def score_and_validity(
    scores: pd.DataFrame, benchmark: str, task: str, metric: str, position: str
) -> Figure | None:
    """Draw each category's score against position, and against the share of readable answers.

    Where nearly all answers could be read, their share says nothing and is left out.

    Args:
        task, metric: one of the benchmark's headlines.
        position: the metric of position preference that the benchmark has.

    Returns:
        None where the task was not asked.
    """
    style()
    every = module("metrics", benchmark).HEADLINES
    headline = next(line for line in every if (line.task, line.metric) == (task, metric))
    rows = headline_rows(scores, headline)
    rows = rows[rows.category != ALL]
    if rows.empty:
        return None
    prefer = scores[(scores.metric == position) & (scores.task == headline.task)]
    prefer = prefer[["model", "category", "score"]].rename(columns={"score": "position"})
    rows = rows.merge(prefer, on=["model", "category"], how="left")
    models = models_of(scores)
    marks = markers(models)
    columns = {"valid_rate": "share of readable answers", "position": POSITIONS[position]}
    if rows.valid_rate.min() > NEARLY_ALL:
        del columns["valid_rate"]
    size = (WIDTH * (1 + len(columns)) / 3, 2.6 + legend_height(models))
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for ax, (column, title) in zip(axes, columns.items(), strict=True):
        for model, colour in colours(models).items():
            part = rows[rows.model == model]
            ax.plot(
                part[column], part.score, marks[model], ms=4, alpha=0.7, color=colour, label=model
            )
        ax.set(xlim=(-0.04, 1.04), xlabel=title)
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        sns.despine(ax=ax)
    low, high = headline.limits
    if headline.share:
        axes[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes[0].set(
        ylabel=wrap_label(short_title(headline), 24),
        ylim=(low - 0.04 * (high - low), high + 0.04 * (high - low)),
    )
    legend_below(fig, axes[0])
    columns_text = ", ".join(columns.values())
    fig.set_label(f"{headline.title}: {columns_text}.")
    return fig


def intervals(
    frame: pd.DataFrame, x: str = "estimate", y: str = "model", col: str = "task", **look: Any
) -> sns.FacetGrid:
    """Draw estimates with their intervals by `seaborn.relplot`, a panel for each value of `col`.

    Args:
        frame: a result of `bench.share`, `bench.compare` and so on, with `ci_low` and `ci_high`.
        look: other arguments of `seaborn.relplot`, such as `hue`.
    """
    height = 0.8 + 0.25 * frame[y].nunique()
    columns = min(3, frame[col].nunique())
    look = {"col_wrap": columns, "height": height, "aspect": 2.6 / height, **look}
    grid = sns.relplot(frame, x=x, y=y, col=col, **look)
    for name, ax in grid.axes_dict.items():
        rows = frame[frame[col] == name]
        ax.hlines(rows[y], rows.ci_low, rows.ci_high, color=FAINT, zorder=0.9)
    grid.set(ylim=(frame[y].nunique() - 0.5, -0.5))
    return grid.set_axis_labels(x, "").set_titles("{col_name}")
