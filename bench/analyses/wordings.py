"""The same models asked the same questions in two wordings: which runs make a pair, and their scores side by side.

asked = opened([], "cbbq", demo=["tiny:s"], prompts="reworded")
pairs, left_out = paired(asked)
found = compare(pairs)
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import analyses
from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.metrics.robustness import Points, points
from bench.metrics.table import ALL, Headline
from bench.run.results import Run, labels
from bench.tasks.request import of_judge

# What may differ between two runs of a pair: the wording, and how much was asked, of which only what both have counts.
MAY_DIFFER = {"prompts", "wording_hash", "categories", "tasks", "limit"}


class Pair(NamedTuple):
    """A model's runs under two wordings.

    Attributes:
        name: the model's, as tables show it.
        reworded: the tasks whose questions differ.
        alike: those that were asked in the same words; nothing can be said of them.
        differ: what else is not the same in both runs, such as the seed.
    """

    name: str
    first: Run
    second: Run
    reworded: list[str]
    alike: list[str]
    differ: list[str]

    @property
    def wordings(self) -> tuple[str, str]:
        """The names of the two wordings."""
        return _wording(self.first), _wording(self.second)


def opened(
    runs: Sequence[str | Path],
    benchmark: str,
    *,
    models: Sequence[str] = (),
    demo: Sequence[str] = (),
    prompts: str = "reworded",
    options: Mapping[str, Any] | None = None,
) -> list[Run]:
    """The runs (see `bench.analyses.opened`); without any, `demo` is asked in our wording, and again in `prompts`."""
    given = dict(options or {})
    first = analyses.opened(
        runs, benchmarks=[benchmark], models=models, demo=demo, options={benchmark: given}
    )
    if runs:
        return first
    again = {benchmark: {**given, "prompts": prompts}}
    return first + analyses.opened([], benchmarks=[benchmark], demo=demo, options=again)


def paired(runs: Sequence[Run], second: str = "") -> tuple[list[Pair], pd.DataFrame]:
    """Runs of the same model under two wordings, and what found no partner.

    The wording of the first run is the first for all.

    Args:
        runs: of one benchmark.
        second: name of the other wording, as `wording` in a table of provenance; the only other one if empty.

    Returns:
        The pairs, and a frame with `model`, `wording`, `why` of runs that are left out.

    Raises:
        BadInput: several benchmarks, more than two wordings without a choice, or a model twice in one.
        NoRuns: only one wording, or no pair at all.
    """
    benchmarks = sorted({run.benchmark for run in runs})
    if len(benchmarks) != 1:
        raise BadInput(
            f"runs of {', '.join(benchmarks) or 'no benchmark'}: wordings are compared within one benchmark"
        )
    wordings = list(dict.fromkeys(_wording(run) for run in runs))
    others = [name for name in wordings[1:] if second in ("", name)]
    if len(wordings) == 1:
        raise NoRuns(
            f"every run is in the wording {wordings[0]}: two are compared; ask with --prompts reworded too"
        )
    if len(others) != 1:
        raise BadInput(
            f"{len(wordings)} wordings ({', '.join(wordings)}): two are compared; choose the second by its name"
        )
    if len({(run.model, run.label, _wording(run)) for run in runs}) < len(runs):
        runs = analyses.alike(runs, ("settings", "generation", "seed", "repeats"))
    sides: list[dict[str, Run]] = [{}, {}]
    names = labels(runs)
    for model, run in zip(names, runs, strict=True):
        name = _wording(run)
        if name not in (wordings[0], others[0]):
            continue
        side = sides[name != wordings[0]]
        if model in side:
            raise BadInput(
                f"{run.folder} and {side[model].folder}: both are {model} with the wording {name}; name one"
            )
        side[model] = run
    found, lone = [], []
    for name in dict.fromkeys(names):
        one, other = (side.get(name) for side in sides)
        if (
            one
            and other
            and one.about["asked"]["data_sha256"] == other.about["asked"]["data_sha256"]
        ):
            found.append(_pair(name, one, other))
            continue
        for run in filter(None, (one, other)):
            why = (
                "the two runs are on different data"
                if one and other
                else "asked in this wording alone"
            )
            lone.append({"model": name, "wording": _wording(run), "why": why})
    if not found:
        raise NoRuns(
            f"no model was asked in both wordings, {wordings[0]} and {others[0]}, on the same data"
        )
    return found, pd.DataFrame(lone, columns=["model", "wording", "why"])


def compare(pairs: Sequence[Pair], preset: str = "") -> Points:
    """The headline scores of tasks that were reworded, under both wordings, on the answers that both runs have.

    Raises:
        BadInput: no task was reworded, or an unknown preset.
    """
    if not headlines(pairs):
        raise BadInput(
            f"{', '.join(pairs[0].wordings)}: every task was asked in the same words in both runs"
        )
    return points(
        {
            pair.name: (
                pair.first.replicates(preset or None, like=[pair.second]),
                pair.second.replicates(preset or None, like=[pair.first]),
                _answered(pair),
            )
            for pair in pairs
        },
        headlines(pairs),
    )


def headlines(pairs: Sequence[Pair]) -> list[Headline]:
    """The headlines that the wording can move: those of reworded tasks, and of all tasks where every one was reworded."""
    benchmark = pairs[0].first.benchmark
    tasks = [task for task in pairs[0].reworded if all(task in pair.reworded for pair in pairs)]
    whole = all(not pair.alike for pair in pairs)
    every: tuple[Headline, ...] = module("metrics", benchmark).HEADLINES
    return [one for one in every if one.task in tasks or (one.task == ALL and whole)]


def overview(pairs: Sequence[Pair]) -> pd.DataFrame:
    """What is compared: a row a pair."""
    return pd.DataFrame(
        [
            {
                "model": pair.name,
                "first": pair.wordings[0],
                "second": pair.wordings[1],
                "reworded": ", ".join(pair.reworded),
                "same_words": ", ".join(pair.alike),
                "also_differ": ", ".join(pair.differ),
            }
            for pair in pairs
        ]
    )


def _wording(run: Run) -> str:
    return str(run.about["asked"]["prompts"])


def _pair(name: str, first: Run, second: Run) -> Pair:
    both = _both(first, second)
    differs = (
        both[~both.request.map(of_judge)]
        .groupby("task", sort=False)[["prompt_x", "prompt_y"]]
        .apply(lambda rows: bool((rows.prompt_x != rows.prompt_y).any()))
    )
    reworded, alike = (
        [str(task) for task in differs.index[differs == which]] for which in (True, False)
    )
    one, other = first.about["asked"], second.about["asked"]
    differ = [
        f"{key}: {one.get(key)} and {other.get(key)}"
        for key in sorted({*one, *other} - MAY_DIFFER)
        if one.get(key) != other.get(key)
    ]
    return Pair(name, first, second, reworded, alike, differ)


def _both(first: Run, second: Run) -> pd.DataFrame:
    """The answers that came in both runs, a row a request."""
    keys = ["category", "task", "item_id", "request", "repeat"]
    rows, others = (
        run.records[[*keys, "prompt", "parsed", "valid", "error"]] for run in (first, second)
    )
    both = rows[rows.error == ""].merge(others[others.error == ""], on=keys)
    if both.empty:
        raise BadInput(f"{first.folder} and {second.folder}: have no answer to the same question")
    return both


def _answered(pair: Pair) -> pd.DataFrame:
    """How many answers both runs have, which share of them could be read, and was read as the same: by category and task."""
    both = _both(pair.first, pair.second)
    both = both[~both.request.map(of_judge)].assign(n=1)
    both["same"] = both.valid_x & both.valid_y & (both.parsed_x == both.parsed_y)
    of = {
        "n": ("n", "sum"),
        "valid_first": ("valid_x", "mean"),
        "valid_second": ("valid_y", "mean"),
        "same": ("same", "mean"),
    }
    return both.groupby(["category", "task"], sort=False).agg(**of)
