"""Is a model not worse than another by more than a margin, and are two models equivalent.

A test of no difference that finds none shows nothing. Here the null hypothesis is a difference of
the margin or more, and a small p speaks for a smaller one: two one-sided tests, each by t of the
paired difference (TOST: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987;
Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority, 2010, sections 2.1 and
5.3). Equivalence at 5 % is the same as a 90 % interval within the margin.
"""

import math

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bench.analyses.compare_models import MODELS, of_headline
from bench.benchmarks import module
from bench.core.errors import BadInput
from bench.metrics.bootstrap import LEVEL
from bench.metrics.headline import TOLD, phrase
from bench.metrics.significance import LESS_READABLE, benjamini_hochberg

ALPHA = 1 - LEVEL
NOISE = 1e-12
ONE_SIDED = ["p_a_not_worse", "p_b_not_worse"]
COLUMNS = [*MODELS, "difference", "low_90", "high_90", "margin", *ONE_SIDED]
COLUMNS += ["p_equivalent"]


def tests(pairs: pd.DataFrame, margin: float, benchmark: str) -> pd.DataFrame:
    """Test of every pair whether each model is not worse than the other by `margin`.

    Args:
        pairs: of `bench.analyses.compare_models`; without a standard error they are left out.
        margin: in the unit of the score: 0.05 of a share, 5 of 100 points.

    Returns:
        One row per headline and pair: the `difference` with its 90 % interval, the `margin`, and p
        values (NaN where the models differ in how often they can be read).

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
        parts.append(rows[COLUMNS])
    return pd.concat(parts[1:] or parts, ignore_index=True)


def findings(table: pd.DataFrame, benchmark: str) -> list[str]:
    """Say which pairs are equivalent, by `tests`: the first few by name."""
    title, tested = module("data", benchmark).TITLE, table[table.p_equivalent.notna()]
    rows = tested[tested.p_equivalent < ALPHA]
    text = "no two models could be shown to be equivalent in a score."
    if len(rows):
        pairs = [
            f"{first} and {second} in {phrase(line.title)}"
            for line in module("metrics", benchmark).HEADLINES
            for first, second in of_headline(rows, line)[["model_a", "model_b"]].to_numpy()
        ]
        more = [f"{len(pairs) - TOLD} more"] if len(pairs) > TOLD else []
        text = (
            f"{len(rows)} of {len(tested)} pairs are equivalent, at most {rows.margin.iloc[0]:g} "
            f"apart (adjusted p < {ALPHA:.2f}): {'; '.join([*pairs[:TOLD], *more])}."
        )
    return [f"{title}: {text}"]
