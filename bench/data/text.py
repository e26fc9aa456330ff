"""Reading text that nobody vouches for: within bounds, in one encoding, and every fault a sentence with file and line.

The bounds are far beyond what any of the benchmarks has, and small enough that no file takes the machine's memory.
"""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import NoReturn

from bench.core.errors import BadInput

# Bytes of a file that is read as a whole.
MAX_BYTES = 2**27
# Bytes or characters of a line, or of a record that has several.
MAX_LINE = 2**24
MAX_LINES = 1_000_000
# What a folder or a file may be called, with all that it lies in.
MAX_NAME = 4096
MARK = "\ufeff"
AT_A_JOIN = "begins with a byte order mark, as where two files were joined; remove it"
# Other encodings, by the byte order mark that they begin with; the longer one first, as it begins like the other.
WIDE = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def place(given: str | Path) -> Path:
    """A path as somebody wrote it, with `~` for a home folder.

    Raises:
        BadInput: no system has such a path: it holds a NUL or half a character, is too long, or names nobody's home.
    """
    text = str(given)
    if "\0" in text or not _can_be_written(text):
        raise BadInput(f"{text[:200]}: is no path, as it holds a character that no path can have")
    if len(text) > MAX_NAME or any(
        len(part.encode("utf-8", "surrogateescape")) > 255 for part in Path(text).parts
    ):
        raise BadInput(
            f"{text[:200]}…: is no path; a name in it is longer than 255 bytes, or all {MAX_NAME:,}"
        )
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BadInput(f"{text}: is no path ({error})") from None


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """The bytes of a file, as a stream.

    Raises:
        BadInput: it is not there, is a folder, or may not be read.
    """
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from None


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file that has at most `most`.

    Raises:
        BadInput: it cannot be read, or has more.
    """
    with opened(path) as stream:
        raw = stream.read(most + 1)
    if len(raw) > most:
        raise BadInput(
            f"{path}: is larger than {most:,} bytes; split it, or leave out what is not needed"
        )
    return raw


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        BadInput: the file is not UTF-8, with the line and how to convert it; or has more than `most` bytes.
    """
    raw = read_bytes(path, most)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        _refuse_bytes(path, raw[: error.start].count(b"\n") + 1, raw[error.start], "utf-8", "")
    if "\0" in text:
        _refuse_nul(path, text[: text.index("\0")].count("\n") + 1)
    return text.removeprefix(MARK)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its line feed) of a file in UTF-8, with or without a byte order mark, one by one.

    Raises:
        BadInput: not UTF-8, or a line is too long; with its number.
    """
    with opened(path) as stream:
        number = 0
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                raise BadInput(
                    f"{path}, line {number}: is longer than {MAX_LINE:,} bytes; split it"
                )
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                _refuse_bytes(path, number, raw[error.start], "utf-8", "")
            if "\0" in text:
                _refuse_nul(path, number)
            if text.startswith(MARK):
                if number > 1:
                    raise BadInput(f"{path}, line {number}: {AT_A_JOIN}")
                text = text[1:]
            yield number, text.removesuffix("\n")


class Lines:
    """The lines of a table in UTF-8 or in GB18030, which GBK is a part of, with their ends, as `csv.reader` wants them: `\\n`, `\\r\\n` and `\\r` end one.

    `advice` is the caller's own way to read GBK; it goes into the message about a file that is not UTF-8.

    Attributes:
        record: the lines of the record that is being read; who reads it empties it after each.
    """

    def __init__(self, path: Path, encoding: str = "utf-8", advice: str = "") -> None:
        self.path, self.encoding, self.advice = path, encoding, advice
        self.record: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """The lines.

        Raises:
            BadInput: not in that encoding, or a record is too long; with the line.
        """
        if self.encoding != "utf-8":
            raw = read_bytes(self.path)
            if not raw.isascii() and _is_utf8(raw):
                _refuse_utf8(self.path, self.encoding)
        name = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        number = size = 0
        with opened(self.path) as file, io.TextIOWrapper(file, encoding=name, newline="") as stream:
            try:
                while line := stream.readline(MAX_LINE + 1):
                    number += 1
                    size = len(line) + (size if self.record else 0)
                    if size > MAX_LINE or len(self.record) > MAX_LINES:
                        raise BadInput(
                            f"{self.path}, line {number}: its record is longer than {MAX_LINE:,} characters, or {MAX_LINES:,} lines; a quote may be missing"
                        )
                    if "\0" in line:
                        _refuse_nul(self.path, number)
                    self.record.append(line)
                    yield line
            except UnicodeDecodeError:
                _refuse_encoding(self.path, self.encoding, self.advice)


def _can_be_written(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refuse_utf8(path: Path, encoding: str) -> NoReturn:
    # Much UTF-8 decodes as GB18030 too, into other characters; the reverse hardly ever happens.
    raise BadInput(f"{path}: is UTF-8, not {encoding.upper()}; read it as UTF-8, the default")


def _refuse_encoding(path: Path, encoding: str, advice: str) -> NoReturn:
    """Say where a file is not in its encoding, which was found while it was read piece by piece."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with opened(path) as stream:
        number = 0
        while raw := stream.readline(MAX_LINE):
            number += 1
            try:
                decoder.decode(raw)
            except UnicodeDecodeError as error:
                _refuse_bytes(path, number, error.object[error.start], encoding, advice)
    raise BadInput(f"{path}: not {encoding.upper()}, in its last character; it was cut off")


def _refuse_bytes(path: Path, number: int, byte: int, encoding: str, advice: str) -> NoReturn:
    with opened(path) as stream:
        first = stream.read(4)
    wide = next((name for mark, name in WIDE.items() if first.startswith(mark)), "")
    if wide:
        raise BadInput(
            f"{path}: is {wide}; save it again in UTF-8: iconv -f {wide} -t UTF-8 '{path.name}'"
        )
    where = f"{path}, line {number}: not {encoding.upper()} (byte {byte:#04x})"
    if encoding != "utf-8":
        raise BadInput(f"{where}; save it again as CSV in UTF-8")
    raise BadInput(
        f"{where}; if it is GBK, {advice}"
        f"convert it: iconv -f GB18030 -t UTF-8 '{path.name}' > '{path.stem}-utf8{path.suffix}'"
    )


def _refuse_nul(path: Path, number: int) -> NoReturn:
    raise BadInput(
        f"{path}, line {number}: holds a NUL character, so it is not a text table; save it again as CSV in UTF-8"
    )
