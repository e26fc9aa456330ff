"""The studies of the papers and of three small models: planned, and run by simulated models."""

import re
import shutil
from pathlib import Path

import nli_sets
import pytest
import yaml

from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.report import build, study, study_runs

REPORTS = Path(__file__).parents[2] / "reports"
# Models, variants, runs, and pages without those of questions and answers.
SIZES = {
    "mcbe_paper": (11, 2, 14, 8),
    "cbbq_paper": (12, 6, 57, 9),
    "nli_coal_paper": (14, 1, 14, 6),
    "small": (3, 3, 9, 7),
}
# Pages with published numbers beside the simulated models' numbers, some with names of models.
PUBLISHED = {
    "mcbe_paper": {"mcbe-paper", "friedman_test", "model_size_trends", "prompt_robustness"},
    "cbbq_paper": {"model_size_trends"},
    "nli_coal_paper": {f"meta_evaluation-{name}" for name in ("English", "Japanese", "Chinese")},
}
# Pages that wait for marks of people.
LEFT_OUT = {"mcbe_paper": {"judge_agreement"}}


@pytest.fixture(scope="module", autouse=True)
def released(tmp_path_factory):
    """Our samples in place of the released data, with Japanese sets and McBE's prompts."""
    folder = tmp_path_factory.mktemp("released")
    for name in ("mcbe", "cbbq", "nli_coal"):
        shutil.copytree(get(name).metadata.samples, folder / name)
    manifest = folder / "mcbe/dataset.toml"
    manifest.write_text(f'wording = "ours"\n{manifest.read_text("utf-8")}', "utf-8")
    shutil.copy(get("mcbe").metadata.prompts, folder / "mcbe")
    nli_sets.write_sets([nli_sets.read_pack(nli_sets.PACKS / "ja")], folder / "nli_coal")
    plain = folder / "nli_coal/ja_v0.1/bias-eval-set_v0.1/untokenized"
    tokenized = shutil.copytree(plain, plain.with_name("tokenized"))
    for file in tokenized.iterdir():
        file.rename(file.with_name(file.name.replace("_v", "-tok_v")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_DATA", str(folder))
        yield


@pytest.mark.parametrize("name", SIZES)
def test_a_study_is_planned_without_a_network(name):
    plan = study.load(REPORTS / f"{name}.yml")
    cells, jobs = study_runs.cells(plan), build.page_jobs(plan)
    assert (len(plan.models), len(plan.variants), len(cells), len(jobs)) == SIZES[name]
    assert plan.shared.options["data"] == "released"


def test_a_training_comes_first_and_makes_the_folder_that_the_paper_names(tmp_path):
    plan = study.load(REPORTS / "nli_coal_paper.yml")
    folders = [re.search(r"--out (\S+)", model.first)[1] for model in plan.models]
    assert [model.model for model in plan.models] == [str(REPORTS.parent / f) for f in folders]
    with pytest.raises(BadInput, match=r"run this first: bench train .*; bench train"):
        build.make(plan, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_study_counts_all_runs_and_makes_all_pages(name, tmp_path):
    plan = study.load(REPORTS / f"{name}.yml")
    counted = study_runs.estimates(plan, tmp_path / "counted")
    assert len(counted) == SIZES[name][2]
    assert all(run.total.requests > 0 for run in counted)
    # Simulated models and judges, a few items, and tiny models for the eleven rates.
    content = yaml.safe_load(plan.path.read_text("utf-8"))
    for k, model in enumerate(content["models"]):
        own = {key: model[key] for key in ("name", "categories", "settings") if key in model}
        content["models"][k] = {"model": f"simulated:bias={(k + 1) / 20},seed={k}", **own}
    content.pop("keys", None)
    judged = {"judge": "simulated:"} if "judge" in content["options"] else {}
    content["options"] = {"data": "released", "limit": 4, **judged}
    for part in content["analyses"].get("meta_evaluation", ()):
        del part["model"], part["data"], part["trained"]
        part["options"] = {"data": "samples", "limit": 2}
    path = tmp_path / f"{name}.yml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
    made = build.make(study.load(path), tmp_path / "out")
    assert made.failed == []
    pages = {path.stem for path in made.page.parent.glob("*.html")}
    expected = {job.name for job in build.page_jobs(plan)}
    assert expected - pages == LEFT_OUT.get(name, set())
    index = made.page.read_text("utf-8")
    assert ("there is no such file with marks" in index) is (name in LEFT_OUT)
    tables = made.page.parent.glob("tables/*/*.csv")
    beside = {path.parent.name for path in tables if path.name.startswith(("published", "beside"))}
    assert beside >= PUBLISHED.get(name, set())
