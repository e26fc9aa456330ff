"""Unpacking: wanted files alone, nothing outside the folder, nothing without end, and no damage unnoticed."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.data import archive as module
from bench.data.archive import unpack
from tests.helpers.packed import pack_tar, pack_zip

Refusal = Callable[..., str]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small tree of tables, texts and code."""
    root = tmp_path / "release-1"
    for name in ("a", "b"):
        (root / "data" / name).mkdir(parents=True)
        (root / "data" / name / "table.csv").write_text(f"{name}\n" * 50)
        (root / "data" / name / "make.py").write_text("raise SystemExit('was run')")
    (root / "README.md").write_text("a tree")
    return root


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    return folder


def is_table(name: str) -> bool:
    return name.endswith(".csv")


def tar_with(path: Path, *members: tarfile.TarInfo, content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
def test_what_is_not_wanted_is_not_even_unpacked(
    release: Path, into: Path, pack: Callable[[Path], Path]
) -> None:
    unpack(pack(release), into, is_table)
    assert names(into) == {"release-1/data/a/table.csv", "release-1/data/b/table.csv"}
    assert (into / "release-1/data/a/table.csv").read_text() == "a\n" * 50


def test_wrong_sources(tmp_path: Path, into: Path, refusal: Refusal) -> None:
    assert "no such file or folder" in refusal(unpack, tmp_path / "nowhere.zip", into, is_table)
    (tmp_path / "x.rar").write_bytes(b"")
    assert ".tar.gz or a .zip" in refusal(unpack, tmp_path / "x.rar", into, is_table)


@pytest.mark.parametrize(
    "name", ["../evil.csv", "a/../../evil.csv", "/evil.csv", "C:/evil.csv", "..\\evil.csv"]
)
def test_members_that_lead_outside(tmp_path: Path, into: Path, refusal: Refusal, name: str) -> None:
    for_zip = tmp_path / "x.zip"
    with zipfile.ZipFile(for_zip, "w") as zipped:
        zipped.writestr(name, "evil")
    for archive in (for_zip, tar_with(tmp_path / "x.tar.gz", member(name), content=b"evil")):
        assert repr(name) in refusal(unpack, archive, into, is_table)
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "b.csv"),
        (tarfile.LNKTYPE, "b.csv"),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_links_and_devices(
    tmp_path: Path, into: Path, refusal: Refusal, kind: bytes, link: str
) -> None:
    archive = tar_with(tmp_path / "x.tar.gz", member("age/a.csv", kind, link))
    assert "member 'age/a.csv' is a link or a device" in refusal(unpack, archive, into, is_table)


def test_link_in_a_zip(tmp_path: Path, into: Path, refusal: Refusal) -> None:
    info = zipfile.ZipInfo("age/a.csv")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zipped:
        zipped.writestr(info, "/etc/passwd")
    assert "member 'age/a.csv' is a link" in refusal(unpack, tmp_path / "x.zip", into, is_table)


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
def test_limits(
    release: Path,
    into: Path,
    refusal: Refusal,
    monkeypatch: pytest.MonkeyPatch,
    pack: Callable[[Path], Path],
) -> None:
    # Not a file that would be kept: the limit is on all that the archive holds.
    (release / "zeros.bin").write_bytes(bytes(2_000_000))
    archive = pack(release)
    with monkeypatch.context() as patch:
        patch.setattr(module, "MAX_BYTES", 1_000_000)
        message = refusal(unpack, archive, into, is_table)
        assert "more than 1,000,000 bytes, at member 'release-1/zeros.bin'" in message
    monkeypatch.setattr(module, "MAX_MEMBERS", 3)
    assert "has more than 3 members, at member 'release-1/" in refusal(
        unpack, archive, into, is_table
    )


def test_a_header_of_gigabytes_is_not_read_whole(
    tmp_path: Path, into: Path, refusal: Refusal
) -> None:
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = member("a.csv")
        info.pax_headers = {"comment": "x" * 3_000_000}
        tar.addfile(info)
    assert "a header of more than 1,048,576 bytes" in refusal(
        unpack, tmp_path / "x.tar.gz", into, is_table
    )


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_truncated_archive(
    release: Path, into: Path, refusal: Refusal, pack: Callable[[Path], Path], part: float
) -> None:
    archive = pack(release)
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(len(raw) * part)])
    assert f"{archive}: cannot be unpacked" in refusal(unpack, archive, into, is_table)


def test_a_flipped_byte_is_noticed(release: Path, into: Path, refusal: Refusal) -> None:
    archive = pack_tar(release)
    raw = bytearray(archive.read_bytes())
    raw[-6] ^= 1  # in the checksum of the whole
    archive.write_bytes(raw)
    assert "cannot be unpacked" in refusal(unpack, archive, into, is_table)
