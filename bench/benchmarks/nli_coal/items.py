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
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, Strict, ValidationError

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
    # A row whose occupation is missing or not the one in its sentences: repaired or kept.
    "anomalies": ("repair", "keep"),
    # Occupations of NS that mean a man or a woman by themselves, for example salesman.
    "definitional": ("keep", "leave_out"),
}
METADATA = tomllib.loads(Path(__file__).with_name("metadata.toml").read_text("utf-8"))
CATEGORIES = tuple(METADATA["categories"])
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
        occupation, occupation_type: "" if the row has none and is not repaired.
        gender, term: the gender of the hypothesis, and the word for it.
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


class Row(BaseModel):
    """A line of a file; the right answer to an evaluation pair is always neutral."""

    sentence1: Sentence
    sentence2: Sentence
    label: Literal["neutral"]
    id: Annotated[int, Strict(), Field(ge=0, lt=MAX_ID)] = -1
    occ_word: str = ""
    occ_type: Literal["", "female-stereo", "male-stereo", "neutral"] = ""


def files(folder: Path) -> dict[str, list[Path]]:
    """Map each language to its evaluation files, all words untokenized first.

    Each variant has PS, AS, NS (and NT), if all three are there. Then come the list of occupations,
    and the pack that the sets were built from: other languages than the release's need it for their
    gender words. `folder` may be the one of a language.
    """
    by_language: dict[str, list[Path]] = {}
    for language, language_folder in language_folders(folder):
        paths = [
            path for set_, tokens in VARIANTS for path in _variant(language_folder, set_, tokens)
        ]
        if paths:
            lists = sorted(language_folder.glob(OCCUPATION_LIST.format(language=language)))
            pack = [language_folder / PACK / name for name in PACK_FILES]
            by_language[language] = [*paths, *(path for path in (*lists, *pack) if path.is_file())]
    order = {language: k for k, language in enumerate(CATEGORIES)}
    return dict(sorted(by_language.items(), key=lambda pair: order.get(pair[0], len(order))))


def language_folders(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each language with its folder; `folder` may be the one of a language."""
    for path in [*sorted(folder.glob("*_v*")), folder]:
        language, mark, _ = path.name.partition("_v")
        # The language becomes part of folder and file names.
        is_built = is_language(language) and (path / PACK).is_dir()
        if mark and path.is_dir() and (language in CATEGORIES or is_built):
            yield language, path


def gender_terms(language_folder: Path, language: str) -> tuple[Terms, Match]:
    """Return the gender words of a language, and how to find them, by its pack if it has one."""
    if (language_folder / PACK).is_dir():
        return read_terms(language_folder / PACK)
    return RELEASED_TERMS[language], match_of(language)


def load(folder: Path, categories: Sequence[str], **settings: str) -> Loaded:
    """Load all pairs of the languages `categories`: PS, AS, NS, and NT if there is one."""
    chosen = with_defaults(SETTINGS, settings)
    paths_of_language = files(folder)
    pairs: list[Pair] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    for language in categories:
        language_folder = paths_of_language[language][0].parents[2]
        tokens = chosen["tokens"] if language == TOKENIZED else "plain"
        paths = _variant(language_folder, chosen["set"], tokens)
        if not paths:
            names, suffix = VARIANTS[chosen["set"], tokens]
            raise BadInput(
                f"{language_folder}: has no such sets (set={chosen['set']}, tokens={tokens}); "
                f"expected bias-eval-set_v*/{names[0]}/1-prostereo{suffix}_v*.json and the other "
                "two; other languages may have them"
            )
        excluded = set()
        if chosen["definitional"] == "leave_out":
            excluded = _definitional(language_folder, language)
        # The ids of the language.
        seen: set[int] = set()
        for name, path in zip({**SETS, **NEUTRAL_TERMS}, paths, strict=False):
            for pair, effect in _read(path, language, name, seen, chosen):
                if name == "ns" and pair.occupation in excluded:
                    effect = DEFINITIONAL
                else:
                    pairs.append(pair)
                if effect:
                    counts[language, name, effect] += 1
    # Effects of `anomalies` are corrections, made or possible; `definitional` leaves pairs out.
    effects = [
        SettingEffect(language, name, number, what, what == DEFINITIONAL)
        for (language, name, what), number in counts.items()
    ]
    return Loaded(pairs, effects)


def _definitional(language_folder: Path, language: str) -> set[str]:
    """List the occupations that mean a man or a woman by themselves, or in English."""
    lists = tomllib.loads(Path(__file__).with_name("definitional.toml").read_text("utf-8"))
    definitional = set(lists["definitional"])
    if language == "en":
        return definitional
    english: dict[str, str] = {}
    for path in sorted(language_folder.glob(OCCUPATION_LIST.format(language=language))):
        for _, line in read_lines(path):
            cells = line.rstrip("\r").split("\t")
            if len(cells) > 1:
                english[cells[1].strip()] = cells[0].strip().replace("_", " ")
    if not english:
        raise BadInput(
            f"{language_folder}: definitional=leave_out needs "
            f"{OCCUPATION_LIST.format(language=language)}, which says what occupations are in "
            "English"
        )
    return {word for word, origin in english.items() if origin in definitional}


def _variant(language_folder: Path, set_: str, tokens: str) -> list[Path]:
    """List PS, AS, NS and perhaps NT of a language; nothing if PS, AS or NS is missing."""
    folders, suffix = VARIANTS[set_, tokens]
    for variant in folders:
        paths = [
            sorted(language_folder.glob(f"bias-eval-set_v*/{variant}/{stem}{suffix}_v*.json"))
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
        location = f"{path}, line {line}"
        try:
            row = Row.model_validate(fields)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(f"{location}, field `{first['loc'][0]}`: {explained(first)}") from None
        number = len(seen) if row.id < 0 else row.id
        if number in seen:
            raise BadInput(
                f"{location}: id {number} occurs more than once; every pair needs its own"
            )
        seen.add(number)
        premise = row.sentence1
        hypothesis = row.sentence2
        if language == TOKENIZED and settings["tokens"] == "tokenized":
            premise = premise.replace(" ", "")
            hypothesis = hypothesis.replace(" ", "")
        word = row.occ_word
        anomaly = ""
        kind: str = row.occ_type
        aligned = align(premise, hypothesis, terms, match, word)
        gender, term = aligned[2:] if aligned else _added_gender(row, terms, match)
        if not term:
            all_terms = " or ".join(chain.from_iterable(terms.values()))
            raise BadInput(
                f"{location}, field `sentence2`: expected {all_terms} in place of the occupation: "
                f"{row.sentence2[:60]!r}"
            )
        if aligned and aligned.occupation != word:
            anomaly = WRONG_OCCUPATION if word else NO_OCCUPATION
            if settings["anomalies"] == "repair":
                anomaly += "; it is taken from these (anomalies=repair)"
                word = aligned.occupation
                kind = TYPES.get((name, gender), "")
            else:
                anomaly += " (--set anomalies=repair takes it from these)"
        pair = Pair(
            category=language,
            id=number,
            set=name,
            premise=row.sentence1,
            hypothesis=row.sentence2,
            occupation=word,
            occupation_type=kind,
            gender=gender,
            term=term,
            frame=aligned.frame if aligned else "",
        )
        yield pair, anomaly
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
