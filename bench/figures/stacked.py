"""Bars of what models answer: refused, unreadable, unknown, stereotyped, other or right."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.text import column
from bench.figures.style import WIDTH

# What an answer can be; the first one that fits counts.
KINDS = {
    "refused": "#5b5b5b",
    "unreadable": "#b8b8b8",
    "unknown": "#9ecae1",
    "stereotyped": "#c44e52",
    "right": "#2b6ca3",
    "other": "#e8c48a",
}
# Columns of outcomes that say it, in benchmarks that have these.
NEEDED = ["answered", "parsed", "refused", "stereotyped", "correct", "says_unknown"]
# Inches of a bar, and of what is around the bars.
BAR_HEIGHT, FRAME_HEIGHT = 0.32, 1.5
# Bars with a smaller share have no number.
LEAST_WITH_NUMBER = 0.06


def answer_kinds(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compute how many of a model's answers are refusals, unreadable, unknown, and so on.

    Args:
        outcomes: of `bench.outcomes`; benchmarks whose answers are not stereotyped, right or
            unknown, such as McBE, are left out.

    Returns:
        A row per `benchmark`, `task` and `model`, with a column of shares for each kind.
    """
    if not set(NEEDED) <= set(outcomes):
        return pd.DataFrame(columns=["benchmark", "task", "model", *KINDS])
    rows = outcomes.dropna(subset=NEEDED)
    facts = {
        "refused": rows.refused > 0,
        "unreadable": rows.parsed < rows.answered,
        "unknown": rows.says_unknown > 0,
        "stereotyped": rows.stereotyped > 0,
        "right": rows.correct > 0,
    }
    kind = pd.Series(np.select([*facts.values()], [*facts], "other"), rows.index)
    shares = pd.DataFrame({name: (kind == name).astype(float) for name in KINDS})
    keys = [rows[name] for name in ("benchmark", "task", "model")]
    return shares.groupby(keys, sort=False).mean().reset_index()


def stacked(kinds: pd.DataFrame) -> Figure:
    """Draw the answers of models to one benchmark as bars, a panel per task.

    Args:
        kinds: of `answer_kinds`, of one benchmark; the order of the models is that of the rows.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:refuse=0.3", data="samples", limit=10)
        >>> kinds = answer_kinds(bench.outcomes(run))
        >>> kinds[["task", "refused", "unknown"]].round(1)
                   task  refused  unknown
        0     ambiguous      0.3      0.7
        1  disambiguous      0.3      0.0
        >>> [ax.get_title() for ax in stacked(kinds).axes]
        ['ambiguous', 'disambiguous']
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
        for container in bars.containers:
            widths = container.datavalues
            is_wide = widths >= 100 * LEAST_WITH_NUMBER
            pairs = zip(widths, is_wide, strict=True)
            numbers = [f"{width:.0f}" if wide else "" for width, wide in pairs]
            ax.bar_label(container, numbers, label_type="center", fontsize="x-small")
        ax.set(title=column(task), xlim=(0, 100), ylabel="", xlabel="per cent of the answers")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    axes[0][0].invert_yaxis()
    handles, names = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper center", ncols=len(KINDS), frameon=False)
    return fig
