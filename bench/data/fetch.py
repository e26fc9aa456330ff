"""Bringing a released data set to the user's folder: downloaded at a fixed revision, or from a local copy.

Everything is assembled beside its final place and renamed, so that a folder that is found is whole. Of a release only
tables are kept, with licence and readme; none of its code is unpacked.
"""

import gzip
import hashlib
import json
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import tomllib
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path, PureWindowsPath

from filelock import FileLock, Timeout

from bench import data
from bench.benchmarks import module, resolve
from bench.data import MANIFEST, Source
from bench.errors import BadInput, RunFailed
from bench.progress import progress, say

GITHUB = {
    "cbbq": ("YFHuangxxxx/CBBQ", "95eaf2eeaa0b936f3e97e3424f134e9d7655da98"),
    "nli_coal": (
        "panatchakorn-a/bias-eval-nli-considering-all-labels",
        "4d57afe81db25011b4c515ab1575115c3cfb1765",
    ),
}
# Not pinned: of McBE's commits only an abbreviation (ec8bd87, of the card) is known, and the Hub wants a whole one. What
# `main` is at the time is taken; the manifest names that commit and the hash of the content, and says `pinned = false`.
HUB = {"mcbe": "Velikaya/McBE"}
CHECKSUMS = Path(__file__).with_name("checksums.toml")
TABLES = (".csv", ".json", ".tsv", ".xlsx")
TEXTS = ("LICENSE", "LICENCE", "README")
MAX_BYTES = 2**30
MAX_MEMBERS = 100_000
TIMEOUT = 60.0
# What a broken archive provokes in the standard library.
BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError,
)  # fmt: skip


def fetch(benchmark: str, source: str | Path | None = None, to: Path | None = None) -> Source:
    """Bring the released data of `benchmark` to the user's data folder, or to `to`, replacing what was there.

    `source` is a local copy: a folder, a .tar.gz or a .zip, of the release or a part of it. Without it the release is
    downloaded. What was there stays as it is unless the new data is complete and the loader accepts it.

    Raises:
        BadInput: the local copy is missing, unsafe or not the benchmark's data; or `to` holds something else.
        RunFailed: the download failed or is not the known release; or the disk refused.
    """
    benchmark = resolve(benchmark)
    target = (Path(to).expanduser() if to else data.user_folder() / benchmark).resolve()
    try:
        if to and target.exists() and not (target / MANIFEST).is_file() and _holds_something(target):
            raise BadInput(f"{target}: holds other things than fetched data; name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / f".{target.name}.lock", timeout=0):
            work = _workspace(target)
            try:
                _fetch(benchmark, Path(source).expanduser() if source else None, target, work)
            finally:
                _clear(work, target)
    except Timeout:
        raise RunFailed(f"{target}: another fetch is writing it; wait until that one has ended") from None
    except OSError as error:
        raise RunFailed(f"{target}: the data could not be copied there ({error})") from None

    return replace(data.find(benchmark, target), found="fetched" if to else "user data folder")


def _fetch(benchmark: str, source: Path | None, target: Path, work: Path) -> None:
    room = module("data", benchmark)
    copy, origin, revision = (
        _download(benchmark, work) if source is None else (source, str(source.resolve()), "")
    )
    staged = work / "new"
    with _faults(benchmark, work, origin, downloaded=source is None):
        root = _root(benchmark, copy, work)
        taken = _taken(benchmark, root)
        texts = [path for path in sorted(root.iterdir()) if _is_text(path.name)]
        for name, path in {**taken, **{path.name: path for path in texts}}.items():
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, staged / name)
        known: dict[str, str] = tomllib.loads(CHECKSUMS.read_text("utf-8")).get(benchmark, {})
        checked = [name for name in taken if name in known]
        wrong = [name for name in checked if _blob_id(staged / name) != known[name]]
        if source is None and (wrong or known.keys() - taken.keys()):
            first = min([*wrong, *(known.keys() - taken.keys())])
            raise RunFailed(_instead(benchmark, f"{origin}: {first} is missing or is not the released file"))
        brought = data.find(benchmark, staged)
        data.load(brought)
        about = data.find(benchmark, root)
    released = GITHUB[benchmark][1][:7] if benchmark in GITHUB else ""
    # Every file with a known id is as released, and there is at least one.
    verified = bool(checked) and not wrong
    name, version = about.name, about.version
    if source is None or (verified and not (root / MANIFEST).is_file()):
        name, version = room.TITLE, (revision or released)[:7]
    elif wrong and version == released:
        name, version = f"{room.TITLE} (changed copy)", f"{released}+changed"
    if wrong:
        say(
            f"{origin}: {len(wrong)} of {len(taken)} files differ from the release, the first is {wrong[0]}; "
            f"numbers on them are not results on {room.TITLE}"
        )
    manifest: dict[str, str | int | bool] = {
        "name": name,
        "version": version,
        "licence": about.licence,
        "homepage": room.HOMEPAGE,
        "note": about.note,
        "fetched_from": origin,
        "revision": revision,
        "pinned": source is None and benchmark in GITHUB,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": len(taken),
        "verified": verified,
        "verified_files": len(checked) - len(wrong),
        "sha256": brought.sha256,
    }
    (staged / MANIFEST).write_bytes(_toml(manifest))
    if target.exists():
        os.replace(target, work / "old")
    os.replace(staged, target)


def _workspace(target: Path) -> Path:
    """A folder beside `target`; what killed fetches left there is cleared away first."""
    prefix = f".{target.name}.fetch-"
    for left in [path for path in target.parent.iterdir() if path.name.startswith(prefix)]:
        _clear(left, target)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))


def _clear(work: Path, target: Path) -> None:
    # A fetch that ended between its two renames has left the older data in here.
    if (work / "old").exists() and not target.exists():
        os.replace(work / "old", target)
    shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _faults(benchmark: str, work: Path, origin: str, downloaded: bool) -> Iterator[None]:
    """Faults name the place that the caller knows, as the temporary one is gone when they are read."""
    try:
        yield
    except BadInput as error:
        message = str(error)
        for folder in (work / "new", work / "unpacked", work):
            message = message.replace(f"{folder}{os.sep}", f"{origin}: ").replace(str(folder), origin)
        if downloaded:
            raise RunFailed(_instead(benchmark, message)) from None
        raise BadInput(message) from None


def _instead(benchmark: str, fault: str) -> str:
    return f"{fault}; bring a copy by other means and run `bench fetch {benchmark} --from DIR`"


def _download(benchmark: str, work: Path) -> tuple[Path, str, str]:
    """The downloaded archive or folder, the address that it came from, and its commit."""
    if benchmark in GITHUB:
        repository, revision = GITHUB[benchmark]
        origin = f"https://codeload.github.com/{repository}/tar.gz/{revision}"
        try:
            return _stream(origin, work / "release.tar.gz"), origin, revision
        except (OSError, HTTPException, ValueError) as error:
            raise RunFailed(_instead(benchmark, f"{origin}: the download failed ({error})")) from None
    if benchmark not in HUB:
        raise BadInput(f"{benchmark}: no address of the release is known; give a local copy with --from")
    from huggingface_hub import HfApi, constants, snapshot_download

    origin = f"{constants.ENDPOINT}/datasets/{HUB[benchmark]}"
    say(f"downloading {origin}")
    try:
        revision = str(HfApi().dataset_info(HUB[benchmark], timeout=TIMEOUT).sha)
        snapshot_download(
            HUB[benchmark], repo_type="dataset", revision=revision, local_dir=work / "release",
            allow_patterns=["xlsx_files/*", *(f"{name}*" for name in TEXTS)],
        )  # fmt: skip
    except Exception as error:  # the client's own errors, those of its HTTP library, and OSError
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise RunFailed(_instead(benchmark, f"{origin}: the download failed ({reason})")) from None
    return work / "release", origin, revision


def _stream(url: str, path: Path) -> Path:
    say(f"downloading {url}")
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response, path.open("wb") as file:
        if not response.url.startswith("https://"):
            raise ValueError(f"it leads to {response.url}, which is not https")
        # GitHub packs while it sends and may not know the length.
        length = int(response.headers.get("Content-Length") or 0)
        done = 0
        with progress(length // 1024, "downloading", "KiB") as bar:
            while chunk := response.read(2**16):
                done += file.write(chunk)
                if done > MAX_BYTES:
                    raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
                bar.advance(len(chunk) // 1024)
    if length and done != length:
        raise ValueError(f"it ended after {done:,} of {length:,} bytes")
    return path


def _root(benchmark: str, copy: Path, work: Path) -> Path:
    """The folder in which the loader finds data: `copy`, or what it unpacks to, or a folder right inside."""
    room, folder = module("data", benchmark), copy.resolve()
    if not folder.is_dir():
        folder = work / "unpacked"
        folder.mkdir()
        _unpack(copy, folder)
    for candidate in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if room.files(candidate):
            return candidate
    raise BadInput(f"{copy}: holds no data of {room.TITLE}; expected {room.LAYOUT}")


def _taken(benchmark: str, root: Path) -> dict[str, Path]:
    """Files by their name in the release: those that the loader reads, and all tables in a folder of a language."""
    room = module("data", benchmark)
    read = {path for paths in room.files(root).values() for path in paths}
    versioned = [folder for name in room.CATEGORIES for folder in root.glob(f"{name}_v*")]
    # A folder of one language may have been given itself.
    alone = not versioned and any(root.name.startswith(f"{name}_v") for name in room.CATEGORIES)
    for folder in [root] if alone else versioned:
        read |= {path for path in folder.rglob("*") if path.suffix in (".json", ".tsv") and path.is_file()}
    above = root.parent if alone else root
    return {path.relative_to(above).as_posix().removeprefix("data/"): path for path in sorted(read)}


def _is_text(name: str) -> bool:
    return name.split(".")[0].upper() in TEXTS and Path(name).suffix in ("", ".md", ".txt")


def _unpack(archive: Path, into: Path) -> None:
    """Unpack the tables, licence and readme; all members are checked, those that are not wanted too."""
    if not archive.is_file():
        raise BadInput(f"{archive}: no such file or folder; --from wants a folder, a .tar.gz or a .zip")
    try:
        if archive.name.lower().endswith(".zip"):
            _unzip(archive, into)
        elif archive.name.lower().endswith((".tar.gz", ".tgz")):
            _untar(archive, into)
        else:
            raise BadInput(f"{archive}: --from wants a folder, a .tar.gz or a .zip")
    except BROKEN as error:
        raise BadInput(f"{archive}: cannot be unpacked ({error}); it is damaged or incomplete") from None


def _unzip(archive: Path, into: Path) -> None:
    with zipfile.ZipFile(archive) as zipped:
        size = 0
        for number, info in enumerate(zipped.infolist(), start=1):
            kind = stat.S_IFMT(info.external_attr >> 16)
            size += info.file_size
            _check(archive, info.filename, number, size, kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if not info.is_dir() and _wanted(info.filename):
                zipped.extract(info, into)


def _untar(archive: Path, into: Path) -> None:
    size = 0
    with _Bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for number, member in enumerate(tar, start=1):
            size += member.size
            _check(archive, member.name, number, size, member.isreg() or member.isdir())
            if member.isreg() and _wanted(member.name):
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


def _wanted(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return not last.startswith(".") and (last.endswith(TABLES) or last == MANIFEST or _is_text(last))


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


def _blob_id(path: Path) -> str:
    """The id by which git knows the content."""
    raw = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def _holds_something(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir())


def _toml(values: dict[str, str | int | bool]) -> bytes:
    """`values` as TOML: JSON's strings are TOML's but for DEL, and for surrogates (of names that are not UTF-8)."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value != ""
    ]
    return "".join(lines).replace("\x7f", "\\u007f").encode("utf-8", "replace")
