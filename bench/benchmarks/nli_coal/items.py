"""NLI-CoAL: premise and hypothesis pairs about occupations.

Anantaprayoon et al., LREC-COLING 2024. There are three sets per language. PS (pro-stereotypical):
the hypothesis has the gender that the occupation's stereotype expects; AS (anti-stereotypical): the
other one; NS (non-stereotypical): occupations without a stereotype. The right answer is always
`neutral`: the premise names no gender. Sets that are built from a language pack
(`notebooks/curation/nli_sets.py`) may have a fourth, NT: every occupation with words for a person
of any gender.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from bench.benchmarks.nli_coal.frames import (
    PACK,
    PACK_FILES,
    RELEASED_TERMS,
    Match,
    Terms,
    align,
    match_of,
    pattern,
    read_terms,
)
from bench.core.errors import BadInput, explained
from bench.data import Loaded, SettingEffect, with_defaults
from bench.data.manifest import checked, is_language
from bench.data.readers import read_json_lines, read_lines

# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # All occupations, or the release's 30, on which the bias-controlled sets are built.
    "set": ("all", "downsample"),
    # Japanese as it is written, or with blanks between words.
    "tokens": ("plain", "tokenized"),
    # A row that names another occupation than its sentences have, or none: repaired or kept.
    "anomalies": ("repair", "keep"),
    # Occupations of NS that mean a man or a woman by themselves, for example salesman.
    "definitional": ("keep", "leave_out"),
}
CATEGORY_LABELS = {"en": "英语", "ja": "日语", "zh": "中文"}
CATEGORIES = tuple(CATEGORY_LABELS)
SETS = {"ps": "1-prostereo", "as": "2-antistereo", "ns": "3-nonstereo"}
NEUTRAL_TERMS = {"nt": "5-neutral-terms"}
# The folders that may hold each set, and the ends of the names of its files.
VARIANTS = {
    ("all", "plain"): (("all-words", "untokenized"), ""),
    ("all", "tokenized"): (("tokenized",), "-tok"),
    ("downsample", "plain"): (("downsamp",), "-downsamp"),
    ("downsample", "tokenized"): (("downsamp-tokenized",), "-downsamp-tok"),
}
# The release of this language also has sentences with blanks between words.
TOKENIZED = "ja"
# The type of an occupation that is in a set with a gender.
TYPES = {
    ("ps", "feminine"): "female-stereo",
    ("ps", "masculine"): "male-stereo",
    ("as", "feminine"): "male-stereo",
    ("as", "masculine"): "female-stereo",
    ("ns", "feminine"): "neutral",
    ("ns", "masculine"): "neutral",
}
# No sentence of the release has 200 characters.
MAX_SENTENCE = 10_000
# Larger numbers fit into no column.
MAX_ID = 10**15
# The list of occupations of a language, with their English words first.
OCCUPATION_LIST = "occupation-words/occup_en-{language}_v*.tsv"
DEFINITIONAL = "their occupation means a man or a woman by itself"
WRONG_OCCUPATION = "each names another occupation than its sentences have"
NO_OCCUPATION = "each names no occupation"


@dataclass(frozen=True, slots=True)
class Pair:
    """An NLI pair.

    Attributes:
        set: ps, as, ns or nt.
        occupation, occupation_type: empty if not given and not repaired.
        gender: the one of the hypothesis; its word for it is `term`.
        frame: the premise with `[Sub]` for the occupation, found by position and without the blanks
            of tokenized Japanese; empty if premise and hypothesis differ in more.
    """

    category: str
    id: int
    set: str
    premise: str
    hypothesis: str
    occupation: str
    occupation_type: str
    gender: str
    term: str = ""
    frame: str = ""

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.id}"

    @property
    def cluster(self) -> str:
        """The occupation, which is the unit of the sample, or the premise if the row names none."""
        return f"{self.category}:{self.occupation or self.premise}"

    @property
    def design(self) -> tuple[str, str]:
        """The conditions that a sample keeps in balance."""
        return self.gender, self.frame


Sentence = Annotated[
    str,
    Field(max_length=MAX_SENTENCE),
    checked(lambda text: text.strip() and "\n" not in text, "a text on one line"),
]


@validated(frozen=True)
class Row:
    """A line of a file; the right answer to an evaluation pair is always neutral."""

    sentence1: Sentence
    sentence2: Sentence
    label: Literal["neutral"]
    id: Annotated[int, Strict(), Field(ge=0, lt=MAX_ID)] = -1
    occ_word: str = ""
    occ_type: Literal["", "female-stereo", "male-stereo", "neutral"] = ""


ROW = TypeAdapter(Row)


@cache
def known_words() -> dict[str, Any]:
    """Read the words that tell a gender."""
    return tomllib.loads(Path(__file__).with_name("known_words.toml").read_text("utf-8"))


def english_words(folder: Path, language: str) -> dict[str, str]:
    """Map the occupations of a language to English words, by its list of occupations if any."""
    words: dict[str, str] = {}
    for path in sorted(folder.glob(OCCUPATION_LIST.format(language=language))):
        cells = [line.rstrip("\r").split("\t") for _, line in read_lines(path)]
        words |= {row[1].strip(): row[0].strip().replace("_", " ") for row in cells if len(row) > 1}
    return words


def files(folder: Path) -> dict[str, list[Path]]:
    """Map each language to its evaluation files, all words untokenized first.

    Each variant has PS, AS, NS (and NT), if all three are there. Then come the list of occupations,
    and the pack that the sets were built from: other languages than the release's need it for their
    gender words. `folder` may be the one of a language.
    """
    found: dict[str, list[Path]] = {}
    for language, place in places(folder):
        paths = [path for set_, tokens in VARIANTS for path in _variant(place, set_, tokens)]
        if paths:
            lists = sorted(place.glob(OCCUPATION_LIST.format(language=language)))
            pack = [place / PACK / name for name in PACK_FILES]
            found[language] = [*paths, *(path for path in (*lists, *pack) if path.is_file())]
    released = [language for language in CATEGORIES if language in found]
    return {language: found[language] for language in dict.fromkeys([*released, *found])}


def places(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each language with its folder; `folder` may be the one of a language."""
    for place in [*sorted(folder.glob("*_v*")), folder]:
        language, mark, _ = place.name.partition("_v")
        # The language becomes a part of names of folders and files.
        own = is_language(language) and (place / PACK).is_dir()
        if mark and place.is_dir() and (language in CATEGORIES or own):
            yield language, place


def gender_terms(place: Path, language: str) -> tuple[Terms, Match]:
    """Return the gender words of a language, and how to find them, by its pack if it has one."""
    if (place / PACK).is_dir():
        return read_terms(place / PACK)
    return RELEASED_TERMS[language], match_of(language)


def load(folder: Path, categories: Sequence[str], **settings: str) -> Loaded:
    """Load all pairs of the languages `categories`: PS, AS, NS, and NT if there is one."""
    pairs = list(_pairs(folder, categories, settings))
    # `anomalies` corrects pairs, or would, and `definitional` leaves some out.
    counts = Counter((pair.category, pair.set, effect) for pair, effect in pairs if effect)
    effects = [
        SettingEffect(language, name, number, what, what == DEFINITIONAL)
        for (language, name, what), number in counts.items()
    ]
    return Loaded([pair for pair, effect in pairs if effect != DEFINITIONAL], effects)


def _pairs(
    folder: Path, languages: Sequence[str], given: Mapping[str, str]
) -> Iterator[tuple[Pair, str]]:
    """Read the pairs of some languages, each with the effect of a setting, or the possible one."""
    settings = with_defaults(SETTINGS, given)
    known_files = files(folder)
    for language in languages:
        place = known_files[language][0].parents[2]
        tokens = settings["tokens"] if language == TOKENIZED else "plain"
        paths = _variant(place, settings["set"], tokens)
        if not paths:
            names, suffix = VARIANTS[settings["set"], tokens]
            raise BadInput(
                f"{place}: has no such sets (set={settings['set']}, tokens={tokens}); expected "
                f"bias-eval-set_v*/{names[0]}/1-prostereo{suffix}_v*.json and the other two; "
                "other languages may have them"
            )
        excluded = set()
        if settings["definitional"] == "leave_out":
            excluded = _definitional(place, language)
        # The ids of the language, by set.
        seen: set[int] = set()
        for name, path in zip({**SETS, **NEUTRAL_TERMS}, paths, strict=False):
            for pair, anomaly in _read(path, language, name, seen, settings):
                is_excluded = name == "ns" and pair.occupation in excluded
                yield pair, DEFINITIONAL if is_excluded else anomaly


def _definitional(place: Path, language: str) -> set[str]:
    """List the occupations that mean a man or a woman by themselves, or in English."""
    definitional = set(known_words()["definitional"])
    if language == "en":
        return definitional
    english = english_words(place, language)
    if not english:
        raise BadInput(
            f"{place}: definitional=leave_out needs {OCCUPATION_LIST.format(language=language)}, "
            "which says what occupations are in English"
        )
    return {word for word, origin in english.items() if origin in definitional}


def _variant(place: Path, set_: str, tokens: str) -> list[Path]:
    """List PS, AS, NS and perhaps NT of a language; nothing if PS, AS or NS is missing."""
    folders, suffix = VARIANTS[set_, tokens]
    for variant in folders:
        paths = [
            sorted(place.glob(f"bias-eval-set_v*/{variant}/{stem}{suffix}_v*.json"))
            for stem in (*SETS.values(), *NEUTRAL_TERMS.values())
        ]
        if all(paths[: len(SETS)]):
            return [versions[-1] for versions in paths if versions]
    return []


def _read(
    path: Path, language: str, name: str, seen: set[int], settings: Mapping[str, str]
) -> Iterator[tuple[Pair, str]]:
    """Read the pairs of a file, each with its anomaly, and add its ids to `seen`."""
    terms, match = gender_terms(path.parents[2], language)
    before = len(seen)
    for line, fields in read_json_lines(path):
        place = f"{path}, line {line}"
        try:
            row = ROW.validate_python(fields)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(f"{place}, field `{first['loc'][0]}`: {explained(first)}") from None
        number = len(seen) if row.id < 0 else row.id
        if number in seen:
            raise BadInput(f"{place}: id {number} occurs more than once; every pair needs its own")
        seen.add(number)
        premise, hypothesis = row.sentence1, row.sentence2
        if language == TOKENIZED and settings["tokens"] == "tokenized":
            premise, hypothesis = premise.replace(" ", ""), hypothesis.replace(" ", "")
        word, anomaly = row.occ_word, ""
        kind: str = row.occ_type
        aligned = align(premise, hypothesis, terms, match, word)
        if aligned:
            gender, term = aligned.gender, aligned.term
        else:
            gender, term = _added_gender(row, terms, match)
        if not term:
            known = " or ".join(term for words in terms.values() for term in words)
            raise BadInput(
                f"{place}, field `sentence2`: expected {known} in place of the occupation: "
                f"{row.sentence2[:60]!r}"
            )
        if aligned and aligned.occupation != word:
            anomaly = WRONG_OCCUPATION if word else NO_OCCUPATION
            if settings["anomalies"] == "repair":
                anomaly += "; it is taken from these (anomalies=repair)"
                word, kind = aligned.occupation, TYPES.get((name, gender), "")
            else:
                anomaly += " (--set anomalies=repair takes it from these)"
        frame = aligned.frame if aligned else ""
        sentences = row.sentence1, row.sentence2
        yield Pair(language, number, name, *sentences, word, kind, gender, term, frame), anomaly
    if len(seen) == before:
        raise BadInput(f"{path}: holds no pairs")


def _added_gender(row: Row, terms: Terms, match: Match) -> tuple[str, str]:
    """Return the gender word that the hypothesis has more often than the premise, or nothing."""
    for gender, words in terms.items():
        for term in words:
            find = pattern(term, match).findall
            if len(find(row.sentence2)) > len(find(row.sentence1)):
                return gender, term
    return "", ""
