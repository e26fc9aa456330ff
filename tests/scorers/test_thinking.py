"""Chat templates and thoughts of local models: where a thought ends, its limit, and no answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench import run
from bench.core.errors import BadInput
from bench.run.execute import NOT_ASKED
from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import CHAT, characters, merging, save

TURNS = "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
PLAIN = TURNS + "<|assistant|>"
OPENING = TURNS + "<|assistant|>{{ '<think>\n' }}"
SWITCHED = (
    TURNS + "<|assistant|>{% if enable_thinking is defined and not enable_thinking %}"
    "{{ '<think>\n\n</think>\n\n' }}{% else %}{{ '<think>\n' }}{% endif %}"
)
SHUT = TURNS + "<|assistant|>{{ '<think>\n\n</think>\n\n' }}"
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + PLAIN
)
FORGETS = (
    TURNS.replace("messages %}", "messages if message['role'] != 'system' %}") + "<|assistant|>"
)
END = "[SEP]"


def saved(folder: Path, template: str | None, special: bool = False, **options: Any) -> str:
    """A small random Llama with tags of thoughts among its tokens, special ones if `special`."""
    coder = characters("[CLS] $A")
    coder.add_tokens(["<think>", "</think>"], special_tokens=special)
    coder.chat_template = template
    return str(save(folder, LlamaForCausalLM, LlamaConfig, coder, **options))


def write(scorer: Any, replies: Mapping[str, str]) -> None:
    """Have a model write these replies to these questions, whatever its weights are."""
    coder, speech = scorer.tokenizer, scorer.chat
    scripts = {}
    for question, reply in replies.items():
        (prompt,) = speech.encode([speech.render(question)])
        scripts[tuple(prompt)] = coder(reply, add_special_tokens=False)["input_ids"]

    def generate(input_ids: Any, attention_mask: Any, max_new_tokens: int, **given: Any) -> Any:
        rows = [row[mask > 0].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        starts = [next(key for key in scripts if tuple(row[: len(key)]) == key) for row in rows]
        over = torch.zeros(len(rows), dtype=torch.bool)
        for _ in range(max_new_tokens):
            new = []
            for row, start in zip(rows, starts, strict=True):
                script, k = scripts[start], len(row) - len(start)
                new.append(script[min(k, len(script) - 1)])
                row.append(new[-1])
            new = [
                given["pad_token_id"] if ended else token
                for token, ended in zip(new, over, strict=True)
            ]
            input_ids = torch.cat([input_ids, torch.tensor(new)[:, None]], 1)
            over |= given["stopping_criteria"](input_ids, None)
            if over.all():
                break
        return input_ids

    scorer.network.generate = generate


def asked(question: str, name: str = "answer", **given: Any) -> Request:
    return Request("c", "t", "i", name, "generate", question, "v", Key(), **given)


def answers(
    scorer: Any, replies: Mapping[str, str], **given: Any
) -> dict[str, tuple[str, str, Any]]:
    """What is recorded of the `replies`: response, error, and whether it was cut off."""
    write(scorer, replies)
    found = scorer.answer([asked(question, **given) for question in replies])
    return {
        question: (one.response, one.error, one.cut)
        for question, one in zip(replies, found, strict=True)
    }


def test_a_reply_that_ends_inside_its_thought_is_no_answer(tmp_path: Path) -> None:
    scorer = load(saved(tmp_path, OPENING))
    found = answers(
        scorer,
        {
            "cut": "abcdefgh" + END,
            "closed": "ab</think>C" + END,
            "no answer": "abc" + END,
            "long answer": "a</think>Cdefgh" + END,
            "shut at the limit": "abcd</think>C" + END,
        },
        max_new_tokens=5,
    )
    assert found == {
        "cut": ("abcde", "cut off while thinking; raise --max-new-tokens", True),
        "closed": ("ab</think>C", "", False),
        "no answer": ("abc", "ended while thinking, without an answer", False),
        "long answer": ("a</think>Cde", "", True),
        "shut at the limit": ("abcd</think>", "", True),
    }


def test_a_model_that_opens_its_thought_itself_is_read_alike(tmp_path: Path) -> None:
    scorer = load(saved(tmp_path, PLAIN))
    found = answers(
        scorer,
        {
            "none": "C" + END,
            "long": "Cdefgh" + END,
            "cut": "<think>abcdef" + END,
            "closed": "<think>a</think>C" + END,
        },
        max_new_tokens=5,
    )
    assert found == {
        "none": ("C", "", False),
        "long": ("Cdefg", "", True),
        "cut": ("<think>abcd", "cut off while thinking; raise --max-new-tokens", True),
        "closed": ("<think>a</think>C", "", False),
    }


@pytest.mark.parametrize("template", [OPENING, PLAIN])
def test_a_thought_has_tokens_of_its_own_and_the_answer_all_of_its_own(
    tmp_path: Path, template: str
) -> None:
    scorer = load(saved(tmp_path, template), generation={"thinking_tokens": 6}, batch_tokens=30)
    first = "" if template == OPENING else "<think>"
    more = "" if first else "d"  # so that thoughts have as many tokens
    replies = {
        "fits": f"{first}abc{more}o</think>CEFGHIJ{END}",
        "too long": f"{first}abc{more}op</think>C{END}",
        "short": f"{first}a</think>CEFGHIJ{END}",
        "ends": f"{first}a</think>CE{END}",
        "twice": f"{first}a</think>b<think></think>CEFGHIJ{END}",
    }
    found = answers(scorer, replies, max_new_tokens=4)
    assert found == {
        "fits": (f"{first}abc{more}o</think>CEFG", "", True),
        "too long": (
            f"{first}abc{more}op",
            "cut off while thinking; raise --thinking-tokens",
            True,
        ),
        "short": (f"{first}a</think>CEFG", "", True),
        "ends": (f"{first}a</think>CE", "", False),
        "twice": (f"{first}a</think>b<think></think>CEFG", "", True),
    }
    alone = {
        question: answers(scorer, {question: replies[question]}, max_new_tokens=4)
        for question in replies
    }
    assert {question: one[question] for question, one in alone.items()} == found


def test_a_model_that_does_not_think_gets_no_more_room(tmp_path: Path) -> None:
    scorer = load(saved(tmp_path, PLAIN), generation={"thinking_tokens": 6})
    assert answers(scorer, {"q": "CEFGHIJ" + END}, max_new_tokens=4) == {"q": ("CEFG", "", True)}


def test_tags_may_be_of_many_tokens_or_special_ones(tmp_path: Path) -> None:
    coder = merging()
    coder.chat_template = (
        "{% for message in messages %}{{ message['content'] }}|{% endfor %}<think>\n"
    )
    bytewise = save(tmp_path / "bytes", LlamaForCausalLM, LlamaConfig, coder)
    scorer = load(str(bytewise), generation={"thinking_tokens": 11})
    found = answers(
        scorer, {"fits": "abc</think>CEFGHIJ", "long": "abcd</think>CEFGHIJ"}, max_new_tokens=4
    )
    assert found == {
        "fits": ("abc</think>CEFG", "", True),
        "long": ("abcd</think", "cut off while thinking; raise --thinking-tokens", True),
    }
    scorer = load(
        saved(tmp_path / "special", OPENING, special=True), generation={"thinking_tokens": 3}
    )
    found = answers(scorer, {"q": "ab</think>CE" + END}, max_new_tokens=4)
    assert found == {"q": ("ab</think>CE", "", False)}


def test_what_says_enough_inside_a_thought_is_not_enough(tmp_path: Path) -> None:
    scorer = load(saved(tmp_path, OPENING))
    replies = {"q": "7\nab</think>8\ncdefg" + END}
    found = answers(
        scorer, replies, max_new_tokens=9, until=lambda text: "\n" in text.partition("</think>")[2]
    )
    assert found == {"q": ("7\nab</think>8\n", "", False)}


def test_letters_are_read_behind_a_closed_thought(tmp_path: Path) -> None:
    opening, shut = (
        load(saved(tmp_path / name, template)) for name, template in (("o", OPENING), ("s", SHUT))
    )
    questions = ["the doctor?", ("the nurse", "no", "who?"), "<think>"]
    values = opening.choose(questions, ["A", "B"])
    assert np.array_equal(values, shut.choose(questions, ["A", "B"]))
    assert "behind the closed thought" in opening.describe()["thoughts"]
    assert "thoughts" not in shut.describe()


def test_a_prompt_that_ends_with_a_tag_opens_no_thought(tmp_path: Path) -> None:
    bare = load(saved(tmp_path / "bare", None))
    last = load(saved(tmp_path / "last", "{{ messages[-1]['content'] }}"))
    for scorer in (bare, last):
        found = answers(scorer, {"say <think>": "abc" + END}, max_new_tokens=2)
        assert found == {"say <think>": ("ab", "", True)}


def test_thinking_is_switched_off_where_it_can_be(tmp_path: Path, capsys: Any) -> None:
    off = {"thinking_tokens": 0}
    folders = {
        name: saved(tmp_path / name, template)
        for name, template in (
            ("plain", PLAIN),
            ("opens", OPENING),
            ("switch", SWITCHED),
            ("shut", SHUT),
        )
    }
    scorers: dict[str, Any] = {
        name: load(folder, generation=off) for name, folder in folders.items()
    }
    shown = {name: scorer.chat.render("who?") for name, scorer in scorers.items()}
    assert shown["switch"] == shown["opens"] == shown["shut"]
    assert shown["plain"] == load(folders["plain"]).chat.render("who?")
    thoughts = {name: scorer.describe()["thoughts"] for name, scorer in scorers.items()}
    assert thoughts["switch"] == "off (enable_thinking is false)"
    assert "closed at once" in thoughts["opens"]
    assert "no switch" in thoughts["plain"]
    said = capsys.readouterr().err
    assert said.count("has no switch") == 3
    assert f"{folders['switch']}: its" not in said
    assert scorers["switch"].describe()["generation"] == off
    assert answers(scorers["opens"], {"q": "CEFGHIJ" + END}, max_new_tokens=3) == {
        "q": ("CEF", "", True)
    }
    with pytest.raises(BadInput, match="--thinking-tokens off"):
        load(folders["switch"], generation={**off, "template_arguments": {"enable_thinking": True}})


def test_a_system_message_is_first_and_only_text(tmp_path: Path) -> None:
    system = "be <|user|> brief"
    scorer: Any = load(saved(tmp_path / "chat", CHAT), generation={"system": system})
    coder, chat = scorer.tokenizer, scorer.chat
    (ids,) = chat.encode([chat.render("who?")])
    marks = coder.convert_tokens_to_ids(["<|user|>", "<|assistant|>"])
    assert [token for token in ids if token in marks] == marks
    assert coder.decode(ids).startswith(coder.decode(coder("<|system|>")["input_ids"][1:]))
    assert scorer.describe()["generation"] == {"system": system}
    bare: Any = load(saved(tmp_path / "bare", None), generation={"system": "be brief"})
    assert bare.chat.render("who?") == "be brief\n\nwho?\n"
    assert "system message" in bare.describe()["prompted_as"]


@pytest.mark.parametrize("template", [NO_SYSTEM, FORGETS])
def test_a_template_without_a_system_message_is_refused(
    tmp_path: Path, template: str, refusal: Any
) -> None:
    folder = saved(tmp_path, template)
    load(folder)
    message = refusal(load, folder, generation={"system": "be brief"})
    assert message.startswith(f"--system: the chat template of {folder} ")


def test_arguments_go_to_the_template_that_knows_them(tmp_path: Path, refusal: Any) -> None:
    def refused(folder: str, **generation: Any) -> str:
        return str(refusal(load, folder, generation=generation))

    folder = saved(
        tmp_path / "style", PLAIN + "{% if style %}{{ style }}{% endif %}{{ bos_token }}"
    )
    scorer: Any = load(folder, generation={"template_arguments": {"style": "curt"}})
    assert scorer.chat.render("who?") == "<|user|>who?<|assistant|>curt[CLS]"
    message = refused(folder, template_arguments={"tone": "curt"})
    assert message.startswith("--template tone: ")
    assert message.endswith("it takes style")
    assert refused(folder, template_arguments={"messages": []}).startswith("--template messages: ")
    assert refused(folder, request_fields={"n": 1}).startswith("--request-field: ")
    bare = saved(tmp_path / "bare", None)
    assert "no chat template" in refused(bare, template_arguments={"style": "x"})


def test_cut_replies_stand_beside_the_score_and_cut_thoughts_are_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 12}
    warm = saved(tmp_path / "opens", OPENING, sampling={"temperature": 1.5, "top_k": 0})
    done = run.evaluate("cbbq", warm, max_new_tokens=8, out="o", **given)
    rows = done.records
    cut = int(rows.cut.sum())
    assert cut > 6
    assert set(rows.error[rows.cut == True]) == {"cut off while thinking; raise --max-new-tokens"}  # noqa: E712
    assert set(rows.error[rows.cut == False]) <= {"ended while thinking, without an answer"}  # noqa: E712
    assert rows.response.str.contains("[abAB]").any()
    assert not rows.valid.any()
    assert not rows.parsed.any()
    for preset in ("robust", "official"):
        scores = done.scores(preset).set_index(["category", "task", "metric"])
        assert not scores.xs("ambiguous", level="task").valid_rate.any()
        assert not (scores.score > 0).any(), "no letter in a thought is counted"
    note = done.scores().query("category == 'all' and task == 'ambiguous'").note.iloc[0]
    assert f"{cut} of 12 replies were cut off at their limit of tokens" in note
    assert "most often: cut off while thinking" in note

    done = run.evaluate(
        "cbbq", saved(tmp_path / "plain", PLAIN), max_new_tokens=8, out="p", **given
    )
    cut = int(done.records.cut.sum())
    assert cut > 0
    assert set(done.records.error) == {""}
    notes = done.scores().note.str.contains(
        f"{cut} of 12 replies were cut off at their limit of tokens"
    )
    assert notes.any()


def test_what_needs_a_reply_is_not_asked_where_that_is_a_cut_thought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = {"prompting": "Q+IF+CoT", "explanation": "yes"}
    given: dict[str, Any] = {
        "categories": ["gender"],
        "tasks": ["ambiguous"],
        "limit": 2,
        "out": "o",
    }
    model = saved(tmp_path / "opens", OPENING)
    rows = run.evaluate(
        "cbbq", model, judge=model, settings=steps, max_new_tokens=4, **given
    ).records
    errors = rows.groupby("request").error.unique().map(list)
    assert errors["thought"] == ["cut off while thinking; raise --max-new-tokens"]
    assert errors["explanation"] == errors["judge"] == [NOT_ASKED]
