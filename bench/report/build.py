"""Build a report: ask a study's models, run its notebooks, and write pages.

reports/STUDY/index.html            the index, written last
reports/STUDY/cbbq.html             one page per notebook
reports/STUDY/tables/cbbq/*         tables and pictures in the formats of `bench.core.export`
reports/STUDY/notebooks/*.ipynb     the executed notebooks, with hashes of their inputs
reports/STUDY/runs/MODEL/BENCHMARK  the records; a later call reads them instead of asking again
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from bench.benchmarks import get
from bench.core import default_folders
from bench.core.errors import BadInput, NoRuns
from bench.core.locks import lock
from bench.core.progress import progress, say
from bench.core.threads import in_threads
from bench.figures.style import use_models
from bench.report import execute, fingerprint, site, study, study_runs
from bench.report.execute import OwnKernel, Trouble, check_parameters, types_of_parameters
from bench.report.site import Page
from bench.report.study import INDEX, Study
from bench.report.study_runs import DONE, FAILED, Cell, run_folder
from bench.run import summed
from bench.runs import records
from bench.runs.open import Run, run_folders
from bench.scorers import split_kind
from bench.scorers.endpoint import keys

# The kinds of models that are references for real ones.
REFERENCES = ("tiny", "simulated")
# Notebooks read records, so only notebooks that ask a model need these options.
RESOURCE_OPTIONS = ("device", "batch_tokens", "scheduler", "resources", "limits")


class Made(NamedTuple):
    """The index page of a report, and the parts of the study that failed."""

    page: Path
    failed: list[str]


class Job(NamedTuple):
    """A page to make.

    Attributes:
        name, shown_as: of the page, as a file and in the navigation.
        variants: keys of the study's variants with the runs for this notebook; None if it reads no
            runs.
        reads_anything: whether it is a user's notebook, which we run again each time.
    """

    name: str
    shown_as: str
    source: Path
    parameters: dict[str, Any]
    variants: list[str] | None
    reads_anything: bool = False


def make(plan: Study, out: str | Path | None = None) -> Made:
    """Build the report of a study.

    We run a notebook again only if it, its parameters, its records or this package changed, if it
    failed, or if its page was deleted.

    Args:
        plan: the study, for example `bench.report.study.load()` for the demonstration.
        out: the report's folder; by default `reports/STUDY` in the working folder, or in the
            checkout of this project.

    Examples:
        >>> from bench.report import study
        >>> make(study.load()).page.name  # doctest: +SKIP
        'index.html'
    """
    folder = default_folders.report(plan.name, out)
    if plan.steps:
        raise BadInput(f"{plan.path}: run this first: {'; '.join(plan.steps)}")
    pages_to_make = page_jobs(plan)
    say(f"the report and its runs go to {folder}")
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / records.LOCK, "making this report"))
        except OSError as error:
            why = f"cannot be written ({error.strerror or error})"
            raise BadInput(f"{folder}: {why}; mend that, or give another --out") from error
        fingerprint.forget(folder)
        left = [
            cell
            for cell in study_runs.cells(plan)
            if not records.is_complete(run_folder(folder, cell))
        ]
        _say_requests(plan, folder, left)
        for cell in left:
            keys.check_set(plan.run_options(cell.model, cell.variant).get("keys", {}))
        with use_models([model.label for model in plan.models]):
            cells = study_runs.ask_models(plan, folder)
            done = [cell for cell in cells if cell.state == DONE]
            runs = {cell.place: Run.open(run_folder(folder, cell)) for cell in done}
            pages = _make_pages(plan, folder, pages_to_make, done)
            index = index_job(plan, cells, [*pages, *site.answers_pages(plan, runs)])
            if _is_older(folder, index, pages_to_make):
                _notebook(folder, index).unlink(missing_ok=True)
            pages += _make_pages(plan, folder, [index], done)
            site.write(plan, folder, pages, runs)
            for run in runs.values():
                run.write_scores()
        failed = [f"{c.model.label} on {c.variant.key}" for c in cells if c.state == FAILED]
        failed += [
            f"notebook {page.name}" for page in pages if page.trouble and not page.is_left_out
        ]
        if not failed:
            fingerprint.remember(plan, folder)
    return Made(folder / f"{INDEX}.html", failed)


def _say_requests(plan: Study, folder: Path, left: Sequence[Cell]) -> None:
    """Print the requests of all runs, unless none is `left` since the study was last changed."""
    index = folder / "index.html"
    is_old = index.exists() and index.stat().st_mtime >= plan.path.stat().st_mtime
    if is_old and not left:
        return
    if estimates := study_runs.estimates(plan, folder):
        say(f"in all: {summed(estimates)}")


def page_jobs(plan: Study) -> list[Job]:
    """List the pages of a study, benchmarks first, with the parameters of their notebooks."""
    jobs: list[Job] = []
    own = {v.benchmark: study.merged(plan.options, v.options) for v in plan.variants}
    for variant in (variant for variant in plan.variants if variant.page):
        source = get(variant.benchmark).metadata.page
        known, options = types_of_parameters(source), study.merged(plan.options, variant.options)
        declared = {name: value for name, value in options.items() if name in known}
        given = {"data": "", **declared, "models": [], "recorded": []}
        jobs.append(Job(variant.key, variant.title, source, given, [variant.key]))
    for name, analysis in plan.analyses.items():
        # An analysis uses the study's runs or data, or its own models.
        source = analysis.source
        known = types_of_parameters(source)
        # If a notebook asks models by itself, the study's limits apply.
        shared = {
            option: value for option, value in plan.options.items() if option in RESOURCE_OPTIONS
        }
        defaults = {**shared, "runs": [], "keys": dict(plan.keys)}
        given = {option: value for option, value in defaults.items() if option in known}
        given |= analysis.parameters
        if "others" in known:
            given.setdefault("benchmarks", plan.benchmarks)
            data = {key: own.get(key, {}).get("data") for key in given["benchmarks"]}
            given.setdefault("data", {key: folder for key, folder in data.items() if folder})
        variants = plan.analysed(name) if "runs" in given else None
        jobs.append(Job(name, analysis.title, source, given, variants, study.is_own(source)))
    for job in jobs:
        job.parameters["tables"] = f"../tables/{job.name}"
        if plan.paper and "paper" in types_of_parameters(job.source):
            job.parameters["paper"] = plan.paper
        check_parameters(job.source, job.parameters)
    return jobs


def index_job(plan: Study, cells: Sequence[Cell], pages: Sequence[Page]) -> Job:
    """Return the index, with the runs and pages of a report as parameters of its notebook."""
    names = [model.label for model in plan.models]
    asked = []
    # Variants that only analyses show come last.
    for cell in sorted(cells, key=lambda cell: not cell.variant.page):
        model = cell.model
        row = {
            "model": model.model if names.count(model.label) > 1 else model.label,
            "variant": cell.variant.title,
            "folder": f"../{run_folder(Path(), cell).as_posix()}",
            "why": "" if cell.state == DONE else f"{cell.state}: {cell.why}",
        }
        asked.append(row)
    real = [cell for cell in cells if split_kind(cell.model.model)[0] not in REFERENCES]
    listed = []
    for page in pages:
        sentence = page.findings[0] if page.findings else ""
        # Without a real model, a page is about the references.
        own = [cell for cell in real if cell.variant.key == page.name] or real
        if sentence and own and not any(cell.state == DONE for cell in own):
            sentence = "No real model has a score."
        row = {
            "file": "" if page.is_left_out else f"../{page.file}",
            "title": page.shown_as if page.is_left_out else page.entry,
            "sentence": sentence,
            "why": page.trouble.why if page.trouble else "",
        }
        listed.append(row)
    parameters = {"title": plan.title, "question": plan.question, "asked": asked, "pages": listed}
    parameters["tables"] = f"../tables/{INDEX}"
    return Job(INDEX, "Index", plan.index, parameters, None, study.is_own(plan.index))


def _is_older(folder: Path, index: Job, jobs: Sequence[Job]) -> bool:
    """Return whether a page was made after the index, which lists its files."""
    made = _notebook(folder, index)
    others = [_notebook(folder, job) for job in jobs]
    latest = max((file.stat().st_mtime_ns for file in others if file.is_file()), default=0)
    return made.is_file() and made.stat().st_mtime_ns < latest


def _make_pages(plan: Study, folder: Path, jobs: Sequence[Job], done: Sequence[Cell]) -> list[Page]:
    """Make pages of the models and variants that are `done`."""
    shared = fingerprint.of_study(plan)
    # Kernels are processes, so threads are enough.
    at_a_time = os.cpu_count() or 1
    kernels: SimpleQueue[OwnKernel] = SimpleQueue()
    for _ in range(at_a_time):
        kernels.put(OwnKernel())
    made: dict[str, Page] = {}

    def run(job: Job) -> Trouble | None:
        return _run_notebook(job, folder, done, kernels, shared)

    try:
        with progress(len(jobs), "making", "pages") as bar:
            for job, trouble in in_threads(run, jobs, at_a_time):
                made[job.name] = page = site.page(
                    job.name, job.shown_as, _notebook(folder, job), trouble
                )
                result = "done"
                if page.trouble:
                    kind = "left out" if page.is_left_out else f"notebook {page.name}"
                    result = f"{kind}: {page.trouble.kind}: {page.trouble.why}"
                if page.is_left_out:
                    for name in (page.name, f"{study.ANSWERS}{page.name}"):
                        (folder / f"{name}.html").unlink(missing_ok=True)
                    shutil.rmtree(folder / "tables" / page.name, ignore_errors=True)
                say(f"page {len(made)} of {len(jobs)}: {page.shown_as}, {result}")
                bar.update()
    finally:
        execute.end_kernels()
    return [made[job.name] for job in jobs]


def _notebook(folder: Path, job: Job) -> Path:
    """Return the place of a page's executed notebook."""
    return folder / "notebooks" / f"{job.name}.ipynb"


def _run_notebook(
    job: Job,
    folder: Path,
    done: Sequence[Cell],
    kernels: "SimpleQueue[OwnKernel]",
    shared: str,
) -> Trouble | None:
    """Run a notebook, unless its inputs are unchanged.

    Our notebooks use the kernels in turns. Another one can set anything in its kernel, so that this
    kernel ends with it; and it can read anything, so that a user's is run again each time.
    """
    name, source, parameters, variants = job.name, job.source, job.parameters, job.variants
    cells = [cell for key in variants or () for cell in done if cell.variant.key == key]
    # Relative to the notebook's folder, so that a report can move, and shows no home folder.
    runs = [f"../{run_folder(Path(), cell).as_posix()}" for cell in cells]
    if "recorded" in parameters:
        models = [cell.model.model for cell in cells]
        parameters = {**parameters, "models": models, "recorded": runs}
    patterns = parameters.get("runs", [])
    if "runs" in parameters:
        parameters = {**parameters, "runs": [*runs, *patterns]}
    if variants is not None and not runs and not any(map(run_folders, patterns)):
        return Trouble(NoRuns.__name__, "it has no runs")
    target, tables = _notebook(folder, job), folder / "tables" / name
    inputs = fingerprint.of_page(shared, source, parameters, folder)
    is_there = (folder / f"{name}.html").is_file() and tables.is_dir()
    if is_there and not job.reads_anything and fingerprint.is_fresh(target, inputs):
        return None
    target.unlink(missing_ok=True)
    # Old files may belong to models that are no longer in this study.
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True)
    if study.is_own(source):
        kernel = OwnKernel()
        try:
            return execute.run_notebook(source, target, parameters, kernel, inputs)
        finally:
            kernel.end()
    kernel = kernels.get()
    try:
        return execute.run_notebook(source, target, parameters, kernel, inputs)
    finally:
        # After a kernel died, its manager starts no other one reliably.
        kernels.put(kernel if kernel.is_running() else OwnKernel())
