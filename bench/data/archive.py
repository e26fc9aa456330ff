"""Unpacking a .zip or .tar.gz that nobody vouches for: only the wanted files, none outside the folder, within limits."""

import errno
import gzip
import io
import lzma
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

from bench.core.errors import BadInput, quoted

MAX_BYTES = 2**30
MAX_MEMBERS = 100_000
# The list of members of a .zip, which is read at once: a name of 200 bytes each.
MAX_LIST = 256 * MAX_MEMBERS
# Text of templates that repeat packs to a hundredth; what is packed to less holds nothing.
MAX_RATIO = 400
# Below this no ratio does harm: one file of zeros is a thousandth.
SMALL = 2**26
MAX_NAME = 255
MAX_PATH = 1000
# Of one member of a .tar.gz, and what may stand behind the last one.
MAX_HEADER = 2**20
# Characters that turn what follows them from left to right or back, so that a name reads as another.
DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What a broken archive provokes in the standard library.
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    OverflowError,
    struct.error,
    NotADirectoryError,
    IsADirectoryError,
    FileExistsError,
)


def unpack(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    """Unpack the members whose name is `wanted`; all members are checked, those that are not wanted too.

    Raises:
        BadInput: no such file, not an archive, damaged, too large, or a member that is no plain file inside the folder.
    """
    if not archive.is_file():
        raise BadInput(
            f"{archive}: no such file or folder; --from wants a folder, a .tar.gz or a .zip"
        )
    try:
        if archive.name.lower().endswith(".zip"):
            _unzip(archive, into, wanted)
        elif archive.name.lower().endswith((".tar.gz", ".tgz")):
            _untar(archive, into, wanted)
        else:
            raise BadInput(f"{archive}: --from wants a folder, a .tar.gz or a .zip")
    except BROKEN as error:
        raise BadInput(
            f"{archive}: cannot be unpacked ({error}); it is damaged or incomplete"
        ) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # A .zip that says that a part of it lies before its beginning.
        raise BadInput(
            f"{archive}: cannot be unpacked ({error}); it is damaged or incomplete"
        ) from None


def _unzip(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    checks = _Checks(archive)
    with _Listed(archive) as stream, zipfile.ZipFile(stream) as zipped:
        for info in zipped.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            keep = not info.is_dir() and wanted(info.filename)
            checks.member(
                info.filename, info.file_size, kind in (0, stat.S_IFREG, stat.S_IFDIR), keep
            )
            if keep and info.compress_type not in PACKINGS:
                raise BadInput(
                    f"{archive}: member {quoted(info.filename)} is packed in a rare way; pack it anew"
                )
            if keep:
                zipped.extract(info, into)


def _untar(archive: Path, into: Path, wanted: Callable[[str], bool]) -> None:
    checks = _Checks(archive)
    with _Bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        while member := tar.next():
            # Nobody asks for it again, and its header may be long.
            tar.members.clear()  # type: ignore[attr-defined]
            keep = member.isreg() and wanted(member.name)
            is_plain = (member.isreg() and not member.issparse()) or member.isdir()
            checks.member(member.name, member.size, is_plain, keep)
            stream.most = stream.done + member.size + MAX_HEADER
            if keep:
                # Whoever packed it has no say in when it was changed, nor in who may read it.
                member.mtime, member.mode = 0, 0o644
                tar.extract(member, into, filter="data")
        # To the end, where the checksum of the whole stands.
        while stream.read(2**16):
            stream.most = stream.done + MAX_HEADER


class _Listed(io.FileIO):
    """The bytes of a .zip, of which no more are read at once than a list of members may have."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > MAX_LIST:
            raise BadInput(
                f"{self.name!s}: has more than {MAX_MEMBERS:,} members, or names of thousands of bytes"
            )
        return super().read(-1 if size is None else size) or b""


class _Bounded(gzip.GzipFile):
    """A gzip stream that does not go on for ever: a header may claim gigabytes, which are read before they are checked.

    `most` is how far may be read before the next member is known.
    """

    done = 0
    most = MAX_HEADER

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        self.done += len(chunk)
        if self.done > self.most:
            raise BadInput(
                f"{self.name}: has a header of more than {MAX_HEADER:,} bytes; it is no archive of a data set"
            )
        if self.done > MAX_BYTES + 2048 * MAX_MEMBERS:
            raise BadInput(f"{self.name}: unpacks to more than {MAX_BYTES:,} bytes")
        return chunk


class _Checks:
    """What members have to be, those that are not wanted too; and all of them together."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.packed = archive.stat().st_size
        self.number = self.size = 0
        self.kept: dict[str, str] = {}

    def member(self, name: str, size: int, is_plain: bool, keep: bool) -> None:
        """Look at the next member.

        Raises:
            BadInput: it would be written outside the folder, is a link or a device, or there is too much of it.
        """
        self.number += 1
        self.size += size
        archive, told = self.archive, quoted(name)
        # A Windows path takes both slashes and drives, so that what it refuses is unsafe on some system.
        path = PureWindowsPath(name)
        if path.drive or path.root or ".." in path.parts:
            raise BadInput(
                f"{archive}: member {told} would be written outside the folder; nothing was kept"
            )
        if not is_plain:
            raise BadInput(
                f"{archive}: member {told} is a link or a device, not a file; pack it without links"
            )
        if self.size > MAX_BYTES or size < 0:
            raise BadInput(f"{archive}: unpacks to more than {MAX_BYTES:,} bytes, at member {told}")
        if self.size > max(SMALL, MAX_RATIO * self.packed):
            raise BadInput(
                f"{archive}: unpacks to more than {MAX_RATIO} times its size, at member {told}; no data set does"
            )
        if self.number > MAX_MEMBERS:
            raise BadInput(f"{archive}: has more than {MAX_MEMBERS:,} members, at member {told}")
        if keep:
            self._name(name, told)

    def _name(self, name: str, told: str) -> None:
        """What a name has to be, so that a file of that name can be written anywhere, and is the only one."""
        if any(
            unicodedata.category(char) in ("Cc", "Zl", "Zp") or char in DIRECTIONS for char in name
        ):
            raise BadInput(
                f"{self.archive}: member {told} has a character in its name that no name should have"
            )
        raw = name.encode("utf-8", "surrogateescape")
        if len(raw) > MAX_PATH or any(len(part) > MAX_NAME for part in raw.split(b"/")):
            raise BadInput(
                f"{self.archive}: member {told} has a name of more than {MAX_NAME} bytes; rename it"
            )
        alike = unicodedata.normalize("NFC", name).casefold()
        if alike in self.kept:
            raise BadInput(
                f"{self.archive}: members {quoted(self.kept[alike])} and {told} have one name, but for capital letters; one would be lost"
            )
        self.kept[alike] = name
