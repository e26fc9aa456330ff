"""Reading off a tree: equal to a model's own logits for texts that share every possible beginning, whatever the model."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from bench.scorers.base import Tally
from bench.scorers.local import logprobs as reading
from bench.scorers.local.device import Placement, placement
from bench.scorers.local.logprobs import LogprobReader, Row, TokenLogprobs
from tests.helpers.checkpoints import SHAPE

VOCABULARY = 61
# Name to architecture, what its shape has besides, and whether it can be asked by blocks, and by trees at all.
MODELS: dict[str, tuple[str, dict[str, Any], bool, bool]] = {
    "llama, grouped queries": ("Llama", {"num_key_value_heads": 2}, True, True),
    "qwen2, tied": ("Qwen2", {"num_key_value_heads": 1, "tie_word_embeddings": True}, True, True),
    "qwen3": ("Qwen3", {"num_key_value_heads": 2, "head_dim": 8}, True, True),
    "phi, bias in the head": ("Phi", {}, True, True),
    "gpt-neox": ("GPTNeoX", {}, True, True),
    "gpt2": ("GPT2", {"n_positions": 512}, True, True),
    "opt, positions offset": ("OPT", {"word_embed_proj_dim": 32, "ffn_dim": 64}, True, True),
    "mistral, a window that is wide enough": (
        "Mistral",
        {"sliding_window": 400, "num_key_value_heads": 2},
        True,
        True,
    ),
    "gemma2, attention and logits capped": (
        "Gemma2",
        {"head_dim": 8, "final_logit_softcapping": 3.0},
        False,
        True,
    ),
    "gemma3, two kinds of layers": ("Gemma3", {"head_dim": 8, "sliding_window": 300}, True, True),
    "cohere, logits scaled": ("Cohere", {"logit_scale": 4.0}, True, True),
    "bloom, no positions": ("Bloom", {"n_layer": 2, "n_head": 4}, False, False),
    "mamba, no attention": ("Mamba", {"state_size": 4}, False, False),
}


def network(name: str, **more: Any) -> Any:
    kind, shape, _, _ = MODELS[name]
    config_name = "Gemma3TextConfig" if kind == "Gemma3" else f"{kind}Config"
    model_name = "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
    torch.manual_seed(3)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = getattr(transformers, config_name)(
        vocab_size=VOCABULARY, **{**SHAPE, **special, **shape, **more}
    )
    return getattr(transformers, model_name)(config).eval()


def texts() -> list[list[int]]:
    """Beginnings of one text of every length, each going on in ways of its own; one token; twice the same; alone."""
    dice = random.Random(0)
    trunk = [dice.randrange(3, VOCABULARY) for _ in range(30)]
    found = [
        trunk[:k] + [dice.randrange(3, VOCABULARY) for _ in range(dice.randrange(1, 9))]
        for k in range(30)
    ]
    return [*found, found[4], trunk[:1], trunk, [dice.randrange(3, VOCABULARY) for _ in range(50)]]


def slow(model: Any, ids: list[int]) -> np.ndarray:
    """Log-probability of each token after the first, from full logits in float64."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return np.array([float(logits[i, token]) for i, token in enumerate(ids[1:])])


def rows(some: list[list[int]]) -> list[Row]:
    return [
        Row(tuple(ids), tuple((i, after) for i, (_, after) in enumerate(pairwise(ids))))
        for ids in some
    ]


def reader(model: Any, tree_tokens: int = 64, dtype: str = "float32") -> LogprobReader:
    where = placement("cpu", dtype, None)
    return LogprobReader(
        model, where.__class__(where.device, where.dtype, where.batch_tokens, tree_tokens), 0
    )


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_is_read_as_it_is(name: str) -> None:
    model = network(name)
    asked = reader(model)
    assert (asked._by_block, asked._trees) == MODELS[name][2:]
    for ids, found in zip(texts(), asked.read(rows(texts())), strict=True):
        np.testing.assert_allclose(found, slow(model, ids), atol=2e-5)
    shared = len({tuple(ids[:k]) for ids in texts() for k in range(1, len(ids) + 1)})
    long = sum(len(ids) for ids in texts() if len(ids) > 1)
    assert asked.tally.asked == long
    assert (asked.tally.computed == shared) is MODELS[name][3]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize("by_block", [True, False])
def test_neither_the_stretch_nor_the_way_of_attending_matters(
    monkeypatch: Any, size: int, by_block: bool
) -> None:
    monkeypatch.setattr("bench.scorers.local.tree_attention.BLOCK", 5)
    model = network("llama, grouped queries")
    asked = reader(model, size)
    asked._by_block = by_block
    for ids, found in zip(texts(), asked.read(rows(texts())), strict=True):
        np.testing.assert_allclose(found, slow(model, ids), atol=1e-5)


def test_what_shares_little_is_read_in_batches_with_the_same_numbers() -> None:
    model = network("qwen2, tied")
    asked = reader(model)
    dice = random.Random(1)
    some = [
        [dice.randrange(3, VOCABULARY) for _ in range(dice.randrange(2, 40))] for _ in range(20)
    ]
    for ids, found in zip(some, asked.read(rows(some)), strict=True):
        np.testing.assert_allclose(found, slow(model, ids), atol=1e-5)
    assert asked.tally.computed > asked.tally.asked, "with padding"


def test_texts_beyond_a_window_are_read_in_batches() -> None:
    model = network("mistral, a window that is wide enough", sliding_window=8)
    asked = reader(model)
    for some in (texts(), [ids[:8] for ids in texts()]):
        for ids, found in zip(some, asked.read(rows(some)), strict=True):
            np.testing.assert_allclose(found, slow(model, ids), atol=1e-5)
    assert asked._window == 8


def test_only_what_is_asked_is_read_and_the_vocabulary_comes_in_pieces(monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "VOCABULARY", 7)
    for name in ("phi, bias in the head", "cohere, logits scaled"):
        model = network(name)
        some = [
            Row((5, 6, 7), ((2, 3), (2, 60), (0, 6))),
            Row((5, 6), ()),
            Row((5, 6, 8), ((2, 0),)),
        ]
        first, nothing, last = reader(model).read(some)
        with torch.no_grad():
            logits = model(torch.tensor([[5, 6, 7], [5, 6, 8]])).logits.double().log_softmax(-1)
        np.testing.assert_allclose(
            first, [logits[0, 2, 3], logits[0, 2, 60], logits[0, 0, 6]], atol=1e-5
        )
        np.testing.assert_allclose(last, [logits[1, 2, 0]], atol=1e-5)
        assert len(nothing) == 0
    assert reader(model).read([]) == []


@pytest.mark.parametrize("trees", [True, False])
def test_what_does_not_fit_into_memory_is_halved_and_stays_so(
    monkeypatch: Any, trees: bool
) -> None:
    model = network("qwen2, tied")
    asked = reader(model, 64)
    asked._trees, asked._batch_tokens = trees, 400
    forward, sizes = model.base_model.forward, []

    def small(*args: Any, **options: Any) -> Any:
        sizes.append(options["input_ids"].numel())
        if sizes[-1] > (20 if trees else 100):
            raise torch.OutOfMemoryError("too much")
        return forward(*args, **options)

    monkeypatch.setattr(model.base_model, "forward", small)
    for ids, found in zip(texts(), asked.read(rows(texts())), strict=True):
        np.testing.assert_allclose(found, slow_by(forward, model, ids), atol=1e-5)
    assert (asked._tree_tokens, asked._batch_tokens) == ((16, 400) if trees else (64, 100))
    refused = sum(size > (20 if trees else 100) for size in sizes)
    assert refused == 2, "the size that was found is kept"


@pytest.mark.parametrize("which", range(1, 9))
def test_a_stretch_whose_logits_do_not_fit_is_computed_again_from_the_one_before(
    monkeypatch: Any, which: int
) -> None:
    model = network("llama, grouped queries")
    asked = reader(model, 16)
    logprobs, calls = asked._add_logprobs, []

    def small(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == which:
            raise torch.OutOfMemoryError("too much")
        return logprobs(*args)

    monkeypatch.setattr(asked, "_add_logprobs", small)
    for ids, found in zip(texts(), asked.read(rows(texts())), strict=True):
        np.testing.assert_allclose(found, slow(model, ids), atol=1e-5)
    assert asked._tree_tokens == 8


def slow_by(forward: Any, model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        states = forward(input_ids=torch.tensor([ids])).last_hidden_state
        logits = model.get_output_embeddings()(states)[0].double().log_softmax(-1)
    return np.array([float(logits[i, token]) for i, token in enumerate(ids[1:])])


def test_in_bfloat16_a_tree_is_as_near_to_float32_as_batches_are() -> None:
    exact = network("llama, grouped queries")
    should = np.concatenate([slow(exact, ids) for ids in texts()])
    off = []
    for trees in (True, False):
        asked = reader(network("llama, grouped queries").bfloat16(), dtype="bfloat16")
        assert asked._trees
        asked._trees = trees
        off.append(np.abs(np.concatenate(asked.read(rows(texts()))) - should).mean())
    assert off[0] < 0.1
    assert off[0] < 1.5 * off[1]


def test_the_network_attends_as_before_afterwards(tmp_path: Path) -> None:
    model = network("llama, grouped queries")
    before = model.config._attn_implementation
    reader(model).read(rows(texts()))
    assert model.config._attn_implementation == before


def test_nothing_waits_for_an_accelerator_before_all_is_asked(monkeypatch: Any) -> None:
    """Tensors without numbers: whatever looks at one, or leaves one on another device, fails."""
    # transformers 5.0 asks whether autocast is on, which torch does not know of this device.
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
    model: Any = network("qwen2, tied").to(device="meta", dtype=torch.bfloat16)
    reader = object.__new__(LogprobReader)
    reader.network, reader.where = model, Placement(torch.device("meta"), torch.bfloat16, 64, 16)
    reader.padding, reader.tally, reader._tree_tokens, reader._batch_tokens = 0, Tally(), 16, 64
    reader._separable, reader._trees, reader._by_block, reader._window = True, True, False, None
    given: list[tuple[Any, torch.Tensor]] = []

    def split(found: TokenLogprobs, rows: list[Row]) -> list[np.ndarray]:
        given.extend(found._parts)
        return [np.zeros(len(row.reads)) for row in rows]

    monkeypatch.setattr(TokenLogprobs, "split", split)
    rows = [Row(tuple(ids), tuple(enumerate(ids[1:]))) for ids in texts()]
    assert [len(found) for found in reader.read(rows)] == [len(row.reads) for row in rows]
    assert len(given) > 5
    assert {(some.device.type, some.dtype) for _, some in given} == {("meta", torch.float32)}
    assert sorted(np.concatenate([places for places, _ in given])) == list(
        range(sum(len(row.reads) for row in rows))
    )
    longest = max(map(len, texts())) - 1
    (keys, values_), *_ = reader.prefill(texts())
    assert (
        keys.shape
        == values_.shape
        == (len(texts()), 1, longest, SHAPE["hidden_size"] // SHAPE["num_attention_heads"])
    )
    assert (keys.device.type, keys.dtype) == ("meta", torch.bfloat16)


def test_on_an_accelerator_as_many_words_meet_as_there_is_room_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "VOCABULARY", 8)
    monkeypatch.setattr(reading, "LOGITS", 100)
    model: Any = network("qwen2, tied")
    reader = LogprobReader(model, placement("cpu", None, None), 0)
    pieces = []
    for kind, n in (("cpu", 3), ("meta", 3), ("meta", 5), ("meta", 99)):
        reader.where = replace(reader.where, device=torch.device(kind))
        pieces.append(
            [logits.shape[1] for logits in reader._logits(torch.zeros(n, SHAPE["hidden_size"]))]
        )
    assert pieces == [[8] * 7 + [5], [33, 28], [20, 20, 20, 1], [8] * 7 + [5]]
