"""Estimates with their intervals."""

from typing import Any

import pandas as pd
import seaborn as sns

from bench.figures.style import FAINT


def intervals(
    frame: pd.DataFrame, x: str = "estimate", y: str = "model", col: str = "task", **look: Any
) -> sns.FacetGrid:
    """Draw estimates with their intervals by `seaborn.relplot`, a panel for each value of `col`.

    Args:
        frame: a result of `bench.share`, `bench.compare` and so on, with `ci_low` and `ci_high`.
        look: other arguments of `seaborn.relplot`, such as `hue`.
    """
    height = 0.8 + 0.25 * frame[y].nunique()
    columns = min(3, frame[col].nunique())
    look = {"col_wrap": columns, "height": height, "aspect": 2.6 / height, **look}
    grid = sns.relplot(frame, x=x, y=y, col=col, **look)
    for name, ax in grid.axes_dict.items():
        rows = frame[frame[col] == name]
        ax.hlines(rows[y], rows.ci_low, rows.ci_high, color=FAINT, zorder=0.9)
    grid.set(ylim=(frame[y].nunique() - 0.5, -0.5))
    return grid.set_axis_labels(x, "").set_titles("{col_name}")
