"""Likelihoods of causal models: equal to a slow reference, by prefix tree or in batches."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from bench.scorers import load
from bench.scorers.local import logprobs
from bench.scorers.local.device import placement
from bench.scorers.local.logprobs import LogprobReader, Row
from bench.scorers.local.prefix_tree import Tree
from tests.helpers.checkpoints import BERT, SHAPE, characters, merging, save

VOCABULARY = 61
GROUPED = {"num_key_value_heads": 2}
CAPPED = {"head_dim": 8, "final_logit_softcapping": 3.0}
OPT = {"word_embed_proj_dim": 32, "ffn_dim": 64}
TIED = {"num_key_value_heads": 1, "tie_word_embeddings": True}
# Architecture and shape; whether it can be computed by blocks, and by trees at all; and whether its
# logits are the product of the last hidden state and the output matrix.
MODELS: dict[str, tuple[str, dict[str, Any], bool, bool, bool]] = {
    "llama, grouped queries": ("Llama", GROUPED, True, True, True),
    "qwen2, tied": ("Qwen2", TIED, True, True, True),
    "qwen3": ("Qwen3", {**GROUPED, "head_dim": 8}, True, True, True),
    "phi, bias in the head": ("Phi", {}, True, True, True),
    "gpt-neox": ("GPTNeoX", {}, True, True, True),
    "gpt2": ("GPT2", {"n_positions": 512}, True, True, True),
    "opt, positions offset": ("OPT", OPT, True, True, True),
    "mistral, a wide window": ("Mistral", {**GROUPED, "sliding_window": 400}, True, True, True),
    "gemma2, attention and logits capped": ("Gemma2", CAPPED, False, True, False),
    "gemma3": ("Gemma3", {"head_dim": 8, "sliding_window": 300}, True, True, True),
    "cohere, logits scaled": ("Cohere", {"logit_scale": 4.0}, True, True, False),
    "bloom, no positions": ("Bloom", {"n_layer": 2, "n_head": 4}, False, False, True),
    "mamba, no attention": ("Mamba", {"state_size": 4}, False, False, True),
}


def network(name: str, **more: Any) -> Any:
    kind, shape, *_ = MODELS[name]
    config_name = "Gemma3TextConfig" if kind == "Gemma3" else f"{kind}Config"
    model_name = "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
    torch.manual_seed(3)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = getattr(transformers, config_name)(
        vocab_size=VOCABULARY, **{**SHAPE, **special, **shape, **more}
    )
    return getattr(transformers, model_name)(config).eval()


def texts() -> list[list[int]]:
    """Texts that share beginnings of every length, single tokens, duplicates, and a lone one."""
    rng, tokens = random.Random(0), range(3, VOCABULARY)
    trunk = rng.choices(tokens, k=30)
    branches = [trunk[:k] + rng.choices(tokens, k=rng.randrange(1, 9)) for k in range(30)]
    return [*branches, branches[4], trunk[:1], trunk, rng.choices(tokens, k=50)]


def reference(model: Any, ids: list[int]) -> np.ndarray:
    """Log-probability of each token after the first, from full logits in float64."""
    if len(ids) < 2:
        return np.empty(0)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return np.array([float(logits[i, token]) for i, token in enumerate(ids[1:])])


def rows(sequences: list[list[int]]) -> list[Row]:
    return [Row(tuple(ids), tuple(enumerate(ids[1:]))) for ids in sequences]


def reader(model: Any, tree_tokens: int = 64, dtype: str = "float32") -> LogprobReader:
    where = placement("cpu", dtype, None)
    return LogprobReader(model, replace(where, tree_tokens=tree_tokens), 0)


def check(tested: LogprobReader, expected: list[np.ndarray], sequences: list[list[int]]) -> None:
    for values, row in zip(expected, tested.read(rows(sequences)), strict=True):
        np.testing.assert_allclose(row, values, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_gives_the_reference(name: str) -> None:
    model = network(name)
    before = model.config._attn_implementation
    tested = reader(model)
    assert (tested._by_block, tested._trees, tested._separable) == MODELS[name][2:]
    check(tested, [reference(model, ids) for ids in texts()], texts())
    different = len({tuple(ids[:k]) for ids in texts() for k in range(1, len(ids) + 1)})
    assert tested.tally.asked == sum(len(ids) for ids in texts() if len(ids) > 1)
    assert (tested.tally.computed == different) is MODELS[name][3]
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("size", [1, 3, 7, 50, 1000])
@pytest.mark.parametrize("by_block", [True, False])
def test_neither_the_stretch_nor_the_way_of_attending_matters(
    monkeypatch: Any, size: int, by_block: bool
) -> None:
    monkeypatch.setattr("bench.scorers.local.prefix_tree.BLOCK", 5)
    model = network("llama, grouped queries")
    tested = reader(model, size)
    tested._by_block = by_block
    check(tested, [reference(model, ids) for ids in texts()], texts())


def test_texts_that_share_little_or_exceed_a_window_are_read_in_batches() -> None:
    rng = random.Random(1)
    different = [rng.choices(range(3, VOCABULARY), k=rng.randrange(2, 40)) for _ in range(20)]
    model = network("qwen2, tied")
    tested = reader(model)
    check(tested, [reference(model, ids) for ids in different], different)
    assert tested.tally.computed > tested.tally.asked, "with padding"
    model = network("mistral, a wide window", sliding_window=8)
    for sequences in (texts(), [ids[:8] for ids in texts()]):
        check(reader(model), [reference(model, ids) for ids in sequences], sequences)


def test_only_what_is_wanted_is_read_and_the_vocabulary_comes_in_pieces(monkeypatch: Any) -> None:
    monkeypatch.setattr(logprobs, "VOCABULARY", 7)
    for name in ("phi, bias in the head", "cohere, logits scaled"):
        model = network(name)
        wanted = [
            Row((5, 6, 7), ((2, 3), (2, 60), (0, 6))),
            Row((5, 6), ()),
            Row((5, 6, 8), ((2, 0),)),
        ]
        first, nothing, last = reader(model).read(wanted)
        with torch.no_grad():
            logits = model(torch.tensor([[5, 6, 7], [5, 6, 8]])).logits.double().log_softmax(-1)
        expected = [logits[0, 2, 3], logits[0, 2, 60], logits[0, 0, 6]]
        np.testing.assert_allclose(first, expected, atol=1e-5)
        np.testing.assert_allclose(last, [logits[1, 2, 0]], atol=1e-5)
        assert len(nothing) == 0
    assert reader(model).read([]) == []


@pytest.mark.parametrize("trees", [True, False])
def test_what_does_not_fit_into_memory_is_halved_for_good(monkeypatch: Any, trees: bool) -> None:
    model = network("qwen2, tied")
    expected = [reference(model, ids) for ids in texts()]
    tested = reader(model, 64)
    tested._trees, tested._batch_tokens = trees, 400
    limit = 20 if trees else 100
    forward, sizes = model.base_model.forward, []

    def small(*args: Any, **options: Any) -> Any:
        sizes.append(options["input_ids"].numel())
        if sizes[-1] > limit:
            raise torch.OutOfMemoryError("too much")
        return forward(*args, **options)

    monkeypatch.setattr(model.base_model, "forward", small)
    check(tested, expected, texts())
    assert (tested._tree_tokens, tested._batch_tokens) == ((16, 400) if trees else (64, 100))
    assert sum(size > limit for size in sizes) == 2, "the size that was found is kept"


@pytest.mark.parametrize("call", range(1, 9, 2))
def test_a_stretch_whose_logits_do_not_fit_is_computed_again(monkeypatch: Any, call: int) -> None:
    model = network("llama, grouped queries")
    tested = reader(model, 16)
    add_logprobs, calls = tested._add_logprobs, []

    def small(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            raise torch.OutOfMemoryError("too much")
        return add_logprobs(*args)

    monkeypatch.setattr(tested, "_add_logprobs", small)
    check(tested, [reference(model, ids) for ids in texts()], texts())
    assert tested._tree_tokens == 8


def test_in_bfloat16_a_tree_is_as_near_to_float32_as_batches_are() -> None:
    exact = network("llama, grouped queries")
    expected = np.concatenate([reference(exact, ids) for ids in texts()])
    off = []
    for trees in (True, False):
        tested = reader(network("llama, grouped queries").bfloat16(), dtype="bfloat16")
        tested._trees &= trees
        off.append(np.abs(np.concatenate(tested.read(rows(texts()))) - expected).mean())
    assert off[0] < 0.1
    assert off[0] < 1.5 * off[1]


sequences = st.lists(st.lists(st.integers(0, 2), max_size=8), min_size=1, max_size=12)


@given(sequences, st.integers(1, 20))
def test_a_node_is_a_beginning_and_sees_its_own_beginnings(
    sequences: list[list[int]], size: int
) -> None:
    tree = Tree(sequences)
    assert len(tree) == len({tuple(row[:k]) for row in sequences for k in range(1, len(row) + 1)})
    beginnings: dict[int, tuple[int, ...]] = {}
    for row, path in zip(sequences, tree.paths, strict=True):
        assert len(path) == len(row)
        for k, node in enumerate(path.tolist()):
            assert (tree.ids[node], tree.depth[node]) == (row[k], k)
            assert beginnings.setdefault(node, tuple(row[: k + 1])) == tuple(row[: k + 1])
    before, known, first = None, set(), 0
    while first < len(tree):
        part = tree.part(first, size, before)
        assert part.nodes.tolist() == list(range(first, min(first + size, len(tree))))
        assert set(part.above.tolist()) <= known, "known since the pass before"
        for node, sees in zip(part.nodes.tolist(), part.sees(), strict=True):
            seen = [beginnings[k] for k in part.known[sees].tolist()]
            text = beginnings[node]
            assert seen == [text[:k] for k in range(1, len(text) + 1)]
        before, known, first = part, set(part.known.tolist()), first + len(part.nodes)


TEXTS = [
    "the doctor is here.",
    "他是医生。",
    "",
    "x",
    "她是工程师，不是护士。",
    "🙂 and 👩🏽‍⚕️ and ﷽",
    "tab\tnul\0end",
    "very long text " * 90,
    "the doctor is here.",
]


def llama(folder: Path, tokenizer: Any, **options: Any) -> Any:
    network, config = transformers.LlamaForCausalLM, transformers.LlamaConfig
    return load(str(save(folder, network, config, tokenizer)), **options)


def test_nll_is_the_models_own_loss_in_every_batch(tmp_path: Path) -> None:
    scorer = llama(tmp_path, characters("[CLS] $A"))
    values, means = scorer.token_logprobs(TEXTS), scorer.nll(TEXTS)
    for text, row, mean in zip(TEXTS, values, means, strict=True):
        ids = scorer.tokenizer(text)["input_ids"]
        assert row.dtype == np.float64
        np.testing.assert_allclose(row, reference(scorer.network, ids), rtol=1e-4, atol=2e-5)
        if len(ids) > 1:
            tensor = torch.tensor([ids])
            loss = scorer.network(tensor, labels=tensor).loss.item()
            assert mean == pytest.approx(loss, rel=1e-5)
    for batch_tokens in (1, 100_000):
        again = load(str(tmp_path), batch_tokens=batch_tokens)
        np.testing.assert_allclose(again.nll(TEXTS), means, rtol=1e-5)  # type: ignore[attr-defined]
    np.testing.assert_allclose([scorer.nll([text])[0] for text in TEXTS], means, rtol=1e-5)
    assert means[0] == means[-1]


CLS_FIRST, OF_BYTES = characters("[CLS] $A"), merging(("t", "h"))


@pytest.mark.parametrize(
    ("coder", "first"), [(characters(), "[CLS]"), (CLS_FIRST, None), (OF_BYTES, "<|end|>")]
)
def test_bos_is_put_where_the_tokenizer_puts_none(
    tmp_path: Path, coder: Any, first: str | None
) -> None:
    """A model without a token for the beginning uses that for the end."""
    scorer = llama(tmp_path, coder)
    before = [coder.convert_tokens_to_ids(first)] if first else []
    assert scorer.describe()["adds_bos"] == (first is None)
    for text, row in zip(TEXTS, scorer.token_logprobs(TEXTS, bos=True), strict=True):
        expected = reference(scorer.network, before + coder(text)["input_ids"])
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=2e-5)
        assert len(row) == len(coder(text, add_special_tokens=False)["input_ids"])


def test_nothing_has_no_likelihood(tmp_path: Path) -> None:
    scorer = llama(tmp_path, characters())
    assert np.isnan(scorer.nll(["a", ""])).all()
    assert scorer.nll([]).shape == (0,)
    assert scorer.choose([], ["A", "B"]).shape == (0, 2)
    assert scorer.generate([]) == scorer.answer([]) == []


@pytest.mark.parametrize("kind", ["CausalLM", "MaskedLM"])
def test_a_distributed_model_gives_the_same_numbers(
    tmp_path: Path, monkeypatch: Any, kind: str
) -> None:
    """With some kilobytes of memory accelerate leaves the other parts of the model on disk."""
    if kind == "CausalLM":
        plain = llama(tmp_path / "m", characters("[CLS] $A"))
    else:
        network, config = transformers.BertForMaskedLM, transformers.BertConfig
        plain = load(str(save(tmp_path / "m", network, config, characters(BERT))))
    factory = getattr(transformers, f"AutoModelFor{kind}")
    complete = factory.from_pretrained

    def limited(*given: Any, **options: Any) -> Any:
        assert options["device_map"] == "auto"
        return complete(
            *given, **options, max_memory={"cpu": 45_000}, offload_folder=str(tmp_path / "off")
        )

    monkeypatch.setattr(factory, "from_pretrained", limited)
    spread: Any = load(str(tmp_path / "m"), device="auto")
    assert "disk" in spread.network.hf_device_map.values()
    assert {**spread.describe(), "device": "cpu"} == plain.describe()
    assert spread.describe()["device"] == "auto"
    prompts, options = ["他是医生。", "abc", "她不是"], ["A", "他是", "BC"]
    np.testing.assert_allclose(spread.nll(prompts), plain.nll(prompts), rtol=1e-5)
    np.testing.assert_allclose(
        spread.choose(prompts, options), plain.choose(prompts, options), rtol=1e-5
    )
    if kind == "CausalLM":
        replies = plain.generate(prompts, max_new_tokens=8)
        assert spread.generate(prompts, max_new_tokens=8) == replies
