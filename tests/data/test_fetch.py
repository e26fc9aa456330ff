"""`bench fetch` keeps what it should, refuses the rest, and leaves nothing half-done behind."""

import io
import json
import shutil
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.mcbe import official_wording as mcbe_prompts
from bench.core.errors import BadInput, RunFailed
from bench.data import fetch as module
from bench.data.fetch import fetch, unpack
from bench.tasks import prompts
from tests.data import test_official_wording as wording
from tests.helpers.recorded import GOOD, TEMPLATE

pytestmark = pytest.mark.usefixtures("user")
NEG = "age/ambiguous/templates_generate_neg.csv"
CBBQ_URL = (
    "https://codeload.github.com/YFHuangxxxx/CBBQ/tar.gz/95eaf2eeaa0b936f3e97e3424f134e9d7655da98"
)
MCBE_REPOSITORY = "datasets/Velikaya/McBE"
MCBE_SAMPLES = get("mcbe").metadata.samples


def manifest(folder):
    return tomllib.loads((folder / data.MANIFEST).read_text("utf-8"))


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def leftovers(user):
    return [path.name for path in user.iterdir() if path.name.startswith(".") and path.is_dir()]


def as_folder(folder):
    return folder


def pack_tar(folder):
    path = folder.with_name("release.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return path


def pack_zip(folder):
    root = str(folder.with_name("release"))
    return Path(shutil.make_archive(root, "zip", folder.parent, folder.name))


class Broken(io.BytesIO):
    """A download whose connection breaks at the end."""

    def read(self, size=-1):
        if chunk := super().read(size):
            return chunk
        raise ConnectionResetError("connection\nreset")


@pytest.fixture
def serve_file(monkeypatch):
    """`serve_file(path)`: downloads get this file, or the one of their name in this folder."""

    def prepare(path, response=io.BytesIO):
        asked = []

        def urlopen(url, timeout):
            asked.append(url)
            file = path / url.rsplit("/", 1)[-1] if path.is_dir() else path
            return response(file.read_bytes())

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return prepare


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A checkout like CBBQ's with two categories of the samples, whose git ids are known."""
    root = tmp_path / "CBBQ-95eaf2e"
    for name in ("age", "gender"):
        shutil.copytree(get("cbbq").metadata.samples / name, root / "data" / name)
        folder = root / "data" / name / "ambiguous"
        (folder / "generate_r.py").write_text("raise SystemExit('was run')")
        (folder / "ambiguous.csv").write_text("not read where there are templates")
    (root / "data" / "age" / "~$amb_age.xlsx").write_bytes(b"lock")
    (root / "README.md").write_text("CC BY-SA 4.0")
    ids = {
        path.relative_to(root / "data").as_posix(): module.git_blob_id(path)
        for path in root.rglob("templates_*.csv")
    }
    lines = [f"{json.dumps(name)} = '{blob}'\n" for name, blob in ids.items()]
    (tmp_path / "checksums.toml").write_text("[cbbq]\n" + "".join(lines))
    monkeypatch.setattr(module, "CHECKSUMS", tmp_path / "checksums.toml")
    return root


# Local copies


@pytest.mark.parametrize("pack", [as_folder, lambda folder: folder / "data", pack_tar, pack_zip])
def test_a_local_copy_is_taken_and_verified(release, user, pack):
    source = fetch("CBBQ", pack(release))
    assert source == data.find("cbbq")
    assert (source.folder, source.found) == (user / "cbbq", "user data folder")
    tables = tomllib.loads(module.CHECKSUMS.read_text("utf-8"))["cbbq"]
    assert names(source.folder) - {"README.md"} == {*tables, data.MANIFEST}
    metadata = manifest(source.folder)
    assert [metadata[key] for key in ("verified", "name", "version")] == [True, "CBBQ", "95eaf2e"]
    assert metadata["sha256"] == source.sha256
    assert len(data.load(source)) == len(data.load(data.find("cbbq", release)))
    assert leftovers(user) == []


def test_a_changed_copy_loses_the_version_and_another_one_replaces_it(release, tmp_path, capsys):
    odd = tmp_path / 'a "quoted" \\ 中文 😀 \x7f \t name'
    release.rename(odd)
    first = fetch("cbbq", odd)
    assert manifest(first.folder)["fetched_from"] == str(odd)
    assert fetch("cbbq", first.folder).sha256 == first.sha256, "it replaces itself"
    changed = odd / "data" / NEG
    changed.write_bytes(changed.read_bytes().replace("。".encode(), "！".encode(), 1) + b"\n")
    (odd / "dataset.toml").write_text('version = "95eaf2e"')
    metadata = manifest(fetch("cbbq", odd).folder)
    assert (metadata["verified"], metadata["version"]) == (False, "95eaf2e+changed")
    message = f"1 of 8 files differ from the release, the first is {NEG}"
    assert message in capsys.readouterr().err
    shutil.rmtree(odd / "data" / "gender")
    second = fetch("cbbq", odd)
    assert {path.name for path in second.folder.iterdir()} == {"age", "README.md", data.MANIFEST}


@pytest.mark.parametrize("pack", [as_folder, pack_tar, pack_zip])
def test_a_copy_without_data_of_the_benchmark_is_not_fetched(release, user, refusal, pack):
    fetch("cbbq", release)
    before = names(user / "cbbq")
    (release / "data" / NEG).write_bytes(b"question_index,context\n1,x\n")
    copy = pack(release)
    assert refusal(fetch, "cbbq", copy).startswith(f"{copy}: {NEG}, row 1 (header): column")
    assert "holds no data of McBE" in refusal(fetch, "mcbe", copy)
    assert "no such file or folder" in refusal(fetch, "cbbq", release / "nowhere")
    assert names(user / "cbbq") == before
    assert leftovers(user) == []


def test_no_member_of_an_archive_is_written_outside_its_folder(tmp_path, refusal):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../a.csv"))
    assert "cannot be unpacked" in refusal(unpack, tmp_path / "x.tar.gz", tmp_path / "into")
    assert not (tmp_path / "a.csv").exists()


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
    release, user, serve_file, fault, message
):
    earlier = fetch("cbbq", release)
    before = {path: path.read_bytes() for path in earlier.folder.rglob("*") if path.is_file()}
    if fault == "changed":
        path = release / "data" / NEG
        path.write_bytes(path.read_bytes() + b"\n")
    archive = pack_tar(release)
    if fault == "cut off":
        archive.write_bytes(archive.read_bytes()[:-2000])
    serve_file(archive, Broken if fault == "reset" else io.BytesIO)
    with pytest.raises(RunFailed) as caught:
        fetch("cbbq")
    assert str(caught.value).startswith(CBBQ_URL)
    assert message in str(caught.value)
    assert str(caught.value).endswith("`bench fetch cbbq --from DIR`")
    assert before == {path: path.read_bytes() for path in before}
    assert leftovers(user) == []


def sample_tables(suffix="csv"):
    """McBE's samples as files of a kind, by category."""
    tables = {}
    for path in sorted(MCBE_SAMPLES.glob("*.csv")):
        stream, rows = io.BytesIO(), pd.read_csv(path, dtype=str)
        if suffix == "xlsx":
            rows.to_excel(stream, index=False)
        tables[path.stem] = stream.getvalue() or path.read_bytes()
    return tables


def test_mcbe_is_downloaded_from_the_hub_and_its_prompts_from_github(
    tmp_path, hub, serve_file, monkeypatch
):
    # Invented prompts, which count as the released ones.
    wording.release(monkeypatch, "mcbe")
    asked = serve_file(wording.write_scripts("mcbe", tmp_path / "McBE-2a8e8f5"))
    files = {f"xlsx_files/{name}.xlsx": raw for name, raw in sample_tables("xlsx").items()}
    others = {f"csv_files/{name}.csv": b"not read" for name in sample_tables()}
    demonstration = {"xlsx_files/test.xlsx": b"not read", "README.md": b"MIT"}
    commit = hub.add(MCBE_REPOSITORY, {**files, **others, **demonstration})
    source = fetch("mcbe")
    metadata = manifest(source.folder)
    assert metadata["fetched_from"] == f"{hub.url}/{MCBE_REPOSITORY}"
    assert (metadata["verified"], metadata["revision"]) == (False, commit)
    assert (source.name, source.version, source.sha256) == ("McBE", commit[:7], metadata["sha256"])
    assert names(source.folder) == {*files, "README.md", data.MANIFEST, "prompts.toml"}
    assert data.load(source) == data.load(data.find("mcbe", MCBE_SAMPLES))
    place = "https://raw.githubusercontent.com/VelikayaScarlet/McBE/2a8e8f5"
    assert asked == [f"{place}/eval.py", f"{place}/utils.py"]
    assert metadata["wording"] == "mcbe-official-2a8e8f5"
    hub.stop()
    with pytest.raises(RunFailed, match=r"cannot be reached .*`bench fetch mcbe --from DIR`$"):
        fetch("mcbe")
    assert data.find("mcbe") == source


def as_parquet(raw):
    return pd.read_csv(io.BytesIO(raw)).to_parquet()


@pytest.mark.parametrize(
    "layout",
    [
        lambda: {f"v2/XLSX_F/{k.title()}.XLSX": raw for k, raw in sample_tables("xlsx").items()},
        lambda: {f"{k.replace('+', '%2B')}.csv": raw for k, raw in sample_tables().items()},
        lambda: {f"{k}/test-0-of-1.parquet": as_parquet(raw) for k, raw in sample_tables().items()},
    ],
)
def test_a_release_on_the_hub_can_have_another_layout(hub, monkeypatch, layout):
    hub.add(MCBE_REPOSITORY, layout())
    metadata = get("mcbe").metadata
    prompts = replace(mcbe_prompts.OFFICIAL, address=f"{hub.url}/raw")
    release = replace(metadata.release, prompts=prompts)
    monkeypatch.setattr(get("mcbe"), "metadata", replace(metadata, release=release))
    assert data.load(fetch("mcbe")) == data.load(data.find("mcbe", MCBE_SAMPLES))


@pytest.mark.parametrize("kind", ["templates", "questions"])
def test_rows_of_cbbq_in_one_file_are_taken(tmp_path, kind):
    samples = data.find("cbbq", get("cbbq").metadata.samples)
    folder = samples.folder
    if kind == "questions":
        folder = tmp_path / "expanded"
        expand(samples, folder, "csv")
    rows = pd.concat(pd.read_csv(path) for path in sorted(folder.glob("gender/*/*.csv")))
    (tmp_path / "copy").mkdir()
    rows.to_json(tmp_path / "copy/train.jsonl", orient="records", lines=True)
    expected = sorted(one.text for one in data.load(samples, ["gender"]))
    assert sorted(one.text for one in data.load(fetch("cbbq", tmp_path / "copy"))) == expected


def test_rows_without_what_makes_a_score_are_refused(tmp_path):
    # As the copy walledai/CBBQ on the Hub.
    row = {"context": "c", "question": "q", "choices": ["a", "b", "c"], "answer": 2}
    rows = pd.DataFrame([{**row, "category": "gender"}])
    rows.to_parquet(tmp_path / "gender-00000-of-00001.parquet")
    missing = "lacks question_index, question_polarity, .*`bench fetch cbbq`"
    with pytest.raises(BadInput, match=missing):
        fetch("cbbq", tmp_path)


# Official prompts, of invented scripts that count as the released ones


def test_downloaded_data_do_not_wait_for_prompts_and_say_how_to_use_them(
    release, user, serve_file, capsys, monkeypatch
):
    asked = serve_file(pack_tar(release))
    metadata = manifest(fetch("cbbq").folder)
    assert asked == [CBBQ_URL] == [metadata["fetched_from"]]
    assert (metadata["version"], metadata["verified"]) == ("95eaf2e", True)
    assert "wording" not in metadata
    without = f"the data came without the official prompts: {CBBQ_URL}: has not all of ChatGLM"
    assert without in capsys.readouterr().err
    wording.write_scripts("cbbq", release / "evaluation scripts")
    wording.release(monkeypatch, "cbbq")
    serve_file(pack_tar(release))
    assert manifest(fetch("cbbq").folder)["wording"] == "cbbq-scripts-95eaf2e"
    choices = capsys.readouterr().err.strip().rpartition("one of ")[2].split(", ")
    assert choices == ["chatglm", "gpt-3.5", "belle", "moss", "bloomz"]
    chosen = prompts.load("cbbq", "official#belle", user / "cbbq")
    assert chosen.label == "cbbq-scripts-95eaf2e#belle"
    assert not list(user.rglob("*.py"))


def test_a_data_sets_own_prompts_are_kept_and_scripts_alone_are_no_data(
    tmp_path, monkeypatch, refusal, capsys
):
    wording.release(monkeypatch, "mcbe")
    scripts = wording.write_scripts("mcbe", tmp_path / "scripts")
    assert "holds no data of McBE" in refusal(fetch, "mcbe", scripts)
    folder = shutil.copytree(MCBE_SAMPLES, tmp_path / "set")
    for name in mcbe_prompts.OFFICIAL.scripts:
        shutil.copy(scripts / name, folder)
    assert manifest(fetch("mcbe", folder).folder)["wording"] == "mcbe-official-2a8e8f5"
    (folder / "prompts.toml").write_text('version = "own-1"\n[x]\n', "utf-8")
    copy = fetch("mcbe", pack_zip(folder)).folder
    assert "is asked with them unless --prompts is given" in capsys.readouterr().err
    assert (copy / "prompts.toml").read_text("utf-8") == 'version = "own-1"\n[x]\n'


LISTS = ("context", "NAME1", "NAME2")
QUESTION = {name: cell for name, cell in TEMPLATE.items() if name not in LISTS}
QUESTION |= {"context": "甲和丙来了。", "ans0": "甲", "ans1": "丙", "label": "2"}


def copy_of_rows(folder, *rows, name="test.jsonl"):
    path = folder / "copy_of_rows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(list(rows)).to_json(path, orient="records", lines=True)
    return folder / "copy_of_rows"


NAMES = ["../../x", "/tmp/x", "a/b", "a\\b", "C:x", "a\0", "..", "NUL", "", None]
WRONG = [("mcbe", GOOD | {"category": "age"}, {"category": name}) for name in NAMES]
WRONG += [("cbbq", QUESTION, {"category": name}) for name in NAMES]
WRONG += [("cbbq", QUESTION, {"context_condition": name}) for name in ("ambig", "../x", "/x", None)]


@pytest.mark.parametrize(("benchmark", "row", "change"), WRONG)
def test_a_cell_that_cannot_name_a_file_is_refused_with_its_row(
    tmp_path, refusal, benchmark, row, change
):
    folder = copy_of_rows(tmp_path, row, row | change)
    message = refusal(fetch, benchmark, folder)
    assert message.startswith(f"{folder}/test.jsonl, row 2")
    assert f"column `{next(iter(change))}`" in message
    assert not [*tmp_path.rglob("*.csv")]


def test_rows_in_a_configuration_of_all_and_in_one_of_its_parts_are_kept_once(tmp_path, capsys):
    rows = [GOOD | {"category": "age", "context": context} for context in ("一", "二", "二")]
    copy_of_rows(tmp_path, *rows, name="all/test.jsonl")
    folder = copy_of_rows(tmp_path, *rows[1:], name="part/test.jsonl")
    items = data.load(fetch("mcbe", folder))
    assert [item.context for item in items] == ["一", "二", "二"]
    assert "2 rows repeat rows of another file" in capsys.readouterr().err


def test_no_file_of_a_copy_is_left_out_without_a_word(tmp_path, capsys):
    copy_of_rows(tmp_path, GOOD, name="data/other.jsonl")
    folder = copy_of_rows(tmp_path, GOOD | {"category": "age"}, name="data/train.jsonl")
    assert len(data.load(fetch("mcbe", folder))) == 1
    assert "left out: other.jsonl has no column `category`" in capsys.readouterr().err
