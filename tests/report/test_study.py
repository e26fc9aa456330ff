"""Study files: what is misspelt or wrong is refused with the key that is, before anything runs."""

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


def load(tmp_path, text):
    path = tmp_path / "mine.yml"
    path.write_text(text, "utf-8")
    return study.load(path)


def by_key(found):
    """The options of the first model's runs, by the key of the variant."""
    return {variant.key: found.run_options(found.models[0], variant) for variant in found.variants}


def test_a_study_is_read_with_its_options(tmp_path):
    found = load(tmp_path, GOOD)
    assert found.name == "mine"
    assert [model.model for model in found.models] == ["simulated:bias=0.5", "tiny:s"]
    assert by_key(found) == {
        "cbbq": {"seed": 3, "preset": "paper", "limit": 3, "categories": ["gender"]},
        "nli_coal": {"seed": 3, "preset": "paper"},
    }


def test_paths_are_meant_from_the_study_file(tmp_path):
    (tmp_path / "answers.jsonl").write_text("")
    found = load(tmp_path, GOOD.replace("simulated:bias=0.5", "replay:answers.jsonl"))
    assert found.models[0].model == f"replay:{tmp_path / 'answers.jsonl'}"


def test_an_analysis_may_have_other_runs_too(tmp_path):
    found = load(
        tmp_path, GOOD + "analyses: {compare_models: {runs: [other/runs/*/*]}, explore: }\n"
    )
    other = str(tmp_path / "other" / "runs" / "*" / "*")
    assert found.analyses == {
        "compare_models": study.Analysis({"runs": [other]}),
        "explore": study.Analysis({}),
    }
    given = build._notebooks(found, tmp_path / "mine")
    assert given["compare_models"]["runs"] == [other]
    assert given["explore"]["runs"] == []
    for wrong, said in (
        ("{runs: x}", "expected a list of folders or patterns, found 'x'"),
        ("[a]", "expected parameters of the notebook"),
    ):
        with pytest.raises(BadInput, match=said):
            load(tmp_path, GOOD + f"analyses: {{compare_models: {wrong}}}\n")


def test_an_analysis_of_data_is_of_the_study_s(tmp_path):
    shutil.copytree(SAMPLES / "mcbe", tmp_path / "items")
    text = (
        GOOD.replace("nli-coal:", "mcbe: {data: items}")
        + "analyses: {data_quality: {least: 0.7}}\n"
    )
    given = build._notebooks(load(tmp_path, text), tmp_path / "mine")["data_quality"]
    assert given["benchmarks"] == ["cbbq", "mcbe"]
    assert given["data"] == {"mcbe": str(tmp_path / "items")}
    assert given["least"] == 0.7


def test_a_judge_and_settings_may_be_given_to_all_or_to_one_benchmark(tmp_path):
    text = GOOD.replace(
        "nli-coal:", "mcbe: {judge: 'simulated:seed=1', settings: {context_order: judge}}"
    )
    found = load(
        tmp_path, text.replace("{seed: 3,", "{judge: 'simulated:', max_new_tokens: 64, seed: 3,")
    )
    options = by_key(found)
    assert options["mcbe"]["judge"] == "simulated:seed=1"
    assert options["mcbe"]["settings"] == {"context_order": "judge"}
    assert (options["cbbq"]["judge"], options["cbbq"]["max_new_tokens"]) == ("simulated:", 64)


def test_paths_of_a_benchmark_are_meant_from_the_study_file(tmp_path):
    (tmp_path / "marks.jsonl").write_text("")
    (tmp_path / "own.toml").write_text("")
    (tmp_path / "items").mkdir()
    (tmp_path / "items/age.csv").write_bytes((SAMPLES / "mcbe/age.csv").read_bytes())
    own = "mcbe: {judge: 'replay:marks.jsonl', prompts: own.toml#x, data: items}"
    found = load(tmp_path, GOOD.replace("nli-coal:", own))
    found = by_key(found)["mcbe"]
    assert found["judge"] == f"replay:{tmp_path / 'marks.jsonl'}"
    assert found["prompts"] == f"{tmp_path / 'own.toml'}#x"
    assert found["data"] == str(tmp_path / "items")


def test_a_benchmark_s_data_are_the_samples_a_folder_or_what_is_installed(tmp_path):
    shutil.copytree(SAMPLES / "mcbe", tmp_path / "samples")
    for given, meant in (("samples", "samples"), ("./samples", str(tmp_path / "samples"))):
        plan = load(tmp_path, GOOD.replace("nli-coal:", f"mcbe: {{data: {given}}}"))
        assert by_key(plan)["mcbe"]["data"] == meant
        shown = build._notebooks(plan, tmp_path / "mine")
        # The notebooks' own default is the samples, which are not meant where a study names no data.
        assert (shown["mcbe"]["data"], shown["cbbq"]["data"]) == (meant, "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "question:",
            "qestion:",
            "key in study 'qestion' is unknown; allowed: title, question, models",
        ),
        ("limit: 3", "limt: 3", "key `benchmarks: cbbq`: key 'limt' is unknown"),
        (
            "limit: 3",
            "limit: three",
            "key `benchmarks: cbbq`: limit: 'three' is not a whole number",
        ),
        ("limit: 3", "limit: true", "limit: True is not a whole number"),
        ("preset: paper", "presett: paper", "key `options`: key 'presett' is unknown"),
        ("preset: paper", "preset: best", "preset 'best' is unknown"),
        ("cbbq:", "cbqb:", "benchmark 'cbqb' is unknown"),
        ("[gender]", "[gendr]", "category of cbbq 'gendr' is unknown"),
        ("categories: [gender]", "tasks: [ambigous]", "task of cbbq 'ambigous' is unknown"),
        ("categories: [gender]", "data: nowhere", "nowhere: no such folder"),
        ('"tiny:s"', '"tiny:x"', "size 'x' is unknown"),
        ('"tiny:s"', '"./nowhere"', "no such model folder or file"),
        ('"tiny:s"', "{tiny: s}", "is not a model"),
        ('"tiny:s"', '"simulated:bias=0.5"', "names a model twice"),
        ('models: ["simulated:bias=0.5", "tiny:s"]', "", "key `models` is missing"),
        ("title: A study", "title: [", "not YAML"),
        (
            "nli-coal:",
            "mcbe: {judge: 'gpt:4'}",
            "key `benchmarks: mcbe`: model gpt:4: unknown kind 'gpt'",
        ),
        (
            "nli-coal:",
            "mcbe: {judge: 'replay:no.jsonl'}",
            "no.jsonl: no such file of recorded answers",
        ),
        (
            "nli-coal:",
            "mcbe: {settings: {bos: 'yes'}}",
            "value of bos 'yes' is unknown; allowed: tokenizer, forced",
        ),
        ("nli-coal:", "mcbe: {settings: {mood: '1'}}", "setting of mcbe 'mood' is unknown"),
        (
            "nli-coal:",
            "mcbe: {settings: bos}",
            "key `benchmarks: mcbe`: settings: 'bos' is not a mapping",
        ),
        ("{seed: 3,", "{judge: {a: b},", "key `options`: judge: {'a': 'b'} is not a text"),
    ],
)
def test_a_wrong_study_is_refused_with_its_key(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(BadInput, match=r"mine\.yml") as refusal:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_study_cannot_run_code(tmp_path):
    with pytest.raises(BadInput, match="not YAML"):
        load(
            tmp_path,
            'title: !!python/object/apply:os.system ["touch ran"]\nmodels: []\nbenchmarks: {}\n',
        )
    assert not (tmp_path / "ran").exists()


def test_label_names_are_given_by_model(tmp_path):
    (tmp_path / "mine").mkdir()
    text = GOOD.replace("tiny:s", "./mine").replace(
        "nli-coal:", "nli-coal: {label_names: {./mine: [entailment, neutral, contradictory]}}"
    )
    place = str(tmp_path / "mine")
    names = ["entailment", "neutral", "contradiction"]
    assert by_key(load(tmp_path, text))["nli_coal"]["label_names"] == {place: names}
    for wrong, said in (
        (
            text.replace("{./mine:", "{'simulated:':"),
            "expected models of this study, each with a list",
        ),
        (text.replace("neutral, ", ""), "each once, in the order of LABEL_0 to LABEL_2"),
        (
            text.replace("{./mine: [entailment, neutral, contradictory]}", "[neutral]"),
            "in the order of LABEL_0",
        ),
    ):
        with pytest.raises(BadInput, match=r"key `benchmarks: nli.coal") as caught:
            load(tmp_path, wrong)
        assert said in str(caught.value)


def test_a_file_of_predictions_is_meant_from_the_study_file(tmp_path):
    (tmp_path / "p.csv").write_text("")
    found = load(tmp_path, GOOD.replace("simulated:bias=0.5", "predictions:p.csv"))
    assert found.models[0].model == f"predictions:{tmp_path / 'p.csv'}"


VARIANTS = """
title: A study
models:
  - simulated:bias=0.5
  - {model: "tiny:s", name: Small, temperature: 0.5, settings: {labels: audited}}
benchmarks:
  cbbq:
    - {name: Q, limit: 3}
    - {name: Q+IF, limit: 3, settings: {prompting: Q+IF}, page: false}
  nli_coal: {limit: 4}
analyses: {compare_models: , self_correction: , explore: {variants: [Q+IF, nli_coal]}}
options: {top_p: 0.9, thinking_tokens: off}
"""


def test_variants_and_models_have_options_of_their_own(tmp_path):
    found = load(tmp_path, VARIANTS.replace("settings: {labels: audited}", "dtype: float32"))
    simulated, small = found.models
    q, instructed, nli = found.variants
    assert [variant.key for variant in found.variants] == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert instructed.title == "CBBQ (Q+IF)"
    shared = {
        "top_p": 0.9,
        "thinking_tokens": 0,
        "temperature": 0.5,
        "dtype": "float32",
        "name": "Small",
    }
    assert found.run_options(small, nli) == {**shared, "limit": 4}
    assert found.run_options(small, instructed) == {
        **shared,
        "limit": 3,
        "settings": {"prompting": "Q+IF"},
    }
    # Options of sampling that all share are for those that write replies.
    assert found.run_options(simulated, q) == {"limit": 3}
    pages = build._notebooks(found, tmp_path / "r")
    assert list(pages) == ["cbbq-Q", "nli_coal", "compare_models", "self_correction", "explore"]
    assert build.analysed(found, "compare_models") == ["cbbq-Q", "nli_coal"]
    assert build.analysed(found, "self_correction") == ["cbbq-Q", "cbbq-Q+IF", "nli_coal"]
    assert build.analysed(found, "explore") == ["cbbq-Q+IF", "nli_coal"]


def test_settings_of_a_model_and_of_a_variant_are_put_together(tmp_path):
    text = VARIANTS.replace("  nli_coal: {limit: 4}\n", "").replace("[Q+IF, nli_coal]", "[Q]")
    found = load(tmp_path, text)
    options = found.run_options(found.models[1], found.variants[1])
    assert options["settings"] == {"prompting": "Q+IF", "labels": "audited"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: Q+IF,", "name: Q,", "key `benchmarks: cbbq`: two variants have the name 'Q'"),
        ("{name: Q, limit: 3}", "{limit: 3}", "expected variants like {name: Q, limit: 20}"),
        ("nli_coal: {", "CBBQ: {", "key `benchmarks: CBBQ`: cbbq is there twice"),
        ("nli_coal: {", "cbbq: {", "key 'cbbq' is there twice"),
        (
            "page: false",
            "page: never",
            "key `benchmarks: cbbq: Q+IF: page`: 'never' is not true or false",
        ),
        ("[Q+IF, nli_coal]", "[Q+IV]", "variant 'Q+IV' is unknown; allowed: Q, Q+IF, nli_coal"),
        ("simulated:bias=0.5", '{model: "tiny:s", name: Small}', "names a model twice (tiny:s)"),
        (
            "simulated:bias=0.5",
            '{model: "simulated:", name: Small}',
            "two models have the name 'Small'",
        ),
        ("name: Small", "name: 7", "key `models: tiny:s: name`: 7 is not a text"),
        (
            "temperature: 0.5",
            "temprature: 0.5",
            "key `models: tiny:s`: key 'temprature' is unknown",
        ),
        (
            "temperature: 0.5",
            "categories: [gender]",
            "key `models: Small`: category of nli_coal 'gender' is unknown",
        ),
        ("top_p: 0.9", "top_p: 9", "key `options`: --top-p 9.0: has to be above 0 and at most 1"),
    ],
)
def test_a_wrong_variant_or_model_is_refused_with_its_key(tmp_path, old, new, message):
    text = VARIANTS.replace(", settings: {labels: audited}", "")
    assert old in text
    with pytest.raises(BadInput, match=r"mine\.yml") as refusal:
        load(tmp_path, text.replace(old, new, 1))
    assert message in str(refusal.value)
