"""Bringing a released data set to the user's folder: downloaded at a fixed revision, or from a local copy.

Everything is assembled beside its final place and renamed, so that a folder that is found is whole. Of a release only
tables are kept, with licence and readme; none of its code is kept or run. McBE's wording, which stands in two scripts
of the authors, is read from them and kept beside the data as `prompts.toml`.
"""

import hashlib
import json
import os
import shutil
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path

from filelock import FileLock, Timeout

from bench import data
from bench.benchmarks import module, resolve
from bench.data import MANIFEST, WORDING, Source, mcbe_wording
from bench.data.archive import MAX_BYTES, unpack
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
SCRIPTS_AT = f"https://raw.githubusercontent.com/{mcbe_wording.REPOSITORY}/{mcbe_wording.COMMIT}"
SCRIPT_BYTES = 2**20
TIMEOUT = 60.0


def fetch(benchmark: str, source: str | Path | None = None, to: Path | None = None) -> Source:
    """Bring the released data of `benchmark` to the user's data folder, or to `to`, replacing what was there.

    `source` is a local copy: a folder, a .tar.gz or a .zip, of the release or a part of it. Without it the release is
    downloaded. What was there stays as it is unless the new data is complete and the loader accepts it.

    McBE's wording comes with the data: from the scripts in the local copy, in a folder right inside or, where the copy is
    a folder, in the one that it lies in; else from GitHub. A local copy of the scripts alone brings the wording alone,
    and leaves the data as they are; where there are none, the source that is returned holds none. Data do not wait for
    the wording: a fault in it is told, and an older one is kept.

    Raises:
        BadInput: the local copy is missing, unsafe or not the benchmark's data; or `to` holds something else.
        RunFailed: the download failed or is not the known release; or the disk refused.
    """
    benchmark = resolve(benchmark)
    target = (Path(to).expanduser() if to else data.user_folder() / benchmark).resolve()
    try:
        if to and target.exists() and not (target / MANIFEST).is_file() and _holds_others(target):
            raise BadInput(f"{target}: holds other things than fetched data; name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / f".{target.name}.lock", timeout=0):
            work = _workspace(target)
            try:
                _fetch(benchmark, Path(source).expanduser() if source else None, target, work)
            finally:
                _clear(work, target)
        version = _wording_in(target) if benchmark == "mcbe" else ""
    except Timeout:
        raise RunFailed(f"{target}: another fetch is writing it; wait until that one has ended") from None
    except OSError as error:
        raise RunFailed(f"{target}: the data could not be copied there ({error})") from None

    if version:
        changed = "" if version == mcbe_wording.VERSION else " (not the released one)"
        say(f"wording {version}{changed}: {target / WORDING}; use it with `--prompts official`")
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
            _wording_alone(benchmark, copy, folder, target, work)
            return
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
        try:
            data.load(brought)
        except BadInput as error:
            if not room.TOLERANT:
                raise
            data.load(brought, **room.TOLERANT)
            say(str(error).replace(str(staged), str(target)))
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
    fault = _wording_beside(benchmark, folder if source else None, target, work, origin)
    if benchmark == "mcbe":
        manifest["wording"] = _wording_in(staged)
    (staged / MANIFEST).write_bytes(_toml(manifest))
    if target.exists():
        os.replace(target, work / "old")
    os.replace(staged, target)
    if fault:
        say(fault)


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
        message = _placed(error, work, origin)
        if downloaded:
            raise RunFailed(_instead(benchmark, message)) from None
        raise BadInput(message) from None


def _placed(error: Exception, work: Path, origin: str) -> str:
    message = str(error)
    for folder in (work / "new", work / "unpacked", work / "scripts", work):
        message = message.replace(f"{folder}{os.sep}", f"{origin}: ").replace(str(folder), origin)
    return message


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


def _stream(url: str, path: Path, most: int = MAX_BYTES) -> Path:
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
                if done > most:
                    raise ValueError(f"it is larger than {most:,} bytes")
                bar.advance(done // 1024 - bar.done)
    if length and done != length:
        raise ValueError(f"it ended after {done:,} of {length:,} bytes")
    return path


def _folder(benchmark: str, copy: Path, work: Path) -> Path:
    """`copy` itself, or the folder to which what is wanted of it was unpacked."""
    if copy.is_dir():
        return copy.resolve()
    # Scripts go to the temporary folder alone, to be read.
    scripts = mcbe_wording.SCRIPTS if benchmark == "mcbe" else ()
    folder = work / "unpacked"
    folder.mkdir()
    unpack(copy, folder, lambda name: _is_wanted(name) or name.rsplit("/", 1)[-1] in scripts)
    return folder


def _root(benchmark: str, folder: Path) -> Path | None:
    """Where the loader finds data: in `folder`, or in a folder right inside."""
    room = module("data", benchmark)
    for candidate in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if room.files(candidate):
            return candidate
    return None


def _wording_beside(benchmark: str, local: Path | None, target: Path, work: Path, origin: str) -> str:
    """Put the wording beside the staged data, from the local copy or else downloaded; the older one where that fails.

    Returns what is to be told of a failure, or "".
    """
    if benchmark != "mcbe":
        return ""
    fault, wording = "", ""
    try:
        # What lies above an unpacked archive is ours.
        scripts = (
            mcbe_wording.find(local, above=not local.is_relative_to(work))
            if local
            else _download_scripts(work / "scripts")
        )
        wording = mcbe_wording.read(scripts) if scripts else ""
        if local is None and _version(wording) != mcbe_wording.VERSION:
            raise RunFailed(f"{SCRIPTS_AT}: the wording is not the released one; {mcbe_wording.REMEDY}")
    except (OSError, BadInput, RunFailed) as error:
        place = origin if local else SCRIPTS_AT
        fault, wording = f"the data came without the wording: {_placed(error, work, place)}", ""
    if wording:
        (work / "new" / WORDING).write_bytes(wording.encode())
    elif (target / WORDING).is_file():
        shutil.copyfile(target / WORDING, work / "new" / WORDING)
        fault = f"{fault}; the older wording is kept" if fault else ""
    return fault


def _download_scripts(into: Path) -> Path:
    into.mkdir()
    for name in mcbe_wording.SCRIPTS:
        url = f"{SCRIPTS_AT}/{name}"
        try:
            _stream(url, into / name, SCRIPT_BYTES)
        except (OSError, HTTPException, ValueError) as error:
            reason = " ".join(str(error).split())
            raise RunFailed(f"{url}: the download failed ({reason}); {mcbe_wording.REMEDY}") from None
    return into


def _wording_alone(benchmark: str, copy: Path, folder: Path, target: Path, work: Path) -> None:
    """Put the wording of a local copy without data into `target`, and leave the data there as they are."""
    room = module("data", benchmark)
    scripts = mcbe_wording.find(folder) if benchmark == "mcbe" else None
    if scripts is None:
        scripted = f", or the scripts {' and '.join(mcbe_wording.SCRIPTS)}" if benchmark == "mcbe" else ""
        raise BadInput(f"{copy}: holds no data of {room.TITLE}; expected {room.LAYOUT}{scripted}")
    wording = mcbe_wording.read(scripts)
    manifest: dict[str, str | int | bool] = {}
    if (target / MANIFEST).is_file():
        data.find(benchmark, target)  # refuses a manifest that cannot be read
        manifest = tomllib.loads((target / MANIFEST).read_text("utf-8"))
    target.mkdir(exist_ok=True)
    (work / WORDING).write_bytes(wording.encode())
    os.replace(work / WORDING, target / WORDING)
    if manifest:
        (work / MANIFEST).write_bytes(_toml({**manifest, "wording": _version(wording)}))
        os.replace(work / MANIFEST, target / MANIFEST)
    else:
        say(f"{target}: the data of {room.TITLE} are still missing; `bench fetch {benchmark}` brings them")


def _without_data(benchmark: str, target: Path) -> Source:
    room = module("data", benchmark)
    return Source(
        benchmark, target, "wording alone", f"{room.TITLE} (wording alone)", "unknown", room.LICENCE,
        note=f"the data are missing; `bench fetch {benchmark}` brings them",
    )  # fmt: skip


def _version(wording: str) -> str:
    """The version that a wording file names; "" for another file."""
    try:
        return str(tomllib.loads(wording).get("version", ""))
    except tomllib.TOMLDecodeError:
        return ""


def _wording_in(folder: Path) -> str:
    """The version of the wording in a folder of data, or "" where there is none."""
    try:
        return _version((folder / WORDING).read_text("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


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


def _is_wanted(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return not last.startswith(".") and (last.endswith(TABLES) or last == MANIFEST or _is_text(last))


def _blob_id(path: Path) -> str:
    """The id by which git knows the content."""
    raw = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def _holds_others(path: Path) -> bool:
    """Whether anything but a wording that came alone is there."""
    return not path.is_dir() or any(entry.name != WORDING for entry in path.iterdir())


def _toml(values: dict[str, str | int | bool]) -> bytes:
    """`values` as TOML: JSON's strings are TOML's but for DEL, and for surrogates (of names that are not UTF-8)."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value != ""
    ]
    return "".join(lines).replace("\x7f", "\\u007f").encode("utf-8", "replace")
