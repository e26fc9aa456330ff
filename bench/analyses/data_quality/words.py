"""Count and draw the words of a data set: Chinese cut by jieba, English by blanks.

Common words are left out, and a word counts once per text. The extra `words` brings the packages
that this needs.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import platformdirs
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.core.errors import BadInput
from bench.core.i18n import N_, _
from bench.data.dataset import language_name
from bench.figures.style import WIDTH, can_show, characters, fonts, label, set_title, style

# The four that McBE's paper leaves out besides a common list (appendix, word clouds).
EXTRA = {"zh": ("然后", "一些", "那些", "可能")}
# Parts of speech that say what a text is about, by jieba's tags: nouns, verbs, adjectives, idioms.
CONTENT = ("n", "v", "a", "b", "j", "i", "l", "z")
ENGLISH = re.compile(r"[a-z][a-z'-]+")
PACKAGES = ("jieba", "stopwordsiso", "wordcloud")
# Words and pixels of a cloud, and blues that are legible on white.
CLOUD, PIXELS = 14, (240, 180)
SHADES = ("#08306b", "#08519c", "#2171b5", "#4292c6")
COLUMNS = 4
NOT_INSTALLED = N_("Words are not counted: {packages} not installed; run: pip install {extra}")
NO_SEGMENTER = N_(
    "Words of {language} are not counted: the workbench cuts Chinese and English alone."
)


def counts(texts: pd.DataFrame, *, least: int = 1) -> pd.DataFrame:
    """Count the texts of each category that have a word, the most frequent first.

    Args:
        texts: as `bench.data.texts.texts` returns them; languages that cannot be cut are left out
            (see `uncounted`).
        least: leave out words of fewer texts.

    Returns:
        `category`, `word`, `texts`, and `of`, the number of distinct texts of the category.

    Raises:
        BadInput: the packages of the extra `words` are not installed.
    """
    if reason := missing_packages():
        raise BadInput(reason)
    rows = []
    for (category, language), part in texts.groupby(["category", "language"], sort=False):
        if str(language) in _CUT:
            distinct = part.text.drop_duplicates()
            count = Counter(word for text in distinct for word in set(words(str(language), text)))
            # Words of one count are in alphabetical order, so that tables are the same everywhere.
            ranked = sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))
            rows += [(category, word, n, len(distinct)) for word, n in ranked if n >= least]
    return pd.DataFrame(rows, columns=["category", "word", "texts", "of"])


def missing_packages() -> str:
    """Say which packages are missing and how to install them, or return ""."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    return _(NOT_INSTALLED, packages=", ".join(missing), extra='"bias-workbench[words]"')


def uncounted(texts: pd.DataFrame) -> list[str]:
    """Say of each language that its words are not counted."""
    languages = dict.fromkeys(map(str, texts.language))
    return [
        _(NO_SEGMENTER, language=language_name(language))
        for language in languages
        if language not in _CUT
    ]


def words(language: str, text: str) -> list[str]:
    """Cut a text into words, without common ones, numbers, signs and single Chinese characters."""
    common = _common(language)
    return [word for word in _CUT[language](text) if word not in common]


@cache
def _common(language: str) -> frozenset[str]:
    """Return common words, from the packages wordcloud and stopwordsiso."""
    if language == "en":
        # The other package's list of English goes too far: it has man, old and young.
        from wordcloud import STOPWORDS  # slow to load

        return frozenset(STOPWORDS)
    import stopwordsiso

    return frozenset(stopwordsiso.stopwords(language)) | set(EXTRA.get(language, ()))


@cache
def _jieba() -> Any:
    import jieba  # slow to load
    from jieba import posseg

    jieba.setLogLevel("CRITICAL")  # a cache that cannot be written costs time alone
    cutter = jieba.Tokenizer()
    # By default its cache is in a folder that all users share, where anybody may have put it.
    folder = platformdirs.user_cache_path("bias-workbench", appauthor=False)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    cutter.tmp_dir = str(folder)
    return posseg.POSTokenizer(cutter)


def _chinese(text: str) -> list[str]:
    # One character is mostly a particle or a part of a name.
    return [word for word, kind in _jieba().cut(text) if len(word) > 1 and kind.startswith(CONTENT)]


def _english(text: str) -> list[str]:
    return ENGLISH.findall(text.lower())


_CUT: dict[str, Callable[[str], list[str]]] = {"zh": _chinese, "en": _english}


def not_drawn(counted: pd.DataFrame) -> str:
    """Say how many words the clouds leave out, or return ""."""
    lost = int((~counted.word.map(can_show)).sum())
    text = _("{n} words are not in the clouds, because the fonts here cannot show them.", n=lost)
    return text if lost else ""


def plot_clouds(counted: pd.DataFrame, benchmark: str) -> Figure | None:
    """Draw a cloud per category: the larger a word, the more of its texts have it.

    None where no word was counted, or none of them can be shown.

    Args:
        counted: as `counts` returns it.
    """
    style()
    counted = counted[counted.word.map(can_show)]
    if counted.empty:
        return None
    by_category = dict(list(counted.groupby("category", sort=False)))
    rows = math.ceil(len(by_category) / COLUMNS)
    fig = Figure(figsize=(WIDTH, rows * 1.48 + 0.4), layout="constrained")
    axes = fig.subplots(rows, min(COLUMNS, len(by_category)), squeeze=False).ravel()
    for ax, (name, own) in zip(axes, by_category.items(), strict=False):
        _cloud(ax, own)
        title = f"{label(benchmark, str(name))}\nn = {own.of.iloc[0]:,}"
        ax.set_title(title, fontsize="x-small", fontweight="normal")
    for ax in axes[len(by_category) :]:
        ax.set_axis_off()
    tops = [own.iloc[0] for own in by_category.values()]
    top = max(tops, key=lambda row: row.texts / row.of)
    title = _(
        "The commonest word of a category: “{word}” in {category}, in {share} of its texts",
        word=top.word,
        share=f"{top.texts / top.of:.0%}",
        category=label(benchmark, top.category),
    )
    set_title(fig, title)
    parts = [
        _(
            "{category}: {word} ({n} of {all})",
            category=row.category,
            word=row.word,
            n=f"{row.texts:,}",
            all=f"{row.of:,}",
        )
        for row in tops
    ]
    fig.set_label(
        _(
            "{title}. Most frequent word of each category, by texts that have it: {parts}.",
            title=title,
            parts=_("; ").join(parts),
        )
    )
    return fig


def _cloud(ax: Axes, counted: pd.DataFrame) -> None:
    from wordcloud import WordCloud  # slow to load

    # A cloud has one font: the one that has most of its words.
    first = counted.head(CLOUD)
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
        color_func=lambda word, **_options: SHADES[
            min(len(SHADES) - 1, ranks[word] * len(SHADES) // max(1, len(ranks)))
        ],
    )
    cloud.generate_from_frequencies(dict(zip(first.word, first.texts.astype(float), strict=True)))
    # Smoothing would blur the words, and double the file.
    ax.imshow(np.asarray(cloud.to_image()), interpolation="none")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_color("#dddddd")
