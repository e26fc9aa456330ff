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
from tests.helpers.checkpoints import Plant, characters, save, save_gguf


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))


@pytest.fixture
def model(tmp_path: Path, llama: Path) -> Path:
    """A folder to spoil."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file that a planted pickle makes when it is loaded."""
    return tmp_path / "ran"


def plant(file: Path, ran: Path) -> None:
    """Write a pickle that torch would load by running its code; that it works is tried first."""
    tried = ran.with_suffix(".bin")
    torch.save({"model.embed_tokens.weight": Plant(ran)}, tried)
    torch.load(tried, weights_only=False)
    ran.unlink()
    tried.rename(file)


SHARD = "pytorch_model-00001-of-00002.bin"
# A pickled file, the file that names it if any, and what is said.
PICKLED: dict[str, tuple[str, str, str]] = {
    "pytorch_model.bin": ("pytorch_model.bin", "", "pickled (pytorch_model.bin)"),
    "model.pt": ("model.pt", "", "pickled (model.pt)"),
    "last.ckpt": ("last.ckpt", "", "pickled (last.ckpt)"),
    "shards": (SHARD, "pytorch_model.bin.index.json", f"pickled ({SHARD})"),
    "an index to a pickle": (
        "weights.bin",
        "model.safetensors.index.json",
        "pickled (weights.bin in model.safetensors.index.json)",
    ),
    "an index to elsewhere": (
        "../out.safetensors",
        "model.safetensors.index.json",
        "names ../out.safetensors, which is outside its folder",
    ),
    "a pickle called safetensors": ("model.safetensors", "", "cannot be loaded as a model"),
    "an adapter": ("adapter_model.bin", "adapter_config.json", "is an adapter (adapter_config"),
}


@pytest.mark.parametrize("kind", PICKLED)
def test_a_pickle_is_refused_and_never_loaded(
    model: Path, ran: Path, refusal: Any, kind: str
) -> None:
    name, naming, says = PICKLED[kind]
    if kind != "an adapter":
        (model / "model.safetensors").unlink()
    plant(model / name, ran)
    if naming:
        index = {"metadata": {}, "weight_map": {"model.embed_tokens.weight": name}}
        adapter = {"base_model_name_or_path": str(model), "peft_type": "LORA"}
        (model / naming).write_text(json.dumps(adapter if kind == "an adapter" else index))
    for call in (load, lambda name: train.load(name, 0)):
        message = refusal(call, str(model))
        assert message.startswith(f"{model}: ")
        assert says in message
    for suffix in (".bin", ".pt", ".ckpt", ".pth"):
        plant(model / f"x{suffix}", ran)
        assert f"pickled (x{suffix})" in refusal(load, str(model / f"x{suffix}"))
    assert not ran.exists()


def test_a_pickle_beside_safetensors_is_not_looked_at(model: Path, ran: Path) -> None:
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt"):
        plant(model / name, ran)
    load(str(model))
    assert not ran.exists()


def header(content: Any, length: int | None = None) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + b"\0" * 64


def tensor(begin: int, end: int, *shape: int, kind: str = "F32") -> bytes:
    about = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    return header({"model.embed_tokens.weight": about})


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf(tensors: int, values: int, behind: bytes = b"") -> bytes:
    """A GGUF file that says it is a Llama."""
    named = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values) + named + behind


def array(kind: int, length: int, behind: bytes = b"\0" * 64) -> bytes:
    return text(b"x") + struct.pack("<IIQ", 9, kind, length) + behind


OVERLAP = {
    name: {"dtype": "F32", "shape": [16], "data_offsets": [start, start + 64]}
    for name, start in (("model.embed_tokens.weight", 0), ("lm_head.weight", 32))
}
HUGE_TENSOR = text(b"token_embd.weight") + struct.pack("<I4QIQ", 4, *[2**31] * 4, 0, 0)
FILES = {
    "nothing.safetensors": b"",
    "a length without a header.safetensors": struct.pack("<Q", 10),
    "a huge header.safetensors": header({}, 2**63),
    "a header of 100 GB.safetensors": header({}, 100 * 10**9),
    "no JSON.safetensors": header(b"{" * 64),
    "deep JSON.safetensors": header(b"[" * 100_000),
    "no table.safetensors": header([1, 2]),
    "overlapping tensors.safetensors": header(OVERLAP),
    "a tensor behind the end.safetensors": tensor(0, 2**40, 2**38),
    "a tensor that ends before it begins.safetensors": tensor(64, 0, 16),
    "negative offsets.safetensors": tensor(-64, 0, 16),
    "a shape that overflows.safetensors": tensor(0, 64, 2**33, 2**33),
    "an unknown dtype.safetensors": tensor(0, 64, 16, kind="PICKLE"),
    "countless values.gguf": gguf(0, 2**60),
    "countless tensors.gguf": gguf(2**60, 1),
    "a name of exabytes.gguf": gguf(0, 2, struct.pack("<Q", 2**62) + b"x"),
    "a huge array of bytes.gguf": gguf(0, 2, array(0, 2**40)),
    "a huge array of texts.gguf": gguf(0, 2, array(8, 2**40)),
    "arrays in arrays.gguf": gguf(0, 2, array(9, 2, struct.pack("<IQ", 9, 1) * 100_000)),
    "an unknown type.gguf": gguf(0, 2, text(b"x") + struct.pack("<I", 99)),
    "a tensor too large.gguf": gguf(1, 1, HUGE_TENSOR),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(model: Path, refusal: Any, name: str) -> None:
    path = model if name.endswith(".safetensors") else model / "x.gguf"
    (model / "model.safetensors" if path == model else path).write_bytes(FILES[name])
    assert "cannot be loaded as a model" in refusal(load, str(path))


def test_more_layers_than_any_model_has_are_not_built(
    tmp_path: Path, model: Path, refusal: Any
) -> None:
    about = json.loads((model / "config.json").read_text()) | {"num_hidden_layers": 10**9}
    (model / "config.json").write_text(json.dumps(about))
    assert "has 1,000,000,000 layers" in refusal(load, str(model))
    path = save_gguf(tmp_path / "x.gguf")
    content, key = path.read_bytes(), b"llama.block_count"
    at = content.index(key) + len(key) + 4  # behind its type
    path.write_bytes(content[:at] + struct.pack("<I", 2**31 - 1) + content[at + 4 :])
    assert "layers; expected at most 2,000" in refusal(load, str(path))


TEMPLATES = {
    "classes": "{{{{ ().__class__.__base__.__subclasses__() }}}}",
    "globals of a function": "{{{{ lipsum.__globals__['os'].system('touch {ran}') }}}}",
    "globals of a class": "{{{{ cycler.__init__.__globals__.os.system('touch {ran}') }}}}",
    "format": "{{{{ '{{0.__class__.__init__.__globals__}}'.format(lipsum) }}}}",
    "import": "{{% import 'os' as os %}}{{{{ os.system('touch {ran}') }}}}",
    "include": "{{% include '/etc/passwd' %}}",
    "changing the prompt": "{{{{ messages.clear() }}}}",
    "a billion letters": "{{% for i in range(1000000000) %}}x{{% endfor %}}",
    "no template": "{{% if %}}",
    "a refusal": "{{{{ raise_exception('ask me nothing') }}}}",
}


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_a_hostile_chat_template_is_refused_and_runs_nothing(
    model: Path, ran: Path, refusal: Any, kind: str, place: str
) -> None:
    template = TEMPLATES[kind].format(ran=ran)
    if place.endswith(".json"):
        template = json.dumps(json.loads((model / place).read_text()) | {"chat_template": template})
    (model / place).write_text(template)
    scorer: Any = load(str(model))
    message = refusal(scorer.generate, ["she"], max_new_tokens=2)
    assert message.startswith(f"{model}: its chat template cannot be used (")
    assert not ran.exists()
