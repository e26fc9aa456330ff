"""McBE: instances of bias in Chinese, asked in five tasks."""

from pathlib import Path

from bench.benchmarks.base import Metadata, Paper, Release, of_modules
from bench.benchmarks.mcbe import items, official_wording
from bench.benchmarks.mcbe import requests as questions
from bench.core.places import NOTEBOOKS

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

BENCHMARK = of_modules(METADATA, items, questions)
