"""Scores that papers print of models in several sizes, to stand beside one's own: `samples/published.csv`.

They are other items, another wording and another way to read answers than those of a run here, so they show a shape, not a level.
"""

from pathlib import Path

import pandas as pd

from bench.benchmarks import resolve
from bench.data import SAMPLES

PATH = SAMPLES / "published.csv"


def published(benchmark: str, path: str | Path = PATH) -> pd.DataFrame:
    """The published scores of a benchmark: a row a model and score, with its `source` and what speaks for `caution`.

    Returns:
        Columns `series`, `model`, `billions` (of parameters), `category`, `task`, `metric`, `score`, `source`, `caution`.
    """
    table = pd.read_csv(path, comment="#", keep_default_na=False)
    return table[table.benchmark == resolve(benchmark)].drop(columns="benchmark").reset_index(drop=True)
