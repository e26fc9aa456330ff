"""Are several models different at all: Friedman's test over blocks, for example categories.

We rank the models within each block; rank 1 is the least biased model. A difference in most blocks
is unlikely to be chance (Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets,
JMLR 2006).
"""

import math
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench.core.errors import BadInput, NoRuns
from bench.metrics.bootstrap import LEVEL, estimate_of_items
from bench.metrics.significance import holm, tied
from bench.metrics.statistics import SEPARATOR
from bench.metrics.table import join_notes
from bench.metrics.user_tables import Frame, Table, as_list

# scipy's test needs this many models; `bench.compare` compares two.
LEAST_MODELS = 3
LEAST_BLOCKS = 2
# The chi-squared distribution suits Q if there are more blocks and models (Demšar, 2006, section
# 3.2.2); we say so if both are few.
FEW_BLOCKS = 10
FEW_MODELS = 5


class FriedmanTables(NamedTuple):
    """The three tables of Friedman's test.

    Attributes:
        test: Friedman's Q, Iman and Davenport's F and Kendall's W: columns `test`, `estimate`,
            `df`, `p`, `models`, `n` (blocks), `note`.
        ranks: the mean rank of each model: `model`, `estimate`, `ci_low`, `ci_high`, `first_in`
            and `last_in` (blocks in which no other rank is lower, or higher), `n` (blocks), `note`.
        pairs: each pair of models by Nemenyi's test: `first`, `second`, `estimate` (the difference
            of their mean ranks), `ci_low`, `ci_high`, `p_adjusted` (Nemenyi's, which is for all
            pairs at once), `p_conover` and `p_wilcoxon` (adjusted by Holm's method), `n` (blocks),
            `blocks_apart` (blocks in which their scores differ), `note`.

    Examples:
        >>> import pandas as pd
        >>> scores = pd.DataFrame({"model": [*"abcabc"], "category": [*"xxxyyy"]})
        >>> scores = scores.assign(score=range(6))
        >>> friedman(scores, blocks="category").ranks[["model", "estimate", "n"]]
          model  estimate  n
        0     a       1.0  2
        1     b       2.0  2
        2     c       3.0  2
    """

    test: pd.DataFrame
    ranks: pd.DataFrame
    pairs: pd.DataFrame


def friedman(
    scores: Frame,
    blocks: str | Sequence[str] = "category",
    treatments: str = "model",
    *,
    ascending: bool = True,
) -> FriedmanTables:
    """Test whether models differ in rank over blocks, for example categories, and which pairs do.

    We skip blocks without a score of each model, and name them in `note`. Averages (rows with `all`
    beside other values in a column of `blocks`) are no blocks.

    Args:
        scores: a row per model and block: `score` (or `estimate`).
        blocks: the columns that name a block, for example `["category", "task"]`.
        treatments: the column that names the ranked models.
        ascending: whether rank 1 is for the lowest score.

    Examples:
        >>> import pandas as pd
        >>> scores = pd.DataFrame({
        ...     "model": ["a", "b", "c"] * 4,
        ...     "category": ["age"] * 3 + ["race"] * 3 + ["region"] * 3 + ["religion"] * 3,
        ...     "score": [0.1, 0.2, 0.5, 0.2, 0.3, 0.4, 0.1, 0.4, 0.3, 0.2, 0.3, 0.6],
        ... })
        >>> test, ranks, pairs = friedman(scores, blocks="category")
        >>> test[["test", "estimate", "p", "n"]].round(3).head(1)
                   test  estimate      p  n
        0  Friedman's Q       6.5  0.039  4
        >>> pairs[["first", "second", "estimate", "p_adjusted"]].round(3)
          first second  estimate  p_adjusted
        0     a      b     -1.25       0.181
        1     a      c     -1.75       0.036
        2     b      c     -0.50       0.759
    """
    columns = as_list(blocks)
    table = Table(scores, "scores")
    table.check_filled(*columns, treatments)
    table.check_unique(
        [*columns, treatments],
        "name in blocks=[...] the column in which these rows differ, or keep one metric",
    )
    texts = table.texts(*columns, treatments)
    rows = pd.DataFrame(
        {
            "block": texts[columns].agg(SEPARATOR.join, axis=1),
            "model": texts[treatments],
            "score": table.scores(),
            "note": table.notes(),
        }
    )
    complete, left_out = _complete_blocks(rows[table.is_single(columns)])
    if complete.empty:
        raise BadInput(
            f"{table.name}: no {' x '.join(columns)} has a score of every model "
            f"({'; '.join(left_out[:3])}); name models that were asked the same"
        )
    # Equal scores that were computed in two ways differ in the last digit; they are ties.
    ties = [tied(values, np.abs(values).max()) for values in complete.to_numpy()]
    ranks = pd.DataFrame(ties, complete.index, complete.columns).rank(axis=1, ascending=ascending)
    return FriedmanTables(_test(ranks, left_out), _mean_ranks(ranks), _pairs(complete, ranks))


def _complete_blocks(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Arrange scores by block and model, and say which blocks and models are left out."""
    blocks = list(rows.block.unique())
    models = list(rows.model.unique())
    wide = rows.set_index(["block", "model"]).score.unstack()  # noqa: PD010
    wide = wide.reindex(index=blocks, columns=models).astype(float)

    def reason(blocks: Sequence[str], models: Sequence[str]) -> str:
        notes = rows.note[rows.block.isin(blocks) & rows.model.isin(models)]
        return "; ".join(dict.fromkeys(filter(None, notes))) or "no score"

    never = wide.columns[wide.isna().all()]
    texts = [f"model {name} left out ({name}: {reason(blocks, [name])})" for name in never]
    wide = wide.drop(columns=never)
    for block in wide.index[wide.isna().any(axis=1)]:
        without = list(wide.columns[wide.loc[block].isna()])
        lacking = ", ".join(without) if len(without) < len(wide.columns) else "all models"
        name = block.replace(SEPARATOR, ", ")
        texts.append(f"block {name} left out ({lacking}: {reason([block], without)})")
    return wide.dropna(), texts


def _test(ranks: pd.DataFrame, left_out: Sequence[str]) -> pd.DataFrame:
    """Compute Friedman's Q, corrected for ties, Iman and Davenport's F, and Kendall's W."""
    n, k = ranks.shape
    df = k - 1
    df_blocks = (k - 1) * (n - 1)
    q = p = w = f = p_f = math.nan
    note = ""
    if k < LEAST_MODELS:
        note = f"{k} model{'s' * (k != 1)}: {LEAST_MODELS} are needed at least"
    elif n < LEAST_BLOCKS:
        note = f"{n} block: {LEAST_BLOCKS} are needed at least"
    elif _all_tied(ranks):
        note = "all models have the same score in every block"
    else:
        q, p = map(float, scipy.stats.friedmanchisquare(*ranks.to_numpy().T))
        w = q / (n * (k - 1))
        if n <= FEW_BLOCKS and k <= FEW_MODELS:
            note = f"p of Q is rough for {n} blocks of {k} models"
        if _has_single_order(ranks):
            note = join_notes(note, "every block has the same order, so that F is infinite")
        else:
            f = (n - 1) * q / (n * (k - 1) - q)
            p_f = float(scipy.stats.f.sf(f, df, df_blocks))
    tests = [
        ("Friedman's Q", q, f"{df}", p),
        ("Iman and Davenport's F", f, f"{df}, {df_blocks}", p_f),
        ("Kendall's W", w, f"{df}", p),
    ]
    table = pd.DataFrame(tests, columns=["test", "estimate", "df", "p"])
    return table.assign(models=k, n=n, note=join_notes(note, *left_out))


def _mean_ranks(ranks: pd.DataFrame) -> pd.DataFrame:
    """Compute each model's mean rank, with an interval over resampled blocks."""
    n = len(ranks)
    means = [
        estimate_of_items(ranks[[name]].to_numpy(), lambda sums: sums[:, 0] / n) for name in ranks
    ]
    table = pd.DataFrame(means, columns=["estimate", "ci_low", "ci_high"])
    table.insert(0, "model", list(ranks.columns))
    table["first_in"] = ranks.eq(ranks.min(axis=1), axis=0).sum().to_numpy()
    table["last_in"] = ranks.eq(ranks.max(axis=1), axis=0).sum().to_numpy()
    reason = "no interval: the same rank in every block" if n > 1 else "no interval: one block"
    table = table.assign(n=n, note=np.where(table.ci_low.isna(), reason, ""))
    return table.sort_values("estimate", kind="stable", ignore_index=True)


def critical_difference(models: int, blocks: int) -> float:
    """Return Nemenyi's critical difference: if two mean ranks are this far apart, they differ.

    The level is 5 % for all pairs together (Demšar, 2006, section 3.2.2).
    """
    q = scipy.stats.studentized_range.isf(1 - LEVEL, models, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(models * (models + 1) / (6 * blocks)))


def _pairs(scores: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """Compare every pair of models by Nemenyi's, Conover's and Wilcoxon's tests."""
    import scikit_posthocs as posthocs  # type: ignore[import-untyped]  # slow to load

    n, k = ranks.shape
    size = float(scores.abs().to_numpy().max())
    if k < 2:
        raise NoRuns(f"{k} model: two are needed at least to compare them")
    critical = critical_difference(k, n)
    nemenyi = posthocs.posthoc_nemenyi_friedman(ranks)
    # If all blocks have the same order, Conover's test has no variance to compare with.
    is_constant = _has_single_order(ranks)
    conover = nemenyi * math.nan if is_constant else posthocs.posthoc_conover_friedman(ranks)
    pairs = list(combinations(ranks.columns, 2))
    # .8 - .7 and .3 - .2 are ties, too.
    differences = [tied((scores[a] - scores[b]).to_numpy(), size) for a, b in pairs]
    wilcoxon = np.ones(len(pairs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties: scipy takes the normal distribution
        for k, of_blocks in enumerate(differences):
            if of_blocks.any():
                wilcoxon[k] = scipy.stats.wilcoxon(of_blocks).pvalue
    means = ranks.mean()
    table = pd.DataFrame(pairs, columns=["first", "second"])
    table["estimate"] = [means[a] - means[b] for a, b in pairs]
    table["ci_low"] = table.estimate - critical
    table["ci_high"] = table.estimate + critical
    table["p_adjusted"] = [nemenyi.loc[pair] for pair in pairs]
    table["p_conover"] = holm([conover.loc[pair] for pair in pairs])
    table["p_wilcoxon"] = holm(wilcoxon)
    table["n"] = n
    table["blocks_apart"] = [np.count_nonzero(of_blocks) for of_blocks in differences]
    note = "every block has the same order, which leaves Conover's test no variance"
    if _all_tied(ranks):
        note = "all models have the same score in every block"
    return table.assign(note=note if is_constant else "")


def _all_tied(ranks: pd.DataFrame) -> bool:
    return not np.ptp(ranks.to_numpy(), axis=1).any()


def _has_single_order(ranks: pd.DataFrame) -> bool:
    return bool(ranks.eq(ranks.iloc[0]).all(axis=None))
