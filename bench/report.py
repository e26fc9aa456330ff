"""Reports: ask a study's models, run its notebooks by papermill, write a small site that needs no kernel and no network.

reports/STUDY/index.html            the answer first
reports/STUDY/cbbq.html             one page a notebook
reports/STUDY/tables/cbbq/*.csv     every table, and every picture
reports/STUDY/notebooks/*.ipynb     the notebooks as they were run
reports/STUDY/runs/MODEL/BENCHMARK  the records, which a later call reads in place of asking again
"""

import multiprocessing
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pandas as pd
import papermill
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from nbconvert import HTMLExporter
from traitlets.config import Config

from bench import __version__, study
from bench.benchmarks import module
from bench.errors import AnotherRun, BadInput, NotApplicable, RunFailed, expected
from bench.metrics.findings import LOW_VALIDITY, findings, headline_rows, interval, leading, number, warnings
from bench.metrics.table import ALL
from bench.progress import say
from bench.run import Run, evaluate, labels, short_name, slug, table
from bench.study import Study

SITE = Path(__file__).parent / "site"
PROJECT = Path(__file__).parents[1]
NOTEBOOKS = PROJECT / "notebooks"
DEMO = PROJECT / "reports" / "demo.yml"
# Options that say where a model runs, not what it is asked: a notebook reads records, so it has no use for them.
WHERE = ("device", "batch_tokens")
# A notebook that hangs fails after this many seconds a cell.
CELL_TIMEOUT = 3600


class Cell(NamedTuple):
    """What became of one model on one benchmark: `done`, `not applicable` or `failed`, and why."""

    model: str
    benchmark: str
    state: str
    why: str = ""


class Made(NamedTuple):
    """A report: its index page, and the parts of the study that failed."""

    page: Path
    failed: list[str]


@dataclass(frozen=True)
class Page:
    """A page of the site, made of an executed notebook."""

    name: str
    title: str
    body: str
    contents: list[tuple[str, str]]
    failed: bool

    @property
    def file(self) -> str:
        return f"{self.name}.html"


def make(
    study_file: str | Path | None = None, out: str | Path | None = None, jobs: int | None = None
) -> Made:
    """Run a study into a report.

    Args:
        study_file: a study (see `bench.study`); the demo study if None.
        out: the report's folder; `reports/STUDY` beside the study file's own folder if None.
        jobs: models asked at a time; as many as there are cores if None, which is too many where they share an accelerator.

    Raises:
        BadInput: the study is wrong, or a notebook that it names is missing or lacks a parameter.
    """
    path = Path(study_file) if study_file else DEMO
    plan = study.load(path)
    # Absolute, because papermill changes the working folder, also that of other threads.
    folder = Path(out).resolve() if out else path.resolve().parent / plan.name
    notebooks = _notebooks(plan, folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells = _ask(plan, folder, _jobs(plan, jobs))
    pages = _pages(plan, folder, notebooks, cells)
    index = _write(plan, folder, cells, pages)
    failed = [f"{short_name(cell.model)} on {cell.benchmark}" for cell in cells if cell.state == "failed"]
    return Made(index, failed + [f"notebook {page.name}" for page in pages if page.failed])


def run_notebook(source: Path, target: Path, parameters: Mapping[str, Any]) -> bool:
    """Execute a notebook with parameters into `target`; False where a cell failed (the notebook then shows it).

    Raises:
        BadInput: a parameter that the notebook does not have; papermill alone would only warn.
    """
    check_parameters(source, parameters)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(
            str(source), str(target), parameters=dict(parameters), kernel_name="python3", progress_bar=False,
            execution_timeout=CELL_TIMEOUT, cwd=str(source.parent), coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],
        )  # fmt: skip
    except papermill.PapermillExecutionError as error:
        say(f"notebook {source.name}: {error.ename}: {error.evalue}")
        return False
    return True


def check_parameters(source: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that a notebook does not have."""
    known = _parameters(source)
    for name in parameters:
        if name not in known:
            raise BadInput(f"{source}: " + expected(name, known, "parameter"))


def _parameters(source: Path) -> list[str]:
    """The names of a notebook's parameters."""
    if not source.is_file():
        known = ", ".join(sorted(path.stem for path in source.parent.glob("*.ipynb")))
        raise BadInput(f"{source}: no such notebook; there are {known or 'none'}")
    return list(papermill.inspect_notebook(str(source)))


def drop_blank_outputs(book: nbformat.NotebookNode) -> None:
    """Take out of a notebook what a finished progress bar leaves behind, an output of no text, and widgets, dead without a kernel."""
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _blank(output)]
            for output in cell.outputs:
                # What stands beside it shows how it begins; a page would ask the network for the widget.
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)


def _blank(output: nbformat.NotebookNode) -> bool:
    data = output.get("data", {})
    return list(data) == ["text/plain"] and not data["text/plain"].strip()


def _notebooks(plan: Study, folder: Path) -> dict[str, dict[str, Any]]:
    """Notebook name to its parameters, those of benchmarks first."""
    runs = folder / "runs"
    found: dict[str, dict[str, Any]] = {}
    for name, options in plan.options.items():
        asking = {key: value for key, value in options.items() if key not in WHERE}
        found[name] = {**asking, "models": list(plan.models), "runs": str(runs.resolve()), "tables": ""}
    for name, given in plan.analyses.items():
        found[name] = {**given, "tables": ""}
        # An analysis is of the study's runs, or, as the meta-evaluation, of models of its own.
        if "runs" in _parameters(NOTEBOOKS / f"{name}.ipynb"):
            found[name]["runs"] = []
    for name, parameters in found.items():
        parameters["tables"] = str((folder / "tables" / name).resolve())
        check_parameters(NOTEBOOKS / f"{name}.ipynb", parameters)
    return found


def _jobs(plan: Study, jobs: int | None) -> int:
    if jobs is not None and jobs < 1:
        raise BadInput(f"--jobs {jobs}: has to be at least 1")
    return min(jobs or (os.cpu_count() or 1), len(plan.models))


def _ask(plan: Study, folder: Path, jobs: int) -> list[Cell]:
    """Every model on every benchmark, a process a model, so that memory is given back and one failure stops no other."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_few_threads, initargs=(threads,), max_tasks_per_child=1
    ) as pool:
        asked = [pool.submit(_ask_model, plan, model, folder) for model in plan.models]
        cells = []
        for model, future in zip(plan.models, asked, strict=True):
            try:
                cells += future.result()
            except Exception as error:  # a killed worker too: the study goes on with the others
                cells += [
                    Cell(model, name, "failed", f"{type(error).__name__}: {error}") for name in plan.options
                ]
            say(
                f"{short_name(model)}: "
                + ", ".join(f"{cell.benchmark} {cell.state}" for cell in cells if cell.model == model)
            )
    return cells


def _few_threads(n: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(n)


def _ask_model(plan: Study, model: str, folder: Path) -> list[Cell]:
    cells = []
    for name, options in plan.options.items():
        out = folder / "runs" / slug(model) / name
        try:
            try:
                evaluate(name, model, out=out, partial=True, **options)
            except AnotherRun:
                # The study was changed since; what it had asked is kept beside.
                out.rename(out.with_name(f"{name}.{Run.open(out).about['identity']}"))
                evaluate(name, model, out=out, partial=True, **options)
            cells.append(Cell(model, name, "done"))
        except NotApplicable as refusal:
            cells.append(Cell(model, name, "not applicable", str(refusal)))
        except (BadInput, RunFailed) as error:
            cells.append(Cell(model, name, "failed", str(error)))
    return cells


def _pages(
    plan: Study, folder: Path, notebooks: dict[str, dict[str, Any]], cells: Sequence[Cell]
) -> list[Page]:
    done = {
        name: [cell.model for cell in cells if cell.benchmark == name and cell.state == "done"]
        for name in plan.options
    }
    everything = [
        str((folder / "runs" / slug(cell.model) / cell.benchmark).resolve())
        for cell in cells
        if cell.state == "done"
    ]

    def page(name: str) -> Page | None:
        parameters = dict(notebooks[name])
        if name in plan.options:
            parameters["models"] = done[name]
        elif "runs" in parameters:
            parameters["runs"] = everything
        if not parameters.get("models" if name in plan.options else "runs", True):
            return None
        target = folder / "notebooks" / f"{name}.ipynb"
        fine = run_notebook(NOTEBOOKS / f"{name}.ipynb", target, parameters)
        return _page(name, target, failed=not fine)

    # A kernel is a process of its own, so threads are enough to run two notebooks at a time.
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        return [made for made in pool.map(page, notebooks) if made]


def _page(name: str, notebook: Path, failed: bool) -> Page:
    config = Config({"TemplateExporter": {"exclude_input_prompt": True, "exclude_output_prompt": True}})
    exporter = HTMLExporter(config=config, template_name="notebook", extra_template_basedirs=[str(SITE)])
    book = nbformat.read(notebook, as_version=4)
    drop_blank_outputs(book)
    body, _ = exporter.from_notebook_node(book)
    body = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", body)
    # Tables are linked as seen from the notebook; seen from the page they lie elsewhere.
    body = re.sub(r"""href=["'][^"']*?([\w.-]+\.csv)["']""", rf'href="tables/{name}/\1"', body)
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.DOTALL)
    title = re.sub(r"<[^>]+>", "", heading[1]) if heading else name
    contents = [
        (mark, re.sub(r"<[^>]+>", "", text))
        for mark, text in re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', body, re.DOTALL)
    ]
    return Page(name, title, body, contents, failed)


def _write(plan: Study, folder: Path, cells: Sequence[Cell], pages: Sequence[Page]) -> Path:
    environment = Environment(
        loader=FileSystemLoader(SITE), autoescape=select_autoescape(default=True, default_for_string=True), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # nbconvert has escaped the bodies; headings come out of them.
    environment.filters["made"] = Markup
    css = Markup((SITE / "style.css").read_text("utf-8"))
    common = {"plan": plan, "pages": pages, "css": css, "version": __version__}
    for page in pages:
        text = environment.get_template("page.html.j2").render(page=page, **common)
        (folder / page.file).write_text(text, "utf-8")
    runs = {
        (cell.model, cell.benchmark): Run.open(folder / "runs" / slug(cell.model) / cell.benchmark)
        for cell in cells
        if cell.state == "done"
    }
    text = environment.get_template("index.html.j2").render(
        benchmarks=[_matrix(plan, name, cells, runs) for name in plan.options],
        warnings=warnings([run.about for run in runs.values()]), runs=list(zip(labels(list(runs.values())), runs.values(), strict=True)),
        titles={name: module("data", name).TITLE for name in plan.options}, **common,
    )  # fmt: skip
    index = folder / "index.html"
    index.write_text(text, "utf-8")
    return index


def _matrix(
    plan: Study, name: str, cells: Sequence[Cell], runs: Mapping[tuple[str, str], Run]
) -> dict[str, Any]:
    """What the index shows of one benchmark: a row a model, a column a headline number, and the findings."""
    headlines = module("metrics", name).HEADLINES
    here = [run for (_, benchmark), run in runs.items() if benchmark == name]
    scores = table(here) if here else pd.DataFrame()
    # The names under which the score table has them: short ones only where those tell the models apart.
    names = dict(zip((run.model for run in here), labels(here), strict=True))
    rows = []
    for cell in (cell for cell in cells if cell.benchmark == name):
        row: dict[str, Any] = {
            "model": names.get(cell.model, short_name(cell.model)),
            "state": cell.state,
            "why": cell.why,
            "numbers": [],
        }
        for headline in headlines if cell.state == "done" else ():
            some = headline_rows(scores, headline)
            some = some[(some.category == ALL) & (some.model == row["model"])]
            if some.empty:
                row["numbers"].append(
                    {
                        "score": "",
                        "interval": "",
                        "low": "",
                        "note": "not applicable: the model cannot be asked this task",
                    }
                )
                continue
            found = some.iloc[0].to_dict()
            low = f"{found['valid_rate']:.0%} readable" if found["valid_rate"] < LOW_VALIDITY else ""
            row["numbers"].append(
                {
                    "score": number(headline, found),
                    "interval": interval(headline, found),
                    "low": low,
                    "note": found["note"],
                }
            )
        rows.append(row)
    return {
        "name": name, "title": module("data", name).TITLE, "headlines": headlines, "rows": rows,
        "findings": [] if scores.empty else list(leading(findings(scores, name), name).sentence),
    }  # fmt: skip
