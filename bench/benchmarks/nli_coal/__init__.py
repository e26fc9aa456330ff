"""NLI-CoAL: natural language inference about occupations, in English, Japanese and Chinese."""

from pathlib import Path

from bench.benchmarks.base import of_modules, read_metadata
from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal import requests as questions

METADATA = read_metadata(Path(__file__).parent, items.CATEGORY_LABELS)

BENCHMARK = of_modules(METADATA, items, questions)
