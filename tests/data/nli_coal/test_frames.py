"""Frames: the slot is found by position, and captions become frames by the filter."""

from bench.benchmarks.nli_coal.frames import (
    RELEASED_CAPTIONS,
    RELEASED_TERMS,
    align,
    gender_words,
    judged,
    match_of,
)
from tests.helpers.cases import cases


@cases(__file__, "pairs.csv")
def test_pairs_are_aligned(case):
    """`named` is the occupation that the row names, if it does."""
    terms, match = RELEASED_TERMS[case["language"]], match_of(case["language"])
    made = [case[name] for name in ("frame", "occupation", "term")]
    for occupation in (case["named"], ""):
        aligned = align(case["premise"], case["hypothesis"], terms, match, occupation)
        found = [aligned.frame, aligned.occupation, aligned.term] if aligned else ["", "", ""]
        assert found == made


@cases(__file__, "captions.csv")
def test_captions_are_filtered_as_in_the_release(case):
    language, caption, frame, reason = case.values()
    words, rule = gender_words(RELEASED_TERMS[language]), RELEASED_CAPTIONS[language]
    made, why = judged(caption, words, match_of(language), rule)
    assert (made, why[: len(reason)], bool(why)) == (frame, reason, bool(reason))
