"""Read tables, JSON, TOML and YAML of users, and write TOML.

Tables are CSV (with commas, semicolons, tabs or bars between cells), JSON, JSON Lines, xlsx,
Parquet or Feather. We recognize these by their content, and read every cell as a text. Text
is UTF-8, or UTF-16 as Excel's "Unicode text"; any file may be packed by gzip. Each function raises
`BadInput` for a file that is wrong, with the file and the line, or the row and column, and the
allowed values.

We do not read by pandas: it fills short rows up, turns whole numbers into floats beside an empty
cell, and knows neither merged cells nor formulas without a value nor the number of a wrong row.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput, closest, explain_others, plain, quoted
from bench.core.progress import say
from bench.core.text import STRICT_JSON, repeated, whole_characters

# The most bytes of a file that is read at once.
MAX_BYTES = 2**28
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# We tell a file's kind by this many bytes at its beginning.
HEAD = 512
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
FEATHER = b"ARROW1"
SAVE = "save its table as .xlsx or as CSV in UTF-8, and give that file"
UNPACK = "unpack it, and give the file in it"
# Files that hold no text: their first bytes, their kind, and a remedy.
KINDS = (
    (rb"PK\x03\x04", "a zip archive or a workbook", UNPACK),
    (rb".{257}ustar", "a tar archive", UNPACK),
    (rb"BZh\d1AY|\xfd7zXZ|\x28\xb5\x2f\xfd", "packed by bzip2, xz or Zstandard", UNPACK),
    (rb"7z\xbc\xaf|Rar!\x1a", "a 7-Zip or RAR archive", UNPACK),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls), or one with a password", SAVE),
    (rb"\$FL[23]", "an SPSS file", SAVE),
    (rb"<stata_dta>|[q-s][\x01\x02]\x01\x00", "a Stata file", SAVE),
    (rb"HEADER RECORD\*|\x00{12}\xc2\xea", "a SAS file", SAVE),
    (rb"RD[AX][23]\n|X\n\x00\x00", "an R file", SAVE),
    (rb"PAR1|ARROW1|FEA1|\xff{4}|Obj\x01", "a Parquet, Arrow, Feather or Avro file", SAVE),
    (rb"SQLite format 3|\x89HDF", "an SQLite or HDF5 file", SAVE),
    (rb"\x80[\x02-\x05]|\x93NUMPY", "a pickle or NumPy file", SAVE),
    (rb"%PDF-|\{\\rtf|\x89PNG|\xff\xd8\xff", "a PDF, RTF or picture", SAVE),
    (rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|html|table|\?xml)", "an HTML or XML page", SAVE),
    (rb"version https://git-lfs", "a pointer of Git LFS, not the file", "run `git lfs pull`"),
)
# Names of files in a zip archive that tell its kind.
ZIP_KINDS = {
    "xl/workbook.bin": "a binary Excel workbook (.xlsb)",
    "word/document.xml": "a Word document",
    "mimetype": "an OpenDocument file such as .ods",
    "Index/Document.iwa": "a document of Numbers or Pages",
}
# The cells of a row, by column.
Row = dict[str, str]


class TableRow(Row):
    """A row of a table.

    Attributes:
        number: its place below the header, from 1; blank rows count too. The rows of a further
            sheet of a workbook go on counting.
        problem: a sentence if it has too many or too few cells; then we read none of them.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.problem = ""


class Unreadable(NamedTuple):
    """A cell of a workbook that we cannot read, although a person may see a value in it."""

    problem: str


class Sheet(NamedTuple):
    """The records of a file, or of a sheet with a name and the numbers of its hidden rows."""

    records: Sequence[Sequence[Any]]
    name: str = ""
    hidden: Sequence[int] = ()

    @property
    def header(self) -> set[str]:
        """The names in its first row that is not blank."""
        return {*_texts(next(filter(_is_filled, self.records), []))} - {""}

    @property
    def has_rows(self) -> bool:
        """Whether there are rows below the header."""
        return sum(map(_is_filled, self.records)) > 1


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


@contextmanager
def _open_unpacked(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """Open a file to read its bytes, or those that gzip has packed in it."""
    with open_file(path) as stream:
        if not stream.peek(HEAD).startswith(GZIP):
            yield stream
            return
        try:
            with gzip.open(stream) as unpacked:
                yield unpacked
        except (EOFError, zlib.error) as error:
            raise BadInput(f"{path}: is a damaged gzip file ({_reason(error)})") from None


def read_bytes(path: Path) -> bytes:
    """Read a file of at most `MAX_BYTES`, unpacked if it is packed by gzip."""
    with _open_unpacked(path) as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BadInput(
            f"{path}: is larger than {MAX_BYTES:,} bytes; split it, or leave out unused columns"
        )
    return raw


def read_text(path: Path) -> str:
    """Read a file in UTF-8 or UTF-16, with or without a byte order mark."""
    raw = read_bytes(path)
    return _decode(path, raw, _encoding(path, raw))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of such a file, without its end."""
    with _open_unpacked(path) as stream:
        encoding = _encoding(path, stream.peek(HEAD))
        lines: Iterable[bytes] = stream
        if encoding != "utf-8":  # the byte of a line break may be a half of a character
            lines = io.BytesIO(_decode(path, stream.read(), encoding).encode())
        for number, line in enumerate(lines, start=1):
            yield number, _decode(path, line.removesuffix(b"\n"), line=number)


def _encoding(path: Path, raw: bytes, default: str = "utf-8") -> str:
    """Return the encoding of a text by its first bytes; a file that holds no text is refused."""
    for pattern, kind, remedy in KINDS:
        if re.match(pattern, raw[:HEAD], re.DOTALL):
            raise BadInput(f"{path}: is {kind}; {remedy}")
    encoding = json.detect_encoding(raw[:4])  # by a byte order mark, or by zeros
    return default if encoding.startswith("utf-8") else encoding


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

    Of a workbook we read all sheets that have the columns, one after the other.

    Args:
        columns: columns that its header must have, each once; we read other columns too.
        more: columns that it can have, each at most once.
        replies: whether cells may hold anything, as replies of models do.
        encoding: of CSV and JSON: `utf-8` (and UTF-16), or `gb18030`, which includes GBK.
        advice: how to read GBK, for the message about a file that is not UTF-8.
        wrong_rows: return rows with too many or too few cells too, with their `problem`.
    """
    raw = read_bytes(path)
    if raw.startswith(ZIP):
        sheets = _workbook(path, raw)
    elif raw.startswith((PARQUET, FEATHER)):
        sheets = [Sheet(_read_arrow(path, raw))]
    else:
        encoding = _encoding(path, raw, default=encoding)
        # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever does.
        if encoding != "utf-8" and not raw.isascii():
            with suppress(UnicodeDecodeError):
                raw.decode()
                problem = f"is UTF-8, not {encoding.upper()}; read it as UTF-8, the default"
                raise BadInput(f"{path}: {problem}")
        text = _decode(path, raw, encoding, advice)
        is_json = text.lstrip()[:1] in ("[", "{")
        records = _read_json(path, text) if is_json else _read_csv(path, text, columns, replies)
        sheets = [Sheet(records)]
    return _read_sheets(path, sheets, columns, more, wrong_rows)


def _read_rows(
    location: str,
    records: Sequence[Sequence[Any]],
    columns: Sequence[str],
    more: Sequence[str],
    wrong_rows: bool,
    before: int,
) -> list[TableRow]:
    """Read the rows of a table, which begins with its header, and number them from `before`."""
    filled = [k for k, record in enumerate(records) if _is_filled(record)]
    if not filled:
        names = ", ".join(columns)
        raise BadInput(f"{location}: is empty; expected a header with the columns {names}")
    top = filled[0]
    for value in records[top]:
        if isinstance(value, Unreadable):
            raise BadInput(f"{location}, row 1 (header): {value.problem}")
    header = _texts(records[top])
    wanted = {*columns, *more}
    _check_header(location, header, columns, more if wanted else [name for name in header if name])
    rows = []
    for k in filled[1:]:
        record = records[k]
        row = TableRow(before + k - top)
        rows.append(row)
        if len(record) < len(header) or _is_filled(record[len(header) :]):
            row.problem = f"has {len(record)} cells, the header has {len(header)}"
            if not wrong_rows:
                raise BadInput(f"{location}, row {k - top}: {row.problem}")
            continue
        for name, value in zip(header, record, strict=False):
            is_read = name in wanted or (isinstance(value, Unreadable) and not wanted)
            if is_read and (problem := _not_a_text(value)):
                raise BadInput(f"{location}, row {k - top}, column `{name}`: {problem}")
            row[name] = _text(value)
    return rows


def _is_filled(record: Sequence[Any]) -> bool:
    return any(isinstance(value, Unreadable) or _text(value).strip() for value in record)


def _texts(header: Sequence[Any]) -> list[str]:
    return [_text(name).strip() for name in header]


def _not_a_text(value: Any) -> str:
    """Say why a value is not one text, or return ""."""
    if value is None or isinstance(value, str | Number):
        return ""
    if isinstance(value, Unreadable):
        return value.problem
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        text = str(value).removesuffix(" 00:00:00")
        advice = "which a spreadsheet program may have made of a text such as 3-5; write it as text"
        return f"{text} is a date or a time, {advice}"
    kind = "list" if isinstance(value, list) else "table"
    advice = "write a text, with the separator of that column between its parts"
    return f"{quoted(value)} is a {kind}; {advice}"


def _text(value: Any) -> str:
    """Return a value as a text: "" for a missing or unreadable one, 3 for 3.0."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Unreadable) or value != value:  # NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_header(
    location: str, header: Sequence[str], columns: Sequence[str], more: Sequence[str]
) -> None:
    """Check that a header has each of `columns` once, and each of `more` at most once."""
    for name in columns:
        if name not in header:
            names = plain(", ".join(header[:20]))[:300] or "nothing"
            unused = [other for other in header if other not in (*columns, *more)]
            similar = closest(name, unused)
            meant = f", perhaps called {quoted(similar)}" if similar else ""
            problem = f"column `{name}` is missing{meant}; found: {names}"
            raise BadInput(f"{location}, row 1 (header): {problem}")
    for name in (*columns, *more):
        if header.count(name) > 1:
            raise BadInput(f"{location}, row 1 (header): column `{name}` occurs more than once")


def _read_csv(path: Path, text: str, columns: Sequence[str], replies: bool) -> list[list[str]]:
    """Split CSV into records, by the delimiter with which its header has the columns.

    Excel reads and writes a first line `sep=;`, which names the delimiter.
    """
    csv.field_size_limit(MAX_BYTES)  # a limit of the whole process

    def fit(mark: str) -> tuple[bool, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        header = [name.strip() for name in next(filter(None, reader), [])]
        return len(header) > 1 and {*columns} <= {*header}, len(header)

    if named := re.match(r'"?sep=(.)"?(?=[\r\n])', text, re.IGNORECASE):
        text = text[named.end() :]
    mark = named[1] if named else max(DELIMITERS, key=fit)  # of equals the comma
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
        marks = DELIMITERS.get(mark, quoted(mark))
        raise BadInput(
            f"{path}, line {reader.line_num}: cannot be read as CSV with {marks} "
            f"({reason}); the row begins in line {begin}: write each quote within a cell twice, "
            "and one at both ends of that cell"
        ) from None
    return records


def _read_sheets(
    path: Path,
    sheets: Sequence[Sheet],
    columns: Sequence[str],
    more: Sequence[str],
    wrong_rows: bool,
) -> list[TableRow]:
    """Read the sheets of a workbook that have the columns, or else those of one header.

    A sheet with a part of these columns is refused, and we say which sheets are not read.
    """
    sheets = [sheet for sheet in sheets if sheet.records] or [Sheet([])]
    wanted = {*columns, *more}
    main = max(sheets, key=lambda sheet: len(sheet.header & wanted if wanted else sheet.header))
    needed = {*columns} or main.header
    rows: list[TableRow] = []
    read = []
    unread = []
    for sheet in sheets:
        name = quoted(sheet.name)
        location = f"{path}, sheet {name}" if len(sheets) > 1 else str(path)
        before = rows[-1].number if rows else 0
        if sheet is not main and not sheet.has_rows:
            continue
        if sheet is main or needed <= sheet.header:
            sheet_rows = _read_rows(location, sheet.records, columns, more, wrong_rows, before)
            if sheet_rows:
                read.append(f"{name} (rows {before + 1} to {sheet_rows[-1].number})")
            rows += sheet_rows
            if sheet.hidden:
                hidden = ", ".join(map(str, sheet.hidden[:10]))
                say(f"{path}, sheet {name}: hidden rows are read too: {hidden}")
        elif sheet.header & needed:
            names = plain(", ".join(sorted(sheet.header)))[:300]
            raise BadInput(
                f"{location}, row 1 (header): has other columns ({names}) than sheet "
                f"{quoted(main.name)}; give both the same header, or put one table in a workbook"
            )
        else:
            unread.append(name)
    if len(read) > 1:
        say(f"{path}: the rows of {len(read)} sheets are read: {', '.join(read)}")
    if unread:
        say(f"{path}: sheets with none of the columns are not read: {', '.join(unread)}")
    return rows


def _workbook(path: Path, raw: bytes) -> list[Sheet]:
    """Read the sheets of a workbook, and of its formulas the stored values.

    Another zip archive is refused.
    """
    import zipfile

    from openpyxl import load_workbook

    remedy = "save the rows alone again, or as CSV in UTF-8"
    # A broken archive or XML provokes any error in the libraries.
    explain = partial(explain_others, BadInput, f"{path}: cannot be read as xlsx (", f"); {remedy}")
    with explain():
        names = zipfile.ZipFile(io.BytesIO(raw)).namelist()
    for name, kind in ZIP_KINDS.items():
        if name in names:
            raise BadInput(f"{path}: is {kind}; {SAVE}")
    if not any(name.startswith("xl/") for name in names):
        raise BadInput(f"{path}: is a zip archive; {UNPACK}")
    # The warnings are about styles and lists of allowed values.
    with explain(), warnings.catch_warnings(action="ignore"):
        book = values = load_workbook(io.BytesIO(raw), keep_links=False)
        # The public methods make each empty cell, a million of them if the last row has a style.
        cells = (cell for sheet in book.worksheets for cell in sheet._cells.values())
        if any(cell.data_type == "f" for cell in cells):
            values = load_workbook(io.BytesIO(raw), keep_links=False, data_only=True)
        return list(map(_sheet, book.worksheets, values.worksheets))


def _sheet(sheet: Any, values: Any) -> Sheet:
    """Read a sheet of openpyxl; its formulas have their stored values in `values`."""
    from openpyxl.utils.escape import unescape

    merged = {
        position: area.coord
        for area in sheet.merged_cells.ranges
        if sheet.cell(area.min_row, area.min_col).value is not None
        for position in area.cells
    }
    cells: dict[tuple[int, int], Any] = {}
    for position, cell in values._cells.items():
        value = cell.value
        problem = ""
        if isinstance(value, str):  # in which _x000D_ is a carriage return
            value = whole_characters(unescape(value))
        if cell.data_type == "e":
            problem = "" if value == "#N/A" else f"holds the error {value}"
            value = None
        elif value is None and position in merged:
            problem = f"is merged ({merged[position]}); unmerge it, and fill in each of its cells"
        elif value is None and sheet._cells[position].data_type == "f" and cell.data_type == "n":
            problem = (
                "holds a formula without its value; open and save the file in a spreadsheet "
                "program, or write the value"
            )
        if problem:
            value = Unreadable(f"sheet {quoted(sheet.title)}, cell {cell.coordinate} {problem}")
        if value not in (None, ""):
            cells[position] = value
    height = max((row for row, _column in cells), default=0)
    columns = range(1, max((column for _row, column in cells), default=0) + 1)
    records = []
    hidden = []
    for row in range(1, height + 1):
        records.append([cells.get((row, column)) for column in columns])
        # A number that is not in `row_dimensions` would be added to it.
        if row in sheet.row_dimensions and sheet.row_dimensions[row].hidden:
            hidden += [row] if _is_filled(records[-1]) else []
    return Sheet(records, sheet.title, hidden)


def _read_arrow(path: Path, raw: bytes) -> list[list[Any]]:
    """Read Parquet, or Feather, which is a file of Arrow.

    A column of `ClassLabel` gets the names of its numbers, which stand in the metadata.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if raw.startswith(PARQUET):
            table = pq.read_table(io.BytesIO(raw))
        else:
            table = pa.ipc.open_file(raw).read_all()
        metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", "{}"))
        features = metadata.get("info", {}).get("features", {})
        labels = {name: feature.get("names") for name, feature in features.items()}
    except (pa.ArrowException, OSError, ValueError, AttributeError) as error:
        raise BadInput(f"{path}: cannot be read as a table ({_reason(error)})") from None
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_pylist()
        if labels.get(name) and pa.types.is_integer(column.type):
            names = dict[Any, Any](enumerate(labels[name])) | {None: None, -1: None}
            for row, value in enumerate(values, start=1):
                if value not in names:
                    problem = (
                        f"{value} has no name in this ClassLabel of 0 to {len(labels[name]) - 1}"
                    )
                    raise BadInput(f"{path}, row {row}, column `{name}`: {problem}")
            values = [names[value] for value in values]
        columns.append(values)
    return [table.column_names, *map(list, zip(*columns, strict=True))]


def _read_json(path: Path, text: str) -> list[list[Any]]:
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


def read_json_lines(path: Path, *, replies: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number, from 1, and the object of each line of JSON Lines that is not blank.

    Args:
        replies: whether models wrote the texts, so that a half of a character is replaced.
    """
    for number, line in read_lines(path):
        if line.strip():
            value = _parse_json(path, line, number, replies=replies)
            _check_object(f"{path}, line {number}", value)
            yield number, value


def _check_object(location: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise BadInput(f"{location}: expected a JSON object, found {type(value).__name__}")


def _parse_json(path: Path, text: str, line: int = 0, *, replies: bool = False) -> Any:
    """Return the value of a JSON document, which is one line of a file or all of it."""
    try:
        value = STRICT_JSON.decode(text)
        if "\\ud" in text.lower():  # half of a surrogate pair is not a character
            written = json.dumps(value, ensure_ascii=False)
            value = json.loads(whole_characters(written) if replies else written.encode())
        return value
    except BadInput as error:
        location = f"{path}, line {line or _line_of_repeated_key(text)}"
        raise BadInput(f"{location}: {error}") from None
    except (ValueError, RecursionError) as error:
        reason = _reason(error)
        if isinstance(error, json.JSONDecodeError):
            line, reason = line or error.lineno, f"{error.msg} at character {error.colno}"
    location = f"{path}, line {line}" if line else str(path)
    raise BadInput(f"{location}: not JSON ({reason})")


def _line_of_repeated_key(text: str) -> int:
    """Return the line of the first key in a JSON document that its object has already."""
    objects: list[set[str]] = []
    for token in re.finditer(r'("(?:[^"\\]|\\.)*+")(\s*:)?|[{}]', text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token[2] and token[1] in objects[-1]:
            return text.count("\n", 0, token.start()) + 1
        elif token[2]:
            objects[-1].add(token[1])
    return 1


def _reason(error: object) -> str:
    """Return the message of a library on one line."""
    return plain(" ".join(str(error).split()))[:300]


# TOML and YAML


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return _parse(path, "TOML", tomllib.loads)


def read_yaml(path: Path) -> Any:
    """Read a YAML file; nothing in it is run, and a key that occurs twice is refused."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            node = super().compose_mapping_node(anchor)
            lines: dict[str, int] = {}
            for key, _value in node.value:
                line, name = key.start_mark.line + 1, str(key.value)
                if name in lines and name != "<<":  # which merges another mapping
                    raise BadInput(f"{path}, line {line}: {repeated(name)} (line {lines[name]})")
                lines[name] = line
            return node

    return _parse(path, "YAML", partial(yaml.load, Loader=Loader))


def _parse(path: Path, form: str, parse: Callable[[str], Any]) -> Any:
    text = read_text(path)
    try:
        return parse(text)
    except BadInput:
        raise
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
    lines = ""
    tables = ""
    for key, value in values.items():
        if isinstance(value, Mapping):
            name = f"{table}.{toml_key(key)}".lstrip(".")
            tables += f"\n[{name}]\n{to_toml(value, name)}"
        else:
            lines += f"{toml_key(key)} = {_toml_value(value, in_lines=True)}\n"
    return lines + tables  # a key below the heading of a table would belong to that table


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
