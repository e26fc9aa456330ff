"""What tests of notebooks/curation share: its modules, projects, and people who fill in sheets."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from openpyxl import load_workbook

sys.path.append(str(Path(__file__).parents[2] / "notebooks/curation"))
import cbbq_templates
import mcbe_items
import rounds


class Work:
    """A project of one benchmark in a folder of the test's own."""

    def __init__(self, folder, benchmark, *, answered):
        self.folder = rounds.begin(benchmark, folder, answered=answered)
        self.module = {"mcbe": mcbe_items, "cbbq": cbbq_templates}[benchmark]

    def project(self):
        return rounds.open_project(self.folder, self.module.ROLES)

    def items(self):
        """The items and the mistakes in them."""
        read = {mcbe_items: "read_drafts", cbbq_templates: "read_templates"}[self.module]
        return getattr(self.module, read)(self.project())

    def advance(self, **given):
        project = self.project()
        return rounds.advance(project, self.module.plan(project), *self.items(), **given)

    def sentences(self):
        return self.advance().problems

    def release(self):
        return self.module.release(self.project(), self.advance())

    def sheet(self, name):
        """A filled-in sheet of the example, in the order of the items."""
        path = self.folder / f"sheets/{name}.csv"
        return pd.read_csv(path, dtype=str).fillna("").sort_values("item_id", ignore_index=True)

    def save(self, name, sheet):
        sheet.to_csv(self.folder / f"sheets/{name}.csv", index=False)

    def change(self, file, *pairs):
        """Replace texts of a file."""
        path = self.folder / file
        text = path.read_text("utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, "utf-8")

    def fill(self, answer):
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
def begun(tmp_path):
    """`begun("mcbe")`: a project about which nobody was asked yet."""
    return lambda benchmark: Work(tmp_path / "project", benchmark, answered=False)


@pytest.fixture
def answered(tmp_path):
    """`answered("mcbe")`: the example with the answers of its people."""
    return lambda benchmark: Work(tmp_path / "project", benchmark, answered=True)
