"""Replies are the same whether what prompts begin with is computed once or for each, in whatever company."""

from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import characters, save
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

FAMILIES: dict[str, tuple[Any, Any, dict[str, Any], bool]] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 2}, True),
    "gpt2": (GPT2LMHeadModel, GPT2Config, {"n_positions": 512}, True),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config, {"head_dim": 8, "final_logit_softcapping": 3.0}, True),
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
    "the doctor is here. who is it?", "the doctor is here. who?", "the doctor is not here.", "the nurse", "t", "他是医生。谁？",
    "他是医生。不是护士。", "他是", "the doctor is here. who is it? and why is that so?",
]  # fmt: skip


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
            scorer._sampling = {"temperature": 1.3, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
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
    assert together == [scorer.generate([one], max_new_tokens=12)[0] for one in [*QUESTIONS, QUESTIONS[0]]]


def test_what_does_not_fit_is_halved_and_stays_so(folders: dict[str, Path], monkeypatch: Any) -> None:
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
    assert scorer._together < 800


def test_a_model_s_own_way_of_sampling_is_left_to_it(tmp_path: Path) -> None:
    folder = save(tmp_path, LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))
    GenerationConfig(do_sample=True, temperature=2.0, top_k=0).save_pretrained(folder)
    scorer = load(str(folder))
    one, other = (scorer.generate(QUESTIONS, max_new_tokens=12, seed=seed) for seed in (0, 1))
    assert one != other
    assert one == scorer.generate(QUESTIONS, max_new_tokens=12, seed=0)
