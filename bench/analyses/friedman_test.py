"""Are several models different at all: Friedman's test over blocks such as categories.

The test itself is `bench.metrics.friedman`. Here are the runs that it compares, its findings and
pictures, and what the statistic that the McBE paper prints implies (Lan et al., ACL Findings 2025).

    result = compare(opened(["reports/mine/runs/*/cbbq"]), "cbbq")
    findings(result), critical_difference_diagram(result)
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyses.compare_models import common_scores
from bench.core.i18n import _, note, sentences
from bench.figures.style import (
    BIAS_PALETTE,
    FAINT,
    INK,
    WIDTH,
    colours,
    label,
    set_title,
    style,
    wrap_label,
)
from bench.metrics import friedman
from bench.metrics.bootstrap import LEVEL
from bench.metrics.friedman import CATEGORY, Blocks, Friedman, critical_difference
from bench.metrics.headline import short_title
from bench.metrics.significance import format_p
from bench.metrics.table import cards
from bench.run import results
from bench.run.results import Run

ALPHA = 1 - LEVEL
# Friedman's test of the McBE paper's models, as printed.
PRINTED, PRINTED_P = "84.27", "7.26e-14"
# What its blocks could be: two of the five tasks have no worldview.
DESIGNS = {
    "tasks": 5,
    "categories without worldview": 11,
    "categories": 12,
    "category and task": 58,
    "subcategories": 82,
}


class Result(NamedTuple):
    """Scores of models over blocks, and what the tests of `bench.metrics.friedman` say of them."""

    blocks: Blocks
    test: Friedman
    pairs: pd.DataFrame
    mean_ranks: pd.DataFrame

    @classmethod
    def of(cls, blocks: Blocks) -> "Result":
        """Test `blocks`."""
        tested, pairs = friedman.test(blocks), friedman.pairs(blocks)
        return cls(blocks, tested, pairs, friedman.mean_ranks(blocks))

    @property
    def units(self) -> str:
        """What the blocks are, in the plural."""
        by_category = self.blocks.by == CATEGORY
        return _("categories") if by_category else _("cells of a category and task")

    @property
    def is_bias(self) -> bool:
        """Whether a rank is one of bias, in every headline that it rests on."""
        return all(headline.worse == "more bias" for headline in self.blocks.headlines)

    @property
    def best(self) -> str:
        """What the first rank means."""
        return _("least bias") if self.is_bias else _("best")


def compare(
    runs: Sequence[Run],
    benchmark: str,
    by: str = CATEGORY,
    task: str = "",
    metric: str = "",
    preset: str = "",
) -> Result:
    """Test whether models differ, on the answers that could be read of all of them.

    Args:
        by: what a block is.
        task, metric: whose score counts, see `bench.metrics.friedman.blocks`.
        preset: how answers are scored, default: as the runs were.
    """
    scores = common_scores(runs, preset or None)
    return Result.of(friedman.blocks(scores, benchmark, by, task, metric))


def overall(runs: Sequence[Run], result: Result, preset: str = "") -> pd.DataFrame:
    """Return the scores behind the ranks, over all categories and on each model's own answers."""
    return friedman.overall(results.table(runs, preset or None, beside=False), result.blocks)


def tables(result: Result) -> dict[str, pd.DataFrame]:
    """Return the tables of a result by the names of their files."""
    return {
        "friedman": friedman.as_table(result.test),
        "mean_ranks": result.mean_ranks,
        "pairs": result.pairs,
        "scores_by_block": result.blocks.scores.round(2).reset_index(),
        "left_out": result.blocks.left_out,
        "ties": friedman.ties(result.blocks),
        "metric_cards": cards(friedman.CARDS),
    }


def findings(result: Result) -> list[str]:
    """Say whether the models differ, which pairs do, and what was left out.

    The other tests, the reasons and the ties are in the tables.
    """
    tested, pairs, ranks = result.test, result.pairs, result.mean_ranks
    k, n = tested.models, tested.blocks
    titles = [short_title(headline) for headline in result.blocks.headlines]
    about = {"k": k, "n": n, "units": result.units}
    about["measure"] = (
        _("By “{title}”", title=titles[0])
        if len(titles) == 1
        else _("By the scores of {n} tasks", n=len(titles))
    )
    about["around"] = _(
        "Friedman's Q = {q} with {df} degrees of freedom, {p}; Kendall's W = {w}",
        q=f"{tested.statistic:.1f}",
        df=tested.df,
        p=format_p(tested.p),
        w=f"{tested.kendall_w:.2f}",
    )
    of_pairs = [
        _(
            "Nemenyi's test tells {apart} of {pairs} pairs of models apart at 5\u00a0%: "
            "their mean ranks have to differ by {cd} of at most {most}.",
            apart=int((pairs.p_nemenyi < ALPHA).sum()),
            pairs=len(pairs),
            cd=f"{critical_difference(k, n):.2f}",
            most=k - 1,
        )
    ]
    if math.isnan(tested.statistic):
        verdict = _(
            "{measure}, Friedman's test is undefined for {k} models over {n} {units}: {why}.",
            why=note(tested.note),
            **about,
        )
    elif tested.p < ALPHA:
        verdict = sentences(
            [
                _("{measure}, the {k} models differ over {n} {units} ({around}).", **about),
                _(
                    "By mean rank {first} comes first, which is {best}, and {last} last.",
                    first=_with_interval(ranks.iloc[0]),
                    best=result.best,
                    last=_with_interval(ranks.iloc[-1]),
                ),
            ]
        )
    else:
        verdict = _(
            "{measure}, no difference between the {k} models could be shown over {n} {units} "
            "({around}).",
            **about,
        )
        of_pairs.append(_("Where the test of all models shows nothing, its pairs are no finding."))
    # With n blocks, the smallest p of Wilcoxon's test is 2 / 2^n.
    if 2.0 ** (1 - n) * len(pairs) >= ALPHA:
        too_few = _("So few blocks are too few for Wilcoxon's test of {n} pairs.", n=len(pairs))
        of_pairs.append(too_few)
    return [verdict, sentences(of_pairs), _left_out(result)]


def _with_interval(row: pd.Series) -> str:
    numbers = [f"{row.mean_rank:.1f}"]
    if not math.isnan(row.ci_low):
        low, high = f"{row.ci_low:.1f}", f"{row.ci_high:.1f}"
        numbers.append(_("95\u00a0% interval {low} to {high}", low=low, high=high))
    return _("{what} ({more})", what=row.model, more=_("; ").join(numbers))


def _left_out(result: Result) -> str:
    kinds, (blocks, models) = result.blocks.left_out.what, result.blocks.scores.shape
    lost_blocks, lost_models = int((kinds == "block").sum()), int((kinds == "model").sum())
    if kinds.empty:
        return _("No block is left out: all {n} have a score of every model.", n=blocks)
    return _(
        "Left out for want of a score, see the table: {m} of {models} models, "
        "{n} of {all} {units}.",
        m=lost_models,
        models=models + lost_models,
        n=lost_blocks,
        all=blocks + lost_blocks,
        units=result.units,
    )


def title(result: Result) -> str:
    """Say what the diagram shows, in one line."""
    tested, pairs = result.test, result.pairs
    about = {"k": tested.models, "n": tested.blocks, "units": result.units}
    if math.isnan(tested.statistic):
        return _("{k} models, ranked over {n} {units}", **about)
    if tested.p >= ALPHA:
        return _("No difference between {k} models could be shown over {n} {units}", **about)
    return _(
        "{k} models differ over {n} {units}; {apart} of {pairs} pairs can be told apart",
        apart=int((pairs.p_nemenyi < ALPHA).sum()),
        pairs=len(pairs),
        **about,
    )


def critical_difference_diagram(result: Result) -> Figure:
    """Draw mean ranks on a line; a bar joins models that Nemenyi's test cannot tell apart.

    After Demšar, JMLR 2006.
    """
    import scikit_posthocs as posthocs  # type: ignore[import-untyped]  # slow to load

    style()
    ranks = result.blocks.ranks
    means = ranks.mean().sort_values()
    models, k = list(means.index), len(means)
    p = result.pairs.pivot_table(index="first", columns="second", values="p_nemenyi")
    p = p.reindex(index=models, columns=models)
    p = p.fillna(p.T).fillna(1.0)
    names = {model: wrap_label(model) for model in models}
    lines = sum(name.count("\n") + 1 for name in names.values()) / 2
    fig = Figure(figsize=(WIDTH, 1.6 + 0.3 * max(lines, (k + 1) / 2)), layout="constrained")
    ax = fig.subplots()
    palette = colours(list(ranks.columns))
    artists = posthocs.critical_difference_diagram(
        means.rename(names),
        p.rename(index=names, columns=names),
        ax=ax,
        alpha=ALPHA,
        color_palette={names[model]: palette[model] for model in models},
        label_fmt_left="{label} ({rank:.1f})\u00a0",
        label_fmt_right="\u00a0({rank:.1f}) {label}",
        text_h_margin=0.02 * max(k - 1, 1),
        label_props={"fontsize": "x-small"},
        elbow_props={"linewidth": 1.2},
        marker_props={"s": 22},
        crossbar_props={"color": INK, "linewidth": 3, "solid_capstyle": "round"},
    )
    for text in artists["labels"]:
        text.set_color(INK)
    for artist in (*ax.lines, *ax.collections):
        artist.set_clip_on(False)  # a mean rank of 1 or k is at the very edge
    difference = critical_difference(k, result.test.blocks)
    cd = f"{difference:.2f}"
    cd_label = _("critical difference {cd}", cd=cd)
    if difference > k - 1:
        cd_label = _(
            "critical difference {cd}, more than the {most} that ranks can differ",
            cd=cd,
            most=k - 1,
        )
    bar = [1, 1 + min(difference, k - 1)]
    ax.plot(bar, [1.0, 1.0], color=FAINT, lw=1.5, marker="|", ms=6, clip_on=False)
    ax.annotate(
        cd_label,
        (1, 1.0),
        xytext=(0, 4),
        textcoords="offset points",
        fontsize="x-small",
        color=FAINT,
    )
    ax.set_xlim(1, k)
    ax.set_ylim(top=1.6)
    ax.set_xticks(range(1, k + 1))
    ax.tick_params(labelsize="x-small")
    ax.grid(visible=False)
    worse = _("more bias") if result.is_bias else _("worse")
    ax.set_xlabel(_("mean rank; {worse} →", worse=worse), fontsize="small", loc="right")
    set_title(fig, title(result), wrap=True)
    fig.set_label(
        _(
            "{title}. Mean ranks over {n} {units}, 1 is {best}: {ranked}. "
            "Critical difference {cd} (Nemenyi, 5 %).",
            title=title(result),
            n=result.test.blocks,
            units=result.units,
            best=result.best,
            ranked=_(", ").join(f"{model} {rank:.1f}" for model, rank in means.items()),
            cd=cd,
        )
    )
    return fig


def ranks_by_block(result: Result, benchmark: str) -> Figure:
    """Draw each model's rank in each block as a heatmap; blocks that are left out are hatched."""
    style()
    blocks = result.blocks
    order = list(blocks.ranks.mean().sort_values(kind="stable").index)
    left_out = list(blocks.left_out.name[blocks.left_out.what == "block"])
    ranks = blocks.ranks[order].reindex([*blocks.ranks.index, *left_out])
    k = len(order)
    width = max(0.75 * WIDTH, 2.6 + 0.75 * k)
    height = 1.2 + 0.045 * max(map(len, order)) + 0.25 * len(ranks)
    fig = Figure(figsize=(width, height), layout="constrained")
    ax = fig.subplots()
    sns.heatmap(
        ranks,
        ax=ax,
        annot=True,
        fmt=".0f" if (blocks.ranks % 1 == 0).all(axis=None) else ".1f",
        annot_kws={"size": "small"},
        cmap=BIAS_PALETTE,
        vmin=1,
        vmax=max(k, 2),
        linewidths=1,
        linecolor="white",
        cbar=False,
    )
    for y, x in np.argwhere(ranks.isna().to_numpy()):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="///", edgecolor=FAINT, lw=0))
    rows = [_block_label(benchmark, blocks.by, name) for name in ranks.index]
    ax.set_yticks(np.arange(len(ranks)) + 0.5, rows, rotation=0)
    columns = [wrap_label(name) for name in order]
    ax.set_xticks(np.arange(k) + 0.5, columns, rotation=30, ha="right")
    ax.set(xlabel="", ylabel="")
    heading = _(
        "{model} ranks first in {n} of {all} {units}",
        model=order[0],
        n=int((blocks.ranks[order[0]] == blocks.ranks.min(axis=1)).sum()),
        all=len(blocks.ranks),
        units=result.units,
    )
    set_title(fig, heading, wrap=True)
    hatched = _("; hatched: {n} left out", n=len(left_out)) if left_out else ""
    legend = _("rank in each: 1 (blue) is {best}{hatched}", best=result.best, hatched=hatched)
    ax.set_title(legend, fontsize="small", fontweight="normal", color=FAINT)
    fig.set_label(
        _(
            "Heatmap of ranks, {n} {units} by {models} models. {title}{hatched}; the scores are in "
            "the table.",
            n=len(ranks),
            units=result.units,
            models=k,
            title=heading,
            hatched=hatched,
        )
    )
    return fig


def _block_label(benchmark: str, by: str, name: str) -> str:
    category, _comma, task = name.rpartition(", ") if by != CATEGORY else (name, "", "")
    return f"{label(benchmark, category)}, {task}" if task else label(benchmark, category)


def published_models(models: Sequence[int]) -> pd.DataFrame:
    """Return p of the printed statistic by number of models, and whether it is the printed one."""
    possible = models_that_fit()
    rows = [(k, k - 1, f"{_chi2_p(float(PRINTED), k):.2e}", _yes(k in possible)) for k in models]
    return pd.DataFrame(rows, columns=["models", "df", "p", "fits"])


def models_that_fit(statistic: str = PRINTED, p: str = PRINTED_P, most: int = 40) -> list[int]:
    """Return the numbers of models for which both printed numbers are possible."""
    low, high = _bounds(statistic)
    p_low, p_high = _bounds(p)
    # p falls as the statistic rises.
    return [k for k in range(3, most + 1) if _chi2_p(high, k) < p_high and _chi2_p(low, k) > p_low]


def published_designs(
    models: int,
    blocks: Mapping[str, int] = DESIGNS,
    statistic: str = PRINTED,
    p: str = PRINTED_P,
) -> pd.DataFrame:
    """Say which numbers of blocks can give both printed numbers, for ranks without ties.

    Without ties, Q = 12 S / (n k (k + 1)) - 3 n (k + 1). S, the sum of squared rank sums, is an
    integer, even or odd as n k (k + 1) / 2, so only some values are possible. Whether ranks exist
    for each of these is not checked.

    Returns:
        One row for each of `blocks`: `what`, `models`, `blocks`, `statistic` (the possible value
        nearest to the printed one, at most n (k - 1)), `p`, `kendall_w`, and `fits`.
    """
    rows, printed = [], float(statistic)
    for what, n in blocks.items():
        step, offset = 12 / (n * models * (models + 1)), 3 * n * (models + 1)
        parity = n * models * (models + 1) // 2 % 2
        nearest = math.floor((printed + offset) / step)
        sums = np.array([s for s in range(nearest - 2, nearest + 4) if s % 2 == parity])
        values = np.minimum(step * sums - offset, n * (models - 1))
        values = values[np.argsort(abs(values - printed), kind="stable")]
        fits = [
            value
            for value in values
            if _rounds_to(value, statistic) and _rounds_to(_chi2_p(value, models), p)
        ]
        value = float(fits[0] if fits else values[0])
        w = value / (n * (models - 1))
        rows.append((what, models, n, value, f"{_chi2_p(value, models):.4e}", w, _yes(bool(fits))))
    columns = ["what", "models", "blocks", "statistic", "p", "kendall_w", "fits"]
    return pd.DataFrame(rows, columns=columns)


def _chi2_p(statistic: float, models: int) -> float:
    return float(scipy.stats.chi2.sf(statistic, models - 1))


def _bounds(printed: str) -> tuple[float, float]:
    """Return the range of values that are printed as this text."""
    digits, _e, power = printed.partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return float(printed) - half, float(printed) + half


def _rounds_to(value: float, printed: str) -> bool:
    low, high = _bounds(printed)
    return low <= value <= high


def _yes(fits: bool) -> str:
    return "yes" if fits else "no"
