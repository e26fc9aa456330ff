"""Tokens are those that a model was trained on, and scores those of transformers."""

import json

import numpy as np
import pytest

from bench.scorers import load
from tests.benchmarks.architectures import ROWS, Row, differences, digits
from tests.benchmarks.architectures import save as save_row
from tests.helpers.checkpoints import characters, save, save_gguf


@pytest.mark.parametrize("name", ROWS)
def test_scores_are_those_of_transformers_for_one_text_at_a_time(tmp_path, name):
    np.testing.assert_allclose(differences(name, tmp_path), 0, atol=5e-4)


def test_a_class_that_cannot_make_the_tokens_of_its_file_is_refused(tmp_path, refusal):
    """A token that tokenizer_config.json adds is taken out of the text before it is split."""
    name, _ = save_row(Row("LlamaForCausalLM", digits), tmp_path)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text("utf-8")) | {"eos_token": "people"}
    path.write_text(json.dumps(config), "utf-8")
    message = refusal(load, name)
    assert message.startswith(f"{tmp_path / 'tokenizer.json'}: the class ")
    assert "tokenizer_config.json" in message


@pytest.mark.parametrize("pre", ["", "gpt-2", "qwen2"])
def test_a_gguf_file_that_transformers_splits_rightly_keeps_its_tokens(tmp_path, pre):
    if pre == "qwen2":  # which older versions split by the architecture instead
        pytest.importorskip("transformers.integrations.gguf.gguf_tokenizer_mapping")
    path = save_gguf(tmp_path / "tiny.gguf", pre, ("Ġ a", "1 2"))
    scorer = load(str(path))
    alone = pre == "qwen2"  # which splits digits one by one
    tokens = scorer.tokenizer.tokenize("b a12")
    assert tokens == ["b", "Ġa", *(["1", "2"] if alone else ["12"])]
    assert scorer.describe()["tokenizer"].endswith(f"split as {pre or 'default'})")


def test_a_gguf_file_that_is_split_in_an_unknown_way_is_refused(tmp_path, refusal):
    path = save_gguf(tmp_path / "tiny.gguf", "deepseek-llm")
    message = refusal(load, str(path))
    assert message.startswith(f"{path}: splits texts as deepseek-llm")
    assert "tokenizer.json" in message


@pytest.mark.parametrize("around", ["[CLS] [SEP] $A", "[CLS] $A [SEP]"])
def test_a_tokenizer_with_its_own_first_tokens_gets_no_other(tmp_path, around):
    coder = characters(around)
    coder.bos_token = None
    save(tmp_path, "LlamaForCausalLM", coder)
    scorer = load(str(tmp_path))
    assert scorer.describe()["adds_bos"] is True
    plain, forced = (scorer.token_logprobs(["abc"], bos=bos)[0] for bos in (False, True))
    np.testing.assert_array_equal(plain, forced)
