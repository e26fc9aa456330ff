"""Pictures of what is in a data set: how much of what, how alike its texts are, whether annotators agree."""

import math

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.core.i18n import _, language
from bench.data import dataset
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    colours,
    label,
    legend_below,
    set_title,
    style,
    wrap_cjk,
)
from bench.metrics.annotators import BANDS
from bench.metrics.diversity import Diversity
from bench.metrics.diversity_findings import coverage_title, overlap_title
from bench.metrics.table import ALL

# So many bars a picture has at most; the table has them all.
MOST = 12
ACROSS = "across"


def coverage(counted: pd.DataFrame, by: str, benchmark: str, rows: str) -> Figure:
    """How many texts are about what: horizontal bars, the most frequent first; the darker part are distinct texts.

    Args:
        counted: `bench.metrics.diversity.coverage` by column `by`.
        rows: what a text is called.
    """
    style()
    shown = counted.head(MOST)
    fig = Figure(figsize=(WIDTH, 1.2 + 0.22 * len(shown)), layout="constrained")
    ax = fig.subplots()
    places = np.arange(len(shown))
    (colour,) = colours(["texts"]).values()
    ax.barh(
        places,
        shown.texts,
        color=colour,
        alpha=0.35,
        label=_("all {rows}", rows=_(rows)),
        height=0.7,
    )
    ax.barh(places, shown.distinct, color=colour, label=_("distinct texts"), height=0.7)
    for y, count in zip(places, shown.texts, strict=True):
        ax.annotate(
            f"{count:,}",
            (count, y),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize="x-small",
            color=INK,
        )
    ax.set_yticks(
        places, [_name(benchmark, by, str(value), k) for k, value in enumerate(shown[by], start=1)]
    )
    ax.tick_params(axis="y", labelsize="small")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(0, shown.texts.max() * 1.1)
    more = len(counted) - len(shown)
    others = _("; {n} more are in the table", n=f"{more:,}") if more else ""
    ax.set_xlabel(f"{_(rows)}{others}", fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(wrap_cjk(coverage_title(counted, by, rows), WIDTH))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    if (shown.distinct < shown.texts).any():
        legend_below(fig, ax)
    told = _(", ").join(
        f"{value} {count:,}" for value, count in zip(shown[by].head(5), shown.texts, strict=False)
    )
    fig.set_label(
        _(
            "{title}. Bars by {by}, the largest first: {told}{others}.",
            title=coverage_title(counted, by, rows),
            by=_(by),
            told=told,
            others=others,
        )
    )
    return fig


def overlap(found: Diversity, benchmark: str) -> Figure:
    """How alike are texts: shares of pairs by ROUGE-L, within and across categories; and the mean of each category."""
    style()
    table = found.table.set_index("category")
    order = list(table.drop([ALL, ACROSS])["mean"].sort_values(na_position="first").index)
    fig = Figure(figsize=(WIDTH, max(2.8, 1.2 + 0.24 * len(order))), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(1, 0.8))
    palette = colours(["within", ACROSS])
    names = {"within": _("within categories"), ACROSS: _("across categories")}
    across = not math.isnan(table["mean"][ACROSS])
    for name, line in (("within", "-"), (ACROSS, "--")):
        if name == ACROSS and not across:
            continue
        shares = found.histogram[name]
        edges = [*found.histogram.low, found.histogram.high.iloc[-1]]
        left.stairs(shares, edges, color=palette[name], lw=1.6, ls=line, label=names[name])
    left.set(
        xlim=(0, 1),
        ylim=(0, None),
        xlabel=_("ROUGE-L of two texts (more alike →)"),
        ylabel=_("share of the pairs"),
    )
    left.yaxis.set_major_formatter(lambda value, _unused: f"{value:.0%}")
    left.legend(frameon=False, fontsize="x-small", loc="upper right")
    for y, name in enumerate(order):
        row = table.loc[name]
        if not math.isnan(row.ci_low):
            right.plot(
                [row.ci_low, row.ci_high],
                [y, y],
                color=palette["within"],
                lw=2.5,
                alpha=0.6,
                solid_capstyle="round",
            )
        right.plot(row["mean"], y, "o", ms=5, color=palette["within"], zorder=3)
    if across:
        right.axvline(table["mean"][ACROSS], color=palette[ACROSS], ls="--", lw=1.2, zorder=0)
    right.set_yticks(range(len(order)), [label(benchmark, name) for name in order])
    right.tick_params(axis="y", labelsize="small")
    right.set(ylim=(-0.6, len(order) - 0.4), xlabel=_("mean within the category"))
    right.set_xlim(0, 1.08 * float(np.nanmax([table["ci_high"].max(), table["mean"].max(), 0.01])))
    right.grid(axis="y", visible=False)
    for ax in (left, right):
        ax.xaxis.label.set_size("small")
        ax.yaxis.label.set_size("small")
        sns.despine(ax=ax)
    title, ends = overlap_title(found), ""
    set_title(fig, title)
    if len(order) > 1:
        ends = _(
            "; by category from {low} ({first}) to {high} ({last})",
            low=f"{table['mean'][order[0]]:.2f}",
            first=order[0],
            high=f"{table['mean'][order[-1]]:.2f}",
            last=order[-1],
        )
    fig.set_label(
        _(
            "{title}. Of {n} pairs within a category {share} have a ROUGE-L below 0.5{ends}.",
            title=title,
            n=f"{int(table.pairs[ALL]):,}",
            share=f"{table.below_half[ALL]:.0%}",
            ends=ends,
        )
    )
    return fig


def between(found: Diversity, benchmark: str) -> Figure | None:
    """Which categories are alike: a heatmap of the mean ROUGE-L of their texts. None where there is only one a language."""
    wide = found.between
    if math.isnan(found.table.set_index("category")["mean"][ACROSS]):
        return None
    style()
    fig = Figure(figsize=(WIDTH, 1.6 + 0.27 * len(wide)), layout="constrained")
    ax = fig.subplots()
    sns.heatmap(
        wide,
        ax=ax,
        annot=True,
        fmt=".2f",
        annot_kws={"size": "xx-small" if len(wide) > 8 else "small"},
        cmap="Blues",
        vmin=0,
        linewidths=1,
        linecolor="white",
        cbar_kws={"shrink": 0.7, "label": _("mean ROUGE-L (more alike ↑)")},
    )
    ax.set_yticklabels(
        [label(benchmark, name) for name in wide.index], rotation=0, fontsize="small"
    )
    ax.set_xticklabels(
        [name.replace("_", " ") for name in wide.columns], rotation=40, ha="right", fontsize="small"
    )
    values = wide.to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    first, second = divmod(int(np.nanargmax(values)), len(wide))
    title = _(
        "Of two categories, {first} and {second} share most ({mean})",
        first=_called(benchmark, wide.index[first]),
        second=_called(benchmark, wide.columns[second]),
        mean=f"{values[first, second]:.2f}",
    )
    set_title(fig, title)
    fig.set_label(
        _(
            "{title}. Heatmap of the mean ROUGE-L between {n} categories, within a category on the diagonal.",
            title=title,
            n=len(wide),
        )
    )
    return fig


def kappas(found: pd.DataFrame, benchmark: str, known: float = math.nan) -> Figure:
    """Do annotators agree: kappa with its interval, by category; lines where it is called by another name.

    Args:
        found: `bench.metrics.annotators.kappas`.
        known: the kappa that simulated annotators were made to have; NaN for people.
    """
    style()
    ranked = found.sort_values("kappa", na_position="first", kind="stable")
    order = [*ranked.index[ranked.category != ALL], *ranked.index[ranked.category == ALL]]
    fig = Figure(figsize=(WIDTH, 1.2 + 0.25 * len(order)), layout="constrained")
    ax = fig.subplots()
    for y, k in enumerate(order):
        row = found.loc[k]
        if math.isnan(row.kappa):
            ax.text(0.5, y, _("undefined"), color=FAINT, va="center", ha="center", fontsize="small")
            continue
        colour = INK if row.category == ALL else colours(["kappa"])["kappa"]
        if not math.isnan(row.ci_low):
            ax.plot(
                [row.ci_low, row.ci_high],
                [y, y],
                color=colour,
                lw=2.5,
                alpha=0.6,
                solid_capstyle="round",
            )
        ax.plot(row.kappa, y, "o", ms=5.5, color=colour, zorder=3)
    for least, name in BANDS[:-1]:
        ax.axvline(least, color="#dddddd", lw=1, zorder=0)
        ax.annotate(
            _(name),
            (least + 0.1, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="xx-small",
            color=FAINT,
        )
    ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=0)
    if not math.isnan(known):
        ax.axvline(known, color=FAINT, lw=1, zorder=0)
    low = float(np.nanmin([0.0, found.ci_low.min(), found.kappa.min()]))
    ax.set(xlim=(min(-0.04, low - 0.04), 1.04), ylim=(-0.6, len(order) - 0.4))
    names = [_("all") if name == ALL else label(benchmark, name) for name in found.category[order]]
    ax.set_yticks(range(len(order)), names)
    ax.tick_params(axis="y", labelsize="small")
    made = (
        ""
        if math.isnan(known)
        else _("; line at {known}: as simulated in a category", known=f"{known:.2f}")
    )
    ax.set_xlabel(_("kappa (more agreement →; dashed: chance{made})", made=made), fontsize="small")
    ax.grid(visible=False)
    sns.despine(ax=ax, left=True)
    defined, first = found[found.kappa.notna()], found.iloc[0]
    if defined.empty:
        title = _("No kappa is defined")
    elif math.isnan(first.kappa):
        ends = {"low": f"{defined.kappa.min():.2f}", "high": f"{defined.kappa.max():.2f}"}
        title = _("Kappas from {low} to {high}", **ends)
    else:
        over = _("all items") if first.category == ALL else _called(benchmark, first.category)
        of = {"kappa": f"{first.kappa:.2f}", "over": over}
        title = (
            _("Annotators agree with kappa {kappa} over {over}", **of)
            if math.isnan(known)
            else _("Simulated annotators agree with kappa {kappa} over {over}", **of)
        )
    set_title(fig, title)
    parts = _("; ").join(f"{row.category} {row.kappa:.2f}" for row in defined.itertuples())
    fig.set_label(
        _(
            "{title}. Dots with 95\u00a0% intervals by category: {parts}.",
            title=title,
            parts=parts or _("none"),
        )
    )
    return fig


def _name(benchmark: str, by: str, value: str, place: int) -> str:
    if by == "category":
        return label(benchmark, value)
    shown = value if len(value) <= 24 else f"{value[:23]}…"
    return shown if can_show(shown) else _("row {n} of the table", n=place)


def _called(benchmark: str, category: str) -> str:
    """A category within a title."""
    return (
        dataset.english_name(benchmark, category)
        if language() == "en"
        else label(benchmark, category)
    )
