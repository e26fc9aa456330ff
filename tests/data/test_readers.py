"""Tables, JSON, xlsx, TOML and YAML are read as they are, or refused with the place."""

import csv
import datetime
import io
import math
import tomllib
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from bench.core.cells import to_number, to_whole_number
from bench.data.readers import read_json_lines, read_table, read_yaml, to_toml
from tests.helpers.cases import json_lines

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_written_csv_file_is_read_back(tmp_path, rows):
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    (tmp_path / "a.csv").write_text(stream.getvalue(), "utf-8", newline="")
    read = read_table(tmp_path / "a.csv", ["a", "b"], replies=True)
    assert [(row["a"], row["b"]) for row in read] == [row for row in rows if "".join(row).strip()]


@pytest.mark.parametrize("text", json_lines(__file__, "tables.jsonl"))
def test_a_table_is_known_by_its_content_and_has_no_blank_rows(tmp_path, text):
    path = tmp_path / "a.any"
    path.write_bytes(text.encode())
    (row,) = read_table(path, ["a", "b"])
    assert (row["a"], row["b"]) == ("甲,乙", "2")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_parquet_and_arrow_are_read_as_texts(tmp_path, refusal, name):
    path = tmp_path / name
    table = pa.table({"a": ["NA", "None", None, None], "b": [1.0, 2.5, 3.0, None], "c": [[1]] * 4})
    if name == "a.parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    cells = [(row["a"], row["b"]) for row in read_table(path, ["a", "b"])]
    assert cells == [("NA", "1"), ("None", "2.5"), ("", "3"), ("", "")]
    assert "row 1, column `c`: [1] is a list" in refusal(read_table, path, ["c"])
    path.write_bytes(path.read_bytes()[:50])
    assert "cannot be read as a table" in refusal(read_table, path, ["a"])


def test_cells_of_a_workbook_are_read_as_they_are_shown(tmp_path, refusal):
    path, header = tmp_path / "a.xlsx", tuple("abcdefghi")
    Workbook().save(path)
    assert "is empty; expected a header" in refusal(read_table, path, ["a"])
    values = ("甲", 3, 3.0, 4.5, True, None, "#N/A", "=1+1", datetime.datetime(2024, 5, 1))
    shown = ["甲", "3", "3", "4.5", "True", "", "", "", "2024-05-01 00:00:00"]
    book = Workbook()
    for row in (header, (None,) * 9, values, (None,) * 9):
        book.active.append(row)
    book.save(path)
    assert read_table(path, ["a"]) == [dict(zip(header, shown, strict=True))]
    message = refusal(read_table, path, ["a", "i"])
    assert message.startswith(f"{path}, row 2, column `i`: 2024-05-01 is a date or a time")


READERS = {
    "table": partial(read_table, columns=["a"], more=["b"]),
    "GB18030": partial(read_table, columns=["a"], encoding="gb18030"),
    "JSON Lines": read_json_lines,
    "YAML": read_yaml,
}
DEEP = {"read": "JSON Lines", "content": "[" * 100_000, "says": ", line 1: not JSON (maximum"}


@pytest.mark.parametrize("case", [*json_lines(__file__, "wrong_files.jsonl"), DEEP])
def test_a_wrong_file_is_refused_with_its_place(tmp_path, refusal, case):
    path, read = tmp_path / "a.file", READERS[case["read"]]
    path.write_bytes(case["content"].encode(case.get("encoding", "utf-8")))
    assert refusal(lambda: [*read(path)]).startswith(f"{path}{case['says']}")


# Characters that mean something to TOML, among any others.
TEXT = st.text(
    st.sampled_from("\"'\\\n\r\t\x7f\0 #=[].中") | st.characters(exclude_categories=["Cs"])
)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    TEXT | st.booleans() | NUMBER,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES))
def test_written_toml_is_read_back(table):
    assert tomllib.loads(to_toml(table)) == table


@pytest.mark.parametrize(
    ("text", "number", "whole"),
    [
        ("-1.5e3", -1500, None),
        ("07", 7, 7),
        ("9" * 16, 1e16, None),
        *((text, math.nan, None) for text in ("1_000", "inf", "٣", " 1", "")),
    ],
)
def test_numbers_are_plain_ascii(text, number, whole):
    assert to_whole_number(text) == whole
    assert to_number(text) == pytest.approx(number, nan_ok=True)
