"""Are two models different: paired differences, with an interval and a p value by bootstrap over what was sampled.

What was sampled (occupation, template, instance) is drawn again with all its answers, in both models at once. The standard
deviation of the resampled differences is the difference's standard error; with it goes Student's t with units less strata
degrees of freedom (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 12; degrees of freedom:
Korn and Graubard, Analysis of Health Surveys, 1999, section 5.2; paired and clustered, for language models: Miller, Adding
Error Bars to Evals, 2024). The interval and p are one test, so that they cannot disagree.

Why not a permutation of units between the models: it asks whether the models are alike in everything, and is wrong about
scores where they are not (Chung and Romano, Exact and asymptotically robust permutation tests, Annals of Statistics 41, 2013).
Of two models that follow the stereotype equally often when they name a person, but name one in 90 % and in 20 % of their
answers, it calls 0.2 to 11 % different at a level of 5 %, as the units' other properties fall; this test 3 to 7 %, from 12 units on
(tests/test_metrics_coverage.py). Where one of the models decides in a few units only, it errs in 10 % with 12 units and 7 % with
60 (a permutation in 12 and 14 %): so few answers carry the score.

    difference([0.2, 0.4, 0.9], [0.1, 0.4, 0.5])          # a score an item, the same items in both
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
from scipy.special import stdtr, stdtrit

from bench.core import i18n
from bench.core.errors import BadInput
from bench.metrics.bootstrap import DRAWS, LEVEL, Sample, Totals, replicate, resample, sample

# How often a difference that is called detectable would be found; it is so many standard errors where units are many.
POWER = 0.8
DETECTABLE = 1.96 + 0.84
# Two ways to compute the same difference differ by less.
_NOISE = 1e-12
Statistic = Callable[[np.ndarray], np.ndarray]


class Comparison(NamedTuple):
    """A paired difference, the first less the second; NaN where it is undefined, and `note` says why.

    Attributes:
        ci_low, ci_high: 95 % interval.
        p: for no difference, on two sides.
        units: how many units were drawn again.
        detectable: the difference that such data would show in four of five samples.
        error: standard error of the difference.
        freedom: its degrees of freedom.
    """

    difference: float
    ci_low: float
    ci_high: float
    p: float
    units: int
    detectable: float
    note: str
    error: float = np.nan
    freedom: float = np.nan


def difference(
    first: Sequence[float] | np.ndarray,
    second: Sequence[float] | np.ndarray,
    units: Sequence[object] | None = None,
    length: float = math.nan,
) -> Comparison:
    """The difference of the means of two models' scores of the same items, in the same order.

    Args:
        units: what each item was sampled with, such as its scene; each for itself if None.
        length: see `by_resamples`.

    Raises:
        BadInput: unequally many, none, or a score that is no number.
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise BadInput(
            f"two models' scores of the same items are needed; found shapes {one.shape} and {other.shape}"
        )
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise BadInput("two models' scores: one is no number; leave the item out for both")
    names = range(len(one)) if units is None else units
    if len(names) != len(one):
        raise BadInput(f"{len(names)} units for {len(one)} items")
    rows = pd.DataFrame(
        {"stratum": "all", "unit": list(names), "n": 1.0, "first": one, "second": other}
    )
    first_columns, second_columns = ["first", "n"], ["second", "n_second"]
    rows["n_second"] = rows.n
    return paired(
        rows,
        "stratum",
        "unit",
        first_columns,
        second_columns,
        lambda strata: lambda sums: sums[:, 0, 0] / sums[:, 0, 1],
        length=length,
    )


def paired(
    rows: pd.DataFrame,
    stratum: str,
    unit: str,
    first: list[str],
    second: list[str],
    statistic: Callable[[list[object]], Statistic],
    *,
    part: str = "",
    crossed: tuple[str, str] | None = None,
    length: float = 1.0,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """The difference of a statistic of sums between two models.

    Args:
        rows: one a pair of answers, with the columns whose sums the statistic is made of, for both models.
        stratum, unit: columns that say within what units are drawn again.
        part, crossed: see `bench.metrics.bootstrap.resample`.
        length: see `by_resamples`; shares if not given.
        first, second: those columns of each model, in the same order.
        statistic: from the strata's names, in the order of their axis, to a function of the sums
            [n, strata, columns] -> [n].
    """
    drawn = resample(
        rows, stratum, unit, [*first, *second], part=part, crossed=crossed, draws=draws, seed=seed
    )
    return compare_totals(drawn, statistic, length)


def compare_totals(
    drawn: Totals, statistic: Callable[[list[object]], Statistic], length: float = 1.0
) -> Comparison:
    """Compare a statistic of resampled sums between two models.

    Args:
        drawn: sums of the first model's columns, then of the second's.
        statistic, length: see `paired`.
    """
    of, k = statistic(drawn.strata), len(drawn.columns) // 2

    def less(sums: np.ndarray) -> np.ndarray:
        return of(sums[..., :k]) - of(sums[..., k:])

    return compare_resamples(replicate(drawn, less), sample(drawn, less), length)


def compare_resamples(values: np.ndarray, rests_on: Sample, length: float = math.nan) -> Comparison:
    """Test a difference by its observed value and resamples, [1 + draws].

    p is never below that of a sign test in which all units agree: five units that all show a difference of 1, with no spread
    at all, could be chance in one of sixteen cases. Where no unit differs from the others, the
    interval is that of a share of which none of the units was seen (Clopper and Pearson, 1934).

    Args:
        length: of the scale of the scores; there is no interval without a spread if NaN.
    """
    units, freedom, value = rests_on.units, rests_on.freedom, float(values[0]) + 0.0
    nothing = (np.nan, np.nan, np.nan, units, np.nan)
    if np.isnan(value):
        return Comparison(value, *nothing, "undefined for one of the two, or for both")
    drawn = values[1:][~np.isnan(values[1:])]
    if freedom < 1 or len(drawn) < len(values) / 2:
        return Comparison(value, *nothing, "no interval: too few units in a stratum")
    error = float(np.std(drawn)) * rests_on.widening
    # Where no resample differs, nothing at all speaks for chance, or all does.
    p = (
        2 * float(stdtr(freedom, -abs(value) / error))
        if error > _NOISE
        else float(abs(value) < _NOISE)
    )
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    shown = arm + float(stdtrit(freedom, POWER)) * error
    if error <= _NOISE:
        arm = length * (1 - ((1 - LEVEL) / 2) ** (1 / units))
    p = max(p, 2.0 ** (1 - units))
    return Comparison(value, value - arm, value + arm, p, units, shown, "", error, freedom)


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """p values of several comparisons, adjusted so that all of them together err in at most 5 % (Holm, 1979).

    A comparison without a p value is none.
    """
    found = np.array(p, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(found))
    # Not by statsmodels' multipletests, which collects garbage at each call: a fifth of a second, hundreds of times a notebook.
    order = defined[np.argsort(found[defined], kind="stable")]
    steps = found[order] * np.arange(len(order), 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return found


def benjamini_hochberg(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """p values of several comparisons, adjusted so that of those called different at most 5 % are not (Benjamini, Hochberg, 1995).

    It holds for differences of pairs of models too (Williams, Jones and Tukey, 1999). A comparison without a p value is none.
    """
    found = np.array(p, dtype=np.float64)
    defined = ~np.isnan(found)
    if defined.any():
        found[defined] = scipy.stats.false_discovery_control(found[defined])
    return found


def comparison_sentence(
    found: Comparison,
    first: str,
    second: str,
    what: str,
    *,
    p: float | None = None,
    units: str = i18n.N_("units"),
) -> str:
    """A comparison in a sentence; never stronger than the test allows.

    Args:
        what: the score.
        p: the p value to go by, where it was adjusted for other comparisons.
        units: what the units are.
    """
    if np.isnan(found.p):
        why = i18n.note(found.note)
        return i18n._(
            "{first} and {second} cannot be compared in {what}: {why}.",
            first=first,
            second=second,
            what=what,
            why=why,
        )
    sure = i18n._("adjusted {p}", p=format_p(p)) if p is not None else format_p(found.p)
    ends = {"low": format_signed(found.ci_low), "high": format_signed(found.ci_high)}
    parts = [sure, i18n._("{n} {units}", n=f"{found.units:,}", units=i18n._(units))]
    if not np.isnan(found.ci_low):
        parts.insert(0, i18n._("95\u00a0% interval {low} to {high}", **ends))
    around = i18n._("; ").join(parts)
    of = {"what": what, "first": first, "second": second, "around": around}
    if (found.p if p is None else p) < 1 - LEVEL:
        of["size"] = f"{abs(found.difference):.2f}"
        if found.difference > 0:
            return i18n._("{what} is {size} higher in {first} than in {second} ({around}).", **of)
        return i18n._("{what} is {size} lower in {first} than in {second} ({around}).", **of)
    nothing = i18n._(
        "No difference in {what} could be shown between {first} and {second}: {difference} ({around}).",
        difference=format_signed(found.difference),
        **of,
    )
    return i18n.sentences(
        [nothing, detectable_sentence(f"{found.detectable:.2f}", found.detectable)]
    )


def format_p(p: float) -> str:
    """A p value in a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def detectable_sentence(size: str, detectable: float) -> str:
    """The sentence on the difference of `size` that data would have shown; "" where that is not known."""
    return i18n._("These data would have shown one of {size}.", size=size) if detectable > 0 else ""


def format_signed(value: float) -> str:
    """Write a number with two digits and a sign; zero has none."""
    return f"{value:+.2f}" if abs(value) >= 0.005 else "0.00"
