"""Study files: what is misspelt or wrong is refused with its key, before anything runs."""

import re
import shutil

import pytest

from bench.core.errors import BadInput
from bench.data import SAMPLES
from bench.report import build, study

GOOD = """
title: A study
question: Does it work?
models: ["simulated:bias=0.5", "tiny:s"]
benchmarks:
  cbbq: {limit: 3, categories: [gender]}
  nli-coal:
options: {seed: 3, preset: paper}
"""
VARIANTS = """
title: A study
models:
  - simulated:bias=0.5
  - {model: "tiny:s", name: Small, temperature: 0.5, dtype: float32}
benchmarks:
  cbbq:
    - {name: Q, limit: 3}
    - {name: Q+IF, limit: 3, settings: {prompting: Q+IF}, page: false}
  nli_coal: {limit: 4}
analyses: {compare_models: , self_correction: , explore: {variants: [Q+IF, nli_coal]}}
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


def by_key(plan):
    """The options of the first model's runs, by the key of the variant."""
    return {variant.key: plan.run_options(plan.models[0], variant) for variant in plan.variants}


def test_a_study_is_read_with_its_options(load):
    plan = load()
    assert (plan.name, plan.title, plan.question) == ("mine", "A study", "Does it work?")
    assert [model.model for model in plan.models] == ["simulated:bias=0.5", "tiny:s"]
    assert by_key(plan) == {
        "cbbq": {"seed": 3, "preset": "paper", "limit": 3, "categories": ["gender"]},
        "nli_coal": {"seed": 3, "preset": "paper"},
    }


@pytest.mark.parametrize(
    ("name", "kind"), [("answers.jsonl", "replay"), ("p.csv", "predictions"), ("x.gguf", "")]
)
def test_paths_of_models_are_meant_from_the_study_file(load, tmp_path, name, kind):
    (tmp_path / name).write_text("")
    prefix = f"{kind}:" if kind else ""
    plan = load("simulated:bias=0.5", f"{prefix}{name}")
    assert plan.models[0].model == f"{prefix}{tmp_path / name}"


def test_paths_and_options_of_a_benchmark(load, tmp_path):
    for name in ("marks.jsonl", "own.toml"):
        (tmp_path / name).write_text("")
    for name in ("items", "samples"):
        shutil.copytree(SAMPLES / "mcbe", tmp_path / name)
    own = "judge: 'replay:marks.jsonl', prompts: own.toml#x, settings: {context_order: judge}"
    # The package's samples, or a folder; the notebooks' own default is the samples, which are not
    # meant where a study names no data.
    folders = {"samples": "samples", "./samples": str(tmp_path / "samples")}
    for given, meant in {"items": str(tmp_path / "items"), **folders}.items():
        text = GOOD.replace("{seed: 3,", "{judge: 'simulated:', max_new_tokens: 64, seed: 3,")
        plan = load("nli-coal:", f"mcbe: {{{own}, data: {given}}}", text)
        options = by_key(plan)
        assert options["mcbe"]["judge"] == f"replay:{tmp_path / 'marks.jsonl'}"
        assert options["mcbe"]["prompts"] == f"{tmp_path / 'own.toml'}#x"
        assert options["mcbe"]["settings"] == {"context_order": "judge"}
        assert options["cbbq"]["judge"] == "simulated:"
        assert options["cbbq"]["max_new_tokens"] == options["mcbe"]["max_new_tokens"] == 64
        shown = build._notebooks(plan, tmp_path / "mine")
        assert options["mcbe"]["data"] == shown["mcbe"]["data"] == meant
        assert shown["cbbq"]["data"] == ""


def test_an_analysis_has_the_study_s_data_and_other_runs(load, tmp_path):
    shutil.copytree(SAMPLES / "mcbe", tmp_path / "items")
    analyses = "{compare_models: {runs: [other/runs/*/*]}, explore: , data_quality: {least: 0.7}}"
    plan = load("nli-coal:", "mcbe: {data: items}", f"{GOOD}analyses: {analyses}\n")
    other = str(tmp_path / "other/runs/*/*")
    assert plan.analyses["compare_models"] == study.Analysis({"runs": [other]})
    assert plan.analyses["explore"] == study.Analysis({})
    given = build._notebooks(plan, tmp_path / "mine")
    assert (given["compare_models"]["runs"], given["explore"]["runs"]) == ([other], [])
    quality = given["data_quality"]
    assert (quality["benchmarks"], quality["least"]) == (["cbbq", "mcbe"], 0.7)
    assert quality["data"] == {"mcbe": str(tmp_path / "items")}


def test_label_names_are_given_by_model(load, tmp_path):
    (tmp_path / "mine").mkdir()
    own = "nli-coal: {label_names: {./mine: [entailment, neutral, contradictory]}}"
    plan = load("nli-coal:", own, GOOD.replace("tiny:s", "./mine"))
    names = ["entailment", "neutral", "contradiction"]
    assert by_key(plan)["nli_coal"]["label_names"] == {str(tmp_path / "mine"): names}


def test_variants_and_models_have_options_of_their_own(load, tmp_path):
    plan = load(text=VARIANTS)
    simulated, small = plan.models
    q, instructed, nli = plan.variants
    assert [variant.key for variant in plan.variants] == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert instructed.title == "CBBQ (Q+IF)"
    shared = {"top_p": 0.9, "thinking_tokens": 0, "temperature": 0.5, "dtype": "float32"}
    shared["name"] = "Small"
    assert plan.run_options(small, nli) == {**shared, "limit": 4}
    options = {**shared, "limit": 3, "settings": {"prompting": "Q+IF"}}
    assert plan.run_options(small, instructed) == options
    # Options of sampling that all share are for those that write replies.
    assert plan.run_options(simulated, q) == {"limit": 3}
    pages = build._notebooks(plan, tmp_path / "r")
    assert list(pages) == ["cbbq-Q", "nli_coal", "compare_models", "self_correction", "explore"]
    assert build.analysed(plan, "compare_models") == ["cbbq-Q", "nli_coal"]
    assert build.analysed(plan, "self_correction") == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert build.analysed(plan, "explore") == ["cbbq-Q+IF", "nli_coal"]
    # Settings of a model and of a variant are merged.
    text = VARIANTS.replace("dtype: float32", "settings: {labels: audited}")
    text = text.replace("[Q+IF, nli_coal]", "[Q]")
    plan = load("  nli_coal: {limit: 4}\n", "", text)
    options = plan.run_options(plan.models[1], plan.variants[1])
    assert options["settings"] == {"prompting": "Q+IF", "labels": "audited"}


CODE = '!!python/object/apply:os.system ["touch ran"]'
WRONG = [
    (
        "question:",
        "qestion:",
        "key in study 'qestion' is unknown; allowed: title, question, models",
    ),
    ("limit: 3", "limt: 3", "key `benchmarks: cbbq`: key 'limt' is unknown"),
    ("limit: 3", "limit: three", "key `benchmarks: cbbq`: limit: 'three' is not a whole number"),
    ("limit: 3", "limit: true", "limit: True is not a whole number"),
    ("limit: 3", "limit: 3000000000", "limit: 3000000000 is more than 2,147,483,647"),
    ("preset: paper", "presett: paper", "key `options`: key 'presett' is unknown"),
    ("preset: paper", "preset: best", "preset 'best' is unknown"),
    ("cbbq:", "cbqb:", "benchmark 'cbqb' is unknown"),
    ("{limit: 3, categories: [gender]}", "[]", "expected options, or a list of variants; found []"),
    ("{limit: 3, categories: [gender]}", "3", "expected options, found 3"),
    ("[gender]", "[gendr]", "category of cbbq 'gendr' is unknown"),
    ("categories: [gender]", "tasks: [ambigous]", "task of cbbq 'ambigous' is unknown"),
    ("categories: [gender]", "data: nowhere", "nowhere: no such folder"),
    ('"tiny:s"', '"tiny:x"', "size 'x' is unknown"),
    ('"tiny:s"', '"./nowhere"', "no such model folder or file"),
    ('"tiny:s"', "{tiny: s}", "is not a model"),
    ('"tiny:s"', '"simulated:bias=0.5"', "names a model twice"),
    ('"tiny:s"', "{model: 'tiny:s', key: K}", "key `models: tiny:s: key`: is no endpoint"),
    ('models: ["simulated:bias=0.5", "tiny:s"]', "", "key `models` is missing"),
    ("title: A study", "title: [", "not YAML"),
    ("title: A study", f"title: {CODE}", "not YAML"),
    ("nli-coal:", "mcbe: {judge: 'gpt:4'}", "`benchmarks: mcbe`: model gpt:4: unknown kind 'gpt'"),
    ("nli-coal:", "mcbe: {judge: 'replay:no'}", "no: no such file of recorded answers"),
    ("nli-coal:", "mcbe: {settings: {bos: 'yes'}}", "value of bos 'yes' is unknown; allowed: tok"),
    ("nli-coal:", "mcbe: {settings: {mood: '1'}}", "setting of mcbe 'mood' is unknown"),
    ("nli-coal:", "mcbe: {settings: bos}", "`benchmarks: mcbe`: settings: 'bos' is not a mapping"),
    (
        "nli-coal:",
        "nli-coal: {label_names: {'simulated:': [entailment, neutral, contradiction]}}",
        "label_names: expected models of this study, each with a list",
    ),
    ("nli-coal:", "nli-coal: {label_names: [neutral]}", "in the order of LABEL_0 to LABEL_2"),
    ("{seed: 3,", "{judge: {a: b},", "key `options`: judge: {'a': 'b'} is not a text"),
    ("options:", "language: fr\noptions:", "key `language`: language 'fr' is unknown"),
    ("options:", "keys: [a]\noptions:", "key `keys`: expected HOST: NAME of an environment"),
    ("options:", "analyses: [explore]\noptions:", "key `analyses`: expected notebook names"),
    (
        "options:",
        "analyses: {Explore: }\noptions:",
        "`analyses: Explore`: is no name of a notebook",
    ),
    ("options:", "analyses: {explore: [a]}\noptions:", "expected parameters of the notebook"),
    ("options:", "analyses: {explore: {runs: x}}\noptions:", "expected a list of folders or patt"),
]
WRONG_VARIANTS = [
    ("name: Q+IF,", "name: Q,", "key `benchmarks: cbbq`: two variants have the name 'Q'"),
    ("{name: Q, limit: 3}", "{limit: 3}", "expected variants like {name: Q, limit: 20}"),
    ("nli_coal: {", "CBBQ: {", "key `benchmarks: CBBQ`: cbbq is there twice"),
    ("nli_coal: {", "cbbq: {", "key 'cbbq' is there twice"),
    ("page: false", "page: never", "`benchmarks: cbbq: Q+IF: page`: 'never' is not true or false"),
    ("[Q+IF, nli_coal]", "[Q+IV]", "variant 'Q+IV' is unknown; allowed: Q, Q+IF, nli_coal"),
    ("[Q+IF, nli_coal]", "[]", "expected a list of names, found []; there are Q, Q+IF, nli_coal"),
    ("simulated:bias=0.5", '{model: "tiny:s", name: Small}', "names a model twice (tiny:s)"),
    (
        "simulated:bias=0.5",
        '{model: "simulated:", name: Small}',
        "two models have the name 'Small'",
    ),
    ("name: Small", "name: 7", "key `models: tiny:s: name`: 7 is not a text"),
    ("temperature: 0.5", "temprature: 0.5", "key `models: tiny:s`: key 'temprature' is unknown"),
    (
        "temperature: 0.5",
        "categories: [gender]",
        "key `models: Small`: category of nli_coal 'gender' is unknown",
    ),
    ("top_p: 0.9", "top_p: 9", "key `options`: --top-p 9.0: has to be above 0 and at most 1"),
]


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [*((GOOD, *wrong) for wrong in WRONG), *((VARIANTS, *wrong) for wrong in WRONG_VARIANTS)],
)
def test_a_wrong_study_is_refused_with_its_key(load, tmp_path, text, old, new, message):
    with pytest.raises(BadInput, match=rf"mine\.yml.*{re.escape(message)}"):
        load(old, new, text)
    assert not (tmp_path / "ran").exists()
