"""Models against each other: every pair in every headline score, and which ranks the data leave open.

All on resamples of what was sampled (see `bench.metrics.bootstrap`), drawn alike for all models, so that differences are
paired and clustered.

    table = pairs({("a", "b"): Pair(scores_of_a, scores_of_b, {"ambiguous": 480})}, "cbbq")
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench import words
from bench.benchmarks import module
from bench.metrics.bootstrap import LEVEL, Place, Replicates
from bench.metrics.findings import headline_rows
from bench.metrics.significance import Comparison, benjamini_hochberg, by_resamples, told
from bench.metrics.table import ALL, Card, Headline

# Two ways to compute the same score differ by less.
NOISE = 1e-9
COHEN = "Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, sections 2.3 and 6.2"
CARDS = (
    Card("difference", "score of the first model less that of the second, on what both answered", "a - b", "paired", "that of the score, with either sign", "-"),
    Card("p", "how likely a difference of this size or more is where there is none", "t of difference / standard error by bootstrap over units, with units - strata degrees of freedom", "Efron and Tibshirani, 1993; Miller, 2024", "0 to 1", "-"),
    Card("p_adjusted", "p for the many pairs of a score: of those below 0.05, at most 5 % are expected to be no differences", "step-up p m / rank", "Benjamini and Hochberg, 1995", "0 to 1", "-"),
    Card("detectable", "the smallest difference that such data would show in four of five samples, in a single test", "(t_.975 + t_.80) x standard error", "Cohen, 1988", "above 0", "small"),
    Card("d", "difference in standard deviations of a unit's difference", "difference / (standard error x sqrt(units))", f"d_z: {COHEN}", "any", "0.2 is called small, 0.5 medium, 0.8 large"),
    Card("h", "difference of two shares, on a scale on which it is equally hard to find everywhere", "2 asin(sqrt(a)) - 2 asin(sqrt(b))", f"{COHEN}", "-pi to pi", "0.2 is called small, 0.5 medium, 0.8 large"),
    Card("ranks", "the ranks that the tests leave open to a model", "1 + models shown to be better, to models - those shown to be worse (p_adjusted below 0.05)", "after Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024, who take p values for no error at all", "1 to models", "-"),
    Card("share", "how often a model has a rank over the resamples; equal models share their ranks", "resamples with the rank / resamples", "Goldstein and Spiegelhalter, 1996", "0 to 1", "-"),
)  # fmt: skip
COLUMNS = [
    "task", "metric", "model_a", "model_b", "score_a", "score_b", "difference", "ci_low", "ci_high", "p", "p_adjusted",
    "d", "h", "detectable", "n", "units", "note", "sentence",
]  # fmt: skip
NOTHING = "nothing that both answered"
UNEQUAL = "one of them has no number in some categories, which are left out for it alone"


class Pair(NamedTuple):
    """Two models' headline scores, on the answers that both have, and how many those are by task."""

    first: Replicates
    second: Replicates
    answers: Mapping[str, int]


def pairs(compared: Mapping[tuple[str, str], Pair], benchmark: str) -> pd.DataFrame:
    """Every two models in every headline score over all categories that one of the pairs has.

    Args:
        compared: by names of two models.

    Returns:
        A row a headline (`task`, `metric`) and pair, with `score_a` and `score_b` on the answers that both have, `n` of them,
        what `bench.metrics.significance.Comparison` holds, p adjusted over the pairs of the headline, effect
        sizes `d` and `h` (NaN but for shares), and a `sentence` that goes by `p_adjusted`.
    """
    room, rows = module("metrics", benchmark), []
    for headline in room.HEADLINES:
        place = (ALL, headline.task, headline.metric)
        if any(place in one.first for one in compared.values()):
            rows += [_row(names, one, headline, place) for names, one in compared.items()]
    table = pd.DataFrame(rows, columns=[*COLUMNS, "found"])
    for some in table.groupby(["task", "metric"]).groups.values():
        p = table.p[some].to_numpy()
        table.loc[some, "p_adjusted"] = benjamini_hochberg(p)
    table["sentence"] = [
        words.sentences(
            [
                told(found, a, b, named(task, metric), p=p, units=room.UNITS),
                words.tell("Note: {note}.", note=words.note(found.note)) if found.note == UNEQUAL else "",
            ]
        )
        for found, a, b, task, metric, p in zip(
            table.found, table.model_a, table.model_b, table.task, table.metric, table.p_adjusted, strict=True
        )
    ]
    return table[COLUMNS]


def named(task: str, metric: str) -> str:
    """A headline score as sentences call it."""
    return metric if metric != "score" else f"score ({task})"


def ranks(found: Mapping[str, Replicates], table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Which rank each model has, and may have; the first is the best.

    Args:
        found: by model, headline scores on the answers that all models have.
        table: `pairs` of these models.

    Returns:
        A row a headline and model: its `score` there, `rank`, `ranks_from` and `ranks_to` (those that the tests leave open;
        NaN where it was not compared with every other model), and `shares`, how often it has each rank over the
        resamples, from the first on. Models without a score are left out. `shares` of a close pair are surer of themselves
        than they should be; `ranks_from` and `ranks_to` are not.
    """
    rows = []
    for headline in module("metrics", benchmark).HEADLINES:
        place = (ALL, headline.task, headline.metric)
        models = [name for name, one in found.items() if place in one and not np.isnan(one[place][0])]
        if not models:
            continue
        values = np.stack([found[name][place] for name in models])
        values = np.round((1 if headline.biased_is_high else -1) * values / NOISE) * NOISE
        here = table[(table.task == headline.task) & (table.metric == headline.metric)]
        shares = shares_of_ranks(values[:, 1:][:, ~np.isnan(values[:, 1:]).any(0)])
        for k, name in enumerate(models):
            span = _open(here, name, models, headline.biased_is_high)
            rank = 1 + int((values[:, 0] < values[k, 0]).sum())
            score = float(found[name][place][0])
            rows.append((headline.task, headline.metric, name, score, rank, *span, shares[k]))
    columns = ["task", "metric", "model", "score", "rank", "ranks_from", "ranks_to", "shares"]
    return pd.DataFrame(rows, columns=columns)


def leaderboard(scores: pd.DataFrame, order: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The headline scores of each model over all categories, the best first, with what stands beside a score.

    Args:
        scores: score tables with a column `model`.
        order: `ranks` of the same models; `ranks` tells of them which ones the tests leave open.
    """
    spans = {
        (row["task"], row["metric"], row["model"]): f"{row['ranks_from']:.0f} to {row['ranks_to']:.0f}"
        for row in order[order.ranks_from.notna()].to_dict("records")
    }
    parts = []
    for headline in module("metrics", benchmark).HEADLINES:
        rows = headline_rows(scores, headline)
        rows = rows[rows.category == ALL].sort_values("score", ascending=headline.biased_is_high)
        keys = zip(rows.task, rows.metric, rows.model, strict=True)
        parts.append(rows.assign(ranks=[spans.get(key, "") for key in keys]))
    columns = ["task", "metric", "model", "score", "ci_low", "ci_high", "ranks", "n", "valid_rate", "baseline", "note"]  # fmt: skip
    return pd.concat(parts)[columns].reset_index(drop=True)


def shares_of_ranks(values: np.ndarray) -> np.ndarray:
    """How often each of some models has each rank.

    Args:
        values: float64 [models, resamples], the lowest the best.

    Returns:
        float64 [models, ranks]; models that are equal share their ranks. NaN where there is no resample.
    """
    n = len(values)
    better = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    places = np.arange(n)[None, :, None]
    held = ((better[:, None] <= places) & (places < (better + equal)[:, None])) / equal[:, None]
    return held.mean(2) if values.shape[1] else np.full((n, n), np.nan)


def _row(names: tuple[str, str], one: Pair, headline: Headline, place: Place) -> dict[str, object]:
    row: dict[str, object] = {"task": headline.task, "metric": headline.metric, "model_a": names[0], "model_b": names[1]}  # fmt: skip
    n = sum(count for task, count in one.answers.items() if headline.task in (ALL, task))
    if place not in one.first or place not in one.second:
        found = Comparison(np.nan, np.nan, np.nan, np.nan, 0, np.nan, NOTHING)
        return {**row, **found._asdict(), "n": n, "found": found}
    first, second = one.first[place], one.second[place]
    values = first - second
    rest_on = [side.samples[place] for side in (one.first, one.second)]
    found = by_resamples(values, min(rest_on))
    if rest_on[0] != rest_on[1] and not found.note:
        found = found._replace(note=UNEQUAL)
    error = float(np.std(values[1:][~np.isnan(values[1:])])) if not np.isnan(found.p) else np.nan
    sizes = {"d": found.difference / (error * np.sqrt(found.units)) if error > NOISE else np.nan, "h": np.nan}
    if headline.limits == (0, 1):
        sizes["h"] = cohens_h(float(first[0]), float(second[0]))
    return {
        **row, **found._asdict(), **sizes, "score_a": float(first[0]), "score_b": float(second[0]), "n": n, "found": found,
    }  # fmt: skip


def cohens_h(first: float, second: float) -> float:
    """Cohen's h of two shares."""
    one, other = 2 * np.arcsin(np.sqrt([first, second]))
    return float(one - other)


def _open(table: pd.DataFrame, name: str, models: Sequence[str], biased_is_high: bool) -> tuple[float, float]:
    """The first and last rank that the tests leave to a model; NaN where a test is missing."""
    # As differences of the others from it, so that above nought is a score higher than its own.
    first, second = table[table.model_a == name], table[table.model_b == name]
    both = pd.concat([first.assign(other=first.model_b, less=-first.difference), second.assign(other=second.model_a, less=second.difference)])  # fmt: skip
    both = both[both.other.isin(models)]
    if both.p.isna().any() or len(both) < len(models) - 1:
        return np.nan, np.nan
    shown = both.less[both.p_adjusted < 1 - LEVEL]
    lower, higher = int((shown < 0).sum()), int((shown > 0).sum())
    better, worse = (lower, higher) if biased_is_high else (higher, lower)
    return 1 + better, len(models) - worse
