"""Pictures of two prompt sets: do scores agree, how far does each model move, what makes it so."""

import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.analyses.prompt_robustness import HEADLINE, Result, digits, findings, title
from bench.analyses.prompt_robustness.study import CONDITIONS, ITEMS, by_facet
from bench.core.numbers import decimals, signed
from bench.figures.scores import bland_altman
from bench.figures.style import (
    FAINT,
    MARKS,
    WIDTH,
    colours,
    forest,
    forest_axis,
    ink_on,
    legend_below,
    models_of,
    set_title,
    style,
    wrap_label,
)
from bench.metrics.bootstrap import LEVEL
from bench.metrics.headline import percent, without_brackets

MARKERS = "os^Dv<>phX*P"
# Narrower parts of a bar have no room for a number.
LEAST = 0.12


def agreement(
    result: Result, prompts: tuple[str, str] = ("first prompt set", "second prompt set")
) -> Figure:
    """Draw one score against the other, and their difference against their mean.

    One mark per category and model; the lines are the diagonal and the limits of agreement.

    Args:
        prompts: names of the prompt sets.
    """
    first, second = prompts
    base, _hash, variant = second.partition("#")
    if variant and base == first:
        prompts = ("first prompt set", variant)
    style()
    single = result.by_category.set_index(HEADLINE)
    models = models_of(result.by_category)
    palette = colours(models)
    rho = result.correlated[result.correlated.coefficient == "spearman"].set_index(HEADLINE)
    height = 0.7 + 2.9 * len(result.limits) + 0.2 * -(-len(models) // 2)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = fig.subplots(len(result.limits), 2, squeeze=False)
    for (left, right), row in zip(grid, result.limits.to_dict("records"), strict=True):
        place = (row["task"], row["metric"])
        own, order = single.loc[[place]], rho.loc[place]
        parts = [
            (
                part["first"],
                part.second,
                {"marker": MARKERS[models.index(str(model)) % len(MARKERS)]}
                | {"color": palette[str(model)], "label": wrap_label(str(model), 40)},
            )
            for model, part in own.groupby("model", sort=False)
        ]
        values = own[["first", "second"]].to_numpy(dtype=float)
        ends = (np.nanmin(values, initial=1e9), np.nanmax(values, initial=-1e9))
        margin = 0.06 * max(ends[1] - ends[0], 1e-3)
        ends = (ends[0] - margin, ends[1] + margin) if ends[0] <= ends[1] else (0.0, 1.0)
        name = re.split("[:：]", without_brackets(row["title"]))[0]
        text = (
            f"ρ = {decimals(order.pooled, 2)}, n = {order.n}"
            if not order.reason
            else f"n = {order.n}"
        )
        titles = [
            f"{name}: {text}",
            f"mean moves by {signed(row['mean'], digits(row['most']))}",
            f"{prompts[0]}; {own.higher.iloc[0]} →",
            prompts[1],
            "second less first",
        ]
        bland_altman(
            left, right, parts, row, ends, titles, partial(signed, digits=digits(row["most"]))
        )
    legend_below(fig, *grid[:, 0])
    set_title(fig, title(result), wrap=True, alt=findings(result)[0])
    return fig


def differences(result: Result) -> Figure:
    """Draw how far the scores of each model over all categories move, one panel per headline."""
    style()
    rows = result.overall.rename(columns={"difference": "score"})
    models = models_of(rows)
    palette, groups = colours(models), list(rows.groupby(HEADLINE, sort=False))
    names = [wrap_label(model, 32) for model in models]
    lines = sum(name.count("\n") + 1 for name in names)
    fig = Figure(figsize=(WIDTH, 0.4 + len(groups) * (0.75 + 0.26 * lines)), layout="constrained")
    for ax, (_headline, own) in zip(np.ravel(fig.subplots(len(groups), 1)), groups, strict=True):
        for y, model in enumerate(models):
            part = own[own.model == model]
            if part.score.notna().any():
                forest(ax, part, [y], palette[model])
            else:
                place: Any = {"xycoords": ("axes fraction", "data"), "ha": "center", "va": "center"}
                ax.annotate("not defined", (0.5, y), color=FAINT, **place)
        forest_axis(ax, names, 0)
        reach = own[["score", "ci_low", "ci_high"]].abs().to_numpy(dtype=float)
        limit = 1.08 * np.nanmax(reach, initial=1e-3)
        ax.set_xlim(-limit, limit)
        ax.set_title(own.title.iloc[0], fontsize="small")
        ax.set_xlabel(f"{own.higher.iloc[0]} →", loc="right", fontsize="small")
    heading = (
        f"{int((rows.p_holm < 1 - LEVEL).sum())} of {len(rows)} whole scores move "
        "by more than chance (second prompt set less first)"
    )
    set_title(fig, heading, wrap=True)
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
    shares = pd.DataFrame(
        {"title": name, **by_facet(part.set_index("source"))}
        for (name, _model), part in known.groupby(["title", "model"], sort=False)
    )
    shares = shares.groupby("title", sort=False).mean().fillna(0)
    shares = shares[[name for name in (ITEMS, *CONDITIONS) if name in shares]]
    names = {str(name): wrap_label(str(name), 24) for name in shares.index}
    fig = Figure(figsize=(WIDTH, 1.6 + 0.6 * len(shares)), layout="constrained")
    ratios = (3, 2) if len(planned) else (1,)
    left, *right = np.ravel(fig.subplots(1, len(ratios), width_ratios=ratios))
    start = pd.Series(0.0, shares.index)
    for facet, colour in colours(list(map(str, shares))).items():
        bars = left.barh(list(names.values()), shares[facet], left=start, color=colour, height=0.6)
        texts = [percent(size) if size >= LEAST else "" for size in shares[facet]]
        left.bar_label(bars, texts, label_type="center", color=ink_on(colour))
        bars.set_label(facet)
        start = start + shares[facet]
    left.invert_yaxis()
    left.set_xlim(0, 1)
    left.xaxis.set_major_formatter(lambda value, _position: percent(value))
    left.set_title("What a score's variance comes of", fontsize="small")
    left.tick_params(axis="y", labelsize="small")
    left.grid(visible=False)
    for ax in right:
        widths = planned.pivot_table("half_width", "title", "wordings", sort=False)
        for (name, row), mark in zip(widths.iterrows(), MARKS, strict=False):
            ax.plot(row.index, row, marker=mark, label=names.get(str(name), str(name)))
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(widths), list(map(str, widths)))
        ax.set_ylim(0)
        ax.set_xlabel("prompt sets", fontsize="small")
        ax.set_title("95 % interval of a score, ±", fontsize="small")
    legend_below(fig, left, *right)
    sns.despine(fig=fig, left=True)
    heading = (
        "Other items move scores more than another way of asking"
        if shares[ITEMS].mean() >= 0.5
        else "Another way of asking moves scores more than other items"
    )
    set_title(fig, heading)
    return fig
