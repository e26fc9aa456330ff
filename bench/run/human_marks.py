"""Write sheets of replies that people mark by hand, and read them back.

Explanations (`to_mark`): a person is the judge; `--judge replay:FILE.csv` reads the sheet.
Analyses (`analyses_to_mark`): people mark what a judge has marked; the notebook `judge_agreement`
reads the sheet. Sheets of what the reader of replies read are in `bench.run.readings`.
"""

import hashlib
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.benchmarks import module
from bench.core.cells import as_csv, guarded, to_number
from bench.core.errors import BadInput, RunFailed, quoted
from bench.core.files import atomic_path
from bench.core.i18n import _
from bench.core.text import reveal_invisible
from bench.data.readers import MAX_LINE, read_csv
from bench.run.results import Run
from bench.tasks.mcbe import CRITERIA
from bench.tasks.replies import final

# Spreadsheet programs cut a cell of more than 32,767 characters.
LONGEST_CELL = 32_000
# The share of instances on a sheet of analyses (McBE's judge validation), and of its rows that are
# there twice.
SHARE, TWICE = 0.1, 0.1
MARK, HIGHEST_POINTS = "human", 100
ANALYSIS_COLUMNS = ("key", "item_id", "prompt", "reference", "analysis", "question", MARK)


def write_sheet(runs: Sequence[Run], path: Path) -> str:
    """Write the sheet of what people mark in these runs, and give what it holds in words.

    Raises:
        BadInput: the runs hold nothing that people mark, or cannot be on one sheet, or the file is
            there already.
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
            f"{', '.join(str(run.folder) for run in runs)}: are runs of {', '.join(sorted(benchmarks))}; "
            "only analyses of McBE by several models stand on one sheet, so give one RUN_DIR"
        )
    return f"{to_mark(runs[0], path):,} replies to mark in column `response`"


def to_mark(run: Run, path: Path) -> int:
    """Write the explanations of a run, with an empty column `response` for verdicts; their number.

    Raises:
        BadInput: nothing in the run is to be marked, or the file is there already.
        RunFailed: the file cannot be written.
    """
    check_new(path)
    rows = run.records
    room, settings = module("tasks", run.benchmark), run.about["asked"]["settings"]
    wanted = [task for task in room.TASKS if room.judged(task, settings) == "wanted"]
    some = rows[
        rows.task.isin(wanted) & rows.request.str.startswith("explanation") & (rows.error == "")
    ]
    if some.empty:
        raise BadInput(
            f"{run.folder}: holds no explanations to mark; ask with --set explanation=yes"
        )
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
    write_table(table, path)
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
    check_new(path)
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
        for _unused, category in items.groupby("category", sort=True)
        for item in dice.sample(sorted(category.index), math.ceil(SHARE * len(category)))
    ]
    rows = [row for part in parts for row in part[part.item_id.isin(drawn)].to_dict("records")]
    rows.sort(key=lambda row: str(row["key"]))
    again = dice.sample(rows, math.ceil(TWICE * len(rows)))
    rows += [{**row, "key": row["second_key"]} for row in again]
    dice.shuffle(rows)
    weights = {c.name.replace("_", " "): c.maximum * c.weight for c in CRITERIA}
    question = _(
        "How many points of 100 does the analysis get, held against the reference? {criteria}.",
        criteria=_(", ").join(f"{_(name)} {n:g}" for name, n in weights.items()),
    )
    table = pd.DataFrame(
        {
            "key": [row["key"] for row in rows],
            "item_id": [cell(row["item_id"]) for row in rows],
            "prompt": [cell(row["prompt"]) for row in rows],
            "reference": [cell(items.explanation[row["item_id"]]) for row in rows],
            "analysis": [shortened(cell(row["analysis"])) for row in rows],
            "question": question,
            MARK: "",
        }
    )
    write_table(table, path)
    return AnalysisSheet(len(rows), len(again), len(drawn), len(parts))


def analyses(run: Run) -> pd.DataFrame:
    """Give a run's bias analyses: `item_id`, `prompt`, `analysis`, and their keys on sheets.

    Only the first repeat; `second_key` is that of a row that stands on a sheet for the second time.
    """
    rows = run.records
    wanted = (
        (rows.task == "ba") & (rows.request == "answer") & (rows.error == "") & (rows.repeat == 0)
    )
    found = rows.loc[wanted, ["item_id", "prompt"]].assign(
        analysis=rows.response[wanted].map(final)
    )
    found = found[found.analysis.str.strip() != ""]
    texts = list(zip(found.item_id, found.analysis, strict=True))
    return found.assign(
        key=[_key(run.model, *text, "first") for text in texts],
        second_key=[_key(run.model, *text, "second") for text in texts],
    )


def read_analyses(runs: Sequence[Run], path: Path) -> pd.DataFrame:
    """Read a person's points from a sheet of analyses: `item_id`, `model`, `second`, `human`.

    `human` is NaN where a row is not marked yet; rows of other runs are passed over.

    Raises:
        BadInput: a cell is not a number of points, an analysis was changed, or a row stands there
            twice.
    """
    known: dict[str, tuple[str, str, str, bool]] = {}
    for run in runs:
        for own in analyses(run).to_dict("records"):
            for name, second in (("key", False), ("second_key", True)):
                known[own[name]] = (own["item_id"], run.model, own["analysis"], second)
    again = "and open the notebook judge_agreement again"
    rows, keys = [], set()
    for place, row in enumerate(read_csv(path, ANALYSIS_COLUMNS, longest=MAX_LINE), start=1):
        key, given = row["key"].strip(), row[MARK].strip()
        points = to_number(given)
        if given and not 0 <= points <= HIGHEST_POINTS:
            raise BadInput(
                f"{path}, row {place}, column `{MARK}`: {quoted(given)} is not allowed; allowed: a "
                f"number from 0 to {HIGHEST_POINTS}, or nothing where a row is not marked; correct "
                f"it, {again}"
            )
        if key in keys:
            raise BadInput(
                f"{path}, row {place}, column `key`: {quoted(key)} stands there twice; remove one, {again}"
            )
        keys.add(key)
        if key not in known:
            continue
        item, model, analysis, second = known[key]
        if not same_cell(row["analysis"], analysis):
            raise BadInput(
                f"{path}, row {place}, column `analysis`: {quoted(row['analysis'])} is not what the "
                f"model wrote about {item}; restore it, {again}"
            )
        rows.append((item, model, second, points))
    return pd.DataFrame(rows, columns=["item_id", "model", "second", MARK])


def check_new(path: Path) -> None:
    """Refuse a sheet that is there already, or whose folder is not.

    Raises:
        BadInput: it cannot be written.
    """
    if path.exists():
        raise BadInput(f"{path}: is there already, perhaps with marks; give another file")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written (there is no folder {path.parent})")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a sheet.

    Raises:
        RunFailed: it cannot be written.
    """
    # With a byte order mark, so that spreadsheet programs take it for UTF-8.
    try:
        with atomic_path(path) as draft:
            draft.write_text(as_csv(table), "utf-8-sig", newline="")
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written ({error})") from None


def shortened(text: str) -> str:
    """Give a text that fits a cell: of a longer one the beginning and the end."""
    if len(text) <= LONGEST_CELL:
        return text
    half = LONGEST_CELL // 2 - 50
    return f"{text[:half]} […{len(text) - 2 * half:,} characters left out…] {text[-half:]}"


def same_cell(given: str, text: str) -> bool:
    """Say whether a cell that came back holds `text`, but for blanks and line ends."""
    return given.split() == shortened(cell(text)).split()


def _key(*parts: str) -> str:
    """Give a name that tells nothing, in letters alone: spreadsheet programs change numbers."""
    digits = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return digits.translate(str.maketrans("0123456789abcdef", "ghijklmnopqrstuv"))


def cell(text: str) -> str:
    """Give a text as a sheet holds it: no formula, and only characters that can be seen."""
    return guarded(reveal_invisible(text))
