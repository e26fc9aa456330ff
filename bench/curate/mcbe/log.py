"""Keep where each value of a McBE set comes from: a log that only grows, one JSON object per line.

A line has `item_id`, `field`, `value`, `who` (people or a model), `round` (the sheet, or ""), `how`
the value came to be, `when`, and where a model wrote it `model`, `wording` and `prompt_hash`. A
value that changes later gets a line of its own.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write
from bench.data.readers import read_json_lines

FILE = "provenance.jsonl"
COLUMNS = ["item_id", "field", "value", "who", "round", "how", "when"]
COLUMNS += ["model", "wording", "prompt_hash"]


def read(folder: Path) -> pd.DataFrame:
    """Read the log of a project; no rows if there is none yet.

    Raises:
        BadInput: it is no JSON Lines file, or a value is no text; with the line.
    """
    path = folder / FILE
    rows = []
    for number, line in read_json_lines(path) if path.is_file() else ():
        rows.append({name: line.get(name, "") for name in COLUMNS})
        for name, value in rows[-1].items():
            if not isinstance(value, str):
                raise BadInput(
                    f"{path}, line {number}, field `{name}`: {quoted(value)} is not a text; "
                    "put back the original, or remove the line"
                )
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)


def add(folder: Path, lines: Iterable[Mapping[str, object]]) -> int:
    """Add the lines that the log does not have yet, and return how many these are."""
    rows: list[dict[str, str]] = read(folder).to_dict("records")  # type: ignore[assignment]
    last = {_subject(row): _content(row) for row in rows}
    before = len(rows)
    for line in lines:
        row = {name: str(line.get(name, "")) for name in COLUMNS}
        # Compared with the last line only: going back to an earlier answer is a new line.
        if last.get(_subject(row)) != _content(row):
            rows.append(row)
            last[_subject(row)] = _content(row)
    if len(rows) > before:
        atomic_write(folder / FILE, as_lines(rows))
    return len(rows) - before


def as_lines(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Write rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _subject(row: Mapping[str, str]) -> tuple[object, ...]:
    # What a panel answers, and what follows from it, are two lines of one name.
    return row["item_id"], row["field"], row["who"], row["round"], row["how"] == "answer"


def _content(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in COLUMNS if name != "when")
