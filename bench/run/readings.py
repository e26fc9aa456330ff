"""Check the parser of replies: a sheet of replies for a person, and the parser's precision.

A valid rate says that something was read in a reply, not that it was read rightly. The person sees
the prompt, the reply and what is allowed, but not what the parser read.
"""

import hashlib
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.cells import to_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.data.readers import MAX_LINE, read_csv
from bench.metrics.readings import precision
from bench.run.human_marks import same_cell, write_table
from bench.run.results import KEYS, Run, by_id
from bench.tasks.replies import plain
from bench.tasks.request import of_judge

# What a person fills in, and writes where a reply holds no answer.
READING, NO_ANSWER = "what did you read?", "none"
COLUMNS = ("row", *KEYS, "prompt", "reply", "allowed", READING)
# Replies on a sheet.
REPLIES = 100
# What a reply can be read as: names and their meanings, or a range of ratings.
Values = Mapping[str, str] | range


class CheckedReadings(NamedTuple):
    """What a filled-in sheet says: the parser's precision, and how many of `rows` are filled in."""

    precision: pd.DataFrame
    filled: int
    rows: int


def write_sheet(run: Run, path: Path) -> int:
    """Write a blind sheet of a run's replies, and return their number.

    They are drawn at random, in equal parts from each task's answers and judge's grades, and are
    the same each time.
    """
    rows = _readable(run)
    if rows.empty:
        raise BadInput(
            f"{run.folder}: holds no reply whose words were read (likelihoods, letters chosen by "
            "them and a classifier's labels need no reading); give a run with --read text"
        )
    rng = random.Random(f"readings:{run.about['identity']}")
    kinds = rows.groupby(["task", rows.request.map(of_judge)], sort=False)
    parts, left = sorted((part for _, part in kinds), key=len), REPLIES
    drawn = []
    for k, part in enumerate(parts):
        n = min(len(part), left // (len(parts) - k))
        drawn += rng.sample(list(part.index), n)
        left -= n
    # Tasks stay together, for each has its own answers; within one the order is that of the draw.
    order = list(module("tasks", run.benchmark).TASKS)
    rows = rows.loc[sorted(drawn, key=lambda place: order.index(rows.task[place]))]
    table = rows.assign(
        row=[f"{k} of {len(rows)}" for k in range(1, len(rows) + 1)],
        reply=rows.response,
        allowed=rows["values"].map(_allowed),
        **{READING: ""},
    )
    write_table(table[list(COLUMNS)], path)
    return len(table)


def read_sheet(run: Run, path: Path) -> CheckedReadings:
    """Read a filled-in sheet, keep it in the run's folder, and return the parser's precision."""
    again = f"and run `bench mark --readings {run.folder} {path}` again"

    def refuse(place: int, name: str, value: str, reason: str) -> NoReturn:
        raise BadInput(f"{path}, row {place}, column `{name}`: {quoted(value)} {reason}")

    rows = read_csv(path, COLUMNS, longest=MAX_LINE)
    numbers: set[int] = set()
    totals = set()
    for place, row in enumerate(rows, start=1):
        numbered = re.fullmatch(r"([0-9]{1,6}) of ([0-9]{1,6})", row["row"].strip())
        if not numbered or int(numbered[1]) in numbers:
            wrong = "stands there twice" if numbered else "is not a row's number, such as 3 of 100"
            refuse(place, "row", row["row"], f"{wrong}; restore it, {again}")
        numbers.add(int(numbered[1]))
        totals.add(int(numbered[2]))
    total = max(totals, default=REPLIES)
    missing = [k for k in range(1, total + 1) if k not in numbers]
    if missing or len(totals) != 1:
        row_missing = f"row {missing[0]} of {total} is missing" if missing else ""
        raise BadInput(
            f"{path}: has {len(rows)} of {total} rows, "
            f"{row_missing or 'its rows are of two sheets'}; put back what was written (where no "
            f"answer was looked for yet, `{READING}` stays empty), {again}"
        )
    known = {
        tuple(str(reply[name]) for name in KEYS): reply
        for reply in _readable(run).to_dict("records")
    }
    readings = []
    for place, row in enumerate(rows, start=1):
        key = tuple(unguarded(row[name]) for name in KEYS)
        reply = known.get(key)
        if reply is None or not same_cell(row["reply"], reply["response"]):
            anew = f"write a new sheet by `bench mark --readings {run.folder} NEW.csv`"
            reason = (
                f"is not what {run.folder} recorded for {', '.join(key)}; restore it, or {anew}"
            )
            refuse(place, "reply", row["reply"], reason)
        if not row[READING].strip():
            continue
        values, text = reply["values"], plain(row[READING]).strip().casefold()
        person: str | None
        # As the parser would give it, "" for no answer; None if it is not allowed.
        if text == NO_ANSWER:
            person = ""
        elif isinstance(values, range):
            rating = to_number(text)
            person = f"{rating:g}" if values[0] <= rating <= values[-1] else None
        else:
            spelled = {plain(name).strip().casefold(): value for name, value in values.items()}
            person = spelled.get(text)
        if person is None:
            reason = f"is not allowed; allowed: {_allowed(values)}; correct it, {again}"
            refuse(place, READING, row[READING], reason)
        reply_hash = records.text_hash(reply["response"])
        asked = {name: reply[name] for name in KEYS}
        readings.append({**asked, "reply_hash": reply_hash, "person": person})
    if not readings:
        raise BadInput(f"{path}: no row of column `{READING}` is filled in; fill in some, {again}")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    sheet = {"sheet": path.name, "sha256": sha256, "rows": total, "readings": readings}
    records.write_readings(run.folder, sheet)
    return CheckedReadings(precision(run.readings), len(readings), total)


def _readable(run: Run) -> pd.DataFrame:
    """Return the replies in whose words an answer is read, with the `values` that it can have."""
    rows, read = run.records, run.about["read"]
    # A choice by likelihood is a letter already; a bare text, scored or labelled, has no prompt.
    in_words = rows.task.map(lambda task: read.get(task, "text") == "text")
    prompted = ~rows.prompt_version.str.startswith("none:")
    rows = rows[(rows.error == "") & rows.logprobs.isna() & in_words & prompted]
    items = by_id(run.items)
    values_of = module("tasks", run.benchmark).readable_values
    names = zip(rows.task.tolist(), rows.request.tolist(), rows.item_id.tolist(), strict=True)
    values = [values_of(task, request, items[item_id]) for task, request, item_id in names]
    rows = rows.assign(values=pd.Series(values, index=rows.index, dtype=object))
    return rows[rows["values"].map(len) > 0]


def _allowed(values: Values) -> str:
    if isinstance(values, range):
        return f"a number from {values[0]} to {values[-1]}, or {NO_ANSWER}"
    return ", ".join([*values, NO_ANSWER])
