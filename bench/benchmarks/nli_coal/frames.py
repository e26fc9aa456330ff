"""Find the frame of a pair: the sentence with a slot for the occupation."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from bench.core.errors import BadInput, expected, quoted
from bench.data.readers import read_table, read_toml

SLOT = "[Sub]"
# The files of a language pack, from which `notebooks/curation/nli_sets.py` builds sets, and their
# folder in built sets, which we read for the gender words.
PACK_FILES = ("pack.toml", "occupations.tsv", "frames.txt", "terms.tsv")
PACK = "pack"
GENDERS = ("feminine", "masculine", "neutral")
# Languages without blanks between words.
WITHOUT_BLANKS = ("ja", "zh")
# `align` tries all combinations of this many occurrences of a gender word.
MOST_SLOTS = 8

Terms = Mapping[str, tuple[str, ...]]
# The gender words of the release.
RELEASED_TERMS: Mapping[str, Terms] = {
    "en": {"feminine": ("woman",), "masculine": ("man",), "neutral": ()},
    "ja": {"feminine": ("女性",), "masculine": ("男性",), "neutral": ()},
    "zh": {"feminine": ("女人",), "masculine": ("男人",), "neutral": ()},
}


Match = Literal["word", "substring"]


class Aligned(NamedTuple):
    """A pair as one frame, filled with `occupation` for the premise, `term` for the hypothesis."""

    frame: str
    occupation: str
    gender: str
    term: str


def match_of(language: str) -> Match:
    """Return how to find gender words in a language, if its pack does not say so.

    We look for whole words, because for example craftsman holds man; in languages without blanks we
    look anywhere.
    """
    return "substring" if language in WITHOUT_BLANKS else "word"


@cache
def pattern(word: str, match: str) -> re.Pattern[str]:
    """Compile a pattern for `word`. As a whole word, man is not found in man-made either."""
    return re.compile(
        rf"(?<![\w-]){re.escape(word)}(?![\w-])" if match == "word" else re.escape(word)
    )


def found_in(text: str, words: Iterable[str], match: str) -> str:
    """Find the first of `words` that occurs in `text`, in any case, or return ""."""
    lower = text.lower()
    return next((word for word in words if pattern(word.lower(), match).search(lower)), "")


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
                for parts in _splits(hypothesis, term, match):
                    filler = named or _filler(premise, parts)
                    if filler and filler != term and filler.join(parts) == premise:
                        return Aligned(SLOT.join(parts), filler, gender, term)
    return None


def _splits(hypothesis: str, term: str, match: str) -> Iterator[list[str]]:
    """Split a hypothesis at a gender word: at all occurrences, then at each choice of fewer."""
    matches = pattern(term, match).finditer(hypothesis)
    spans = [match.span() for match in islice(matches, MOST_SLOTS)]
    for size in range(len(spans), 0, -1):
        for chosen in combinations(spans, size):
            edges = [0, *chain.from_iterable(chosen), len(hypothesis)]
            yield [hypothesis[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _filler(premise: str, parts: list[str]) -> str:
    """Return the words that stand in each slot of a premise between these parts; "" if none fit."""
    length, remainder = divmod(len(premise) - sum(map(len, parts)), len(parts) - 1)
    start = len(parts[0])
    return "" if remainder else premise[start : start + length]


def read_terms(folder: Path) -> tuple[Terms, Match]:
    """Read the gender words of a language pack, and how to find them in a sentence."""
    path = folder / "terms.tsv"
    terms: dict[str, list[str]] = {gender: [] for gender in GENDERS}
    for row in read_table(path, ["word", "gender"]):
        word = row["word"].strip()
        gender = row["gender"].strip()
        location = f"{path}, row {row.number}, column"
        if gender not in GENDERS:
            raise BadInput(f"{location} `gender`: {expected(gender, GENDERS, 'gender')}")
        if not word or not word.isprintable():
            raise BadInput(f"{location} `word`: {quoted(word)} is no word; write one")
        if word in chain.from_iterable(terms.values()):
            raise BadInput(f"{location} `word`: {quoted(word)} occurs twice; keep one of them")
        terms[gender].append(word)
    feminine = len(terms["feminine"])
    masculine = len(terms["masculine"])
    if not feminine == masculine > 0:
        raise BadInput(
            f"{path}: has {feminine} feminine and {masculine} masculine words; they are used in "
            "pairs, so there have to be as many, one at least"
        )
    path = folder / "pack.toml"
    settings = read_toml(path)
    match = settings.get("match", match_of(str(settings.get("language", ""))))
    if match not in get_args(Match):
        raise BadInput(f"{path}, key `match`: {expected(match, get_args(Match), 'match')}")
    return {gender: tuple(words) for gender, words in terms.items()}, match
