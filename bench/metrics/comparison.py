"""Models against each other: every pair in every headline score, and which ranks the data leave open.

All on resamples of what was sampled (see `bench.metrics.bootstrap`), drawn alike for all models, so that differences are
paired and clustered.

    table = pairs({("a", "b"): Pair(scores_of_a, scores_of_b, {"ambiguous": 480})}, "cbbq")
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import _, note, sentences
from bench.metrics.bootstrap import LEVEL, Place, Replicates
from bench.metrics.headline import headline_rows, headlines, range_text
from bench.metrics.readability import (
    LESS_READABLE,
    apart,
    differs,
    favours_less_readable,
)
from bench.metrics.readability import difference as readable_difference
from bench.metrics.significance import (
    Comparison,
    benjamini_hochberg,
    compare_resamples,
    comparison_sentence,
)
from bench.metrics.table import ALL, READABLE, Card, Headline

# Two ways to compute the same score differ by less.
NOISE = 1e-9
COHEN = "Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, sections 2.3 and 6.2"
CARDS = (
    Card(
        "difference",
        "score of the first model less that of the second, on the answers that could be read of both",
        "a - b",
        "paired",
        "that of the score, with either sign",
        "-",
    ),
    Card(
        "p",
        "how likely a difference of this size or more is where there is none",
        "t of difference / standard error by bootstrap over units, with units - strata degrees of freedom",
        "Efron and Tibshirani, 1993; Miller, 2024",
        "0 to 1",
        "-",
    ),
    Card(
        "p_adjusted",
        "p for the many pairs of a score: of those below 0.05, at most 5 % are expected to be no differences",
        "step-up p m / rank",
        "Benjamini and Hochberg, 1995",
        "0 to 1",
        "-",
    ),
    Card(
        "detectable",
        "the smallest difference that such data would show in four of five samples, in a single test",
        "(t_.975 + t_.80) x standard error",
        "Cohen, 1988",
        "above 0",
        "small",
    ),
    Card(
        "d",
        "difference in standard deviations of a unit's difference",
        "difference / (standard error x sqrt(units))",
        f"d_z: {COHEN}",
        "any",
        "0.2 is called small, 0.5 medium, 0.8 large",
    ),
    Card(
        "h",
        "difference of two shares, on a scale on which it is equally hard to find everywhere",
        "2 asin(sqrt(a)) - 2 asin(sqrt(b))",
        f"{COHEN}",
        "-pi to pi",
        "0.2 is called small, 0.5 medium, 0.8 large",
    ),
    Card(
        "ranks",
        "the ranks that the tests leave open to a model",
        "1 + models shown to be better, to models - those shown to be worse (p_adjusted below 0.05)",
        "after Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024, who take p values for no error at all",
        "1 to models",
        "-",
    ),
    Card(
        "verdict",
        "different; no difference shown; less readable: the models differ in how often they can be read, and no difference was shown or it speaks for the one that is read less often, unless their bounds do not meet; undefined",
        "p_adjusted and p_readable below 0.05; bounds",
        "ours",
        "-",
        "-",
    ),
    Card(
        "readable_a, readable_b",
        "share of the answers asked of both that could be read, and p of the difference",
        "readable / asked; t as p",
        "ours",
        "0 to 1",
        "1",
    ),
    Card(
        "bound_low, bound_high",
        "the least and the most that a score could have been, had every answer been readable",
        "each unreadable answer taken for what lowers, or raises, the score most",
        "Horowitz and Manski, JASA 95, 2000",
        "that of the score",
        "the score itself",
    ),
    Card(
        "share",
        "how often a model has a rank over the resamples; equal models share their ranks",
        "resamples with the rank / resamples",
        "Goldstein and Spiegelhalter, 1996",
        "0 to 1",
        "-",
    ),
)
COLUMNS = [
    "task",
    "metric",
    "model_a",
    "model_b",
    "verdict",
    "score_a",
    "score_b",
    "difference",
    "ci_low",
    "ci_high",
    "p",
    "p_adjusted",
    "d",
    "h",
    "detectable",
    "n",
    "units",
    "error",
    "freedom",
    "n_asked",
    "readable_a",
    "readable_b",
    "p_readable",
    "bound_low_a",
    "bound_high_a",
    "bound_low_b",
    "bound_high_b",
    "note",
    "sentence",
]
# What a comparison comes to; the fourth verdict is `bench.metrics.readability.LESS_READABLE`.
DIFFERENT, NOT_SHOWN, UNDEFINED = "different", "no difference shown", "undefined"
NOTHING = "nothing that both answered"
UNEQUAL = "one of them has no number in some categories, which are left out for it alone"


class Pair(NamedTuple):
    """Two models' headline scores, on the answers of both that could be read, and how many those are by task.

    Attributes:
        asked: an answer of both each, readable or not: columns `task`, `stratum`, `unit`, `first` and
            `second` (whether the one and the other could be read); None where all could be read.
        bounds: of both, the least and the most that each headline score on `asked` could have been.
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
    """Every two models in every headline score over all categories that one of the pairs has.

    Args:
        compared: by names of two models.

    Returns:
        A row a headline (`task`, `metric`) and pair, with `score_a` and `score_b` on the answers that
        could be read of both, `n` of the `n_asked`,
        what `bench.metrics.significance.Comparison` holds, p adjusted over the pairs of the headline, effect
        sizes `d` and `h` (NaN but for shares); the readable shares of the `n_asked`, p of their difference,
        and the bounds of both scores on these; the `verdict`, and a `sentence` that goes by it.
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
    biased_is_high = {(one.task, one.metric): one.biased_is_high for one in room.HEADLINES}
    table["verdict"] = [
        _verdict(row, biased_is_high[row["task"], row["metric"]])
        for row in table.to_dict("records")
    ]
    table["sentence"] = [_sentence(row, room.UNITS) for row in table.to_dict("records")]
    return table[COLUMNS]


def _verdict(row: Mapping[Any, Any], biased_is_high: bool) -> str:
    """What a pair comes to: no model is the better one for being read less often."""
    readable, p = row["readable_a"] - row["readable_b"], row["p_readable"]
    if not row["p_adjusted"] < 1 - LEVEL:
        if differs(readable, p):
            return LESS_READABLE
        return UNDEFINED if np.isnan(row["p_adjusted"]) else NOT_SHOWN
    gain = -row["difference"] if biased_is_high else row["difference"]
    bounds = [(row[f"bound_low_{side}"], row[f"bound_high_{side}"]) for side in "ab"]
    hollow = favours_less_readable(gain, readable, p) and not apart(*bounds)
    return LESS_READABLE if hollow else DIFFERENT


def _sentence(row: Mapping[Any, Any], units: str) -> str:
    """A pair in words, never stronger than its verdict."""
    found, what = row["found"], named(row["task"], row["metric"])
    said = [
        comparison_sentence(
            found, row["model_a"], row["model_b"], what, p=row["p_adjusted"], units=units
        )
    ]
    shares = [row["readable_a"], row["readable_b"]]
    if min(shares) < READABLE:
        said.append(
            _(
                "This is on the {n} of {asked} answers that could be read of both.",
                n=f"{row['n']:,}",
                asked=f"{row['n_asked']:,}",
            )
        )
    if row["verdict"] == LESS_READABLE:
        less, more = ("a", "b") if shares[0] < shares[1] else ("b", "a")
        said.append(
            _(
                "What differs is how often they can be read: {less} in {share} of its answers, {more} in "
                "{other}. Depending on the others, {what} would be {first} in {less}, and {second} in {more}.",
                less=row[f"model_{less}"],
                more=row[f"model_{more}"],
                share=f"{min(shares):.0%}",
                other=f"{max(shares):.0%}",
                what=what,
                first=range_text(*(f"{row[f'bound_{end}_{less}']:.2f}" for end in ("low", "high"))),
                second=range_text(
                    *(f"{row[f'bound_{end}_{more}']:.2f}" for end in ("low", "high"))
                ),
            )
        )
    if found.note == UNEQUAL:
        said.append(_("Note: {note}.", note=note(found.note)))
    return sentences(said)


def named(task: str, metric: str) -> str:
    """A headline score as sentences call it."""
    return metric if metric != "score" else f"score ({task})"


def ranks(found: Mapping[str, Replicates], table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Which rank each model has, and may have; the first is the best.

    Args:
        found: by model, headline scores on the answers that could be read of all models.
        table: `pairs` of these models.

    Returns:
        A row a headline and model: its `score` there, `rank`, `ranks_from` and `ranks_to` (those that the tests leave open;
        NaN where it was not compared with every other model), and `shares`, how often it has each rank over the
        resamples, from the first on. Models without a score are left out. `shares` of a close pair are surer of themselves
        than they should be; `ranks_from` and `ranks_to` are not. `habit` is for a note on answers that are all alike.
    """
    rows = []
    for headline in module("metrics", benchmark).HEADLINES:
        place = (ALL, headline.task, headline.metric)
        models = [
            name for name, one in found.items() if place in one and not np.isnan(one[place][0])
        ]
        if not models:
            continue
        values = np.stack([found[name][place] for name in models])
        values = np.round((1 if headline.biased_is_high else -1) * values / NOISE) * NOISE
        here = table[(table.task == headline.task) & (table.metric == headline.metric)]
        shares = shares_of_ranks(values[:, 1:][:, ~np.isnan(values[:, 1:]).any(0)])
        for k, name in enumerate(models):
            ends = _open(here, name, models, headline.biased_is_high)
            rank = 1 + int((values[:, 0] < values[k, 0]).sum())
            score = float(found[name][place][0])
            rows.append((headline.task, headline.metric, name, score, rank, *ends, shares[k]))
    columns = ["task", "metric", "model", "score", "rank", "ranks_from", "ranks_to", "shares"]
    return pd.DataFrame(rows, columns=columns).assign(habit="")


def leaderboard(scores: pd.DataFrame, order: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The headline scores of each model over all categories, the best first, with what stands beside a score.

    Args:
        scores: score tables with a column `model`.
        order: `ranks` of the same models; `ranks` tells of them which ones the tests leave open.
    """
    spans = {
        (
            row["task"],
            row["metric"],
            row["model"],
        ): f"{row['ranks_from']:.0f} to {row['ranks_to']:.0f}"
        for row in order[order.ranks_from.notna()].to_dict("records")
    }
    parts = []
    every = module("metrics", benchmark).HEADLINES
    for headline, ranked in zip(headlines(scores, benchmark), every, strict=True):
        rows = headline_rows(scores, headline)
        rows = rows[rows.category == ALL].sort_values("score", ascending=headline.biased_is_high)
        # Ranks are of common answers in any case, under the headline's own name.
        keys = ((ranked.task, ranked.metric, model) for model in rows.model)
        parts.append(rows.assign(ranks=[spans.get(key, "") for key in keys]))
    columns = [
        "task",
        "metric",
        "model",
        "score",
        "ci_low",
        "ci_high",
        "bound_low",
        "bound_high",
        "ranks",
        "n",
        "valid_rate",
        "baseline",
        "note",
    ]
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
    row: dict[str, object] = {
        "task": headline.task,
        "metric": headline.metric,
        "model_a": names[0],
        "model_b": names[1],
    }
    n = sum(count for task, count in one.answers.items() if headline.task in (ALL, task))
    row |= _readable(one, headline, place, n)
    if place not in one.first or place not in one.second:
        found = Comparison(np.nan, np.nan, np.nan, np.nan, 0, np.nan, NOTHING)
        return {**row, **found._asdict(), "n": n, "found": found}
    first, second = one.first[place], one.second[place]
    values = first - second
    rest_on = [side.samples[place] for side in (one.first, one.second)]
    found = compare_resamples(values, min(rest_on), headline.limits[1] - headline.limits[0])
    if rest_on[0] != rest_on[1] and not found.note:
        found = found._replace(note=UNEQUAL)
    error = float(np.std(values[1:][~np.isnan(values[1:])])) if not np.isnan(found.p) else np.nan
    sizes = {
        "d": found.difference / (error * np.sqrt(found.units)) if error > NOISE else np.nan,
        "h": np.nan,
    }
    if headline.limits == (0, 1):
        sizes["h"] = cohens_h(float(first[0]), float(second[0]))
    return {
        **row,
        **found._asdict(),
        **sizes,
        "score_a": float(first[0]),
        "score_b": float(second[0]),
        "n": n,
        "found": found,
    }


def _readable(one: Pair, headline: Headline, place: Place, n: int) -> dict[str, object]:
    """How often both could be read, and between which bounds their scores lie."""
    found: dict[str, object] = {
        "n_asked": n,
        "readable_a": 1.0,
        "readable_b": 1.0,
        "p_readable": 1.0,
    }
    if one.asked is not None:
        rows = one.asked if headline.task == ALL else one.asked[one.asked.task == headline.task]
        if len(rows):
            found |= {
                "n_asked": len(rows),
                "readable_a": float(rows["first"].mean()),
                "readable_b": float(rows.second.mean()),
                "p_readable": readable_difference(rows).p,
            }
    for side, bounds in zip("ab", one.bounds, strict=True):
        low, high = bounds.get(place, (np.nan, np.nan))
        found |= {f"bound_low_{side}": low, f"bound_high_{side}": high}
    return found


def cohens_h(first: float, second: float) -> float:
    """Cohen's h of two shares."""
    one, other = 2 * np.arcsin(np.sqrt([first, second]))
    return float(one - other)


def _open(
    table: pd.DataFrame, name: str, models: Sequence[str], biased_is_high: bool
) -> tuple[float, float]:
    """The first and last rank that the tests leave to a model; NaN where a test is missing."""
    # As differences of the others from it, so that above nought is a score higher than its own.
    first, second = table[table.model_a == name], table[table.model_b == name]
    both = pd.concat(
        [
            first.assign(other=first.model_b, less=-first.difference),
            second.assign(other=second.model_a, less=second.difference),
        ]
    )
    both = both[both.other.isin(models)]
    if both.p.isna().any() or len(both) < len(models) - 1:
        return np.nan, np.nan
    shown = both.less[both.verdict == DIFFERENT]
    lower, higher = int((shown < 0).sum()), int((shown > 0).sum())
    better, worse = (lower, higher) if biased_is_high else (higher, lower)
    return 1 + better, len(models) - worse
