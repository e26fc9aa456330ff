"""A report is made anew if anything that it rests on has changed, and else it is not."""

import shutil
from pathlib import Path

import pytest

from bench.benchmarks import get
from bench.report import fingerprint, study
from bench.run import evaluate
from tests.helpers.cases import edited


def edit(path):
    """Change a file, and the title if it is the study's."""
    text = Path(path).read_text("utf-8").replace("A study", "Another")
    Path(path).write_text(text + "\n", "utf-8")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (edit, "mine.yml"),
        (edit, "data/age/ambiguous/templates_generate_neg.csv"),
        (edit, "out/runs/model/cbbq/run.json"),
        (lambda page: Path(page).unlink(), "out/cbbq.html"),
        # A report that is being made.
        (lambda index: fingerprint.forget(Path(index)), "out/index.html"),
    ],
)
def test_a_report_is_unchanged_until_anything_changes_that_it_rests_on(own_folder, change, path):
    shutil.copytree(get("cbbq").metadata.samples, "data")
    Path("mine.yml").write_text(edited(__file__, "own_data.yml"), "utf-8")
    run = evaluate("cbbq", "simulated:bias=1", data="data", limit=2, out="out/runs/model/cbbq")
    for name in ("out/index.html", "out/cbbq.html", "out/notebooks/cbbq.ipynb"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    page = fingerprint.of_page(get("cbbq").metadata.page, {}, [run.folder.resolve()])
    fingerprint.remember(Path("out/notebooks/cbbq.ipynb"), page)
    plan = study.load(Path("mine.yml"))
    report = fingerprint.of_report(plan, Path("out"))
    fingerprint.remember(Path("out/index.html"), report)
    assert fingerprint.is_unchanged(plan, Path("out"))
    change(path)
    assert not fingerprint.is_unchanged(study.load(Path("mine.yml")), Path("out"))
