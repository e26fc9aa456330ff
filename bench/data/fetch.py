"""Bring a released data set to the user's folder: its pinned revision, or a local copy.

We assemble the data in a working folder next to their final place, and rename this folder once the
loader has read it. We keep only tables, glosses, licence and readme of a release, none of its code.
If its prompts are in scripts, we read them from there and keep them next to the data as
`prompts.toml`.
"""

import hashlib
import os
import re
import shutil
import tempfile
import urllib.request
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import data
from bench.core.errors import BadInput, RunFailed
from bench.core.files import DISK_ERRORS
from bench.core.progress import say
from bench.data import MANIFEST, Source
from bench.data.manifest import (
    FETCHED,
    GLOSSES,
    PROMPTS_FILE,
    home,
    manifest_tables,
    own_prompts,
    read_manifest,
)
from bench.data.readers import as_path, read_toml, to_toml

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark
    from bench.data.official_wording import OfficialPrompts

# Seconds to wait for a server.
TIMEOUT = 60.0
TEXT = re.compile(r"(licen[cs]e|readme)((\..*)?\.(md|txt))?", re.IGNORECASE)


class Copy(NamedTuple):
    """A copy of a release, a folder or archive: its origin, and its commit if it was downloaded."""

    path: Path
    origin: str
    revision: str = ""


def git_blob_id(path: Path) -> str:
    """Return the git id of the content of a file."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def released_ids(name: str) -> dict[str, str]:
    """Return the git ids of released files by path, from a table of `checksums.toml`."""
    return dict(read_toml(Path(__file__).with_name("checksums.toml")).get(name, {}))


def fetch(benchmark: "Benchmark", source: str | Path | None = None) -> Source:
    """Bring the data of a benchmark to the user's data folder, replacing earlier data.

    Earlier data stay unless the new data are complete and can be loaded. We bring the official
    prompts too, if the copy or the release has them, and print a fault in them.

    Args:
        source: a local copy, a folder, .tar.gz or .zip; default: the release is downloaded.
    """
    target = (data.user_folder() / benchmark.name).resolve()
    remedy = f"bring a copy by other means and run `bench fetch {benchmark.name} --from DIR`"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            work = Path(folder)
            if source:
                copy = Copy(as_path(source), str(as_path(source).resolve()))
            else:
                copy = _download_release(benchmark, work / "release", remedy)
            try:
                _install(benchmark, copy, target, work)
            except BadInput as error:  # the working folder is gone when the message is read
                message = _with_origin(str(error), work, copy.origin)
                if copy.revision:
                    raise RunFailed(f"{message}; {remedy}") from None
                raise BadInput(message) from None
    except OSError as error:
        raise RunFailed(f"{target}: the data could not be copied there ({error})") from None
    return replace(data.find(benchmark, target), found="user data folder")


def _install(benchmark: "Benchmark", copy: Copy, target: Path, work: Path) -> None:
    """Check a copy of a release and put it in place of `target`."""
    metadata = benchmark.metadata
    folder = copy.path.resolve()
    staged = work / "new"
    if not folder.is_dir():
        folder = work / "unpacked"
        _unpack(copy.path, folder)
    _refuse_links_out(folder)
    root = _root(benchmark, folder)
    tables = _copy_files(benchmark, root, staged)
    ids = released_ids(benchmark.name)
    released = ids.keys() & {*tables}
    changed = sorted(name for name in released if git_blob_id(staged / name) != ids[name])
    wrong = [*changed, *(ids.keys() - {*tables})]
    if copy.revision and wrong:
        raise BadInput(f"{staged / min(wrong)}: is missing or is not the released file")
    # The loader has to know the categories that only this data set has.
    categories = manifest_tables(read_manifest(root))
    _write_manifest(staged, categories)
    loaded = data.find(benchmark, staged)
    try:
        data.load(loaded)
    except BadInput as error:
        if not metadata.release.tolerant:
            raise
        data.load(loaded, **metadata.release.tolerant)
        say(str(error).replace(str(staged), str(target)))
    source = data.find(benchmark, root)
    name, version = source.name, source.version
    pinned = metadata.release.commit[:7]
    is_verified = bool(released) and not changed
    has_manifest = (home(root) / MANIFEST).is_file()
    if copy.revision or (is_verified and not has_manifest):
        name, version = metadata.title, copy.revision[:7] or pinned
    if changed:
        say(
            f"{copy.origin}: {len(changed)} of {len(tables)} files differ from the release, the "
            f"first is {changed[0]}; numbers on them are not results on {metadata.title}"
        )
        if version == pinned:
            name, version = f"{metadata.title} (changed copy)", f"{pinned}+changed"
    prompts_version, advice = _install_prompts(metadata.release.prompts, copy, folder, root, work)
    manifest = {
        "name": name,
        "version": version,
        "licence": source.licence,
        "homepage": metadata.homepage,
        "note": source.note,
        "fetched_from": copy.origin,
        "revision": copy.revision,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "verified": is_verified,
        "sha256": loaded.sha256,
        FETCHED: prompts_version,
    }
    _write_manifest(staged, manifest | categories)
    if target.exists():
        os.replace(target, work / "old")
    os.replace(staged, target)
    if advice:
        say(advice)


def _refuse_links_out(folder: Path) -> None:
    """Refuse a copy with a link that leads out of it, to a file that its reader may not know of."""
    for path in folder.rglob("*"):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(folder):
            raise BadInput(
                f"{path}: is a link that leads out of {folder}; remove it, or give a copy that has "
                f"the file itself, for example by `cp -rL {folder} COPY`"
            )


def _root(benchmark: "Benchmark", folder: Path) -> Path:
    """Find the folder in a copy that the loader reads: the copy itself, or a folder in it."""
    for path in (folder, *sorted(filter(Path.is_dir, folder.iterdir()))):
        if benchmark.files(path):
            return path
    names = sorted(path.name for path in folder.rglob("*") if path.is_file())
    raise BadInput(
        f"{folder}: {benchmark.metadata.no_data}; it has {', '.join(names[:5]) or 'no files'}"
    )


def _copy_files(benchmark: "Benchmark", root: Path, to: Path) -> list[str]:
    """Copy tables, licence, readme and glosses; return the paths of the tables in the release.

    The tables are the loader's files, and all in a folder CATEGORY_vVERSION, as in NLI-CoAL.
    """
    paths = {path for files in benchmark.files(root).values() for path in files}
    versions = tuple(f"{name}_v" for name in benchmark.metadata.categories)
    is_version = root.name.startswith(versions)
    for folder in [root] if is_version else root.iterdir():
        if folder.name.startswith(versions):
            paths |= {path for path in folder.rglob("*") if path.suffix in (".json", ".tsv")}
    top = root.parent if is_version else root
    tables = {path.relative_to(top).as_posix().removeprefix("data/"): path for path in paths}
    texts = [path for path in root.iterdir() if TEXT.fullmatch(path.name)]
    texts += home(root).glob(GLOSSES)
    for name, path in (tables | {path.name: path for path in texts}).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)
    return sorted(tables)


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    text = to_toml({key: value for key, value in manifest.items() if value != ""})
    # Names that are not UTF-8 have surrogates, and TOML cannot hold these.
    (folder / MANIFEST).write_bytes(text.encode("utf-8", "replace"))


def _with_origin(message: str, work: Path, origin: str) -> str:
    """Replace the working folders in a message by the origin of the copy."""
    for folder in (*work.iterdir(), work):
        message = message.replace(f"{folder}{os.sep}", f"{origin}: ").replace(str(folder), origin)
    return message


# Downloads


def download(url: str, path: Path, remedy: str) -> Path:
    """Download a file; RunFailed, with the remedy, if this fails."""
    say(f"downloading {url}")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response, path.open("wb") as file:
            shutil.copyfileobj(response, file)
    except (OSError, HTTPException) as error:
        reason = " ".join(str(error).split())
        raise RunFailed(f"{url}: the download failed ({reason}); {remedy}") from None
    return path


def _download_release(benchmark: "Benchmark", folder: Path, remedy: str) -> Copy:
    """Download a release; tables of the Hub get the loader's file names."""
    release = benchmark.metadata.release
    if release.host == "github":
        url = f"https://codeload.github.com/{release.repository}/tar.gz/{release.commit}"
        return Copy(download(url, folder, remedy), url, release.commit)
    if release.host != "hub":
        raise BadInput(f"{benchmark.name}: has no known release; give a local copy with --from")
    from huggingface_hub import HfApi, constants, snapshot_download

    from bench.data.hub_client import quietly

    repository = f"datasets/{release.repository}"
    origin = f"{constants.ENDPOINT}/{repository}"
    say(f"downloading {origin}")
    with quietly(RunFailed, origin, repository, remedy=f"; {remedy}"):
        revision = str(HfApi().dataset_info(release.repository).sha)
        snapshot_download(
            release.repository, repo_type="dataset", revision=revision, local_dir=folder
        )
    tables = release.arrange([path.relative_to(folder).as_posix() for path in folder.rglob("*")])
    for path, released in tables.items():
        (folder / released).parent.mkdir(exist_ok=True)
        os.replace(folder / path, folder / released)
    present = {Path(released).stem for released in tables.values()}
    missing = [category for category in benchmark.metadata.categories if category not in present]
    if tables and missing:
        say(f"{origin}: has no table of {', '.join(missing)}; it has {', '.join(tables)}")
    return Copy(folder, origin, revision)


def _unpack(archive: Path, into: Path) -> None:
    """Unpack a .zip or .tar.gz; no member is written outside the folder."""
    if not archive.is_file():
        raise BadInput(f"{archive}: no such file or folder; give a folder, a .tar.gz or a .zip")
    try:
        if zipfile.is_zipfile(archive):
            shutil.unpack_archive(archive, into, "zip")
        else:
            shutil.unpack_archive(archive, into, "gztar", filter="data")
    except Exception as error:  # any error that a broken archive provokes in the standard library
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise
        raise BadInput(
            f"{archive}: cannot be unpacked ({error}); it is damaged, or no .tar.gz or .zip"
        ) from None


# Official prompts


def _install_prompts(
    official: "OfficialPrompts | None", copy: Copy, folder: Path, root: Path, work: Path
) -> tuple[str, str]:
    """Put a data set's own or official prompts next to it; return their version and a sentence."""
    installed = work / "new" / PROMPTS_FILE
    if prompts := own_prompts(root):
        shutil.copyfile(prompts, installed)
        version = read_toml(prompts).get("version", "")
        return "", f"prompts {version}: the data set is asked with them unless --prompts is given"
    scripts = official.find(folder) if official else None
    if not official or not (scripts or copy.revision):
        return "", ""
    origin = copy.origin
    try:
        if copy.revision and official.address:
            origin = official.address
            scripts = work / "scripts"
            scripts.mkdir()
            for name in official.scripts:
                download(f"{official.address}/{name}", scripts / name, official.remedy)
        elif not scripts:
            missing = f"has not all of {', '.join(official.scripts)}"
            raise BadInput(f"{folder}: {missing}; {official.remedy}")
        installed.write_bytes(official.read(scripts).encode())
    except (BadInput, RunFailed) as error:
        reason = _with_origin(str(error), work, origin)
        return "", f"the data came without the official prompts: {reason}"
    choices = ", ".join(official.choices)
    choice = f"#NAME`, where NAME is one of {choices}" if choices else "`"
    return official.version, f"prompts {official.version}: use `--prompts official{choice}"
