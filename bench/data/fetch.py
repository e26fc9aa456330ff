"""Bringing a released data set to the user's folder: downloaded at a fixed revision, or from a local copy.

Everything is assembled beside its final place and renamed, so that a folder that is found is whole. Of a release only
tables are kept, with licence and readme; none of its code is kept or run. The wording, where it stands in scripts of the
authors, comes along: see `bench.data.fetch_wording`.
"""

import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from bench import data
from bench.benchmarks import get, module, resolve
from bench.core.errors import BadInput, RunFailed
from bench.core.progress import say
from bench.data import MANIFEST, Source, fetch_wording, readers
from bench.data.archive import MAX_BYTES, unpack
from bench.data.dataset import FETCHED, PROMPTS_FILE, manifest_tables
from bench.data.dataset import read_manifest as read_manifest
from bench.data.download import download
from bench.data.readers import as_path

# Seconds that the Hub may take to say which commit is the newest.
HUB_TIMEOUT = 10.0
# With the texts of the language packs among sets of our own.
TABLES = (".csv", ".json", ".tsv", ".xlsx", ".txt", ".toml")
# The ids of released files, as far as they are known, by benchmark and path in the release.
CHECKSUMS = Path(__file__).with_name("checksums.toml")
TEXTS = ("LICENSE", "LICENCE", "README")


def fetch(benchmark: str, source: str | Path | None = None, to: Path | None = None) -> Source:
    """Bring the released data of `benchmark` to the user's data folder, or to `to`, replacing what was there.

    `source` is a local copy: a folder, a .tar.gz or a .zip, of the release or a part of it. Without it the release is
    downloaded. What was there stays as it is unless the new data is complete and the loader accepts it.

    The wording comes with the data: from the scripts in the local copy, in a folder right inside or, where the copy is
    a folder, in the one that it lies in; else from the release. A local copy of the scripts alone brings the wording
    alone, and leaves the data as they are; where there are none, the source that is returned holds none. Data do not wait
    for the wording: a fault in it is told, and an older one is kept.

    Raises:
        BadInput: the local copy is missing, unsafe or not the benchmark's data; or `to` holds something else.
        RunFailed: the download failed or is not the known release; or the disk refused.
    """
    benchmark = resolve(benchmark)
    target = (as_path(to) if to else data.user_folder() / benchmark).resolve()
    try:
        if to and target.exists() and not (target / MANIFEST).is_file() and _holds_others(target):
            raise BadInput(f"{target}: holds other things than fetched data; name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / f".{target.name}.lock", timeout=0):
            work = _workspace(target)
            try:
                _fetch(benchmark, as_path(source) if source else None, target, work)
            finally:
                _clear(work, target)
        told = fetch_wording.told(benchmark, target)
    except Timeout:
        raise RunFailed(
            f"{target}: another fetch is writing it; wait until that one has ended"
        ) from None
    except OSError as error:
        raise RunFailed(f"{target}: the data could not be copied there ({error})") from None

    if told:
        say(told)
    if not module("data", benchmark).files(target):
        return _without_data(benchmark, target)
    return replace(data.find(benchmark, target), found="fetched" if to else "user data folder")


def _fetch(benchmark: str, source: Path | None, target: Path, work: Path) -> None:
    room = module("data", benchmark)
    copy, origin, revision = (
        _download(benchmark, work) if source is None else (source, str(source.resolve()), "")
    )
    staged = work / "new"
    with _faults(benchmark, work, origin, downloaded=source is None):
        folder = _folder(benchmark, copy, work)
        root = _root(benchmark, folder)
        if root is None:
            _wording_alone(benchmark, copy, folder, target, work, downloaded=source is None)
            return
        taken = _taken(benchmark, root)
        texts = [path for path in sorted(root.iterdir()) if _is_text(path.name)]
        for name, path in {**taken, **{path.name: path for path in texts}}.items():
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, staged / name)
        known = released_ids(benchmark)
        checked = [name for name in taken if name in known]
        wrong = [name for name in checked if git_blob_id(staged / name) != known[name]]
        if source is None and (wrong or known.keys() - taken.keys()):
            first = min([*wrong, *(known.keys() - taken.keys())])
            raise RunFailed(
                _instead(benchmark, f"{origin}: {first} is missing or is not the released file")
            )
        # Without it, categories of its own are not known.
        own = manifest_tables(read_manifest(root))
        (staged / MANIFEST).write_bytes(_toml(own))
        brought = data.find(benchmark, staged)
        try:
            data.load(brought)
        except BadInput as error:
            if not room.TOLERANT:
                raise
            data.load(brought, **room.TOLERANT)
            say(str(error).replace(str(staged), str(target)))
        about = data.find(benchmark, root)
    pinned = get(benchmark).release.commit[:7]
    # Every file with a known id is as released, and there is at least one.
    verified = bool(checked) and not wrong
    name, version = about.name, about.version
    if source is None or (verified and not (root / MANIFEST).is_file()):
        name, version = room.TITLE, (revision or pinned)[:7]
    elif wrong and version == pinned:
        name, version = f"{room.TITLE} (changed copy)", f"{pinned}+changed"
    if wrong:
        say(
            f"{origin}: {len(wrong)} of {len(taken)} files differ from the release, the first is {wrong[0]}; "
            f"numbers on them are not results on {room.TITLE}"
        )
    manifest: dict[str, Any] = {
        "name": name,
        "version": version,
        "licence": about.licence,
        "homepage": room.HOMEPAGE,
        "note": about.note,
        "fetched_from": origin,
        "revision": revision,
        "pinned": source is None and bool(pinned),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": len(taken),
        "verified": verified,
        "verified_files": len(checked) - len(wrong),
        "sha256": brought.sha256,
    }
    # Without a version a wording is the set's own.
    manifest[FETCHED], fault = fetch_wording.beside(
        benchmark, folder, root, target, work, downloaded=source is None
    )
    (staged / MANIFEST).write_bytes(_toml(manifest | own))
    if target.exists():
        os.replace(target, work / "old")
    os.replace(staged, target)
    if fault:
        say(_placed(fault, work, origin))


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
        message = _placed(str(error), work, origin)
        if downloaded:
            raise RunFailed(_instead(benchmark, message)) from None
        raise BadInput(message) from None


def _placed(message: str, work: Path, origin: str) -> str:
    for folder in (work / "new", work / "unpacked", work):
        message = message.replace(f"{folder}{os.sep}", f"{origin}: ").replace(str(folder), origin)
    return message


def _instead(benchmark: str, fault: str) -> str:
    return f"{fault}; bring a copy by other means and run `bench fetch {benchmark} --from DIR`"


def _download(benchmark: str, work: Path) -> tuple[Path, str, str]:
    """The downloaded archive or folder, the address that it came from, and its commit."""
    host, repository, revision = get(benchmark).release
    if host == "github":
        origin = f"https://codeload.github.com/{repository}/tar.gz/{revision}"
        try:
            return download(origin, work / "release.tar.gz", MAX_BYTES), origin, revision
        except (OSError, HTTPException, ValueError) as error:
            raise RunFailed(
                _instead(benchmark, f"{origin}: the download failed ({error})")
            ) from None
    if host != "hub":
        raise BadInput(
            f"{benchmark}: no address of the release is known; give a local copy with --from"
        )
    return _download_from_hub(benchmark, repository, work / "release")


def _download_from_hub(benchmark: str, name: str, folder: Path) -> tuple[Path, str, str]:
    """Download the tables and texts of a data set of the Hub to where the loader looks for them."""
    from huggingface_hub import HfApi, constants, snapshot_download

    from bench.data.hub_client import explain, quiet

    room, repository = module("data", benchmark), f"datasets/{name}"
    origin = f"{constants.ENDPOINT}/{repository}"
    say(f"downloading {origin}")
    quiet()
    try:
        info = HfApi().dataset_info(name, timeout=HUB_TIMEOUT)
        revision, names = str(info.sha), [file.rfilename for file in info.siblings or ()]
        tables: dict[str, str] = import_module(get(benchmark).data).arrange(names)
        wanted = [*tables, *(name for name in names if _is_text(name))]
        snapshot_download(
            name,
            repo_type="dataset",
            revision=revision,
            local_dir=folder,
            allow_patterns=wanted,
        )
    except Exception as error:  # the client's own errors, those of its HTTP library, and OSError
        raise RunFailed(_instead(benchmark, f"{origin}: {explain(error, repository)}")) from None
    if not tables:
        shown = ", ".join(sorted(names)[:20]) or "nothing"
        fault = f"{origin}: holds no tables of {room.TITLE}, but {shown}; expected {room.LAYOUT}"
        raise RunFailed(_instead(benchmark, fault))
    for path, known in tables.items():
        (folder / known).parent.mkdir(exist_ok=True)
        os.replace(folder / path, folder / known)
        _to_utf8(folder / known, origin)
    brought = [Path(known).stem for known in tables.values()]
    if missing := [name for name in room.CATEGORIES if name not in brought]:
        say(f"{origin}: has no table of {', '.join(missing)}; it has {', '.join(tables)}")
    return folder, origin, revision


def _to_utf8(path: Path, origin: str) -> None:
    """Rewrite a CSV file in GB18030, as Chinese spreadsheet programs save it, in UTF-8."""
    raw = path.read_bytes() if path.suffix == ".csv" else b""
    try:
        raw.decode()
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):  # neither: the loader says so
            path.write_bytes(raw.decode("gb18030").encode())
            say(f"{origin}: {path.name} is in GB18030; it is kept in UTF-8")


def _folder(benchmark: str, copy: Path, work: Path) -> Path:
    """`copy` itself, or the folder to which what is wanted of it was unpacked."""
    if copy.is_dir():
        return copy.resolve()
    folder = work / "unpacked"
    folder.mkdir()
    # Scripts go to the temporary folder alone, to be read.
    unpack(copy, folder, lambda name: _is_wanted(name) or fetch_wording.is_script(benchmark, name))
    return folder


def _root(benchmark: str, folder: Path) -> Path | None:
    """Where the loader finds data: in `folder`, or in a folder right inside."""
    room = module("data", benchmark)
    for candidate in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if room.files(candidate):
            return candidate
    return None


def _wording_alone(
    benchmark: str, copy: Path, folder: Path, target: Path, work: Path, downloaded: bool
) -> None:
    room = module("data", benchmark)
    # A release without its data is none.
    if downloaded or not fetch_wording.alone(benchmark, folder, target, work):
        scripts = fetch_wording.expected(benchmark)
        either = f"{room.LAYOUT}, or {scripts}" if scripts else room.LAYOUT
        raise BadInput(f"{copy}: holds no data of {room.TITLE}; expected {either}")
    if not (target / MANIFEST).is_file():
        say(
            f"{target}: the data of {room.TITLE} are still missing; `bench fetch {benchmark}` brings them"
        )


def _without_data(benchmark: str, target: Path) -> Source:
    room = module("data", benchmark)
    return Source(
        benchmark,
        target,
        "wording alone",
        f"{room.TITLE} (wording alone)",
        "unknown",
        room.LICENCE,
        note=f"the data are missing; `bench fetch {benchmark}` brings them",
    )


def _taken(benchmark: str, root: Path) -> dict[str, Path]:
    """Files by their name in the release: those that the loader reads, and all tables in a folder of a language."""
    room = module("data", benchmark)
    read = {path for paths in room.files(root).values() for path in paths}
    versioned = [folder for name in room.CATEGORIES for folder in root.glob(f"{name}_v*")]
    # A folder of one language may have been given itself.
    alone = not versioned and any(root.name.startswith(f"{name}_v") for name in room.CATEGORIES)
    for folder in [root] if alone else versioned:
        read |= {
            path
            for path in folder.rglob("*")
            if path.suffix in (".json", ".tsv") and path.is_file()
        }
    above = root.parent if alone else root
    return {path.relative_to(above).as_posix().removeprefix("data/"): path for path in sorted(read)}


def _is_text(name: str) -> bool:
    return name.split(".")[0].upper() in TEXTS and Path(name).suffix in ("", ".md", ".txt")


def _is_wanted(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return not last.startswith(".") and (
        last.endswith(TABLES) or last in (MANIFEST, PROMPTS_FILE) or _is_text(last)
    )


def _holds_others(path: Path) -> bool:
    """Whether anything but a wording that came alone is there."""
    return not path.is_dir() or any(entry.name != PROMPTS_FILE for entry in path.iterdir())


def _toml(manifest: dict[str, Any]) -> bytes:
    # Names that are not UTF-8 have surrogates, which TOML cannot hold.
    return readers.to_toml({key: value for key, value in manifest.items() if value != ""}).encode(
        "utf-8", "replace"
    )


class WrittenFile(NamedTuple):
    """A file that was written: how many rows it holds, its id, and the one of the release, if known."""

    path: Path
    rows: int
    blob: str
    released: str

    @property
    def as_released(self) -> bool:
        return self.blob == self.released


def git_blob_id(path: Path) -> str:
    """The id by which git knows the content of a file: SHA-1 of `blob`, its length, and its bytes."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while some := stream.read(2**20):
            digest.update(some)
    return digest.hexdigest()


def released_ids(name: str) -> dict[str, str]:
    """Path to id of the released files in the table `name` of the list; nothing where it has none."""
    known: dict[str, dict[str, str]] = tomllib.loads(CHECKSUMS.read_text("utf-8"))
    return known.get(name, {})
