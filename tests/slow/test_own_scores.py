"""Notebooks on tables of scores of one's own, as people have them."""

import nbformat
import pandas as pd
import papermill
import pytest

from bench.core.shipped import NOTEBOOKS
from tests.metrics.test_elsewhere import paper_like

pytestmark = pytest.mark.slow
SIZES = ["0.5B", "1.5b", "3B", "7 B", "14B", "32B", "72B", "350M", "1.1B", "1T", ""]
FINDINGS = {
    "friedman_test": "m10 ranks first (highest scores)",
    "compare_models": "all tasks, score (mine): the best model is m10",
    "model_size_trends": "Left out: m10 (no billions)",
    "prompt_robustness": "of 55 scores are shown to change",
    "self_correction": "score falls in",
}


def as_a_colleague(table):
    """Return a table with blanks, averages by another name, and NA, as spreadsheets have them."""
    keys = [name for name in table if name not in ("category", "score")]
    means = table.groupby(keys, sort=False).score.mean().reset_index().assign(category="All ")
    table = table.assign(model=table.model + "\u00a0")
    table["score"] = table.score.astype(object).where(table.index != 7, "NA")
    table = table.rename(columns=str.title)
    return pd.concat([table, means.rename(columns=str.title)])


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("notebook", FINDINGS)
def test_a_table_of_the_documented_columns_makes_a_page(tmp_path, notebook, kind):
    table, file, made = paper_like(), tmp_path / f"mine.{kind}", tmp_path / "made.ipynb"
    if notebook == "model_size_trends":
        table["billions"] = table.model.str[1:].astype(int).map(dict(enumerate(SIZES)))
    if notebook in ("prompt_robustness", "self_correction"):
        other = table.assign(prompts="Q+IF", score=table.score + 1)
        table = pd.concat([table.assign(prompts="Q"), other], ignore_index=True)
    if kind == "csv":
        table.to_csv(file, index=False)
    else:
        as_a_colleague(table).to_excel(file, index=False)
    source = NOTEBOOKS / f"{notebook}.ipynb"
    papermill.execute_notebook(source, made, {"scores": str(file)}, progress_bar=False)
    cells = nbformat.read(made, as_version=4).cells
    said = [cell.outputs for cell in cells if "finding" in cell.metadata.get("tags", [])]
    assert FINDINGS[notebook] in "".join(
        output.get("text", "") for outputs in said for output in outputs
    )
