"""Pictures that every benchmark has: scores by model, by category, and against validity and position."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.benchmarks import module
from bench.core.i18n import N_, _, sentences
from bench.figures.style import (
    BIAS_PALETTE,
    FAINT,
    WIDTH,
    cell_texts,
    colours,
    diverging_norm,
    label,
    legend_below,
    legend_height,
    markers,
    set_title,
    style,
)
from bench.metrics.headline import LOW_VALIDITY, findings, headline_rows, headlines
from bench.metrics.table import ALL, Headline

# How an axis calls a preference for a position, by its metric.
POSITIONS = {
    "position_bias": N_("position bias"),
    "first_option": N_("first option"),
}


def scores_by_model(scores: pd.DataFrame, benchmark: str) -> Figure | None:
    """How biased is each model, and how sure: dots with intervals, a panel a headline, a random answerer as a line.

    A thin bar is what the score could have been, had all answers been readable; an upright stroke what the
    letters of a model that prefers one would give if they did not know the groups.

    Args:
        scores: score tables with a column `model`.

    Returns:
        None where no headline's tasks were asked.
    """
    style()
    shown = [one for one in headlines(scores, benchmark) if not headline_rows(scores, one).empty]
    if not shown:
        return None
    models = list(dict.fromkeys(scores.model))
    palette = colours(models)
    fig = Figure(figsize=(WIDTH, len(shown) * (0.75 + 0.3 * len(models))), layout="constrained")
    for ax, headline in zip(fig.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
        some = headline_rows(scores, headline)
        some = some[some.category == ALL].set_index("model").reindex(models)
        order = list(
            some.score.sort_values(ascending=headline.biased_is_high, na_position="first").index
        )
        for y, model in enumerate(order):
            row = some.loc[model]
            if np.isnan(row.score):
                ax.text(
                    np.mean(headline.limits),
                    y,
                    _("undefined") if isinstance(row.note, str) else _("not applicable"),
                    color=FAINT,
                    va="center",
                    ha="center",
                )
                continue
            if not np.isnan(row.bound_low):
                ends = [row.bound_low, row.bound_high]
                ax.plot(ends, [y, y], color=palette[model], lw=0.8, marker="|", ms=5)
            if not np.isnan(row.ci_low):
                ax.plot(
                    [row.ci_low, row.ci_high],
                    [y, y],
                    color=palette[model],
                    lw=2.5,
                    solid_capstyle="round",
                    alpha=0.6,
                )
            hollow = row.valid_rate < LOW_VALIDITY
            ax.plot(
                row.score,
                y,
                "o",
                ms=6,
                color=palette[model],
                mfc="white" if hollow else palette[model],
                zorder=3,
            )
        for y, model in enumerate(order):
            if isinstance(some.baseline_of[model], str) and some.baseline_of[model]:
                ax.plot(some.baseline[model], y, "|", ms=12, mew=1.2, color=FAINT, zorder=0)
        baseline = some.baseline[some.baseline_of == ""].dropna()
        if len(baseline):
            ax.axvline(baseline.iloc[0], color=FAINT, ls="--", lw=1, zorder=0)
            ax.annotate(
                _(headline.baseline).removeprefix("a ").removeprefix("the "),
                (baseline.iloc[0], 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, -2),
                textcoords="offset points",
                color=FAINT,
                fontsize="x-small",
                va="top",
            )
        span = headline.limits[1] - headline.limits[0]
        ax.set_xlim(headline.limits[0] - 0.03 * span, headline.limits[1] + 0.03 * span)
        ax.set_yticks(range(len(order)), order)
        ax.set_ylim(-0.6, len(order) - 0.4)
        ax.set_title(_(headline.title))
        if some.bound_low.notna().any():
            ax.annotate(
                _("thin: whatever the unreadable answers were"),
                (1.0, 1.0),
                xycoords="axes fraction",
                xytext=(0, -2),
                textcoords="offset points",
                color=FAINT,
                fontsize="x-small",
                ha="right",
                va="top",
            )
        worse = _(headline.worse)
        ax.set_xlabel(
            f"{worse} →" if headline.biased_is_high else f"← {worse}",
            loc="right" if headline.biased_is_high else "left",
            fontsize="small",
        )
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    fig.set_label(sentences(findings(scores, benchmark).sentence))
    return fig


def by_category(scores: pd.DataFrame, benchmark: str) -> Iterator[tuple[str, Figure]]:
    """`categories_by_model` for each headline of a benchmark that has scores by category, with a name for its file."""
    for headline in headlines(scores, benchmark):
        some = headline_rows(scores, headline)
        if some[some.category != ALL].score.notna().any():
            yield (
                f"categories_{headline.task}_{headline.metric}",
                categories_by_model(scores, benchmark, headline),
            )


def categories_by_model(scores: pd.DataFrame, benchmark: str, headline: Headline) -> Figure:
    """Which categories: a heatmap ordered by mean, values printed; a cell without a score is hatched.

    A star marks a cell of which too few answers could be read.
    """
    style()
    some = headline_rows(scores, headline)
    some = some[some.category != ALL]
    wide = some.pivot_table(
        index="category", columns="model", values="score", sort=False, dropna=False
    )
    wide = wide.reindex(columns=list(dict.fromkeys(scores.model)))
    wide = wide.loc[wide.mean(axis=1).sort_values(ascending=not headline.biased_is_high).index]
    size = (
        max(0.75 * WIDTH, 2.6 + 0.9 * len(wide.columns)),
        max(2.6, 1.4 + 0.04 * max(map(len, wide.columns)) + 0.28 * len(wide)),
    )
    fig = Figure(figsize=size, layout="constrained")
    ax = fig.subplots()
    baseline = some.baseline[some.baseline_of == ""].dropna()
    centre = float(baseline.mean()) if len(baseline) else float(np.mean(headline.limits))
    digits = 2 if headline.limits[1] <= 1 else 0
    told, starred = cell_texts(wide, some, "category", digits)
    sns.heatmap(
        wide,
        ax=ax,
        annot=told,
        fmt="",
        annot_kws={"size": "small"},
        cmap=BIAS_PALETTE if headline.biased_is_high else BIAS_PALETTE.removesuffix("_r"),
        norm=diverging_norm(centre, headline.limits),
        vmin=headline.limits[0],
        vmax=headline.limits[1],
        linewidths=1,
        linecolor="white",
        cbar_kws={"shrink": 0.8},
    )
    for y, x in np.argwhere(wide.isna().to_numpy()):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    ax.set_yticklabels([label(benchmark, name) for name in wide.index], rotation=0)
    ax.set_xticklabels(ax.get_xticklabels(), rotation=30, ha="right")
    ax.set(xlabel="", ylabel="")
    set_title(fig, _(headline.title))
    white = _("white: {who}", who=_(headline.baseline)) if len(baseline) else ""
    if white or starred:
        below = _("; ").join(filter(None, [white, starred]))
        ax.set_title(below, fontsize="small", fontweight="normal", color=FAINT)
    means = wide.mean(axis=1).dropna()
    extremes = (
        _(
            "Highest on average in {first}, lowest in {last}",
            first=means.idxmax(),
            last=means.idxmin(),
        )
        if len(means)
        else _("No category has a number")
    )
    fig.set_label(
        _(
            "Heatmap, {n} categories by {models} models: {title}. {extremes}; the numbers are in the table by category.",
            n=len(wide),
            models=len(wide.columns),
            title=_(headline.title),
            extremes=extremes,
        )
    )
    return fig


def score_and_validity(
    scores: pd.DataFrame, benchmark: str, task: str, metric: str, position: str
) -> Figure | None:
    """Is a score real or chance: each category's score against the share of readable answers and against position.

    None where the task was not asked.

    Args:
        task, metric: one of the benchmark's headlines.
        position: the metric of position preference that the benchmark has.
    """
    style()
    every = module("metrics", benchmark).HEADLINES
    headline = next(one for one in every if (one.task, one.metric) == (task, metric))
    some = headline_rows(scores, headline)
    some = some[some.category != ALL]
    if some.empty:
        return None
    prefer = scores[(scores.metric == position) & (scores.task == headline.task)][
        ["model", "category", "score"]
    ]
    some = some.merge(
        prefer.rename(columns={"score": "position"}), on=["model", "category"], how="left"
    )
    models = list(dict.fromkeys(scores.model))
    marks = markers(models)
    fig = Figure(figsize=(WIDTH, 2.4 + legend_height(models)), layout="constrained")
    left, right = fig.subplots(1, 2, sharey=True)
    for ax, column, title in (
        (left, "valid_rate", _("share of readable answers")),
        (right, "position", _(POSITIONS[position])),
    ):
        for model, colour in colours(models).items():
            part = some[some.model == model]
            ax.plot(
                part[column], part.score, marks[model], ms=4, alpha=0.7, color=colour, label=model
            )
        ax.set(xlim=(-0.04, 1.04), xlabel=title)
        sns.despine(ax=ax)
    span = headline.limits[1] - headline.limits[0]
    left.set(
        ylabel=headline.metric
        if headline.metric != "score"
        else _("score ({task})", task=headline.task),
        ylim=(headline.limits[0] - 0.04 * span, headline.limits[1] + 0.04 * span),
    )
    legend_below(fig, left)
    known = some.position.dropna()
    told = _("mean {value}", value=f"{known.mean():.2f}") if len(known) else _("no number")
    fig.set_label(
        _(
            "{title} of each category against readable answers (mean {share}) and {position} ({told}), a colour a model.",
            title=_(headline.title),
            share=f"{some.valid_rate.fillna(0).mean():.0%}",
            position=_(POSITIONS[position]),
            told=told,
        )
    )
    return fig
