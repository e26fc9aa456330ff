"""Examples in docstrings and on pages of docs/ give the output that they print."""

import doctest
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import bench

HOME = Path(__file__).parents[1]
PAGES = [path for path in sorted(HOME.glob("docs/*.md")) if "```pycon" in path.read_text("utf-8")]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [
    ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(HOME.glob("bench/**/*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.fixture(autouse=True)
def wide(own_folder):
    """Print frames as a wide terminal does, in a folder of the test's own."""
    with pd.option_context("display.width", 120, "display.max_columns", 20):
        yield


@pytest.mark.parametrize("name", MODULES)
def test_an_example_of_a_function_gives_what_it_prints(name):
    assert doctest.testmod(import_module(name), optionflags=OPTIONS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_give_what_they_print(page):
    text = page.read_text("utf-8").replace("```pycon\n", "\n").replace("```", "\n")
    test = doctest.DocTestParser().get_doctest(text, {"bench": bench}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    assert result.attempted
    assert result.failed == 0
