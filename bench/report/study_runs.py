"""The runs of a study: local models are asked in turn, endpoints beside them in threads.

A model that fails stops no other one.
"""

import json
from collections.abc import Mapping
from itertools import chain, product
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

from bench.config import Budget, Limits, RunConfig, Where
from bench.core import default_folders
from bench.core.errors import AnotherRun, BadInput, NotApplicable, RunFailed
from bench.core.progress import progress, say
from bench.report.study import Study, StudyModel, StudyOptions, Variant
from bench.run import Estimate, evaluate
from bench.run.costs import counted, priced
from bench.scorers import Loaded, backend_of, split_kind

# The budgets of each cell, by its place.
Budgets = Mapping[tuple[str, str], tuple[Budget, ...]]
# States of a cell.
NOT_ASKED = "not asked"
DONE = "done"
NOT_APPLICABLE = "not applicable"
FAILED = "failed"


class Cell(NamedTuple):
    """The state of one model on one variant, one of those above, and its reason.

    `run` is the name of its run's folder, if an earlier run has the folder of the variant's name.
    """

    model: StudyModel
    variant: Variant
    state: str
    why: str = ""
    run: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The names of its model's and its variant's folder."""
        return self.model.folder, self.variant.key


def run_folder(folder: Path, cell: Cell) -> Path:
    """Return the folder of a run in a report's folder."""
    return folder / "runs" / cell.model.folder / (cell.run or cell.variant.key)


def budgets(plan: Study) -> Budgets:
    """Return the budgets of each cell by its place: the study's, its variant's and its model's."""

    def of(part: StudyOptions, owner: str) -> tuple[Budget, ...]:
        return Limits.of(part.options.get("limits")).shared(owner)

    of_study = of(plan.shared, "the study")
    of_variants = {variant.key: of(variant, variant.title) for variant in plan.variants}
    of_models = {model.folder: of(model, model.label) for model in plan.models}
    return {
        (model, variant): (*of_study, *of_variants[variant], *of_models[model])
        for model, variant in product(of_models, of_variants)
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
    counts: dict[str, Estimate] = {}
    estimates = []
    skipped: dict[str, list[str]] = {}
    not_counted = {"name", *Where.model_fields}
    runs = cells(plan)
    with progress(len(runs), "counting", "runs") as bar:
        for cell in runs:
            model, variant, out = cell.model, cell.variant, run_folder(folder, cell)
            spec = Path(model.model).name if model.is_missing else model.model
            options = plan.run_options(model, variant)
            asked = {name: value for name, value in options.items() if name not in not_counted}
            key = json.dumps([variant.key, split_kind(spec)[0], asked], default=str)
            key = str(out) if out.exists() else key
            options |= {"benchmark": variant.benchmark, "model": spec, "out": out}
            try:
                config = RunConfig.of(options)
                if key not in counts:
                    try:
                        counts[key] = counted(config, partial=True)
                    except AnotherRun as other:
                        beside = {"out": _beside(out, other.identity)}
                        counts[key] = counted(config.model_copy(update=beside), partial=True)
                of_run = counts[key]._replace(benchmark=variant.title, model=model.label)
                estimates.append(priced(of_run, config))
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


def _beside(out: Path, identity: str) -> Path:
    """Return the folder of a run beside an earlier run with other options."""
    return out.with_name(f"{out.name}.{identity}")


def ask(
    plan: Study, cell: Cell, folder: Path, shared: Budgets, loaded: Loaded | None = None
) -> Cell:
    """Ask one model one variant; keep an earlier run with other options beside it.

    Args:
        loaded: keeps the model for the next variant.
    """
    benchmark, model = cell.variant.benchmark, cell.model.model
    out, options = run_folder(folder, cell), plan.run_options(cell.model, cell.variant)
    options |= {"partial": True, "loaded": loaded}
    options["limits"] = {**options.get("limits", {}), "budgets": shared[cell.place]}
    try:
        try:
            evaluate(benchmark, model, out=out, **options)
        except AnotherRun as other:
            cell = cell._replace(run=_beside(out, other.identity).name)
            evaluate(benchmark, model, out=run_folder(folder, cell), **options)
        return cell._replace(state=DONE)
    except NotApplicable as refusal:
        return cell._replace(state=NOT_APPLICABLE, why=str(refusal))
    except (BadInput, RunFailed) as error:
        return cell._replace(state=FAILED, why=str(error))
    except (Exception, SystemExit) as error:  # a bug: the other variants go on
        return cell._replace(state=FAILED, why=f"{type(error).__name__}: {error}")
