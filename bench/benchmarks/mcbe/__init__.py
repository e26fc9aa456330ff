"""McBE: instances of bias in Chinese, asked in five tasks."""

from pathlib import Path

from bench.benchmarks.base import of_modules, read_metadata
from bench.benchmarks.mcbe import items, official_wording
from bench.benchmarks.mcbe import requests as questions

METADATA = read_metadata(
    Path(__file__).parent,
    items.CATEGORY_LABELS,
    arrange=items.arrange,
    prompts=official_wording.OFFICIAL,
)

BENCHMARK = of_modules(METADATA, items, questions)
