"""`bench fetch`: which files of each benchmark are kept."""

import shutil
from pathlib import Path

import pytest

from bench import data
from bench.data.fetch import fetch
from tests.helpers.fetching import manifest, names


def test_instances_are_taken_where_there_are_no_templates(tmp_path: Path, user: Path) -> None:
    row = (
        "1",
        "neg",
        "ambiguous",
        "age",
        "话题",
        "老年人",
        "来源",
        "背景",
        "谁？",
        "爷爷",
        "小王",
        "未知",
        "2",
    )
    folder = tmp_path / "copy" / "age" / "ambiguous"
    folder.mkdir(parents=True)
    (folder / "ambiguous.csv").write_text(
        ",".join(data.module("data", "cbbq").INSTANCE_COLUMNS) + "\n" + ",".join(row) + "\n",
        "utf-8",
    )
    (folder / "ambiguous.json").write_text("[]")
    source = fetch("cbbq", tmp_path / "copy")
    assert names(source.folder) == {"age/ambiguous/ambiguous.csv", data.MANIFEST}
    assert (manifest(source.folder)["verified"], source.version) == (False, "unknown")


def test_nli_coal_keeps_every_table_of_a_language(tmp_path: Path, user: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(data.SAMPLES / "nli_coal", copy)
    (copy / "calculate_score.py").write_text("")
    (copy / "other.json").write_text("{}")
    (copy / "zh_v0.1" / "run.py").write_text("")
    source = fetch("nli-coal", copy)
    assert names(source.folder) == names(data.SAMPLES / "nli_coal")
    assert (source.name, source.version) == ("NLI-CoAL samples", "samples-1"), (
        "a copy of samples stays one"
    )
    assert source.note


def test_nli_coal_folder_of_one_language(user: Path) -> None:
    source = fetch("nli_coal", data.SAMPLES / "nli_coal" / "zh_v0.1")
    assert {name.split("/")[0] for name in names(source.folder)} == {"zh_v0.1", data.MANIFEST}
    assert {item.category for item in data.load(source)} == {"zh"}


def test_mcbe_local_copy(user: Path) -> None:
    source = fetch("mcbe", data.SAMPLES / "mcbe")
    assert len(names(source.folder)) == 13
    assert manifest(source.folder)["verified_files"] == 0
    assert manifest(source.folder)["verified"] is False, "nothing is known of McBE's files"


@pytest.mark.slow
def test_shared_cbbq(shared: Path, user: Path) -> None:
    source = fetch("cbbq", shared / "data" / "cbbq")
    about = manifest(source.folder)
    assert (about["files"], about["verified_files"], about["verified"]) == (40, 40, True)
    assert source.version == "95eaf2e"
    assert len(data.load(source)) == 73_438
    assert not (source.folder / "audit.csv").exists()


def test_shared_nli_coal(shared: Path, user: Path) -> None:
    source = fetch("nli_coal", shared / "data" / "nli_coal")
    tables = [
        path
        for path in (shared / "data" / "nli_coal").rglob("*")
        if path.suffix in (".json", ".tsv")
    ]
    about = manifest(source.folder)
    assert about["files"] == about["verified_files"] == len(tables)
    assert (about["verified"], source.version, source.licence) == (True, "4d57afe", "MIT")
    assert len(data.load(source)) == 5420 + 5420 + 5320
    assert (source.folder / "LICENSE").is_file()
