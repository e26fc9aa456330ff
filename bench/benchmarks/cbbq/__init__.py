"""CBBQ: multiple-choice questions about social groups in Chinese."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.benchmarks.base import (
    LREC_COLING_2024,
    Benchmark,
    Metadata,
    Paper,
    Release,
    loader_settings,
)
from bench.benchmarks.cbbq import items, official_wording, templates
from bench.benchmarks.cbbq import requests as questions
from bench.core.places import NOTEBOOKS

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics

METADATA = Metadata(
    name="cbbq",
    title="CBBQ",
    homepage="https://github.com/YFHuangxxxx/CBBQ",
    licence="CC-BY-SA-4.0",
    paper=Paper(
        ("Yufei Huang", "Deyi Xiong"),
        "CBBQ: A Chinese Bias Benchmark Dataset Curated with Human-AI Collaboration for Large "
        "Language Models",
        LREC_COLING_2024,
        2024,
        "https://aclanthology.org/2024.lrec-main.260",
    ),
    folder=Path(__file__).parent,
    layout="CATEGORY/ambiguous/ and CATEGORY/disambiguous/ with templates_generate_neg.csv and "
    "templates_generate_nonneg.csv, or all templates in rows.csv",
    categories=templates.CATEGORY_LABELS,
    language="zh",
    units="scenes",
    notebook=NOTEBOOKS / "cbbq.ipynb",
    release=Release(
        "github",
        "YFHuangxxxx/CBBQ",
        "95eaf2eeaa0b936f3e97e3424f134e9d7655da98",
        row_columns=templates.INSTANCE_COLUMNS,
        place_of_rows=items.place_of_rows,
        prompts=official_wording.OFFICIAL,
        reply_limit=questions.reply_limit,
    ),
    fault=items.fault,
)


class Cbbq(Benchmark):
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
        from bench.benchmarks.cbbq.audit import check

        return check(folder, **settings)

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
        from bench.benchmarks.cbbq import scores

        return scores.scoring(records, items, preset)


BENCHMARK = Cbbq()
