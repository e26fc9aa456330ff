"""Pictures of CBBQ: categories, and names and topics, as in the paper's figures 5 and 6; accuracy,
prompt settings, orders of options.
"""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.numbers import decimals
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    cell_texts,
    colours,
    error_bars,
    first_preset,
    forest,
    forest_axis,
    heatmap,
    label,
    legend_below,
    markers,
    models_of,
    style,
)
from bench.metrics.cbbq import AMBIGUOUS, DISAMBIGUOUS, WEIGHTS
from bench.metrics.table import ALL

# The score of each context, and what a random answerer gets.
BIAS = {AMBIGUOUS: ("s_amb", 1 / 3), DISAMBIGUOUS: ("s_disamb", 1 / 2)}
CENTRES = {**dict(BIAS.values()), "s_total": WEIGHTS[0] / 3 + WEIGHTS[1] / 2}
LIMITS = (0.0, 1.0)
ROOM = (-0.03, 1.03)  # limits that do not cut a point in half
# What it takes to be above the line of accuracy and bias.
ABOVE = "only where labels say that\nthe stereotype is right"
CONTEXTS = {AMBIGUOUS: "Ambiguous", DISAMBIGUOUS: "Disambiguous"}
# Rows of names that can still be read; share of cells from which on a heatmap is not mostly blank.
ROWS, HALF = 40, 0.5


def _measure(metric: str) -> str:
    return f"stereotyped answers ({metric.capitalize()})"


def category_heatmaps(scores: pd.DataFrame) -> Figure | None:
    """Draw heatmaps of categories by models for each context, as in the paper's Figure 5.

    The most stereotyped category comes first, over both contexts and all models. A cell without a
    score is hatched.

    None where there is no score at all.
    """
    style()
    models = models_of(scores)
    by_task, wide = {}, {}
    for task, (metric, _chance) in BIAS.items():
        rows = _rows(scores, task, metric)
        if not rows.empty:
            by_task[task] = rows
            rows = rows[rows.category != ALL]
            values = rows.pivot_table("score", "category", "model", sort=False, dropna=False)
            wide[task] = values.reindex(columns=models)
    if not wide:
        return None
    means = pd.concat(wide.values(), axis=1).mean(axis=1).sort_values(ascending=False)
    small, longest = len(models) > 6, max(map(len, models))
    width = 2.4 + len(wide) * max(1.6, (0.42 if small else 0.55) * len(models)) + 0.03 * longest
    fig = Figure(figsize=(width, 1.5 + 0.28 * len(means) + 0.045 * longest), layout="constrained")
    axes = fig.subplots(1, len(wide), sharey=True, squeeze=False)[0]
    stars: dict[str, None] = {}
    for ax, (task, values) in zip(axes, wide.items(), strict=True):
        metric, chance = BIAS[task]
        values = values.reindex(means.index)
        texts, starred = cell_texts(values, by_task[task], "category", 2)
        stars |= dict.fromkeys(filter(None, [starred]))
        values = values.set_axis([label("cbbq", name) for name in means.index])
        heatmap(ax, values, texts, chance, LIMITS, size="x-small" if small else "small")
        ax.grid(visible=False)
        ax.set_title(f"{CONTEXTS[task]} ({metric.capitalize()})", fontsize="small")
        ax.set_xticklabels(models, rotation=40, ha="right", rotation_mode="anchor")
        ax.tick_params(axis="y", length=0)
    axes[0].tick_params(axis="y", rotation=0)
    chances = " and ".join(decimals(BIAS[task][1], 2) for task in wide)
    white = f"white: a random answerer ({chances})"
    title = "Share of stereotyped answers by category"
    _title(fig, title, "; ".join([white, "hatched: no number", *stars]))
    return fig


def names_by_topic(
    table: pd.DataFrame, category: str, model: str = "", metric: str = "s_total"
) -> Figure | None:
    """Draw a heatmap of names of the stereotyped group by topics, as in the paper's Figure 6.

    A cell holds the score and, below it, the number of answers. It is blank where no template
    brings the two together, hatched where no score could be computed. Names and topics are in the
    order of the data, the same for every model.

    Args:
        table: of one model, from `bench.metrics.cbbq.by_name_and_topic`.
        metric: `s_total`, `s_amb` or `s_disamb`; in place of `s_total` the score of the one context
            that was asked.

    None where the category was not asked.
    """
    style()
    rows = table[table.category == category]
    if rows.empty:
        return None
    given = [name for name in ("s_amb", "s_disamb") if rows[name].notna().any()]
    if metric == "s_total" and len(given) == 1:
        metric = given[0]
    counts = {"s_amb": rows.n_amb, "s_disamb": rows.n_disamb, "s_total": rows.n_amb + rows.n_disamb}
    rows = rows.assign(n=counts[metric])
    most = rows.groupby("name", sort=False).n.sum().nlargest(ROWS).index
    every, rows = rows.name.nunique(), rows[rows.name.isin(most)]
    score, n = (
        rows.pivot_table(column, "name", "topic", sort=False, dropna=False)
        for column in (metric, "n")
    )
    n, dense = n.reindex_like(score), max(score.shape) > 12
    names_of = {"category": label("cbbq", category), "measure": _measure(metric)}
    title = "{category}: {measure} by name and topic".format(**names_of)
    is_sparse = n.notna().to_numpy().mean() < HALF
    if is_sparse and all(map(can_show, [*score.index, *score.columns])):
        return _names_with_topics(rows, metric, title, model)
    width = max(WIDTH, 1.6 + 0.5 * score.shape[1])
    height = max(2.6, 2.0 + (0.26 if dense else 0.33) * len(score))
    fig = Figure(figsize=(width, height), layout="constrained")
    ax = fig.subplots()
    texts, starred = cell_texts(score, rows, "name", 2, columns="topic")
    cells = zip(texts.ravel(), n.to_numpy().ravel(), strict=True)
    texts = np.array(["" if np.isnan(k) else f"{text}\n{k:.0f}" for text, k in cells])
    names, topics = (list(map(str, axis)) for axis in (score.index, score.columns))
    numbered = ""
    if not all(map(can_show, [*names, *topics])):
        names, topics = ([str(k) for k in range(1, len(axis) + 1)] for axis in (names, topics))
        numbered = (
            "names and topics are numbered in the order of the data, as the fonts here cannot show "
            "them"
        )
    heatmap(
        ax,
        score.set_axis(names).set_axis(topics, axis=1),
        texts.reshape(score.shape),
        CENTRES[metric],
        LIMITS,
        size="x-small" if dense else "small",
        asked=n.notna().to_numpy(),
    )
    ax.tick_params(axis="y", rotation=0, labelsize="small")
    ax.set_xticklabels(topics, rotation=40, ha="right", rotation_mode="anchor", fontsize="small")
    # The eye needs lines to follow where most cells are blank.
    ax.grid(visible=True, color="#f0f0f0", lw=0.6)
    fewer = ""
    if every > len(score):
        fewer = f"the {len(score)} of {every} names with most answers"
    about = "; ".join(filter(None, (model, fewer, numbered)))
    below = [
        f"white: a random answerer ({decimals(CENTRES[metric], 2)})",
        "below the score its answers",
        "blank: no template",
        "hatched: no score",
        starred,
    ]
    _title(fig, title, *filter(None, [about]), "; ".join(filter(None, below)))
    return fig


def _names_with_topics(rows: pd.DataFrame, metric: str, title: str, model: str) -> Figure:
    """Draw the score of each name in each of its topics as a dot, the most stereotyped first."""
    rows = rows[rows.n > 0].sort_values(metric, ascending=False, na_position="last").head(ROWS)
    texts = [f"{row['name']} · {row['topic']} (n = {row['n']})" for row in rows.to_dict("records")]
    fig = Figure(figsize=(WIDTH, 1.1 + 0.26 * len(rows)), layout="constrained")
    ax = fig.subplots()
    heights = np.arange(len(rows))
    ax.hlines(heights, CENTRES[metric], rows[metric], color=FAINT, lw=1.5, zorder=1)
    ax.plot(rows[metric], heights, "o", ms=6, color=colours([model])[model], zorder=3)
    forest_axis(ax, texts, CENTRES[metric])
    ax.set_xlim(ROOM)
    ax.set_xlabel(_measure(metric), fontsize="small")
    _title(fig, title, *filter(None, [model]))
    return fig


def accuracy_and_bias(scores: pd.DataFrame) -> Figure | None:
    """Draw accuracy against the share of stereotyped answers in both contexts.

    A small point per category and model, a large one for the mean, with intervals. A wrong answer
    can be the stereotyped one, a right one cannot: no point is above the line but where labels are
    wrong.

    None where no accuracy was computed.
    """
    style()
    asked = [task for task in BIAS if not _rows(scores, task, "accuracy").empty]
    if not asked:
        return None
    models = models_of(scores)
    marks = markers(models)
    fig = Figure(figsize=(WIDTH, 3.5 + 0.15 * -(-len(models) // 2)), layout="constrained")
    axes = fig.subplots(1, len(asked), sharey=True, squeeze=False)[0]
    for ax, task in zip(axes, asked, strict=True):
        metric, chance = BIAS[task]
        both = _rows(scores, task, metric).merge(
            _rows(scores, task, "accuracy"), on=["model", "category"], suffixes=("", "_accuracy")
        )
        ax.plot([0, 1], [1, 0], color=FAINT, lw=1, zorder=0)
        ax.fill_between([0, 1], [1, 0], 1, color="#f2f2f2", lw=0, zorder=-1)
        ax.text(0.98, 0.98, ABOVE, color=FAINT, ha="right", va="top", fontsize="small")
        look: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
        for x, y, name, at in ((1 / 3, chance, "random", -4), (1, 0, "perfect", 4)):
            ax.plot(x, y, "D", ms=6, mfc="none", mec=INK, zorder=4, clip_on=False)
            ax.annotate(name, (x, y), (-6, at), fontsize="small", **look)
        for model, colour in colours(models).items():
            part = both[both.model == model]
            points, mean = part[part.category != ALL], part[part.category == ALL]
            look = {"ms": 3.5, "mew": 0, "alpha": 0.45, "color": colour}
            ax.plot(points.score_accuracy, points.score, marks[model], **look)
            bars = {"yerr": error_bars(mean), "xerr": error_bars(mean, "_accuracy")}
            look = {"fmt": marks[model], "ms": 8, "mec": "white", "lw": 1.5, "color": colour}
            ax.errorbar(mean.score_accuracy, mean.score, **bars, **look, label=model, zorder=3)
        ax.set(xlim=ROOM, ylim=ROOM, xlabel="accuracy (1: all right)", title=CONTEXTS[task])
        ax.set_ylabel(f"{_measure(metric)} (0: never the stereotype)")
        sns.despine(ax=ax)
    legend_below(fig, axes[0])
    fig.set_label("Accuracy against the share of stereotyped answers in each context.")
    return fig


def option_orders(scores: pd.DataFrame) -> Figure | None:
    """Draw what becomes of answers when the options change places.

    Left, the share of questions answered at one place, and with one option, in every order; right,
    the score over all orders and that of the released one.

    None where only one order was asked.
    """
    style()
    asked = [task for task in BIAS if _rows(scores, task, "one_place").score.notna().any()]
    if not asked:
        return None
    models = models_of(scores)
    height = 0.9 + len(asked) * (0.6 + 0.3 * len(models))
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(len(asked), 2, sharex="col", sharey=True, squeeze=False)
    stay = ("one_option", "one_place")
    for line, task in zip(axes, asked, strict=True):
        metric, context = BIAS[task][0], CONTEXTS[task]
        titles = (
            f"{context}: answers that stay",
            f"{context}: {_measure(metric)}",
        )
        both = (stay, (metric, f"{metric}_released_order"))
        for ax, metrics, title in zip(line, both, titles, strict=True):
            for name, marker, shift in zip(metrics, "os", (-0.13, 0.13), strict=True):
                rows = _rows(scores, task, name)
                rows = rows[rows.category == ALL].set_index("model").reindex(models)
                for k, (model, colour) in enumerate(colours(models).items()):
                    y = k + shift
                    fill = "white" if marker == "s" else colour
                    look: dict[str, Any] = {"marker": marker, "ms": 5, "mfc": fill}
                    forest(ax, rows.loc[[model]], [y], colour, **look)
                    if np.isnan(rows.score[model]):
                        centre: dict[str, Any] = {"ha": "center", "va": "center", "color": FAINT}
                        ax.text(0.5, y, "no number", fontsize="small", **centre)
            forest_axis(ax, models, rows.baseline.max())
            ax.set(xlim=ROOM, ylim=(len(models) - 0.5, -0.5))
            ax.set_title(title, fontsize="small")
    left = "share of questions\n● with one option   □ at one place"
    right = "share of stereotyped answers\n● mean over orders   □ released order"
    axes[-1, 0].set_xlabel(left, fontsize="small")
    axes[-1, 1].set_xlabel(right, fontsize="small")
    _title(fig, "When the options change places", "dashed: a random answerer")
    return fig


def _rows(scores: pd.DataFrame, task: str, metric: str) -> pd.DataFrame:
    rows = first_preset(scores)
    return rows[(rows.task == task) & (rows.metric == metric)]


def _title(fig: Figure, title: str, *below: str) -> None:
    """Set a title at the left edge, with fainter lines under it, and the alternative text."""
    fig.suptitle(title + "\n" * len(below), x=0.01, ha="left", fontsize="medium", fontweight="bold")
    at = 1 - 0.24 / fig.get_figheight()
    fig.text(0.01, at, "\n".join(below), va="top", fontsize="small", color=FAINT)
    fig.set_label(f"{title}.")
