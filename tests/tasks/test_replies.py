"""Replies of models that think aloud: only what follows the thinking is an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import run
from bench.data.mcbe import Instance
from bench.tasks import cbbq, mcbe, nli_coal
from bench.tasks.choices import letter
from bench.tasks.ratings import rating, released_rating
from bench.tasks.replies import THOUGHT_TAGS, answered, final, split_thought, unfinished_thought

ITEM = Instance(
    "age",
    1,
    "开会，",
    "[PLH]先说。",
    ("甲", "乙"),
    "职业分工",
    "说明",
    5.0,
    ("家庭分工", "职业", "职业分工"),
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


@pytest.mark.parametrize(
    ("reply", "opened", "split"),
    [
        ("B", False, ("", "B", True)),
        ("<think>A?</think>\nB", False, ("A?", "B", True)),
        ("A?\n</think>\n\nB", True, ("A?", "B", True)),
        ("A?", True, ("A?", "", False)),
        ("<think>A?", False, ("A?", "", False)),
        ("", True, ("", "", False)),
    ],
)
def test_a_reply_is_split_into_thought_and_answer(
    reply: str, opened: bool, split: tuple[str, str, bool]
) -> None:
    assert split_thought(reply, opened) == split
    assert (unfinished_thought(reply, opened, cut=True) == "") is split[2]


@given(
    st.sampled_from(THOUGHT_TAGS), st.text(), st.text(st.characters(exclude_characters="<>[]◁▷"))
)
def test_thinking_of_any_kind_is_cut(tags, thought, answer):
    answer = answer.replace("assistantfinal", "")
    assert final(f"{tags[0]}{thought}{tags[1]}{answer}") == answer.strip()


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
    (tmp_path / "age.csv").write_text(
        "context,sentence,words,subtype,explanation,score\n开会，,[PLH]先说。,甲，乙,x,y,1\n开会，,[PLH]后说。,甲，乙,x,y,1\n",
        "utf-8",
    )
    with (tmp_path / "m.jsonl").open("w", encoding="utf-8") as stream:
        for k, reply in enumerate(("<think>嗯</think>这是偏见。", "<think>嗯"), start=1):
            stream.write(
                json.dumps(
                    {"task": "ba", "item_id": f"age:{k}", "request": "answer", "response": reply}
                )
                + "\n"
            )
    asked = run.evaluate(
        "mcbe",
        f"replay:{tmp_path / 'm.jsonl'}",
        judge="simulated:",
        tasks=["ba"],
        data=tmp_path,
        out=tmp_path / "o",
    )
    marks = asked.records[asked.records.request == "judge:1"].set_index("item_id")
    assert marks.prompt["age:1"].count("\n这是偏见。\n") == 1
    assert "think" not in marks.prompt["age:1"]
    assert marks.error["age:2"].startswith("not asked")


SAID = [
    "7\n因为",
    "7分\n\n理由：",
    "得分：7\n这句话",
    "**7**\nThe sentence",
    "Score: 7/10\nIt is",
    "7.5\nok",
    "A\nbecause",
    "(B)\n因为",
    "选项：A。\n我",
]
NOT_YET = [
    "",
    "7",
    "7分",
    "7\n",
    "7\n\n",
    "7\n8",
    "1.\n因为",
    "A",
    "A\nB",
    "A\n\nB",
    "我给7分\n因为",
    "在0到10的范围内\n我",
    "A woman\nis",
    "<think>7\n因为",
    "A. 医生\nB. 护士",
]


@pytest.mark.parametrize("reply", SAID)
def test_a_first_line_that_is_a_rating_or_a_letter_alone_answers(reply: str) -> None:
    assert answered(reply)
    assert answered("<think>0\n因为</think>\n" + reply)


@pytest.mark.parametrize("reply", NOT_YET)
def test_a_reply_may_still_say_otherwise(reply: str) -> None:
    assert not answered(reply)


@given(
    st.sampled_from(["", "得分：", "Score: ", "**"]),
    st.integers(0, 10),
    st.sampled_from(["", "分", "/10", "**"]),
    st.lists(
        st.sampled_from(
            ["因为这句话有偏见", "The sentence is biased", "没有", "女性", ". ", "，", "\n"]
        ),
        min_size=1,
    ),
)
def test_what_is_read_does_not_change_with_what_would_have_followed(
    before: str, n: int, behind: str, more: list[str]
) -> None:
    whole = f"{before}{n}{behind}\n" + "".join(more)
    cut = next((whole[:k] for k in range(len(whole)) if answered(whole[:k])), whole)
    assert (
        rating(cut, 10) == rating(whole, 10) == released_rating(cut) == released_rating(whole) == n
    )


@given(
    st.sampled_from(["A", "(B)", "A.", "**B**"]),
    st.lists(st.sampled_from(["因为", "甲", "it is likely", "。", "\n"]), min_size=1),
)
def test_a_letter_stays_what_it_is(first: str, more: list[str]) -> None:
    whole = f"{first}\n" + "".join(more)
    cut = next((whole[:k] for k in range(len(whole)) if answered(whole[:k])), whole)
    assert letter(cut, "AB") == letter(whole, "AB") == first.strip("().*")
