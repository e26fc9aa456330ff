"""The card of a data folder: what it lists is there, `datasets` opens it, and own cards stay."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import data
from bench.data import SAMPLES, card
from bench.data.cbbq.expand import expand
from bench.data.starts import copy_start


def front(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / card.CARD).read_text("utf-8").split("---\n")[1])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A single table, a table per category, and questions by category and context."""
    place = tmp_path_factory.mktemp("data")
    copy_start("cbbq", place / "rows")
    copy_start("mcbe", place / "tables")
    expand(data.find("cbbq", SAMPLES / "cbbq"), place / "questions", "csv")
    return {name: place / name for name in ("rows", "tables", "questions")}


def test_a_card_lists_the_files_of_each_category(folders: dict[str, Path]) -> None:
    about = front(folders["questions"])
    configs = {one["config_name"]: one["data_files"][0] for one in about["configs"]}
    assert len(configs) == 15
    contexts = [f"age/{name}/{name}.csv" for name in ("ambiguous", "disambiguous")]
    assert configs["age"] == {"split": "test", "path": contexts}
    assert len(configs["default"]["path"]) == 28
    assert all((folders["questions"] / path).is_file() for path in configs["default"]["path"])
    assert (about["license"], about["language"]) == ("mit", ["zh"])
    assert [one["config_name"] for one in front(folders["rows"])["configs"]] == ["default"]


def test_a_card_of_somebody_else_stays(tmp_path: Path) -> None:
    copy_start("mcbe", tmp_path)
    written = (tmp_path / card.CARD).read_text("utf-8")
    own = written.replace(card.MARK, "").replace("My instances", "Ours")
    (tmp_path / card.CARD).write_text(own, "utf-8")
    card.write("mcbe", tmp_path)
    assert (tmp_path / card.CARD).read_text("utf-8") == own
    (tmp_path / card.CARD).write_text(f"{written}\nold", "utf-8")
    card.write("mcbe", tmp_path)
    assert (tmp_path / card.CARD).read_text("utf-8") == written


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("rows", 8), ("tables", 2), ("questions", 2160)])
def test_datasets_opens_the_folder(
    folders: dict[str, Path], tmp_path: Path, name: str, rows: int
) -> None:
    datasets = pytest.importorskip("datasets")
    given = {"split": "test", "cache_dir": str(tmp_path)}
    loaded = datasets.load_dataset(str(folders[name]), **given)
    assert loaded.num_rows == rows
    number = {"tables": ("score", "float64")}.get(name, ("label", "int64"))
    assert loaded.features[number[0]].dtype == number[1]
    if name == "questions":
        assert datasets.load_dataset(str(folders[name]), "age", **given).num_rows == 160
