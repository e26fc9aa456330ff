"""Tables, JSON, xlsx and TOML are read as they are, or refused with file, row and column."""

import csv
import datetime
import io
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from bench.core.cells import to_number, to_whole_number
from bench.data.readers import (
    as_path,
    csv_rows,
    read_csv,
    read_json_array,
    read_json_lines,
    read_toml,
    read_xlsx,
    read_yaml,
    to_toml,
)

Refusal = Callable[..., str]
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_written_csv_file_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    (tmp_path / "a.csv").write_text(stream.getvalue(), "utf-8", newline="")
    read = read_csv(tmp_path / "a.csv", ["a", "b"])
    assert [(row["a"], row["b"]) for row in read] == rows


@pytest.mark.parametrize(
    "raw",
    [
        "a,b\n甲,2\n".encode(),
        "\ufeffa,b\r\n甲,2\r\n".encode(),
        "a,b\r甲,2\r".encode(),
        '"a",b \n\n"甲",2'.encode(),
    ],
)
def test_line_ends_marks_and_quotes_are_no_part_of_cells(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(raw)
    assert read_csv(tmp_path / "a.csv", ["a"]) == [{"a": "甲", "b": "2"}]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty; expected a header with the columns a"),
        (b"x,y\n1,2\n", "row 1 (header): column `a` is missing; found: x, y"),
        (b"a,b,a\n", "row 1 (header): column `a` occurs more than once"),
        (b"a,b,b\n", "row 1 (header): column `b` occurs more than once"),
        (b"a,b\n1,2\n1\n", "row 2: has 1 cells, the header has 2"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "line 4: the file ends within a quoted cell"),
        (b"a,b\n1,\0\n", "line 2: holds a NUL character"),
        ("a,b\n1,2\n\ufeffa,b\n".encode(), "line 3: begins with a byte order mark"),
        ("a,b\n1,甲\n".encode("gb18030"), "line 2: not UTF-8 (byte 0xbc); if it is GBK, convert"),
        ("a,b\n1,甲\n".encode("utf-16"), "is UTF-16; save it again in UTF-8: iconv -f UTF-16"),
    ],
)
def test_a_wrong_csv_file_is_refused_with_its_place(
    tmp_path: Path, refusal: Refusal, raw: bytes, said: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(raw)
    message = refusal(read_csv, path, ["a"], ["b"])
    assert message.startswith(str(path))
    assert said in message


def test_gb18030_is_read_where_it_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("a\n甲\n".encode("gb18030"))
    assert csv_rows(path, ["a"], encoding="gb18030") == [{"a": "甲"}]
    path.write_bytes("a\n甲\n".encode())
    assert "is UTF-8, not GB18030" in refusal(csv_rows, path, ["a"], encoding="gb18030")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n\n{"a": }', "line 3: not JSON (Expecting value at character 7)"),
        ("{}\n[1]", "line 2: expected a JSON object, found list"),
        ('{"a": 1, "a": 2}', "line 1: field 'a' occurs more than once"),
        ('{"a": "\\ud800"}', "line 1: holds half of a surrogate pair"),
        ('{"a": ' + "1" * 5000 + "}", "line 1: holds a number of too many digits"),
    ],
)
def test_wrong_json_lines_are_refused_with_their_number(
    tmp_path: Path, refusal: Refusal, text: str, said: str
) -> None:
    (tmp_path / "a.jsonl").write_text(text, "utf-8")
    assert said in refusal(lambda: list(read_json_lines(tmp_path / "a.jsonl")))


def test_a_json_array_is_read_as_texts(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"a": "甲", "b": 2, "c": null}, {"a": "乙"}]', "utf-8")
    assert read_json_array(path, ["a"], ["b"]) == [{"a": "甲", "b": "2"}, {"a": "乙"}]
    assert "row 1, field `c`: None is not a text" in refusal(read_json_array, path, ["a", "c"])
    assert "row 2: field `b` is missing" in refusal(read_json_array, path, ["b"])
    path.write_text("[{}, 1]", "utf-8")
    assert "row 2: expected a JSON array of objects" in refusal(read_json_array, path, [])


def workbook(path: Path, *rows: tuple[Any, ...]) -> Path:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_cells_of_a_workbook_are_read_as_they_are_shown(tmp_path: Path, refusal: Refusal) -> None:
    when = datetime.datetime(2024, 5, 1)
    values = ("甲", 3, 3.0, 4.5, True, None, "#N/A", when)
    shown = ["甲", "3", "3", "4.5", "True", "", "", "2024-05-01 00:00:00"]
    header = tuple("abcdefgh")
    path = workbook(tmp_path / "a.xlsx", header, (None,) * 8, values, (None,) * 8)
    blank = dict.fromkeys(header, "")
    assert read_xlsx(path, ["a"]) == [blank, dict(zip(header, shown, strict=True))]
    formula = workbook(tmp_path / "b.xlsx", ("a", "b"), ("x", "=1+1"))
    assert read_xlsx(formula, ["a"]) == [{"a": "x", "b": ""}]
    message = refusal(read_xlsx, formula, ["a", "b"])
    assert "row 1, column `b`: holds a formula without a value" in message


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = workbook(tmp_path / "a.xlsx")
    assert "is empty; expected a header" in refusal(read_xlsx, path, ["a"])
    path.write_bytes(b"no zip")
    assert "cannot be read as xlsx (BadZipFile" in refusal(read_xlsx, path, ["a"])
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000))
    assert "has a password, or is an old .xls file" in refusal(read_xlsx, path, ["a"])


# Characters that mean something to TOML, among any others.
TEXT = st.text(
    st.sampled_from("\"'\\\n\r\t\x7f\0 #=[].中") | st.characters(exclude_categories=["Cs"])
)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = TEXT | st.booleans() | NUMBER
TABLE = st.recursive(
    st.dictionaries(TEXT, VALUE),
    lambda inner: st.dictionaries(
        TEXT, VALUE | inner | st.lists(inner, max_size=3) | st.lists(VALUE, max_size=3)
    ),
    max_leaves=8,
)


@given(TABLE)
def test_written_toml_is_read_back(table: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(table)) == table


def test_written_toml_has_lines_and_tables_as_people_write_them() -> None:
    judge = {"criteria": [{"weight": 0.5}, {}]}
    assert to_toml({"gpt-3.5": {"prompt": "一\n二"}, "version": "1", "judge": judge}) == (
        'version = "1"\n\n["gpt-3.5"]\nprompt = """\n一\n二"""\n\n[judge]\n\n[[judge.criteria]]\n'
        "weight = 0.5\n\n[[judge.criteria]]\n"
    )


def test_toml_and_yaml_that_cannot_be_read_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "a.file"
    for text, toml_said, yaml_said in (
        ("a = [", "not TOML (", ""),
        ("a: [", "not TOML (", "not YAML (while parsing a flow"),
        ("a: 1\na: 2", "not TOML (", "line 1: key 'a' is there twice"),
        ("a: !!python/name:os.system x", "not TOML (", "could not determine a constructor"),
    ):
        path.write_text(text, "utf-8")
        assert toml_said in refusal(read_toml, path)
        assert not yaml_said or yaml_said in refusal(read_yaml, path)
    path.write_text("a: &x [1, {b: 2024-01-02}]\nc: *x", "utf-8")
    value = [1, {"b": datetime.date(2024, 1, 2)}]
    assert read_yaml(path) == {"a": value, "c": value}


@pytest.mark.parametrize("text", ["a\0b", "x" * 300, "a/" * 3000, "\ud800", "~nobody-here/x"])
def test_what_no_path_can_be_is_refused(refusal: Refusal, text: str) -> None:
    assert "is not a path" in refusal(as_path, text)


@pytest.mark.parametrize(
    ("text", "number", "whole"),
    [
        ("-1.5e3", -1500, None),
        ("07", 7, 7),
        ("9" * 16, 1e16, None),
        *((text, None, None) for text in ("1_000", "inf", "٣", " 1", "")),
    ],
)
def test_numbers_are_plain_ascii(text: str, number: float | None, whole: int | None) -> None:
    assert to_whole_number(text) == whole
    assert to_number(text) == pytest.approx(
        number if number is not None else float("nan"), nan_ok=True
    )
