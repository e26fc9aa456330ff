"""Rules for rows of McBE, in addition to the rules for all benchmarks."""

from pathlib import Path
from typing import Any

import pandas as pd

from bench.benchmarks.mcbe import items
from bench.benchmarks.mcbe.items import SEPARATORS, SLOT, Instance
from bench.core.errors import BadInput
from bench.data import with_defaults
from bench.data.checks import Errors, Rule, Tables, file_name, in_cells, noted
from bench.data.manifest import category_of, unknown_category


def rows(folder: Path, errors: Errors, **settings: str) -> Tables:
    """Yield the rows of each category, and note the errors of rows and files that are refused."""
    chosen = with_defaults(items.SETTINGS, settings)
    options = {name: chosen[name] for name in ("encoding", "separators")}
    groups = {name: name not in items.WITHOUT_GROUPS for name in items.CATEGORIES}
    with noted(errors):
        groups = items.categories_of(folder)
    paths, unknown = items.scan(folder, groups)
    for path in unknown:
        errors.append(BadInput(unknown_category(path, category_of(path), folder, groups)))
    for category, path in paths.items():
        file = file_name(path, folder)
        table: list[dict[str, Any]] = []
        with noted(errors):
            for cells, item in items.read(path, category, groups=groups[category], **options):
                row = {**cells, "file": file, "row": cells.number, "name": category}
                if isinstance(item, Instance):
                    row |= {"counts_as": "rows", "key": item.content_hash}
                else:
                    row |= {"counts_as": "refused rows", "key": ""}
                    errors.append(BadInput(item.message(path)))
                table.append(row)
        yield pd.DataFrame(table).fillna("")


def otherwise_split(cell: str) -> str:
    """Say into how many words another separator splits a cell, if it does."""
    sizes = [len(items.split(cell, name)) for name in SEPARATORS]
    return f"{sizes[1]} and not into {sizes[0]}" if sizes[0] != sizes[1] else ""


COLUMNS = items.COLUMNS
RULES = (
    Rule(
        "placeholder_left",
        ["context", "words"],
        in_cells(lambda text: SLOT * (SLOT in text)),
        "holds the placeholder {found}, which is filled in `sentence` alone",
    ),
    Rule(
        "placeholder_left",
        ["context", "sentence", "words"],
        in_cells(items.lookalike),
        f"holds {{found!r}}, which looks like the placeholder {SLOT}",
    ),
    Rule(
        "separators",
        ["words"],
        in_cells(otherwise_split),
        "is split into {found} if `--set separators=any` splits it",
    ),
)
RELEASED = {"all": {"rows": 4077}}
