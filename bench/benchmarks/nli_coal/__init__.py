"""NLI-CoAL: natural language inference about occupations, in English, Japanese and Chinese."""

from pathlib import Path

from bench.benchmarks.base import PackagedBenchmark, read_metadata, settings_of_data
from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal import requests as questions


class NLICoAL(PackagedBenchmark):
    metadata = read_metadata(Path(__file__).parent)
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS)
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("category",)
    values = staticmethod(questions.values)


BENCHMARK = NLICoAL()
