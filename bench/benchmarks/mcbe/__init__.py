"""McBE: instances of bias in Chinese, asked in five tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.benchmarks.base import Benchmark, Metadata, Paper, Release, loader_settings
from bench.benchmarks.mcbe import items, official_wording
from bench.benchmarks.mcbe import requests as questions
from bench.core.places import NOTEBOOKS

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics

METADATA = Metadata(
    name="mcbe",
    title="McBE",
    homepage="https://huggingface.co/datasets/Velikaya/McBE",
    licence="Apache-2.0",
    paper=Paper(
        (
            "Tian Lan",
            "Xiangdong Su",
            "Xu Liu",
            "Ruirui Wang",
            "Ke Chang",
            "Jiang Li",
            "Guanglai Gao",
        ),
        "McBE: A Multi-task Chinese Bias Evaluation Benchmark for Large Language Models",
        "Findings of the Association for Computational Linguistics: ACL 2025",
        2025,
        "https://aclanthology.org/2025.findings-acl.313",
    ),
    folder=Path(__file__).parent,
    layout="gender.xlsx or gender.csv and so on, in the folder itself or in its xlsx_files/ or "
    "csv_files/",
    categories=items.CATEGORY_LABELS,
    language="zh",
    units="instances",
    notebook=NOTEBOOKS / "mcbe.ipynb",
    # The card names its commit only as an abbreviation (ec8bd87), which the Hub does not take.
    release=Release(
        "hub",
        "Velikaya/McBE",
        tolerant={"bad_rows": "leave_out"},
        arrange=items.arrange,
        row_columns=items.COLUMNS,
        place_of_rows=items.place_of_rows,
        prompts=official_wording.OFFICIAL,
    ),
)


class Mcbe(Benchmark):
    metadata = METADATA
    tasks = questions.TASKS
    settings = loader_settings(items.SETTINGS) | questions.SETTINGS
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    texts = staticmethod(items.texts)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    values = staticmethod(questions.values)

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.benchmarks.mcbe.audit import check

        return check(folder, **settings)

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
        from bench.benchmarks.mcbe import scores

        return scores.scoring(records, items, preset, common or scores.COMMON)


BENCHMARK = Mcbe()
