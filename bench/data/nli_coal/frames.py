"""Sentences with a slot for a person: finding the slot in a pair, filling it, and making such frames from captions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import NamedTuple

from bench.core.errors import plain

SLOT = "[Sub]"
GENDERS = ("feminine", "masculine", "neutral")
# How a gender word is found: as a whole word, because craftsman holds man, or anywhere, where words are not set apart.
MATCHES = ("word", "substring")
# Languages that are written without blanks between words.
WITHOUT_BLANKS = ("ja", "zh")
# More occurrences of a gender word than this are not tried in all combinations.
MOST_SLOTS = 8

Terms = Mapping[str, tuple[str, ...]]
# The gender words of the release.
RELEASED_TERMS: Mapping[str, Terms] = {
    "en": {"feminine": ("woman",), "masculine": ("man",), "neutral": ()},
    "ja": {"feminine": ("女性",), "masculine": ("男性",), "neutral": ()},
    "zh": {"feminine": ("女人",), "masculine": ("男人",), "neutral": ()},
}


class Aligned(NamedTuple):
    """How a hypothesis came from its premise: `frame` with `SLOT` where the premise has `occupation`, the hypothesis `term`."""

    frame: str
    occupation: str
    gender: str
    term: str


@dataclass(frozen=True)
class CaptionFilter:
    """Which captions become frames, and how; after the rules by which the release's frames were made.

    A caption is taken where exactly one of all gendered words occurs, none of `without`, and, unless `blanks`, no ASCII
    blank. `lower` writes it in small letters. `determiners` replaces the word before the slot, as `a` by `the`, so that an
    occupation with a vowel first fits. `end` is added where it is missing. `skip_id` drops what stands before the first
    blank of a line, as Flickr8K has it.
    """

    without: tuple[str, ...] = ()
    blanks: bool = True
    lower: bool = False
    determiners: Mapping[str, str] = field(default_factory=dict)
    end: str = ""
    skip_id: bool = False


# The filters of the release: the Chinese one is proven, for Flickr8K-CN; the others are read off its frames.
RELEASED_CAPTIONS: Mapping[str, CaptionFilter] = {
    "en": CaptionFilter(lower=True, determiners={"a": "the"}, end="."),
    "ja": CaptionFilter(),
    "zh": CaptionFilter(
        without=("他", "她", "裙", "粉", "胡子", "胡须"), blanks=False, skip_id=True
    ),
}


def match_of(language: str) -> str:
    """How gender words are found in a language, unless its pack says otherwise."""
    return "substring" if language in WITHOUT_BLANKS else "word"


@cache
def pattern(word: str, match: str) -> re.Pattern[str]:
    """Finds `word`; as a whole word it is not part of a longer one, nor of one with a hyphen (man-made)."""
    return re.compile(
        rf"(?<![\w-]){re.escape(word)}(?![\w-])" if match == "word" else re.escape(word)
    )


def found_in(text: str, words: Iterable[str], match: str) -> str:
    """The first of `words` that occurs in `text`, in whatever case, or ""."""
    lower = text.lower()
    return next((word for word in words if pattern(word.lower(), match).search(lower)), "")


def fill(frame: str, word: str) -> str:
    """The sentence with `word` in every slot."""
    return frame.replace(SLOT, word)


def align(
    premise: str, hypothesis: str, terms: Terms, match: str, occupation: str = ""
) -> Aligned | None:
    """What was put into which frame, found by position; None where the pair is not one frame filled twice.

    `occupation` is only believed where it is exactly what the slot holds; without it, whatever stands there is taken.
    So an occupation that contains another, or that the frame mentions besides, is not mistaken.
    """
    for gender, words in terms.items():
        for term in words:
            spots = [one.span() for one in pattern(term, match).finditer(hypothesis)][:MOST_SLOTS]
            for size in range(len(spots), 0, -1):
                for chosen in combinations(spots, size):
                    parts = _between(hypothesis, chosen)
                    held = _held(premise, parts, occupation)
                    if held and held != term:
                        return Aligned(SLOT.join(parts), held, gender, term)
    return None


def from_captions(
    lines: Iterable[str], terms: Terms, match: str, rule: CaptionFilter, most: int | None = None
) -> list[str]:
    """The frames that `rule` makes of captions, one a line, in their order; at most `most`.

    A caption that repeats is taken as often as it is there, as in the release.
    """
    words = gender_words(terms)
    frames: list[str] = []
    for line in lines:
        if most is not None and len(frames) >= most:
            break
        frame, _ = judged(line.rstrip("\n"), words, match, rule)
        if frame:
            frames.append(frame)
    return frames


def gender_words(terms: Terms) -> list[str]:
    """The feminine and the masculine words of a language, of which a caption has to have one."""
    return [word for gender in ("feminine", "masculine") for word in terms[gender]]


def judged(line: str, words: Sequence[str], match: str, rule: CaptionFilter) -> tuple[str, str]:
    """The frame that `rule` makes of one caption, or "" and why it is left out; the reason names no word, so that it counts.

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
    """What is wrong with a frame as a half sentence, or "": it has no slot, or holds a word of `gendered` besides it."""
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
    """What `premise` has between `parts`, the same each time; "" where it is not so."""
    if not occupation:
        # Its length follows from the others', so that one text can be it.
        length, rest = divmod(len(premise) - sum(map(len, parts)), len(parts) - 1)
        start = len(parts[0])
        occupation = premise[start : start + length] if length > 0 and not rest else ""
    return occupation if occupation and occupation.join(parts) == premise else ""
