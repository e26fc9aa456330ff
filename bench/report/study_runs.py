"""The runs of a study: local models are asked in turn, endpoints beside them in threads.

A model that fails stops no other one.
"""

import json
from collections.abc import Mapping
from itertools import chain, count
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NamedTuple

from bench.config import Limits, RunConfig, Where
from bench.core import default_folders
from bench.core.errors import AnotherRun, BadInput, NotApplicable, RunFailed
from bench.core.progress import progress, say
from bench.report.study import Study, StudyModel, Variant
from bench.run import Estimate, evaluate
from bench.run.costs import counted, priced
from bench.runs import records
from bench.scorers import Loaded, backend_of, split_kind
from bench.scorers.budget import Budget, budgets_of

# The budgets of each cell, by its place.
Budgets = Mapping[tuple[str, str], tuple[Budget, ...]]
# States of a cell.
NOT_ASKED = "not asked"
DONE = "done"
NOT_APPLICABLE = "not applicable"
FAILED = "failed"


class Cell(NamedTuple):
    """The state of one model on one variant, one of those above, and its reason."""

    model: StudyModel
    variant: Variant
    state: str
    why: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The names of its model's and its variant's folder."""
        return self.model.folder, self.variant.key


def run_folder(folder: Path, cell: Cell) -> Path:
    """Return the folder of a run in a report's folder."""
    return folder / "runs" / cell.model.folder / cell.variant.key


def budgets(plan: Study) -> Budgets:
    """Return the budgets of each cell by its place: the study's, its variant's and its model's."""

    def own(options: Mapping[str, Any], owner: str) -> tuple[Budget, ...]:
        return budgets_of(Limits.of(options.get("limits")), owner)

    of_study = own(plan.shared.options, "the study")
    of_variants = {variant.key: own(variant.options, variant.title) for variant in plan.variants}
    of_models = {model.folder: own(model.options, model.label) for model in plan.models}
    return {
        cell.place: (*of_study, *of_variants[cell.variant.key], *of_models[cell.model.folder])
        for cell in cells(plan)
    }


def cells(plan: Study) -> list[Cell]:
    """Return all runs of a study in its order, in the state `NOT_ASKED`."""
    return [Cell(model, variant, NOT_ASKED) for model, variant in plan.runs]


def estimates(plan: Study, out: str | Path | None = None) -> list[Estimate]:
    """Estimate the runs of a report, without writing files or asking an endpoint.

    The `benchmark` of an estimate is the title of the variant. New runs whose options differ only
    in prices or in the place where a model of one kind runs share their counts. If a step of the
    study still has to make a model, we count it like a model of the Hub. We skip a run that is not
    possible, and print each reason once.

    Args:
        plan, out: as for `bench.report.build.make`.

    Raises:
        BadInput: no run is possible.
    """
    folder = default_folders.report(plan.name, out)
    known: dict[str, Estimate] = {}
    estimates = []
    skipped: dict[str, list[str]] = {}
    not_counted = {"name", *Where.model_fields}
    runs = cells(plan)
    with progress(len(runs), "counting", "runs") as bar:
        for cell in runs:
            model, variant, own = cell.model, cell.variant, run_folder(folder, cell)
            spec = Path(model.model).name if model.is_missing else model.model
            options = plan.run_options(model, variant)
            asked = {name: value for name, value in options.items() if name not in not_counted}
            key = json.dumps([variant.key, split_kind(spec)[0], asked], default=str)
            key = str(own) if own.exists() else key
            options |= {"benchmark": variant.benchmark, "model": spec}
            try:
                config = RunConfig.of({**options, "out": own})
                if key not in known:
                    known[key] = _counted(config, own)
                counts = known[key]._replace(benchmark=variant.title, model=model.label)
                estimates.append(priced(counts, config))
            except (BadInput, RunFailed) as error:
                skipped.setdefault(str(error), []).append(f"{model.label} on {variant.title}")
            bar.update()
    problems = []
    for why, names in skipped.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        problems.append(f"not counted: {names[0]}{others}: {why}")
    if not estimates:
        raise BadInput(f"{plan.path}: {'; '.join(problems)}")
    for problem in problems:
        say(problem)
    return estimates


def _counted(config: RunConfig, folder: Path) -> Estimate:
    try:
        return counted(config, partial=True)
    except AnotherRun as other:  # `ask` will move the other run away
        kept = config.model_copy(update={"out": _kept(folder, other.identity)})
        return counted(kept, partial=True)


def ask_models(plan: Study, folder: Path) -> list[Cell]:
    """Ask every model every benchmark; return their states."""
    shared = budgets(plan)

    def ask_model(model: StudyModel) -> tuple[StudyModel, list[Cell]]:
        loaded = Loaded()
        planned = [cell for cell in cells(plan) if cell.model is model]
        return model, [ask(plan, cell, folder, shared, loaded) for cell in planned]

    backends = {model.folder: backend_of(model.model) for model in plan.models}
    endpoints = [model for model in plan.models if "limits" in backends[model.folder].takes]
    local = [model for model in plan.models if model not in endpoints]
    local.sort(key=lambda model: not backends[model.folder].is_free)
    by_place: dict[tuple[str, str], Cell] = {}
    # The threads of this pool are daemons, so that Ctrl-C does not wait for them.
    with (
        ThreadPool(max(1, len(endpoints))) as pool,
        progress(len(plan.models), "asking", "models") as bar,
    ):
        finished = pool.imap_unordered(ask_model, endpoints)
        for model, results in chain(map(ask_model, local), finished):
            by_place |= {cell.place: cell for cell in results}
            states = ", ".join(f"{cell.variant.key} {cell.state}" for cell in results)
            reasons = dict.fromkeys(cell.why for cell in results if cell.state == FAILED)
            say(": ".join([f"{model.label}: {states}", *reasons]))
            bar.update()
    return [by_place[cell.place] for cell in cells(plan)]


def _kept(out: Path, identity: str) -> Path:
    """Return the folder of a run that moved away for another one."""
    return out.with_name(f"{out.name}.{identity}")


def _exchange(out: Path, identity: str) -> None:
    """Rename the run in `out`, and bring back the run with `identity`, if it exists."""
    before = _kept(out, records.read_run_json(out)["identity"])
    # Two runs can begin with one identity, for example with and without a judge.
    names = (before.with_name(f"{before.name}.{k}") if k > 1 else before for k in count(1))
    out.rename(next(name for name in names if not name.exists()))
    if (kept := _kept(out, identity)).exists():
        kept.rename(out)


def ask(
    plan: Study, cell: Cell, folder: Path, shared: Budgets, loaded: Loaded | None = None
) -> Cell:
    """Ask one model one variant; keep an earlier run with other options beside it.

    Args:
        loaded: keeps the model for the next variant.
    """
    benchmark, model = cell.variant.benchmark, cell.model.model
    out, options = run_folder(folder, cell), plan.run_options(cell.model, cell.variant)
    options |= {"partial": True, "out": out, "loaded": loaded}
    options["limits"] = {**options.get("limits", {}), "budgets": shared[cell.place]}
    try:
        try:
            evaluate(benchmark, model, **options)
        except AnotherRun as other:
            _exchange(out, other.identity)
            evaluate(benchmark, model, **options)
        return cell._replace(state=DONE)
    except NotApplicable as refusal:
        return cell._replace(state=NOT_APPLICABLE, why=str(refusal))
    except (BadInput, RunFailed) as error:
        return cell._replace(state=FAILED, why=str(error))
    except (Exception, SystemExit) as error:  # a bug: the other variants go on
        return cell._replace(state=FAILED, why=f"{type(error).__name__}: {error}")
