"""Read tables, JSON, TOML and YAML of users, and write TOML.

Tables are CSV (with commas, semicolons, tabs or bars between cells), JSON, JSON Lines, xlsx,
Parquet or Arrow. We recognize these by their content, and read every cell as a text. Each function
raises `BadInput` for a file that is wrong, with the file and the line, or the row and column, and
the allowed values.
"""

import csv
import datetime
import gzip
import io
import json
import re
import tomllib
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from numbers import Number
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput, closest, plain, quoted

# The most bytes of a file that is read at once.
MAX_BYTES = 2**28
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# The cells of a row, by column.
Row = dict[str, str]


class TableRow(Row):
    """A row of a table.

    Attributes:
        number: its place below the header, from 1; blank rows count too.
        problem: a sentence if it has too many or too few cells; then we read none of them.
    """

    def __init__(self, number: int) -> None:
        self.number, self.problem = number, ""


# Files and text


def as_path(text: str | Path) -> Path:
    """Return the path that `text` names, with `~` expanded."""
    try:
        path = Path(text).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.lstat()
        return path
    except (ValueError, RuntimeError, OSError) as error:  # such as a name that is too long
        raise BadInput(f"{quoted(str(text))}: is not a path ({error})") from None


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read its bytes; a pipe, a device or a folder is refused."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: is not a file; give a file, not a pipe, a device or a folder")
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from None


def read_bytes(path: Path) -> bytes:
    """Read a file of at most `MAX_BYTES`."""
    with open_file(path) as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BadInput(
            f"{path}: is larger than {MAX_BYTES:,} bytes; split it, or leave out unused columns"
        )
    return raw


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark."""
    return _decode(path, read_bytes(path))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file, without its end.

    The file may be packed by gzip.
    """
    with open_file(path) as stream:
        is_packed = stream.peek(2).startswith(b"\x1f\x8b")
        try:
            lines = gzip.GzipFile(fileobj=stream) if is_packed else stream
            for number, line in enumerate(lines, start=1):
                yield number, _decode(path, line.removesuffix(b"\n"), line=number)
        except (EOFError, zlib.error) as error:
            raise BadInput(f"{path}: cannot be unpacked ({error})") from None


def _decode(
    path: Path, raw: bytes, encoding: str = "utf-8", advice: str = "", line: int = 1
) -> str:
    """Decode the text that begins at a line; an error names the line of the first wrong byte."""
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line += raw.count(b"\n", 0, error.start)
        remedy = f"if it is GBK, {advice}" if encoding == "utf-8" else ""
        problem = f"not {encoding.upper()} (byte {raw[error.start]:#04x})"
    raise BadInput(f"{path}, line {line}: {problem}; {remedy}save it again as text in UTF-8")


# Tables


def read_table(
    path: Path,
    columns: Sequence[str],
    more: Sequence[str] = (),
    *,
    replies: bool = False,
    encoding: str = "utf-8",
    advice: str = "",
    wrong_rows: bool = False,
) -> list[TableRow]:
    """Read the rows of a table; blank rows are skipped.

    Args:
        columns: columns that its header must have, each once; we read other columns too.
        more: columns that it can have, each at most once.
        replies: whether cells may hold anything, as replies of models do.
        encoding: of CSV and JSON: `utf-8`, or `gb18030`, which includes GBK.
        advice: how to read GBK, for the message about a file that is not UTF-8.
        wrong_rows: return rows with too many or too few cells too, with their `problem`.
    """
    raw = read_bytes(path)
    if raw.startswith(b"PK\x03\x04"):
        records = _sheet(path, raw)
    elif raw.startswith(b"PAR1") or path.suffix == ".arrow":
        records = _arrow(path, raw)
    else:
        # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever does.
        if encoding != "utf-8" and not raw.isascii():
            with suppress(UnicodeDecodeError):
                raw.decode()
                problem = f"is UTF-8, not {encoding.upper()}; read it as UTF-8, the default"
                raise BadInput(f"{path}: {problem}")
        text = _decode(path, raw, encoding, advice)
        is_json = text.lstrip()[:1] in ("[", "{")
        records = _json(path, text) if is_json else _csv(path, text, columns, replies)
    filled = [(k, one) for k, one in enumerate(records) if any(map(str.strip, map(_text, one)))]
    if not filled:
        names = ", ".join(columns)
        raise BadInput(f"{path}: is empty; expected a header with the columns {names}")
    wanted = {*columns, *more}
    top, header = filled[0][0], [_text(name).strip() for name in filled[0][1]]
    check_header(path, header, columns, more)
    rows = []
    for k, record in filled[1:]:
        row, place = TableRow(k - top), f"{path}, row {k - top}"
        rows.append(row)
        if len(record) < len(header) or any(map(_text, record[len(header) :])):
            row.problem = f"has {len(record)} cells, the header has {len(header)}"
            if not wrong_rows:
                raise BadInput(f"{place}: {row.problem}")
            continue
        for name, value in zip(header, record, strict=False):
            if name in wanted and (problem := _not_a_text(value)):
                raise BadInput(f"{place}, column `{name}`: {problem}")
            row[name] = _text(value)
    return rows


def _not_a_text(value: Any) -> str:
    """Say why a value is not one text, or return ""."""
    if value is None or isinstance(value, str | Number):
        return ""
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        text = str(value).removesuffix(" 00:00:00")
        advice = "which a spreadsheet program may have made of a text such as 3-5; write it as text"
        return f"{text} is a date or a time, {advice}"
    advice = "write a text, with the separator of that column between its parts"
    return f"{quoted(value)} is a {'list' if isinstance(value, list) else 'table'}; {advice}"


def _text(value: Any) -> str:
    """Return a value as a text: "" for a missing one, 3 for 3.0."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_header(
    path: Path, header: Sequence[str], columns: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Check that a header has each of `columns` once, and each of `more` at most once."""
    place = f"{path}, row 1 (header)"
    if missing := [name for name in columns if name not in header]:
        found = plain(", ".join(header[:20]))[:300] or "nothing"
        near = closest(missing[0], [name for name in header if name not in (*columns, *more)])
        meant = f", perhaps called {quoted(near)}" if near else ""
        raise BadInput(f"{place}: column `{missing[0]}` is missing{meant}; found: {found}")
    if doubled := [name for name in (*columns, *more) if list(header).count(name) > 1]:
        raise BadInput(f"{place}: column `{doubled[0]}` occurs more than once")


def _csv(path: Path, text: str, columns: Sequence[str], replies: bool) -> list[list[str]]:
    """Split CSV into records, by the delimiter with which its header has the columns."""
    csv.field_size_limit(MAX_BYTES)  # Python has one limit for all its readers

    def fit(mark: str) -> tuple[bool, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        header = [name.strip() for name in next(filter(None, reader), [])]
        return len(header) > 1 and {*columns} <= {*header}, len(header)

    mark = max(DELIMITERS, key=fit)  # of equals the comma
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    records: list[list[str]] = []
    begin = 1
    try:
        for record in reader:
            joined = "".join(f"{mark}{cell}" for cell in record if "\n" in cell)
            # A comma within a sentence has a blank after it.
            ends = len(re.findall(rf"{re.escape(mark)}(?=\S)", joined))
            # A cell of several lines with as many delimiters as the header holds other rows.
            if not replies and records and ends >= max(len(records[0]), 5):
                raise csv.Error("a cell holds other rows")
            records.append(record)
            begin = reader.line_num + 1
    except csv.Error as error:
        reason = "a quote is not closed" if "end of data" in str(error) else str(error)
        raise BadInput(
            f"{path}, line {reader.line_num}: cannot be read as CSV with {DELIMITERS[mark]} "
            f"({reason}); the row begins in line {begin}: write each quote within a cell twice, "
            "and one at both ends of that cell"
        ) from None
    return records


def _sheet(path: Path, raw: bytes) -> list[list[Any]]:
    """Read the first sheet of a workbook; a formula counts as its stored value, an error as ""."""
    import pandas as pd

    try:
        with warnings.catch_warnings(action="ignore"):  # about styles and lists of allowed values
            table = pd.read_excel(io.BytesIO(raw), header=None, dtype=object, na_filter=False)
    except Exception as error:  # any error that a broken archive or XML provokes in the libraries
        reason = _reason(f"{type(error).__name__}: {error}")
        remedy = "save the rows alone again, or as CSV in UTF-8"
        raise BadInput(f"{path}: cannot be read as xlsx ({reason}); {remedy}") from None
    records: list[list[Any]] = table.to_numpy().tolist()
    return records


def _arrow(path: Path, raw: bytes) -> list[list[Any]]:
    """Read Parquet, or Arrow as `Dataset.save_to_disk` writes it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        is_stream = path.suffix == ".arrow"
        table = pa.ipc.open_stream(raw).read_all() if is_stream else pq.read_table(io.BytesIO(raw))
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as a table ({_reason(error)})") from None
    return [table.column_names, *map(list, zip(*table.to_pydict().values(), strict=True))]


def _json(path: Path, text: str) -> list[list[Any]]:
    """Read a list of JSON objects, or one object a line, as a header and records."""
    if text.lstrip().startswith("["):
        objects = _parse_json(path, text)
    else:
        lines = enumerate(text.split("\n"), start=1)
        objects = [_parse_json(path, line, n) if line.strip() else {} for n, line in lines]
    for number, value in enumerate(objects, start=1):
        _check_object(f"{path}, row {number}", value)
    header = list(dict.fromkeys(name for value in objects for name in value))
    return [header, *([value.get(name) for name in header] for value in objects)]


# JSON


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the object of each line of JSON Lines that is not blank."""
    for number, line in read_lines(path):
        if line.strip():
            value = _parse_json(path, line, number)
            _check_object(f"{path}, line {number}", value)
            yield number, value


def _check_object(place: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise BadInput(f"{place}: expected a JSON object, found {type(value).__name__}")


def _parse_json(path: Path, text: str, line: int = 0) -> Any:
    """Return the value of a JSON document, which is one line of a file or all of it."""
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # half of a surrogate pair is not a character
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        reason = _reason(error)
        if isinstance(error, json.JSONDecodeError):
            line, reason = line or error.lineno, f"{error.msg} at character {error.colno}"
    place = f"{path}, line {line}" if line else str(path)
    raise BadInput(f"{place}: not JSON ({reason})")


def _reason(error: object) -> str:
    """Return the message of a library on one line."""
    return plain(" ".join(str(error).split()))[:300]


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    values: dict[str, Any] = _parse(path, "TOML", tomllib.loads)
    return values


def read_yaml(path: Path) -> Any:
    """Read a YAML file; nothing in it is run."""
    import yaml

    return _parse(path, "YAML", yaml.safe_load)


def _parse(path: Path, form: str, parse: Callable[[str], Any]) -> Any:
    text = read_text(path)
    try:
        return parse(text)
    except Exception as error:  # in YAML, a wrong date or a tag on another kind raises any error
        raise BadInput(f"{path}: not {form} ({_reason(error)})") from None


def to_toml(values: Mapping[str, Any], table: str = "") -> str:
    """Write texts, numbers, truth values, lists and tables as TOML.

    Examples:
        >>> print(to_toml({"name": "Our set", "categories": {"sport": {"en": "Sport"}}}))
        name = "Our set"
        <BLANKLINE>
        [categories]
        <BLANKLINE>
        [categories.sport]
        en = "Sport"
        <BLANKLINE>
    """
    text = ""
    # A key below the heading of a table belongs to that table, so tables come last.
    for key, value in sorted(values.items(), key=lambda pair: isinstance(pair[1], Mapping)):
        if isinstance(value, Mapping):
            path = f"{table}.{toml_key(key)}".lstrip(".")
            text += f"\n[{path}]\n{to_toml(value, path)}"
        else:
            text += f"{toml_key(key)} = {_toml_value(value, in_lines=True)}\n"
    return text


def toml_key(name: str) -> str:
    """Return a key as TOML writes it, in quotes if it needs them."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml_value(name)


def _toml_value(value: Any, in_lines: bool = False) -> str:
    """Write a value; a text of several lines can be written as such."""
    if isinstance(value, Mapping):
        cells = (f"{toml_key(key)} = {_toml_value(cell)}" for key, cell in value.items())
        return f"{{{', '.join(cells)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings are TOML's, except for DEL.
    text = json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
    if not (in_lines and isinstance(value, str) and "\n" in value):
        return text
    # Match complete escapes: `\\n` is a backslash and an n.
    lines = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[0], text[1:-1])
    return f'"""\n{lines}"""'
