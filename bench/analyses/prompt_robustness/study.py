"""How far a score generalises: runs of a study of variants as a crossed table per model and score.

study = generalise(open_runs([], "cbbq", demo=["tiny:s"], prompts="reworded"))
study.scores, study.components, study.planned
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
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


class Answers(NamedTuple):
    """What a model answered under every condition.

    Attributes:
        levels: by facet.
        scores: by condition, the scores, and those without each unit.
        reworded: tasks that no two wordings ask in the same words.
    """

    levels: dict[str, list[Any]]
    scores: dict[Condition, Replicates]
    reworded: set[str]


def generalise(runs: Sequence[Run], preset: str = "") -> Study:
    """Study how far the headline scores generalise over items, wordings, orders and seeds.

    Args:
        runs: of one benchmark, in several wordings, orders of options or seeds.
        preset: how answers are scored, default: as the runs were.

    Raises:
        BadInput: an unknown preset.
    """
    preset = preset or str(runs[0].about["preset"])
    check_preset(preset)
    every, left_out = _by_model(runs, preset)
    findings, scores = [], []
    parts, planned = [pd.DataFrame()], [pd.DataFrame()]
    for headline in module("metrics", runs[0].benchmark).HEADLINES:
        reasons = {name: _why_not(answers, headline) for name, answers in every.items()}
        left_out += [
            {"model": name, "folder": "", "why": f"{headline.title}: {reason}"}
            for name, reason in reasons.items()
            if reason
        ]
        own = {name: answers for name, answers in every.items() if not reasons[name]}
        tables = {name: _crossed([answers], headline) for name, answers in own.items()}
        scores += [_row(name, headline, table, own[name]) for name, table in tables.items()]
        known = [own[name] for name, one in tables.items() if not np.isnan(one.deviations).any()]
        if len(known) > 1 and all(_same(answers, known[0]) for answers in known):
            tables = {ALL: _crossed(known, headline)}
        for name, table in tables.items():
            about = {"model": name, "task": headline.task, "metric": headline.metric}
            about["title"] = headline.title
            found, plan = components(table), None
            parts.append(found.assign(**about).reset_index())
            if WORDINGS in table.facets:
                plan = d_study(found, table.sizes)
                planned.append(plan.assign(**about))
            title = without_brackets(headline.title)
            if name != ALL:
                title = _("{title}, {measure}", title=name, measure=title)
            findings.append(finding(found, plan, table.sizes, title))
    return Study(
        findings,
        pd.DataFrame(scores),
        pd.concat(parts[1:] or parts, ignore_index=True),
        pd.concat(planned[1:] or planned, ignore_index=True),
        pd.DataFrame(left_out, columns=["model", "folder", "why"]),
    )


def _by_model(runs: Sequence[Run], preset: str) -> tuple[dict[str, Answers], list[dict[str, str]]]:
    """Return what each model answered in all conditions, and what is left out."""
    every: dict[str, Answers] = {}
    left_out = []
    names = labels(runs)
    for name in dict.fromkeys(names):
        own = [run for run, label in zip(runs, names, strict=True) if label == name]
        alike = [run for run in own if _fixed(run) == _fixed(own[0])]
        left_out += [
            {"model": name, "folder": str(run.folder), "why": "asked with other options or data"}
            for run in own
            if run not in alike
        ]
        asked: dict[Condition, tuple[pd.DataFrame, Run]] = {}
        for run in alike:
            for condition, rows in _conditions(run, preset):
                asked.setdefault(condition, (rows, run))
        levels, reason = _levels(list(asked))
        if not reason:
            kept = {condition: asked[condition] for condition in product(*levels.values())}
            common = _common([rows for rows, _run in kept.values()])
            if len(common):
                every[name] = _scored(levels, kept, common, preset)
                continue
            reason = "no question was answered in every way"
        left_out.append({"model": name, "folder": "", "why": reason})
    return every, left_out


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
        text = ", ".join(f"{name}={settings[name]}" for name in ORDER_SETTINGS if name in settings)
        order = pd.Series(text, index=rows.index)
    for (repeat, which), part in rows.groupby([rows["repeat"], order], sort=False):
        yield (str(asked["prompts"]), str(which), int(asked["seed"]) + int(str(repeat))), part


def _levels(asked: Sequence[Condition]) -> tuple[dict[str, list[Any]], str]:
    """Return the wordings, orders and seeds that are fully crossed, or why there are none."""
    wordings, orders, seeds = (list(dict.fromkeys(one[k] for one in asked)) for k in range(3))
    orders = [
        order for order in orders if {one[0] for one in asked if one[1] == order} == set(wordings)
    ]
    seeds = [seed for seed in seeds if set(product(wordings, orders, [seed])) <= set(asked)]
    reason = ""
    if not orders or not seeds:
        reason = f"its wordings share no {'seed' if orders else 'order of options'}"
    elif len(wordings) * len(orders) * len(seeds) == 1:
        reason = "asked in one way alone"
    return dict(zip(CONDITIONS, (wordings, orders, seeds), strict=True)), reason


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
    asked: Mapping[Any, tuple[pd.DataFrame, Run]],
    common: pd.MultiIndex,
    preset: str,
) -> Answers:
    """Score the `common` answers of a model under every condition."""
    scores: dict[Condition, Replicates] = {}
    prompts: dict[str, dict[str, set[str]]] = {}
    for condition, (rows, run) in asked.items():
        rows = rows[pd.MultiIndex.from_frame(rows[KEY]).isin(common)]
        room = module("metrics", run.benchmark)
        scores[condition] = room.replicates(rows, run.items, preset, leave_one_out)
        for task, texts in rows[~rows.request.map(of_judge)].groupby("task").prompt:
            prompts.setdefault(str(task), {}).setdefault(condition[0], set()).update(texts)
    reworded = {
        task
        for task, texts in prompts.items()
        if len({frozenset(own) for own in texts.values()}) == len(levels[WORDINGS])
    }
    return Answers(levels, scores, reworded)


def _place(headline: Headline) -> Place:
    return ALL, headline.task, headline.metric


def _why_not(answers: Answers, headline: Headline) -> str:
    """Say why a headline has no crossed table; "" where it has one."""
    every, place = answers.scores.values(), _place(headline)
    if not all(place in scores and not np.isnan(scores[place][0]) for scores in every):
        return "no number under one of the conditions"
    tasks = {task for scores in every for _category, task, _metric in scores} - {ALL}
    if not (tasks if headline.task == ALL else {headline.task}) <= answers.reworded:
        return "asked in the same words by several wordings"
    return ""


def _same(answers: Answers, other: Answers) -> bool:
    """Say whether two models were asked the same under the same conditions."""
    first, second = (next(iter(one.scores.values())).left_out for one in (answers, other))
    return answers.levels == other.levels and first == second


def _crossed(models: Sequence[Answers], headline: Headline) -> Crossed:
    """Return the crossed table of a headline; a facet of one level is none."""
    place = _place(headline)
    sizes = {MODELS: len(models), **{name: len(own) for name, own in models[0].levels.items()}}
    sizes = {facet: size for facet, size in sizes.items() if size > 1}
    every = [scores for answers in models for scores in answers.scores.values()]
    units = pd.concat([deviations(scores, place) for scores in every], axis=1)
    return Crossed(
        tuple(sizes),
        np.array([scores[place][0] for scores in every]).reshape(tuple(sizes.values())),
        units.to_numpy().reshape(len(units), *sizes.values()),
        min((scores.samples[place] for scores in every), key=lambda rests_on: rests_on.freedom),
    )


def _row(name: str, headline: Headline, table: Crossed, answers: Answers) -> dict[str, Any]:
    found = components(table)
    around = interval(table, found, headline.limits)
    note = ""
    if found.variance.isna().any():
        note = SINGLE
    elif np.isnan(around.items_low):
        note = ALIKE
    elif len({scores.samples[_place(headline)] for scores in answers.scores.values()}) > 1:
        note = UNEVEN
    return {
        "model": name,
        "task": headline.task,
        "metric": headline.metric,
        **around._asdict(),
        "items": table.rests_on.units,
        **{facet: len(levels) for facet, levels in answers.levels.items()},
        "note": note,
    }
