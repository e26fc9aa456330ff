"""Write the pages of a report from executed notebooks, and the pages of answers."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nbformat
from bs4 import BeautifulSoup
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from bench import __version__
from bench.core.errors import BadInput, NoRuns
from bench.core.files import atomic_write
from bench.report import items
from bench.report.execute import Trouble
from bench.report.study import ANSWERS, Study
from bench.runs.open import Run
from bench.show import answer_output

if TYPE_CHECKING:
    from nbconvert import HTMLExporter

# The runs of a report, by the folder of the model and the key of the variant.
Runs = Mapping[tuple[str, str], Run]
TITLE = "questions and answers"
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
# Forms of outputs, the best first.
SHOWN = [f"text/{kind}" for kind in ("html", "markdown")]
SHOWN += [f"image/{kind}" for kind in ("svg+xml", "png", "jpeg")] + ["text/latex", "text/plain"]
# The index of a frame without one; some rows in the middle may be left out.
ROW_NUMBER = re.compile(r"\d+|\.\.\.")


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
    def is_failed(self) -> bool:
        return bool(self.trouble) and not self.is_left_out

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
    book.cells = [cell for cell in book.cells if not MARKERS & _tags(cell)]
    for cell in book.cells:
        if cell.cell_type == "code":  # what progress leaves at its end
            empty = {"text/plain": ""}
            cell.outputs = [output for output in cell.outputs if output.get("data") != empty]
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
    # Move the answer below the first text, and the notice in this text below the answer.
    others = [cell for cell in cells if FINDING not in _tags(cell)]
    answers = [cell for cell in cells if FINDING in _tags(cell)]
    notices = []
    for cell in others[:1]:
        cell.source, mark, notice = cell.source.partition("\n\n> ")
        if mark:
            notices = [nbformat.v4.new_markdown_cell(f"> {notice}", id="notice")]
    book.cells = [*others[:1], *answers, *notices, *others[1:]]
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
        # A section that only some studies have is displayed by a code cell.
        texts = [output.get("data", {}).get("text/markdown") for output in cell.get("outputs", [])]
        if cell.cell_type == "markdown":
            texts = [cell.source]
        for text in filter(None, texts):
            marks, _space, heading = text.partition("\n")[0].partition(" ")
            if marks == "#" and cell.cell_type == "markdown":
                title = heading
            elif marks == "##":
                contents.append((f"cell-id={cell.id}", heading))
        if FOLD in _tags(cell):
            captions = [output.get("metadata", {}).get("caption", "") for output in cell.outputs]
            short = list(dict.fromkeys(re.split("[.;。；]", text)[0] for text in captions if text))
            cell.metadata["summary"] = "; ".join(short)
    # HTMLExporter would parse the page again, for texts and marks that our template writes.
    body, _unused = TemplateExporter.from_notebook_node(_exporter(), book)
    # Links are relative to the notebook, one folder deeper than the page.
    body = re.sub(r"""(href=["'])\.\./""", r"\1", body)
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
    # Other forms, for example widgets, need the network.
    exporter.config.NbConvertBase.display_data_priority = SHOWN
    exporter.register_filter("highlight_code", Highlight2HTML)
    exporter.register_filter("framed", framed)
    return exporter


def framed(html: str) -> str:
    """Let the keyboard scroll a data frame, and hide the row numbers of one without an index."""
    if 'class="dataframe"' not in html:
        return html
    soup = BeautifulSoup(html, "html.parser")
    for box in soup.select("div:has(> table.dataframe)"):
        scrolls = {"class": "table", "role": "group", "aria-label": "Table", "tabindex": "0"}
        box.attrs.update(scrolls)
        index = [row.select("th") for row in box.select("tbody tr")]
        are_numbers = all(len(row) == 1 and ROW_NUMBER.fullmatch(row[0].text) for row in index)
        # The second line of the head has the name of the index.
        if are_numbers and not box.select("thead tr + tr > th:first-child:not(:empty)"):
            for row in box.select("tr"):
                row.select("th")[0].decompose()
        for head in box.select("th"):
            head.name = "th" if head.get_text(strip=True) else "td"
    return str(soup)


def _tags(cell: nbformat.NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _is_error(output: nbformat.NotebookNode) -> bool:
    return bool(output.output_type == "error")


class Site:
    """The pages of a report, which link to each other.

    Attributes:
        pages: those from notebooks, but the index.
        runs: by the folder of the model and the key of the variant.
        answers: the pages of answers, by the variants that have a page, and runs.
    """

    def __init__(self, plan: Study, folder: Path, pages: Sequence[Page], runs: Runs) -> None:
        self.plan, self.folder, self.pages, self.runs = plan, folder, pages, runs
        keys = {key for _model, key in runs}
        self.answers = {
            part.key: Page(
                f"{ANSWERS}{part.key}", f"{part.title} answers", f"{part.title}: {TITLE}"
            )
            for part in plan.variants
            if part.page and part.key in keys
        }

    def write(self) -> None:
        """Write all pages but the index."""
        for page in self.pages:
            if page.name in self.answers:
                link = rf"\1<a href='{self.answers[page.name].file}#\2'>\3</a>"
                page = page._replace(body=CATEGORY.sub(link, page.body))
            self.render(page, "page.html.j2")
        for key, page in self.answers.items():
            runs = [run for (_model, variant), run in self.runs.items() if variant == key]
            self.render(page, "items.html.j2", **_shown(runs))

    def render(self, page: Page, template: str, **values: Any) -> None:
        """Write a page."""
        keys = [variant.key for variant in self.plan.variants]
        benchmarks = [page for page in self.pages if page.name in keys]
        analyses = [page for page in self.pages if page.name not in keys]
        values |= {"groups": {"Benchmarks": benchmarks, "Analyses": analyses}}
        values |= {"pages": [*self.pages, *self.answers.values()], "answers": self.answers}
        text = _environment().get_template(template).render(**values, plan=self.plan, page=page)
        atomic_write(self.folder / page.file, text)


def write_answers(runs: Sequence[Run], file: Path) -> Path:
    """Write a page of the questions and answers of runs on one benchmark, without a study."""
    titles = list(dict.fromkeys(run.definition.metadata.title for run in runs))
    if len(titles) > 1:
        names = ", ".join(titles)
        raise BadInput(f"bench answers: the runs are on {names}; give those on one of them")
    page = Page(file.stem, titles[0], f"{titles[0]}: {TITLE}")
    template = _environment().get_template("items.html.j2")
    atomic_write(file, template.render(plan=page, pages=[], page=page, **_shown(runs)))
    return file


def _shown(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the values of a page of answers: its items, and the language of their data."""
    languages = runs[0].metadata["data"]["language"].split(",")
    language = languages[0].strip() if len(languages) == 1 else "en"
    return {**items.read(runs), "data_language": language}


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
        version=__version__,
        made=Markup,  # the bodies of pages are already escaped
        css=Markup((TEMPLATES / "style.css").read_text("utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )
    return environment
