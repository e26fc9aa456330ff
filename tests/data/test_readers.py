"""Tables, JSON, xlsx, TOML and YAML are read as they are, or refused with the place."""

import csv
import datetime
import gzip
import io
import json
import math
import tomllib
import zipfile
from functools import partial

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from bench.core.cells import to_number
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "gzip"])
@pytest.mark.parametrize("text", json_lines(__file__, "tables.jsonl"))
def test_a_table_is_known_by_its_content_and_has_no_blank_rows(tmp_path, text, encoding):
    path = tmp_path / "a.any"
    path.write_bytes(gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding))
    (row,) = read_table(path, ["a", "b"])
    assert (row["a"], row["b"]) == ("甲,乙", "2")


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_parquet_and_feather_are_read_as_texts(tmp_path, refusal, name):
    path = tmp_path / name
    table = pa.table({"a": ["NA", "None", None, None], "b": [1.0, 2.5, 3.0, None], "c": [[1]] * 4})
    if name == "a.parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)
    cells = [(row["a"], row["b"]) for row in read_table(path, ["a", "b"])]
    assert cells == [("NA", "1"), ("None", "2.5"), ("", "3"), ("", "")]
    assert "row 1, column `c`: [1] is a list" in refusal(read_table, path, ["c"])
    path.write_bytes(path.read_bytes()[:50])
    assert "cannot be read as a table" in refusal(read_table, path, ["a"])


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ([1, 0, None, -1], ["age", "gender", "", ""]),
        (["0", "age", None, ""], ["0", "age", "", ""]),
        ([0, 2], "row 2, column `b`: 2 has no name in this ClassLabel of 0 to 1"),
    ],
)
def test_numbers_of_a_class_label_get_their_names(tmp_path, refusal, column, cells):
    features = {"a": {"_type": "Value"}, "b": {"_type": "ClassLabel", "names": ["gender", "age"]}}
    table = pa.table({"a": ["x"] * len(column), "b": column})
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "a.parquet")
    read = partial(read_table, tmp_path / "a.parquet", ["a", "b"])
    if isinstance(cells, str):
        assert cells in refusal(read)
    else:
        assert [row["b"] for row in read()] == cells


def written(path, sheets, change=lambda book: None):
    """Write a workbook of sheets, from their rows by name."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    change(book)
    book.save(path)
    return path


FIRST = [("a", "b"), (1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("second", "cells", "says"),
    [
        ([("b", "a"), (6, 5)], "1 3 5", "'an' (rows 1 to 2), 'bo' (rows 3 to 3)"),
        ([("written in spring",)], "1 3", ""),
        ([("code", "meaning"), (1, "x")], "1 3", "are not read: 'bo'"),
        ([("a", "B"), (5, 6)], "sheet 'bo', row 1 (header): has other columns (B, a)", ""),
        ([("a", "b"), (5, "=1+1")], "sheet 'bo', row 1, column `b`: sheet 'bo', cell B2 ho", ""),
    ],
)
@pytest.mark.parametrize("columns", [["a", "b"], []])
def test_no_sheet_of_a_workbook_is_lost(tmp_path, refusal, capsys, columns, second, cells, says):
    path = written(tmp_path / "a.xlsx", {"an": FIRST, "bo": second})
    if cells.startswith("sheet"):
        assert cells in refusal(read_table, path, columns)
    else:
        assert " ".join(row["a"] for row in read_table(path, columns)) == cells
    assert says in capsys.readouterr().err


def merged(area):
    return lambda book: book["an"].merge_cells(area)


def hidden(book):
    book["an"].row_dimensions[3].hidden = True


@pytest.mark.parametrize(
    ("value", "change", "says"),
    [
        (6, merged("A2:A3"), "row 2, column `a`: sheet 'an', cell A3 is merged (A2:A3)"),
        (6, merged("A1:B1"), "row 1 (header): sheet 'an', cell B1 is merged"),
        (6, merged("C2:C3"), ""),
        ("=1+1", hidden, "row 3, column `b`: sheet 'an', cell B4 holds a formula without"),
        ("#DIV/0!", hidden, "row 3, column `b`: sheet 'an', cell B4 holds the error #DIV/0!"),
        ("#N/A", hidden, "sheet 'an': hidden rows are read too: 3"),
    ],
)
def test_a_cell_that_shows_more_than_it_holds_is_named(
    tmp_path, refusal, capsys, value, change, says
):
    path = written(tmp_path / "a.xlsx", {"an": [*FIRST, (5, value)]}, change)
    if says.startswith("row"):
        assert says in refusal(read_table, path, ["a", "b"])
    else:
        assert len(read_table(path, ["a", "b"])) == 3
        assert says in capsys.readouterr().err


def test_a_formula_counts_as_its_stored_value(tmp_path):
    path = written(tmp_path / "a.xlsx", {"an": [("a", "b"), ("=1+1", "=IF(1,,)")]})
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    stored = parts[sheet].replace("<f>1+1</f><v />", "<f>1+1</f><v>2</v>")
    stored = stored.replace('<c r="B2"><f>', '<c r="B2" t="str"><f>')
    assert stored != parts[sheet]
    with zipfile.ZipFile(path, "w") as book:
        for name, text in {**parts, sheet: stored}.items():
            book.writestr(name, text)
    assert read_table(path, ["a", "b"]) == [{"a": "2", "b": ""}]


@pytest.mark.parametrize(
    ("stored", "text"),
    [("a_x000D_b", "a\rb"), ("_x005F_x000D_", "_x000D_"), ("_xD83D_", "\ufffd"), ("a_x_", "a_x_")],
)
def test_a_character_that_a_workbook_stores_by_its_number_is_read(tmp_path, stored, text):
    path = written(tmp_path / "a.xlsx", {"an": [("a",), (stored,)]})
    assert read_table(path, ["a"]) == [{"a": text}]


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        ("a.csv", "a zip archive; unpack it"),
        ("mimetype", "an OpenDocument file such as .ods; save"),
    ],
)
def test_a_zip_archive_that_is_no_workbook_is_named(tmp_path, refusal, member, kind):
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as archive:
        archive.writestr(member, "a,b")
    assert f"a.csv: is {kind}" in refusal(read_table, tmp_path / "a.csv", ["a"])


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
    "any columns": partial(read_table, columns=[]),
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
    ("text", "number"),
    [
        ("-1.5e3", -1500),
        ("07", 7),
        ("9" * 16, 1e16),
        *((text, math.nan) for text in ("1_000", "inf", "٣", " 1", "")),
    ],
)
def test_numbers_are_plain_ascii(text, number):
    assert to_number(text) == pytest.approx(number, nan_ok=True)
