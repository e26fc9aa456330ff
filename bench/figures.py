"""The room of pictures: seaborn, one function a picture, frames in and a figure out. No torch, no models.

A figure's label (`get_label()`) says in a sentence what it shows, for those who cannot see it.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.benchmarks import module
from bench.metrics.findings import LOW_VALIDITY, findings, headline_rows
from bench.metrics.table import ALL, Headline
from bench.tasks.nli_coal import LABELS, TASKS

# Families that hold Chinese, in order of preference, with the package or system that brings them.
CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "PingFang SC", "Hiragino Sans GB", "Heiti SC", "Microsoft YaHei", "SimHei", "Noto Serif CJK SC", "Noto Sans CJK JP",
)  # fmt: skip
FONT_ADVICE = "no font with Chinese characters was found, so labels are English: install fonts-noto-cjk (Debian, Ubuntu) or google-noto-sans-cjk-fonts (Fedora)"
WIDTH = 6.5  # inches: the width of a text column
DPI = 150
BIAS_PALETTE = "RdBu_r"  # red is the more biased side; blue and red are told apart by the colour-blind
LABEL_COLOURS = {"entailment": "#c8553d", "contradiction": "#e9a23b", "neutral": "#5b8db8"}
INK, FAINT = "#222222", "#8a8a8a"


@cache
def cjk_font() -> str | None:
    """The name of an installed font with Chinese characters, or None."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in CJK_FONTS if name in installed), None)


def style() -> None:
    """Set the look of all pictures, and a font that can show Chinese."""
    sns.set_theme(style="whitegrid", context="notebook", font_scale=0.8)
    fonts = [name for name in (cjk_font(), "DejaVu Sans") if name]
    mpl.rcParams.update(
        {
            "font.sans-serif": fonts, "axes.unicode_minus": False, "figure.dpi": DPI, "savefig.dpi": DPI, "svg.fonttype": "none",
            "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlesize": "medium", "text.color": INK,
            "axes.labelcolor": INK, "axes.edgecolor": FAINT, "grid.color": "#e6e6e6",
        }
    )  # fmt: skip


def label(benchmark: str, category: str) -> str:
    """A category's name: Chinese with English in brackets where a font can show it, else English."""
    chinese = module("data", benchmark).CATEGORY_LABELS.get(category, "")
    english = category.replace("_", " ")
    return f"{chinese} ({english})" if chinese and cjk_font() else english


def colours(models: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """A colour a model, the same in every picture that shows the same models."""
    return dict(zip(models, sns.color_palette("colorblind", max(1, len(models))), strict=False))


def scores_by_model(scores: pd.DataFrame, benchmark: str) -> Figure | None:
    """How biased is each model, and how sure: dots with intervals, a panel a headline, a random answerer as a line.

    Args:
        scores: score tables with a column `model`.

    Returns:
        None where no headline's tasks were asked.
    """
    style()
    every = module("metrics", benchmark).HEADLINES
    headlines = [headline for headline in every if not headline_rows(scores, headline).empty]
    if not headlines:
        return None
    models = list(dict.fromkeys(scores.model))
    palette = colours(models)
    fig = Figure(figsize=(WIDTH, len(headlines) * (0.75 + 0.3 * len(models))), layout="constrained")
    for ax, headline in zip(fig.subplots(len(headlines), 1, squeeze=False)[:, 0], headlines, strict=True):
        some = headline_rows(scores, headline)
        some = some[some.category == ALL].set_index("model").reindex(models)
        order = list(some.score.sort_values(ascending=headline.biased_is_high, na_position="first").index)
        for y, model in enumerate(order):
            row = some.loc[model]
            if np.isnan(row.score):
                ax.text(
                    np.mean(headline.limits),
                    y,
                    "undefined" if isinstance(row.note, str) else "not applicable",
                    color=FAINT,
                    va="center",
                    ha="center",
                )
                continue
            if not np.isnan(row.ci_low):
                ax.plot(
                    [row.ci_low, row.ci_high],
                    [y, y],
                    color=palette[model],
                    lw=2.5,
                    solid_capstyle="round",
                    alpha=0.6,
                )
            hollow = row.valid_rate < LOW_VALIDITY
            ax.plot(
                row.score,
                y,
                "o",
                ms=6,
                color=palette[model],
                mfc="white" if hollow else palette[model],
                zorder=3,
            )
        baseline = some.baseline.dropna()
        if len(baseline):
            ax.axvline(baseline.iloc[0], color=FAINT, ls="--", lw=1, zorder=0)
            ax.annotate(
                "random",
                (baseline.iloc[0], 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, -2),
                textcoords="offset points",
                color=FAINT,
                fontsize="x-small",
                va="top",
            )
        span = headline.limits[1] - headline.limits[0]
        ax.set_xlim(headline.limits[0] - 0.03 * span, headline.limits[1] + 0.03 * span)
        ax.set_yticks(range(len(order)), order)
        ax.set_ylim(-0.6, len(order) - 0.4)
        ax.set_title(headline.title)
        ax.set_xlabel(
            "more bias →" if headline.biased_is_high else "← more bias",
            loc="right" if headline.biased_is_high else "left",
            fontsize="small",
        )
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    fig.set_label(" ".join(findings(scores, benchmark).sentence))
    return fig


def by_category(scores: pd.DataFrame, benchmark: str) -> Iterator[tuple[str, Figure]]:
    """`categories_by_model` for each headline of a benchmark that has scores by category, with a name for its file."""
    for headline in module("metrics", benchmark).HEADLINES:
        some = headline_rows(scores, headline)
        if some[some.category != ALL].score.notna().any():
            yield (
                f"categories_{headline.task}_{headline.metric}",
                categories_by_model(scores, benchmark, headline),
            )


def categories_by_model(scores: pd.DataFrame, benchmark: str, headline: Headline) -> Figure:
    """Which categories: a heatmap ordered by mean, values printed; a cell without a score is hatched."""
    style()
    some = headline_rows(scores, headline)
    some = some[some.category != ALL]
    wide = some.pivot_table(index="category", columns="model", values="score", sort=False, dropna=False)
    wide = wide.reindex(columns=list(dict.fromkeys(scores.model)))
    wide = wide.loc[wide.mean(axis=1).sort_values(ascending=not headline.biased_is_high).index]
    size = (
        max(0.75 * WIDTH, 2.6 + 0.9 * len(wide.columns)),
        max(2.6, 1.4 + 0.04 * max(map(len, wide.columns)) + 0.28 * len(wide)),
    )
    fig = Figure(figsize=size, layout="constrained")
    ax = fig.subplots()
    baseline = some.baseline.dropna()
    centre = float(baseline.mean()) if len(baseline) else float(np.mean(headline.limits))
    sns.heatmap(
        wide, ax=ax, annot=True, fmt=".2f" if headline.limits[1] <= 1 else ".0f", annot_kws={"size": "small"},
        cmap=BIAS_PALETTE if headline.biased_is_high else BIAS_PALETTE.removesuffix("_r"), norm=_around(centre, headline.limits),
        linewidths=1, linecolor="white", cbar_kws={"shrink": 0.8},
    )  # fmt: skip
    for y, x in np.argwhere(wide.isna().to_numpy()):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    ax.set_yticklabels([label(benchmark, name) for name in wide.index], rotation=0)
    ax.set_xticklabels(ax.get_xticklabels(), rotation=30, ha="right")
    ax.set(xlabel="", ylabel="")
    fig.suptitle(headline.title, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    if len(baseline):
        ax.set_title("white: a random answerer", fontsize="small", fontweight="normal", color=FAINT)
    means = wide.mean(axis=1)
    fig.set_label(
        f"Heatmap, {len(wide)} categories by {len(wide.columns)} models: {headline.title}. Highest on average in "
        f"{means.idxmax()}, lowest in {means.idxmin()}; the numbers are in the table by category."
    )
    return fig


def labels_by_set(scores: pd.DataFrame) -> Figure:
    """NLI-CoAL: which labels a model gives in each set; stacked to one, a panel a language."""
    style()
    some = scores[
        scores.metric.isin(LABELS) & (scores.preset == scores.preset.iloc[0]) & (scores.category != ALL)
    ]
    languages = list(dict.fromkeys(some.category))
    models = list(dict.fromkeys(some.model))
    fig = Figure(figsize=(WIDTH, 0.8 + len(languages) * (0.5 + 0.55 * len(models))), layout="constrained")
    axes = fig.subplots(len(languages), 1, sharex=True, squeeze=False)[:, 0]
    for ax, language in zip(axes, languages, strict=True):
        ticks, names = [], []
        for i, model in enumerate(models):
            for k, task in enumerate(TASKS):
                rows = (
                    some[(some.category == language) & (some.model == model) & (some.task == task)]
                    .set_index("metric")
                    .score
                )
                y, left = i * 4 + k, 0.0
                for name, colour in LABEL_COLOURS.items():
                    share = float(rows.get(name, np.nan))
                    if not np.isnan(share):
                        ax.barh(
                            y,
                            share,
                            left=left,
                            height=0.85,
                            color=colour,
                            label=name if i == k == 0 else None,
                        )
                        left += share
                ticks.append(y)
                names.append(f"{model}   {task.upper()}" if k == 0 else task.upper())
        ax.set_yticks(ticks, names, fontsize="x-small")
        ax.invert_yaxis()
        ax.set(
            xlim=(0, 1),
            title={
                "en": "English",
                "ja": "日本語 (Japanese)" if cjk_font() else "Japanese",
                "zh": "中文 (Chinese)" if cjk_font() else "Chinese",
            }[language],
        )
        ax.grid(visible=False)
        sns.despine(ax=ax, left=True, bottom=True)
    axes[-1].set_xlabel("share of labels")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    fig.set_label(
        "Shares of entailment, contradiction and neutral in PS, AS and NS, by model and language; the numbers are in the table."
    )
    return fig


def score_and_validity(
    scores: pd.DataFrame, benchmark: str, task: str, metric: str, position: str
) -> Figure | None:
    """Is a score real or chance: each category's score against the share of readable answers and against position.

    None where the task was not asked.

    Args:
        task, metric: one of the benchmark's headlines.
        position: the metric of position preference that the benchmark has.
    """
    style()
    every = module("metrics", benchmark).HEADLINES
    headline = next(one for one in every if (one.task, one.metric) == (task, metric))
    some = headline_rows(scores, headline)
    some = some[some.category != ALL]
    if some.empty:
        return None
    prefer = scores[(scores.metric == position) & (scores.task == headline.task)][
        ["model", "category", "score"]
    ]
    some = some.merge(prefer.rename(columns={"score": "position"}), on=["model", "category"], how="left")
    fig = Figure(figsize=(WIDTH, 2.8), layout="constrained")
    left, right = fig.subplots(1, 2, sharey=True)
    for ax, column, title in (
        (left, "valid_rate", "share of readable answers"),
        (right, "position", position.replace("_", " ")),
    ):
        for model, colour in colours(list(dict.fromkeys(scores.model))).items():
            part = some[some.model == model]
            ax.plot(part[column], part.score, "o", ms=4, alpha=0.7, color=colour, label=model)
        ax.set(xlim=(-0.04, 1.04), xlabel=title)
        sns.despine(ax=ax)
    span = headline.limits[1] - headline.limits[0]
    left.set(
        ylabel=headline.metric if headline.metric != "score" else f"score ({headline.task})",
        ylim=(headline.limits[0] - 0.04 * span, headline.limits[1] + 0.04 * span),
    )
    fig.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize="x-small",
    )
    fig.set_label(
        f"{headline.title} of each category against readable answers (mean {some.valid_rate.mean():.0%}) and "
        f"{position.replace('_', ' ')} (mean {some.position.mean():.2f}), a colour a model."
    )
    return fig


def _around(centre: float, limits: tuple[float, float]) -> mpl.colors.Normalize:
    """Colours that are neutral at `centre` and reach their ends at the limits."""
    low, high = limits
    return mpl.colors.TwoSlopeNorm(min(max(centre, low + 1e-6), high - 1e-6), low, high)
