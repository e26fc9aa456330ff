"""Pictures of McBE: tasks and categories, as in the paper's figures 6 and 8, and answers."""

from collections.abc import Container, Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.numbers import decimals
from bench.figures.style import (
    BIAS_IS_LOW_PALETTE,
    FAINT,
    WIDTH,
    cell_texts,
    colours,
    first_preset,
    heatmap_figure,
    legend_below,
    legend_height,
    markers,
    models_of,
    style,
    white_at,
    wrap_label,
)
from bench.metrics.mcbe.instances import DECAY, decay
from bench.metrics.table import ALL
from bench.tasks.mcbe import CRITERIA, TASKS

LIMITS = (0.0, 100.0)
MOST_PANELS = 5  # next to each other
# The judge's criteria, as an axis calls them.
CRITERION = {
    "accuracy": "accuracy",
    "underlying_meaning": "underlying meaning",
    "cultural_difference": "cultural difference",
    "highlights": "highlights",
}


def tasks_by_model(scores: pd.DataFrame) -> Figure:
    """Draw a heatmap of tasks by models, means over categories; a task not asked is hatched.

    White is a task's baseline, and the middle of the scale for a task without one.
    """
    rows = _scores(scores)
    rows = rows[(rows.category == ALL) & (rows.task != ALL)]
    wide = rows.pivot_table("score", "task", "model", sort=False, dropna=False)
    wide = wide.reindex(index=_tasks(wide.index), columns=models_of(scores)).astype(float)
    baselines = rows[rows.baseline_of == ""].groupby("task").baseline.mean()
    white = baselines.reindex(wide.index).fillna(float(np.mean(LIMITS)))
    shades = wide.apply(lambda row: white_at(white[row.name], LIMITS)(row), axis=1, raw=False)
    texts, starred = cell_texts(wide, rows, "task", 0)
    fig = heatmap_figure(
        pd.DataFrame(shades.tolist(), wide.index, wide.columns),
        texts,
        0.5,
        (0, 1),
        BIAS_IS_LOW_PALETTE,
        names=[f"{TASKS[t]} (white: {decimals(white[t])})" for t in wide.index],
        title="Score by task, mean over categories (100: best)",
        below=["hatched: no number", starred],
        height=max(2.2, 1.2 + 0.3 * len(wide)),
    )
    fig.axes[-1].set_yticks([0, 0.5, 1], ["worst", "baseline", "best"])
    return fig


def list_lengths(scores: pd.DataFrame) -> Figure | None:
    """Draw scenario selection by number of groups, with a coin tosser and the lowest score.

    None where it was not asked.
    """
    style()
    rows = first_preset(scores)
    rows = rows[rows.metric.str.fullmatch(r"score_\d+_words")]
    if rows.empty:
        return None
    groups = rows.metric.str.extract(r"(\d+)", expand=False).astype(int)
    rows = rows.assign(groups=groups).sort_values("groups")
    lengths = sorted(set(rows.groups))
    models = models_of(scores)
    marks = markers(models)
    height = 2.4 + legend_height([*models, "coin tosser", "strict"])
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = fig.subplots()
    for k, (model, colour) in enumerate(colours(models).items()):
        part = rows[rows.model == model]
        x = part.groups + _shift(k, len(models), 0.08, 0.7)
        # Not bars from the score: an interval by resamples need not hold it.
        ax.vlines(x, part.ci_low, part.ci_high, color=colour, lw=1.5)
        ax.plot(x, part.score, marks[model], ms=4, color=colour, label=model)
    coin = rows.groupby("groups").baseline.first()
    ax.plot(coin.index, coin, "--", color=FAINT, lw=1, label="coin tosser")
    # A strict order of n groups gets 2(n-1), ..., 2, 0 votes.
    rate = DECAY[str(scores.preset.iloc[0])]["ss"]
    floor = [float(decay((n**2 - 1) / 3, rate)) for n in lengths]
    ax.plot(lengths, floor, ":", color=FAINT, lw=1, label="strict preference (lowest possible)")
    ax.set(
        xticks=lengths,
        xlabel="groups that an instance lists",
        ylabel="score (ss), 100: even",
        ylim=(-3, 103),
    )
    sns.despine(ax=ax)
    legend_below(fig, ax)
    fig.set_label(
        f"Scenario selection by number of groups ({lengths[0]} to {lengths[-1]}): a strict "
        f"preference gets {decimals(floor[0])} with {lengths[0]} and {decimals(floor[-1])} with "
        f"{lengths[-1]}."
    )
    return fig


def severities(answers: Mapping[str, pd.DataFrame]) -> Figure | None:
    """Draw people's severity against the model's, a panel per model, equal on the diagonal.

    Args:
        answers: by model, one row per answer with columns `people` and `model`, 0 to 10.

    None where bias scoring was not asked.
    """
    style()
    shown = {name: part.dropna() for name, part in answers.items()}
    if not any(map(len, shown.values())):
        return None
    # As few lines as there can be, and no empty panel where that can be had.
    columns = min(
        range(min(MOST_PANELS, len(shown)), 2, -1),
        key=lambda n: -len(shown) % n,
        default=len(shown),
    )
    lines = -(-len(shown) // columns)
    size = (columns * 0.3 * WIDTH, 2.7 * lines + 0.3)
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    palette = colours(list(answers))
    for ax, (name, part) in zip(axes, shown.items(), strict=False):
        ax.plot([0, 10], [0, 10], color=FAINT, lw=1)
        look = {"ms": 4, "alpha": 0.45, "mew": 0}
        ax.plot(part.people, part.model, "o", color=palette[name], **look)
        ax.set(xlim=(-0.3, 10.3), ylim=(-0.3, 10.3), aspect="equal")
        text = "no number"
        if len(part):
            value = "none: a constant"
            if min(np.ptp(part.model), np.ptp(part.people)) > 0:
                value = decimals(part.people.corr(part.model, method="spearman"), 2)
            text = f"n = {len(part):,}, rank correlation {value}"
        title = f"{name}\n{wrap_label(text, 26)}"
        ax.set_title(title, fontsize="small", fontweight="normal")
        sns.despine(ax=ax)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    fig.supxlabel("severity by people, 0 to 10", fontsize="small")
    fig.supylabel("severity by the model", fontsize="small")
    fig.set_label("Severity as people and as the model see it.")
    return fig


def marks(scores: pd.DataFrame) -> Figure | None:
    """Draw the judge's four grades for bias analysis, in percent of the highest.

    None where it was not asked.
    """
    style()
    names = [criterion.name for criterion in CRITERIA]
    rows = first_preset(scores)
    rows = rows[rows.metric.isin(names) & (rows.category == ALL) & rows.score.notna()]
    if rows.empty:
        return None
    models = models_of(scores)
    shapes = markers(models)
    # A line of dots per model in each criterion.
    tall = 1.9 + max(0.0, 0.05 * len(names) * (len(models) - 6))
    fig = Figure(figsize=(WIDTH, tall + legend_height(models)), layout="constrained")
    ax = fig.subplots()
    for k, (model, colour) in enumerate(colours(models).items()):
        part = rows[rows.model == model].set_index("metric").reindex(names)
        y = np.arange(len(names)) + _shift(k, len(models), 0.12, 0.8)
        ax.hlines(y, part.ci_low, part.ci_high, color=colour, lw=2, alpha=0.6)
        ax.plot(part.score, y, shapes[model], ms=5, color=colour, label=model)
    ax.set_yticks(range(len(names)), [CRITERION[name] for name in names])
    ax.invert_yaxis()
    ax.set(xlim=(-2, 102), xlabel="mean mark, percent of the highest")
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    legend_below(fig, ax)
    fig.set_label("The judge's marks on four criteria, in percent of the highest.")
    return fig


def _scores(scores: pd.DataFrame) -> pd.DataFrame:
    rows = first_preset(scores)
    return rows[rows.metric == "score"]


def _tasks(present: Container[str]) -> list[str]:
    """Return the tasks that are present, in the paper's order."""
    return [task for task in TASKS if task in present]


def _shift(k: int, n: int, step: float, room: float) -> float:
    """Return how far the marks of the k-th of n models stand from the middle of all."""
    return (k - (n - 1) / 2) * min(step, room / n)
