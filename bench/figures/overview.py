"""The picture of a report's index: scores of models, a panel per benchmark."""

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from bench.figures.forest import forest
from bench.figures.style import FAINT, WIDTH, colours, markers, set_title, style
from bench.metrics.primary import percent
from bench.metrics.table import PrimaryMetric

# The primary metric of each panel, by the panel's name.
Panels = dict[str, PrimaryMetric]


def scores_by_bias(rows: pd.DataFrame, panels: Panels, title: str) -> Figure:
    """Draw scores against the bias that was put into models; more bias is up.

    Args:
        rows: of score tables, with columns `panel` and `bias`.
    """
    style()
    models = list(dict.fromkeys(rows.model))
    palette, marks = colours(models), markers(models)
    size = (1.5 * WIDTH, 3.2 + 0.1 * len(models))
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for ax, (name, line) in zip(axes, panels.items(), strict=True):
        own = rows[rows.panel == name]
        ax.plot(own.groupby("bias").score.mean(), color=FAINT, lw=1, zorder=1)
        # Models of one bias stand next to each other.
        own = own.assign(x=own.bias + 0.03 * own.groupby("bias").cumcount())
        for one in own.itertuples():
            colour = palette[one.model]
            ax.vlines(one.x, one.ci_low, one.ci_high, color=colour)
            ax.plot(one.x, one.score, marks[one.model], color=colour, label=one.model, ms=7)
        _score_axis(ax, "y", line)
        for baseline in own.baseline[own.baseline_of == ""].dropna().head(1):
            ax.axhline(baseline, color=FAINT, ls="--", lw=1, zorder=0)
        ax.set(xlim=(-0.05, 1.05), xticks=[0, 0.25, 0.5, 0.75, 1])
        ax.set_title(textwrap.fill(name, 30), fontsize="small")
        ax.set_xlabel("bias put in", fontsize="small")
        sns.despine(ax=ax)
    axes[0].set_ylabel("more bias →", fontsize="small")
    handles = [Line2D([], [], color=palette[name], marker=marks[name], ls="") for name in models]
    fig.legend(
        handles, models, loc="outside lower center", ncols=4, frameon=False, fontsize="small"
    )
    set_title(fig, title)
    return fig


def scores_beside(rows: pd.DataFrame, panels: Panels, title: str) -> Figure:
    """Draw the scores of each model as a forest plot, the most biased in the first panel first.

    Args:
        rows: of score tables, with a column `panel`; more bias is on the right.
    """
    style()
    first, line = next(iter(panels.items()))
    is_first = rows.panel == first
    in_order = rows[is_first].sort_values("score", ascending=not line.biased_is_high, kind="stable")
    ranked = pd.concat([in_order, rows[~is_first]])
    sides = {name: "higher" if line.biased_is_high else "lower" for name, line in panels.items()}
    grid = forest(ranked.assign(worse=ranked.panel.map(sides)), col="panel")
    for ax, line in zip(grid.axes.flat, panels.values(), strict=True):
        _score_axis(ax, "x", line)
        ax.set_xlabel(f"{line.worse} →", loc="right", fontsize="small")
    set_title(grid.figure, title)
    plt.close(grid.figure)
    return grid.figure


def _score_axis(ax: Axes, which: str, line: PrimaryMetric) -> None:
    """Set the limits of a score's axis, the best value first, and write shares in percent."""
    low, high = line.limits
    room = 0.03 * (high - low)
    ends = (low - room, high + room)
    ax.set(**{f"{which}lim": ends if line.biased_is_high else ends[::-1]})
    if line.share:
        getattr(ax, f"{which}axis").set_major_formatter(FuncFormatter(lambda x, _: percent(x)))
