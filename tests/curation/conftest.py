"""What tests of notebooks/curation share: its modules, projects, and people who fill in sheets."""

from functools import partial

import cbbq_templates
import mcbe_items
import pandas as pd
import pytest
import rounds

MODULES = {"mcbe": mcbe_items, "cbbq": cbbq_templates}
READERS = {"mcbe": mcbe_items.read_drafts, "cbbq": cbbq_templates.read_templates}


class Work:
    """A project of one benchmark in a folder of the test's own."""

    def __init__(self, folder, benchmark, *, answered=False):
        self.folder = rounds.begin(benchmark, folder, answered=answered)
        self.benchmark, self.module = benchmark, MODULES[benchmark]

    def advance(self, **given):
        project = rounds.open_project(self.folder, self.module.ROLES)
        items, faults = READERS[self.benchmark](project)
        return rounds.advance(project, self.module.plan(project), items, faults, **given)

    def release(self):
        project = rounds.open_project(self.folder, self.module.ROLES)
        return self.module.release(project, self.advance())

    def answer(self, sheet, row, column, value):
        """Change a cell of a filled-in sheet, with its rows in the order of the items."""
        path = self.folder / f"sheets/{sheet}.csv"
        table = pd.read_csv(path, dtype=str).fillna("").sort_values("item_id", ignore_index=True)
        table.loc[row, column] = value
        table.to_csv(path, index=False)

    def change(self, file, old, new):
        """Replace a text of a file."""
        path = self.folder / file
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    def fill(self, answer):
        """Fill in all sheets that went out, as people do in a spreadsheet program."""
        for path in sorted(self.folder.glob("sheets/*/*.xlsx")):
            rows = pd.read_excel(path, dtype=str, keep_default_na=False).to_dict("records")
            filled = [row | answer(path.parent.name, row) for row in rows]
            pd.DataFrame(filled).to_excel(path, index=False)


@pytest.fixture
def begin(tmp_path):
    """`begin("mcbe")`: the example of a benchmark as a project, `answered` by people or not."""
    return partial(Work, tmp_path / "project")
