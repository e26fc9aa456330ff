"""A picture of how far scores generalise: what makes them uncertain, and what more wordings would do."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import _
from bench.figures.style import MARKS, WIDTH, colours, set_title, style, wrap_label
from bench.metrics.generalisability import CONDITIONS, ITEMS, by_facet

# Narrower parts of a bar have no room for a number.
LEAST = 0.12


def uncertainty(components: pd.DataFrame, planned: pd.DataFrame) -> Figure | None:
    """Draw the parts of a score's error variance, and its interval against the number of wordings.

    Args:
        components, planned: of `bench.analyses.generalisability.generalised`; where they are by
            model, the mean over models is drawn.

    Returns:
        None where no score has components.
    """
    known = components.dropna(subset="share_of_error") if len(components) else components
    if known.empty:
        return None
    style()
    each = [
        {"title": name, **by_facet(part.set_index("source"))}
        for (name, _unused), part in known.groupby(["title", "model"], sort=False)
    ]
    shares = pd.DataFrame(each).groupby("title", sort=False).mean().fillna(0)
    names = {str(name): wrap_label(_(str(name)), 24) for name in shares.index}
    fig = Figure(figsize=(WIDTH, 1.6 + 0.5 * len(shares)), layout="constrained")
    left, right = (
        fig.subplots(1, 2, width_ratios=(3, 2)) if len(planned) else (fig.subplots(), None)
    )
    facets = [name for name in (ITEMS, *CONDITIONS) if name in shares]
    palette = colours(facets)
    start = pd.Series(0.0, shares.index)
    for facet in facets:
        left.barh(
            range(len(shares)),
            shares[facet],
            left=start,
            color=palette[facet],
            label=_(facet),
            height=0.6,
        )
        for y, (at, size) in enumerate(zip(start, shares[facet], strict=True)):
            if size >= LEAST:
                left.text(at + size / 2, y, f"{size:.0%}", ha="center", va="center", color="white")
        start = start + shares[facet]
    left.set_yticks(range(len(shares)), list(names.values()), fontsize="small")
    left.invert_yaxis()
    left.set_xlim(0, 1)
    left.xaxis.set_major_formatter(lambda value, _unused: f"{value:.0%}")
    left.set_title(_("What a score's variance comes of"), fontsize="small")
    left.grid(visible=False)
    fig.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize="small",
    )
    if right is not None:
        widths = planned.groupby(["title", "wordings"], sort=False).half_width.mean().reset_index()
        for (name, part), mark in zip(widths.groupby("title", sort=False), MARKS, strict=False):
            label = names.get(str(name), str(name))
            right.plot(part.wordings, part.half_width, marker=mark, label=label)
        right.set_xscale("log", base=2)
        ticks = sorted(set(widths.wordings))
        right.set_xticks(ticks, [str(tick) for tick in ticks])
        # Room for the legend above the lines.
        right.set_ylim(0, (1.2 + 0.3 * widths.title.nunique()) * widths.half_width.max())
        right.set_xlabel(_("wordings"), fontsize="small")
        right.set_title(_("95 % interval of a score, ±"), fontsize="small")
        right.legend(frameon=False, fontsize="x-small", loc="upper right")
        sns.despine(ax=right)
    sns.despine(ax=left, left=True)
    told = _title(shares)
    set_title(fig, told)
    parts = [
        _(
            "{title}: {sentence}",
            title=_(str(name)),
            sentence=_(", ").join(
                _("{facet} {share}", facet=_(facet), share=f"{row[facet]:.0%}") for facet in facets
            ),
        )
        for name, row in shares.iterrows()
    ]
    said = _("{text}.", text=_("; ").join(parts))
    fig.set_label(_("{title}. {said}", title=told, said=said))
    return fig


def _title(shares: pd.DataFrame) -> str:
    """What the picture shows, in a line."""
    items = shares[ITEMS].mean()
    if items >= 0.5:
        return _("Other items move scores more than another way of asking")
    return _("Another way of asking moves scores more than other items")
