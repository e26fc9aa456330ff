"""Damage sample files and let a reader read them. Test support."""

import io
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import strategies as st

from bench.core.errors import BadInput, RunFailed

Files = Mapping[str, bytes]
# Other encodings, quotes, control characters, numbers that are none, paths, code.
NASTY = [
    *(b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xd6\xd0\xce\xc4", b"\x7f"),
    *(b"\r", b"\n", b"\r\n", b"\t", b'"', b"'", b",", b";", b"\\", b"\\ud800", b"\x1b[31m", b""),
    *(text.encode() for text in ("\u202e", "\u2028", "\u200b", "\ufeff甲", "＝１", "²", "٣")),
    *(b"=cmd|' /C calc'!A0", b"-1+1", b"NaN", b"-1e999", b"9" * 5000, b"0x" + b"f" * 5000, b"-1"),
    *(b"1.5", b"true", b"null", b"{}", b"[]", b"{{{{", b"}", b"]", b"[" * 3000, b'{"a":' * 2000),
    *(b"../../etc/passwd", b"C:\\x", b"~nobody/x", b"a" * 300, b"x" * 140_000, b"[PLH]", b"[Sub]"),
    *(b"{{NAME1}}", b"{0}", b"{x.__class__}", b"{x!r:>999999}", b"%s", b"&a ", b"*a", b"<<: *a"),
    *(b"!!python/object/apply:os.system [id]", b"!!timestamp 2024-99-99", b"? ", b": ", b"- "),
    *(b"#", b"'''", b'"""', b"[a.b.c]\n", b"a.b=1\n", b"1:2:3:4", b"<!ENTITY a 'b'>", b"&a;"),
]
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "gb18030", "big5", "latin-1", "utf-8-sig", "utf-7")
# Cells, words and values, one of which is replaced.
TOKENS = re.compile(rb"[^\s,;\t\"'{}\[\]<>]+")
place = st.floats(0, 1, exclude_max=True)
steps = st.one_of(
    st.tuples(st.just("cut"), place, place),
    st.tuples(st.just("twice"), place, place),
    st.tuples(st.just("insert"), place, st.sampled_from(NASTY) | st.binary(max_size=8)),
    st.tuples(st.just("token"), place, st.sampled_from(NASTY)),
    st.tuples(st.just("recode"), place, st.sampled_from(ENCODINGS)),
    st.tuples(st.just("all"), place, st.binary(max_size=200)),
)
damages = st.lists(steps, min_size=1, max_size=4)
Damages = list[tuple[str, float, Any]]


class Reader(NamedTuple):
    """A reader of foreign files: what reads a folder with the files that `sample` returns.

    Files whose names end with one of `endings` are damaged, and the parts of workbooks.
    """

    sample: Callable[[], Files]
    read: Callable[[Path], Any]
    endings: tuple[str, ...] = ("",)

    def names(self) -> list[str]:
        """Return the names of the files to damage, and FILE!PART of workbooks."""
        files = {name: raw for name, raw in self.sample().items() if name.endswith(self.endings)}
        parts = [
            f"{name}!{part}"
            for name in files
            if name.endswith(".xlsx")
            for part in unzipped(files[name])
        ]
        return [*files, *parts]

    def read_damaged(self, folder: Path, name: str, changes: Damages) -> str:
        """Read the sample with file `name` damaged; return the message of a refusal, or ""."""
        files = dict(self.sample())
        file, _, part = name.partition("!")
        if part:
            stream, parts = io.BytesIO(), unzipped(files[file])
            with zipfile.ZipFile(stream, "w") as new:
                for member, raw in (parts | {part: damaged(parts[part], changes)}).items():
                    new.writestr(member, raw)
            files[file] = stream.getvalue()
        else:
            files[file] = damaged(files[file], changes)
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, files)
        try:
            self.read(folder)
        except (BadInput, RunFailed) as refusal:
            return str(refusal)
        return ""


def unzipped(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def damaged(raw: bytes, changes: Damages) -> bytes:
    """Return the bytes of a file after all changes."""
    for kind, where, value in changes:
        at = int(where * len(raw))
        tokens = list(TOKENS.finditer(raw)) if kind == "token" else []
        if tokens:
            at, end = tokens[int(where * len(tokens))].span()
            raw = raw[:at] + value + raw[end:]
        elif kind == "cut":
            raw = raw[:at] + raw[at + int(value * (len(raw) - at)) :]
        elif kind == "twice":
            raw = raw[:at] + raw[at : at + int(value * 2000)] + raw[at:]
        elif kind == "insert":
            raw = raw[:at] + value + raw[at:]
        elif kind == "recode":
            raw = raw.decode("utf-8", "replace").encode(value, "replace")
        elif kind == "all":
            raw = value
    return raw


def write(folder: Path, files: Files) -> None:
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def of(folder: Path, *patterns: str) -> Files:
    """Return the files of a folder that match one of `patterns`."""
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()
    }


def made(make: Callable[[Path], object], *patterns: str) -> Files:
    """Return the files that `make` writes to a folder."""
    with TemporaryDirectory() as folder:
        make(Path(folder))
        return of(Path(folder), *patterns)


def short(files: Files, rows: int = 6) -> Files:
    """Return the same files with their first rows alone, so that most damage is read."""
    lines = {name: raw.splitlines(keepends=True) for name, raw in files.items()}
    return {
        name: raw if name.endswith(".toml") else b"".join(lines[name][:rows])
        for name, raw in files.items()
    }


def attempt(call: Callable[[], Any]) -> None:
    """Call what may refuse."""
    with suppress(BadInput):
        call()
