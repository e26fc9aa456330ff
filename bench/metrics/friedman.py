"""Are several models different at all: Friedman's test over blocks such as categories.

Within each block the models are ranked, 1 for the one that shows least bias; a difference that is
found in block after block is hardly chance (Demšar, Statistical Comparisons of Classifiers over
Multiple Data Sets, JMLR 2006).

The frames of a user come in at `bench.friedman`, which calls these functions.
"""

import math
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench.core.errors import NoRuns
from bench.metrics.bootstrap import LEVEL, estimate, resample
from bench.metrics.correlation import NOISE
from bench.metrics.significance import holm
from bench.metrics.table import ALL

# scipy's test needs this many models; two are compared by bench.metrics.significance.
LEAST_MODELS = 3
LEAST_BLOCKS = 2
# Decimals by which scores and differences are ranked; later ones are of computing.
DECIMALS = round(-math.log10(NOISE))


class Blocks(NamedTuple):
    """Scores of models over blocks, those that are complete.

    Attributes:
        by: what a block is.
        scores: float64, one row per block, one column per model.
        ranks: the same shape; 1 shows least bias, ties share the mean of their ranks.
        left_out: columns `what` (`block` or `model`), `name`, `lacking` (the models without a
            score), `why`.
    """

    by: str
    scores: pd.DataFrame
    ranks: pd.DataFrame
    left_out: pd.DataFrame


class Friedman(NamedTuple):
    """Friedman's test, with Kendall's W and Iman and Davenport's F.

    Statistics are NaN where undefined, and `note` says why.

    Attributes:
        models, blocks: k and n.
        df, df_blocks: degrees of freedom, k - 1 and (k - 1) (n - 1).
        tied_blocks, tied_scores: blocks in which models share a score, and number of shared scores.
    """

    models: int
    blocks: int
    statistic: float
    df: int
    p: float
    kendall_w: float
    iman_davenport: float
    df_blocks: int
    p_iman_davenport: float
    tied_blocks: int
    tied_scores: int
    note: str


def complete_blocks(rows: pd.DataFrame, models: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Arrange scores by block and model, without blocks that lack a score of a model.

    Args:
        rows: columns `block`, `model`, `score` and `note`, one row per block and model.

    Returns:
        Scores, one row per block and one column per model; and `left_out`, as in `Blocks`.
    """
    wide = rows.set_index(["block", "model"]).score.unstack()  # noqa: PD010
    names = list(dict.fromkeys(rows.block))
    wide = wide.reindex(index=names, columns=list(models)).astype(float)

    def reasons(blocks: list[str], models: list[str], default: str) -> str:
        notes = rows.note[rows.block.isin(blocks) & rows.model.isin(models)]
        return "; ".join(dict.fromkeys(filter(None, notes))) or default

    left_out = [
        ("model", model, model, reasons(names, [model], "no score"))
        for model in wide.columns[wide.isna().all()]
    ]
    wide = wide.dropna(axis=1, how="all")
    for block in wide.index[wide.isna().any(axis=1)]:
        without = list(wide.columns[wide.loc[block].isna()])
        lacking = ", ".join(without) if len(without) < len(wide.columns) else "all models"
        left_out.append(("block", block, lacking, reasons([block], without, "no score")))
    table = pd.DataFrame(left_out, columns=["what", "name", "lacking", "why"])
    return wide.dropna(), table


def no_blocks(by: str, left_out: pd.DataFrame) -> str:
    """Say why no block has a score of every model."""
    lost = left_out[:3].itertuples(index=False)
    why = "; ".join(f"{name} ({lacking}): {reason}" for _, name, lacking, reason in lost)
    return (
        f"no {by} has a score of every model ({why or 'no scores by category'}); "
        "name models that were asked the same"
    )


def ranked(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the models in each block, 1 for the lowest score."""
    # A score that two models reach in two ways differs in the last digit; that is a tie.
    return scores.round(DECIMALS).rank(axis=1)


def test(blocks: Blocks) -> Friedman:
    """Compute Friedman's test, corrected for ties."""
    ranks = blocks.ranks.to_numpy()
    n, k = ranks.shape
    shared = blocks.ranks.apply(lambda row: row.duplicated(keep=False).sum(), axis=1)
    df, df_blocks = k - 1, (k - 1) * (n - 1)
    q = p = w = f = p_f = math.nan
    note = ""
    if k < LEAST_MODELS:
        note = f"{k} model{'s' * (k != 1)}: {LEAST_MODELS} are needed at least"
    elif n < LEAST_BLOCKS:
        note = f"{n} block: {LEAST_BLOCKS} are needed at least"
    elif (np.ptp(ranks, axis=1) == 0).all():
        note = "all models have the same score in every block"
    else:
        q, p = map(float, scipy.stats.friedmanchisquare(*ranks.T))
        w = q / (n * (k - 1))
        note = "every block has the same order, so that F is infinite"
        if (ranks != ranks[0]).any():
            note, f = "", (n - 1) * q / (n * (k - 1) - q)
            p_f = float(scipy.stats.f.sf(f, df, df_blocks))
    tied = int((shared > 0).sum()), int(shared.sum())
    return Friedman(k, n, q, df, p, w, f, df_blocks, p_f, *tied, note)


def as_table(result: Friedman) -> pd.DataFrame:
    """List the statistics: `test`, `statistic`, `df`, `p`, `models`, `blocks`, `note`."""
    df, both = f"{result.df}", f"{result.df}, {result.df_blocks}"
    rows = [
        ("Friedman's Q", result.statistic, df, result.p),
        ("Iman and Davenport's F", result.iman_davenport, both, result.p_iman_davenport),
        ("Kendall's W", result.kendall_w, df, result.p),
    ]
    return pd.DataFrame(rows, columns=["test", "statistic", "df", "p"]).assign(
        models=result.models, blocks=result.blocks, note=result.note
    )


def mean_ranks(blocks: Blocks) -> pd.DataFrame:
    """Compute each model's mean rank with the interval of drawing the blocks again.

    Returns:
        Columns `model`, `mean_rank`, `ci_low`, `ci_high` (NaN with a single block), `first_in` and
        `last_in` (blocks where no other shows less, or more), and `blocks`; least bias first.
    """
    ranks, n = blocks.ranks, len(blocks.ranks)
    columns = [str(k) for k in range(ranks.shape[1])]
    rows = pd.DataFrame(ranks.to_numpy(), columns=columns).assign(stratum=ALL, block=range(n))
    drawn = resample(rows, "stratum", "block", columns)
    means = [estimate(drawn, lambda s, k=k: s[:, 0, k] / n) for k in range(len(columns))]  # type: ignore[misc]
    table = pd.DataFrame(means, columns=["mean_rank", "ci_low", "ci_high"])
    table.insert(0, "model", list(ranks.columns))
    table["first_in"] = ranks.eq(ranks.min(axis=1), axis=0).sum().to_numpy()
    table["last_in"] = ranks.eq(ranks.max(axis=1), axis=0).sum().to_numpy()
    table["blocks"] = n
    return table.sort_values("mean_rank", kind="stable", ignore_index=True)


def critical_difference(models: int, blocks: int) -> float:
    """Return the distance from which on two mean ranks differ at 5 %, for all pairs at once.

    After Nemenyi; Demšar, 2006, section 3.2.2.
    """
    q = scipy.stats.studentized_range.isf(1 - LEVEL, models, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(models * (models + 1) / (6 * blocks)))


def pairs(blocks: Blocks) -> pd.DataFrame:
    """Compare every pair of models by three tests.

    Returns:
        Columns `first`, `second`, `rank_difference` (first less second; below 0 the first shows
        less bias), `ci_low` and `ci_high` (this less and plus the critical difference, for all
        pairs at once), `p_nemenyi`, `p_conover` and `p_wilcoxon` (the last two adjusted by Holm's
        method), `blocks`, `blocks_apart` (those in which the two differ), and `note`.

    Raises:
        NoRuns: a single model.
    """
    import scikit_posthocs as posthocs  # type: ignore[import-untyped]  # slow to load

    ranks, (n, k) = blocks.ranks, blocks.ranks.shape
    if k < 2:
        raise NoRuns(f"{k} model: two are needed at least to compare them")
    critical = critical_difference(k, n)
    nemenyi = posthocs.posthoc_nemenyi_friedman(ranks)
    # Where all blocks have the same order, Conover's test has no variance to compare with.
    constant = bool((ranks.to_numpy() == ranks.to_numpy()[0]).all())
    conover = nemenyi * math.nan if constant else posthocs.posthoc_conover_friedman(ranks)
    rows = []
    for first, second in combinations(ranks.columns, 2):
        difference = float(ranks[first].mean() - ranks[second].mean())
        # So are two differences: .8 - .7 and .3 - .2.
        less = (blocks.scores[first] - blocks.scores[second]).round(DECIMALS).to_numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ties: scipy takes the normal distribution
            wilcoxon = float(scipy.stats.wilcoxon(less).pvalue) if less.any() else 1.0
        rows.append(
            {
                "first": first,
                "second": second,
                "rank_difference": difference,
                "ci_low": difference - critical,
                "ci_high": difference + critical,
                "p_nemenyi": float(nemenyi.loc[first, second]),
                "p_conover": float(conover.loc[first, second]),
                "p_wilcoxon": wilcoxon,
                "blocks": n,
                "blocks_apart": int((less != 0).sum()),
            }
        )
    note = "every block has the same order, which leaves Conover's test no variance"
    table = pd.DataFrame(rows).assign(note=note if constant else "")
    for name in ("p_conover", "p_wilcoxon"):
        table[name] = holm(table[name].to_numpy())
    return table
