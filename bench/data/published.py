"""Numbers that papers print, to be shown next to your own: `samples/published.csv`."""

import io
import re
from pathlib import Path

import pandas as pd

from bench.benchmarks import resolve
from bench.core.errors import BadInput
from bench.data import SAMPLES
from bench.data.readers import as_path, check_header, read_lines

PATH = SAMPLES / "published.csv"
COLUMNS = (
    "benchmark",
    "series",
    "model",
    "checkpoint",
    "billions",
    "category",
    "task",
    "metric",
    "score",
    "setting",
    "source",
    "caution",
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def published(benchmark: str, path: str | Path = "") -> pd.DataFrame:
    """Read the published numbers of a benchmark.

    Args:
        path: your own CSV file with the columns of ours, default: ours. Lines that begin with #
            are comments.

    Returns:
        One row per number, in the columns of `COLUMNS` without `benchmark`. `series` names models
        that differ in size alone, `billions` their parameters (NaN where the paper does not say),
        `checkpoint` the model on the Hub, `setting` how the number was made, `caution` what speaks
        against it.

    Raises:
        BadInput: the file is no such table.
    """
    path = Path(path or PATH)
    text = "".join(f"{line}\n" for _, line in read_lines(as_path(path)) if not line.startswith("#"))
    try:
        table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read as CSV ({error})") from None
    check_header(path, [str(name) for name in table.columns], COLUMNS)
    for column, empty_allowed in (("score", False), ("billions", True)):
        for row, cell in enumerate(table[column], start=1):
            if not NUMBER.fullmatch(cell) and not (empty_allowed and cell == ""):
                raise BadInput(f"{path}, row {row}, column `{column}`: {cell!r}; expected a number")
        table[column] = pd.to_numeric(table[column])
    for row, name in enumerate(table.benchmark, start=1):
        try:
            table.loc[row - 1, "benchmark"] = resolve(name)
        except BadInput as error:
            raise BadInput(f"{path}, row {row}, column `benchmark`: {error}") from None
    return (
        table[table.benchmark == resolve(benchmark)]
        .drop(columns="benchmark")
        .reset_index(drop=True)
    )
