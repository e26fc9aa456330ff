"""Options of each prompt's own, and conversations for prompts: as one call a prompt gives, in fewer calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench.scorers import load
from bench.scorers.base import Model
from bench.tasks.request import Key, Request, Turns
from tests.helpers.checkpoints import LETTERS, SPECIAL, characters, save

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


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A causal model without and with a chat template."""
    return {
        chat: save(
            tmp_path_factory.mktemp("causal"),
            LlamaForCausalLM,
            LlamaConfig,
            characters("[CLS] $A", chat=chat),
        )
        for chat in (False, True)
    }


def shown(chat: bool) -> list[int]:
    """The token ids of TALK, looked up by hand."""
    first, second, third = ([CODE[letter] for letter in text] for text in TALK)
    if chat:
        user, assistant = CODE["<|user|>"], CODE["<|assistant|>"]
        return [user, *first, assistant, *second, user, *third, assistant]
    end = CODE["\n"]
    return [CODE["[CLS]"], *first, end, *second, end, *third, end]


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("batch_tokens", [1, 50, 4096])
def test_options_of_each_prompts_own_are_one_call_a_prompt(
    folders: dict[bool, Path], chat: bool, batch_tokens: int
) -> None:
    scorer: Any = load(str(folders[chat]), batch_tokens=batch_tokens)
    found = scorer.choose(PROMPTS, OPTIONS)
    alone = [
        scorer.choose([prompt], some)[0] for prompt, some in zip(PROMPTS, OPTIONS, strict=True)
    ]
    assert (found.dtype, found.shape) == (np.float64, (5, 3))
    np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-6)
    backwards = scorer.choose(PROMPTS[::-1], [some[::-1] for some in OPTIONS[::-1]])
    np.testing.assert_allclose(backwards[::-1, ::-1], found, rtol=1e-6, atol=1e-6)
    shared = scorer.choose(PROMPTS, [("yes", "no")] * 5)
    np.testing.assert_allclose(scorer.choose(PROMPTS, ("yes", "no")), shared, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("chat", [False, True])
def test_a_conversation_is_chosen_after_turn_by_turn(folders: dict[bool, Path], chat: bool) -> None:
    scorer: Any = load(str(folders[chat]))
    expected = []
    for option in ("yes", "不是", "A"):
        ids = shown(chat) + [CODE[letter] for letter in option]
        with torch.no_grad():
            logprobs = scorer.network(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        expected.append(
            sum(float(logprobs[i - 1, ids[i]]) for i in range(len(shown(chat)), len(ids)))
        )
    np.testing.assert_allclose(scorer.choose([TALK], ("yes", "不是", "A"))[0], expected, rtol=1e-4)
    bare = scorer.choose([TALK, TALK[-1], "\n".join(TALK)], ("yes", "不是", "A"))
    assert abs(bare[0] - bare[1]).min() > 1e-3, "what was said before counts"
    assert np.allclose(bare[0], bare[2]) is not chat, (
        "without a template turns are lines, with one they are turns"
    )


@pytest.mark.parametrize("chat", [False, True])
def test_a_conversation_is_replied_to(folders: dict[bool, Path], chat: bool) -> None:
    scorer: Any = load(str(folders[chat]))
    ids = shown(chat)
    for _ in range(6):
        with torch.no_grad():
            ids.append(int(scorer.network(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == CODE["[SEP]"]:
            break
    reply = scorer.tokenizer.decode(ids[len(shown(chat)) :], skip_special_tokens=True)
    found = scorer.generate(["x", TALK, TALK[-1]], max_new_tokens=6, greedy=True)
    assert found[1] == reply != ""
    assert found == [
        scorer.generate([p], max_new_tokens=6, greedy=True)[0] for p in ("x", TALK, TALK[-1])
    ]


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
        return np.array([[float(len(option)) for option in some] for some in options])


def asked(prompt: str, *options: str, earlier: tuple[str, ...] = ()) -> Request:
    return Request(
        "c", "t", "i", "answer", "choose", prompt, "v", Key(), earlier=earlier, options=options
    )


def test_requests_with_other_options_are_answered_in_one_call() -> None:
    model = Longest()
    requests = [
        asked("p", "yes", "no"),
        asked("q", "A", "B", "CC"),
        asked("r", "no", "maybe"),
        asked("s", "I", "III", "II"),
        asked("t", "x", "xx", earlier=("a", "b")),
    ]
    answers = model.answer(requests)
    assert [answer.response for answer in answers] == ["yes", "CC", "maybe", "III", "xx"]
    assert [answer.logprobs for answer in answers] == [(3, 2), (1, 1, 2), (2, 5), (1, 3, 2), (1, 2)]
    assert sorted(model.calls, key=lambda call: len(call[1][0])) == [
        (["p", "r", ("a", "b", "t")], [("yes", "no"), ("no", "maybe"), ("x", "xx")]),
        (["q", "s"], [("A", "B", "CC"), ("I", "III", "II")]),
    ]


def test_a_models_answers_are_the_same_alone_and_together(folders: dict[bool, Path]) -> None:
    scorer: Any = load(str(folders[True]))
    requests = [asked(prompt, *some) for prompt, some in zip(PROMPTS, OPTIONS, strict=True)]
    requests.append(asked(TALK[-1], "yes", "no", "A", earlier=TALK[:2]))
    together = scorer.answer(requests)
    for request, answer in zip(requests, together, strict=True):
        (alone,) = scorer.answer([request])
        assert answer.response == alone.response == request.options[int(np.argmax(answer.logprobs))]
        np.testing.assert_allclose(answer.logprobs, alone.logprobs, rtol=1e-6, atol=1e-6)
