"""The picture of curated templates: how near each is to what is there already."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import _, sentences
from bench.curate.cbbq_review import OWN
from bench.figures.style import (
    FAINT,
    INK,
    MARKS,
    WIDTH,
    colours,
    legend_below,
    legend_height,
    set_title,
    style,
)
from bench.metrics.diversity import NEAR

ROW = 0.24
# So many templates a panel has at most, the nearest; the table has them all.
MOST = 25
# Characters of a template's name, and of a set's.
LONGEST, LONGEST_SET = 22, 36


def novelty(
    found: pd.DataFrame,
    usual: pd.DataFrame,
    conditions: Sequence[str] = ("ambiguous", "disambiguous"),
) -> Figure | None:
    """How much each new context shares with the nearest text of each set: a panel a condition, a row a template, a mark a set.

    The grey band is the baseline: how much nine in ten contexts of an existing set share with the nearest other one there.

    Args:
        found: `bench.curate.cbbq_review.novelty`.
        usual: `bench.curate.cbbq_review.usual` of that set, with its name in column `set`.

    Returns:
        None where nothing was compared.
    """
    if found.empty:
        return None
    style()
    template = found.item_id.str.rpartition(":")[0]
    highest = found.rouge_l.groupby(template).max().sort_values(ascending=False, kind="stable")
    names = list(highest.index[:MOST])
    sets = list(dict.fromkeys(sorted(found.set, key=lambda name: name != OWN)))
    palette = colours(sets)
    below = legend_height([*sets, "band", "line"])
    fig = Figure(figsize=(WIDTH, 1.25 + below + ROW * len(names)), layout="constrained")
    axes = fig.subplots(1, len(conditions), sharey=True, squeeze=False)[0]
    for ax, condition in zip(axes, conditions, strict=True):
        some = usual[usual.condition == condition].rouge_l
        if len(some):
            low, high = np.quantile(some, [0.05, 0.95])
            ax.axvspan(
                low,
                high,
                color=FAINT,
                alpha=0.25,
                lw=0,
                label=_("within {set}, nine in ten", set=_set(usual.set.iloc[0])),
            )
        ax.axvline(
            NEAR, color=INK, ls="--", lw=1, label=_("near-duplicate from {near} on", near=NEAR)
        )
        for k, name in enumerate(sets):
            rows = found[
                (found.condition == condition) & (found.set == name) & template.isin(names)
            ]
            at = [names.index(one) for one in template[rows.index]]
            ax.plot(
                rows.rouge_l,
                at,
                MARKS[k % len(MARKS)],
                ms=5.5,
                ls="",
                color=palette[name],
                alpha=0.85,
                label=_("nearest in {set}", set=_set(name)),
            )
        ax.set(xlim=(0, 1), title=_(condition), xlabel=_("highest ROUGE-L (more alike →)"))
        ax.xaxis.label.set_size("small")
        ax.set_yticks(range(len(names)), _short(names))
        ax.tick_params(labelsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    legend_below(fig, axes[0])
    near = int(found.too_near.sum())
    first = found.iloc[0]
    if near > 1:
        title = _("{n} comparisons reach {near}, a near-duplicate", n=near, near=NEAR)
    elif near:
        title = _("{item} is a near-duplicate", item=first.item_id)
    else:
        title = _(
            "No new context is a near-duplicate: the nearest shares {share}",
            share=f"{first.rouge_l:.2f}",
        )
    set_title(fig, title, letters=80)
    told = [
        _(
            "{title}. Marks by template and set; the nearest, {item}, shares {share} with {other} of {set}.",
            title=title,
            item=first.item_id,
            share=f"{first.rouge_l:.2f}",
            other=first.nearest,
            set=_set(first.set),
        ),
        _("The band is how near contexts of an existing set are to each other.")
        if len(usual)
        else "",
        _("Drawn are the {n} nearest of {all} templates.", n=MOST, all=len(highest))
        if len(highest) > MOST
        else "",
    ]
    fig.set_label(sentences(told))
    return fig


def _set(name: str) -> str:
    """A set's name, of which the project's own alone is a phrase; a long one keeps its end."""
    if name == OWN:
        return _(OWN)
    return name if len(name) <= LONGEST_SET else f"{name[: LONGEST_SET - 15]}…{name[-14:]}"


def _short(names: Sequence[str]) -> list[str]:
    """Names whose ends stay, as they tell templates apart; whole ones where they would not."""
    short = [name if len(name) <= LONGEST else f"{name[:12]}…{name[-9:]}" for name in names]
    return short if len(set(short)) == len(names) else list(names)
