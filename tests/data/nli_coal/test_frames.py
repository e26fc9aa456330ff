"""Frames: the slot is found by position, and captions become frames by the filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.nli_coal.frames import (
    RELEASED_CAPTIONS,
    RELEASED_TERMS,
    SLOT,
    Aligned,
    align,
    fault,
    fill,
    gender_words,
    judged,
    match_of,
)

ZH = RELEASED_TERMS["zh"]

# Premise, hypothesis, occupation that the row names, and frame, occupation and term found.
PAIRS = """
en | the nurse sits. | the man sits. | nurse | the [Sub] sits. | nurse | man
en | the registered nurse sits. | the man sits. | nurse | the [Sub] sits. | registered nurse | man
en | the nurse by a nurse. | the man by a nurse. | nurse | the [Sub] by a nurse. | nurse | man
en | the nurse sees a woman. | the woman sees a woman. | | the [Sub] sees a woman. | nurse | woman
en | the nurse sees a woman. | the man sees a woman. | | the [Sub] sees a woman. | nurse | man
en | the craftsman sits. | the man sits. | | the [Sub] sits. | craftsman | man
en | the nurse sits. | the woman stands. |
en | the woman sits. | the woman sits. |
en | the nurse sits. | the craftsman sits. |
en | the nurse sees the baker. | the man sees the man. |
zh | 一个官和一个官员。 | 一个女人和一个官员。 | 官 | 一个[Sub]和一个官员。 | 官 | 女人
zh | 护士和护士长。 | 男人和男人长。 | 护士 | [Sub]和[Sub]长。 | 护士 | 男人
zh | 法官拍戴墨镜的法官。 | 男人拍戴墨镜的男人。 | 法官 | [Sub]拍戴墨镜的[Sub]。 | 法官 | 男人
zh | 护士看着女人。 | 男人看着女人。 | 护士 | [Sub]看着女人。 | 护士 | 男人
"""


@pytest.mark.parametrize("case", PAIRS.strip().splitlines())
def test_pairs_are_aligned(case: str) -> None:
    language, premise, hypothesis, named, *made = (cell.strip() for cell in case.split("|"))
    terms, match = RELEASED_TERMS[language], match_of(language)
    aligned = None
    if made:
        gender = next(gender for gender, words in terms.items() if made[2] in words)
        aligned = Aligned(made[0], made[1], gender, made[2])
    for occupation in (named, ""):
        assert align(premise, hypothesis, terms, match, occupation) == aligned


text = st.text(st.sampled_from("ab男女人 "), max_size=6)


@given(
    st.lists(text, min_size=2, max_size=4),
    st.text("abc男", min_size=1, max_size=3),
    st.sampled_from(["女人", "男人"]),
)
def test_a_frame_filled_twice_is_found_again(parts: list[str], word: str, term: str) -> None:
    frame = SLOT.join(parts)
    aligned = align(fill(frame, word), fill(frame, term), ZH, "substring", word)
    # Another frame may give the same two sentences, but no other word.
    assert aligned is not None
    assert (aligned.occupation, fill(aligned.frame, word)) == (word, fill(frame, word))
    assert fill(aligned.frame, aligned.term) == fill(frame, term)


@pytest.mark.parametrize(
    ("language", "caption", "frame", "reason"),
    [
        ("zh", "1.jpg#0 一个女人坐着。", "一个[Sub]坐着。", ""),
        ("zh", "1.jpg#0 男人看着男人。", "[Sub]看着[Sub]。", ""),
        ("zh", "1.jpg#0 男人看着女人。", "", "has several gendered words"),
        ("zh", "1.jpg#0 一个人坐着。", "", "has no gendered word"),
        ("zh", "1.jpg#0 一个女人 坐着。", "", "holds a blank"),
        ("zh", "1.jpg#0 一个女人和其他人。", "", "holds another word that tells a gender"),
        ("zh", "1.jpg#0", "", "is empty"),
        ("en", "A man rides a bike.", "the [Sub] rides a bike.", ""),
        ("en", "One man and a young man", "one [Sub] and a young [Sub].", ""),
        ("en", "A woman near a man-made lake.", "the [Sub] near a man-made lake.", ""),
        ("en", "Two women walk by a fireman.", "", "has no gendered word"),
        ("ja", "[Sub]と男性", "", "holds [Sub] already"),
    ],
)
def test_captions_are_filtered_as_in_the_release(
    language: str, caption: str, frame: str, reason: str
) -> None:
    words, rule = gender_words(RELEASED_TERMS[language]), RELEASED_CAPTIONS[language]
    made, why = judged(caption, words, match_of(language), rule)
    assert made == frame
    assert why.startswith(reason)
    assert bool(why) == bool(reason)


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        ("the [Sub] met a craftsman.", ""),
        ("the nurse sits.", "has no slot [Sub]"),
        ("一个【Sub】坐着。", "it has '【Sub】', which is not the same"),
        ("the [Sub] met the Man.", "holds the gendered word 'man'"),
    ],
)
def test_a_frame_s_fault_is_named(frame: str, what: str) -> None:
    found = fault(frame, ["woman", "man"], "word")
    assert what in found
    assert bool(found) == bool(what)
