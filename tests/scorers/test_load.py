"""Loading: whatever MODEL can be, the right scorer or a sentence that names the way out; and nobody's code runs."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
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
from tests.helpers.checkpoints import BERT, characters, merging, save, save_gguf


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        tmp_path_factory.mktemp("llama"), LlamaForCausalLM, LlamaConfig, characters("[CLS] $A")
    )


def test_a_folder_says_what_it_can_do(tmp_path: Path, llama: Path) -> None:
    labels = dict(enumerate(["neutral", "entailment", "contradiction"]))
    save(
        tmp_path / "nli",
        BertForSequenceClassification,
        BertConfig,
        characters(BERT),
        id2label=labels,
    )
    save(tmp_path / "bert", BertForPreTraining, BertConfig, characters(BERT))
    verbs = {
        str(llama): ("nll", "choose", "generate"),
        str(tmp_path / "nli"): ("classify",),
        str(tmp_path / "bert"): ("nll", "choose"),
    }
    for folder, expected in verbs.items():
        scorer = load(folder)
        assert isinstance(scorer, Scorer)
        assert scorer.verbs == expected
        about = scorer.describe()
        assert (about["id"], about["device"], about["dtype"]) == (folder, "cpu", "float32")
        json.dumps(about)


def test_dtype_is_the_models(llama: Path) -> None:
    scorer: Any = load(str(llama), device="cpu", dtype="bfloat16")
    assert scorer.network.dtype == torch.bfloat16
    assert scorer.describe()["dtype"] == "bfloat16"
    assert scorer.nll(["she is a doctor"])[0] == pytest.approx(
        load(str(llama)).nll(["she is a doctor"])[0], rel=0.02
    )


def test_the_fingerprint_tells_weights_apart(tmp_path: Path, llama: Path) -> None:
    other = save(
        tmp_path, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"), num_hidden_layers=1
    )
    a, b, again = (load(str(folder)).describe()["revision"] for folder in (llama, other, llama))
    assert a == again != b


def test_a_folder_keeps_its_own_tokenizer(tmp_path: Path) -> None:
    """AutoTokenizer would split the text as Qwen2 does, whatever tokenizer.json says."""
    for name, coder in {"characters": characters(), "bytes": merging(("Ċ", "A"))}.items():
        scorer: Any = load(
            str(save(tmp_path / name, Qwen2ForCausalLM, Qwen2Config, coder, num_key_value_heads=4))
        )
        assert scorer.tokenizer("she?\nA")["input_ids"] == coder("she?\nA")["input_ids"] != []


def test_gguf(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = save_gguf(tmp_path / "tiny.gguf")
    scorer: Any = load(str(path))
    assert scorer.verbs == ("nll", "choose", "generate")
    assert scorer.describe()["revision"].startswith("sha256:")
    text = "她 is a doctor. 🙂"
    assert (
        scorer.tokenizer.decode(scorer.tokenizer(text)["input_ids"], skip_special_tokens=True)
        == text
    )
    ids = torch.tensor([scorer.tokenizer(text)["input_ids"]])
    assert scorer.nll([text])[0] == pytest.approx(
        scorer.network(ids, labels=ids).loss.item(), rel=1e-5
    )
    assert capfd.readouterr().err == "", "no bar where there is no terminal"


def test_gguf_shows_a_bar_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    load(str(save_gguf(tmp_path / "tiny.gguf")))
    assert "GGUF" in capsys.readouterr().err


def broken(folder: Path, model: Path, name: str, content: bytes | None) -> str:
    """A copy of `model` with one file replaced or left out."""
    folder.mkdir()
    for path in model.iterdir():
        if path.name != name:
            (folder / path.name).write_bytes(path.read_bytes())
    if content is not None:
        (folder / name).write_bytes(content)
    return str(folder)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.json", None, "no config.json"),
        ("config.json", b"{", "cannot be loaded"),
        ("config.json", b"[]", "cannot be loaded"),
        (
            "config.json",
            b'{"model_type": "unheard-of", "architectures": ["UnheardOf"]}',
            "unheard-of",
        ),
        (
            "config.json",
            b'{"model_type": "t5", "architectures": ["T5EncoderModel"]}',
            "*ForCausalLM",
        ),
        (
            "config.json",
            b'{"model_type": "vit", "architectures": ["ViTForImageClassification"]}',
            "ViTForImageClassification",
        ),
        ("model.safetensors", None, "model.safetensors"),
        ("model.safetensors", b"junk", "cannot be loaded"),
        ("tokenizer.json", b"junk", "cannot be loaded"),
        ("tokenizer.json", None, "cannot be loaded"),
    ],
)
def test_a_broken_folder_is_refused(
    tmp_path: Path, llama: Path, refusal: Any, name: str, content: bytes | None, says: str
) -> None:
    model = broken(tmp_path / "copy", llama, name, content)
    message = refusal(load, model)
    assert message.startswith(f"{model}: ")
    assert says in message


def test_a_folder_of_gguf_files_names_one(tmp_path: Path, refusal: Any) -> None:
    save_gguf(tmp_path / "tiny.gguf")
    assert str(tmp_path / "tiny.gguf") in refusal(load, str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"junk", b"GGUF", b"GGUF\3\0\0\0" + b"\xff" * 64])
def test_a_broken_gguf_file_is_refused(tmp_path: Path, refusal: Any, content: bytes) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    assert refusal(load, str(tmp_path / "x.gguf")).startswith(
        f"{tmp_path / 'x.gguf'}: cannot be loaded"
    )


def test_half_a_gguf_file_is_refused(tmp_path: Path, refusal: Any) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    path.write_bytes(path.read_bytes()[:-20_000])
    assert "cannot be loaded" in refusal(load, str(path))


def test_weights_of_another_shape_are_refused(tmp_path: Path, llama: Path, refusal: Any) -> None:
    config = json.loads((llama / "config.json").read_text()) | {"vocab_size": 300}
    assert "cannot be loaded" in refusal(
        load, broken(tmp_path / "copy", llama, "config.json", json.dumps(config).encode())
    )


def test_what_would_be_half_random_is_refused(tmp_path: Path, refusal: Any) -> None:
    """A discriminator has no vocabulary to predict from, and an encoder-decoder is no language model by itself."""
    electra = save(tmp_path / "electra", ElectraForPreTraining, ElectraConfig, characters(BERT))
    bart = save(
        tmp_path / "bart",
        BartForConditionalGeneration,
        BartConfig,
        characters(BERT),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
    )
    for folder in (electra, bart):
        assert "would be random" in refusal(load, str(folder))


class Plant:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def test_pickled_weights_are_refused_and_not_loaded(
    tmp_path: Path, llama: Path, refusal: Any
) -> None:
    model = broken(tmp_path / "copy", llama, "model.safetensors", None)
    weights = Path(model) / "pytorch_model.bin"
    torch.save({"model.embed_tokens.weight": Plant(tmp_path / "ran")}, weights)
    message = refusal(load, model)
    assert message.startswith(f"{model}: ")
    assert "pickled (pytorch_model.bin)" in message
    assert "convert them to safetensors" in message
    (Path(model) / "adapter.safetensors").write_bytes(b"not the weights")
    assert "no file named model.safetensors" in refusal(load, model)
    assert not (tmp_path / "ran").exists()
    torch.load(weights, weights_only=False)
    assert (tmp_path / "ran").exists(), "the plant works"


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
    config = json.loads((llama / "config.json").read_text()) | {
        "model_type": model_type,
        "auto_map": {"AutoConfig": "planted.Config", "AutoModelForCausalLM": "planted.Network"},
    }
    model = broken(tmp_path / "copy", llama, "config.json", json.dumps(config).encode())
    for name in ("tokenizer_config.json",):
        coder = json.loads((llama / name).read_text()) | {
            "auto_map": {"AutoTokenizer": [None, "planted.Coder"]}
        }
        (Path(model) / name).write_text(json.dumps(coder))
    ran = tmp_path / "ran"
    (Path(model) / "planted.py").write_text(CODE.format(ran=str(ran)))
    # Nobody is at the terminal to be asked; where somebody was, nothing must be asked either.
    monkeypatch.setattr("builtins.input", lambda *args: "y")
    if model_type == "planted":
        assert "cannot be loaded" in refusal(load, model)
    else:
        load(model)  # as the Llama that it also is
    assert not ran.exists()
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    load(model, trust_remote_code=True)
    assert ran.exists(), "the plant works"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("", "Hub id"),
        ("  ", "Hub id"),
        ("./no/such/folder", "no such model folder"),
        ("/no/such/model.gguf", "no such model folder"),
        ("no-such.gguf", "no such model folder"),
        ("nonsense:x", "tiny, simulated, replay, predictions, openai"),
        ("gpt:4", "'gpt'"),
        ("replay:no-such.jsonl", "no such file"),
        ("openai:name", "NAME@URL"),
        ("simulated:bias=2", "outside 0 to 1"),
        ("tiny:xl", "s, m, l"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_is_loaded(
    refusal: Any, model: str, says: str
) -> None:
    for call in (check, load):
        assert says in refusal(call, model)


def test_a_file_that_is_no_gguf_file_is_refused(tmp_path: Path, refusal: Any) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x")
    assert "not a .gguf file" in refusal(load, str(tmp_path / "model.onnx"))


@pytest.mark.parametrize("model", ["no-such-model", "no-such-organisation/no-such-model"])
def test_a_hub_model_that_is_not_there_is_named(
    refusal: Any, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = refusal(load, model)
    assert message.startswith(f"{model}: is not in the local cache")
    assert "HF_HUB_OFFLINE" in message


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("dtype", "float8", "float32, bfloat16, float16"),
        ("device", "gpu", "cpu, cuda"),
        ("device", "cuda:99", "not available"),
        ("device", "", "cpu, cuda"),
        ("batch_tokens", 0, "at least one token"),
        ("batch_tokens", -5, "at least one token"),
    ],
)
def test_a_bad_option_is_named(
    llama: Path, refusal: Any, option: str, value: object, says: str
) -> None:
    message = refusal(load, str(llama), **{option: value})
    assert message.startswith("--" + option.replace("_", "-"))
    assert says in message


def test_options_reach_the_numbers_only_where_they_should(llama: Path) -> None:
    texts = ["she is a doctor", "x", "他是医生"]
    one, many = (load(str(llama), batch_tokens=n) for n in (1, 9999))
    np.testing.assert_allclose(one.nll(texts), many.nll(texts), rtol=1e-5)
