"""NLI-CoAL: premise and hypothesis pairs about occupations (Anantaprayoon et al., LREC-COLING 2024).

Three sets a language. PS (pro-stereotypical): the hypothesis has the gender that the occupation's stereotype expects;
AS (anti-stereotypical): the other one; NS (non-stereotypical): occupations without a stereotype. The right answer is
always `neutral`: nothing in the premise tells a gender.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import Touched
from bench.data.tables import read_json_lines
from bench.errors import BadInput, expected

TITLE = "NLI-CoAL"
HOMEPAGE = "https://github.com/panatchakorn-a/bias-eval-nli-considering-all-labels"
LICENCE = "MIT"
SETTINGS: dict[str, tuple[str, ...]] = {}
LAYOUT = "folders like zh_v1.0/bias-eval-set_v1.0/all-words/ with 1-prostereo_v1.0.json, 2-antistereo and 3-nonstereo"
# Settings under which `bench fetch` takes a release that has faults, so that it can be looked at.
TOLERANT: dict[str, str] = {}
CATEGORIES = ("en", "ja", "zh")
CATEGORY_LABELS = {"en": "英语", "ja": "日语", "zh": "中文"}
SETS = {"ps": "1-prostereo", "as": "2-antistereo", "ns": "3-nonstereo"}
OCCUPATION_TYPES = ("female-stereo", "male-stereo", "neutral")
# As patterns: in English whole words, because craftsman holds man and woman too.
GENDER_TERMS = {
    "en": {"feminine": r"\bwoman\b", "masculine": r"\bman\b"},
    "ja": {"feminine": "女性", "masculine": "男性"},
    "zh": {"feminine": "女人", "masculine": "男人"},
}
FIELDS = ("sentence1", "sentence2", "label")


@dataclass(frozen=True, slots=True)
class Pair:
    """An NLI pair. `set` is ps, as or ns; `gender` is that of the hypothesis; `occupation` is empty where not given."""

    category: str
    id: int
    set: str
    premise: str
    hypothesis: str
    occupation: str
    occupation_type: str
    gender: str

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.id}"

    @property
    def cluster(self) -> str:
        """What was sampled: the occupation, or the premise where a row does not name it."""
        return f"{self.category}:{self.occupation or self.premise}"


def files(folder: Path) -> dict[str, list[Path]]:
    """Language to its three evaluation files (all words, untokenized). A folder of one language may be given itself."""
    found = {}
    for language in CATEGORIES:
        for place in [
            *sorted(folder.glob(f"{language}_v*")),
            *([folder] if folder.name.startswith(f"{language}_v") else []),
        ]:
            paths = [_one(place, stem) for stem in SETS.values()]
            if all(paths):
                found[language] = [path for path in paths if path]
    return found


def load(folder: Path, categories: Sequence[str]) -> list[Pair]:
    """All pairs of the languages `categories`: PS, AS, then NS.

    Raises:
        BadInput: a missing or empty field, an unknown label or type, a doubled id; with file and line.
    """
    found = files(folder)
    pairs = []
    for language in categories:
        start, seen = 0, set[int]()
        for name, path in zip(SETS, found[language], strict=True):
            rows = _read(path, language, name, start, seen)
            start += len(rows)
            pairs += rows
    return pairs


def touched(folder: Path, categories: Sequence[str] | None) -> list[Touched]:
    """How many rows a setting changes or leaves out: none."""
    return []


def _one(place: Path, stem: str) -> Path | None:
    for variant in ("all-words", "untokenized"):
        paths = sorted(place.glob(f"bias-eval-set_v*/{variant}/{stem}_v*.json"))
        if paths:
            return paths[-1]
    return None


def _read(path: Path, language: str, name: str, start: int, seen: set[int]) -> list[Pair]:
    pairs: list[Pair] = []
    for number, row in read_json_lines(path):
        for field in FIELDS:
            if field not in row:
                raise BadInput(f"{path}, line {number}: field `{field}` is missing; found: {', '.join(row)}")
            if not isinstance(row[field], str) or not row[field].strip():
                raise BadInput(f"{path}, line {number}, field `{field}`: {row[field]!r} is not a text")
            if "\n" in row[field]:
                raise BadInput(f"{path}, line {number}, field `{field}`: holds a line break")
        if row["label"] != "neutral":
            raise BadInput(
                f"{path}, line {number}, field `label`: {row['label']!r}; an evaluation pair is always neutral"
            )
        for field in ("occ_word", "occ_type"):
            if not isinstance(row.get(field, ""), str):
                raise BadInput(f"{path}, line {number}, field `{field}`: {row[field]!r} is not a text")
        occupation_type = row.get("occ_type", "")
        if occupation_type and occupation_type not in OCCUPATION_TYPES:
            raise BadInput(
                f"{path}, line {number}: " + expected(occupation_type, OCCUPATION_TYPES, "field `occ_type`")
            )
        identifier = row.get("id", start + len(pairs))
        if type(identifier) is not int:
            raise BadInput(f"{path}, line {number}, field `id`: {identifier!r} is not a whole number")
        if identifier in seen:
            raise BadInput(
                f"{path}, line {number}: id {identifier} occurs more than once; every pair needs its own"
            )
        seen.add(identifier)
        pairs.append(
            Pair(
                language, identifier, name, row["sentence1"], row["sentence2"], row.get("occ_word", ""),
                occupation_type, _gender(path, number, language, row),
            )
        )  # fmt: skip
    if not pairs:
        raise BadInput(f"{path}: holds no pairs")
    return pairs


def _gender(path: Path, number: int, language: str, row: dict[str, Any]) -> str:
    """The gender whose term the hypothesis has and the premise has not."""
    for gender, term in GENDER_TERMS[language].items():
        if len(re.findall(term, row["sentence2"])) > len(re.findall(term, row["sentence1"])):
            return gender
    terms = " or ".join(term.strip(r"\b") for term in GENDER_TERMS[language].values())
    raise BadInput(
        f"{path}, line {number}, field `sentence2`: expected {terms} in place of the occupation: {row['sentence2'][:60]!r}"
    )
