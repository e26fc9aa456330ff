"""Loading: each MODEL gives its scorer once, or a sentence that helps; nobody's code runs."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from bench import run
from bench.report import study, study_runs
from bench.scorers import Loaded, check, load
from bench.scorers.local import device, hub
from bench.train import train
from tests.helpers.cases import cases, json_lines
from tests.helpers.checkpoints import BERT, amend, characters, save, save_gguf


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, "LlamaForCausalLM", characters("[CLS] $A"))


@pytest.fixture
def model(tmp_path, llama):
    """A folder to spoil. Code that is planted in it makes the file `ran` beside it."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


NLI = {"id2label": {0: "neutral", 1: "entailment", 2: "contradiction"}}


@pytest.mark.parametrize(
    ("kind", "shape", "request_types"),
    [
        ("LlamaForCausalLM", {}, ("nll", "choose", "generate")),
        ("BertForSequenceClassification", NLI, ("classify",)),
        ("BertForPreTraining", {}, ("nll", "choose")),
    ],
)
def test_a_folder_has_the_request_types_of_its_architecture(tmp_path, kind, shape, request_types):
    scorer = load(str(save(tmp_path, kind, characters(BERT), **shape)))
    assert scorer.request_types == request_types


def test_gguf(tmp_path, capsys, refusal):
    path = save_gguf(tmp_path / "tiny.gguf")
    assert str(path) in refusal(load, str(tmp_path)), "the folder's file is named"
    scorer = load(str(path))
    assert capsys.readouterr().err == "", "no progress bar without a terminal"
    assert scorer.request_types == ("nll", "choose", "generate")
    assert scorer.describe()["revision"].startswith("sha256:")
    text = "她 is a doctor. 🙂"
    assert scorer.tokenizer.decode(scorer.tokenizer(text)["input_ids"]) == text


@cases(__file__, "broken_folders.csv")
def test_a_broken_folder_is_refused(model, refusal, case):
    path = model / case["name"]
    path.write_text(case["content"])
    if case["content"] == "MISSING":
        path.unlink()
    error = refusal(load, str(model))
    assert error.startswith(f"{model}: ")
    assert case["message"] in error


@pytest.mark.parametrize("case", json_lines(__file__, "not_causal.jsonl"))
def test_a_model_with_an_encoder_or_that_sees_the_words_ahead_is_refused(tmp_path, refusal, case):
    save(tmp_path, case["network"], characters(), **case["shape"])
    assert case["says"] in refusal(load, str(tmp_path))


def test_a_model_whose_predictions_depend_on_the_number_of_words_ahead_is_refused(
    tmp_path, refusal
):
    sizes = {"hidden_size": 32, "num_decoder_layers": 2, "num_decoder_attention_heads": 4}
    config = transformers.ProphetNetConfig(
        vocab_size=len(characters()), decoder_ffn_dim=64, **sizes
    )
    torch.manual_seed(0)
    transformers.ProphetNetForCausalLM(config).save_pretrained(tmp_path)
    characters().save_pretrained(tmp_path)
    assert "is no causal language model" in refusal(load, str(tmp_path))


def quantize(folder, method):
    """Name a method of quantization in the configuration of a model."""
    entries = {"weight_block_size": [128, 128], "activation_scheme": "dynamic", "bits": 8}
    amend(folder / "config.json", quantization_config={"quant_method": method, **entries})


def test_weights_in_8_bit_floating_point_are_read(tmp_path):
    shape = {"hidden_size": 128, "intermediate_size": 128}
    save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A"), **shape)
    expected = load(str(tmp_path)).nll(["she is a doctor"])
    # A scale for each matrix of 128 x 128.
    weights = load_file(tmp_path / "model.safetensors")
    for name in [name for name in weights if "proj" in name]:
        scale = weights[name].abs().max() / 448
        weights[f"{name}_scale_inv"] = scale.reshape(1, 1)
        weights[name] = (weights[name] / scale).to(torch.float8_e4m3fn)
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    quantize(tmp_path, "fp8")
    scorer = load(str(tmp_path))
    assert scorer.describe()["quantized"] == "fp8, 8 bits"
    assert scorer.nll(["she is a doctor"]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("method", "says"), [("gptq", "`pip install optimum`"), ("odd", "cannot read")]
)
def test_a_missing_package_for_quantized_weights_is_named(model, refusal, method, says):
    quantize(model, method)
    message = refusal(load, str(model))
    assert message.startswith(f"{model}: ")
    assert says in message


CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
Path({ran!r}).write_text("")
class Config(LlamaConfig):
    model_type = "planted"
class Network(LlamaForCausalLM):
    config_class = Config
class Coder(PreTrainedTokenizerFast):
    pass
"""


@pytest.mark.parametrize("model_type", ["planted", "llama"])
def test_code_that_comes_with_a_model_does_not_run(model, refusal, monkeypatch, model_type):
    classes = {"AutoConfig": "planted.Config", "AutoModelForCausalLM": "planted.Network"}
    amend(model / "config.json", model_type=model_type, auto_map=classes)
    amend(model / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "planted.Coder"]})
    ran = model.with_name("ran")
    (model / "planted.py").write_text(CODE.format(ran=str(ran)))
    # Nobody is asked at a terminal either.
    monkeypatch.setattr("builtins.input", lambda *args: "y")
    if model_type == "planted":
        assert "cannot be loaded" in refusal(load, str(model))
    else:
        load(str(model))  # as the Llama that it also is
    assert not ran.exists()
    modules = str(model.with_name("modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.syspath_prepend(modules)
    load(str(model), trust_remote_code=True)
    assert ran.exists(), "the plant works"


@pytest.mark.parametrize("case", json_lines(__file__, "refused_models.jsonl"))
def test_a_wrong_model_or_option_is_refused(llama, refusal, case):
    model, options = case["model"].replace("LLAMA", str(llama)), case["options"]
    for call in (load,) if options else (load, check):
        assert case["message"] in refusal(call, model, **options).replace(str(llama), "LLAMA")


STUDY = """
title: Variants
models: ["MODEL"]
benchmarks:
  cbbq:
    - {name: a, categories: [gender], limit: 1, data: samples}
    - {name: b, categories: [gender], limit: 2, data: samples, temperature: 0}
  mcbe: {categories: [gender], limit: 1, data: samples, tasks: [ba], judge: JUDGE}
"""


@pytest.fixture
def loads(monkeypatch):
    """The folders whose weights were loaded."""
    folders, load_weights = [], AutoModelForCausalLM.from_pretrained

    def count(path, **options):
        folders.append(path)
        return load_weights(path, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", count)
    return folders


def test_a_study_loads_a_model_and_its_judge_once(own_folder, model, llama, loads):
    Path("study.yml").write_text(STUDY.replace("MODEL", str(model)).replace("JUDGE", str(llama)))
    plan, loaded = study.load(Path("study.yml")), Loaded()
    budgets = study_runs.budgets(plan)
    cells = [
        study_runs.ask(plan, cell, Path("out"), budgets, loaded) for cell in study_runs.cells(plan)
    ]
    assert [cell.state for cell in cells] == ["done"] * 3
    assert loads == [str(model), str(llama)]


def test_replies_are_those_of_a_model_that_was_loaded_for_them(model):
    greedy, name = {"temperature": 0}, str(model)
    first = load(name)
    loaded = Loaded(first)
    second = loaded.load("model", name, generation=greedy)
    third = loaded.load("judge", name)
    prompts = ["he is", "she is a doctor"]
    assert second.network is third.network
    assert second.generate(prompts) == load(name, generation=greedy).generate(prompts)
    assert third.generate(prompts, seed=3) == load(name).generate(prompts, seed=3)
    assert second.describe() == load(name, generation=greedy).describe()
    assert third.describe() == first.describe()
    assert (first.tally.asked, second.tally.asked) == (0, third.tally.asked)


def test_other_weights_are_loaded(model, loads):
    loaded = Loaded()
    for dtype in ("float32", "bfloat16", None, None):
        loaded.load("model", str(model), dtype=dtype)
    assert len(loads) == 3
    amend(model / "config.json", another="entry")
    loaded.load("model", str(model))
    assert len(loads) == 4


def test_a_loaded_model_can_be_evaluated(own_folder, model, loads, refusal):
    name, given = str(model), {"categories": ["gender"], "limit": 1, "partial": True}
    scorer = load(name, dtype="float32", generation={"temperature": 0})
    for benchmark in ("cbbq", "mcbe"):
        done = run.evaluate(benchmark, scorer, **given)
        assert done.metadata["asked"]["model"] == name
        assert done.metadata["asked"]["generation"] == {"temperature": 0}
    assert loads == [name]
    again = run.evaluate("mcbe", name, temperature=0, dtype="float32", **given)
    assert again.folder == done.folder
    message = refusal(run.evaluate, "cbbq", type(scorer).__new__(type(scorer)))
    assert "Causal: was not loaded by bench.load" in message


MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "changed", "expected"),
    [
        (5, 0, "sha256:84c3ddf9201a50fc"),
        (4 * MIB + 12_345, 0, "sha256:1885df06a9939c82"),
        (4 * MIB + 12_345, 4 * MIB + 12_344, "sha256:077b81fc9bbaef0c"),
    ],
)
def test_a_fingerprint_depends_on_every_byte_and_stays_the_same_over_versions(
    tmp_path, size, changed, expected
):
    content, path = bytearray(size), tmp_path / "weights.safetensors"
    content[changed] = 1
    path.write_bytes(content)
    assert hub.fingerprint(path) == expected
    content[changed] = 2
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))  # of a clock that ticks between two changes
    assert hub.fingerprint(path) != expected


class Plant:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def plant(path, ran):
    """Write a pickle that torch would load by running its code, and try that it works."""
    tried = ran.with_name("tried.bin")
    torch.save({"model.embed_tokens.weight": Plant(ran)}, tried)
    torch.load(tried, weights_only=False)
    ran.unlink()
    tried.rename(path)


INDEX = {"metadata": {}, "weight_map": {"model.embed_tokens.weight": "weights.bin"}}


@pytest.mark.parametrize(
    ("name", "beside", "says"),
    [
        ("pytorch_model.bin", {}, "pickled (pytorch_model.bin)"),
        ("weights.bin", {"pytorch_model.bin.index.json": INDEX}, "pickled (weights.bin)"),
        ("weights.bin", {"model.safetensors.index.json": INDEX}, "pickled (weights.bin)"),
        ("model.safetensors", {}, "cannot be loaded as a model"),
        ("adapter_model.bin", {"adapter_config.json": {}}, "is an adapter (adapter_config.json)"),
    ],
)
@pytest.mark.parametrize("trained", [False, True])
def test_a_pickle_is_refused_and_never_loaded(model, refusal, name, beside, says, trained):
    ran = model.with_name("ran")
    (model / "model.safetensors").unlink()
    plant(model / name, ran)
    for file, content in beside.items():
        (model / file).write_text(json.dumps(content))
    if trained:
        corpus = model.with_name("corpus.csv")
        corpus.write_text("premise,hypothesis,label\nA nurse.,A woman.,neutral\n", "utf-8")
        message = refusal(train, str(model), corpus, model.with_name("out"))
    else:
        message = refusal(load, str(model))
    assert message.startswith(f"{model}: ")
    assert says in message
    assert not ran.exists()


def test_a_pickle_beside_safetensors_is_not_looked_at_and_a_file_of_its_own_refused(model, refusal):
    ran = model.with_name("ran")
    plant(model / "training_args.bin", ran)
    load(str(model))
    plant(model / "x.pt", ran)
    assert "pickled (x.pt)" in refusal(load, str(model / "x.pt"))
    plant(model / "adapter_model.bin", ran)
    (model / "adapter_config.json").write_text("{}")
    assert "is an adapter (adapter_config" in refusal(load, str(model))
    assert not ran.exists()


@pytest.mark.parametrize(
    "template",
    [
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ lipsum.__globals__['os'].system('touch RAN') }}",
        "{% include '/etc/passwd' %}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{{ raise_exception('ask me nothing') }}",
    ],
)
@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_a_hostile_chat_template_is_refused_and_runs_nothing(model, refusal, template, place):
    ran = model.with_name("ran")
    template = template.replace("RAN", str(ran))
    if place.endswith(".json"):
        amend(model / place, chat_template=template)
    else:
        (model / place).write_text(template)
    scorer = load(str(model))
    message = refusal(scorer.generate, ["she"], max_new_tokens=2)
    assert message.startswith(f"{model}: its chat template cannot be used (")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("load", "variable", "threads"), [(2.9, "", 4), (3.1, "", 1), (3.1, "4", 4)]
)
def test_torch_runs_on_one_thread_on_a_busy_machine(monkeypatch, load, variable, threads):
    chosen = [4]
    monkeypatch.setattr("psutil.cpu_count", lambda: 2)
    monkeypatch.setattr("psutil.getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr("torch.get_num_threads", lambda: chosen[-1])
    monkeypatch.setattr("torch.set_num_threads", chosen.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    device.yield_to_others(device.placement("cpu", None, None))
    assert chosen[-1] == threads


@pytest.mark.parametrize("size", ["s", "m"])
def test_a_tiny_model_describes_the_shape_of_its_weights(size):
    model = load(f"tiny:{size}")
    parameters = model.describe()["parameters"]
    config = json.loads((model.folders["causal"] / "config.json").read_text("utf-8"))
    assert parameters["hidden"] == config["hidden_size"]
    assert parameters["layers"] == config["num_hidden_layers"]
