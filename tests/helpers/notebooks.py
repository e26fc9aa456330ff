"""Run the cells of a notebook in the process of the test."""

from collections.abc import Mapping
from typing import Any

import nbformat

from bench.core.shipped import NOTEBOOKS


def run_cells(
    name: str,
    *,
    until: str = "",
    only: str = "",
    changes: Mapping[str, str] | None = None,
    **values: Any,
) -> dict[str, Any]:
    """Run a notebook's code cells, and return its variables.

    Args:
        until: the id of the last cell to run; default: all.
        only: the id of the one cell to run.
        changes: lines to replace, as a reader changes them.
        values: its parameters; with `only`, the variables that the cell needs.
    """
    book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in book.cells if cell.cell_type == "code" and only in ("", cell.id)]
    variables = dict(values)
    for cell in cells:
        source = cell.source
        for line, changed in (changes or {}).items():
            source = source.replace(line, changed)
        exec(compile(source, f"cell {cell.id}", "exec"), variables)
        variables |= values if "parameters" in cell.metadata.get("tags", []) else {}
        if cell.id == until:
            return variables
    assert only or not until, "the notebook has no such cell"
    return variables
