"""`bench fetch mcbe`: the data from the Hub, the wording from the authors' scripts, and that neither waits for the other."""

import io
import shutil
import tomllib
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import data
from bench.core.errors import RunFailed
from bench.data import fetch_wording
from bench.data.fetch import fetch
from bench.data.mcbe import official_wording
from bench.data.official_wording import digest
from tests.data.mcbe.test_official_wording import INVENTED, change, scripts
from tests.helpers.fetching import Response, leftovers, manifest, names
from tests.helpers.hub_server import HubServer
from tests.helpers.packed import pack_tar, pack_zip

Refusal = Callable[..., str]


REPOSITORY = "datasets/Velikaya/McBE"


def sheets() -> dict[str, bytes]:
    """The samples as workbooks, by category."""
    made = {}
    for path in sorted((data.SAMPLES / "mcbe").glob("*.csv")):
        stream = io.BytesIO()
        pd.read_csv(path, dtype=str).to_excel(stream, index=False)
        made[path.stem] = stream.getvalue()
    return made


def csvs(encoding: str = "utf-8") -> dict[str, bytes]:
    """The samples as CSV files, by category."""
    folder = data.SAMPLES / "mcbe"
    return {
        path.stem: path.read_text("utf-8").encode(encoding) for path in sorted(folder.glob("*.csv"))
    }


@pytest.fixture
def commit(hub: HubServer) -> str:
    """The commit of a repository laid out like McBE's, as its card describes it, with the samples."""
    files = {f"xlsx_files/{name}.xlsx": raw for name, raw in sheets().items()}
    files |= {f"csv_files/{name}.csv": b"not read" for name in csvs()}
    demonstration = {"xlsx_files/test.xlsx": b"not read", "csv_files/test.csv": b"not read"}
    return hub.add(
        REPOSITORY, {**files, **demonstration, "README.md": b"MIT", ".gitattributes": b""}
    )


@pytest.fixture
def authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with scripts of an invented wording, which counts as the released one."""
    monkeypatch.setattr(official_wording, "RELEASED", digest(INVENTED))
    return scripts(tmp_path / "checkout" / "McBE-2a8e8f5", INVENTED)


@pytest.fixture
def copy(authors: Path) -> Path:
    """A checkout with data and scripts."""
    return shutil.copytree(data.SAMPLES / "mcbe", authors, dirs_exist_ok=True)


def brought(folder: Path) -> dict[str, Any]:
    """The wording beside the data, without what says where it comes from."""
    content = tomllib.loads((folder / "prompts.toml").read_text("utf-8"))
    return {name: table for name, table in content.items() if isinstance(table, dict)}


def serve_scripts(monkeypatch: pytest.MonkeyPatch, folder: Path, **kwargs: Any) -> list[str]:
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> Response:
        asked.append(url)
        return Response((folder / url.rsplit("/", 1)[-1]).read_bytes(), **kwargs)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def test_mcbe_is_downloaded_from_the_hub(
    user: Path,
    hub: HubServer,
    commit: str,
    authors: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = serve_scripts(monkeypatch, authors)
    # Where no bar can be drawn, a file of less than a KiB is downloaded as well.
    monkeypatch.setattr("bench.core.progress._interactive", lambda: False)
    assert (authors / "utils.py").stat().st_size < 1024
    source = fetch("mcbe")
    about = manifest(source.folder)
    assert about["fetched_from"] == f"{hub.url}/datasets/Velikaya/McBE"
    assert (about["pinned"], about["verified"], about["revision"]) == (False, False, commit)
    assert (source.name, source.version) == ("McBE", commit[:7])
    assert about["sha256"] == source.sha256
    tables = {f"xlsx_files/{name}.xlsx" for name in sheets()}
    assert names(source.folder) == {*tables, "README.md", data.MANIFEST, "prompts.toml"}
    assert data.load(source) == data.load(data.find("mcbe", data.SAMPLES / "mcbe"))
    place = "https://raw.githubusercontent.com/VelikayaScarlet/McBE/2a8e8f5"
    assert asked == [f"{place}/eval.py", f"{place}/utils.py"]
    assert (brought(source.folder), about["wording"]) == (INVENTED, "mcbe-official-2a8e8f5")
    assert not list(source.folder.rglob("*.py"))
    told = f"wording mcbe-official-2a8e8f5: {source.folder / 'prompts.toml'}; use it with `--prompts official`"
    assert capsys.readouterr().err.splitlines()[-1] == told

    hub.stop()
    with pytest.raises(RunFailed, match=r"cannot be reached .*`bench fetch mcbe --from DIR`$"):
        fetch("mcbe")
    assert data.find("mcbe") == source


def test_the_scripts_are_downloaded_too(
    user: Path, hub: HubServer, commit: str, authors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is in place of the network but its address."""
    hub.pages = {f"/raw/{path.name}": path.read_bytes() for path in authors.glob("*.py")}
    monkeypatch.setattr(official_wording, "ADDRESS", f"{hub.url}/raw")
    assert brought(fetch("mcbe").folder) == INVENTED


@pytest.mark.parametrize(
    "layout",
    [
        lambda: {
            f"release/v2/XLSX_Files/{name.title()}.XLSX": raw for name, raw in sheets().items()
        },
        lambda: {f"{name.replace('+', '%2B')}.csv": raw for name, raw in csvs().items()},
        lambda: {f"data/{name.upper()}.csv": raw for name, raw in csvs("gb18030").items()},
        lambda: {f"csv/{name.rstrip('+')}.csv": raw for name, raw in csvs("utf-8-sig").items()},
    ],
)
def test_a_release_may_be_laid_out_otherwise(
    user: Path,
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
    layout: Callable[[], dict[str, bytes]],
) -> None:
    hub.add(REPOSITORY, layout())
    monkeypatch.setattr(official_wording, "ADDRESS", f"{hub.url}/raw")
    assert data.load(fetch("mcbe")) == data.load(data.find("mcbe", data.SAMPLES / "mcbe"))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {"data/train.parquet": b"x", "README.md": b"x"},
            "but README.md, data/train.parquet; expected",
        ),
        ({}, "but nothing; expected"),
        ({"age.csv": "编号,文本\n1,甲\n".encode()}, "found: 编号, 文本"),
    ],
)
def test_a_release_that_is_not_understood_is_shown(
    user: Path, hub: HubServer, files: dict[str, bytes], says: str
) -> None:
    hub.add(REPOSITORY, files)
    with pytest.raises(RunFailed) as caught:
        fetch("mcbe")
    assert str(caught.value).startswith(f"{hub.url}/{REPOSITORY}: ")
    assert says in str(caught.value)
    assert str(caught.value).endswith("`bench fetch mcbe --from DIR`")
    assert leftovers(user) == []


@pytest.mark.parametrize(
    ("kwargs", "fault"),
    [
        (
            {"dies": ConnectionResetError("connection\nreset")},
            "eval.py: the download failed (connection reset)",
        ),
        ({"dies": IncompleteRead(b"")}, "eval.py: the download failed ("),
        ({"length": 10**9}, "eval.py: the download failed (it ended after"),
        ({"url": "http://elsewhere"}, "eval.py: the download failed (it leads to http://elsewhere"),
        ({"most": 100}, "eval.py: the download failed (it is larger than 100 bytes)"),
        ({"changed": "重不重"}, "the wording is not the released one"),
        ({"changed": "def bias_scoring"}, "2a8e8f5: eval.py: function `bias_scoring` is missing"),
    ],
)
def test_data_from_the_hub_do_not_wait_for_the_wording(
    user: Path,
    hub: HubServer,
    commit: str,
    authors: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kwargs: dict[str, Any],
    fault: str,
) -> None:
    kwargs = dict(kwargs)
    if "changed" in kwargs:
        change(authors, kwargs.pop("changed"), "def other")
    monkeypatch.setattr(fetch_wording, "SCRIPT_BYTES", kwargs.pop("most", 2**20))
    serve_scripts(monkeypatch, authors, **kwargs)
    source = fetch("mcbe")
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("the data came without the wording: https://raw.githubusercontent.com/")
    assert fault in told
    assert told.endswith("`bench fetch mcbe --from DIR`")
    assert (source.version, "wording" in manifest(source.folder)) == (commit[:7], False)
    assert not (source.folder / "prompts.toml").exists()
    assert leftovers(user) == []

    (source.folder / "prompts.toml").write_text('version = "older"')
    with (source.folder / "dataset.toml").open("a", encoding="utf-8") as stream:
        stream.write('wording = "older"\n')
    assert fetch("mcbe").version == commit[:7]
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.endswith("`bench fetch mcbe --from DIR`; the older wording is kept")
    assert second.startswith("wording older (not the released one): ")
    assert manifest(source.folder)["wording"] == "older"


@pytest.mark.parametrize("pack", [lambda folder: folder, pack_tar, pack_zip])
def test_wording_with_a_local_copy(copy: Path, user: Path, pack: Callable[[Path], Path]) -> None:
    (copy / "load_model.py").write_text("raise SystemExit('was run')")
    source = fetch("mcbe", pack(copy))
    assert names(source.folder) == names(data.SAMPLES / "mcbe") | {"prompts.toml"}
    assert brought(source.folder) == INVENTED
    assert manifest(source.folder)["wording"] == "mcbe-official-2a8e8f5"
    assert source.sha256 == data.find("mcbe", data.SAMPLES / "mcbe").sha256, (
        "the wording is not data"
    )
    assert leftovers(user) == []


def test_scripts_above_the_data_or_in_a_folder_right_inside(
    authors: Path, tmp_path: Path, user: Path
) -> None:
    above = shutil.copytree(data.SAMPLES / "mcbe", authors / "xlsx_files")
    inside = shutil.copytree(data.SAMPLES / "mcbe", tmp_path / "data")
    scripts(inside / "McBE", INVENTED)
    for place in (above, authors, inside):
        shutil.rmtree(user, ignore_errors=True)
        assert brought(fetch("mcbe", place).folder) == INVENTED


def test_other_scripts_do_not_keep_the_data_away(
    copy: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch("mcbe", copy)
    (copy / "eval.py").write_text("print('another project')")
    packed = pack_tar(copy)
    source = fetch("mcbe", packed)
    fault, kept = capsys.readouterr().err.splitlines()[-2:]
    assert fault.startswith(
        f"the data came without the wording: {packed}: {copy.name}/eval.py: function "
    )
    assert fault.endswith("the older wording is kept")
    assert kept.startswith("wording mcbe-official-2a8e8f5: ")
    assert brought(source.folder) == INVENTED
    (copy / "utils.py").unlink()
    shutil.rmtree(source.folder)
    fetch("mcbe", copy)
    assert f"without the wording: {copy / 'utils.py'}: no such file" in capsys.readouterr().err
    assert not (source.folder / "prompts.toml").exists()


@pytest.mark.parametrize(
    "pack", [lambda folder: folder, lambda folder: folder.parent, pack_tar, pack_zip]
)
def test_wording_alone(
    authors: Path, user: Path, capsys: pytest.CaptureFixture[str], pack: Callable[[Path], Path]
) -> None:
    source = fetch("mcbe", pack(authors))
    assert (source.folder, source.name) == (user / "mcbe", "McBE (wording alone)")
    missing, told = capsys.readouterr().err.splitlines()
    assert (
        missing
        == f"{user / 'mcbe'}: the data of McBE are still missing; `bench fetch mcbe` brings them"
    )
    assert told.startswith("wording mcbe-official-2a8e8f5: ")
    assert names(user / "mcbe") == {"prompts.toml"}
    assert brought(user / "mcbe") == INVENTED
    assert data.find("mcbe").is_sample, "a wording alone is no data"
    assert leftovers(user) == []

    source = fetch("mcbe", data.SAMPLES / "mcbe")
    assert data.find("mcbe") == source
    assert brought(source.folder) == INVENTED, "the data leave the wording there"
    assert manifest(source.folder)["wording"] == "mcbe-official-2a8e8f5"


def test_wording_alone_leaves_the_data_that_are_there(
    authors: Path, user: Path, capsys: pytest.CaptureFixture[str], refusal: Refusal
) -> None:
    before = fetch("mcbe", data.SAMPLES / "mcbe")
    about = manifest(before.folder)
    assert fetch("mcbe", authors) == before
    assert "missing" not in capsys.readouterr().err
    assert manifest(before.folder) == {**about, "wording": "mcbe-official-2a8e8f5"}
    assert names(before.folder) == names(data.SAMPLES / "mcbe") | {"prompts.toml"}
    assert before.sha256 == about["sha256"]
    change(authors, "重不重", "重吗")
    fetch("mcbe", authors)
    assert manifest(before.folder)["wording"] == "mcbe-official-2a8e8f5+changed"
    assert (
        "wording mcbe-official-2a8e8f5+changed (not the released one): " in capsys.readouterr().err
    )

    good = (before.folder / "prompts.toml").read_bytes()
    change(authors, "def bias_scoring", "def other")
    missing = f"{authors / 'eval.py'}: function `bias_scoring` is missing"
    assert refusal(fetch, "mcbe", authors).startswith(missing)
    (authors / "utils.py").unlink()
    assert "utils.py: no such file" in refusal(fetch, "mcbe", authors)
    (authors / "eval.py").unlink()
    message = refusal(fetch, "mcbe", authors)
    assert message.startswith(f"{authors}: holds no data of McBE; expected ")
    assert message.endswith(", or the scripts eval.py and utils.py")
    (before.folder / data.MANIFEST).write_text("name = ")
    scripts(authors, INVENTED)
    assert "not TOML" in refusal(fetch, "mcbe", authors)
    assert (before.folder / "prompts.toml").read_bytes() == good
    assert leftovers(user) == []


def test_wording_and_data_in_a_named_folder(
    authors: Path, tmp_path: Path, refusal: Refusal
) -> None:
    place = tmp_path / "place"
    fetch("mcbe", authors, to=place)
    assert fetch("mcbe", data.SAMPLES / "mcbe", to=place).found == "fetched"
    assert brought(place) == INVENTED
    (place / data.MANIFEST).unlink()
    assert "holds other things" in refusal(fetch, "mcbe", authors, to=place)
