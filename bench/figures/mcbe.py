"""Pictures of McBE: tasks and categories as in the paper's figures 6 and 8, and what its scores may hide."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.core.i18n import N_, _
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
    line_styles,
    markers,
    set_title,
    style,
)
from bench.metrics.mcbe.instances import DECAY, decay
from bench.metrics.table import ALL
from bench.tasks.mcbe import CRITERIA, TASKS

PALETTE = BIAS_PALETTE.removesuffix("_r")  # red is the side of more bias, and low scores are that
LIMITS = (0.0, 100.0)
# What the judge marks, as an axis calls it.
CRITERION = {
    "accuracy": N_("accuracy"),
    "underlying_meaning": N_("underlying meaning"),
    "cultural_difference": N_("cultural difference"),
    "highlights": N_("highlights"),
}


def tasks_by_model(scores: pd.DataFrame) -> Figure:
    """Which tasks: a heatmap tasks x models of the means over categories; a task that was not asked is hatched."""
    some = _headline(scores)
    some = some[(some.category == ALL) & (some.task != ALL)]
    wide = some.pivot_table(index="task", columns="model", values="score", sort=False, dropna=False)
    wide = wide.reindex(
        index=[task for task in TASKS if task in wide.index], columns=_models(scores)
    )
    fig = _heatmap(
        wide,
        [f"{_(TASKS[task])} ({task})" for task in wide.index],
        _("Score by task, mean over categories (100: best)"),
        cell_texts(wide, some, "task", 0),
    )
    means, size = wide.mean(axis=1).dropna(), {"n": len(wide), "models": len(wide.columns)}
    if means.empty:
        fig.set_label(
            _("Heatmap, {n} tasks by {models} models, none of which has a number.", **size)
        )
        return fig
    first, last = (_(TASKS[str(name)]) for name in (means.idxmax(), means.idxmin()))
    fig.set_label(
        _(
            "Heatmap, {n} tasks by {models} models: highest on average in {first}, lowest in {last}; the numbers are in the table by "
            "category.",
            first=first,
            last=last,
            **size,
        )
    )
    return fig


def categories_by_task(scores: pd.DataFrame, model: str) -> Figure:
    """Where within a model: a heatmap categories x tasks; what has no place in a category is hatched."""
    some = _headline(scores)
    some = some[(some.model == model) & (some.category != ALL)]
    wide = some.pivot_table(
        index="category", columns="task", values="score", sort=False, dropna=False
    )
    wide = wide.reindex(columns=[task for task in (*TASKS, ALL) if task in wide])
    wide = wide.loc[wide.mean(axis=1).sort_values().index]
    fig = _heatmap(
        wide,
        [label("mcbe", str(name)) for name in wide.index],
        _("{model}: score by category and task (100: best)", model=model),
        cell_texts(wide, some, "category", 0, columns="task"),
    )
    lowest = some[some.task != ALL].dropna(subset=["score"]).nsmallest(1, "score")
    told = _("without a number")
    for row in lowest.itertuples():
        told = _(
            "lowest in {category}, {task}", category=row.category, task=_(TASKS[str(row.task)])
        )
    fig.set_label(
        _(
            "Heatmap of {model}, {n} categories by {tasks} tasks; {told}.",
            model=model,
            n=len(wide),
            tasks=len(wide.columns),
            told=told,
        )
    )
    return fig


def radars(scores: pd.DataFrame) -> Figure | None:
    """The paper's radars: a spoke a category (left) and a task (right), a line a model; a gap is left open.

    None where there are too few spokes to draw an area.
    """
    style()
    some = _headline(scores)
    by_category = some[
        (some.category != ALL)
        & (some.task == (ALL if (some.task == ALL).any() else some.task.iloc[0]))
    ]
    by_task = some[(some.category == ALL) & (some.task != ALL)]
    panels = [
        (column, part, spokes)
        for column, part, spokes in (
            ("category", by_category, list(dict.fromkeys(by_category.category))),
            ("task", by_task, [task for task in TASKS if task in set(by_task.task)]),
        )
        if len(spokes) > 2
    ]
    if not panels:
        return None
    models = _models(scores)
    marks, lines = markers(models), line_styles(models)
    height = 4.0 if len(panels) > 1 else WIDTH - 0.4
    fig = Figure(figsize=(WIDTH, height + legend_height(models)), layout="constrained")
    axes = fig.subplots(
        1,
        len(panels),
        subplot_kw={"projection": "polar"},
        squeeze=False,
        width_ratios=[1.25, 1][: len(panels)],
    )[0]
    for ax, (column, part, spokes) in zip(axes, panels, strict=True):
        angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
        title = _("By category") if column == "category" else _("By task")
        for model, colour in colours(models).items():
            values = part[part.model == model].set_index(column).score.reindex(spokes).to_numpy()
            closed = np.append(values, values[:1])
            ax.plot(
                np.append(angles, 0),
                closed,
                marker=marks[model],
                ls=lines[model],
                ms=2.5,
                lw=1.4,
                color=colour,
                label=model,
                clip_on=False,
            )
            if not np.isnan(values).any():
                ax.fill(angles, values, color=colour, alpha=min(0.08, 0.3 / len(models)))
        names = (
            [label("mcbe", name).replace(" (", "\n(") for name in spokes]
            if column == "category"
            else [name.upper() for name in spokes]
        )
        ax.set_xticks(angles, names, fontsize="x-small")
        ax.set(
            ylim=LIMITS,
            yticks=[25, 50, 75, 100],
            title=title,
            theta_offset=np.pi / 2,
            theta_direction=-1,
        )
        # Beside the circle, a name stands away from it.
        for tick, angle in zip(ax.get_xticklabels(), angles, strict=True):
            side = np.sin(angle)
            tick.set_horizontalalignment(
                "center" if abs(side) < 0.3 else "left" if side > 0 else "right"
            )
        ax.set_yticklabels(["25", "50", "75", "100"], fontsize="xx-small", color=FAINT)
    legend_below(fig, axes[0])
    overall = some[(some.category == ALL) & (some.task == ALL)]
    means = _(", ").join(
        f"{model} {score:.0f}" if score == score else f"{model} {_('no number')}"
        for model, score in zip(overall.model, overall.score, strict=True)
    )
    fig.set_label(
        _(
            "Radar charts of scores from 0 (centre) to 100, by category and by task. Overall: {means}.",
            means=means or _("not asked"),
        )
    )
    return fig


def list_lengths(scores: pd.DataFrame) -> Figure | None:
    """Scenario selection by number of groups, beside a coin tosser and the lowest possible score; None where not asked."""
    style()
    some = scores[
        scores.metric.str.fullmatch(r"score_\d+_words") & (scores.preset == scores.preset.iloc[0])
    ]
    some = some.assign(
        groups=some.metric.str.extract(r"(\d+)", expand=False).astype(int)
    ).sort_values("groups")
    if some.empty:
        return None
    lengths = sorted(set(some.groups))
    rate = DECAY[str(scores.preset.iloc[0])]["ss"]
    models = _models(scores)
    marks = markers(models)
    fig = Figure(
        figsize=(WIDTH, 2.4 + legend_height([*models, "coin tosser", "strict"])),
        layout="constrained",
    )
    ax = fig.subplots()
    for k, (model, colour) in enumerate(colours(models).items()):
        part = some[some.model == model]
        x = part.groups + (k - (len(models) - 1) / 2) * min(0.08, 0.7 / len(models))
        # Not bars from the score: an interval by resamples need not hold it.
        ax.vlines(x, part.ci_low, part.ci_high, color=colour, lw=1.5)
        ax.plot(x, part.score, marks[model], ms=4, color=colour, label=model)
    coin = some.groupby("groups").baseline.first()
    ax.plot(coin.index, coin, "--", color=FAINT, lw=1, label=_("coin tosser"))
    # A strict order of n groups gets 2(n-1), ..., 2, 0 votes.
    floor = [float(decay((n**2 - 1) / 3, rate)) for n in lengths]
    ax.plot(lengths, floor, ":", color=FAINT, lw=1, label=_("strict preference (lowest possible)"))
    ax.set(
        xticks=lengths,
        xlabel=_("groups that an instance lists"),
        ylabel=_("score (ss), 100: even"),
        ylim=(-3, 103),
    )
    sns.despine(ax=ax)
    legend_below(fig, ax)
    fig.set_label(
        _(
            "Scenario selection by number of groups ({least} to {most}): a strict preference gets {first} with {least} and {last} with "
            "{most}, so scores of sets with other list lengths cannot be compared.",
            least=lengths[0],
            most=lengths[-1],
            first=f"{floor[0]:.0f}",
            last=f"{floor[-1]:.0f}",
        )
    )
    return fig


def severities(answers: Mapping[str, pd.DataFrame]) -> Figure | None:
    """Bias scoring: people's severity against the model's, a panel a model, equal on the diagonal; None where not asked.

    Args:
        answers: by model, a row an answer with columns `people` and `model`, 0 to 10.
    """
    style()
    shown = {name: part.dropna() for name, part in answers.items()}
    shown = {name: part for name, part in shown.items() if len(part)}
    if not shown:
        return None
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    fig = Figure(figsize=(max(0.5, columns / 3) * WIDTH, 2.5 * lines + 0.3), layout="constrained")
    axes = fig.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    palette = colours(list(answers))
    for ax, (name, part) in zip(axes, shown.items(), strict=False):
        ax.plot([0, 10], [0, 10], color=FAINT, lw=1)
        ax.plot(
            part.people,
            part.model,
            "o",
            ms=4,
            alpha=0.45,
            mew=0,
            color=palette[name],
            clip_on=False,
        )
        ax.set(xlim=(-0.3, 10.3), ylim=(-0.3, 10.3), aspect="equal")
        ax.set_title(
            f"{name}\n"
            + _(
                "n = {n}, rank correlation {value}",
                n=f"{len(part):,}",
                value=_rank_correlation(part),
            ),
            fontsize="small",
            fontweight="normal",
        )
        sns.despine(ax=ax)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    fig.supxlabel(_("severity by people, 0 to 10"), fontsize="small")
    fig.supylabel(_("severity by the model"), fontsize="small")
    told = _("; ").join(
        _("{name}: rank correlation {value}", name=name, value=_rank_correlation(part))
        for name, part in shown.items()
    )
    fig.set_label(_("Severity as people and as the model see it. {told}.", told=told))
    return fig


def marks(scores: pd.DataFrame) -> Figure | None:
    """Bias analysis: the judge's four marks in percent of the highest, a colour a model; None where not asked."""
    style()
    names = [one.name for one in CRITERIA]
    some = scores[
        scores.metric.isin(names)
        & (scores.category == ALL)
        & (scores.preset == scores.preset.iloc[0])
    ]
    some = some[some.score.notna()]
    if some.empty:
        return None
    models = _models(scores)
    shapes = markers(models)
    # A row of dots a model in each criterion.
    tall = 1.9 + max(0.0, 0.05 * len(names) * (len(models) - 6))
    fig = Figure(figsize=(WIDTH, tall + legend_height(models)), layout="constrained")
    ax = fig.subplots()
    for k, (model, colour) in enumerate(colours(models).items()):
        part = some[some.model == model].set_index("metric").reindex(names)
        y = np.arange(len(names)) + (k - (len(models) - 1) / 2) * min(0.12, 0.8 / len(models))
        ax.hlines(y, part.ci_low, part.ci_high, color=colour, lw=2, alpha=0.6)
        ax.plot(part.score, y, shapes[model], ms=5, color=colour, label=model)
    ax.set_yticks(range(len(names)), [_(CRITERION[name]) for name in names])
    ax.invert_yaxis()
    ax.set(xlim=(-2, 102), xlabel=_("mean mark, percent of the highest"))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    legend_below(fig, ax)
    best = some.loc[some.score.idxmax()]
    fig.set_label(
        _(
            "The judge's marks on four criteria; the highest is {score} percent for {criterion} ({model}).",
            score=f"{best.score:.0f}",
            criterion=_(CRITERION[best.metric]),
            model=best.model,
        )
    )
    return fig


def _headline(scores: pd.DataFrame) -> pd.DataFrame:
    return scores[(scores.metric == "score") & (scores.preset == scores.preset.iloc[0])]


def _models(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(scores.model))


def _rank_correlation(part: pd.DataFrame) -> str:
    value = part.people.corr(part.model, method="spearman") if len(set(part.model)) > 1 else np.nan
    return _("none: a constant") if np.isnan(value) else f"{value:.2f}"


def _heatmap(
    wide: pd.DataFrame, names: Sequence[str], title: str, cells: tuple[np.ndarray, str]
) -> Figure:
    """A heatmap of scores; `cells` are its texts, and what their stars mean (see `style.cell_texts`)."""
    style()
    fig = Figure(
        figsize=(max(0.75 * WIDTH, 2.6 + 0.9 * len(wide.columns)), max(2.2, 1.2 + 0.3 * len(wide))),
        layout="constrained",
    )
    ax = fig.subplots()
    sns.heatmap(
        wide.astype(float),
        ax=ax,
        annot=cells[0],
        fmt="",
        annot_kws={"size": "small"},
        cmap=PALETTE,
        norm=diverging_norm(50, LIMITS),
        vmin=LIMITS[0],
        vmax=LIMITS[1],
        linewidths=1,
        linecolor="white",
        cbar_kws={"shrink": 0.8},
    )
    for y, x in np.argwhere(wide.isna().to_numpy()):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    ax.set_yticklabels(names, rotation=0)
    ax.set_xticklabels(ax.get_xticklabels(), rotation=30, ha="right")
    ax.set(xlabel="", ylabel="")
    set_title(fig, title)
    below = filter(None, [_("white: 50 of 100; hatched: no number"), cells[1]])
    ax.set_title(
        _("; ").join(below),
        fontsize="small",
        fontweight="normal",
        color=FAINT,
    )
    return fig
