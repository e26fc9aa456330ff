"""A picture of what two data sets share: topics and groups by category, and texts that are near one of the other set."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.core.i18n import _, sentences
from bench.figures.style import FAINT, INK, WIDTH, colours, label, legend_height, set_title, style
from bench.metrics.coverage import BY, PLURAL, SIDES, Compared, findings, title
from bench.metrics.table import ALL

# So many categories a picture has at most, those with most values; the table has them all.
MOST = 16


def shared(found: Compared, benchmark: str, names: Sequence[str]) -> Figure:
    """What two data sets share, by category: bars of topics and of groups, and the share of texts that are near.

    Args:
        names: what the first and the second are called.
    """
    style()
    counts = found.counts[found.counts.category != ALL]
    sizes = counts.set_index("category")[["both", "first_only", "second_only"]].sum(axis=1)
    order = list(
        sizes.groupby(level=0, sort=False)
        .sum()
        .sort_values(ascending=False, kind="stable")
        .index[:MOST]
    )
    first, second, both = colours(["first", "second", "both"]).values()
    parts = {
        "first_only": (_("in {name} alone", name=names[0]), first),
        "both": (_("in both"), both),
        "second_only": (_("in {name} alone", name=names[1]), second),
    }
    below = legend_height([told for told, _unused in parts.values()])
    fig = Figure(figsize=(WIDTH, 1.35 + 0.3 * len(order) + below), layout="constrained")
    axes = fig.subplots(1, 3, sharey=True, width_ratios=(1, 1, 0.8))
    places = np.arange(len(order))
    for ax, by in zip(axes, BY, strict=False):
        _bars(ax, counts[counts.by == by].set_index("category").reindex(order, fill_value=0), parts)
        ax.set_xlabel(_(PLURAL[by]), fontsize="small")
    near = found.near.set_index(["side", "category"])
    for side, colour, mark, step in zip(SIDES, (first, second), "os", (-0.14, 0.14), strict=True):
        for y, category in zip(places, order, strict=True):
            if (side, category) in near.index and near.texts[side, category]:
                axes[2].plot(
                    near.share[side, category],
                    y + step,
                    mark,
                    ms=5,
                    color=colour,
                    clip_on=False,
                    zorder=3,
                )
    if not found.near.texts.any():
        axes[2].text(
            0.5,
            0.5,
            _("no texts\nin one language"),
            transform=axes[2].transAxes,
            ha="center",
            va="center",
            fontsize="x-small",
            color=FAINT,
        )
    axes[2].set_xlim(0, 1)
    axes[2].xaxis.set_major_formatter(lambda value, _unused: f"{value:.0%}")
    axes[2].set_xlabel(
        _(
            "texts near one of the other set\n(ROUGE-L of {least} or more)\n● first, ■ second set",
            least=f"{found.least:g}",
        ),
        fontsize="x-small",
    )
    axes[0].set_yticks(places, [label(benchmark, name) for name in order])
    axes[0].set_ylim(len(order) - 0.4, -0.6)
    for ax in axes:
        ax.tick_params(labelsize="x-small")
        ax.tick_params(axis="y", labelsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    handles, told = axes[0].get_legend_handles_labels()
    fig.legend(
        handles,
        told,
        loc="outside lower center",
        ncols=1 if max(map(len, told)) > 40 else 3,
        frameon=False,
        fontsize="x-small",
    )
    set_title(fig, title(found))
    fig.set_label(sentences(findings(found, *names)))
    return fig


def _bars(
    ax: Axes, rows: pd.DataFrame, parts: dict[str, tuple[str, tuple[float, float, float]]]
) -> None:
    """Stacked bars with their numbers in them, where there is room."""
    places, start = np.arange(len(rows)), np.zeros(len(rows))
    longest = max(1, rows[list(parts)].sum(axis=1).max())
    for name, (told, colour) in parts.items():
        width = rows[name].to_numpy()
        ax.barh(
            places,
            width,
            left=start,
            color=colour,
            label=told,
            height=0.66,
            edgecolor="white",
            linewidth=0.6,
        )
        for y, count, left in zip(places.tolist(), width, start, strict=True):
            if count / longest > 0.05 * len(str(count)):
                ax.text(
                    left + count / 2,
                    y,
                    f"{count:,}",
                    ha="center",
                    va="center",
                    fontsize="xx-small",
                    color="white" if sum(colour) < 1.3 else INK,
                )
        start = start + width
    ax.set_xlim(0, longest * 1.02)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
