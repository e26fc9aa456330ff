"""Cases of tests that are tables, in files next to the tests."""

import json
from pathlib import Path

import pandas as pd
import pytest


def table(file, name):
    """Read the table `name` next to `file`; every cell is a text."""
    return pd.read_csv(Path(file).with_name(name), keep_default_na=False, dtype=str)


def json_lines(file, name):
    """Read the objects of the JSON Lines `name` next to `file`."""
    return [json.loads(line) for line in Path(file).with_name(name).read_text("utf-8").splitlines()]


def cases(file, name):
    """Parametrize a test by `case`, a row of the table `name` next to `file`."""
    rows = table(file, name).to_dict("records")
    return pytest.mark.parametrize("case", rows, ids=range(1, len(rows) + 1))


def pairs(cell):
    """Read `name=value` pairs with blanks between them."""
    return {name: value for name, _, value in (pair.partition("=") for pair in cell.split())}
