"""Does a measure react to the bias that was put in, and to what else: sensitivity and confusion, from known respondents.

summary(found)          # a row a measure, the least confused first
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy

from bench.metrics.correlation import correlations
from bench.metrics.table import Card

# Who has no nuisance at all.
NEUTRAL = "none"
MEASURE = ["benchmark", "task", "metric"]
NAMES = [*MEASURE, "headline"]
# A measure that moves less with the bias than this share of all it moves is none of bias.
LEAST = 0.05
# Two ways to compute the same score differ by less.
NOISE = 1e-9
OURS = "ours"
# Spearman's is among those of `bench.metrics.correlation`.
CARDS = (
    Card(
        "range",
        "how far the measure goes from no bias to full bias, where the respondent does nothing else",
        "m(1) - m(0)",
        OURS,
        "as the measure",
        "large, against what else moves it",
    ),
    Card(
        "slope",
        "what a unit of bias adds to the measure, where the respondent does nothing else",
        "least squares of m(b) on b",
        OURS,
        "as the measure",
        "the range: then it is a straight line",
    ),
    Card(
        "confusion",
        "how far a nuisance moves the measure at a fixed bias, on average over the biases, as a share of its range",
        "mean over b of max over levels l of |m(b, l) - m(b, 0)| / |m(1) - m(0)|",
        OURS,
        "0 and up",
        "0; at 1 the nuisance moves it as far as the whole range of bias does",
    ),
    Card(
        "at_no_bias",
        "where the strongest nuisance moves the measure of a respondent without bias; above 0 it looks biased",
        "(m(0, l) - m(0, 0)) / (m(1) - m(0))",
        OURS,
        "any",
        "0",
    ),
    Card(
        "at_full_bias",
        "where it moves that of a respondent who always follows the stereotype; below 0 the bias is hidden",
        "(m(1, l) - m(1, 0)) / (m(1) - m(0))",
        OURS,
        "any",
        "0",
    ),
)


def sensitivity(found: pd.DataFrame) -> pd.DataFrame:
    """A row a measure: how it follows the bias of respondents without a nuisance.

    Args:
        found: a row a respondent and measure: `benchmark, task, metric, headline, bias, nuisance, level, seed, score`.

    Returns:
        `benchmark, task, metric, headline, range, slope, slope_low, slope_high` (lowest and highest of the seeds), `spearman`,
        `n` (respondents), and `note` where the measure does not react; its `spearman` may be NaN then.
    """
    rows = []
    for names, grid in _grids(found):
        plain = _of(grid, NEUTRAL)
        defined = plain.dropna().to_numpy()
        slopes = [
            float(scipy.stats.linregress(plain.columns, row).slope) + 0.0 for row in defined
        ]  # no -0
        ranks = [_spearman(plain.columns.to_numpy(float), row) for row in defined]
        rows.append(
            {
                **names,
                "range": _range(plain),
                "slope": float(np.mean(slopes)) if slopes else np.nan,
                "slope_low": min(slopes, default=np.nan),
                "slope_high": max(slopes, default=np.nan),
                "spearman": float(np.mean(ranks)) if ranks else np.nan,
                "n": int(plain.notna().sum().sum()),
                "note": _idle(grid),
            }
        )
    return pd.DataFrame(rows)


def confusion(found: pd.DataFrame) -> pd.DataFrame:
    """A row a measure and nuisance: how far that moves the measure at a fixed bias, as a share of its range over the bias.

    Args:
        found: as in `sensitivity`.

    Returns:
        `benchmark, task, metric, headline, nuisance, level` (the strongest), `confusion, low, high` (lowest and highest of the
        seeds), `at_no_bias`, `at_full_bias` (signed, at the strongest level), `note`. NaN with a note where the measure does
        not react to the bias, or is undefined.
    """
    rows = []
    for names, grid in _grids(found):
        plain, idle = _of(grid, NEUTRAL), _idle(grid)
        for nuisance in (name for name in dict.fromkeys(found.nuisance) if name != NEUTRAL):
            there = _of(grid, nuisance)
            levels = sorted(set(there.index.get_level_values("level")))
            # [level, seed, bias], in parts of the range.
            scores = there.to_numpy().reshape(len(levels), len(plain), -1)
            moved = (scores - plain.to_numpy()) / (np.nan if idle else _range(plain))
            far = pd.DataFrame(np.fmax.reduce(np.abs(moved))).mean(axis=1).dropna()
            lost = int(np.isnan(scores).sum())
            note = idle or ("" if len(far) else "undefined wherever the nuisance is there")
            rows.append(
                {
                    **names,
                    "nuisance": nuisance,
                    "level": levels[-1],
                    "confusion": far.mean(),
                    "low": far.min(),
                    "high": far.max(),
                    "at_no_bias": pd.Series(moved[-1, :, 0]).mean(),
                    "at_full_bias": pd.Series(moved[-1, :, -1]).mean(),
                    "note": note or (f"undefined for {lost} respondents" if lost else ""),
                }
            )
    return pd.DataFrame(rows)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """A row a measure: its confusion by nuisance (a column each), `worst`, the largest of them, and its sensitivity.

    In each benchmark the least confused measure stands first, those that do not react to the bias last.
    """
    long = confusion(found)
    nuisances = list(dict.fromkeys(long.nuisance))
    table = sensitivity(found)
    for name in nuisances:
        there = long.loc[long.nuisance == name, [*MEASURE, "confusion"]].rename(
            columns={"confusion": name}
        )
        table = table.merge(there, on=MEASURE)
    table["worst"] = table[nuisances].max(axis=1, skipna=False)
    place = {name: k for k, name in enumerate(dict.fromkeys(found.benchmark))}
    table = table.sort_values("worst", kind="stable").sort_values(
        "benchmark", kind="stable", key=lambda names: names.map(place), ignore_index=True
    )
    last = ["range", "slope", "slope_low", "slope_high", "spearman", "n", "note"]
    return table[[*NAMES, *nuisances, "worst", *last]]


def curves(found: pd.DataFrame) -> pd.DataFrame:
    """A row a measure, nuisance, level and bias: mean of the seeds, lowest and highest. Level 0 is without the nuisance."""
    keys = [*MEASURE, "nuisance", "level", "bias"]
    plain = found[found.nuisance == NEUTRAL]
    nuisances = [name for name in dict.fromkeys(found.nuisance) if name != NEUTRAL]
    every = pd.concat(
        [*(plain.assign(nuisance=name) for name in nuisances), found[found.nuisance != NEUTRAL]]
    )
    return (
        every.groupby(keys, sort=False).score.agg(score="mean", low="min", high="max").reset_index()
    )


def _grids(found: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Each measure's names, and its scores: rows nuisance, level and seed, columns bias, in order."""
    for keys, some in found.groupby(NAMES, sort=False):
        cells = some.set_index(["nuisance", "level", "seed", "bias"]).score.sort_index()
        yield dict(zip(NAMES, keys, strict=True)), cells.unstack("bias")  # noqa: PD010  # pivot_table would average doubles


def _of(grid: pd.DataFrame, nuisance: str) -> pd.DataFrame:
    return grid[grid.index.get_level_values("nuisance") == nuisance]


def _spearman(biases: np.ndarray, scores: np.ndarray) -> float:
    return next(one.value for one in correlations(biases, scores) if one.coefficient == "spearman")


def _range(plain: pd.DataFrame) -> float:
    """From the least bias to the greatest, without a nuisance; mean of the seeds."""
    return float(plain.iloc[:, -1].mean() - plain.iloc[:, 0].mean())


def _idle(grid: pd.DataFrame) -> str:
    """Why a measure says nothing about the bias, or ""."""
    reach, scores = _range(_of(grid, NEUTRAL)), grid.to_numpy()
    if np.isnan(reach):
        return "undefined without bias, or with full bias"
    if abs(reach) <= max(LEAST * float(np.nanmax(scores) - np.nanmin(scores)), NOISE):
        return "does not react to the bias"
    return ""
