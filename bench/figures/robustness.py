"""Pictures of two wordings: do scores agree, how far does each move, how far does each model as a whole."""

import re
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.core.i18n import N_, _, sentences
from bench.figures.style import FAINT, INK, WIDTH, colours, set_title, style, wrap_label
from bench.metrics.headline import without_brackets
from bench.metrics.robustness import HEADLINE
from bench.metrics.robustness_findings import model as told_model
from bench.metrics.robustness_findings import number, signed, title
from bench.metrics.table import ALL

MARKS = "os^Dv<>phX*P"


def agreement(
    table: pd.DataFrame,
    correlated: pd.DataFrame,
    limits: pd.DataFrame,
    wordings: tuple[str, str] = (N_("first wording"), N_("second wording")),
) -> Figure:
    """Do two wordings agree: scatter with the diagonal, one mark a category and model; Bland and Altman's picture beside it.

    Args:
        table: of `bench.metrics.robustness.points`, or one with `model`, `category`, `task`, `metric`,
            `title`, `higher`, `first`, `second`.
        correlated, limits: what its functions of these names say of it.
        wordings: what the two are called.
    """
    style()
    single = table[table.category != ALL]
    models = list(dict.fromkeys(single.model))
    palette = colours(models)
    marks = {name: MARKS[k % len(MARKS)] for k, name in enumerate(models)}
    rows = -(-len(models) // 2)
    fig = Figure(figsize=(WIDTH, 0.7 + 2.9 * len(limits) + 0.2 * rows), layout="constrained")
    grid = fig.subplots(len(limits), 2, squeeze=False)
    for (left, right), row in zip(grid, limits.to_dict("records"), strict=True):
        some = single[(single.task == row["task"]) & (single.metric == row["metric"])]
        for model in models:
            part = some[some.model == model]
            how = {
                "marker": marks[model],
                "ms": 4,
                "ls": "none",
                "color": palette[model],
                "alpha": 0.75,
            }
            left.plot(part["first"], part.second, label=model, **how)
            right.plot((part["first"] + part.second) / 2, part.second - part["first"], **how)
        rho = correlated[(correlated.task == row["task"]) & (correlated.metric == row["metric"])]
        n, value = rho[rho.coefficient == "spearman"][["n", "value"]].to_numpy()[0]
        order = f"ρ = {value:.2f}, n = {n:.0f}" if value == value else f"n = {n:.0f}"
        _square(left, some[["first", "second"]].to_numpy(dtype=float))
        of = {"wording": _(wordings[0]), "higher": _(some.higher.iloc[0])}
        left.set_xlabel(_("{wording}; {higher} →", **of), fontsize="small")
        left.set_ylabel(_(wordings[1]), fontsize="small")
        what = re.split("[:：]", without_brackets(row["title"]))[0]
        left.set_title(
            _("{title}: {sentence}", title=what, sentence=order),
            fontsize="small",
            fontweight="normal",
        )
        _limits(right, row)
    handles, names = grid[0, 0].get_legend_handles_labels()
    fig.legend(
        handles,
        [wrap_label(name, 40) for name in names],
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize="x-small",
    )
    told = title(correlated, limits)
    set_title(fig, told, wrap=True)
    parts = [
        _(
            "{title}, {mean}, {low} to {high} (n = {n})",
            title=without_brackets(row["title"]),
            mean=signed(row["mean"], row["most"]),
            low=signed(row["limits_low"], row["most"]),
            high=signed(row["limits_high"], row["most"]),
            n=row["n"],
        )
        for row in limits.to_dict("records")
    ]
    fig.set_label(
        _(
            "{title}. A mark a category and model; mean difference and limits of agreement: {parts}.",
            title=told,
            parts=_("; ").join(parts),
        )
    )
    return fig


def differences(table: pd.DataFrame) -> Figure:
    """How far each model's whole score moves: paired differences with intervals, a panel a headline, no effect as a line."""
    style()
    whole = table[table.category == ALL]
    models = list(dict.fromkeys(whole.model))
    palette = colours(models)
    groups = list(whole.groupby(HEADLINE, sort=False))
    lines = sum(wrap_label(model, 32).count("\n") + 1 for model in models)
    fig = Figure(figsize=(WIDTH, 0.4 + len(groups) * (0.75 + 0.26 * lines)), layout="constrained")
    for ax, (_unused, some) in zip(
        fig.subplots(len(groups), 1, squeeze=False)[:, 0], groups, strict=True
    ):
        some = some.set_index("model").reindex(models)
        for y, (model, row) in enumerate(some.iloc[::-1].iterrows()):
            if np.isnan(row.difference):
                ax.annotate(
                    _("not defined"),
                    (0.5, y),
                    xycoords=("axes fraction", "data"),
                    color=FAINT,
                    va="center",
                    ha="center",
                    fontsize="small",
                )
                continue
            if not np.isnan(row.ci_low):
                ax.plot(
                    [row.ci_low, row.ci_high],
                    [y, y],
                    color=palette[str(model)],
                    lw=2.5,
                    alpha=0.6,
                    solid_capstyle="round",
                )
            ax.plot(row.difference, y, "o", ms=6, color=palette[str(model)], zorder=3)
        ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=1)
        span = np.nanmax(
            np.abs(some[["difference", "ci_low", "ci_high"]].to_numpy(dtype=float)), initial=0
        )
        ax.set_xlim(-1.08 * max(span, 1e-3), 1.08 * max(span, 1e-3))
        ax.set_yticks(range(len(models)), [wrap_label(model, 32) for model in reversed(models)])
        ax.set_ylim(-0.6, len(models) - 0.4)
        ax.set_title(_(some.title.dropna().iloc[0]), fontsize="small")
        ax.set_xlabel(f"{_(some.higher.dropna().iloc[0])} →", loc="right", fontsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    moved = whole[(whole.ci_low > 0) | (whole.ci_high < 0)]
    told = _(
        "{n} of {all} whole scores move by more than chance (second wording less first)",
        n=len(moved),
        all=len(whole),
    )
    set_title(fig, told)
    said = sentences(told_model(row) for row in whole.to_dict("records"))
    fig.set_label(_("{title}. {said}", title=told, said=said))
    return fig


def _square(ax: Axes, values: np.ndarray) -> None:
    """The same limits on both axes, and the diagonal."""
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    room = 0.06 * max(high - low, 1e-3)
    ax.plot(
        [low - room, high + room], [low - room, high + room], color=FAINT, ls="--", lw=1, zorder=0
    )
    ax.set(xlim=(low - room, high + room), ylim=(low - room, high + room))
    ax.set_aspect("equal")
    sns.despine(ax=ax)


def _limits(ax: Axes, row: dict[Any, Any]) -> None:
    """The mean difference and the limits of agreement, named at the right."""
    lines = (
        (row["mean"], "-", _("mean")),
        (row["limits_low"], ":", "−1.96 sd"),
        (row["limits_high"], ":", "+1.96 sd"),
    )
    ax.axhline(0, color=FAINT, ls="--", lw=1, zorder=0)
    for value, dashes, name in lines:
        if value == value:
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
    if most == most:
        ax.set_ylim(-1.2 * most, 1.2 * most)
    ax.set_xlabel(_("mean of both"), fontsize="small")
    ax.set_ylabel(_("second less first"), fontsize="small")
    told = _(
        "mean moves by {mean}, single ones by up to {most}",
        mean=signed(row["mean"], row["most"]),
        most=number(row["most"], row["most"]),
    )
    ax.set_title(told, fontsize="small", fontweight="normal")
    sns.despine(ax=ax)
