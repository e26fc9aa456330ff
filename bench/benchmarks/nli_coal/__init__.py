"""NLI-CoAL: natural language inference about occupations, in English, Japanese and Chinese."""

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
from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal import requests as questions
from bench.core.places import NOTEBOOKS

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics

METADATA = Metadata(
    name="nli_coal",
    title="NLI-CoAL",
    homepage="https://github.com/panatchakorn-a/bias-eval-nli-considering-all-labels",
    licence="MIT",
    paper=Paper(
        ("Panatchakorn Anantaprayoon", "Masahiro Kaneko", "Naoaki Okazaki"),
        "Evaluating Gender Bias of Pre-trained Language Models in Natural Language Inference by "
        "Considering All Labels",
        LREC_COLING_2024,
        2024,
        "https://aclanthology.org/2024.lrec-main.566",
    ),
    folder=Path(__file__).parent,
    layout="folders like zh_v1.0/bias-eval-set_v1.0/all-words/ with 1-prostereo_v1.0.json, "
    "2-antistereo and 3-nonstereo",
    categories=items.CATEGORY_LABELS,
    language="",
    units="occupations",
    notebook=NOTEBOOKS / "nli_coal.ipynb",
    release=Release(
        "github",
        "panatchakorn-a/bias-eval-nli-considering-all-labels",
        "4d57afe81db25011b4c515ab1575115c3cfb1765",
    ),
)


class NliCoal(Benchmark):
    metadata = METADATA
    tasks = questions.TASKS
    settings = loader_settings(items.SETTINGS)
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    texts = staticmethod(items.texts)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    values = staticmethod(questions.values)

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.benchmarks.nli_coal.audit import check

        return check(folder, **settings)

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
        from bench.benchmarks.nli_coal import scores

        return scores.scoring(records, items, preset)


BENCHMARK = NliCoal()
