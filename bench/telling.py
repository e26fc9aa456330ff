"""Sentences, and what was said and marked, as a notebook shows them: every word as text, whatever it holds."""

import html
from collections.abc import Iterable

import pandas as pd
from IPython.display import HTML, display

from bench.show import SHOWN


def sentences(found: Iterable[str]) -> None:
    """Show findings as a list."""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in found)
    display(HTML(f"<div class='findings'><ul>{items}</ul></div>"))


def notes(found: Iterable[str]) -> None:
    """Show what a reader has to know before the first number."""
    for text in found:
        display(HTML(f"<p class='warning'><strong>Note.</strong> {html.escape(text)}</p>"))


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
        heading = html.escape(str(row.pop("heading")))
        body = "".join(
            f"<p>{html.escape(str(name))}:</p><pre class='answered'>{html.escape(_cut(str(value)))}</pre>"
            for name, value in row.items()
            if isinstance(value, str) and value
        )
        parts.append(f"<details class='example'><summary>{heading}</summary>{body}</details>")
    display(HTML(f"<div class='examples'><p>{html.escape(told)}</p>{''.join(parts)}</div>"))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} … ({len(text):,} characters)"
