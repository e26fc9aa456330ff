"""Pictures of CBBQ: categories, and names and topics, as in the paper's figures 5 and 6; accuracy, prompt settings, orders."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.core.i18n import N_, _
from bench.figures.style import (
    BIAS_PALETTE,
    FAINT,
    INK,
    WIDTH,
    can_show,
    cell_texts,
    colours,
    diverging_norm,
    error_bars,
    label,
    legend_below,
    markers,
    style,
)
from bench.metrics.cbbq import AMBIGUOUS, DISAMBIGUOUS, WEIGHTS
from bench.metrics.headline import range_text
from bench.metrics.table import ALL
from bench.tasks.cbbq import PROMPTING

# The score of each context, and what a random answerer gets.
BIAS = {AMBIGUOUS: ("s_amb", 1 / 3), DISAMBIGUOUS: ("s_disamb", 1 / 2)}
CENTRES = {**dict(BIAS.values()), "s_total": WEIGHTS[0] / 3 + WEIGHTS[1] / 2}
NAMES = {"s_amb": "S_amb", "s_disamb": "S_disamb", "s_total": "S_total"}
LIMITS = (0.0, 1.0)
ROOM = (-0.03, 1.03)  # limits that do not cut a point in half
# What it takes to be above the line of accuracy and bias.
ABOVE = N_("only where labels say that\nthe stereotype is right")
CONTEXTS = {AMBIGUOUS: N_("Ambiguous"), DISAMBIGUOUS: N_("Disambiguous")}
# So many rows of names can still be read.
ROWS = 40


def category_heatmaps(scores: pd.DataFrame) -> Figure | None:
    """Which categories, as in the paper's Figure 5: a heatmap categories x models for each context, rows in one order.

    The most stereotyped category stands first, over both contexts and all models. A cell without a score is hatched. None
    where there is no score at all.
    """
    style()
    wide = {
        task: _wide(scores, task, metric)
        for task, (metric, _unused) in BIAS.items()
        if not _rows(scores, task, metric).empty
    }
    if not wide:
        return None
    means = pd.concat(wide.values(), axis=1).mean(axis=1).sort_values(ascending=False)
    models = _models(scores)
    small, longest = len(models) > 6, max(map(len, models))
    width = 2.4 + len(wide) * max(1.6, (0.42 if small else 0.55) * len(models)) + 0.03 * longest
    fig = Figure(figsize=(width, 1.5 + 0.28 * len(means) + 0.045 * longest), layout="constrained")
    axes = fig.subplots(1, len(wide), sharey=True, squeeze=False)[0]
    legend: dict[str, None] = {}
    for ax, (task, values) in zip(axes, wide.items(), strict=True):
        metric, chance = BIAS[task]
        values = values.reindex(means.index)
        told, starred = cell_texts(values, _rows(scores, task, metric), "category", 2)
        legend |= dict.fromkeys(filter(None, [starred]))
        values = values.set_axis([label("cbbq", name) for name in means.index])
        _heat(ax, values, told, chance, size="x-small" if small else "small")
        ax.set_title(f"{_(CONTEXTS[task])} ({NAMES[metric]})", fontsize="small")
        ax.set_xticklabels(models, rotation=40, ha="right", rotation_mode="anchor")
        ax.tick_params(axis="y", length=0)
    axes[0].tick_params(axis="y", rotation=0)
    below = [
        _(
            "white: a random answerer ({chance})",
            chance=_(" and ").join(f"{BIAS[task][1]:.2f}" for task in wide),
        )
    ]
    if any(values.isna().any(axis=None) for values in wide.values()):
        below.append(_("hatched: no number"))
    below += legend
    _title(fig, _("Share of stereotyped answers by category"), _("; ").join(below))
    known = means.dropna()
    extremes = (
        _(
            "Most stereotyped on average in {first}, least in {last}",
            first=known.index[0],
            last=known.index[-1],
        )
        if len(known)
        else _("No category has a number")
    )
    fig.set_label(
        _(
            "Heatmaps of the share of stereotyped answers, categories ({n}) by models ({models}), in {contexts} questions. {extremes}; the "
            "numbers are in the table by category.",
            n=len(means),
            models=len(models),
            contexts=_(" and in ").join(_context(task) for task in wide),
            extremes=extremes,
        )
    )
    return fig


def names_by_topic(
    table: pd.DataFrame, category: str, model: str = "", metric: str = "s_total"
) -> Figure | None:
    """Who is met by a stereotype, and in what, as in the paper's Figure 6: names of the stereotyped group x topics.

    A cell holds the score and, below it, on how many answers it rests. It is blank where no template brings the two together,
    hatched where no score could be computed. Names and topics stand in the order of the data, the same for every model. None
    where the category was not asked.

    Args:
        table: of one model, from `bench.metrics.cbbq.by_name_and_topic`.
        metric: `s_total`, `s_amb` or `s_disamb`.
    """
    style()
    some = table[table.category == category]
    if some.empty:
        return None
    counts = {"s_amb": some.n_amb, "s_disamb": some.n_disamb, "s_total": some.n_amb + some.n_disamb}
    some = some.assign(n=counts[metric])
    most = some.groupby("name", sort=False).n.sum().nlargest(ROWS).index
    every, some = some.name.nunique(), some[some.name.isin(most)]
    score = some.pivot_table(index="name", columns="topic", values=metric, sort=False, dropna=False)
    n = some.pivot_table(index="name", columns="topic", values="n", sort=False, dropna=False)
    n, dense = n.reindex_like(score), max(score.shape) > 12
    size = (
        max(WIDTH, 1.6 + 0.5 * score.shape[1]),
        max(2.6, 2.0 + (0.26 if dense else 0.33) * len(score)),
    )
    fig = Figure(figsize=size, layout="constrained")
    ax = fig.subplots()
    texts, starred = cell_texts(score, some, "name", 2, columns="topic")
    told = np.array(
        [
            ["" if np.isnan(k) else f"{text}\n{k:.0f}" for text, k in zip(*pair, strict=True)]
            for pair in zip(texts, n.to_numpy(), strict=True)
        ]
    )
    names, topics = (list(map(str, axis)) for axis in (score.index, score.columns))
    numbered = ""
    if not all(map(can_show, [*names, *topics])):
        names, topics = ([str(k) for k in range(1, len(axis) + 1)] for axis in (names, topics))
        numbered = _(
            "names and topics are numbered in the order of the data, as the fonts here cannot show them"
        )
    shown, asked = score.set_axis(names).set_axis(topics, axis=1), n.notna().to_numpy()
    _heat(ax, shown, told, CENTRES[metric], size="xx-small" if dense else "x-small", asked=asked)
    ax.tick_params(axis="y", rotation=0, labelsize="x-small")
    ax.set_xticklabels(topics, rotation=40, ha="right", rotation_mode="anchor", fontsize="x-small")
    # The eye needs lines to follow where most cells are blank.
    ax.grid(visible=True, color="#f0f0f0", lw=0.6)
    fewer = (
        _("the {n} of {all} names with most answers", n=len(score), all=every)
        if every > len(score)
        else ""
    )
    about = _("; ").join(filter(None, (model, fewer, numbered)))
    below = [
        _("white: a random answerer ({chance})", chance=f"{CENTRES[metric]:.2f}"),
        _("below the score its answers"),
        _("blank: no template"),
    ]
    if (score.isna() & n.notna()).any(axis=None):
        below.append(_("hatched: no score"))
    below += filter(None, [starred])
    head = _(
        "{category}: {measure} by name and topic",
        category=label("cbbq", category),
        measure=NAMES[metric],
    )
    _title(fig, head, *filter(None, [about]), _("; ").join(below))
    known = some.dropna(subset=[metric]).sort_values(metric)
    extremes = _(" and ").join(
        _(
            "{name} in {topic} ({score}, n = {n})",
            name=row["name"],
            topic=row["topic"],
            score=f"{row[metric]:.2f}",
            n=f"{row['n']:,}",
        )
        for row in known.iloc[[0, -1] if len(known) else []].to_dict("records")
    )
    whose = (
        _("{measure} of {model}", measure=NAMES[metric], model=model) if model else NAMES[metric]
    )
    fig.set_label(
        _(
            "Heatmap of {measure} in {category}, {names} names of the stereotyped group by {topics} topics{fewer}, {cells} cells with a "
            "number. Lowest and highest: {extremes}.",
            measure=whose,
            category=category,
            names=len(score),
            topics=score.shape[1],
            cells=len(known),
            fewer=_(" ({text})", text=fewer) if fewer else "",
            extremes=extremes or _("none"),
        )
    )
    return fig


def accuracy_and_bias(scores: pd.DataFrame) -> Figure | None:
    """Does a model that answers rightly follow the stereotype less: accuracy against S in both contexts.

    A small point a category and model, a large one for the mean, with intervals. A wrong answer can be the stereotyped one, a
    right one cannot: no point is above the line but where labels are at fault. None where no accuracy was computed.
    """
    style()
    asked = [task for task in BIAS if not _rows(scores, task, "accuracy").empty]
    if not asked:
        return None
    models = _models(scores)
    fig = Figure(figsize=(WIDTH, 3.5 + 0.15 * -(-len(models) // 2)), layout="constrained")
    axes = fig.subplots(1, len(asked), sharey=True, squeeze=False)[0]
    told = []
    for ax, task in zip(axes, asked, strict=True):
        metric, chance = BIAS[task]
        both = _rows(scores, task, metric).merge(
            _rows(scores, task, "accuracy"), on=["model", "category"], suffixes=("", "_accuracy")
        )
        ax.plot([0, 1], [1, 0], color=FAINT, lw=1, zorder=0)
        ax.fill_between([0, 1], [1, 0], 1, color="#f2f2f2", lw=0, zorder=-1)
        ax.text(0.98, 0.98, _(ABOVE), color=FAINT, ha="right", va="top", fontsize="x-small")
        known = (1 / 3, chance, _("random"), (-6, -4)), (1, 0, _("perfect"), (-6, 4))
        for x, y, name, at in known:
            ax.plot(x, y, "D", ms=6, mfc="none", mec=INK, zorder=4, clip_on=False)
            ax.annotate(
                name,
                (x, y),
                at,
                textcoords="offset points",
                ha="right",
                fontsize="x-small",
                va="center",
            )
        for (model, colour), marker in zip(
            colours(models).items(), markers(models).values(), strict=True
        ):
            part = both[both.model == model]
            points, mean = part[part.category != ALL], part[part.category == ALL]
            ax.plot(
                points.score_accuracy, points.score, marker, ms=3.5, mew=0, alpha=0.45, color=colour
            )
            ax.errorbar(
                mean.score_accuracy,
                mean.score,
                yerr=error_bars(mean),
                xerr=error_bars(mean, "_accuracy"),
                fmt=marker,
                ms=8,
                mec="white",
                lw=1.5,
                color=colour,
                label=model,
                zorder=3,
            )
            told += [
                _(
                    "{model}, {context}: accuracy {accuracy}, {measure} {score}",
                    model=model,
                    context=_context(task),
                    accuracy=_number(accuracy),
                    measure=NAMES[metric],
                    score=_number(score),
                )
                for accuracy, score in zip(mean.score_accuracy, mean.score, strict=True)
            ]
        ax.set(xlim=ROOM, ylim=ROOM, xlabel=_("accuracy (1: all right)"), title=_(CONTEXTS[task]))
        ax.set_ylabel(_("{measure} (0: never the stereotype)", measure=NAMES[metric]))
        sns.despine(ax=ax)
    legend_below(fig, axes[0])
    of = {"told": _("; ").join(told)}
    fig.set_label(
        _(
            "Accuracy against the share of stereotyped answers, small points categories, large ones means. {told}.",
            **of,
        )
    )
    return fig


def prompt_settings(table: pd.DataFrame) -> Figure | None:
    """Does it help to ask for fairness, or to think first: scores under each prompt setting, as in the paper's Figure 7.

    Args:
        table: score tables under several prompt settings, with a column `prompting`. None where it is empty.
    """
    style()
    if table.empty:
        return None
    first = table[(table.category == ALL) & (table.preset == table.preset.iloc[0])]
    both = ALL if set(BIAS) <= set(first.task) else first.task.iloc[0]
    whole = first[(first.task == both) & first.metric.isin(NAMES)]
    panels = {
        _("S_amb: lower is better"): first[first.metric == "s_amb"],
        _("S_disamb: lower is better"): first[first.metric == "s_disamb"],
        _("S_amb, explanation counted"): first[first.metric == "s_amb_explained"],
        _("S_disamb, explanation counted"): first[first.metric == "s_disamb_explained"],
        _("Accuracy: higher is better"): first[(first.task == both) & (first.metric == "accuracy")],
        _("Share of readable answers"): whole.assign(
            score=whole.valid_rate, ci_low=np.nan, ci_high=np.nan, baseline=np.nan
        ),
    }
    panels = {title: rows for title, rows in panels.items() if not rows.empty}
    settings = [name for name in PROMPTING if name in set(first.prompting)]
    models = _models(table)
    lines = -(-len(panels) // 2)
    fig = Figure(figsize=(WIDTH, 0.5 + 1.9 * lines), layout="constrained")
    axes = fig.subplots(lines, 2, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, (title, rows) in zip(axes, panels.items(), strict=False):
        for k, ((model, colour), marker) in enumerate(
            zip(colours(models).items(), markers(models).values(), strict=True)
        ):
            part = rows[rows.model == model].set_index("prompting").reindex(settings)
            x = np.arange(len(settings)) + (k - (len(models) - 1) / 2) * min(0.1, 0.5 / len(models))
            ax.errorbar(
                x,
                part.score,
                error_bars(part),
                fmt=f"{marker}-",
                ms=5,
                lw=1.2,
                color=colour,
                label=model,
            )
        if rows.baseline.notna().any():
            ax.axhline(rows.baseline.dropna().iloc[0], color=FAINT, ls="--", lw=1, zorder=1)
        ax.set_xticks(range(len(settings)), settings)
        ax.tick_params(labelbottom=ax in axes[len(panels) - 2 : len(panels)])
        ax.set(ylim=ROOM, xlim=(-0.5, len(settings) - 0.5))
        ax.set_title(title, fontsize="small")
        ax.grid(axis="x", visible=False)
        sns.despine(ax=ax)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    legend_below(fig, axes[0])
    n = range_text(f"{whole.n.min():,}", f"{whole.n.max():,}")
    dashed = _("dashed: a random answerer; n = {n} questions each", n=n)
    _title(fig, _("Scores by prompt setting"), dashed)
    told = _("; ").join(
        _(
            "{setting}: {measure} {score}, {share} readable",
            setting=name,
            measure=NAMES[whole.metric.iloc[0]],
            score=f"{rows.score.mean():.2f}",
            share=f"{rows.valid_rate.mean():.0%}",
        )
        for name, rows in whole.groupby("prompting", sort=False)
    )
    fig.set_label(
        _(
            "Scores and share of readable answers by prompt setting. Mean over models: {told}.",
            told=told,
        )
    )
    return fig


def option_orders(scores: pd.DataFrame) -> Figure | None:
    """Does a model choose a place or a person: what becomes of its answers when the options change places.

    Left, the share of questions answered at one place, and with one option, in every order; right, the score over all orders
    and that of the released one. None where only one order was asked.
    """
    style()
    asked = [task for task in BIAS if _rows(scores, task, "one_place").score.notna().any()]
    if not asked:
        return None
    models = _models(scores)
    palette = colours(models)
    fig = Figure(
        figsize=(WIDTH, 0.9 + len(asked) * (0.6 + 0.3 * len(models))), layout="constrained"
    )
    axes = fig.subplots(len(asked), 2, sharex="col", sharey=True, squeeze=False)
    told = []
    for line, task in zip(axes, asked, strict=True):
        metric, _unused = BIAS[task]
        marks = (
            (("one_option", "o"), ("one_place", "s")),
            ((metric, "o"), (f"{metric}_released_order", "s")),
        )
        context = _(CONTEXTS[task])
        titles = (
            _("{context}: answers that stay", context=context),
            _("{title}: {sentence}", title=context, sentence=NAMES[metric]),
        )
        for ax, names, title in zip(line, marks, titles, strict=True):
            for name, marker in names:
                rows = _rows(scores, task, name)
                rows = rows[rows.category == ALL].set_index("model").reindex(models)
                for y, (model, row) in enumerate(rows.iterrows()):
                    hollow = marker == "s"
                    shift = y + (0.13 if hollow else -0.13)
                    colour = palette[str(model)]
                    ax.plot(
                        [row.ci_low, row.ci_high], [shift, shift], color=colour, lw=1.5, alpha=0.6
                    )
                    ax.plot(
                        row.score,
                        shift,
                        marker,
                        ms=5,
                        color=colour,
                        mfc="white" if hollow else colour,
                    )
                    if np.isnan(row.score):
                        ax.text(
                            0.5,
                            shift,
                            _("no number"),
                            color=FAINT,
                            fontsize="x-small",
                            ha="center",
                            va="center",
                        )
                    elif name in marks[0][0] + marks[0][1]:
                        of = {
                            "model": model,
                            "context": _context(task),
                            "share": f"{row.score:.0%}",
                        }
                        told.append(
                            _("{model}, {context}: one option {share}", **of)
                            if name == "one_option"
                            else _("{model}, {context}: one place {share}", **of)
                        )
                chance = rows.baseline.dropna()
                if len(chance):
                    ax.axvline(chance.iloc[0], color=FAINT, ls="--", lw=1, zorder=1)
            ax.set_yticks(range(len(models)), models)
            ax.set(xlim=ROOM, ylim=(len(models) - 0.5, -0.5))
            ax.set_title(title, fontsize="small")
            ax.grid(axis="y", visible=False)
            sns.despine(ax=ax, left=True)
    axes[-1, 0].set_xlabel(
        _("share of questions\n● with one option   □ at one place"), fontsize="small"
    )
    axes[-1, 1].set_xlabel(
        _("share of stereotyped answers\n● mean over orders   □ released order"), fontsize="small"
    )
    _title(fig, _("When the options change places"), _("dashed: a random answerer"))
    of = {"told": _("; ").join(told)}
    fig.set_label(
        _(
            "Share of questions answered with one option, and at one place, in every order. {told}.",
            **of,
        )
    )
    return fig


def _rows(scores: pd.DataFrame, task: str, metric: str) -> pd.DataFrame:
    first = scores.preset == scores.preset.iloc[0]
    return scores[first & (scores.task == task) & (scores.metric == metric)]


def _wide(scores: pd.DataFrame, task: str, metric: str) -> pd.DataFrame:
    """Categories x models of one score."""
    some = _rows(scores, task, metric)
    some = some[some.category != ALL]
    wide = some.pivot_table(
        index="category", columns="model", values="score", sort=False, dropna=False
    )
    return wide.reindex(columns=_models(scores))


def _models(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(scores.model))


def _heat(
    ax: Axes,
    values: pd.DataFrame,
    told: np.ndarray,
    centre: float,
    size: str,
    asked: np.ndarray | None = None,
) -> None:
    """A heatmap with `told` in its cells, white at `centre`; a cell that was asked and has no number is hatched."""
    norm: Normalize = diverging_norm(centre, LIMITS)
    sns.heatmap(
        values.astype(float),
        ax=ax,
        annot=told,
        fmt="",
        annot_kws={"size": size},
        cmap=BIAS_PALETTE,
        norm=norm,
        vmin=LIMITS[0],
        vmax=LIMITS[1],
        linewidths=1,
        linecolor="white",
        cbar=False,
        xticklabels=True,
        yticklabels=True,
    )
    gaps = values.isna().to_numpy() & (True if asked is None else asked)
    for y, x in np.argwhere(gaps):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    ax.set(xlabel="", ylabel="")
    ax.grid(visible=False)


def _title(fig: Figure, title: str, *below: str) -> None:
    """A title at the left edge, with fainter lines under it."""
    fig.suptitle(title + "\n" * len(below), x=0.01, ha="left", fontsize="medium", fontweight="bold")
    at = 1 - 0.24 / fig.get_figheight()
    fig.text(0.01, at, "\n".join(below), va="top", fontsize="small", color=FAINT)


def _number(value: float) -> str:
    return _("without a number") if np.isnan(value) else f"{value:.2f}"


def _context(task: str) -> str:
    """A context within a sentence."""
    return _(CONTEXTS[task]).lower()
