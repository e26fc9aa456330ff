"""CBBQ: multiple-choice questions about social groups in Chinese."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.benchmarks.base import Benchmark, read_metadata, settings_of_data
from bench.benchmarks.cbbq import items, official_wording, templates
from bench.benchmarks.cbbq import requests as questions

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics


class CBBQ(Benchmark):
    metadata = read_metadata(
        Path(__file__).parent,
        templates.CATEGORY_LABELS,
        items.fault,
        prompts=official_wording.OFFICIAL,
        reply_limit=questions.reply_limit,
    )
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS) | questions.SETTINGS
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("ans0", "ans1", "ans2")
    values = staticmethod(questions.values)

    # We import what needs pandas when it is needed.

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.benchmarks.cbbq.checks import RELEASED, RULES, rows
        from bench.data.checks import check_tables

        return check_tables(self, folder, rows(folder, **settings), RULES, RELEASED)

    @property
    def metrics(self) -> "Metrics":
        from bench.benchmarks.cbbq.scores import METRICS

        return METRICS

    def scoring(
        self,
        records: "pd.DataFrame",
        items: "pd.DataFrame",
        preset: str,
        common: Sequence[str] = (),
    ) -> "Scoring":
        from bench.benchmarks.cbbq.scores import scoring

        return scoring(records, items, preset, common)


BENCHMARK = CBBQ()
