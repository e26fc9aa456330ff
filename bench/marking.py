"""Replies to be marked by hand, where a task has a judge and a person is to be the judge.

The table that is written here holds every question to the judge; filled in, `--judge replay:FILE.csv` reads it.
"""

from pathlib import Path

import pandas as pd

from bench.benchmarks import module
from bench.data.cells import guarded
from bench.errors import BadInput, RunFailed
from bench.run import Run
from bench.seen import visible
from bench.whole import whole

COLUMNS = ("task", "item_id", "request", "repeat", "prompt", "reply", "response")


def to_mark(run: Run, path: Path) -> int:
    """Write the replies of a run that a judge is to mark, with an empty column `response` for the marks; their number.

    Raises:
        BadInput: nothing in the run is to be marked, or the file is there already.
        RunFailed: the file cannot be written.
    """
    if path.exists():
        raise BadInput(f"{path}: is there already, perhaps with marks; give another file")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written (there is no folder {path.parent})")
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
    # With a byte order mark, so that spreadsheet programs take it for UTF-8.
    try:
        with whole(path) as draft:
            table.to_csv(draft, index=False, encoding="utf-8-sig")
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written ({error})") from None
    return len(table)


def cell(text: str) -> str:
    """A text as it stands in the table: no formula, in characters that can be seen, which a table can hold."""
    return guarded(visible(text))
