"""What tests of notebooks/curation share: its modules, projects, and people who fill in sheets."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from openpyxl import load_workbook

sys.path.append(str(Path(__file__).parents[2] / "notebooks/curation"))
import cbbq_templates
import mcbe_items
import rounds


class Work:
    """A project of one benchmark in a folder of the test's own."""

    def __init__(self, folder: Path, benchmark: str, *, answered: bool) -> None:
        self.folder = rounds.begin(benchmark, folder, answered=answered)
        self.module: Any = {"mcbe": mcbe_items, "cbbq": cbbq_templates}[benchmark]

    def project(self) -> Any:
        return rounds.open_project(self.folder, self.module.ROLES)

    def items(self) -> Any:
        """The items and the mistakes in them."""
        read = {mcbe_items: "read_drafts", cbbq_templates: "read_templates"}[self.module]
        return getattr(self.module, read)(self.project())

    def advance(self, **given: Any) -> Any:
        project = self.project()
        return rounds.advance(project, self.module.plan(project), *self.items(), **given)

    def sentences(self) -> list[str]:
        return self.advance().problems.sentence.tolist()

    def release(self) -> Path:
        return self.module.release(self.project(), self.advance())

    def sheet(self, name: str) -> pd.DataFrame:
        """A filled-in sheet of the example, in the order of the items."""
        path = self.folder / f"sheets/{name}.csv"
        return pd.read_csv(path, dtype=str).fillna("").sort_values("item_id", ignore_index=True)

    def save(self, name: str, sheet: pd.DataFrame) -> None:
        sheet.to_csv(self.folder / f"sheets/{name}.csv", index=False)

    def change(self, file: str, *pairs: tuple[str, str]) -> None:
        """Replace texts of a file."""
        path = self.folder / file
        text = path.read_text("utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, "utf-8")

    def fill(self, answer: Callable[[str, str, dict[str, str]], dict[str, str]]) -> int:
        """Fill in all sheets that went out, as people do in a spreadsheet program."""
        paths = sorted(self.folder.glob("sheets/*/*.xlsx"))
        for path in paths:
            book = load_workbook(path)
            page = book["answers"]
            header = [cell.value for cell in page[1]]
            for cells in page.iter_rows(min_row=2):
                row = {name: cell.value or "" for name, cell in zip(header, cells, strict=True)}
                for name, value in answer(path.parent.name, path.stem, row).items():
                    cells[header.index(name)].value = value
            book.save(path)
        return len(paths)


@pytest.fixture
def begun(tmp_path: Path) -> Callable[[str], Work]:
    """`begun("mcbe")`: a project about which nobody was asked yet."""
    return lambda benchmark: Work(tmp_path / "project", benchmark, answered=False)


@pytest.fixture
def answered(tmp_path: Path) -> Callable[[str], Work]:
    """`answered("mcbe")`: the example with the answers of its people."""
    return lambda benchmark: Work(tmp_path / "project", benchmark, answered=True)


@pytest.fixture(scope="session")
def engine() -> ModuleType:
    return rounds


@pytest.fixture(scope="session")
def mcbe() -> ModuleType:
    return mcbe_items


@pytest.fixture(scope="session")
def cbbq() -> ModuleType:
    return cbbq_templates
