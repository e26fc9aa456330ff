"""Frames, which are sentences with a slot: find the slot in a pair, fill it, or use captions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, StrictBool
from pydantic.dataclasses import dataclass

from bench.core.errors import BadInput, expected, plain, quoted
from bench.data.dataset import checked
from bench.data.readers import read_table, read_toml

SLOT = "[Sub]"
# The files of a language pack, which `notebooks/curation/nli_sets.py` builds sets from, and the
# folder of built sets that has them: we need their gender words.
PACK_FILES = SETTINGS, OCCUPATIONS, FRAMES, TERMS = (
    "pack.toml",
    "occupations.tsv",
    "frames.txt",
    "terms.tsv",
)
PACK = "pack"
GENDERS = ("feminine", "masculine", "neutral")
# Languages without blanks between words.
WITHOUT_BLANKS = ("ja", "zh")
# The most occurrences of a gender word that `align` tries in all combinations.
MOST_SLOTS = 8

Terms = Mapping[str, tuple[str, ...]]
# The gender words of the release.
RELEASED_TERMS: Mapping[str, Terms] = {
    "en": {"feminine": ("woman",), "masculine": ("man",), "neutral": ()},
    "ja": {"feminine": ("女性",), "masculine": ("男性",), "neutral": ()},
    "zh": {"feminine": ("女人",), "masculine": ("男人",), "neutral": ()},
}


Match = Literal["word", "substring"]
OneLine = Annotated[str, checked(re.compile(r"(?=.*\S)[^\n]+").fullmatch, "a text on one line")]


class Aligned(NamedTuple):
    """A pair as one frame, filled with `occupation` for the premise, `term` for the hypothesis."""

    frame: str
    occupation: str
    gender: str
    term: str


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CaptionFilter:
    """The rules by which a caption becomes a frame, as in the release.

    A caption becomes a frame if exactly one gendered word occurs in it.

    Attributes:
        without: words that disqualify a caption.
        blanks: whether a caption may have ASCII blanks.
        lower: write it in small letters.
        determiners: replace the word before the slot, as `a` by `the`, so that any occupation fits.
        end: added if it is missing.
        skip_id: drop the id before the first blank of a line, as in Flickr8K.
    """

    without: tuple[OneLine, ...] = ()
    blanks: StrictBool = True
    lower: StrictBool = False
    determiners: Mapping[str, OneLine] = field(default_factory=dict)
    end: Annotated[str, checked(lambda text: "\n" not in text, "a text on one line")] = ""
    skip_id: StrictBool = False


# The filters of the release: the Chinese one is proven, for Flickr8K-CN; the others are inferred.
RELEASED_CAPTIONS: Mapping[str, CaptionFilter] = {
    "en": CaptionFilter(lower=True, determiners={"a": "the"}, end="."),
    "ja": CaptionFilter(),
    "zh": CaptionFilter(
        without=("他", "她", "裙", "粉", "胡子", "胡须"), blanks=False, skip_id=True
    ),
}


def match_of(language: str) -> Match:
    """Return how to find gender words in a language, if its pack does not say so.

    We look for whole words, because for example craftsman holds man; in languages without blanks we
    look anywhere.
    """
    return "substring" if language in WITHOUT_BLANKS else "word"


@cache
def pattern(word: str, match: str) -> re.Pattern[str]:
    """Compile a pattern for `word`. As a whole word, this does not match in man-made either."""
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
    """Find the frame and its occupation by position; None if the pair is not one filled frame.

    Args:
        occupation: tried first, and used only if the slot holds exactly this.
    """
    for named in dict.fromkeys((occupation, "")):
        for gender, words in terms.items():
            for term in words:
                matches = pattern(term, match).finditer(hypothesis)
                spans = [match.span() for match in islice(matches, MOST_SLOTS)]
                for size in range(len(spans), 0, -1):
                    for chosen in combinations(spans, size):
                        edges = [0, *chain.from_iterable(chosen), len(hypothesis)]
                        parts = [
                            hypothesis[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)
                        ]
                        held = named
                        if not held:
                            # Its length follows from the lengths of the others.
                            length, rest = divmod(len(premise) - sum(map(len, parts)), size)
                            start = len(parts[0])
                            held = premise[start : start + length] if not rest else ""
                        if held and held != term and held.join(parts) == premise:
                            return Aligned(SLOT.join(parts), held, gender, term)
    return None


def read_terms(folder: Path) -> tuple[Terms, Match]:
    """Read the gender words of a language pack, and how to find them in a sentence."""
    path, terms = folder / TERMS, {gender: list[str]() for gender in GENDERS}
    for row in read_table(path, ["word", "gender"]):
        word, gender = row["word"].strip(), row["gender"].strip()
        place = f"{path}, row {row.number}, column"
        if gender not in GENDERS:
            raise BadInput(f"{place} `gender`: {expected(gender, GENDERS, 'gender')}")
        if not word or not word.isprintable():
            raise BadInput(f"{place} `word`: {quoted(word)} is no word; write one")
        if word in chain.from_iterable(terms.values()):
            raise BadInput(f"{place} `word`: {quoted(word)} occurs twice; keep one of them")
        terms[gender].append(word)
    feminine, masculine = len(terms["feminine"]), len(terms["masculine"])
    if not feminine == masculine > 0:
        raise BadInput(
            f"{path}: has {feminine} feminine and {masculine} masculine words; they are used in "
            "pairs, so there have to be as many, one at least"
        )
    settings = read_toml(folder / SETTINGS)
    match = settings.get("match", match_of(str(settings.get("language", ""))))
    if match not in get_args(Match):
        path = folder / SETTINGS
        raise BadInput(f"{path}, key `match`: {expected(match, get_args(Match), 'match')}")
    return {gender: tuple(words) for gender, words in terms.items()}, match


def gender_words(terms: Terms) -> list[str]:
    """List the feminine and the masculine words of a language; a caption needs one of them."""
    return [word for gender in ("feminine", "masculine") for word in terms[gender]]


def judged(line: str, words: Sequence[str], match: str, rule: CaptionFilter) -> tuple[str, str]:
    """Make a frame of one caption, or return "" and the reason why this makes none.

    The reason names no word, so that we can count equal reasons.

    Args:
        words: the words of `gender_words`.
    """
    text = line.partition(" ")[2] if rule.skip_id else line
    text = text.lower() if rule.lower else text
    held = [word for word in words if pattern(word, match).search(text)]
    rules = {
        "is empty": not text.strip(),
        f"holds {SLOT} already": SLOT in text,
        "holds a blank (blanks = false)": " " in text and not rule.blanks,
        "has no gendered word, so that there is no place for an occupation": not held,
        "has several gendered words, so that who does what would be open": len(held) > 1,
        "holds another word that tells a gender (without)": found_in(text, rule.without, match),
    }
    reason = next((reason for reason, is_broken in rules.items() if is_broken), "")
    if reason:
        return "", reason
    frame = pattern(held[0], match).sub(SLOT, text)
    for word, other in rule.determiners.items():
        frame = re.sub(rf"(?<![\w-]){re.escape(word)} (?={re.escape(SLOT)})", f"{other} ", frame)
    return (frame if frame.endswith(rule.end) else frame + rule.end), ""


def fault(frame: str, gendered: Iterable[str], match: str) -> str:
    """Return the fault of a frame, or "": no slot, or a word of `gendered` besides it."""
    if SLOT not in frame:
        close = re.search(r"[\[【［(（{<]\s*sub\s*[\]】］)）}>]", frame, re.IGNORECASE)
        instead = f"; it has {plain(close[0])!r}, which is not the same" if close else ""
        return f"has no slot {SLOT} for the occupation{instead}"
    word = found_in(frame.replace(SLOT, "\0"), gendered, match)
    tells = "which would tell the gender of a person in it"
    return f"holds the gendered word {plain(word)!r}, {tells}" if word else ""
