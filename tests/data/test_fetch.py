"""`bench fetch`: what is taken and kept, what is refused, and that nothing half-done is ever taken for data."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import urllib.error
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import filelock
import pytest

from bench import data
from bench.core.errors import BadInput, RunFailed
from bench.data import fetch as blobs
from bench.data import fetch as module
from bench.data.fetch import fetch
from tests.data.mcbe.test_official_wording import INVENTED, scripts
from tests.helpers.fetching import Response, leftovers, manifest, names
from tests.helpers.packed import pack_tar, pack_zip

NEG = "age/ambiguous/templates_generate_neg.csv"
CATEGORIES = ("age", "gender")
Refusal = Callable[..., str]


def write_checksums(path: Path, root: Path) -> None:
    """The ids of all tables below `root`, as if these were the released files."""
    ids = {
        file.relative_to(root).as_posix(): blobs.git_blob_id(file)
        for file in sorted(root.rglob("templates_*.csv"))
    }
    path.write_text(
        "[cbbq]\n" + "".join(f"{json.dumps(name)} = '{id}'\n" for name, id in ids.items())
    )


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: Path) -> Path:
    """A checkout like CBBQ's with two categories of the samples; their ids are the known ones."""
    root = tmp_path / "CBBQ-95eaf2e"
    for name in CATEGORIES:
        shutil.copytree(data.SAMPLES / "cbbq" / name, root / "data" / name)
        (root / "data" / name / "ambiguous" / "generate_r.py").write_text(
            "raise SystemExit('was run')"
        )
        (root / "data" / name / "ambiguous" / "ambiguous.csv").write_text(
            "not read where there are templates"
        )
    (root / "data" / "age" / "~$amb_age.xlsx").write_bytes(b"lock")
    (root / "README.md").write_text("CC BY-SA 4.0")
    (root / "setup.py").write_text("raise SystemExit('was run')")
    write_checksums(tmp_path / "checksums.toml", root / "data")
    monkeypatch.setattr(blobs, "CHECKSUMS", tmp_path / "checksums.toml")
    return root


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`serve(archive, ...)`: the next download gets these bytes; returns the list of addresses that were asked."""

    def prepare(archive: Path, **kwargs: Any) -> list[str]:
        asked: list[str] = []

        def urlopen(url: str, timeout: float) -> Response:
            assert timeout > 0
            asked.append(url)
            return Response(archive.read_bytes(), **kwargs)

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return prepare


@pytest.mark.parametrize(
    "pack", [lambda folder: folder, lambda folder: folder / "data", pack_tar, pack_zip]
)
def test_local_copy(release: Path, user: Path, pack: Callable[[Path], Path]) -> None:
    source = fetch("CBBQ", pack(release))
    assert source.folder == user / "cbbq"
    templates = {
        f"{category}/{condition}/templates_generate_{polarity}.csv"
        for category in CATEGORIES
        for condition in ("ambiguous", "disambiguous")
        for polarity in ("neg", "nonneg")
    }
    assert names(source.folder) - {"README.md"} == templates | {data.MANIFEST}
    about = manifest(source.folder)
    assert (about["files"], about["verified_files"], about["verified"]) == (8, 8, True)
    assert (about["name"], about["version"], about["licence"]) == (
        "CBBQ",
        "95eaf2e",
        "CC-BY-SA-4.0",
    )
    assert about["sha256"] == source.sha256
    assert about["pinned"] is False, "where a local copy comes from is not known"
    assert len(data.load(source)) == len(data.load(data.find("cbbq", release)))
    assert leftovers(user) == []


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
def test_code_is_not_even_unpacked(
    release: Path, tmp_path: Path, pack: Callable[[Path], Path]
) -> None:
    # Scripts with the names of McBE's are as foreign here as any.
    (release / "eval.py").write_text("raise SystemExit('was run')")
    (tmp_path / "work").mkdir()
    unpacked = module._folder("cbbq", pack(release), tmp_path / "work")
    assert {Path(name).suffix for name in names(unpacked)} == {".csv", ".md", ".xlsx"}


def test_fetched_data_is_found_before_the_samples(release: Path, user: Path) -> None:
    assert data.find("cbbq").is_sample
    source = fetch("cbbq", str(release))
    assert data.find("cbbq") == source
    assert source.found == "user data folder"
    assert not source.is_sample


def test_changed_local_copy_is_taken_with_a_warning(
    release: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = release / "data" / NEG
    changed.write_bytes(changed.read_bytes().replace("老".encode(), "旧".encode(), 1) + b"\n")
    source = fetch("cbbq", release)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"1 of 8 files differ from the release, the first is {NEG}" in said.err
    about = manifest(source.folder)
    assert (about["verified"], about["verified_files"], about["version"]) == (False, 7, "unknown")


def test_a_fetched_copy_that_was_edited_loses_the_version(
    release: Path, tmp_path: Path, user: Path
) -> None:
    first = fetch("cbbq", release, to=tmp_path / "first")
    (first.folder / NEG).write_bytes((first.folder / NEG).read_bytes() + b"\n")
    assert fetch("cbbq", first.folder).version == "95eaf2e+changed"


def test_a_second_fetch_replaces_the_first(release: Path, user: Path) -> None:
    before = fetch("cbbq", release).sha256
    shutil.rmtree(release / "data" / "gender")
    after = fetch("cbbq", release)
    assert {path.name for path in after.folder.iterdir()} == {"age", "README.md", data.MANIFEST}
    assert after.sha256 != before
    assert after.sha256 == manifest(after.folder)["sha256"]


def test_fetching_from_the_fetched_folder_itself(release: Path, user: Path) -> None:
    first = fetch("cbbq", release)
    assert fetch("cbbq", first.folder).sha256 == first.sha256


def test_a_folder_of_other_things_is_not_replaced(
    release: Path, tmp_path: Path, refusal: Refusal
) -> None:
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.md").write_text("years of work")
    assert "thesis" in refusal(fetch, "cbbq", release, to=other)
    assert names(other) == {"chapter.md"}


def test_wrong_sources(release: Path, tmp_path: Path, user: Path, refusal: Refusal) -> None:
    assert "no such file or folder" in refusal(fetch, "cbbq", tmp_path / "nowhere")
    (tmp_path / "x.rar").write_bytes(b"")
    assert ".tar.gz or a .zip" in refusal(fetch, "cbbq", tmp_path / "x.rar")
    assert "holds no data of McBE" in refusal(fetch, "mcbe", release)
    assert "benchmark 'bbq' is unknown" in refusal(fetch, "bbq", release)
    assert not (user / "cbbq").exists()
    assert leftovers(user) == []


@pytest.mark.parametrize("pack", [lambda folder: folder, pack_tar, pack_zip])
def test_what_the_loader_refuses_is_not_fetched(
    release: Path, user: Path, refusal: Refusal, pack: Callable[[Path], Path]
) -> None:
    fetch("cbbq", release)
    good = names(user / "cbbq")
    (release / "data" / NEG).write_bytes(b"question_index,context\n1,x\n")
    copy = pack(release)
    message = refusal(fetch, "cbbq", copy)
    assert message.startswith(f"{copy}: {NEG}, row 1 (header): column"), (
        "the place that the caller knows"
    )
    assert names(user / "cbbq") == good
    assert leftovers(user) == []


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
def test_damaged_archive(
    release: Path, user: Path, refusal: Refusal, pack: Callable[[Path], Path]
) -> None:
    fetch("cbbq", release)
    good = (user / "cbbq" / data.MANIFEST).read_bytes()
    archive = pack(release)
    raw = archive.read_bytes()
    archive.write_bytes(raw[: len(raw) // 2])
    assert f"{archive}: cannot be unpacked" in refusal(fetch, "cbbq", archive)
    assert (user / "cbbq" / data.MANIFEST).read_bytes() == good
    assert leftovers(user) == []


def test_download(release: Path, user: Path, serve: Callable[..., list[str]]) -> None:
    archive = pack_tar(release)
    asked = serve(archive, length=archive.stat().st_size)
    source = fetch("cbbq")
    url = "https://codeload.github.com/YFHuangxxxx/CBBQ/tar.gz/95eaf2eeaa0b936f3e97e3424f134e9d7655da98"
    assert asked == [url]
    about = manifest(source.folder)
    assert (about["fetched_from"], about["pinned"], about["version"]) == (url, True, "95eaf2e")
    assert about["when"].endswith("+00:00")
    assert (about["verified"], about["verified_files"]) == (True, 8)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"dies": ConnectionResetError("connection reset")},
        {"dies": TimeoutError("timed out")},
        {"dies": IncompleteRead(b"")},
        {"length": 10**9},
        {"url": "http://elsewhere"},
    ],
)
def test_download_that_fails(
    release: Path, user: Path, serve: Callable[..., list[str]], kwargs: dict[str, Any]
) -> None:
    serve(pack_tar(release), **kwargs)
    with pytest.raises(RunFailed, match=r"the download failed .*`bench fetch cbbq --from DIR`$"):
        fetch("cbbq")
    assert data.find("cbbq").is_sample
    assert leftovers(user) == []
    earlier = fetch("cbbq", release)
    files = {path: path.read_bytes() for path in earlier.folder.rglob("*") if path.is_file()}
    with pytest.raises(RunFailed):
        fetch("cbbq")
    assert {
        path: path.read_bytes() for path in earlier.folder.rglob("*") if path.is_file()
    } == files


def test_no_network(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(
        RunFailed, match=r"Name or service not known.*bench fetch nli_coal --from DIR"
    ):
        fetch("nli_coal")


def test_download_that_is_cut_but_looks_whole(
    release: Path, user: Path, serve: Callable[..., list[str]]
) -> None:
    archive = pack_tar(release)
    archive.write_bytes(archive.read_bytes()[:-2000])
    serve(archive)
    with pytest.raises(RunFailed, match=r"^https://codeload.*cannot be unpacked.*--from DIR"):
        fetch("cbbq")


def test_download_that_is_not_the_release(
    release: Path, user: Path, serve: Callable[..., list[str]]
) -> None:
    (release / "data" / NEG).write_bytes((release / "data" / NEG).read_bytes() + b"\n")
    serve(pack_tar(release))
    with pytest.raises(RunFailed, match=f"{NEG} is missing or is not the released file"):
        fetch("cbbq")
    shutil.rmtree(release / "data" / "gender")
    shutil.rmtree(release / "data" / "age")
    shutil.copytree(data.SAMPLES / "cbbq" / "age", release / "data" / "age")
    serve(pack_tar(release))
    with pytest.raises(RunFailed, match=r"gender/.* is missing"):
        fetch("cbbq")
    assert not (user / "cbbq").exists()


def test_scripts_are_the_wording_of_mcbe_alone(
    release: Path, tmp_path: Path, user: Path, refusal: Refusal
) -> None:
    authors = scripts(tmp_path / "checkout" / "McBE-2a8e8f5", INVENTED)
    message = refusal(fetch, "cbbq", authors)
    assert "holds no data of CBBQ" in message
    assert "eval.py" not in message
    shutil.copytree(authors, release, dirs_exist_ok=True)
    assert not (fetch("cbbq", release).folder / "prompts.toml").exists()


@pytest.mark.parametrize("at", [1, 2])
def test_interrupt_at_either_rename(
    release: Path, user: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    before = fetch("cbbq", release).sha256
    calls = []

    def interrupted(old: Path, new: Path) -> None:
        calls.append(new)
        if len(calls) == at:
            raise KeyboardInterrupt
        os.rename(old, new)

    shutil.rmtree(release / "data" / "gender")
    monkeypatch.setattr(module.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch("cbbq", release)
    assert data.find("cbbq").found == "user data folder"
    assert data.find("cbbq").sha256 == before
    assert leftovers(user) == []


def test_interrupt_while_loading(
    release: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(data, "load", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch("cbbq", release)
    assert data.find("cbbq").is_sample
    assert leftovers(user) == []


@pytest.mark.parametrize("where", ["data.load = die", "module.os.replace = once"])
def test_a_killed_fetch(release: Path, user: Path, where: str) -> None:
    """Killed while it loads, or between its two renames, where the older data is back after the next fetch."""
    before = fetch("cbbq", release).sha256
    program = f"""
import os, sys
from pathlib import Path
from bench import data
from bench.data import fetch as module
def die(*_): os._exit(9)
def once(old, new):
    os.rename(old, new)
    os._exit(9)
{where}
data.user_folder = lambda: Path(sys.argv[2])
module.fetch("cbbq", sys.argv[1])
"""
    ended = subprocess.run([sys.executable, "-c", program, str(release), str(user)], check=False)
    assert ended.returncode == 9
    assert len(leftovers(user)) == 1
    assert not (user / "cbbq").exists() or data.find("cbbq").sha256 == before
    with pytest.raises(BadInput):
        fetch("cbbq", user.parent / "nowhere")
    assert data.find("cbbq").sha256 == before, (
        "a next fetch, failed itself, leaves the older data in place"
    )
    assert leftovers(user) == []


def test_two_fetches_at_once(release: Path, user: Path) -> None:
    user.mkdir()
    with filelock.FileLock(user / ".cbbq.lock"), pytest.raises(RunFailed, match="another fetch"):
        fetch("cbbq", release)


def test_disk_that_refuses(release: Path, user: Path) -> None:
    user.write_text("a file where the folder should be")
    with pytest.raises(RunFailed, match="could not be copied there"):
        fetch("cbbq", release)


def test_manifest_of_an_odd_name(release: Path, tmp_path: Path, user: Path) -> None:
    odd = tmp_path / 'a "quoted" \\ 中文 😀 \x7f \t name'
    release.rename(odd)
    assert manifest(fetch("cbbq", odd).folder)["fetched_from"] == str(odd)
    assert tomllib.loads(module._toml({"x": "\udcff"}).decode()) == {"x": "?"}
