"""Are several models different at all: Friedman's test over blocks such as categories, and which of them differ.

Within each block the models are ranked, 1 for the one that shows least bias; a difference that is found in block after block
is hardly chance (Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006).

    found = blocks(bench.run.results.table(runs), "mcbe")
    test(found), pairs(found), mean_ranks(found)
"""

import math
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns, expected
from bench.metrics.bootstrap import LEVEL, estimate, resample
from bench.metrics.correlation import NOISE
from bench.metrics.headline import headline_rows
from bench.metrics.headline import headlines as headlines_of
from bench.metrics.significance import holm
from bench.metrics.table import ALL, Card, Headline

# What a block is, as the notebook's parameter names it.
CATEGORY, CELL = "category", "category x task"
# scipy's test needs so many models; two are compared by bench.metrics.significance.
LEAST_MODELS = 3
LEAST_BLOCKS = 2
CARDS = (
    Card(
        "friedman",
        "whether the models' ranks differ more from block to block than chance would have it; with few blocks its p is rough",
        "Q = 12 / (n k (k + 1)) sum R_j^2 - 3 n (k + 1), corrected for ties; chi2 with k - 1 degrees of freedom",
        "Friedman, 1937; scipy",
        "0 to n (k - 1)",
        "none: 0 is no difference",
    ),
    Card(
        "iman_davenport",
        "the same with an F distribution, which is less timid",
        "F = (n - 1) Q / (n (k - 1) - Q); k - 1 and (k - 1) (n - 1) degrees of freedom",
        "Iman and Davenport, 1980",
        "0 or more",
        "none",
    ),
    Card(
        "kendall_w",
        "how much the blocks agree about the order of the models",
        "W = Q / (n (k - 1))",
        "Kendall and Babington Smith, 1939",
        "0 to 1",
        "none: 1 is the same order in every block",
    ),
    Card(
        "nemenyi",
        "pairs of models by their mean ranks, for all pairs at once; they differ beyond the critical difference",
        "CD = q_0.05(k) sqrt(k (k + 1) / (6 n))",
        "Nemenyi, 1963; scikit-posthocs",
        "p",
        "none",
    ),
    Card(
        "conover",
        "pairs by their rank sums with a t distribution, Holm's adjustment; bolder than Nemenyi's",
        "t of rank sums over the variance that the blocks leave",
        "Conover and Iman, 1979; scikit-posthocs",
        "p",
        "none",
    ),
    Card(
        "wilcoxon",
        "pairs by the ranks of their differences in score, the other models aside, Holm's adjustment",
        "signed-rank statistic; blocks without a difference are left out",
        "Wilcoxon, 1945; scipy",
        "p",
        "none",
    ),
)


class Blocks(NamedTuple):
    """Scores of models over blocks, those that are complete.

    Attributes:
        scores: float64, a row a block, a column a model.
        ranks: the same shape; 1 shows least bias, ties share the mean of their ranks.
        by: what a block is.
        left_out: columns `what` (`block` or `model`), `name`, `lacking` (the models without a score), `why`.
        headlines: what the scores are, one for all blocks or one a task.
    """

    by: str
    scores: pd.DataFrame
    ranks: pd.DataFrame
    left_out: pd.DataFrame
    headlines: list[Headline]


class Friedman(NamedTuple):
    """Friedman's test, with Kendall's W and Iman and Davenport's F; NaN where undefined, and `note` says why.

    Attributes:
        models, blocks: k and n.
        df, df_blocks: degrees of freedom, k - 1 and (k - 1) (n - 1).
        tied_blocks, tied_scores: blocks in which models share a score, and how many scores are shared.
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


def blocks(
    scores: pd.DataFrame, benchmark: str, by: str = CATEGORY, task: str = "", metric: str = ""
) -> Blocks:
    """The scores of every model in every block.

    A model without any score is left out, then a block in which a model has none.

    Args:
        scores: score tables with a column `model` (`bench.run.results.table`); their first preset counts.
        by: `category`: a block a category, by one headline; `category x task`: one a category and task, by each task's own.
        task, metric: the headline that counts; the benchmark's first if empty. With `category x task` only these tasks.

    Raises:
        BadInput: an unknown kind of block or headline.
        NoRuns: there is no block that all models have.
    """
    headlines = _headlines(scores, benchmark, by, task, metric)
    found = pd.concat([headline_rows(scores, one) for one in headlines], ignore_index=True)
    found = found[found.category != ALL]
    twice = found.model[found.duplicated(["model", "category", "task"])]
    if len(twice):
        raise BadInput(
            f"{twice.iloc[0]} is there with several runs on {benchmark}; name one run of each model, not a pattern of all"
        )
    models = list(dict.fromkeys(scores.model))
    names = found.category if by == CATEGORY else found.category + ", " + found.task
    found = found.assign(block=names)
    wide = found.set_index(["block", "model"]).score.unstack()  # noqa: PD010  # a score that is no number stays one
    wide = wide.reindex(index=list(dict.fromkeys(found.block)), columns=models).astype(float)
    why = found.set_index(["block", "model"]).note
    gone = [
        ("model", name, name, _why(why, list(wide.index), [name]) or "asked none of these tasks")
        for name in models
        if wide[name].isna().all()
    ]
    wide = wide.drop(columns=[name for _, name, *_ in gone])
    for name in wide.index[wide.isna().any(axis=1)]:
        without = list(wide.columns[wide.loc[name].isna()])
        lacking = ", ".join(without) if len(without) < len(wide.columns) else "all models"
        gone.append(("block", name, lacking, _why(why, [name], without) or "not asked"))
    left_out = pd.DataFrame(gone, columns=["what", "name", "lacking", "why"])
    wide = wide.dropna()
    if wide.empty:
        reasons = "; ".join(
            f"{name} ({lacking}): {reason}" for _, name, lacking, reason in gone[:3]
        )
        raise NoRuns(
            f"{benchmark}: no {by} has a score of every model ({reasons or 'no scores by category'}); "
            "name models that were asked the same"
        )
    # A score that two models reach in two ways differs in the last digit; that is a tie.
    tidy = wide.round(round(-math.log10(NOISE)))
    signs = [1 if one.biased_is_high else -1 for one in headlines]
    by_task = {one.task: sign for one, sign in zip(headlines, signs, strict=True)}
    tasks = found.drop_duplicates("block").set_index("block").task.reindex(tidy.index)
    ranks = tidy.mul(tasks.map(by_task), axis=0).rank(axis=1)
    used = [one for one in headlines if one.task in set(tasks)]
    return Blocks(by, tidy, ranks, left_out, used)


def test(found: Blocks) -> Friedman:
    """Friedman's test of `found`, corrected for ties."""
    ranks = found.ranks.to_numpy()
    n, k = ranks.shape
    shared = ranks_shared(found.ranks)
    ties = int((shared > 0).sum()), int(shared.sum())
    note = ""
    if k < LEAST_MODELS:
        note = f"{k} model{'s' * (k != 1)}: {LEAST_MODELS} are needed at least"
    elif n < LEAST_BLOCKS:
        note = f"{n} block: {LEAST_BLOCKS} are needed at least"
    elif (np.ptp(ranks, axis=1) == 0).all():
        note = "all models have the same score in every block"
    if note:
        nan = math.nan
        return Friedman(k, n, nan, k - 1, nan, nan, nan, (k - 1) * (n - 1), nan, *ties, note)
    q, p = (float(value) for value in scipy.stats.friedmanchisquare(*ranks.T))
    w = q / (n * (k - 1))
    df = (k - 1, (k - 1) * (n - 1))
    if (ranks == ranks[0]).all():
        f, p_f, note = math.nan, math.nan, "every block has the same order, so that F is infinite"
    else:
        f = (n - 1) * q / (n * (k - 1) - q)
        p_f = float(scipy.stats.f.sf(f, *df))
    return Friedman(k, n, q, df[0], p, w, f, df[1], p_f, *ties, note)


def as_table(tested: Friedman) -> pd.DataFrame:
    """A row a statistic: `test`, `statistic`, `df`, `p`, `models`, `blocks`, `note`."""
    rows = [
        ("Friedman's Q", tested.statistic, f"{tested.df}", tested.p),
        (
            "Iman and Davenport's F",
            tested.iman_davenport,
            f"{tested.df}, {tested.df_blocks}",
            tested.p_iman_davenport,
        ),
        ("Kendall's W", tested.kendall_w, f"{tested.df}", tested.p),
    ]
    return pd.DataFrame(rows, columns=["test", "statistic", "df", "p"]).assign(
        models=tested.models, blocks=tested.blocks, note=tested.note
    )


def ties(found: Blocks) -> pd.DataFrame:
    """Which models share a score where: `block`, `score`, `models`."""
    rows = [
        {"block": block, "score": float(str(score)), "models": ", ".join(some.index)}
        for block, row in found.scores.iterrows()
        for score, some in row.groupby(row)
        if len(some) > 1
    ]
    return pd.DataFrame(rows, columns=["block", "score", "models"])


def overall(scores: pd.DataFrame, found: Blocks) -> pd.DataFrame:
    """The scores over all categories of the headlines that were ranked, and what stands beside them."""
    rows = pd.concat([headline_rows(scores, one) for one in found.headlines])
    columns = [
        "model",
        "task",
        "metric",
        "score",
        "ci_low",
        "ci_high",
        "n",
        "valid_rate",
        "baseline",
        "note",
    ]
    return rows.loc[rows.category == ALL, columns].reset_index(drop=True)


def ranks_shared(ranks: pd.DataFrame) -> pd.Series:
    """How many models share their rank with another, by block."""
    return ranks.apply(lambda row: int(row.duplicated(keep=False).sum()), axis=1).astype(int)


def mean_ranks(found: Blocks) -> pd.DataFrame:
    """Each model's mean rank with the interval of drawing the blocks again, least bias first.

    Returns:
        Columns `model`, `mean_rank`, `ci_low`, `ci_high` (NaN with a single block), `first_in` and `last_in` (blocks
        where no other shows less, or more), and `blocks`.
    """
    models, n = list(found.ranks.columns), len(found.ranks)
    columns = [str(k) for k in range(len(models))]
    rows = pd.DataFrame(found.ranks.to_numpy(), columns=columns).assign(stratum=ALL, block=range(n))
    drawn = resample(rows, "stratum", "block", columns)
    least, most = found.ranks.min(axis=1), found.ranks.max(axis=1)
    table = [
        {
            "model": model,
            "mean_rank": value.value,
            "ci_low": value.low,
            "ci_high": value.high,
            "first_in": int((found.ranks[model] == least).sum()),
            "last_in": int((found.ranks[model] == most).sum()),
            "blocks": n,
        }
        for k, model in enumerate(models)
        for value in [estimate(drawn, partial(_mean_rank, k, n))]
    ]
    return pd.DataFrame(table).sort_values("mean_rank", kind="stable", ignore_index=True)


def _mean_rank(model: int, blocks: int, sums: np.ndarray) -> np.ndarray:
    return sums[:, 0, model] / blocks


def critical_difference(models: int, blocks: int) -> float:
    """The distance from which on two mean ranks differ at 5 %, all pairs at once (Nemenyi; Demšar, 2006, section 3.2.2)."""
    q = scipy.stats.studentized_range.isf(1 - LEVEL, models, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(models * (models + 1) / (6 * blocks)))


def pairs(found: Blocks) -> pd.DataFrame:
    """Every pair of models, by three tests.

    Returns:
        Columns `first`, `second`, `rank_difference` (first less second; below 0 the first shows less bias), `ci_low` and
        `ci_high` (this less and plus the critical difference, for all pairs at once), `p_nemenyi`, `p_conover` and
        `p_wilcoxon` (the last two adjusted by Holm's method), `blocks`, `blocks_apart` (those
        in which the two differ), and `note`.
    """
    import scikit_posthocs as posthocs  # type: ignore[import-untyped]  # slow to load

    ranks, (n, k) = found.ranks, found.ranks.shape
    if k < 2:
        raise NoRuns(f"{k} model: two are needed at least to compare them")
    cd = critical_difference(k, n)
    nemenyi = posthocs.posthoc_nemenyi_friedman(ranks)
    # Where all blocks have the same order, no variance is left to hold a difference against.
    constant = bool((ranks.to_numpy() == ranks.to_numpy()[0]).all())
    conover = None if constant else posthocs.posthoc_conover_friedman(ranks)
    rows = []
    for first, second in combinations(ranks.columns, 2):
        apart = float(ranks[first].mean() - ranks[second].mean())
        less = found.scores[first] - found.scores[second]
        rows.append(
            {
                "first": first,
                "second": second,
                "rank_difference": apart,
                "ci_low": apart - cd,
                "ci_high": apart + cd,
                "p_nemenyi": float(nemenyi.loc[first, second]),
                "p_conover": math.nan if conover is None else float(conover.loc[first, second]),
                "p_wilcoxon": _wilcoxon(less.to_numpy()),
                "blocks": n,
                "blocks_apart": int((less != 0).sum()),
                "note": "every block has the same order, which leaves Conover's test no variance"
                if constant
                else "",
            }
        )
    table = pd.DataFrame(rows)
    for name in ("p_conover", "p_wilcoxon"):
        table[name] = holm(table[name].to_numpy())
    return table


def _wilcoxon(less: np.ndarray) -> float:
    """p of the signed-rank test; 1 where nothing differs."""
    if not less.any():
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties, for which scipy takes the normal distribution
        return float(scipy.stats.wilcoxon(less).pvalue)


def _headlines(
    scores: pd.DataFrame, benchmark: str, by: str, task: str, metric: str
) -> list[Headline]:
    own: tuple[Headline, ...] = module("metrics", benchmark).HEADLINES
    if by not in (CATEGORY, CELL):
        raise BadInput(expected(by, (CATEGORY, CELL), "kind of block"))
    every = headlines_of(scores, benchmark) if len(scores) else list(own)
    fit = [
        one
        for one, name in zip(every, own, strict=True)
        if task in ("", one.task) and metric in ("", one.metric, name.metric)
    ]
    if not fit:
        have = ", ".join(f"{one.task} {one.metric}" for one in own)
        raise BadInput(
            f"{benchmark}: task {task!r}, metric {metric!r}: is no headline; allowed: {have}"
        )
    if by == CATEGORY:
        return fit[:1]
    cells = [one for one in fit if one.task != ALL]
    if not cells:
        raise BadInput(f"{benchmark}: has no headline of a single task; take blocks = {CATEGORY!r}")
    return list({one.task: one for one in reversed(cells)}.values())[::-1]


def _why(notes: pd.Series, blocks: Iterable[str], models: list[str]) -> str:
    """The reasons that stand beside missing scores, each once."""
    levels = notes.index.get_level_values
    chosen = levels("block").isin(blocks) & levels("model").isin(models)
    return "; ".join(dict.fromkeys(note for note in notes[chosen] if note))
