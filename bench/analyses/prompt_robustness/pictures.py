"""Pictures of two prompt sets: do scores agree, how far does each model move, what makes it so."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyses.prompt_robustness import Result, model_sentence, number, signed, title
from bench.analyses.prompt_robustness.points import HEADLINE
from bench.analyses.prompt_robustness.variance import CONDITIONS, ITEMS, by_facet
from bench.core.i18n import N_, _, sentences
from bench.figures.style import FAINT, INK, MARKS, WIDTH, colours, set_title, style, wrap_label
from bench.metrics.headline import without_brackets
from bench.metrics.table import ALL

MARKERS = "os^Dv<>phX*P"
# Narrower parts of a bar have no room for a number.
LEAST = 0.12
LEGEND: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def agreement(
    result: Result, wordings: tuple[str, str] = (N_("first wording"), N_("second wording"))
) -> Figure:
    """Draw one score against the other, and their difference against their mean.

    One mark per category and model; the lines are the diagonal and the limits of agreement.

    Args:
        wordings: names of the prompt sets.
    """
    style()
    single = result.points.table
    single = single[single.category != ALL]
    models = list(dict.fromkeys(single.model))
    palette = colours(models)
    height = 0.7 + 2.9 * len(result.limits) + 0.2 * -(-len(models) // 2)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = fig.subplots(len(result.limits), 2, squeeze=False)
    described = []
    for (left, right), row in zip(grid, result.limits.to_dict("records"), strict=True):
        own = single[(single.task == row["task"]) & (single.metric == row["metric"])]
        for k, model in enumerate(models):
            part = own[own.model == model]
            marker = {"marker": MARKERS[k % len(MARKERS)], "ms": 4, "ls": "none", "alpha": 0.75}
            look = {**marker, "color": palette[model]}
            left.plot(part["first"], part.second, label=model, **look)
            right.plot((part["first"] + part.second) / 2, part.second - part["first"], **look)
        rho = result.correlated[
            (result.correlated.task == row["task"]) & (result.correlated.metric == row["metric"])
        ]
        n, value = rho[rho.coefficient == "spearman"][["n", "value"]].to_numpy()[0]
        order = f"ρ = {value:.2f}, n = {n:.0f}" if value == value else f"n = {n:.0f}"
        _square(left, own[["first", "second"]].to_numpy(dtype=float))
        higher = _(own.higher.iloc[0])
        x = _("{wording}; {higher} →", wording=_(wordings[0]), higher=higher)
        left.set_xlabel(x, fontsize="small")
        left.set_ylabel(_(wordings[1]), fontsize="small")
        measure = without_brackets(row["title"])
        name = re.split("[:：]", measure)[0]
        heading = _("{title}: {sentence}", title=name, sentence=order)
        left.set_title(heading, fontsize="small", fontweight="normal")
        _limits(right, row)
        mean, low, high = (
            signed(row[column], row["most"]) for column in ("mean", "limits_low", "limits_high")
        )
        about = {"title": measure, "mean": mean, "low": low, "high": high, "n": row["n"]}
        described.append(_("{title}, {mean}, {low} to {high} (n = {n})", **about))
    handles, names = grid[0, 0].get_legend_handles_labels()
    names = [wrap_label(name, 40) for name in names]
    fig.legend(handles, names, ncols=2, fontsize="x-small", **LEGEND)
    set_title(fig, title(result), wrap=True)
    fig.set_label(
        _(
            "{title}. A mark a category and model; mean difference and limits of agreement: "
            "{parts}.",
            title=title(result),
            parts=_("; ").join(described),
        )
    )
    return fig


def _square(ax: Axes, values: np.ndarray) -> None:
    """Set the same limits on both axes, and draw the diagonal."""
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    margin = 0.06 * max(high - low, 1e-3)
    ends = (low - margin, high + margin)
    ax.plot(ends, ends, color=FAINT, ls="--", lw=1, zorder=0)
    ax.set(xlim=ends, ylim=ends)
    ax.set_aspect("equal")
    sns.despine(ax=ax)


def _limits(ax: Axes, row: Mapping[Any, Any]) -> None:
    """Draw the mean difference and the limits of agreement, named at the right."""
    lines = (
        (row["mean"], "-", _("mean")),
        (row["limits_low"], ":", "−1.96 sd"),
        (row["limits_high"], ":", "+1.96 sd"),
    )
    ax.axhline(0, color=FAINT, ls="--", lw=1, zorder=0)
    for value, dashes, name in lines:
        if not np.isnan(value):
            ax.axhline(value, color=INK, ls=dashes, lw=1, zorder=1)
            # Outside, where no mark can be.
            ax.annotate(
                f"{name}\n{signed(value, row['most'])}",
                (1, value),
                xycoords=("axes fraction", "data"),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize="x-small",
                color=INK,
            )
    most = max(row["most"], abs(row["limits_low"]), abs(row["limits_high"]), 1e-3)
    if not np.isnan(most):
        ax.set_ylim(-1.2 * most, 1.2 * most)
    ax.set_xlabel(_("mean of both"), fontsize="small")
    ax.set_ylabel(_("second less first"), fontsize="small")
    heading = _(
        "mean moves by {mean}, single ones by up to {most}",
        mean=signed(row["mean"], row["most"]),
        most=number(row["most"], row["most"]),
    )
    ax.set_title(heading, fontsize="small", fontweight="normal")
    sns.despine(ax=ax)


def differences(result: Result) -> Figure:
    """Draw how far the scores of each model over all categories move, one panel per headline."""
    style()
    table = result.points.table
    whole = table[table.category == ALL]
    models = list(dict.fromkeys(whole.model))
    palette = colours(models)
    groups = list(whole.groupby(HEADLINE, sort=False))
    names = [wrap_label(model, 32) for model in models]
    lines = sum(name.count("\n") + 1 for name in names)
    fig = Figure(figsize=(WIDTH, 0.4 + len(groups) * (0.75 + 0.26 * lines)), layout="constrained")
    grid = fig.subplots(len(groups), 1, squeeze=False)[:, 0]
    for ax, (_headline, rows) in zip(grid, groups, strict=True):
        rows = rows.set_index("model").reindex(models[::-1])
        for y, (model, row) in enumerate(rows.iterrows()):
            colour = palette[str(model)]
            if np.isnan(row.difference):
                look: dict[str, Any] = {"va": "center", "ha": "center", "fontsize": "small"}
                place = ("axes fraction", "data")
                ax.annotate(_("not defined"), (0.5, y), xycoords=place, color=FAINT, **look)
                continue
            if not np.isnan(row.ci_low):
                look = {"lw": 2.5, "alpha": 0.6, "solid_capstyle": "round"}
                ax.plot([row.ci_low, row.ci_high], [y, y], color=colour, **look)
            ax.plot(row.difference, y, "o", ms=6, color=colour, zorder=3)
        ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=1)
        reach = rows[["difference", "ci_low", "ci_high"]].abs().to_numpy(dtype=float)
        limit = 1.08 * max(np.nanmax(reach, initial=0), 1e-3)
        ax.set_xlim(-limit, limit)
        ax.set_yticks(range(len(models)), names[::-1])
        ax.set_ylim(-0.6, len(models) - 0.4)
        ax.set_title(_(rows.title.dropna().iloc[0]), fontsize="small")
        ax.set_xlabel(f"{_(rows.higher.dropna().iloc[0])} →", loc="right", fontsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    heading = _(
        "{n} of {all} whole scores move by more than chance (second wording less first)",
        n=int(((whole.ci_low > 0) | (whole.ci_high < 0)).sum()),
        all=len(whole),
    )
    set_title(fig, heading)
    text = sentences(model_sentence(row) for row in whole.to_dict("records"))
    fig.set_label(_("{title}. {said}", title=heading, said=text))
    return fig


def uncertainty(components: pd.DataFrame, planned: pd.DataFrame) -> Figure | None:
    """Draw the parts of a score's error variance, and its interval by the number of prompt sets.

    Args:
        components, planned: of `bench.analyses.prompt_robustness.study`; the mean over models is
            drawn if they are by model.

    Returns:
        None where no score has components.
    """
    known = components.dropna(subset="share_of_error") if len(components) else components
    if known.empty:
        return None
    style()
    every = [
        {"title": name, **by_facet(part.set_index("source"))}
        for (name, _model), part in known.groupby(["title", "model"], sort=False)
    ]
    shares = pd.DataFrame(every).groupby("title", sort=False).mean().fillna(0)
    names = {str(name): wrap_label(_(str(name)), 24) for name in shares.index}
    fig = Figure(figsize=(WIDTH, 1.6 + 0.5 * len(shares)), layout="constrained")
    left, right = (
        fig.subplots(1, 2, width_ratios=(3, 2)) if len(planned) else (fig.subplots(), None)
    )
    facets = [name for name in (ITEMS, *CONDITIONS) if name in shares]
    rows, start = range(len(shares)), pd.Series(0.0, shares.index)
    for facet, colour in colours(facets).items():
        bars = left.barh(rows, shares[facet], left=start, color=colour, label=_(facet), height=0.6)
        texts = [f"{size:.0%}" if size >= LEAST else "" for size in shares[facet]]
        left.bar_label(bars, texts, label_type="center", color="white")
        start = start + shares[facet]
    left.set_yticks(rows, list(names.values()), fontsize="small")
    left.invert_yaxis()
    left.set_xlim(0, 1)
    left.xaxis.set_major_formatter(lambda value, _position: f"{value:.0%}")
    left.set_title(_("What a score's variance comes of"), fontsize="small")
    left.grid(visible=False)
    sns.despine(ax=left, left=True)
    fig.legend(*left.get_legend_handles_labels(), ncols=4, fontsize="small", **LEGEND)
    if right is not None:
        widths = planned.groupby(["title", "wordings"], sort=False).half_width.mean().reset_index()
        for (name, part), mark in zip(widths.groupby("title", sort=False), MARKS, strict=False):
            label = names.get(str(name), str(name))
            right.plot(part.wordings, part.half_width, marker=mark, label=label)
        right.set_xscale("log", base=2)
        ticks = sorted(set(widths.wordings))
        right.set_xticks(ticks, [str(tick) for tick in ticks])
        # Room for the legend above the lines.
        right.set_ylim(0, (1.2 + 0.3 * widths.title.nunique()) * widths.half_width.max())
        right.set_xlabel(_("wordings"), fontsize="small")
        right.set_title(_("95 % interval of a score, ±"), fontsize="small")
        right.legend(frameon=False, fontsize="x-small", loc="upper right")
        sns.despine(ax=right)
    heading = (
        _("Other items move scores more than another way of asking")
        if shares[ITEMS].mean() >= 0.5
        else _("Another way of asking moves scores more than other items")
    )
    set_title(fig, heading)
    described = [
        _(
            "{title}: {sentence}",
            title=_(str(name)),
            sentence=_(", ").join(
                _("{facet} {share}", facet=_(facet), share=f"{row[facet]:.0%}") for facet in facets
            ),
        )
        for name, row in shares.iterrows()
    ]
    text = _("{text}.", text=_("; ").join(described))
    fig.set_label(_("{title}. {said}", title=heading, said=text))
    return fig
