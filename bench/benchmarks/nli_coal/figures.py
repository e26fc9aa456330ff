"""The labels of NLI-CoAL by set, as the paper's Table 3 prints them."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.benchmarks.nli_coal.items import CATEGORIES
from bench.core.numbers import decimals
from bench.data import dataset
from bench.figures.style import FAINT, INK, WIDTH, can_show, style
from bench.metrics.table import ALL
from bench.tasks.nli_labels import LABELS

# The colours of the right label, of a label that CoAL counts, and of another wrong label.
RIGHT, BIASED, WRONG = "Blues", "Reds", "Greys"
SHADES = {
    (name, label): shade
    for name, shades in {
        "ps": (BIASED, WRONG, RIGHT),
        "as": (WRONG, BIASED, RIGHT),
        "ns": (BIASED, BIASED, RIGHT),
    }.items()
    for label, shade in zip(LABELS, shades, strict=True)
}
# The darkest shade. Black numbers can be read on this.
DARKEST = 0.5


def labels_by_set(scores: pd.DataFrame) -> Figure:
    """Draw the labels of each set, with FN and CoAL (the paper's Table 3); a panel per language.

    Blue is the right label, red a label that CoAL counts, grey another wrong label. A set without
    an answer is hatched; a model that was not asked in a language is not in its panel.
    """
    style()
    rows = scores[scores.metric.isin([*LABELS, "coal", "fn"])]
    languages = [name for name in dict.fromkeys(rows.category) if name != ALL]
    models_by_language = {
        name: scores.model[scores.model.isin(rows.model[rows.category == name])].unique()
        for name in languages
    }
    lengths = [len(models) for models in models_by_language.values()]
    columns = [*SHADES, (ALL, "fn"), (ALL, "coal")]
    places = [x + 0.25 * (x // 3) for x in range(len(columns))]
    width = max(WIDTH, 5.2 + 0.07 * max(map(len, scores.model)))
    height = 1.0 + 0.75 * len(languages) + 0.3 * sum(lengths)
    fig = Figure(figsize=(width, height), layout="constrained")
    panels = fig.subplots(len(languages), 1, squeeze=False, height_ratios=[n + 2 for n in lengths])
    for ax, (language, models) in zip(panels[:, 0], models_by_language.items(), strict=True):
        shares = rows[rows.category == language].set_index(["model", "task", "metric"]).score
        for y, model in enumerate(models):
            values = [float(shares.get((model, *column), np.nan)) for column in columns]
            for x, column, value in zip(places, columns, values, strict=True):
                _cell(ax, x, y, value, SHADES.get(column))
        ax.set_xticks(places, [*(["E", "C", "N"] * 3), "FN", "CoAL"], fontsize="small")
        for k, name in enumerate(("PS", "AS", "NS")):
            look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": "small"}
            ax.text(3.25 * k + 1, -0.62, name, fontweight="bold", **look)
        ax.set_yticks(range(len(models)), models, fontsize="small")
        ax.set(xlim=(-0.55, places[-1] + 0.55), ylim=(len(models) - 0.45, -0.55))
        ax.set_title(_language(language), pad=16)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        sns.despine(ax=ax, left=True, bottom=True)
    names = {
        RIGHT: "right",
        BIASED: "wrong, counted by CoAL",
        WRONG: "wrong, not counted by CoAL",
    }
    patches = [
        Rectangle((0, 0), 1, 1, color=mpl.colormaps[shade](0.5), label=name)
        for shade, name in names.items()
    ]
    look = {"fc": "white", "ec": FAINT, "hatch": "////", "lw": 0}
    patches.append(Rectangle((0, 0), 1, 1, label="no answer", **look))
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    fig.legend(handles=patches, ncols=4, **place)
    fig.set_label("Shares of entailment, contradiction and neutral in PS, AS and NS.")
    return fig


def _cell(ax: Axes, x: float, y: float, value: float, shade: str | None) -> None:
    """Draw a share in its shade, with the number; hatched if there is none."""
    corner = (x - 0.48, y - 0.44)
    if np.isnan(value):
        ax.add_patch(Rectangle(corner, 0.96, 0.88, fc="white", ec=FAINT, hatch="////", lw=0))
        return
    colour = mpl.colormaps[shade](DARKEST * value) if shade else "none"
    ax.add_patch(Rectangle(corner, 0.96, 0.88, fc=colour, ec="none" if shade else FAINT, lw=0.6))
    text = decimals(value, 3).lstrip("0") if value < 1 else "1.00"
    ax.text(x, y, text, ha="center", va="center", fontsize="small", color=INK)


def _language(code: str) -> str:
    """Name a language in English, with its own name after it if a font shows that."""
    own = dataset.category_name("nli_coal", code)
    name = dataset.cldr_name(code, "en") or own.english
    native = dataset.cldr_name(code, code) if code in CATEGORIES else own.native
    return f"{name} ({native})" if native and native != name and can_show(native) else name
