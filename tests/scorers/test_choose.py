"""Choices of causal models: equal to a slow reference, for shared options and each prompt's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from bench.scorers import load
from bench.scorers.base import Model
from bench.tasks.request import Turns
from tests.helpers.answering import request
from tests.helpers.checkpoints import CHAT, LETTERS, SPECIAL, characters, merging, save
from tests.scorers.test_logprobs import reference

CODE = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
PROMPTS = [
    "is he a doctor?",
    "他是护士？答案：",
    "x",
    "no, he is an engineer. who is she?",
    "is he a doctor?",
]
OPTIONS = [
    ("yes", "no", "not she"),
    ("他", "她是", "不是他。"),
    ("A", "AB", "ABC"),
    ("the nurse", "a", "she"),
    ("A", "B", "C"),
]
TALK = ("who?", "she.", "is she?")
# How a tokenizer puts special tokens around a text, and whether it has a chat template.
TOKENIZERS = {
    "bare": characters(),
    "bos": characters("[CLS] $A"),
    "bos and eos": characters("[CLS] $A [SEP]"),
    "chat": characters("[CLS] $A", chat=True),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: save(tmp_path_factory.mktemp("causal"), LlamaForCausalLM, LlamaConfig, tokenizer)
        for name, tokenizer in TOKENIZERS.items()
    }


def ids_of(name: str, turns: Sequence[str]) -> list[int]:
    """The token ids that a conversation should have, looked up by hand."""
    encoded = [[CODE.get(letter, CODE["<unk>"]) for letter in text] for text in turns]
    if name == "chat":
        roles = [CODE["<|user|>"], CODE["<|assistant|>"]]
        ids = [i for k, text in enumerate(encoded) for i in (roles[k % 2], *text)]
        return [*ids, CODE["<|assistant|>"]]
    bos = [] if name == "bare" else [CODE["[CLS]"]]
    return bos + [i for text in encoded for i in (*text, CODE["\n"])]


def expected_choice(scorer: Any, before: list[int], option: list[int]) -> float:
    return float(reference(scorer.network, before + option)[len(before) - 1 :].sum())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_choose_gives_the_reference(folders: dict[str, Path], name: str) -> None:
    options = ("A", "B", "yes", "yet", "不是", "不")
    scorer: Any = load(str(folders[name]))
    prompts: list[Turns] = [*PROMPTS[:3], TALK]
    expected = [
        [
            expected_choice(scorer, ids_of(name, turns), [CODE[letter] for letter in option])
            for option in options
        ]
        for turns in ([prompt] if isinstance(prompt, str) else prompt for prompt in prompts)
    ]
    for batch_tokens in (1, 4096):
        tested: Any = load(str(folders[name]), batch_tokens=batch_tokens)
        values = tested.choose(prompts, options)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    letters = scorer.choose(["x"], LETTERS)
    assert (letters <= 0).all()
    assert np.exp(letters).sum() <= 1 + 1e-6


def test_choose_where_the_tokenizer_merges_across_the_boundary(tmp_path: Path) -> None:
    # The prompt's line break and A are one token, B and C are not; C and D are one in an option.
    coder = merging(("Ċ", "A"), ("C", "D"))
    scorer: Any = load(
        str(save(tmp_path, Qwen2ForCausalLM, Qwen2Config, coder, num_key_value_heads=4))
    )
    before = coder("Is it?\n")["input_ids"]
    assert coder("Is it?\nA")["input_ids"][: len(before)] != before
    options = ("A", "B", "AB", "CD", "C")
    tokens = [coder(option)["input_ids"] for option in options]
    assert [len(ids) for ids in tokens] == [1, 1, 2, 1, 1]
    expected = [expected_choice(scorer, before, ids) for ids in tokens]
    np.testing.assert_allclose(scorer.choose(["Is it?"], options)[0], expected, rtol=1e-4)


@pytest.mark.parametrize("batch_tokens", [1, 50, 4096])
def test_options_of_each_prompts_own_are_one_call_per_prompt(
    folders: dict[str, Path], batch_tokens: int
) -> None:
    scorer: Any = load(str(folders["chat"]), batch_tokens=batch_tokens)
    values = scorer.choose(PROMPTS, OPTIONS)
    alone = [
        scorer.choose([prompt], options)[0]
        for prompt, options in zip(PROMPTS, OPTIONS, strict=True)
    ]
    assert (values.dtype, values.shape) == (np.float64, (5, 3))
    np.testing.assert_allclose(values, alone, rtol=1e-6, atol=1e-6)
    backwards = scorer.choose(PROMPTS[::-1], [options[::-1] for options in OPTIONS[::-1]])
    np.testing.assert_allclose(backwards[::-1, ::-1], values, rtol=1e-6, atol=1e-6)
    shared = scorer.choose(PROMPTS, [("yes", "no")] * 5)
    np.testing.assert_allclose(scorer.choose(PROMPTS, ("yes", "no")), shared, rtol=1e-6, atol=1e-6)


def test_without_a_template_turns_are_lines(folders: dict[str, Path]) -> None:
    for name, lines in {"bos": True, "chat": False}.items():
        scorer: Any = load(str(folders[name]))
        values = scorer.choose([TALK, TALK[-1], "\n".join(TALK)], ("yes", "不是", "A"))
        assert abs(values[0] - values[1]).min() > 1e-3, "earlier turns count"
        assert np.allclose(values[0], values[2]) is lines
    bare, chat = (load(str(folders[name])) for name in ("bare", "chat"))
    assert bare.describe()["prompted_as"] != chat.describe()["prompted_as"] == "chat turn"
    assert bare.describe()["tokenizer_hash"] == chat.describe()["tokenizer_hash"]
    assert chat.tokenizer.chat_template == CHAT  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["bos", "chat"])
def test_a_conversation_is_continued(folders: dict[str, Path], name: str) -> None:
    scorer: Any = load(str(folders[name]))
    start = ids_of(name, TALK)
    ids = list(start)
    while len(ids) < len(start) + 6 and ids[-1] != CODE["[SEP]"]:
        with torch.no_grad():
            ids.append(int(scorer.network(torch.tensor([ids])).logits[0, -1].argmax()))
    reply = scorer.tokenizer.decode(ids[len(start) :], skip_special_tokens=True)
    replies = scorer.generate(["x", TALK, TALK[-1]], max_new_tokens=6, greedy=True)
    assert replies[1] == reply != ""


class Longest(Model):
    """Prefers the option with the most letters, and remembers its calls."""

    verbs = ("choose",)
    reads = ("options",)

    def __init__(self) -> None:
        self.calls: list[tuple[list[Turns], list[Any]]] = []

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        self.calls.append((list(prompts), list(options)))
        return np.array([[float(len(option)) for option in row] for row in options])


def test_requests_with_other_options_are_answered_in_one_call() -> None:
    model = Longest()
    asked = {
        "p": ("yes", "no"),
        "q": ("A", "B", "CC"),
        "r": ("no", "maybe"),
        "s": ("I", "III", "II"),
    }
    requests = [request(text, verb="choose", options=row) for text, row in asked.items()]
    last = request("t", verb="choose", options=("x", "xx"), earlier=("a", "b"))
    answers = model.answer([*requests, last])
    assert [answer.response for answer in answers] == ["yes", "CC", "maybe", "III", "xx"]
    assert [answer.logprobs for answer in answers] == [(3, 2), (1, 1, 2), (2, 5), (1, 3, 2), (1, 2)]
    assert sorted(model.calls, key=lambda call: len(call[1][0])) == [
        (["p", "r", ("a", "b", "t")], [("yes", "no"), ("no", "maybe"), ("x", "xx")]),
        (["q", "s"], [("A", "B", "CC"), ("I", "III", "II")]),
    ]


def test_answers_keep_the_order_of_mixed_requests(folders: dict[str, Path]) -> None:
    scorer: Any = load(str(folders["chat"]))
    options = {"options": ("A", "B"), "max_new_tokens": 4}
    requests = [
        request(prompt, verb=verb, seed=seed, **options)
        for seed in (1, 0)
        for prompt in PROMPTS[:3]
        for verb in ("nll", "generate", "choose")
    ]
    for asked, answer in zip(requests, scorer.answer(requests), strict=True):
        assert answer.error == ""
        assert answer.seconds > 0
        prompt = [asked.prompt]
        if asked.verb == "generate":
            reply = scorer.generate(prompt, max_new_tokens=4)[0]
            assert (answer.response, answer.logprobs) == (reply, None)
        elif asked.verb == "nll":
            assert float(answer.response) == pytest.approx(scorer.nll(prompt)[0], rel=1e-5)
            assert float(answer.response) == pytest.approx(-np.mean(answer.logprobs))
        else:
            expected = tuple(scorer.choose(prompt, "AB")[0])
            assert answer.logprobs == pytest.approx(expected, rel=1e-4)
            assert answer.response == "AB"[int(np.argmax(answer.logprobs))]
