"""Checkpoints that were made to do harm: none of their code runs, and each is refused."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from bench import train
from bench.scorers import load
from tests.helpers.checkpoints import Plant, characters, save


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, "LlamaForCausalLM", characters("[CLS] $A"))


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
