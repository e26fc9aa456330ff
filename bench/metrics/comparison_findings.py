"""What a comparison of models found, in sentences made by rule; never stronger than the tests."""

from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.core import i18n
from bench.metrics.bootstrap import LEVEL
from bench.metrics.comparison import DIFFERENT, named
from bench.metrics.headline import listing, range_text, short_title
from bench.metrics.readability import LESS_READABLE

# So many pairs that could not be told apart are named; of more, their number is.
NAMED = 3


def findings(pairs: pd.DataFrame, ranks: pd.DataFrame, benchmark: str) -> list[str]:
    """A sentence or two a headline score: who is best as far as the tests can tell, and which pairs cannot be told apart.

    Args:
        pairs, ranks: results of `bench.metrics.comparison.pairs` and `ranks`.
    """
    sentences = []
    for headline in module("metrics", benchmark).HEADLINES:
        some, order = (
            table[(table.task == headline.task) & (table.metric == headline.metric)]
            for table in (pairs, ranks)
        )
        if len(some):
            models = len(set(some.model_a) | set(some.model_b))
            said = [_best(order, models), _apart(some, named(headline.task, headline.metric))]
            told = {"title": short_title(headline), "said": i18n.sentences(said)}
            sentences.append(i18n._("{title}. {said}", **told))
    return sentences


def on_benchmark(
    benchmark: str, pairs: pd.DataFrame, ranks: pd.DataFrame, common: int
) -> list[str]:
    """The findings on a benchmark, and what they rest on.

    Args:
        common: answers that could be read of all models.
    """
    models, title = len(set(pairs.model_a) | set(pairs.model_b)), module("data", benchmark).TITLE
    if common:
        rests = i18n._(
            "Of all {models} models, {n} answers in common could be read.",
            models=models,
            n=f"{common:,}",
        )
    elif models:
        rests = i18n._(
            "{models} models have no readable answer in common, so there are no ranks.",
            models=models,
        )
    else:
        rests = i18n._("No two models were asked the same, so none are compared.")
    return [
        i18n._("{title}: {sentence}", title=title, sentence=sentence)
        for sentence in [*findings(pairs, ranks, benchmark), rests]
    ]


def _best(order: pd.DataFrame, models: int) -> str:
    """Who may have the first rank, of those that have a score."""
    if len(order) < 2 or order.ranks_from.isna().any():
        return ""
    first, leader = order[order.ranks_from == 1], order[order["rank"] == 1].iloc[0]
    if leader.habit:
        informed = order[order.habit == ""].sort_values("rank")
        told = i18n._(
            "{model} has the best score by habit alone: {why}.",
            model=leader.model,
            why=i18n.note(leader.habit),
        )
        if informed.empty:
            return told
        best = informed.model.iloc[0]
        return i18n.sentences(
            [told, i18n._("Of the others, {model} has the best score.", model=best)]
        )
    if len(first) == 1:
        if len(order) < models:
            return i18n._(
                "{model} has the best score, ahead of every other model with a score.",
                model=leader.model,
            )
        return i18n._("{model} has the best score, ahead of every other model.", model=leader.model)
    others = [name for name in first.model if name != leader.model]
    if len(others) == len(order) - 1:
        return i18n._("Any of the models could be the best.")
    return i18n._(
        "{model} has the best score, and cannot be told from {others}.",
        model=leader.model,
        others=listing(others),
    )


def _size(row: dict[Any, Any]) -> str:
    """A difference that was not shown, and which one would have been."""
    found = f"{abs(row['difference']):.2f}"
    if row["detectable"] > 0:
        return i18n._(
            "{found} found; {size} would have been shown",
            found=found,
            size=f"{row['detectable']:.2f}",
        )
    return i18n._("{found} found", found=found)


def _apart(some: pd.DataFrame, what: str) -> str:
    """How many pairs were told apart, and which were not."""
    tests = some[some.p_adjusted.notna()]
    shown = tests[tests.verdict == DIFFERENT]
    unread = some[some.verdict == LESS_READABLE]
    rest = tests.drop(shown.index).drop(unread.index, errors="ignore")
    gaps = some[some.p_adjusted.isna()].drop(unread.index, errors="ignore")
    parts = []
    if len(tests) > 1:
        counts = {"n": len(shown), "all": len(tests), "what": what, "p": f"{1 - LEVEL:.2f}"}
        parts.append(
            i18n._("{n} of {all} pairs could be told apart in {what} (adjusted p < {p}).", **counts)
        )
    if len(some) == 1 and not len(gaps):
        return i18n.sentences([*parts, *some.sentence])
    if len(tests) == 1 and len(shown):
        parts += list(shown.sentence)
    elif len(rest):
        parts.append(_hidden(rest))
    if len(unread):
        parts.append(_unread(unread))
    if len(gaps):
        n, why = len(gaps), i18n.note(gaps.note.iloc[0])
        parts.append(
            i18n._("{n} pair could not be compared: {why}.", n=n, why=why)
            if n == 1
            else i18n._("{n} pairs could not be compared: {why}.", n=n, why=why)
        )
    return i18n.sentences(parts)


def _unread(unread: pd.DataFrame) -> str:
    """Which pairs differ in how often they can be read, or how many."""
    if len(unread) > NAMED:
        return i18n._(
            "In {n} pairs, what differs is how often the models can be read.", n=len(unread)
        )
    between = [
        i18n._(
            "{first} ({share}) and {second} ({other})",
            first=row["model_a"],
            second=row["model_b"],
            share=f"{row['readable_a']:.0%}",
            other=f"{row['readable_b']:.0%}",
        )
        for row in unread.to_dict("records")
    ]
    return i18n._(
        "What differs between {pairs} is how many of the answers can be read.",
        pairs=listing(between),
    )


def _hidden(rest: pd.DataFrame) -> str:
    """Which pairs were not told apart, or how many, and what these data would have shown."""
    if len(rest) <= NAMED:
        between = [
            i18n._(
                "{first} and {second} ({size})",
                first=row["model_a"],
                second=row["model_b"],
                size=_size(row),
            )
            for row in rest.to_dict("records")
        ]
        return i18n._("No difference could be shown between {pairs}.", pairs=listing(between))
    known = rest.detectable[rest.detectable > 0]
    if known.empty:
        return i18n._("No difference could be shown in {n}.", n=len(rest))
    sizes = range_text(f"{known.min():.2f}", f"{known.max():.2f}")
    return i18n._(
        "No difference could be shown in {n}; these data would have shown one of {sizes}.",
        n=len(rest),
        sizes=sizes,
    )
