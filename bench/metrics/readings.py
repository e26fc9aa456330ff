"""Count how far a reader of replies agrees with a person who read the same replies.

Rows have `task`, `reader` and `person`: what each of them read out of a reply, "" for no answer.
"""

import math
from typing import Any

import pandas as pd
import scipy

from bench.metrics.table import ALL

COLUMNS = (
    "task",
    "replies",
    "read",
    "right",
    "precision",
    "ci_low",
    "ci_high",
    "misread",
    "read_though_none",
    "unread",
)


def precision(readings: pd.DataFrame) -> pd.DataFrame:
    """Give the reader's precision over all tasks (`all`, first) and in each task.

    Returns:
        `task`, `replies`, `read` (replies in which the reader read an answer), `right` (those in
        which the person read the same), `precision` (right / read), `ci_low`, `ci_high` (its exact
        95 % interval, Clopper and Pearson, 1934), `misread` (the person read another answer),
        `read_though_none` (the person read none), `unread` (the person read an answer that the
        reader did not). Precision is NaN where the reader read nothing.
    """
    parts = [(ALL, readings), *readings.groupby("task", sort=False)]
    return pd.DataFrame([_counted(str(task), part) for task, part in parts], columns=list(COLUMNS))


def precision_note(task: Any) -> str:
    """Say what a row of `precision` shows, as it stands beside a score."""
    if not task.read:
        return (
            f"readings checked by hand: none of {task.replies} replies was read, "
            f"{task.unread} of them with an answer"
        )
    bounds = f"{100 * task.ci_low:.0f} to {100 * task.ci_high:.0f}"
    return (
        f"readings checked by hand: {task.right} of {task.read} right, 95 % interval {bounds} "
        f"({task.misread} misread, {task.read_though_none} read though none, {task.unread} unread)"
    )


def _counted(task: str, rows: pd.DataFrame) -> dict[str, object]:
    read, answered = rows.reader != "", rows.person != ""
    right = int((read & (rows.reader == rows.person)).sum())
    n = int(read.sum())
    interval = (
        scipy.stats.binomtest(right, n).proportion_ci(method="exact") if n else (math.nan, math.nan)
    )
    return {
        "task": task,
        "replies": len(rows),
        "read": n,
        "right": right,
        "precision": right / n if n else math.nan,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "misread": int((read & answered & (rows.reader != rows.person)).sum()),
        "read_though_none": int((read & ~answered).sum()),
        "unread": int((~read & answered).sum()),
    }
