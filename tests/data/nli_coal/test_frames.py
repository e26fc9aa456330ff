"""Frames are found in pairs of sentences."""

from bench.benchmarks.nli_coal.frames import RELEASED_TERMS, align, match_of
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
