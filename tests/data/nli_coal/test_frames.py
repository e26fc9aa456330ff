"""Frames: the slot is found by position, and captions become frames by the filter."""

from hypothesis import given
from hypothesis import strategies as st

from bench.benchmarks.nli_coal.frames import (
    RELEASED_CAPTIONS,
    RELEASED_TERMS,
    SLOT,
    align,
    fill,
    gender_words,
    judged,
    match_of,
)
from tests.helpers.cases import cases


@cases(__file__, "pairs.csv")
def test_pairs_are_aligned(case: dict[str, str]) -> None:
    """`named` is the occupation that the row names, if it does."""
    terms, match = RELEASED_TERMS[case["language"]], match_of(case["language"])
    made = [case[name] for name in ("frame", "occupation", "term")]
    for occupation in (case["named"], ""):
        aligned = align(case["premise"], case["hypothesis"], terms, match, occupation)
        found = [aligned.frame, aligned.occupation, aligned.term] if aligned else ["", "", ""]
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


@cases(__file__, "captions.csv")
def test_captions_are_filtered_as_in_the_release(case: dict[str, str]) -> None:
    language, caption, frame, reason = case.values()
    words, rule = gender_words(RELEASED_TERMS[language]), RELEASED_CAPTIONS[language]
    made, why = judged(caption, words, match_of(language), rule)
    assert (made, why[: len(reason)], bool(why)) == (frame, reason, bool(reason))
