"""Loading: each MODEL gives its scorer once, or a sentence that helps; nobody's code runs."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from bench import run, train
from bench.report import study, study_runs
from bench.scorers import Loaded, check, load
from bench.scorers.local import hub
from tests.helpers.checkpoints import BERT, Plant, broken, characters, save, save_gguf


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, "LlamaForCausalLM", characters("[CLS] $A"))


def test_a_folder_has_the_verbs_of_its_architecture(tmp_path, llama):
    coder, labels = characters(BERT), {0: "neutral", 1: "entailment", 2: "contradiction"}
    nli, bert = tmp_path / "nli", tmp_path / "bert"
    save(nli, "BertForSequenceClassification", coder, id2label=labels)
    save(bert, "BertForPreTraining", coder)
    request_types = {
        llama: ("nll", "choose", "generate"),
        nli: ("classify",),
        bert: ("nll", "choose"),
    }
    revisions = set()
    for folder, expected in request_types.items():
        scorer = load(str(folder))
        assert scorer.request_types == expected
        metadata = scorer.describe()
        assert (metadata["id"], metadata["device"], metadata["dtype"]) == (
            str(folder),
            "cpu",
            "float32",
        )
        assert load(str(folder)).describe()["revision"] == metadata["revision"]
        revisions.add(metadata["revision"])
        json.dumps(metadata)
    assert len(revisions) == 3


def test_gguf(tmp_path, capsys, refusal):
    path = save_gguf(tmp_path / "tiny.gguf")
    assert str(path) in refusal(load, str(tmp_path)), "the folder's file is named"
    scorer = load(str(path))
    assert capsys.readouterr().err == "", "no progress bar where there is no terminal"
    assert scorer.request_types == ("nll", "choose", "generate")
    assert scorer.describe()["revision"].startswith("sha256:")
    text = "她 is a doctor. 🙂"
    ids = scorer.tokenizer(text)["input_ids"]
    assert scorer.tokenizer.decode(ids, skip_special_tokens=True) == text
    tensor = torch.tensor([ids])
    loss = scorer.network(tensor, labels=tensor).loss.item()
    assert scorer.nll([text])[0] == pytest.approx(loss, rel=1e-5)


ENDPOINT = "openai:m@http://127.0.0.1:9/v1"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:abab\nsize 269060552\n"


def config(model_type, architecture):
    return json.dumps({"model_type": model_type, "architectures": [architecture]}).encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "no config.json"),
        ("config.json", b"[]", "cannot be loaded"),
        ("config.json", config("unheard-of", "UnheardOf"), "unheard-of"),
        ("config.json", config("t5", "T5EncoderModel"), "*ForCausalLM, *LMHeadModel"),
        ("model.safetensors", b"junk", "cannot be loaded"),
        ("tokenizer.json", None, "cannot be loaded"),
        ("model.safetensors", POINTER, "model.safetensors is a git-lfs pointer"),
        ("tokenizer.json", POINTER, "`git lfs pull`"),
    ],
)
def test_a_broken_folder_is_refused(tmp_path, llama, refusal, name, content, message):
    model = str(broken(tmp_path / "copy", llama, name, content))
    error = refusal(load, model)
    assert error.startswith(f"{model}: ")
    assert message in error


@pytest.mark.parametrize("name", ["Bart", "Pegasus", "T5"])
def test_an_encoder_decoder_is_refused_and_not_read_by_half(tmp_path, refusal, name):
    shape = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "num_layers": 1, "d_ff": 64}
    shape |= {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_kv": 8, "num_heads": 4}
    shape |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    kind = f"{name}ForConditionalGeneration"
    save(tmp_path, kind, characters(), **shape)
    # Every name of a shared weight, as converted checkpoints have them.
    weights = getattr(transformers, kind).from_pretrained(tmp_path).state_dict()
    every = {name: weight.clone().contiguous() for name, weight in weights.items()}
    save_file(every, tmp_path / "model.safetensors", {"format": "pt"})
    assert "is an encoder-decoder" in refusal(load, str(tmp_path))


@pytest.mark.parametrize(
    "kind", ["BertLMHeadModel", "RobertaForCausalLM", "XLNetLMHeadModel", "XLMWithLMHeadModel"]
)
def test_a_model_that_sees_the_words_ahead_is_not_causal(tmp_path, refusal, kind):
    shape = {"d_model": 32, "n_layer": 1, "n_head": 4, "d_inner": 64, "emb_dim": 32}
    save(tmp_path, kind, characters(), **shape)
    assert "is no causal language model" in refusal(load, str(tmp_path))


@pytest.fixture
def quantized(tmp_path):
    """`quantized(method)`: a Llama whose configuration names a method of quantization."""
    shape = {"hidden_size": 128, "intermediate_size": 128}
    folder = save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A"), **shape)

    def name(method):
        metadata = json.loads((folder / "config.json").read_text())
        given = {"weight_block_size": [128, 128], "activation_scheme": "dynamic", "bits": 8}
        metadata["quantization_config"] = {"quant_method": method, **given}
        (folder / "config.json").write_text(json.dumps(metadata))
        return str(folder)

    return name


def test_weights_in_8_bit_floating_point_are_read(tmp_path, quantized):
    expected = load(str(tmp_path)).nll(["she is a doctor"])
    # A scale for each matrix of 128 x 128.
    weights = load_file(tmp_path / "model.safetensors")
    for name in [name for name in weights if "proj" in name]:
        scale = weights[name].abs().max() / 448
        weights[f"{name}_scale_inv"] = scale.reshape(1, 1)
        weights[name] = (weights[name] / scale).to(torch.float8_e4m3fn)
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    scorer = load(quantized("fp8"))
    assert scorer.describe()["quantized"] == "fp8, 8 bits"
    assert scorer.nll(["she is a doctor"]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("method", "says"), [("gptq", "`pip install optimum`"), ("odd", "cannot read")]
)
def test_what_quantized_weights_need_is_named(quantized, refusal, method, says):
    message = refusal(load, quantized(method))
    assert message.startswith(f"{quantized(method)}: ")
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
def test_code_that_comes_with_a_model_does_not_run(
    tmp_path, llama, refusal, monkeypatch, model_type
):
    content = json.loads((llama / "config.json").read_text()) | {
        "model_type": model_type,
        "auto_map": {"AutoConfig": "planted.Config", "AutoModelForCausalLM": "planted.Network"},
    }
    model = broken(tmp_path / "copy", llama, "config.json", json.dumps(content).encode())
    coder, ran = model / "tokenizer_config.json", tmp_path / "ran"
    auto_map = {"auto_map": {"AutoTokenizer": [None, "planted.Coder"]}}
    coder.write_text(json.dumps(json.loads(coder.read_text()) | auto_map))
    (model / "planted.py").write_text(CODE.format(ran=str(ran)))
    # Nobody is asked at a terminal either.
    monkeypatch.setattr("builtins.input", lambda *args: "y")
    if model_type == "planted":
        assert "cannot be loaded" in refusal(load, str(model))
    else:
        load(str(model))  # as the Llama that it also is
    assert not ran.exists()
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.syspath_prepend(modules)
    load(str(model), trust_remote_code=True)
    assert ran.exists(), "the plant works"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("  ", "Hub id"),
        ("./no/such/folder", "no such model folder"),
        ("nonsense:x", "simulated, tiny, replay, predictions, lm-eval, openai"),
        ("replay:no-such.jsonl", "no such file of recorded answers"),
        ("openai:name", "NAME@URL"),
        ("simulated:bias=2", "outside 0 to 1"),
        ("tiny:xl", "allowed: tiny:s, tiny:s,bias=0.25"),
        ("tiny:s,colour=1", "allowed: bias, seed"),
        ("acme/tiny@a@b", "NAME or ORGANISATION/NAME"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_is_loaded(refusal, model, message):
    for call in (check, load):
        assert message in refusal(call, model)


@pytest.mark.parametrize(
    ("model", "option", "message"),
    [
        ("", {"device": "cuda:99"}, "--device cuda:99: is not"),
        ("", {"device": "gpu"}, "cpu, cuda, cuda:N, auto"),
        ("", {"dtype": "float8"}, "float32, bfloat16, float16"),
        ("", {"batch_tokens": 0}, "--batch-tokens 0: a batch"),
        (ENDPOINT, {"generation": {"request_fields": {"temperature": 1}}}, "field temperature:"),
        ("acme/tiny@small", {"revision": "main"}, "names another revision"),
    ],
)
def test_a_wrong_option_is_named(llama, refusal, model, option, message):
    assert message in refusal(load, model or str(llama), **option)


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
def own_llama(tmp_path):
    return str(save(tmp_path / "own_llama", "LlamaForCausalLM", characters("[CLS] $A")))


@pytest.fixture
def loads(monkeypatch):
    """The folders whose weights were loaded."""
    folders, load_weights = [], AutoModelForCausalLM.from_pretrained

    def count(path, **options):
        folders.append(path)
        return load_weights(path, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", count)
    return folders


def test_a_study_loads_a_model_and_its_judge_once(own_folder, own_llama, loads):
    judge = str(save(own_folder / "judge", "LlamaForCausalLM", characters("[CLS] $A")))
    Path("study.yml").write_text(STUDY.replace("MODEL", own_llama).replace("JUDGE", judge))
    plan, sent = study.load(Path("study.yml")), []
    pipe = type("Pipe", (), {"send": staticmethod(sent.append)})
    study_runs._work(pipe, plan, study_runs.cells(plan), Path("out"), 1, study_runs.budgets(plan))
    assert [cell.state for cell in sent] == ["done"] * 3
    assert loads == [own_llama, judge]


def test_replies_are_those_of_a_model_that_was_loaded_for_them(own_llama):
    greedy = {"temperature": 0}
    first = load(own_llama)
    loaded = Loaded(first)
    second = loaded.load("model", own_llama, generation=greedy)
    third = loaded.load("judge", own_llama)
    prompts = ["he is", "she is a doctor"]
    assert second.network is third.network
    assert second.generate(prompts) == load(own_llama, generation=greedy).generate(prompts)
    assert third.generate(prompts, seed=3) == load(own_llama).generate(prompts, seed=3)
    assert second.describe() == load(own_llama, generation=greedy).describe()
    assert third.describe() == first.describe()
    assert (first.tally.asked, second.tally.asked) == (0, third.tally.asked)


def test_other_weights_are_loaded(own_llama, loads):
    loaded = Loaded()
    for dtype in ("float32", "bfloat16", None, None):
        loaded.load("model", own_llama, dtype=dtype)
    assert len(loads) == 3
    config_file = Path(own_llama, "config.json")
    config_file.write_text(f"{config_file.read_text()} ")
    loaded.load("model", own_llama)
    assert len(loads) == 4


def test_a_loaded_model_can_be_evaluated(own_folder, own_llama, loads, refusal):
    model = load(own_llama, dtype="float32", generation={"temperature": 0})
    given = {"categories": ["gender"], "limit": 1}
    for benchmark in ("cbbq", "mcbe"):
        done = run.evaluate(benchmark, model, **given, partial=True)
        assert done.metadata["asked"]["model"] == own_llama
        assert done.metadata["asked"]["generation"] == {"temperature": 0}
    assert loads == [own_llama]
    named = run.evaluate("mcbe", own_llama, temperature=0, dtype="float32", **given, partial=True)
    assert named.folder == done.folder
    message = refusal(run.evaluate, "cbbq", type(model).__new__(type(model)))
    assert "Causal: was not loaded by bench.load" in message


MIB = 1 << 20


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A file of three parts."""
    monkeypatch.setattr(hub, "PART_BYTES", 2 * MIB)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(np.random.default_rng(0).bytes(2 * hub.PART_BYTES + 12_345))
    return path


def test_every_byte_of_a_file_counts(weights):
    known = {hub.fingerprint(weights)}
    for time, place in enumerate((0, MIB, 2 * MIB - 1, 2 * MIB, 4 * MIB + 12_344), start=1):
        content = bytearray(weights.read_bytes())
        content[place] ^= 1
        weights.write_bytes(content)
        os.utime(weights, ns=(time, time))  # of a clock that ticks between two changes
        known.add(hub.fingerprint(weights))
    assert len(known) == 6


def test_the_fingerprint_of_a_file_stays_the_same_over_versions(weights):
    content = weights.read_bytes()
    parts = [content[start : start + 2 * MIB] for start in range(0, len(content), 2 * MIB)]
    large = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
    total = hashlib.sha256(f"weights.safetensors:{len(content)}".encode() + large).hexdigest()
    assert hub.fingerprint(weights) == f"sha256-parts:{total[:16]}"
    weights.write_bytes(b"small")
    total = hashlib.sha256(b"weights.safetensors:5small").hexdigest()
    assert hub.fingerprint(weights) == f"sha256:{total[:16]}"


@pytest.fixture
def model(tmp_path, llama):
    """A folder to spoil, beside which `ran` is made by a planted pickle that is loaded."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


def plant(model, name):
    """Write a pickle that torch would load by running its code; that it works is tried first."""
    ran, tried = model.with_name("ran"), model.with_name("tried.bin")
    torch.save({"model.embed_tokens.weight": Plant(ran)}, tried)
    torch.load(tried, weights_only=False)
    ran.unlink()
    tried.rename(model / name)


SHARD, INDEX = "pytorch_model-00001-of-00002.bin", "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("name", "naming", "says"),
    [
        ("pytorch_model.bin", "", "pickled (pytorch_model.bin)"),
        (SHARD, "pytorch_model.bin.index.json", f"pickled ({SHARD})"),
        ("weights.bin", INDEX, "pickled (weights.bin)"),
        ("model.safetensors", "", "cannot be loaded as a model"),
        ("adapter_model.bin", "adapter_config.json", "is an adapter (adapter_config"),
    ],
)
def test_a_pickle_is_refused_and_never_loaded(model, refusal, name, naming, says):
    plant(model, "training_args.bin")
    load(str(model))  # beside safetensors it is not looked at
    (model / "training_args.bin").unlink()
    if "adapter" not in name:
        (model / "model.safetensors").unlink()
    plant(model, name)
    if naming:
        weights = {"metadata": {}, "weight_map": {"model.embed_tokens.weight": name}}
        adapter = {"base_model_name_or_path": str(model), "peft_type": "LORA"}
        (model / naming).write_text(json.dumps(adapter if "adapter" in name else weights))
    for call in (load, lambda name: train.load(name, 0)):
        message = refusal(call, str(model))
        assert message.startswith(f"{model}: ")
        assert says in message
    plant(model, "x.pt")
    assert "pickled (x.pt)" in refusal(load, str(model / "x.pt"))
    assert not model.with_name("ran").exists()


TEMPLATES = [
    "{{ ().__class__.__base__.__subclasses__() }}",
    "{{ lipsum.__globals__['os'].system('touch RAN') }}",
    "{% include '/etc/passwd' %}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{{ raise_exception('ask me nothing') }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_a_hostile_chat_template_is_refused_and_runs_nothing(model, refusal, template, place):
    template = template.replace("RAN", str(model.with_name("ran")))
    if place.endswith(".json"):
        template = json.dumps(json.loads((model / place).read_text()) | {"chat_template": template})
    (model / place).write_text(template)
    scorer = load(str(model))
    message = refusal(scorer.generate, ["she"], max_new_tokens=2)
    assert message.startswith(f"{model}: its chat template cannot be used (")
    assert not model.with_name("ran").exists()
