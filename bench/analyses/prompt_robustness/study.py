"""How far a score generalises: runs of a study of variants as a crossed table per model and score.

study = generalise(open_runs([], "cbbq", demo=["tiny:s"], prompts="reworded"))
study.scores, study.components, study.planned
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analyses.prompt_robustness.variance import (
    CONDITIONS,
    MODELS,
    SINGLE,
    WORDINGS,
    Crossed,
    components,
    d_study,
    finding,
    interval,
)
from bench.benchmarks import module
from bench.core.i18n import _
from bench.metrics.bootstrap import Place, Replicates, leave_one_out
from bench.metrics.headline import without_brackets
from bench.metrics.influence import deviations
from bench.metrics.table import ALL, Headline
from bench.run.results import Run, check_preset, labels
from bench.tasks.request import of_judge

# What may differ between runs of one study, besides these settings.
MAY_DIFFER = ("prompts", "wording_hash", "seed", "repeats", "categories", "tasks", "limit")
ORDER_SETTINGS = ("option_order", "context_order", "label_order")
RELEASED = "ABC"
KEY = ["task", "item_id"]
ALIKE = "no interval for items alone: they do not differ"
UNEVEN = "one of the conditions has no number in some categories"
# A wording, an order and a seed.
Condition = tuple[str, str, int]


class Study(NamedTuple):
    """How far the scores of a study generalise.

    Attributes:
        findings: one sentence per headline.
        scores: one row per model and headline: `score`, its interval for items alone (`items_low`,
            `items_high`) and for all facets (`ci_low`, `ci_high`), levels by facet, `note`.
        components: of `components`; over all models together where they were asked the same, else
            by `model`.
        planned: of `d_study`; empty where wordings did not vary.
        left_out: runs and models that are no part of it, and why.
    """

    findings: list[str]
    scores: pd.DataFrame
    components: pd.DataFrame
    planned: pd.DataFrame
    left_out: pd.DataFrame


class _Asked(NamedTuple):
    """What a model answered under every condition.

    Attributes:
        levels: by facet.
        conditions: the scores, and those without each unit.
        reworded: tasks that no two wordings ask in the same words.
    """

    levels: dict[str, list[Any]]
    conditions: dict[Condition, Replicates]
    reworded: set[str]


def generalise(runs: Sequence[Run], preset: str = "") -> Study:
    """Study how far the headline scores generalise over items, wordings, orders and seeds.

    Args:
        runs: of one benchmark, in several wordings, orders of options or seeds.
        preset: how answers are scored; as the runs were if empty.

    Raises:
        BadInput: an unknown preset.
    """
    preset = preset or str(runs[0].about["preset"])
    check_preset(preset)
    asked, left_out = _by_model(runs, preset)
    findings: list[str] = []
    scores: list[dict[str, Any]] = []
    parts, planned = [], []
    for headline in module("metrics", runs[0].benchmark).HEADLINES:
        having = {}
        for name, one in asked.items():
            if reason := _why_not(one, headline):
                why = f"{headline.title}: {reason}"
                left_out.append({"model": name, "folder": "", "why": why})
            else:
                having[name] = one
        tables = {name: _crossed([one], headline) for name, one in having.items()}
        scores += [_row(name, headline, table, having[name]) for name, table in tables.items()]
        known = [
            having[name] for name, table in tables.items() if not np.isnan(table.deviations).any()
        ]
        if len(known) > 1 and all(_same(one, known[0]) for one in known):
            tables = {ALL: _crossed(known, headline)}
        for name, table in tables.items():
            about = {
                "model": name,
                "task": headline.task,
                "metric": headline.metric,
                "title": headline.title,
            }
            found = components(table)
            parts.append(found.assign(**about).reset_index())
            title, plan = without_brackets(headline.title), None
            if WORDINGS in table.facets:
                plan = d_study(found, table.sizes)
                planned.append(plan.assign(**about))
            if name != ALL:
                title = _("{title}, {measure}", title=name, measure=title)
            findings.append(finding(found, plan, table.sizes, title))
    names = ["model", "folder", "why"]
    lost = pd.DataFrame(left_out, columns=names)
    return Study(findings, pd.DataFrame(scores), _joined(parts), _joined(planned), lost)


def _by_model(
    runs: Sequence[Run],
    preset: str,
) -> tuple[dict[str, _Asked], list[dict[str, str]]]:
    """Return what each model answered in all conditions, and what is left out."""
    asked: dict[str, _Asked] = {}
    left_out = []
    names = labels(runs)
    for name in dict.fromkeys(names):
        own = [run for run, label in zip(runs, names, strict=True) if label == name]
        alike = [run for run in own if _fixed(run) == _fixed(own[0])]
        for run in own:
            if run not in alike:
                why = "asked with other options or data"
                left_out.append({"model": name, "folder": str(run.folder), "why": why})
        rows: dict[Condition, tuple[pd.DataFrame, Run]] = {}
        for run in alike:
            for condition, some in _conditions(run, preset):
                rows.setdefault(condition, (some, run))
        levels, why = _levels(list(rows))
        if not why:
            kept = {
                (wording, order, seed): rows[wording, order, seed]
                for wording in levels[CONDITIONS[0]]
                for order in levels[CONDITIONS[1]]
                for seed in levels[CONDITIONS[2]]
            }
            common = _common([some for some, _unused in kept.values()])
            if not common.empty:
                asked[name] = _scored(levels, kept, common, preset)
                continue
            why = "no question was answered in every way"
        left_out.append({"model": name, "folder": "", "why": why})
    return asked, left_out


def _fixed(run: Run) -> dict[str, Any]:
    """Return what has to be the same in all runs of a model."""
    asked = run.about["asked"]
    fixed = {name: value for name, value in asked.items() if name not in MAY_DIFFER}
    settings = asked["settings"].items()
    fixed["settings"] = {name: value for name, value in settings if name not in ORDER_SETTINGS}
    return fixed


def _conditions(run: Run, preset: str) -> Iterator[tuple[Condition, pd.DataFrame]]:
    """Return the records of a run by condition; names of requests hold CBBQ's orders of options."""
    asked, rows = run.about["asked"], run.records
    settings = asked["settings"]
    if "option_order" in settings:
        order = rows.request.str.partition(":")[2].replace("", RELEASED)
        # The released code knows one order.
        if preset == "official":
            rows = rows[order == RELEASED]
    else:
        told = ", ".join(f"{name}={settings[name]}" for name in ORDER_SETTINGS if name in settings)
        order = pd.Series(told, index=rows.index)
    for (repeat, which), some in rows.groupby([rows["repeat"], order], sort=False):
        yield (str(asked["prompts"]), str(which), int(asked["seed"]) + int(str(repeat))), some


def _levels(asked: Sequence[Condition]) -> tuple[dict[str, list[Any]], str]:
    """Return the wordings, orders and seeds that are fully crossed, or why there are none."""
    wordings = list(dict.fromkeys(condition[0] for condition in asked))
    orders = [
        order
        for order in dict.fromkeys(condition[1] for condition in asked)
        if {condition[0] for condition in asked if condition[1] == order} == set(wordings)
    ]
    seeds = [
        seed
        for seed in dict.fromkeys(condition[2] for condition in asked)
        if all((wording, order, seed) in asked for wording in wordings for order in orders)
    ]
    why = ""
    if not orders or not seeds:
        why = f"its wordings share no {'seed' if orders else 'order of options'}"
    elif len(wordings) * len(orders) * len(seeds) == 1:
        why = "asked in one way alone"
    return dict(zip(CONDITIONS, (wordings, orders, seeds), strict=True)), why


def _common(asked: Sequence[pd.DataFrame]) -> pd.MultiIndex:
    """Return the tasks and items whose requests were all answered in every condition."""
    answered = []
    for rows in asked:
        lost, every = (
            pd.MultiIndex.from_frame(part[KEY].drop_duplicates())
            for part in (rows[rows.error != ""], rows)
        )
        answered.append(every.difference(lost))
    return reduce(pd.MultiIndex.intersection, answered)


def _scored(
    levels: dict[str, list[Any]],
    rows: dict[Condition, tuple[pd.DataFrame, Run]],
    common: pd.MultiIndex,
    preset: str,
) -> _Asked:
    """Score the `common` answers of a model under every condition."""
    found: dict[Condition, Replicates] = {}
    prompts: dict[str, dict[str, set[str]]] = {}
    for condition, (some, run) in rows.items():
        some = some[pd.MultiIndex.from_frame(some[KEY]).isin(common)]
        room = module("metrics", run.benchmark)
        found[condition] = room.replicates(some, run.items, preset, leave_one_out)
        own = some[~some.request.map(of_judge)]
        for task, texts in own.groupby("task").prompt:
            prompts.setdefault(str(task), {}).setdefault(condition[0], set()).update(texts)
    reworded = {
        task
        for task, texts in prompts.items()
        if len({frozenset(part) for part in texts.values()}) == len(levels[WORDINGS])
    }
    return _Asked(levels, found, reworded)


def _place(headline: Headline) -> Place:
    return ALL, headline.task, headline.metric


def _why_not(asked: _Asked, headline: Headline) -> str:
    """Say why a headline has no crossed table; "" where it has one."""
    conditions, place = asked.conditions.values(), _place(headline)
    if not all(place in left and not np.isnan(left[place][0]) for left in conditions):
        return "no number under one of the conditions"
    tasks = {task for left in conditions for _unused, task, _unused in left} - {ALL}
    if not (tasks if headline.task == ALL else {headline.task}) <= asked.reworded:
        return "asked in the same words by several wordings"
    return ""


def _same(asked: _Asked, other: _Asked) -> bool:
    """Say whether two models were asked the same under the same conditions."""
    first, second = (next(iter(one.conditions.values())).left_out for one in (asked, other))
    return asked.levels == other.levels and first == second


def _crossed(asked: Sequence[_Asked], headline: Headline) -> Crossed:
    """Return the crossed table of a headline; a facet of one level is none."""
    place, levels = _place(headline), asked[0].levels
    shape = (len(asked), *(len(levels[facet]) for facet in CONDITIONS))
    named = zip((MODELS, *CONDITIONS), shape, strict=True)
    kept = {facet: size for facet, size in named if size > 1}
    each = [left for one in asked for left in one.conditions.values()]
    units = pd.concat([deviations(left, place) for left in each], axis=1)
    return Crossed(
        tuple(kept),
        np.array([left[place][0] for left in each]).reshape(tuple(kept.values())),
        units.to_numpy().reshape(len(units), *kept.values()),
        min((left.samples[place] for left in each), key=lambda rests_on: rests_on.freedom),
    )


def _row(name: str, headline: Headline, table: Crossed, asked: _Asked) -> dict[str, Any]:
    found = components(table)
    needs = {left.samples[_place(headline)] for left in asked.conditions.values()}
    around = interval(table, found, headline.limits)
    note = UNEVEN if len(needs) > 1 else ""
    if found.variance.isna().any():
        note = SINGLE
    elif np.isnan(around.items_low):
        note = ALIKE
    return {
        "model": name,
        "task": headline.task,
        "metric": headline.metric,
        **around._asdict(),
        "items": table.rests_on.units,
        **{facet: len(asked.levels[facet]) for facet in CONDITIONS},
        "note": note,
    }


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
