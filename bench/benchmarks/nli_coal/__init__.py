"""NLI-CoAL: natural language inference about occupations, in English, Japanese and Chinese."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.benchmarks.base import Benchmark, read_metadata, settings_of_data
from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal import requests as questions

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics


class NLICoAL(Benchmark):
    metadata = read_metadata(Path(__file__).parent, items.CATEGORY_LABELS)
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS)
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("category",)
    values = staticmethod(questions.values)

    # We import what needs pandas when it is needed.

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.benchmarks.nli_coal.checks import RELEASED, RULES, rows
        from bench.data.checks import check_tables

        return check_tables(self, folder, rows(folder, **settings), RULES, RELEASED)

    @property
    def metrics(self) -> "Metrics":
        from bench.benchmarks.nli_coal.scores import METRICS

        return METRICS

    def scoring(
        self,
        records: "pd.DataFrame",
        items: "pd.DataFrame",
        preset: str,
        common: Sequence[str] = (),
    ) -> "Scoring":
        from bench.benchmarks.nli_coal.scores import scoring

        return scoring(records, items, preset, common)


BENCHMARK = NLICoAL()
