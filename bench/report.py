"""Reports: ask a study's models, run its notebooks, write a small site that needs no kernel and no network.

reports/STUDY/index.html            the answer first
reports/STUDY/cbbq.html             one page a notebook
reports/STUDY/tables/cbbq/*         every table and every picture, in the formats of `bench.keep`
reports/STUDY/model-index/*.yml     each model's scores for its card
reports/STUDY/notebooks/*.ipynb     the notebooks as they were run, each with a fingerprint of what it rests on
reports/STUDY/runs/MODEL/BENCHMARK  the records, which a later call reads in place of asking again
"""

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench import notebooks, places, records, study, words
from bench.analyses import OVER_VARIANTS, run_folders
from bench.errors import AnotherRun, BadInput, NotApplicable, RunFailed
from bench.notebooks import check_parameters, names_of_parameters
from bench.places import DEMO, NOTEBOOKS
from bench.progress import say
from bench.run import Run, evaluate
from bench.scorers import keys
from bench.site import pages as site
from bench.site.matrix import Cell
from bench.site.pages import Page
from bench.study import Study, StudyModel, Variant

# Options that say where a model runs, not what it is asked: a notebook reads records, so it has no use for them.
WHERE = ("device", "batch_tokens", "scheduler", "resources", "limits")


class Made(NamedTuple):
    """A report: its index page, and the parts of the study that failed."""

    page: Path
    failed: list[str]


def make(
    study_file: str | Path | None = None, out: str | Path | None = None, jobs: int | None = None
) -> Made:
    """Run a study into a report.

    A notebook is run again only where itself, its parameters, the records it reads, the package or the language has
    changed, where it failed, or where its page was deleted.

    Args:
        study_file: a study (see `bench.study`); the demo study if None.
        out: the report's folder; `reports/STUDY` if None, in the working folder or, within a checkout
            of this project, in the checkout.
        jobs: models asked at a time; as many as there are cores if None, which is too many where they share an accelerator.

    Raises:
        BadInput: the study is wrong, or a notebook that it names is missing or lacks a parameter.
    """
    path = Path(study_file) if study_file else DEMO
    plan = study.load(path)
    # Absolute, because kernels have another working folder.
    folder = Path(out).resolve() if out else places.reports() / plan.name
    given = _notebooks(plan, folder)
    say(f"the report and its runs go to {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot be written ({error.strerror or error})"
        raise BadInput(f"{folder}: {why}; mend that, or give another --out") from error
    with words.spoken(plan.language):
        cells = _ask(plan, folder, _jobs(plan, jobs))
        runs = {cell.place: Run.open(_place(folder, cell)) for cell in cells if cell.state == "done"}
        made = _pages(plan, folder, given, cells)
        left_out = {
            page.name: page.trouble.why for page in made if page.trouble and page.trouble.is_no_failure
        }
        pages = [page for page in made if page.name not in left_out]
        for name in given.keys() - {page.name for page in pages}:
            (folder / f"{name}.html").unlink(missing_ok=True)  # shows runs that are gone
        index = site.write(plan, folder, cells, pages, runs, left_out)
    failed = [f"{cell.model.label} on {cell.variant.key}" for cell in cells if cell.state == "failed"]
    return Made(index, failed + [f"notebook {page.name}" for page in pages if page.trouble])


def _place(folder: Path, cell: Cell) -> Path:
    return _run_folder(folder, cell.model, cell.variant)


def _run_folder(folder: Path, model: StudyModel, variant: Variant) -> Path:
    return folder / "runs" / model.folder / variant.key


def _notebooks(plan: Study, folder: Path) -> dict[str, dict[str, Any]]:
    """The parameters of each page's notebook, by the name of the page; those of benchmarks first."""
    pages: dict[str, dict[str, Any]] = {}
    for variant in plan.variants:
        if variant.page:
            known = names_of_parameters(NOTEBOOKS / f"{variant.benchmark}.ipynb")
            options = study.merged(plan.options, variant.options)
            shown = {name: value for name, value in options.items() if name in known}
            # A study's data are those that `bench data` finds, unless it names others.
            pages[variant.key] = {"data": "", **shown, "models": [], "recorded": []}
    for name, analysis in plan.analyses.items():
        # An analysis is of the study's runs, of its data, compared with others, or of models of its own.
        known = names_of_parameters(NOTEBOOKS / f"{name}.ipynb")
        # A judge or model that a notebook asks by itself is asked within the study's limits.
        shared = {
            option: plan.options[option] for option in WHERE if option in known and option in plan.options
        }
        pages[name] = {**shared, **analysis.parameters}
        if "runs" in known:
            pages[name].setdefault("runs", [])
        if "keys" in known:
            pages[name].setdefault("keys", dict(plan.keys))
        if "others" in known:
            own = {
                variant.benchmark: study.merged(plan.options, variant.options) for variant in plan.variants
            }
            data = {name: options["data"] for name, options in own.items() if options.get("data")}
            pages[name] = {"benchmarks": plan.benchmarks, "data": data, **pages[name]}
    for name, parameters in pages.items():
        parameters["tables"] = str((folder / "tables" / name).resolve())
        check_parameters(_notebook(plan, name), parameters)
    return pages


def _notebook(plan: Study, page: str) -> Path:
    """The notebook of a page: that of its benchmark, or the analysis of its name."""
    benchmark = next((variant.benchmark for variant in plan.variants if variant.key == page), page)
    return NOTEBOOKS / f"{benchmark}.ipynb"


def _jobs(plan: Study, jobs: int | None) -> int:
    if jobs is not None and jobs < 1:
        raise BadInput(f"--jobs {jobs}: has to be at least 1")
    # Models share the workers of a cluster, which would load them by turns.
    runs = (plan.run_options(model, variant) for model in plan.models for variant in plan.variants)
    on_cluster = any("scheduler" in options for options in runs)
    return min(jobs or (1 if on_cluster else os.cpu_count() or 1), len(plan.models))


def _ask(plan: Study, folder: Path, jobs: int) -> list[Cell]:
    """Ask every model every benchmark, in a process per model, so that a failure stops no other.

    Raises:
        BadInput: a run is not complete, and the variable with a key that it needs is not set.
    """
    for model in plan.models:
        for variant in plan.variants:
            if not records.is_complete(_run_folder(folder, model, variant)):
                keys.check_set(plan.run_options(model, variant).get("keys", {}))
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin, initargs=(threads,), max_tasks_per_child=1
        ) as pool,
        _ending(pool),
    ):
        with _uninterrupted():
            asked = [pool.submit(_ask_model, plan, model, folder) for model in plan.models]
        cells = []
        for model, future in zip(plan.models, asked, strict=True):
            try:
                cells += future.result()
            except Exception as error:  # a killed worker too: the study goes on with the others
                why = f"{type(error).__name__}: {error}"
                cells += [Cell(model, variant, "failed", why) for variant in plan.variants]
            states = [f"{cell.variant.key} {cell.state}" for cell in cells if cell.model == model]
            say(f"{model.label}: {', '.join(states)}")
    return cells


def _begin(threads: int) -> None:
    """What a worker does first: it takes its share of threads, and ends when who started it was killed."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Workers that are started in the block do not hear Ctrl-C: they are ended by who started them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _ending(pool: Executor) -> Iterator[None]:
    """End what the pool has begun where the block is left early, in place of waiting for it."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise


def _ask_model(plan: Study, model: StudyModel, folder: Path) -> list[Cell]:
    cells = []
    for variant in plan.variants:
        out = _run_folder(folder, model, variant)
        options = plan.run_options(model, variant)
        try:
            try:
                evaluate(variant.benchmark, model.model, out=out, partial=True, **options)
            except AnotherRun:
                # The study was changed since; what it had asked is kept beside.
                out.rename(out.with_name(f"{variant.key}.{Run.open(out).about['identity']}"))
                evaluate(variant.benchmark, model.model, out=out, partial=True, **options)
            cells.append(Cell(model, variant, "done"))
        except NotApplicable as refusal:
            cells.append(Cell(model, variant, "not applicable", str(refusal)))
        except (BadInput, RunFailed) as error:
            cells.append(Cell(model, variant, "failed", str(error)))
    return cells


def _pages(plan: Study, folder: Path, given: dict[str, dict[str, Any]], cells: Sequence[Cell]) -> list[Page]:
    """A page a notebook that has something to tell of; those that would be the same again are not run again."""
    done = [cell for cell in cells if cell.state == "done"]
    stopped = threading.Event()

    def page(name: str) -> Page | None:
        parameters = dict(given[name])
        is_analysis = name in plan.analyses
        wanted = analysed(plan, name) if is_analysis else [name]
        shown = [cell for key in wanted for cell in done if cell.variant.key == key]
        folders = [str(_place(folder, cell)) for cell in shown]
        if not is_analysis:
            parameters |= {"models": [cell.model.model for cell in shown], "recorded": folders}
        elif "runs" in parameters:
            parameters["runs"] = [*folders, *parameters["runs"]]
            folders = [str(one) for pattern in parameters["runs"] for one in run_folders(pattern)]
        else:
            folders = []
        if not folders and (not is_analysis or "runs" in parameters):
            return None
        made = _page(plan, folder, name, parameters, list(map(Path, folders)))
        if made.trouble and not stopped.is_set():
            say(f"notebook {name}: {made.trouble.kind}: {made.trouble.why}")
        return made

    # A kernel is a process of its own, so threads are enough.
    with ThreadPoolExecutor(min(len(given), os.cpu_count() or 1)) as pool:
        begun = [pool.submit(page, name) for name in given]
        try:
            return [made for made in (one.result() for one in begun) if made]
        except BaseException:
            stopped.set()
            logging.disable()  # of what is wrong with kernels that are ended here
            pool.shutdown(wait=False, cancel_futures=True)
            # A kernel that is being started now comes a little later.
            while not all(one.done() for one in begun):
                notebooks.end_kernels()
                time.sleep(0.1)
            raise
        finally:
            logging.disable(logging.NOTSET)


def analysed(plan: Study, name: str) -> list[str]:
    """The keys of the variants that an analysis is about.

    Those that the study names; else all where it compares variants of one benchmark, and where it
    does not, the first of each benchmark, so that no model stands there twice.
    """
    named = plan.analyses[name].variants
    if named is not None:
        return [one.key for one in plan.variants if (one.name or one.benchmark) in named]
    if name in OVER_VARIANTS:
        return [variant.key for variant in plan.variants]
    return plan.first_variants


def _page(plan: Study, folder: Path, name: str, parameters: dict[str, Any], runs: Sequence[Path]) -> Page:
    source, titles = _notebook(plan, name), {variant.key: variant.title for variant in plan.variants}
    shown_as = titles.get(name) or words.notebook(name)
    target = folder / "notebooks" / f"{name}.ipynb"
    now = notebooks.fingerprint(source, parameters, runs)
    changed = notebooks.changed(target, now)
    kept = folder / "tables" / name
    if not changed and (folder / f"{name}.html").is_file() and kept.is_dir():
        say(f"notebook {name}: nothing has changed, so it is not run again")
        return site.page(name, shown_as, target)
    notebooks.forget(target)
    # What an earlier run kept, of models that may no longer be in the study, is no download of this one.
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    trouble = notebooks.run_notebook(source, target, parameters)
    if trouble:
        notebooks.forget(target)
    else:
        notebooks.remember(target, now)
    return site.page(name, shown_as, target, trouble)
