"""Read files that nobody vouches for: text, CSV, JSON, xlsx, TOML and YAML, and write TOML.

Every cell is a string. Each function raises `BadInput` for a file that cannot be read or is wrong,
with the file and the line, or the row and column, and what is allowed. The limits are far beyond
what a benchmark has; no content of a file hangs the process or fills its memory.
"""

import codecs
import csv
import io
import json
import re
import tomllib
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import BadInput, plain, quoted

if TYPE_CHECKING:
    import yaml

Row = dict[str, str]

# Bytes of a file that is read at once.
MAX_BYTES = 2**26
# Characters of a line or of a CSV record, and lines of a record.
MAX_LINE, MAX_RECORD_LINES = 2**24, 1_000_000
# Size of a table. A cell can be longer where it is the reply of a model.
MAX_COLUMNS, MAX_ROWS, MAX_CELLS, MAX_CELL = 1000, 2**20, 5_000_000, 2**17
# Values of a JSON file, counted by their commas and brackets.
MAX_JSON_VALUES = 2_000_000
# An xlsx file: bytes packed and unpacked, parts, and XML elements with their attributes.
MAX_PACKED, MAX_UNPACKED, MAX_PARTS, MAX_ELEMENTS = 2**24, 2**26, 10_000, 1_000_000
# A TOML or YAML file: bytes, nesting, parts of a key, values with each alias written out, digits.
MAX_CONFIG_BYTES, MAX_DEPTH, MAX_CONFIG_VALUES, MAX_DIGITS = 2**20, 16, 100_000, 100
# A path, and one name in it.
MAX_PATH, MAX_NAME = 4096, 255

BOM = "\ufeff"
BOM_INSIDE = "begins with a byte order mark, as where two files were joined; remove it"
NO_CHARACTER = "holds half of a surrogate pair, which is not a character"
# The longer marks first, because UTF-32's begins like UTF-16's.
WIDE_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# How old .xls files begin, and xlsx files with a password.
COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
XLSX_ADVICE = "save the rows alone in a new workbook, or as CSV in UTF-8"
# Reading a key of many parts takes time and memory by the square of their number.
LONG_TOML_KEY = re.compile(
    rf"""^[ \t\[]*(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*\.[ \t]*){{{MAX_DEPTH}}}""",
    re.MULTILINE,
)
YAML_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

# Python has one limit for all its CSV readers, and a model's reply can be longer than the default.
csv.field_size_limit(MAX_LINE + 1)


# Files and text


def as_path(text: str | Path) -> Path:
    """Return the path that `text` names, with `~` expanded."""
    name = str(text)
    try:
        parts = name.encode("utf-8", "surrogateescape").split(b"/")
        if "\0" in name or len(name) > MAX_PATH or max(map(len, parts)) > MAX_NAME:
            raise ValueError("it holds a NUL character or is too long")
        return Path(name).expanduser()
    except (ValueError, RuntimeError) as error:  # half a character, or a user that does not exist
        raise BadInput(f"{name[:200]}: is not a path ({error})") from None


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read its bytes."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from None


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a file of at most `limit` bytes."""
    with open_file(path) as stream:
        raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise BadInput(
            f"{path}: is larger than {limit:,} bytes; split it, or leave out what is not needed"
        )
    return raw


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Read a UTF-8 file, with or without a byte order mark."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _encoding_error(path) from None


def read_lines(
    path: Path, ends: str = "\n", encoding: str = "utf-8", advice: str = ""
) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a file.

    Args:
        path: the file.
        ends: `"\\n"`, which is left out of the text; or "", by which a carriage return ends a line
            too, and ends are kept.
        encoding, advice: as for `csv_rows`.
    """
    try:
        with open_file(path) as raw, io.TextIOWrapper(raw, encoding, newline=ends) as stream:
            lines = iter(lambda: stream.readline(MAX_LINE + 1), "")
            for number, line in enumerate(lines, start=1):
                place = f"{path}, line {number}"
                text = line.removeprefix(BOM) if number == 1 else line
                if len(line) > MAX_LINE:
                    raise BadInput(f"{place}: is longer than {MAX_LINE:,} characters; split it")
                if text.startswith(BOM):
                    raise BadInput(f"{place}: {BOM_INSIDE}")
                if "\0" in text:
                    what = "holds a NUL character, so it is not a text"
                    raise BadInput(f"{place}: {what}; save it again in UTF-8")
                yield number, text.removesuffix(ends)
    except UnicodeDecodeError:
        raise _encoding_error(path, encoding, advice) from None


def _encoding_error(path: Path, encoding: str = "utf-8", advice: str = "") -> BadInput:
    """Return the error of a file that cannot be decoded, with the line of the first wrong byte."""
    with open_file(path) as stream:
        head = stream.read(4)
        for mark, name in WIDE_ENCODINGS.items():
            if head.startswith(mark):
                remedy = f"save it again in UTF-8: iconv -f {name} -t UTF-8 '{path.name}'"
                return BadInput(f"{path}: is {name}; {remedy}")
        stream.seek(0)
        place = str(path)
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                byte = f"byte {line[error.start]:#04x}"
                place = f"{path}, line {number}: not {encoding.upper()} ({byte})"
                break
    if encoding != "utf-8":
        return BadInput(f"{place}; save it again as CSV in UTF-8")
    return BadInput(
        f"{place}; if it is GBK, {advice}"
        f"convert it: iconv -f GB18030 -t UTF-8 '{path.name}' > '{path.stem}-utf8{path.suffix}'"
    )


# CSV


def read_csv(
    path: Path, columns: Sequence[str], more: Sequence[str] = (), longest: int = MAX_CELL
) -> list[Row]:
    """Read the rows of a CSV file.

    Args:
        path: the file, in UTF-8.
        columns: those that its header must have.
        more: those that it can have; each at most once.
        longest: characters that a cell can have.
    """
    rows: list[Row] = []
    for number, row in enumerate(csv_rows(path, columns, more=more, longest=longest), start=1):
        if isinstance(row, str):
            raise BadInput(f"{path}, row {number}: {row}")
        rows.append(row)
    return rows


def csv_rows(
    path: Path,
    columns: Sequence[str],
    *,
    more: Sequence[str] = (),
    longest: int = MAX_CELL,
    encoding: str = "utf-8",
    advice: str = "",
) -> list[Row | str]:
    """Read the rows of a CSV file, with a sentence in place of one with a wrong number of cells.

    Args:
        path, columns, more, longest: as for `read_csv`.
        encoding: `utf-8`, or `gb18030`, which GBK is a part of.
        advice: how the caller reads GBK, for the message about a file that is not UTF-8.
    """
    # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever happens.
    if encoding != "utf-8":
        with suppress(UnicodeDecodeError):
            if not read_bytes(path).decode().isascii():
                name = encoding.upper()
                raise BadInput(f"{path}: is UTF-8, not {name}; read it as UTF-8, the default")
    record_lines: list[str] = []

    def lines() -> Iterator[str]:
        size = 0
        for number, line in read_lines(path, "", encoding, advice):
            size = len(line) + (size if record_lines else 0)
            if size > MAX_LINE or len(record_lines) > MAX_RECORD_LINES:
                raise BadInput(
                    f"{path}, line {number}: its record is longer than {MAX_LINE:,} characters, or "
                    f"{MAX_RECORD_LINES:,} lines; a quote may be missing"
                )
            record_lines.append(line)
            yield line

    rows: list[Row | str] = []
    header: list[str] = []
    last: list[str] = []
    cells = 0
    reader = csv.reader(lines())
    try:
        for record in reader:
            last = record_lines.copy()
            record_lines.clear()
            if not record:
                continue
            cells += len(record) + 4  # a row takes memory too
            if max(map(len, record)) > longest:
                raise csv.Error(f"a cell is longer than {longest:,} characters")
            if cells > MAX_CELLS:
                raise csv.Error(f"more than {MAX_CELLS:,} cells; split it")
            if not header:
                header = [name.strip() for name in record]
                check_header(path, header, columns, more)
            elif len(record) == len(header):
                rows.append(dict(zip(header, record, strict=True)))
            else:
                rows.append(f"has {len(record)} cells, the header has {len(header)}")
        # A message about a record with too few cells is enough.
        if rows and isinstance(rows[-1], dict):
            list(csv.reader(last, strict=True))
    except csv.Error as error:
        line = reader.line_num
        if "end of data" in str(error):
            raise BadInput(
                f"{path}, line {line}: the file ends within a quoted cell, which begins at most "
                f"{len(last)} lines earlier; close its quote"
            ) from None
        if "expected after" not in str(error):  # a quote within a cell
            raise BadInput(f"{path}, line {line}: cannot be read as CSV ({error})") from None
    if not header:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    return rows


def check_header(
    path: Path, header: Sequence[str], columns: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Check that a header has each of `columns` once, and each of `more` at most once."""
    place = f"{path}, row 1 (header)"
    if len(header) > MAX_COLUMNS:
        raise BadInput(
            f"{place}: has {len(header):,} columns; at most {MAX_COLUMNS:,} are read, of which "
            f"{', '.join(columns)} are needed"
        )
    if missing := [name for name in columns if name not in header]:
        shown = plain(", ".join(header[:20]))[:300] or "nothing"
        raise BadInput(f"{place}: column `{missing[0]}` is missing; found: {shown}")
    if doubled := [name for name in (*columns, *more) if list(header).count(name) > 1]:
        raise BadInput(f"{place}: column `{doubled[0]}` occurs more than once")


# JSON


def _parse_json(path: Path, text: str, line: int = 0) -> Any:
    """Return the value of a JSON document that no program reads differently, by its line."""
    place = f"{path}, line {line}" if line else str(path)
    try:
        value = json.loads(text, object_pairs_hook=_unique_fields)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.colno}"
        raise BadInput(f"{path}, line {line or error.lineno}: not JSON ({where})") from None
    except UnicodeEncodeError:
        raise BadInput(f"{place}: {NO_CHARACTER}") from None
    except RecursionError:
        raise BadInput(f"{place}: JSON nested too deeply") from None
    except ValueError as error:  # a field occurs twice, or Python's limit for whole numbers
        raise BadInput(f"{place}: {str(error).partition('; use sys.')[0]}") from None


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"field {quoted(name)} occurs more than once in an object")
    return value


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the object of each line of JSON Lines that is not blank."""
    for number, line in read_lines(path):
        value = _parse_json(path, line, number) if line.strip() else {}
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise BadInput(f"{path}, line {number}: expected a JSON object, found {kind}")
        if line.strip():
            yield number, value


def read_json_array(path: Path, columns: Sequence[str], more: Sequence[str] = ()) -> list[Row]:
    """Read a file with one JSON array of objects whose values are texts or whole numbers.

    Args:
        path: the file, in UTF-8.
        columns: the fields that each object must have.
        more: the fields that it can have; all others are left out.
    """
    text = read_text(path)
    if not text.lstrip().startswith("["):
        raise BadInput(f"{path}: expected a JSON array of objects")
    if sum(map(text.count, "[{,")) > MAX_JSON_VALUES:
        raise BadInput(f"{path}: holds more than {MAX_JSON_VALUES:,} values; split it")
    rows: list[Row] = []
    for number, value in enumerate(_parse_json(path, text), start=1):
        place = f"{path}, row {number}"
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise BadInput(f"{place}: expected a JSON array of objects, found {kind}")
        if missing := [name for name in columns if name not in value]:
            raise BadInput(f"{place}: field `{missing[0]}` is missing")
        row = {name: value[name] for name in (*columns, *more) if name in value}
        for name, cell in row.items():
            if not isinstance(cell, str | int) or isinstance(cell, bool):
                raise BadInput(f"{place}, field `{name}`: {quoted(cell)} is not a text")
        rows.append({name: str(cell) for name, cell in row.items()})
    return rows


# xlsx


def read_xlsx(path: Path, columns: Sequence[str]) -> list[Row]:
    """Read the rows of the first sheet of an xlsx file; a formula counts as its stored value."""
    from openpyxl import load_workbook

    check_xlsx(path)
    rows: list[list[str]] = []
    with (
        _explained(path),
        # A list of allowed values, or a style, is of no interest here.
        warnings.catch_warnings(action="ignore"),
        closing(load_workbook(path, read_only=True, data_only=True)) as values,
        closing(load_workbook(path, read_only=True)) as formulas,
    ):
        sheets = [xlsx_rows(path, book.worksheets[0]) for book in (values, formulas)]
        for number, (row, written) in enumerate(zip(*sheets, strict=True)):
            names = rows[0] if rows else []
            for name, cell, formula in zip(names, row, written, strict=False):
                if name in columns and cell.value is None and formula.data_type == "f":
                    raise BadInput(
                        f"{path}, row {number}, column `{name}`: holds a formula without a value; "
                        "open the file in a spreadsheet program and save it, or write the value in"
                    )
            texts = list(map(_cell_text, row))
            rows.append(texts if rows else [text.strip() for text in texts])
    while rows and not any(rows[-1]):
        rows.pop()
    if not rows:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    width = max(map(len, rows))
    header, *records = (row + [""] * (width - len(row)) for row in rows)
    check_header(path, header, columns)
    return [dict(zip(header, record, strict=True)) for record in records]


def check_xlsx(path: Path) -> None:
    """Check the size of an xlsx file before a library reads it."""
    if read_bytes(path, MAX_PACKED).startswith(COMPOUND_FILE):
        raise BadInput(
            f"{path}: has a password, or is an old .xls file; save it as .xlsx without a password"
        )
    unpacked = elements = 0
    with _explained(path), zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > MAX_PARTS:
            raise BadInput(f"{path}: has more than {MAX_PARTS:,} parts; {XLSX_ADVICE}")
        for part in archive.infolist():
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                what = "is packed in a way that xlsx does not have"
                raise BadInput(f"{path}, part {part.filename}: {what}")
            with archive.open(part) as stream:
                while chunk := stream.read(2**20):
                    unpacked += len(chunk)
                    elements += chunk.count(b"<") + chunk.count(b"=")
                    if unpacked > MAX_UNPACKED or elements > MAX_ELEMENTS:
                        raise BadInput(
                            f"{path}, part {part.filename}: unpacks to more than {MAX_UNPACKED:,} "
                            f"bytes or {MAX_ELEMENTS:,} elements, the most that is read; "
                            f"{XLSX_ADVICE}"
                        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Explain whatever a broken zip archive or XML provokes in a library, a password among it."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        reason = plain(f"{type(error).__name__}: {error}")[:300]
        raise BadInput(f"{path}: cannot be read as xlsx ({reason})") from None


def xlsx_rows(path: Path, sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of cells of a sheet that openpyxl opened with `read_only=True`."""
    # A sheet can claim any size.
    sheet.reset_dimensions()
    cells = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells += max(len(row), 1)
        for size, limit, unit in (
            (number, MAX_ROWS, "rows"),
            (len(row), MAX_COLUMNS, "columns"),
            (cells, MAX_CELLS, "cells"),
        ):
            if size > limit:
                raise BadInput(
                    f"{path}: has more than {limit:,} {unit}, the most that is read; {XLSX_ADVICE}"
                )
        yield row


def _cell_text(cell: Any) -> str:
    """Return what a cell shows; "" for an error such as #N/A."""
    if cell.value is None or cell.data_type == "e":
        return ""
    if isinstance(cell.value, float) and cell.value.is_integer():
        return str(int(cell.value))
    return str(cell.value)


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    text = read_text(path, MAX_CONFIG_BYTES)
    if long := LONG_TOML_KEY.search(text):
        line = text.count("\n", 0, long.end()) + 1
        what = f"a key of more than {MAX_DEPTH} parts; expected few tables in tables"
        raise BadInput(f"{path}, line {line}: {what}")
    try:
        values = tomllib.loads(text)
        _check_depth(values)
    except (ValueError, RecursionError) as error:  # with Python's limit for whole numbers
        raise BadInput(f"{path}: not TOML ({str(error).partition('; use sys.')[0]})") from None
    return values


def _check_depth(value: Any, depth: int = 0) -> None:
    """Raise a ValueError for values in values in values, and for a number that few programs read.

    Hexadecimal numbers have no limit of Python's, and TOML's own is 64 bits.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep; expected few tables in tables")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a number of too many digits")
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, depth + 1)


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

    loader = None
    try:
        loader = yaml.SafeLoader(read_text(path, MAX_CONFIG_BYTES))
        node = loader.get_single_node()
        if node is None:
            return None
        _check_yaml(path, node, (), {})
        return loader.construct_document(node)
    # The loader does not catch what a wrong date, or a tag on another kind of value, provokes.
    except (
        *(yaml.YAMLError, RecursionError, ValueError, OverflowError),
        *(TypeError, AttributeError, KeyError),
    ) as error:
        raise BadInput(f"{path}: not YAML ({' '.join(str(error).split())[:300]})") from None
    finally:
        if loader is not None:
            loader.dispose()


def _check_yaml(
    path: Path, node: "yaml.Node", parents: tuple[int, ...], sizes: dict[int, int]
) -> int:
    """Return the number of values of a node with each alias written out; `sizes` has known ones."""
    place = f"{path}, line {node.start_mark.line + 1}"
    if id(node) in parents or len(parents) > MAX_DEPTH:
        raise BadInput(f"{place}: is nested more than {MAX_DEPTH} deep; expected keys in keys")
    if id(node) in sizes:
        return sizes[id(node)]
    nodes = [] if isinstance(node.value, str) else node.value
    if isinstance(node.value, str):
        if any("\ud800" <= char <= "\udfff" for char in node.value):
            raise BadInput(f"{place}: {NO_CHARACTER}")
        if node.tag in YAML_NUMBERS and len(node.value) > MAX_DIGITS:
            raise BadInput(f"{place}: {quoted(node.value)} is a number of too many digits")
    elif nodes and isinstance(nodes[0], tuple):
        keys = Counter(key.value for key, _ in nodes if isinstance(key.value, str))
        if doubled := [key for key in keys if key != "<<" and keys[key] > 1]:
            raise BadInput(f"{place}: key {quoted(doubled[0])} is there twice; keep one of them")
        nodes = chain.from_iterable(nodes)
    total = 1 + sum(_check_yaml(path, inner, (*parents, id(node)), sizes) for inner in nodes)
    if total > MAX_CONFIG_VALUES:
        raise BadInput(
            f"{place}: stands for more than {MAX_CONFIG_VALUES:,} values with each alias written "
            "out; write less"
        )
    sizes[id(node)] = total
    return total
