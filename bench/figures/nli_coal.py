"""Pictures of NLI-CoAL: labels by set as in the paper's Table 3, directions, worst occupations, and what habit alone gets."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bench.core import i18n
from bench.data import dataset
from bench.data.dataset import cldr_name
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    can_show,
    colours,
    error_bars,
    markers,
    set_title,
    style,
)
from bench.metrics.table import ALL
from bench.tasks.nli_labels import LABELS

LANGUAGES = {
    "en": (i18n.N_("English"), ""),
    "ja": (i18n.N_("Japanese"), "日本語"),
    "zh": (i18n.N_("Chinese"), "中文"),
}
# Of a set and label: the right one, one that CoAL counts, or another wrong one; each with its own shade.
RIGHT, BIASED, WRONG = "Blues", "Reds", "Greys"
SHADES = {
    ("ps", "entailment"): BIASED,
    ("ps", "contradiction"): WRONG,
    ("ps", "neutral"): RIGHT,
    ("as", "entailment"): WRONG,
    ("as", "contradiction"): BIASED,
    ("as", "neutral"): RIGHT,
    ("ns", "entailment"): BIASED,
    ("ns", "contradiction"): BIASED,
    ("ns", "neutral"): RIGHT,
}
# How dark a share may get, so that black numbers can be read on it.
DARKEST = 0.5
ROOM = (-0.03, 1.03)
# What is biased about an occupation, and what a random answerer gets.
KINDS = {
    "stereotyped": (i18n.N_("With a stereotype: follow it"), 1 / 3),
    "neutral": (i18n.N_("Without one: not neutral"), 2 / 3),
}
# The predictors that are drawn: marks, and sizes by which those at one place lie in each other.
MARKS = {
    i18n.N_("always neutral"): ("o", 5),
    i18n.N_("always entailment"): ("s", 4),
    i18n.N_("always contradiction"): ("D", 8),
    i18n.N_("man: entailment, woman: contradiction"): ("^", 13),
    i18n.N_("woman: entailment, man: contradiction"): ("v", 13),
    i18n.N_("random"): ("X", 5),
    i18n.N_("the stereotype, neutral without one"): ("P", 7),
}
# Of labels that CoAL counts, by metric.
MEASURES = {
    "entailment_female": i18n.N_("entailment female"),
    "entailment_male": i18n.N_("entailment male"),
    "contradiction_female": i18n.N_("contradiction female"),
    "contradiction_male": i18n.N_("contradiction male"),
    "entailment_woman": i18n.N_("entailment woman"),
    "entailment_man": i18n.N_("entailment man"),
}
BALANCED = "directional_gap_balanced"
FEMALE, MALE = "#b3589a", "#3f8f8b"
OCCUPATIONS = {"female-stereo": (FEMALE, "o"), "male-stereo": (MALE, "s"), "neutral": (INK, "D")}


def labels_by_set(scores: pd.DataFrame) -> Figure | None:
    """Which labels a model gives in each set, with FN and CoAL, as in the paper's Table 3; a panel a language.

    Blue is the right label, red what CoAL counts, grey another wrong one. A set without an answer is hatched. None where no
    set was asked.
    """
    style()
    some = _first(scores)
    some = some[some.metric.isin([*LABELS, "coal", "fn"]) & (some.category != ALL)]
    languages, models = list(dict.fromkeys(some.category)), list(dict.fromkeys(scores.model))
    if not languages:
        return None
    columns = [*SHADES, ("all", "fn"), ("all", "coal")]
    height = 1.0 + len(languages) * (0.75 + 0.3 * len(models))
    longest = max(map(len, models))
    fig = Figure(figsize=(max(WIDTH, 5.2 + 0.07 * longest), height), layout="constrained")
    told, gaps = [], False
    for ax, language in zip(
        fig.subplots(len(languages), 1, squeeze=False)[:, 0], languages, strict=True
    ):
        found = some[some.category == language].set_index(["model", "task", "metric"]).score
        for y, model in enumerate(models):
            values = [float(found.get((model, *column), np.nan)) for column in columns]
            for x, (column, value) in enumerate(zip(columns, values, strict=True)):
                gaps |= bool(np.isnan(value))
                _cell(ax, x + 0.25 * (x // 3), y, value, SHADES.get(column))
            told.append(
                i18n._(
                    "{model}, {language}: FN {fn}, CoAL {coal}",
                    model=model,
                    language=_language(language, plain=True),
                    fn=_number(values[-2]),
                    coal=_number(values[-1]),
                )
            )
        places = [x + 0.25 * (x // 3) for x in range(len(columns))]
        ax.set_xticks(places, [*(["E", "C", "N"] * 3), "FN", "CoAL"], fontsize="small")
        for k, name in enumerate(("PS", "AS", "NS")):
            ax.text(
                3.25 * k + 1,
                -0.62,
                name,
                ha="center",
                va="bottom",
                fontsize="small",
                fontweight="bold",
            )
        ax.set_yticks(range(len(models)), models, fontsize="small")
        ax.set(xlim=(-0.55, places[-1] + 0.55), ylim=(len(models) - 0.45, -0.55))
        ax.set_title(_language(language), pad=16)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        sns.despine(ax=ax, left=True, bottom=True)
    names = {
        RIGHT: i18n._("right"),
        BIASED: i18n._("wrong, counted by CoAL"),
        WRONG: i18n._("wrong, not counted by CoAL"),
    }
    patches = [
        Rectangle((0, 0), 1, 1, color=mpl.colormaps[shade](0.5), label=name)
        for shade, name in names.items()
    ]
    if gaps:
        patches.append(
            Rectangle(
                (0, 0), 1, 1, fc="white", ec=FAINT, hatch="////", lw=0, label=i18n._("no answer")
            )
        )
    fig.legend(
        handles=patches, loc="outside lower center", ncols=4, frameon=False, fontsize="x-small"
    )
    fig.set_label(
        i18n._(
            "Shares of entailment, contradiction and neutral in PS, AS and NS. {told}.",
            told=i18n._("; ").join(told),
        )
    )
    return fig


def directions(scores: pd.DataFrame) -> Figure | None:
    """Whose stereotype, or only a gender word: what CoAL is made of, by direction and by gender word; a line a language.

    Left and middle, entailment in PS and contradiction in AS, for female- and male-stereotyped occupations; right,
    entailment in NS where the hypothesis has a woman or a man. None where neither was asked.
    """
    style()
    panels = {
        "ps": (i18n._("PS: entailment"), "entailment_female", "entailment_male"),
        "as": (i18n._("AS: contradiction"), "contradiction_female", "contradiction_male"),
        "ns": (i18n._("NS: entailment"), "entailment_woman", "entailment_man"),
    }
    some = _first(scores)
    some = some[some.metric.isin([name for panel in panels.values() for name in panel[1:]])]
    languages = [name for name in dict.fromkeys(some.category) if name != ALL]
    if not languages:
        return None
    models = list(dict.fromkeys(scores.model))
    height = 1.1 + len(languages) * (0.45 + 0.36 * len(models))
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(len(languages), 3, sharex=True, sharey=True, squeeze=False)
    told = []
    for k, (line, language) in enumerate(zip(axes, languages, strict=True)):
        for ax, (task, (title, *metrics)) in zip(line, panels.items(), strict=True):
            for metric, colour, marker, shift in zip(
                metrics, (FEMALE, MALE), "os", (-0.15, 0.15), strict=True
            ):
                rows = some[
                    (some.category == language) & (some.task == task) & (some.metric == metric)
                ]
                rows = rows.set_index("model").reindex(models)
                for y, row in enumerate(rows.itertuples()):
                    _dot(ax, row, y + shift, colour, marker)
                known = i18n._("; ").join(
                    f"{model} {_number(value)}" for model, value in rows.score.items()
                )
                of = {
                    "language": _language(language, plain=True),
                    "set": task.upper(),
                    "known": known,
                }
                told.append(
                    i18n._(
                        "{language}, {set}, {measure}: {known}",
                        measure=i18n._(MEASURES[metric]),
                        **of,
                    )
                )
            ax.axvline(1 / 3, color=FAINT, ls="--", lw=1, zorder=0)
            ax.set_yticks(range(len(models)), models, fontsize="small")
            ax.set(xlim=ROOM, ylim=(len(models) - 0.5, -0.5))
            ax.set_title("" if k else title, fontsize="small")
            ax.grid(axis="y", visible=False)
            sns.despine(ax=ax, left=True)
        if len(languages) > 1:
            line[0].set_ylabel(
                _language(language).replace(" (", "\n("), fontweight="bold", color=INK
            )
    axes[-1, 1].set_xlabel(
        i18n._("share of labels   (0 is best; dashed: a random answerer)"), fontsize="small"
    )
    names = (
        i18n._("female-stereotyped occupation; in NS: woman"),
        i18n._("male-stereotyped occupation; in NS: man"),
    )
    handles = [
        Line2D([], [], color=colour, marker=marker, ls="", label=name)
        for name, colour, marker in zip(names, (FEMALE, MALE), "os", strict=True)
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small"
    )
    fig.set_label(
        i18n._(
            "Shares of the labels that CoAL counts, by direction and gender word. {told}.",
            told=i18n._(". ").join(told),
        )
    )
    return fig


def worst_occupations(
    table: pd.DataFrame, category: str, model: str = "", most: int = 15
) -> Figure | None:
    """The occupations with the most biased labels: dots with intervals; with a stereotype at the left, without at the right.

    None where the language was not asked, or its data name no occupations.

    Args:
        table: of one model, from `bench.metrics.nli_coal.by(records, items, "occupation")`.
        most: so many of each.
    """
    style()
    some = table[(table.category == category) & table.biased.notna()]
    if some.empty:
        return None
    with_one = some.occupation_type != "neutral"
    parts = {"stereotyped": some[with_one], "neutral": some[~with_one]}
    parts = {kind: rows for kind, rows in parts.items() if not rows.empty}
    height = 1.5 + 0.22 * max(
        4, *(min(most, int((rows.biased > 0).sum())) for rows in parts.values())
    )
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    told = []
    for ax, (kind, every) in zip(
        fig.subplots(1, len(parts), squeeze=False)[0], parts.items(), strict=True
    ):
        title, chance = i18n._(KINDS[kind][0]), KINDS[kind][1]
        rows = every[every.biased > 0].head(most)
        for y, row in enumerate(rows.itertuples()):
            _dot(ax, row, y, *OCCUPATIONS[str(row.occupation_type)], "biased")
        ax.axvline(chance, color=FAINT, ls="--", lw=1, zorder=0)
        names = rows.occupation if all(map(can_show, rows.occupation)) else range(1, len(rows) + 1)
        ticks = [f"{name}  n\u2009=\u2009{n}" for name, n in zip(names, rows.n, strict=True)]
        ax.set_yticks(range(len(rows)), ticks, fontsize="x-small")
        ax.set(
            xlim=ROOM,
            ylim=(max(len(rows), 1) - 0.5, -0.5),
            xlabel=i18n._("share of labels (0 is best)"),
        )
        count = (
            i18n._("the worst {n} of {all}", n=len(rows), all=len(every))
            if len(rows)
            else i18n._("none of {all}", all=len(every))
        )
        ax.set_title(f"{title}\n{count}", fontsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
        first = [
            i18n._(
                "{name} {value} (n = {n})", name=row.occupation, value=f"{row.biased:.2f}", n=row.n
            )
            for row in rows.head(5).itertuples()
        ]
        part = i18n._("{title}, {measure}", title=title, measure=count)
        told.append(
            i18n._("{title}: {sentence}", title=part, sentence=i18n._(", ").join(first))
            if first
            else part
        )
    about = (
        i18n._("{title}, {measure}", title=_language(category), measure=model)
        if model
        else _language(category)
    )
    set_title(fig, about)
    handles = [
        Line2D([], [], color=FEMALE, marker="o", ls="", label=i18n._("female-stereotyped")),
        Line2D([], [], color=MALE, marker="s", ls="", label=i18n._("male-stereotyped")),
        Line2D([], [], color=FAINT, ls="--", lw=1, label=i18n._("a random answerer")),
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize="x-small"
    )
    place = i18n._(", ").join(filter(None, (_language(category, plain=True), model)))
    fig.set_label(
        i18n._(
            "Occupations with the most biased labels in {place}. {told}.",
            place=place,
            told=i18n._(". ").join(told),
        )
    )
    return fig


def habits(scores: pd.DataFrame, predictors: pd.DataFrame) -> Figure | None:
    """Is a CoAL a stereotype or a habit: CoAL against the balanced directional gap, with predictors by rule; a panel a language.

    A constant label is far to the right and at the height of nought, as is a label for each gender word: they know nothing
    of occupations. A stereotype is high. None where not all sets were asked.

    Args:
        predictors: from `bench.metrics.nli_coal.predictors`.
    """
    style()
    first = _first(scores)
    some = first[(first.task == ALL) & first.metric.isin(["coal", BALANCED])]
    languages = [name for name in dict.fromkeys(some.category) if name != ALL]
    if not languages:
        return None
    models = list(dict.fromkeys(scores.model))
    marks = markers(models)
    gaps = some[some.metric == BALANCED]
    lowest = (
        -0.35 if not (gaps.ci_low.fillna(gaps.score) < -0.3).any() else -1.05
    )  # against the stereotype
    width = WIDTH if len(languages) > 1 else 0.7 * WIDTH
    fig = Figure(figsize=(width, 3.5 + 0.17 * len(models)), layout="constrained")
    axes = fig.subplots(1, len(languages), sharex=True, sharey=True, squeeze=False)[0]
    told = []
    for ax, language in zip(axes, languages, strict=True):
        rules = predictors[predictors.category == language].set_index("predictor")
        for name, (marker, size) in MARKS.items():
            row = rules.loc[name]
            ax.plot(
                row.coal,
                row[BALANCED],
                marker,
                ms=size,
                mfc="none",
                mec=INK,
                mew=1,
                label=i18n._(name),
                zorder=3,
            )
        here = some[some.category == language].set_index(["metric", "model"])
        for model, colour in colours(models).items():
            x, y = (here.loc[metric].reindex([model]) for metric in ("coal", BALANCED))
            ax.errorbar(
                x.score,
                y.score,
                xerr=error_bars(x),
                yerr=error_bars(y),
                fmt=marks[model],
                ms=7,
                mec="white",
                lw=1.5,
                color=colour,
                label=model,
                zorder=4,
            )
            told.append(
                i18n._(
                    "{model}, {language}: CoAL {coal}, gap {gap}",
                    model=model,
                    language=_language(language, plain=True),
                    coal=_number(x.score.iloc[0]),
                    gap=_number(y.score.iloc[0]),
                )
            )
        ax.axhline(0, color=FAINT, lw=1, zorder=0)
        ax.set(xlim=ROOM, ylim=(lowest, 1.05), xlabel=i18n._("CoAL (0 is best)"))
        ax.set_title(_language(language), fontsize="small")
        sns.despine(ax=ax)
    set_title(
        fig,
        i18n._("A habit lies on the line of nought, whatever its CoAL; a stereotype lies above"),
    )
    axes[0].set_ylabel(i18n._("directional gap, balanced\n(1: the stereotype; 0: none)"))
    fig.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        markerscale=0.7,
        frameon=False,
        fontsize="x-small",
    )
    fig.set_label(
        i18n._(
            "CoAL against the balanced directional gap. {told}; for comparison, always entailment and always contradiction: CoAL {coal}, gap "
            "0.00.",
            told=i18n._("; ").join(told),
            coal=f"{2 / 3:.2f}",
        )
    )
    return fig


def _first(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the preset asked for (official ones stand behind)."""
    return scores[scores.preset == scores.preset.iloc[0]]


def _cell(ax: Axes, x: float, y: float, value: float, shade: str | None) -> None:
    """A share in its shade, with the number; hatched where there is none."""
    corner = (x - 0.48, y - 0.44)
    if np.isnan(value):
        ax.add_patch(Rectangle(corner, 0.96, 0.88, fc="white", ec=FAINT, hatch="////", lw=0))
        return
    colour = mpl.colormaps[shade](DARKEST * value) if shade else "none"
    ax.add_patch(Rectangle(corner, 0.96, 0.88, fc=colour, ec="none" if shade else FAINT, lw=0.6))
    ax.text(
        x,
        y,
        f"{value:.3f}".lstrip("0") if value < 1 else "1.00",
        ha="center",
        va="center",
        fontsize="x-small",
        color=INK,
    )


def _dot(ax: Axes, row, y: float, colour: str, marker: str, score: str = "score") -> None:  # type: ignore[no-untyped-def]
    """A number with its interval, or the word that there is none."""
    value = getattr(row, score)
    if np.isnan(value):
        ax.text(
            0.62,
            y,
            i18n._("no number"),
            color=FAINT,
            fontsize="xx-small",
            ha="center",
            va="center",
            bbox={"fc": "white", "lw": 0, "pad": 0.5},
        )
        return
    ax.plot(
        [row.ci_low, row.ci_high], [y, y], color=colour, lw=2, alpha=0.5, solid_capstyle="round"
    )
    ax.plot(value, y, marker, ms=5, color=colour, zorder=3)


def _language(code: str, plain: bool = False) -> str:
    """A language's name, with its own before it where a font shows that; `plain`: in the language that is spoken alone."""
    name, own = LANGUAGES.get(code) or ("", dataset.native_name("nli_coal", code))
    told = (
        i18n._(name)
        if name
        else cldr_name(code, i18n.language()) or dataset.english_name("nli_coal", code)
    )
    return f"{own} ({told})" if own and own != told and not plain and can_show(own) else told


def _number(value: float) -> str:
    return i18n._("without a number") if np.isnan(value) else f"{value:.2f}"
