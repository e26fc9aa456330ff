"""Do measures order models alike: a multitrait-multimethod matrix over models.

Measures of one trait in several benchmarks should go together (convergent evidence), and more so than
with measures of another trait (discriminant evidence); else they measure the benchmark, or something
else that models differ in (Campbell and Fiske, Psychological Bulletin 56, 1959). The traits are grasp
(McBE's classification and bias scoring, CBBQ's accuracy) and preference (McBE's preference computation
and scenario selection, CBBQ's s_amb, NLI-CoAL's directional gap). All measures are turned so that
higher is better.

On the diagonal stands the reliability, the share of the variance between models that is not chance of
items: 1 - mean squared standard error / variance. No correlation can be expected above the geometric
mean of two reliabilities (Spearman, American Journal of Psychology 15, 1904).
"""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench.benchmarks import module, names
from bench.core.i18n import _
from bench.metrics.bootstrap import Replicates, interval
from bench.metrics.correlation import reliability
from bench.metrics.table import ALL, GRASP, PREFERENCE, Card, Trait

# Fewer models make no order to speak of: with three, one of three random orders looks perfect.
LEAST = 4
PERMUTATIONS = 9999
NOISE = 1e-9
CONVERGENT, DISCRIMINANT, SAME = "convergent", "discriminant", "same benchmark"
SOURCE = "Campbell and Fiske, 1959"
CARDS = (
    Card(
        "rho",
        "Spearman's correlation of two measures over models, both turned so that higher is better; its "
        "interval is for other items and the same models",
        "pearson(rank x, rank y)",
        "Spearman, 1904",
        "-1 to 1",
        "high for one trait in two benchmarks, lower between two traits",
    ),
    Card(
        "p",
        "share of all orders of the models (of 9,999 random ones from eight models on) with so strong a "
        "correlation, on two sides",
        "permutation test",
        "Pitman, 1937; scipy",
        "0 to 1",
        "-",
    ),
    Card(
        "reliability",
        "share of the variance between models that is not chance of items",
        "1 - mean squared standard error / variance of the scores",
        "Spearman, 1904",
        "0 to 1",
        "1",
    ),
)


class Measure(NamedTuple):
    """A measure of one benchmark, as it was got by several models.

    Attributes:
        name: as tables and pictures call it.
        trait: `grasp` or `preference`.
        values: by model, float64 [1 + draws], observed and resampled, higher is better.
        freedom: the fewest degrees of freedom of a model's score.
    """

    name: str
    benchmark: str
    trait: str
    values: Mapping[str, np.ndarray]
    freedom: float = np.inf


def measures(found: Mapping[str, Mapping[str, Replicates]]) -> list[Measure]:
    """The measures of traits, grasp first, as far as some model has them.

    Args:
        found: by benchmark and model, scores observed and resampled.
    """
    kept = []
    for trait in (GRASP, PREFERENCE):
        for benchmark in (name for name in names() if name in found):
            room = module("metrics", benchmark)
            for one in (each for each in room.TRAITS if each.name == trait):
                values = _values(found[benchmark], one)
                title = module("data", benchmark).TITLE
                name = one.task.upper() if one.metric == "score" else one.metric
                if values:
                    place = (ALL, one.task, one.metric)
                    freedom = min(
                        found[benchmark][model].samples[place].freedom for model in values
                    )
                    kept.append(Measure(f"{title} {name}", benchmark, trait, values, freedom))
    return kept


def correlated(every: list[Measure]) -> pd.DataFrame:
    """Correlate every two measures over the models that have both.

    Returns:
        A row per pair: `first`, `second`, their `trait`s, the `kind` of evidence (convergent: one
        trait in two benchmarks; discriminant: two traits; or one trait in the same benchmark), `n`
        models, `rho` with its interval and `p`; NaN with a `reason` below four models.
    """
    rows = []
    for first, second in combinations(every, 2):
        kind = DISCRIMINANT if first.trait != second.trait else CONVERGENT
        if kind == CONVERGENT and first.benchmark == second.benchmark:
            kind = SAME
        models = [name for name in first.values if name in second.values]
        about = (first.name, second.name, first.trait, second.trait, kind, len(models))
        both = [[one.values[model] for model in models] for one in (first, second)]
        rows.append((*about, *_spearman(both[0], both[1], min(first.freedom, second.freedom))))
    columns = ["first", "second", "trait_first", "trait_second", "kind", "n"]
    return pd.DataFrame(rows, columns=[*columns, "rho", "ci_low", "ci_high", "p", "reason"])


def reliabilities(every: list[Measure]) -> pd.DataFrame:
    """The reliability of each measure over its models: `measure`, `trait`, `n`, `reliability`."""
    rows = []
    for one in every:
        drawn = np.array(list(one.values.values()))
        value = reliability(drawn) if len(drawn) >= LEAST else np.nan
        rows.append((one.name, one.trait, len(drawn), value))
    return pd.DataFrame(rows, columns=["measure", "trait", "n", "reliability"])


def findings(pairs: pd.DataFrame) -> list[str]:
    """Say how measures of one trait in several benchmarks go together, and those of two traits."""
    across = pairs[pairs.kind != SAME]
    known = across[across.rho.notna()]
    most = int(across.n.max()) if len(across) else 0
    if known.empty:
        return [
            _(
                "Too few models for a comparison of benchmarks: {n} have two measures; {least} are "
                "needed at least.",
                n=most,
                least=LEAST,
            )
        ]
    told = []
    for trait in (GRASP, PREFERENCE):
        same = known[(known.kind == CONVERGENT) & (known.trait_first == trait)]
        if len(same):
            told.append(
                _(
                    "Over {n} models, measures of {trait} from different benchmarks correlate by "
                    "{rho} ({pairs} pairs, mean of Spearman's ρ {mean}).",
                    **_summary(same),
                    trait=_(trait),
                )
            )
    apart = known[known.kind == DISCRIMINANT]
    if len(apart):
        told.append(
            _(
                "Measures of grasp and of preference correlate by {rho} over {n} models ({pairs} "
                "pairs, mean {mean}).",
                **_summary(apart),
            )
        )
    return told


def _summary(rows: pd.DataFrame) -> dict[str, str]:
    """Numbers of several correlations for a sentence."""

    def span(values: pd.Series, digits: int) -> str:
        low, high = (f"{value:z.{digits}f}" for value in (values.min(), values.max()))
        return low if low == high else _("{low} to {high}", low=low, high=high)

    return {
        "n": span(rows.n, 0),
        "rho": span(rows.rho, 2),
        "pairs": str(len(rows)),
        "mean": f"{rows.rho.mean():z.2f}",
    }


def _values(found: Mapping[str, Replicates], trait: Trait) -> dict[str, np.ndarray]:
    """By model, a measure turned so that higher is better; models without a number are left out."""
    place = (ALL, trait.task, trait.metric)
    sign = -1 if trait.biased_is_high else 1
    return {
        model: sign * replicates[place]
        for model, replicates in found.items()
        if place in replicates and not np.isnan(replicates[place][0])
    }


def _spearman(
    first: list[np.ndarray],
    second: list[np.ndarray],
    freedom: float,
) -> tuple[float, float, float, float, str]:
    """Spearman's rho with its interval over resamples of items, p over orders of models, and why not."""
    nothing = (np.nan, np.nan, np.nan, np.nan)
    if len(first) < LEAST:
        return *nothing, f"{len(first)} models have both; {LEAST} are needed at least"
    ranks = [
        scipy.stats.rankdata(np.round(np.array(one) / NOISE), axis=0) for one in (first, second)
    ]
    if any(np.ptp(one[:, 0]) == 0 for one in ranks):
        return *nothing, "all models have the same score"
    undefined = np.isnan(np.array([first, second])).any(axis=(0, 1))
    x, y = (one - one.mean(0) for one in ranks)
    with np.errstate(invalid="ignore"):
        rho = (x * y).sum(0) / np.sqrt((x**2).sum(0) * (y**2).sum(0))
    rho[undefined] = np.nan
    around = interval(float(rho[0]), rho[1:], freedom)
    tested = scipy.stats.permutation_test(
        (x[:, 0],),
        lambda order, axis: np.sum(order * y[:, 0], axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return *around, float(tested.pvalue), ""
