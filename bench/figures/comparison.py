"""Pictures of models against each other: which differ from which, and which rank each may have."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.benchmarks import module
from bench.core.i18n import _, sentences
from bench.figures.style import BIAS_PALETTE, FAINT, INK, WIDTH, diverging_norm, set_title, style
from bench.metrics.comparison import DIFFERENT
from bench.metrics.headline import range_text, short_title
from bench.metrics.table import Headline

# How often a model has a rank: pale to dark.
SHARES = "Blues"
# Inches of a row of a matrix.
ROW = 0.27


def differences(
    pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str
) -> Iterator[tuple[str, Figure]]:
    """For each headline, models x models: score of the row less that of the column, hatched where none could be shown.

    Args:
        pairs, ranks: results of `bench.metrics.comparison.pairs` and `ranks`; rows and columns stand in order of rank.

    Returns:
        Pairs of a name for a file and a figure.
    """
    for headline, some, order in _headlines(pairs, ranks, benchmark):
        if len(order) > 1:
            yield (
                f"differences_{headline.task}_{headline.metric}",
                _differences(headline, some, order),
            )


def ranks_by_model(pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str) -> Figure | None:
    """How often each model has each rank over the resamples, a panel a headline; framed: the ranks that the tests leave open.

    None where no headline has two models with a score.
    """
    panels = [one for one in _headlines(pairs, ranks, benchmark) if len(one[2]) > 1]
    if not panels:
        return None
    style()
    most = max(len(order) for (*_ignored, order) in panels)
    heights = [0.8 + ROW * len(order) for (*_ignored, order) in panels]
    fig = Figure(figsize=(WIDTH, sum(heights) + 0.35), layout="constrained")
    said = []
    for ax, (headline, _unused, order) in zip(
        fig.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0],
        panels,
        strict=True,
    ):
        n = len(order)
        shares = np.stack(list(order.shares)) * 100
        told = np.array([[_percent(value) for value in row] for row in shares], dtype=object)
        sns.heatmap(
            pd.DataFrame(shares),
            ax=ax,
            annot=told,
            fmt="",
            cmap=SHARES,
            vmin=0,
            vmax=130,
            cbar=False,
            linewidths=1,
            linecolor="white",
            annot_kws={"size": _size(n)},
        )
        for k, (first, last) in enumerate(zip(order.ranks_from, order.ranks_to, strict=True)):
            if not np.isnan(first):
                ax.add_patch(
                    Rectangle(
                        (first - 1, k),
                        last - first + 1,
                        1,
                        fill=False,
                        ec=INK,
                        lw=1.4,
                        clip_on=False,
                    )
                )
        _labels(ax, list(order.model), [str(k + 1) for k in range(n)])
        ax.set_xlim(0, most)
        title = short_title(headline)
        ax.set_title(_("{title}:\n{told}", title=title, told=_settled(order)), fontsize="small")
        spans = _(", ").join(
            map(_span, order.model, order["rank"], order.ranks_from, order.ranks_to)
        )
        of = _("{title}, {measure}", title=title, measure=_settled(order))
        said.append(_("{title}: {sentence}", title=of, sentence=spans))
    _below(
        fig,
        _(
            "Rank, 1 is best. Numbers: % of the resamples. Framed: the ranks that the tests leave open."
        ),
    )
    fig.set_label(_("Heatmaps of ranks over the resamples. {said}.", said=_(". ").join(said)))
    return fig


def _differences(headline: Headline, some: pd.DataFrame, order: pd.DataFrame) -> Figure:
    style()
    models = list(order.model)
    n = len(models)
    values, hidden = pd.DataFrame(np.nan, index=models, columns=models), np.full((n, n), False)
    here = some[some.model_a.isin(models) & some.model_b.isin(models)]
    for one, other, less, verdict in zip(
        here.model_a, here.model_b, here.difference, here.verdict, strict=True
    ):
        a, b = models.index(one), models.index(other)
        # Below the diagonal, which has the worse model in the row.
        values.iloc[max(a, b), min(a, b)] = less if a > b else -less
        hidden[max(a, b), min(a, b)] = verdict != DIFFERENT
    fig = Figure(figsize=(WIDTH, 1.15 + ROW * n), layout="constrained")
    ax = fig.subplots()
    share = headline.limits == (0, 1)
    known = values.to_numpy()[~np.isnan(values.to_numpy())]
    reach = max(float(np.abs(known).max()) if len(known) else 0, 0.05 * headline.limits[1])
    told = np.array(
        [[_signed(value, 2 if share else 1) for value in row] for row in values.to_numpy()]
    )
    sns.heatmap(
        values.where(~hidden),
        ax=ax,
        cmap=BIAS_PALETTE if headline.biased_is_high else BIAS_PALETTE.removesuffix("_r"),
        norm=diverging_norm(0, (-reach, reach)),
        vmin=-reach,
        vmax=reach,
        cbar=False,
        linewidths=1,
        linecolor="white",
        annot=told,
        fmt="",
        annot_kws={"size": _size(n)},
    )
    for y, x in np.argwhere(hidden):
        ax.add_patch(
            Rectangle((x, y), 1, 1, fill=False, hatch="////", edgecolor="#dddddd", lw=0, zorder=0)
        )
        ax.text(
            x + 0.5,
            y + 0.5,
            told[y, x] or "—",
            ha="center",
            va="center",
            size=_size(n),
            color=FAINT,
        )
    _labels(ax, models, [str(k + 1) for k in range(n)])
    worse = _(headline.worse)
    _below(
        fig,
        _(
            "Score of the row less that of the column. Red: {worse} in the row.\nHatched: no difference could be shown.",
            worse=worse,
        )
        if share
        else _(
            "Score of the row less that of the column, points of 100. Red: {worse} in the row.\nHatched: no difference could be shown.",
            worse=worse,
        ),
    )
    tests = some[some.p_adjusted.notna()]
    apart = _(
        "{n} of {all} pairs of models could be told apart",
        n=int((tests.verdict == DIFFERENT).sum()),
        all=len(tests),
    )
    title = short_title(headline)
    set_title(fig, _("{title}:\n{told}", title=title, told=apart))
    begin = _("{title}, {measure}", title=title, measure=apart)
    fig.set_label(_("{title}. {said}", title=begin, said=sentences(some.sentence)))
    return fig


def _below(fig: Figure, text: str) -> None:
    fig.supxlabel(text, x=0.01, ha="left", fontsize="x-small", color=FAINT)


def _headlines(
    pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str
) -> Iterator[tuple[Headline, pd.DataFrame, pd.DataFrame]]:
    """Each headline with its pairs, and with its ranks in their order."""
    for headline in module("metrics", benchmark).HEADLINES:
        some, order = (
            table[(table.task == headline.task) & (table.metric == headline.metric)]
            for table in (pairs, ranks)
        )
        if len(some):
            yield headline, some, order.sort_values("rank", kind="stable")


def _labels(ax: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names of the rows, with the number under which each stands over a column."""
    ax.set_yticks(
        np.arange(len(rows)) + 0.5,
        [f"{name}  {k + 1}" for k, name in enumerate(rows)],
        rotation=0,
        fontsize="x-small",
    )
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=0, fontsize="x-small")
    ax.grid(visible=False)


def _settled(order: pd.DataFrame) -> str:
    """How many ranks are open, as far as the tests go."""
    if order.ranks_from.isna().any():
        return _("not every pair could be tested")
    several = int((order.ranks_from < order.ranks_to).sum())
    if not several:
        return _("every rank is settled")
    return _("{n} of {all} models may have more than one rank", n=several, all=len(order))


def _span(model: str, rank: int, first: float, last: float) -> str:
    if np.isnan(first):
        return f"{model} {rank}"
    return f"{model} {range_text(f'{first:.0f}', f'{last:.0f}')}"


def _percent(value: float) -> str:
    """Never 0 or 100 where it is not so."""
    if np.isnan(value) or value == 0:
        return ""
    return "< 1" if value < 1 else "> 99" if 99 < value < 100 else f"{value:.0f}"


def _signed(value: float, digits: int) -> str:
    """With a sign; nought has none."""
    if np.isnan(value):
        return ""
    return f"{value:+.{digits}f}" if round(abs(value), digits) else f"{0:.{digits}f}"


def _size(n: int) -> str | float:
    return "x-small" if n <= 8 else 5.5
