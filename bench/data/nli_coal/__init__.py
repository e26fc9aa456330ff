"""NLI-CoAL: premise and hypothesis pairs about occupations (Anantaprayoon et al., LREC-COLING 2024).

Three sets a language. PS (pro-stereotypical): the hypothesis has the gender that the occupation's stereotype expects;
AS (anti-stereotypical): the other one; NS (non-stereotypical): occupations without a stereotype. The right answer is
always `neutral`: nothing in the premise tells a gender. Sets of our own (`bench.data.nli_coal.write`) may have a fourth, NT:
every occupation with words for a person of any gender.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput, expected, quoted
from bench.core.i18n import N_
from bench.data import LREC_COLING_2024, Paper, SettingEffect, Source
from bench.data import load as load_items
from bench.data.dataset import is_language
from bench.data.nli_coal.faults import DEFINITIONAL, WORDS, english
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
from bench.data.readers import read_json_lines
from bench.data.texts import FIRST, Text

TITLE = "NLI-CoAL"
TEXTS = ITEMS = N_("pairs")
HOMEPAGE = "https://github.com/panatchakorn-a/bias-eval-nli-considering-all-labels"
LICENCE = "MIT"
PAPER = Paper(
    ("Panatchakorn Anantaprayoon", "Masahiro Kaneko", "Naoaki Okazaki"),
    "Evaluating Gender Bias of Pre-trained Language Models in Natural Language Inference by Considering All Labels",
    LREC_COLING_2024,
    2024,
    "https://aclanthology.org/2024.lrec-main.566",
)
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # All occupations, or the release's 30, which the bias-controlled sets are about.
    "set": ("all", "downsample"),
    # Japanese as it is written, or with blanks between words, for models that were trained so.
    "tokens": ("plain", "tokenized"),
    # A row that names another occupation than it has, or none: by its sentences, or as released.
    "anomalies": ("repair", "keep"),
    # Occupations of NS that mean a man or a woman by themselves, such as salesman, and what was translated from them.
    "definitional": ("keep", "leave_out"),
}
LAYOUT = "folders like zh_v1.0/bias-eval-set_v1.0/all-words/ with 1-prostereo_v1.0.json, 2-antistereo and 3-nonstereo"
# Settings under which `bench fetch` takes a release that has faults, so that it can be looked at.
TOLERANT: dict[str, str] = {}
# None: each category is a language.
LANGUAGE = ""
CATEGORIES = ("en", "ja", "zh")
CATEGORY_LABELS = {"en": "英语", "ja": "日语", "zh": "中文"}
SETS = {"ps": "1-prostereo", "as": "2-antistereo", "ns": "3-nonstereo"}
NEUTRAL_TERMS = {"nt": "5-neutral-terms"}
OCCUPATION_TYPES = ("female-stereo", "male-stereo", "neutral")
# Set and tokens to the folders that may hold them, and what their files' names have after the stem.
VARIANTS = {
    ("all", "plain"): (("all-words", "untokenized"), ""),
    ("all", "tokenized"): (("tokenized",), "-tok"),
    ("downsample", "plain"): (("downsamp",), "-downsamp"),
    ("downsample", "tokenized"): (("downsamp-tokenized",), "-downsamp-tok"),
}
# The one language whose release has its sentences with blanks between words, too.
TOKENIZED = "ja"
# What type an occupation has that is in this set with this gender.
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
DEFINED = "their occupation means a man or a woman by itself"
WRONG = "names another occupation than its sentences have"
NONE = "names no occupation"


@dataclass(frozen=True, slots=True)
class Pair:
    """An NLI pair. `set` is ps, as, ns or nt; `gender` is that of the hypothesis, whose word for it is `term`.

    `occupation` and its type are empty where not given and not repaired. `frame` is the premise with `[Sub]` for the
    occupation, found by position and without the blanks of tokenized Japanese; it is empty where premise and hypothesis
    differ in more than that.
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
        """What was sampled: the occupation, or the premise where a row does not name it."""
        return f"{self.category}:{self.occupation or self.premise}"


class Loaded(NamedTuple):
    """Pairs, and how many of them, by language, set and what it is, a setting touches."""

    pairs: list[Pair]
    touched: Counter[tuple[str, str, str]]


class Words(NamedTuple):
    """The gender words of a language's sets, how they are found, and whether blanks are to be passed over."""

    terms: Terms
    match: str
    tokenized: bool


def files(folder: Path) -> dict[str, list[Path]]:
    """Language to its evaluation files: PS, AS, NS (and NT) of each variant that is whole, all words untokenized first.

    Behind them the list of occupations, and the files of the pack that they were made of, where these are there: gender
    words stand in the pack, and other languages than the release's are read only with it. A folder of one language may be
    given itself.
    """
    places = [*sorted(folder.glob("*_v*")), folder]
    found: dict[str, list[Path]] = {}
    for place in places:
        language = place.name.partition("_v")[0]
        # The language becomes a part of names of folders and files, so that not every name is taken.
        if "_v" not in place.name or not (
            language in CATEGORIES or (is_language(language) and (place / PACK).is_dir())
        ):
            continue
        paths = [path for set_, tokens in VARIANTS for path in _variant(place, set_, tokens)]
        if paths:
            beside = [
                *sorted(place.glob(WORDS.format(language=language))),
                *(place / PACK / name for name in FILES),
            ]
            found[language] = [*paths, *(path for path in beside if path.is_file())]
    known = [language for language in CATEGORIES if language in found]
    return {language: found[language] for language in dict.fromkeys([*known, *found])}


def load(folder: Path, categories: Sequence[str], **settings: str) -> list[Pair]:
    """All pairs of the languages `categories`: PS, AS, NS, and NT where there is one.

    Args:
        settings: those of `SETTINGS` that are not at their default.

    Raises:
        BadInput: a missing or empty field, an unknown label or type, a doubled id, with file and line; or a language
            has not the sets that are asked for.
    """
    return _loaded(folder, categories, settings).pairs


def touched(folder: Path, categories: Sequence[str] | None, **settings: str) -> list[SettingEffect]:
    """What `anomalies` corrects, or would, and what `definitional` leaves out, by language and set; with how many pairs."""
    counts = _loaded(folder, categories or list(files(folder)), settings).touched
    return [
        SettingEffect(language, name, rows, what, what == DEFINED)
        for (language, name, what), rows in counts.items()
    ]


def _loaded(folder: Path, categories: Sequence[str], given: Mapping[str, str]) -> Loaded:
    for name, value in given.items():
        if value not in SETTINGS.get(name, ()):
            raise BadInput(
                f"{name}={value}: "
                + expected(value, SETTINGS.get(name, "nothing"), f"value of {name}")
            )
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
                f"bias-eval-set_v*/{names[0]}/1-prostereo{suffix}_v*.json and the other two; other languages may have them"
            )
        words = _words(place, language, tokens == "tokenized")
        defined = _defined(place, language) if settings["definitional"] == "leave_out" else set()
        seen: set[int] = set()
        for name, path in zip({**SETS, **NEUTRAL_TERMS}, paths, strict=False):
            for pair, what in _read(
                path, language, name, len(seen), seen, words, settings["anomalies"]
            ):
                if name == "ns" and pair.occupation in defined:
                    loaded.touched[language, name, DEFINED] += 1
                    continue
                loaded.pairs.append(pair)
                if what:
                    loaded.touched[language, name, what] += 1
    return loaded


def _defined(place: Path, language: str) -> set[str]:
    """The occupations of a language that mean a man or a woman by themselves, or are translated from such."""
    if language == "en":
        return set(DEFINITIONAL)
    known = english(place, language)
    if not known:
        raise BadInput(
            f"{place}: definitional=leave_out needs {WORDS.format(language=language)}, which says what occupations are in English"
        )
    return {word for word, origin in known.items() if origin in DEFINITIONAL}


def _words(place: Path, language: str, tokenized: bool) -> Words:
    if (place / PACK).is_dir():
        pack = read_pack(place / PACK)
        return Words(pack.terms, pack.match, tokenized)
    return Words(RELEASED_TERMS[language], match_of(language), tokenized)


def _variant(place: Path, set_: str, tokens: str) -> list[Path]:
    """PS, AS, NS and perhaps NT of a language; nothing where one of the first three is missing."""
    folders, suffix = VARIANTS[set_, tokens]
    for variant in folders:
        named = [
            sorted(place.glob(f"bias-eval-set_v*/{variant}/{stem}{suffix}_v*.json"))
            for stem in (*SETS.values(), *NEUTRAL_TERMS.values())
        ]
        if all(named[: len(SETS)]):
            return [paths[-1] for paths in named if paths]
    return []


def _read(
    path: Path, language: str, name: str, start: int, seen: set[int], words: Words, anomalies: str
) -> list[tuple[Pair, str]]:
    """The pairs of a file, each with what is odd about it."""
    pairs: list[tuple[Pair, str]] = []
    for number, row in read_json_lines(path):
        for field in FIELDS:
            if field not in row:
                raise BadInput(
                    f"{path}, line {number}: field `{field}` is missing; found: {', '.join(row)}"
                )
            if not isinstance(row[field], str) or not row[field].strip():
                raise BadInput(
                    f"{path}, line {number}, field `{field}`: {quoted(row[field])} is not a text"
                )
            if "\n" in row[field]:
                raise BadInput(f"{path}, line {number}, field `{field}`: holds a line break")
            if len(row[field]) > MAX_SENTENCE:
                raise BadInput(
                    f"{path}, line {number}, field `{field}`: is longer than {MAX_SENTENCE:,} characters"
                )
        if row["label"] != "neutral":
            raise BadInput(
                f"{path}, line {number}, field `label`: {quoted(row['label'])}; an evaluation pair is always neutral"
            )
        for field in ("occ_word", "occ_type"):
            if not isinstance(row.get(field, ""), str):
                raise BadInput(
                    f"{path}, line {number}, field `{field}`: {quoted(row[field])} is not a text"
                )
        occupation_type = row.get("occ_type", "")
        if occupation_type and occupation_type not in OCCUPATION_TYPES:
            raise BadInput(
                f"{path}, line {number}: "
                + expected(occupation_type, OCCUPATION_TYPES, "field `occ_type`")
            )
        identifier = row.get("id", start + len(pairs))
        if type(identifier) is not int or not 0 <= identifier < MAX_ID:
            raise BadInput(
                f"{path}, line {number}, field `id`: {quoted(identifier)} is not a whole number from 0, below {MAX_ID:,}"
            )
        if identifier in seen:
            raise BadInput(
                f"{path}, line {number}: id {identifier} occurs more than once; every pair needs its own"
            )
        seen.add(identifier)
        premise, hypothesis = row["sentence1"], row["sentence2"]
        occupation, found = row.get("occ_word", ""), _aligned(row, words)
        gender, term = (found.gender, found.term) if found else _term(path, number, row, words)
        what = ""
        if found and found.occupation != occupation:
            what = f"each {WRONG if occupation else NONE}"
            if anomalies == "repair":
                what = f"{what}; it is taken from these (anomalies=repair)"
                occupation, occupation_type = found.occupation, TYPES.get((name, gender), "")
            else:
                what = f"{what} (--set anomalies=repair takes it from these)"
        frame = found.frame if found else ""
        pair = Pair(
            language,
            identifier,
            name,
            premise,
            hypothesis,
            occupation,
            occupation_type,
            gender,
            term,
            frame,
        )
        pairs.append((pair, what))
    if not pairs:
        raise BadInput(f"{path}: holds no pairs")
    return pairs


def _aligned(row: dict[str, Any], words: Words) -> Aligned | None:
    """How the hypothesis came about: with the occupation that the row names, or else with another."""
    premise, hypothesis = (
        row[name].replace(" ", "") if words.tokenized else row[name]
        for name in ("sentence1", "sentence2")
    )
    named = row.get("occ_word", "")
    found = align(premise, hypothesis, words.terms, words.match, named) if named else None
    return found or align(premise, hypothesis, words.terms, words.match)


def _term(path: Path, number: int, row: dict[str, Any], words: Words) -> tuple[str, str]:
    """The gender and its term that the hypothesis has and the premise has not, where these differ in more."""
    for gender, terms in words.terms.items():
        for term in terms:
            found = [
                len(pattern(term, words.match).findall(row[name]))
                for name in ("sentence1", "sentence2")
            ]
            if found[1] > found[0]:
                return gender, term
    known = " or ".join(term for terms in words.terms.values() for term in terms)
    raise BadInput(
        f"{path}, line {number}, field `sentence2`: expected {known} in place of the occupation: {row['sentence2'][:60]!r}"
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
