"""Reading the benchmarks' tables strictly: every cell a string, every fault a sentence with file, row and column."""

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput, plain, quoted
from bench.data.text import AT_A_JOIN, MARK, MAX_LINE, Lines, read_lines, read_text

Row = dict[str, str]
# Far beyond any table of ours: a data set has thousands of rows, and no table more than 25 columns.
MAX_COLUMNS = 1000
MAX_CELLS = 5_000_000
# Characters of a cell, but of a model's reply.
MAX_CELL = 2**17
# The length of a JSON object that is tried first.
USUAL = 2**16
BLANKS = re.compile(r"[ \t\n\r]*")
# Python's own limit is for all its readers alike, and a model's reply may be longer.
csv.field_size_limit(MAX_LINE + 1)


def read_csv(
    path: Path, columns: Sequence[str], more: Sequence[str] = (), longest: int = MAX_CELL
) -> list[Row]:
    """Rows of a CSV file whose header has at least `columns`, and perhaps `more`.

    `longest` is how many characters a cell may have.

    Raises:
        BadInput: not UTF-8, a column is missing or doubled, or a record has another number of cells than the header.
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
    """As `read_csv`, but a record with a wrong number of cells is given as what to say about it.

    `longest` is how many characters a cell may have, `encoding` and `advice` are those of `bench.data.text.Lines`.

    Raises:
        BadInput: not in that encoding, a column is missing or doubled, or the table is larger than any of ours.
    """
    rows: list[Row | str] = []
    header: list[str] = []
    last: list[str] = []
    cells = 0
    lines = Lines(path, encoding, advice)
    reader = csv.reader(lines)
    try:
        for record in reader:
            last, lines.record = lines.record, []
            if not record:
                continue
            if sum(map(len, last)) > longest and max(map(len, record)) > longest:
                raise csv.Error(f"a cell is longer than {longest:,} characters")
            cells += len(record)
            if cells > MAX_CELLS:
                raise BadInput(
                    f"{path}, line {reader.line_num}: has more than {MAX_CELLS:,} cells; split it"
                )
            if record[0].startswith(MARK):
                raise BadInput(f"{path}, line {reader.line_num}: {AT_A_JOIN}")
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
    # A record of too few cells says it already.
    if rows and isinstance(rows[-1], dict) and _is_open(last):
        raise BadInput(
            f"{path}, line {reader.line_num}: the file ends within a quoted cell, which begins {len(last)} lines earlier at most; close its quote"
        )
    return rows


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of a JSON Lines file; blank lines are passed over.

    Raises:
        BadInput: not UTF-8, or a line that is not a JSON object.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = DECODER.decode(line)
            whole = _whole_text(line, value)
        except ValueError as error:
            raise BadInput(f"{path}, line {number}: {_fault(error)}") from None
        except RecursionError:
            raise BadInput(f"{path}, line {number}: JSON nested too deeply") from None
        if not whole:
            raise BadInput(
                f"{path}, line {number}: holds half of a surrogate pair, which is no character"
            )
        if not isinstance(value, dict):
            raise BadInput(
                f"{path}, line {number}: expected a JSON object, found {type(value).__name__}"
            )
        yield number, value


def read_json_array(path: Path, columns: Sequence[str], more: Sequence[str] = ()) -> list[Row]:
    """Rows of a file with one JSON array of objects whose values are strings: `columns`, and of `more` what is there.

    Raises:
        BadInput: not UTF-8, not such an array, or a column is missing in a row.
    """
    rows: list[Row] = []
    for number, value in enumerate(_objects(path), start=1):
        missing = next((name for name in columns if name not in value), None)
        if missing:
            raise BadInput(f"{path}, row {number}: field `{missing}` is missing")
        held = {name: value[name] for name in (*columns, *more) if name in value}
        wrong = next(
            (
                name
                for name, cell in held.items()
                if not isinstance(cell, str | int) or isinstance(cell, bool)
            ),
            None,
        )
        if wrong:
            raise BadInput(
                f"{path}, row {number}, field `{wrong}`: {quoted(value[wrong])} is not a text"
            )
        rows.append({name: str(cell) for name, cell in held.items()})
    return rows


def number(text: str) -> float:
    """A plain decimal number; NaN for anything else, such as the underscores and infinities that Python's float takes."""
    return (
        float(text)
        if re.fullmatch(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d{1,3})?", text, re.ASCII)
        else math.nan
    )


def whole_number(text: str) -> int | None:
    """A whole number from 0 in at most 15 digits; None for anything else, such as digits of other scripts."""
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def check_header(
    path: Path, header: Sequence[str], columns: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Refuse a header that lacks one of `columns`, or has one of these or of `more` twice.

    Raises:
        BadInput: such a header, or one of more columns than any of our tables has.
    """
    if len(header) > MAX_COLUMNS:
        raise BadInput(
            f"{path}, row 1 (header): has {len(header):,} columns; at most {MAX_COLUMNS:,} are read, of which {', '.join(columns)} are needed"
        )
    missing = [name for name in columns if name not in header]
    if missing:
        found = plain(", ".join(header[:20]))[:300] or "nothing"
        raise BadInput(f"{path}, row 1 (header): column `{missing[0]}` is missing; found: {found}")
    doubled = next((name for name in (*columns, *more) if list(header).count(name) > 1), None)
    if doubled:
        raise BadInput(f"{path}, row 1 (header): column `{doubled}` occurs more than once")


def _is_open(lines: Sequence[str]) -> bool:
    """Whether the record in `lines` ends without the quote that it needs; the rest of its table is then in one cell."""
    try:
        list(csv.reader(lines, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file with one JSON array, one by one, so that none can take more than its share of memory."""
    text = read_text(path)
    halves = "\\ud" in text.lower()

    def wrong(at: int, what: str) -> BadInput:
        return BadInput(f"{path}, line {text.count(chr(10), 0, at) + 1}: {what}")

    at = _past(text, 0)
    if text[at : at + 1] != "[":
        raise BadInput(f"{path}: expected a JSON array of objects")
    at = _past(text, at + 1)
    ended = text[at : at + 1] == "]"
    while not ended:
        if text[at : at + 1] != "{":
            raise wrong(at, "expected a JSON array of objects")
        try:
            value, length = _first_object(text, at)
            whole = not halves or _whole_text("\\ud", value)
        except json.JSONDecodeError as error:
            raise wrong(at + error.pos, f"not JSON ({error.msg})") from None
        except ValueError as error:
            raise wrong(at, _fault(error)) from None
        except RecursionError:
            raise wrong(at, "JSON nested too deeply") from None
        if not whole:
            raise wrong(at, "holds half of a surrogate pair, which is no character")
        yield value
        at = _past(text, at + length)
        ended = text[at : at + 1] == "]"
        if not ended and text[at : at + 1] != ",":
            raise wrong(at, "not JSON (expected a comma or the end of the array)")
        at = at if ended else _past(text, at + 1)
    if _past(text, at + 1) < len(text):
        raise wrong(at, "not JSON (something stands behind the end of the array)")


def _first_object(text: str, at: int) -> tuple[dict[str, Any], int]:
    """The object that begins at `at`, and its length; most are short, and none is longer than a line may be."""
    try:
        value, length = DECODER.raw_decode(text[at : at + USUAL])
    except json.JSONDecodeError:
        value, length = DECODER.raw_decode(text[at : at + MAX_LINE])
    return value, length


def _past(text: str, at: int) -> int:
    """The place of what follows the blanks at `at`."""
    found = BLANKS.match(text, at)
    return found.end() if found else at


class _Doubled(ValueError):
    """A JSON object has a field twice, so that one of the two would be passed over."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Doubled(next(name for name in names if names.count(name) > 1))
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _fault(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at character {error.pos})"
    if isinstance(error, _Doubled):
        return f"field {quoted(str(error))} occurs more than once in an object"
    # Python refuses to read a number of thousands of digits.
    return "holds a number of too many digits"


def _whole_text(line: str, value: object) -> bool:
    """Whether a JSON value is free of lone surrogates, which no file can hold."""
    if "\\ud" not in line.lower():
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
