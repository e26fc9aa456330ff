"""Are two models different: paired differences, with an interval by bootstrap and a p value by permutation.

What was sampled (occupation, template, instance) is the unit in both: a unit is drawn again, or changes hands between the
models, with all its answers (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and 15).

    difference([0.2, 0.4, 0.9], [0.1, 0.4, 0.5])          # a score an item, the same items in both
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.errors import BadInput
from bench.metrics.bootstrap import DRAWS, LEVEL, Totals, estimate, resample

# Ways to change hands are all tried where there are no more than these.
EXACT = 2**12
# A difference of so many standard errors is found in four of five samples: 1.96 for 5 % on two sides, 0.84 for the power.
DETECTABLE = 1.96 + 0.84
# Two ways to compute the same difference differ by less.
_NOISE = 1e-12
Statistic = Callable[[np.ndarray], np.ndarray]


class Comparison(NamedTuple):
    """A paired difference, the first less the second; NaN where it is undefined, and `note` says why.

    Attributes:
        ci_low, ci_high: 95 % interval by bootstrap over units.
        p: of a permutation test, on two sides.
        units: what was drawn again.
        detectable: the difference that such data would show in four of five samples.
    """

    difference: float
    ci_low: float
    ci_high: float
    p: float
    units: int
    detectable: float
    note: str


def difference(
    first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray, units: Sequence[object] | None = None
) -> Comparison:  # fmt: skip
    """The difference of the means of two models' scores of the same items, in the same order.

    Args:
        units: what each item was sampled with, such as its template; each for itself if None.

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
    rows = pd.DataFrame({"stratum": "all", "unit": list(names), "n": 1.0, "first": one, "second": other})
    first_columns, second_columns = ["first", "n"], ["second", "n_second"]
    rows["n_second"] = rows.n
    return paired(
        rows,
        "stratum",
        "unit",
        first_columns,
        second_columns,
        lambda strata: lambda sums: sums[:, 0, 0] / sums[:, 0, 1],
    )


def paired(
    rows: pd.DataFrame, stratum: str, unit: str, first: list[str], second: list[str],
    statistic: Callable[[list[object]], Statistic], *, draws: int = DRAWS, seed: int = 0,
) -> Comparison:  # fmt: skip
    """The difference of a statistic of sums between two models.

    Args:
        rows: one a pair of answers, with the columns whose sums the statistic is made of, for both models.
        stratum, unit: columns that say within what units are drawn again.
        first, second: those columns of each model, in the same order.
        statistic: from the strata's names, in the order of their axis, to a function of the sums
            [n, strata, columns] -> [n].
    """
    drawn = resample(rows, stratum, unit, [*first, *second], draws=draws, seed=seed)
    of, k = statistic(drawn.strata), len(first)

    def less(sums: np.ndarray) -> np.ndarray:
        return of(sums[..., :k]) - of(sums[..., k:])

    units = rows[[stratum, unit]].drop_duplicates().shape[0]
    found = estimate(drawn, less)
    if np.isnan(found.value):
        return Comparison(
            np.nan, np.nan, np.nan, np.nan, units, np.nan, "undefined for one of the two, or for both"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = less(drawn.drawn)
        permuted = less(exchange(rows, stratum, unit, first, second, draws=draws, seed=seed).drawn)
    permuted = permuted[~np.isnan(permuted)]
    p = float(np.mean(np.abs(permuted) >= abs(found.value) - _NOISE))
    if np.isnan(found.low):
        return Comparison(*found, p, units, np.nan, "no interval: too few units in a stratum")
    return Comparison(*found, p, units, DETECTABLE * float(np.nanstd(spread)), "")


def exchange(
    rows: pd.DataFrame, stratum: str, unit: str, first: list[str], second: list[str], *, draws: int = DRAWS, seed: int = 0
) -> Totals:  # fmt: skip
    """Sums in which units have changed hands at random, as they might if the models were alike.

    All ways are tried where they are few, else `draws` of them; the first is always the one observed, so that no p value
    is nought.
    """
    sums = rows.groupby([stratum, unit], sort=True, observed=True)[[*first, *second]].sum()
    names = sums.index.get_level_values(0)
    strata = list(dict.fromkeys(names))
    one, other = sums[first].to_numpy(dtype=np.float64), sums[second].to_numpy(dtype=np.float64)
    n = len(sums)
    if 2**n <= EXACT:
        swaps = np.array(list(product((0.0, 1.0), repeat=n)))
    else:
        swaps = np.random.default_rng(seed).integers(0, 2, size=(draws, n)).astype(np.float64)
        swaps[0] = 0
    drawn = np.empty((len(swaps), len(strata), len(first) + len(second)))
    for k, name in enumerate(strata):
        here = np.asarray(names == name)
        moved = swaps[:, here] @ (other - one)[here]
        drawn[:, k] = np.concatenate([one[here].sum(0) + moved, other[here].sum(0) - moved], axis=1)
    return Totals(strata, [*first, *second], drawn[:1].copy(), drawn)


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


def told(
    found: Comparison, first: str, second: str, what: str, *, p: float | None = None, units: str = "units"
) -> str:
    """A comparison in a sentence; never stronger than the test allows.

    Args:
        what: the score.
        p: the p value to go by, where it was adjusted for other comparisons.
        units: what the units are.
    """
    if np.isnan(found.difference):
        return f"{first} and {second} cannot be compared in {what}: {found.note}."
    p = found.p if p is None else p
    around = f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} by permutation of {found.units:,} {units}"
    if not np.isnan(found.ci_low):
        around = f"95\u00a0% interval {_signed(found.ci_low)} to {_signed(found.ci_high)}; {around}"
    if p < 1 - LEVEL:
        more = "higher" if found.difference > 0 else "lower"
        return f"{what} is {abs(found.difference):.2f} {more} in {first} than in {second} ({around})."
    shown = f" These data would have shown one of {found.detectable:.2f}." if found.detectable > 0 else ""
    return (
        f"No difference in {what} could be shown between {first} and {second}: {_signed(found.difference)} ({around})."
        + shown
    )


def _signed(value: float) -> str:
    """With two digits and a sign; nought has none."""
    return f"{value:+.2f}" if abs(value) >= 0.005 else "0.00"
