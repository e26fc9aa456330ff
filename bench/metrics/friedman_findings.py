"""What a Friedman test found, in sentences made by rule; never stronger than the test."""

from itertools import combinations

import pandas as pd

from bench.metrics.bootstrap import LEVEL
from bench.metrics.findings import listing
from bench.metrics.friedman import CATEGORY, Blocks, Friedman, critical_difference

ALPHA = 1 - LEVEL
# The tests of pairs, by the column of their p.
PAIRWISE = {"p_nemenyi": "Nemenyi's test tells", "p_conover": "Conover's", "p_wilcoxon": "Wilcoxon's"}


def findings(found: Blocks, tested: Friedman, ranks: pd.DataFrame, compared: pd.DataFrame) -> list[str]:
    """What the test says of all models, of the first and the last, and of pairs; what was left out, and ties.

    Args:
        tested, ranks, compared: what `test`, `mean_ranks` and `pairs` of `bench.metrics.friedman` say of `found`.
    """
    return [
        _whole(found, tested),
        *([_ends(found, ranks)] if not tested.p >= ALPHA else []),
        _pairs(tested, compared),
        *_left_out(found),
        _ties(found, tested),
    ]


def title(found: Blocks, tested: Friedman, compared: pd.DataFrame) -> str:
    """What the diagram shows, in a line."""
    k, apart = tested.models, int((compared.p_nemenyi < ALPHA).sum())
    if tested.statistic != tested.statistic:
        return f"{k} models, ranked over {tested.blocks} {units(found)}"
    if tested.p >= ALPHA:
        return f"No difference between {k} models could be shown over {tested.blocks} {units(found)}"
    return f"{k} models differ over {tested.blocks} {units(found)}; {apart} of {len(compared)} pairs can be told apart"


def units(found: Blocks) -> str:
    """What the blocks are, in the plural."""
    return "categories" if found.by == CATEGORY else "cells of a category and task"


def best(found: Blocks) -> str:
    """What the first rank means."""
    return "least bias" if all(one.worse == "more bias" for one in found.headlines) else "best"


def p_told(p: float) -> str:
    """A p value in a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def order_can_show(blocks: int, compared: int) -> bool:
    """Whether Wilcoxon's test of so many blocks can tell any of so many pairs apart: its least p is 2 / 2^n."""
    return 2.0 ** (1 - blocks) * compared < ALPHA


def _whole(found: Blocks, tested: Friedman) -> str:
    k, n, unit = tested.models, tested.blocks, units(found)
    titles = [one.title.partition(" (")[0] for one in found.headlines]
    measure = f"By “{titles[0]}”" if len(titles) == 1 else f"By the scores of {len(titles)} tasks"
    if tested.statistic != tested.statistic:
        return f"{measure}, Friedman's test is undefined for {k} models over {n} {unit}: {tested.note}."
    around = f"Friedman's Q = {tested.statistic:.1f} with {tested.df} degrees of freedom, {p_told(tested.p)}"
    if tested.iman_davenport == tested.iman_davenport:
        around += (
            f"; Iman and Davenport's F = {tested.iman_davenport:.1f} with {tested.df} and {tested.df_blocks}, "
            f"{p_told(tested.p_iman_davenport)}"
        )
    w = f"Kendall's W is {tested.kendall_w:.2f}, where 1 is the same order in all {n} {unit}"
    if tested.p < ALPHA:
        return f"{measure}, the {k} models differ over {n} {unit} ({around}). {w}."
    told = (
        f"{measure}, no difference between the {k} models could be shown over {n} {unit} ({around}). {w}. "
        f"Two mean ranks would have to lie {critical_difference(k, n):.1f} of at most {k - 1} apart."
    )
    if tested.p_iman_davenport < ALPHA:
        told += " The two tests do not agree: the second, which is less timid, does show one."
    return told


def _ends(found: Blocks, ranks: pd.DataFrame) -> str:
    first, last = ranks.iloc[0], ranks.iloc[-1]
    return f"By mean rank {_rank(first)} stands first, which is {best(found)}, and {_rank(last)} last."


def _rank(row: pd.Series) -> str:
    around = "" if row.ci_low != row.ci_low else f"; 95\u00a0% interval {row.ci_low:.1f} to {row.ci_high:.1f}"
    return f"{row.model} ({row.mean_rank:.1f}{around})"


def _pairs(tested: Friedman, compared: pd.DataFrame) -> str:
    n, pairs, counts, undefined = tested.blocks, len(compared), [], ""
    for column, name in PAIRWISE.items():
        p = compared[column]
        if p.isna().all():
            undefined = f" {name} is undefined: {compared.note.iloc[0]}."
        else:
            counts.append(f"{name} {int((p < ALPHA).sum()) or 'none'}")
    told = (
        f"Of {'the one pair' if pairs == 1 else f'{pairs} pairs'} of models, {listing(counts)} apart at 5\u00a0%, adjusted for all pairs. For Nemenyi's, "
        f"mean ranks have to lie {critical_difference(tested.models, n):.2f} apart.{undefined}"
    )
    if not order_can_show(n, pairs):
        told += f" With {n} blocks and {pairs} pairs, Wilcoxon's test could not have told any apart."
    if tested.p >= ALPHA:
        told += " Where the test of all models shows nothing, its pairs are no finding."
    return told


def _left_out(found: Blocks) -> list[str]:
    models = found.left_out[found.left_out.what == "model"]
    blocks = found.left_out[found.left_out.what == "block"]
    told = [f"{row.name_} is left out: {row.why}." for row in models.rename(columns={"name": "name_"}).itertuples()]  # fmt: skip
    n, all_ = len(blocks), len(blocks) + len(found.scores)
    if not n:
        return [*told, f"No block is left out: all {all_} have a score of every model."]
    several = len(set(blocks.lacking)) > 1
    reasons = [
        f"{f'{len(some)} ' if several else ''}for want of a score of {lacking} ({_brief(list(dict.fromkeys(some.why)))})"
        for lacking, some in blocks.groupby("lacking", sort=False)
    ]
    sentence = f"{n} of {all_} {units(found)} {'is' if n == 1 else 'are'} left out{':' if several else ''} {listing(reasons)}."
    lone = blocks.lacking[blocks.lacking.isin(found.scores.columns)].value_counts()
    if len(lone):
        sentence += f" Without {lone.index[0]}, {lone.iloc[0]} more would count."
    return [*told, sentence]


def _brief(reasons: list[str]) -> str:
    return (
        reasons[0]
        if len(reasons) == 1
        else f"{reasons[0]}; and {len(reasons) - 1} more reasons, see the table"
    )


def _ties(found: Blocks, tested: Friedman) -> str:
    if not tested.tied_blocks:
        return "No two models share a score in any block."
    shared = [
        f"{one} and {other} in {count}"
        for count, one, other in sorted(
            (
                (int((found.scores[one] == found.scores[other]).sum()), one, other)
                for one, other in combinations(found.scores.columns, 2)
            ),
            key=lambda row: -row[0],
        )[:1]
    ]
    return (
        f"In {tested.tied_blocks} of {tested.blocks} blocks models share a score ({tested.tied_scores} scores in all; most often "
        f"{shared[0]}); they share the mean of their ranks, and Q is corrected for it."
    )
