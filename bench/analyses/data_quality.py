"""Describe data sets: what they cover, how alike their texts are, what their audits find.

    sets = open_sets(["mcbe", "cbbq"], {"mcbe": "~/data/mcbe"})
    sets[0].diversity.table

Words are counted with the packages of the extra `words`.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import platformdirs
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.benchmarks import module, names, resolve
from bench.core.errors import BadInput, expected, quoted
from bench.core.numbers import decimals
from bench.core.text import sentences
from bench.data import SAMPLES, Source, find
from bench.data import texts as data_texts
from bench.data.dataset import language_name
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    characters,
    colours,
    fonts,
    forest,
    forest_axis,
    ink_on,
    label,
    legend_below,
    legend_height,
    set_title,
    style,
)
from bench.metrics import agreement, diversity
from bench.metrics.agreement import BANDS, kappa_sentence
from bench.metrics.diversity import NEAR, Diversity
from bench.metrics.headline import percent, range_text
from bench.metrics.table import ALL

# What is compared between two data sets, in the plural.
COMPARED = {"topic": "topics", "group": "groups"}
SIDES = ("first", "second")
# Bars of a picture, and categories of a comparison; the tables have them all.
BARS, CATEGORIES = 12, 16
ACROSS = "across"
# What texts are counted by; and how far category pairs differ at least in what they share, if they
# are to be drawn (our own threshold).
COVERED, EVEN = ("category", "topic", "group"), 0.1


@dataclass(frozen=True)
class DataSet:
    """A data set and its texts, as `bench.data.texts.texts` returns them."""

    source: Source
    texts: pd.DataFrame

    @classmethod
    def read(cls, benchmark: str, folder: str | Path | None) -> "DataSet":
        source = find(benchmark, folder)
        return cls(source, data_texts.texts(source))

    @property
    def benchmark(self) -> str:
        return self.source.benchmark

    @property
    def title(self) -> str:
        """Return the benchmark's name in sentences."""
        return str(module("data", self.benchmark).TITLE)

    @cached_property
    def diversity(self) -> Diversity:
        """Return what its texts share."""
        return diversity.diversity(self.texts)

    def coverage(self, by: str) -> pd.DataFrame:
        """Count the texts by `category`, `topic` or `group`."""
        return diversity.coverage(self.texts, by)

    def duplicates(self) -> pd.DataFrame:
        """List the rows that say the same."""
        return diversity.duplicates(self.texts)

    def audit(self) -> pd.DataFrame:
        """Count what its check finds, by kind."""
        return data_texts.audit(self.source)

    def finding(self) -> str:
        """Say how many texts there are, and how much two of a category share."""
        (within,) = self.diversity.table.query("category == @ALL").to_dict("records")
        evidence = "no interval: too few items in a category"
        if not np.isnan(within["ci_low"]):
            low, high = decimals(within["ci_low"], 2), decimals(within["ci_high"], 2)
            evidence = f"95\u00a0% interval {low} to {high}"
        text = (
            f"{self.title} has {len(self.diversity.each):,} different texts in "
            f"{self.texts.category.nunique()} categories; two of a category share "
            f"{decimals(within['mean'], 2)} on average (ROUGE-L, 0 to 1; {evidence}; n = "
            f"{within['pairs']:,} pairs)."
        )
        below = "{share} of the pairs are below {half}.".format(
            share=percent(within["below_half"]),
            half=f"{diversity.HALF:g}",
        )
        return sentences([text, below])


def open_sets(benchmarks: Sequence[str], data: Mapping[str, str] | str = "") -> list[DataSet]:
    """Open the data of each of `benchmarks`; default: all.

    Args:
        data: folder by benchmark, or `samples` for all; `bench.data.find` looks for the others.

    Raises:
        BadInput: an unknown benchmark, or its data are missing or wrong.
    """
    wanted = list(dict.fromkeys(resolve(name) for name in benchmarks)) or list(names())
    given = dict.fromkeys(wanted, data) if isinstance(data, str) else data
    folders = {resolve(name): folder for name, folder in given.items()}
    unused = [name for name in folders if name not in wanted]
    if unused:
        raise BadInput(expected(unused[0], wanted, "benchmark with a folder of data,"))
    return [DataSet.read(name, folders.get(name)) for name in wanted]


def stacked(sets: Sequence[DataSet], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate one frame per data set; a first column names the benchmark."""
    parts = [frame.assign(benchmark=data.title) for data, frame in zip(sets, frames, strict=True)]
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return table[["benchmark", *(name for name in table if name != "benchmark")]]


def provenance(sets: Sequence[DataSet]) -> pd.DataFrame:
    """List the data sets: version, hash, licence, and the number of rows and questions."""
    rows = []
    for data in sets:
        source, texts = data.source, data.texts
        about = (source.name, source.version, source.sha256[:12], source.licence, source.found)
        rows.append((data.benchmark, *about, len(texts), int(texts["items"].sum())))
    columns = ["data", "version", "sha256", "licence", "found", "rows", "asks"]
    return pd.DataFrame(rows, columns=["benchmark", *columns])


def overlaps(
    sets: Sequence[DataSet], others: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the texts of all data sets, and of `others`, folders by benchmark.

    See `bench.metrics.diversity.overlaps`.
    """
    texts = {data.title: data.texts for data in sets}
    for name, folder in (others or {}).items():
        other = DataSet.read(resolve(name), folder)
        texts[f"other {other.title}"] = other.texts
    return diversity.overlaps(texts)


def overlap_finding(shared: pd.DataFrame) -> str:
    """Say which two data sets share most."""
    if shared.empty:
        return "No two data sets have texts in the same language."
    top = shared.iloc[int(shared["mean"].argmax())]
    return (
        f"The texts of {top['first']} ({language_name(str(top.language))}) come nearest to those "
        f"of {top.second}: the most similar one shares {decimals(top['mean'], 2)} on average "
        f"(95\u00a0% interval {decimals(top.ci_low, 2)} to {decimals(top.ci_high, 2)}; "
        f"n = {int(top.texts):,} texts)."
    )


class Pair(NamedTuple):
    """Two data sets of one benchmark, and what they share.

    Attributes:
        counts: numbers of different values by `by` (topic or group) and `category` (or `all`).
        values: the number of texts of each set with a value, and `where`: both, first or second.
            Values are the same if their names are, but for case, width and blanks.
        near: by `side` and `category` (or `all`), how many distinct `texts` are `near` one of the
            other set; of those that have a text of their language there.
        pairs: each text that is near one of the other set, the nearest first.
        least: from which ROUGE-L on texts are near.
    """

    first: DataSet
    second: DataSet
    counts: pd.DataFrame
    values: pd.DataFrame
    near: pd.DataFrame
    pairs: pd.DataFrame
    least: float

    @property
    def names(self) -> tuple[str, str]:
        """Return what the two are called."""
        first, second = self.first.source.name, self.second.source.name
        if first != second:
            return first, second
        return f"{first} (first)", f"{first} (other)"

    def findings(self) -> list[str]:
        """Say how many texts of each are near one of the other."""
        texts = []
        overall = self.near[self.near.category == ALL].to_dict("records")
        for row, name, other in zip(overall, self.names, self.names[::-1], strict=True):
            if row["texts"]:
                text = (
                    f"{row['near']:,} of {row['texts']:,} texts of {name} "
                    f"({percent(row['share'])}) have a near-duplicate in {other} (ROUGE-L of "
                    f"{self.least:g} or more)."
                )
                texts.append(text)
        return texts


def compare(
    sets: Sequence[DataSet], others: Mapping[str, str] | None = None, near: float = NEAR
) -> list[Pair]:
    """Compare each data set with another one of its benchmark; by default with the samples.

    Args:
        others: folder of the other one, by benchmark.
        near: from which ROUGE-L on texts are near-duplicates.

    Raises:
        BadInput: `near` is not above 0 and at most 1, or data are missing or wrong.
    """
    if not (isinstance(near, int | float) and 0 < near <= 1):
        raise BadInput(f"least {quoted(near)}: give a ROUGE-L above 0 and at most 1")
    folders = {resolve(name): folder for name, folder in (others or {}).items()}
    return [
        _pair(data, DataSet.read(name, folders.get(name, SAMPLES / name)), near)
        for data in sets
        for name in [data.benchmark]
        if name in folders or not data.source.is_sample
    ]


def _pair(first: DataSet, second: DataSet, least: float) -> Pair:
    values, counts, near, pairs = [], [], [], []
    for by in COMPARED:
        parts = [
            diversity.by_each(data.texts, by).assign(**{**dict.fromkeys(SIDES, 0), side: 1})
            for data, side in zip((first, second), SIDES, strict=True)
        ]
        rows = pd.concat(parts, ignore_index=True).rename(columns={by: "value"})
        rows["key"] = [
            " ".join(unicodedata.normalize("NFKC", value).casefold().split())
            for value in rows.value
        ]
        grouped = rows.groupby(["category", "key"], sort=False)
        table = grouped.agg({"value": "first", **dict.fromkeys(SIDES, "sum")}).reset_index()
        in_first, in_second = (table[side] > 0 for side in SIDES)
        table["where"] = np.select([in_first & in_second, in_first], ["both", "first"], "second")
        values.append(table.assign(by=by)[["by", "category", "value", *SIDES, "where"]])
        for name, part in [(ALL, table), *table.groupby("category", sort=False)]:
            numbers = (int((part["where"] == where).sum()) for where in ("both", *SIDES))
            counts.append((by, name, *numbers))
    for side, own, other in (("first", first, second), ("second", second, first)):
        nearest = diversity.nearest(own.texts, other.texts)
        category = dict(zip(own.texts.item_id, own.texts.category, strict=True))
        nearest = nearest.assign(side=side, category=nearest.item_a.map(category))
        close = nearest.rouge_l >= np.float32(least)  # as the scores are, so that a tie is one
        for name in (ALL, *dict.fromkeys(own.texts.category)):
            chosen = (nearest.category == name) | (name == ALL)
            texts, number = int(chosen.sum()), int((chosen & close).sum())
            near.append((side, name, texts, number, number / texts if texts else np.nan))
        pairs.append(nearest[close])
    columns = ["side", "category", "rouge_l", "item_a", "item_b", "text_a", "text_b"]
    return Pair(
        first,
        second,
        pd.DataFrame(counts, columns=["by", "category", "both", "first_only", "second_only"]),
        pd.concat(values, ignore_index=True),
        pd.DataFrame(near, columns=["side", "category", "texts", "near", "share"]),
        pd.concat(pairs)[columns].sort_values(
            "rouge_l", ascending=False, kind="stable", ignore_index=True
        ),
        float(least),
    )


def pair_findings(pairs: Sequence[Pair]) -> list[str]:
    """Say what each pair of data sets shares."""
    return [text for pair in pairs for text in pair.findings()]


class Annotations(NamedTuple):
    """Annotations, and how far annotators agree.

    Attributes:
        who: the annotators, in a sentence.
        kappas: see `bench.metrics.agreement.kappas`.
    """

    who: str
    kappas: pd.DataFrame

    def sentence(self) -> str:
        """Say how far they agree."""
        return kappa_sentence(self.kappas, self.who)


def annotations(file: str = "", *, levels: bool = False) -> list[Annotations]:
    """Measure how far the annotators of a CSV file agree; nothing without one.

    Args:
        file: see `bench.metrics.agreement.read_annotations`.
        levels: ratings are severities from 0 to 10, compared by their five levels.
    """
    if not file:
        return []
    ratings = agreement.read_annotations(Path(file).expanduser(), levels=levels)
    who = f"the annotators of {Path(file).name}"
    return [Annotations(who, agreement.kappas(ratings))]


def notes(sets: Sequence[DataSet]) -> list[str]:
    """Say which data are samples."""
    samples = [data.title for data in sets if data.source.is_sample]
    if not samples:
        return []
    text = (
        f"The data for {', '.join(samples)} are this package's own samples, which say nothing "
        "about the benchmark's; see the parameter data."
    )
    return [text]


def _panels(height: float, columns: int = 1, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    style()
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    return fig, fig.subplots(1, columns, squeeze=False, **options)[0]


def _intervals(ax: Axes, rows: pd.DataFrame, scores: pd.Series, benchmark: str) -> None:
    """Draw values with their intervals, one category per row."""
    rows = rows.assign(score=scores)
    forest(ax, rows, np.arange(len(rows)), colours([""])[""], ms=5)
    forest_axis(ax, ["all" if name == ALL else label(benchmark, name) for name in rows.category])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.tick_params(axis="y", labelsize="small")


def even_coverage(data: DataSet) -> list[str]:
    """Say by what the texts are spread evenly, which needs no picture."""
    rows, texts = module("data", data.benchmark).TEXTS, []
    for by in COVERED:
        counted = data.coverage(by)
        if _is_even(counted):
            text = (
                f"{data.title}: {counted.texts.iloc[0]:,} {rows} for each {by} ({len(counted)} "
                "of them)."
            )
            texts.append(text)
    return texts


def _is_even(counted: pd.DataFrame) -> bool:
    return len(counted) > 1 and bool((counted.texts == counted.texts.iloc[0]).all())


def plot_coverage(data: DataSet, by: str) -> Figure | None:
    """Draw how many texts are about what, the most frequent first; the darker part are distinct.

    None where all have the same number.
    """
    counted = data.coverage(by)
    if _is_even(counted):
        return None
    rows = module("data", data.benchmark).TEXTS
    shown = counted.head(BARS)
    fig, (ax,) = _panels(1.2 + 0.22 * len(shown))
    y = np.arange(len(shown))
    bars: Any = {"color": colours(["texts"])["texts"], "height": 0.7}
    every = ax.barh(y, shown.texts, alpha=0.35, label=f"all {rows}", **bars)
    ax.barh(y, shown.distinct, label="distinct texts", **bars)
    ax.bar_label(every, fmt="{:,.0f}", padding=3, fontsize="small", color=INK)
    labels = [label(data.benchmark, value) for value in shown[by]]
    if by != "category":
        short = [value if len(value) <= 24 else f"{value[:23]}…" for value in shown[by]]
        labels = [
            name if can_show(name) else f"row {k} of the table"
            for k, name in enumerate(short, start=1)
        ]
    forest_axis(ax, labels)
    ax.tick_params(axis="y", labelsize="small")
    ax.set_xlim(0, shown.texts.max() * 1.1)
    more = len(counted) - len(shown)
    others = f"; {more:,} more are in the table" if more else ""
    ax.set_xlabel(f"{rows}{others}", fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    n = range_text(f"{counted.texts.min():,}", f"{counted.texts.max():,}")
    title = f"{n} {rows} per {by}"
    ax.set_title(title)
    if (shown.distinct < shown.texts).any():
        legend_below(fig, ax)
    fig.set_label(f"{title}.")
    return fig


def plot_overlap(data: DataSet) -> Figure:
    """Draw how alike texts are: pairs by ROUGE-L, and the mean of each category."""
    table, histogram = data.diversity.table.set_index("category"), data.diversity.histogram
    means = table["mean"]
    rows = table.drop([ALL, ACROSS]).sort_values("mean", na_position="first").reset_index()
    fig, (left, right) = _panels(max(2.8, 1.2 + 0.24 * len(rows)), 2, width_ratios=(1, 0.8))
    palette = colours(["within", ACROSS])
    across = not np.isnan(means[ACROSS])
    edges = [*histogram.low, histogram.high.iloc[-1]]
    lines = {"within": ("within categories", "-"), ACROSS: ("across categories", "--")}
    for name, (text, dashes) in list(lines.items())[: 2 if across else 1]:
        left.stairs(histogram[name], edges, color=palette[name], lw=1.6, ls=dashes, label=text)
    left.set(xlim=(0, 1), ylim=(0, None))
    left.set_ylabel("share of the pairs", size="small")
    left.set_xlabel("ROUGE-L of two texts (more alike →)", size="small")
    left.yaxis.set_major_formatter(lambda value, _position: percent(value))
    left.legend(frameon=False, fontsize="small", loc="upper right")
    sns.despine(ax=left)
    _intervals(right, rows, rows["mean"], data.benchmark)
    if across:
        right.axvline(means[ACROSS], color=palette[ACROSS], ls="--", lw=1.2, zorder=0)
    right.set_xlabel("mean within the category", size="small")
    right.set_xlim(0, 1.08 * float(np.nanmax([table.ci_high.max(), means.max(), 0.01])))
    title = f"Two texts of a category share {decimals(means[ALL], 2)} on average"
    set_title(fig, title)
    return fig


def even_overlap(data: DataSet) -> str:
    """Say how much any two categories share, where they differ too little for a picture."""
    low, high = _between(data)
    if not high - low < EVEN:
        return ""
    shares = f"{decimals(low, 2)} to {decimals(high, 2)}"
    return f"{data.title}: any two categories share {shares} on average."


def _between(data: DataSet) -> tuple[float, float]:
    """Return the least and the greatest mean ROUGE-L of two categories; NaN with one a language."""
    values = data.diversity.between.to_numpy(dtype=float, copy=True)
    np.fill_diagonal(values, np.nan)
    return (np.nan, np.nan) if np.isnan(values).all() else (np.nanmin(values), np.nanmax(values))


def plot_between(data: DataSet) -> Figure | None:
    """Draw a heatmap of the mean ROUGE-L of each two categories.

    None with one category per language, or where all share about the same.
    """
    wide = data.diversity.between
    if np.isnan(_between(data)[0]) or even_overlap(data):
        return None
    fig, (ax,) = _panels(1.6 + 0.27 * len(wide))
    sns.heatmap(
        wide,
        ax=ax,
        annot=wide.map(partial(decimals, digits=2)),
        fmt="",
        annot_kws={"size": "x-small" if len(wide) > 8 else "small"},
        cmap="Blues",
        vmin=0,
        linewidths=1,
        linecolor="white",
        cbar_kws={"shrink": 0.7, "label": "mean ROUGE-L (more alike ↑)"},
    )
    labels = [label(data.benchmark, name) for name in wide.index]
    ax.set_yticklabels(labels, rotation=0, fontsize="small")
    english = [name.replace("_", " ") for name in wide.columns]
    ax.set_xticklabels(english, rotation=40, ha="right", fontsize="small")
    values = wide.to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    first, second = divmod(int(np.nanargmax(values)), len(wide))
    title = (
        f"Of two categories, {labels[first]} and {labels[second]} share most "
        f"({decimals(values[first, second], 2)})"
    )
    set_title(fig, title)
    return fig


def plot_kappas(rated: Annotations, benchmark: str) -> Figure:
    """Draw kappa with its interval by category, between lines where its name changes."""
    kappas = rated.kappas.sort_values("kappa", na_position="first", kind="stable")
    kappas = pd.concat([kappas[kappas.category != ALL], kappas[kappas.category == ALL]])
    fig, (ax,) = _panels(1.2 + 0.25 * len(kappas))
    _intervals(ax, kappas, kappas.kappa, benchmark)
    for y in np.flatnonzero(kappas.kappa.isna()):
        centre: Any = {"va": "center", "ha": "center", "fontsize": "small"}
        ax.text(0.5, float(y), "undefined", color=FAINT, **centre)
    above: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    for least, name in BANDS[:-1]:
        ax.axvline(least, color="#dddddd", lw=1, zorder=0)
        text: Any = {"ha": "center", "va": "bottom", "fontsize": "x-small", "color": FAINT}
        ax.annotate(name, (least + 0.1, 1), (0, 2), **above, **text)
    ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=0)
    ax.set_xlabel("kappa (more agreement →; dashed: chance)", fontsize="small")
    low = float(np.nanmin([0.0, kappas.ci_low.min(), kappas.kappa.min()]))
    ax.set_xlim(low - 0.04, 1.04)
    ax.grid(visible=False)
    defined = kappas.kappa.dropna()
    title = "No kappa is defined"
    if len(defined):
        text = range_text(decimals(defined.min(), 2), decimals(defined.max(), 2))
        title = f"Annotators agree with kappa {text}"
    set_title(fig, title)
    return fig


def plot_shared(pair: Pair) -> Figure:
    """Draw what two data sets share by category: topics, groups, and the share of near texts."""
    benchmark = pair.first.benchmark
    counts = pair.counts[pair.counts.category != ALL]
    sizes = counts.groupby("category", sort=False)[["both", "first_only", "second_only"]].sum()
    order = list(sizes.sum(axis=1).sort_values(ascending=False, kind="stable").index[:CATEGORIES])
    first, second, both = colours(["first", "second", "both"]).values()
    parts = {
        "first_only": (f"in {pair.names[0]} alone", first),
        "both": ("in both", both),
        "second_only": (f"in {pair.names[1]} alone", second),
    }
    texts = [text for text, _colour in parts.values()]
    height = 1.35 + 0.3 * len(order) + legend_height(texts)
    fig, axes = _panels(height, 3, sharey=True, width_ratios=(1, 1, 0.8))
    for ax, by in zip(axes, COMPARED, strict=False):
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
            look: Any = {"fontsize": "x-small", "color": ink_on(colour)}
            ax.bar_label(bars, inside, label_type="center", **look)
            start = start + width
        ax.set_xlim(0, longest * 1.02)
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.set_xlabel(COMPARED[by], fontsize="small")
    for side, colour, marker, step in zip(SIDES, (first, second), "os", (-0.14, 0.14), strict=True):
        near = pair.near[pair.near.side == side].set_index("category").share.reindex(order)
        dots: Any = {"ms": 5, "color": colour, "clip_on": False, "zorder": 3}
        axes[2].plot(near, np.arange(len(order)) + step, marker, ls="none", **dots)
    if not pair.near.texts.any():
        centre: Any = {"ha": "center", "va": "center", "fontsize": "small", "color": FAINT}
        text = "no texts\nin one language"
        axes[2].text(0.5, 0.5, text, transform=axes[2].transAxes, **centre)
    axes[2].set_xlim(0, 1)
    axes[2].xaxis.set_major_formatter(lambda value, _position: percent(value))
    axis = (
        f"texts near one of the other set\n(ROUGE-L of {pair.least:g} or more)\n● first, ■ "
        "second set"
    )
    axes[2].set_xlabel(axis, fontsize="small")
    for ax in axes:
        forest_axis(ax, [label(benchmark, name) for name in order])
        ax.tick_params(labelsize="small")
        ax.tick_params(axis="y", labelsize="small")
    place: Any = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    columns = 1 if max(map(len, texts)) > 40 else 3
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=columns, **place)
    overall = pair.counts[pair.counts.category == ALL].set_index("by")
    total = overall.drop(columns="category").sum(axis=1)
    title = (
        f"{overall.both.topic:,} of {total.topic:,} topics and {overall.both.group:,} of "
        f"{total.group:,} groups are in both"
    )
    set_title(fig, title)
    return fig


SEGMENTED = ("zh", "en")
# The four that McBE's paper leaves out besides a common list (appendix, word clouds).
EXTRA = ("然后", "一些", "那些", "可能")
# Parts of speech that say what a text is about, by jieba's tags: nouns, verbs, adjectives, idioms.
CONTENT = ("n", "v", "a", "b", "j", "i", "l", "z")
ENGLISH = re.compile(r"[a-z][a-z'-]+")
PACKAGES = ("jieba", "stopwordsiso", "wordcloud")
# Words and pixels of a cloud, and blues that are legible on white.
CLOUD, PIXELS = 14, (240, 180)
SHADES = ("#08306b", "#08519c", "#2171b5", "#4292c6")
COLUMNS = 4


def missing_packages() -> str:
    """Say which packages are missing and how to install them, or return ""."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    return "Words are not counted: {packages} not installed; run: pip install {extra}".format(
        packages=", ".join(missing),
        extra='"bias-workbench[words]"',
    )


def word_counts(texts: pd.DataFrame) -> pd.DataFrame:
    """Count the texts of each category that have a word, the most frequent first.

    Common words, numbers, signs and single Chinese characters are left out; `of` is the number of
    distinct texts of the category.

    Raises:
        BadInput: the packages of the extra `words` are not installed.
    """
    if reason := missing_packages():
        raise BadInput(reason)
    rows = []
    for (category, language), part in texts.groupby(["category", "language"], sort=False):
        if language in SEGMENTED:
            cut, distinct = _segmenter(str(language)), part.text.drop_duplicates()
            count = Counter(word for text in distinct for word in set(cut(text)))
            # Words of one count are in alphabetical order, so that tables are the same everywhere.
            ranked = sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))
            rows += [(category, word, n, len(distinct)) for word, n in ranked]
    return pd.DataFrame(rows, columns=["category", "word", "texts", "of"])


@cache
def _segmenter(language: str) -> Callable[[str], list[str]]:
    """Return what cuts a text of `SEGMENTED` into words without common ones, by slow packages."""
    if language == "en":
        # The list of stopwordsiso goes too far: it has man, old and young.
        from wordcloud import STOPWORDS

        return lambda text: [w for w in ENGLISH.findall(text.lower()) if w not in STOPWORDS]
    import jieba
    import stopwordsiso
    from jieba import posseg

    jieba.setLogLevel("CRITICAL")  # a cache that cannot be written costs time alone
    tokenizer = jieba.Tokenizer()
    # By default its cache is in a folder that all users share, where anybody may have put it.
    folder = platformdirs.user_cache_path("bias-workbench", appauthor=False)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    tokenizer.tmp_dir = str(folder)
    tagger = posseg.POSTokenizer(tokenizer)
    common = stopwordsiso.stopwords(language).union(EXTRA)
    return lambda text: [
        word
        for word, kind in tagger.cut(text)
        # One character is mostly a particle or a part of a name.
        if len(word) > 1 and kind.startswith(CONTENT) and word not in common
    ]


def word_notes(texts: pd.DataFrame, counted: pd.DataFrame) -> Iterable[str]:
    """Say which languages are not counted, and how many words the clouds leave out."""
    for language in dict.fromkeys(map(str, texts.language)):
        if language not in SEGMENTED:
            yield (
                f"Words of {language_name(language)} are not counted: the workbench cuts Chinese "
                "and English alone."
            )
    if lost := int((~counted.word.map(can_show)).sum()):
        yield f"{lost} words are not in the clouds, because the fonts here cannot show them."


def plot_clouds(counted: pd.DataFrame, benchmark: str) -> Figure | None:
    """Draw a cloud per category: the larger a word, the more of its texts have it.

    None where no word was counted, or none of them can be shown.
    """
    counted = counted[counted.word.map(can_show)]
    if counted.empty:
        return None
    style()
    by_category = dict(list(counted.groupby("category", sort=False)))
    rows = math.ceil(len(by_category) / COLUMNS)
    fig = Figure(figsize=(WIDTH, rows * 1.48 + 0.4), layout="constrained")
    axes = fig.subplots(rows, min(COLUMNS, len(by_category)), squeeze=False).ravel()
    for ax, (name, own) in zip(axes, by_category.items(), strict=False):
        _cloud(ax, own.head(CLOUD))
        title = f"{label(benchmark, str(name))}\nn = {own.of.iloc[0]:,}"
        ax.set_title(title, fontsize="small", fontweight="normal")
    for ax in axes[len(by_category) :]:
        ax.set_axis_off()
    top = max((own.iloc[0] for own in by_category.values()), key=lambda row: row.texts / row.of)
    title = (
        f"The commonest word of a category: “{top.word}” in {label(benchmark, top.category)}, in "
        f"{percent(top.texts / top.of)} of its texts"
    )
    set_title(fig, title)
    return fig


def _cloud(ax: Axes, counted: pd.DataFrame) -> None:
    from wordcloud import WordCloud  # slow to load

    # A cloud has one font: the one that has most of its words.
    known = {font: counted.word.map(characters(font).issuperset) for font in fonts()}
    font = max(known, key=lambda font: known[font].sum())
    counted = counted[known[font]]
    ranks = {word: k for k, word in enumerate(counted.word)}
    cloud = WordCloud(
        font_path=font_manager.findfont(font),
        width=PIXELS[0],
        height=PIXELS[1],
        background_color=None,
        mode="RGBA",
        random_state=0,
        prefer_horizontal=1.0,
        max_font_size=44,
        min_font_size=13,
        font_step=2,
        relative_scaling=0.5,
        color_func=lambda word, **_options: SHADES[ranks[word] * len(SHADES) // len(ranks)],
    )
    frequencies = dict(zip(counted.word, counted.texts.astype(float), strict=True))
    # Smoothing would blur the words, and double the file.
    image = np.asarray(cloud.generate_from_frequencies(frequencies).to_image())
    ax.imshow(image, interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_color("#dddddd")
