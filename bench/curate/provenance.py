"""Where every value of a curated set comes from: a log that only grows, one JSON object a line.

`item_id`, `field`, `value`, `who` (people, or a model), `round` (the sheet, or ""), `how` it came to be, `when`, and where a
model wrote it `model`, `wording` and `prompt_hash`. A value that is changed later has a line of its own; the earlier one stays.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write
from bench.data.readers import read_json_lines

LOG = "provenance.jsonl"
COLUMNS = (
    "item_id",
    "field",
    "value",
    "who",
    "round",
    "how",
    "when",
    "model",
    "wording",
    "prompt_hash",
)
# What makes a line another than those that are there; its time alone does not.
_SAME = ("item_id", "field", "value", "who", "round", "how", "model", "wording", "prompt_hash")


def read(folder: Path) -> pd.DataFrame:
    """The log of a project, in the order in which it grew; no rows where there is none yet.

    Raises:
        BadInput: it is no JSON Lines file, or says something that is no text; with the line.
    """
    path = Path(folder) / LOG
    lines = []
    for number, line in read_json_lines(path) if path.is_file() else ():
        lines.append({name: line.get(name, "") for name in COLUMNS})
        wrong = next(
            (name for name, value in lines[-1].items() if not isinstance(value, str)), None
        )
        if wrong:
            raise BadInput(
                f"{path}, line {number}, field `{wrong}`: {quoted(line[wrong])} is not a text; put back what stood there, or remove the line"
            )
    return pd.DataFrame(lines, columns=list(COLUMNS), dtype=str)


def add(folder: Path, found: Iterable[Mapping[str, object]]) -> int:
    """Add what the log does not say yet, and return how many lines that were.

    Raises:
        OSError: the log cannot be written.
    """
    log = read(folder)
    # Of each field, person and round what was said last: who goes back to an earlier answer says it anew.
    last = {_place(line): _key(line) for line in log.to_dict("records")}
    new = []
    for given in found:
        line = {name: str(given.get(name, "")) for name in COLUMNS}
        if last.get(_place(line)) != _key(line):
            new.append(line)
            last[_place(line)] = _key(line)
    if new:
        atomic_write(Path(folder) / LOG, as_lines([*log.to_dict("records"), *new]))
    return len(new)


def as_lines(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _place(line: Mapping[Any, Any]) -> tuple[object, ...]:
    # What a panel answers, and what follows from it, are two lines under one name.
    return (*(line[name] for name in ("item_id", "field", "who", "round")), line["how"] == "answer")


def _key(line: Mapping[Any, Any]) -> tuple[object, ...]:
    return tuple(line[name] for name in _SAME)
