"""Open the runs, or the scores, of an analysis.

    runs = opened(["reports/mine/runs/*/cbbq"])
    runs = opened([], benchmarks=["cbbq"], demo=["simulated:bias=0.2", "simulated:bias=0.8"])
    own, common, runs = open_scores(["reports/mine/runs/*/cbbq"])

Runs are folders, or patterns of these.
"""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyses.elsewhere import read_scores
from bench.benchmarks import names, resolve
from bench.core import default_folders
from bench.core.errors import NoRuns
from bench.core.progress import say
from bench.core.text import read_list, read_mapping
from bench.data import OWN_SAMPLES
from bench.metrics.primary import REFERENCES
from bench.metrics.user_tables import Table
from bench.run import evaluate_all
from bench.runs import records
from bench.runs.models import models as model_facts
from bench.runs.open import Run, find_runs, labels, run_folders
from bench.runs.scores import explain, score

# The name of the folder of runs in messages, which do not depend on where it is.
DEFAULT_FOLDER = "reports/runs"


def opened(
    runs: Sequence[str | Path | Run] | str,
    *,
    benchmarks: Sequence[str] | str = (),
    models: Sequence[str] | str = (),
    demo: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Run]:
    """Open the runs of an analysis, in the order in which they are named.

    Args:
        runs: runs, their folders, or patterns of these; we ignore folders without a run that match
            a pattern. Default: the runs of real models in `reports/runs`.
        benchmarks: only these; all if empty.
        models: only these, by their name in `bench run` or in tables; all if empty. Lists may be
            texts, as papermill's `-p` gives them.
        demo: if there are no runs, we ask these models about the package's samples.
        options: their options by benchmark (see `bench.evaluate`). Without `benchmarks`, we ask
            about these benchmarks alone.

    Raises:
        BadInput: a folder without a run.
        NoRuns: nothing is left.
    """
    runs, benchmarks, models = parameters(runs=runs, benchmarks=benchmarks, models=models)
    wanted = [resolve(name) for name in benchmarks] or list(names())
    named = [run for pattern in runs for run in find_runs(pattern)]
    if not runs:
        folders = filter(records.is_complete, run_folders(f"{default_folders.runs()}/*/*"))
        there = [run for run in map(Run.open, folders) if run.kind not in REFERENCES]
        named = [run for run in there if run.benchmark in wanted]
    if not named and not runs:
        say(f"no runs of real models in {DEFAULT_FOLDER}: a demonstration of {', '.join(demo)}")
        options = options or {}
        return [
            run
            for name in (wanted if benchmarks else options or wanted)
            for run in evaluate_all(name, demo, **{"data": OWN_SAMPLES, **options.get(name, {})})
        ]
    kept = [
        run
        for run in named
        if run.benchmark in wanted and (not models or {run.model, run.label} & set(models))
    ]
    if not kept:
        have = ", ".join(dict.fromkeys(f"{run.label} on {run.benchmark}" for run in named))
        raise NoRuns(
            f"no run of {', '.join(models) or 'any model'} on {', '.join(wanted)}: there is "
            f"{have or 'none in ' + ', '.join(map(str, runs))}"
        )
    if not runs or any(glob.has_magic(str(pattern)) for pattern in runs):
        opened_runs = ", ".join(
            f"{label} on {run.benchmark}" for label, run in zip(labels(kept), kept, strict=True)
        )
        count = "1 run" if len(kept) == 1 else f"{len(kept)} runs"
        where = f"for {', '.join(map(str, runs))}" if runs else f"in {DEFAULT_FOLDER}"
        more = "" if runs else "; name others in `runs`"
        say(f"{count} {where}: {opened_runs}{more}")
    return kept


def open_scores(
    runs: Sequence[str | Path | Run] | str,
    csv: str | Path = "",
    *,
    preset: str = "",
    benchmarks: Sequence[str] | str = (),
    models: Sequence[str] | str = (),
    demo: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    columns: Mapping[str, Mapping[str, Any] | str] | None = None,
    needed: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.DataFrame, list[Run]]:
    """Open the scores of runs, or scores measured elsewhere.

    Args:
        runs, benchmarks, models, demo, options: as in `opened`.
        csv: a file of scores, in place of runs; see `bench.read_scores`. Here, `benchmarks` and
            `models` are names in this file.
        preset: the preset of the scores; default: the runs' own.
        columns: numbers of models, by the name of a column, for example `{"billions": {"gpt-x":
            175}}`. Models have their name in `bench run` or in tables; others keep their value.
        needed: columns that a CSV has to have and that tell its scores apart.

    Returns:
        Each model's scores on all its answers, as `bench.explain` returns them; the same on the
        items with a readable answer of all models of a benchmark; and the runs, none for a CSV.
        The scores of runs also have `asked_as`, `family` and `billions` of `bench.models`.

    Raises:
        BadInput, NoRuns: as `opened` and `bench.read_scores`.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> own, _common, _runs = open_scores([run])
        >>> own[["model", "family", "title", "score"]].head(2).round(2)
                        model     family                                    title  score
        0  simulated:bias=0.7  simulated  Ambiguous: share of stereotyped answers    0.7
        1  simulated:bias=0.7  simulated  Ambiguous: share of stereotyped answers    0.7
    """
    if csv:
        benchmarks, models = parameters(benchmarks=benchmarks, models=models)
        frame = read_scores(csv, *needed, benchmarks=benchmarks, models=models)
        frame = _with_columns(frame, columns or {})
        return frame, frame, []
    kept = opened(runs, benchmarks=benchmarks, models=models, demo=demo, options=options)
    facts = model_facts(*kept)[["model", "benchmark", "asked_as", "family", "billions"]]
    tables = []
    for is_common in (False, True):
        scores = explain(score(*kept, preset=preset or None, common=is_common))
        tables.append(_with_columns(scores.merge(facts), columns or {}))
    own_scores, common_scores = tables
    return own_scores, common_scores, kept


def _with_columns(
    table: pd.DataFrame, columns: Mapping[str, Mapping[str, Any] | str]
) -> pd.DataFrame:
    """Add numbers of models to a table."""
    for name, by_model in columns.items():
        values = read_mapping(by_model, name=name)
        cells = table.model.map(values).astype(object)
        if "asked_as" in table:
            cells = cells.fillna(table.asked_as.map(values))
        cells = cells.fillna(table[name]) if name in table else cells
        table = table.assign(**{name: Table(pd.DataFrame({name: cells}), "scores").numbers(name)})
    return table


def parameters(**values: Any) -> list[Any]:
    """Read lists and mappings among a notebook's parameters that papermill's `-p` gave as texts.

    A text is JSON, or names with commas between them, as in the command. None, as `-p runs None`
    gives it, is an empty list.

    Examples:
        >>> benchmarks, sizes = parameters(benchmarks="mcbe,cbbq", sizes='{"gpt-x": 175}')
        >>> benchmarks, sizes
        (['mcbe', 'cbbq'], {'gpt-x': 175})
    """
    return [read_list(value, name=name) for name, value in values.items()]
