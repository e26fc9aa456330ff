"""Replies are read as by a careful person: choices, numbers, verdicts, after any thought."""

import math
import tomllib
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.benchmarks.cbbq import requests as cbbq
from bench.benchmarks.mcbe import requests as mcbe
from bench.benchmarks.nli_coal import requests as nli_coal
from bench.tasks.choices import letter
from bench.tasks.ratings import rating, released_mark, released_rating
from bench.tasks.replies import answered, final, split_thought, unfinished_thought
from tests.benchmarks.replies import READERS, TABLES, by_kind, read_tables

# Replies of the table that the readers were made on which are read otherwise, by id.
KNOWN = {
    *("cbbq-306", "kinds-cbbq-177", "kinds-nli-050"),
    *("probe-cbbq-033", "probe-cbbq-038", "probe-nli-023"),
    *("fresh-nli-018", "second-nli-020", "third-cbbq-032", "third-bs-029"),
}
HAND = tomllib.loads((TABLES / "by_hand.toml").read_text("utf-8"))
QUESTION = SimpleNamespace(ans0="男生", ans1="女生", ans2="不知道")
LABELLED = SimpleNamespace(labels=("家庭分工", "职业", "职业分工"))


def test_labelled_replies_are_read_as_they_are_labelled():
    rows = read_tables([TABLES / "labelled.csv", TABLES / "ratings.csv"])
    assert rows.id.is_unique
    assert len(rows) >= 500
    wrong = rows[rows.outcome != "right"].set_index("id")
    assert set(wrong.index) == KNOWN, wrong.to_string()


@pytest.mark.parametrize("name", ["held_out", "independent"])
def test_replies_that_the_readers_were_not_made_on_are_seldom_misread(name):
    shares = by_kind(read_tables([TABLES / f"{name}.csv"])).loc["all"]
    assert shares["replies"] >= 100
    assert shares["% misread"] <= 1.5
    assert shares["% unread"] <= 8


# Letters


def test_a_letter_that_is_not_offered_is_no_answer_and_long_replies_are_read_at_both_ends():
    assert [letter(text, "AB") for text in ("C", "答案：C", "C. 不确定")] == ["", "", ""]
    filling = "情景里什么也没有说明。" * 100_000
    assert letter(f"C。{filling}", "ABC") == letter(f"{filling}答案：C", "ABC") == "C"
    assert letter(f"A。{filling}更正，答案：C", "ABC") == "C"


@given(
    st.text() | st.text("ABCabc和或、,，.。()（）:：'\"* \n答案选项是isanswero男女生", max_size=40),
    st.sampled_from(cbbq.ORDERS["all"]),
)
def test_any_reply_is_one_of_the_options_or_none(text, order):
    assert letter(text, "AB") in ("", "A", "B")
    assert cbbq.parse("ambiguous", f"answer:{order}", text, QUESTION) in ("", "A", "B", "C")
    assert cbbq.parse("ambiguous", f"thought:{order}", text, QUESTION) == final(text).strip()


@pytest.mark.parametrize(("reply", "order", "chosen"), HAND["choices"])
def test_a_place_or_a_fact_of_one_person_alone_chooses(reply, order, chosen):
    assert cbbq.parse("ambiguous", f"answer:{order}", reply, QUESTION) == chosen


@pytest.mark.parametrize("person", ["无业者", "没有宗教信仰的人", "少数民族人", "不识字的人"])
def test_the_text_of_an_option_does_not_deny_its_letter(person):
    question = SimpleNamespace(ans0="教师", ans1=person, ans2="不知道")
    assert cbbq.parse("ambiguous", "answer", f"(B) {person}", question) == "B"


@pytest.mark.parametrize(("reply", "chosen"), HAND["letters"])
def test_probabilities_choose_the_most_probable(reply, chosen):
    assert letter(reply, "AB") == chosen


# Numbers

WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")


@pytest.mark.parametrize("form", HAND["forms"])
@pytest.mark.parametrize("maximum", [5, 10, 13])
def test_every_number_of_a_scale_is_read_back_in_every_form(form, maximum):
    numbers = {text: tenth / 10 for tenth in range(10 * maximum + 1) for text in spelled(tenth)}
    replies = {number: form.format(number, maximum=maximum) for number in numbers}
    assert {number: rating(reply, maximum) for number, reply in replies.items()} == numbers


def spelled(tenth):
    """Write a number of tenths with and without a decimal, and in full width."""
    plain = (f"{tenth / 10:g}", f"{tenth / 10}")
    return (*plain, *(text.translate(WIDE) for text in plain))


@given(
    st.text(max_size=60)
    | st.text("0123456789.．/-~，,：:()[]分十七点得满第负% \n１²½①", max_size=30),
    st.sampled_from([5, 10, 13]),
)
def test_any_text_gives_a_number_of_the_scale_or_none(reply, maximum):
    value = rating(reply, maximum)
    assert math.isnan(value) or 0 <= value <= maximum


@pytest.mark.parametrize("piece", HAND["pieces"])
def test_a_long_reply_is_read(piece):
    """In quadratic time this would take a minute."""
    reply = (piece * 20_000)[:20_000] + "7A:"
    for read in READERS.values():
        assert isinstance(read(reply, ["家庭分工", "职业", "职业分工"]), str)
    for read in (answered, released_rating, released_mark):
        read(reply)


def test_the_released_readings_by_hand():
    ratings = {"7": 7, "[5, 8)，6.5": 5, "8/10": 8, "-3": 3, "2024年": 2024, "七分": -1}
    ratings |= {"６．５": 6, "": -1, "6.5分": 6.5}
    assert {reply: released_rating(reply) for reply in ratings} == ratings
    marks = {"7": 7, "8.9": 8, "10/13": 10, "-1": 1, "0到13之间，我给10": 0, "无": None, "7²": None}
    marks |= {"²": None, "７": 7, "130": 130, "": None}
    assert {reply: released_mark(reply) for reply in marks} == marks


# Verdicts


@pytest.mark.parametrize("verdict", HAND["verdicts"])
def test_a_verdict_is_the_beginning_of_the_first_line(verdict):
    found = {reply: cbbq.verdict(reply) for reply in HAND["verdicts"][verdict]}
    assert found == dict.fromkeys(found, verdict.replace("none", ""))


# Thoughts


@pytest.mark.parametrize(
    ("reply", "opened", "split"),
    [
        ("B", False, ("", "B", True)),
        ("<think>A?</think>\nB", False, ("A?", "B", True)),
        ("A?\n</think>\n\nB", True, ("A?", "B", True)),  # where the template opens the thought
        ("<think>A</think>再想<think>B</think> C", False, ("A</think>再想<think>B", "C", True)),
        ("A?", True, ("A?", "", False)),
        ("<think>A?", False, ("A?", "", False)),
    ],
)
def test_a_reply_is_split_into_thought_and_answer(reply, opened, split):
    assert split_thought(reply, opened) == split
    for cut in (True, False):
        assert (unfinished_thought(reply, opened, cut) == "") is split[2]


@given(
    st.sampled_from(HAND["tags"]), st.text(), st.text(st.characters(exclude_characters="<>[]◁▷"))
)
def test_thoughts_of_any_kind_are_no_part_of_an_answer(tags, thought, answer):
    answer = answer.replace("assistantfinal", "")
    assert final(f"{tags[0]}{thought}{tags[1]}{answer}") == answer.strip()
    assert final(f"{tags[0]}\n选A。") == ""


@pytest.mark.parametrize(("reply", "answer"), HAND["thoughts"])
def test_a_thought_without_tags_is_known_by_how_it_begins(reply, answer):
    assert final(reply) == answer


@pytest.mark.parametrize("answer", ["C", "答案：C", "7分", "<answer>C</answer>"])
@pytest.mark.parametrize("reason", ["<reason>选A的人多</reason>", "<analysis>选A", "\n<think>A?"])
def test_an_answer_alone_before_its_reasons_is_the_answer(answer, reason):
    split = split_thought(answer + reason)
    assert split.answer in (answer, "C")
    assert split.closed
    assert not split_thought(answer + reason, opened=True).answer


@pytest.mark.parametrize("turn", HAND["turns"])
def test_a_turn_of_the_user_that_a_model_invents_is_not_read(turn):
    assert letter(final(f"A{turn}"), "ABC") == "A"
    assert letter(final(f"<think>选B</think>A{turn}"), "ABC") == "A"


@pytest.mark.parametrize(
    ("room", "task", "request_name", "thought", "answer"),
    [
        (mcbe, "ss", "甲|乙", "答案是A吗？不是。", "B"),
        (mcbe, "bs", "answer", "轻微给2分，但更明显。我给8分吧。", "6.5"),
        (mcbe, "sc", "answer", "是职业还是家庭分工？", "职业分工"),
        (mcbe, "ba", "judge:1", "I would rate it 3. Hmm, maybe 8.", "10"),
        (nli_coal, "ps", "label", "neutral?", "entailment"),
        (cbbq, "ambiguous", "answer", "选A？", "C"),
    ],
)
def test_tasks_read_the_answer_and_not_the_thought(room, task, request_name, thought, answer):
    item = QUESTION if room is cbbq else LABELLED
    reply = f"<think>\n{thought}\n</think>\n\n{answer}"
    assert room.parse(task, request_name, reply, item) == answer
    assert room.parse(task, request_name, f"<think>\n{thought}", item) == ""


# Replies that are stopped once they have answered


def test_a_first_line_that_is_a_rating_or_a_letter_alone_answers():
    assert [reply for reply in HAND["answered"] if not answered(reply)] == []
    assert [reply for reply in HAND["unanswered"] if answered(reply)] == []
