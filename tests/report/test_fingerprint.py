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
    for name in ("out/index.html", "out/cbbq.html", "out/tables/cbbq/scores.csv"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    page = fingerprint.of_page(get("cbbq").metadata.page, {}, [run.folder.resolve()])
    Path("out/notebooks").mkdir()
    fingerprint.remember(Path("out/notebooks/cbbq.ipynb"), page)
    fingerprint.remember_report(study.load(Path("mine.yml")), Path("out"))
    return Path("out")


def is_unchanged(report):
    return fingerprint.is_unchanged(study.load(Path("mine.yml")), report)


def test_a_report_is_unchanged_after_it_was_made(report):
    assert is_unchanged(report)


@pytest.mark.parametrize(
    "path",
    ["mine.yml", "data/age/ambiguous/templates_generate_neg.csv", "out/runs/model/cbbq/run.json"],
)
def test_a_changed_file_changes_the_report(report, path):
    text = Path(path).read_text("utf-8")
    Path(path).write_text(text.replace("A study", "Another") + "\n", "utf-8")
    assert not is_unchanged(report)


@pytest.mark.parametrize("name", ["cbbq.html", "index.html"])
def test_a_missing_page_changes_the_report(report, name):
    (report / name).unlink()
    assert not is_unchanged(report)


def test_a_report_that_is_being_made_is_not_unchanged(report):
    fingerprint.forget_report(report)
    assert not is_unchanged(report)
