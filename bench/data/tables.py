"""Reading the benchmarks' tables strictly: every cell a string, every fault a sentence with file, row and column."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.errors import BadInput

Row = dict[str, str]


def read_text(path: Path, *, encoding: str = "utf-8", advice: str = "") -> str:
    """The text of a file in UTF-8, with or without a byte order mark, or in GB18030, which GBK is a part of.

    `advice` is the caller's own way to read GBK; it goes into the message about a file that is not UTF-8.

    Raises:
        BadInput: the file is not in that encoding; the message says where, and how to convert it.
    """
    raw = path.read_bytes()
    # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever happens.
    if encoding != "utf-8" and not raw.isascii() and _is_utf8(raw):
        raise BadInput(f"{path}: is UTF-8, not {encoding.upper()}; read it as UTF-8, the default")
    try:
        text = raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        place = f"{path}, line {row}: not {encoding.upper()} (byte {error.object[error.start]:#04x})"
        if encoding != "utf-8":
            raise BadInput(f"{place}; save it again as CSV in UTF-8") from None
        raise BadInput(
            f"{place}; if it is GBK, {advice}"
            f"convert it: iconv -f GB18030 -t UTF-8 '{path.name}' > '{path.stem}-utf8{path.suffix}'"
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise BadInput(
            f"{path}, line {line}: holds a NUL character, so it is not a text table; save it again as CSV in UTF-8"
        )
    return text.removeprefix("\ufeff")


def read_csv(path: Path, columns: Sequence[str], *, delimiter: str = ",") -> list[Row]:
    """Rows of a CSV file whose header has at least `columns`.

    Raises:
        BadInput: not UTF-8, a column is missing, or a record has another number of cells than the header.
    """
    rows: list[Row] = []
    for number, row in enumerate(csv_rows(path, columns, delimiter=delimiter), start=1):
        if isinstance(row, str):
            raise BadInput(f"{path}, row {number}: {row}")
        rows.append(row)
    return rows


def csv_rows(
    path: Path, columns: Sequence[str], *, delimiter: str = ",", encoding: str = "utf-8", advice: str = ""
) -> list[Row | str]:
    """As `read_csv`, but a record with a wrong number of cells is given as what to say about it.

    `encoding` and `advice` are those of `read_text`.

    Raises:
        BadInput: not in that encoding, or a column is missing.
    """
    text = read_text(path, encoding=encoding, advice=advice)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        records = [record for record in reader if record]
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: cannot be read as CSV ({error})") from None
    if not records:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    header = [name.strip() for name in records[0]]
    _check_header(path, header, columns)
    return [
        dict(zip(header, record, strict=True))
        if len(record) == len(header)
        else f"has {len(record)} cells, the header has {len(header)}"
        for record in records[1:]
    ]


def read_xlsx(path: Path, columns: Sequence[str]) -> list[Row]:
    """Rows of the first sheet of an xlsx file, cells as they are shown, nothing taken for missing.

    Raises:
        BadInput: not an xlsx file, or a column is missing.
    """
    try:
        # Without a header, because pandas would rename a doubled column.
        frame = pd.read_excel(path, header=None, dtype=str, keep_default_na=False, engine="openpyxl")
    except Exception as error:  # openpyxl raises whatever the broken zip or XML inside provokes
        reason = plain(f"{type(error).__name__}: {error}")
        raise BadInput(f"{path}: cannot be read as xlsx ({reason})") from None
    if frame.empty:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    # A cell with an error, such as #N/A that is no text, comes as a NaN in spite of the type asked for.
    header, *records = frame.fillna("").itertuples(index=False, name=None)
    names = [str(name).strip() for name in header]
    _check_header(path, names, columns)
    return [dict(zip(names, record, strict=True)) for record in records]


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of a JSON Lines file; blank lines are passed over.

    Raises:
        BadInput: not UTF-8, or a line that is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(
                f"{path}, line {number}: not JSON ({error.msg} at character {error.pos})"
            ) from None
        except RecursionError:
            raise BadInput(f"{path}, line {number}: JSON nested too deeply") from None
        except ValueError:  # Python refuses to read a number of thousands of digits
            raise BadInput(f"{path}, line {number}: holds a number of too many digits") from None
        if not _whole_text(line, value):
            raise BadInput(f"{path}, line {number}: holds half of a surrogate pair, which is no character")
        if not isinstance(value, dict):
            raise BadInput(f"{path}, line {number}: expected a JSON object, found {type(value).__name__}")
        yield number, value


def read_json_array(path: Path, columns: Sequence[str], more: Sequence[str] = ()) -> list[Row]:
    """Rows of a file with one JSON array of objects whose values are strings: `columns`, and of `more` what is there.

    Raises:
        BadInput: not UTF-8, not such an array, or a column is missing in a row.
    """
    try:
        values = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    except RecursionError:
        raise BadInput(f"{path}: JSON nested too deeply") from None
    except ValueError:
        raise BadInput(f"{path}: holds a number of too many digits") from None
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise BadInput(f"{path}: expected a JSON array of objects")
    rows = []
    for number, value in enumerate(values, start=1):
        missing = next((name for name in columns if name not in value), None)
        if missing:
            raise BadInput(f"{path}, row {number}: field `{missing}` is missing")
        wrong = next(
            (
                name
                for name in columns
                if not isinstance(value[name], str | int) or isinstance(value[name], bool)
            ),
            None,
        )
        if wrong:
            raise BadInput(f"{path}, row {number}, field `{wrong}`: {value[wrong]!r} is not a text")
        rows.append({name: str(value[name]) for name in (*columns, *more) if name in value})
    return rows


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _whole_text(line: str, value: object) -> bool:
    """Whether a JSON value is free of lone surrogates, which no file can hold."""
    if "\\ud" not in line.lower():
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def number(text: str) -> float:
    """A plain decimal number; NaN for anything else, such as the underscores and infinities that Python's float takes."""
    return (
        float(text)
        if re.fullmatch(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,3})?", text, re.ASCII)
        else math.nan
    )


def plain(text: str) -> str:
    """`text` on one line, with escapes for what a terminal would act on or cannot show."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in header]
    if missing:
        found = plain(", ".join(header[:20])) or "nothing"
        raise BadInput(f"{path}, row 1 (header): column `{missing[0]}` is missing; found: {found}")
    doubled = next((name for name in columns if list(header).count(name) > 1), None)
    if doubled:
        raise BadInput(f"{path}, row 1 (header): column `{doubled}` occurs more than once")
