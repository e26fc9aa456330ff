"""Write the pages of a report from executed notebooks, and its index."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from bench import __version__
from bench.benchmarks import module
from bench.core import export, i18n
from bench.core.errors import NoRuns
from bench.figures import scores_by_model
from bench.metrics.headline import headline_rows, headlines, warnings
from bench.metrics.table import ALL
from bench.report import downloads, matrix
from bench.report.execute import Trouble, drop_blank_outputs
from bench.report.matrix import Runs
from bench.report.study import Study
from bench.report.study_runs import ASKED, Cell
from bench.run.results import labels
from bench.show import rests_on

TEMPLATES = Path(__file__).parent / "templates"
# Cells that papermill adds where a notebook failed; the page has its own message.
MARKERS = {"papermill-error-cell-tag"}
# Tags, and elements whose text stays as it is.
TAG = re.compile(r"(<(pre|code|style|math|svg)\b.*?</\2>|<[^>]*>)", re.DOTALL)
# Shorter words fit everywhere; a space after the sign is a break already.
LONG = re.compile(r"[^\s<>]{12,}")
SIGN = re.compile(r"(?<=[/:,_])(?=[^\s/:,_])")
# A long name without any sign is cut, so that the page does not become wider.
ENDLESS = re.compile(r"([A-Za-z0-9]{24})(?=[A-Za-z0-9])")


@dataclass(frozen=True)
class Page:
    """A page made from an executed notebook.

    Attributes:
        shown_as: its name in the navigation.
        contents: anchors and headings of its sections.
        findings: its findings (`<div class='findings'>`).
        trouble: why the notebook did not run to its end.
    """

    name: str
    shown_as: str
    title: str
    body: str
    contents: list[tuple[str, str]]
    findings: list[str]
    trouble: Trouble | None = None

    @property
    def file(self) -> str:
        return f"{self.name}.html"

    @property
    def is_left_out(self) -> bool:
        """Whether its notebook had nothing to be about."""
        return bool(self.trouble and self.trouble.kind == NoRuns.__name__)

    @property
    def what_was_found(self) -> str:
        """The link to its findings."""
        heading = i18n.heading("What was found")
        mark = next((mark for mark, text in self.contents if text == heading), "")
        return f"{self.file}#{mark}" if mark else self.file


def with_breaks(text: str) -> str:
    """Let a browser break HTML in long names, outside code, prompts and replies.

    After a slash, colon, comma or underscore, so that no word is cut.
    """

    def broken(part: str) -> str:
        return LONG.sub(lambda word: ENDLESS.sub(r"\1<wbr>", SIGN.sub("<wbr>", word[0])), part)

    # Each text is followed by a tag and the name of an element.
    parts = TAG.split(text)
    return "".join(
        broken(part) if k % 3 == 0 else part for k, part in enumerate(parts) if k % 3 < 2
    )


def page(name: str, shown_as: str, notebook: Path, trouble: Trouble | None = None) -> Page:
    """Make a page from an executed notebook, up to where it stopped."""
    from nbconvert import HTMLExporter  # seconds, which a page that is not made again need not take

    exporter = HTMLExporter(
        template_name="notebook",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    book = nbformat.read(notebook, as_version=4)
    drop_blank_outputs(book)
    book.cells = [cell for cell in book.cells if not MARKERS & set(cell.metadata.get("tags", []))]
    if trouble:
        ran = [k for k, cell in enumerate(book.cells) if cell.get("execution_count")]
        stopped = [k for k in ran if any(map(_is_error, book.cells[k].outputs))]
        book.cells = book.cells[: (stopped or ran or [-1])[-1] + 1]
        # A message for the reader needs no traceback.
        for cell in (book.cells[k] for k in stopped if trouble.is_sentence):
            cell.outputs = [output for output in cell.outputs if not _is_error(output)]
    body, _unused = exporter.from_notebook_node(book)
    body = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", body)
    # Boxes that scroll have to be reached by keyboard.
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace(
        '<div class="output_png output_subarea">', '<div class="output_png" tabindex="0">'
    )
    # Links are relative to the notebook, which is in another folder.
    body = re.sub(
        rf"""href=(["'])[^"']*?/tables/{re.escape(name)}/([\w.-]+)\1""",
        rf'href="tables/{name}/\2"',
        body,
    )

    def translated(match: re.Match[str]) -> str:
        """Translate a heading, and keep its anchor."""
        begin, _level, escaped, end = match.groups()
        text = i18n.heading(html.unescape(escaped))
        if text == html.unescape(escaped):
            return match[0]
        return f'{begin} lang="{i18n.tag()}">{html.escape(text)}{end}'

    body = re.sub(r'(<h([1-6]) id="[^"]*")>(.*?)(</h\2>)', translated, body)
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.DOTALL)
    title = re.sub(r"<[^>]+>", "", heading[1]) if heading else name
    contents = [
        (mark, re.sub(r"<[^>]+>", "", text))
        for mark, text in re.findall(r'<h2 id="([^"]+)"[^>]*>(.*?)</h2>', body, re.DOTALL)
    ]
    listed = "".join(
        re.findall(r"""<div class=["']findings["'][^>]*>(.*?)</div>""", body, re.DOTALL)
    )
    findings = [html.unescape(text) for text in re.findall(r"<li>(.*?)</li>", listed, re.DOTALL)]
    return Page(name, shown_as, title, with_breaks(body), contents, findings, trouble)


def _is_error(output: nbformat.NotebookNode) -> bool:
    return bool(output.output_type == "error")


class Picture(NamedTuple):
    """A picture of the index: its PNG as a data URI, its description, its width in pixels."""

    source: str
    alt: str
    width: int


class Site:
    """The pages and downloads of a report."""

    def __init__(self, plan: Study, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Bodies and their headings are escaped already.
        self._environment.filters["made"] = Markup
        self._environment.filters["breakable"] = lambda text: Markup(with_breaks(html.escape(text)))
        self._environment.globals.update(_=i18n._, column=i18n.column)
        self._css = Markup((TEMPLATES / "style.css").read_text("utf-8"))
        # By variant: models in the picture, and the picture.
        self._pictures: dict[str, tuple[list[str], Picture | None]] = {}

    def _text(self, template: str, pages: Sequence[Page], **values: Any) -> str:
        return self._environment.get_template(template).render(
            plan=self._plan,
            pages=pages,
            css=self._css,
            version=__version__,
            language=i18n.tag(),
            # The language of the notebooks' text.
            written=i18n.TAGS["en"],
            **values,
        )

    def write_page(self, page: Page, pages: Sequence[Page]) -> None:
        """Write a page, with `pages` in its navigation."""
        export.write_text(self._folder / page.file, self._text("page.html.j2", pages, page=page))

    def write(
        self,
        cells: Sequence[Cell],
        pages: Sequence[Page],
        runs: Runs,
        left_out: Mapping[str, str],
        waiting: Sequence[str] = (),
    ) -> Path:
        """Write the index, and once everything is there, all pages and downloads.

        Args:
            left_out: reasons of analyses without a page.
            waiting: names of pages that are not there yet.
        """
        plan, folder = self._plan, self._folder
        asked = list(dict.fromkeys(cell.model.label for cell in cells if cell.state == ASKED))
        if is_complete := not asked and not waiting:
            for page in pages:
                self.write_page(page, pages)
        shown = matrix.benchmarks(plan.variants, cells, runs)
        every_run = list(runs.values())
        by_name = {page.name: page for page in pages}
        analyses = [page for page in pages if page.name in plan.analyses]
        first = [variant for variant in shown if variant["name"] in plan.first_variants]
        first_runs = [run for (_model, key), run in runs.items() if key in plan.first_variants]
        cards = (
            downloads.write(folder, plan.benchmarks, first_runs, matrix.headline_table(shown))
            if is_complete
            else []
        )
        of_pages = {page.name: page.findings for page in analyses}
        findings = [
            (sentence, by_name.get(name))
            for sentence, name in matrix.top_sentences(first, of_pages)
            if name in by_name or not is_complete
        ]
        titles = {variant.key: variant.title for variant in plan.variants}
        text = self._text(
            "index.html.j2",
            pages,
            benchmarks=shown,
            overview=matrix.overview(plan.models, shown),
            pictures=[picture for variant in first if (picture := self._picture(variant))],
            findings=findings,
            warnings=warnings([run.about for run in every_run]),
            asked=asked,
            waiting=waiting,
            analyses=analyses,
            left_out=[(i18n.notebook(name), i18n.note(why)) for name, why in left_out.items()],
            runs=[
                (name, run, run.folder.relative_to(folder).as_posix(), rests_on(run))
                for name, run in zip(labels(every_run), every_run, strict=True)
            ],
            titles={run.folder: titles[key] for (_model, key), run in runs.items()},
            saved=downloads.saved(folder) if is_complete else [],
            cards=cards,
            bibtex=downloads.bibtex(plan.benchmarks),
            references=[downloads.in_words(module("data", name).PAPER) for name in plan.benchmarks],
        )
        for name in left_out:
            (folder / f"{name}.html").unlink(missing_ok=True)
        index = folder / "index.html"
        export.write_text(index, text)
        return index

    def _picture(self, shown: Mapping[str, Any]) -> Picture | None:
        """Draw a benchmark's first headline score by model, again if there are more models."""
        models = [row["model"] for row in shown["rows"] if row["done"]]
        known = self._pictures.get(shown["name"])
        if known and known[0] == models:
            return known[1]
        scores, figure, picture = shown["scores"], None, None
        if len(scores):
            rows = headline_rows(scores, headlines(scores, shown["benchmark"])[0])
            figure = scores_by_model(rows[rows.category == ALL], shown["benchmark"])
        if figure is not None:
            png = base64.b64encode(export.quantize_png(export.to_png(figure))).decode()
            width = round(figure.get_size_inches()[0] * 96)
            picture = Picture(f"data:image/png;base64,{png}", str(figure.get_label()), width)
        self._pictures[shown["name"]] = models, picture
        return picture
