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
from itertools import zip_longest
from pathlib import Path
from typing import Any
from xml.parsers import expat

from bench.core.errors import BadInput, closest, plain, quoted

Row = dict[str, str]

# Bytes of a file that is read at once, of an xlsx file when it is unpacked, of each of its parts
# that is no table, and of TOML or YAML.
MAX_BYTES, MAX_UNPACKED, MAX_PART, MAX_CONFIG_BYTES = 2**24, 2**24, 2**20, 2**16
# XML elements in a row of a sheet or in a text, which openpyxl keeps as a whole.
MAX_ELEMENTS = 2**16
# Characters of a line or of a CSV record.
MAX_LINE = 2**22
# Cells of a table, where a row counts as four more; characters of one that is no reply of a model.
MAX_CELLS, MAX_CELL = 5_000_000, 2**17
# Parts of a TOML key, and aliases of a YAML file.
MAX_KEY_PARTS, MAX_ALIASES = 16, 20
# A path, and one name in it.
MAX_PATH, MAX_NAME = 4096, 255

BOM = "\ufeff"
BOM_INSIDE = "begins with a byte order mark, as where two files were joined; remove it"
# The longer marks first, because UTF-32's begins like UTF-16's.
WIDE_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
PARQUET = b"PAR1"
# How old .xls files begin, and xlsx files with a password.
COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The parts of an xlsx file that hold its rows and texts, and the names of those as XML.
TABLE_PARTS = ("xl/worksheets/", "xl/sharedStrings")
ROWS = {
    f"http://schemas.openxmlformats.org/spreadsheetml/2006/main {name}" for name in ("row", "si")
}
XLSX_ADVICE = "save the rows alone in a new workbook, or as CSV in UTF-8"
# Reading a key of many parts takes time and memory by the square of their number.
LONG_TOML_KEY = re.compile(
    rf"""^[ \t\[]*(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*\.[ \t]*){{{MAX_KEY_PARTS}}}""",
    re.MULTILINE,
)

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
                    problem = "holds a NUL character, so it is not a text"
                    raise BadInput(f"{place}: {problem}; save it again in UTF-8")
                yield number, text.removesuffix(ends)
    except UnicodeDecodeError:
        raise _encoding_error(path, encoding, advice) from None


def _encoding_error(path: Path, encoding: str = "utf-8", advice: str = "") -> BadInput:
    """Return the error of a file that cannot be decoded, with the line of the first wrong byte."""
    place = str(path)
    with open_file(path) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
            if number == 1 and line.startswith(PARQUET):
                return BadInput(f"{path}: is a Parquet file; save its rows as CSV in UTF-8")
            wide = [name for mark, name in WIDE_ENCODINGS.items() if line.startswith(mark)]
            if number == 1 and wide:
                remedy = f"save it again in UTF-8: iconv -f {wide[0]} -t UTF-8 '{path.name}'"
                return BadInput(f"{path}: is {wide[0]}; {remedy}")
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
            if size > MAX_LINE:
                problem = f"its record is longer than {MAX_LINE:,} characters"
                raise BadInput(f"{path}, line {number}: {problem}; a quote may be missing")
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
    if missing := [name for name in columns if name not in header]:
        shown = plain(", ".join(header[:20]))[:300] or "nothing"
        near = closest(missing[0], [name for name in header if name not in (*columns, *more)])
        meant = f", perhaps called {quoted(near)}" if near else ""
        raise BadInput(f"{place}: column `{missing[0]}` is missing{meant}; found: {shown}")
    if doubled := [name for name in (*columns, *more) if list(header).count(name) > 1]:
        raise BadInput(f"{place}: column `{doubled[0]}` occurs more than once")


# JSON


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
    # Lists of allowed values and styles are of no interest here, and openpyxl would not close a
    # broken file that it opened itself.
    with open_file(path) as file, _explained(path), warnings.catch_warnings(action="ignore"):
        with closing(load_workbook(file, read_only=True, data_only=True)) as book:
            rows = [list(map(_cell_text, row)) for row in xlsx_rows(path, book.worksheets[0])]
        while rows and not any(rows[-1]):
            rows.pop()
        if not rows:
            problem = f"is empty; expected a header with the columns {', '.join(columns)}"
            raise BadInput(f"{path}: {problem}")
        width = max(map(len, rows))
        header = [(name or "").strip() for name in rows[0]] + [""] * (width - len(rows[0]))
        with closing(load_workbook(file, read_only=True)) as book:
            formulas = xlsx_rows(path, book.worksheets[0])
            for number, (row, written) in enumerate(zip(rows, formulas, strict=False)):
                for name, text, cell in zip(header, row, written, strict=False):
                    if name in columns and text is None and cell.data_type == "f":
                        raise BadInput(
                            f"{path}, row {number}, column `{name}`: holds a formula without a "
                            "value; open the file in a spreadsheet program and save it, or write "
                            "the value in"
                        )
    check_header(path, header, columns)
    return [{name: text or "" for name, text in zip_longest(header, row)} for row in rows[1:]]


def check_xlsx(path: Path) -> None:
    """Check the size of an xlsx file before a library reads it."""
    if read_bytes(path).startswith(COMPOUND_FILE):
        raise BadInput(
            f"{path}: has a password, or is an old .xls file; save it as .xlsx without a password"
        )
    with _explained(path), zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        # Of these, zipfile unpacks no more than their size in the archive's directory.
        if not {part.compress_type for part in parts} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise BadInput(f"{path}: is packed in a way that xlsx does not have; {XLSX_ADVICE}")
        if sum(part.file_size for part in parts) > MAX_UNPACKED:
            problem = f"unpacks to more than {MAX_UNPACKED:,} bytes"
            raise BadInput(f"{path}: {problem}; split it, or {XLSX_ADVICE}")
        for part in parts:
            if not part.filename.startswith(TABLE_PARTS) and part.file_size > MAX_PART:
                raise BadInput(
                    f"{path}: its part {quoted(part.filename)} unpacks to more than "
                    f"{MAX_PART >> 20} MiB; {XLSX_ADVICE}"
                )
            if part.filename.startswith(TABLE_PARTS):
                _check_elements(path, archive, part)


def _check_elements(path: Path, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Check how many elements a sheet or a list of texts has, and how many in a row or text."""
    held = begun = every = 0

    def begin(name: str, _attributes: Mapping[str, str]) -> None:
        nonlocal held, begun, every
        held, every = held + 1, every + 1
        if held > MAX_ELEMENTS:
            raise BadInput(f"{path}: a row has more than {MAX_ELEMENTS:,} parts; {XLSX_ADVICE}")
        if every > MAX_CELLS:
            problem = f"has more than {MAX_CELLS:,} cells and parts of cells"
            raise BadInput(f"{path}: {problem}; split it, or {XLSX_ADVICE}")
        if name in ROWS:
            begun = held

    def end(name: str) -> None:
        nonlocal held
        if name in ROWS:
            held = begun - 1

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    with archive.open(part) as stream:
        parser.ParseFile(stream)


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
    for row in sheet.iter_rows():
        cells += len(row) + 4
        if cells > MAX_CELLS:
            raise BadInput(f"{path}: has more than {MAX_CELLS:,} cells; {XLSX_ADVICE}")
        yield row


def _cell_text(cell: Any) -> str | None:
    """Return what a cell shows: None for an empty one, "" for an error such as #N/A."""
    if cell.value is None or cell.data_type == "e":
        return None if cell.value is None else ""
    if isinstance(cell.value, float) and cell.value.is_integer():
        return str(int(cell.value))
    return str(cell.value)


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    text = read_text(path, MAX_CONFIG_BYTES)
    if long := LONG_TOML_KEY.search(text):
        line = text.count("\n", 0, long.end()) + 1
        problem = f"a key of more than {MAX_KEY_PARTS} parts; expected few tables in tables"
        raise BadInput(f"{path}, line {line}: {problem}")
    try:
        values = tomllib.loads(text)
        _check_values(values, set())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not TOML ({_reason(error)})") from None
    return values


def _check_values(value: Any, seen: set[int]) -> None:
    """Raise a ValueError for half of a character, and for a number of more than 64 bits."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a number of too many digits")
    elif isinstance(value, dict | list) and id(value) not in seen:
        seen.add(id(value))
        for inner in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_values(inner, seen)


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

    unnamed: Any = None

    class Loader(yaml.SafeLoader):
        """Has few aliases, knows each only after what it stands for, and each key once."""

        aliases = 0

        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            self.aliases += self.check_event(yaml.AliasEvent)
            if self.aliases > MAX_ALIASES:
                raise BadInput(f"{path}: has more than {MAX_ALIASES} aliases; write less")
            return super().compose_node(parent, index)

        def compose_sequence_node(self, anchor: Any) -> yaml.SequenceNode:
            node = self.anchors[anchor] = super().compose_sequence_node(unnamed)
            return node

        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            node = self.anchors[anchor] = super().compose_mapping_node(unnamed)
            keys: set[str] = set()
            for key, _ in node.value:
                if key.value in keys:
                    place = f"{path}, line {key.start_mark.line + 1}"
                    raise BadInput(f"{place}: key {quoted(key.value)} is there twice; keep one")
                keys |= {key.value} if isinstance(key.value, str) and key.value != "<<" else set()
            return node

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            # What is merged many times is kept once, the last time.
            node.value = [*dict.fromkeys(reversed(node.value))][::-1]

    try:
        value = yaml.load(read_text(path, MAX_CONFIG_BYTES), Loader)
        _check_values(value, set())
    except BadInput:
        raise
    except Exception as error:  # whatever a wrong date, or a tag on another kind, provokes
        raise BadInput(f"{path}: not YAML ({_reason(error)})") from None
    return value
