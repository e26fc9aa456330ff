"""Tables, JSON, xlsx, TOML and YAML are read as they are, or refused with the place."""

import csv
import datetime
import io
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from bench.core.cells import to_number, to_whole_number
from bench.data import readers
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
    "text",
    ["\ufeffa,b\r\n甲,2\r\n", "a,b\r甲,2\r", '"a",b \n\n"甲",2', 'a,b\n甲,"2"', 'a,b\n"甲",""2'],
)
def test_line_ends_marks_and_quotes_are_no_part_of_cells(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert read_csv(tmp_path / "a.csv", ["a"]) == [{"a": "甲", "b": "2"}]


def test_other_tables_are_read_as_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("a\n甲\n".encode("gb18030"))
    assert csv_rows(path, ["a"], encoding="gb18030") == [{"a": "甲"}]
    path.write_bytes(b"a,b\n1\n2,3\n")
    assert csv_rows(path, ["a"]) == ["has 1 cells, the header has 2", {"a": "2", "b": "3"}]
    path.write_text('[{"a": "甲", "b": 2, "c": null}, {"a": "乙"}]', "utf-8")
    assert read_json_array(path, ["a"], ["b"]) == [{"a": "甲", "b": "2"}, {"a": "乙"}]


def workbook(path: Path, *rows: tuple[Any, ...]) -> Path:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_cells_of_a_workbook_are_read_as_they_are_shown(tmp_path: Path, refusal: Refusal) -> None:
    values = ("甲", 3, 3.0, 4.5, True, None, "#N/A", datetime.datetime(2024, 5, 1))
    shown = ["甲", "3", "3", "4.5", "True", "", "", "2024-05-01 00:00:00"]
    header = tuple("abcdefgh")
    path = workbook(tmp_path / "a.xlsx", header, (None,) * 8, values, (None,) * 8)
    blank = dict.fromkeys(header, "")
    assert read_xlsx(path, ["a"]) == [blank, dict(zip(header, shown, strict=True))]
    formula = workbook(tmp_path / "b.xlsx", ("a", "b"), ("x", "=1+1"))
    assert read_xlsx(formula, ["a"]) == [{"a": "x", "b": ""}]
    message = refusal(read_xlsx, formula, ["a", "b"])
    assert "row 1, column `b`: holds a formula without a value" in message
    assert "is empty; expected a header" in refusal(read_xlsx, workbook(path), ["a"])


def all_lines(path: Path) -> list[Any]:
    return list(read_json_lines(path))


TABLE = partial(read_csv, columns=["a"], more=["b"])
GB18030 = partial(csv_rows, columns=["a"], encoding="gb18030")
ARRAY = partial(read_json_array, columns=["a"], more=["b"])
SHEET = partial(read_xlsx, columns=["a"])
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("read", "content", "said"),
    [
        (TABLE, "", ": is empty; expected a header with the columns a"),
        (TABLE, "x,y\n1,2\n", ", row 1 (header): column `a` is missing; found: x, y"),
        (TABLE, "a,b,b\n", ", row 1 (header): column `b` occurs more than once"),
        (TABLE, "a,b\n1,2\n1\n", ", row 2: has 1 cells, the header has 2"),
        (TABLE, 'a,b\n1,2\n3,"4\n5,6\n', ", line 4: the file ends within a quoted cell"),
        (TABLE, "a,b\n1,\0\n", ", line 2: holds a NUL character"),
        (TABLE, "a,b\n1,2\n\ufeffa,b\n", ", line 3: begins with a byte order mark"),
        (TABLE, "a,b\n1,甲\n".encode("gb18030"), ", line 2: not UTF-8 (byte 0xbc); if it is GBK, "),
        (TABLE, "a,b\n1,甲\n".encode("utf-16"), ": is UTF-16; save it again in UTF-8: iconv -f"),
        (GB18030, "a\n甲\n", ": is UTF-8, not GB18030"),
        (GB18030, b"a\n\xff\n", ", line 2: not GB18030 (byte 0xff); save it again as CSV in UTF-8"),
        (all_lines, "{}\n[1]", ", line 2: expected a JSON object, found list"),
        (all_lines, '{"a": 1, "a": 2}', ", line 1: field 'a' occurs more than once"),
        (all_lines, '{"a": ' + "[" * 100_000, ", line 1: JSON nested too deeply"),
        (ARRAY, '[{"a": null}]', ", row 1, field `a`: None is not a text"),
        (ARRAY, '[{"a": 1}, {"b": 1}]', ", row 2: field `a` is missing"),
        (ARRAY, "[\n1 2]", ", line 2: not JSON (Expecting ',' delimiter"),
        (SHEET, "no zip", ": cannot be read as xlsx (BadZipFile"),
        (SHEET, COMPOUND + bytes(5000), ": has a password, or is an old .xls file"),
        (read_toml, "a = 0x" + "f" * 17, ": not TOML (a number of too many digits)"),
        (read_toml, f"b = 1\n[{'a.' * 17}a]", ", line 2: a key of more than 16 parts"),
        (read_yaml, "a: 1\nb: 1\na: 2", ", line 3: key 'a' is there twice"),
        (read_yaml, "a: !!python/name:os.system x", ": not YAML (could not determine a constr"),
        (read_yaml, "[" * 5000 + "]" * 5000, ": not YAML (maximum recursion depth"),
        (read_yaml, "a: &a 1\nb: [" + "*a," * 21 + "]", ": has more than 20 aliases"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    tmp_path: Path, refusal: Refusal, read: Any, content: str | bytes, said: str
) -> None:
    path = tmp_path / "a.file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert refusal(read, path).startswith(f"{path}{said}")


@pytest.mark.parametrize(
    ("limit", "value", "read", "content", "said"),
    [
        ("MAX_LINE", 5, TABLE, "a,b\n1,23456\n", "line 2: is longer than 5 characters"),
        ("MAX_CELLS", 11, TABLE, "a,b\n1,2\n", "line 2: cannot be read as CSV (more than 11 cells"),
        ("MAX_CELLS", 9, SHEET, None, "has more than 9 cells"),
        ("MAX_UNPACKED", 900, SHEET, None, "unpacks to more than 900 bytes"),
        ("MAX_CONFIG_BYTES", 5, read_yaml, "a: 1234", "is larger than 5 bytes"),
    ],
)
def test_a_file_beyond_a_limit_is_refused(
    tmp_path: Path,
    refusal: Refusal,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    read: Any,
    content: str | None,
    said: str,
) -> None:
    path = workbook(tmp_path / "a.file.xlsx", ("a",), ("1",))
    if content is not None:
        path.write_text(content, "utf-8")
    monkeypatch.setattr(readers, limit, value)
    message = refusal(read, path)
    assert message.startswith(str(path))
    assert said in message


# Characters that mean something to TOML, among any others.
TEXT = st.text(
    st.sampled_from("\"'\\\n\r\t\x7f\0 #=[].中") | st.characters(exclude_categories=["Cs"])
)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = TEXT | st.booleans() | NUMBER
TABLES = st.recursive(
    st.dictionaries(TEXT, VALUE),
    lambda inner: st.dictionaries(
        TEXT, VALUE | inner | st.lists(inner, max_size=3) | st.lists(VALUE, max_size=3)
    ),
    max_leaves=8,
)


@given(TABLES)
def test_written_toml_is_read_back(table: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(table)) == table


def test_yaml_has_dates_aliases_and_merges(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("a: &x {b: 2024-01-02, c: 1}\nd: *x\ne: {<<: [*x, {f: 2}], c: 3}", "utf-8")
    value = {"b": datetime.date(2024, 1, 2), "c": 1}
    assert read_yaml(path) == {"a": value, "d": value, "e": value | {"c": 3, "f": 2}}
    path.write_text("# nothing", "utf-8")
    assert read_yaml(path) is None


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
