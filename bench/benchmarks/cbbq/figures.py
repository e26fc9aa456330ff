"""The pictures of CBBQ's paper: categories, names by topic, prompt settings (Figures 5 to 7)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.benchmarks.cbbq.scores import WEIGHTS
from bench.figures.forest import forest
from bench.figures.style import (
    WIDTH,
    cell_texts,
    heatmap,
    label,
    names_or_numbers,
    set_title,
    style,
)
from bench.metrics.table import ALL

# The score of a random answerer.
CENTRES = {"s_amb": 1 / 3, "s_disamb": 1 / 2, "s_total": WEIGHTS[0] / 3 + WEIGHTS[1] / 2}
TITLES = {"s_amb": "Ambiguous (S_amb)", "s_disamb": "Disambiguous (S_disamb)"}
# The most lines of names that can still be read.
MOST_NAMES = 40
# With a smaller share of filled cells, we draw a forest plot in place of a heatmap.
HALF = 0.5


def category_heatmaps(scores: pd.DataFrame) -> Figure:
    """Draw stereotyped answers by category and model in each context, in per cent (Figure 5).

    The most stereotyped category comes first. White is a random answerer; a cell without a score is
    hatched; a star marks scores with fewer than 90 % readable answers.
    """
    style()
    rows = scores[scores.metric.isin(TITLES) & (scores.category != ALL)]
    order = rows.groupby("category", sort=False).score.mean().sort_values(ascending=False).index
    metrics = [metric for metric in TITLES if metric in set(rows.metric)]
    models, names = rows.model.unique(), [label("cbbq", name) for name in order]
    longest = max(map(len, models))
    width = 2.4 + len(metrics) * max(1.6, 0.5 * len(models)) + 0.03 * longest
    fig = Figure(figsize=(width, 1.2 + 0.28 * len(order) + 0.045 * longest), layout="constrained")
    axes = fig.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for ax, metric in zip(axes, metrics, strict=True):
        own = rows[rows.metric == metric]
        wide = own.pivot_table("score", "category", "model", sort=False, dropna=False)
        values = 100 * wide.reindex(index=order, columns=models)
        texts = cell_texts(values, own, "category", 0)
        heatmap(ax, values.set_axis(names), texts, 100 * CENTRES[metric], (0, 100))
        ax.grid(visible=False)
        ax.set_title(TITLES[metric], fontsize="small")
        ax.set_xticklabels(models, rotation=40, ha="right", rotation_mode="anchor")
        ax.tick_params(axis="y", length=0, rotation=0)
    set_title(fig, "Stereotyped answers by category, in per cent")
    return fig


def names_by_topic(table: pd.DataFrame, category: str, metric: str = "s_total") -> Figure:
    """Draw stereotyped answers by name of the stereotyped group and topic, in per cent (Figure 6).

    A cell holds the score and, below it, the number of answers. It is blank if no template brings
    the two together, hatched if no score could be computed. If most cells would be blank, each name
    with its topic is a dot.

    Args:
        table: of one model, from `bench.benchmarks.cbbq.scores.by_name_and_topic`.
        category: a category in the table.
        metric: `s_total`, `s_amb` or `s_disamb`; in place of `s_total` the score of the one context
            that was asked.
    """
    style()
    rows = table[table.category == category]
    known = [name for name in TITLES if rows[name].notna().any()]
    if metric == "s_total" and len(known) == 1:
        metric = known[0]
    counts = {"s_amb": rows.n_amb, "s_disamb": rows.n_disamb, "s_total": rows.n_amb + rows.n_disamb}
    rows = rows.assign(n=counts[metric], score=rows[metric], baseline=CENTRES[metric])
    most = rows.groupby("name", sort=False).n.sum().nlargest(MOST_NAMES).index
    rows = rows[rows.name.isin(most)]
    score = 100 * rows.pivot_table("score", "name", "topic", sort=False, dropna=False)
    n = rows.pivot_table("n", "name", "topic", sort=False, dropna=False).reindex_like(score)
    title = f"{label('cbbq', category)}: stereotyped answers ({metric.capitalize()}), per cent"
    if n.notna().to_numpy().mean() < HALF:
        rows = rows[rows.n > 0].nlargest(MOST_NAMES, "score", keep="all").head(MOST_NAMES)
        lines = [f"{one.name} · {one.topic} (n = {one.n})" for one in rows.itertuples(index=False)]
        none = dict.fromkeys(["ci_low", "ci_high"], np.nan)
        fig = forest(rows.assign(text=lines, **none), y="text", percent=True)
        set_title(fig, title)
        plt.close(fig)  # it is returned, and not shown twice
        return fig
    dense = max(score.shape) > 12
    width = max(WIDTH, 1.6 + 0.5 * score.shape[1])
    height = max(2.6, 1.6 + (0.26 if dense else 0.33) * len(score))
    fig = Figure(figsize=(width, height), layout="constrained")
    ax = fig.subplots()
    texts = cell_texts(score, rows, "name", 0, columns="topic")
    answers = n.to_numpy()
    texts = np.where(np.isnan(answers), "", texts + np.char.mod("\n%.0f", np.nan_to_num(answers)))
    topics = names_or_numbers(score.columns)
    values = score.set_axis(names_or_numbers(score.index)).set_axis(topics, axis=1)
    size, centre = "x-small" if dense else "small", 100 * CENTRES[metric]
    heatmap(ax, values, texts, centre, (0, 100), size=size, asked=~np.isnan(answers))
    ax.tick_params(axis="y", rotation=0, labelsize="small")
    ax.set_xticklabels(topics, rotation=40, ha="right", rotation_mode="anchor", fontsize="small")
    # The eye needs lines to follow between blank cells.
    ax.grid(visible=True, color="#f0f0f0", lw=0.6)
    set_title(fig, title)
    return fig
