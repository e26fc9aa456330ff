"""McBE: instances of bias in Chinese, asked in five tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.benchmarks.base import Benchmark, read_metadata, settings_of_data
from bench.benchmarks.mcbe import items, official_wording
from bench.benchmarks.mcbe import requests as questions

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics


class McBE(Benchmark):
    metadata = read_metadata(
        Path(__file__).parent,
        items.CATEGORY_LABELS,
        arrange=items.arrange,
        prompts=official_wording.OFFICIAL,
    )
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS) | questions.SETTINGS
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("category",)  # which has the labels
    values = staticmethod(questions.values)

    # We import what needs pandas when it is needed.

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.benchmarks.mcbe.checks import RELEASED, RULES, rows
        from bench.data.checks import check_tables

        return check_tables(self, folder, rows(folder, **settings), RULES, RELEASED)

    @property
    def metrics(self) -> "Metrics":
        from bench.benchmarks.mcbe.scores import METRICS

        return METRICS

    def scoring(
        self,
        records: "pd.DataFrame",
        items: "pd.DataFrame",
        preset: str,
        common: Sequence[str] = (),
    ) -> "Scoring":
        from bench.benchmarks.mcbe.scores import scoring

        return scoring(records, items, preset, common)


BENCHMARK = McBE()
