"""Read tables, JSON, TOML and YAML of users, and write TOML.

Tables are CSV (with commas, semicolons, tabs or bars between cells), JSON, JSON Lines, xlsx,
Parquet or Arrow, known by their content; every cell is read as a text. Each function raises
`BadInput` for a file that cannot be read or is wrong, with the file and the line, or the row and
column, and what is allowed.
"""

import csv
import datetime
import errno
import io
import json
import re
import tomllib
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import zip_longest
from numbers import Number
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput, closest, plain, quoted

Row = dict[str, str]

# Bytes of a file that is read at once, and of an xlsx file when it is unpacked.
MAX_BYTES = 2**28
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# How files begin that are not text in UTF-8, UTF-32 before UTF-16, which begins alike.
KINDS = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a zip archive or an xlsx workbook",
    b"\xd0\xcf\x11\xe0": "an old .xls workbook, or has a password",
    b"\x1f\x8b": "packed by gzip",
    b"\xff\xfe\0\0": "text in UTF-32",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
# Commas between cells, not those of a sentence, which a blank follows.
CELL_END = {mark: re.compile(rf"{re.escape(mark)}(?=\S)") for mark in DELIMITERS}


# Files and text


def as_path(text: str | Path) -> Path:
    """Return the path that `text` names, with `~` expanded."""
    try:
        path = Path(text).expanduser()
        path.lstat()
    except (ValueError, RuntimeError) as error:  # half a character, or a user that does not exist
        raise BadInput(f"{str(text)[:200]}: is not a path ({error})") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BadInput(f"{str(text)[:200]}: is not a path (it is too long)") from None
    return path


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


def read_bytes(path: Path, limit: int = 0) -> bytes:
    """Read a file of at most `limit` bytes, or of `MAX_BYTES`."""
    limit = limit or MAX_BYTES
    with open_file(path) as stream:
        raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise BadInput(
            f"{path}: is larger than {limit:,} bytes; split it, or leave out what is not needed"
        )
    return raw


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark."""
    return _decode(path, read_bytes(path))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file, without its end."""
    with open_file(path) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, _decode(path, line.removesuffix(b"\n"), line=number)


def _decode(
    path: Path, raw: bytes, encoding: str = "utf-8", advice: str = "", line: int = 1
) -> str:
    """Decode what begins at a line of a file; an error names the line of the first wrong byte."""
    at, problem, remedy = raw.find(b"\0"), "holds a NUL character, so it is no text", ""
    if at < 0:
        try:
            return raw.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            at, problem = error.start, f"not {encoding.upper()} (byte {raw[error.start]:#04x})"
            remedy = f"if it is GBK, {advice}" if encoding == "utf-8" else ""
    for start, kind in KINDS.items():
        if raw.startswith(start):
            raise BadInput(f"{path}: is {kind}; save it again as text or CSV in UTF-8")
    line += raw.count(b"\n", 0, at)
    raise BadInput(f"{path}, line {line}: {problem}; {remedy}save it again in UTF-8")


# Tables


def read_table(
    path: Path, columns: Sequence[str], more: Sequence[str] = (), *, replies: bool = False
) -> list[Row]:
    """Read the rows of a table; blank rows are left out.

    Args:
        path: the file.
        columns: those that its header must have, each once; others are read too.
        more: those that it can have; each at most once.
        replies: whether cells may hold anything, as replies of models do.
    """
    rows: list[Row] = []
    for number, row in enumerate(table_rows(path, columns, more, replies=replies), start=1):
        if isinstance(row, str):
            raise BadInput(f"{path}, row {number}: {row}")
        rows.append(row)
    return rows


def table_rows(
    path: Path,
    columns: Sequence[str],
    more: Sequence[str] = (),
    *,
    replies: bool = False,
    encoding: str = "utf-8",
    advice: str = "",
) -> list[Row | str]:
    """Read the rows of a table, with a sentence in place of one with too many or too few cells.

    Args:
        path, columns, more, replies: as for `read_table`.
        encoding: of CSV and JSON: `utf-8`, or `gb18030`, which GBK is a part of.
        advice: how the caller reads GBK, for the message about a file that is not UTF-8.
    """
    raw = read_bytes(path)
    if raw.startswith(b"PK\x03\x04"):
        header, *records = _sheet(path, raw) or [[]]
    elif raw.startswith(b"PAR1") or path.suffix == ".arrow":
        header, *records = _arrow(path, raw)
    else:
        # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever does.
        if encoding != "utf-8" and not raw.isascii():
            with suppress(UnicodeDecodeError):
                raw.decode()
                problem = f"is UTF-8, not {encoding.upper()}; read it as UTF-8, the default"
                raise BadInput(f"{path}: {problem}")
        text = _decode(path, raw, encoding, advice)
        if (first := text.lstrip()[:1]) in ("[", "{"):
            lines = first == "{"
            objects = [row for _, row in read_json_lines(path)] if lines else _array(path, text)
            header = list(dict.fromkeys(name for value in objects for name in value))
            records = [[value.get(name) for name in header] for value in objects]
        else:
            header, *records = _csv(path, text, columns, replies) or [[]]
    header = [str(name or "").strip() for name in header]
    if not any(header):
        wanted = f"expected a header with the columns {', '.join(columns)}"
        raise BadInput(f"{path}: is empty; {wanted}")
    check_header(path, header, columns, more)
    filled = [record for record in records if any(str(cell or "").strip() for cell in record)]
    needed = {*columns, *more}
    return [
        _row(f"{path}, row {number}", header, record, needed)
        for number, record in enumerate(filled, start=1)
    ]


def _row(place: str, header: list[str], record: Sequence[Any], needed: set[str]) -> Row | str:
    """Return the cells of a row as texts, by column; a sentence where their number is wrong."""
    if len(record) < len(header) or any(map(_text, record[len(header) :])):
        return f"has {len(record)} cells, the header has {len(header)}"
    row: Row = {}
    for name, value in zip(header, record, strict=False):
        if name in needed and (problem := _not_a_text(value)):
            raise BadInput(f"{place}, column `{name}`: {problem}")
        row[name] = _text(value)
    return row


def _not_a_text(value: Any) -> str:
    """Say why a value does not stand for one text, or return ""."""
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        shown = str(value).removesuffix(" 00:00:00")
        advice = "which a spreadsheet program may have made of a text such as 3-5; write it as text"
        return f"{shown} is a date or a time, {advice}"
    if value is None or isinstance(value, str | Number):
        return ""
    advice = "write a text, with the separator of that column between its parts"
    return f"{quoted(value)} is a {'list' if isinstance(value, list) else 'table'}; {advice}"


def _text(value: Any) -> str:
    """Return a value as a text: "" for a missing one, 3 for 3.0."""
    if value is None or value != value:  # NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_header(
    path: Path, header: Sequence[str], columns: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Check that a header has each of `columns` once, and each of `more` at most once."""
    place = f"{path}, row 1 (header)"
    if missing := [name for name in columns if name not in header]:
        shown = plain(", ".join(header[:20]))[:300] or "nothing"
        near = closest(missing[0], [name for name in header if name not in (*columns, *more)])
        meant = f", perhaps called {quoted(near)}" if near else ""
        raise BadInput(f"{place}: column `{missing[0]}` is missing{meant}; found: {shown}")
    if doubled := [name for name in (*columns, *more) if list(header).count(name) > 1]:
        raise BadInput(f"{place}: column `{doubled[0]}` occurs more than once")


def _csv(path: Path, text: str, columns: Sequence[str], replies: bool) -> list[list[str]]:
    """Split CSV into records, by the delimiter with which its header has the columns."""
    csv.field_size_limit(MAX_BYTES)  # Python has one limit for all its readers

    def reader_with(mark: str, strict: bool = False) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=strict)

    def fit(mark: str) -> tuple[bool, int]:
        header = [name.strip() for name in next(filter(None, reader_with(mark)), [])]
        return len(header) > 1 and {*columns} <= {*header}, len(header)

    mark = max(DELIMITERS, key=fit)  # of equals the comma
    reader = reader_with(mark, strict=True)
    records: list[list[str]] = []
    begin = 1
    try:
        for record in reader:
            joined = "".join(f"{mark}{cell}" for cell in record if "\n" in cell)
            ends = len(CELL_END[mark].findall(joined))
            # As many cells as the header has, in cells of several lines: they are rows.
            if not replies and records and ends >= max(len(records[0]), 5):
                raise csv.Error("a cell holds other rows")
            if record:
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
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > MAX_BYTES:
            problem = f"unpacks to more than {MAX_BYTES:,} bytes"
            raise BadInput(f"{path}: {problem}; save the rows alone, or as CSV in UTF-8")
        with warnings.catch_warnings(action="ignore"):  # about styles and lists of allowed values
            book = load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # a sheet can claim any size
            rows = [
                ["" if cell.data_type == "e" else cell.value for cell in row]
                for row in sheet.iter_rows()
            ]
    except BadInput:
        raise
    except Exception as error:  # whatever a broken archive or XML provokes in the libraries
        reason = plain(f"{type(error).__name__}: {error}")[:300]
        raise BadInput(f"{path}: cannot be read as xlsx ({reason}); save it again") from None
    # Rows end at their last cell, and blank columns may stand beside the table.
    columns = list(zip_longest(*rows))
    while columns and not any(columns[-1]):
        columns.pop()
    return list(map(list, zip(*columns, strict=True)))


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


# JSON


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the object of each line of JSON Lines that is not blank."""
    for number, line in read_lines(path):
        if line.strip():
            yield number, _object(f"{path}, line {number}", _parse_json(path, line, number))


def _array(path: Path, text: str) -> list[dict[str, Any]]:
    values = enumerate(_parse_json(path, text), start=1)
    return [_object(f"{path}, row {number}", value) for number, value in values]


def _object(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{place}: expected a JSON object, found {type(value).__name__}")
    return value


def _parse_json(path: Path, text: str, line: int = 0) -> Any:
    """Return the value of a JSON document that no program reads differently, by its line."""
    place = f"{path}, line {line}" if line else str(path)
    try:
        value = json.loads(text, object_pairs_hook=_unique_fields)
        if "\\ud" in text.lower():  # half of a surrogate pair is not a character
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.colno}"
        raise BadInput(f"{path}, line {line or error.lineno}: not JSON ({where})") from None
    except RecursionError:
        raise BadInput(f"{place}: JSON nested too deeply") from None
    except ValueError as error:  # also of Python's limit for whole numbers
        raise BadInput(f"{place}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the message of a library on one line, without advice for programmers."""
    return plain(" ".join(str(error).partition("; use sys.")[0].split()))[:300]


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"field {quoted(name)} occurs more than once in an object")
    return value


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not TOML ({_reason(error)})") from None


def to_toml(values: Mapping[str, Any]) -> str:
    """Write texts, numbers, truth values, tables, and lists with no tables or nothing else."""
    return "\n".join(_toml_lines("", values)) + "\n"


def toml_key(name: str) -> str:
    """Return a key as TOML writes it, in quotes where it needs them."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml_value(name, multiline=False)


def _toml_lines(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    def is_table(value: Any) -> bool:
        entries = value if isinstance(value, list) and value else [value]
        return all(isinstance(entry, Mapping) for entry in entries)

    tables = {key: value for key, value in values.items() if is_table(value)}
    # What follows the heading of a table belongs to that table, so tables come last.
    for key, value in values.items():
        if key not in tables:
            yield f"{toml_key(key)} = {_toml_value(value)}"
    for key, value in tables.items():
        path = f"{name}.{toml_key(key)}".lstrip(".")
        single = isinstance(value, Mapping)
        for entry in [value] if single else value:
            yield f"\n[{path}]" if single else f"\n[[{path}]]"
            yield from _toml_lines(path, entry)


def _toml_value(value: Any, multiline: bool = True) -> str:
    """Write a text of several lines as such, and anything else as JSON, which TOML can read."""
    # JSON's strings are TOML's, except for DEL.
    text = json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
    if not multiline or not isinstance(value, str) or "\n" not in value:
        return text
    # Match complete escapes: `\\n` is a backslash and an n.
    lines = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[0], text[1:-1])
    return f'"""\n{lines}"""'


def read_yaml(path: Path) -> Any:
    """Read a YAML file; nothing in it is run."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Takes each key of a mapping once, as the last of two would hide the first."""

        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            node = super().compose_mapping_node(anchor)
            names: list[Any] = []
            for key, _ in node.value:
                if key.value in names and isinstance(key.value, str) and key.value != "<<":
                    place = f"{path}, line {key.start_mark.line + 1}"
                    raise BadInput(f"{place}: key {quoted(key.value)} is there twice; keep one")
                names.append(key.value)
            return node

    text = read_text(path)
    try:
        return yaml.load(text, Loader)
    except BadInput:
        raise
    except Exception as error:  # whatever a wrong date, or a tag on another kind, provokes
        raise BadInput(f"{path}: not YAML ({_reason(error)})") from None
