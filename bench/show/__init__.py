"""Show tables, pictures, findings and examples in a notebook, and save them.

show.into("reports/mine/mcbe")   # tables and pictures are saved there from now on
show.table(scores, "scores")
"""

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, display
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from bench.benchmarks import module
from bench.core import export, i18n
from bench.core.errors import BadInput
from bench.core.i18n import N_, _
from bench.core.text import PLAIN, as_html, language_of, shortened, truncate
from bench.data import audit_module, check, spread_evenly
from bench.data import find as find_data
from bench.metrics.headline import disagreements, top_findings, warnings
from bench.metrics.headline import findings as all_findings
from bench.metrics.table import ALL
from bench.metrics.table import cards as as_table
from bench.run import Run, labels, short_name
from bench.tasks import of_data
from bench.tasks.request import of_judge

# Characters that are shown of a reply in an example, in its heading, and in a cell of a table.
SHOWN, BRIEF, CELL = 2000, 60, 2000
# Pixels per inch of a picture on a page.
PIXELS = 96
# Pairs of columns that are shown as one, with its heading.
RANGES = {
    ("ci_low", "ci_high"): N_("95\u00a0% interval"),
    ("bound_low", "bound_high"): N_("if all were readable"),
    ("bound_low_a", "bound_high_a"): N_("a, if all were readable"),
    ("bound_low_b", "bound_high_b"): N_("b, if all were readable"),
}
# Columns of every table of scores.
MEASURED = ("metric", "score", "ci_low", "ci_high", "n", "valid_rate", "bound_low", "bound_high")
# Columns with reasons, which are translated.
REASONS = ("note", "why", "reason")

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def into(folder: str | Path) -> None:
    """Save the tables and pictures that are shown from now on; nowhere if `folder` is empty."""
    path = Path(folder) if str(folder) else None
    _folder.set(path)
    if path:
        path.mkdir(parents=True, exist_ok=True)


def table(frame: pd.DataFrame, name: str, *, digits: int = 3) -> None:
    """Show a frame, and save it as NAME.csv, .parquet and .tex.

    Bounds such as `ci_low` and `ci_high` are shown as one column; a p value (`p`, `p_...`) is never
    shown as zero.
    """
    _save(frame, name)
    if frame.empty:
        _display("paragraph", _("No rows."))
        return
    shown, to = frame.copy(), _(" to ").replace(" ", "\u00a0")
    for (low, high), heading in RANGES.items():
        if {low, high} <= set(frame):
            texts = [
                "" if first != first else f"{first:,.{digits}f}{to}{last:,.{digits}f}"
                for first, last in zip(frame[low], frame[high], strict=True)
            ]
            shown = shown.assign(**{low: texts}).drop(columns=high)
            if any(texts) or low == "ci_low":
                shown = shown.rename(columns={low: _(heading)})
            else:
                shown = shown.drop(columns=low)
    for column in set(REASONS) & set(shown):
        shown[column] = [i18n.note(str(note)) for note in shown[column]]
    leasts = [10**-digits if re.match(r"p(_|$)", str(column)) else 0 for column in shown.columns]
    rows = [
        [_cell(value, digits, least) for value, least in zip(row, leasts, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    title = _("Table {name}", name=name.replace("_", " "))
    head = [i18n.column(str(column)) for column in shown.columns]
    display(HTML(_html("table", title, head, rows) + _saved(name, export.TABLES, title)))


def figure(fig: Figure | None, name: str) -> None:
    """Show a picture with its label as alternative text, and save it as NAME.png and NAME.svg."""
    if fig is None:
        _display("paragraph", _("Not asked."))
        return
    folder = _folder.get()
    # A report's pages show the fine picture. A notebook, which is committed with its outputs, needs
    # no more than the pixels that it is shown with.
    if folder:
        png = export.write_picture(fig, folder, _file_name(name))
    else:
        png = export.to_png(fig, PIXELS)
    alt = str(fig.get_label())
    data = {"image/png": base64.b64encode(export.quantize_png(png)).decode(), "text/plain": alt}
    width = round(fig.get_size_inches()[0] * PIXELS)
    display(data, metadata={"image/png": {"alt": alt, "width": width}}, raw=True)
    if folder:
        title = _("Picture {name}", name=name.replace("_", " "))
        display(HTML(_saved(name, export.PICTURES, title)))


def findings(scores: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    """Show warnings and one sentence per headline score, of the most biased model first.

    Returns:
        All findings, which are saved as findings.csv.
    """
    notes(warnings([run.about for run in runs]))
    every = all_findings(scores, runs[0].benchmark)
    first = top_findings(every, runs[0].benchmark)
    rest = every.drop(first.index)
    more = _("{n} more", n=len(rest))
    _display("findings", list(first.sentence), list(rest.sentence), more)
    _save(every, "findings")
    return every


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
    codes = str(run.about["data"].get("language", "")).split(",")
    languages = [code.strip() for code in codes if code.strip()]
    parts: list[dict[str, Any]] = []
    for row in pd.concat([readable, unreadable]).itertuples():
        # A grade is of the reply to the same order of options, if names of requests have orders.
        same_item = (
            (grades.task == row.task)
            & (grades.item_id == row.item_id)
            & (grades.repeat == row.repeat)
            & ((grades.order == row.order) | ~grades.order.isin(orders))
        )
        heading = Markup(f"{as_html(row.item_id)}, {as_html(row.request)}: ")
        part = _fold(heading + Markup.escape(truncate(row.parsed, BRIEF) if row.valid else ""))
        part["blocks"] = [
            _block(_("Asked:"), "asked", str(row.prompt), languages),
            _block(_("Answered:"), "answered", str(row.response), languages),
        ]
        part["unreadable"] = "" if row.valid else truncate(row.error or _("not readable"), BRIEF)
        part["grades"] = [
            (
                grade.request,
                truncate(grade.response or grade.error, BRIEF),
                "" if grade.valid else _("not readable"),
            )
            for grade in grades[same_item].itertuples()
        ]
        parts.append(part)
    if parts:
        of_task = f" ({module('tasks', run.benchmark).TASKS[task]})" if task else ""
        _display("folds", _("{who} was asked, and answered:", who=run.label + of_task), parts)


def _fold(heading: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"unreadable": "", "blocks": [], "grades": []}
    return {"heading": heading, "judge": _("The judge:"), **nothing}


def _block(
    title: str, kind: str, text: str, languages: Sequence[str] | None = None
) -> dict[str, str]:
    """Return a text in a fold, `kind` being `asked` or `answered`."""
    text = shortened(text, SHOWN)
    lang = "" if languages is None else language_of(text, languages)
    return {"title": title, "kind": kind, "text": text, "lang": lang}


def by_category(scores: pd.DataFrame, metrics: Sequence[str]) -> None:
    """Show some metrics of each category and model."""
    rows = scores[scores.metric.isin(metrics) & (scores.preset == scores.preset.iloc[0])]
    columns = ["model", "category", "task", *MEASURED, "note"]
    table(rows[columns], "by_category", digits=2)


def overall(scores: pd.DataFrame, task: str) -> None:
    """Show every metric of a task over all categories."""
    rows = scores[
        (scores.category == ALL) & (scores.task == task) & (scores.preset == scores.preset.iloc[0])
    ]
    columns = ["model", *MEASURED, "baseline", "note"]
    table(rows[columns], f"overall_{task}", digits=2)


def against_official(scores: pd.DataFrame) -> None:
    """Show where the released code's number differs from ours."""
    rows = disagreements(scores)
    if rows.empty:
        text = _("Nowhere: the released code's numbers are the same on these answers.")
        _display("paragraph", text)
    else:
        table(rows, "against_official")


def audit(run: Run) -> None:
    """Show what is odd about a run's data, and which questions its settings change."""
    settings = of_data(run.benchmark, run.about["asked"]["settings"])
    about = run.about["data"]
    data, faults, present = f"{about['name']}, {about['version']}", pd.DataFrame(), False
    with suppress(BadInput):
        source = find_data(run.benchmark, about["folder"])
        present = source.sha256 == about["sha256"]
    text = _(
        "{data}: these data, as they were then, are not on this machine, so they cannot be looked "
        "at.",
        data=data,
    )
    if present:
        faults = audit_module(run.benchmark).summary(check(source, **settings))
        text = _("{data}: nothing odd was found.", data=data)
    if len(faults):
        text = _("{data}: what is odd, and how many templates and questions it touches.", data=data)
    _display("paragraph", text)
    if len(faults):
        table(faults, "data_faults")
    kept, gone = (pd.DataFrame(run.about[name]) for name in ("touched", "unfit"))
    touched = pd.concat([kept.assign(left_out="no"), gone.assign(left_out="yes")])
    if len(touched):
        used = ", ".join(f"{name}={value}" for name, value in settings.items())
        _display("paragraph", _("Questions that the settings ({used}) concern.", used=used))
        table(touched[["category", "task", "items", "why", "left_out"]], "data_touched")


def notes(texts: Iterable[str]) -> None:
    """Show what a reader has to know before the first number."""
    for text in texts:
        _display("warning", _("Note."), text)


def sentences(texts: Iterable[str], runs: Sequence[Run] = ()) -> None:
    """Show warnings about `runs`, and an analysis's findings, which are saved if there are runs."""
    every = list(texts)
    notes(warnings([run.about for run in runs]))
    _display("findings", every, [], "")
    if runs:
        _save(pd.DataFrame({"sentence": every}), "findings")


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


def everything(scores: pd.DataFrame) -> None:
    """Save all rows of the score table as scores.csv; they are too many to show."""
    if _folder.get():
        _save(scores, "scores")
        display(HTML(_saved("scores", export.TABLES, _("All numbers"))))


def provenance(runs: Sequence[Run]) -> None:
    """Show what every number rests on: model and revision, data and version, prompts, preset."""
    rows = [{"model": name, **rests_on(run)} for name, run in zip(labels(runs), runs, strict=True)]
    table(pd.DataFrame(rows), "provenance")


def rests_on(run: Run) -> dict[str, Any]:
    """Return what the numbers of a run rest on, as columns of a table."""
    model, data, asked = (run.about[part] for part in ("model", "data", "asked"))
    names = ("revision", "dtype", "device")
    return {
        "kind": model["kind"],
        **{name: model.get(name, "") for name in names},
        "data": f"{data['name']} {data['version']}",
        "data_sha256": data["sha256"][:12],
        "adds_bos": model.get("adds_bos", ""),
        "wording": asked["prompts"],
        "preset": run.about["preset"],
        "seed": asked["seed"],
        "repeats": asked["repeats"],
        "judge": short_name(asked["judge"] or ""),
        "settings": ", ".join(f"{key}={value}" for key, value in asked["settings"].items()),
        "when": run.about["when"],
    }


def cards(benchmark: str) -> None:
    """Show what each metric of a benchmark means."""
    table(as_table(module("metrics", benchmark).CARDS), "metric_cards")


def _save(frame: pd.DataFrame, name: str) -> None:
    if folder := _folder.get():
        export.write_table(frame, folder, _file_name(name))


def _cell(value: object, digits: int, least: float = 0) -> tuple[str, bool]:
    """Return the text of a cell, and whether it is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shortened(value, CELL), False
    if value != value:
        return "—", True
    if 0 <= value < least:
        return f"<\u00a0{least:.{digits}f}", True
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"), True


def _saved(name: str, kinds: Mapping[str, str], title: str) -> str:
    """Return links to saved files, relative to the notebook; an empty text if none were saved."""
    folder = _folder.get()
    if not folder:
        return ""
    place = Path(os.path.relpath(folder / _file_name(name))).as_posix()
    return _html("saved", title, [(f"{place}.{kind}", text) for kind, text in kinds.items()])


def _display(macro: str, *values: Any) -> None:
    display(HTML(_html(macro, *values)))


def _html(macro: str, *values: Any) -> str:
    """Render a macro of the template, with the language if the notebook's own is another."""
    english = i18n.language() == i18n.LANGUAGES[0]
    lang = Markup("") if english else Markup(" lang='{}'").format(i18n.tag())
    return str(getattr(_macros(), macro)(*values, lang=lang))


@cache
def _macros() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["visible"] = lambda text: Markup(as_html(text))
    environment.globals["plain"] = PLAIN
    return environment.get_template("cells.html.j2").module


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
