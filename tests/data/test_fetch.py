"""`bench fetch` keeps what it should, refuses the rest, and leaves nothing half-done behind."""

import gzip
import io
import shutil
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.core.errors import RunFailed
from bench.data import fetch as module
from bench.data.fetch import fetch
from bench.data.readers import read_toml
from bench.tasks import prompts
from tests.data import test_official_wording as wording
from tests.helpers.recorded import GOOD

pytestmark = pytest.mark.usefixtures("user")
NEG = "age/ambiguous/templates_generate_neg.csv"
CBBQ, MCBE = get("cbbq").metadata, get("mcbe").metadata
CBBQ_URL = f"https://codeload.github.com/YFHuangxxxx/CBBQ/tar.gz/{CBBQ.release.commit}"
MCBE_REPOSITORY = "datasets/Velikaya/McBE"


def manifest(folder):
    return read_toml(folder / data.MANIFEST)


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def packed(folder, kind):
    """Return an archive of a folder; of kind "" the folder."""
    root = str(folder.with_name("release"))
    return Path(shutil.make_archive(root, kind, folder.parent, folder.name)) if kind else folder


def serve(monkeypatch, path):
    """Let downloads get this file, or the one of their name in this folder; return their urls."""
    urls = []

    def urlopen(url, timeout):
        urls.append(url)
        if not path.exists():
            raise ConnectionResetError("connection\nreset")
        return (path / url.rsplit("/", 1)[-1] if path.is_dir() else path).open("rb")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return urls


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A checkout like CBBQ's with two categories of the samples, whose git ids are known."""
    root = tmp_path / "CBBQ-95eaf2e"
    for name in ("age", "gender"):
        shutil.copytree(CBBQ.samples / name, root / "data" / name)
        folder = root / "data" / name / "ambiguous"
        (folder / "generate_r.py").write_text("raise SystemExit('was run')")
        (folder / "ambiguous.csv").write_text("not read where there are templates")
    (root / "data/age/~$amb_age.xlsx").write_bytes(b"lock")
    (root / "README.md").write_text("CC BY-SA 4.0")
    tables = [name for name in names(root / "data") if "templates_" in name]
    ids = {name: module.git_blob_id(root / "data" / name) for name in tables}
    monkeypatch.setattr(module, "released_ids", lambda _name: ids)
    return root


# Local copies


@pytest.mark.parametrize("kind", ["", "data", "gztar", "zip"])
def test_a_local_copy_is_taken_and_verified(release, user, kind):
    source = fetch(get("CBBQ"), release / kind if kind == "data" else packed(release, kind))
    assert source == data.find("cbbq")
    assert (source.folder, source.found) == (user / "cbbq", "user data folder")
    assert names(source.folder) - {"README.md"} == {*module.released_ids("cbbq"), data.MANIFEST}
    metadata = manifest(source.folder)
    assert [metadata[key] for key in ("verified", "name", "version")] == [True, "CBBQ", "95eaf2e"]
    assert metadata["sha256"] == source.sha256
    assert len(data.load(source)) == len(data.load(data.find("cbbq", release)))
    assert not [*user.glob(".*")]


def test_a_changed_copy_loses_the_version_and_another_one_replaces_it(release, tmp_path, capsys):
    odd = release.rename(tmp_path / 'a "quoted" \\ 中文 😀 \x7f \t name')
    first = fetch(get("cbbq"), odd)
    assert manifest(first.folder)["fetched_from"] == str(odd)
    assert fetch(get("cbbq"), first.folder).sha256 == first.sha256, "it replaces itself"
    (odd / "dataset.toml").write_text('name = "mine"\nversion = "95eaf2e"')
    assert fetch(get("cbbq"), odd).name == "mine"
    changed = odd / "data" / NEG
    changed.write_text(changed.read_text("utf-8").replace("。", "！", 1), "utf-8")
    metadata = manifest(fetch(get("cbbq"), odd).folder)
    assert (metadata["verified"], metadata["version"]) == (False, "95eaf2e+changed")
    message = f"1 of 8 files differ from the release, the first is {NEG}"
    assert message in capsys.readouterr().err
    shutil.rmtree(odd / "data" / "gender")
    second = fetch(get("cbbq"), odd)
    assert {path.name for path in second.folder.iterdir()} == {"age", "README.md", data.MANIFEST}


@pytest.mark.parametrize("folder", ["", "data"])
def test_the_manifest_and_the_glosses_of_a_copy_stand_beside_or_in_its_folder_of_data(
    release, folder
):
    (release / folder / "dataset.toml").write_text('name = "mine"')
    (release / folder / "glosses.jsonl").write_text('{"id": "age:1", "english": "a"}')
    fetched = fetch(get("cbbq"), release)
    assert fetched.name == data.find("cbbq", release).name == "mine"
    assert (fetched.folder / "glosses.jsonl").read_text() == '{"id": "age:1", "english": "a"}'


@pytest.mark.parametrize("kind", ["", "gztar", "zip"])
def test_a_copy_without_data_of_the_benchmark_is_not_fetched(release, user, refusal, kind):
    fetch(get("cbbq"), release)
    before = names(user / "cbbq")
    (release / "data" / NEG).write_bytes(b"question_index,context\n1,x\n")
    copy = packed(release, kind)
    assert refusal(fetch, get("cbbq"), copy).startswith(f"{copy}: {NEG}, row 1 (header): column")
    assert "holds no data of McBE" in refusal(fetch, get("mcbe"), copy)
    assert "no such file or folder" in refusal(fetch, get("cbbq"), release / "nowhere")
    assert names(user / "cbbq") == before
    assert not [*user.glob(".*")]


def test_no_member_of_an_archive_is_written_outside_its_folder(tmp_path, refusal):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../a.csv"))
    assert "cannot be unpacked" in refusal(fetch, get("cbbq"), tmp_path / "x.tar.gz")
    assert not [*tmp_path.rglob("a.csv")]


@pytest.mark.parametrize(
    "link", ["README.md", "LICENSE", "data/dataset.toml", f"data/{NEG}", "data/gender", "x/y.csv"]
)
def test_a_link_out_of_a_copy_is_refused_and_one_within_it_is_followed(
    release, user, tmp_path, refusal, link
):
    path = release / link
    path.parent.mkdir(exist_ok=True)
    inside, outside = release / "kept", tmp_path / "outside"
    if path.exists():
        path.rename(inside)
    else:
        inside.write_text('name = "mine"')
    shutil.copytree(inside, outside) if inside.is_dir() else shutil.copy(inside, outside)
    path.symlink_to(outside)
    message = refusal(fetch, get("cbbq"), release)
    assert message.startswith(f"{path}: is a link that leads out of {release}; remove it")
    assert not (user / "cbbq").exists()
    path.unlink()
    path.symlink_to(inside)
    assert fetch(get("cbbq"), release).folder == user / "cbbq"


# Downloads


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("reset", "download failed (connection reset); "),
        ("cut off", "cannot be unpacked"),
        ("changed", f"{NEG}: is missing or is not the released file"),
    ],
)
def test_a_download_that_fails_or_is_not_the_release_leaves_the_earlier_data(
    release, user, monkeypatch, fault, message
):
    earlier = fetch(get("cbbq"), release).describe()
    if fault == "changed":
        (release / "data" / NEG).write_bytes(b"other")
    archive = packed(release, "gztar")
    if fault == "cut off":
        archive.write_bytes(archive.read_bytes()[:-2000])
    if fault == "reset":
        archive.unlink()
    serve(monkeypatch, archive)
    with pytest.raises(RunFailed) as caught:
        fetch(get("cbbq"))
    assert str(caught.value).startswith(CBBQ_URL)
    assert message in str(caught.value)
    assert str(caught.value).endswith("`bench fetch cbbq --from DIR`")
    assert data.find("cbbq").describe() == earlier
    assert not [*user.glob(".*")]


def samples(name, write):
    """McBE's samples as files: `name` makes their paths of categories, `write` their bytes."""
    paths = sorted(MCBE.samples.glob("*.csv"))
    return {name(path.stem): write(pd.read_csv(path, dtype=str)) for path in paths}


def as_xlsx(rows):
    stream = io.BytesIO()
    rows.to_excel(stream, index=False)
    return stream.getvalue()


def test_mcbe_is_downloaded_from_the_hub_and_its_prompts_from_github(tmp_path, hub, monkeypatch):
    # Invented prompts, which count as the released ones.
    wording.release(monkeypatch, "mcbe")
    asked = serve(monkeypatch, wording.write_scripts("mcbe", tmp_path / "McBE-2a8e8f5"))
    files = samples("xlsx_files/{}.xlsx".format, as_xlsx)
    not_read = dict.fromkeys(["csv_files/age.csv", "xlsx_files/test.xlsx"], b"not read")
    commit = hub.add(MCBE_REPOSITORY, files | not_read | {"README.md": b"MIT"})
    source = fetch(get("mcbe"))
    metadata = manifest(source.folder)
    assert metadata["fetched_from"] == f"{hub.url}/{MCBE_REPOSITORY}"
    assert (metadata["verified"], metadata["revision"]) == (False, commit)
    assert (source.name, source.version, source.sha256) == ("McBE", commit[:7], metadata["sha256"])
    assert names(source.folder) == {*files, "README.md", data.MANIFEST, "prompts.toml"}
    assert data.load(source) == data.load(data.find("mcbe", "samples"))
    place = "https://raw.githubusercontent.com/VelikayaScarlet/McBE/2a8e8f5"
    assert asked == [f"{place}/eval.py", f"{place}/utils.py"]
    assert metadata["wording"] == "mcbe-official-2a8e8f5"
    hub.stop()
    with pytest.raises(RunFailed, match=r"cannot be reached .*`bench fetch mcbe --from DIR`$"):
        fetch(get("mcbe"))
    assert data.find("mcbe") == source


@pytest.mark.parametrize(
    ("name", "write"),
    [
        (lambda name: f"v2/XLSX_F/{name.title()}.XLSX", as_xlsx),
        (lambda name: f"{name.replace('+', '%2B')}.csv", lambda rows: rows.to_csv().encode()),
    ],
)
def test_a_release_on_the_hub_can_be_spelt_in_another_way(hub, monkeypatch, tmp_path, name, write):
    serve(monkeypatch, tmp_path)
    hub.add(MCBE_REPOSITORY, samples(name, write))
    assert data.load(fetch(get("mcbe"))) == data.load(data.find("mcbe", "samples"))


# Official prompts, of invented scripts that count as the released ones


def test_downloaded_data_do_not_wait_for_prompts_and_say_how_to_use_them(
    release, user, capsys, monkeypatch
):
    asked = serve(monkeypatch, packed(release, "gztar"))
    metadata = manifest(fetch(get("cbbq")).folder)
    assert asked == [CBBQ_URL] == [metadata["fetched_from"]]
    assert (metadata["version"], metadata["verified"]) == ("95eaf2e", True)
    assert "wording" not in metadata
    without = f"the data came without the official prompts: {CBBQ_URL}: has not all of ChatGLM"
    assert without in capsys.readouterr().err
    wording.write_scripts("cbbq", release / "evaluation scripts")
    wording.release(monkeypatch, "cbbq")
    serve(monkeypatch, packed(release, "gztar"))
    assert manifest(fetch(get("cbbq")).folder)["wording"] == "cbbq-scripts-95eaf2e"
    assert "one of chatglm, gpt-3.5, belle, moss, bloomz\n" in capsys.readouterr().err
    chosen = prompts.load(get("cbbq"), "official#belle", user / "cbbq")
    assert chosen.label == "cbbq-scripts-95eaf2e#belle"
    assert not list(user.rglob("*.py"))


def test_a_data_sets_own_prompts_are_kept_and_scripts_alone_are_no_data(
    tmp_path, monkeypatch, refusal, capsys
):
    wording.release(monkeypatch, "mcbe")
    folder = wording.write_scripts("mcbe", tmp_path / "set")
    assert "holds no data of McBE" in refusal(fetch, get("mcbe"), folder)
    shutil.copytree(MCBE.samples, folder, dirs_exist_ok=True)
    assert manifest(fetch(get("mcbe"), folder).folder)["wording"] == "mcbe-official-2a8e8f5"
    (folder / "prompts.toml").write_text('version = "own-1"\n[x]\n', "utf-8")
    copy = fetch(get("mcbe"), packed(folder, "zip")).folder
    assert "is asked with them unless --prompts is given" in capsys.readouterr().err
    assert (copy / "prompts.toml").read_text("utf-8") == 'version = "own-1"\n[x]\n'


def test_a_packed_table_and_an_archive_of_another_name_are_taken(tmp_path, user):
    (tmp_path / "copy").mkdir()
    pd.DataFrame([GOOD]).to_csv(tmp_path / "copy/age.csv", index=False)
    archive = packed(tmp_path / "copy", "zip").rename(tmp_path / "copy.tar.gz")
    assert data.load(fetch(get("mcbe"), tmp_path / "copy")) == data.load(
        fetch(get("mcbe"), archive)
    )
    (user / "mcbe/age.csv").rename(tmp_path / "age.csv")
    (tmp_path / "age.csv.gz").write_bytes(gzip.compress((tmp_path / "age.csv").read_bytes()))
    single = [data.load(data.find("mcbe", tmp_path / name)) for name in ("age.csv", "age.csv.gz")]
    assert single[0] == single[1]


@pytest.mark.parametrize("name", ["test.parquet", "age/test.jsonl", "data.arrow"])
@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_tables_in_another_layout_are_refused_with_the_layout(
    tmp_path, user, refusal, benchmark, name
):
    path = tmp_path / "copy" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    message = refusal(fetch, get(benchmark), tmp_path / "copy")
    title, layout = get(benchmark).metadata.title, get(benchmark).metadata.layout
    problem = f"holds no data of {title} in the layout of its release; expected {layout}; "
    assert message.startswith(f"{tmp_path / 'copy'}: {problem}")
    assert "put the released files there, or write a plug-in benchmark" in message
    assert message.endswith(f"; it has {path.name}")
    assert not [*user.glob("*")]
