"""Are several models different at all: Friedman's test over blocks such as categories.

The test itself is `bench.metrics.friedman`. Here are the runs that it compares, its findings and
pictures, and what the statistic that the McBE paper prints implies (Lan et al., ACL Findings 2025).

    result = compare(opened(["reports/mine/runs/*/cbbq"]), "cbbq")
    findings(result), critical_difference_diagram(result)
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import chi2

from bench.analyses.compare_models import common_scores, own_scores
from bench.core.errors import NoRuns
from bench.core.numbers import decimals
from bench.figures.style import (
    BIAS_PALETTE,
    FAINT,
    INK,
    WIDTH,
    colours,
    heatmap_figure,
    label,
    set_title,
    style,
    wrap_label,
)
from bench.metrics import friedman
from bench.metrics.bootstrap import LEVEL
from bench.metrics.friedman import CATEGORY, Blocks, Friedman, critical_difference
from bench.metrics.headline import doubt, left_out, phrase
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
        return "categories" if by_category else "cells of a category and task"

    @property
    def is_bias(self) -> bool:
        """Whether a rank is one of bias, in every headline that it rests on."""
        return all(headline.worse == "more bias" for headline in self.blocks.headlines)

    @property
    def best(self) -> str:
        """What the first rank means."""
        return "least bias" if self.is_bias else "best"

    @property
    def title(self) -> str:
        """What was found, in one line."""
        tested, pairs = self.test, self.pairs
        about = {"k": tested.models, "n": tested.blocks, "units": self.units}
        if math.isnan(tested.statistic):
            return "{k} models, ranked over {n} {units}".format(**about)
        if tested.p >= ALPHA:
            return "No difference between {k} models could be shown over {n} {units}".format(
                **about
            )
        apart = int((pairs.p_nemenyi < ALPHA).sum())
        return (
            "{k} models differ over {n} {units}; {apart} of {pairs} pairs can be told apart".format(
                apart=apart,
                pairs=len(pairs),
                **about,
            )
        )


def compare(
    runs: Sequence[Run],
    benchmark: str,
    by: str = CATEGORY,
    task: str = "",
    metric: str = "",
    preset: str = "",
) -> Result:
    """Test whether models differ, on the answers that could be read of all of them.

    Models whose score may come from their letters alone are left out.

    Args:
        by: what a block is.
        task, metric: whose score counts, see `bench.metrics.friedman.blocks`.
        preset: how answers are scored, default: as the runs were.
    """
    scores, own = common_scores(runs, preset or None), own_scores(runs, preset or None)
    doubts = {
        name: why
        for headline in friedman.ranked_headlines(scores, benchmark, by, task, metric)
        for name, row in own[headline.task, headline.metric].items()
        for higher in (True, False)
        if (why := doubt(headline, row, higher=higher))
    }
    if len(set(results.labels(runs)) - set(doubts)) < 2:
        reasons = "; ".join(f"{name}: {why}" for name, why in doubts.items())
        raise NoRuns(
            f"{benchmark}: fewer than two models can be ranked ({reasons}); name runs of others"
        )
    blocks = friedman.blocks(scores[~scores.model.isin(doubts)], benchmark, by, task, metric)
    lost = [("model", name, name, why) for name, why in doubts.items()]
    lost_models = pd.DataFrame(lost, columns=list(blocks.left_out.columns))
    return Result.of(
        blocks._replace(left_out=pd.concat([lost_models, blocks.left_out], ignore_index=True))
    )


def overall(runs: Sequence[Run], result: Result, preset: str = "") -> pd.DataFrame:
    """Return the scores behind the ranks, over all categories and on each model's own answers."""
    return friedman.overall(results.table(runs, preset or None, beside=False), result.blocks)


def tables(result: Result) -> dict[str, pd.DataFrame]:
    """Return the tables of a result by the names of their files."""
    return {
        "friedman": friedman.as_table(result.test),
        "mean_ranks": result.mean_ranks,
        "pairs": result.pairs,
        "scores_by_block": result.blocks.scores.reset_index(),
        "left_out": result.blocks.left_out,
        "ties": friedman.ties(result.blocks),
        "metric_cards": cards(friedman.CARDS),
    }


def findings(result: Result) -> list[str]:
    """Say whether the models differ and which ranks first, and what was left out.

    The tests of pairs, the reasons and the ties are in the tables.
    """
    tested, lost = result.test, result.blocks.left_out
    measures = [phrase(headline.title) for headline in result.blocks.headlines]
    what = measures[0] if len(measures) == 1 else f"scores of {len(measures)} tasks"
    about = {"k": tested.models, "what": what, "n": tested.blocks, "units": result.units}
    without = left_out(dict(zip(lost.name, lost.why, strict=True)))
    if math.isnan(tested.statistic):
        answer = "Whether {k} models differ in {what} could not be tested ({why}).".format(
            why=tested.note,
            **about,
        )
        return [answer, *filter(None, [without])]
    around = (
        f"Friedman's Q = {decimals(tested.statistic, 1)}, {format_p(tested.p)}, Kendall's W = "
        f"{decimals(tested.kendall_w, 2)}"
    )
    if tested.p < ALPHA:
        answer = "The {k} models differ in {what} over {n} {units} ({around}): {leader}".format(
            around=around,
            leader=_leader(result),
            **about,
        )
        about |= {"apart": int((result.pairs.p_nemenyi < ALPHA).sum()), "all": len(result.pairs)}
        pairs = "{apart} of {all} pairs of models can be told apart (Nemenyi's test).".format(
            **about
        )
    else:
        answer = (
            "No difference between {k} models could be shown in {what} over {n} {units} ({around})."
        ).format(
            around=around,
            **about,
        )
        pairs = ""
    # With n blocks, the smallest p of Wilcoxon's test is 2 / 2^n.
    few = ""
    if 2.0 ** (1 - tested.blocks) * len(result.pairs) >= ALPHA:
        few = f"So few blocks are too few for Wilcoxon's test of {len(result.pairs)} pairs."
    return [answer, *filter(None, [pairs, few, without])]


def _leader(result: Result) -> str:
    """Name the model of the first mean rank."""
    first = result.mean_ranks.iloc[0]
    details = [f"mean rank {decimals(first.mean_rank, 1)}"]
    if pd.notna(first.ci_low):
        low, high = decimals(first.ci_low, 1), decimals(first.ci_high, 1)
        details.append(f"95\u00a0% interval {low} to {high}")
    details.append(f"1 is {result.best}")
    return f"{first.model} ranks first ({'; '.join(details)})."


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
    names = {model: f"{wrap_label(model)} ({decimals(means[model], 1)})" for model in models}
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
        label_fmt_left="{label}\u00a0",
        label_fmt_right="\u00a0{label}",
        text_h_margin=0.02 * max(k - 1, 1),
        label_props={"fontsize": "small"},
        elbow_props={"linewidth": 1.2},
        marker_props={"s": 22},
        crossbar_props={"color": INK, "linewidth": 3, "solid_capstyle": "round"},
    )
    for text in artists["labels"]:
        text.set_color(INK)
    for artist in (*ax.lines, *ax.collections):
        artist.set_clip_on(False)  # a mean rank of 1 or k is at the very edge
    difference = critical_difference(k, result.test.blocks)
    cd_label = f"critical difference {decimals(difference, 2)}"
    bar = [1, 1 + min(difference, k - 1)]
    ax.plot(bar, [1.0, 1.0], color=FAINT, lw=1.5, marker="|", ms=6, clip_on=False)
    below: Any = {"xytext": (0, 4), "textcoords": "offset points", "fontsize": "small"}
    ax.annotate(cd_label, (1, 1.0), color=FAINT, **below)
    ax.set(xlim=(1, k), xticks=range(1, k + 1))
    ax.set_ylim(top=1.6)
    ax.tick_params(labelsize="small")
    ax.grid(visible=False)
    worse = "more bias" if result.is_bias else "worse"
    ax.set_xlabel(f"mean rank; {worse} →", fontsize="small", loc="right")
    ranked = ", ".join(f"{model} {decimals(rank, 1)}" for model, rank in means.items())
    alt = f"Mean ranks, 1 is {result.best}: {ranked}."
    set_title(fig, result.title, wrap=True, alt=alt)
    return fig


def ranks_by_block(result: Result, benchmark: str) -> Figure:
    """Draw each model's rank in each block as a heatmap; blocks that are left out are hatched."""
    blocks = result.blocks
    order = list(blocks.ranks.mean().sort_values(kind="stable").index)
    lost = list(blocks.left_out.name[blocks.left_out.what == "block"])
    ranks = blocks.ranks[order].reindex([*blocks.ranks.index, *lost])
    names = []
    for name in ranks.index:
        category, comma, task = name.rpartition(", ") if blocks.by != CATEGORY else (name, "", "")
        names.append(f"{label(benchmark, category)}{comma}{task}")
    first = result.mean_ranks.iloc[0]
    heading = f"{first.model} ranks first in {first.first_in} of {first.blocks} {result.units}"
    hatched = f"hatched: {len(lost)} left out" if lost else ""
    return heatmap_figure(
        ranks.rename(columns=wrap_label),
        ranks.map("{:g}".format).to_numpy(dtype=object),
        (1 + len(order)) / 2,
        (1, max(len(order), 2)),
        BIAS_PALETTE,
        names=names,
        title=heading,
        below=[f"rank in each: 1 (blue) is {result.best}", hatched],
        height=1.2 + 0.045 * max(map(len, order)) + 0.25 * len(ranks),
    )


def published_models(models: Sequence[int]) -> pd.DataFrame:
    """Return p of the printed statistic by number of models, and whether it is the printed one."""
    # p falls as the statistic rises.
    (low, high), (p_low, p_high) = _bounds(PRINTED), _bounds(PRINTED_P)
    k = pd.Series(list(models))
    p, least, most = (chi2.sf(value, k - 1) for value in (float(PRINTED), high, low))
    fits = np.where((least < p_high) & (most > p_low), "yes", "no")
    return pd.DataFrame({"models": k, "df": k - 1, "p": map("{:.2e}".format, p), "fits": fits})


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
    (low, high), (p_low, p_high) = _bounds(statistic), _bounds(p)
    for what, n in blocks.items():
        step, offset = 12 / (n * models * (models + 1)), 3 * n * (models + 1)
        nearest = math.floor((printed + offset) / step)
        sums = np.arange(nearest - 2, nearest + 4)
        sums = sums[sums % 2 == n * models * (models + 1) // 2 % 2]
        values = np.minimum(step * sums - offset, n * (models - 1))
        values = values[np.argsort(abs(values - printed), kind="stable")]
        own_p = chi2.sf(values, models - 1)
        fits = (low <= values) & (values <= high) & (p_low <= own_p) & (own_p <= p_high)
        value = float(values[np.argmax(fits)])
        text, w = f"{chi2.sf(value, models - 1):.4e}", value / (n * (models - 1))
        rows.append((what, models, n, value, text, w, "yes" if fits.any() else "no"))
    columns = ["what", "models", "blocks", "statistic", "p", "kendall_w", "fits"]
    return pd.DataFrame(rows, columns=columns)


def _bounds(printed: str) -> tuple[float, float]:
    """Return the range of values that are printed as this text."""
    digits, _e, power = printed.partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return float(printed) - half, float(printed) + half
