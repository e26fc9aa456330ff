"""Build a report: ask a study's models, run its notebooks, and write pages.

reports/STUDY/index.html            the index, which is written when all pages are there
reports/STUDY/cbbq.html             one page per notebook
reports/STUDY/tables/cbbq/*         tables and pictures in the formats of `bench.core.export`
reports/STUDY/notebooks/*.ipynb     the executed notebooks, with hashes of what they rest on
reports/STUDY/runs/MODEL/BENCHMARK  the records, which a later call reads instead of asking again
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from bench import records
from bench.analyses import OVER_VARIANTS
from bench.benchmarks import get
from bench.core import places
from bench.core.errors import BadInput, NoRuns
from bench.core.locks import lock
from bench.core.places import NOTEBOOKS
from bench.core.progress import progress, say
from bench.core.text import notebook_title
from bench.figures.style import use_models
from bench.report import execute, site, study, study_runs
from bench.report.execute import OwnKernel, Trouble, check_parameters, types_of_parameters
from bench.report.site import Page
from bench.report.study import Study
from bench.report.study_runs import DONE, FAILED, Cell, run_folder
from bench.run import Estimate, processes, summed
from bench.run.results import UnchangingRun, run_folders
from bench.scorers.endpoint import keys

# Options of where a model runs; notebooks read records, so they do not need them.
WHERE = ("device", "batch_tokens", "scheduler", "resources", "limits")


class Made(NamedTuple):
    """The index page of a report, and the parts of the study that failed."""

    page: Path
    failed: list[str]


def make(plan: Study, out: str | Path | None = None, jobs: int | None = None) -> Made:
    """Build the report of a study.

    A notebook is run again only if it, its parameters, its records or the package has
    changed, if it failed, or if its page was deleted.

    Args:
        plan: the study; see `bench.report.study.load`.
        out: the report's folder; by default `reports/STUDY` in the working folder, or in the
            checkout of this project that it is in.
        jobs: number of concurrent models; by default one per core, which is too many if they
            share an accelerator.
    """
    # Absolute, because kernels have another working folder.
    folder = Path(out).resolve() if out else places.reports() / plan.name
    given = _notebooks(plan)
    at_a_time = study_runs.jobs(plan, jobs)
    say(f"the report and its runs go to {folder}")
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / records.LOCK, "making this report"))
        except OSError as error:
            why = f"cannot be written ({error.strerror or error})"
            raise BadInput(f"{folder}: {why}; mend that, or give another --out") from error
        index = folder / "index.html"
        is_new = not index.exists() or index.stat().st_mtime < plan.path.stat().st_mtime
        for line in _planned(plan, folder, is_new):
            say(line)
        with use_models([model.label for model in plan.models]):
            cells = study_runs.ask_models(plan, folder, at_a_time)
            runs = {
                cell.place: UnchangingRun.open(run_folder(folder, cell))
                for cell in cells
                if cell.state == DONE
            }
            pages, left_out = _make_pages(plan, folder, given, cells)
            index = site.Site(plan, folder).write(cells, pages, runs, left_out)
    failed = [f"{c.model.label} on {c.variant.key}" for c in cells if c.state == FAILED]
    failed += [f"notebook {page.name}" for page in pages if page.trouble]
    return Made(index, failed)


def estimates(plan: Study, out: str | Path | None = None) -> list[Estimate]:
    """Say what `make` would ask, run by run; nothing is written, and no endpoint is asked.

    Args:
        plan, out: as for `make`.
    """
    folder = Path(out).resolve() if out else places.reports() / plan.name
    return list(study_runs.estimates(plan, folder).values())


def _planned(plan: Study, folder: Path, is_new: bool) -> list[str]:
    """Say of each variant, and of all, what is left to ask; nothing if that is nothing.

    Args:
        is_new: the study is new or was changed, so that complete runs may be of other options.

    Raises:
        BadInput: the key of a run with something left to ask is not set.
    """
    cells = study_runs.cells(plan)
    if not is_new and all(records.is_complete(run_folder(folder, cell)) for cell in cells):
        return []
    estimates = study_runs.estimates(plan, folder)
    by_title: dict[str, list[Estimate]] = {}
    for estimate in estimates.values():
        by_title.setdefault(estimate.benchmark, []).append(estimate)
    left = [
        cell
        for cell in cells
        if cell.place not in estimates or not estimates[cell.place].is_complete
    ]
    for cell in left:
        keys.check_set(plan.run_options(cell.model, cell.variant).get("keys", {}))
    if not left or not estimates:
        return []
    lines = [f"{title}, {_count(runs)}: {summed(runs)}" for title, runs in by_title.items()]
    if len(lines) > 1:
        lines.append(f"in all: {summed(list(estimates.values()))}")
    return lines


def _count(runs: Sequence[Estimate]) -> str:
    return "1 model" if len(runs) == 1 else f"{len(runs)} models"


def _make_pages(
    plan: Study, folder: Path, given: Mapping[str, dict[str, Any]], cells: Sequence[Cell]
) -> tuple[list[Page], dict[str, str]]:
    """Make the page of each notebook, and return them with the reasons of those left out.

    Args:
        given: parameters of each page's notebook, by name of the page.
        cells: what became of each model on each variant.
    """
    pages, left_out = [], {}
    # Kernels are processes, so threads are enough.
    at_a_time = os.cpu_count() or 1
    kernels: SimpleQueue[OwnKernel] = SimpleQueue()
    for _ in range(at_a_time):
        kernels.put(OwnKernel())
    with (
        processes.waiting(at_a_time, execute.end_kernels) as pool,
        progress(len(given), "making", "pages") as bar,
    ):
        futures = {
            pool.submit(_make_page, plan, folder, name, parameters, cells, kernels): name
            for name, parameters in given.items()
        }
        made = {}
        for future in as_completed(futures):
            name, page = futures[future], future.result()
            made[name] = page
            became = "done"
            if page.trouble:
                became = f"notebook {name}: {page.trouble.kind}: {page.trouble.why}"
            if page.is_left_out and page.trouble:
                became = f"left out: {page.trouble.why}"
            say(f"page {len(made)} of {len(given)}: {page.shown_as}, {became}")
            bar.update()
        execute.end_kernels()
    for name in given:
        page = made[name]
        if page.is_left_out and page.trouble:
            left_out[name] = page.trouble.why
            for file in (name, f"{site.ANSWERS}{name}"):
                (folder / f"{file}.html").unlink(missing_ok=True)
            shutil.rmtree(folder / "tables" / name, ignore_errors=True)
        else:
            pages.append(page)
    return pages, left_out


def _make_page(
    plan: Study,
    folder: Path,
    name: str,
    given: Mapping[str, Any],
    cells: Sequence[Cell],
    kernels: "SimpleQueue[OwnKernel]",
) -> Page:
    """Make the page of a notebook, with one of the kernels."""
    parameters, is_analysis = dict(given), name in plan.analyses
    variants = [name]
    if is_analysis:
        variants = analysed(plan, name) if "runs" in given else []
    shown = [
        cell for key in variants for cell in cells if cell.variant.key == key and cell.state == DONE
    ]
    folders = [run_folder(folder, cell) for cell in shown]
    # As seen from the notebook's folder: a report can be moved, and names nobody's home.
    seen = [f"../{run.relative_to(folder).as_posix()}" for run in folders]
    if not is_analysis:
        parameters |= {"models": [cell.model.model for cell in shown], "recorded": seen}
    elif "runs" in parameters:
        patterns = parameters["runs"]
        parameters["runs"] = [*seen, *patterns]
        folders += [path for pattern in patterns for path in run_folders(pattern)]
    if not folders and (not is_analysis or "runs" in parameters):
        trouble = Trouble(NoRuns.__name__, "it has no runs")
        return Page(name, _shown_as(plan, name), "", "", [], [], trouble)
    kernel = kernels.get()
    try:
        return _page(plan, folder, name, parameters, folders, kernel)
    finally:
        kernels.put(kernel)


def _notebooks(plan: Study) -> dict[str, dict[str, Any]]:
    """Return the parameters of each page's notebook, benchmarks first."""
    pages: dict[str, dict[str, Any]] = {}
    for variant in plan.variants:
        if variant.page:
            known = types_of_parameters(get(variant.benchmark).metadata.page)
            options = study.merged(plan.options, variant.options)
            shown = {name: value for name, value in options.items() if name in known}
            # By default the data that `bench data` finds.
            pages[variant.key] = {"data": "", **shown, "models": [], "recorded": []}
    for name, analysis in plan.analyses.items():
        # An analysis uses the study's runs or data, or its own models.
        known = types_of_parameters(NOTEBOOKS / f"{name}.ipynb")
        # Models that a notebook asks by itself are asked within the study's limits.
        shared = {
            option: plan.options[option]
            for option in WHERE
            if option in known and option in plan.options
        }
        pages[name] = {**shared, **analysis.parameters}
        if "runs" in known:
            pages[name].setdefault("runs", [])
        if "keys" in known:
            pages[name].setdefault("keys", dict(plan.keys))
        if "others" in known:
            own = {
                variant.benchmark: study.merged(plan.options, variant.options)
                for variant in plan.variants
            }
            benchmarks = pages[name].setdefault("benchmarks", plan.benchmarks)
            data = {key: own[key]["data"] for key in benchmarks if own.get(key, {}).get("data")}
            pages[name].setdefault("data", data)
    for name, parameters in pages.items():
        parameters["tables"] = f"../tables/{name}"
        check_parameters(_notebook(plan, name), parameters)
    return pages


def _notebook(plan: Study, page: str) -> Path:
    """Return the notebook of a page: its benchmark's, or the analysis with its name."""
    benchmark = next((variant.benchmark for variant in plan.variants if variant.key == page), None)
    return get(benchmark).metadata.page if benchmark else NOTEBOOKS / f"{page}.ipynb"


def analysed(plan: Study, name: str) -> list[str]:
    """Return the keys of the variants that an analysis is about.

    Those that the study names; else all if it compares variants of one benchmark; else the first of
    each benchmark, so that no model is there twice.
    """
    named = plan.analyses[name].variants
    if named is not None:
        return [
            variant.key for variant in plan.variants if (variant.name or variant.benchmark) in named
        ]
    if name in OVER_VARIANTS:
        return [variant.key for variant in plan.variants]
    return plan.first_variants


def _page(
    plan: Study,
    folder: Path,
    name: str,
    parameters: dict[str, Any],
    runs: Sequence[Path],
    kernel: OwnKernel,
) -> Page:
    source, shown_as = _notebook(plan, name), _shown_as(plan, name)
    target = folder / "notebooks" / f"{name}.ipynb"
    now = execute.fingerprint(source, parameters, runs)
    changed = execute.changed(target, now)
    kept = folder / "tables" / name
    if not changed and (folder / f"{name}.html").is_file() and kept.is_dir():
        return site.page(name, shown_as, target)
    execute.forget(target)
    # Files of an earlier run may be of models that are no longer in the study.
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    trouble = execute.run_notebook(source, target, parameters, kernel)
    if trouble:
        execute.forget(target)
    else:
        execute.remember(target, now)
    return site.page(name, shown_as, target, trouble)


def _shown_as(plan: Study, name: str) -> str:
    """Return the name of a page in the navigation."""
    titles = {variant.key: variant.title for variant in plan.variants}
    return titles.get(name) or notebook_title(name)
