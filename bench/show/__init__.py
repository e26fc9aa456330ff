"""Show tables, pictures, findings and examples in a notebook, and save them.

show.into("reports/mine/mcbe")   # tables and pictures are saved there from now on
show.table(scores, "scores")
"""

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
    if folder := _folder.get():
        export.write_table(frame, folder, _file_name(name))
    if frame.empty:
        _display("paragraph", _("No rows."))
        return
    shown = frame
    for (low, high), heading in RANGES.items():
        if {low, high} <= set(frame):
            shown = _as_range(shown, low, high, _(heading), digits)
    reasons = [column for column in REASONS if column in shown]
    shown = shown.assign(
        **{column: [i18n.note(str(note)) for note in shown[column]] for column in reasons}
    )
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
    png = (
        export.write_picture(fig, folder, _file_name(name))
        if folder
        else export.to_png(fig, PIXELS)
    )
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
    if folder := _folder.get():
        export.write_table(every, folder, "findings")
    return every


class Block(NamedTuple):
    """A text in an example, `kind` being `asked` or `answered`."""

    title: str
    kind: str
    text: str
    lang: str = ""


def examples(run: Run, n: int = 6, task: str | None = None) -> None:
    """Show some requests with their replies, evenly spread, up to half of them unreadable."""
    rows = run.records
    rows = rows[rows.task == task] if task else rows
    # A thought is in the prompt of the answer after it.
    rows = rows[~rows.request.str.startswith("thought")]
    judged = rows.request.map(of_judge).astype(bool)
    grades, asked = rows[judged].groupby(["task", "item_id", "repeat"]), rows[~judged]
    orders = set(asked.request.map(_order))
    unreadable = _spread(asked[~asked.valid], n // 2)
    chosen = pd.concat([_spread(asked[asked.valid], n - len(unreadable)), unreadable])
    codes = str(run.about["data"].get("language", "")).split(",")
    languages = [code.strip() for code in codes if code.strip()]
    parts: list[dict[str, Any]] = []
    for row in chosen.itertuples():
        key = (row.task, row.item_id, row.repeat)
        # A grade is of the reply to the same order of options, if names of requests have orders.
        graded = [
            (
                grade.request,
                truncate(grade.response or grade.error, BRIEF),
                "" if grade.valid else _("not readable"),
            )
            for grade in (grades.get_group(key).itertuples() if key in grades.groups else ())
            if _order(grade.request) == _order(row.request) or _order(grade.request) not in orders
        ]
        value = truncate(row.parsed, BRIEF) if row.valid else ""
        blocks = [
            Block(
                title, kind, shortened(text, SHOWN), language_of(shortened(text, SHOWN), languages)
            )
            for title, kind, text in (
                (_("Asked:"), "asked", row.prompt),
                (_("Answered:"), "answered", row.response),
            )
        ]
        parts.append(
            {
                "heading": Markup(f"{as_html(row.item_id)}, {as_html(row.request)}: ")
                + Markup.escape(value),
                "unreadable": "" if row.valid else truncate(row.error or _("not readable"), BRIEF),
                "blocks": blocks,
                "judge": _("The judge:"),
                "grades": graded,
            }
        )
    if parts:
        of_task = f" ({module('tasks', run.benchmark).TASKS[task]})" if task else ""
        _display("folds", _("{who} was asked, and answered:", who=run.label + of_task), parts)


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
    data = f"{run.about['data']['name']}, {run.about['data']['version']}"
    faults = _faults(run, settings)
    if faults is None:
        text = _(
            "{data}: these data, as they were then, are not on this machine, so they cannot be "
            "looked at.",
            data=data,
        )
    elif faults.empty:
        text = _("{data}: nothing odd was found.", data=data)
    else:
        text = _("{data}: what is odd, and how many templates and questions it touches.", data=data)
    _display("paragraph", text)
    if faults is not None and not faults.empty:
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
    if (folder := _folder.get()) and runs:
        export.write_table(pd.DataFrame({"sentence": every}), folder, "findings")


def parted(rows: pd.DataFrame, title: str) -> None:
    """Show what was graded differently, each row in a fold.

    Args:
        rows: `heading`, and texts by the name of their column; missing ones are left out.
    """
    if rows.empty:
        return
    parts = [
        {
            "heading": shortened(row.pop("heading"), SHOWN),
            "unreadable": "",
            "blocks": [
                Block(f"{name}:", "answered", shortened(text, SHOWN))
                for name, text in row.items()
                if isinstance(text, str) and text
            ],
            "grades": [],
        }
        for row in rows.to_dict("records")
    ]
    _display("folds", title, parts)


def everything(scores: pd.DataFrame) -> None:
    """Save all rows of the score table as scores.csv; they are too many to show."""
    if folder := _folder.get():
        export.write_table(scores, folder, "scores")
        display(HTML(_saved("scores", export.TABLES, _("All numbers"))))


def provenance(runs: Sequence[Run]) -> None:
    """Show what every number rests on: model and revision, data and version, prompts, preset."""
    rows = [{"model": name, **rests_on(run)} for name, run in zip(labels(runs), runs, strict=True)]
    table(pd.DataFrame(rows), "provenance")


def rests_on(run: Run) -> dict[str, Any]:
    """Return what the numbers of a run rest on, as columns of a table."""
    model, data, asked = (run.about[part] for part in ("model", "data", "asked"))
    return {
        "kind": model["kind"],
        "revision": model.get("revision", ""),
        "dtype": model.get("dtype", ""),
        "device": model.get("device", ""),
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


def _as_range(frame: pd.DataFrame, low: str, high: str, heading: str, digits: int) -> pd.DataFrame:
    """Replace two columns by one, `LOW to HIGH`; by none if both are empty."""
    if frame[[low, high]].isna().all(axis=None) and low != "ci_low":
        return frame.drop(columns=[low, high])
    to = _(" to ").replace(" ", "\u00a0")
    texts = [
        "" if first != first else f"{first:,.{digits}f}{to}{last:,.{digits}f}"
        for first, last in zip(frame[low], frame[high], strict=True)
    ]
    return frame.assign(**{low: texts}).drop(columns=high).rename(columns={low: heading})


def _faults(run: Run, settings: Mapping[str, str]) -> pd.DataFrame | None:
    """Summarize the audit of a run's data; return None if they have changed or are not here."""
    data = run.about["data"]
    try:
        source = find_data(run.benchmark, data["folder"])
        if source.sha256 != data["sha256"]:
            return None
    except BadInput:
        return None
    findings = check(source, **settings)
    summary: pd.DataFrame = audit_module(run.benchmark).summary(findings)
    return summary


def _spread(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    return rows.iloc[spread_evenly(range(len(rows)), n)]


def _order(request: object) -> str:
    """Return the order of options in the name of a request."""
    return str(request).partition(":")[2]


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
