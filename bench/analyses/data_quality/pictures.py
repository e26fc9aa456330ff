"""Draw what is in a data set: how much of what, how alike texts are, how annotators agree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.analyses.data_quality.compare_sets import BY, PLURAL, SIDES, SetComparison, findings
from bench.core.i18n import _, sentences
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    colours,
    label,
    legend_below,
    legend_height,
    set_title,
    style,
    wrap_cjk,
)
from bench.metrics.agreement import BANDS
from bench.metrics.diversity import Diversity
from bench.metrics.headline import range_text
from bench.metrics.table import ALL

# Bars of a picture, and categories of a comparison; the tables have them all.
BARS, CATEGORIES = 12, 16
ACROSS = "across"


def plot_coverage(counted: pd.DataFrame, by: str, benchmark: str, rows: str) -> Figure:
    """Draw how many texts are about what, the most frequent first; the darker part are distinct.

    Args:
        counted: of `bench.metrics.diversity.coverage`, by column `by`.
        rows: what a text is called.
    """
    style()
    shown = counted.head(BARS)
    fig = Figure(figsize=(WIDTH, 1.2 + 0.22 * len(shown)), layout="constrained")
    ax = fig.subplots()
    y = np.arange(len(shown))
    bars: Any = {"color": colours(["texts"])["texts"], "height": 0.7}
    every = ax.barh(y, shown.texts, alpha=0.35, label=_("all {rows}", rows=_(rows)), **bars)
    ax.barh(y, shown.distinct, label=_("distinct texts"), **bars)
    ax.bar_label(every, fmt="{:,.0f}", padding=3, fontsize="x-small", color=INK)
    names = [_bar_name(benchmark, by, str(value), k) for k, value in enumerate(shown[by], start=1)]
    ax.set_yticks(y, names)
    ax.tick_params(axis="y", labelsize="small")
    ax.set(ylim=(len(shown) - 0.4, -0.6), xlim=(0, shown.texts.max() * 1.1))
    more = len(counted) - len(shown)
    others = _("; {n} more are in the table", n=f"{more:,}") if more else ""
    ax.set_xlabel(f"{_(rows)}{others}", fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = _(
        "{n} {rows} per {by}",
        n=range_text(f"{counted.texts.min():,}", f"{counted.texts.max():,}"),
        rows=_(rows),
        by=_(by),
    )
    ax.set_title(wrap_cjk(title, WIDTH))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    if (shown.distinct < shown.texts).any():
        legend_below(fig, ax)
    first = [f"{value} {n:,}" for value, n in zip(shown[by].head(5), shown.texts, strict=False)]
    fig.set_label(
        _(
            "{title}. Bars by {by}, the largest first: {told}{others}.",
            title=title,
            by=_(by),
            told=_(", ").join(first),
            others=others,
        )
    )
    return fig


def _bar_name(benchmark: str, by: str, value: str, place: int) -> str:
    if by == "category":
        return label(benchmark, value)
    shown = value if len(value) <= 24 else f"{value[:23]}…"
    return shown if can_show(shown) else _("row {n} of the table", n=place)


def plot_overlap(found: Diversity, benchmark: str) -> Figure:
    """Draw how alike texts are: pairs by ROUGE-L, and the mean of each category."""
    style()
    table = found.table.set_index("category")
    means = table["mean"]
    order = list(table.drop([ALL, ACROSS])["mean"].sort_values(na_position="first").index)
    fig = Figure(figsize=(WIDTH, max(2.8, 1.2 + 0.24 * len(order))), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(1, 0.8))
    palette = colours(["within", ACROSS])
    across = not np.isnan(means[ACROSS])
    edges = [*found.histogram.low, found.histogram.high.iloc[-1]]
    lines = {"within": (_("within categories"), "-"), ACROSS: (_("across categories"), "--")}
    for name in lines if across else ["within"]:
        text, dashes = lines[name]
        left.stairs(
            found.histogram[name], edges, color=palette[name], lw=1.6, ls=dashes, label=text
        )
    left.set(xlim=(0, 1), ylim=(0, None), ylabel=_("share of the pairs"))
    left.set_xlabel(_("ROUGE-L of two texts (more alike →)"))
    left.yaxis.set_major_formatter(lambda value, _position: f"{value:.0%}")
    left.legend(frameon=False, fontsize="x-small", loc="upper right")
    _intervals(right, table.loc[order], "mean", palette["within"])
    if across:
        right.axvline(means[ACROSS], color=palette[ACROSS], ls="--", lw=1.2, zorder=0)
    right.set_yticks(range(len(order)), [label(benchmark, name) for name in order])
    right.tick_params(axis="y", labelsize="small")
    right.set(ylim=(-0.6, len(order) - 0.4), xlabel=_("mean within the category"))
    right.set_xlim(0, 1.08 * float(np.nanmax([table.ci_high.max(), means.max(), 0.01])))
    right.grid(axis="y", visible=False)
    for ax in (left, right):
        ax.xaxis.label.set_size("small")
        ax.yaxis.label.set_size("small")
        sns.despine(ax=ax)
    title = _("Two texts of a category share {mean} on average", mean=f"{means[ALL]:.2f}")
    if across:
        title = _(
            "Texts of one category share {within}, texts of two {across}",
            within=f"{means[ALL]:.2f}",
            across=f"{means[ACROSS]:.2f}",
        )
    set_title(fig, title)
    fig.set_label(
        _(
            "{title}. Of {n} pairs within a category {share} have a ROUGE-L below 0.5.",
            title=title,
            n=f"{int(table.pairs[ALL]):,}",
            share=f"{table.below_half[ALL]:.0%}",
        )
    )
    return fig


def _intervals(ax: Axes, rows: pd.DataFrame, value: str, colour: Any) -> None:
    """Draw values with their intervals, one row each."""
    for y, row in enumerate(rows.to_dict("records")):
        interval = [row["ci_low"], row["ci_high"]]
        ax.plot(interval, [y, y], color=colour, lw=2.5, alpha=0.6, solid_capstyle="round")
        ax.plot(row[value], y, "o", ms=5, color=colour, zorder=3)


def plot_between(found: Diversity, benchmark: str) -> Figure | None:
    """Draw a heatmap of the mean ROUGE-L of each two categories; None with one per language."""
    wide = found.between
    if np.isnan(found.table.set_index("category")["mean"][ACROSS]):
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
    names = [label(benchmark, name) for name in wide.index]
    ax.set_yticklabels(names, rotation=0, fontsize="small")
    english = [name.replace("_", " ") for name in wide.columns]
    ax.set_xticklabels(english, rotation=40, ha="right", fontsize="small")
    values = wide.to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    first, second = divmod(int(np.nanargmax(values)), len(wide))
    title = _(
        "Of two categories, {first} and {second} share most ({mean})",
        first=names[first],
        second=names[second],
        mean=f"{values[first, second]:.2f}",
    )
    set_title(fig, title)
    fig.set_label(
        _(
            "{title}. Heatmap of the mean ROUGE-L between {n} categories, within a category on the "
            "diagonal.",
            title=title,
            n=len(wide),
        )
    )
    return fig


def plot_kappas(kappas: pd.DataFrame, benchmark: str, known: float = np.nan) -> Figure:
    """Draw kappa with its interval by category, between lines where its name changes.

    Args:
        kappas: of `bench.metrics.agreement.kappas`.
        known: the kappa that simulated annotators were made to have; NaN for people.
    """
    style()
    ranked = kappas.sort_values("kappa", na_position="first", kind="stable")
    ranked = pd.concat([ranked[ranked.category != ALL], ranked[ranked.category == ALL]])
    fig = Figure(figsize=(WIDTH, 1.2 + 0.25 * len(ranked)), layout="constrained")
    ax = fig.subplots()
    _intervals(ax, ranked, "kappa", colours(["kappa"])["kappa"])
    for y in np.flatnonzero(ranked.kappa.isna()):
        centre: Any = {"va": "center", "ha": "center", "fontsize": "small"}
        ax.text(0.5, float(y), _("undefined"), color=FAINT, **centre)
    above: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    for least, name in BANDS[:-1]:
        ax.axvline(least, color="#dddddd", lw=1, zorder=0)
        text: Any = {"ha": "center", "va": "bottom", "fontsize": "xx-small", "color": FAINT}
        ax.annotate(_(name), (least + 0.1, 1), (0, 2), **above, **text)
    ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=0)
    axis = _("kappa (more agreement →; dashed: chance)")
    if not np.isnan(known):
        ax.axvline(known, color=FAINT, lw=1, zorder=0)
        simulated = _("line at {known}: as simulated in a category", known=f"{known:.2f}")
        axis = _("; ").join([axis, simulated])
    ax.set_xlabel(axis, fontsize="small")
    low = float(np.nanmin([0.0, kappas.ci_low.min(), kappas.kappa.min()]))
    ax.set(xlim=(low - 0.04, 1.04), ylim=(-0.6, len(ranked) - 0.4))
    names = [_("all") if name == ALL else label(benchmark, name) for name in ranked.category]
    ax.set_yticks(range(len(ranked)), names)
    ax.tick_params(axis="y", labelsize="small")
    ax.grid(visible=False)
    sns.despine(ax=ax, left=True)
    defined = ranked[ranked.kappa.notna()]
    title = _("No kappa is defined")
    if len(defined):
        text = range_text(f"{defined.kappa.min():.2f}", f"{defined.kappa.max():.2f}")
        title = _("Simulated annotators agree with kappa {kappa}", kappa=text)
        if np.isnan(known):
            title = _("Annotators agree with kappa {kappa}", kappa=text)
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


def plot_shared(shared: SetComparison, benchmark: str, names: Sequence[str]) -> Figure:
    """Draw what two data sets share by category: topics, groups, and the share of near texts.

    Args:
        names: what the first and the second are called.
    """
    style()
    counts = shared.counts[shared.counts.category != ALL]
    sizes = counts.groupby("category", sort=False)[["both", "first_only", "second_only"]].sum()
    order = list(sizes.sum(axis=1).sort_values(ascending=False, kind="stable").index[:CATEGORIES])
    first, second, both = colours(["first", "second", "both"]).values()
    parts = {
        "first_only": (_("in {name} alone", name=names[0]), first),
        "both": (_("in both"), both),
        "second_only": (_("in {name} alone", name=names[1]), second),
    }
    texts = [text for text, _colour in parts.values()]
    height = 1.35 + 0.3 * len(order) + legend_height(texts)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(1, 3, sharey=True, width_ratios=(1, 1, 0.8))
    for ax, by in zip(axes, BY, strict=False):
        rows = counts[counts.by == by].set_index("category").reindex(order, fill_value=0)
        start = np.zeros(len(rows))
        longest = max(1, int(rows[list(parts)].to_numpy().sum(axis=1).max()))
        for name, (text, colour) in parts.items():
            width = rows[name].to_numpy()
            edge: Any = {"height": 0.66, "edgecolor": "white", "linewidth": 0.6}
            bars = ax.barh(
                np.arange(len(rows)), width, left=start, color=colour, label=text, **edge
            )
            # Numbers where there is room.
            inside = [f"{n:,}" if n / longest > 0.05 * len(str(n)) else "" for n in width]
            ink = "white" if sum(colour) < 1.3 else INK
            ax.bar_label(bars, inside, label_type="center", fontsize="xx-small", color=ink)
            start = start + width
        ax.set_xlim(0, longest * 1.02)
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.set_xlabel(_(PLURAL[by]), fontsize="small")
    for side, colour, marker, step in zip(SIDES, (first, second), "os", (-0.14, 0.14), strict=True):
        near = shared.near[shared.near.side == side].set_index("category").share.reindex(order)
        dots: Any = {"ms": 5, "color": colour, "clip_on": False, "zorder": 3}
        axes[2].plot(near, np.arange(len(order)) + step, marker, ls="none", **dots)
    if not shared.near.texts.any():
        centre: Any = {"ha": "center", "va": "center", "fontsize": "x-small", "color": FAINT}
        text = _("no texts\nin one language")
        axes[2].text(0.5, 0.5, text, transform=axes[2].transAxes, **centre)
    axes[2].set_xlim(0, 1)
    axes[2].xaxis.set_major_formatter(lambda value, _position: f"{value:.0%}")
    axis = _(
        "texts near one of the other set\n(ROUGE-L of {least} or more)\n● first, ■ second set",
        least=f"{shared.least:g}",
    )
    axes[2].set_xlabel(axis, fontsize="x-small")
    axes[0].set_yticks(range(len(order)), [label(benchmark, name) for name in order])
    axes[0].set_ylim(len(order) - 0.4, -0.6)
    for ax in axes:
        ax.tick_params(labelsize="x-small")
        ax.tick_params(axis="y", labelsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    place: Any = {"loc": "outside lower center", "frameon": False, "fontsize": "x-small"}
    columns = 1 if max(map(len, texts)) > 40 else 3
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=columns, **place)
    (topics, *topics_alone), (groups, *groups_alone) = map(shared.overall, BY)
    title = _(
        "{topics} of {all_topics} topics and {groups} of {all_groups} groups are in both",
        topics=f"{topics:,}",
        all_topics=f"{topics + sum(topics_alone):,}",
        groups=f"{groups:,}",
        all_groups=f"{groups + sum(groups_alone):,}",
    )
    set_title(fig, title)
    fig.set_label(sentences(findings(shared, *names)))
    return fig
