"""What models answer: refused, unreadable, unknown, stereotyped, right or other; with a picture."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.numbers import decimals
from bench.core.text import column
from bench.figures.style import WIDTH
from bench.metrics.primary import listing

# The kinds of answers, and their colours.
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
# The columns of outcomes that tell the kinds.
NEEDED = ["answered", "parsed", "refused", "stereotyped", "correct", "says_unknown"]
# Larger shares have a sentence: such a model decides little, or often does not answer.
OFTEN = {"unknown": (0.5, "say that it is unknown"), "refused": (0.1, "refuse to answer")}


def answer_kinds(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compute how many of a model's answers are refusals, unreadable, unknown, and so on.

    Args:
        outcomes: of `bench.outcomes`; we leave out benchmarks without stereotyped, right and
            unknown answers, such as McBE.

    Returns:
        A row per `benchmark`, `task` and `model`, with a column of shares for each kind. An answer
        counts as the first kind that fits.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:refuse=0.3", data="samples", limit=10)
        >>> answer_kinds(bench.outcomes(run))[["task", "refused", "unknown"]].round(1)
                   task  refused  unknown
        0     ambiguous      0.3      0.7
        1  disambiguous      0.3      0.0
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


def often(kinds: pd.DataFrame) -> list[str]:
    """Say which models often answer that it is unknown, or refuse, over the tasks of a benchmark.

    Args:
        kinds: of `answer_kinds`.
    """
    means = kinds.groupby(["benchmark", "model"], sort=False)[[*OFTEN]].mean().reset_index()
    sentences = []
    for benchmark, rows in means.groupby("benchmark", sort=False):
        for kind, (least, text) in OFTEN.items():
            shares = rows.set_index("model")[kind]
            shares = shares[shares > least]
            names = [f"{model} ({decimals(100 * share)}\u00a0%)" for model, share in shares.items()]
            if names:
                sentences.append(
                    f"In more than {decimals(100 * least)}\u00a0% of the answers to {benchmark}, "
                    f"these models {text}: {listing(names)}."
                )
    return sentences


def stacked(kinds: pd.DataFrame) -> Figure:
    """Draw the answers of models to one benchmark as bars, a panel per task.

    Args:
        kinds: a row per `model` and `task`, with a column of shares for each of `KINDS`, for
            example of `answer_kinds`. Models stay in this order.

    Examples:
        >>> row = {"task": "ambiguous", "model": "m", "refused": 0.25, "right": 0.75}
        >>> kinds = pd.DataFrame([{**dict.fromkeys(KINDS, 0), **row}])
        >>> [ax.get_xlabel() for ax in stacked(kinds).axes]
        ['per cent of the answers']
    """
    tasks = list(kinds.task.unique())
    models = list(kinds.model.unique())
    size = (WIDTH, FRAME_HEIGHT + BAR_HEIGHT * len(models))
    fig, axes = plt.subplots(1, len(tasks), sharey=True, squeeze=False, figsize=size)
    fig.set_layout_engine("constrained")
    for ax, task in zip(axes[0], tasks, strict=True):
        rows = kinds[kinds.task == task].set_index("model").reindex(models)
        (100 * rows[[*KINDS]]).plot.barh(ax=ax, stacked=True, color=KINDS, legend=False, width=0.8)
        for container, colour in zip(ax.containers, KINDS.values(), strict=True):
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
