"""Do benchmarks order models alike: a multitrait-multimethod matrix over models.

Measures of one trait in several benchmarks should go together (convergent evidence), and more so
than with measures of another trait (discriminant evidence); else they measure the benchmark, or
something else that models differ in (Campbell and Fiske, Psychological Bulletin 56, 1959). The
traits are grasp (McBE's classification and bias scoring, CBBQ's accuracy) and preference (McBE's
preference computation and scenario selection, CBBQ's s_amb, NLI-CoAL's directional gap). All
measures are turned so that higher is better.

The diagonal holds the reliability, the share of the variance between models that is not chance of
items: 1 - mean squared standard error / variance. No correlation can be expected above the
geometric mean of two reliabilities (Spearman, American Journal of Psychology 15, 1904).

    measures = measure(by_benchmark(runs))
    orders, reliability = correlate(measures), reliabilities(measures)
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
import seaborn as sns
from matplotlib.figure import Figure

from bench.benchmarks import module
from bench.benchmarks import names as benchmark_names
from bench.core.numbers import decimals
from bench.core.text import sentences
from bench.figures.style import FAINT, INK, WIDTH, set_title, style
from bench.metrics import correlation
from bench.metrics.bootstrap import interval
from bench.metrics.headline import listing, range_text
from bench.metrics.table import ALL, GRASP, PREFERENCE
from bench.run.results import Run, labels

# Fewer models make no order to speak of: with three, one of three random orders looks perfect.
LEAST = 4
PERMUTATIONS = 9999
NOISE = 1e-9
CONVERGENT, DISCRIMINANT = "convergent", "discriminant"
SAME = "same benchmark"


class Measure(NamedTuple):
    """A measure of one benchmark, of several models.

    Attributes:
        name: as tables and pictures show it.
        trait: `grasp` or `preference`.
        values: by model, float64 [1 + draws], observed and resampled, higher is better.
        freedom: the fewest degrees of freedom of a model's score.
    """

    name: str
    benchmark: str
    trait: str
    values: Mapping[str, np.ndarray]
    freedom: float = np.inf


def measure(runs: Mapping[str, Sequence[Run]], preset: str | None = None) -> list[Measure]:
    """Return the measures of both traits, grasp first, each model on all that it was asked.

    Args:
        runs: by benchmark, one run per model.
    """
    every = [run for name in benchmark_names() for run in runs.get(name, ())]
    scores = [
        (run.benchmark, label, run.replicates(preset))
        for run, label in zip(every, labels(every), strict=True)
    ]
    measures = []
    for wanted in (GRASP, PREFERENCE):
        for benchmark in (name for name in benchmark_names() if name in runs):
            title = module("data", benchmark).TITLE
            for trait in module("metrics", benchmark).TRAITS:
                place, sign = (ALL, trait.task, trait.metric), -1 if trait.biased_is_high else 1
                own = {
                    label: replicates
                    for name, label, replicates in scores
                    if name == benchmark and not np.isnan(replicates.get(place, [np.nan])[0])
                }
                if trait.name == wanted and own:
                    name = trait.task.upper() if trait.metric == "score" else trait.metric
                    values = {label: sign * replicates[place] for label, replicates in own.items()}
                    freedom = min(scores.samples[place].freedom for scores in own.values())
                    measures.append(Measure(f"{title} {name}", benchmark, wanted, values, freedom))
    return measures


def correlate(measures: Sequence[Measure]) -> pd.DataFrame:
    """Correlate every two measures over the models that have both.

    Returns:
        One row per pair: `first`, `second`, their traits, the `kind` of evidence (convergent: one
        trait in two benchmarks; discriminant: two traits; or one trait in the same benchmark), `n`
        models, `rho` with its interval and `p`; NaN with a `reason` below four models.
    """
    rows = []
    for first, second in combinations(measures, 2):
        kind = CONVERGENT if first.benchmark != second.benchmark else SAME
        kind = DISCRIMINANT if first.trait != second.trait else kind
        models = [name for name in first.values if name in second.values]
        about = (first.name, second.name, first.trait, second.trait, kind, len(models))
        x, y = (np.array([measure.values[name] for name in models]) for measure in (first, second))
        rows.append((*about, *_spearman(x, y, min(first.freedom, second.freedom))))
    columns = ["first", "second", "trait_first", "trait_second", "kind", "n"]
    return pd.DataFrame(rows, columns=[*columns, "rho", "ci_low", "ci_high", "p", "reason"])


def reliabilities(measures: Sequence[Measure]) -> pd.DataFrame:
    """Return the reliability of each measure over its models."""
    rows = []
    for measure in measures:
        values = np.array(list(measure.values.values()))
        value = correlation.reliability(values) if len(values) >= LEAST else np.nan
        rows.append((measure.name, measure.trait, len(values), value))
    return pd.DataFrame(rows, columns=["measure", "trait", "n", "reliability"])


def findings(orders: pd.DataFrame) -> list[str]:
    """Say how measures of one trait in several benchmarks correlate, and those of two traits."""
    across = orders[orders.kind != SAME]
    known = across[across.rho.notna()]
    if known.empty:
        most = int(across.n.max()) if len(across) else 0
        return [
            (
                f"Too few models for a comparison of benchmarks: {most} have two measures; "
                f"{LEAST} are needed at least."
            )
        ]
    same = known[known.kind == CONVERGENT]
    groups = {trait: same[same.trait_first == trait] for trait in (GRASP, PREFERENCE)}
    groups[listing([GRASP, PREFERENCE])] = known[known.kind == DISCRIMINANT]
    return [
        (
            f"Over {range_text(str(rows.n.min()), str(rows.n.max()))} models, measures of "
            f"{trait} correlate by "
            f"{range_text(decimals(rows.rho.min(), 2), decimals(rows.rho.max(), 2))} "
            f"({len(rows)} pairs, mean of Spearman's ρ {decimals(rows.rho.mean(), 2)})."
        )
        for trait, rows in groups.items()
        if len(rows)
    ]


def _spearman(
    first: np.ndarray, second: np.ndarray, freedom: float
) -> tuple[float, float, float, float, str]:
    """Return Spearman's rho, its interval over items, p over orders of models, and why not.

    Args:
        first, second: float64 [models, 1 + draws].
    """
    nothing = (np.nan, np.nan, np.nan, np.nan)
    if len(first) < LEAST:
        return *nothing, f"{len(first)} models have both; {LEAST} are needed at least"
    ranks = [scipy.stats.rankdata(np.round(x / NOISE), axis=0) for x in (first, second)]
    if any(np.ptp(rank[:, 0]) == 0 for rank in ranks):
        return *nothing, "all models have the same score"
    x, y = (rank - rank.mean(0) for rank in ranks)
    with np.errstate(invalid="ignore"):
        rho = (x * y).sum(0) / np.sqrt((x**2).sum(0) * (y**2).sum(0))
    rho[np.isnan(first).any(0) | np.isnan(second).any(0)] = np.nan
    tested = scipy.stats.permutation_test(
        (x[:, 0],),
        lambda order, axis: np.sum(order * y[:, 0], axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return *interval(float(rho[0]), rho[1:], freedom), float(tested.pvalue), ""


def matrix(orders: pd.DataFrame, reliability: pd.DataFrame) -> Figure | None:
    """Draw correlations of measures below the diagonal, and their reliability on it.

    Args:
        orders, reliability: of `correlate` and `reliabilities`.

    Returns:
        None where no two measures have enough models.
    """
    if orders.rho.isna().all():
        return None
    style()
    names, traits = list(reliability.measure), list(reliability.trait)
    values = orders.pivot_table("rho", "second", "first").reindex(index=names, columns=names)
    texts = pd.DataFrame("", names, names)
    for row in orders.to_dict("records"):
        rho = f"{decimals(row['rho'], 2)}\n" if row["rho"] == row["rho"] else ""
        texts.loc[row["second"], row["first"]] = rho + f"n = {row['n']}"
    size = 0.75 * len(names)
    fig = Figure(figsize=(min(WIDTH, 1.9 + size), 1.7 + size * 0.8), layout="constrained")
    ax = fig.subplots()
    sns.heatmap(
        values,
        ax=ax,
        annot=texts,
        fmt="",
        cmap="PuOr",  # not that of bias: neither end is the worse one
        vmin=-1,
        vmax=1,
        linewidths=1,
        annot_kws={"fontsize": "small"},
        cbar_kws={"label": "Spearman's ρ", "shrink": 0.7},
    )
    for k, value in enumerate(reliability.reliability):
        text = f"({decimals(value, 2)})" if value == value else "(–)"
        ax.text(k + 0.5, k + 0.5, text, ha="center", va="center", fontsize="small", color=INK)
        if k and traits[k] != traits[k - 1]:
            ax.axhline(k, color=FAINT, lw=1)
            ax.axvline(k, color=FAINT, lw=1)
    centres = np.arange(len(names)) + 0.5
    rows = [f"{name} ({trait})" for name, trait in zip(names, traits, strict=True)]
    ax.set_xticks(centres, names, rotation=40, ha="right", fontsize="small")
    ax.set_yticks(centres, rows, rotation=0, fontsize="small")
    ax.set(xlabel="", ylabel="")
    ax.grid(visible=False)
    heading = "How measures order models alike (reliability on the diagonal)"
    set_title(fig, heading, wrap=True, alt=sentences(findings(orders)))
    return fig
