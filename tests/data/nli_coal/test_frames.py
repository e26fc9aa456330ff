"""Frames: the slot is found by position, and captions become frames by the filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.nli_coal.frames import (
    RELEASED_CAPTIONS,
    RELEASED_TERMS,
    SLOT,
    align,
    fill,
    gender_words,
    judged,
    match_of,
)

# Premise, hypothesis, occupation that the row names, and frame, occupation and term found.
PAIRS = """
en | the nurse sits. | the man sits. | nurse | the [Sub] sits. | nurse | man
en | the registered nurse sits. | the man sits. | nurse | the [Sub] sits. | registered nurse | man
en | the nurse sees a woman. | the woman sees a woman. | | the [Sub] sees a woman. | nurse | woman
en | the craftsman sits. | the man sits. | | the [Sub] sits. | craftsman | man
en | the woman sits. | the woman sits. | | None
en | the nurse sits. | the craftsman sits. | | None
en | the nurse sees the baker. | the man sees the man. | | None
zh | 一个官和一个官员。 | 一个女人和一个官员。 | 官 | 一个[Sub]和一个官员。 | 官 | 女人
zh | 护士和护士长。 | 男人和男人长。 | 护士 | [Sub]和[Sub]长。 | 护士 | 男人
zh | 护士看着女人。 | 男人看着女人。 | 护士 | [Sub]看着女人。 | 护士 | 男人
"""


@pytest.mark.parametrize("case", PAIRS.strip().splitlines())
def test_pairs_are_aligned(case: str) -> None:
    language, premise, hypothesis, named, *made = (cell.strip() for cell in case.split("|"))
    terms, match = RELEASED_TERMS[language], match_of(language)
    for occupation in (named, ""):
        aligned = align(premise, hypothesis, terms, match, occupation)
        found = [aligned.frame, aligned.occupation, aligned.term] if aligned else ["None"]
        assert found == made


text = st.text(st.sampled_from("ab男女人 "), max_size=6)


@given(
    st.lists(text, min_size=2, max_size=4),
    st.text("abc男", min_size=1, max_size=3),
    st.sampled_from(["女人", "男人"]),
)
def test_a_frame_filled_twice_is_found_again(parts: list[str], word: str, term: str) -> None:
    frame = SLOT.join(parts)
    premise, hypothesis = fill(frame, word), fill(frame, term)
    aligned = align(premise, hypothesis, RELEASED_TERMS["zh"], "substring", word)
    # Another frame may give the same two sentences, but no other word.
    assert aligned is not None
    assert (aligned.occupation, fill(aligned.frame, word)) == (word, premise)
    assert fill(aligned.frame, aligned.term) == hypothesis


@pytest.mark.parametrize(
    ("language", "caption", "frame", "reason"),
    [
        ("zh", "1.jpg#0 男人看着男人。", "[Sub]看着[Sub]。", ""),
        ("zh", "1.jpg#0 男人看着女人。", "", "has several gendered words"),
        ("zh", "1.jpg#0 一个人坐着。", "", "has no gendered word"),
        ("zh", "1.jpg#0 一个女人 坐着。", "", "holds a blank"),
        ("zh", "1.jpg#0 一个女人和其他人。", "", "holds another word that tells a gender"),
        ("en", "One man and a young man", "one [Sub] and a young [Sub].", ""),
        ("en", "A woman near a man-made lake.", "the [Sub] near a man-made lake.", ""),
        ("ja", "[Sub]と男性", "", "holds [Sub] already"),
    ],
)
def test_captions_are_filtered_as_in_the_release(
    language: str, caption: str, frame: str, reason: str
) -> None:
    words, rule = gender_words(RELEASED_TERMS[language]), RELEASED_CAPTIONS[language]
    made, why = judged(caption, words, match_of(language), rule)
    assert (made, why[: len(reason)], bool(why)) == (frame, reason, bool(reason))
