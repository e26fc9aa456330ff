"""`bench fetch cbbq`: the wordings come with the data, from the authors' scripts, and neither waits for the other."""

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import data
from bench.core.errors import RunFailed
from bench.data import fetch as blobs
from bench.data import fetch as module
from bench.data import fetch_wording
from bench.data.cbbq import official_wording
from bench.data.fetch import fetch
from bench.data.official_wording import digest
from bench.tasks import prompts
from tests.data.cbbq.test_official_wording import INVENTED, change, scripts
from tests.data.test_fetch import write_checksums
from tests.helpers.fetching import Response, leftovers, manifest, names
from tests.helpers.packed import pack_tar, pack_zip

Refusal = Callable[..., str]
PLACE = "evaluation scripts"
URL = "https://codeload.github.com/YFHuangxxxx/CBBQ/tar.gz/95eaf2eeaa0b936f3e97e3424f134e9d7655da98"


@pytest.fixture
def authors(tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like CBBQ's checkout with scripts alone, of invented wordings, which count as the released ones."""
    monkeypatch.setattr(official_wording, "RELEASED", digest(INVENTED))
    root = tmp_path / "checkout" / "CBBQ-95eaf2e"
    scripts(root / PLACE, INVENTED)
    (root / PLACE / "BELLE" / "setup.py").write_text("raise SystemExit('was run')")
    return root


@pytest.fixture
def release(authors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with data of one category and the scripts."""
    shutil.copytree(data.SAMPLES / "cbbq" / "age", authors / "data" / "age")
    write_checksums(tmp_path / "checksums.toml", authors / "data")
    monkeypatch.setattr(blobs, "CHECKSUMS", tmp_path / "checksums.toml")
    return authors


def brought(folder: Path) -> dict[str, Any]:
    """The wordings beside the data, without what says where they come from."""
    content = tomllib.loads((folder / "prompts.toml").read_text("utf-8"))
    return {name: table for name, table in content.items() if isinstance(table, dict)}


def serve(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    monkeypatch.setattr(
        "urllib.request.urlopen", lambda url, timeout: Response(archive.read_bytes())
    )


@pytest.mark.parametrize(
    "pack",
    [
        lambda folder: folder,
        lambda folder: folder.parent,
        lambda folder: folder / "data",
        pack_tar,
        pack_zip,
    ],
)
def test_wording_with_a_local_copy(
    release: Path, user: Path, capsys: pytest.CaptureFixture[str], pack: Callable[[Path], Path]
) -> None:
    source = fetch("cbbq", pack(release))
    assert {Path(name).suffix for name in names(source.folder)} == {".csv", ".toml"}
    assert len(names(source.folder)) == 4 + 2
    assert brought(source.folder) == INVENTED
    about = manifest(source.folder)
    assert (about["wording"], about["files"], about["verified"]) == (
        "cbbq-scripts-95eaf2e",
        4,
        True,
    )
    assert source.sha256 == data.find("cbbq", release / "data").sha256, "the wording is not data"
    lost, told = capsys.readouterr().err.splitlines()
    assert lost.startswith(
        "not read, as characters are lost in them: ChatGLM/evaluate_disamb.py, MOSS/"
    )
    assert told == (
        f"wording cbbq-scripts-95eaf2e: {source.folder / 'prompts.toml'}; use it with "
        "`--prompts official#NAME`, where NAME is one of chatglm, gpt-3.5, belle, moss, bloomz"
    )
    assert leftovers(user) == []


def test_only_the_scripts_of_wordings_are_unpacked(release: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    unpacked = module._folder("cbbq", pack_tar(release), tmp_path / "work")
    scripted = {name.partition(f"{PLACE}/")[2] for name in names(unpacked) if name.endswith(".py")}
    assert scripted == set(official_wording.SCRIPTS)


def test_what_is_told_can_be_chosen(
    release: Path, capsys: pytest.CaptureFixture[str], refusal: Refusal
) -> None:
    folder = fetch("cbbq", release).folder
    listed = capsys.readouterr().err.splitlines()[-1].rpartition("one of ")[2].split(", ")
    for name in [*listed, "belle-ambiguous"]:
        chosen = prompts.load("cbbq", f"official#{name}", folder)
        assert chosen.label == f"cbbq-scripts-95eaf2e#{name}"
    message = refusal(prompts.load, "cbbq", "official#bell", folder)
    assert (
        "wording 'bell' is unknown; allowed: chatglm, gpt-3.5, belle-ambiguous, belle-disambiguous"
        in message
    )


def test_download(
    release: Path, user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, pack_tar(release))
    source = fetch("cbbq")
    assert (brought(source.folder), manifest(source.folder)["wording"]) == (
        INVENTED,
        "cbbq-scripts-95eaf2e",
    )

    change(release / PLACE, "人：", "人;")
    serve(monkeypatch, pack_tar(release))
    assert fetch("cbbq") == source
    fault, kept = capsys.readouterr().err.splitlines()[-2:]
    assert fault == (
        f"the data came without the wording: {URL}: CBBQ-95eaf2e/{PLACE}: the wording is not the released one; "
        f"{official_wording.REMEDY}; the older wording is kept"
    )
    assert kept.startswith("wording cbbq-scripts-95eaf2e: ")
    assert brought(source.folder) == INVENTED

    shutil.rmtree(release / PLACE)
    (source.folder / "prompts.toml").unlink()
    serve(monkeypatch, pack_tar(release))
    assert fetch("cbbq") == source
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == (
        f"the data came without the wording: {URL}: holds none of {official_wording.EXPECTED}; {official_wording.REMEDY}"
    )
    assert "wording" not in manifest(source.folder)
    assert leftovers(user) == []


def test_a_download_of_the_wording_alone_is_no_release(
    authors: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, pack_tar(authors))
    with pytest.raises(RunFailed, match="holds no data of CBBQ"):
        fetch("cbbq")
    assert not (user / "cbbq").exists()


@pytest.mark.parametrize("pack", [lambda folder: folder, pack_tar, pack_zip])
def test_a_fault_in_the_wording_does_not_keep_the_data_away(
    release: Path, user: Path, capsys: pytest.CaptureFixture[str], pack: Callable[[Path], Path]
) -> None:
    change(release / PLACE, "ans1 +", "")
    copy = pack(release)
    source = fetch("cbbq", copy)
    fault = capsys.readouterr().err.splitlines()[-1]
    script = f"{PLACE}/BELLE/evaluate_amb.py"
    place = copy / script if copy.is_dir() else f"{copy}: CBBQ-95eaf2e/{script}"
    assert fault.startswith(
        f"the data came without the wording: {place}, line 8: expected one sum (`+`) of texts and "
    )
    assert fault.endswith("found none of `ans1`; " + official_wording.REMEDY)
    assert names(source.folder) == {name for name in names(source.folder) if name != "prompts.toml"}
    (source.folder / "prompts.toml").write_text('version = "older"\n')
    with (source.folder / "dataset.toml").open("a", encoding="utf-8") as stream:
        stream.write('wording = "older"\n')
    fetch("cbbq", copy)
    fault, kept = capsys.readouterr().err.splitlines()[-2:]
    assert fault.endswith("; the older wording is kept")
    assert kept == (
        f"wording older (not the released one): {source.folder / 'prompts.toml'}; use it with `--prompts official`"
    )


@pytest.mark.parametrize(
    "pack",
    [
        lambda folder: folder,
        lambda folder: folder.parent,
        lambda folder: folder / PLACE,
        pack_tar,
        pack_zip,
    ],
)
def test_wording_alone(
    authors: Path, user: Path, capsys: pytest.CaptureFixture[str], pack: Callable[[Path], Path]
) -> None:
    source = fetch("cbbq", pack(authors))
    assert (source.folder, source.name) == (user / "cbbq", "CBBQ (wording alone)")
    missing, told = capsys.readouterr().err.splitlines()[-2:]
    assert (
        missing
        == f"{user / 'cbbq'}: the data of CBBQ are still missing; `bench fetch cbbq` brings them"
    )
    assert told.startswith("wording cbbq-scripts-95eaf2e: ")
    assert names(user / "cbbq") == {"prompts.toml"}
    assert brought(user / "cbbq") == INVENTED
    assert data.find("cbbq").is_sample, "a wording alone is no data"

    source = fetch("cbbq", data.SAMPLES / "cbbq")
    assert brought(source.folder) == INVENTED, "the data leave the wording there"
    assert manifest(source.folder)["wording"] == "cbbq-scripts-95eaf2e"


def test_wording_alone_leaves_the_data_that_are_there(
    authors: Path, user: Path, capsys: pytest.CaptureFixture[str], refusal: Refusal
) -> None:
    before = fetch("cbbq", data.SAMPLES / "cbbq")
    about = manifest(before.folder)
    change(authors / PLACE, "人：", "人;")
    assert fetch("cbbq", authors) == before
    assert manifest(before.folder) == {**about, "wording": "cbbq-scripts-95eaf2e+changed"}
    assert (
        "wording cbbq-scripts-95eaf2e+changed (not the released one): " in capsys.readouterr().err
    )
    good = (before.folder / "prompts.toml").read_bytes()

    change(authors / PLACE, "inputs = ", "inputs = (")
    assert refusal(fetch, "cbbq", authors).startswith(
        f"{authors / PLACE}/BELLE/evaluate_amb.py, line 8: is not Python"
    )
    shutil.rmtree(authors / PLACE)
    message = refusal(fetch, "cbbq", authors)
    assert message.startswith(f"{authors}: holds no data of CBBQ; expected ")
    assert message.endswith(f", or {official_wording.EXPECTED}")
    assert (before.folder / "prompts.toml").read_bytes() == good
    assert leftovers(user) == []


def test_the_released_wording_beside_the_shared_data(
    shared: Path, tmp_path: Path, user: Path
) -> None:
    path = shared / "data" / "cbbq" / "prompts.toml"
    if not path.is_file():
        pytest.skip("the shared data hold no CBBQ wording")
    official = tomllib.loads(path.read_text("utf-8"))
    copy = tmp_path / "CBBQ"
    shutil.copytree(shared / "data" / "cbbq" / "age", copy / "data" / "age")
    scripts(
        copy / "evaluation_scripts",
        {name: table for name, table in official.items() if isinstance(table, dict)},
    )
    source = fetch("cbbq", copy)
    assert tomllib.loads((source.folder / "prompts.toml").read_text("utf-8")) == official
    assert manifest(source.folder)["wording"] == official["version"]


def test_every_wording_module_has_what_fetching_uses() -> None:
    for room in fetch_wording.MODULES.values():
        for name in (
            "VERSION",
            "REMEDY",
            "SCRIPTS",
            "EXPECTED",
            "ADDRESS",
            "is_script",
            "find",
            "read",
            "choices",
        ):
            assert hasattr(room, name), f"{room.__name__} lacks {name}"
