"""The pictures of McBE's paper: scores by task and by category, and words (Figures 6, 8 and 9)."""

from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import platformdirs
from matplotlib import font_manager
from matplotlib.figure import Figure

from bench.benchmarks.mcbe.requests import TASKS
from bench.core.numbers import decimals
from bench.figures.style import (
    BIAS_IS_LOW_PALETTE,
    cell_texts,
    characters,
    fonts,
    heatmap_figure,
    label,
    white_at,
)
from bench.metrics.table import ALL

LIMITS = (0.0, 100.0)
MIDDLE = 50.0


def tasks_by_model(scores: pd.DataFrame) -> Figure:
    """Draw scores by task and model, means over categories (Figure 6).

    White is the baseline of a task, and the middle of the scale for a task without one. A task that
    was not asked is hatched; a star marks scores with fewer than 90 % readable answers.
    """
    rows = scores[(scores.metric == "score") & (scores.category == ALL) & (scores.task != ALL)]
    wide = rows.pivot_table("score", "task", "model", sort=False, dropna=False)
    tasks = [task for task in TASKS if task in wide.index]
    wide = wide.reindex(index=tasks, columns=scores.model.unique()).astype(float)
    baselines = rows[rows.baseline_of == ""].groupby("task").baseline.mean()
    white = baselines.reindex(tasks).fillna(MIDDLE)
    shades = wide.apply(lambda row: white_at(white[row.name], LIMITS)(row), axis=1, raw=False)
    texts = cell_texts(wide, rows, "task", 0)
    fig = heatmap_figure(
        pd.DataFrame(shades.tolist(), wide.index, wide.columns),
        texts,
        0.5,
        (0, 1),
        BIAS_IS_LOW_PALETTE,
        names=[f"{TASKS[task].title} (white: {decimals(white[task])})" for task in tasks],
        title="Score by task, mean over categories (100: best)",
        height=max(2.2, 1.2 + 0.3 * len(wide)),
    )
    fig.axes[-1].set_yticks([0, 0.5, 1], ["worst", "baseline", "best"])
    return fig


def categories_by_model(scores: pd.DataFrame) -> Figure:
    """Draw the scores of one measure by category and model, the worst category first (Figure 8).

    White is the baseline, if there is one; a category without a score is hatched.

    Args:
        scores: of one task and metric, as `bench.measure` returns these.
    """
    rows = scores[scores.category != ALL]
    wide = rows.pivot_table("score", "category", "model", sort=False, dropna=False)
    order = wide.mean(axis=1).sort_values().index
    wide = wide.reindex(index=order, columns=scores.model.unique()).astype(float)
    baselines = rows.baseline[rows.baseline_of == ""].dropna()
    texts = cell_texts(wide, rows, "category", 0)
    return heatmap_figure(
        wide,
        texts,
        float(baselines.mean()) if len(baselines) else MIDDLE,
        LIMITS,
        BIAS_IS_LOW_PALETTE,
        names=[label("mcbe", name) for name in wide.index],
        title=f"{rows.title.iloc[0]} by category (100: best)",
        height=max(2.6, 1.4 + 0.28 * len(wide)),
    )


def words(texts: pd.DataFrame, kinds: str) -> pd.DataFrame:
    """Cut Chinese texts into words: a row per word and text; none without the extra `words`.

    Args:
        texts: of `bench.data.texts.texts`.
        kinds: the kinds of words, by jieba's letters.
    """
    rows = texts[texts.language == "zh"].drop_duplicates(["benchmark", "category", "text"])
    if not all(map(find_spec, ["jieba", "stopwordsiso", "wordcloud"])):
        return rows.iloc[:0]
    import jieba.posseg
    import stopwordsiso

    jieba.setLogLevel("CRITICAL")
    # By default its cache is in a folder that all users share.
    jieba.dt.tmp_dir = platformdirs.user_cache_dir("bias-workbench", False)
    common = stopwordsiso.stopwords("zh")
    words = []
    for text in rows.text:
        tokens = jieba.posseg.cut(text)
        own = {token.word for token in tokens if token.flag.startswith(tuple(kinds))}
        words.append(sorted(own - common))
    table = rows.assign(word=pd.Series(words, index=rows.index)).explode("word")
    table = table.dropna(subset="word")
    return table[(table.word.str.len() > 1) & table.word.map(characters(fonts()[-1]).issuperset)]


def cloud(word: "pd.Series[str]", **_: Any) -> None:
    """Draw the words of a panel, the larger the more frequent (Figure 9)."""
    from wordcloud import WordCloud

    font = font_manager.findfont(fonts()[-1])
    look = {"background_color": "white", "colormap": "copper", "random_state": 0}
    image = WordCloud(font, max_words=14, prefer_horizontal=1, **look)
    plt.imshow(image.generate_from_frequencies(word.value_counts()))
    plt.axis("off")
