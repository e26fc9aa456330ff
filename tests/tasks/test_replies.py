"""Replies are read as by a careful person: choices, numbers, verdicts, after any thought."""

import tomllib
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.benchmarks.cbbq import requests as cbbq
from bench.tasks.choices import letter
from bench.tasks.ratings import rating, released_mark, released_rating
from bench.tasks.replies import answered, final, split_thought, unfinished_thought
from tests.benchmarks.replies import READERS, TABLES, by_kind, read_tables

# Replies of the table that the readers were made on which are read otherwise, by id.
KNOWN = (
    "cbbq-306 kinds-cbbq-177 kinds-nli-050 probe-cbbq-033 probe-cbbq-038 probe-nli-023 "
    "fresh-nli-018 second-nli-020 third-cbbq-032 third-bs-029"
)
HAND = tomllib.loads((TABLES / "by_hand.toml").read_text("utf-8"))
QUESTION = SimpleNamespace(ans0="男生", ans1="女生", ans2="不知道")


def test_labelled_replies_are_read_as_they_are_labelled():
    rows = read_tables([TABLES / "labelled.csv", TABLES / "ratings.csv"])
    assert rows.id.is_unique
    assert len(rows) >= 500
    wrong = rows[rows.outcome != "right"].set_index("id")
    assert set(wrong.index) == set(KNOWN.split()), wrong.to_string()


@pytest.mark.parametrize("name", ["held_out", "independent"])
def test_replies_that_the_readers_were_not_made_on_are_seldom_misread(name):
    shares = by_kind(read_tables([TABLES / f"{name}.csv"])).loc["all"]
    assert shares["replies"] >= 100
    assert shares["% misread"] <= 1.5
    assert shares["% unread"] <= 8


def test_a_letter_that_is_not_offered_is_no_answer_and_long_replies_are_read_at_both_ends():
    assert [letter(text, "AB") for text in ("C", "答案：C", "C. 不确定")] == ["", "", ""]
    filling = "情景里什么也没有说明。" * 100_000
    assert letter(f"C。{filling}", "ABC") == letter(f"{filling}答案：C", "ABC") == "C"
    assert letter(f"A。{filling}更正，答案：C", "ABC") == "C"


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


@pytest.mark.parametrize("form", HAND["forms"])
@pytest.mark.parametrize("maximum", [5, 10, 13])
def test_every_number_of_a_scale_is_read_back_in_every_form(form, maximum):
    full_width, numbers = str.maketrans("0123456789.", "０１２３４５６７８９．"), {}
    for tenth in range(10 * maximum + 1):
        for text in (f"{tenth / 10:g}", f"{tenth / 10}"):
            numbers[text] = numbers[text.translate(full_width)] = tenth / 10
    replies = {text: form.format(text, maximum=maximum) for text in numbers}
    assert {text: rating(reply, maximum) for text, reply in replies.items()} == numbers


@pytest.mark.parametrize("piece", HAND["pieces"])
def test_a_long_reply_is_read(piece):
    """In quadratic time this would take a minute."""
    reply = (piece * 20_000)[:20_000] + "7A:"
    for read in READERS.values():
        assert isinstance(read(reply, ["家庭分工", "职业", "职业分工"]), str)
    for read in (answered, released_rating, released_mark):
        read(reply)


@pytest.mark.parametrize(("reply", "number"), HAND["released_ratings"])
def test_ratings_are_read_as_the_released_code_does(reply, number):
    assert released_rating(reply) == number


@pytest.mark.parametrize(("reply", "number"), HAND["released_marks"])
def test_grades_are_read_as_the_released_code_does(reply, number):
    assert released_mark(reply) == (None if number == "none" else number)


@pytest.mark.parametrize("verdict", HAND["verdicts"])
def test_a_verdict_is_the_beginning_of_the_first_line(verdict):
    found = {reply: cbbq.verdict(reply) for reply in HAND["verdicts"][verdict]}
    assert found == dict.fromkeys(found, verdict.replace("none", ""))


@pytest.mark.parametrize(("reply", "opened", "thought", "answer", "closed"), HAND["splits"])
def test_a_reply_is_split_into_thought_and_answer(reply, opened, thought, answer, closed):
    assert split_thought(reply, opened) == (thought, answer, closed)
    for cut in (True, False):
        assert (unfinished_thought(reply, opened, cut) == "") is closed


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


@pytest.mark.parametrize(("kind", "thought", "answer"), HAND["read"])
def test_every_reader_reads_the_answer_and_not_the_thought(kind, thought, answer):
    options = ["男生", "女生", "不知道"] if kind == "cbbq" else ["家庭分工", "职业", "职业分工"]
    assert READERS[kind](f"<think>\n{thought}\n</think>\n\n{answer}", options) == answer
    assert READERS[kind](f"<think>\n{thought}", options) == ""


def test_a_first_line_that_is_a_rating_or_a_letter_alone_answers():
    assert [reply for reply in HAND["answered"] if not answered(reply)] == []
    assert [reply for reply in HAND["unanswered"] if answered(reply)] == []
