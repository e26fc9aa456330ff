"""Build a report: ask a study's models, run its notebooks, and write pages.

reports/STUDY/index.html            the index, written last
reports/STUDY/cbbq.html             one page per notebook
reports/STUDY/tables/cbbq/*         tables and pictures in the formats of `bench.core.export`
reports/STUDY/notebooks/*.ipynb     the executed notebooks, with hashes of their inputs
reports/STUDY/runs/MODEL/BENCHMARK  the records; a later call reads them instead of asking again
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

from bench.core import default_folders
from bench.core.errors import BadInput, NoRuns
from bench.core.locks import lock
from bench.core.progress import say
from bench.figures.style import use_models
from bench.report import execute, fingerprint, site, study_runs
from bench.report.execute import OwnKernel, Trouble
from bench.report.jobs import Job, page_jobs
from bench.report.site import Page
from bench.report.study import ANSWERS, INDEX, Study, is_own
from bench.report.study_runs import DONE, FAILED, Cell, run_folder
from bench.run.costs import summed
from bench.runs import records
from bench.runs.open import Run, run_folders
from bench.scorers import split_kind
from bench.scorers.endpoint import keys

# The kinds of models that are references for real ones.
REFERENCES = ("tiny", "simulated")


class Made(NamedTuple):
    """The index page of a report, and the parts of the study that failed."""

    page: Path
    failed: list[str]


def make(plan: Study, out: str | Path | None = None) -> Made:
    """Build the report of a study.

    We run a notebook again only if it, its parameters, its records or this package changed, if it
    failed, or if its page was deleted. The index is such a page too, and is made last.

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
    jobs = page_jobs(plan)
    say(f"the report and its runs go to {folder}")
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / records.LOCK, "making this report"))
        except OSError as error:
            why = f"cannot be written ({error.strerror or error})"
            raise BadInput(f"{folder}: {why}; mend that, or give another --out") from error
        references = [m.label for m in plan.models if split_kind(m.model)[0] in REFERENCES]
        stack.enter_context(use_models([model.label for model in plan.models], references))
        say(f"in all: {summed(study_runs.estimates(plan, folder))}")
        for cell in study_runs.cells(plan):
            if not records.is_complete(run_folder(folder, cell)):
                keys.check_set(plan.run_options(cell.model, cell.variant).get("keys", {}))
        cells = study_runs.ask_models(plan, folder)
        done = [cell for cell in cells if cell.state == DONE]
        runs = {cell.place: Run.open(run_folder(folder, cell)) for cell in done}
        kernels: list[OwnKernel] = []
        stack.callback(_end, kernels)
        run_notebook = partial(_run_notebook, folder, done, fingerprint.of_study(plan), kernels)
        pages = _make_pages(folder, jobs, run_notebook)
        failed = [f"{c.model.label} on {c.variant.key}" for c in cells if c.state == FAILED]
        failed += [f"notebook {page.name}" for page in pages if page.is_failed]
        say("writing the pages and the index")
        report = site.Site(plan, folder, [page for page in pages if not page.is_left_out], runs)
        report.write()
        index = index_job(plan, cells, [*pages, *report.answers.values()])
        trouble = run_notebook(index)
        page = site.page(INDEX, plan.title, _notebook(folder, INDEX), trouble)
        report.render(page._replace(title=plan.title, contents=()), "page.html.j2")
        for run in runs.values():
            run.write_scores()
        failed += [f"notebook {INDEX}"] if trouble else []
    return Made(folder / f"{INDEX}.html", failed)


def _end(kernels: Sequence[OwnKernel]) -> None:
    for kernel in kernels:
        kernel.end()


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
        shown = [cell for cell in real if cell.variant.key == page.name] or real
        if sentence and shown and not any(cell.state == DONE for cell in shown):
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
    return Job(INDEX, "Index", plan.index, parameters)


def _make_pages(
    folder: Path, jobs: Sequence[Job], run_notebook: Callable[[Job], Trouble | None]
) -> list[Page]:
    """Make the pages of notebooks."""
    pages = []
    # Kernels are processes, so threads are enough. They are daemons: Ctrl-C does not wait for them.
    with ThreadPool() as pool:
        for job, trouble in zip(jobs, pool.imap(run_notebook, jobs), strict=True):
            page = site.page(job.name, job.shown_as, _notebook(folder, job.name), trouble)
            pages.append(page)
            result = "done"
            if page.trouble:
                kind = f"notebook {page.name}" if page.is_failed else "left out"
                result = f"{kind}: {page.trouble.kind}: {page.trouble.why}"
            if page.is_left_out:
                for name in (page.name, f"{ANSWERS}{page.name}"):
                    (folder / f"{name}.html").unlink(missing_ok=True)
                shutil.rmtree(folder / "tables" / page.name, ignore_errors=True)
            say(f"page {len(pages)} of {len(jobs)}: {page.shown_as}, {result}")
    return pages


def _notebook(folder: Path, page: str) -> Path:
    """Return the place of a page's executed notebook."""
    return folder / "notebooks" / f"{page}.ipynb"


def _run_notebook(
    folder: Path, done: Sequence[Cell], shared: str, kernels: list[OwnKernel], job: Job
) -> Trouble | None:
    """Run a notebook in one of the free `kernels`, unless its inputs are unchanged.

    A user's notebook can read anything, so that we run it each time, and set anything in its
    kernel, so that this ends with it.
    """
    cells = [cell for key in job.variants or () for cell in done if cell.variant.key == key]
    # Relative to the notebook's folder, so that a report can move, and shows no home folder.
    runs = [f"../{run_folder(Path(), cell).as_posix()}" for cell in cells]
    parameters = dict(job.parameters)
    if "recorded" in parameters:
        parameters |= {"models": [cell.model.model for cell in cells], "recorded": runs}
    patterns = parameters.get("runs", [])
    if "runs" in parameters:
        parameters["runs"] = [*runs, *patterns]
    if job.variants is not None and not runs and not any(map(run_folders, patterns)):
        return Trouble(NoRuns.__name__, "it has no runs")
    inputs = fingerprint.of_page(shared, job._replace(parameters=parameters), folder)
    notebook, tables = _notebook(folder, job.name), folder / "tables" / job.name
    is_there = (folder / f"{job.name}.html").is_file() and tables.is_dir()
    is_of_user = is_own(job.source)
    if is_there and not is_of_user and fingerprint.is_fresh(notebook, inputs):
        return None
    notebook.unlink(missing_ok=True)
    # Old files may belong to models that are no longer in this study.
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True)
    kernel = OwnKernel()
    if not is_of_user:
        with suppress(IndexError):  # the other threads use all
            kernel = kernels.pop()
    try:
        return execute.run_notebook(job.source, notebook, parameters, kernel, inputs)
    finally:
        # After a kernel died, its manager starts no other one reliably.
        if kernel.is_running() and not is_of_user:
            kernels.append(kernel)
        else:
            kernel.end()
