"""NLI-CoAL: premise and hypothesis pairs about occupations.

Anantaprayoon et al., LREC-COLING 2024. There are three sets per language. PS (pro-stereotypical):
the hypothesis has the gender that the occupation's stereotype expects; AS (anti-stereotypical): the
other one; NS (non-stereotypical): occupations without a stereotype. The right answer is always
`neutral`: nothing in the premise tells a gender. Sets of our own (`bench.data.nli_coal.build`) may
have a fourth, NT: every occupation with words for a person of any gender.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput, expected, quoted
from bench.core.i18n import N_
from bench.data import LREC_COLING_2024, Paper, SettingEffect, Source
from bench.data import load as load_items
from bench.data.dataset import is_language
from bench.data.nli_coal.frames import (
    RELEASED_TERMS,
    SLOT,
    Aligned,
    Terms,
    align,
    match_of,
    pattern,
)
from bench.data.nli_coal.language_pack import FILES, PACK, read_pack
from bench.data.readers import read_json_lines, read_lines
from bench.data.texts import FIRST, Text

TITLE = "NLI-CoAL"
TEXTS = ITEMS = N_("pairs")
HOMEPAGE = "https://github.com/panatchakorn-a/bias-eval-nli-considering-all-labels"
LICENCE = "MIT"
PAPER = Paper(
    ("Panatchakorn Anantaprayoon", "Masahiro Kaneko", "Naoaki Okazaki"),
    "Evaluating Gender Bias of Pre-trained Language Models in Natural Language Inference by "
    "Considering All Labels",
    LREC_COLING_2024,
    2024,
    "https://aclanthology.org/2024.lrec-main.566",
)
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # All occupations, or the release's 30, on which the bias-controlled sets are built.
    "set": ("all", "downsample"),
    # Japanese as it is written, or with blanks between words.
    "tokens": ("plain", "tokenized"),
    # A row that names another occupation than its sentences have, or none: repaired or kept.
    "anomalies": ("repair", "keep"),
    # Occupations of NS that mean a man or a woman by themselves, such as salesman.
    "definitional": ("keep", "leave_out"),
}
LAYOUT = (
    "folders like zh_v1.0/bias-eval-set_v1.0/all-words/ with 1-prostereo_v1.0.json, 2-antistereo "
    "and 3-nonstereo"
)
# Settings under which `bench fetch` takes a release that has faults, so that it can be examined.
TOLERANT: dict[str, str] = {}
# None: each category is a language.
LANGUAGE = ""
CATEGORIES = ("en", "ja", "zh")
CATEGORY_LABELS = {"en": "英语", "ja": "日语", "zh": "中文"}
SETS = {"ps": "1-prostereo", "as": "2-antistereo", "ns": "3-nonstereo"}
NEUTRAL_TERMS = {"nt": "5-neutral-terms"}
OCCUPATION_TYPES = ("female-stereo", "male-stereo", "neutral")
# The folders that may hold each set, and what the names of its files have after the stem.
VARIANTS = {
    ("all", "plain"): (("all-words", "untokenized"), ""),
    ("all", "tokenized"): (("tokenized",), "-tok"),
    ("downsample", "plain"): (("downsamp",), "-downsamp"),
    ("downsample", "tokenized"): (("downsamp-tokenized",), "-downsamp-tok"),
}
# The one language whose release also has sentences with blanks between words.
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
MAX_ID = 10**15
FIELDS = ("sentence1", "sentence2", "label")
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
        gender: that of the hypothesis, whose word for it is `term`.
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
        """The occupation, which is what was sampled, or the premise if the row names none."""
        return f"{self.category}:{self.occupation or self.premise}"


class Loaded(NamedTuple):
    """Pairs, and how many of them a setting affects: by language, set and effect."""

    pairs: list[Pair]
    touched: Counter[tuple[str, str, str]]


class Words(NamedTuple):
    """The gender words of a language, how they are found, and whether blanks are ignored."""

    terms: Terms
    match: str
    tokenized: bool


@cache
def known_words() -> dict[str, Any]:
    """Read what is known of the release's words and sizes."""
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
    gender words. `folder` may be that of one language.
    """
    found: dict[str, list[Path]] = {}
    for place in [*sorted(folder.glob("*_v*")), folder]:
        language, mark, _ = place.name.partition("_v")
        # The language becomes a part of names of folders and files.
        known = language in CATEGORIES or (is_language(language) and (place / PACK).is_dir())
        if not mark or not known:
            continue
        paths = [path for set_, tokens in VARIANTS for path in _variant(place, set_, tokens)]
        if paths:
            lists = sorted(place.glob(OCCUPATION_LIST.format(language=language)))
            pack = [place / PACK / name for name in FILES]
            found[language] = [*paths, *(path for path in (*lists, *pack) if path.is_file())]
    released = [language for language in CATEGORIES if language in found]
    return {language: found[language] for language in dict.fromkeys([*released, *found])}


def load(folder: Path, categories: Sequence[str], **settings: str) -> list[Pair]:
    """Load all pairs of the languages `categories`: PS, AS, NS, and NT if there is one.

    Args:
        settings: those of `SETTINGS` that are not at their default.

    Raises:
        BadInput: a missing or empty field, an unknown label or type, or a repeated id, with file
            and line; or a language does not have the sets that are asked for.
    """
    return _load(folder, categories, settings).pairs


def touched(folder: Path, categories: Sequence[str] | None, **settings: str) -> list[SettingEffect]:
    """Count the pairs that `anomalies` corrects, or would, and that `definitional` leaves out."""
    counts = _load(folder, categories or list(files(folder)), settings).touched
    return [
        SettingEffect(language, name, rows, what, what == DEFINITIONAL)
        for (language, name, what), rows in counts.items()
    ]


def _load(folder: Path, categories: Sequence[str], given: Mapping[str, str]) -> Loaded:
    for name, value in given.items():
        if value not in SETTINGS.get(name, ()):
            allowed = SETTINGS.get(name, "nothing")
            raise BadInput(f"{name}={value}: {expected(value, allowed, f'value of {name}')}")
    settings = {name: given.get(name, allowed[0]) for name, allowed in SETTINGS.items()}
    found, loaded = files(folder), Loaded([], Counter())
    for language in categories:
        place = found[language][0].parents[2]
        tokens = settings["tokens"] if language == TOKENIZED else "plain"
        paths = _variant(place, settings["set"], tokens)
        if not paths:
            names, suffix = VARIANTS[settings["set"], tokens]
            raise BadInput(
                f"{place}: has no such sets (set={settings['set']}, tokens={tokens}); expected "
                f"bias-eval-set_v*/{names[0]}/1-prostereo{suffix}_v*.json and the other two; "
                "other languages may have them"
            )
        words = _gender_words(place, language, tokens == "tokenized")
        excluded = set()
        if settings["definitional"] == "leave_out":
            excluded = _definitional(place, language)
        seen: set[int] = set()
        for name, path in zip({**SETS, **NEUTRAL_TERMS}, paths, strict=False):
            for pair, anomaly in _read(path, language, name, seen, words, settings["anomalies"]):
                effect = DEFINITIONAL if name == "ns" and pair.occupation in excluded else anomaly
                if effect:
                    loaded.touched[language, name, effect] += 1
                if effect != DEFINITIONAL:
                    loaded.pairs.append(pair)
    return loaded


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


def _gender_words(place: Path, language: str, tokenized: bool) -> Words:
    if (place / PACK).is_dir():
        pack = read_pack(place / PACK)
        return Words(pack.terms, pack.match, tokenized)
    return Words(RELEASED_TERMS[language], match_of(language), tokenized)


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
    path: Path, language: str, name: str, seen: set[int], words: Words, anomalies: str
) -> Iterator[tuple[Pair, str]]:
    """Read the pairs of a file, each with what is odd about it.

    Args:
        seen: the ids of earlier files; those of this file are added.
    """
    start, number = len(seen), 0
    for line, row in read_json_lines(path):
        place = f"{path}, line {line}"
        occupation, occupation_type = _check_fields(place, row)
        identifier = row.get("id", start + number)
        if type(identifier) is not int or not 0 <= identifier < MAX_ID:
            raise BadInput(
                f"{place}, field `id`: {quoted(identifier)} is not a whole number from 0, below "
                f"{MAX_ID:,}"
            )
        if identifier in seen:
            raise BadInput(
                f"{place}: id {identifier} occurs more than once; every pair needs its own"
            )
        seen.add(identifier)
        number += 1
        aligned = _align(row, words)
        gender, term = (aligned.gender, aligned.term) if aligned else _term(place, row, words)
        anomaly = ""
        if aligned and aligned.occupation != occupation:
            anomaly = WRONG_OCCUPATION if occupation else NO_OCCUPATION
            if anomalies == "repair":
                anomaly += "; it is taken from these (anomalies=repair)"
                occupation, occupation_type = aligned.occupation, TYPES.get((name, gender), "")
            else:
                anomaly += " (--set anomalies=repair takes it from these)"
        pair = Pair(
            language,
            identifier,
            name,
            row["sentence1"],
            row["sentence2"],
            occupation,
            occupation_type,
            gender,
            term,
            aligned.frame if aligned else "",
        )
        yield pair, anomaly
    if not number:
        raise BadInput(f"{path}: holds no pairs")


def _check_fields(place: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """Check the fields of a row, and return its occupation and type, "" if not given.

    Raises:
        BadInput: a field is missing or holds something impossible.
    """
    for field in FIELDS:
        value = row.get(field)
        if field not in row:
            raise BadInput(f"{place}: field `{field}` is missing; found: {', '.join(row)}")
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"{place}, field `{field}`: {quoted(value)} is not a text")
        if "\n" in value:
            raise BadInput(f"{place}, field `{field}`: holds a line break")
        if len(value) > MAX_SENTENCE:
            raise BadInput(f"{place}, field `{field}`: is longer than {MAX_SENTENCE:,} characters")
    if row["label"] != "neutral":
        raise BadInput(
            f"{place}, field `label`: {quoted(row['label'])}; an evaluation pair is always neutral"
        )
    occupation, occupation_type = (row.get(field, "") for field in ("occ_word", "occ_type"))
    for field, value in (("occ_word", occupation), ("occ_type", occupation_type)):
        if not isinstance(value, str):
            raise BadInput(f"{place}, field `{field}`: {quoted(value)} is not a text")
    if occupation_type and occupation_type not in OCCUPATION_TYPES:
        what = expected(occupation_type, OCCUPATION_TYPES, "field `occ_type`")
        raise BadInput(f"{place}: {what}")
    return occupation, occupation_type


def _align(row: Mapping[str, Any], words: Words) -> Aligned | None:
    """Find how the hypothesis was made: with the occupation that the row names, or another."""
    premise, hypothesis = row["sentence1"], row["sentence2"]
    if words.tokenized:
        premise, hypothesis = premise.replace(" ", ""), hypothesis.replace(" ", "")
    return align(premise, hypothesis, words.terms, words.match, row.get("occ_word", ""))


def _term(place: str, row: Mapping[str, Any], words: Words) -> tuple[str, str]:
    """Find the gender and its term that the hypothesis has more often than the premise."""
    for gender, terms in words.terms.items():
        for term in terms:
            word = pattern(term, words.match)
            if len(word.findall(row["sentence2"])) > len(word.findall(row["sentence1"])):
                return gender, term
    known = " or ".join(term for terms in words.terms.values() for term in terms)
    raise BadInput(
        f"{place}, field `sentence2`: expected {known} in place of the occupation: "
        f"{row['sentence2'][:60]!r}"
    )


def texts(source: Source) -> list[Text]:
    """Return the pairs: the premise with a mark for the occupation."""
    return [
        Text(
            "nli_coal",
            pair.item_id,
            pair.category,
            pair.category,
            pair.set.upper(),
            (pair.occupation,),
            pair.frame.replace(SLOT, FIRST) or pair.premise,
            f"{pair.premise}\n{pair.hypothesis}",
            1,
        )
        for pair in load_items(source)
    ]
