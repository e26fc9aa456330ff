"""Write the pages of a report from executed notebooks, and its index."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nbformat
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from bench import __version__
from bench.benchmarks import get
from bench.benchmarks.base import Paper
from bench.core import export
from bench.core.errors import NoRuns, plain
from bench.core.files import atomic_write
from bench.core.text import column
from bench.metrics.primary import short_title, warnings
from bench.report import items, overview
from bench.report.execute import Trouble, drop_blank_outputs
from bench.report.overview import Runs, VariantScores
from bench.report.study import ANSWERS, Study
from bench.report.study_runs import Cell
from bench.run.models import conditions
from bench.run.results import labels
from bench.show import answer_output

if TYPE_CHECKING:
    from nbconvert import HTMLExporter

TITLE = "questions and answers"
# Sections of a benchmark's notebook with a link on the index, by the anchors of their headings.
SECTIONS = {
    "cell-id=categories": "by category",
    "cell-id=official": "the released code's numbers",
}
MAX_FINDINGS = 5
TEMPLATES = Path(__file__).parent / "templates"
# A category in a table; we make it a link to its items.
CATEGORY = re.compile(r"""(<span data-category=["']([^"']*)["']>)([^<]*)""")
# Tag of the cell that prints the answer to the notebook's question, and more findings, a sentence a
# line; we move them to the top of the page.
FINDING = "finding"
# Tag of cells with outputs in a fold.
FOLD = "fold"
# Tags of cells that we remove: computations of a paper's numbers, and papermill's own cells about
# a failure, because the page has its own message.
MARKERS = {"papermill-error-cell-tag", "not-in-reports"}


OWN = f"""\
@software{{bias_workbench,
  author = {{{{bias-workbench authors}}}},
  title = {{bias-workbench: a Jupyter workbench for measuring social bias in language models}},
  version = {{{__version__}}}
}}
"""


class Page(NamedTuple):
    """A page made from an executed notebook.

    Attributes:
        shown_as: its name in the navigation.
        contents: anchors and headings of its sections.
        findings: its findings; the first one answers its question.
        trouble: the reason why the notebook did not run to its end.
    """

    name: str
    shown_as: str
    title: str = ""
    body: str = ""
    contents: Sequence[tuple[str, str]] = ()
    findings: Sequence[str] = ()
    trouble: Trouble | None = None

    @property
    def entry(self) -> str:
        """Its title for a list of pages, with the name of its variant in parentheses."""
        name = re.search(r" \(.+\)$", self.shown_as)
        return self.title + name[0] if name and not self.title.endswith(name[0]) else self.title

    @property
    def file(self) -> str:
        return f"{self.name}.html"

    @property
    def is_left_out(self) -> bool:
        """Whether its notebook had no runs."""
        return bool(self.trouble and self.trouble.kind == NoRuns.__name__)


def page(name: str, shown_as: str, notebook: Path, trouble: Trouble | None = None) -> Page:
    """Make a page from an executed notebook, up to the cell that failed; empty without runs."""
    from nbconvert import TemplateExporter

    if trouble and trouble.kind == NoRuns.__name__:
        return Page(name, shown_as, trouble=trouble)
    book = nbformat.read(notebook, as_version=4)
    drop_blank_outputs(book)
    book.cells = [cell for cell in book.cells if not MARKERS & _tags(cell)]
    if trouble:
        ran = [k for k, cell in enumerate(book.cells) if cell.get("execution_count")]
        stopped = [k for k in ran if any(map(_is_error, book.cells[k].outputs))]
        book.cells = book.cells[: (stopped or ran or [-1])[-1] + 1]
        for cell in (book.cells[k] for k in stopped if trouble.is_sentence):
            cell.outputs = [output for output in cell.outputs if not _is_error(output)]
    # Remove sections without outputs, for example on tasks without answers.
    sections: list[list[nbformat.NotebookNode]] = [[]]
    for cell in book.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            sections.append([])
        sections[-1].append(cell)
    cells = sections[0]
    for section in sections[1:]:
        code = [cell for cell in section if cell.cell_type == "code"]
        if not code or any(cell.outputs for cell in code):
            cells += section
    # Move the answer below the first text.
    others = [cell for cell in cells if FINDING not in _tags(cell)]
    answers = [cell for cell in cells if FINDING in _tags(cell)]
    book.cells = [*others[:1], *answers, *others[1:]]
    findings: list[str] = []
    for cell in answers:
        texts = [output.text for output in cell.outputs if output.get("name") == "stdout"]
        sentences = [line for text in texts for line in text.splitlines() if line.strip()]
        findings += sentences
        if sentences:
            errors = [output for output in cell.outputs if _is_error(output)]
            cell.outputs = [answer_output(sentences), *errors]
    title, contents = name, []
    for cell in book.cells:
        marks, _space, heading = cell.source.partition("\n")[0].partition(" ")
        if cell.cell_type == "markdown" and marks == "#":
            title = heading
        elif cell.cell_type == "markdown" and marks == "##":
            contents.append((f"cell-id={cell.id}", heading))
        if FOLD in _tags(cell):
            captions = [output.get("metadata", {}).get("caption", "") for output in cell.outputs]
            short = list(dict.fromkeys(re.split("[.;。；]", text)[0] for text in captions if text))
            cell.metadata["summary"] = "; ".join(short)
    # HTMLExporter would parse the page again, for texts and marks that our template writes.
    body, _unused = TemplateExporter.from_notebook_node(_exporter(), book)
    # Links are relative to the notebook, one folder deeper than the page.
    body = re.sub(r"""(href=["'])\.\./tables/""", r"\1tables/", body)
    return Page(name, shown_as, title, body, contents, findings, trouble)


@cache
def _exporter() -> "HTMLExporter":
    """Return the exporter of all pages, which compiles its templates once; it highlights code."""
    from nbconvert import HTMLExporter  # this import takes seconds
    from nbconvert.filters import Highlight2HTML

    exporter = HTMLExporter(
        template_name="notebook",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    exporter.register_filter("highlight_code", Highlight2HTML)
    return exporter


def _tags(cell: nbformat.NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _is_error(output: nbformat.NotebookNode) -> bool:
    return bool(output.output_type == "error")


def write(
    plan: Study, folder: Path, cells: Sequence[Cell], notebooks: Sequence[Page], runs: Runs
) -> Path:
    """Write the pages and downloads of a report, and its index; return the index."""
    left_out = [page for page in notebooks if page.is_left_out]
    notebooks = [page for page in notebooks if not page.is_left_out]
    # A page of answers for each benchmark that has a page.
    with_answers = [
        variant
        for variant in plan.variants
        if variant.page and any(key == variant.key for _model, key in runs)
    ]
    pages = [
        *notebooks,
        *(
            Page(f"{ANSWERS}{v.key}", f"{v.title} answers", f"{v.title}: {TITLE}")
            for v in with_answers
        ),
    ]
    by_name = {page.name: page for page in pages}

    def render(file: str, template: str, **values: Any) -> Path:
        values |= {"plan": plan, "pages": pages, "version": __version__}
        atomic_write(folder / file, _environment().get_template(template).render(**values))
        return folder / file

    for page in notebooks:
        answers = by_name.get(f"{ANSWERS}{page.name}")
        if answers:
            link = rf"\1<a href='{answers.file}#\2'>\3</a>"
            page = page._replace(body=CATEGORY.sub(link, page.body))
        render(page.file, "page.html.j2", page=page, answers=answers)
    benchmarks = overview.read(plan.variants, cells, runs)
    first = [result for result in benchmarks if result.variant.key in plan.first_variants]
    links: dict[str, list[tuple[str, str]]] = {}
    for result in benchmarks:
        key = result.variant.key
        contents = by_name[key].contents if key in by_name else ()
        links[key] = [(SECTIONS[at], f"{key}.html#{at}") for at, _ in contents if at in SECTIONS]
        if answers := by_name.get(f"{ANSWERS}{key}"):
            own = [run for (_model, variant), run in runs.items() if variant == key]
            languages = own[0].metadata["data"]["language"].split(",")
            shown = items.read(own)
            language = languages[0].strip() if len(languages) == 1 else ""
            texts = {"page": answers, "shown": shown, "data_language": language or "en"}
            render(answers.file, "items.html.j2", **texts)
            links[key] += _to_differences(result, shown, answers.file)
    _write_downloads(
        folder,
        plan.benchmarks,
        overview.primary_table(benchmarks),
        *overview.at_a_glance(plan.models, first),
    )
    every_run = list(runs.values())
    for run in every_run:
        run.write_scores()
    titles = {variant.key: variant.title for variant in plan.variants}
    papers = [get(name).metadata.paper for name in plan.benchmarks]
    return render(
        "index.html",
        "index.html.j2",
        benchmarks=benchmarks,
        first=first,
        links=links,
        rows=overview.rows_by_model(plan.models, first),
        notes=overview.notes(first),
        answer=overview.answer(first),
        picture=_draw(first, folder / "tables/index"),
        findings=_first_findings(plan, notebooks),
        warnings=warnings([run.metadata for run in every_run]),
        left_out=left_out,
        runs=[
            (name, titles[key], run.folder.relative_to(folder).as_posix(), conditions(run))
            for name, ((_model, key), run) in zip(labels(every_run), runs.items(), strict=True)
        ],
        saved=_saved(folder),
        names={page.name: page.shown_as for page in pages},
        bibtex=_bibtex(papers),
        papers=papers,
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "script.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(
        column=column,
        short_title=short_title,
        direction=overview.direction,
        made=Markup,  # the bodies of pages are already escaped
        css=Markup((TEMPLATES / "style.css").read_text("utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )
    return environment


def _first_findings(plan: Study, pages: Sequence[Page]) -> list[tuple[str, Page]]:
    """Return the first finding of some pages, of analyses first: the index has the scores."""
    analyses = [page for page in pages if page.name in plan.analyses]
    benchmarks = [page for page in pages if page.name in plan.first_variants]
    found = [(page.findings[0], page) for page in (*analyses, *benchmarks) if page.findings]
    return found[:MAX_FINDINGS]


def _to_differences(result: VariantScores, shown: items.Items, file: str) -> list[tuple[str, str]]:
    """Link to the questions on which the most and the least biased model differ."""
    if result.scores.empty:
        return []
    names = [name for name in result.informative().model if name in shown.models]
    if len(names) > 1 and (query := items.differing(shown, names[0], names[-1])):
        return [(f"where {names[0]} and {names[-1]} differ", f"{file}#{query}")]
    return []


def _draw(first: Sequence[VariantScores], tables: Path) -> dict[str, Any] | None:
    """Draw and save the main picture of the index: its PNG as a data URI, texts, and width."""
    figure, caption = overview.main_picture(first)
    if figure is None:
        return None
    png = base64.b64encode(export.write_picture(figure, tables, "answer")).decode()
    width = round(figure.get_size_inches()[0] * 96)
    source, alt = f"data:image/png;base64,{png}", str(figure.get_label())
    return {"source": source, "alt": alt, "caption": caption, "width": width}


def _saved(folder: Path) -> list[dict[str, Any]]:
    """List all tables and pictures of a report: page, name, and files as (kind, address)."""
    kinds = {**export.TABLES, **export.PICTURES}
    files: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted((folder / "tables").glob("*/*")):
        kind = path.suffix.removeprefix(".")
        if kind in kinds:
            address = path.relative_to(folder).as_posix()
            files.setdefault((path.parent.name, path.stem), {})[kind] = address
    return [
        {
            "page": page,
            "name": name,
            "files": [(text, own[kind]) for kind, text in kinds.items() if kind in own],
        }
        for (page, name), own in files.items()
    ]


def _bibtex(papers: Sequence[Paper]) -> str:
    """Return papers, and the workbench, as BibTeX."""
    entries = []
    for paper in papers:
        family = paper.authors[0].split()[-1].lower()
        word = re.sub(r"\W", "", paper.title.split()[0]).lower()
        # Braces keep the capitals of a title.
        entries.append(
            f"@inproceedings{{{family}{paper.year}{word},\n"
            f"  author = {{{' and '.join(paper.authors)}}},\n"
            f"  title = {{{{{paper.title}}}}},\n"
            f"  booktitle = {{{paper.venue}}},\n"
            f"  year = {{{paper.year}}},\n"
            f"  url = {{{paper.url}}}\n}}\n"
        )
    return "\n".join([*entries, OWN])


def _write_downloads(
    folder: Path,
    benchmarks: Sequence[str],
    primary_metrics: pd.DataFrame,
    glance: pd.DataFrame,
    caption: str,
) -> None:
    """Write the index's tables and the references; `glance` is a small table for a paper."""
    tables = folder / "tables" / "index"
    export.write_table(primary_metrics, tables, "headlines")
    latex = "% needs \\usepackage{booktabs}\n" + export.to_latex(glance, caption=caption)
    atomic_write(tables / "at_a_glance.tex", latex)
    lines = [list(map(str, glance)), ["---"] * len(glance.columns), *glance.to_numpy().tolist()]
    cells = (" | ".join(plain(cell).replace("|", "\\|") for cell in line) for line in lines)
    markdown = "".join(f"| {line} |\n" for line in cells)
    atomic_write(tables / "at_a_glance.md", f"{markdown}\n{caption}\n")
    papers = [get(name).metadata.paper for name in benchmarks]
    atomic_write(folder / "references.bib", _bibtex(papers))
