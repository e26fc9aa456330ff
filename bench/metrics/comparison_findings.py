"""What a comparison of models found, in sentences made by rule; never stronger than the tests."""

from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.metrics.bootstrap import LEVEL
from bench.metrics.comparison import named
from bench.metrics.findings import listing

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
            title = headline.title.partition(" (")[0]
            models = len(set(some.model_a) | set(some.model_b))
            said = [_best(order, models), _apart(some, named(headline.task, headline.metric))]
            sentences.append(f"{title}. {' '.join(filter(None, said))}")
    return sentences


def on_benchmark(benchmark: str, pairs: pd.DataFrame, ranks: pd.DataFrame, common: int) -> list[str]:
    """The findings on a benchmark, and what they rest on.

    Args:
        common: answers that all models gave.
    """
    models, title = len(set(pairs.model_a) | set(pairs.model_b)), module("data", benchmark).TITLE
    rests = f"{models} models gave {common:,} answers in common" if common else f"{models} models have no answer in common, so there are no ranks"  # fmt: skip
    return [f"{title}: {sentence}" for sentence in [*findings(pairs, ranks, benchmark), f"{rests}."]]


def _best(order: pd.DataFrame, models: int) -> str:
    """Who may have the first rank, of those that have a score."""
    if len(order) < 2 or order.ranks_from.isna().any():
        return ""
    first, leader = order[order.ranks_from == 1], order[order["rank"] == 1].iloc[0]
    if len(first) == 1:
        return f"{leader.model} has the best score, ahead of every other model{' with a score' * (len(order) < models)}."
    others = [name for name in first.model if name != leader.model]
    if len(others) == len(order) - 1:
        return "Any of the models could be the best."
    return f"{leader.model} has the best score, and cannot be told from {listing(others)}."


def _size(row: dict[Any, Any]) -> str:
    """A difference that was not shown, and which one would have been."""
    would = f"; {row['detectable']:.2f} would have been shown" * (row["detectable"] > 0)
    return f"{abs(row['difference']):.2f} found{would}"


def _apart(some: pd.DataFrame, what: str) -> str:
    """How many pairs were told apart, and which were not."""
    tests = some[some.p_adjusted.notna()]
    shown = tests[tests.p_adjusted < 1 - LEVEL]
    rest = tests.drop(shown.index)
    count = f"{len(shown)} of {len(tests)} pairs could be told apart in {what}" if len(tests) > 1 else ""
    gaps = some[some.p_adjusted.isna()]
    parts = [f"{count} (adjusted p < {1 - LEVEL:.2f})." if count else ""]
    if len(tests) == 1:
        parts += list(tests.sentence)
    elif len(rest):
        between = listing([f"{row['model_a']} and {row['model_b']} ({_size(row)})" for row in rest.to_dict("records")])  # fmt: skip
        known = rest.detectable[rest.detectable > 0]
        least = [f"{value:.2f}" for value in (known.min(), known.max())] if len(known) else []
        would = f"; these data would have shown one of {' to '.join(dict.fromkeys(least))}" * bool(least)
        some_or_all = f"between {between}" if len(rest) <= NAMED else f"in {len(rest)}{would}"
        parts.append(f"No difference could be shown {some_or_all}.")
    if len(gaps):
        parts.append(
            f"{len(gaps)} {'pair' if len(gaps) == 1 else 'pairs'} could not be compared: {gaps.note.iloc[0]}."
        )
    return " ".join(filter(None, parts))
