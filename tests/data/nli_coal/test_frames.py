"""Frames: the slot is found by position, and captions become frames by the filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.nli_coal.frames import (
    RELEASED_TERMS,
    SLOT,
    Aligned,
    CaptionFilter,
    align,
    fault,
    fill,
    from_captions,
)

EN, ZH = RELEASED_TERMS["en"], RELEASED_TERMS["zh"]


# Premise, hypothesis, occupation that the row names, and frame, occupation and term found.
ENGLISH = """
the nurse sits. | the man sits. | nurse | the [Sub] sits. | nurse | man
the registered nurse sits. | the man sits. | nurse | the [Sub] sits. | registered nurse | man
the registered nurse sits. | the man sits. | | the [Sub] sits. | registered nurse | man
the nurse by a nurse. | the man by a nurse. | nurse | the [Sub] by a nurse. | nurse | man
the nurse sees a woman. | the woman sees a woman. | | the [Sub] sees a woman. | nurse | woman
the nurse sees a woman. | the man sees a woman. | | the [Sub] sees a woman. | nurse | man
the craftsman sits. | the man sits. | | the [Sub] sits. | craftsman | man
the wood carver sits. | the woman sits. | | the [Sub] sits. | wood carver | woman
the nurse sits. | the woman stands.
the woman sits. | the woman sits.
the nurse sits. | the craftsman sits.
the nurse sees the baker. | the man sees the man.
"""


@pytest.mark.parametrize("case", ENGLISH.strip().splitlines())
def test_english_pairs_are_aligned(case: str) -> None:
    premise, hypothesis, *rest = (cell.strip() for cell in case.split("|"))
    if not rest:
        assert align(premise, hypothesis, EN, "word") is None
    else:
        occupation, frame, found, term = rest
        gender = {"man": "masculine", "woman": "feminine"}[term]
        aligned = Aligned(frame, found, gender, term)
        assert align(premise, hypothesis, EN, "word", occupation) == aligned


@pytest.mark.parametrize(
    ("premise", "hypothesis", "frame", "occupation"),
    [
        ("一个官和一个官员。", "一个女人和一个官员。", "一个[Sub]和一个官员。", "官"),
        ("护士和护士长。", "男人和男人长。", "[Sub]和[Sub]长。", "护士"),
        (
            "一个法官拍一个戴墨镜的法官。",
            "一个男人拍一个戴墨镜的男人。",
            "一个[Sub]拍一个戴墨镜的[Sub]。",
            "法官",
        ),
        ("护士看着女人。", "男人看着女人。", "[Sub]看着女人。", "护士"),
    ],
)
def test_chinese_pairs_are_aligned_in_every_slot(
    premise: str, hypothesis: str, frame: str, occupation: str
) -> None:
    for given_word in ("", occupation):
        found = align(premise, hypothesis, ZH, "substring", given_word)
        assert found is not None
        assert found[:2] == (frame, occupation)


text = st.text(st.sampled_from("ab男女人 "), max_size=6)


@given(
    st.lists(text, min_size=2, max_size=4),
    st.text("abc男", min_size=1, max_size=3),
    st.sampled_from(["女人", "男人"]),
)
def test_a_frame_filled_twice_is_found_again(parts: list[str], word: str, term: str) -> None:
    frame = SLOT.join(parts)
    found = align(fill(frame, word), fill(frame, term), ZH, "substring", word)
    # Another frame may give the same two sentences, but no other word.
    assert found is not None
    assert (found.occupation, fill(found.frame, word)) == (word, fill(frame, word))
    assert fill(found.frame, found.term) == fill(frame, term)


ZH_RULE = CaptionFilter(
    without=("他", "她", "裙", "粉", "胡子", "胡须"), blanks=False, skip_id=True
)
EN_RULE = CaptionFilter(lower=True, determiners={"a": "the"}, end=".")


@pytest.mark.parametrize(
    ("caption", "frame"),
    [
        ("1.jpg#0 一个女人坐着。", "一个[Sub]坐着。"),
        ("1.jpg#0 男人看着男人。", "[Sub]看着[Sub]。"),
        ("1.jpg#0 男人看着女人。", ""),
        ("1.jpg#0 一个人坐着。", ""),
        ("1.jpg#0 一个女人 坐着。", ""),
        ("1.jpg#0 一个女人和其他人。", ""),
        ("1.jpg#0 一个男人留着胡须。", ""),
        ("1.jpg#0", ""),
        ("", ""),
    ],
)
def test_chinese_captions_are_filtered_as_in_the_release(caption: str, frame: str) -> None:
    assert from_captions([caption], ZH, "substring", ZH_RULE) == ([frame] if frame else [])


@pytest.mark.parametrize(
    ("caption", "frame"),
    [
        ("A man rides a bike.", "the [Sub] rides a bike."),
        ("One man and a young man", "one [Sub] and a young [Sub]."),
        ("A woman near a man-made lake.", "the [Sub] near a man-made lake."),
        ("Two women walk.", ""),
        ("A man and a woman walk.", ""),
        ("A fireman walks.", ""),
    ],
)
def test_english_captions_match_whole_words(caption: str, frame: str) -> None:
    assert from_captions([caption], EN, "word", EN_RULE) == ([frame] if frame else [])


def test_captions_keep_their_order_and_repeats_up_to_a_number() -> None:
    lines = ["A man sits.", "no one", "A woman sits.", "A man runs."]
    assert from_captions(lines, EN, "word", EN_RULE) == [
        "the [Sub] sits.",
        "the [Sub] sits.",
        "the [Sub] runs.",
    ]
    assert from_captions(lines, EN, "word", EN_RULE, most=1) == ["the [Sub] sits."]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ("the [Sub] sits.", ""),
        ("the [Sub] met a craftsman.", ""),
        ("the nurse sits.", "has no slot [Sub]"),
        ("the [sub] sits.", "it has '[sub]', which is not the same"),
        ("一个【Sub】坐着。", "it has '【Sub】'"),
        ("the [Sub] met the Man.", "holds the gendered word 'man'"),
    ],
)
def test_a_frame_s_fault_is_named(frame: str, said: str) -> None:
    found = fault(frame, ["woman", "man"], "word")
    assert said in found
    assert bool(found) == bool(said)
