"""Pictures of ranks over blocks: which models can be told apart, and where their order comes from."""

import re

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.core.i18n import _
from bench.figures.style import BIAS_PALETTE, FAINT, INK, WIDTH, colours, head, label, style
from bench.metrics.bootstrap import LEVEL
from bench.metrics.friedman import CATEGORY, Blocks, Friedman, critical_difference
from bench.metrics.friedman_findings import best, is_bias, title, units

# Characters of a model's name in a line of the diagram.
LINE = 24


def critical_difference_diagram(found: Blocks, tested: Friedman, compared: pd.DataFrame) -> Figure:
    """Are models different at all: mean ranks on a line; models that a bar joins cannot be told apart (Demšar, 2006).

    Args:
        tested, compared: what `test` and `pairs` of `bench.metrics.friedman` say of `found`; Nemenyi's p counts.
    """
    import scikit_posthocs as posthocs  # type: ignore[import-untyped]  # slow to load

    style()
    means = found.ranks.mean().sort_values()
    models, k = list(means.index), len(means)
    p = compared.pivot_table(index="first", columns="second", values="p_nemenyi").reindex(
        index=models, columns=models
    )
    p = p.fillna(p.T).fillna(1.0)
    names = {model: folded(model) for model in models}
    lines = sum(name.count("\n") + 1 for name in names.values()) / 2
    fig = Figure(figsize=(WIDTH, 1.6 + 0.3 * max(lines, (k + 1) / 2)), layout="constrained")
    ax = fig.subplots()
    palette = colours(list(found.ranks.columns))
    shown = {names[model]: palette[model] for model in models}
    drawn = posthocs.critical_difference_diagram(
        means.rename(names),
        p.rename(index=names, columns=names),
        ax=ax,
        alpha=1 - LEVEL,
        color_palette=shown,
        label_fmt_left="{label} ({rank:.1f})\u00a0",
        label_fmt_right="\u00a0({rank:.1f}) {label}",
        text_h_margin=0.02 * max(k - 1, 1),
        label_props={"fontsize": "x-small"},
        elbow_props={"linewidth": 1.2},
        marker_props={"s": 22},
        crossbar_props={"color": INK, "linewidth": 3, "solid_capstyle": "round"},
    )
    for text in drawn["labels"]:
        text.set_color(INK)
    for artist in (*ax.lines, *ax.collections):
        artist.set_clip_on(False)  # a mean rank of 1 or k stands at the very edge
    cd = min(critical_difference(k, tested.blocks), k - 1)
    wide = critical_difference(k, tested.blocks) > k - 1
    ax.plot([1, 1 + cd], [1.0, 1.0], color=FAINT, lw=1.5, marker="|", ms=6, clip_on=False)
    shown_cd = f"{critical_difference(k, tested.blocks):.2f}"
    told = (
        _(
            "critical difference {cd}, more than the {most} that ranks can differ",
            cd=shown_cd,
            most=k - 1,
        )
        if wide
        else _("critical difference {cd}", cd=shown_cd)
    )
    ax.annotate(
        told, (1, 1.0), xytext=(0, 4), textcoords="offset points", fontsize="x-small", color=FAINT
    )
    ax.set_xlim(1, k)
    ax.set_ylim(top=1.6)
    ax.set_xticks(range(1, k + 1))
    ax.tick_params(labelsize="x-small")
    ax.grid(visible=False)
    worse = _("more bias") if is_bias(found) else _("worse")
    ax.set_xlabel(_("mean rank; {worse} →", worse=worse), fontsize="small", loc="right")
    head(fig, title(found, tested, compared), wrap=True)
    ranked = _(", ").join(f"{model} {rank:.1f}" for model, rank in means.items())
    fig.set_label(
        _(
            "{title}. Mean ranks over {n} {units}, 1 is {best}: {ranked}. Critical difference {cd} (Nemenyi, 5 %).",
            title=title(found, tested, compared),
            n=tested.blocks,
            units=units(found),
            best=best(found),
            ranked=ranked,
            cd=shown_cd,
        )
    )
    return fig


def ranks_by_block(found: Blocks, benchmark: str) -> Figure:
    """Where the order comes from: each model's rank in each block, the block left out hatched."""
    style()
    order = list(found.ranks.mean().sort_values(kind="stable").index)
    gone = list(found.left_out.name[found.left_out.what == "block"])
    ranks = found.ranks[order].reindex([*found.ranks.index, *gone])
    k = len(order)
    fig = Figure(
        figsize=(
            max(0.75 * WIDTH, 2.6 + 0.75 * k),
            1.2 + 0.045 * max(map(len, order)) + 0.25 * len(ranks),
        ),
        layout="constrained",
    )
    ax = fig.subplots()
    whole = bool((found.ranks % 1 == 0).all(axis=None))
    sns.heatmap(
        ranks,
        ax=ax,
        annot=True,
        fmt=".0f" if whole else ".1f",
        annot_kws={"size": "small"},
        cmap=BIAS_PALETTE,
        vmin=1,
        vmax=max(k, 2),
        linewidths=1,
        linecolor="white",
        cbar=False,
    )
    for y, x in np.argwhere(ranks.isna().to_numpy()):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    ax.set_yticks(
        np.arange(len(ranks)) + 0.5,
        [_block(benchmark, found.by, name) for name in ranks.index],
        rotation=0,
    )
    ax.set_xticks(np.arange(k) + 0.5, [folded(name) for name in order], rotation=30, ha="right")
    ax.set(xlabel="", ylabel="")
    top = order[0]
    first = int((found.ranks[top] == found.ranks.min(axis=1)).sum())
    told = _(
        "{model} ranks first in {n} of {all} {units}",
        model=top,
        n=first,
        all=len(found.ranks),
        units=units(found),
    )
    head(fig, told, wrap=True)
    hatched = _("; hatched: {n} left out", n=len(gone)) if gone else ""
    below = _("rank in each: 1 (blue) is {best}{hatched}", best=best(found), hatched=hatched)
    ax.set_title(below, fontsize="small", fontweight="normal", color=FAINT)
    fig.set_label(
        _(
            "Heatmap of ranks, {n} {units} by {models} models. {title}{hatched}; the scores are in the table.",
            n=len(ranks),
            units=units(found),
            models=k,
            title=told,
            hatched=hatched,
        )
    )
    return fig


def folded(name: str, line: int = LINE) -> str:
    """A long name over several lines, broken behind a comma, dash or underscore where there is one."""
    lines = [""]
    for part in re.findall(rf"[^,\-_/ ]{{1,{line}}}[,\-_/ ]?|[,\-_/ ]", name):
        if lines[-1] and len(lines[-1]) + len(part) > line:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _block(benchmark: str, by: str, name: str) -> str:
    category, _unused, task = name.rpartition(", ") if by != CATEGORY else (name, "", "")
    return f"{label(benchmark, category)}, {task}" if task else label(benchmark, category)
