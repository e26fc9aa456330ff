"""Rows of copies from the Hub: what becomes a file name, and what is not a text."""

import pandas as pd
import pytest

from bench import data
from bench.data.fetch import fetch
from tests.helpers.recorded import GOOD, TEMPLATE

pytestmark = pytest.mark.usefixtures("user")
LISTS = ("context", "NAME1", "NAME2")
QUESTION = {name: cell for name, cell in TEMPLATE.items() if name not in LISTS}
QUESTION |= {"context": "甲和丙来了。", "ans0": "甲", "ans1": "丙", "label": "2"}


def copy(folder, *rows, name="test.jsonl"):
    path = folder / "copy" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(list(rows)).to_json(path, orient="records", lines=True)
    return folder / "copy"


NAMES = ["../../x", "/tmp/x", "a/b", "a\\b", "C:x", "a\0", "..", "NUL", "", None]
WRONG = [("mcbe", GOOD | {"category": "age"}, {"category": name}) for name in NAMES]
WRONG += [("cbbq", QUESTION, {"category": name}) for name in NAMES]
WRONG += [("cbbq", QUESTION, {"context_condition": name}) for name in ("ambig", "../x", "/x", None)]


@pytest.mark.parametrize(("benchmark", "row", "change"), WRONG)
def test_a_cell_that_cannot_name_a_file_is_refused_with_its_row(
    tmp_path, refusal, benchmark, row, change
):
    folder = copy(tmp_path, row, row | change)
    message = refusal(fetch, benchmark, folder)
    assert message.startswith(f"{folder}/test.jsonl, row 2")
    assert f"column `{next(iter(change))}`" in message
    assert not [*tmp_path.rglob("*.csv")]


def test_rows_in_a_configuration_of_all_and_in_one_of_its_parts_are_kept_once(tmp_path, capsys):
    rows = [GOOD | {"category": "age", "context": context} for context in ("一", "二", "二")]
    copy(tmp_path, *rows, name="all/test.jsonl")
    folder = copy(tmp_path, *rows[1:], name="part/test.jsonl")
    items = data.load(fetch("mcbe", folder))
    assert [item.context for item in items] == ["一", "二", "二"]
    assert "2 rows repeat rows of another file" in capsys.readouterr().err


def test_no_file_of_a_copy_is_left_out_without_a_word(tmp_path, capsys):
    copy(tmp_path, GOOD, name="data/other.jsonl")
    folder = copy(tmp_path, GOOD | {"category": "age"}, name="data/train.jsonl")
    assert len(data.load(fetch("mcbe", folder))) == 1
    assert "left out: other.jsonl has no column `category`" in capsys.readouterr().err
