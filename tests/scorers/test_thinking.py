"""Chat templates, and thoughts of local models: their ends, their limits, and no answer."""

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from bench import run
from bench.run import evaluate, repeat
from bench.run.execute import NOT_ASKED
from bench.scorers import load
from bench.scorers.local import chat_template
from tests.helpers.answering import request
from tests.helpers.cases import table
from tests.helpers.checkpoints import CHAT, characters, merging, save

PLAIN = "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
PLAIN += "<|assistant|>"
OPENING = PLAIN + "{{ '<think>\n' }}"
SHUT = PLAIN + "{{ '<think>\n\n</think>\n\n' }}"
SWITCHED = PLAIN + "{% if enable_thinking is defined and not enable_thinking %}"
SWITCHED += "{{ '<think>\n\n</think>\n\n' }}{% else %}{{ '<think>\n' }}{% endif %}"
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + PLAIN
STYLE = PLAIN + "{% if style %}{{ style }}{% endif %}{{ bos_token }}"
CUT = "raise --max-new-tokens"


def saved(folder, template, special=False, **options):
    """A small random Llama with tags of thoughts among its tokens, special ones if `special`."""
    coder = characters("[CLS] $A")
    coder.add_tokens(["<think>", "</think>"], special_tokens=special)
    coder.chat_template = template
    return str(save(folder, "LlamaForCausalLM", coder, **options))


def answers(scorer, replies, **given):
    """Have a model write these replies to these questions, whatever its weights are.

    Returns response, error, and whether it was cut off.
    """
    coder, chat = scorer.tokenizer, scorer.chat
    scripts = {}
    for question, reply in replies.items():
        (prompt,) = chat.encode([chat.render(question)])
        scripts[tuple(prompt)] = coder(reply, add_special_tokens=False)["input_ids"]

    def generate(input_ids, attention_mask, max_new_tokens, **given):
        rows = [row[mask > 0].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        starts = [next(key for key in scripts if tuple(row[: len(key)]) == key) for row in rows]
        over = torch.zeros(len(rows), dtype=torch.bool)
        for _ in range(max_new_tokens):
            for row, start in zip(rows, starts, strict=True):
                script = scripts[start]
                row.append(script[min(len(row) - len(start), len(script) - 1)])
            new = torch.tensor([row[-1] for row in rows]).where(~over, given["pad_token_id"])
            input_ids = torch.cat([input_ids, new[:, None]], 1)
            over |= given["stopping_criteria"](input_ids, None)
            if over.all():
                break
        return input_ids

    scorer.network.generate = generate
    new = scorer.answer([request(question, **given) for question in replies])
    return [(answer.response, answer.error, answer.cut) for answer in new]


# What is written by a model whose template opens the thought or not, what is kept of it, how its
# error ends, and whether it was cut off. E is the token for the end. A model that does not think
# gets no more room.
THOUGHTS = [*table(__file__, "thoughts.csv").groupby(["template", "thinking", "limit"])]


@pytest.mark.parametrize(("key", "cases"), THOUGHTS, ids=[str(key) for key, _ in THOUGHTS])
def test_thought_and_answer_have_their_limits(tmp_path, key, cases):
    name, thinking, limit = key[0], key[1], int(key[2])
    generation = {"thinking_tokens": int(thinking)} if thinking else {}
    model = saved(tmp_path, OPENING if name == "opening" else PLAIN)
    scorer = load(model, generation=generation, batch_tokens=30)
    replies = {f"q{k}": text.replace("E", "[SEP]") for k, text in enumerate(cases.written)}
    together = answers(scorer, replies, max_new_tokens=limit)
    for case, answer in zip(cases.itertuples(), together, strict=True):
        assert answer[::2] == (case.kept, case.cut == "yes")
        assert answer[1].endswith(case.error)
        assert bool(answer[1]) is bool(case.error)
    alone = [answers(scorer, {q: reply}, max_new_tokens=limit)[0] for q, reply in replies.items()]
    assert alone == together


def test_tags_may_be_of_many_tokens_or_special_ones_and_until_waits(tmp_path):
    coder = merging()
    coder.chat_template = "{% for message in messages %}{{ message['content'] }}|{% endfor %}"
    coder.chat_template += "<think>\n"
    bytewise = save(tmp_path / "bytes", "LlamaForCausalLM", coder)
    scorer = load(str(bytewise), generation={"thinking_tokens": 11})
    replies = {"fits": "abc</think>CEFGHIJ", "long": "abcd</think>CEFGHIJ"}
    fits, long = answers(scorer, replies, max_new_tokens=4)
    assert fits == ("abc</think>CEFG", "", True)
    assert long == ("abcd</think", "cut off while thinking; raise --thinking-tokens", True)
    special = saved(tmp_path / "special", OPENING, special=True)
    scorer = load(special, generation={"thinking_tokens": 3})
    new = answers(scorer, {"q": "ab</think>CE[SEP]"}, max_new_tokens=4)
    assert new == [("ab</think>CE", "", False)]
    scorer = load(saved(tmp_path / "opens", OPENING))
    until = lambda text: "\n" in text.partition("</think>")[2]  # noqa: E731
    new = answers(scorer, {"q": "7\nab</think>8\ncdefg[SEP]"}, max_new_tokens=9, until=until)
    assert new == [("7\nab</think>8\n", "", False)]


def test_thoughts_are_closed_before_letters_and_switched_off_where_they_can_be(tmp_path, capsys):
    templates = {"plain": PLAIN, "opens": OPENING, "switch": SWITCHED, "shut": SHUT}
    folders = {name: saved(tmp_path / name, template) for name, template in templates.items()}
    opening, shut = (load(folders[name]) for name in ("opens", "shut"))
    questions = ["the doctor?", ("the nurse", "no", "who?"), "<think>"]
    assert np.array_equal(*(one.choose(questions, ["A", "B"]) for one in (opening, shut)))
    assert "behind the closed thought" in opening.describe()["thoughts"]
    assert "thoughts" not in shut.describe()
    off = {"thinking_tokens": 0}
    scorers = {name: load(path, generation=off) for name, path in folders.items()}
    shown = {name: scorer.chat.render("who?") for name, scorer in scorers.items()}
    assert shown["switch"] == shown["opens"] == shown["shut"]
    assert shown["plain"] == "<|user|>who?<|assistant|>"
    thoughts = {name: scorer.describe()["thoughts"] for name, scorer in scorers.items()}
    assert thoughts["switch"] == "off (enable_thinking is false)"
    assert "closed at once" in thoughts["opens"]
    assert "no switch" in thoughts["plain"]
    assert capsys.readouterr().err.count("has no switch") == 3
    new = answers(scorers["opens"], {"q": "CEFGHIJ[SEP]"}, max_new_tokens=3)
    assert new == [("CEF", "", True)]


def test_letters_less_likely_than_a_thought_are_no_answer(tmp_path):
    folder = saved(tmp_path, PLAIN)
    scorer = load(folder)
    questions = [f"who? {k}" for k in range(40)]
    asked = [request(text, request_type="choose", options=("A", "B")) for text in questions]
    think, *letters = scorer.tokenizer.convert_tokens_to_ids(["<think>", "A", "B"])
    is_thought = []
    for text in questions:
        ids = torch.tensor(scorer.chat.encode([scorer.chat.render(text)]))
        logits = scorer.network(ids).logits[0, -1]
        is_thought.append(bool(logits[think] > logits[letters].max()))
    assert 0 < sum(is_thought) < len(questions)
    answers = scorer.answer(asked)
    for answer, thought in zip(answers, is_thought, strict=True):
        assert answer.error.startswith("the model thinks first" if thought else "")
        assert (answer.logprobs is None) is thought is bool(answer.error)
    off = load(folder, generation={"thinking_tokens": 0})
    assert not any(answer.error for answer in off.answer(asked))


def test_channels_of_special_tokens_are_thought_and_answer(tmp_path):
    coder = characters("[CLS] $A")
    tokens = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"]
    coder.add_tokens(tokens, special_tokens=True)
    coder.chat_template = PLAIN
    folder = str(save(tmp_path, "LlamaForCausalLM", coder))
    thought = "<|channel|>analysis<|message|>abA<|end|><|start|>assistant"
    replies = {
        "whole": f"{thought}<|channel|>final<|message|>CFGHIJE[SEP]",
        "cut": "<|channel|>analysis<|message|>" + 40 * "A",
    }
    scorer = load(folder, generation={"thinking_tokens": 40})
    whole, cut = answers(scorer, replies, max_new_tokens=4)
    final = "<|channel|>analysis<|message|>abAassistant<|channel|>final<|message|>CFGH"
    assert whole == (final, "", True)
    assert cut[1] == "cut off while thinking; raise --thinking-tokens"


def test_a_system_message_is_first_and_only_text(tmp_path):
    system = "be <|user|> brief"
    scorer = load(saved(tmp_path / "chat", CHAT), generation={"system": system})
    coder, chat = scorer.tokenizer, scorer.chat
    (ids,) = chat.encode([chat.render("who?")])
    marks = coder.convert_tokens_to_ids(["<|user|>", "<|assistant|>"])
    assert [token for token in ids if token in marks] == marks
    assert coder.decode(ids).startswith(coder.decode(coder("<|system|>")["input_ids"][1:]))
    style = {"template_arguments": {"style": "curt"}}
    styled = load(saved(tmp_path / "style", STYLE), generation=style)
    assert styled.chat.render("who?") == "<|user|>who?<|assistant|>curt[CLS]"


@pytest.mark.parametrize(
    ("template", "generation", "says"),
    [
        (NO_SYSTEM, {"system": "be brief"}, "--system: the chat template of M takes no system"),
        (STYLE, {"template_arguments": {"tone": "curt"}}, "takes no such argument"),
        (STYLE, {"template_arguments": {"user": "x"}}, "takes no such argument"),
        (STYLE, {"request_fields": {"n": 1}}, "--request-field: "),
    ],
)
def test_what_a_template_cannot_do_is_refused(tmp_path, refusal, template, generation, says):
    folder = saved(tmp_path, template)
    assert says in refusal(load, folder, generation=generation).replace(folder, "M")
    load(folder)


def test_cut_thoughts_are_never_read_and_what_needs_them_is_not_asked(own_folder):
    given = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 12}
    sampling = {"temperature": 1.5, "top_k": 0}
    warm = saved(own_folder / "opens", OPENING, sampling=sampling)
    done = run.evaluate("cbbq", warm, max_new_tokens=8, out="o", **given)
    rows = done.records
    cut = int(rows.cut.sum())
    assert cut > 6
    assert set(rows.error[rows.cut.eq(True)]) == {f"cut off while thinking; {CUT}"}
    assert rows.response.str.contains("[abAB]").any()
    assert not rows.valid.any(), "no letter in a thought is counted"
    note = done.scores().query("category == 'all' and task == 'ambiguous'").note.iloc[0]
    assert f"{cut} of 12 replies were cut off at their limit of tokens" in note
    given |= {"limit": 2, "settings": {"prompting": "Q+IF+CoT", "explanation": "yes"}}
    rows = run.evaluate("cbbq", warm, judge=warm, max_new_tokens=1, out="n", **given).records
    errors = rows.groupby("request").error.unique().map(list)
    assert errors["thought"] == [f"cut off while thinking; {CUT}"]
    assert errors["explanation"] == errors["judge"] == [NOT_ASKED]


PARTS = (
    "{% for m in messages %}{{ m['role'] }}: {% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %} {% endfor %}"
)
DATED = (
    "{% for m in messages %}{{ m['role'] }} {{ strftime_now('%d %b %Y, %-d. %A') }}: "
    "{{ m['content'] }} {% endfor %}"
)


def templated(folder, template):
    coder = characters("[CLS] $A")
    coder.chat_template = template
    return str(save(folder, "LlamaForCausalLM", coder))


class Later(date):
    """A calendar that is 40 days ahead."""

    @classmethod
    def today(cls):
        return cls.fromordinal(date.today().toordinal() + 40)


@pytest.mark.parametrize(
    "template", ["hello", "{% for m in messages %}{{ m['role'] }}{% endfor %}"]
)
def test_a_template_that_drops_the_question_is_refused(tmp_path, refusal, template):
    assert "leaves out the question" in refusal(load, templated(tmp_path, template))


def test_a_template_without_end_is_refused(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(chat_template, "SECONDS", 0.2)
    endless = "{% for a in range(99999) %}" * 4 + "{% endfor %}" * 4
    assert "longer than 0.2 seconds" in refusal(load, templated(tmp_path, endless))


def test_a_template_of_parts_gets_parts(tmp_path):
    scorer = load(templated(tmp_path, PARTS))
    assert scorer.chat.render("who is it?") == "user: who is it? "
    assert scorer.chat.render(("a", "b", "c")) == "user: a assistant: b user: c "


def test_a_run_is_continued_and_repeated_with_its_own_date(own_folder, monkeypatch):
    options = {"categories": ["gender"], "limit": 4, "read": "letters"}
    folder = templated(own_folder / "model", DATED)
    first = evaluate("cbbq", folder, out="first", **options)
    records = first.records.drop(columns="seconds")
    Path("first/records/answers.parquet").unlink()
    monkeypatch.setattr(chat_template, "date", Later)
    continued = evaluate("cbbq", folder, out="first", **options)
    repeated = repeat("first", out="again")
    for done in (continued, repeated):
        assert done.metadata["model"]["prompt_date"] == date.today().isoformat()
        pd.testing.assert_frame_equal(done.records.drop(columns="seconds"), records)
