"""Models against each other: which pairs differ, which are equivalent, and which ranks are open.

for benchmark, runs in by_benchmark(opened(["reports/mine/runs/*/*"])).items():
    result = compare(runs)
    findings(result), leaderboard(results.table(runs), result)

Every pair is compared on the answers that could be read of both, ranks are of those of all models.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from bench.analyses.compare_models import convergence, equivalence, pictures
from bench.analyses.compare_models.pairs import (
    DIFFERENT,
    NOT_SHOWN,
    UNDEFINED,
    Pair,
    metric_name,
    of_headline,
    pairs,
    ranks,
)
from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.core.i18n import _, note, sentences
from bench.metrics.bootstrap import LEVEL, Place, Replicates
from bench.metrics.headline import headline_rows, headlines, listing, range_text, short_title
from bench.metrics.significance import LESS_READABLE
from bench.metrics.table import ALL
from bench.run.results import KEYS, Run, check_preset, labels
from bench.tasks.request import of_judge

__all__ = ["convergence", "equivalence", "pictures"]

# Why a score on what could be read of all models is undefined.
UNREAD = "no answer that counts could be read of all models"


class Compared(NamedTuple):
    """Runs on one benchmark, compared.

    Attributes:
        pairs, ranks: see `bench.analyses.compare_models.pairs`.
        common: answers that could be read of all models; without any there are no ranks.
    """

    benchmark: str
    pairs: pd.DataFrame
    ranks: pd.DataFrame
    common: int


def by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs on each benchmark that has two or more.

    Raises:
        NoRuns: there is none.
    """
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.benchmark, []).append(run)
    comparable = {name: group for name, group in grouped.items() if len(group) > 1}
    if not comparable:
        raise NoRuns(
            f"{len(runs)} runs, and no two on one benchmark; to compare models, give two or more"
        )
    return comparable


def compare(runs: Sequence[Run], preset: str | None = None) -> Compared:
    """Compare every pair of `runs`, one per model, all on one benchmark.

    Raises:
        BadInput: fewer than two runs, several benchmarks or runs of a model, or an unknown preset.
    """
    benchmarks, names = list(dict.fromkeys(run.benchmark for run in runs)), labels(runs)
    if len(runs) < 2 or len(benchmarks) > 1:
        raise BadInput(
            f"{len(runs)} run{'s' * (len(runs) != 1)} on {', '.join(benchmarks) or 'nothing'}: "
            "to compare models, give two or more runs on one benchmark"
        )
    for name, count in Counter(names).items():
        if count > 1:
            folders = [str(run.folder) for run, own in zip(runs, names, strict=True) if own == name]
            raise BadInput(
                f"{name} has several runs on {benchmarks[0]}: {', '.join(folders)}; name only one"
            )
    every = {name: Answers.of(run, preset) for name, run in zip(names, runs, strict=True)}
    everyone, by_task = _common_answers(list(every.values()))
    scores = {
        name: answers.ranked(everyone, by_task)
        for name, answers in every.items()
        if len(everyone) and answers.readable.any()
    }
    habits = {name: answers.habits() for name, answers in every.items()}
    both = {(a, b): _pair(every[a], every[b]) for a, b in combinations(names, 2)}
    table = pairs(both, benchmarks[0])
    order = ranks(scores, table, benchmarks[0], habits)
    return Compared(benchmarks[0], table, order, sum(_count_by_task(everyone).values()))


def common_scores(runs: Sequence[Run], preset: str | None = None) -> pd.DataFrame:
    """Score several runs on the answers that could be read of all, by category.

    Returns:
        One row per headline score: `model`, `category`, `task`, `metric`, `score`, `valid_rate`
        (1: unreadable answers are left out), `preset` and `note`, as
        `bench.metrics.friedman.blocks` takes them.
    """
    every = [Answers.of(run, preset) for run in runs]
    common = _common_answers(every)
    rows = [
        (name, *place, score, 1.0, answers.preset, "" if score == score else UNREAD)
        for name, answers in zip(labels(runs), every, strict=True)
        for place, values in answers.ranked(*common).items()
        for score in [float(values[0])]
    ]
    columns = ["model", "category", "task", "metric", "score", "valid_rate", "preset", "note"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class Answers:
    """The answers of a run, read once: which of them could be read, and their scores."""

    records: pd.DataFrame
    items: pd.DataFrame
    readable: pd.Series
    benchmark: str
    preset: str
    # Two models often have the same answers in common as two others, so scores are kept.
    _scores: dict[bytes, Replicates] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, run: Run, preset: str | None) -> "Answers":
        """Read the answers of a run.

        Raises:
            BadInput: an unknown preset.
        """
        preset = preset or str(run.about["preset"])
        check_preset(preset)
        return cls(run.records, run.items, run.readable(), run.benchmark, preset)

    def habits(self) -> Mapping[Place, str]:
        """Say of headline scores why they tell nothing of groups, where all answers are alike."""
        habits: Mapping[Place, str] = module("metrics", self.benchmark).habits(
            self.records, self.items, self.preset
        )
        return habits

    def bounds(self, names: pd.Index) -> Mapping[Place, tuple[float, float]]:
        """Return the lowest and highest possible headline scores of the records in `names`."""
        bounds: Mapping[Place, tuple[float, float]] = module("metrics", self.benchmark).bounds(
            self.records[self.readable.index.isin(names)], self.items, self.preset
        )
        return bounds

    def replicates(self, names: pd.Index) -> Replicates:
        """Compute headline scores, observed and resampled, of the readable answers in `names`."""
        chosen = self.readable.to_numpy() & self.readable.index.isin(names)
        key = chosen.tobytes()
        if key not in self._scores:
            replicates = module("metrics", self.benchmark).replicates
            self._scores[key] = (
                replicates(self.records[chosen], self.items, self.preset)
                if chosen.any()
                else Replicates()
            )
        return self._scores[key]

    def ranked(self, everyone: pd.Index, by_task: pd.Index) -> Replicates:
        """Compute the headline scores that models are ranked by.

        Args:
            everyone, by_task: see `_common_answers`; scores over all tasks are of the former, those
                of a task of the latter.
        """
        if len(by_task) == len(everyone):
            return self.replicates(everyone)
        scores = Replicates()
        for names, over_tasks in ((everyone, True), (by_task, False)):
            source = self.replicates(names)
            for place, values in source.items():
                if (place[1] == ALL) == over_tasks:
                    scores.add(place, values, source.samples[place])
        return scores


def _common_answers(every: Sequence[Answers]) -> tuple[pd.Index, pd.Index]:
    """Return the answers that could be read of all models, and those of all that could in the task.

    A model that could never be read is left out: there is nothing to rank.
    """
    read = [answers.readable.index[answers.readable] for answers in every]
    read = [names for names in read if len(names)]
    by_task = [
        _intersection([part for part in parts if len(part)])
        for task in dict.fromkeys(task for names in read for task in names.unique("task"))
        for parts in [[names[names.get_level_values("task") == task] for names in read]]
    ]
    return _intersection(read), by_task[0].append(by_task[1:]) if by_task else _intersection([])


def _intersection(every: Sequence[pd.Index]) -> pd.Index:
    common = every[0] if every else pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
    for names in every[1:]:
        common = common.intersection(names)
    return common


def _pair(first: Answers, second: Answers) -> Pair:
    """Score two models on the answers that could be read of both."""
    asked = first.readable.index.intersection(second.readable.index)
    read = [answers.readable.reindex(asked).rename(None) for answers in (first, second)]
    rows = pd.DataFrame({"first": read[0], "second": read[1]}, index=asked)
    both = asked[rows.all(axis=1).to_numpy()]
    scored = (first.replicates(both), second.replicates(both), _count_by_task(both))
    rows = rows.reset_index()
    rows = rows[~rows.request.map(of_judge).astype(bool)]
    if rows[["first", "second"]].all(axis=None):
        return Pair(*scored)
    units = module("metrics", first.benchmark).units(first.items)
    items = first.items.assign(unit=units).set_index("item_id")
    rows["stratum"] = rows.item_id.map(items.category)
    rows["unit"] = rows.item_id.map(items.unit)
    return Pair(*scored, rows, (first.bounds(asked), second.bounds(asked)))


def _count_by_task(names: pd.Index) -> Counter[str]:
    """Count answers by task, without those of a judge."""
    return Counter(task for task, _item, request, _repeat in names if not of_judge(str(request)))


def leaderboard(scores: pd.DataFrame, result: Compared) -> pd.DataFrame:
    """Return the headline scores of each model over all categories, the best first.

    Args:
        scores: score tables with a column `model`, on all that each model was asked.

    Returns:
        Their rows, with the `ranks` that the tests leave open.
    """
    known = result.ranks[result.ranks.ranks_from.notna()]
    open_ranks = {
        (
            row["task"],
            row["metric"],
            row["model"],
        ): f"{row['ranks_from']:.0f} to {row['ranks_to']:.0f}"
        for row in known.to_dict("records")
    }
    parts = []
    own = module("metrics", result.benchmark).HEADLINES
    for headline, ranked in zip(headlines(scores, result.benchmark), own, strict=True):
        rows = headline_rows(scores, headline)
        rows = rows[rows.category == ALL].sort_values("score", ascending=headline.biased_is_high)
        # Ranks are of common answers in any case, under the headline's own name.
        keys = [(ranked.task, ranked.metric, model) for model in rows.model]
        parts.append(rows.assign(ranks=[open_ranks.get(key, "") for key in keys]))
    columns = ["task", "metric", "model", "score", "ci_low", "ci_high", "bound_low", "bound_high"]
    columns += ["ranks", "n", "valid_rate", "baseline", "note"]
    return pd.concat(parts)[columns].reset_index(drop=True)


def findings(result: Compared) -> list[str]:
    """Say for each headline which model is best and how many pairs differ."""
    models = len({*result.pairs.model_a, *result.pairs.model_b})
    lines = []
    for headline in module("metrics", result.benchmark).HEADLINES:
        rows = of_headline(result.pairs, headline)
        if len(rows):
            what = metric_name(headline.task, headline.metric)
            leader = _leader(of_headline(result.ranks, headline))
            verdict = sentences([leader, _told_apart(rows, what)])
            lines.append(_("{title}. {said}", title=short_title(headline), said=verdict))
    if result.common:
        count = f"{result.common:,}"
        basis = _(
            "Of all {models} models, {n} answers in common could be read.", models=models, n=count
        )
    elif models:
        basis = _(
            "{models} models have no readable answer in common, so there are no ranks.",
            models=models,
        )
    else:
        basis = _("No two models were asked the same, so none are compared.")
    title = module("data", result.benchmark).TITLE
    return [_("{title}: {sentence}", title=title, sentence=line) for line in [*lines, basis]]


def _leader(order: pd.DataFrame) -> str:
    """Say which model has the best score, if every pair with a score could be tested."""
    if len(order) < 2 or order.ranks_from.isna().any():
        return ""
    leader = order[order["rank"] == 1].iloc[0]
    if leader.habit:
        reason = note(leader.habit)
        told = [
            _("{model} has the best score by habit alone: {why}.", model=leader.model, why=reason)
        ]
        for model in order[order.habit == ""].sort_values("rank").model.head(1):
            told.append(_("Of the others, {model} has the best score.", model=model))
        return sentences(told)
    others = [model for model in order.model[order.ranks_from == 1] if model != leader.model]
    if len(others) == len(order) - 1:
        return _("Any of the models could be the best.")
    if not others:
        return _(
            "{model} has the best score, ahead of every other model with a score.",
            model=leader.model,
        )
    return _(
        "{model} has the best score, and cannot be told from {others}.",
        model=leader.model,
        others=listing(others),
    )


def _told_apart(rows: pd.DataFrame, what: str) -> str:
    """Say how many pairs differ, and what came of the others; of a single pair, all of it."""
    if len(rows) == 1:
        return str(rows.sentence.iloc[0])
    counts = rows.verdict.value_counts().reindex(
        [DIFFERENT, NOT_SHOWN, LESS_READABLE, UNDEFINED], fill_value=0
    )
    tested = int(rows.p_adjusted.notna().sum())
    parts = []
    if tested:
        parts.append(
            _(
                "{n} of {all} pairs could be told apart in {what} (adjusted p < {p}).",
                n=counts[DIFFERENT],
                all=tested,
                what=what,
                p=f"{1 - LEVEL:.2f}",
            )
        )
    detectable = rows.detectable[(rows.verdict == NOT_SHOWN) & (rows.detectable > 0)]
    if len(detectable):
        parts.append(
            _(
                "No difference could be shown in {n}; these data would have shown one of {sizes}.",
                n=counts[NOT_SHOWN],
                sizes=range_text(f"{detectable.min():.2f}", f"{detectable.max():.2f}"),
            )
        )
    if counts[LESS_READABLE]:
        unread = _(
            "In {n} pairs, what differs is how often the models can be read.",
            n=counts[LESS_READABLE],
        )
        parts.append(unread)
    if counts[UNDEFINED]:
        reason = note(rows.note[rows.verdict == UNDEFINED].iloc[0])
        parts.append(_("{n} pairs could not be compared: {why}.", n=counts[UNDEFINED], why=reason))
    return sentences(parts)
