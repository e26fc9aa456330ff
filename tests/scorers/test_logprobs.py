"""Causal models: every number against a brute force, whatever the batch, the tokenizer and the model's last layer."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from bench.scorers import load
from bench.scorers.sampling import SeededSampling
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import CHAT, LETTERS, SPECIAL, characters, merging, save

FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 2}),
    "qwen2": (
        Qwen2ForCausalLM,
        Qwen2Config,
        {"num_key_value_heads": 2, "tie_word_embeddings": True},
    ),
    "gpt2": (GPT2LMHeadModel, GPT2Config, {"n_positions": 2048}),
    # The logits of these three are not the product of the last hidden state and the output matrix.
    "capped": (Gemma2ForCausalLM, Gemma2Config, {"final_logit_softcapping": 3.0, "head_dim": 8}),
    "scaled up": (CohereForCausalLM, CohereConfig, {"logit_scale": 4.0}),
    "scaled down": (GraniteForCausalLM, GraniteConfig, {"logits_scaling": 4.0}),
}
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    coder = characters("[CLS] $A")
    return {
        name: save(tmp_path_factory.mktemp("causal"), network, config, coder, **shape)
        for name, (network, config, shape) in FAMILIES.items()
    }


def brute(scorer: Any, ids: list[int]) -> np.ndarray:
    """Log-probability of every token of `ids` after the first, from full logits in float64."""
    if len(ids) < 2:
        return np.empty(0)
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids])).logits[0].double()
    logprobs = logits.log_softmax(-1)
    return np.array([float(logprobs[i, ids[i + 1]]) for i in range(len(ids) - 1)])


def brute_choice(scorer: Any, before: list[int], option: list[int]) -> float:
    return float(brute(scorer, before + option)[len(before) - 1 :].sum())


@pytest.mark.parametrize("family", FAMILIES)
def test_nll_is_the_brute_force_and_the_models_own_loss(
    folders: dict[str, Path], family: str
) -> None:
    scorer = load(str(folders[family]))
    found = scorer.token_logprobs(TEXTS)
    for text, row, mean in zip(TEXTS, found, scorer.nll(TEXTS), strict=True):
        ids = scorer.tokenizer(text)["input_ids"]
        assert row.dtype == np.float64
        np.testing.assert_allclose(row, brute(scorer, ids), rtol=1e-4, atol=2e-5)
        if len(ids) > 1:
            tensor = torch.tensor([ids])
            assert mean == pytest.approx(
                scorer.network(tensor, labels=tensor).loss.item(), rel=1e-5
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fast_path_is_taken_where_it_is_right_and_only_there(
    folders: dict[str, Path], family: str
) -> None:
    plain = family in ("llama", "qwen2", "gpt2")
    assert load(str(folders[family]))._reader._separable is plain


@pytest.mark.parametrize("family", ["llama", "gpt2", "capped"])
def test_nll_does_not_depend_on_the_batch(folders: dict[str, Path], family: str) -> None:
    tiny, large = (load(str(folders[family]), batch_tokens=n) for n in (1, 100_000))
    together = large.nll(TEXTS)
    np.testing.assert_allclose(tiny.nll(TEXTS), together, rtol=1e-5)
    np.testing.assert_allclose([large.nll([text])[0] for text in TEXTS], together, rtol=1e-5)
    assert together[0] == together[-1]


def test_what_predicts_nothing_has_no_likelihood(tmp_path: Path) -> None:
    scorer = load(str(save(tmp_path, LlamaForCausalLM, LlamaConfig, characters())))
    assert np.isnan(scorer.nll(["a", ""])).all()
    assert scorer.nll([]).shape == (0,)
    assert scorer.choose([], ["A", "B"]).shape == (0, 2)
    assert scorer.generate([]) == []
    assert scorer.answer([]) == []


# How a tokenizer puts special tokens around a text, and whether it has a chat template.
CODERS = {
    "bare": characters(),
    "bos": characters("[CLS] $A"),
    "bos and eos": characters("[CLS] $A [SEP]"),
    "chat": characters("[CLS] $A", chat=True),
}
OPTIONS = ("A", "B", "yes", "yet", "不是", "不")


@pytest.mark.parametrize("name", CODERS)
def test_choose_is_the_brute_force(tmp_path: Path, name: str) -> None:
    coder = CODERS[name]
    scorer = load(str(save(tmp_path, LlamaForCausalLM, LlamaConfig, coder)))
    prompts = ["is he a doctor?", "他是护士？答案：", "x"]
    code = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
    expected = np.empty((len(prompts), len(OPTIONS)))
    for i, prompt in enumerate(prompts):
        middle = [code.get(letter, code["<unk>"]) for letter in prompt]
        before = {
            "bare": [*middle, code["\n"]],
            "bos": [code["[CLS]"], *middle, code["\n"]],
            "bos and eos": [code["[CLS]"], *middle, code["\n"]],
            "chat": [code["<|user|>"], *middle, code["<|assistant|>"]],
        }[name]
        for k, option in enumerate(OPTIONS):
            expected[i, k] = brute_choice(scorer, before, [code[letter] for letter in option])
    for batch_tokens in (1, 4096):
        some = load(str(tmp_path), batch_tokens=batch_tokens)
        np.testing.assert_allclose(some.choose(prompts, OPTIONS), expected, rtol=1e-4, atol=1e-5)


def test_choose_gives_log_probabilities(folders: dict[str, Path]) -> None:
    scorer = load(str(folders["capped"]))
    values = scorer.choose(["is he a doctor?", "x"], LETTERS)
    assert values.dtype == np.float64
    assert (values <= 0).all()
    assert (np.exp(values).sum(1) <= 1 + 1e-6).all()


def test_choose_where_the_tokenizer_merges_across_the_boundary(tmp_path: Path) -> None:
    # The prompt's line break and A are one token, B and C are not; C and D are one within an option.
    coder = merging(("Ċ", "A"), ("C", "D"))
    scorer = load(str(save(tmp_path, Qwen2ForCausalLM, Qwen2Config, coder, num_key_value_heads=4)))
    before = coder("Is it?\n")["input_ids"]
    assert coder("Is it?\nA")["input_ids"][: len(before)] != before
    options = ("A", "B", "AB", "CD", "C")
    tokens = [coder(option)["input_ids"] for option in options]
    assert [len(ids) for ids in tokens] == [1, 1, 2, 1, 1]
    expected = [brute_choice(scorer, before, ids) for ids in tokens]
    np.testing.assert_allclose(scorer.choose(["Is it?"], options)[0], expected, rtol=1e-4)


def test_the_chat_template_is_applied_and_named(tmp_path: Path) -> None:
    bare = load(str(save(tmp_path / "bare", LlamaForCausalLM, LlamaConfig, characters())))
    chat = load(str(save(tmp_path / "chat", LlamaForCausalLM, LlamaConfig, characters(chat=True))))
    assert bare.describe()["prompted_as"] != chat.describe()["prompted_as"] == "chat turn"
    assert bare.describe()["tokenizer_hash"] == chat.describe()["tokenizer_hash"]
    assert chat.tokenizer.chat_template == CHAT
    assert abs(bare.choose(["he?"], ["A"]) - chat.choose(["he?"], ["A"])) > 1e-3


PROMPTS = [
    "is he a doctor?",
    "她是护士？",
    "x",
    "no, he is an engineer. who is she?",
    "A",
    "B",
    "is",
]


def one_at_a_time(folder: Path, coder: Any, prompts: list[str], eos: int, steps: int) -> list[str]:
    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    network.generation_config.eos_token_id = eos
    replies = []
    for prompt in prompts:
        ids = torch.tensor([coder(prompt + "\n")["input_ids"]])
        out = network.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=steps,
        )
        replies.append(coder.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    return replies


@pytest.mark.parametrize("family", ["llama", "gpt2", "capped"])
def test_greedy_replies_are_the_models_own(folders: dict[str, Path], family: str) -> None:
    scorer = load(str(folders[family]))
    coder = scorer.tokenizer
    free = one_at_a_time(folders[family], coder, PROMPTS, coder.eos_token_id, 12)
    # A token that some reply has in its midst ends it from here on, so that replies differ in length.
    eos = coder.convert_tokens_to_ids(free[0][4])
    scorer.network.generation_config.eos_token_id = eos
    expected = one_at_a_time(folders[family], coder, PROMPTS, eos, 12)
    assert len(expected[0]) < len(free[0])
    assert scorer.describe()["decoding"] == "greedy"
    assert scorer.generate(PROMPTS, max_new_tokens=12) == expected
    assert (
        load_with(folders[family], eos, batch_tokens=1).generate(PROMPTS[::-1], max_new_tokens=12)
        == expected[::-1]
    )


def load_with(folder: Path, eos: int, **options: Any) -> Any:
    scorer = load(str(folder), **options)
    scorer.network.generation_config.eos_token_id = eos
    return scorer


def test_a_sampled_reply_depends_on_prompt_and_seed_alone(tmp_path: Path) -> None:
    folder = str(
        save(
            tmp_path,
            LlamaForCausalLM,
            LlamaConfig,
            characters("[CLS] $A"),
            {"temperature": 0.9, "top_k": 0},
        )
    )
    scorer = load(folder)
    assert scorer.describe()["decoding"] == {
        "temperature": 0.9,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
    }
    replies = scorer.generate(PROMPTS, max_new_tokens=10, seed=3)
    assert scorer.generate(PROMPTS, max_new_tokens=10, seed=3) == replies
    assert load(folder, batch_tokens=1).generate(PROMPTS, max_new_tokens=10, seed=3) == replies
    assert scorer.generate(PROMPTS[::-1], max_new_tokens=10, seed=3) == replies[::-1]
    assert scorer.generate(PROMPTS[2:4] + PROMPTS[2:3], max_new_tokens=10, seed=3) == [
        *replies[2:4],
        replies[2],
    ]
    others = [scorer.generate(PROMPTS, max_new_tokens=10, seed=seed) for seed in (4, 5)]
    assert all(a != b for other in others for a, b in zip(replies, other, strict=True))


DECODING: dict[str, dict[str, Any]] = {
    "all tokens": {"temperature": 1.0, "top_k": 0},
    "temperature": {"temperature": 2.0, "top_k": 0},
    "top_k": {"temperature": 1.5, "top_k": 5},
    "top_p": {"temperature": 1.0, "top_k": 0, "top_p": 0.6},
    "min_p": {"temperature": 1.0, "top_k": 0, "min_p": 0.1},
    "silent": {},  # transformers then takes the 50 likeliest
}


def filtered(
    logits: np.ndarray,
    temperature: float = 1.0,
    top_k: int = 50,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> np.ndarray:
    """The distribution that a generation configuration means."""
    p = np.exp((logits - logits.max()) / temperature)
    p /= p.sum()
    order = np.argsort(-p)
    if top_k:
        p[order[top_k:]] = 0
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= top_p * p.sum()]] = 0
    p[p < min_p * p.max()] = 0
    return p / p.sum()


@pytest.mark.parametrize("name", DECODING)
def test_first_tokens_are_drawn_from_the_models_distribution(tmp_path: Path, name: str) -> None:
    coder = characters("[CLS] $A")
    scorer = load(str(save(tmp_path, LlamaForCausalLM, LlamaConfig, coder, DECODING[name])))
    # Two thousand prompts with dice of their own that look the same to the model: a letter that it does not know.
    prompts = [chr(0xAC00 + i) for i in range(2000)]
    ids = coder(prompts[0] + "\n")["input_ids"]
    assert ids == coder(prompts[-1] + "\n")["input_ids"]
    with torch.no_grad():
        p = filtered(
            scorer.network(torch.tensor([ids])).logits[0, -1].double().numpy(), **DECODING[name]
        )
    tokens = [*([""] * len(SPECIAL)), *LETTERS]  # special tokens are not shown in a reply
    replies = scorer.generate(prompts, max_new_tokens=1)
    drawn = {token: replies.count(token) for token in set(tokens)}
    wanted = {
        token: 2000 * sum(p[i] for i, name in enumerate(tokens) if name == token)
        for token in set(tokens)
    }
    assert sum(drawn.values()) == 2000
    assert all(wanted[token] > 0 for token in drawn if drawn[token])
    often = [token for token in wanted if wanted[token] >= 5]
    rest = 2000 - sum(wanted[token] for token in often)
    observed, expected = [drawn[token] for token in often], [wanted[token] for token in often]
    if rest > 1e-9:
        observed, expected = [*observed, 2000 - sum(observed)], [*expected, rest]
    assert len(observed) >= 3
    assert chisquare(observed, expected).pvalue > 1e-3


def test_a_judge_takes_the_likeliest_token_where_the_model_samples(tmp_path: Path) -> None:
    coder = characters("[CLS] $A")
    hot = {"temperature": 2.0, "top_k": 0}
    scorer = load(str(save(tmp_path / "hot", LlamaForCausalLM, LlamaConfig, coder, hot)))
    greedy = load(str(save(tmp_path / "greedy", LlamaForCausalLM, LlamaConfig, coder)))
    assert scorer.describe()["decoding"] != "greedy" == greedy.describe()["decoding"]
    wanted = greedy.generate(PROMPTS, max_new_tokens=10)
    for seed in (0, 1):
        assert scorer.generate(PROMPTS, max_new_tokens=10, seed=seed, greedy=True) == wanted
        assert scorer.generate(PROMPTS, max_new_tokens=10, seed=seed) != wanted
    # A judge and a model asked the same at once: each its own way.
    requests = [
        Request("c", "t", "i", name, "generate", text, "v", Key(), max_new_tokens=10)
        for text in PROMPTS
        for name in ("judge:1", "answer")
    ]
    replies = [answer.response for answer in scorer.answer(requests)]
    assert replies[::2] == wanted
    assert replies[1::2] == scorer.generate(PROMPTS, max_new_tokens=10)


@pytest.mark.parametrize(("around", "first"), [("", "[CLS]"), ("[CLS] $A", None)])
def test_a_first_special_token_is_put_where_the_tokenizer_puts_none(
    tmp_path: Path, around: str, first: str | None
) -> None:
    scorer = load(str(save(tmp_path, LlamaForCausalLM, LlamaConfig, characters(around))))
    before = [scorer.tokenizer.convert_tokens_to_ids(first)] if first else []
    assert scorer.describe()["adds_bos"] == (first is None)
    for text, row in zip(TEXTS, scorer.token_logprobs(TEXTS, bos=True), strict=True):
        wanted = brute(scorer, before + scorer.tokenizer(text)["input_ids"])
        np.testing.assert_allclose(row, wanted, rtol=1e-4, atol=2e-5)
        # Now every token of the text has a likelihood.
        assert len(row) == len(scorer.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_a_model_without_a_token_for_the_beginning_begins_with_that_for_the_end(
    tmp_path: Path,
) -> None:
    coder = merging(("t", "h"))
    scorer = load(str(save(tmp_path, LlamaForCausalLM, LlamaConfig, coder)))
    assert not scorer.describe()["adds_bos"]
    (row,) = scorer.token_logprobs(["this"], bos=True)
    ids = [coder.eos_token_id, *coder("this")["input_ids"]]
    np.testing.assert_allclose(row, brute(scorer, ids), rtol=1e-4, atol=2e-5)


def test_dice_never_fall_on_what_is_impossible() -> None:
    inf = math.inf
    scores = torch.tensor(
        [
            [-inf, 0.0, 0.0, -inf],
            [0.0, -inf, -inf, -inf],
            [-inf, -inf, -inf, 5.0],
            [-30.0, 20.0, -inf, -40.0],
        ]
    )
    ids = torch.zeros(4, 7, dtype=torch.long)
    for draw in (0.0, 1e-300, 0.5, 1 - 2**-53):
        dice = SeededSampling(["a", "b", "c", "d"], [0] * 4, steps=3, start=5)
        dice.uniform[:] = draw
        chosen = dice(ids, scores).argmax(-1)
        assert torch.isfinite(scores[torch.arange(4), chosen]).all()
    # The sum of many small probabilities is rounded, and the end of the vocabulary is closed.
    wide = torch.randn(1, 150_000, generator=torch.manual_seed(0))
    wide[:, 100_000:] = -inf
    dice = SeededSampling(["a"], [0], steps=1, start=7)
    dice.uniform[:] = 1 - 2**-53
    assert dice(ids[:1], wide).argmax(-1) < 100_000


def test_dice_follow_the_scores_and_their_seed() -> None:
    p = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    seeds = [f"{i:x}" for i in range(4000)]
    scores = (
        torch.tensor(np.log(np.where(p, p, 1e-320)))
        .masked_fill(torch.tensor(p == 0), -math.inf)
        .expand(4000, 5)
    )
    dice = SeededSampling(seeds, [0] * 4000, steps=2, start=3)
    first, second = (
        dice(torch.zeros(4000, n, dtype=torch.long), scores).argmax(-1) for n in (3, 4)
    )
    for drawn in (first, second):
        counts = np.bincount(drawn.numpy(), minlength=5)
        assert counts[1] == 0
        assert chisquare(counts[p > 0], 4000 * p[p > 0]).pvalue > 1e-3
    assert (first == second).float().mean() < 0.45  # 0.365 if the steps are independent
    again = SeededSampling(seeds[7:8], [0], steps=2, start=9)
    assert again(torch.zeros(1, 9, dtype=torch.long), scores[:1]).argmax(-1) == first[7]


def test_answers_keep_the_order_of_mixed_requests(folders: dict[str, Path]) -> None:
    def request(verb: str, prompt: str, seed: int = 0) -> Request:
        return Request(
            "c",
            "t",
            "i",
            "r",
            verb,
            prompt,
            "v",
            Key(),
            options=("A", "B"),
            max_new_tokens=4,
            seed=seed,
        )

    scorer = load(str(folders["llama"]))
    requests = [
        request(verb, prompt, seed)
        for seed in (1, 0)
        for prompt in PROMPTS[:3]
        for verb in ("nll", "generate", "choose")
    ]
    answers = scorer.answer(requests)
    for asked, answer in zip(requests, answers, strict=True):
        assert answer.error == ""
        assert answer.seconds > 0
        if asked.verb == "generate":
            assert (answer.response, answer.logprobs) == (
                scorer.generate([asked.prompt], max_new_tokens=4)[0],
                None,
            )
        elif asked.verb == "nll":
            assert float(answer.response) == pytest.approx(scorer.nll([asked.prompt])[0], rel=1e-5)
            assert float(answer.response) == pytest.approx(-np.mean(answer.logprobs or ()))
        else:
            assert answer.logprobs == pytest.approx(
                tuple(scorer.choose([asked.prompt], "AB")[0]), rel=1e-4
            )
            assert answer.response == "AB"[int(np.argmax(answer.logprobs))]
    assert all(a.verb != b.verb for a, b in pairwise(requests))
