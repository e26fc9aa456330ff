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

from bench.analyses.compare_models import MODELS, metric_name, of_headline
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
        pairs: of `bench.analyses.compare_models`; without a standard error they are left out.
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
        error, freedom = rows.error.to_numpy(dtype=float), rows.freedom.to_numpy(dtype=float)
        # How much worse the first model is than the second, and the other way round.
        worse = rows.difference.to_numpy(float) * (1 if headline.biased_is_high else -1)
        t = (np.stack([worse, -worse]) - margin) / np.maximum(error, NOISE)
        # p is never below that of a sign test.
        p = np.maximum(stdtr(freedom, t), 0.5 ** rows.units.to_numpy(float))
        # No model is shown to be not worse on the answers that a refusing model left.
        p[:, rows.verdict == LESS_READABLE] = np.nan
        rows[ONE_SIDED] = benjamini_hochberg(p.ravel()).reshape(2, -1).T
        arm = stdtrit(freedom, 1 - ALPHA) * error
        rows = rows.assign(
            p_equivalent=rows[ONE_SIDED].max(axis=1),
            low_90=rows.difference - arm,
            high_90=rows.difference + arm,
            margin=margin,
        )
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


def _sentence(row: Mapping[Any, Any]) -> str:
    p = [row[name] for name in ONE_SIDED]
    models = [row["model_a"], row["model_b"]]
    if p[1] < p[0] and max(p) >= ALPHA > min(p):
        models.reverse()
    about = {"first": models[0], "second": models[1], "margin": f"{row['margin']:g}"}
    about["what"] = metric_name(row["task"], row["metric"])
    low, high = f"{row['low_90']:+.2f}", f"{row['high_90']:+.2f}"
    about["around"] = _("90\u00a0% interval {low} to {high}", low=low, high=high)
    if np.isnan(p).any():
        return _(
            "{first} and {second} are not tested against a margin in {what}: what differs is how "
            "often they can be read.",
            **about,
        )
    if max(p) < ALPHA:
        return _(
            "{first} and {second} are equivalent in {what}: they differ by less than {margin} "
            "({around}, adjusted {p}).",
            **about,
            p=format_p(max(p)),
        )
    if min(p) < ALPHA:
        return _(
            "{first} is not worse than {second} in {what} by {margin} or more (adjusted {p}); that "
            "they are equivalent could not be shown.",
            **about,
            p=format_p(min(p)),
        )
    return _(
        "Neither of {first} and {second} could be shown to be not worse in {what} by {margin} or "
        "more ({around}).",
        **about,
    )
