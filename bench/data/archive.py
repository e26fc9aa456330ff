"""Unpacking a .zip or .tar.gz that nobody vouches for: only the wanted files, none outside the folder, within limits."""

import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

from bench.errors import BadInput

MAX_BYTES = 2**30
MAX_MEMBERS = 100_000
# What a broken archive provokes in the standard library.
BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError,
)  # fmt: skip


def unpack(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    """Unpack the members whose name is `wanted`; all members are checked, those that are not wanted too.

    Raises:
        BadInput: no such file, not an archive, damaged, too large, or a member that is no plain file inside the folder.
    """
    if not archive.is_file():
        raise BadInput(f"{archive}: no such file or folder; --from wants a folder, a .tar.gz or a .zip")
    try:
        if archive.name.lower().endswith(".zip"):
            _unzip(archive, into, wanted)
        elif archive.name.lower().endswith((".tar.gz", ".tgz")):
            _untar(archive, into, wanted)
        else:
            raise BadInput(f"{archive}: --from wants a folder, a .tar.gz or a .zip")
    except BROKEN as error:
        raise BadInput(f"{archive}: cannot be unpacked ({error}); it is damaged or incomplete") from None


def _unzip(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    with zipfile.ZipFile(archive) as zipped:
        size = 0
        for number, info in enumerate(zipped.infolist(), start=1):
            kind = stat.S_IFMT(info.external_attr >> 16)
            size += info.file_size
            _check(archive, info.filename, number, size, kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if not info.is_dir() and wanted(info.filename):
                zipped.extract(info, into)


def _untar(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    size = 0
    with _Bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for number, member in enumerate(tar, start=1):
            size += member.size
            _check(archive, member.name, number, size, member.isreg() or member.isdir())
            if member.isreg() and wanted(member.name):
                tar.extract(member, into, filter="data")
        # To the end, where the checksum of the whole stands.
        while stream.read(2**16):
            pass


class _Bounded(gzip.GzipFile):
    """A gzip stream that does not go on for ever: a header may claim gigabytes, which are read before they are checked."""

    done = 0

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        self.done += len(chunk)
        if self.done > MAX_BYTES + 2048 * MAX_MEMBERS:
            raise BadInput(f"{self.name}: unpacks to more than {MAX_BYTES:,} bytes")
        return chunk


def _check(archive: Path, name: str, number: int, size: int, plain: bool) -> None:
    # A Windows path takes both slashes and drives, so that what it refuses is unsafe on some system.
    path = PureWindowsPath(name)
    if path.drive or path.root or ".." in path.parts:
        raise BadInput(f"{archive}: member {name!r} would be written outside the folder; nothing was kept")
    if not plain:
        raise BadInput(f"{archive}: member {name!r} is a link or a device, not a file; pack it without links")
    if size > MAX_BYTES:
        raise BadInput(f"{archive}: unpacks to more than {MAX_BYTES:,} bytes, at member {name!r}")
    if number > MAX_MEMBERS:
        raise BadInput(f"{archive}: has more than {MAX_MEMBERS:,} members, at member {name!r}")
