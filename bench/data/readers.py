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
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import BadInput, plain, quoted

if TYPE_CHECKING:
    import yaml

Row = dict[str, str]

# Bytes of a file that is read at once.
MAX_BYTES = 2**26
# Bytes of a line, and characters of a CSV record, which can have several lines.
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
    return _decode(path, read_bytes(path, limit)).removeprefix(BOM)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file."""
    for number, line in _lines(path):
        if line.startswith(BOM):
            raise BadInput(f"{path}, line {number}: {BOM_INSIDE}")
        yield number, line.removesuffix("\n")


def _lines(path: Path, encoding: str = "utf-8", advice: str = "") -> Iterator[tuple[int, str]]:
    with open_file(path) as stream:
        for number in count(1):
            raw = stream.readline(MAX_LINE + 1)
            if not raw:
                return
            if len(raw) > MAX_LINE:
                raise BadInput(
                    f"{path}, line {number}: is longer than {MAX_LINE:,} bytes; split it"
                )
            text = _decode(path, raw, encoding, number, advice)
            yield number, text.removeprefix(BOM) if number == 1 else text


def _decode(
    path: Path, raw: bytes, encoding: str = "utf-8", line: int = 1, advice: str = ""
) -> str:
    """Decode `raw`, which begins at `line` of the file."""
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line += raw.count(b"\n", 0, error.start)
        raise BadInput(_encoding_error(path, line, raw[error.start], encoding, advice)) from None
    if "\0" in text:
        line += text.count("\n", 0, text.index("\0"))
        raise BadInput(
            f"{path}, line {line}: holds a NUL character, so it is not a text table; save it again "
            "as CSV in UTF-8"
        )
    return text


def _encoding_error(path: Path, line: int, byte: int, encoding: str, advice: str) -> str:
    with open_file(path) as stream:
        head = stream.read(4)
    wide = next((name for mark, name in WIDE_ENCODINGS.items() if head.startswith(mark)), "")
    if wide:
        return f"{path}: is {wide}; save it again in UTF-8: iconv -f {wide} -t UTF-8 '{path.name}'"
    place = f"{path}, line {line}: not {encoding.upper()} (byte {byte:#04x})"
    if encoding != "utf-8":
        return f"{place}; save it again as CSV in UTF-8"
    return (
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
    if encoding != "utf-8" and _is_utf8(read_bytes(path)):
        raise BadInput(f"{path}: is UTF-8, not {encoding.upper()}; read it as UTF-8, the default")
    rows: list[Row | str] = []
    header: list[str] = []
    record_lines: list[str] = []
    last: list[str] = []
    cells = 0
    reader = csv.reader(_record_lines(path, encoding, advice, record_lines))
    try:
        for record in reader:
            last = record_lines.copy()
            record_lines.clear()
            if not record:
                continue
            place = f"{path}, line {reader.line_num}"
            cells += len(record) + 4  # a row takes memory too
            if sum(map(len, last)) > longest and max(map(len, record)) > longest:
                raise csv.Error(f"a cell is longer than {longest:,} characters")
            if cells > MAX_CELLS:
                raise BadInput(f"{place}: has more than {MAX_CELLS:,} cells; split it")
            if record[0].startswith(BOM):
                raise BadInput(f"{place}: {BOM_INSIDE}")
            if not header:
                header = [name.strip() for name in record]
                check_header(path, header, columns, more)
            elif len(record) == len(header):
                rows.append(dict(zip(header, record, strict=True)))
            else:
                rows.append(f"has {len(record)} cells, the header has {len(header)}")
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: cannot be read as CSV ({error})") from None
    if not header:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    # The message about a record with too few cells is enough.
    if rows and isinstance(rows[-1], dict) and _ends_in_quotes(last):
        raise BadInput(
            f"{path}, line {reader.line_num}: the file ends within a quoted cell, which begins at "
            f"most {len(last)} lines earlier; close its quote"
        )
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
    missing = [name for name in columns if name not in header]
    if missing:
        shown = plain(", ".join(header[:20]))[:300] or "nothing"
        raise BadInput(f"{place}: column `{missing[0]}` is missing; found: {shown}")
    doubled = next((name for name in (*columns, *more) if list(header).count(name) > 1), None)
    if doubled:
        raise BadInput(f"{place}: column `{doubled}` occurs more than once")


def _record_lines(path: Path, encoding: str, advice: str, record: list[str]) -> Iterator[str]:
    """Yield lines for `csv.reader`, and add them to `record`, which the caller clears."""
    size = 0
    for number, text in _lines(path, encoding, advice):
        # A carriage return ends a line too.
        for line in io.StringIO(text, newline="") if "\r" in text else (text,):
            size = len(line) + (size if record else 0)
            if size > MAX_LINE or len(record) > MAX_RECORD_LINES:
                raise BadInput(
                    f"{path}, line {number}: its record is longer than {MAX_LINE:,} characters, or "
                    f"{MAX_RECORD_LINES:,} lines; a quote may be missing"
                )
            record.append(line)
            yield line


def _is_utf8(raw: bytes) -> bool:
    """Tell whether `raw` is UTF-8 with characters outside ASCII."""
    with suppress(UnicodeDecodeError):
        return not raw.decode().isascii()
    return False


def _ends_in_quotes(record: Sequence[str]) -> bool:
    """Tell whether a record lacks its closing quote; the rest of the table is then in one cell."""
    try:
        list(csv.reader(record, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


# JSON


def _parse_json(text: str) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: it is not JSON, or is one that another program would read differently.
    """
    try:
        value = json.loads(text, object_pairs_hook=_json_object)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        raise
    except UnicodeEncodeError:
        raise ValueError(NO_CHARACTER) from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except KeyError as error:
        raise ValueError(
            f"field {quoted(error.args[0])} occurs more than once in an object"
        ) from None
    except ValueError:  # Python's limit for whole numbers
        raise ValueError("holds a number of too many digits") from None
    return value


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the object of each line of JSON Lines that is not blank."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = _parse_json(line)
        except ValueError as error:
            raise BadInput(_json_error(path, error, number)) from None
        if not isinstance(value, dict):
            raise BadInput(
                f"{path}, line {number}: expected a JSON object, found {type(value).__name__}"
            )
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
    try:
        values = _parse_json(text)
    except ValueError as error:
        raise BadInput(_json_error(path, error)) from None
    rows: list[Row] = []
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise BadInput(
                f"{path}, row {number}: expected a JSON array of objects, found "
                f"{type(value).__name__}"
            )
        missing = next((name for name in columns if name not in value), None)
        if missing:
            raise BadInput(f"{path}, row {number}: field `{missing}` is missing")
        row = {name: value[name] for name in (*columns, *more) if name in value}
        for name, cell in row.items():
            if not isinstance(cell, str | int) or isinstance(cell, bool):
                raise BadInput(
                    f"{path}, row {number}, field `{name}`: {quoted(cell)} is not a text"
                )
        rows.append({name: str(cell) for name, cell in row.items()})
    return rows


def _json_error(path: Path, error: ValueError, line: int = 0) -> str:
    if isinstance(error, json.JSONDecodeError):
        place = f"{path}, line {line or error.lineno}"
        return f"{place}: not JSON ({error.msg} at character {error.colno})"
    return f"{path}, line {line}: {error}" if line else f"{path}: {error}"


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return value


# xlsx


def read_xlsx(path: Path, columns: Sequence[str]) -> list[Row]:
    """Read the rows of the first sheet of an xlsx file; a formula counts as its stored value."""
    from openpyxl import load_workbook

    check_xlsx(path)
    rows: list[list[str]] = []
    try:
        with (
            # A list of allowed values, or a style, is of no interest here.
            warnings.catch_warnings(action="ignore"),
            closing(load_workbook(path, read_only=True, data_only=True)) as values,
            closing(load_workbook(path, read_only=True)) as formulas,
        ):
            sheets = [xlsx_rows(path, book.worksheets[0]) for book in (values, formulas)]
            for number, (row, written) in enumerate(zip(*sheets, strict=True)):
                for k, (cell, formula) in enumerate(zip(row, written, strict=True)):
                    if number and cell.value is None and formula.data_type == "f":
                        name = rows[0][k] if k < len(rows[0]) else ""
                        if name in columns:
                            raise BadInput(
                                f"{path}, row {number}, column `{name}`: holds a formula without a "
                                "value; open the file in a spreadsheet program and save it, or "
                                "write the value in"
                            )
                texts = list(map(_cell_text, row))
                rows.append(texts if number else [text.strip() for text in texts])
    except BadInput:
        raise
    except Exception as error:  # whatever a broken zip archive or XML provokes in the library
        raise BadInput(_xlsx_error(path, error)) from None
    while rows and not any(rows[-1]):
        rows.pop()
    if not rows:
        raise BadInput(f"{path}: is empty; expected a header with the columns {', '.join(columns)}")
    header, *records = rows
    width = max(map(len, rows))
    header += [""] * (width - len(header))
    check_header(path, header, columns)
    return [
        dict(zip(header, [*record, *[""] * (width - len(record))], strict=True))
        for record in records
    ]


def check_xlsx(path: Path) -> None:
    """Check the size of an xlsx file before a library reads it."""
    with open_file(path) as stream:
        head = stream.read(len(COMPOUND_FILE))
    if head == COMPOUND_FILE:
        raise BadInput(
            f"{path}: has a password, or is an old .xls file; save it as .xlsx without a password"
        )
    read_bytes(path, MAX_PACKED)
    unpacked = elements = 0
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if len(parts) > MAX_PARTS:
                raise BadInput(
                    f"{path}: has {len(parts):,} parts, at most {MAX_PARTS:,} are read; "
                    f"{XLSX_ADVICE}"
                )
            for part in parts:
                if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise BadInput(
                        f"{path}, part {part.filename}: is packed in a way that xlsx does not have"
                    )
                with archive.open(part) as stream:
                    while chunk := stream.read(2**20):
                        unpacked += len(chunk)
                        elements += chunk.count(b"<") + chunk.count(b"=")
                        if unpacked > MAX_UNPACKED or elements > MAX_ELEMENTS:
                            raise BadInput(
                                f"{path}, part {part.filename}: unpacks to more than "
                                f"{MAX_UNPACKED:,} bytes or {MAX_ELEMENTS:,} elements, the most "
                                f"that is read; {XLSX_ADVICE}"
                            )
    except BadInput:
        raise
    except Exception as error:  # whatever a broken zip archive provokes, a password among it
        raise BadInput(_xlsx_error(path, error)) from None


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


def _xlsx_error(path: Path, error: Exception) -> str:
    return f"{path}: cannot be read as xlsx ({plain(f'{type(error).__name__}: {error}')[:300]})"


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    text = read_text(path, MAX_CONFIG_BYTES)
    long = LONG_TOML_KEY.search(text)
    if long:
        line = text.count("\n", 0, long.end()) + 1
        raise BadInput(
            f"{path}, line {line}: a key of more than {MAX_DEPTH} parts; expected few tables in "
            "tables"
        )
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML ({error})") from None
    except RecursionError:
        raise BadInput(f"{path}: is nested too deeply; expected few tables in tables") from None
    except ValueError:  # Python's limit for whole numbers
        raise BadInput(f"{path}: holds a number of too many digits") from None
    level: list[Any] = [values]
    for _ in range(MAX_DEPTH):
        level = list(
            chain.from_iterable(
                value.values() if isinstance(value, dict) else value
                for value in level
                if isinstance(value, dict | list)
            )
        )
        # Hexadecimal numbers have no limit of Python's, and TOML's own is 64 bits.
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in level):
            raise BadInput(f"{path}: holds a number of too many digits")
    if any(isinstance(value, dict | list) for value in level):
        raise BadInput(
            f"{path}: is nested more than {MAX_DEPTH} deep; expected few tables in tables"
        )
    return values


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

    text = read_text(path, MAX_CONFIG_BYTES)
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_yaml(path, node, (), {})
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise BadInput(f"{path}: is nested too deeply; expected keys in keys") from None
    except (ValueError, OverflowError, TypeError, AttributeError, KeyError) as error:
        # The loader does not catch what a wrong date, or a tag on another kind of value, provokes.
        raise BadInput(f"{path}: not YAML ({plain(str(error))[:200]})") from None
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
    nodes = node.value
    if isinstance(node.value, str):
        nodes = []
        if any("\ud800" <= char <= "\udfff" for char in node.value):
            raise BadInput(f"{place}: {NO_CHARACTER}")
        if node.tag in YAML_NUMBERS and len(node.value) > MAX_DIGITS:
            raise BadInput(f"{place}: {quoted(node.value)} is a number of too many digits")
    elif node.value and isinstance(node.value[0], tuple):
        keys = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
        doubled = next((key for key in keys if key != "<<" and keys[key] > 1), "")
        if doubled:
            raise BadInput(f"{place}: key {quoted(doubled)} is there twice; keep one of them")
        nodes = list(chain.from_iterable(node.value))
    total = 1 + sum(_check_yaml(path, inner, (*parents, id(node)), sizes) for inner in nodes)
    if total > MAX_CONFIG_VALUES:
        raise BadInput(
            f"{place}: stands for more than {MAX_CONFIG_VALUES:,} values with each alias written "
            "out; write less"
        )
    sizes[id(node)] = total
    return total
