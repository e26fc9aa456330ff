"""Look at single answers: a widget that filters them, and an item with all its requests.

    answers, items = bench.answers(*runs), bench.items(*runs)
    Browser(answers, items)                           # filter and click, in JupyterLab
    item(answers, "gender:ambiguous:17", items)       # an item in code

All else is pandas, for example `answers.query("verdict == 'stereotyped'")`. Replies are data: we
escape them, and name invisible characters.
"""

import html
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from IPython.display import HTML
from rich.cells import cell_len, set_cell_size

from bench.benchmarks import get
from bench.core.cells import rounded
from bench.core.errors import BadInput
from bench.core.numbers import decimals
from bench.core.text import PLAIN, as_html, column, shortened, truncate

# Columns with a filter in the widget; columns that are true or false have one too.
FILTERS = ("model", "benchmark", "prompts", "category", "task", "verdict")
# Columns that the widget searches for a text.
SEARCHED = ("item_id", "prompt", "response", "error")
# The most answers in the list of the widget.
LISTED = 200
# The most answers on a saved page, which has no widgets.
SAVED = 25
# The most characters of a text in an item's table.
SHOWN = 20_000
# If an item has more requests, they are folded.
UNFOLDED = 3
TEXT = (
    "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 18em; overflow: auto; margin: 0; "
    "text-align: left"
)
CELL = "text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0"
# Columns of the list, and the most letters of each; a Chinese character is as wide as two.
WIDTHS = {"model": 48, "verdict": 16, "item_id": 36, "reply": 16, "question": 120}
# The list needs letters of one width.
LIST = "answers-to-click"
FONT = (
    f"<style>.{LIST} select, .{LIST} pre {{ font-family: var(--jp-code-font-family, monospace); "
    "font-size: 12px; margin: 0 }}</style>"
)


def questions(answers: pd.DataFrame) -> pd.Series:
    """Return the prompts without a first line if all prompts of a task share this line.

    Args:
        answers: of `bench.answers`.
    """
    asked = answers[["benchmark", "task", "prompt"]].drop_duplicates()
    lines = asked.prompt.str.partition("\n")
    is_shared = lines[0].groupby([asked.benchmark, asked.task]).transform("nunique") == 1
    asked["question"] = asked.prompt.where(~is_shared | (lines[2] == ""), lines[2])
    return answers.merge(asked, how="left").question.set_axis(answers.index)


def item(answers: pd.DataFrame, item_id: str, items: pd.DataFrame | None = None) -> HTML:
    """Show an item: its fields, and every request with each model's reply and its parsed value.

    Args:
        answers: of `bench.answers`.
        items: of `bench.items`; default: fields are not shown.

    Raises:
        BadInput: there is no answer about it.
    """
    rows = answers[answers.item_id == item_id]
    if rows.empty:
        raise BadInput(f"item {item_id!r}: there is no answer about it; see the column item_id")
    parts = [f"<h4>{as_html(item_id)}</h4>"]
    known = items[items.item_id == item_id] if items is not None else pd.DataFrame()
    for fields in known.to_dict("records"):
        values = {name: _listed(value) for name, value in fields.items()}
        table = pd.DataFrame({"field": values.keys(), "value": values.values()})
        parts.append(_fold("What the data say", _table(table[table.value != "nan"])))
    models = " · ".join(map(as_html, rows.model.unique()))
    parts.append(f"<p>How answers were read, by request: {models}</p>")
    requests = rows.groupby(["benchmark", "task", "request"], sort=False, observed=True)
    for (benchmark, task, request), own in requests:
        readings = [_reading(row) for row in own.itertuples()]
        names = ["model", *(name for name in ("prompts", "repeat") if len(own[name].unique()) > 1)]
        table = own[names].assign(answered=own.response.map(str).map(rounded), read_as=readings)
        table["verdict"] = own.verdict
        choices = get(str(benchmark)).tasks[str(task)].choices
        table["log_probabilities"] = [_logs(choices, values) for values in own.logprobs]
        table = table.loc[:, (table != "").any()]
        prompts = own.drop_duplicates("prompt")
        asked = [
            f"<p>Asked{f' {as_html(row.model)}' * (len(prompts) > 1)}:</p>{_text(row.prompt)}"
            for row in prompts.itertuples()
        ]
        heading = f"{task}, {request}: {' · '.join(truncate(text, 80) for text in readings)}"
        body = "".join(asked) + _table(table)
        parts.append(_fold(heading, body, is_open=requests.ngroups <= UNFOLDED))
    return HTML(f"<div class='item {PLAIN}'>{''.join(parts)}</div>")


class Browser:
    """Filter answers and open one item, by widgets in JupyterLab."""

    def __init__(self, answers: pd.DataFrame, items: pd.DataFrame | None = None) -> None:
        """Take the frames of `bench.answers` and `bench.items`.

        Each column of `answers` that is true or false gets a filter, for example `differs` after
        `answers["differs"] = ...`.
        """
        import ipywidgets as widgets  # type: ignore[import-untyped]  # slow to load

        self.answers, self.items = answers.assign(question=questions(answers)), items
        self.rows = self.answers
        self.filters: dict[Any, Any] = {}
        for name in answers:
            if name in FILTERS or answers[name].dtype == bool:
                options = [
                    ("all", None),
                    *((str(value), value) for value in answers[name].unique()),
                ]
                menu = widgets.Dropdown(options=options, description=column(str(name)))
                self.filters[name] = menu
        self.contains = widgets.Text(description="contains", continuous_update=False)
        for widget in (*self.filters.values(), self.contains):
            widget.observe(self._filter, "value")
        self.head, self.shown = widgets.HTML(), widgets.HTML()
        self.list = widgets.Select(rows=12, layout=widgets.Layout(width="auto"))
        self.list.observe(self._open, "index")
        controls = [*self.filters.values(), self.contains]
        controls = widgets.HBox(controls, layout=widgets.Layout(flex_flow="row wrap"))
        self.box = widgets.VBox([controls, self.head, self.list, self.shown])
        self.box.add_class(LIST)
        self._filter()

    def _repr_mimebundle_(self, **_unused: Any) -> dict[str, Any]:
        """Return the widgets, and the first answers for pages without a kernel."""
        bundle: dict[str, Any] = self.box._repr_mimebundle_()
        rows = self.rows.head(SAVED)
        table = rows[["model", "verdict", "category", "task", "item_id"]].assign(
            question=[truncate(text, 80) for text in rows.question],
            reply=[truncate(_reply(row), 80) for row in rows.itertuples()],
        )
        text = f"{self._count(len(rows))} Run this cell in JupyterLab to filter them."
        plain = f"a table of {len(self.answers):,} answers"
        return {**bundle, "text/html": f"<p>{text}</p>{_table(table)}", "text/plain": plain}

    def _filter(self, _change: object = None) -> None:
        rows = self.answers
        for name, widget in self.filters.items():
            if widget.value is not None:
                rows = rows[rows[name] == widget.value]
        if text := self.contains.value:
            is_found = pd.Series(False, rows.index)
            for name in SEARCHED:
                is_found |= rows[name].str.contains(text, case=False, regex=False, na=False)
            rows = rows[is_found]
        self.rows = rows
        head, *lines = _lines(rows.head(LISTED))
        count = self._count(len(lines))
        self.head.value = f"{FONT}<p>{count}</p><pre>{html.escape(head)}</pre>"
        self.list.options = [(line, k) for k, line in enumerate(lines)]
        self.list.index = 0 if lines else None
        self._open()

    def _count(self, n: int) -> str:
        return f"{n:,} of {len(self.rows):,} answers." if n else "No answer fits."

    def _open(self, _change: object = None) -> None:
        chosen = self.list.index
        self.shown.value = ""
        if chosen is not None:
            self.shown.value = item(self.answers, self.rows.item_id.iloc[chosen], self.items).data


def _lines(rows: pd.DataFrame) -> list[str]:
    """Write rows as lines with columns, the headings first."""
    replies = [_reply(row) for row in rows.itertuples()]
    table = rows.assign(reply=replies)[list(WIDTHS)].map(str)
    columns = []
    for name, limit in WIDTHS.items():
        cells = [truncate(cell, limit) for cell in (column(name), *table[name])]
        width = min(limit, max(map(cell_len, cells)))
        columns.append([set_cell_size(cell, width) for cell in cells])
    # A browser would join spaces.
    return ["  ".join(line).rstrip().replace(" ", "\u00a0") for line in zip(*columns, strict=True)]


def _reply(row: Any) -> str:
    return rounded(str(row.error or row.response or ""))


def _reading(row: Any) -> str:
    """Return the parsed value of a reply, or the reason why there is none."""
    if row.valid:
        return rounded(str(row.parsed))
    return f"no answer came: {row.error}" if row.error else "not readable"


def _logs(choices: Sequence[str], values: Any) -> str:
    """Return the log-probability of each choice, with its name."""
    if values is None or len(values) == 0:
        return ""
    names = choices if len(choices) == len(values) else range(1, len(values) + 1)
    return "\n".join(
        f"{name}: {decimals(value, 3)} ({decimals(100 * math.exp(value), 1)}%)"
        for name, value in zip(names, values, strict=True)
    )


def _listed(value: Any) -> str:
    """Write a field of an item, a list as lines."""
    if isinstance(value, float):
        return f"{value:g}"
    is_text = isinstance(value, str) or not hasattr(value, "__len__")
    return str(value) if is_text else "\n".join(map(str, value))


def _text(value: object) -> str:
    return f"<pre style='{TEXT}'>{html.escape(shortened(value, SHOWN))}</pre>"


def _fold(heading: str, body: str, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{as_html(heading)}</summary>{body}</details>"


def _table(rows: pd.DataFrame) -> str:
    """Write a table of texts in a box that scrolls, so the keyboard has to reach it."""
    head = "".join(
        f"<th scope='col' style='{CELL}'>{as_html(column(str(name)))}</th>" for name in rows
    )
    body = "".join(
        "<tr>" + "".join(f"<td style='{CELL}'>{_text(value)}</td>" for value in row) + "</tr>"
        for row in rows.itertuples(index=False)
    )
    return (
        f"<div class='table {PLAIN}' role='region' tabindex='0' aria-label='answers' "
        "style='overflow: auto; contain: inline-size'>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
