"""Draw the words of a data set: a cloud per category where a font shows them, else bars."""

import math

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench import naming, words
from bench.figures.style import (
    FAINT,
    FONT_ADVICE,
    INK,
    WIDTH,
    cjk_font,
    colours,
    head,
    label,
    readable,
    style,
)
from bench.metrics.diversity import CJK

# Words of a cloud, and bars in its place.
CLOUD, BARS = 14, 8
COLUMNS = 4
# Pixels of a cloud; its size in the picture is less.
PIXELS = (240, 180)
# Blues that read on white.
SHADES = ("#08306b", "#08519c", "#2171b5", "#4292c6")


def missing(counted: pd.DataFrame) -> str:
    """Why there are no clouds of these words, or ""."""
    if counted.word.map(lambda word: bool(CJK.search(word))).any() and cjk_font() is None:
        return FONT_ADVICE.replace("so labels are English", "so bars stand in place of clouds, and Chinese words are left out")  # fmt: skip
    return ""


@readable
def clouds(counted: pd.DataFrame, benchmark: str) -> Figure | None:
    """Which words each category uses: the larger, the more of its texts have it. Bars where `missing` says why.

    None where no word was counted, or none of them can be shown.

    Args:
        counted: `bench.metrics.words.counts`.
    """
    style()
    bars = bool(missing(counted))
    if cjk_font() is None:
        counted = counted[~counted.word.map(lambda word: bool(CJK.search(word)))]
    if counted.empty:
        return None
    names = list(dict.fromkeys(counted.category))
    rows = math.ceil(len(names) / COLUMNS)
    columns = min(COLUMNS, len(names))
    height = rows * ((1.7 if bars else 1.15) + 0.33) + 0.4
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        some = counted[counted.category == name]
        (_bars if bars else _cloud)(ax, some)
        ax.set_title(f"{label(benchmark, name)}\nn = {some.of.iloc[0]:,}", fontsize="x-small", fontweight="normal")  # fmt: skip
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    tops = {name: counted[counted.category == name].iloc[0] for name in names}
    most = max(tops.values(), key=lambda row: row.texts / row.of)
    title = words.tell(
        "The commonest word of a category: “{word}” in {category}, in {share} of its texts",
        word=most.word, share=f"{most.texts / most.of:.0%}",
        category=naming.english(benchmark, most.category) if words.language() == "en" else label(benchmark, most.category),
    )  # fmt: skip
    head(fig, title)
    parts = words.tell("; ").join(
        words.tell("{category}: {word} ({n} of {all})", category=name, word=row.word, n=f"{row.texts:,}", all=f"{row.of:,}")
        for name, row in tops.items()
    )  # fmt: skip
    fig.set_label(
        words.tell("{title}. Most frequent word of each category, by texts that have it: {parts}.", title=title, parts=parts)
    )  # fmt: skip
    return fig


def _cloud(ax: Axes, some: pd.DataFrame) -> None:
    from wordcloud import WordCloud  # slow to load

    path = font_manager.findfont(cjk_font() or "DejaVu Sans")
    first = some.head(CLOUD)
    ranks = {word: k for k, word in enumerate(first.word)}
    cloud = WordCloud(
        font_path=path, width=PIXELS[0], height=PIXELS[1], background_color=None, mode="RGBA", random_state=0, prefer_horizontal=1.0,
        max_font_size=44, min_font_size=13, font_step=2, relative_scaling=0.5,
        color_func=lambda word, **_: SHADES[min(len(SHADES) - 1, ranks[word] * len(SHADES) // max(1, len(ranks)))],
    )  # fmt: skip
    cloud.generate_from_frequencies(dict(zip(first.word, first.texts.astype(float), strict=True)))
    # Hardly larger in the picture than it is drawn: smoothing would blur the words, and double the file.
    ax.imshow(np.asarray(cloud.to_image()), interpolation="none")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_color("#dddddd")


def _bars(ax: Axes, some: pd.DataFrame) -> None:
    first = some.head(BARS)
    places = np.arange(len(first))
    ax.barh(places, first.texts, color=colours(["texts"])["texts"], height=0.7)
    ax.set_yticks(places, list(first.word))
    ax.set_ylim(len(first) - 0.4, -0.6)
    ax.tick_params(labelsize="x-small", colors=INK)
    ax.set_xlabel(words.tell("texts that have it"), fontsize="x-small", color=FAINT)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
