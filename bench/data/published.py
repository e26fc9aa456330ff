"""Scores that papers print of models in several sizes, to stand beside one's own: `samples/published.csv`.

They are other items, another wording and another way to read answers than those of a run here, so they show a shape, not a level.
"""

import io
from pathlib import Path

import pandas as pd

from bench.benchmarks import resolve
from bench.data import SAMPLES
from bench.data.tables import check_header
from bench.data.text import Lines, place
from bench.errors import BadInput

PATH = SAMPLES / "published.csv"
COLUMNS = (
    "benchmark",
    "series",
    "model",
    "billions",
    "category",
    "task",
    "metric",
    "score",
    "source",
    "caution",
)


def published(benchmark: str, path: str | Path = PATH) -> pd.DataFrame:
    """The published scores of a benchmark: a row a model and score, with its `source` and what speaks for `caution`.

    Args:
        path: a CSV file of one's own, with the columns of ours; lines that begin with # are passed over.

    Returns:
        Columns `series`, `model`, `billions` (of parameters), `category`, `task`, `metric`, `score`, `source`, `caution`.

    Raises:
        BadInput: the file is no such table.
    """
    text = "".join(line for line in Lines(place(path)) if not line.startswith("#"))
    try:
        table = pd.read_csv(io.StringIO(text), keep_default_na=False)
    except (
        ValueError
    ) as error:  # what pandas says of a table without a header, or of a quote that is left open
        raise BadInput(f"{path}: cannot be read as CSV ({error})") from None
    check_header(Path(path), [str(name) for name in table.columns], COLUMNS)
    for name in ("billions", "score"):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise BadInput(f"{path}, column `{name}`: holds a cell that is no number")
    return table[table.benchmark == resolve(benchmark)].drop(columns="benchmark").reset_index(drop=True)
