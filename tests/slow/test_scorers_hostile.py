"""Checkpoints that were made to do harm: none of their code runs, and each is refused."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench import train
from bench.scorers import load
from tests.helpers.checkpoints import Plant, characters, save


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))


@pytest.fixture
def model(tmp_path: Path, llama: Path) -> Path:
    """A folder to spoil, beside which `ran` is made by a planted pickle that is loaded."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


def plant(model: Path, name: str) -> None:
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
def test_a_pickle_is_refused_and_never_loaded(
    model: Path, refusal: Any, name: str, naming: str, says: str
) -> None:
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


def header(content: Any, length: int | None = None) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + b"\0" * 64


def tensor(begin: int, end: int, *shape: int) -> bytes:
    about = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    return header({"model.embed_tokens.weight": about})


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf(tensors: int, values: int, behind: bytes = b"") -> bytes:
    """A GGUF file that says it is a Llama."""
    named = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values) + named + behind


def array(kind: int, length: int, behind: bytes = b"\0" * 64) -> bytes:
    return text(b"x") + struct.pack("<IIQ", 9, kind, length) + behind


HUGE_TENSOR = text(b"token_embd.weight") + struct.pack("<I4QIQ", 4, *[2**31] * 4, 0, 0)
FILES = {
    "a header of 100 GB.safetensors": header({}, 100 * 10**9),
    "deep JSON.safetensors": header(b"[" * 100_000),
    "a tensor behind the end.safetensors": tensor(0, 2**40, 2**38),
    "countless values.gguf": gguf(0, 2**60),
    "a huge array of bytes.gguf": gguf(0, 2, array(0, 2**40)),
    "arrays in arrays.gguf": gguf(0, 2, array(9, 2, struct.pack("<IQ", 9, 1) * 100_000)),
    "a tensor too large.gguf": gguf(1, 1, HUGE_TENSOR),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(model: Path, refusal: Any, name: str) -> None:
    path = model if name.endswith(".safetensors") else model / "x.gguf"
    (model / "model.safetensors" if path == model else path).write_bytes(FILES[name])
    assert "cannot be loaded as a model" in refusal(load, str(path))


TEMPLATES = [
    "{{ ().__class__.__base__.__subclasses__() }}",
    "{{ lipsum.__globals__['os'].system('touch RAN') }}",
    "{% include '/etc/passwd' %}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{{ raise_exception('ask me nothing') }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_a_hostile_chat_template_is_refused_and_runs_nothing(
    model: Path, refusal: Any, template: str, place: str
) -> None:
    template = template.replace("RAN", str(model.with_name("ran")))
    if place.endswith(".json"):
        template = json.dumps(json.loads((model / place).read_text()) | {"chat_template": template})
    (model / place).write_text(template)
    scorer: Any = load(str(model))
    message = refusal(scorer.generate, ["she"], max_new_tokens=2)
    assert message.startswith(f"{model}: its chat template cannot be used (")
    assert not model.with_name("ran").exists()
