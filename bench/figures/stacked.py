"""Bars of what models answer: refused, unreadable, unknown, stereotyped, other or right."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.text import column
from bench.figures.style import WIDTH

# What an answer can be.
KINDS = {
    "refused": "#5b5b5b",
    "unreadable": "#b8b8b8",
    "unknown": "#9ecae1",
    "stereotyped": "#c44e52",
    "right": "#2b6ca3",
    "other": "#e8c48a",
}
# Inches of a bar, and of what is around the bars.
BAR_HEIGHT, FRAME_HEIGHT = 0.32, 1.5
# Bars of fewer per cent have no number.
LEAST_WITH_NUMBER = 6
# Numbers on colours of a smaller luminance are white.
DARK = 0.2


def stacked(kinds: pd.DataFrame) -> Figure:
    """Draw the answers of models to one benchmark as bars, a panel per task.

    Args:
        kinds: a row per `model` and `task`, with a column of shares for each of `KINDS`, for
            example of `bench.analyses.kinds.answer_kinds`. Models stay in this order.

    Examples:
        >>> row = {"task": "ambiguous", "model": "m", "refused": 0.25, "right": 0.75}
        >>> kinds = pd.DataFrame([{**dict.fromkeys(KINDS, 0), **row}])
        >>> [ax.get_title() for ax in stacked(kinds).axes]
        ['ambiguous']
    """
    tasks = list(kinds.task.unique())
    models = list(kinds.model.unique())
    size = (WIDTH, FRAME_HEIGHT + BAR_HEIGHT * len(models))
    fig, axes = plt.subplots(1, len(tasks), sharey=True, squeeze=False, figsize=size)
    fig.set_layout_engine("constrained")
    for ax, task in zip(axes[0], tasks, strict=True):
        rows = kinds[kinds.task == task].set_index("model").reindex(models)
        bars = (100 * rows[[*KINDS]]).plot.barh(
            ax=ax, stacked=True, color=[*KINDS.values()], legend=False, width=0.8
        )
        for container, colour in zip(bars.containers, KINDS.values(), strict=True):
            is_dark = sns.utils.relative_luminance(colour) < DARK
            ax.bar_label(
                container,
                fmt=lambda percent: f"{percent:.0f}" if percent >= LEAST_WITH_NUMBER else "",
                label_type="center",
                fontsize="x-small",
                color="white" if is_dark else "black",
            )
        ax.set(title=column(task), xlim=(0, 100), ylabel="", xlabel="per cent of the answers")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    axes[0][0].invert_yaxis()
    handles, names = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper center", ncols=len(KINDS), frameon=False)
    return fig
