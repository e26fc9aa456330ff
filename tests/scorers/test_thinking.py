"""Chat templates, and thoughts of local models: their ends, their limits, and no answer."""

import tomllib
from datetime import date
from itertools import dropwhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import LogitsProcessorList

from bench import run
from bench.scorers import load
from bench.scorers.local import chat_template
from tests.helpers.answering import request
from tests.helpers.cases import json_lines, table
from tests.helpers.checkpoints import characters, merging, save

TEMPLATES = tomllib.loads(Path(__file__).with_name("templates.toml").read_text("utf-8"))
CLOSED = "<think>\n\n</think>\n\n"
TAGS = ("<think>", "</think>")
CHANNELS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>")


def saved(folder, template, tags=TAGS, special=False, coder=None, **options):
    """A small random Llama with tags of thoughts among its tokens, special ones if `special`."""
    coder = coder or characters("[CLS] $A")
    coder.add_tokens(list(tags), special_tokens=special)
    coder.chat_template = TEMPLATES[template]
    return str(save(folder, "LlamaForCausalLM", coder, **options))


def answers(scorer, replies, **given):
    """Have a model write these replies to these questions, whatever its weights are.

    Returns response, error, and whether it was cut off.
    """
    coder, chat, network = scorer.tokenizer, scorer.chat, scorer.network
    prompts = chat.encode([chat.render(question) for question in replies])
    scripts = coder(list(replies.values()), add_special_tokens=False)["input_ids"]

    def follow_script(input_ids, scores):
        forced = torch.full_like(scores, -torch.inf)
        for row, padded in zip(forced, input_ids.tolist(), strict=True):
            ids = list(dropwhile(lambda token: token == coder.pad_token_id, padded))
            k = next(k for k, prompt in enumerate(prompts) if ids[: len(prompt)] == prompt)
            row[scripts[k][min(len(ids) - len(prompts[k]), len(scripts[k]) - 1)]] = 0
        return forced

    def generate(logits_processor, **options):
        steps = LogitsProcessorList([follow_script, *logits_processor])
        return type(network).generate(network, logits_processor=steps, **options)

    network.generate = generate
    new = scorer.answer([request(question, **given) for question in replies])
    return [(answer.response, answer.error, answer.cut) for answer in new]


MODELS = {
    "special": {"template": "opening", "special": True},
    "bytes": {"template": "opening", "tags": ()},
    "channels": {"template": "plain", "tags": CHANNELS, "special": True},
}
# The text that a model writes, the part that is kept, the end of its error, and whether it was cut
# off. E is the token for the end. A model that does not think gets no more room.
THOUGHTS = [*table(__file__, "thoughts.csv").groupby(["template", "thinking", "limit"])]


@pytest.mark.parametrize(("key", "cases"), THOUGHTS, ids=[str(key) for key, _ in THOUGHTS])
def test_thought_and_answer_have_their_limits(tmp_path, key, cases):
    name, thinking, limit = key[0], key[1], int(key[2])
    generation = {"thinking_tokens": int(thinking)} if thinking else {}
    options = MODELS.get(name, {"template": name})
    model = saved(tmp_path, **options, coder=merging() if name == "bytes" else None)
    scorer = load(model, generation=generation, batch_tokens=30)
    replies = {f"q{k}": text.replace("E", "[SEP]") for k, text in enumerate(cases.written)}
    together = answers(scorer, replies, max_new_tokens=limit)
    for case, answer in zip(cases.itertuples(), together, strict=True):
        assert answer[::2] == (case.kept, case.cut == "yes")
        assert answer[1].endswith(case.error)
        assert bool(answer[1]) is bool(case.error)
    alone = [answers(scorer, {q: reply}, max_new_tokens=limit)[0] for q, reply in replies.items()]
    assert alone == together


def test_a_reply_that_is_complete_ends_but_not_inside_a_thought(tmp_path):
    scorer = load(saved(tmp_path, "opening"))
    until = lambda text: "\n" in text.partition("</think>")[2]  # noqa: E731
    new = answers(scorer, {"q": "7\nab</think>8\ncdefg[SEP]"}, max_new_tokens=9, until=until)
    assert new == [("7\nab</think>8\n", "", False)]


def test_letters_are_read_behind_the_closed_thought(tmp_path):
    opening = load(saved(tmp_path / "opening", "opening"))
    shut = load(saved(tmp_path / "shut", "shut"))
    questions = ["the doctor?", ("the nurse", "no", "who?"), "<think>"]
    choices = [scorer.choose(questions, ["A", "B"]) for scorer in (opening, shut)]
    assert np.array_equal(*choices)
    assert "behind the closed thought" in opening.describe()["thoughts"]
    assert "thoughts" not in shut.describe()


OFF = {"thinking_tokens": 0}


@pytest.mark.parametrize(
    ("template", "generation", "prompt", "shown"),
    [
        ("plain", OFF, "who?", "<|user|>who?<|assistant|>"),
        ("opening", OFF, "who?", f"<|user|>who?<|assistant|>{CLOSED}"),
        ("switched", OFF, "who?", f"<|user|>who?<|assistant|>{CLOSED}"),
        ("style", {"template_arguments": {"style": "I"}}, "?", "<|user|>?<|assistant|>I[CLS]"),
        ("parts", {}, ("a", "b", "c"), "user: a assistant: b user: c "),
    ],
)
def test_a_template_is_filled_with_its_options(tmp_path, template, generation, prompt, shown):
    scorer = load(saved(tmp_path, template), generation=generation)
    assert scorer.chat.render(prompt) == shown


@pytest.mark.parametrize(
    ("template", "thoughts"),
    [
        ("plain", "no switch"),
        ("opening", "closed at once"),
        ("switched", "off (enable_thinking is false)"),
    ],
)
def test_a_run_records_how_thinking_is_switched_off(tmp_path, capsys, template, thoughts):
    scorer = load(saved(tmp_path, template), generation=OFF)
    assert thoughts in scorer.describe()["thoughts"]
    assert ("has no switch" in capsys.readouterr().err) is (template != "switched")


def test_letters_less_likely_than_a_thought_are_no_answer(tmp_path):
    folder = saved(tmp_path, "plain")
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
    off = load(folder, generation=OFF)
    assert not any(answer.error for answer in off.answer(asked))


def test_a_system_message_is_first_and_only_text(tmp_path):
    system = "be <|user|> brief"
    scorer = load(saved(tmp_path, "chat"), generation={"system": system})
    coder, chat = scorer.tokenizer, scorer.chat
    (ids,) = chat.encode([chat.render("who?")])
    marks = coder.convert_tokens_to_ids(["<|user|>", "<|assistant|>"])
    assert [token for token in ids if token in marks] == marks
    assert coder.decode(ids).startswith(coder.decode(coder("<|system|>")["input_ids"][1:]))


@pytest.mark.parametrize("case", json_lines(__file__, "refused_templates.jsonl"))
def test_an_impossible_template_or_option_of_it_is_refused(tmp_path, refusal, monkeypatch, case):
    monkeypatch.setattr(chat_template, "SECONDS", 0.2)
    folder = saved(tmp_path, case["template"])
    message = refusal(load, folder, generation=case["generation"])
    assert case["says"] in message.replace(folder, "M")


def test_cut_thoughts_are_never_read(own_folder):
    given = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 12}
    sampling = {"temperature": 1.5, "top_k": 0}
    warm = saved(own_folder / "opens", "opening", sampling=sampling)
    done = run.evaluate("cbbq", warm, max_new_tokens=8, out="o", **given)
    rows = done.answers()
    cut = int(rows.cut.sum())
    assert cut > 6
    error = "cut off while thinking; raise --max-new-tokens"
    assert set(rows.error[rows.cut.eq(True)]) == {error}
    assert rows.response.str.contains("[abAB]").any()
    assert not rows.valid.any(), "no letter in a thought is counted"
    note = done.scores().query("category == 'all' and task == 'ambiguous'").note.iloc[0]
    assert f"{cut} of 12 replies were cut off at their limit of tokens" in note


class Later(date):
    """A calendar that is 40 days ahead."""

    @classmethod
    def today(cls):
        return cls.fromordinal(date.today().toordinal() + 40)


def test_a_run_is_continued_with_its_own_date(own_folder, monkeypatch):
    options = {"categories": ["gender"], "limit": 4, "answer_mode": "letters"}
    folder = saved(own_folder / "model", "dated")
    first = run.evaluate("cbbq", folder, out="first", **options)
    records = first.records.drop(columns="seconds")
    Path("first/records/answers.parquet").unlink()
    monkeypatch.setattr(chat_template, "date", Later)
    continued = run.evaluate("cbbq", folder, out="first", **options)
    assert continued.metadata["model"]["prompt_date"] == date.today().isoformat()
    pd.testing.assert_frame_equal(continued.records.drop(columns="seconds"), records)
