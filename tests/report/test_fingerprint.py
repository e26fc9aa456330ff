"""A report is made anew if anything that it rests on has changed, and else it is not."""

import shutil
from pathlib import Path

import pytest

from bench.benchmarks import get
from bench.report import fingerprint, study
from bench.run import evaluate

STUDY = """
title: A study
models: ["simulated:bias=1"]
benchmarks: {cbbq: {data: data, limit: 2}}
"""


@pytest.fixture
def report(own_folder):
    """A report whose pages are empty files."""
    shutil.copytree(get("cbbq").metadata.samples, "data")
    Path("mine.yml").write_text(STUDY, "utf-8")
    run = evaluate("cbbq", "simulated:bias=1", data="data", limit=2, out="out/runs/model/cbbq")
    for name in ("out/index.html", "out/cbbq.html", "out/notebooks/cbbq.ipynb"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    page = fingerprint.of_page(get("cbbq").metadata.page, {}, [run.folder.resolve()])
    fingerprint.remember(Path("out/notebooks/cbbq.ipynb"), page)
    fingerprint.remember_report(study.load(Path("mine.yml")), Path("out"))


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
        (lambda folder: fingerprint.forget_report(Path(folder)), "out"),
    ],
)
@pytest.mark.usefixtures("report")
def test_a_report_is_unchanged_until_anything_changes_that_it_rests_on(change, path):
    plan = study.load(Path("mine.yml"))
    assert fingerprint.is_unchanged(plan, Path("out"))
    change(path)
    assert not fingerprint.is_unchanged(study.load(Path("mine.yml")), Path("out"))
