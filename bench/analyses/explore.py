"""Look at single answers. For example:

    answers, items = bench.answers(*runs), bench.items(*runs)
    matching(answers, "nurse", verdict="stereotyped")
    item(answers, "gender:ambiguous:17", items)       # an item with all its requests

All else is pandas, for example `answers.query("verdict == 'stereotyped'")`. Replies are data: we
escape them, and name invisible characters.
"""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from IPython.display import HTML

from bench.benchmarks import get
from bench.core.cells import rounded
from bench.core.errors import BadInput
from bench.core.numbers import decimals
from bench.core.text import PLAIN, as_html, column, shortened, truncate

# The most characters of a text.
MAX_CHARS = 20_000
# If an item has more requests, they are folded.
UNFOLDED = 3
TEXT = "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 18em; overflow: auto"


def matching(answers: pd.DataFrame, contains: str = "", **values: Any) -> pd.DataFrame:
    """Return the answers with some values, and with a text.

    Args:
        answers: of `bench.answers`.
        contains: a part of the prompt, the reply or the item's name.
        values: by column; "all" for any value.
    """
    is_match = pd.Series(True, answers.index)
    if contains:
        texts = answers.item_id + "\n" + answers.prompt + "\n" + answers.response
        is_match = texts.str.contains(contains, case=False, regex=False)
    for name, value in values.items():
        if value != "all":
            is_match &= answers[name] == value
    return answers[is_match]


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
    if items is not None:
        fields = items[items.item_id == item_id].T.dropna().reset_index()
        fields.columns = ["field", *["value"] * (len(fields.columns) - 1)]
        parts.append(_fold("What the data say", _table(fields)))
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
        prompts = own.drop_duplicates("prompt")[["model", "prompt"]]
        heading = f"{task}, {request}: {' · '.join(truncate(text, 80) for text in readings)}"
        body = _table(prompts) + _table(table.loc[:, (table != "").any()])
        parts.append(_fold(heading, body, is_open=requests.ngroups <= UNFOLDED))
    return HTML(f"<div class='item {PLAIN}'>{''.join(parts)}</div>")


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


def _fold(heading: str, body: str, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{as_html(heading)}</summary>{body}</details>"


def _table(rows: pd.DataFrame) -> str:
    """Write a table of texts in a box that scrolls, so the keyboard has to reach it."""
    formatters = {column(str(name)): _text for name in rows}
    with pd.option_context("display.max_colwidth", None):
        table = rows.rename(columns=column).to_html(
            index=False, escape=False, border=0, justify="left", formatters=formatters
        )
    return (
        f"<div class='table {PLAIN}' role='region' tabindex='0' aria-label='answers'>{table}</div>"
    )


def _text(value: object) -> str:
    return f"<div style='{TEXT}'>{as_html(shortened(value, MAX_CHARS))}</div>"
