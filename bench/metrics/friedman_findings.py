"""What a Friedman test found, in sentences made by rule; never stronger than the test."""

import math
from itertools import combinations

import pandas as pd

from bench.core.i18n import N_, _, note, sentences
from bench.metrics.bootstrap import LEVEL
from bench.metrics.friedman import CATEGORY, Blocks, Friedman, critical_difference
from bench.metrics.headline import listing, short_title
from bench.metrics.significance import p_told

ALPHA = 1 - LEVEL
# The tests of pairs, by the column of their p.
PAIRWISE = {
    "p_nemenyi": N_("Nemenyi's test tells"),
    "p_conover": N_("Conover's"),
    "p_wilcoxon": N_("Wilcoxon's"),
}


def findings(
    found: Blocks, tested: Friedman, ranks: pd.DataFrame, compared: pd.DataFrame
) -> list[str]:
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
    of, apart = _of(found, tested), int((compared.p_nemenyi < ALPHA).sum())
    if tested.statistic != tested.statistic:
        return _("{k} models, ranked over {n} {units}", **of)
    if tested.p >= ALPHA:
        return _("No difference between {k} models could be shown over {n} {units}", **of)
    of |= {"apart": apart, "pairs": len(compared)}
    return _("{k} models differ over {n} {units}; {apart} of {pairs} pairs can be told apart", **of)


def units(found: Blocks) -> str:
    """What the blocks are, in the plural."""
    return _("categories") if found.by == CATEGORY else _("cells of a category and task")


def best(found: Blocks) -> str:
    """What the first rank means."""
    return _("least bias") if is_bias(found) else _("best")


def is_bias(found: Blocks) -> bool:
    """Whether a rank is one of bias, in every headline that it rests on."""
    return all(one.worse == "more bias" for one in found.headlines)


def order_can_show(blocks: int, compared: int) -> bool:
    """Whether Wilcoxon's test of so many blocks can tell any of so many pairs apart: its least p is 2 / 2^n."""
    return 2.0 ** (1 - blocks) * compared < ALPHA


def _of(found: Blocks, tested: Friedman) -> dict[str, object]:
    """How many models, over how many blocks of what."""
    return {"k": tested.models, "n": tested.blocks, "units": units(found)}


def _whole(found: Blocks, tested: Friedman) -> str:
    k, n, of = tested.models, tested.blocks, _of(found, tested)
    titles = [short_title(one) for one in found.headlines]
    of["measure"] = (
        _("By “{title}”", title=titles[0])
        if len(titles) == 1
        else _("By the scores of {n} tasks", n=len(titles))
    )
    if tested.statistic != tested.statistic:
        why = note(tested.note)
        return _(
            "{measure}, Friedman's test is undefined for {k} models over {n} {units}: {why}.",
            why=why,
            **of,
        )
    around = [
        _(
            "Friedman's Q = {q} with {df} degrees of freedom, {p}",
            q=f"{tested.statistic:.1f}",
            df=tested.df,
            p=p_told(tested.p),
        )
    ]
    if tested.iman_davenport == tested.iman_davenport:
        around.append(
            _(
                "Iman and Davenport's F = {f} with {df} and {df_blocks}, {p}",
                f=f"{tested.iman_davenport:.1f}",
                df=tested.df,
                df_blocks=tested.df_blocks,
                p=p_told(tested.p_iman_davenport),
            )
        )
    of["around"] = _("; ").join(around)
    w = _(
        "Kendall's W is {w}, where 1 is the same order in all {n} {units}.",
        w=f"{tested.kendall_w:.2f}",
        n=n,
        units=of["units"],
    )
    if tested.p < ALPHA:
        return sentences(
            [_("{measure}, the {k} models differ over {n} {units} ({around}).", **of), w]
        )
    told = [
        _(
            "{measure}, no difference between the {k} models could be shown over {n} {units} ({around}).",
            **of,
        ),
        w,
    ]
    cd = critical_difference(k, n)
    if cd > k - 1:
        told.append(
            _(
                "So few {units} cannot tell {k} models apart by their mean ranks.",
                units=of["units"],
                k=k,
            )
        )
    else:
        told.append(
            _(
                "Two mean ranks would have to lie {cd} of at most {most} apart.",
                cd=f"{cd:.1f}",
                most=k - 1,
            )
        )
    if tested.p_iman_davenport < ALPHA:
        told.append(
            _("The two tests do not agree: the second, which is less timid, does show one.")
        )
    if tested.note and not tested.tied_blocks:
        exact = p_told(math.factorial(k) ** (1 - n))
        told.append(
            _(
                "Yet all have the same order, which models that are alike would reach with {p}: so few are too few for Friedman's p.",
                p=exact,
            )
        )
    return sentences(told)


def _ends(found: Blocks, ranks: pd.DataFrame) -> str:
    first, last = ranks.iloc[0], ranks.iloc[-1]
    return _(
        "By mean rank {first} stands first, which is {best}, and {last} last.",
        first=_rank(first),
        best=best(found),
        last=_rank(last),
    )


def _rank(row: pd.Series) -> str:
    around = [f"{row.mean_rank:.1f}"]
    if row.ci_low == row.ci_low:
        around.append(
            _(
                "95\u00a0% interval {low} to {high}",
                low=f"{row.ci_low:.1f}",
                high=f"{row.ci_high:.1f}",
            )
        )
    return _("{what} ({more})", what=row.model, more=_("; ").join(around))


def _pairs(tested: Friedman, compared: pd.DataFrame) -> str:
    n, pairs, counts, told = tested.blocks, len(compared), [], [""]
    for column, name in PAIRWISE.items():
        p = compared[column]
        if p.isna().all():
            told.append(
                _("{test} is undefined: {why}.", test=_(name), why=note(compared.note.iloc[0]))
            )
        else:
            apart, test = int((p < ALPHA).sum()), _(name)
            counts.append(
                _("{test} {n}", test=test, n=apart) if apart else _("{test} none", test=test)
            )
    found = listing(counts)
    told[0] = sentences(
        [
            _(
                "Of the one pair of models, {found} apart at 5\u00a0%, adjusted for all pairs.",
                found=found,
            )
            if pairs == 1
            else _(
                "Of {pairs} pairs of models, {found} apart at 5\u00a0%, adjusted for all pairs.",
                pairs=pairs,
                found=found,
            ),
            _(
                "For Nemenyi's, mean ranks have to lie {cd} apart.",
                cd=f"{critical_difference(tested.models, n):.2f}",
            ),
        ]
    )
    if not order_can_show(n, pairs):
        told.append(
            _(
                "With {n} blocks and {pairs} pairs, Wilcoxon's test could not have told any apart.",
                n=n,
                pairs=pairs,
            )
        )
    if tested.p >= ALPHA:
        told.append(_("Where the test of all models shows nothing, its pairs are no finding."))
    return sentences(told)


def _left_out(found: Blocks) -> list[str]:
    models = found.left_out[found.left_out.what == "model"]
    blocks = found.left_out[found.left_out.what == "block"]
    told = [
        _("{name} is left out: {why}.", name=row["name"], why=note(row["why"]))
        for row in models.to_dict("records")
    ]
    n, all_ = len(blocks), len(blocks) + len(found.scores)
    if not n:
        return [*told, _("No block is left out: all {n} have a score of every model.", n=all_)]
    several = len(set(blocks.lacking)) > 1
    reasons = [
        _wanting(str(lacking), list(dict.fromkeys(some.why)), len(some) if several else 0)
        for lacking, some in blocks.groupby("lacking", sort=False)
    ]
    of = {"n": n, "all": all_, "units": units(found), "reasons": listing(reasons)}
    if several:
        sentence = _("{n} of {all} {units} are left out: {reasons}.", **of)
    elif n == 1:
        sentence = _("{n} of {all} {units} is left out {reasons}.", **of)
    else:
        sentence = _("{n} of {all} {units} are left out {reasons}.", **of)
    lone = blocks.lacking[blocks.lacking.isin(found.scores.columns)].value_counts()
    more = (
        _("Without {model}, {n} more would count.", model=lone.index[0], n=lone.iloc[0])
        if len(lone)
        else ""
    )
    return [*told, sentences([sentence, more])]


def _wanting(lacking: str, reasons: list[str], n: int) -> str:
    """Whose score is missing, and why; in how many blocks, where that has to be said."""
    of = {"models": _("all models") if lacking == "all models" else lacking, "why": _brief(reasons)}
    if n:
        return _("{n} for want of a score of {models} ({why})", n=n, **of)
    return _("for want of a score of {models} ({why})", **of)


def _brief(reasons: list[str]) -> str:
    first = note(reasons[0])
    if len(reasons) == 1:
        return first
    return _("{why}; and {n} more reasons, see the table", why=first, n=len(reasons) - 1)


def _ties(found: Blocks, tested: Friedman) -> str:
    if not tested.tied_blocks:
        return _("No two models share a score in any block.")
    counts = [
        (int((found.scores[one] == found.scores[other]).sum()), one, other)
        for one, other in combinations(found.scores.columns, 2)
    ]
    most, first, second = max(counts, key=lambda row: row[0])
    return _(
        "In {n} of {all} blocks models share a score ({scores} scores in all; most often {first} and {second} in {most}); they share "
        "the mean of their ranks, and Q is corrected for it.",
        n=tested.tied_blocks,
        all=tested.blocks,
        scores=tested.tied_scores,
        first=first,
        second=second,
        most=most,
    )
