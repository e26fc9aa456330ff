"""`bench fetch` keeps what it should, refuses the rest, and leaves nothing half-done behind."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import filelock
import pandas as pd
import pytest

from bench import data
from bench.core.errors import BadInput, RunFailed
from bench.data import fetch as module
from bench.data.cbbq import official_wording as cbbq_prompts
from bench.data.fetch import fetch, unpack
from bench.data.mcbe import official_wording as mcbe_prompts
from bench.data.official_wording import digest
from bench.tasks import prompts
from tests.data.cbbq import test_official_wording as cbbq_scripts
from tests.data.mcbe import test_official_wording as mcbe_scripts
from tests.helpers.hub_server import HubServer

Refusal = Callable[..., str]
Pack = Callable[[Path], Path]
NEG = "age/ambiguous/templates_generate_neg.csv"
CBBQ_URL = (
    "https://codeload.github.com/YFHuangxxxx/CBBQ/tar.gz/95eaf2eeaa0b936f3e97e3424f134e9d7655da98"
)
MCBE_REPOSITORY = "datasets/Velikaya/McBE"


def manifest(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / data.MANIFEST).read_text("utf-8"))


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def leftovers(user: Path) -> list[str]:
    return [path.name for path in user.iterdir() if path.name.startswith(".") and path.is_dir()]


def as_folder(folder: Path) -> Path:
    return folder


def pack_tar(folder: Path) -> Path:
    path = folder.with_name("release.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return path


def pack_zip(folder: Path) -> Path:
    root = str(folder.with_name("release"))
    return Path(shutil.make_archive(root, "zip", folder.parent, folder.name))


PACKS = pytest.mark.parametrize("pack", [as_folder, pack_tar, pack_zip])
ARCHIVES = pytest.mark.parametrize("pack", [pack_tar, pack_zip])


class Response(io.BytesIO):
    """What `urlopen` returns; with `dies`, the connection breaks when half is read."""

    def __init__(
        self, raw: bytes, dies: Exception | None = None, url: str = "https://x", length: int = 0
    ) -> None:
        super().__init__(raw[: len(raw) // 2] if dies else raw)
        self.dies, self.url = dies, url
        self.headers = {"Content-Length": str(length)} if length else {}

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        if not chunk and self.dies:
            raise self.dies
        return chunk


@pytest.fixture
def serve_file(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`serve_file(path, ...)`: downloads get this file, or the one of their name in this folder."""

    def prepare(path: Path, **options: Any) -> list[str]:
        asked: list[str] = []

        def urlopen(url: str, timeout: float) -> Response:
            assert timeout > 0
            asked.append(url)
            file = path / url.rsplit("/", 1)[-1] if path.is_dir() else path
            return Response(file.read_bytes(), **options)

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return prepare


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: Path) -> Path:
    """A checkout like CBBQ's with two categories of the samples, whose git ids are known."""
    root = tmp_path / "CBBQ-95eaf2e"
    for name in ("age", "gender"):
        shutil.copytree(data.SAMPLES / "cbbq" / name, root / "data" / name)
        folder = root / "data" / name / "ambiguous"
        (folder / "generate_r.py").write_text("raise SystemExit('was run')")
        (folder / "ambiguous.csv").write_text("not read where there are templates")
    (root / "data" / "age" / "~$amb_age.xlsx").write_bytes(b"lock")
    (root / "README.md").write_text("CC BY-SA 4.0")
    ids = {
        path.relative_to(root / "data").as_posix(): module.git_blob_id(path)
        for path in sorted(root.rglob("templates_*.csv"))
    }
    lines = [f"{json.dumps(name)} = '{blob}'\n" for name, blob in ids.items()]
    (tmp_path / "checksums.toml").write_text("[cbbq]\n" + "".join(lines))
    monkeypatch.setattr(module, "CHECKSUMS", tmp_path / "checksums.toml")
    return root


# Local copies


@pytest.mark.parametrize("pack", [as_folder, lambda folder: folder / "data", pack_tar, pack_zip])
def test_a_local_copy_is_taken_and_verified(release: Path, user: Path, pack: Pack) -> None:
    assert data.find("cbbq").is_sample
    source = fetch("CBBQ", pack(release))
    assert source == data.find("cbbq")
    assert (source.folder, source.found) == (user / "cbbq", "user data folder")
    templates = {
        f"{category}/{condition}/templates_generate_{polarity}.csv"
        for category in ("age", "gender")
        for condition in ("ambiguous", "disambiguous")
        for polarity in ("neg", "nonneg")
    }
    assert names(source.folder) - {"README.md"} == templates | {data.MANIFEST}
    about = manifest(source.folder)
    assert (about["files"], about["verified_files"], about["verified"]) == (8, 8, True)
    assert (about["name"], about["version"]) == ("CBBQ", "95eaf2e")
    assert about["sha256"] == source.sha256
    assert about["pinned"] is False, "where a local copy comes from is not known"
    assert len(data.load(source)) == len(data.load(data.find("cbbq", release)))
    assert leftovers(user) == []


def test_a_changed_copy_is_taken_with_a_warning_and_loses_the_version(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = fetch("cbbq", release, to=tmp_path / "first")
    changed = first.folder / NEG
    changed.write_bytes(changed.read_bytes().replace("老".encode(), "旧".encode(), 1) + b"\n")
    source = fetch("cbbq", first.folder)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"1 of 8 files differ from the release, the first is {NEG}" in printed.err
    about = manifest(source.folder)
    assert (about["verified"], about["verified_files"]) == (False, 7)
    assert about["version"] == "95eaf2e+changed"


def test_a_second_fetch_replaces_the_first(release: Path, user: Path) -> None:
    first = fetch("cbbq", release)
    before = first.sha256
    assert fetch("cbbq", first.folder).sha256 == before, "a folder can replace itself"
    shutil.rmtree(release / "data" / "gender")
    second = fetch("cbbq", release)
    assert {path.name for path in second.folder.iterdir()} == {"age", "README.md", data.MANIFEST}
    assert before != second.sha256 == manifest(second.folder)["sha256"]


def test_what_is_no_data_of_the_benchmark_is_refused(
    release: Path, tmp_path: Path, user: Path, refusal: Refusal
) -> None:
    assert "no such file or folder" in refusal(fetch, "cbbq", tmp_path / "nowhere")
    (tmp_path / "x.rar").write_bytes(b"")
    assert ".tar.gz or a .zip" in refusal(fetch, "cbbq", tmp_path / "x.rar")
    assert "holds no data of McBE" in refusal(fetch, "mcbe", release)
    assert not (user / "cbbq").exists()
    assert leftovers(user) == []
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.md").write_text("years of work")
    assert "thesis: holds other things" in refusal(fetch, "cbbq", release, to=other)
    assert names(other) == {"chapter.md"}


@PACKS
def test_what_the_loader_refuses_is_not_fetched(
    release: Path, user: Path, refusal: Refusal, pack: Pack
) -> None:
    fetch("cbbq", release)
    before = names(user / "cbbq")
    (release / "data" / NEG).write_bytes(b"question_index,context\n1,x\n")
    copy = pack(release)
    assert refusal(fetch, "cbbq", copy).startswith(f"{copy}: {NEG}, row 1 (header): column")
    assert names(user / "cbbq") == before
    assert leftovers(user) == []


def test_questions_are_taken_where_there_are_no_templates(tmp_path: Path, user: Path) -> None:
    columns = data.module("data", "cbbq").INSTANCE_COLUMNS
    row = "1,neg,ambiguous,age,话题,老年人,来源,背景,谁？,爷爷,小王,未知,2"
    folder = tmp_path / "copy" / "age" / "ambiguous"
    folder.mkdir(parents=True)
    (folder / "ambiguous.csv").write_text(f"{','.join(columns)}\n{row}\n", "utf-8")
    (folder / "ambiguous.json").write_text("[]")
    source = fetch("cbbq", tmp_path / "copy")
    assert names(source.folder) == {"age/ambiguous/ambiguous.csv", data.MANIFEST}
    assert (manifest(source.folder)["verified"], source.version) == (False, "unknown")


def test_nli_coal_keeps_every_table_of_a_language(tmp_path: Path, user: Path) -> None:
    copy = shutil.copytree(data.SAMPLES / "nli_coal", tmp_path / "copy")
    for name in ("calculate_score.py", "other.json", "zh_v0.1/run.py"):
        (copy / name).write_text("{}")
    source = fetch("nli-coal", copy)
    assert names(source.folder) == names(data.SAMPLES / "nli_coal")
    assert (source.name, source.version) == ("NLI-CoAL samples", "samples-1")
    assert source.note
    source = fetch("nli_coal", copy / "zh_v0.1")
    assert {name.split("/")[0] for name in names(source.folder)} == {"zh_v0.1", data.MANIFEST}
    assert {item.category for item in data.load(source)} == {"zh"}


def test_a_manifest_can_name_any_folder(release: Path, tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" \\ 中文 😀 \x7f \t name'
    release.rename(odd)
    assert manifest(fetch("cbbq", odd).folder)["fetched_from"] == str(odd)
    module._write_manifest(tmp_path, {"x": "\udcff"})
    assert manifest(tmp_path) == {"x": "?"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "files", "items", "version"),
    [("cbbq", 40, 73_438, "95eaf2e"), ("nli_coal", None, 16_160, "4d57afe")],
)
def test_shared_copies_of_the_releases_are_verified(
    shared: Path, user: Path, benchmark: str, files: int | None, items: int, version: str
) -> None:
    source = fetch(benchmark, shared / "data" / benchmark)
    about = manifest(source.folder)
    assert about["files"] == about["verified_files"]
    assert files in (None, about["files"])
    assert (about["verified"], source.version) == (True, version)
    assert len(data.load(source)) == items


# Interrupts


@pytest.mark.parametrize("rename", [1, 2])
def test_an_interrupt_at_either_rename_leaves_the_older_data(
    release: Path, user: Path, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    before = fetch("cbbq", release).sha256
    renamed = []

    def interrupted(old: Path, new: Path) -> None:
        renamed.append(new)
        if len(renamed) == rename:
            raise KeyboardInterrupt
        os.rename(old, new)

    shutil.rmtree(release / "data" / "gender")
    monkeypatch.setattr(module.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch("cbbq", release)
    assert data.find("cbbq").sha256 == before
    assert leftovers(user) == []


@pytest.mark.parametrize("where", ["data.load = die", "module.os.replace = rename_and_die"])
def test_the_fetch_after_a_killed_one_restores_the_older_data(
    release: Path, user: Path, where: str
) -> None:
    before = fetch("cbbq", release).sha256
    program = f"""
import os, sys
from pathlib import Path
from bench import data
from bench.data import fetch as module
def die(*_): os._exit(9)
def rename_and_die(old, new):
    os.rename(old, new)
    os._exit(9)
{where}
data.user_folder = lambda: Path(sys.argv[2])
module.fetch("cbbq", sys.argv[1])
"""
    ended = subprocess.run([sys.executable, "-c", program, str(release), str(user)], check=False)
    assert ended.returncode == 9
    assert len(leftovers(user)) == 1
    with pytest.raises(BadInput):
        fetch("cbbq", user.parent / "nowhere")
    assert data.find("cbbq").sha256 == before
    assert leftovers(user) == []


def test_another_fetch_and_a_disk_that_refuses(release: Path, user: Path) -> None:
    user.mkdir()
    with filelock.FileLock(user / ".cbbq.lock"), pytest.raises(RunFailed, match="another fetch"):
        fetch("cbbq", release)
    shutil.rmtree(user)
    user.write_text("a file where the folder should be")
    with pytest.raises(RunFailed, match="could not be copied there"):
        fetch("cbbq", release)


# Archives


def tar_of(path: Path, name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Path:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(info)
    return path


@ARCHIVES
def test_only_what_is_wanted_is_unpacked(release: Path, tmp_path: Path, pack: Pack) -> None:
    unpack(pack(release), tmp_path / "into", lambda name: name.endswith("_neg.csv"))
    assert {path.name for path in (tmp_path / "into").rglob("*.*")} == {Path(NEG).name}
    assert (tmp_path / "into" / release.name / "data" / NEG).read_bytes() == (
        release / "data" / NEG
    ).read_bytes()


@pytest.mark.parametrize(
    "name", ["../evil.csv", "a/../../evil.csv", "/evil.csv", "C:/evil.csv", "..\\evil.csv"]
)
def test_members_that_lead_outside_are_refused(tmp_path: Path, refusal: Refusal, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zipped:
        zipped.writestr(name, "evil")
    for archive in (tmp_path / "x.zip", tar_of(tmp_path / "x.tar.gz", name)):
        assert repr(name) in refusal(unpack, archive, tmp_path / "into", lambda name: True)
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, refusal: Refusal, kind: bytes) -> None:
    info = zipfile.ZipInfo("a.csv")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zipped:
        zipped.writestr(info, "/etc/passwd")
    for archive in (tmp_path / "x.zip", tar_of(tmp_path / "x.tar.gz", "a.csv", kind, "b.csv")):
        message = refusal(unpack, archive, tmp_path / "into", lambda name: True)
        assert "member 'a.csv' is a link or a device" in message


@ARCHIVES
def test_all_that_an_archive_holds_is_limited(
    release: Path, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch, pack: Pack
) -> None:
    (release / "zeros.bin").write_bytes(bytes(2_000_000))
    archive = pack(release)
    for limit, value, said in (
        ("MAX_BYTES", 1_000_000, "more than 1,000,000 bytes, at member 'CBBQ-95eaf2e/zeros.bin'"),
        ("MAX_MEMBERS", 3, "has more than 3 members, at member 'CBBQ-95eaf2e"),
        ("MAX_HEADER", 400, "a header or a list of members of more than 400 bytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, value)
            assert said in refusal(unpack, archive, tmp_path / "into", lambda name: False)


@ARCHIVES
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_a_damaged_archive_is_refused_and_the_older_data_stay(
    release: Path, user: Path, refusal: Refusal, pack: Pack, part: float
) -> None:
    fetch("cbbq", release)
    before = (user / "cbbq" / data.MANIFEST).read_bytes()
    archive = pack(release)
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(len(raw) * part)])
    assert f"{archive}: cannot be unpacked" in refusal(fetch, "cbbq", archive)
    assert (user / "cbbq" / data.MANIFEST).read_bytes() == before
    assert leftovers(user) == []


def test_a_changed_byte_in_the_checksum_of_an_archive_is_noticed(
    release: Path, tmp_path: Path, refusal: Refusal
) -> None:
    archive = pack_tar(release)
    raw = bytearray(archive.read_bytes())
    raw[-6] ^= 1
    archive.write_bytes(raw)
    assert "cannot be unpacked" in refusal(unpack, archive, tmp_path / "into", lambda name: True)


# Downloads from GitHub


def test_a_download_is_verified(release: Path, user: Path, serve_file: Any) -> None:
    archive = pack_tar(release)
    asked = serve_file(archive, length=archive.stat().st_size)
    source = fetch("cbbq")
    assert asked == [CBBQ_URL]
    about = manifest(source.folder)
    assert (about["fetched_from"], about["pinned"], about["version"]) == (CBBQ_URL, True, "95eaf2e")
    assert about["when"].endswith("+00:00")
    assert (about["verified"], about["verified_files"]) == (True, 8)


@pytest.mark.parametrize(
    "failure",
    [
        {"dies": ConnectionResetError("connection reset")},
        {"dies": IncompleteRead(b"")},
        {"length": 10**9},
        {"url": "http://elsewhere"},
    ],
)
def test_a_download_that_fails_leaves_what_was_there(
    release: Path, user: Path, serve_file: Any, failure: dict[str, Any]
) -> None:
    serve_file(pack_tar(release), **failure)
    earlier = fetch("cbbq", release)
    before = {path: path.read_bytes() for path in earlier.folder.rglob("*") if path.is_file()}
    with pytest.raises(RunFailed, match=r"the download failed .*`bench fetch cbbq --from DIR`$"):
        fetch("cbbq")
    assert before == {path: path.read_bytes() for path in before}
    assert leftovers(user) == []


def test_a_download_that_is_cut_or_not_the_release_is_refused(
    release: Path, user: Path, serve_file: Any
) -> None:
    archive = pack_tar(release)
    archive.write_bytes(archive.read_bytes()[:-2000])
    serve_file(archive)
    with pytest.raises(RunFailed, match=r"^https://codeload.*cannot be unpacked.*--from DIR"):
        fetch("cbbq")
    original = (release / "data" / NEG).read_bytes()
    (release / "data" / NEG).write_bytes(original + b"\n")
    serve_file(pack_tar(release))
    with pytest.raises(RunFailed, match=f"{NEG} is missing or is not the released file"):
        fetch("cbbq")
    (release / "data" / NEG).write_bytes(original)
    shutil.rmtree(release / "data" / "gender")
    serve_file(pack_tar(release))
    with pytest.raises(RunFailed, match=r"gender/.* is missing"):
        fetch("cbbq")
    assert not (user / "cbbq").exists()


# Downloads from the Hub


def sample_workbooks() -> dict[str, bytes]:
    """McBE's samples as workbooks, by category."""
    workbooks = {}
    for path in sorted((data.SAMPLES / "mcbe").glob("*.csv")):
        stream = io.BytesIO()
        pd.read_csv(path, dtype=str).to_excel(stream, index=False)
        workbooks[path.stem] = stream.getvalue()
    return workbooks


def sample_tables(encoding: str = "utf-8") -> dict[str, bytes]:
    """McBE's samples as CSV files, by category."""
    paths = sorted((data.SAMPLES / "mcbe").glob("*.csv"))
    return {path.stem: path.read_text("utf-8").encode(encoding) for path in paths}


@pytest.fixture
def authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with McBE's scripts, of invented prompts, which count as the released ones."""
    monkeypatch.setattr(mcbe_prompts, "RELEASED", digest(mcbe_scripts.INVENTED))
    return mcbe_scripts.scripts(tmp_path / "checkout" / "McBE-2a8e8f5", mcbe_scripts.INVENTED)


def test_mcbe_is_downloaded_from_the_hub_and_its_prompts_from_github(
    user: Path,
    hub: HubServer,
    authors: Path,
    serve_file: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.core.progress._interactive", lambda: False)
    files = {f"xlsx_files/{name}.xlsx": raw for name, raw in sample_workbooks().items()}
    others = {f"csv_files/{name}.csv": b"not read" for name in sample_tables()}
    demonstration = {"xlsx_files/test.xlsx": b"not read", "README.md": b"MIT"}
    commit = hub.add(MCBE_REPOSITORY, {**files, **others, **demonstration})
    asked = serve_file(authors)
    source = fetch("mcbe")
    about = manifest(source.folder)
    assert about["fetched_from"] == f"{hub.url}/{MCBE_REPOSITORY}"
    assert (about["pinned"], about["verified"], about["revision"]) == (False, False, commit)
    assert (source.name, source.version, source.sha256) == ("McBE", commit[:7], about["sha256"])
    assert names(source.folder) == {*files, "README.md", data.MANIFEST, "prompts.toml"}
    assert data.load(source) == data.load(data.find("mcbe", data.SAMPLES / "mcbe"))
    place = "https://raw.githubusercontent.com/VelikayaScarlet/McBE/2a8e8f5"
    assert asked == [f"{place}/eval.py", f"{place}/utils.py"]
    assert about["wording"] == "mcbe-official-2a8e8f5"
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"prompts mcbe-official-2a8e8f5: {source.folder / 'prompts.toml'}; use them with "
        "`--prompts official`"
    )
    hub.stop()
    with pytest.raises(RunFailed, match=r"cannot be reached .*`bench fetch mcbe --from DIR`$"):
        fetch("mcbe")
    assert data.find("mcbe") == source


@pytest.mark.parametrize(
    "layout",
    [
        lambda: {f"v2/XLSX_Files/{k.title()}.XLSX": raw for k, raw in sample_workbooks().items()},
        lambda: {f"{k.replace('+', '%2B')}.csv": raw for k, raw in sample_tables().items()},
        lambda: {f"data/{k.upper()}.csv": raw for k, raw in sample_tables("gb18030").items()},
        lambda: {f"{k.rstrip('+')}.csv": raw for k, raw in sample_tables("utf-8-sig").items()},
    ],
)
def test_a_release_on_the_hub_can_have_another_layout(
    user: Path,
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
    layout: Callable[[], dict[str, bytes]],
) -> None:
    hub.add(MCBE_REPOSITORY, layout())
    monkeypatch.setattr(mcbe_prompts, "ADDRESS", f"{hub.url}/raw")
    assert data.load(fetch("mcbe")) == data.load(data.find("mcbe", data.SAMPLES / "mcbe"))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"data/train.parquet": b"x", "README.md": b"x"}, "but README.md, data/train.parquet; exp"),
        ({}, "but nothing; expected"),
        ({"age.csv": "编号,文本\n1,甲\n".encode()}, "found: 编号, 文本"),
    ],
)
def test_a_release_that_is_not_understood_is_shown(
    user: Path, hub: HubServer, files: dict[str, bytes], said: str
) -> None:
    hub.add(MCBE_REPOSITORY, files)
    with pytest.raises(RunFailed, match=f"^{hub.url}/{MCBE_REPOSITORY}: .*{said}.*--from DIR`$"):
        fetch("mcbe")
    assert leftovers(user) == []


# Official prompts, which a stand-in for a benchmark's module reads from `prompts.py`


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of official prompts whose one script, `prompts.py`, is TOML."""

    def find(folder: Path, above: bool = False) -> Path | None:
        places = [folder, *filter(Path.is_dir, folder.iterdir()), *([folder.parent] * above)]
        return next((place for place in places if (place / "prompts.py").is_file()), None)

    def read(scripts: Path) -> str:
        text = (scripts / "prompts.py").read_text("utf-8")
        if "version" not in text:
            raise BadInput(f"{scripts / 'prompts.py'}: no prompts")
        return text

    stand_in = SimpleNamespace(
        VERSION="official-1",
        REMEDY="take them as they are",
        SCRIPTS=("prompts.py",),
        EXPECTED="the script prompts.py",
        ADDRESS="",
        is_script=lambda name: name.endswith("/prompts.py"),
        find=find,
        read=read,
        choices=tuple,
    )
    monkeypatch.setattr(module, "_prompts_module", lambda benchmark: stand_in)
    return stand_in


RELEASED = 'version = "official-1"\n[warm]\nprompt = "{text}"\n'


def with_script(folder: Path, text: str = RELEASED) -> Path:
    (folder / "prompts.py").write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize(
    "pack",
    [as_folder, lambda folder: folder.parent, lambda folder: folder / "data", pack_tar, pack_zip],
)
def test_prompts_come_with_a_local_copy(
    release: Path, official: Any, capsys: pytest.CaptureFixture[str], pack: Pack
) -> None:
    place = with_script(release)
    (place / "other.py").write_text("raise SystemExit('was run')")
    source = fetch("cbbq", pack(place))
    assert (source.folder / "prompts.toml").read_text("utf-8") == RELEASED
    assert not list(source.folder.rglob("*.py"))
    assert manifest(source.folder)["wording"] == "official-1"
    assert source.sha256 == data.find("cbbq", release / "data").sha256, "prompts are not data"
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"prompts official-1: {source.folder / 'prompts.toml'}; use them with `--prompts "
        "official#NAME`, where NAME is one of warm"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"text": "print('another project')"}, "CBBQ-95eaf2e/prompts.py: no prompts"),
        ({"text": RELEASED.replace("-1", "-2")}, "the prompts are not the released ones; take"),
        ({"text": ""}, "holds none of the script prompts.py; take them as they are"),
    ],
)
def test_downloaded_data_do_not_wait_for_prompts(
    release: Path,
    official: Any,
    serve_file: Any,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, str],
    fault: str,
) -> None:
    if change["text"]:
        with_script(release, change["text"])
    serve_file(pack_tar(release))
    source = fetch("cbbq")
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith(f"the data came without the official prompts: {CBBQ_URL}: ")
    assert fault in message
    assert "wording" not in manifest(source.folder)
    with_script(release)
    serve_file(pack_tar(release))
    fetch("cbbq")
    with_script(release, "print('another project')")
    serve_file(pack_tar(release))
    assert fetch("cbbq") == source
    fault, advice = capsys.readouterr().err.splitlines()[-2:]
    assert fault.endswith("; the older ones are kept")
    assert advice.startswith("prompts official-1: ")
    assert manifest(source.folder)["wording"] == "official-1"


@pytest.mark.parametrize(
    ("failure", "fault"),
    [
        ({"dies": ConnectionResetError("connection\nreset")}, "failed (connection reset); take"),
        ({"length": 10**9}, "the download failed (it ended after"),
        ({"url": "http://elsewhere"}, "the download failed (it leads to http://elsewhere"),
    ],
)
def test_a_failed_download_of_prompts_is_printed(
    official: Any,
    tmp_path: Path,
    user: Path,
    hub: HubServer,
    serve_file: Any,
    capsys: pytest.CaptureFixture[str],
    failure: dict[str, Any],
    fault: str,
) -> None:
    hub.add(MCBE_REPOSITORY, {f"{name}.csv": raw for name, raw in sample_tables().items()})
    official.ADDRESS = "https://raw.example"
    serve_file(with_script(tmp_path), **failure)
    source = fetch("mcbe")
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("the data came without the official prompts: https://raw.example/pro")
    assert fault in message
    assert not (source.folder / "prompts.toml").exists()


@PACKS
def test_scripts_alone_bring_prompts_alone(
    official: Any, tmp_path: Path, user: Path, capsys: pytest.CaptureFixture[str], pack: Pack
) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    source = fetch("mcbe", pack(with_script(scripts)))
    assert (source.folder, source.name) == (user / "mcbe", "McBE (prompts alone)")
    missing, advice = capsys.readouterr().err.splitlines()
    assert missing.endswith("data of McBE are still missing; `bench fetch mcbe` brings them")
    assert advice.startswith("prompts official-1: ")
    assert names(user / "mcbe") == {"prompts.toml"}
    assert data.find("mcbe").is_sample, "prompts alone are not data"
    source = fetch("mcbe", data.SAMPLES / "mcbe")
    assert (source.folder / "prompts.toml").read_text("utf-8") == RELEASED
    assert manifest(source.folder)["wording"] == "official-1"


def test_prompts_alone_leave_the_data_that_are_there(
    official: Any, tmp_path: Path, user: Path, refusal: Refusal, capsys: pytest.CaptureFixture[str]
) -> None:
    before = fetch("mcbe", data.SAMPLES / "mcbe")
    about = manifest(before.folder)
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    assert fetch("mcbe", with_script(scripts, RELEASED.replace("-1", "-1+changed"))) == before
    assert manifest(before.folder) == {**about, "wording": "official-1+changed"}
    assert "prompts official-1+changed (not the released ones): " in capsys.readouterr().err
    kept = (before.folder / "prompts.toml").read_bytes()
    with_script(scripts, "x = 1")
    assert refusal(fetch, "mcbe", scripts) == f"{scripts / 'prompts.py'}: no prompts"
    (scripts / "prompts.py").unlink()
    assert refusal(fetch, "mcbe", scripts).endswith(", or the script prompts.py")
    assert (before.folder / "prompts.toml").read_bytes() == kept


def test_official_prompts_never_replace_a_data_sets_own(
    official: Any, tmp_path: Path, refusal: Refusal
) -> None:
    folder = shutil.copytree(data.SAMPLES / "mcbe", tmp_path / "set")
    (folder / "prompts.toml").write_text('version = "own-1"\n[x]\n', "utf-8")
    copy = fetch("mcbe", folder, to=tmp_path / "to").folder
    assert (copy / "prompts.toml").read_text("utf-8") == 'version = "own-1"\n[x]\n'
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    message = refusal(fetch, "mcbe", with_script(scripts), to=copy)
    assert "the data set's own prompts" in message
    fetch("mcbe", data.SAMPLES / "mcbe", to=copy)
    assert (copy / "prompts.toml").read_text("utf-8") == 'version = "own-1"\n[x]\n'


def test_prompts_of_the_authors_scripts_can_be_chosen_by_what_is_printed(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cbbq_prompts, "RELEASED", digest(cbbq_scripts.INVENTED))
    copy = tmp_path / "CBBQ-95eaf2e"
    cbbq_scripts.scripts(copy / "evaluation scripts", cbbq_scripts.INVENTED)
    shutil.copytree(data.SAMPLES / "cbbq" / "age", copy / "data" / "age")
    folder = fetch("cbbq", pack_tar(copy)).folder
    choices = capsys.readouterr().err.splitlines()[-1].rpartition("one of ")[2].split(", ")
    assert choices == ["chatglm", "gpt-3.5", "belle", "moss", "bloomz"]
    for name in [*choices, "belle-ambiguous"]:
        chosen = prompts.load("cbbq", f"official#{name}", folder)
        assert chosen.label == f"cbbq-scripts-95eaf2e#{name}"
