"""Cases of tests that are tables, in CSV files next to the tests."""

from pathlib import Path

import pandas as pd
import pytest


def table(file, name):
    """Read the table `name` next to `file`; every cell is a text."""
    return pd.read_csv(Path(file).with_name(name), keep_default_na=False, dtype=str)


def cases(file, name):
    """Parametrize a test by `case`, a row of the table `name` next to `file`."""
    rows = table(file, name).to_dict("records")
    return pytest.mark.parametrize("case", rows, ids=range(1, len(rows) + 1))


def pairs(cell):
    """Read `name=value` pairs with blanks between them."""
    return {name: value for name, _, value in (pair.partition("=") for pair in cell.split())}
