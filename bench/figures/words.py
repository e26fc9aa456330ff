"""Draw the words of a data set: a cloud per category."""

import math

import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.core.i18n import _, language
from bench.data import dataset
from bench.figures.style import WIDTH, can_show, characters, fonts, label, set_title, style

# Words of a cloud.
CLOUD = 14
COLUMNS = 4
# Pixels of a cloud; its size in the picture is less.
PIXELS = (240, 180)
# Blues that read on white.
SHADES = ("#08306b", "#08519c", "#2171b5", "#4292c6")


def missing(counted: pd.DataFrame) -> str:
    """Which words of these the clouds leave out, and why, or ""."""
    lost = (~counted.word.map(can_show)).sum()
    return (
        _("{n} words are not in the clouds, because the fonts here cannot show them.", n=lost)
        if lost
        else ""
    )


def clouds(counted: pd.DataFrame, benchmark: str) -> Figure | None:
    """Which words each category uses: the larger, the more of its texts have it.

    None where no word was counted, or none of them can be shown.

    Args:
        counted: `bench.metrics.words.counts`.
    """
    style()
    counted = counted[counted.word.map(can_show)]
    if counted.empty:
        return None
    names = list(dict.fromkeys(counted.category))
    rows = math.ceil(len(names) / COLUMNS)
    columns = min(COLUMNS, len(names))
    height = rows * 1.48 + 0.4
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        some = counted[counted.category == name]
        _cloud(ax, some)
        ax.set_title(
            f"{label(benchmark, name)}\nn = {some.of.iloc[0]:,}",
            fontsize="x-small",
            fontweight="normal",
        )
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    tops = {name: counted[counted.category == name].iloc[0] for name in names}
    most = max(tops.values(), key=lambda row: row.texts / row.of)
    title = _(
        "The commonest word of a category: “{word}” in {category}, in {share} of its texts",
        word=most.word,
        share=f"{most.texts / most.of:.0%}",
        category=dataset.english_name(benchmark, most.category)
        if language() == "en"
        else label(benchmark, most.category),
    )
    set_title(fig, title)
    parts = _("; ").join(
        _(
            "{category}: {word} ({n} of {all})",
            category=name,
            word=row.word,
            n=f"{row.texts:,}",
            all=f"{row.of:,}",
        )
        for name, row in tops.items()
    )
    fig.set_label(
        _(
            "{title}. Most frequent word of each category, by texts that have it: {parts}.",
            title=title,
            parts=parts,
        )
    )
    return fig


def _cloud(ax: Axes, some: pd.DataFrame) -> None:
    from wordcloud import WordCloud  # slow to load

    # A cloud has one font: the one that has most of its words.
    first = some.head(CLOUD)
    written = {font: first.word.map(characters(font).issuperset) for font in fonts()}
    font = max(fonts(), key=lambda font: written[font].sum())
    first = first[written[font]]
    ranks = {word: k for k, word in enumerate(first.word)}
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
        color_func=lambda word, **_unused: SHADES[
            min(len(SHADES) - 1, ranks[word] * len(SHADES) // max(1, len(ranks)))
        ],
    )
    cloud.generate_from_frequencies(dict(zip(first.word, first.texts.astype(float), strict=True)))
    # Hardly larger in the picture than it is drawn: smoothing would blur the words, and double the file.
    ax.imshow(np.asarray(cloud.to_image()), interpolation="none")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_color("#dddddd")
