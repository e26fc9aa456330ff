"""Pictures of NLI-CoAL: labels by set (the paper's Table 3), directions, occupations, habits."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bench.core.numbers import decimals
from bench.data import dataset
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    colours,
    error_bars,
    first_preset,
    forest_axis,
    markers,
    models_of,
    set_title,
    style,
)
from bench.metrics.table import ALL
from bench.tasks.nli_labels import LABELS

LANGUAGES = {
    "en": ("English", ""),
    "ja": ("Japanese", "日本語"),
    "zh": ("Chinese", "中文"),
}
# Of a set and label: the right one, one that CoAL counts, or another wrong one; each with its
# shade.
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
# How dark a share may get, so that black numbers can be read on it.
DARKEST = 0.5
ROOM = (-0.03, 1.03)
# What is biased about an occupation, and what a random answerer gets.
KINDS = {
    "stereotyped": ("With a stereotype: follow it", 1 / 3),
    "neutral": ("Without one: not neutral", 2 / 3),
}
# Marks of answerers by rule: of one that knows the stereotypes, and of those that know none.
STEREOTYPE = "the stereotype, neutral without one"
MARKS = {
    True: ("P", "follows every stereotype"),
    False: ("o", "a habit, whatever the occupation"),
}
# How near marks lie on each other.
SPOT = 0.03
BALANCED = "directional_gap_balanced"
FEMALE, MALE = "#b3589a", "#3f8f8b"
OCCUPATIONS = {"female-stereo": (FEMALE, "o"), "male-stereo": (MALE, "s"), "neutral": (INK, "D")}


def labels_by_set(scores: pd.DataFrame) -> Figure | None:
    """Draw the labels of each set, with FN and CoAL (the paper's Table 3); a panel per language.

    Blue is the right label, red what CoAL counts, grey another wrong one. A set without an answer
    is hatched.

    None where no set was asked.
    """
    style()
    rows = first_preset(scores)
    rows = rows[rows.metric.isin([*LABELS, "coal", "fn"])]
    languages, models = _languages(rows), models_of(scores)
    if not languages:
        return None
    columns = [*SHADES, (ALL, "fn"), (ALL, "coal")]
    places = [x + 0.25 * (x // 3) for x in range(len(columns))]
    width = max(WIDTH, 5.2 + 0.07 * max(map(len, models)))
    height = 1.0 + len(languages) * (0.75 + 0.3 * len(models))
    fig = Figure(figsize=(width, height), layout="constrained")
    axes = fig.subplots(len(languages), 1, squeeze=False)[:, 0]
    for ax, language in zip(axes, languages, strict=True):
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
    _legend(fig, patches, 4)
    fig.set_label("Shares of entailment, contradiction and neutral in PS, AS and NS.")
    return fig


def directions(scores: pd.DataFrame) -> Figure | None:
    """Draw what CoAL is made of, by direction and by gender word; a line of panels per language.

    Left and middle, entailment in PS and contradiction in AS, for female- and male-stereotyped
    occupations; right, entailment in NS where the hypothesis has a woman or a man.

    None where neither was asked.
    """
    style()
    panels = {
        "ps": ("PS: entailment", "entailment_female", "entailment_male"),
        "as": ("AS: contradiction", "contradiction_female", "contradiction_male"),
        "ns": ("NS: entailment", "entailment_woman", "entailment_man"),
    }
    rows = first_preset(scores)
    rows = rows[rows.metric.isin([metric for _title, *pair in panels.values() for metric in pair])]
    languages, models = _languages(rows), models_of(scores)
    if not languages:
        return None
    height = 1.1 + len(languages) * (0.45 + 0.36 * len(models))
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(len(languages), 3, sharex=True, sharey=True, squeeze=False)
    genders = ((FEMALE, "o", -0.15), (MALE, "s", 0.15))
    for line, language in zip(axes, languages, strict=True):
        for ax, (task, (title, *metrics)) in zip(line, panels.items(), strict=True):
            for metric, (colour, marker, shift) in zip(metrics, genders, strict=True):
                own = (rows.category == language) & (rows.task == task) & (rows.metric == metric)
                part = rows[own].set_index("model").reindex(models)
                for y, row in enumerate(part.itertuples()):
                    _dot(ax, row, y + shift, colour, marker)
            forest_axis(ax, models, 1 / 3)
            ax.tick_params(axis="y", labelsize="small")
            ax.set(xlim=ROOM, ylim=(len(models) - 0.5, -0.5))
            ax.set_title(title if language == languages[0] else "", fontsize="small")
        if len(languages) > 1:
            name = _language(language).replace(" (", "\n(")
            line[0].set_ylabel(name, fontweight="bold", color=INK)
    title = "share of labels   (0 is best; dashed: a random answerer)"
    axes[-1, 1].set_xlabel(title, fontsize="small")
    names = (
        "female-stereotyped occupation; in NS: woman",
        "male-stereotyped occupation; in NS: man",
    )
    handles = [
        Line2D([], [], color=colour, marker=marker, ls="", label=name)
        for name, (colour, marker, _shift) in zip(names, genders, strict=True)
    ]
    _legend(fig, handles, 2)
    fig.set_label("Shares of the labels that CoAL counts, by direction and gender word.")
    return fig


def worst_occupations(
    table: pd.DataFrame, category: str, model: str = "", most: int = 15
) -> Figure | None:
    """Draw the occupations with the most biased labels, with a stereotype (left) and without.

    Args:
        table: of one model, from `bench.metrics.nli_coal.by(records, items, "occupation")`.
        most: of each kind.

    None where the language was not asked, or its data name no occupations.
    """
    style()
    rows = table[(table.category == category) & table.biased.notna()]
    if rows.empty:
        return None
    neutral = rows.occupation_type == "neutral"
    parts = {"stereotyped": rows[~neutral], "neutral": rows[neutral]}
    parts = {kind: part for kind, part in parts.items() if not part.empty}
    worst = {kind: part[part.biased > 0].head(most) for kind, part in parts.items()}
    drawn = {kind: part for kind, part in worst.items() if len(part)} or worst
    height = 1.5 + 0.22 * max(4, *map(len, drawn.values()))
    size = (WIDTH * (1 + len(drawn)) / 3, height)
    fig = Figure(figsize=size, layout="constrained")
    axes = fig.subplots(1, len(drawn), squeeze=False)[0]
    for ax, (kind, part) in zip(axes, drawn.items(), strict=True):
        title, chance = KINDS[kind][0], KINDS[kind][1]
        for y, row in enumerate(part.itertuples()):
            _dot(ax, row, y, *OCCUPATIONS[str(row.occupation_type)], "biased")
        ax.axvline(chance, color=FAINT, ls="--", lw=1, zorder=0)
        n, every = len(part), len(parts[kind])
        names = part.occupation if all(map(can_show, part.occupation)) else range(1, n + 1)
        ticks = [
            f"{name}  n\u2009=\u2009{count}" for name, count in zip(names, part.n, strict=True)
        ]
        ax.set_yticks(range(n), ticks, fontsize="small")
        ax.set(xlim=ROOM, ylim=(max(n, 1) - 0.5, -0.5), xlabel="share of labels (0 is best)")
        count = f"none of {every}"
        if n:
            count = f"the worst {n} of {every}"
        ax.set_title(f"{title}\n{count}", fontsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    title = _language(category)
    if model:
        title = f"{title}, {model}"
    for kind in parts.keys() - drawn.keys():
        none = f"none of {len(parts[kind])}"
        title += f"\n{f'{KINDS[kind][0]}: {none}'}"
    set_title(fig, title, alt="Occupations with the most biased labels.")
    handles = [
        Line2D([], [], color=FEMALE, marker="o", ls="", label="female-stereotyped"),
        Line2D([], [], color=MALE, marker="s", ls="", label="male-stereotyped"),
        Line2D([], [], color=FAINT, ls="--", lw=1, label="a random answerer"),
    ]
    _legend(fig, handles, 1 + len(drawn))
    return fig


def habits(scores: pd.DataFrame, predictors: pd.DataFrame) -> Figure | None:
    """Draw CoAL against the balanced directional gap, with predictors by rule, per language.

    A constant label is far to the right and at the height of 0, as is a label for each gender word:
    they know nothing of occupations. A stereotype is high.

    Args:
        predictors: from `bench.metrics.nli_coal.predictors`.

    None where not all sets were asked.
    """
    style()
    rows = first_preset(scores)
    rows = rows[(rows.task == ALL) & rows.metric.isin(["coal", BALANCED])]
    languages, models = _languages(rows), models_of(scores)
    if not languages:
        return None
    marks = markers(models)
    gaps = rows[rows.metric == BALANCED]
    against = (gaps.ci_low.fillna(gaps.score) < -0.3).any()  # against the stereotype
    width = WIDTH if len(languages) > 1 else 0.7 * WIDTH
    fig = Figure(figsize=(width, 3.5 + 0.17 * len(models)), layout="constrained")
    axes = fig.subplots(1, len(languages), sharex=True, sharey=True, squeeze=False)[0]
    for ax, language in zip(axes, languages, strict=True):
        rules = predictors[predictors.category == language].set_index("predictor")
        parts = {True: rules[rules.index == STEREOTYPE], False: rules[rules[BALANCED] == 0]}
        for is_stereotype, (marker, name) in MARKS.items():
            part = parts[is_stereotype]
            look: dict[str, Any] = {"ms": 8, "mfc": "none", "mec": INK, "mew": 1, "ls": ""}
            ax.plot(part.coal, part[BALANCED], marker, label=name, **look)
        own = rows[rows.category == language].set_index(["metric", "model"])
        seen = own.pivot_table("score", "model", "metric").reindex(columns=["coal", BALANCED])
        for k, (model, colour) in enumerate(colours(models).items()):
            x, y = (own.reindex([(metric, model)]) for metric in ("coal", BALANCED))
            bars = {"xerr": error_bars(x), "yerr": error_bars(y)}
            # The rim of one that lies under others can be seen.
            later = seen.reindex(models[k + 1 :])
            hides = (later - seen.reindex([model]).iloc[0]).abs().max(axis=1) < SPOT
            look = {
                "fmt": marks[model],
                "ms": 7 + 4 * hides.sum(),
                "mec": "white",
                "lw": 1.5,
                "color": colour,
            }
            ax.errorbar(x.score, y.score, **bars, **look, label=model, zorder=4)
        ax.axhline(0, color=FAINT, lw=1, zorder=0)
        ax.set(xlim=ROOM, ylim=(-1.05 if against else -0.35, 1.05), xlabel="CoAL (0 is best)")
        ax.set_title(_language(language), fontsize="small")
        sns.despine(ax=ax)
    title = "A habit is on the zero line, whatever its CoAL; a stereotype is above it"
    set_title(fig, title, alt="CoAL against the balanced directional gap.")
    axes[0].set_ylabel("directional gap, balanced\n(1: the stereotype; 0: none)")
    _legend(fig, axes[0].get_legend_handles_labels()[0], 2, markerscale=0.7)
    return fig


def _languages(rows: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(rows.category) if name != ALL]


def _legend(fig: Figure, handles: Sequence[Artist], columns: int, **options: Any) -> None:
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    fig.legend(handles=handles, ncols=columns, **place, **options)


def _cell(ax: Axes, x: float, y: float, value: float, shade: str | None) -> None:
    """Draw a share in its shade, with the number; hatched where there is none."""
    corner = (x - 0.48, y - 0.44)
    if np.isnan(value):
        ax.add_patch(Rectangle(corner, 0.96, 0.88, fc="white", ec=FAINT, hatch="////", lw=0))
        return
    colour = mpl.colormaps[shade](DARKEST * value) if shade else "none"
    ax.add_patch(Rectangle(corner, 0.96, 0.88, fc=colour, ec="none" if shade else FAINT, lw=0.6))
    text = decimals(value, 3).lstrip("0") if value < 1 else "1.00"
    ax.text(x, y, text, ha="center", va="center", fontsize="small", color=INK)


def _dot(ax: Axes, row: Any, y: float, colour: str, marker: str, score: str = "score") -> None:
    """Draw a number with its interval, or write that there is none."""
    value = getattr(row, score)
    if np.isnan(value):
        look: dict[str, Any] = {"fontsize": "x-small", "ha": "center", "va": "center"}
        box = {"fc": "white", "lw": 0, "pad": 0.5}
        ax.text(0.62, y, "no number", color=FAINT, bbox=box, **look)
        return
    ends = [row.ci_low, row.ci_high]
    ax.plot(ends, [y, y], color=colour, lw=2, alpha=0.5, solid_capstyle="round")
    ax.plot(value, y, marker, ms=5, color=colour, zorder=3)


def _language(code: str) -> str:
    """Name a language in English, after its own name where a font shows that."""
    known, native = LANGUAGES.get(code) or ("", dataset.native_name("nli_coal", code))
    name = known or dataset.cldr_name(code, "en") or dataset.english_name("nli_coal", code)
    return f"{native} ({name})" if native and native != name and can_show(native) else name
