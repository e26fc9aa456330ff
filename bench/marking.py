"""Write sheets of replies that people mark by hand, and read them back.

Explanations (`to_mark`): a person is the judge; `--judge replay:FILE.csv` reads the sheet.
Analyses (`analyses_to_mark`): people mark what a judge has marked; the notebook `judge_agreement`
reads the sheet.
Readings (`readings_to_check`): a person reads replies that the reader of replies has read;
`check_readings` gives the reader's precision.
"""

import hashlib
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.data.cells import as_csv, guarded, unguarded
from bench.data.tables import Row, number, read_csv
from bench.data.text import MAX_LINE
from bench.errors import BadInput, RunFailed, quoted
from bench.metrics.readings import precision
from bench.results import Run
from bench.seen import visible
from bench.tasks.mcbe import CRITERIA
from bench.tasks.replies import final, plain
from bench.whole import whole

KEYS = ("task", "item_id", "request", "repeat")
# What a person fills in on a sheet of readings, and writes where a reply holds no answer.
READING, NO_ANSWER = "what did you read?", "none"
READING_COLUMNS = ("row", *KEYS, "prompt", "reply", "allowed", READING)
# So many replies a sheet of readings has.
REPLIES = 100
# Spreadsheet programs cut a cell of more than 32,767 characters.
LONGEST_CELL = 32_000
# The share of instances on a sheet of analyses (McBE's judge validation), and of its rows that are
# there twice.
SHARE, TWICE = 0.1, 0.1
MARK = "human"
ANALYSIS_COLUMNS = ("key", "item_id", "prompt", "reference", "analysis", "question", MARK)


def write_sheet(runs: Sequence[Run], path: Path) -> str:
    """Write the sheet of what people mark in these runs, and give what it holds in words.

    Raises:
        BadInput: the runs hold nothing that people mark, or cannot be on one sheet, or the file is there already.
        RunFailed: the file cannot be written.
    """
    benchmarks = {run.benchmark for run in runs}
    if benchmarks == {"mcbe"}:
        sheet = analyses_to_mark(runs, path)
        return (
            f"{sheet.rows:,} analyses to mark in column `{MARK}`, 0 to 100 points: "
            f"{sheet.instances:,} instances by {sheet.models} models, {sheet.twice:,} of them twice"
        )
    if len(runs) > 1:
        raise BadInput(
            f"{', '.join(str(run.folder) for run in runs)}: are runs of {', '.join(sorted(benchmarks))}; only "
            "analyses of McBE by several models stand on one sheet, so give one RUN_DIR"
        )
    return f"{to_mark(runs[0], path):,} replies to mark in column `response`"


def to_mark(run: Run, path: Path) -> int:
    """Write the replies of a run that a judge is to mark, with an empty column `response` for the marks; their number.

    Raises:
        BadInput: nothing in the run is to be marked, or the file is there already.
        RunFailed: the file cannot be written.
    """
    _check_new(path)
    rows = run.records
    room, settings = module("tasks", run.benchmark), run.about["asked"]["settings"]
    wanted = [task for task in room.TASKS if room.judged(task, settings) == "wanted"]
    some = rows[rows.task.isin(wanted) & rows.request.str.startswith("explanation") & (rows.error == "")]
    if some.empty:
        raise BadInput(f"{run.folder}: holds no explanations to mark; ask with --set explanation=yes")
    table = pd.DataFrame(
        {
            "task": some.task.map(cell),
            "item_id": some.item_id.map(cell),
            "request": some.request.str.replace("explanation", "judge", n=1).map(cell),
            "repeat": some["repeat"],
            "prompt": some.prompt.map(cell),
            "reply": some.response.map(cell),
            "response": "",
        }
    )
    _write(table, path)
    return len(table)


class AnalysisSheet(NamedTuple):
    """What a sheet of analyses holds: rows, of which some are there twice, instances and models."""

    rows: int
    twice: int
    instances: int
    models: int


def analyses_to_mark(runs: Sequence[Run], path: Path) -> AnalysisSheet:
    """Write a blind sheet of McBE's bias analyses, with an empty column `human` for 0 to 100 points.

    A tenth of each category's instances, each with the analyses of all models, in random order and
    without the models' names; a tenth of the rows stand there twice, which shows how far a person
    agrees with himself. A model that several runs asked counts once.

    Raises:
        BadInput: the runs have no instance that all models analysed, or the file is there already.
        RunFailed: the file cannot be written.
    """
    _check_new(path)
    parts = [analyses(run) for run in {run.model: run for run in reversed(runs)}.values()]
    common = set.intersection(*(set(part.item_id) for part in parts))
    if not common:
        raise BadInput(
            f"{', '.join(str(run.folder) for run in runs)}: have no instance that all models analysed; "
            "give runs of McBE's task ba over the same data"
        )
    dice = random.Random("analyses:" + "\0".join(sorted(run.model for run in runs)))
    items = runs[0].items
    items = items[items.item_id.isin(common)].set_index("item_id")
    drawn = [
        item
        for _, category in items.groupby("category", sort=True)
        for item in dice.sample(sorted(category.index), math.ceil(SHARE * len(category)))
    ]
    rows = [row for part in parts for row in part[part.item_id.isin(drawn)].to_dict("records")]
    rows.sort(key=lambda row: str(row["key"]))
    again = dice.sample(rows, math.ceil(TWICE * len(rows)))
    rows += [{**row, "key": row["second_key"]} for row in again]
    dice.shuffle(rows)
    points = ", ".join(f"{c.name.replace('_', ' ')} {c.maximum * c.weight:g}" for c in CRITERIA)
    question = f"How many points of 100 does the analysis get, held against the reference? {points}."
    table = pd.DataFrame(
        {
            "key": [row["key"] for row in rows],
            "item_id": [cell(row["item_id"]) for row in rows],
            "prompt": [cell(row["prompt"]) for row in rows],
            "reference": [cell(items.explanation[row["item_id"]]) for row in rows],
            "analysis": [analysis_cell(row["analysis"]) for row in rows],
            "question": question,
            MARK: "",
        }
    )
    _write(table, path)
    return AnalysisSheet(len(rows), len(again), len(drawn), len(parts))


def analyses(run: Run) -> pd.DataFrame:
    """Give a run's bias analyses: `item_id`, `prompt`, `analysis`, and their keys on sheets.

    Only the first repeat; `second_key` is that of a row that stands on a sheet for the second time.
    """
    rows = run.records
    wanted = (rows.task == "ba") & (rows.request == "answer") & (rows.error == "") & (rows.repeat == 0)
    found = rows.loc[wanted, ["item_id", "prompt"]].assign(analysis=rows.response[wanted].map(final))
    found = found[found.analysis.str.strip() != ""]
    texts = list(zip(found.item_id, found.analysis, strict=True))
    return found.assign(
        key=[_key(run.model, *text, "first") for text in texts],
        second_key=[_key(run.model, *text, "second") for text in texts],
    )


def analysis_cell(analysis: str) -> str:
    """Give an analysis as it stands on a sheet."""
    return _short(cell(analysis))


def readings_to_check(run: Run, path: Path) -> int:
    """Write a blind sheet of a run's replies with an empty column for what a person reads; their number.

    The replies are drawn at random, in equal parts from each task's answers and judge's marks; the
    same ones each time. What the reader read does not stand on the sheet.

    Raises:
        BadInput: no reply of the run was read as text, or the file is there already.
        RunFailed: the file cannot be written.
    """
    _check_new(path)
    rows = _readable(run)
    if rows.empty:
        raise BadInput(
            f"{run.folder}: holds no reply whose words were read (letters, likelihoods and labels of a "
            "classifier need no reading); give a run with --read text"
        )
    dice = random.Random(f"readings:{run.about.get('identity', run.model)}")
    kinds = rows.groupby(["task", rows.request.map(_of_judge)], sort=False)
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
            "prompt": sheet.prompt.map(cell).map(_short),
            "reply": sheet.response.map(cell).map(_short),
            "allowed": [cell(_allowed(values)) for values in sheet["values"]],
            READING: "",
        }
    )
    _write(table, path)
    return len(table)


class CheckedReadings(NamedTuple):
    """What a person's sheet of readings says: `bench.metrics.readings.precision`, and how much is filled in."""

    precision: pd.DataFrame
    filled: int
    rows: int


def check_readings(run: Run, path: Path) -> CheckedReadings:
    """Read a filled-in sheet of readings, keep it in the run's folder, and give the reader's precision.

    Raises:
        BadInput: a cell, a row or the whole file is not that of the sheet that was written.
        RunFailed: the run's folder cannot be written to.
    """
    again = f"and run `bench mark --readings {run.folder} {path}` again"
    rows = read_csv(path, READING_COLUMNS, longest=MAX_LINE)
    total = _check_rows(path, rows, again)
    known = {tuple(str(reply[name]) for name in KEYS): reply for reply in _readable(run).to_dict("records")}
    readings = []
    for place, row in enumerate(rows, start=1):
        key = tuple(unguarded(row[name]) for name in KEYS)
        reply = known.get(key)
        if reply is None or _words(row["reply"]) != _words(_short(cell(reply["response"]))):
            raise BadInput(
                f"{path}, row {place}, column `reply`: {quoted(row['reply'])} is not what {run.folder} "
                f"recorded for {', '.join(key)}; restore it, or write a new sheet by "
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
                "reply_hash": records.reply_hash(reply["response"]),
                "person": person,
            }
        )
    if not readings:
        raise BadInput(f"{path}: no row of column `{READING}` is filled in; fill in some, {again}")
    sheet = {"sheet": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": total}
    records.write_readings(run.folder, {**sheet, "readings": readings})
    return CheckedReadings(precision(run.readings), len(readings), total)


def _readable(run: Run) -> pd.DataFrame:
    """Give the replies out of whose words an answer is read, with the `values` that it may be."""
    rows = run.records
    # A choice by likelihood has log-probabilities; a bare text that was scored or labelled has no wording.
    asked = ~rows.prompt_version.str.startswith("none:")
    rows = rows[(rows.error == "") & rows.logprobs.isna() & asked]
    items = {item.item_id: item for item in run.items.itertuples(index=False)}
    values = module("tasks", run.benchmark).readable_values
    rows = rows.assign(
        values=[values(row.task, row.request, items[row.item_id]) for row in rows.itertuples()]
    )
    return rows[rows["values"].map(len) > 0]


def _check_rows(path: Path, rows: Sequence[Row], again: str) -> int:
    """Give how many rows the sheet had when it was written, after checking that all are there, each once."""
    places: dict[int, int] = {}
    totals = set()
    for place, row in enumerate(rows, start=1):
        numbered = re.fullmatch(r"([0-9]{1,6}) of ([0-9]{1,6})", row["row"].strip())
        if not numbered or int(numbered[1]) in places:
            wrong = "stands there twice" if numbered else "is not a row's number, such as 3 of 100"
            raise BadInput(
                f"{path}, row {place}, column `row`: {quoted(row['row'])} {wrong}; restore it, {again}"
            )
        places[int(numbered[1])] = place
        totals.add(int(numbered[2]))
    total = max(totals, default=0)
    missing = [k for k in range(1, total + 1) if k not in places]
    if missing or len(totals) != 1:
        raise BadInput(
            f"{path}: has {len(rows)} of {total} rows, {missing[0] if missing else 'one'} of {total} is "
            f"missing; put it back (a row that is not read yet stays empty in `{READING}`), {again}"
        )
    return total


def _person(given: str, values: Mapping[str, str] | range) -> str | None:
    """Give what a person read as the reader would say it, "" for no answer; None for what is not allowed."""
    text = plain(given).strip().casefold()
    if text == NO_ANSWER:
        return ""
    if isinstance(values, range):
        rating = number(text)
        return f"{rating:g}" if values[0] <= rating <= values[-1] else None
    return {plain(name).strip().casefold(): value for name, value in values.items()}.get(text)


def _allowed(values: Mapping[str, str] | range) -> str:
    if isinstance(values, range):
        return f"a number from {values[0]} to {values[-1]}, or {NO_ANSWER}"
    return ", ".join([*values, NO_ANSWER])


def _check_new(path: Path) -> None:
    if path.exists():
        raise BadInput(f"{path}: is there already, perhaps with marks; give another file")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written (there is no folder {path.parent})")


def _write(table: pd.DataFrame, path: Path) -> None:
    # With a byte order mark, so that spreadsheet programs take it for UTF-8.
    try:
        with whole(path) as draft:
            draft.write_text(as_csv(table), "utf-8-sig", newline="")
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written ({error})") from None


def _short(text: str) -> str:
    """Give a text that fits a cell: of a longer one the beginning and the end."""
    if len(text) <= LONGEST_CELL:
        return text
    half = LONGEST_CELL // 2 - 50
    return f"{text[:half]} […{len(text) - 2 * half:,} characters left out…] {text[-half:]}"


def _words(text: str) -> list[str]:
    """Give a cell's words: spreadsheet programs change line ends and blanks."""
    return text.split()


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _of_judge(request: str) -> bool:
    return request.startswith("judge")


def cell(text: str) -> str:
    """A text as it stands in the table: no formula, in characters that can be seen, which a table can hold."""
    return guarded(visible(text))
