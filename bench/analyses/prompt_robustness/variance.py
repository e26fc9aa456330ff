"""How far a score generalises: the variance due to items, wordings, orders and seeds.

The table is fully crossed: every unit (scene, instance, occupation) was asked in every wording,
order and seed. Variance components are estimated from its mean squares (analysis of variance with
random facets; of a balanced table, Henderson's first method is the same). A D-study then says how
sure a score would be with other numbers of wordings.

Sources: Brennan, Generalizability Theory, 2001, chapters 3 to 5; Shavelson and Webb,
Generalizability Theory: A Primer, 1991; expected mean squares: Cornfield and Tukey, Annals of
Mathematical Statistics 27, 1956; degrees of freedom of sums of mean squares: Satterthwaite,
Biometrics Bulletin 2, 1946.

How often 95 % intervals hold the true score, in simulated studies of 0/1 answers with 24 or 200
items: 91 to 98 % with 4 or 8 wordings, 89 to 98 % with 2 (least where wordings matter most);
intervals that cover items alone 23 to 96 % (tests/analyses/test_prompt_robustness.py).
"""

from collections.abc import Mapping
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import fdtrc, stdtrit

from bench.core.i18n import N_, _, note, sentences
from bench.metrics.bootstrap import LEVEL, Sample

ITEMS, MODELS = N_("items"), N_("models")
WORDINGS, ORDERS, SEEDS = N_("wordings"), N_("orders"), N_("seeds")
CONDITIONS = (WORDINGS, ORDERS, SEEDS)
# Between the facets of an interaction.
CROSS = " x "
# Spreads below this are none.
NOISE = 1e-9
# Numbers of wordings of a D-study.
PLANNED = (1, 2, 4, 8)
NEGATIVE = "negative estimate, set to 0"
CHANCE = "no more than chance (F test), set to 0"
ONE_DEGREE = "rests on 1 degree of freedom"
SINGLE = "a category rests on a single unit, so the variance of items is unknown"
Source = tuple[str, ...]


class Crossed(NamedTuple):
    """A fully crossed table of unit values: the score of a condition plus a unit's deviation.

    Attributes:
        facets: names of the axes.
        scores: float64 [*facets], the score in each condition.
        deviations: float64 [rows, *facets], centred within strata
            (see `bench.metrics.influence.deviations`); units that the score does not need have 0.
        rests_on: the units that the score needs, and their strata, such as categories.
    """

    facets: tuple[str, ...]
    scores: np.ndarray
    deviations: np.ndarray
    rests_on: Sample

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of levels by facet, items among them."""
        levels = (self.rests_on.units, *self.scores.shape)
        return dict(zip((ITEMS, *self.facets), levels, strict=True))


class Interval(NamedTuple):
    """A score with its interval for items alone, and for items and all other facets.

    NaN where nothing differs: that is no proof of no spread.
    """

    score: float
    items_low: float
    items_high: float
    ci_low: float
    ci_high: float


def components(table: Crossed) -> pd.DataFrame:
    """Estimate the variance component of each source: each facet and each interaction.

    The expected mean square of a source is the sum of the components of all sources that hold it,
    each times the levels of the facets that are not in it; solved for the components.

    Answers are sampled one by one, so there is hardly a reason why a seed should move all items
    alike: a component of seeds without items counts only where an F test shows it at 5 % (pooling
    after a test: Bancroft, Annals of Mathematical Statistics 15, 1944).

    Returns:
        Indexed by `source` (facets with an x between them): `df`, `mean_square`, `variance` (at
        least 0), `share` of the sum of all components, `share_of_error` of the variance of a score
        over all levels, `note`. The last source holds what is left (the residual).
    """
    sizes = table.sizes
    sources = [source for k in range(1, len(sizes) + 1) for source in combinations(sizes, k)]
    squares, freedom = {}, {}
    for source in sources:
        inside = ITEMS in source
        effects = table.deviations if inside else table.scores
        for axis, facet in enumerate(table.facets, start=int(inside)):
            mean = effects.mean(axis, keepdims=True)
            effects = effects - mean if facet in source else mean
        levels = {name: size - 1 for name, size in sizes.items()}
        levels[ITEMS] = table.rests_on.units - table.rests_on.strata
        freedom[source] = prod(levels[name] for name in source)
        squares[source] = _others(source, sizes) * float((effects**2).sum()) / freedom[source]
    rows = []
    for source in sources:
        signed = [
            (-1) ** (len(other) - len(source)) * squares[other]
            for other in sources
            if set(source) <= set(other)
        ]
        estimate = sum(signed) / _others(source, sizes)
        notes = [NEGATIVE] if estimate < 0 else []
        if estimate > 0 and SEEDS in source and ITEMS not in source:
            noise = (ITEMS, *source)
            ratio = squares[source] / squares[noise] if squares[noise] > 0 else np.inf
            if fdtrc(freedom[source], freedom[noise], ratio) > 1 - LEVEL:
                notes, estimate = [CHANCE], 0.0
        notes += [ONE_DEGREE] if freedom[source] == 1 else []
        notes += [SINGLE] if np.isnan(estimate) else []
        variance = estimate if np.isnan(estimate) else max(estimate, 0.0)
        error = _error(source, variance, sizes)
        rows.append((freedom[source], squares[source], variance, error, "; ".join(notes)))
    index = pd.Index([CROSS.join(source) for source in sources], name="source")
    found = pd.DataFrame(rows, index, ["df", "mean_square", "variance", "error", "note"])
    found.insert(3, "share", _shares(found.variance))
    found["error"] = _shares(found.error)
    return found.rename(columns={"error": "share_of_error"})


def error_variance(found: pd.DataFrame, sizes: Mapping[str, int], relative: bool = False) -> float:
    """Return the variance of a model's mean score over so many levels of each facet.

    Args:
        found: of `components`.
        relative: only that which can change the order of models.
    """
    return sum(
        _error(source, variance, sizes)
        for source, variance in zip(map(_facets, found.index), found.variance, strict=True)
        if MODELS in source or not relative
    )


def by_facet(found: pd.DataFrame) -> pd.Series:
    """Return the shares of a score's error variance by items, wordings, orders and seeds.

    Interactions count for the first of these that they hold: what single items do in a wording
    evens out over items, what a wording does to all of them does not.
    """
    order = (ITEMS, *CONDITIONS)
    owner = [
        next((name for name in order if name in _facets(source)), "") for source in found.index
    ]
    shares = found.share_of_error.groupby(owner).sum(min_count=1)
    return shares.reindex([name for name in order if name in shares.index])


def interval(table: Crossed, found: pd.DataFrame, limits: tuple[float, float]) -> Interval:
    """Return the mean score of one model over all conditions, with its intervals.

    Args:
        found: of `components` of the same table.
        limits: the lowest and highest possible score.
    """
    score, n = float(table.scores.mean()), prod(table.sizes.values())
    items = _arm(found.mean_square[ITEMS] / n, found.df[ITEMS])
    variance = error_variance(found, table.sizes)
    # A component of wordings or orders that is estimated as 0 may rest on few degrees of freedom.
    kept = found[(found.variance > 0) | ~found.index.str.contains(SEEDS)]
    terms = float(((kept.mean_square / n) ** 2 / kept.df).sum())
    freedom = max(1.0, variance**2 / terms) if terms > 0 else np.inf
    # Never narrower than for items alone.
    every = float(np.maximum(items, _arm(variance, freedom)))
    arms = [arm if arm > NOISE else np.nan for arm in (items, every)]
    ends = [end for arm in arms for end in np.clip([score - arm, score + arm], *limits)]
    return Interval(score, *map(float, ends))


def d_study(found: pd.DataFrame, sizes: Mapping[str, int]) -> pd.DataFrame:
    """Return how sure a score would be with other numbers of wordings.

    Args:
        found: of `components`, with the facet of wordings.
        sizes: number of levels by facet.

    Returns:
        A row per number of wordings: `wordings`, `error`, `half_width`; and with the facet of
        models `g` and `dependability`, else NaN.
    """
    rows = []
    for n in sorted({*PLANNED, sizes[WORDINGS]}):
        planned = {**sizes, WORDINGS: n}
        absolute = error_variance(found, planned)
        error = float(np.sqrt(absolute))
        g = dependability = np.nan
        if MODELS in sizes:
            between = float(found.variance[MODELS])
            relative = error_variance(found, planned, relative=True)
            g = between / (between + relative) if between + relative > 0 else np.nan
            dependability = between / (between + absolute) if between + absolute > 0 else np.nan
        rows.append((n, error, _arm(absolute, np.inf), g, dependability))
    return pd.DataFrame(rows, columns=["wordings", "error", "half_width", "g", "dependability"])


def finding(
    found: pd.DataFrame, planned: pd.DataFrame | None, sizes: Mapping[str, int], title: str
) -> str:
    """Say what makes a score uncertain, and what more prompt sets would change.

    Args:
        found: of `components`.
        planned: of `d_study`; None where prompt sets were not varied.
        title: of the score.
    """
    error = float(np.sqrt(error_variance(found, sizes)))
    if np.isnan(error):
        return _("{title}: {why}.", title=title, why=note(SINGLE))
    parts = [
        _(
            "{title}: with all that was varied, a score has a standard error of {error}.",
            title=title,
            error=_number(error),
        )
    ]
    shares = _(", ").join(
        _("{facet} {share}", facet=_(str(name)), share=f"{share:.0%}")
        for name, share in by_facet(found).dropna().items()
    )
    if shares:
        parts.append(_("Its variance comes of: {shares}.", shares=shares))
    if planned is not None and planned.wordings.iloc[-1] > sizes[WORDINGS]:
        last = planned.iloc[-1]
        parts.append(
            _(
                "With {most} wordings in place of {n} it would be {error}.",
                most=int(last.wordings),
                n=sizes[WORDINGS],
                error=_number(last.error),
            )
        )
    return sentences(parts)


def _number(value: float) -> str:
    """Write a standard error of shares or points."""
    return f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def _facets(source: str) -> Source:
    return tuple(source.split(CROSS))


def _error(source: Source, variance: float, sizes: Mapping[str, int]) -> float:
    """Return what a source adds to the variance of a model's mean score; models add nothing."""
    if source == (MODELS,):
        return 0.0
    return variance / prod(sizes[name] for name in source if name != MODELS)


def _shares(values: pd.Series) -> pd.Series:
    total = float(values.sum(skipna=False))
    return values / (total if total > 0 else np.nan)


def _others(source: Source, sizes: Mapping[str, int]) -> int:
    """Return the number of levels of the facets that a source does not hold."""
    return prod(size for name, size in sizes.items() if name not in source)


def _arm(variance: float, freedom: float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2)) * float(np.sqrt(variance))
