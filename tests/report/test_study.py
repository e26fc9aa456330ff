"""Study files: what is misspelt or wrong is refused with its key, before anything runs."""

import re
import shutil

import pytest

from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.report import build, study, study_runs

GOOD = """
title: A study
question: Does it work?
models:
  - simulated:bias=0.5
  - {model: "tiny:s", name: Small, temperature: 0.5, template_arguments: {a: 1}}
benchmarks:
  cbbq:
    - {name: Q, limit: 3, categories: [gender]}
    - {name: Q+IF, limit: 3, settings: {prompting: Q+IF}, page: false}
  nli-coal: {template_arguments: {b: 2}}
analyses: {compare_models: , self_correction: , explore: {variants: [Q+IF]}}
options: {top_p: 0.9, thinking_tokens: off}
"""


@pytest.fixture
def load(tmp_path):
    """`load(old, new, text)`: the study of a text in which `old` is replaced."""

    def read(old="", new="", text=GOOD):
        assert old in text
        (tmp_path / "mine.yml").write_text(text.replace(old, new, 1) if old else text, "utf-8")
        return study.load(tmp_path / "mine.yml")

    return read


def parameters_of(plan):
    """The parameters of each page's notebook, by the name of the page."""
    return {job.name: job.parameters for job in build.page_jobs(plan)}


PATHS = """
title: Paths
models: ["replay:answers.jsonl", "predictions:p.csv", x.gguf, ./nli]
benchmarks:
  mcbe: {judge: "replay:marks.jsonl", prompts: own.toml#x}
  cbbq:
  nli-coal: {label_names: {./nli: [entailment, neutral, contradictory]}}
options: {judge: "simulated:", max_new_tokens: 64}
"""


def test_paths_are_meant_from_the_study_file(load, tmp_path):
    for name in ("answers.jsonl", "p.csv", "x.gguf", "marks.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "own.toml").write_text("version = '1'\n[x.bias_scoring]\nprompt = '{sentence}'\n")
    (tmp_path / "nli").mkdir()
    plan = load(text=PATHS)
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
    plan = load("limit: 3, cat", f"data: {data}, cat")
    meant = str(tmp_path / folder) if folder else "samples"
    assert plan.run_options(plan.models[0], plan.variants[0])["data"] == meant
    assert parameters_of(plan)["cbbq-Q"]["data"] == meant


def test_an_analysis_has_the_study_s_data_and_other_runs(load, tmp_path):
    shutil.copytree(get("mcbe").metadata.samples, tmp_path / "items")
    analyses = "compare_models: {runs: [other/runs/*/*]}, data_quality: {least: 0.7}"
    plan = load("compare_models:", analyses, GOOD.replace("nli-coal: {", "mcbe: {data: items, "))
    given = parameters_of(plan)
    other = str(tmp_path / "other/runs/*/*")
    assert (given["compare_models"]["runs"], given["explore"]["runs"]) == ([other], [])
    quality = given["data_quality"]
    assert (quality["benchmarks"], quality["least"]) == (["cbbq", "mcbe"], 0.7)
    assert quality["data"] == {"mcbe": str(tmp_path / "items")}


def test_variants_and_models_have_options_of_their_own(load, tmp_path):
    plan = load()
    assert (plan.name, plan.title, plan.question) == ("mine", "A study", "Does it work?")
    simulated, small = plan.models
    q, instructed, nli = plan.variants
    assert [variant.key for variant in plan.variants] == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert instructed.title == "CBBQ (Q+IF)"
    # Settings, arguments and limits of a model and of a variant are merged.
    shared = {"name": "Small", "top_p": 0.9, "thinking_tokens": 0, "temperature": 0.5}
    assert plan.run_options(small, nli) == {**shared, "template_arguments": {"a": 1, "b": 2}}
    # Options of sampling that all share are for those that write replies.
    assert plan.run_options(simulated, q) == {"limit": 3, "categories": ["gender"]}
    pages = parameters_of(plan)
    assert list(pages) == ["cbbq-Q", "nli_coal", "compare_models", "self_correction", "explore"]
    assert plan.analysed("compare_models") == ["cbbq-Q", "nli_coal"]
    assert plan.analysed("self_correction") == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert plan.analysed("explore") == ["cbbq-Q+IF"]


def test_a_variant_can_be_for_some_models_and_a_notebook_have_several_pages(load, tmp_path):
    text = GOOD.replace("page: false", "page: false, models: [Small]").replace(
        "explore: {variants: [Q+IF]}", "explore: [{variants: [Q]}, {name: told, sheet: ./a.csv}]"
    )
    plan = load(text=text)
    cells = study_runs.cells(plan)
    assert [c.model.label for c in cells if c.variant.key == "cbbq-Q+IF"] == ["Small"]
    assert list(plan.analyses) == ["compare_models", "self_correction", "explore", "explore-told"]
    told = plan.analyses["explore-told"]
    assert (told.title, told.parameters) == ("Explore (told)", {"sheet": str(tmp_path / "a.csv")})
    assert told.source.name == "explore.ipynb"


def test_a_step_that_is_missing_is_named_and_its_model_counted_all_the_same(load, tmp_path):
    model = "{model: ./models/own-bert, first: bench train nli x.jsonl --out models/own-bert}"
    plan = load("simulated:bias=0.5", model)
    with pytest.raises(BadInput, match=r"run this first: bench train nli x.jsonl --out models/own"):
        build.make(plan, tmp_path / "out")
    assert len(study_runs.estimates(plan, tmp_path / "out")) == 6
    (tmp_path / "models" / "own-bert").mkdir(parents=True)
    assert load("simulated:bias=0.5", model).steps == []


def test_released_data_are_never_the_samples(load, user):
    with pytest.raises(BadInput, match=r"cbbq: Q`.*run this first: bench fetch cbbq"):
        load("limit: 3, cat", "data: released, cat")
    shutil.copytree(get("cbbq").metadata.samples, user / "cbbq")
    assert load("limit: 3, cat", "data: released, cat").variants[0].data == "released"


CODE = '!!python/object/apply:os.system ["touch ran"]'
LABELS = "{'simulated:': [entailment, neutral, contradiction]}"
WRONG = [
    ("question:", "qestion:", "key in study 'qestion' is unknown; allowed: title, question"),
    ("nli-coal: {template_arguments: {b: 2}}", "mcbe: 5", "expected options, found 5"),
    ("thinking_tokens: off", "out: here", "key `options`: key 'out' is unknown; allowed: device"),
    ("[gender]", "[gendr]", "category of cbbq 'gendr' is unknown"),
    ("categories: [gender]", "data: nowhere", "nowhere: no such folder"),
    ("simulated:bias=0.5", "{tiny: s}", "is not a model"),
    ("simulated:bias=0.5", "{model: 'tiny:s', name: Small}", "two models have the name 'Small'"),
    ("name: Small", "key: K", "because no model is an endpoint"),
    ("models:", "keys:", "key `models`: is missing"),
    ("title: A study", f"title: {CODE}", "not YAML"),
    ("nli-coal: {", "mcbe: {judge: 'replay:no', ", "no: no such file of recorded answers"),
    ("nli-coal: {", f"nli-coal: {{label_names: {LABELS}, ", "model 'simulated:' is unknown"),
    ("name: Q+IF", "name: Q", "key `benchmarks: cbbq`: two variants have the name 'Q'"),
    ("page: false", "models: [Smal]", "models: name of a model 'Smal' is unknown; allowed"),
    ("explore: {variants: [Q+IF]}", "explore: [{}, {}]", "`analyses: explore`: two analyses have"),
    ("[Q+IF]", "[Q+IV]", "variant 'Q+IV' is unknown; allowed: Q, Q+IF, nli_coal"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_wrong_study_is_refused_with_its_key(load, tmp_path, old, new, message):
    with pytest.raises(BadInput, match=rf"mine\.yml.*{re.escape(message)}"):
        load(old, new)
    assert not (tmp_path / "ran").exists()


def test_models_whose_names_are_spelt_alike_as_a_folder_have_two(load):
    text = "title: Two\nmodels: [a/b, a_b]\nbenchmarks: {cbbq: }\n"
    assert [model.folder for model in load(text=text).models] == ["a_b", "a_b-model"]
