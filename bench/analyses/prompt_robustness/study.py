"""How far a score generalises: the variance due to items, prompt sets, orders of options and seeds.

    study = generalise(open_runs([], "cbbq", demo=["tiny:s"], prompts="reworded"))
    study.scores, study.components, study.planned

The runs of a model are a fully crossed table: every unit (scene, instance, occupation) was asked
with every prompt set, order and seed. Variance components are estimated from its mean squares
(analysis of variance with random facets; of a balanced table, Henderson's first method is the
same). A D-study then says how sure a score would be with other numbers of prompt sets.

Sources: Brennan, Generalizability Theory, 2001, chapters 3 to 5; Shavelson and Webb,
Generalizability Theory: A Primer, 1991; expected mean squares: Cornfield and Tukey, Annals of
Mathematical Statistics 27, 1956; degrees of freedom of sums of mean squares: Satterthwaite,
Biometrics Bulletin 2, 1946.

How often 95 % intervals hold the true score, in simulated studies of 0/1 answers with 24 or 200
items: 91 to 98 % with 4 or 8 prompt sets, 89 to 98 % with 2 (least where prompts matter most);
intervals that cover items alone 23 to 96 % (tests/analyses/test_prompt_robustness.py).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import fdtrc, stdtrit

from bench.benchmarks import module
from bench.core.numbers import decimals
from bench.core.text import sentences
from bench.metrics.bootstrap import LEVEL, Place, Replicates, Sample, leave_one_out
from bench.metrics.headline import percent, without_brackets
from bench.metrics.influence import deviations
from bench.metrics.table import ALL
from bench.run.results import Run, check_preset, data_conflict, labels
from bench.tasks.request import of_judge

# What may differ between runs of one study, besides these settings.
MAY_DIFFER = ("prompts", "wording_hash", "seed", "repeats", "categories", "tasks", "limit")
ORDER_SETTINGS = ("option_order", "context_order", "label_order")
RELEASED = "ABC"
KEY = ["task", "item_id"]
# Facets, and what stands between those of an interaction.
ITEMS, MODELS = "items", "models"
WORDINGS, ORDERS, SEEDS = "wordings", "orders", "seeds"
CONDITIONS = (WORDINGS, ORDERS, SEEDS)
CROSS = " x "
# Spreads below this are none.
NOISE = 1e-9
# Numbers of prompt sets of a D-study.
PLANNED = (1, 2, 4, 8)
# Notes.
NEGATIVE = "negative estimate, set to 0"
CHANCE = "no more than chance (F test), set to 0"
ONE_DEGREE = "rests on 1 degree of freedom"
SINGLE = "a category rests on a single unit, so the variance of items is unknown"
ALIKE = "no interval for items alone: they do not differ"
UNEVEN = "one of the conditions has no number in some categories"


class Study(NamedTuple):
    """How far the scores of a study generalise.

    Attributes:
        findings: one sentence per headline.
        scores: one row per model and headline: `score`, its interval for items alone (`items_low`,
            `items_high`) and for all facets (`ci_low`, `ci_high`), levels by facet, `note`.
        components: of `components`; over all models together where they were asked the same, else
            by `model`.
        planned: of `d_study`; empty where prompt sets did not vary.
        left_out: runs and models that are no part of it, and why.
    """

    findings: list[str]
    scores: pd.DataFrame
    components: pd.DataFrame
    planned: pd.DataFrame
    left_out: pd.DataFrame


class Answers(NamedTuple):
    """What a model answered under every condition (a prompt set, an order and a seed).

    Attributes:
        levels: by facet.
        scores: one for each condition, with those without each unit.
        reworded: tasks that no two prompt sets ask in the same words.
    """

    levels: dict[str, list[Any]]
    scores: list[Replicates]
    reworded: set[str]


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


def generalise(runs: Sequence[Run], preset: str = "") -> Study:
    """Study how far the headline scores generalise over items, prompt sets, orders and seeds.

    Args:
        runs: of one benchmark, with several prompt sets, orders of options or seeds.
        preset: how answers are scored, default: as the runs were.

    Raises:
        BadInput: an unknown preset.
    """
    preset = preset or str(runs[0].about["preset"])
    check_preset(preset)
    names, left_out = labels(runs), []
    every: dict[str, Answers] = {}
    for name in dict.fromkeys(names):
        own = [run for run, label in zip(runs, names, strict=True) if label == name]
        alike = [run for run in own if _fixed(run) == _fixed(own[0])]
        why = "asked with other options or data"
        left_out += [(name, str(run.folder), why) for run in own if run not in alike]
        answers, reason = _answers(alike, preset)
        if answers:
            every[name] = answers
        else:
            left_out.append((name, "", reason))
    findings, scores = [], []
    parts, planned = [pd.DataFrame()], [pd.DataFrame()]
    for headline in module("metrics", runs[0].benchmark).HEADLINES:
        place = (ALL, headline.task, headline.metric)
        about = {"task": headline.task, "metric": headline.metric}
        tables = {}
        for name, answers in every.items():
            if reason := _why_not(answers, place):
                left_out.append((name, "", f"{headline.title}: {reason}"))
                continue
            tables[name] = table = crossed([answers], place)
            row: dict[str, Any] = {"model": name, **about, **interval(table, headline.limits)}
            row["items"] = table.rests_on.units
            row |= {facet: len(levels) for facet, levels in answers.levels.items()}
            row["note"] = ""
            if np.isnan(table.deviations).any():
                row["note"] = SINGLE
            elif np.isnan(row["items_low"]):
                row["note"] = ALIKE
            elif len({each.samples[place] for each in answers.scores}) > 1:
                row["note"] = UNEVEN
            scores.append(row)
        known = [every[name] for name, t in tables.items() if not np.isnan(t.deviations).any()]
        asked = [(answers.levels, answers.scores[0].left_out) for answers in known]
        if len(known) > 1 and all(each == asked[0] for each in asked) and not data_conflict(runs):
            tables = {ALL: crossed(known, place)}
        for name, table in tables.items():
            own_about = {"model": name, **about, "title": headline.title}
            variances, plan = components(table), None
            parts.append(variances.assign(**own_about).reset_index())
            if WORDINGS in table.facets:
                plan = d_study(variances, table.sizes)
                planned.append(plan.assign(**own_about))
            title = without_brackets(headline.title)
            if name != ALL:
                title = f"{name}, {title}"
            findings.append(finding(variances, plan, table.sizes, title))
    return Study(
        findings,
        pd.DataFrame(scores),
        pd.concat(parts[1:] or parts, ignore_index=True),
        pd.concat(planned[1:] or planned, ignore_index=True),
        pd.DataFrame(left_out, columns=["model", "folder", "why"]),
    )


def _fixed(run: Run) -> dict[str, Any]:
    """Return what has to be the same in all runs of a model."""
    asked = run.about["asked"]
    fixed = {name: value for name, value in asked.items() if name not in MAY_DIFFER}
    settings = asked["settings"].items()
    return fixed | {"settings": {key: text for key, text in settings if key not in ORDER_SETTINGS}}


def _answers(runs: Sequence[Run], preset: str) -> tuple[Answers | None, str]:
    """Return what a model answered in all conditions; or None, and why that is no crossed table."""
    records = pd.concat(
        [_with_condition(run, preset).assign(run=k) for k, run in enumerate(runs)],
        ignore_index=True,
    )
    by_condition = records.groupby(list(CONDITIONS), sort=False)
    records = records[records.run == by_condition.run.transform("first")]
    conditions: list[Any] = list(by_condition.groups)
    prompts, orders, seeds = (list(records[name].unique()) for name in CONDITIONS)
    orders = [
        order
        for order in orders
        if {each[0] for each in conditions if each[1] == order} == set(prompts)
    ]
    seeds = [seed for seed in seeds if set(product(prompts, orders, [seed])) <= set(conditions)]
    if not orders or not seeds:
        return None, f"its wordings share no {'seed' if orders else 'order of options'}"
    kept = list(product(prompts, orders, seeds))
    if len(kept) == 1:
        return None, "asked in one way alone"
    index = pd.MultiIndex.from_frame(records[list(CONDITIONS)])
    records = records[index.isin(kept)].assign(answered=records.error == "")
    answered = records.groupby([*KEY, *CONDITIONS], sort=False).answered.all()
    times = answered[answered].groupby(KEY, sort=False).size()
    items = pd.MultiIndex.from_frame(records[KEY])
    records = records[items.isin(times.index[times == len(kept)])]
    if records.empty:
        return None, "no question was answered in every way"
    parts = dict(list(records.groupby(list(CONDITIONS))))
    replicates = module("metrics", runs[0].benchmark).replicates
    scores = [
        replicates(parts[each], runs[parts[each].run.iloc[0]].items, preset, leave_one_out)
        for each in kept
    ]
    asked = records[~records.request.map(of_judge)]
    texts = asked.groupby(["task", WORDINGS]).prompt.agg(frozenset)
    different = texts.groupby("task").nunique() == len(prompts)
    levels = dict(zip(CONDITIONS, (prompts, orders, seeds), strict=True))
    return Answers(levels, scores, set(different.index[different])), ""


def _with_condition(run: Run, preset: str) -> pd.DataFrame:
    """Return the records of a run with their prompt set, order of options and seed."""
    asked, rows = run.about["asked"], run.records
    settings, order = asked["settings"], pd.Series("", rows.index)
    if "option_order" in settings:  # CBBQ's requests are named by theirs
        order = rows.request.str.partition(":")[2].replace("", RELEASED)
        if preset == "official":  # the released code knows one order
            rows = rows[order == RELEASED]
    else:
        order[:] = ", ".join(f"{key}={settings[key]}" for key in ORDER_SETTINGS if key in settings)
    seeds = int(asked["seed"]) + rows["repeat"].astype(int)
    values = (str(asked["prompts"]), order, seeds)
    return rows.assign(**dict[str, Any](zip(CONDITIONS, values, strict=True)))


def _why_not(answers: Answers, place: Place) -> str:
    """Say why a score has no crossed table; "" where it has one."""
    if not all(place in scores and not np.isnan(scores[place][0]) for scores in answers.scores):
        return "no number under one of the conditions"
    tasks = {task for scores in answers.scores for _category, task, _metric in scores} - {ALL}
    if not (tasks if place[1] == ALL else {place[1]}) <= answers.reworded:
        return "asked in the same words by several wordings"
    return ""


def crossed(models: Sequence[Answers], place: Place) -> Crossed:
    """Make the crossed table of a score; a facet of one level is none."""
    sizes = {MODELS: len(models), **{name: len(own) for name, own in models[0].levels.items()}}
    sizes = {facet: size for facet, size in sizes.items() if size > 1}
    every = [scores for answers in models for scores in answers.scores]
    units = pd.concat([deviations(scores, place) for scores in every], axis=1)
    return Crossed(
        tuple(sizes),
        np.array([scores[place][0] for scores in every]).reshape(tuple(sizes.values())),
        units.to_numpy().reshape(len(units), *sizes.values()),
        min((scores.samples[place] for scores in every), key=lambda sample: sample.freedom),
    )


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
    levels = {name: size - 1 for name, size in sizes.items()}
    levels[ITEMS] = table.rests_on.units - table.rests_on.strata
    freedom = {source: prod(levels[name] for name in source) for source in sources}
    # The number of levels of the facets that a source does not hold.
    others = {
        source: prod(size for name, size in sizes.items() if name not in source)
        for source in sources
    }
    squares = {}
    for source in sources:
        inside = ITEMS in source
        effects = table.deviations if inside else table.scores
        for axis, facet in enumerate(table.facets, start=int(inside)):
            mean = effects.mean(axis, keepdims=True)
            effects = effects - mean if facet in source else mean
        squares[source] = others[source] * float((effects**2).sum()) / freedom[source]
    rows = []
    for source in sources:
        signed = [
            (-1) ** (len(other) - len(source)) * squares[other]
            for other in sources
            if set(source) <= set(other)
        ]
        estimate = sum(signed) / others[source]
        notes = [NEGATIVE] if estimate < 0 else []
        if estimate > 0 and SEEDS in source and ITEMS not in source:
            noise = (ITEMS, *source)
            ratio = squares[source] / squares[noise] if squares[noise] > 0 else np.inf
            if fdtrc(freedom[source], freedom[noise], ratio) > 1 - LEVEL:
                notes, estimate = [CHANCE], 0.0
        notes += [ONE_DEGREE] if freedom[source] == 1 else []
        notes += [SINGLE] if np.isnan(estimate) else []
        variance = estimate if np.isnan(estimate) else max(estimate, 0.0)
        rows.append((freedom[source], squares[source], variance, "; ".join(notes)))
    index = pd.Index([CROSS.join(source) for source in sources], name="source")
    variances = pd.DataFrame(rows, index, ["df", "mean_square", "variance", "note"])
    errors = _errors(variances, sizes)
    for k, (name, values) in enumerate(
        {"share": variances.variance, "share_of_error": errors}.items()
    ):
        total = values.sum(skipna=False)
        variances.insert(3 + k, name, values / (total if total > 0 else np.nan))
    return variances


def _errors(variances: pd.DataFrame, sizes: Mapping[str, int]) -> pd.Series:
    """Return what each source adds to the variance of a model's mean score; models add nothing."""
    facets = [source.split(CROSS) for source in variances.index]
    n = [prod(sizes[name] for name in source if name != MODELS) for source in facets]
    return (variances.variance / n).mask(variances.index == MODELS, 0.0)


def error_variance(
    variances: pd.DataFrame, sizes: Mapping[str, int], relative: bool = False
) -> float:
    """Return the variance of a model's mean score over so many levels of each facet.

    Args:
        variances: of `components`.
        relative: only that which can change the order of models.
    """
    errors = _errors(variances, sizes)
    if relative:
        errors = errors[errors.index.str.contains(MODELS)]
    return float(errors.sum(skipna=False))


def by_facet(variances: pd.DataFrame) -> pd.Series:
    """Return the shares of a score's error variance by items, prompt sets, orders and seeds.

    Interactions count for the first of these that they hold: what single items do in a prompt set
    evens out over items, what a prompt set does to all of them does not.
    """
    order = (ITEMS, *CONDITIONS)
    owner = [next((name for name in order if name in source), "") for source in variances.index]
    shares = variances.share_of_error.groupby(owner).sum(min_count=1)
    return shares.reindex([name for name in order if name in shares.index])


def interval(table: Crossed, limits: tuple[float, float]) -> dict[str, float]:
    """Compute the mean score of one model over all conditions, with its intervals.

    Args:
        limits: the lowest and highest possible score.

    Returns:
        `score`, `items_low` and `items_high` for other items, `ci_low` and `ci_high` for other
        levels of all facets. NaN where nothing differs: that is no proof of no spread.
    """
    variances, score, n = components(table), float(table.scores.mean()), prod(table.sizes.values())
    items = _arm(variances.mean_square[ITEMS] / n, variances.df[ITEMS])
    variance = error_variance(variances, table.sizes)
    # A component of prompt sets that is estimated as 0 may rest on few degrees of freedom.
    kept = variances[(variances.variance > 0) | ~variances.index.str.contains(SEEDS)]
    terms = float(((kept.mean_square / n) ** 2 / kept.df).sum())
    freedom = max(1.0, variance**2 / terms) if terms > 0 else np.inf
    # Never narrower than for items alone.
    every = float(np.maximum(items, _arm(variance, freedom)))
    result = {"score": score}
    for name, arm in (("items", items), ("ci", every)):
        low, high = np.clip([score - arm, score + arm], *limits) if arm > NOISE else [np.nan] * 2
        result |= {f"{name}_low": float(low), f"{name}_high": float(high)}
    return result


def _arm(variance: float, freedom: float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2)) * float(np.sqrt(variance))


def d_study(variances: pd.DataFrame, sizes: Mapping[str, int]) -> pd.DataFrame:
    """Return how sure a score would be with other numbers of prompt sets.

    Args:
        variances: of `components`, with the facet of prompt sets.
        sizes: number of levels by facet.

    Returns:
        A row per number of prompt sets: `wordings`, `error`, `half_width`; and with the facet of
        models `g` and `dependability`, else NaN.
    """
    rows = []
    between = float(variances.variance.get(MODELS, np.nan))
    for n in sorted({*PLANNED, sizes[WORDINGS]}):
        absolute, relative = (
            error_variance(variances, {**sizes, WORDINGS: n}, which) for which in (False, True)
        )
        g, dependability = (
            between / (between + error) if between + error > 0 else np.nan
            for error in (relative, absolute)
        )
        rows.append((n, np.sqrt(absolute), _arm(absolute, np.inf), g, dependability))
    return pd.DataFrame(rows, columns=["wordings", "error", "half_width", "g", "dependability"])


def finding(
    variances: pd.DataFrame, planned: pd.DataFrame | None, sizes: Mapping[str, int], title: str
) -> str:
    """Say what makes a score uncertain, and what more prompt sets would change.

    Args:
        variances: of `components`.
        planned: of `d_study`; None where prompt sets were not varied.
        title: of the score.
    """
    error = float(np.sqrt(error_variance(variances, sizes)))
    if np.isnan(error):
        return f"{title}: {SINGLE}."
    shares = [f"{name!s} {percent(share)}" for name, share in by_facet(variances).dropna().items()]
    text = (
        f"{title}: with all that was varied, a score has a standard error of {decimals(error, 2)}; "
        f"its variance comes of: {', '.join(shares) or '–'}."
    )
    more = ""
    if planned is not None and planned.wordings.iloc[-1] > sizes[WORDINGS]:
        last = planned.iloc[-1]
        more = (
            f"With {int(last.wordings)} prompt sets in place of {sizes[WORDINGS]} it would be "
            f"{decimals(last.error, 2)}."
        )
    return sentences([text, more])
