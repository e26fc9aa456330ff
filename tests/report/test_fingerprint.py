"""A page is made anew if anything that it is made of has changed, and else it is not."""

import shutil
from pathlib import Path

import pytest

from bench.benchmarks import get
from bench.core import inputs
from bench.report import fingerprint, study
from bench.report.jobs import page_jobs
from bench.run import evaluate
from tests.helpers.cases import edited


def edit(path):
    """Change a file, and the title if it is the study's."""
    text = Path(path).read_text("utf-8").replace("A study", "Another")
    Path(path).write_text(text + "\n", "utf-8")


def update_package(monkeypatch):
    """Let this process be older than the files of its package."""
    monkeypatch.setattr(inputs.PACKAGE_CODE, "_imported", [])


@pytest.fixture
def plan(own_folder):
    """`plan()`: read the study of a report in `out`, on data in `data`, with two analyses."""
    shutil.copytree(get("cbbq").metadata.samples, "data")
    Path("mine.yml").write_text(edited(__file__, "own_data.yml"), "utf-8")
    Path("scores.csv").write_text("model,score")
    Path("people").mkdir()
    Path("people/one.csv").write_text("item_id,human")
    evaluate("cbbq", "simulated:bias=1", data="data", limit=2, out="out/runs/simulated_bias=1/cbbq")
    evaluate("cbbq", "simulated:bias=0", data="data", limit=2, out="others/cbbq")
    return lambda: study.load(Path("mine.yml"))


def test_what_a_page_is_made_of_includes_files_at_any_depth_of_its_parameters(plan, monkeypatch):
    jobs = {job.name: job for job in page_jobs(plan())}
    report = Path("out").resolve()

    def hashes():
        shared = fingerprint.of_study(plan())
        return {name: fingerprint.of_page(shared, job, report) for name, job in jobs.items()}

    def changed(path):
        before = hashes()
        edit(path)
        return {name for name, value in hashes().items() if before[name] != value}

    assert changed("scores.csv") == {"compare_models"}
    assert changed("people/one.csv") == {"judge_agreement"}
    assert changed("others/cbbq/run.json") == {"compare_models"}
    assert changed("data/age/ambiguous/templates_generate_neg.csv") == set(jobs)
    # Tables that pages write, and scores that we compute, are no inputs.
    shutil.copytree("people", "out/tables/cbbq")
    shutil.copytree("people", "others/cbbq/cache")
    before = hashes()
    assert before == hashes()
    edit("out/tables/cbbq/one.csv")
    edit("others/cbbq/cache/one.csv")
    assert before == hashes()
    # A process that is older than its code knows no hash of what it has imported.
    update_package(monkeypatch)
    assert not set(before.values()) & set(hashes().values())
