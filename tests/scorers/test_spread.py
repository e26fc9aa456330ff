"""`--device auto`: a model in parts says what it says in one piece."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from bench import scorers
from tests.helpers import checkpoints

PROMPTS = ["他是医生。", "abc", "她不是"]


def in_parts(monkeypatch: pytest.MonkeyPatch, factory: str, folder: Path) -> list[dict[str, Any]]:
    """As if only some kilobytes of memory were there: accelerate leaves the other parts on disk."""
    whole, asked = getattr(transformers, factory).from_pretrained, []

    def load(*given: Any, **options: Any) -> Any:
        asked.append(options)
        return whole(*given, **options, max_memory={"cpu": 60_000}, offload_folder=str(folder))

    monkeypatch.setattr(getattr(transformers, factory), "from_pretrained", load)
    return asked


@pytest.mark.parametrize("parts", [False, True])
def test_a_causal_model_in_parts_says_the_same(
    tmp_path: Path, monkeypatch: Any, parts: bool
) -> None:
    folder = checkpoints.save(
        tmp_path / "m",
        LlamaForCausalLM,
        LlamaConfig,
        checkpoints.characters("[CLS] $A"),
        num_hidden_layers=4,
    )
    plain: Any = scorers.load(str(folder))
    if parts:
        asked = in_parts(monkeypatch, "AutoModelForCausalLM", tmp_path / "off")
    spread: Any = scorers.load(str(folder), device="auto")
    if parts:
        assert asked[0]["device_map"] == "auto"
        assert set(spread.network.hf_device_map.values()) == {"cpu", "disk"}
    assert {**spread.describe(), "device": "cpu"} == plain.describe()
    assert spread.describe()["device"] == "auto"
    np.testing.assert_allclose(spread.nll(PROMPTS), plain.nll(PROMPTS), rtol=1e-5)
    options = ["A", "他是", "BC"]
    np.testing.assert_allclose(
        spread.choose(PROMPTS, options), plain.choose(PROMPTS, options), rtol=1e-5
    )
    assert spread.generate(PROMPTS, max_new_tokens=8) == plain.generate(PROMPTS, max_new_tokens=8)


def test_a_masked_model_in_parts_says_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    folder = checkpoints.save(
        tmp_path / "m", BertForMaskedLM, BertConfig, checkpoints.characters(checkpoints.BERT)
    )
    plain: Any = scorers.load(str(folder))
    in_parts(monkeypatch, "AutoModelForMaskedLM", tmp_path / "off")
    spread: Any = scorers.load(str(folder), device="auto")
    assert "disk" in spread.network.hf_device_map.values()
    np.testing.assert_allclose(
        spread.choose(PROMPTS, ["A", "他"]), plain.choose(PROMPTS, ["A", "他"]), rtol=1e-5
    )


def test_a_wrong_device_names_auto_too(refusal: Any, tmp_path: Path) -> None:
    assert "cuda:N, auto" in refusal(scorers.load, "nobody/nothing", device="gpu")
