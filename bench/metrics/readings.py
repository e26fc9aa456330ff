"""How far the program that reads replies agrees with a person who read the same replies.

Rows have `task`, `reader` and `person`: what each of them read in a reply, "" for no answer.
"""

import math
from typing import Any

import pandas as pd
import scipy

from bench.core.numbers import decimals
from bench.metrics.table import ALL


def precision(readings: pd.DataFrame) -> pd.DataFrame:
    """Compute the reader's precision over all tasks (`all`, first) and in each task.

    Returns:
        `task`, `replies`, `read` (replies in which the reader read an answer), `right` (those in
        which the person read the same), `precision` (right / read), `ci_low`, `ci_high` (its exact
        95 % interval, Clopper and Pearson, 1934), `misread` (the person read another answer),
        `read_though_none` (the person read none), `unread` (the person read an answer that the
        reader did not). Precision is NaN where the reader read nothing.
    """
    rows = []
    for task, part in [(ALL, readings), *readings.groupby("task", sort=False)]:
        read, answered, same = part.reader != "", part.person != "", part.reader == part.person
        n, right = int(read.sum()), int((read & same).sum())
        low, high = math.nan, math.nan
        if n:
            low, high = scipy.stats.binomtest(right, n).proportion_ci(method="exact")
        rows.append(
            {
                "task": str(task),
                "replies": len(part),
                "read": n,
                "right": right,
                "precision": right / n if n else math.nan,
                "ci_low": low,
                "ci_high": high,
                "misread": int((read & answered & ~same).sum()),
                "read_though_none": int((read & ~answered).sum()),
                "unread": int((~read & answered).sum()),
            }
        )
    return pd.DataFrame(rows)


def precision_note(task: Any) -> str:
    """Write the note of a score from a row of `precision`."""
    if not task.read:
        return (
            f"readings checked by hand: none of {task.replies} replies was read, "
            f"{task.unread} of them with an answer"
        )
    bounds = f"{decimals(100 * task.ci_low)} to {decimals(100 * task.ci_high)}"
    return (
        f"readings checked by hand: {task.right} of {task.read} right, 95 % interval {bounds} "
        f"({task.misread} misread, {task.read_though_none} read though none, {task.unread} unread)"
    )
