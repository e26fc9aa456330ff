"""CBBQ: multiple-choice questions about social groups in Chinese."""

from pathlib import Path

from bench.benchmarks.base import LREC_COLING_2024, Metadata, Paper, Release, of_modules
from bench.benchmarks.cbbq import items, official_wording, templates
from bench.benchmarks.cbbq import requests as questions
from bench.core.places import NOTEBOOKS

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

BENCHMARK = of_modules(METADATA, items, questions)
