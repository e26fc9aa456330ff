"""Every pair of models in every headline score, and the ranks that the tests leave open.

Resamples are drawn alike for all models (see `bench.metrics.bootstrap`), so differences are paired
and clustered.

    table = pairs({("a", "b"): Pair(scores_of_a, scores_of_b, {"ambiguous": 480})}, "cbbq")
    order = ranks({"a": scores_of_a, "b": scores_of_b}, table, "cbbq")
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import _, note, sentences
from bench.metrics.bootstrap import LEVEL, Place, Replicates
from bench.metrics.headline import range_text
from bench.metrics.significance import (
    LESS_READABLE,
    Comparison,
    apart,
    benjamini_hochberg,
    compare_resamples,
    comparison_sentence,
    differs,
    favours_less_readable,
    readable_difference,
)
from bench.metrics.table import ALL, READABLE, Headline

# Two ways to compute the same score differ by less.
NOISE = 1e-9
MODELS = ["task", "metric", "model_a", "model_b"]
TEST = ["difference", "ci_low", "ci_high", "p", "p_adjusted", "d", "h", "detectable", "n", "units"]
SHARES = ["n_asked", "readable_a", "readable_b", "p_readable"]
BOUNDS = ["bound_low_a", "bound_high_a", "bound_low_b", "bound_high_b"]
COLUMNS = [*MODELS, "verdict", "score_a", "score_b", *TEST, "error", "freedom", *SHARES, *BOUNDS]
COLUMNS += ["note", "sentence"]
# The verdicts; the fourth is `bench.metrics.significance.LESS_READABLE`.
DIFFERENT, NOT_SHOWN, UNDEFINED = "different", "no difference shown", "undefined"
NOTHING = "nothing that both answered"
UNEQUAL = "one of them has no number in some categories, which are left out for it alone"


class Pair(NamedTuple):
    """Headline scores of two models on the answers that could be read of both.

    Attributes:
        answers: how many these are, by task.
        asked: one row per answer of both, readable or not: columns `task`, `stratum`, `unit`,
            `first` and `second` (whether each could be read); None where all could be read.
        bounds: of both, the lowest and highest that each headline score on `asked` could have been.
    """

    first: Replicates
    second: Replicates
    answers: Mapping[str, int]
    asked: pd.DataFrame | None = None
    bounds: tuple[Mapping[Place, tuple[float, float]], Mapping[Place, tuple[float, float]]] = (
        {},
        {},
    )


def pairs(compared: Mapping[tuple[str, str], Pair], benchmark: str) -> pd.DataFrame:
    """Compare every pair of models in every headline score over all categories.

    Args:
        compared: by the names of both models.

    Returns:
        One row per headline (`task`, `metric`) and pair: `score_a` and `score_b` on the `n` answers
        that could be read of both, of `n_asked`; what `bench.metrics.significance.Comparison`
        holds; `p_adjusted` over the pairs of the headline; effect sizes `d` and `h` (for shares
        only); the readable shares and p of their difference; the bounds of both scores on all
        that was asked; the `verdict` and a `sentence` that follows it.
    """
    room, rows = module("metrics", benchmark), []
    for headline in room.HEADLINES:
        if all(_place(headline) not in pair.first for pair in compared.values()):
            continue
        part = [_row(names, pair, headline) for names, pair in compared.items()]
        adjusted = benjamini_hochberg([row["p"] for row in part])
        for row, p in zip(part, adjusted, strict=True):
            row["p_adjusted"] = float(p)
            row["verdict"] = _verdict(row, headline.biased_is_high)
            row["sentence"] = _sentence(row, room.UNITS)
        rows += part
    return pd.DataFrame(rows, columns=COLUMNS)


def ranks(
    scores: Mapping[str, Replicates],
    table: pd.DataFrame,
    benchmark: str,
    habits: Mapping[str, Mapping[Place, str]] | None = None,
) -> pd.DataFrame:
    """Rank models, the best first, and say which ranks the tests leave open.

    Args:
        scores: by model, headline scores on the answers that could be read of all models.
        table: `pairs` of these models.
        habits: by model, why a score tells nothing of groups, where all answers are alike.

    Returns:
        One row per headline and model with a score: `score`, `rank`, `ranks_from` and `ranks_to`
        (NaN where a pair could not be tested), `shares` (how often it has each rank over the
        resamples, which overstate how sure the order of a close pair is) and `habit`.
    """
    rows = []
    for headline in module("metrics", benchmark).HEADLINES:
        place, sign = _place(headline), 1 if headline.biased_is_high else -1
        known = {
            name: replicates[place]
            for name, replicates in scores.items()
            if place in replicates and not np.isnan(replicates[place][0])
        }
        if not known:
            continue
        values = np.round(sign * np.stack(list(known.values())) / NOISE) * NOISE
        own_pairs = of_headline(table, headline)
        shares = shares_of_ranks(values[:, 1:][:, ~np.isnan(values[:, 1:]).any(0)])
        for k, name in enumerate(known):
            rank = 1 + int((values[:, 0] < values[k, 0]).sum())
            limits = _open_ranks(own_pairs, name, list(known), headline.biased_is_high)
            habit = (habits or {}).get(name, {}).get(place, "")
            score = float(known[name][0])
            rows.append((*place[1:], name, score, rank, *limits, shares[k], habit))
    columns = ["task", "metric", "model", "score", "rank", "ranks_from", "ranks_to", "shares"]
    return pd.DataFrame(rows, columns=[*columns, "habit"])


def of_headline(table: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows of a headline."""
    return table[(table.task == headline.task) & (table.metric == headline.metric)]


def metric_name(task: str, metric: str) -> str:
    """Name a headline score in a sentence."""
    return metric if metric != "score" else f"score ({task})"


def shares_of_ranks(values: np.ndarray) -> np.ndarray:
    """Count how often each model has each rank.

    Args:
        values: float64 [models, resamples], the lowest the best.

    Returns:
        float64 [models, ranks]; equal models share their ranks. NaN without resamples.
    """
    n = len(values)
    better = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    places = np.arange(n)[None, :, None]
    held = ((better[:, None] <= places) & (places < (better + equal)[:, None])) / equal[:, None]
    return held.mean(2) if values.shape[1] else np.full((n, n), np.nan)


def cohens_h(first: float, second: float) -> float:
    """Return Cohen's h of two shares."""
    a, b = 2 * np.arcsin(np.sqrt([first, second]))
    return float(a - b)


def _place(headline: Headline) -> Place:
    return ALL, headline.task, headline.metric


def _row(names: tuple[str, str], pair: Pair, headline: Headline) -> dict[str, Any]:
    place, nan = _place(headline), np.nan
    n = sum(count for task, count in pair.answers.items() if headline.task in (ALL, task))
    row: dict[str, Any] = dict(zip(MODELS, (*place[1:], *names), strict=True))
    row |= {"n": n, **_readable(pair, headline, n)}
    if place not in pair.first or place not in pair.second:
        return row | Comparison(nan, nan, nan, nan, 0, nan, NOTHING)._asdict()
    first, second = pair.first[place], pair.second[place]
    rests_on = [side.samples[place] for side in (pair.first, pair.second)]
    values, (low, high) = first - second, headline.limits
    tested = compare_resamples(values, min(rests_on), high - low)
    if rests_on[0] != rests_on[1] and not tested.note:
        tested = tested._replace(note=UNEQUAL)
    row |= tested._asdict() | {"score_a": float(first[0]), "score_b": float(second[0])}
    error = nan if np.isnan(tested.p) else float(np.nanstd(values[1:]))
    row["d"] = tested.difference / (error * np.sqrt(tested.units)) if error > NOISE else nan
    row["h"] = cohens_h(row["score_a"], row["score_b"]) if headline.limits == (0, 1) else nan
    return row


def _readable(pair: Pair, headline: Headline, n: int) -> dict[str, float]:
    """How often both could be read, and the bounds of their scores."""
    row = dict(zip(SHARES, (n, 1.0, 1.0, 1.0), strict=True))
    if pair.asked is not None:
        asked = pair.asked[(pair.asked.task == headline.task) | (headline.task == ALL)]
        if len(asked):
            shares = [float(asked[side].mean()) for side in ("first", "second")]
            p = readable_difference(asked).p
            row = dict(zip(SHARES, (len(asked), *shares, p), strict=True))
    for side, bounds in zip("ab", pair.bounds, strict=True):
        low, high = bounds.get(_place(headline), (np.nan, np.nan))
        row |= {f"bound_low_{side}": low, f"bound_high_{side}": high}
    return row


def _verdict(row: Mapping[str, Any], biased_is_high: bool) -> str:
    """Judge a pair: no model is the better one for being read less often."""
    readable, p = row["readable_a"] - row["readable_b"], row["p_readable"]
    if not row["p_adjusted"] < 1 - LEVEL:
        if differs(readable, p):
            return LESS_READABLE
        return UNDEFINED if np.isnan(row["p_adjusted"]) else NOT_SHOWN
    gain = -row["difference"] if biased_is_high else row["difference"]
    bounds = [(row[f"bound_low_{side}"], row[f"bound_high_{side}"]) for side in "ab"]
    hollow = favours_less_readable(gain, readable, p) and not apart(*bounds)
    return LESS_READABLE if hollow else DIFFERENT


def _sentence(row: Mapping[str, Any], units: str) -> str:
    """Describe a pair, never more strongly than its verdict."""
    tested = Comparison(**{name: row[name] for name in Comparison._fields})
    models, shares = (
        {side: row[f"{column}_{side}"] for side in "ab"} for column in ("model", "readable")
    )
    what = metric_name(row["task"], row["metric"])
    text = comparison_sentence(
        tested, models["a"], models["b"], what, p=row["p_adjusted"], units=units
    )
    parts = [text]
    if min(shares.values()) < READABLE:
        n, asked = f"{row['n']:,}", f"{row['n_asked']:,}"
        parts.append(
            _(
                "This is on the {n} of {asked} answers that could be read of both.",
                n=n,
                asked=asked,
            )
        )
    if row["verdict"] == LESS_READABLE:
        bounds = {
            side: range_text(*(f"{row[f'bound_{end}_{side}']:.2f}" for end in ("low", "high")))
            for side in "ab"
        }
        less, more = sorted("ab", key=lambda side: (shares[side], side == "a"))
        parts.append(
            _(
                "What differs is how often they can be read: {less} in {share} of its answers, "
                "{more} in {other}. Depending on the others, {what} would be {first} in {less}, "
                "and {second} in {more}.",
                less=models[less],
                more=models[more],
                share=f"{shares[less]:.0%}",
                other=f"{shares[more]:.0%}",
                what=what,
                first=bounds[less],
                second=bounds[more],
            )
        )
    if tested.note == UNEQUAL:
        parts.append(_("Note: {note}.", note=note(tested.note)))
    return sentences(parts)


def _open_ranks(
    table: pd.DataFrame, name: str, models: Sequence[str], biased_is_high: bool
) -> tuple[float, float]:
    """Return the first and last rank that the tests leave to a model; NaN if a test is missing."""
    own = table[(table.model_a == name) | (table.model_b == name)]
    own = own[own.model_a.isin(models) & own.model_b.isin(models)]
    if own.p.isna().any() or len(own) < len(models) - 1:
        return np.nan, np.nan
    shown = own[own.verdict == DIFFERENT]
    has_higher_score = (shown.difference > 0) == (shown.model_a == name)
    better = int((has_higher_score == biased_is_high).sum())
    return 1 + better, len(models) - (len(shown) - better)
