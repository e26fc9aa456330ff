"""Reading xlsx files strictly, and none that would take the machine's memory or hides something from the eye.

An xlsx file is a zip archive of XML parts. All are looked at before any is read: how much they unpack to, how many
elements they hold, and how far a sheet reaches; each of these costs nothing in a file of a few bytes.
"""

import re
import warnings
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from bench.core.errors import BadInput, plain
from bench.data.tables import MAX_COLUMNS, Row, check_header
from bench.data.text import opened, read_bytes

# The benchmarks' workbooks have fewer than a thousand rows of six columns, and 200 KB.
MAX_PACKED = 2**24
MAX_UNPACKED = 2**26
MAX_PARTS = 10_000
MAX_ELEMENTS = 1_000_000
# What a spreadsheet program has at most.
MAX_ROWS = 2**20
MAX_CELLS = 2_000_000
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# How old .xls files begin, and xlsx files with a password.
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WAY_OUT = "save the rows alone in a new workbook, or as CSV in UTF-8"


def read_xlsx(path: Path, columns: Sequence[str]) -> list[Row]:
    """Rows of the first sheet of an xlsx file, cells as they are shown, nothing taken for missing.

    A formula counts as the value that was stored with it.

    Raises:
        BadInput: not an xlsx file, larger than any of ours, a column is missing, or a formula has no stored value.
    """
    import pandas as pd

    formulas = check(path)
    try:
        with warnings.catch_warnings():
            # Of what else is in the workbook, such as a list of allowed values, nobody needs to hear.
            warnings.simplefilter("ignore")
            # Without a header, because pandas would rename a doubled column.
            frame = pd.read_excel(
                path, header=None, dtype=str, keep_default_na=False, engine="openpyxl"
            )
            if frame.empty:
                raise BadInput(
                    f"{path}: is empty; expected a header with the columns {', '.join(columns)}"
                )
            # A cell with an error, such as #N/A that is no text, comes as a NaN in spite of the type asked for.
            header, *records = frame.fillna("").itertuples(index=False, name=None)
            names = [str(name).strip() for name in header]
            check_header(path, names, columns)
            rows = [dict(zip(names, record, strict=True)) for record in records]
            if formulas:
                _check_formulas(path, names, columns)
    except BadInput:
        raise
    except Exception as error:  # openpyxl raises whatever the broken zip or XML inside provokes
        raise BadInput(f"{path}: cannot be read as xlsx ({_told(error)})") from None
    return rows


def _told(error: Exception) -> str:
    return plain(f"{type(error).__name__}: {error}")[:300]


def check(path: Path) -> bool:
    """Whether a workbook holds formulas, after it was found to be no larger than a table of ours can be.

    Raises:
        BadInput: it is larger, is no xlsx file, or has a password.
    """
    with opened(path) as stream:
        first = stream.read(len(COMPOUND))
    if first == COMPOUND:
        raise BadInput(
            f"{path}: has a password, or is an old .xls file; save it as .xlsx without a password"
        )
    read_bytes(path, MAX_PACKED)
    formulas = False
    try:
        with zipfile.ZipFile(path) as zipped:
            parts = zipped.infolist()
            size = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS:
                raise BadInput(
                    f"{path}: has {len(parts):,} parts, at most {MAX_PARTS:,} are read; {WAY_OUT}"
                )
            if size > MAX_UNPACKED:
                raise BadInput(
                    f"{path}: unpacks to {size:,} bytes, at most {MAX_UNPACKED:,} are read; {WAY_OUT}"
                )
            for part in parts:
                if part.compress_type not in PACKINGS:
                    raise BadInput(
                        f"{path}, part {part.filename}: is packed in a way that xlsx does not have"
                    )
                with zipped.open(part) as stream:
                    formulas |= _Extent(path, part.filename).read(stream)
    except BadInput:
        raise
    except Exception as error:  # whatever a broken zip provokes, a password among it
        raise BadInput(f"{path}: cannot be read as xlsx ({_told(error)})") from None
    return formulas


class _Extent:
    """How far a part of a workbook reaches: its elements, rows and columns, counted without keeping any."""

    def __init__(self, path: Path, part: str) -> None:
        self.path, self.part = path, part
        self.elements = self.rows = self.columns = self.here = self.depth = 0
        # How deep the row lies that is being read; cells are right inside, whatever they are called.
        self.row = -1
        self.formulas = False

    def read(self, stream: Any) -> bool:
        """Go through the part, and say whether it holds formulas; one that is no XML is left to whoever reads it.

        Raises:
            BadInput: it reaches too far, or declares what XML puts in for other text.
        """
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        with suppress(expat.ExpatError):
            parser.ParseFile(stream)
        return self.formulas

    def _doctype(self, *_: object) -> None:
        raise BadInput(
            f"{self.path}, part {self.part}: has a document type, which no workbook needs; {WAY_OUT}"
        )

    def _begin(self, name: str, given: dict[str, str]) -> None:
        self.elements += 1
        self.depth += 1
        if self.elements > MAX_ELEMENTS:
            self._refuse(MAX_ELEMENTS, "elements")
        if self.row < 0 and name.rpartition(":")[2] == "row":
            self.row, self.here = self.depth, 0
            self.rows = max(self.rows + 1, _number(given.get("r", "")))
            if self.rows > MAX_ROWS:
                self._refuse(MAX_ROWS, "rows")
        elif self.depth == self.row + 1:
            letters = re.match("[A-Za-z]*", given.get("r", ""))
            self.here = max(self.here + 1, _column(letters[0] if letters else ""))
            self.columns = max(self.columns, self.here)
            if self.columns > MAX_COLUMNS:
                self._refuse(MAX_COLUMNS, "columns")
            if self.rows * self.columns > MAX_CELLS:
                self._refuse(MAX_CELLS, "cells, empty ones among them")
        elif self.row > 0 and name.rpartition(":")[2] == "f":
            self.formulas = True

    def _end(self, _: str) -> None:
        if self.depth == self.row:
            self.row = -1
        self.depth -= 1

    def _refuse(self, most: int, what: str) -> NoReturn:
        raise BadInput(
            f"{self.path}, part {self.part}: has more than {most:,} {what}, the most that is read; {WAY_OUT}"
        )


def _number(text: str) -> int:
    """A row's number; one that no sheet has where it is none."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else MAX_ROWS + 1 if text else 0


def _column(letters: str) -> int:
    """The number of the column A, B and so on, from 1."""
    if len(letters) > 3:
        return MAX_COLUMNS + 1
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def _check_formulas(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a formula without a stored value, which would be taken for an empty cell.

    Raises:
        BadInput: such a cell; with its row, from 1 below the header, and its column.
    """
    from openpyxl import load_workbook

    values, formulas = (
        load_workbook(path, read_only=True, data_only=only, keep_links=False)
        for only in (True, False)
    )
    try:
        first = [book.worksheets[0] for book in (values, formulas)]
        for sheet in first:
            # What a sheet says of its own size may be anything.
            sheet.reset_dimensions()
        pairs = zip(*(sheet.iter_rows() for sheet in first), strict=False)
        for row, (shown, written) in enumerate(pairs):
            for name, cell, formula in zip(names, shown, written, strict=False):
                if name in columns and cell.value is None and formula.data_type == "f":
                    raise BadInput(
                        f"{path}, row {row}, column `{name}`: holds a formula without a value; "
                        "open the file in a spreadsheet program and save it, or write the value in"
                    )
    finally:
        values.close()
        formulas.close()
