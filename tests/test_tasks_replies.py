"""Replies of models that think aloud: only what follows the thinking is an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import run
from bench.data.mcbe import Instance
from bench.tasks import cbbq, mcbe, nli_coal
from bench.tasks.replies import final

ITEM = Instance(
    "age", 1, "开会，", "[PLH]先说。", ("甲", "乙"), "职业分工", "说明", 5.0, ("家庭分工", "职业", "职业分工")
)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("B", "B"),
        ("<think>答案是A吗？不是。</think>\n\nB", "B"),
        ("先想想……A？</think>B", "B"),  # where the template opens the thinking itself
        ("<think>A</think>再想<think>B</think> C", "C"),
        ("<think>答案是A", ""),
        ("", ""),
    ],
)
def test_only_what_follows_the_thinking_counts(reply, said):
    assert final(reply) == said


@given(st.text(), st.text().filter(lambda text: "</think>" not in text))
def test_thinking_of_any_kind_is_cut(thought, answer):
    assert final(f"<think>{thought}</think>{answer}") == answer.strip()


@pytest.mark.parametrize(
    ("task", "request_name", "thought", "answer", "read"),
    [
        ("ss", "甲|乙", "答案是A吗？不是。", "B", "B"),
        ("bs", "answer", "轻微给2分，但更明显。我给8分吧。", "6.5", "6.5"),
        ("sc", "answer", "是职业还是家庭分工？", "职业分工", "职业分工"),
        ("ba", "judge:1", "I would rate it 3. Hmm, maybe 8.", "10", "10"),
        ("ba", "answer", "怎么说呢", "这是偏见。", "这是偏见。"),
    ],
)
def test_mcbe_reads_the_answer_and_not_the_thought(task, request_name, thought, answer, read):
    assert mcbe.parse(task, request_name, f"<think>\n{thought}\n</think>\n\n{answer}", ITEM) == read
    assert mcbe.parse(task, request_name, f"<think>\n{thought}", ITEM) == ""


def test_the_other_benchmarks_do_too():
    assert nli_coal.parse("ps", "label", "<think>neutral?</think>entailment", None) == "entailment"
    question = type("Q", (), {"ans0": "甲", "ans1": "乙", "ans2": "不知道"})()
    assert cbbq.parse("ambiguous", "answer", "<think>选A？</think>C", question) == "C"
    assert cbbq.parse("ambiguous", "answer", "<think>选A？", question) == ""


def test_the_judge_is_shown_the_analysis_alone(tmp_path):
    (tmp_path / "age.csv").write_text("context,sentence,words,subtype,explanation,score\n开会，,[PLH]先说。,甲，乙,x,y,1\n开会，,[PLH]后说。,甲，乙,x,y,1\n", "utf-8")  # fmt: skip
    with (tmp_path / "m.jsonl").open("w", encoding="utf-8") as stream:
        for k, reply in enumerate(("<think>嗯</think>这是偏见。", "<think>嗯"), start=1):
            stream.write(
                json.dumps({"task": "ba", "item_id": f"age:{k}", "request": "answer", "response": reply})
                + "\n"
            )
    asked = run.evaluate("mcbe", f"replay:{tmp_path / 'm.jsonl'}", judge="simulated:", tasks=["ba"], data=tmp_path, out=tmp_path / "o")  # fmt: skip
    marks = asked.records[asked.records.request == "judge:1"].set_index("item_id")
    assert "“这是偏见。”" in marks.prompt["age:1"]
    assert "think" not in marks.prompt["age:1"]
    assert marks.error["age:2"].startswith("not asked")
