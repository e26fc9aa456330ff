"""Study files: what is misspelt or wrong is refused with its key, before anything runs."""

import re
import shutil
from pathlib import Path

import pytest

from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.core.shipped import NOTEBOOKS
from bench.report import build, study, study_runs
from bench.scorers.base import digest
from tests.helpers.cases import cases, edited


@pytest.fixture
def load(tmp_path):
    """`load((old, new)..., file)`: the study of a file beside this one, with texts replaced."""

    def read(*changes, file="study.yml"):
        (tmp_path / "mine.yml").write_text(edited(__file__, file, *changes), "utf-8")
        return study.load(tmp_path / "mine.yml")

    return read


def parameters_of(plan):
    """The parameters of each page's notebook, by the name of the page."""
    return {job.name: job.parameters for job in build.page_jobs(plan)}


def test_paths_are_meant_from_the_study_file(load, tmp_path):
    for name in ("answers.jsonl", "p.csv", "x.gguf", "marks.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "own.toml").write_text("version = '1'\n[x.bias_scoring]\nprompt = '{sentence}'\n")
    (tmp_path / "nli").mkdir()
    plan = load(file="paths.yml")
    paths = [model.model.partition(":")[2] or model.model for model in plan.models]
    assert paths == [str(tmp_path / name) for name in ("answers.jsonl", "p.csv", "x.gguf", "nli")]
    mcbe, cbbq, nli = (plan.run_options(plan.models[3], variant) for variant in plan.variants)
    assert cbbq == {"judge": "simulated:", "max_new_tokens": 64}
    own = {"judge": f"replay:{tmp_path / 'marks.jsonl'}", "prompts": f"{tmp_path / 'own.toml'}#x"}
    assert mcbe == {**cbbq, **own}
    labels = {str(tmp_path / "nli"): ["entailment", "neutral", "contradiction"]}
    assert nli == {**cbbq, "label_names": labels}


@pytest.mark.parametrize(
    ("data", "folder"), [("items", "items"), ("./samples", "samples"), ("samples", "")]
)
def test_data_are_a_folder_beside_the_study_or_the_samples(load, tmp_path, data, folder):
    for name in ("items", "samples"):
        shutil.copytree(get("cbbq").metadata.samples, tmp_path / name)
    plan = load(("limit: 3, cat", f"data: {data}, cat"))
    meant = str(tmp_path / folder) if folder else "samples"
    assert plan.run_options(plan.models[0], plan.variants[0])["data"] == meant
    assert parameters_of(plan)["cbbq-Q"]["data"] == meant


def test_the_name_of_a_model_in_the_paper_reaches_the_pages_with_printed_numbers(load):
    assert all("paper" not in given for given in parameters_of(load()).values())
    given = parameters_of(
        load(("- simulated:bias=0.5", '- {model: "simulated:bias=0.5", paper: X}'))
    )
    assert given["cbbq-Q"]["paper"] == {"simulated:bias=0.5": "X"}
    assert "paper" not in given["compare_models"]


def test_an_analysis_has_the_study_s_data_and_other_runs(load, tmp_path):
    shutil.copytree(get("mcbe").metadata.samples, tmp_path / "items")
    analyses = "compare_models: {runs: [other/runs/*/*]}, "
    analyses += "data_quality: [{least: 0.7}, {name: one, benchmarks: [cbbq]}]"
    plan = load(("compare_models:", analyses), ("nli-coal: {", "mcbe: {data: items, "))
    given = parameters_of(plan)
    other = str(tmp_path / "other/runs/*/*")
    assert (given["compare_models"]["runs"], given["explore"]["runs"]) == ([other], [])
    quality = given["data_quality"]
    assert (quality["benchmarks"], quality["least"]) == (["cbbq", "mcbe"], 0.7)
    assert quality["data"] == {"mcbe": str(tmp_path / "items")}
    assert given["data_quality-one"]["data"] == {}


def test_variants_and_models_have_options_of_their_own(load, tmp_path):
    plan = load()
    assert (plan.name, plan.title, plan.question) == ("mine", "A study", "Does it work?")
    simulated, small = plan.models
    q, instructed, nli = plan.variants
    assert [variant.key for variant in plan.variants] == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert instructed.title == "CBBQ (Q+IF)"
    # Settings, arguments and limits of a model and of a variant are merged.
    shared = {"name": "Small", "thinking_tokens": 0, "temperature": 0.5}
    assert plan.run_options(small, nli) == {**shared, "template_arguments": {"a": 1, "b": 2}}
    # Options of sampling that all share are for those that write replies.
    assert plan.run_options(simulated, q) == {"limit": 3, "categories": ["gender"]}
    pages = parameters_of(plan)
    assert list(pages) == ["cbbq-Q", "nli_coal", "compare_models", "self_correction", "explore"]
    assert plan.analysed("compare_models") == ["cbbq-Q", "nli_coal"]
    assert plan.analysed("self_correction") == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert plan.analysed("explore") == ["cbbq-Q+IF"]


def test_a_variant_can_be_for_some_models_and_a_notebook_have_several_pages(load, tmp_path):
    pages = "explore: [{variants: [Q]}, {name: told, sheet: ./a.csv}]"
    plan = load(
        ("page: false", "page: false, models: [Small]"), ("explore: {variants: [Q+IF]}", pages)
    )
    cells = study_runs.cells(plan)
    assert [c.model.label for c in cells if c.variant.key == "cbbq-Q+IF"] == ["Small"]
    assert list(plan.analyses) == ["compare_models", "self_correction", "explore", "explore-told"]
    told = plan.analyses["explore-told"]
    assert (told.title("explore-told"), told.parameters) == (
        "Explore (told)",
        {"sheet": str(tmp_path / "a.csv")},
    )
    assert told.source.name == "explore.ipynb"


def test_a_step_that_is_missing_is_named_and_its_model_counted_all_the_same(load, tmp_path):
    model = "{model: ./models/own-bert, first: bench train x --out models/own-bert}"
    plan = load(("simulated:bias=0.5", model))
    with pytest.raises(BadInput, match=r"run this first: bench train x --out models/own"):
        build.make(plan, tmp_path / "out")
    assert len(study_runs.estimates(plan, tmp_path / "out")) == 6
    (tmp_path / "models" / "own-bert").mkdir(parents=True)
    assert load(("simulated:bias=0.5", model)).steps == []


def test_each_model_of_a_study_has_its_own_price(load, tmp_path):
    own = "temperature: 0.5, template_arguments: {a: 1}"
    cheap = f"{{model: 'tiny:s', name: Cheap, {own}, price: [1, 1]}}"
    plan = load(("simulated:bias=0.5", cheap), ("name: Small,", "name: Small, price: [2, 2],"))
    estimates = study_runs.estimates(plan, tmp_path / "out")
    costs = [[e.total.cost_low for e in estimates if e.model == m] for m in ("Cheap", "Small")]
    assert min(costs[0]) > 0
    assert costs[1] == pytest.approx([2 * cost for cost in costs[0]])


def test_a_limit_of_0_means_all_and_comes_before_a_limit_of_the_study(load):
    plan = load(
        ("limit: 3, categories: [gender]}", "limit: 0}"), ("options: {", "options: {limit: 5, ")
    )
    limits = [plan.run_options(plan.models[0], variant)["limit"] for variant in plan.variants]
    assert limits == [None, 3, 5]


def test_a_dry_run_without_data_that_can_be_read_gives_its_reason_once(bench):
    shutil.copytree(get("cbbq").metadata.samples, "data")
    for file in Path("data").rglob("*.csv"):
        file.write_bytes(b"\xff\xfe\x00")
    broken = "nli_coal: {categories: [zh]", "cbbq: {data: data"
    Path("s.yml").write_text(edited(__file__, "two_models.yml", broken), "utf-8")
    status, out, err = bench("report s.yml --dry-run")
    assert (status, out) == (2, "")
    assert err.count("templates_generate_neg.csv, line 1") == 1
    assert "simulated:bias=1 on CBBQ and 1 more" in err


def test_released_data_are_never_the_samples(load, user):
    released = ("limit: 3, cat", "data: released, cat")
    with pytest.raises(BadInput, match=r"cbbq: Q`.*run this first: bench fetch cbbq"):
        load(released)
    shutil.copytree(get("cbbq").metadata.samples, user / "cbbq")
    assert load(released).variants[0].data == "released"


@cases(__file__, "wrong_studies.csv")
def test_a_wrong_study_is_refused_with_its_key(load, tmp_path, case):
    with pytest.raises(BadInput, match=rf"mine\.yml.*{re.escape(case['message'])}"):
        build.page_jobs(load((case["old"], case["new"])))
    assert not (tmp_path / "ran").exists()


def test_models_whose_names_are_spelt_alike_as_a_folder_have_different_ones(load):
    plan = load(("simulated:bias=0.5", "a/b\n  - a_b\n  - A_B\n  - {model: a/B, name: A}"))
    first, second, *others = [model.folder for model in plan.models][:4]
    assert (first, second) == ("a_b", f"a_b-{digest(['a_b', None])}")
    assert len({folder.lower() for folder in (first, second, *others)}) == 4


@pytest.mark.parametrize(
    ("old", "new", "n_pages"),
    [
        # Variants and analyses with names that are spelt alike as a file, also in other letters.
        ("name: Q,", "name: q+if,", 5),
        ("name: Q,", "name: 'Q+IF?', page: false,", 4),
        ("self_correction:", "explore: [{name: told}, {name: told!}]}#", 5),
        # Notebooks of one's own with the name of another one, of a benchmark, or of a page of ours.
        ("self_correction:", "./a/words.ipynb: {}, ./b/Words.ipynb: {}, explore: }#", 6),
        ("self_correction:", "./cbbq-Q.ipynb: , ./nli_coal.ipynb: , explore: }#", 6),
        ("self_correction:", "./index.ipynb: , ./answers-cbbq-Q.ipynb: , explore: }#", 6),
        ("self_correction:", "./a/words.ipynb: , a/words.ipynb: , explore: }#", 6),
        ("nli-coal: {", "nli_coal: {limit: 1}\n  nli-coal: {", 6),
    ],
)
def test_no_two_variants_or_analyses_share_a_folder_or_a_page(load, tmp_path, old, new, n_pages):
    for name in ("a/words", "b/Words", "cbbq-Q", "nli_coal", "index", "answers-cbbq-Q"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(NOTEBOOKS / "explore.ipynb", tmp_path / f"{name}.ipynb")
    plan = load((old, new))
    pages = [job.name for job in build.page_jobs(plan)]
    answers = [f"answers-{variant.key}" for variant in plan.variants if variant.page]
    assert len(pages) == n_pages
    assert len({name.lower() for name in ("index", *pages, *answers)}) == 1 + n_pages + len(answers)
    folders = {variant.key.lower() for variant in plan.variants}
    assert len(folders) == len(plan.variants)
