"""A GGUF file is read with everything in it, or refused.

The numbers are those of the network in transformers from which a file was written, one text at a
time in float64; the tokens are those of llama.cpp, by its rules.
"""

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from bench.scorers import load
from tests.helpers.checkpoints import random_network, reference, save_gguf

TEXT = "The nurse said that she was late because it rained. 她是护士，他是医生。"
N_TOKENS = 259  # bytes, two merges and <|end|>
ROPE, SCALING = "{arch}.rope.", "{arch}.rope.scaling."
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
YARN |= {"original_max_position_embeddings": 32, "beta_fast": 8.0, "beta_slow": 2.0}
YARN_KEYS = {
    f"{SCALING}type": "yarn",
    f"{SCALING}factor": 4.0,
    f"{SCALING}original_context_length": 32,
    f"{SCALING}yarn_beta_fast": 8.0,
    f"{SCALING}yarn_beta_slow": 2.0,
}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0}
LLAMA3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
# The wave lengths of the four frequencies are 6, 63, 628 and 6283 positions. At 64/4 = 16 or fewer
# we keep a frequency, from 64 on we divide it by 8, and blend between them.
BLEND = (64 / (2 * np.pi * 10) - 1) / 3
FACTORS = {"rope_freqs.weight": [1, 1 / ((1 - BLEND) / 8 + BLEND), 8, 8]}
GEMMA = {"tie_word_embeddings": True, "head_dim": 8, "sliding_window": 8}
GEMMA_KEYS = {"{arch}.attention.key_length": 8, "{arch}.attention.sliding_window": 8}
GEMMA3 = {**GEMMA, "initializer_range": 0.1}
GEMMA3_KEYS = {**GEMMA_KEYS, f"{ROPE}freq_base": 1e6}
PAD, PAD_KEY = {"pad_token_id": 0}, {"tokenizer.ggml.padding_token_id": 0}
ORIGINAL = {f"{SCALING}original_context_length": 32, f"{SCALING}attn_factor": 1.5}
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
LONG |= {"short_factor": [1.0, 2.0], "long_factor": [1.0, 9.0], "attention_factor": 1.5}
LONG |= {"original_max_position_embeddings": 32}
LONG_FACTORS = {"rope_factors_short.weight": [1, 2], "rope_factors_long.weight": [1, 9]}
PARTIAL = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
FULL = {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}
LOCAL = {"rope_type": "default", "rope_theta": 2e3}
LAYERS = {"rope_parameters": {"full_attention": FULL, "sliding_attention": LOCAL}}
LAYERS_KEYS = {f"{SCALING}type": "linear", f"{SCALING}factor": 8.0, f"{ROPE}freq_base_swa": 2e3}


@pytest.mark.parametrize(
    ("family", "shape", "keys", "tensors"),
    [
        ("Llama", {}, {f"{ROPE}dimension_count": 8, f"{SCALING}type": "none"}, {}),
        ("Llama", {"rope_parameters": LINEAR}, {f"{SCALING}factor": 4.0}, {}),
        ("Llama", {"rope_parameters": LINEAR}, {f"{ROPE}scale_linear": 4.0}, {}),
        ("Llama", {"rope_parameters": LLAMA3}, {f"{ROPE}dimension_count": 8}, FACTORS),
        ("Llama", {"head_dim": 16}, {"{arch}.attention.key_length": 16}, {}),
        ("Llama", {"attention_bias": True, "mlp_bias": True}, {}, {}),
        ("Llama", {}, {"{arch}.attention.scale": 8**-0.5, "{arch}.logit_scale": 1.0}, {}),
        ("Llama", {}, {"{arch}.vision.block_count": 1}, {"v.patch_embd.weight": [1.0]}),
        ("Qwen2", {"rope_parameters": YARN}, YARN_KEYS, {}),
        ("Phi3", {**PAD, "rope_parameters": PARTIAL}, PAD_KEY | {f"{ROPE}dimension_count": 4}, {}),
        (
            "Phi3",
            {**PAD, "rope_parameters": LONG, "original_max_position_embeddings": 32},
            PAD_KEY | ORIGINAL | {f"{ROPE}dimension_count": 4},
            LONG_FACTORS,
        ),
        (
            "Phi3",
            {**PAD, "sliding_window": 8},
            PAD_KEY | {"{arch}.attention.sliding_window": 8},
            {},
        ),
        (
            "Gemma2",
            {**GEMMA, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 7.0},
            GEMMA_KEYS
            | {"{arch}.attn_logit_softcapping": 3.0, "{arch}.final_logit_softcapping": 7.0},
            {},
        ),
        pytest.param(
            "Gemma2",
            {**GEMMA, "num_hidden_layers": 46, "query_pre_attn_scalar": 8},
            GEMMA_KEYS,
            {},
            marks=pytest.mark.slow,
        ),
        ("Gemma3", {**GEMMA3, **LAYERS, "num_hidden_layers": 6}, GEMMA3_KEYS | LAYERS_KEYS, {}),
    ],
)
def test_the_numbers_are_those_of_the_network(tmp_path, family, shape, keys, tensors):
    network = random_network(family, N_TOKENS, **shape)
    for name, weight in network.named_parameters():
        if name.endswith("bias"):
            weight.data.normal_(0, 0.3)
    path = save_gguf(tmp_path / "tiny.gguf", network=network, keys=keys, tensors=tensors)
    scorer = load(str(path))
    for text in (TEXT, TEXT[:20]):
        expected = reference(network, scorer.tokenizer(text)["input_ids"])
        np.testing.assert_allclose(scorer.token_logprobs([text])[0], expected, atol=1e-3)


@pytest.mark.parametrize(
    ("keys", "tensors", "message"),
    [
        ({f"{SCALING}type": "longrope"}, {}, "llama.rope.scaling.type = longrope"),
        ({f"{SCALING}attn_factor": 1.5}, {}, "llama.rope.scaling.attn_factor = 1.5"),
        ({f"{ROPE}dimension_count": 4}, {}, "llama.rope.dimension_count = 4"),
        ({"{arch}.logit_scale": 2.0}, {}, "llama.logit_scale = 2.0"),
        ({"{arch}.attention.scale": 0.5}, {}, "llama.attention.scale = 0.5"),
        ({"{arch}.attention.sliding_window": 8}, {}, "llama.attention.sliding_window = 8"),
        ({"{arch}.attention.causal": False}, {}, "llama.attention.causal = False"),
        ({"{arch}.of_next_year": "x"}, {}, "llama.of_next_year = x"),
        ({"tokenizer.ggml.add_sep_token": True}, {}, "tokenizer.ggml.add_sep_token = True"),
        ({"tokenizer.ggml.of_next_year": 1}, {}, "tokenizer.ggml.of_next_year = 1"),
        ({"general.type": "adapter"}, {}, "adapter"),
        ({}, {"blk.0.attn_q.bias": [0.5] * 32}, "the tensors blk.0.attn_q.bias"),
        ({}, {"blk.0.ffn_up.scale": [2.0]}, "the tensors blk.0.ffn_up.scale"),
        ({}, {"rope_factors_long.weight": [2.0] * 4}, "the tensors rope_factors_long.weight"),
        ({}, {"rope_freqs.weight": [2.0] * 3}, "the tensors rope_freqs.weight"),
    ],
)
def test_an_entry_without_a_place_is_named(tmp_path, refusal, keys, tensors, message):
    path = save_gguf(tmp_path / "tiny.gguf", keys=keys, tensors=tensors)
    error = refusal(load, str(path))
    assert error.startswith(f"{path}: ")
    assert message in error
    assert "openai:my-model@http://localhost:8080/v1" in error


CONTROL = ("<｜User｜>", "<think>", "<|end|>")
# "Ġthe" is a token that no merges make.
WORDS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "he", "Ġthe", *CONTROL]
NO_BOS = {"tokenizer.ggml.add_bos_token": False}


@pytest.mark.parametrize(
    ("pre", "keys", "text", "tokens"),
    [
        ("llama-bpe", {}, "a", ["<|end|>", "a"]),
        ("llama-bpe", NO_BOS, "a", ["a"]),
        ("llama-bpe", NO_BOS, "in the", ["i", "n", "Ġthe"]),
        ("qwen2", {}, "in the", ["i", "n", "Ġ", "th", "e"]),
        ("qwen2", {"tokenizer.ggml.add_bos_token": True}, "a", ["<|end|>", "a"]),
        ("qwen2", {}, "<｜User｜>a<think>", ["<｜User｜>", "a", "<think>"]),
    ],
)
def test_byte_level_tokens_are_those_of_llama_cpp(tmp_path, pre, keys, text, tokens):
    options = {"keys": keys, "special": CONTROL, "pieces": WORDS}
    coder = load(str(save_gguf(tmp_path / "tiny.gguf", pre, **options))).tokenizer
    assert coder.convert_ids_to_tokens(coder(text)["input_ids"]) == tokens
    assert coder.get_vocab() == {token: k for k, token in enumerate(WORDS)}


@pytest.mark.parametrize(
    ("prefix", "tokens"), [(None, ["▁ab"]), (True, ["▁ab"]), (False, ["ab"])], ids=str
)
def test_a_blank_is_put_before_a_text_as_the_file_says(tmp_path, prefix, tokens):
    pieces = ["▁", *"abc", "▁a", "ab", "▁ab", "<s>"]
    keys = {} if prefix is None else {"tokenizer.ggml.add_space_prefix": prefix}
    scores = [-float(k) for k in range(len(pieces))]
    options = {"keys": keys, "special": ("<s>",), "pieces": pieces, "scores": scores}
    coder = load(str(save_gguf(tmp_path / "tiny.gguf", **options))).tokenizer
    assert coder.convert_ids_to_tokens(coder("ab")["input_ids"]) == ["<s>", *tokens]
    assert coder.decode(coder("ab c", add_special_tokens=False)["input_ids"]) == "ab c"


@pytest.mark.parametrize(("key", "value"), [("eot", 7), ("eom", 7), ("eos_token_ids", [7, 258])])
def test_the_tokens_that_end_a_turn_end_replies(tmp_path, key, value):
    name = key if isinstance(value, list) else f"{key}_token_id"
    path = save_gguf(tmp_path / "tiny.gguf", keys={f"tokenizer.ggml.{name}": value})
    assert set(load(str(path)).network.generation_config.eos_token_id) == {7, 258}


SPLIT = {"split.no": 1, "split.count": 3}


@pytest.mark.parametrize(
    ("name", "keys"),
    [("m-00002-of-00003.gguf", SPLIT), ("m-00002-of-00003.gguf", {}), ("renamed.gguf", SPLIT)],
)
def test_a_part_of_a_file_is_refused_with_a_way_to_join_the_parts(tmp_path, refusal, name, keys):
    path = save_gguf(tmp_path / name, keys=keys)
    error = refusal(load, str(path))
    assert error.startswith(f"{path}: is part 2 of 3 of a model")
    assert f"llama-gguf-split --merge {path.stem.split('-')[0]}-00001-of-00003.gguf" in error


def test_an_architecture_that_is_unknown_is_refused_with_a_way_out(tmp_path, refusal):
    path = save_gguf(tmp_path / "tiny.gguf", keys={"general.architecture": "mpt"})
    assert "llama-server" in refusal(load, str(path))
