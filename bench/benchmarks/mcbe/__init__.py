"""McBE: instances of bias in Chinese, asked in five tasks."""

from pathlib import Path

from bench.benchmarks.base import PackagedBenchmark, read_metadata, settings_of_data
from bench.benchmarks.mcbe import items, official_wording
from bench.benchmarks.mcbe import requests as questions


class McBE(PackagedBenchmark):
    metadata = read_metadata(
        Path(__file__).parent, arrange=items.arrange, prompts=official_wording.OFFICIAL
    )
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS) | questions.SETTINGS
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("category",)  # which has the labels
    values = staticmethod(questions.values)


BENCHMARK = McBE()
