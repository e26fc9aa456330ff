"""How things appear in a notebook, and are kept beside it: tables, pictures, findings, what a model said.

show.into("reports/mine/mcbe")   # from here on, tables and pictures are also saved there
show.table(scores, "scores")
"""

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, display
from matplotlib.figure import Figure

from bench.benchmarks import module
from bench.core import export, i18n
from bench.core.errors import BadInput
from bench.core.text import PLAIN, as_html, language_of, shortened, truncate
from bench.data import find as find_data
from bench.data import spread_evenly
from bench.metrics.headline import disagreements, top_findings, warnings
from bench.metrics.headline import findings as find
from bench.metrics.table import ALL
from bench.run import Run, labels, short_name
from bench.tasks import of_data
from bench.tasks.request import of_judge

# Characters of a reply that an example shows, that its heading shows, and that a cell of a table shows.
SHOWN, BRIEF, CELL = 2000, 60, 2000
# Pixels that a page shows for each inch of a picture.
PIXELS = 96
# Columns that stand for one span, and its heading.
BETWEEN = {
    ("ci_low", "ci_high"): i18n.N_("95\u00a0% interval"),
    ("bound_low", "bound_high"): i18n.N_("if all were readable"),
    ("bound_low_a", "bound_high_a"): i18n.N_("a, if all were readable"),
    ("bound_low_b", "bound_high_b"): i18n.N_("b, if all were readable"),
}
# Columns of a score table that every table of scores shows.
MEASURED = ("metric", "score", "ci_low", "ci_high", "n", "valid_rate", "bound_low", "bound_high")
# Columns that say why, which a page tells in its language.
REASONS = ("note", "why", "reason")

_folder: Path | None = None


def into(folder: str | Path) -> None:
    """Keep the tables and pictures that are shown from now on in `folder` too; nowhere if it is empty."""
    global _folder
    _folder = Path(folder) if str(folder) else None
    if _folder:
        _folder.mkdir(parents=True, exist_ok=True)


def table(frame: pd.DataFrame, name: str, *, digits: int = 3) -> None:
    """Show a frame; every cell is text, whatever it holds. Saved as NAME.csv, .parquet and .tex.

    Bounds in columns `ci_low` and `ci_high` are shown as one; a p value (`p`, `p_...`) is never shown as nought.
    """
    if _folder:
        export.write_table(frame, _folder, _file_name(name))
    if frame.empty:
        display(HTML(f"<p{_spoken()}>{i18n._('No rows.')}</p>"))
        return
    shown = frame
    for (low, high), heading in BETWEEN.items():
        if {low, high} <= set(frame):
            shown = _between(shown, low, high, i18n._(heading), digits)
    reasons = [name for name in REASONS if name in shown]
    shown = shown.assign(
        **{name: [i18n.note(str(note)) for note in shown[name]] for name in reasons}
    )
    # What is below the last digit that is shown.
    leasts = [10**-digits if re.match(r"p(_|$)", str(column)) else 0 for column in shown.columns]
    head = "".join(
        f"<th scope='col' style='text-align: left'>{as_html(i18n.column(str(column)))}</th>"
        for column in shown.columns
    )
    body = "".join(
        f"<tr>{''.join(_cell(value, digits, least) for value, least in zip(row, leasts, strict=True))}</tr>"
        for row in shown.itertuples(index=False, name=None)
    )
    title = html.escape(i18n._("Table {name}", name=name.replace("_", " ")), quote=True)
    # The box scrolls, so the keyboard has to reach it.
    display(
        HTML(
            f"<div class='table {PLAIN}' role='region' tabindex='0' aria-label='{title}' style='max-height: 30em; overflow: auto'><table>"
            f"<caption{_spoken()}>{title}</caption><thead{_spoken()}><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
            + _saved(name, export.TABLES, title)
        )
    )


def _between(frame: pd.DataFrame, low: str, high: str, heading: str, digits: int) -> pd.DataFrame:
    """Show two columns as one, from the one to the other; none where both are empty."""
    if frame[[low, high]].isna().all(axis=None) and low != "ci_low":
        return frame.drop(columns=[low, high])
    to = i18n._(" to ").replace(" ", "\u00a0")
    texts = [
        "" if first != first else f"{first:,.{digits}f}{to}{last:,.{digits}f}"
        for first, last in zip(frame[low], frame[high], strict=True)
    ]
    return frame.assign(**{low: texts}).drop(columns=high).rename(columns={low: heading})


def figure(fig: Figure | None, name: str) -> None:
    """Show a picture, its label as alternative text, or that there is none. Saved as NAME.png and NAME.svg."""
    if fig is None:
        display(HTML(f"<p{_spoken()}>{i18n._('Not asked.')}</p>"))
        return
    # A report's pages show the fine picture. A notebook, which is committed with its outputs, needs
    # no more than the pixels that it is shown with.
    fine = (
        export.write_picture(fig, _folder, _file_name(name))
        if _folder
        else export.to_png(fig, PIXELS)
    )
    alt = str(fig.get_label())
    shown = {"image/png": base64.b64encode(export.quantize_png(fine)).decode(), "text/plain": alt}
    width = round(fig.get_size_inches()[0] * PIXELS)
    display(shown, metadata={"image/png": {"alt": alt, "width": width}}, raw=True)
    if _folder:
        title = html.escape(i18n._("Picture {name}", name=name.replace("_", " ")), quote=True)
        display(HTML(_saved(name, export.PICTURES, title)))


def findings(scores: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    """Show warnings, and a sentence a headline number, on the most biased model first; saved as findings.csv, and returned."""
    notes(warnings([run.about for run in runs]))
    found = find(scores, runs[0].benchmark)
    first = top_findings(found, runs[0].benchmark)
    rest = found.drop(first.index)
    count = i18n._("{n} more", n=len(rest))
    more = (
        f"<details><summary>{count}</summary>{_list(rest.sentence)}</details>" if len(rest) else ""
    )
    display(HTML(f"<div class='findings'{_spoken()}>{_list(first.sentence)}{more}</div>"))
    if _folder:
        export.write_table(found, _folder, "findings")
    return found


def examples(run: Run, n: int = 6, task: str | None = None) -> None:
    """Show some of what was asked and answered, every word as text: evenly spread, up to half of them unreadable replies."""
    rows = run.records
    rows = rows[rows.task == task] if task else rows
    # A thought stands in the prompt of the answer that it led to.
    rows = rows[~rows.request.str.startswith("thought")]
    judged = rows.request.map(of_judge).astype(bool)
    marks, asked = rows[judged].groupby(["task", "item_id", "repeat"]), rows[~judged]
    # A mark is of the reply to the same order of options, where orders stand behind the names.
    orders = set(asked.request.map(_order))
    unreadable = _spread(asked[~asked.valid], n // 2)
    parts, unread = [], i18n._("not readable")
    languages = [
        code.strip()
        for code in str(run.about["data"].get("language", "")).split(",")
        if code.strip()
    ]
    for row in pd.concat(
        [_spread(asked[asked.valid], n - len(unreadable)), unreadable]
    ).itertuples():
        lost = _brief(row.error or i18n._("not readable"))
        read = _brief(row.parsed) if row.valid else f"<em>{lost}</em>"
        key = (row.task, row.item_id, row.repeat)
        said = "".join(
            f"<li>{as_html(mark.request)}: <code>{_brief(mark.response or mark.error)}</code>"
            f"{'' if mark.valid else f', <em>{unread}</em>'}</li>"
            for mark in (marks.get_group(key).itertuples() if key in marks.groups else ())
            if _order(mark.request) == _order(row.request) or _order(mark.request) not in orders
        )
        parts.append(
            f"<details class='example'><summary>{as_html(row.item_id)}, {as_html(row.request)}: {read}</summary>"
            f"<p>{i18n._('Asked:')}</p>{_words_of('asked', row.prompt, languages)}<p>{i18n._('Answered:')}</p>"
            + _words_of("answered", row.response, languages)
            + (f"<p>{i18n._('The judge:')}</p><ul>{said}</ul>" if said else "")
            + "</details>"
        )
    if parts:
        what = f" ({module('tasks', run.benchmark).TASKS[task]})" if task else ""
        told = html.escape(i18n._("{who} was asked, and answered:", who=run.label + what))
        display(
            HTML(f"<div class='examples {PLAIN}'{_spoken()}><p>{told}</p>{''.join(parts)}</div>")
        )


def _words_of(kind: str, said: object, languages: Sequence[str]) -> str:
    """What was asked or answered, as text, with the language that its letters tell."""
    text = shortened(said, SHOWN)
    return f"<pre class='{kind}' lang='{language_of(text, languages)}'>{as_html(text)}</pre>"


def _spread(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    return rows.iloc[spread_evenly(range(len(rows)), n)]


def _order(request: object) -> str:
    return str(request).partition(":")[2]


def _brief(text: object) -> str:
    return html.escape(truncate(text, BRIEF))


def by_category(scores: pd.DataFrame, metrics: Sequence[str]) -> None:
    """Show `metrics` of each category and model, and what stands beside a score."""
    rows = scores[scores.metric.isin(metrics) & (scores.preset == scores.preset.iloc[0])]
    columns = ["model", "category", "task", *MEASURED, "note"]
    table(rows[columns], "by_category", digits=2)


def overall(scores: pd.DataFrame, task: str) -> None:
    """Show every measure of a task over all categories, and what stands beside it."""
    rows = scores[
        (scores.category == ALL) & (scores.task == task) & (scores.preset == scores.preset.iloc[0])
    ]
    columns = ["model", *MEASURED, "baseline", "note"]
    table(rows[columns], f"overall_{task}", digits=2)


def against_official(scores: pd.DataFrame) -> None:
    """Show where the released code's number differs from ours."""
    rows = disagreements(scores)
    if rows.empty:
        said = i18n._("Nowhere: the released code's numbers are the same on these answers.")
        display(HTML(f"<p{_spoken()}>{said}</p>"))
    else:
        table(rows, "against_official")


def audit(run: Run) -> None:
    """Show what is odd about the data that a run rests on, fault by fault, and which questions its settings touch."""
    settings = of_data(run.benchmark, run.about["asked"]["settings"])
    faults = _faults(run, settings)
    if faults is None:
        said = i18n._(
            "{data}: these data, as they were then, are not on this machine, so they cannot be looked at.",
            data=_data(run),
        )
    elif faults.empty:
        said = i18n._("{data}: nothing odd was found.", data=_data(run))
    else:
        said = i18n._(
            "{data}: what is odd, and how many templates and questions it touches.", data=_data(run)
        )
    display(HTML(f"<p{_spoken()}>{as_html(said)}</p>"))
    if faults is not None and not faults.empty:
        table(faults, "data_faults")
    kept, gone = (pd.DataFrame(run.about[name]) for name in ("touched", "unfit"))
    touched = pd.concat([kept.assign(left_out="no"), gone.assign(left_out="yes")])
    if len(touched):
        used = ", ".join(f"{name}={value}" for name, value in settings.items())
        said = i18n._("Questions that the settings ({used}) concern.", used=used)
        display(HTML(f"<p{_spoken()}>{as_html(said)}</p>"))
        table(touched[["category", "task", "items", "why", "left_out"]], "data_touched")


def _data(run: Run) -> str:
    return f"{run.about['data']['name']}, {run.about['data']['version']}"


def _faults(run: Run, settings: Mapping[str, str]) -> pd.DataFrame | None:
    """The summary of a check of the run's data; None where they are not here as they were."""
    data = run.about["data"]
    try:
        source = find_data(run.benchmark, data["folder"])
        if source.sha256 != data["sha256"]:
            return None
    except BadInput:
        return None
    room = import_module(f"bench.data.{run.benchmark}.audit")
    found: pd.DataFrame = room.summary(room.check(source.folder, **settings))
    return found


def notes(told: Iterable[str]) -> None:
    """Show what a reader has to know before the first number."""
    for text in told:
        head = i18n._("Note.")
        display(
            HTML(
                f"<p class='warning {PLAIN}'{_spoken()}><strong>{head}</strong> {as_html(text)}</p>"
            )
        )


def sentences(told: Iterable[str], runs: Sequence[Run] = ()) -> None:
    """Show warnings about `runs`, and an analysis's findings, the main one first; saved as findings.csv if there are runs."""
    found = list(told)
    notes(warnings([run.about for run in runs]))
    display(HTML(f"<div class='findings'{_spoken()}>{_list(found)}</div>"))
    if _folder and runs:
        export.write_table(pd.DataFrame({"sentence": found}), _folder, "findings")


def parted(rows: pd.DataFrame, told: str) -> None:
    """Show what was marked differently, the farthest apart first, each in a fold.

    Args:
        rows: `heading`, and any other columns: what is shown of it, by name. Missing cells are left out.
        told: the sentence above.
    """
    if rows.empty:
        return
    parts = []
    for row in rows.to_dict("records"):
        heading = html.escape(shortened(row.pop("heading"), SHOWN))
        body = "".join(
            f"<p>{as_html(name)}:</p><pre class='answered'>{html.escape(shortened(value, SHOWN))}</pre>"
            for name, value in row.items()
            if isinstance(value, str) and value
        )
        parts.append(f"<details class='example'><summary>{heading}</summary>{body}</details>")
    display(
        HTML(
            f"<div class='examples {PLAIN}'{_spoken()}><p>{as_html(told)}</p>{''.join(parts)}</div>"
        )
    )


def everything(scores: pd.DataFrame) -> None:
    """Keep all rows of the score table as scores.csv; they are too many to show."""
    if _folder:
        export.write_table(scores, _folder, "scores")
        display(HTML(_saved("scores", export.TABLES, i18n._("All numbers"))))


def provenance(runs: Sequence[Run]) -> None:
    """Show what every number rests on: model and revision, data and version, wording, preset, when."""
    rows = [{"model": name, **rests_on(run)} for name, run in zip(labels(runs), runs, strict=True)]
    table(pd.DataFrame(rows), "provenance")


def rests_on(run: Run) -> dict[str, Any]:
    """What the numbers of a run rest on, as columns of a table."""
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
    from bench.metrics.table import cards as as_table

    table(as_table(module("metrics", benchmark).CARDS), "metric_cards")


def _saved(name: str, kinds: Mapping[str, str], title: str) -> str:
    """Links to the files that were saved, as seen from the notebook; nothing where none were."""
    if not _folder:
        return ""
    place = Path(os.path.relpath(_folder / _file_name(name))).as_posix()
    links = " ".join(
        f"<a href='{html.escape(f'{place}.{kind}', quote=True)}' download>{told}</a>"
        for kind, told in kinds.items()
    )
    return f"<p class='saved'{_spoken()}>{title}: {links}</p>"


def _spoken() -> str:
    """The language of what is generated, where the notebook's own text is in another."""
    return "" if i18n.language() == i18n.LANGUAGES[0] else f" lang='{i18n.tag()}'"


def _list(sentences: Iterable[str]) -> str:
    return (
        f"<ul class='{PLAIN}'>"
        + "".join(f"<li>{as_html(text)}</li>" for text in sentences)
        + "</ul>"
    )


def _cell(value: object, digits: int, least: float = 0) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        # Jupyter aligns cells to the right unless told otherwise.
        return f"<td style='text-align: left'>{html.escape(shortened(value, CELL))}</td>"
    if value != value:
        return "<td class='number'>—</td>"
    if 0 <= value < least:
        return f"<td class='number'>&lt;\u00a0{least:.{digits}f}</td>"
    return (
        f"<td class='number'>{value:,}</td>"
        if isinstance(value, int)
        else f"<td class='number'>{value:,.{digits}f}</td>"
    )


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
