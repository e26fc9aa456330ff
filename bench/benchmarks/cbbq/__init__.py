"""CBBQ: multiple-choice questions about social groups in Chinese."""

from pathlib import Path

from bench.benchmarks.base import PackagedBenchmark, read_metadata, settings_of_data
from bench.benchmarks.cbbq import items, official_wording
from bench.benchmarks.cbbq import requests as questions


class CBBQ(PackagedBenchmark):
    metadata = read_metadata(
        Path(__file__).parent,
        items.fault,
        prompts=official_wording.OFFICIAL,
        reply_limit=questions.reply_limit,
    )
    tasks = questions.TASKS
    settings = settings_of_data(items.SETTINGS) | questions.SETTINGS
    files = staticmethod(items.files)
    load = staticmethod(items.load)
    requests = staticmethod(questions.requests)
    parse = staticmethod(questions.parse)
    parse_by = ("ans0", "ans1", "ans2")
    values = staticmethod(questions.values)


BENCHMARK = CBBQ()
