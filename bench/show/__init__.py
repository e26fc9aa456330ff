"""Show tables, pictures, findings and examples in a notebook, and save them.

bench.publish(scores, "scores", "Scores by model", into="reports/mine/mcbe")

show.into("reports/mine/mcbe")   # older: tables and pictures are saved there from now on
show.table(scores, "scores")
"""

import base64
import io
import json
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import PIL.Image
from IPython import get_ipython
from IPython.display import HTML, display
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from bench.benchmarks import module
from bench.core import export
from bench.core.errors import BadInput, quoted
from bench.core.numbers import decimals
from bench.core.text import PLAIN, as_html, column, distinct_lines, language_of, shortened, truncate
from bench.data import spread_evenly
from bench.figures.style import DPI
from bench.metrics.headline import findings as all_findings
from bench.metrics.headline import too_few_tasks, top_findings, warnings
from bench.metrics.table import ALL
from bench.metrics.table import cards as as_table
from bench.run import Run, labels
from bench.run.models import rests_on
from bench.show.layout import ROWS, lay_out
from bench.tasks.request import of_judge

__all__ = [
    "answer",
    "cards",
    "cautions",
    "examples",
    "figure",
    "findings",
    "into",
    "notes",
    "parted",
    "provenance",
    "publish",
    "rests_on",
    "save",
    "sentences",
    "table",
]

# Characters that are shown of a reply in an example, and of it and of the question in its heading.
SHOWN, BRIEF, QUESTION = 2000, 60, 32
# A parameter of a notebook that is a list or a dict, and how one is written as JSON.
PARAMETER = re.compile(r"^(\w+): (list|dict) = ", re.MULTILINE)
EXAMPLES = {"list": '["first", "second"]', "dict": '{"name": "value"}'}
# Differences with a lower p are reported.
LEVEL = 0.05
# Pixels per inch of a picture on a page.
PIXELS = 96
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def __dir__() -> list[str]:
    return __all__


def publish(
    item: Any,
    name: str,
    caption: str = "",
    into: str | Path = "",
    percent: Collection[Any] = (),
) -> None:
    """Show a table or a picture as Jupyter does, and save it for a report.

    A table is saved as NAME.csv, .parquet and .tex with all of its rows and digits, a picture as
    NAME.png and .svg.

    Args:
        item: a frame; a figure of matplotlib; or the axes or the grid that seaborn returns.
        name: the name of the files.
        caption: what to see, and how to read it. Default: the name.
        into: the folder of the files, such as a notebook's parameter `tables`. Default: not saved.
        percent: columns of shares, which are shown in per cent; the files have fractions.

    Examples:
        >>> import pandas as pd
        >>> ranks = pd.DataFrame({"model": ["a", "b"], "mean_rank": [1.25, 1.75]})
        >>> publish(ranks, "mean_ranks", "Mean ranks over four categories")  # doctest: +SKIP
    """
    folder = Path(into) if str(into) else None
    caption = caption or name.replace("_", " ").capitalize()
    if isinstance(item, pd.DataFrame):
        _publish_table(item, name, caption, folder, set(percent))
    else:
        _publish_picture(item if isinstance(item, Figure) else item.figure, name, caption, folder)


def _publish_table(
    frame: pd.DataFrame, name: str, caption: str, folder: Path | None, percent: Collection[Any]
) -> None:
    rows = frame.reset_index() if any(frame.index.names) else frame
    if folder:
        export.write_table(rows, folder, _file_name(name))
    if rows.empty:
        display(HTML(_html("paragraph", f"{caption}: none.")), metadata={"caption": caption})
        return
    rows = rows.loc[:, ~(rows.isna() | (rows == "")).all()]
    sides = {
        column: "right" if pd.api.types.is_numeric_dtype(rows[column]) else "left"
        for column in rows
    }
    styler = (
        Styler(rows.head(ROWS), uuid=_file_name(name), cell_ids=False)
        .hide(axis="index")
        .format(_cell_html)
        .format(_percent_html, subset=[column for column in rows if column in percent])
        .format(_category_html, subset=[column for column in rows if column == "category"])
        .format_index(lambda name: as_html(f"{name}, %" if name in percent else name), axis=1)
        .set_table_styles(
            {
                column: [{"selector": "", "props": f"text-align: {side}"}]
                for column, side in sides.items()
            }
        )
        .set_caption(_html("links_after", caption, _files(name, export.TABLES, folder)))
    )
    table = Markup(styler.to_html())
    data = {
        "text/html": _html("scrolling", caption, table, max(0, len(rows) - ROWS)),
        "text/plain": rows.head(ROWS).to_string(index=False),
    }
    display(data, metadata={"caption": caption}, raw=True)


def _cell_html(value: object) -> str:
    """Write a cell for HTML: three decimals, fewer digits of what is smaller, and no NaN."""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return f"{value:.1e}" if 0 < abs(value) < 0.0005 else decimals(value, 3)
    return f"{value:,}" if type(value) is int else as_html(value)


def _percent_html(share: Any) -> str:
    return "" if math.isnan(share) else decimals(100 * share, 1)


def _category_html(category: object) -> str:
    """Mark the name of a category, which a report links to its answers."""
    return as_html(category) if category == ALL else _html("category", str(category))


def _publish_picture(fig: Figure, name: str, caption: str, folder: Path | None) -> None:
    fig.set_label(fig.get_label() or fig.get_suptitle() or caption)
    # As Jupyter shows a picture: nothing of it is cut off.
    with mpl.rc_context({"savefig.bbox": "tight"}):
        if folder:
            export.write_picture(fig, folder, _file_name(name))
        dpi = DPI if folder else PIXELS
        png = export.to_png(fig, dpi, transparent=bool(folder))
    plt.close(fig)  # or Jupyter would show it again below the cell
    width = round(PIL.Image.open(io.BytesIO(png)).width * PIXELS / dpi)
    data = {"image/png": base64.b64encode(png).decode(), "text/plain": caption}
    about = {"image/png": {"alt": str(fig.get_label()), "width": width}}
    display(data, metadata=about, raw=True)
    files = _files(name, export.PICTURES, folder)
    display(HTML(_html("caption", caption, files)), metadata={"caption": caption})


def into(folder: str | Path) -> None:
    """Save the tables and pictures that are shown from now on; nowhere if `folder` is empty.

    Parameters of the notebook that were given as JSON texts are read too.
    """
    _read_parameters()
    path = Path(folder) if str(folder) else None
    _folder.set(path)
    if path:
        path.mkdir(parents=True, exist_ok=True)


def table(
    frame: pd.DataFrame,
    name: str,
    caption: str = "",
    *,
    digits: int = 2,
    without: Collection[str] = (),
) -> None:
    """Show the first rows of a frame, and save all of it as NAME.csv, .parquet and .tex.

    An interval (`ci_low` to `ci_high`) is shown next to the number before it; empty columns are
    left out; what all rows have in common is said in the caption.

    Args:
        caption: what the table shows; default: its name.
        without: columns that only the files have.
    """
    save(frame, name)
    frame = frame.drop(columns=[column for column in without if column in frame])
    title = caption or name.replace("_", " ").capitalize()
    # A column is called what its heading says.
    title = re.sub(r"`(\w+)`", lambda match: f"“{column(match[1])}”", title)
    if frame.empty:
        text = f"{title}: none."
        display(HTML(_html("paragraph", text)), metadata={"caption": text})
        return
    layout = lay_out(frame, digits)
    about = "; ".join([title, *layout.common])
    files = _files(name, export.TABLES, _folder.get())
    display(HTML(_html("table", about, layout, files)), metadata={"caption": title})


def _read_parameters() -> None:
    """Read lists and dicts among a notebook's parameters that papermill's `-p` gave as JSON."""
    notebook = get_ipython()
    names = notebook.user_ns if notebook else {}
    for name, kind in PARAMETER.findall("\n".join(names.get("In", []))):
        if isinstance(given := names.get(name), str):
            value, example = None, EXAMPLES[kind]
            with suppress(ValueError):
                value = json.loads(given)
            if type(value).__name__ != kind:
                raise BadInput(
                    f"{name} {quoted(given)}: expected a {kind} as JSON, like -p {name} '{example}'"
                )
            names[name] = value


def save(frame: pd.DataFrame, name: str) -> None:
    """Save a frame as NAME.csv, .parquet and .tex, and show nothing."""
    if folder := _folder.get():
        export.write_table(frame, folder, _file_name(name))


def figure(fig: Figure | None, name: str, caption: str = "") -> None:
    """Show a picture with its label as alternative text, and save it as NAME.png and NAME.svg.

    Args:
        fig: nothing is shown for None.
        caption: what is seen, and how to read it; default: the picture's title.
    """
    if fig is None:
        return
    folder = _folder.get()
    # A report's pages show the fine picture. A notebook, which is committed with its outputs, needs
    # no more than the pixels that it is shown with.
    if folder:
        export.write_picture(fig, folder, _file_name(name))
        png = export.to_png(fig, transparent=True)
    else:
        png = export.to_png(fig, PIXELS)
    alt = str(fig.get_label())
    data = {"image/png": base64.b64encode(png).decode(), "text/plain": alt}
    width = round(fig.get_size_inches()[0] * PIXELS)
    display(data, metadata={"image/png": {"alt": alt, "width": width}}, raw=True)
    title = caption or fig.get_suptitle().replace("\n", " ") or alt
    shown = HTML(_html("caption", title, _files(name, export.PICTURES, _folder.get())))
    display(shown, metadata={"caption": title})


def findings(
    scores: pd.DataFrame, differences: pd.DataFrame | None = None, title: str = ""
) -> None:
    """Print what a benchmark's scores say, a sentence a line; the first answers its question.

    Each primary score has a sentence on the most biased model, which says so if the interval, the
    unreadable answers or a preferred letter leave it open.

    Args:
        scores: of `bench.explain`, of one benchmark.
        differences: of `bench.compare` between models, on one of the primary scores.
        title: the title of this score; default: that of the first primary score.
    """
    benchmark = scores.benchmark.iloc[0]
    every = all_findings(scores.drop(columns=["title", "primary", "worse", "doubt"]), benchmark)
    found = top_findings(every, benchmark)
    if found.empty:
        print(too_few_tasks(benchmark))
        return
    print(*found.sentence, sep="\n")
    overall = scores[scores.primary & (scores.category == ALL)]
    first = overall[overall.title == (title or overall.title.iloc[0])]
    if differences is not None and differences.p_adjusted.notna().any():
        n, apart = differences.p_adjusted.notna().sum(), (differences.p_adjusted < LEVEL).sum()
        print(
            f"{first.title.iloc[0]}: {apart} of {n} pairs of models can be told apart (paired "
            f"tests, p adjusted by Holm below {LEVEL})."
        )
    for one in first[first.doubt != ""].itertuples():
        print(f"{one.title} says nothing of the bias of {one.model}: {one.doubt}.")


def answer_output(sentences: list[str]) -> nbformat.NotebookNode:
    """Return the output of a cell that shows sentences, the first as the page's answer."""
    html = _html("findings", sentences)
    metadata = {"findings": sentences}
    return nbformat.v4.new_output("display_data", {"text/html": html}, metadata=metadata)


def examples(run: Run, n: int = 6, task: str | None = None) -> None:
    """Show some requests with their replies, evenly spread, up to half of them unreadable."""
    rows = run.records
    rows = rows[rows.task == task] if task else rows
    # A thought is in the prompt of the answer after it.
    rows = rows[~rows.request.str.startswith("thought")]
    rows = rows.assign(order=rows.request.str.replace("^[^:]*:?", "", regex=True))
    judged = rows.request.map(of_judge).astype(bool)
    grades, asked = rows[judged], rows[~judged]
    orders = set(asked.order)
    unreadable, readable = asked[~asked.valid], asked[asked.valid]
    unreadable = unreadable.iloc[spread_evenly(range(len(unreadable)), n // 2)]
    readable = readable.iloc[spread_evenly(range(len(readable)), n - len(unreadable))]
    codes = run.about["data"]["language"].split(",")
    languages = [code.strip() for code in codes if code.strip()]
    parts: list[dict[str, Any]] = []
    shown = pd.concat([readable, unreadable])
    questions = distinct_lines([str(prompt) for prompt in shown.prompt])
    for row, question in zip(shown.itertuples(), questions, strict=True):
        # A grade is of the reply to the same order of options, if names of requests have orders.
        same_item = (
            (grades.task == row.task)
            & (grades.item_id == row.item_id)
            & (grades.repeat == row.repeat)
            & ((grades.order == row.order) | ~grades.order.isin(orders))
        )
        heading = f"{row.item_id}, {row.request}: {truncate(question, QUESTION)} → "
        reply = Markup.escape(truncate(row.parsed, BRIEF) if row.valid else "")
        part = _fold(Markup(as_html(heading)) + reply)
        part["blocks"] = [
            _block("Asked:", "asked", str(row.prompt), languages),
            _block("Answered:", "answered", str(row.response), languages),
        ]
        part["unreadable"] = "" if row.valid else truncate(row.error or "not readable", BRIEF)
        part["grades"] = [
            (
                grade.request,
                truncate(grade.response or grade.error, BRIEF),
                "" if grade.valid else "not readable",
            )
            for grade in grades[same_item].itertuples()
        ]
        parts.append(part)
    if parts:
        of_task = f" ({module('tasks', run.benchmark).TASKS[task]})" if task else ""
        _display("folds", f"{run.label + of_task} was asked, and answered:", parts)


def _fold(heading: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"unreadable": "", "blocks": [], "grades": []}
    return {"heading": heading, "judge": "The judge:", **nothing}


def _block(
    title: str, kind: str, text: str, languages: Sequence[str] | None = None
) -> dict[str, str]:
    """Return a text in a fold, `kind` being `asked` or `answered`."""
    text = shortened(text, SHOWN)
    lang = "" if languages is None else language_of(text, languages)
    return {"title": title, "kind": kind, "text": text, "lang": lang}


def notes(texts: Iterable[str]) -> None:
    """Show in one notice what a reader has to know before the first number."""
    if every := list(texts):
        _display("notice", " ".join(filter(None, every)))


def cautions(runs: Sequence[Run]) -> None:
    """Show what a reader has to know about the models and data before the first number."""
    notes(warnings([run.about for run in runs]))


def answer(texts: Iterable[str], runs: Sequence[Run] = ()) -> None:
    """Show an analysis's findings, the first as the answer, and save them as findings.csv.

    What a reader has to know about the models and data of `runs` is shown before.
    """
    every = list(texts)
    notes(warnings([run.about for run in runs]))
    display(HTML(_html("findings", every)), metadata={"findings": every})
    save(pd.DataFrame({"sentence": every}), "findings")


def sentences(texts: Iterable[str]) -> None:
    """Show a list of sentences."""
    if every := list(filter(None, texts)):
        _display("list", every)


def parted(rows: pd.DataFrame, title: str) -> None:
    """Show what was graded differently, each row in a fold.

    Args:
        rows: `heading`, and texts by the name of their column; missing ones are left out.
    """
    parts = []
    for row in rows.to_dict("records"):
        part = _fold(shortened(row.pop("heading"), SHOWN))
        texts = {name: text for name, text in row.items() if isinstance(text, str) and text}
        part["blocks"] = [_block(f"{name}:", "answered", text) for name, text in texts.items()]
        parts.append(part)
    if parts:
        _display("folds", title, parts)


def provenance(runs: Sequence[Run]) -> None:
    """Show what every number rests on: model and revision, data and version, prompts, preset."""
    rows = [{"model": name, **rests_on(run)} for name, run in zip(labels(runs), runs, strict=True)]
    frame = pd.DataFrame(rows)
    save(frame, "provenance")
    frame["kind"] = list(frame.kind)
    layout = lay_out(frame, digits=2)
    title = f"Models, data and settings of {len(rows)} runs"
    about = "; ".join(layout.common) or title
    _display(
        "folded_lines", title, about, layout, _files("provenance", export.TABLES, _folder.get())
    )


def cards(about: str | pd.DataFrame) -> None:
    """Show what each metric means.

    Args:
        about: a benchmark, or a table of cards (`bench.metrics.table.cards`).
    """
    if isinstance(about, str):
        about = as_table(module("metrics", about).CARDS)
    save(about, "metric_cards")
    title = f"Definitions of {len(about)} measures"
    _display(
        "cards",
        title,
        about.to_dict("records"),
        _files("metric_cards", export.TABLES, _folder.get()),
    )


def _files(name: str, kinds: Mapping[str, str], folder: Path | None) -> list[tuple[str, str]]:
    """Return the paths of saved files, relative to the notebook, and what they are."""
    if not folder:
        return []
    place = Path(os.path.relpath(folder / _file_name(name))).as_posix()
    return [(f"{place}.{kind}", text) for kind, text in kinds.items()]


def _display(macro: str, *values: Any) -> None:
    display(HTML(_html(macro, *values)))


def _html(macro: str, *values: Any) -> str:
    """Render a macro of the template."""
    return str(getattr(_macros(), macro)(*values))


@cache
def _macros() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["visible"] = lambda text: Markup(as_html(text))
    environment.globals.update(plain=PLAIN, column=column)
    return environment.get_template("cells.html.j2").module


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
