"""Is a model not worse than another by more than a margin, and are two models equivalent.

A test of no difference that finds none shows nothing. These tests turn the question round: the null
hypothesis is a difference of the margin or more, and a small p speaks for a smaller one. Two one-sided
tests, each by t of the paired difference (TOST: Schuirmann, Journal of Pharmacokinetics and
Biopharmaceutics 15, 1987; Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority,
2010, sections 2.1 and 5.3). Equivalence at 5 % is the same as a 90 % interval within the margin.

    tests(pairs, margin=0.05, benchmark="cbbq")          # pairs: of bench.metrics.comparison.pairs
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bench.benchmarks import module
from bench.core.errors import BadInput
from bench.core.i18n import _
from bench.metrics.bootstrap import LEVEL
from bench.metrics.comparison import named
from bench.metrics.readability import LESS_READABLE
from bench.metrics.significance import benjamini_hochberg, format_p
from bench.metrics.table import Card

SOURCE = "Schuirmann, 1987; Wellek, 2010"
ALPHA = 1 - LEVEL
NOISE = 1e-12
CARDS = (
    Card(
        "p_a_not_worse, p_b_not_worse",
        "how likely so good a result of the first (second) model is where it is worse by the margin; "
        "adjusted as p of the differences is, over both models of all pairs of a score",
        "t of (difference to the worse side - margin) / standard error, one-sided",
        SOURCE,
        "0 to 1",
        "below 0.05 shows that it is not worse by the margin",
    ),
    Card(
        "p_equivalent",
        "the larger of the two: how likely so small a difference is where it is the margin or more",
        "max of both",
        f"{SOURCE} (TOST)",
        "0 to 1",
        "below 0.05 shows that the difference is within the margin",
    ),
)
COLUMNS = [
    "task",
    "metric",
    "model_a",
    "model_b",
    "difference",
    "low_90",
    "high_90",
    "margin",
    "p_a_not_worse",
    "p_b_not_worse",
    "p_equivalent",
    "sentence",
]


def tests(pairs: pd.DataFrame, margin: float, benchmark: str) -> pd.DataFrame:
    """Test of every pair whether each model is not worse than the other by `margin`.

    Args:
        pairs: of `bench.metrics.comparison.pairs`; pairs without a standard error are left out.
        margin: in the unit of the score: 0.05 is five hundredths of a share, 5 is five of 100 points.

    Returns:
        A row per headline and pair: the `difference` with its 90 % interval, the `margin`, p values
        (NaN where what differs is how often the two can be read), and a `sentence`.

    Raises:
        BadInput: a margin that is not above 0.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise BadInput(f"margin {margin} of {benchmark}: expected a number above 0, like 0.05")
    parts = []
    for headline in module("metrics", benchmark).HEADLINES:
        own = (pairs.task == headline.task) & (pairs.metric == headline.metric)
        rows = pairs[own & pairs.error.notna()].copy()
        if rows.empty:
            continue
        # How much worse the first model is than the second.
        worse = rows.difference if headline.biased_is_high else -rows.difference
        p = np.concatenate([_p(worse, rows, margin), _p(-worse, rows, margin)])
        # Nobody is shown to be not worse on the answers that a refusing model left.
        p[np.tile(rows.verdict == LESS_READABLE, 2)] = np.nan
        rows["p_a_not_worse"], rows["p_b_not_worse"] = np.split(benjamini_hochberg(p), 2)
        rows["p_equivalent"] = rows[["p_a_not_worse", "p_b_not_worse"]].max(axis=1)
        arm = stdtrit(rows.freedom, 1 - ALPHA) * rows.error
        rows["low_90"], rows["high_90"] = rows.difference - arm, rows.difference + arm
        rows["margin"] = margin
        rows["sentence"] = [_sentence(row) for row in rows.to_dict("records")]
        parts.append(rows[COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


def findings(found: pd.DataFrame, benchmark: str) -> list[str]:
    """Say which pairs are equivalent.

    Args:
        found: of `tests`.
    """
    title = module("data", benchmark).TITLE
    equivalent = found[found.p_equivalent < ALPHA]
    if equivalent.empty:
        nothing = _("no two models could be shown to be equivalent in a score.")
        return [_("{title}: {sentence}", title=title, sentence=nothing)]
    return [
        _("{title}: {sentence}", title=title, sentence=sentence) for sentence in equivalent.sentence
    ]


def _p(worse: pd.Series, rows: pd.DataFrame, margin: float) -> np.ndarray:
    """One-sided p for being worse by the margin or more; never below that of a sign test."""
    error, units = (rows[name].to_numpy(dtype=np.float64) for name in ("error", "units"))
    t = (worse.to_numpy(dtype=np.float64) - margin) / np.maximum(error, NOISE)
    return np.maximum(stdtr(rows.freedom.to_numpy(dtype=np.float64), t), 0.5**units)


def _sentence(row: dict[Any, Any]) -> str:
    about = {
        "first": row["model_a"],
        "second": row["model_b"],
        "what": named(str(row["task"]), str(row["metric"])),
        "margin": f"{row['margin']:g}",
    }
    if row["verdict"] == LESS_READABLE:
        return _(
            "{first} and {second} are not tested against a margin in {what}: what differs is how often "
            "they can be read.",
            **{name: about[name] for name in ("first", "second", "what")},
        )
    low, high = (f"{float(str(row[name])):+.2f}" for name in ("low_90", "high_90"))
    around = _("90\u00a0% interval {low} to {high}", low=low, high=high)
    first, second = (float(str(row[name])) for name in ("p_a_not_worse", "p_b_not_worse"))
    if max(first, second) < ALPHA:
        return _(
            "{first} and {second} are equivalent in {what}: they differ by less than {margin} "
            "({around}, adjusted {p}).",
            **about,
            around=around,
            p=format_p(max(first, second)),
        )
    if min(first, second) < ALPHA:
        if second < first:
            about["first"], about["second"] = about["second"], about["first"]
        return _(
            "{first} is not worse than {second} in {what} by {margin} or more (adjusted {p}); that "
            "they are equivalent could not be shown.",
            **about,
            p=format_p(min(first, second)),
        )
    return _(
        "Neither of {first} and {second} could be shown to be not worse in {what} by {margin} or "
        "more ({around}).",
        **about,
        around=around,
    )
