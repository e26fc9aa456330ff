"""CBBQ: multiple-choice questions about social groups in Chinese."""

from pathlib import Path

from bench.benchmarks.base import of_modules, read_metadata
from bench.benchmarks.cbbq import items, official_wording, templates
from bench.benchmarks.cbbq import requests as questions

METADATA = read_metadata(
    Path(__file__).parent,
    templates.CATEGORY_LABELS,
    items.fault,
    prompts=official_wording.OFFICIAL,
    reply_limit=questions.reply_limit,
)

BENCHMARK = of_modules(METADATA, items, questions)
