"""Frames, which are sentences with a slot: find the slot in a pair, fill it, or use captions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, islice
from typing import NamedTuple

from bench.core.errors import plain

SLOT = "[Sub]"
GENDERS = ("feminine", "masculine", "neutral")
# How a gender word is found: as a whole word, because craftsman holds man, or anywhere, for
# languages without blanks.
MATCHES = ("word", "substring")
# Languages without blanks between words.
WITHOUT_BLANKS = ("ja", "zh")
# At most so many occurrences of a gender word are tried in all combinations.
MOST_SLOTS = 8

Terms = Mapping[str, tuple[str, ...]]
# The gender words of the release.
RELEASED_TERMS: Mapping[str, Terms] = {
    "en": {"feminine": ("woman",), "masculine": ("man",), "neutral": ()},
    "ja": {"feminine": ("女性",), "masculine": ("男性",), "neutral": ()},
    "zh": {"feminine": ("女人",), "masculine": ("男人",), "neutral": ()},
}


class Aligned(NamedTuple):
    """A pair as one frame, filled with `occupation` for the premise, `term` for the hypothesis."""

    frame: str
    occupation: str
    gender: str
    term: str


@dataclass(frozen=True)
class CaptionFilter:
    """Which captions become frames, and how, by the rules of the release.

    A caption becomes a frame if exactly one gendered word occurs in it.

    Attributes:
        without: words that disqualify a caption.
        blanks: whether a caption may have ASCII blanks.
        lower: write it in small letters.
        determiners: replace the word before the slot, as `a` by `the`, so that any occupation fits.
        end: added if it is missing.
        skip_id: drop what precedes the first blank of a line, as in Flickr8K.
    """

    without: tuple[str, ...] = ()
    blanks: bool = True
    lower: bool = False
    determiners: Mapping[str, str] = field(default_factory=dict)
    end: str = ""
    skip_id: bool = False


# The filters of the release: the Chinese one is proven, for Flickr8K-CN; the others are inferred.
RELEASED_CAPTIONS: Mapping[str, CaptionFilter] = {
    "en": CaptionFilter(lower=True, determiners={"a": "the"}, end="."),
    "ja": CaptionFilter(),
    "zh": CaptionFilter(
        without=("他", "她", "裙", "粉", "胡子", "胡须"), blanks=False, skip_id=True
    ),
}


def match_of(language: str) -> str:
    """Tell how gender words are found in a language, unless its pack says otherwise."""
    return "substring" if language in WITHOUT_BLANKS else "word"


@cache
def pattern(word: str, match: str) -> re.Pattern[str]:
    """Compile a pattern for `word`, which as a whole word is not part of man-made either."""
    return re.compile(
        rf"(?<![\w-]){re.escape(word)}(?![\w-])" if match == "word" else re.escape(word)
    )


def found_in(text: str, words: Iterable[str], match: str) -> str:
    """Find the first of `words` that occurs in `text`, in any case, or return ""."""
    lower = text.lower()
    return next((word for word in words if pattern(word.lower(), match).search(lower)), "")


def fill(frame: str, word: str) -> str:
    """Put `word` into every slot."""
    return frame.replace(SLOT, word)


def align(
    premise: str, hypothesis: str, terms: Terms, match: str, occupation: str = ""
) -> Aligned | None:
    """Find what was put into which frame, by position; None if the pair is not one filled frame.

    An occupation that contains another, or that the frame mentions besides, is not mistaken.

    Args:
        occupation: tried first, and believed only if it is exactly what the slot holds.
    """
    for named in dict.fromkeys((occupation, "")):
        for gender, words in terms.items():
            for term in words:
                found = pattern(term, match).finditer(hypothesis)
                spots = [one.span() for one in islice(found, MOST_SLOTS)]
                for size in range(len(spots), 0, -1):
                    for chosen in combinations(spots, size):
                        parts = _between(hypothesis, chosen)
                        held = _held(premise, parts, named)
                        if held and held != term:
                            return Aligned(SLOT.join(parts), held, gender, term)
    return None


def from_captions(
    lines: Iterable[str], terms: Terms, match: str, rule: CaptionFilter, most: int | None = None
) -> list[str]:
    """Make frames of captions, one per line, in their order; at most `most`.

    A repeated caption makes a repeated frame, as in the release.
    """
    words = gender_words(terms)
    frames = (judged(line.rstrip("\n"), words, match, rule)[0] for line in lines)
    return list(islice(filter(None, frames), most))


def gender_words(terms: Terms) -> list[str]:
    """List the feminine and the masculine words of a language; a caption needs one of them."""
    return [word for gender in ("feminine", "masculine") for word in terms[gender]]


def judged(line: str, words: Sequence[str], match: str, rule: CaptionFilter) -> tuple[str, str]:
    """Make a frame of one caption, or return "" and why it is left out.

    The reason names no word, so that equal reasons can be counted.

    Args:
        words: those of `gender_words`.
    """
    text = line.partition(" ")[2] if rule.skip_id else line
    text = text.lower() if rule.lower else text
    if not text.strip():
        return "", "is empty"
    if SLOT in text:
        return "", f"holds {SLOT} already"
    if " " in text and not rule.blanks:
        return "", "holds a blank (blanks = false)"
    held = [word for word in words if pattern(word, match).search(text)]
    if not held:
        return "", "has no gendered word, so that there is no place for an occupation"
    if len(held) > 1:
        return "", "has several gendered words, so that who does what would be open"
    if found_in(text, rule.without, match):
        return "", "holds another word that tells a gender (without)"
    frame = pattern(held[0], match).sub(SLOT, text)
    for word, other in rule.determiners.items():
        frame = re.sub(rf"(?<![\w-]){re.escape(word)} (?={re.escape(SLOT)})", f"{other} ", frame)
    return (frame if frame.endswith(rule.end) else frame + rule.end), ""


def fault(frame: str, gendered: Iterable[str], match: str) -> str:
    """Say what is wrong with a frame, or return "": no slot, or a word of `gendered` besides it."""
    if SLOT not in frame:
        close = re.search(r"[\[【［(（{<]\s*sub\s*[\]】］)）}>]", frame, re.IGNORECASE)
        instead = f"; it has {plain(close[0])!r}, which is not the same" if close else ""
        return f"has no slot {SLOT} for the occupation{instead}"
    word = found_in(frame.replace(SLOT, "\0"), gendered, match)
    return (
        f"holds the gendered word {plain(word)!r}, which would tell the gender of a person in it"
        if word
        else ""
    )


def _between(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return [text[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True)]


def _held(premise: str, parts: Sequence[str], occupation: str) -> str:
    """Find what `premise` has between `parts`, the same each time, or return ""."""
    if not occupation:
        # Its length follows from the lengths of the others.
        length, rest = divmod(len(premise) - sum(map(len, parts)), len(parts) - 1)
        start = len(parts[0])
        occupation = premise[start : start + length] if length > 0 and not rest else ""
    return occupation if occupation and occupation.join(parts) == premise else ""
