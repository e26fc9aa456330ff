"""Pictures of speed: how many times as fast the workbench is as others, and what an item costs as the work grows."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from bench.core.i18n import N_, _
from bench.figures.style import FAINT, INK, WIDTH, colours, head, style
from bench.metrics.headline import span
from bench.metrics.speed_findings import GUESS, OURS

FASTER, LESS = "faster", "less memory"
# What a growth is along, as an axis names it, and how a sentence says where on it something stands.
ALONG = {
    "items": N_("items asked together"),
    "words": N_("words in a list"),
    "parameters": N_("parameters of the model"),
}
PLACES = {
    "items": N_("among {n}"),
    "words": N_("in lists of {n} words"),
    "parameters": N_("with {n} parameters"),
}
ITEMS = {
    "nll": N_("sentence"),
    "letters": N_("question"),
    "ss": N_("pair of scenes"),
    "generate": N_("reply"),
}


def times(table: pd.DataFrame, aims: bool = True) -> Figure | None:
    """How many times as fast the workbench is, and in how many times less memory it works, a row each that it is set against.

    Bars are the least and most of the turns; hollow marks what is meant to be reached. None where nobody else was measured.

    Args:
        table: results of `bench.metrics.speed_findings.ratios`.
        aims: draw what is meant to be reached.
    """
    known = table[table.times.notna() & table.what.isin([FASTER, LESS])]
    if known.empty:
        return None
    style()
    places = known[["work", "against"]].drop_duplicates().itertuples(index=False, name=None)
    rows = {place: -k for k, place in enumerate(places)}
    guessed = {
        (row.work, row.against) for row in known.itertuples() if str(row.note).startswith(GUESS)
    }
    fig = Figure(figsize=(WIDTH, 1.3 + 0.32 * len(rows)), layout="constrained")
    left, right = fig.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for ax, what, unit in (
        (left, FASTER, _("times as fast (right is better)")),
        (right, LESS, _("times less peak memory")),
    ):
        ax.axvline(1, color=FAINT, lw=1, ls="--", zorder=1)
        for row in known[known.what == what].itertuples():
            _dot(ax, row, rows[row.work, row.against], aims)
        ax.margins(x=0.22)
        ax.set_xscale("log")
        _plain(ax.xaxis, *ax.get_xlim())
        ax.set_xlabel(unit, fontsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    names = [
        f"{_(', ').join([place[1], _(GUESS)][: 1 + (place in guessed)])}\n{_(place[0])}"
        for place in rows
    ]
    left.set_yticks(list(rows.values()), names, fontsize="x-small")
    left.set_ylim(min(rows.values()) - 0.6, 0.6)
    handles = [
        Line2D(
            [],
            [],
            color=INK,
            marker="o",
            ms=5,
            lw=1.5,
            label=_("median, least and most of the turns"),
        )
    ]
    handles += [
        Line2D([], [], color=INK, marker="D", mfc="white", ms=5, ls="none", label=_("aim"))
    ] * aims
    handles.append(Line2D([], [], color=FAINT, ls="--", lw=1, label=_("the same")))
    fig.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize="x-small"
    )
    head(fig, _title(known))
    told = _("; ").join(
        _("{times} times as fast as {who}, {work}", **_against(row))
        if row["what"] == FASTER
        else _("{times} times less memory than {who}, {work}", **_against(row))
        for row in known.to_dict("records")
    )
    fig.set_label(_("{title}. The workbench is or takes: {told}.", title=_title(known), told=told))
    return fig


def growth(found: pd.DataFrame) -> Figure | None:
    """What an item costs as there are more of them, lists are longer, models larger: a line each who was measured.

    Args:
        found: results of `bench.analyses.speed.growth`, or a table that they are a part of; None where there are none.
    """
    known = found[(found.along != "") & (found.seconds != "")]
    panels = list(known[["along", "work"]].drop_duplicates().itertuples(index=False, name=None))
    if not panels:
        return None
    style()
    deep = -(-len(panels) // 2)
    fig = Figure(figsize=(WIDTH, 0.9 + 2.2 * deep), layout="constrained")
    axes = fig.subplots(deep, 2, squeeze=False).flat
    palette = colours(list(dict.fromkeys(known.who)))
    for ax, (along, work) in zip(axes, panels, strict=False):
        some = known[(known.along == along) & (known.work == work)]
        for who in dict.fromkeys(some.who):
            _line(ax, some[some.who == who], palette[who], who == OURS)
        at = sorted(set(some["at"]))
        if along != "words":
            ax.set_xscale("log")
        if along == "parameters":
            ax.set_yscale("log")
            _plain(ax.yaxis, *ax.get_ylim())
        else:
            ax.set_ylim(bottom=0)
        ax.set_xticks(at, [_short(one) for one in at])
        ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        ax.set_xlabel(_(ALONG[along]), fontsize="small")
        ax.set_ylabel(_("ms a {item}", item=_(ITEMS[work])), fontsize="small")
        sns.despine(ax=ax)
    for ax in list(axes)[len(panels) :]:
        ax.set_visible(False)
    handles = [
        Line2D([], [], color=colour, marker="o", ms=4, label=who) for who, colour in palette.items()
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="x-small"
    )
    told = [_change(known, along, work) for along, work in panels]
    head(fig, told[0])
    fig.set_label(_("{told}. Lower is better.", told=_(". ").join(told)))
    return fig


def _against(row: Mapping[Any, Any]) -> dict[str, str]:
    return {"times": f"{row['times']:.1f}", "who": row["against"], "work": _(row["work"])}


def _dot(ax: Axes, row: object, y: float, aims: bool) -> None:
    times, low, high, aim = (
        float(getattr(row, name)) for name in ("times", "low", "high", "at_least")
    )
    if low == low:
        ax.plot([low, high], [y, y], color=INK, lw=1.5, zorder=2)
    ax.plot(times, y, "o", color=INK, ms=5, zorder=3)
    ax.annotate(
        f"{times:,.3g}",
        (times, y),
        (0, 4),
        textcoords="offset points",
        fontsize="x-small",
        ha="center",
    )
    if aims and aim == aim:
        ax.plot(aim, y, "D", color=INK, mfc="white", ms=5, zorder=2)


def _line(ax: Axes, some: pd.DataFrame, colour: tuple[float, float, float], ours: bool) -> None:
    """Milliseconds an item, with a band from the fastest to the slowest turn."""
    some = some.sort_values("at")
    turns = [[float(one) for one in text.split()] for text in some.seconds]
    least, most = (
        [1000 * pick(one) / items for one, items in zip(turns, some["items"], strict=True)]
        for pick in (min, max)
    )
    at = some["at"].astype(float)
    ax.fill_between(at, least, most, color=colour, alpha=0.2, lw=0)
    ax.plot(at, 1000 / some.items_per_second, "o-", color=colour, ms=4, lw=2 if ours else 1)


def _plain(axis: Axis, low: float, high: float) -> None:
    """Multiples in plain numbers, more of them where there is less than one and a half decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter("{x:g}")


def _title(known: pd.DataFrame) -> str:
    """Whether the workbench is the fastest, and by how much, as far as it was measured."""
    speed = known[(known.what == FASTER) & ~known.note.str.startswith(GUESS)].times
    if speed.empty:
        return _("Memory beside that of others")
    ahead, times = int((speed > 1).sum()), span(f"{speed.min():,.1f}", f"{speed.max():,.1f}")
    if ahead == len(speed):
        return _(
            "The workbench is faster than all that it was set against: {times} times", times=times
        )
    return _(
        "The workbench is faster in {n} of {all} comparisons: {times} times",
        n=ahead,
        all=len(speed),
        times=times,
    )


def _change(known: pd.DataFrame, along: str, work: str) -> str:
    """What an item costs the workbench at the end of a growth, beside what it costs at the beginning."""
    some = known[(known.along == along) & (known.work == work) & (known.who == OURS)].sort_values(
        "at"
    )
    first, last = (1000 / some.items_per_second.iloc[k] for k in (0, -1))
    before, after = (_(PLACES[along], n=_short(some["at"].iloc[k])) for k in (0, -1))
    of = {"item": _(ITEMS[work]), "after": after}
    if len(some) == 1:
        return _("A {item} takes the workbench {ms} ms {after}", ms=f"{last:.3g}", **of)
    of["before"] = before
    if last > 2 * first:
        return _(
            "A {item} takes the workbench {times} times as long {after} as {before}",
            times=f"{last / first:.1f}",
            **of,
        )
    of["share"] = f"{abs(1 - last / first):.0%}"
    if last < first:
        return _("A {item} takes the workbench {share} less time {after} than {before}", **of)
    return _("A {item} takes the workbench {share} more time {after} than {before}", **of)


def _short(n: int) -> str:
    """A number as an axis has room for it."""
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if n >= size / 10:
            return f"{n / size:.3g}\u00a0{letter}"
    return f"{n:,}"
