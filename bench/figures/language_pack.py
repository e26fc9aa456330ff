"""A picture of which captions make frames, and why others do not."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.core.i18n import _, note
from bench.figures.style import FAINT, INK, WIDTH, colours, set_title, style, wrap_cjk


def captions(sifted: pd.DataFrame) -> Figure | None:
    """Captions by what became of them: one bar for those that make a frame, one for each reason. None without captions.

    Args:
        sifted: see `bench.data.nli_coal.language_pack_audit.sift`.
    """
    if sifted.empty:
        return None
    style()
    taken = _("make a frame")
    counts = sifted.why.replace({"": taken}).value_counts()
    order = (
        [taken, *(name for name in counts.index if name != taken)]
        if taken in counts
        else list(counts.index)
    )
    fig = Figure(figsize=(WIDTH, 1.1 + 0.34 * len(order)), layout="constrained")
    ax = fig.subplots()
    (colour,) = colours(["frames"]).values()
    places = np.arange(len(order))
    numbers = [int(counts[name]) for name in order]
    ax.barh(
        places, numbers, color=[colour if name == taken else FAINT for name in order], height=0.66
    )
    for y, count in zip(places.tolist(), numbers, strict=True):
        ax.annotate(
            f"{count:,}",
            (count, y),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize="x-small",
            color=INK,
        )
    told = [note(name) for name in order]
    ax.set_yticks(places, [wrap_cjk(name, 2.6, "small", 38) for name in told])
    ax.tick_params(axis="y", labelsize="small")
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, max(numbers) * 1.1)
    ax.set_xlabel(_("captions"), fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    title = _(
        "{n} of {all} captions make a frame",
        n=f"{int(counts.get(taken, 0)):,}",
        all=f"{len(sifted):,}",
    )
    set_title(fig, title)
    parts = _("; ").join(f"{name}: {count:,}" for name, count in zip(told, numbers, strict=True))
    fig.set_label(_("{title}. Bars: {parts}.", title=title, parts=parts))
    return fig
