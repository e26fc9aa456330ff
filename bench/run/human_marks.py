"""Write sheets of replies that people grade, and read them back.

Explanations of CBBQ: a person is the judge; `--judge replay:FILE.csv` reads this sheet. Analyses of
McBE: people grade the same analyses as a judge; the notebook `judge_agreement` reads this sheet.
"""

import hashlib
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pandas as pd

from bench.benchmarks import get
from bench.benchmarks.mcbe.requests import CRITERIA
from bench.core.cells import as_csv, guarded, to_number
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_path, explain_write_errors
from bench.core.text import reveal_invisible
from bench.data.readers import TableRow, read_table
from bench.run.results import KEYS, Run, all_items
from bench.tasks.replies import final

# Spreadsheet programs truncate a cell of more than 32,767 characters.
MAX_CELL_CHARS = 32_000
INSTANCE_SHARE = 0.1  # on a sheet of analyses, as in McBE's judge validation
DUPLICATE_SHARE = 0.1  # of the rows
MARK = "human"
MAX_POINTS = 100
ANALYSIS_COLUMNS = ("key", "item_id", "prompt", "reference", "analysis", "question", MARK)


def write_sheet(runs: Sequence[Run], path: Path) -> str:
    """Write the sheet for these runs, and return its description."""
    benchmarks = sorted({run.benchmark for run in runs})
    if benchmarks == ["mcbe"]:
        return _write_analyses(runs, path)
    if len(runs) > 1:
        raise BadInput(
            f"{_folders(runs)}: are runs of {', '.join(benchmarks)}; only analyses of McBE by "
            "several models can be on one sheet, so give one RUN_DIR"
        )
    return _write_explanations(runs[0], path)


def _write_explanations(run: Run, path: Path) -> str:
    """Write the explanations of a run with an empty column `response`."""
    rows, known = run.records, get(run.benchmark).tasks
    settings = run.metadata["asked"]["settings"]
    tasks = [name for name, task in known.items() if task.judged(settings) == "wanted"]
    is_explanation = rows.request.str.startswith("explanation") & (rows.error == "")
    rows = rows[rows.task.isin(tasks) & is_explanation]
    if rows.empty:
        raise BadInput(
            f"{run.folder}: holds no explanations to mark; ask with --set explanation=yes"
        )
    request = rows.request.str.replace("explanation", "judge", n=1)
    rows = rows.assign(request=request, reply=rows.response, response="")
    write_table(rows[[*KEYS, "prompt", "reply", "response"]], path)
    return f"{len(rows):,} replies to mark in column `response`"


def _write_analyses(runs: Sequence[Run], path: Path) -> str:
    """Write a blind sheet of McBE's bias analyses, with an empty column `human` for 0-100 points.

    This sheet has a tenth of each category's instances, each with the analyses of all models, in
    random order and without the models' names. A tenth of the rows appear twice, to measure how far
    a person agrees with himself. We use one run of each model.
    """
    parts = [analyses(run) for run in {run.model: run for run in reversed(runs)}.values()]
    common = set.intersection(*(set(part.item_id) for part in parts))
    if not common:
        raise BadInput(
            f"{_folders(runs)}: have no instance that all models analysed; give runs of McBE's "
            "task ba over the same data"
        )
    rng = random.Random("analyses:" + "\0".join(sorted(run.model for run in runs)))
    items = all_items(runs)
    items = items[items.item_id.isin(common)].set_index("item_id")
    sample = [
        item
        for _name, category in items.groupby("category", sort=True)
        for item in rng.sample(sorted(category.index), math.ceil(INSTANCE_SHARE * len(category)))
    ]
    rows = [row for part in parts for row in part[part.item_id.isin(sample)].to_dict("records")]
    rows.sort(key=lambda row: str(row["key"]))
    again = rng.sample(rows, math.ceil(DUPLICATE_SHARE * len(rows)))
    rows += [{**row, "key": row["second_key"]} for row in again]
    rng.shuffle(rows)
    points = {c.name.replace("_", " "): c.maximum * c.weight for c in CRITERIA}
    criteria = ", ".join(f"{name} {n:g}" for name, n in points.items())
    question = (
        f"How many points of 100 does the analysis get, compared with the reference? {criteria}."
    )
    table = pd.DataFrame(rows)
    reference = table.item_id.map(items.explanation)
    table = table.assign(reference=reference, question=question, **{MARK: ""})
    write_table(table[list(ANALYSIS_COLUMNS)], path)
    return (
        f"{len(rows):,} analyses to mark in column `{MARK}`, 0 to 100 points: {len(sample):,} "
        f"instances by {len(parts)} models, {len(again):,} of them twice"
    )


def analyses(run: Run) -> pd.DataFrame:
    """Return a run's bias analyses: `item_id`, `prompt`, `analysis`, and their keys on sheets.

    This reads the first repeat only. `second_key` is the key of the duplicate row.
    """
    rows = run.records
    rows = rows[
        (rows.task == "ba") & (rows.request == "answer") & (rows.error == "") & (rows.repeat == 0)
    ]
    rows = rows[["item_id", "prompt"]].assign(analysis=rows.response.map(final))
    rows = rows[rows.analysis.str.strip() != ""]
    texts = list(zip(rows.item_id, rows.analysis, strict=True))
    return rows.assign(
        key=[_key(run.model, *text, "first") for text in texts],
        second_key=[_key(run.model, *text, "second") for text in texts],
    )


def read_analyses(runs: Sequence[Run], path: Path) -> pd.DataFrame:
    """Read a person's points from a sheet of analyses: `item_id`, `model`, `second`, `human`.

    `human` is NaN for a row without a grade. We skip rows of other runs.
    """
    known = {
        row[name]: (row["item_id"], run.model, row["analysis"], name == "second_key")
        for run in runs
        for row in analyses(run).to_dict("records")
        for name in ("key", "second_key")
    }
    rows, keys = [], set()

    def refuse(row: TableRow, name: str, value: str, reason: str) -> NoReturn:
        again = "and open the notebook judge_agreement again"
        raise BadInput(
            f"{path}, row {row.number}, column `{name}`: {quoted(value)} {reason}, {again}"
        )

    for row in read_table(path, ANALYSIS_COLUMNS, replies=True):
        key, given = row["key"].strip(), row[MARK].strip()
        points = to_number(given)
        if given and not 0 <= points <= MAX_POINTS:
            allowed = f"a number from 0 to {MAX_POINTS}, or nothing if a row is not marked"
            refuse(row, MARK, given, f"is not allowed; allowed: {allowed}; correct it")
        if key in keys:
            refuse(row, "key", key, "stands there twice; remove one")
        keys.add(key)
        if key not in known:
            continue
        item, model, analysis, second = known[key]
        # Spreadsheet programs change spaces and line ends.
        if row["analysis"].split() != shortened(cell(analysis)).split():
            reason = f"is not the model's analysis of {item}; restore it"
            refuse(row, "analysis", row["analysis"], reason)
        rows.append((item, model, second, points))
    return pd.DataFrame(rows, columns=["item_id", "model", "second", MARK])


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a new sheet, with a byte order mark, so that spreadsheet programs read it as UTF-8.

    We escape formulas, and shorten a text that is too long for a cell.
    """
    if path.exists():
        raise BadInput(f"{path}: is there already, perhaps with marks; give another file")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written (there is no folder {path.parent})")
    table = table.map(lambda text: shortened(cell(text)) if isinstance(text, str) else text)
    with explain_write_errors(path), atomic_path(path) as draft:
        draft.write_text(as_csv(table), "utf-8-sig", newline="")


def shortened(text: str) -> str:
    """Shorten a text that is too long for a cell to its beginning and end."""
    if len(text) <= MAX_CELL_CHARS:
        return text
    half = MAX_CELL_CHARS // 2 - 50
    return f"{text[:half]} […{len(text) - 2 * half:,} characters left out…] {text[-half:]}"


def cell(text: str) -> str:
    """Return a text for a cell: no formula, and only visible characters."""
    return guarded(reveal_invisible(text))


def _folders(runs: Sequence[Run]) -> str:
    return ", ".join(str(run.folder) for run in runs)


def _key(*parts: str) -> str:
    """Hash parts into letters, because spreadsheet programs change numbers."""
    digits = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return digits.translate(str.maketrans("0123456789abcdef", "ghijklmnopqrstuv"))
