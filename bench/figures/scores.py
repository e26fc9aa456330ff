"""Two scores of the same parts, and their difference."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from bench.figures.style import FAINT, INK


def bland_altman(
    left: Axes,
    right: Axes,
    parts: Iterable[tuple[pd.Series, pd.Series, dict[str, Any]]],
    agreement: Mapping[Any, float],
    ends: tuple[float, float],
    titles: Sequence[str],
    text: Callable[[float], str],
) -> None:
    """Draw one score against another, and their difference against their mean.

    Lines are the diagonal, the mean difference, and the limits of agreement.

    Args:
        parts: both scores of each part, and how it looks (of `Axes.plot`).
        agreement: `mean`, `limits_low` and `limits_high` of the differences.
        ends: of the scale.
        titles: of the panels, then of the axes: first and second score, their difference.
        text: writes a difference.
    """
    left.plot(ends, ends, color=FAINT, ls="--", lw=1, zorder=0)
    right.axhline(0, color=FAINT, ls="--", lw=1, zorder=0)
    reach = 0.05 * (ends[1] - ends[0])
    for first, second, own in parts:
        look: dict[str, Any] = {"marker": "o", "ms": 4, "ls": "none", "alpha": 0.6} | own
        left.plot(first, second, **look)
        right.plot((first + second) / 2, second - first, **look)
        reach = max(reach, np.nanmax(np.abs(second - first), initial=0))
    names = {"mean": "mean", "limits_low": "−1.96 sd", "limits_high": "+1.96 sd"}
    for name, words in names.items():
        if not np.isnan(value := agreement[name]):
            reach = max(reach, abs(value))
            right.axhline(value, color=INK, ls="-" if name == "mean" else ":", lw=1, zorder=1)
            at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
            shown = text(value)
            right.annotate(f"{words}\n{shown}", (1.02, value), fontsize="small", **at)
    left.set(xlim=ends, ylim=ends, aspect="equal")
    right.set_ylim(-1.1 * reach, 1.1 * reach)
    left.set_title(titles[0], fontsize="small", fontweight="normal")
    right.set_title(titles[1], fontsize="small", fontweight="normal")
    left.set_xlabel(titles[2], fontsize="small")
    left.set_ylabel(titles[3], fontsize="small")
    right.set_xlabel("mean of both", fontsize="small")
    right.set_ylabel(titles[4], fontsize="small")
    for ax in (left, right):
        sns.despine(ax=ax)
