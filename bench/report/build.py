"""Build a report: ask a study's models, run its notebooks, and write pages.

reports/STUDY/index.html            the index, which is there early and filled up
reports/STUDY/cbbq.html             one page per notebook
reports/STUDY/tables/cbbq/*         tables and pictures in the formats of `bench.core.export`
reports/STUDY/notebooks/*.ipynb     the executed notebooks, with hashes of what they rest on
reports/STUDY/runs/MODEL/BENCHMARK  the records, which a later call reads instead of asking again
"""

import os
import queue
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from bench import records
from bench.analyses import OVER_VARIANTS, run_folders
from bench.benchmarks import get
from bench.core import places
from bench.core.errors import BadInput
from bench.core.locks import lock
from bench.core.places import DEMO, NOTEBOOKS
from bench.core.progress import progress, say
from bench.core.text import notebook_title
from bench.figures.style import use_models
from bench.report import execute, kernels, site, study, study_runs
from bench.report.execute import check_parameters, types_of_parameters
from bench.report.site import Page
from bench.report.study import Study
from bench.report.study_runs import ASKED, DONE, FAILED, Cell, run_folder
from bench.run import Estimate, processes, summed
from bench.run.results import UnchangingRun
from bench.scorers.endpoint import keys

# Options of where a model runs; notebooks read records, so they do not need them.
WHERE = ("device", "batch_tokens", "scheduler", "resources", "limits")
# Least seconds between two versions of the index.
EVERY = 10.0
# Seconds between two looks at what is being done.
REFRESH = 1.0


class Made(NamedTuple):
    """The index page of a report, and the parts of the study that failed."""

    page: Path
    failed: list[str]


def make(
    study_file: str | Path | None = None, out: str | Path | None = None, jobs: int | None = None
) -> Made:
    """Build the report of a study.

    A notebook is run again only if it, its parameters, its records, the package or the
    language has changed, if it failed, or if its page was deleted.

    Args:
        study_file: a study (see `bench.report.study`); by default the demo study.
        out: the report's folder; by default `reports/STUDY` in the working folder, or in the
            checkout of this project that it is in.
        jobs: number of concurrent models; by default one per core, which is too many if they
            share an accelerator.
    """
    path = Path(study_file) if study_file else DEMO
    plan = study.load(path)
    processes.start_server([*kernels.MODULES, *study_runs.modules(plan)])
    # Absolute, because kernels have another working folder.
    folder = Path(out).resolve() if out else places.reports() / plan.name
    making = Making(plan, folder, _notebooks(plan))
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
        is_new = not index.exists() or index.stat().st_mtime < path.stat().st_mtime
        for line in _planned(plan, folder, is_new):
            say(line)
        with use_models([model.label for model in plan.models]):
            return making.make(at_a_time)


def estimates(
    study_file: str | Path | None = None, out: str | Path | None = None
) -> list[Estimate]:
    """Say what `make` would ask, run by run; nothing is written, and no endpoint is asked.

    Args:
        study_file, out: as for `make`.
    """
    plan = study.load(Path(study_file) if study_file else DEMO)
    folder = Path(out).resolve() if out else places.reports() / plan.name
    return list(study_runs.estimates(plan, folder, measure=True).values())


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
    estimates = study_runs.estimates(plan, folder, measure=False)
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


class Making:
    """A report in the making: its runs and pages so far.

    Attributes:
        given: parameters of each page's notebook, by name of the page.
        cells: states of each model on each variant.
        runs: finished runs.
        made: finished pages; None for one without runs.
    """

    def __init__(self, plan: Study, folder: Path, given: dict[str, dict[str, Any]]) -> None:
        self.plan, self.folder, self.given = plan, folder, given
        self.cells = {cell.place: cell for cell in study_runs.cells(plan)}
        self.runs: dict[tuple[str, str], UnchangingRun] = {}
        self.made: dict[str, Page | None] = {}
        self._site = site.Site(plan, folder)
        self._written_at = 0.0
        self._is_written = True
        # When each page that is being made was begun.
        self._begun: dict[str, float] = {}
        # A settled cell, a page and what became of it, or an error.
        self._events: queue.Queue[Cell | tuple[str, Page | None, str] | Exception] = queue.Queue()

    def make(self, jobs: int) -> Made:
        """Ask the models, and make each page as soon as its runs are there."""
        not_begun = list(self.given)
        with (
            # Kernels are processes, so threads are enough.
            processes.waiting(os.cpu_count() or 1, kernels.end_kernels) as pool,
            study_runs.asking(self.plan, self.folder, jobs, self._events.put),
            progress(len(self.given), "", "pages", size=0) as bar,
        ):
            while len(self.made) < len(self.given) or self._asked():
                asked = {cell.variant.key for cell in self._asked()}
                for name in [k for k in not_begun if not asked & set(self._variants_of(k))]:
                    not_begun.remove(name)
                    pool.submit(self._make_page, name)
                bar.tell(self._now())
                self._take_in()
                bar.advance(len(self.made) - bar.done, 0)
                # The first time the index waits for a score.
                is_old = time.monotonic() - self._written_at > EVERY
                if self.runs and not self._is_written and is_old:
                    self._write_index()
        index = self._write_index()
        cells = [cell for cell in self.cells.values() if cell.state == FAILED]
        failed = [f"{cell.model.label} on {cell.variant.key}" for cell in cells]
        failed += [f"notebook {page.name}" for page in self._pages() if page.trouble]
        return Made(index, failed)

    def _asked(self) -> list[Cell]:
        """Return the cells that are still being asked."""
        return [cell for cell in self.cells.values() if cell.state == ASKED]

    def _variants_of(self, name: str) -> list[str]:
        """Return the keys of the variants whose runs a page shows."""
        if name not in self.plan.analyses:
            return [name]
        return analysed(self.plan, name) if "runs" in self.given[name] else []

    def _now(self) -> str:
        """Say what is being done now."""
        made = [
            f"{_shown_as(self.plan, name)} ({time.monotonic() - begun:.0f} s)"
            for name, begun in list(self._begun.items())
            if name not in self.made
        ]
        if made:
            more = f" and {len(made) - 2} more" if len(made) > 2 else ""
            return f"making {', '.join(made[:2])}{more}"
        models = {cell.model.label for cell in self._asked()}
        return f"waiting for {len(models)} of {len(self.plan.models)} models"

    def _take_in(self) -> None:
        """Wait for the next event, for a while."""
        try:
            event = self._events.get(timeout=REFRESH)
        except queue.Empty:
            return
        if isinstance(event, Exception):
            raise event
        self._is_written = False
        if isinstance(event, Cell):
            self.cells[event.place] = event
            if event.state == DONE:
                self.runs[event.place] = UnchangingRun.open(run_folder(self.folder, event))
            of_model = [cell for cell in self.cells.values() if cell.model == event.model]
            if not any(cell.state == ASKED for cell in of_model):
                states = ", ".join(f"{cell.variant.key} {cell.state}" for cell in of_model)
                reasons = dict.fromkeys(cell.why for cell in of_model if cell.state == FAILED)
                say(": ".join([f"{event.model.label}: {states}", *reasons]))
            return
        name, page, became = event
        self.made[name] = page
        place = f"page {len(self.made)} of {len(self.given)}: {_shown_as(self.plan, name)}"
        if page and page.is_left_out and page.trouble:
            became = f"left out: {page.trouble.why}"
        elif page and page.trouble:
            became += f", notebook {name}: {page.trouble.kind}: {page.trouble.why}"
        say(f"{place}, {became}")
        if page and not page.is_left_out:
            self._site.write_page(page, self._pages())
        else:  # its runs are gone, or cannot be read
            for file in (name, f"{site.ANSWERS}{name}"):
                (self.folder / f"{file}.html").unlink(missing_ok=True)
            shutil.rmtree(self.folder / "tables" / name, ignore_errors=True)

    def _pages(self) -> list[Page]:
        """Return the finished pages in the order of the study."""
        pages = (self.made.get(name) for name in self.given)
        return [page for page in pages if page and not page.is_left_out]

    def _write_index(self) -> Path:
        left_out = {
            name: page.trouble.why
            for name, page in self.made.items()
            if page and page.trouble and page.is_left_out
        }
        waiting = [_shown_as(self.plan, name) for name in self.given if name not in self.made]
        # In the order of the study.
        runs = {place: self.runs[place] for place in self.cells if place in self.runs}
        index = self._site.write(list(self.cells.values()), self._pages(), runs, left_out, waiting)
        if not self._written_at:
            say(f"the index page can be read, and is filled up: {index}")
        self._written_at, self._is_written = time.monotonic(), True
        return index

    def _make_page(self, name: str) -> None:
        """Make the page of a notebook; None if it has no runs."""
        self._begun[name] = time.monotonic()
        try:
            parameters, is_analysis = dict(self.given[name]), name in self.plan.analyses
            shown = [
                cell
                for key in self._variants_of(name)
                for cell in self.cells.values()
                if cell.variant.key == key and cell.state == DONE
            ]
            folders = [run_folder(self.folder, cell) for cell in shown]
            # As seen from the notebook's folder: a report can be moved, and names nobody's home.
            seen = [f"../{folder.relative_to(self.folder).as_posix()}" for folder in folders]
            if not is_analysis:
                parameters |= {"models": [cell.model.model for cell in shown], "recorded": seen}
            elif "runs" in parameters:
                given = parameters["runs"]
                parameters["runs"] = [*seen, *given]
                folders += [path for pattern in given for path in run_folders(pattern)]
            page, became = None, "left out, because it has no runs"
            if folders or (is_analysis and "runs" not in parameters):
                page = _page(self.plan, self.folder, name, parameters, folders)
                became = f"{time.monotonic() - self._begun[name]:.0f} s"
            self._events.put((name, page, became))
        except Exception as error:  # the disk is full...
            self._events.put(error)


def _notebooks(plan: Study) -> dict[str, dict[str, Any]]:
    """Return the parameters of each page's notebook, benchmarks first."""
    pages: dict[str, dict[str, Any]] = {}
    for variant in plan.variants:
        if variant.page:
            known = types_of_parameters(get(variant.benchmark).notebook)
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
    return get(benchmark).notebook if benchmark else NOTEBOOKS / f"{page}.ipynb"


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
    plan: Study, folder: Path, name: str, parameters: dict[str, Any], runs: Sequence[Path]
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
    trouble = execute.run_notebook(source, target, parameters)
    if trouble:
        execute.forget(target)
    else:
        execute.remember(target, now)
    return site.page(name, shown_as, target, trouble)


def _shown_as(plan: Study, name: str) -> str:
    """Return the name of a page in the navigation."""
    titles = {variant.key: variant.title for variant in plan.variants}
    return titles.get(name) or notebook_title(name)
