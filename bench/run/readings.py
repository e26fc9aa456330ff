"""Check by hand how replies are read: a sheet of replies for a person, and the reader's precision.

A valid rate says that something was read in a reply, not that it was read rightly. The person sees
the prompt, the reply and what is allowed, and not what the reader read.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.cells import to_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.data.readers import MAX_LINE, Row, read_csv
from bench.metrics.readings import precision
from bench.run.human_marks import cell, check_new, same_cell, shortened, write_table
from bench.run.results import Run
from bench.tasks.replies import plain
from bench.tasks.request import of_judge

KEYS = ("task", "item_id", "request", "repeat")
# What a person fills in, and writes where a reply holds no answer.
READING, NO_ANSWER = "what did you read?", "none"
COLUMNS = ("row", *KEYS, "prompt", "reply", "allowed", READING)
# So many replies a sheet has.
REPLIES = 100


def write_sheet(run: Run, path: Path) -> int:
    """Write a blind sheet of a run's replies, and give their number.

    The replies are drawn at random, in equal parts from each task's answers and judge's marks; the
    same ones each time.

    Raises:
        BadInput: no reply of the run was read as text, or the file is there already.
        RunFailed: the file cannot be written.
    """
    check_new(path)
    rows = _readable(run)
    if rows.empty:
        raise BadInput(
            f"{run.folder}: holds no reply whose words were read (likelihoods, letters chosen by "
            "them and a classifier's labels need no reading); give a run with --read text"
        )
    dice = random.Random(f"readings:{run.about.get('identity', run.model)}")
    kinds = rows.groupby(["task", rows.request.map(of_judge)], sort=False)
    parts, left = sorted((part for _, part in kinds), key=len), REPLIES
    drawn = []
    for k, part in enumerate(parts):
        n = min(len(part), left // (len(parts) - k))
        drawn += dice.sample(list(part.index), n)
        left -= n
    # Tasks stay together, for each has its own answers; within one the order is that of the draw.
    order = list(module("tasks", run.benchmark).TASKS)
    sheet = rows.loc[sorted(drawn, key=lambda place: order.index(rows.task[place]))]
    table = pd.DataFrame(
        {
            "row": [f"{k} of {len(sheet)}" for k in range(1, len(sheet) + 1)],
            **{name: sheet[name].map(cell) if name != "repeat" else sheet[name] for name in KEYS},
            "prompt": sheet.prompt.map(cell).map(shortened),
            "reply": sheet.response.map(cell).map(shortened),
            "allowed": [cell(_allowed(values)) for values in sheet["values"]],
            READING: "",
        }
    )
    write_table(table, path)
    return len(table)


class CheckedReadings(NamedTuple):
    """What a filled-in sheet says.

    Attributes:
        precision: of the reader, see `bench.metrics.readings.precision`.
        filled: rows that a person has filled in, of `rows`.
    """

    precision: pd.DataFrame
    filled: int
    rows: int


def read_sheet(run: Run, path: Path) -> CheckedReadings:
    """Read a filled-in sheet of readings, keep it in the run's folder, and give the reader's precision.

    Raises:
        BadInput: a cell, a row or the whole file is not that of the sheet that was written.
        RunFailed: the run's folder cannot be written to.
    """
    again = f"and run `bench mark --readings {run.folder} {path}` again"
    rows = read_csv(path, COLUMNS, longest=MAX_LINE)
    total = _check_rows(path, rows, again)
    known = {
        tuple(str(reply[name]) for name in KEYS): reply
        for reply in _readable(run).to_dict("records")
    }
    readings = []
    for place, row in enumerate(rows, start=1):
        key = tuple(unguarded(row[name]) for name in KEYS)
        reply = known.get(key)
        if reply is None or not same_cell(row["reply"], reply["response"]):
            raise BadInput(
                f"{path}, row {place}, column `reply`: {quoted(row['reply'])} is not what "
                f"{run.folder} recorded for {', '.join(key)}; restore it, or write a new sheet by "
                f"`bench mark --readings {run.folder} NEW.csv`"
            )
        if not row[READING].strip():
            continue
        person = _person(row[READING], reply["values"])
        if person is None:
            raise BadInput(
                f"{path}, row {place}, column `{READING}`: {quoted(row[READING])} is not allowed; "
                f"allowed: {_allowed(reply['values'])}; correct it, {again}"
            )
        readings.append(
            {
                **{name: reply[name] for name in KEYS},
                "reply_hash": records.text_hash(reply["response"]),
                "person": person,
            }
        )
    if not readings:
        raise BadInput(f"{path}: no row of column `{READING}` is filled in; fill in some, {again}")
    sheet = {
        "sheet": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "rows": total,
    }
    records.write_readings(run.folder, {**sheet, "readings": readings})
    return CheckedReadings(precision(run.readings), len(readings), total)


def _readable(run: Run) -> pd.DataFrame:
    """Give the replies out of whose words an answer is read, with the `values` that it may be."""
    rows = run.records
    ways = run.about.get("read", {})
    # A choice by likelihood is a letter already; a bare text, scored or labelled, has no wording.
    in_words = rows.task.map(lambda task: ways.get(task, "text") == "text")
    asked = ~rows.prompt_version.str.startswith("none:")
    rows = rows[(rows.error == "") & rows.logprobs.isna() & in_words & asked]
    items = {item.item_id: item for item in run.items.itertuples(index=False)}
    values = module("tasks", run.benchmark).readable_values
    rows = rows.assign(
        values=pd.Series(
            [
                values(row["task"], row["request"], items[row["item_id"]])
                for row in rows.to_dict("records")
            ],
            index=rows.index,
            dtype=object,
        )
    )
    return rows[rows["values"].map(len) > 0]


def _check_rows(path: Path, rows: Sequence[Row], again: str) -> int:
    """Give how many rows the sheet was written with, after checking that each is there once."""
    found: set[int] = set()
    totals = set()
    for place, row in enumerate(rows, start=1):
        numbered = re.fullmatch(r"([0-9]{1,6}) of ([0-9]{1,6})", row["row"].strip())
        if not numbered or int(numbered[1]) in found:
            wrong = "stands there twice" if numbered else "is not a row's number, such as 3 of 100"
            raise BadInput(
                f"{path}, row {place}, column `row`: {quoted(row['row'])} {wrong}; restore it, {again}"
            )
        found.add(int(numbered[1]))
        totals.add(int(numbered[2]))
    total = max(totals, default=REPLIES)
    missing = [k for k in range(1, total + 1) if k not in found]
    if missing or len(totals) != 1:
        lacks = (
            f"row {missing[0]} of {total} is missing" if missing else "its rows are of two sheets"
        )
        raise BadInput(
            f"{path}: has {len(rows)} of {total} rows, {lacks}; put back what was written (where no "
            f"answer was looked for yet, `{READING}` stays empty), {again}"
        )
    return total


def _person(given: str, values: Mapping[str, str] | range) -> str | None:
    """Give what a person read as the reader would say it, "" for no answer; None if not allowed."""
    text = plain(given).strip().casefold()
    if text == NO_ANSWER:
        return ""
    if isinstance(values, range):
        rating = to_number(text)
        return f"{rating:g}" if values[0] <= rating <= values[-1] else None
    return {plain(name).strip().casefold(): value for name, value in values.items()}.get(text)


def _allowed(values: Mapping[str, str] | range) -> str:
    if isinstance(values, range):
        return f"a number from {values[0]} to {values[-1]}, or {NO_ANSWER}"
    return ", ".join([*values, NO_ANSWER])
