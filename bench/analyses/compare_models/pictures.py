"""Pictures of models against each other: which differ from which, and which rank each may have."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyses.compare_models import DIFFERENT, of_headline
from bench.benchmarks import module
from bench.core.numbers import decimals, signed
from bench.figures.style import BIAS_PALETTE, FAINT, INK, WIDTH, set_title, style, wrap_label
from bench.metrics.headline import range_text, short_title
from bench.metrics.table import Headline

ROW = 0.27  # inches of a row of a matrix
COLUMNS = 2  # of pictures of ranks


def differences(
    pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str
) -> Iterator[tuple[str, Figure]]:
    """Draw for each headline the score of the row less that of the column, models in order of rank.

    Hatched where no difference could be shown.

    Args:
        pairs, ranks: of `bench.analyses.compare_models`.

    Returns:
        Pairs of a name for a file and a figure.
    """
    style()
    for headline, rows, order in _headlines(pairs, ranks, benchmark):
        if rows.p_adjusted.isna().all():
            continue
        models, share = list(order.model), headline.limits == (0, 1)
        # Below the diagonal, which has the worse model in the row.
        values, hidden = np.full((2, len(models), len(models)), np.nan)
        for row in rows[rows.model_a.isin(models) & rows.model_b.isin(models)].to_dict("records"):
            a, b = models.index(row["model_a"]), models.index(row["model_b"])
            values[max(a, b), min(a, b)] = row["difference"] if a > b else -row["difference"]
            hidden[max(a, b), min(a, b)] = row["verdict"] != DIFFERENT
        fig = Figure(figsize=(WIDTH, 1.4 + ROW * len(models)), layout="constrained")
        ax = fig.subplots()
        reach = max(np.nanmax(np.abs(values), initial=0), 0.05 * headline.limits[1])
        texts = np.vectorize(_signed, otypes=[object])(values, 2 if share else 1)
        palette = BIAS_PALETTE if headline.biased_is_high else BIAS_PALETTE.removesuffix("_r")
        shown = np.where(hidden == 1, np.nan, values)
        # The best model has nothing in its row, and the worst nothing in its column.
        part = np.s_[1:, :-1]
        texts, sides = texts[part], (models[1:], models[:-1])
        _heatmap(ax, shown[part], texts, *sides, cmap=palette, vmin=-reach, vmax=reach)
        ax.tick_params(axis="x", rotation=20)
        for y, x in np.argwhere(hidden[part] == 1):
            hatch: dict[str, Any] = {"hatch": "////", "edgecolor": "#dddddd", "lw": 0, "zorder": 0}
            ax.add_patch(Rectangle((x, y), 1, 1, fill=False, **hatch))
            centred: dict[str, Any] = {"ha": "center", "va": "center", "size": _size(models)}
            ax.text(x + 0.5, y + 0.5, texts[y, x] or "—", color=FAINT, **centred)
        _below(
            fig,
            (
                f"Score of the row less that of the column. Red: {headline.worse} in the row.\n"
                "Hatched: no difference could be shown."
            ),
        )
        verdict = (
            f"{int((rows.verdict[rows.p_adjusted.notna()] == DIFFERENT).sum())} of "
            f"{int(rows.p_adjusted.notna().sum())} pairs of models could be told apart"
        )
        set_title(fig, f"{short_title(headline)}:\n{verdict}")
        yield f"differences_{headline.task}_{headline.metric}", fig


def ranks_by_model(pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str) -> Figure | None:
    """Draw how often each model has each rank over the resamples, one panel per headline.

    Framed are the ranks that the tests leave open. None where no headline has two models.
    """
    panels = list(_headlines(pairs, ranks, benchmark))
    if not panels:
        return None
    style()
    lines = -(-len(panels) // COLUMNS)
    height = 0.9 + ROW * max(len(order) for _headline, _rows, order in panels)
    fig = Figure(figsize=(WIDTH, lines * height + 0.35), layout="constrained")
    grid = np.ravel(fig.subplots(lines, COLUMNS, squeeze=False))
    for ax in grid[len(panels) :]:
        ax.set_visible(False)
    described: list[tuple[int, str]] = []
    for ax, (headline, _rows, order) in zip(grid, panels, strict=False):
        shares = np.stack(list(order.shares)) * 100
        texts = np.vectorize(_percent, otypes=[object])(shares)
        rows = [f"{name}  {k}" for k, name in enumerate(order.model, 1)]
        places = [str(k) for k in range(1, len(order) + 1)]
        _heatmap(ax, shares, texts, rows, places, cmap="Blues", vmin=0, vmax=130)
        spans = []
        for k, row in enumerate(order.to_dict("records")):
            first, last = row["ranks_from"], row["ranks_to"]
            if not np.isnan(first):
                frame = Rectangle((first - 1, k), last - first + 1, 1, fill=False, ec=INK, lw=1.4)
                ax.add_patch(frame).set_clip_on(False)
                spans.append(f"{row['model']} {range_text(f'{first:.0f}', f'{last:.0f}')}")
        ax.set_xlim(0, max(len(order) for _headline, _rows, order in panels))
        several = int((order.ranks_from < order.ranks_to).sum())
        text = f"{several} of {len(order)} models may have more than one rank"
        if order.ranks_from.isna().any():
            text = "not every pair could be tested"
        title = short_title(headline)
        words = {"title": wrap_label(title, 32), "verdict": wrap_label(text, 32)}
        heading = "{title}:\n{verdict}".format(**words)
        ax.set_title(heading, fontsize="small")
        sentence = f"{title}: {', '.join(spans)}"
        described.append((len(spans), sentence))
    explained = (
        "Rank, 1 is best. Numbers: % of the resamples. Framed: the ranks that the tests leave open."
    )
    _below(fig, explained)
    # Of the first score with the most models.
    _count, text = max(described, key=lambda pair: pair[0])
    fig.set_label(f"Ranks that the tests leave open; {text}.")
    return fig


def _headlines(
    pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str
) -> Iterator[tuple[Headline, pd.DataFrame, pd.DataFrame]]:
    """Return each headline that ranks two models, with its pairs, and its ranks in order."""
    for headline in module("metrics", benchmark).HEADLINES:
        rows, order = of_headline(pairs, headline), of_headline(ranks, headline)
        if len(rows) and len(order) > 1:
            yield headline, rows, order.sort_values("rank", kind="stable")


def _heatmap(
    ax: Axes,
    values: np.ndarray,
    texts: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    **colours: Any,
) -> None:
    """Draw a matrix with `texts` in its cells, and names of all rows and columns."""
    written: dict[str, Any] = {"annot": texts, "fmt": "", "annot_kws": {"size": _size(rows)}}
    sns.heatmap(values, ax=ax, cbar=False, linewidths=1, linecolor="white", **written, **colours)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows, rotation=0, fontsize="small")
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize="small")
    ax.grid(visible=False)


def _below(fig: Figure, text: str) -> None:
    fig.supxlabel(text, x=0.01, ha="left", fontsize="small", color=FAINT)


def _percent(value: float) -> str:
    """Write a percentage; never 0 or 100 where it is not."""
    if np.isnan(value) or value == 0:
        return ""
    return "< 1" if value < 1 else "> 99" if 99 < value < 100 else decimals(value)


def _signed(value: float, digits: int) -> str:
    return "" if np.isnan(value) else signed(value, digits)


def _size(models: Sequence[str]) -> str | float:
    return "small" if len(models) <= 6 else "x-small" if len(models) <= 9 else 5.5
