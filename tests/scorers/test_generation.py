"""Replies are the same whether what prompts begin with is computed once or for each, in whatever company."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from bench.scorers import load
from bench.scorers.local.generation import PreallocatedLayer
from tests.helpers.checkpoints import characters, save

FAMILIES: dict[str, tuple[Any, Any, dict[str, Any], bool]] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 2}, True),
    "gpt2": (GPT2LMHeadModel, GPT2Config, {"n_positions": 512}, True),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config,
        {"head_dim": 8, "final_logit_softcapping": 3.0},
        True,
    ),
    "cohere": (CohereForCausalLM, CohereConfig, {"logit_scale": 4.0}, True),
    "a narrow window": (
        MistralForCausalLM,
        MistralConfig,
        {"sliding_window": 8, "num_key_value_heads": 2},
        False,
    ),
    "bloom": (BloomForCausalLM, BloomConfig, {"n_layer": 2, "n_head": 4}, False),
}
QUESTIONS = [
    "the doctor is here. who is it?",
    "the doctor is here. who?",
    "the doctor is not here.",
    "the nurse",
    "t",
    "他是医生。谁？",
    "他是医生。不是护士。",
    "他是",
    "the doctor is here. who is it? and why is that so?",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    coder = characters("[CLS] $A", chat=True)
    return {
        name: save(tmp_path_factory.mktemp("generate"), network, config, coder, **shape)
        for name, (network, config, shape, _) in FAMILIES.items()
    }


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("sampled", [False, True])
def test_beginnings_are_computed_once_and_replies_stay(
    folders: dict[str, Path], name: str, sampled: bool
) -> None:
    replies, tokens = [], []
    for trees in (True, False):
        scorer: Any = load(str(folders[name]))
        if sampled:
            scorer._generator.sampling = {
                "temperature": 1.3,
                "top_k": 0,
                "top_p": 1.0,
                "min_p": 0.0,
            }
        scorer._reader._trees &= trees
        replies.append(scorer.generate(QUESTIONS, max_new_tokens=12, seed=5))
        tokens.append(scorer.tally)
    assert replies[0] == replies[1]
    assert len(set(replies[0])) > 3 or name == "gemma2"  # which says nothing, greedily
    assert tokens[0].asked == tokens[1].asked
    assert (tokens[0].computed < tokens[1].computed) is FAMILIES[name][3]


def test_a_reply_does_not_depend_on_its_company(folders: dict[str, Path]) -> None:
    scorer = load(str(folders["llama"]))
    together = scorer.generate([*QUESTIONS, QUESTIONS[0]], max_new_tokens=12)
    assert together == [
        scorer.generate([one], max_new_tokens=12)[0] for one in [*QUESTIONS, QUESTIONS[0]]
    ]


@pytest.mark.parametrize(
    "name",
    [
        "llama",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpt2", "cohere", "bloom")),
    ],
)
@pytest.mark.parametrize("sampled", [False, True])
def test_replies_that_have_ended_leave_their_places_to_others(
    folders: dict[str, Path], name: str, sampled: bool, monkeypatch: Any
) -> None:
    scorer: Any = load(str(folders[name]), batch_tokens=40)
    if sampled:
        scorer._generator.sampling = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    prompts = [f"{a}{b}" for a in QUESTIONS for b in ("", "?", " no.")]
    whole = [scorer.generate([one], max_new_tokens=24, seed=1)[0] for one in prompts]
    # A character that stands early in some replies and late in others ends them.
    many = [(len({one.find(c) for one in whole}), c) for c in set("".join(whole)) if c.strip()]
    end = max(many)[1]
    scorer.network.generation_config.eos_token_id = [scorer.tokenizer.convert_tokens_to_ids(end)]
    generate, rounds = scorer.network.generate, []

    def counted(**options: Any) -> Any:
        out = generate(**options)
        rounds.append((len(out), out.shape[1] - options["input_ids"].shape[1]))
        return out

    monkeypatch.setattr(scorer.network, "generate", counted)
    cut = [scorer.generate([one], max_new_tokens=24, seed=1)[0] for one in prompts]
    written = sum(steps for _, steps in rounds)
    rounds.clear()
    assert scorer.generate(prompts, max_new_tokens=24, seed=1) == cut
    assert len({len(one) for one in cut}) > 2
    if FAMILIES[name][3]:
        # Half of a batch at most had ended already, and one batch is not full.
        assert sum(rows * steps for rows, steps in rounds) < 2.5 * written
        assert max(rows for rows, _ in rounds) > 2


def test_each_prompt_may_have_a_seed_of_its_own(folders: dict[str, Path]) -> None:
    scorer: Any = load(str(folders["llama"]))
    scorer._generator.sampling = {"temperature": 1.3, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    seeds = range(len(QUESTIONS))
    apart = [
        scorer.generate([one], max_new_tokens=8, seed=k)[0]
        for k, one in zip(seeds, QUESTIONS, strict=True)
    ]
    assert scorer.generate(QUESTIONS, max_new_tokens=8, seed=seeds) == apart
    before = scorer.tally.computed
    repeats = scorer.generate([QUESTIONS[0]] * 5, max_new_tokens=8, seed=range(5))
    assert repeats[0] == apart[0]
    assert len(set(repeats)) > 3
    prompt = len(scorer.tokenizer(scorer.chat.render(QUESTIONS[0]))["input_ids"])
    assert scorer.tally.computed - before <= prompt - 1 + 5 * 8, (
        "the prompt of the repeats is computed once"
    )


def test_no_more_is_written_than_is_enough(folders: dict[str, Path]) -> None:
    scorer = load(str(folders["llama"]))
    whole = scorer.generate(QUESTIONS, max_new_tokens=20)
    cut = scorer.generate(QUESTIONS, max_new_tokens=20, until=lambda reply: len(reply) >= 3)
    assert [one[: len(some)] for one, some in zip(whole, cut, strict=True)] == cut
    assert {len(some) for some, one in zip(cut, whole, strict=True) if len(one) > 3} == {3}


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 5),
)
def test_keys_and_values_stand_right_aligned_and_grow_in_place(
    some: list[int], more: list[int], steps: int
) -> None:
    width = max(some + more)
    blocks = [torch.randn(2, 3, n, 4) for n in some + more]
    layer = PreallocatedLayer([(one, -one) for one in blocks], width, room=steps)
    wanted = torch.cat(
        [torch.nn.functional.pad(one, (0, 0, width - one.shape[2], 0)) for one in blocks]
    )
    for _ in range(steps):
        new = torch.randn(len(wanted), 3, 1, 4)
        keys, values = layer.update(new, -new)
        wanted = torch.cat([wanted, new], 2)
        assert torch.equal(keys, wanted)
        assert torch.equal(values, -wanted)
    assert layer.get_seq_length() == width + steps


def test_what_does_not_fit_is_halved_and_stays_so(
    folders: dict[str, Path], monkeypatch: Any
) -> None:
    scorer: Any = load(str(folders["llama"]), batch_tokens=200)
    should = scorer.generate(QUESTIONS, max_new_tokens=12)
    generate, sizes = scorer.network.generate, []

    def small(**options: Any) -> Any:
        sizes.append(options["input_ids"].numel())
        if sizes[-1] > 120:
            raise torch.OutOfMemoryError("too much")
        return generate(**options)

    monkeypatch.setattr(scorer.network, "generate", small)
    assert scorer.generate(QUESTIONS, max_new_tokens=12) == should
    refused = [k for k, size in enumerate(sizes) if size > 120]
    assert refused == list(range(len(refused))), "the size that was found is kept"
    assert 0 < len(refused) < len(sizes)
    assert scorer._generator._tokens < 800


def test_a_model_s_own_way_of_sampling_is_left_to_it(tmp_path: Path) -> None:
    folder = save(tmp_path, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))
    GenerationConfig(do_sample=True, temperature=2.0, top_k=0).save_pretrained(folder)
    scorer = load(str(folder))
    one, other = (scorer.generate(QUESTIONS, max_new_tokens=12, seed=seed) for seed in (0, 1))
    assert one != other
    assert one == scorer.generate(QUESTIONS, max_new_tokens=12, seed=0)
