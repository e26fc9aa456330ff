"""Sentences, and what was said and marked, as a notebook shows them: every word as text, whatever it holds."""

import html
from collections.abc import Iterable

from IPython.display import HTML, display


def sentences(found: Iterable[str]) -> None:
    """Show findings as a list."""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in found)
    display(HTML(f"<div class='findings'><ul>{items}</ul></div>"))


def notes(found: Iterable[str]) -> None:
    """Show what a reader has to know before the first number."""
    for text in found:
        display(HTML(f"<p class='warning'><strong>Note.</strong> {html.escape(text)}</p>"))
