"""Hostile files: our own samples, spoilt in all the ways that we could think of.

Test support. `spoilt` gives a sample that something was done to, and `read_spoilt` lets a reader read it. The readers are in
`hostile_readers` and `hostile_curate`.
"""

import csv
import io
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from bench.core.errors import BadInput, RunFailed

Files = Mapping[str, bytes]
# What files from nowhere hold: other encodings, quotes, control characters, numbers that are none, paths, code.
NASTY = [
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\xd6\xd0\xce\xc4",
    b"\r",
    b"\n",
    b"\r\n",
    b"\t",
    b'"',
    b"'",
    b",",
    b";",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\x1b[31m",
    b"\x7f",
    "\u202e".encode(),
    "\u2028".encode(),
    "\u200b".encode(),
    "\ufeff甲".encode(),
    "＝１".encode(),
    "²".encode(),
    "٣".encode(),
    b"=cmd|' /C calc'!A0",
    b"@SUM(1)",
    b"-1+1",
    b"NaN",
    b"Infinity",
    b"-1e999",
    b"1e999",
    b"9" * 5000,
    b"0x" + b"f" * 5000,
    b"-1",
    b"1.5",
    b"true",
    b"null",
    b"{}",
    b"[]",
    b"[[[[",
    b"{{{{",
    b"}",
    b"]",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"../../etc/passwd",
    b"/etc/passwd",
    b"C:\\x",
    b"~nobody/x",
    b"a" * 300,
    b"x" * 140_000,
    b"[PLH]",
    b"[Sub]",
    b"{{NAME1}}",
    b"{0}",
    b"{x.__class__}",
    b"{x!r:>999999}",
    b"%s",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"!!python/object/apply:os.system [id]",
    b"!!int ",
    b"!!timestamp 2024-99-99",
    b"? ",
    b": ",
    b"- ",
    b"#",
    b"'''",
    b'"""',
    b"[a.b.c]\n",
    b"a.b=1\n",
    b"1970-13-41",
    b"1:2:3:4",
    b"<script>alert(1)</script>",
    b"<!ENTITY a 'b'>",
    b"&a;",
    b"\\input{x}",
    b" ",
    b"",
]
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "gb18030", "big5", "latin-1", "utf-8-sig", "utf-7")
TABLES = (".csv", ".tsv")
place = st.floats(0, 1, exclude_max=True)
nasty = st.sampled_from(NASTY)
steps = st.one_of(
    st.tuples(st.just("flip"), place, st.integers(1, 255)),
    st.tuples(st.just("cut"), place, place),
    st.tuples(st.just("twice"), place, place),
    st.tuples(st.just("end"), place, st.none()),
    st.tuples(st.just("insert"), place, nasty | st.binary(max_size=8)),
    st.tuples(st.just("replace"), place, nasty),
    st.tuples(st.just("recode"), place, st.sampled_from(ENCODINGS)),
    # For tables twice, as they have more that can be wrong.
    *[
        st.tuples(st.just(name), place, nasty)
        for name in ("cell", "cell", "column", "double", "header", "row")
    ],
)
spoiling = st.one_of(
    st.lists(steps, min_size=1, max_size=4),
    st.tuples(st.just("raw"), place, st.binary(max_size=200)).map(lambda step: [step]),
)


class Reader(NamedTuple):
    """A reader of files from outside: a sample, and what reads a folder that holds it, spoilt.

    `spoil` are the names of the files that are spoilt; `inside` says that what is spoilt is in an archive.
    """

    sample: Callable[[], Files]
    read: Callable[[Path], Any]
    spoil: Callable[[str], bool] = lambda name: True
    inside: bool = False


def spoilt(raw: bytes, changes: list[tuple[str, float, Any]], suffix: str) -> bytes:
    """The bytes of a file after all of `changes`; those of cells are for tables alone."""
    for what, where, value in changes:
        at = int(where * len(raw))
        if what == "raw":
            raw = value
        elif what == "flip" and raw:
            raw = raw[:at] + bytes([raw[at] ^ value]) + raw[at + 1 :]
        elif what == "cut":
            raw = raw[:at] + raw[at + int(value * (len(raw) - at)) :]
        elif what == "twice":
            raw = raw[:at] + raw[at : at + int(value * 2000)] * 2 + raw[at + int(value * 2000) :]
        elif what == "end":
            raw = raw[:at]
        elif what == "insert":
            raw = raw[:at] + value + raw[at:]
        elif what == "replace":
            raw = raw[:at] + value + raw[at + len(value) :]
        elif what == "recode":
            raw = raw.decode("utf-8", "replace").encode(value, "replace")
        elif suffix in TABLES:
            raw = _table(raw, what, where, value, "," if suffix == ".csv" else "\t")
        elif what in ("cell", "row"):
            # A word or a number of what is no table.
            words = raw.split(b" ")
            words[int(where * len(words))] = value
            raw = b" ".join(words)
    return raw


def _table(raw: bytes, what: str, where: float, value: bytes, between: str) -> bytes:
    text = raw.decode("utf-8", "surrogateescape")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=between) if row]
    except csv.Error:
        return raw
    if not rows:
        return raw
    cell = value.decode("utf-8", "surrogateescape")
    k, n = int(where * len(rows)), len(rows[0])
    column = int(where * n * 7) % n
    if what == "cell":
        rows[k][min(column, len(rows[k]) - 1)] = cell
    elif what == "column":
        rows = [row[:column] + row[column + 1 :] for row in rows]
    elif what == "double":
        rows = [row[: column + 1] + row[column:] for row in rows]
    elif what == "header":
        rows[0][column] = cell
    else:
        rows.insert(k, rows[k])
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=between).writerows(rows)
    return stream.getvalue().encode("utf-8", "surrogateescape")


def read_spoilt(
    reader: Reader, folder: Path, name: str, changes: list[tuple[str, float, Any]]
) -> str:
    """Let a reader read its sample with file `name` spoilt; the message of a refusal, "" where it was read."""
    files = dict(reader.sample())
    if reader.inside:
        outer, _, part = name.partition("!")
        files[outer] = _repacked(files[outer], part, changes)
    else:
        files[name] = spoilt(files[name], changes, Path(name).suffix)
    shutil.rmtree(folder, ignore_errors=True)
    for path, raw in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)
    try:
        reader.read(folder)
    except (BadInput, RunFailed) as refusal:
        return str(refusal)
    return ""


def names(reader: Reader) -> list[str]:
    """What may be spoilt of a reader's sample."""
    files = [name for name in reader.sample() if reader.spoil(name)]
    if not reader.inside:
        return files
    return [
        f"{name}!{part}"
        for name in files
        for part in zipfile.ZipFile(io.BytesIO(reader.sample()[name])).namelist()
    ]


def _repacked(raw: bytes, part: str, changes: list[tuple[str, float, Any]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(stream, "w") as new:
        for one in old.namelist():
            content = old.read(one)
            new.writestr(one, spoilt(content, changes, ".xml") if one == part else content)
    return stream.getvalue()


def of(folder: Path, *parts: str) -> Files:
    """The files of a folder whose paths match one of `parts`."""
    found = {}
    for part in parts:
        for path in sorted(folder.glob(part)):
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def short(files: Files, rows: int = 6) -> Files:
    """The same files with their first rows alone, so that most of what is spoilt is read."""
    return {
        name: b"".join(raw.splitlines(keepends=True)[:rows]) if not name.endswith(".toml") else raw
        for name, raw in files.items()
    }


def attempt(call: Callable[[], Any]) -> None:
    """Call what may refuse."""
    try:
        call()
    except BadInput:
        return


def both(*calls: Callable[[Path], Any]) -> Callable[[Path], None]:
    """All of some readers, whichever of them refuses."""

    def read(folder: Path) -> None:
        refused = []
        for call in calls:
            try:
                call(folder)
            except BadInput as refusal:
                refused.append(refusal)
        if refused:
            raise refused[0]

    return read
