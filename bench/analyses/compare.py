"""Runs against each other: the scores of every pair of models on the answers of both that can be read.

for benchmark, runs in by_benchmark(opened(["reports/mine/runs/*/*"])).items():
    result = compared(runs)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.metrics.bootstrap import Place, Replicates
from bench.metrics.comparison import Pair, pairs, ranks
from bench.metrics.table import ALL
from bench.run.results import KEYS, Run, check_preset, labels
from bench.tasks.request import of_judge

# Why a score on what could be read of all models is undefined.
UNREAD = "no answer that counts could be read of all models"


class Compared(NamedTuple):
    """What came of comparing runs on one benchmark.

    Attributes:
        pairs: see `bench.metrics.comparison.pairs`.
        ranks: see `bench.metrics.comparison.ranks`.
        common: answers that could be read of all models; 0 where there is none, and then there are no ranks.
    """

    benchmark: str
    pairs: pd.DataFrame
    ranks: pd.DataFrame
    common: int


def by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs on each benchmark that has two or more; what is alone cannot be compared.

    Raises:
        NoRuns: there is none.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.benchmark, []).append(run)
    kept = {name: some for name, some in found.items() if len(some) > 1}
    if not kept:
        raise NoRuns(
            f"{len(runs)} runs, and no two on one benchmark; to compare models, give two or more"
        )
    return kept


def compared(runs: Sequence[Run], preset: str | None = None) -> Compared:
    """Every pair of `runs` on the answers that could be read of both, and ranks on those of all.

    Args:
        runs: a run a model, all on one benchmark.

    Raises:
        BadInput: fewer than two runs, several benchmarks, two runs of a model, or an unknown preset.
    """
    benchmarks, names = list(dict.fromkeys(run.benchmark for run in runs)), labels(runs)
    if len(runs) < 2 or len(benchmarks) > 1:
        raise BadInput(
            f"{len(runs)} run{'s' * (len(runs) != 1)} on {', '.join(benchmarks) or 'nothing'}: to compare models, give two or "
            "more runs on one benchmark"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        folders = ", ".join(
            str(run.folder) for run, name in zip(runs, names, strict=True) if name == twice[0]
        )
        raise BadInput(
            f"{twice[0]} has several runs on {benchmarks[0]}: {folders}; leave one of them"
        )
    every = [Answers.of(run, preset) for run in runs]
    # Of a model that could never be read there is nothing to rank.
    read = [one.readable.index[one.readable] for one in every if one.readable.any()]
    everyone, by_task = _common(read), _common_by_task(read)
    of_all = {
        name: one.ranked(everyone, by_task)
        for name, one in zip(names, every, strict=True)
        if len(everyone) and one.readable.any()
    }
    # Two models may have more in common than all of them have.
    enough = len(everyone) if len(everyone) == len(by_task) else -1
    found: dict[tuple[str, str], Pair] = {}
    for (a, one), (b, other) in combinations(zip(names, every, strict=True), 2):
        found[a, b] = _pair(one, other, enough, (of_all.get(a), of_all.get(b)))
    table = pairs(found, benchmarks[0])
    order = ranks(of_all, table, benchmarks[0])
    habits = {name: one.habits() for name, one in zip(names, every, strict=True)}
    order["habit"] = [
        habits[model].get((ALL, task, metric), "")
        for model, task, metric in zip(order.model, order.task, order.metric, strict=True)
    ]
    return Compared(benchmarks[0], table, order, sum(_by_task(everyone).values()))


def common_scores(runs: Sequence[Run], preset: str | None = None) -> pd.DataFrame:
    """Score several runs on the answers that could be read of all, by category.

    Returns:
        A row a headline score: `model`, `category`, `task`, `metric`, `score`, `valid_rate` (1: what could
        not be read is left out), `preset` and `note`, as `bench.metrics.friedman.blocks` takes them.
    """
    every = [Answers.of(run, preset) for run in runs]
    read = [one.readable.index[one.readable] for one in every if one.readable.any()]
    everyone, by_task = _common(read), _common_by_task(read)
    rows = [
        (name, *place, float(values[0]), 1.0, one.preset, "" if values[0] == values[0] else UNREAD)
        for name, one in zip(labels(runs), every, strict=True)
        for place, values in one.ranked(everyone, by_task).items()
    ]
    columns = ["model", "category", "task", "metric", "score", "valid_rate", "preset", "note"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class Answers:
    """The answers of a run, read once: which of them could be read, and what scores are made of."""

    records: pd.DataFrame
    items: pd.DataFrame
    readable: pd.Series
    benchmark: str
    preset: str
    # By which records: two models often have the same answers in common as two others.
    _replicates: dict[bytes, Replicates] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, run: Run, preset: str | None) -> "Answers":
        """Read the answers of a run.

        Raises:
            BadInput: an unknown preset.
        """
        preset = preset or str(run.about["preset"])
        check_preset(preset)
        return cls(run.records, run.items, run.readable(), run.benchmark, preset)

    def among(self, names: pd.Index) -> pd.DataFrame:
        """Return the records that `names` name."""
        return self.records[self.readable.index.isin(names)]

    def habits(self) -> dict[Place, str]:
        """Say of headline scores why they tell nothing of groups, where the answers are all alike."""
        room = module("metrics", self.benchmark)
        found: dict[Place, str] = room.habits(self.records, self.items, self.preset)
        return found

    def replicates(self, names: pd.Index) -> Replicates:
        """Compute headline scores, observed and resampled, of the readable answers that `names` name."""
        chosen = self.readable.to_numpy() & self.readable.index.isin(names)
        if not chosen.any():
            return Replicates()
        if chosen.tobytes() not in self._replicates:
            replicates = module("metrics", self.benchmark).replicates
            self._replicates[chosen.tobytes()] = replicates(
                self.records[chosen], self.items, self.preset
            )
        return self._replicates[chosen.tobytes()]

    def ranked(self, everyone: pd.Index, by_task: pd.Index) -> Replicates:
        """Compute headline scores as models are ranked by.

        Args:
            everyone: what could be read of all models, on which scores over all tasks rest.
            by_task: what could be read of all that could be read in the task, on which its score rests.
        """
        found = self.replicates(everyone)
        if len(by_task) == len(everyone):
            return found
        scores = Replicates()
        for source, whole in ((found, True), (self.replicates(by_task), False)):
            for place, values in source.items():
                if (place[1] == ALL) == whole:
                    scores.add(place, values, source.samples[place])
        return scores


def _common_by_task(names: Sequence[pd.Index]) -> pd.Index:
    """The names that all have who have any of the same task."""
    parts = []
    for task in dict.fromkeys(
        task for one in names for task in one.get_level_values("task").unique()
    ):
        some = [one[one.get_level_values("task") == task] for one in names]
        parts.append(_common([one for one in some if len(one)]))
    found = parts[0] if parts else _common([])
    return found.append(parts[1:])


def _common(names: Sequence[pd.Index]) -> pd.Index:
    """The names that all have."""
    found = names[0] if names else pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
    for others in names[1:]:
        found = found.intersection(others)
    return found


def _pair(
    one: Answers,
    other: Answers,
    enough: int,
    of_all: tuple[Replicates | None, Replicates | None],
) -> Pair:
    """Two models on the answers of both that could be read, and how often that is.

    Args:
        of_all: their scores on `enough` answers, which are taken where they have no more in common.
    """
    asked = one.readable.index.intersection(other.readable.index)
    rows = pd.DataFrame(
        {"first": one.readable.reindex(asked), "second": other.readable.reindex(asked)}, index=asked
    )
    both = asked[(rows["first"] & rows.second).to_numpy()]
    first, second = of_all
    if first is None or second is None or len(both) != enough:
        first, second = one.replicates(both), other.replicates(both)
    rows = rows.reset_index()
    rows = rows[~rows.request.map(of_judge).astype(bool)]
    if (rows["first"] & rows.second).all():
        return Pair(first, second, _by_task(both))
    room = module("metrics", one.benchmark)
    items = one.items.assign(unit=room.units(one.items)).set_index("item_id")
    rows["stratum"] = rows.item_id.map(items.category)
    rows["unit"] = rows.item_id.map(items.unit)
    bounds = [room.bounds(each.among(asked), each.items, each.preset) for each in (one, other)]
    return Pair(first, second, _by_task(both), rows, (bounds[0], bounds[1]))


def _by_task(common: pd.Index) -> Counter[str]:
    """Answers by task; what a judge says of them is none."""
    return Counter(task for task, _, request, _ in common if not of_judge(str(request)))
