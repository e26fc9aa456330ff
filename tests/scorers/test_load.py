"""Loading: each MODEL gives the right scorer or a sentence that helps; and nobody's code runs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForPreTraining,
    BertForSequenceClassification,
    ElectraConfig,
    ElectraForPreTraining,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from bench.scorers import Scorer, check, load
from tests.helpers.checkpoints import BERT, Plant, broken, characters, merging, save, save_gguf


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    return save(folder, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))


def test_a_folder_has_the_verbs_of_its_architecture(tmp_path: Path, llama: Path) -> None:
    coder, labels = characters(BERT), {0: "neutral", 1: "entailment", 2: "contradiction"}
    nli, bert = tmp_path / "nli", tmp_path / "bert"
    save(nli, BertForSequenceClassification, BertConfig, coder, id2label=labels)
    save(bert, BertForPreTraining, BertConfig, coder)
    verbs: dict[Path, tuple[str, ...]] = {
        llama: ("nll", "choose", "generate"),
        nli: ("classify",),
        bert: ("nll", "choose"),
    }
    revisions = set()
    for folder, expected in verbs.items():
        scorer = load(str(folder))
        assert isinstance(scorer, Scorer)
        assert scorer.verbs == expected
        about = scorer.describe()
        assert (about["id"], about["device"], about["dtype"]) == (str(folder), "cpu", "float32")
        assert load(str(folder)).describe()["revision"] == about["revision"]
        revisions.add(about["revision"])
        json.dumps(about)
    assert len(revisions) == 3


def test_dtype_is_the_networks(llama: Path) -> None:
    scorer: Any = load(str(llama), device="cpu", dtype="bfloat16")
    assert scorer.network.dtype == torch.bfloat16
    assert scorer.describe()["dtype"] == "bfloat16"
    exact: Any = load(str(llama))
    texts = ["she is a doctor"]
    assert scorer.nll(texts) == pytest.approx(exact.nll(texts), rel=0.02)


def test_a_folder_keeps_its_own_tokenizer(tmp_path: Path) -> None:
    """AutoTokenizer would split the text as Qwen2 does, whatever tokenizer.json says."""
    for name, coder in {"characters": characters(), "bytes": merging(("Ċ", "A"))}.items():
        shape = {"num_key_value_heads": 4}
        folder = save(tmp_path / name, Qwen2ForCausalLM, Qwen2Config, coder, **shape)
        scorer: Any = load(str(folder))
        assert scorer.tokenizer("she?\nA")["input_ids"] == coder("she?\nA")["input_ids"] != []


@pytest.mark.parametrize("terminal", [False, True])
def test_gguf(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    scorer: Any = load(str(save_gguf(tmp_path / "tiny.gguf")))
    assert ("GGUF" in capsys.readouterr().err) == terminal, "a progress bar"
    assert scorer.verbs == ("nll", "choose", "generate")
    assert scorer.describe()["revision"].startswith("sha256:")
    text = "她 is a doctor. 🙂"
    ids = scorer.tokenizer(text)["input_ids"]
    assert scorer.tokenizer.decode(ids, skip_special_tokens=True) == text
    tensor = torch.tensor([ids])
    loss = scorer.network(tensor, labels=tensor).loss.item()
    assert scorer.nll([text])[0] == pytest.approx(loss, rel=1e-5)


def config(model_type: str, architecture: str) -> bytes:
    return json.dumps({"model_type": model_type, "architectures": [architecture]}).encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "no config.json"),
        ("config.json", b"{", "cannot be loaded"),
        ("config.json", b"[]", "cannot be loaded"),
        ("config.json", config("unheard-of", "UnheardOf"), "unheard-of"),
        ("config.json", config("t5", "T5EncoderModel"), "*ForCausalLM, *LMHeadModel"),
        ("config.json", config("vit", "ViTForImageClassification"), "ViTForImageClassification"),
        ("model.safetensors", None, "model.safetensors"),
        ("model.safetensors", b"junk", "cannot be loaded"),
        ("tokenizer.json", b"junk", "cannot be loaded"),
        ("tokenizer.json", None, "cannot be loaded"),
    ],
)
def test_a_broken_folder_is_refused(
    tmp_path: Path, llama: Path, refusal: Any, name: str, content: bytes | None, message: str
) -> None:
    model = str(broken(tmp_path / "copy", llama, name, content))
    error = refusal(load, model)
    assert error.startswith(f"{model}: ")
    assert message in error


def test_weights_of_another_shape_are_refused(tmp_path: Path, llama: Path, refusal: Any) -> None:
    content = json.loads((llama / "config.json").read_text()) | {"vocab_size": 300}
    model = broken(tmp_path / "copy", llama, "config.json", json.dumps(content).encode())
    assert "cannot be loaded" in refusal(load, str(model))


@pytest.mark.parametrize("content", [b"", b"junk", b"GGUF", b"GGUF\3\0\0\0" + b"\xff" * 64, None])
def test_a_broken_gguf_file_is_refused(tmp_path: Path, refusal: Any, content: bytes | None) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    assert str(path) in refusal(load, str(tmp_path)), "the folder's file is named"
    path.write_bytes(path.read_bytes()[:-20_000] if content is None else content)
    assert refusal(load, str(path)).startswith(f"{path}: cannot be loaded")


def test_networks_that_would_be_half_random_are_refused(tmp_path: Path, refusal: Any) -> None:
    """A discriminator predicts no vocabulary, and half an encoder-decoder is no language model."""
    coder = characters(BERT)
    electra = save(tmp_path / "electra", ElectraForPreTraining, ElectraConfig, coder)
    shape = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    shape |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    bart = save(tmp_path / "bart", BartForConditionalGeneration, BartConfig, coder, **shape)
    for folder in (electra, bart):
        assert "would be random" in refusal(load, str(folder))


def test_pickled_weights_are_refused_and_not_loaded(
    tmp_path: Path, llama: Path, refusal: Any
) -> None:
    model = broken(tmp_path / "copy", llama, "model.safetensors", None)
    weights, ran = model / "pytorch_model.bin", tmp_path / "ran"
    torch.save({"model.embed_tokens.weight": Plant(ran)}, weights)
    message = refusal(load, str(model))
    assert message.startswith(f"{model}: ")
    assert "pickled (pytorch_model.bin)" in message
    assert "convert them to safetensors" in message
    (model / "adapter.safetensors").write_bytes(b"not the weights")
    assert "no file named model.safetensors" in refusal(load, str(model))
    assert not ran.exists()
    torch.load(weights, weights_only=False)
    assert ran.exists(), "the plant works"


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
    tmp_path: Path, llama: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch, model_type: str
) -> None:
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
        ("", "Hub id"),
        ("  ", "Hub id"),
        ("./no/such/folder", "no such model folder"),
        ("/no/such/model.gguf", "no such model folder"),
        ("nonsense:x", "tiny, simulated, replay, predictions, openai"),
        ("replay:no-such.jsonl", "no such file of recorded answers"),
        ("predictions:no-such.csv", "no such file of predictions"),
        ("openai:name", "NAME@URL"),
        ("simulated:bias=2", "outside 0 to 1"),
        ("tiny:xl", "s, m, l"),
        ("a/b/c", "NAME or ORGANISATION/NAME"),
        ("acme/tiny@", "NAME or ORGANISATION/NAME"),
        ("pretrained=acme/tiny,revision=main", "NAME or ORGANISATION/NAME"),
        ("acme/tiny@a@b", "NAME or ORGANISATION/NAME"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_is_loaded(
    refusal: Any, model: str, message: str
) -> None:
    for call in (check, load):
        assert message in refusal(call, model)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("dtype", "float8", "float32, bfloat16, float16"),
        ("device", "gpu", "cpu, cuda, cuda:N, auto"),
        ("device", "cuda:99", "not available"),
        ("batch_tokens", 0, "at least one token"),
    ],
)
def test_a_wrong_option_or_file_is_named(
    tmp_path: Path, llama: Path, refusal: Any, option: str, value: object, message: str
) -> None:
    error = refusal(load, str(llama), **{option: value})
    assert error.startswith("--" + option.replace("_", "-"))
    assert message in error
    (tmp_path / "model.onnx").write_bytes(b"x")
    assert "not a .gguf file" in refusal(load, str(tmp_path / "model.onnx"))
