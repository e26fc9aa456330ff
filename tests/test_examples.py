"""Examples in docstrings and in docs/statistics.md give the output that they print."""

import doctest
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import bench

PAGE = Path(__file__).parents[1] / "docs/statistics.md"
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [
    "bench.analyses",
    "bench.benchmarks.base",
    "bench.benchmarks.cbbq.outcomes",
    "bench.benchmarks.cbbq.requests",
    "bench.benchmarks.cbbq.templates",
    "bench.benchmarks.mcbe.instances",
    "bench.benchmarks.nli_coal.language_pack",
    "bench.benchmarks.nli_coal.outcomes",
    "bench.benchmarks.nli_coal.scores",
    "bench.config",
    "bench.core.errors",
    "bench.core.files",
    "bench.core.text",
    "bench.data",
    "bench.data.audit",
    "bench.data.dataset",
    "bench.data.readers",
    "bench.data.texts",
    "bench.figures.forest",
    "bench.figures.style",
    "bench.metrics.agreement",
    "bench.metrics.differences",
    "bench.metrics.diversity",
    "bench.metrics.engine",
    "bench.metrics.frames",
    "bench.metrics.friedman",
    "bench.metrics.primary",
    "bench.metrics.significance",
    "bench.metrics.statistics",
    "bench.metrics.table",
    "bench.run",
    "bench.run.costs",
    "bench.run.models",
    "bench.run.outcomes",
    "bench.run.results",
    "bench.scorers",
    "bench.scorers.base",
    "bench.show",
    "bench.tasks.choices",
    "bench.tasks.fence",
    "bench.tasks.nli_labels",
    "bench.tasks.ratings",
    "bench.tasks.replies",
]


@pytest.fixture(autouse=True)
def wide(own_folder):
    """Print frames as a wide terminal does, in a folder of the test's own."""
    with pd.option_context("display.width", 120, "display.max_columns", 20):
        yield


@pytest.mark.parametrize("module", [import_module(name) for name in MODULES], ids=MODULES)
def test_an_example_of_a_function_gives_what_it_prints(module):
    result = doctest.testmod(module, optionflags=OPTIONS)
    assert result.attempted
    assert result.failed == 0


def test_the_examples_of_the_page_on_statistics_give_what_they_print():
    text = PAGE.read_text("utf-8").replace("```pycon\n", "\n").replace("```", "\n")
    test = doctest.DocTestParser().get_doctest(text, {"bench": bench}, PAGE.name, str(PAGE), 0)
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    assert result.attempted
    assert result.failed == 0
