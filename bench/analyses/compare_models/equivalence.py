"""Is a model not worse than another by more than a margin, and are two models equivalent.

A test of no difference that finds none shows nothing. Here the null hypothesis is a difference of
the margin or more, and a small p speaks for a smaller one: two one-sided tests, each by t of the
paired difference (TOST: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987;
Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority, 2010, sections 2.1 and
5.3). Equivalence at 5 % is the same as a 90 % interval within the margin.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bench.analyses.compare_models.pairs import MODELS, metric_name, of_headline
from bench.benchmarks import module
from bench.core.errors import BadInput
from bench.core.i18n import _
from bench.metrics.bootstrap import LEVEL
from bench.metrics.significance import LESS_READABLE, benjamini_hochberg, format_p

ALPHA = 1 - LEVEL
NOISE = 1e-12
ONE_SIDED = ["p_a_not_worse", "p_b_not_worse"]
COLUMNS = [*MODELS, "difference", "low_90", "high_90", "margin", *ONE_SIDED]
COLUMNS += ["p_equivalent", "sentence"]


def tests(pairs: pd.DataFrame, margin: float, benchmark: str) -> pd.DataFrame:
    """Test of every pair whether each model is not worse than the other by `margin`.

    Args:
        pairs: of `bench.analyses.compare_models.pairs`; without a standard error they are left out.
        margin: in the unit of the score: 0.05 of a share, 5 of 100 points.

    Returns:
        One row per headline and pair: the `difference` with its 90 % interval, the `margin`, p
        values (NaN where the models differ in how often they can be read) and a `sentence`.

    Raises:
        BadInput: a margin that is not above 0.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise BadInput(f"margin {margin} of {benchmark}: expected a number above 0, like 0.05")
    parts = [pd.DataFrame(columns=COLUMNS)]
    for headline in module("metrics", benchmark).HEADLINES:
        rows = of_headline(pairs, headline)
        rows = rows[rows.error.notna()].copy()
        if rows.empty:
            continue
        # How much worse the first model is than the second.
        worse = rows.difference if headline.biased_is_high else -rows.difference
        p = np.concatenate([_p(worse, rows, margin), _p(-worse, rows, margin)])
        # No model is shown to be not worse on the answers that a refusing model left.
        p[np.tile(rows.verdict == LESS_READABLE, 2)] = np.nan
        rows[ONE_SIDED] = benjamini_hochberg(p).reshape(2, -1).T
        rows["p_equivalent"] = rows[ONE_SIDED].max(axis=1)
        arm = stdtrit(rows.freedom, 1 - ALPHA) * rows.error
        rows["low_90"], rows["high_90"] = rows.difference - arm, rows.difference + arm
        rows["margin"] = margin
        rows["sentence"] = [_sentence(row) for row in rows.to_dict("records")]
        parts.append(rows[COLUMNS])
    return pd.concat(parts[1:] or parts, ignore_index=True)


def findings(table: pd.DataFrame, benchmark: str) -> list[str]:
    """Say which pairs are equivalent, by `tests`."""
    equivalent = list(table.sentence[table.p_equivalent < ALPHA])
    nothing = _("no two models could be shown to be equivalent in a score.")
    title = module("data", benchmark).TITLE
    return [
        _("{title}: {sentence}", title=title, sentence=text) for text in equivalent or [nothing]
    ]


def _p(worse: pd.Series, rows: pd.DataFrame, margin: float) -> np.ndarray:
    """Return one-sided p for being worse by the margin; never below that of a sign test."""
    error, units = (rows[name].to_numpy(dtype=float) for name in ("error", "units"))
    t = (worse.to_numpy(dtype=float) - margin) / np.maximum(error, NOISE)
    return np.maximum(stdtr(rows.freedom.to_numpy(dtype=float), t), 0.5**units)


def _sentence(row: Mapping[Any, Any]) -> str:
    first, second = row["p_a_not_worse"], row["p_b_not_worse"]
    about = {"first": row["model_a"], "second": row["model_b"]}
    about["what"] = metric_name(row["task"], row["metric"])
    if row["verdict"] == LESS_READABLE:
        return _(
            "{first} and {second} are not tested against a margin in {what}: what differs is how "
            "often they can be read.",
            **about,
        )
    about["margin"] = f"{row['margin']:g}"
    low, high = f"{row['low_90']:+.2f}", f"{row['high_90']:+.2f}"
    interval = _("90\u00a0% interval {low} to {high}", low=low, high=high)
    if max(first, second) < ALPHA:
        return _(
            "{first} and {second} are equivalent in {what}: they differ by less than {margin} "
            "({around}, adjusted {p}).",
            **about,
            around=interval,
            p=format_p(max(first, second)),
        )
    if min(first, second) < ALPHA:
        if second < first:
            about |= {"first": row["model_b"], "second": row["model_a"]}
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
        around=interval,
    )
