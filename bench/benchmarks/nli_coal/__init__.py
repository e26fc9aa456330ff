"""NLI-CoAL: natural language inference about occupations, in English, Japanese and Chinese."""

from pathlib import Path

from bench.benchmarks.base import LREC_COLING_2024, Metadata, Paper, Release, of_modules
from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal import requests as questions
from bench.core.places import NOTEBOOKS

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

BENCHMARK = of_modules(METADATA, items, questions)
