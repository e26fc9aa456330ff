"""Checkpoints that were made to do harm: none of their code runs, and each is refused."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench import train
from bench.scorers import load
from tests.helpers.checkpoints import CHAT, characters, save, save_gguf
from tests.scorers.test_load import Plant


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        tmp_path_factory.mktemp("llama"), LlamaForCausalLM, LlamaConfig, characters("[CLS] $A")
    )


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


def pickle_alone(name: str) -> Callable[[Path, Path], None]:
    def spoil(model: Path, ran: Path) -> None:
        (model / "model.safetensors").unlink()
        plant(model / name, ran)

    return spoil


def pickled_shards(model: Path, ran: Path) -> None:
    (model / "model.safetensors").unlink()
    names = [f"pytorch_model-{k}-of-00002.bin" for k in ("00001", "00002")]
    for name in names:
        plant(model / name, ran)
    shards = {"model.embed_tokens.weight": names[0], "lm_head.weight": names[1]}
    (model / "pytorch_model.bin.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": shards})
    )


def index_to(name: str) -> Callable[[Path, Path], None]:
    """An index of safetensors files that names another file."""

    def spoil(model: Path, ran: Path) -> None:
        (model / "model.safetensors").unlink()
        plant(model / name, ran)
        index = {"metadata": {"total_size": 1}, "weight_map": {"model.embed_tokens.weight": name}}
        (model / "model.safetensors.index.json").write_text(json.dumps(index))

    return spoil


def pickle_called_safetensors(model: Path, ran: Path) -> None:
    plant(model / "model.safetensors", ran)


def pickled_adapter(model: Path, ran: Path) -> None:
    (model / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(model), "peft_type": "LORA"})
    )
    plant(model / "adapter_model.bin", ran)


PICKLED = {
    "pytorch_model.bin": (pickle_alone("pytorch_model.bin"), "pickled (pytorch_model.bin)"),
    "model.pt": (pickle_alone("model.pt"), "pickled (model.pt)"),
    "last.ckpt": (pickle_alone("last.ckpt"), "pickled (last.ckpt)"),
    "shards": (pickled_shards, "pickled (pytorch_model-00001-of-00002.bin)"),
    "an index to a pickle": (
        index_to("weights.bin"),
        "pickled (weights.bin in model.safetensors.index.json)",
    ),
    "an index to elsewhere": (
        index_to("../out.safetensors"),
        "names ../out.safetensors, which is outside its folder",
    ),
    "a pickle called safetensors": (pickle_called_safetensors, "cannot be loaded as a model"),
    "an adapter": (pickled_adapter, "is an adapter (adapter_config.json)"),
}


@pytest.mark.parametrize("kind", PICKLED)
def test_a_pickle_is_refused_and_never_loaded(
    model: Path, ran: Path, refusal: Any, kind: str
) -> None:
    spoil, said = PICKLED[kind]
    spoil(model, ran)
    for call in (load, lambda name: train.load(name, 0)):
        message = refusal(call, str(model))
        assert message.startswith(f"{model}: ")
        assert said in message
    assert not ran.exists()


@pytest.mark.parametrize("name", ["model.bin", "model.pt", "model.ckpt", "model.pth"])
def test_a_pickled_file_is_refused_by_name(
    tmp_path: Path, ran: Path, refusal: Any, name: str
) -> None:
    plant(tmp_path / name, ran)
    assert f"pickled ({name})" in refusal(load, str(tmp_path / name))
    assert not ran.exists()


def test_a_pickle_beside_safetensors_is_not_looked_at(model: Path, ran: Path) -> None:
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt"):
        plant(model / name, ran)
    load(str(model))
    assert not ran.exists()


def header(content: Any, length: int | None = None, behind: bytes = b"\0" * 64) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + behind


def tensor(begin: int, end: int, shape: list[int], kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


NAME = "model.embed_tokens.weight"
SAFETENSORS = {
    "nothing": b"",
    "a length without a header": struct.pack("<Q", 10),
    "a huge header": header({}, 2**63),
    "a header of 100 GB": header({}, 100 * 10**9),
    "no JSON": header(b"{" * 64),
    "deep JSON": header(b"[" * 100_000),
    "no table": header([1, 2]),
    "overlapping tensors": header(
        {NAME: tensor(0, 64, [16]), "lm_head.weight": tensor(32, 96, [16])}
    ),
    "a tensor behind the end": header({NAME: tensor(0, 2**40, [2**38])}),
    "a tensor that ends before it begins": header({NAME: tensor(64, 0, [16])}),
    "negative offsets": header({NAME: tensor(-64, 0, [16])}),
    "a shape that overflows": header({NAME: tensor(0, 64, [2**33, 2**33])}),
    "an unknown dtype": header({NAME: tensor(0, 64, [16], "PICKLE")}),
}


@pytest.mark.parametrize("kind", SAFETENSORS)
def test_a_hostile_safetensors_file_is_refused(model: Path, refusal: Any, kind: str) -> None:
    (model / "model.safetensors").write_bytes(SAFETENSORS[kind])
    assert "cannot be loaded as a model" in refusal(load, str(model))


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf(tensors: int, values: int, behind: bytes = b"") -> bytes:
    """A GGUF file that says it is a Llama."""
    named = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values) + named + behind


def array(kind: int, length: int, behind: bytes = b"\0" * 64) -> bytes:
    return text(b"x") + struct.pack("<IIQ", 9, kind, length) + behind


GGUF = {
    "countless values": gguf(0, 2**60),
    "countless tensors": gguf(2**60, 1),
    "a name of exabytes": gguf(0, 2, struct.pack("<Q", 2**62) + b"x"),
    "a huge array of bytes": gguf(0, 2, array(0, 2**40)),
    "a huge array of texts": gguf(0, 2, array(8, 2**40)),
    "arrays in arrays": gguf(0, 2, array(9, 2, struct.pack("<IQ", 9, 1) * 100_000)),
    "an unknown type": gguf(0, 2, text(b"x") + struct.pack("<I", 99)),
    "a tensor too large": gguf(
        1, 1, text(b"token_embd.weight") + struct.pack("<I4QIQ", 4, *[2**31] * 4, 0, 0)
    ),
}


@pytest.mark.parametrize("kind", GGUF)
def test_a_hostile_gguf_file_is_refused(tmp_path: Path, refusal: Any, kind: str) -> None:
    (tmp_path / "x.gguf").write_bytes(GGUF[kind])
    assert "cannot be loaded as a model" in refusal(load, str(tmp_path / "x.gguf"))


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


def test_a_plain_chat_template_is_used(model: Path) -> None:
    (model / "chat_template.jinja").write_text(CHAT)
    scorer: Any = load(str(model))
    assert len(scorer.generate(["she"], max_new_tokens=2)) == 1
