"""The manifest of a data folder, dataset.toml: what the data are called, and the categories that no release has.

    name = "Our set"
    version = "1"
    licence = "CC-BY-4.0"
    language = "zh"

    [categories.sport]
    en = "Sport"
    zh = "体育"

A category of the release needs no lines; where it has some, its labels are these. `groups = false` says of a category
of McBE that it compares ways of living and not groups, as worldview does. `target = "NAME1"` or `target = "NAME2"` says
of a category of CBBQ which list of names holds the stereotyped group in rows that do not tell it themselves.

A wording beside it, prompts.toml, is what the set is asked in where nobody chooses another, so that a set in another
language brings its own. The released wording that `bench fetch` puts there is not: the manifest names it, as `wording`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.benchmarks import module
from bench.core import i18n
from bench.core.errors import LONGEST, BadInput, plain, quoted
from bench.data import readers

MANIFEST = "dataset.toml"
# A wording beside the data: the set's own, or the released one that `bench fetch` keeps there.
PROMPTS_FILE = "prompts.toml"
# By this key `bench fetch` says which released wording it brought.
FETCHED = "wording"
TEXTS = ("name", "version", "licence", "note")
# They become parts of names of files, of ids and of lists with commas, so that not every name is taken.
NAME = re.compile(r"[^\W_][\w+-]{0,39}")
# What tables call all categories together, and the demonstration file of McBE's release.
RESERVED = ("all", "test")
MAX_LABEL = 60
GROUPS = "groups"
TARGET, TARGETS = "target", ("NAME1", "NAME2")


class Category(NamedTuple):
    """What a manifest says of a category.

    Attributes:
        labels: by the code of their language.
        groups: whether it compares groups.
        target: the slot that holds the stereotyped group, one of `TARGETS`; "" where it says none.
    """

    labels: dict[str, str]
    groups: bool = True
    target: str = ""


class Manifest(NamedTuple):
    """A manifest: the `told` among `TEXTS`, the codes of its `languages`, its `categories` by name."""

    told: dict[str, str]
    languages: tuple[str, ...]
    categories: dict[str, Category]

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The labels of each category, by the code of their language."""
        return {name: dict(one.labels) for name, one in self.categories.items()}


def manifest_tables(said: Manifest) -> dict[str, Any]:
    """What a manifest says of languages and categories, as it is written into that of a copy."""
    categories = {
        name: one.labels
        | ({} if one.groups else {GROUPS: False})
        | ({TARGET: one.target} if one.target else {})
        for name, one in said.categories.items()
    }
    return ({"language": ", ".join(said.languages)} if said.languages else {}) | (
        {"categories": categories} if categories else {}
    )


def read_manifest(folder: Path) -> Manifest:
    """The manifest of `folder`; one that says nothing where there is none.

    Raises:
        BadInput: it cannot be read, or says something that is not allowed; with the key.
    """
    path = folder / MANIFEST
    return parse_manifest(path, readers.read_toml(path)) if path.is_file() else Manifest({}, (), {})


def parse_manifest(path: Path, given: Mapping[str, Any]) -> Manifest:
    """What a manifest says that was read from `path`.

    Raises:
        BadInput: something that is not allowed; with the key.
    """
    told = {}
    for key in TEXTS:
        value = given.get(key, "")
        if not isinstance(value, str | int | float) or len(str(value)) > LONGEST:
            raise BadInput(_refused(path, key, value, f"a text of at most {LONGEST} characters"))
        if key in given:
            # It is shown in terminals and pages, and a manifest may hold anything.
            told[key] = plain(str(value))
    languages = _languages(path, given.get("language", ""))
    categories = given.get("categories", {})
    if not isinstance(categories, dict):
        raise BadInput(_refused(path, "categories", categories, "a table for each category"))
    if categories and not languages:
        raise BadInput(
            f"{path}: key `language` is missing beside [categories]; expected the code of the set's language, such as zh"
        )
    found = {name: _category(path, name, value, languages) for name, value in categories.items()}
    return Manifest(told, languages, found)


def own_prompts(folder: Path) -> Path | None:
    """The wording that a set carries for itself; None where there is none, or it is the released one that was fetched.

    Raises:
        BadInput: the manifest cannot be read.
    """
    path = folder / PROMPTS_FILE
    if not path.exists() or not (folder / MANIFEST).is_file():
        return None
    return None if FETCHED in readers.read_toml(folder / MANIFEST) else path


def unknown_category(
    place: Path, name: str, folder: Path, known: Iterable[str], more: str = ""
) -> str:
    """The sentence about data of a category that neither the release nor the manifest of `folder` knows.

    Args:
        place: the file or the folder of that category.
        known: the categories that are known.
        more: another way out, behind a comma.
    """
    known = list(known)
    wrong = category_name_error(name)
    if wrong:
        return f"{place}: {quoted(name)} cannot be a category's name: {wrong}"
    meant = next((one for one in known if one.casefold() == name.casefold()), "")
    if meant:
        return f"{place}: category {quoted(name)} is unknown; if it is {meant}, write its name so"
    heading = f"[categories.{readers.toml_key(name)}]"
    return (
        f"{place}: category {quoted(name)} is unknown; allowed: {', '.join(known)}; a new one needs lines like these in "
        f'{folder / MANIFEST}, below language = "zh" or another: {heading}, en = "its English label", zh = "its own label"{more}'
    )


def category_name_error(name: str) -> str:
    """Why a category cannot be called so, or ""."""
    if name in RESERVED:
        return f"{' and '.join(RESERVED)} mean something else"
    if not NAME.fullmatch(name) or unicodedata.normalize("NFC", name) != name:
        return "expected up to 40 letters, digits, `_`, `-` and `+`, a letter or a digit first"
    return ""


def is_label(value: Any) -> bool:
    """Whether `value` can be shown as the name of a category: on pages, and in pictures, where `$` begins a formula."""
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= len(value) <= MAX_LABEL
        and value.isprintable()
        and "$" not in value
    )


def is_language(code: Any) -> bool:
    """Whether `code` is that of a language: one of two letters that CLDR has, or any of three, which are thousands."""
    if not isinstance(code, str) or not (code.isascii() and code.isalpha() and code.islower()):
        return False
    # Those that pages are in need no look at CLDR, which takes a tenth of a second to load.
    return len(code) == 3 or code in i18n.LANGUAGES or (len(code) == 2 and code in _codes())


def cldr_name(code: str, language: str) -> str:
    """What the language `code` is called in `language`, as Unicode's CLDR has it (by babel); "" where it does not say."""
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale(language).languages.get(code, ""))
    except UnknownLocaleError:
        return ""


def language_name(code: str) -> str:
    """What the language `code` is called in the language that is spoken, or its code where nobody says."""
    return cldr_name(code, i18n.language()) or code


def both_language_names(code: str) -> str:
    """What the language `code` is called in the language that is spoken, and in itself where that is another name."""
    spoken, own = language_name(code), cldr_name(code, code)
    return i18n._("{name} ({own})", name=spoken, own=own) if own and own != spoken else spoken


@cache
def _codes() -> frozenset[str]:
    from babel import Locale

    return frozenset(map(str, Locale("en").languages))


def _languages(path: Path, given: Any) -> tuple[str, ...]:
    allowed = "codes of languages such as zh, set apart by commas"
    if not isinstance(given, str) or len(given) > LONGEST:
        raise BadInput(_refused(path, "language", given, allowed))
    codes = tuple(code.strip() for code in given.split(",")) if given.strip() else ()
    for code in codes:
        if not is_language(code):
            raise BadInput(_refused(path, "language", code, allowed))
    return codes


def _category(path: Path, name: str, given: Any, languages: tuple[str, ...]) -> Category:
    if wrong := category_name_error(name):
        raise BadInput(
            f"{path}, key `categories`: {quoted(name)} cannot be a category's name: {wrong}"
        )
    where = f"categories.{name}"
    own = next((code for code in languages if code != "en"), "")
    lines = ", ".join(f'{code} = "its label"' for code in ("en", own) if code)
    if not isinstance(given, Mapping):
        raise BadInput(_refused(path, where, given, f"a table with {lines}"))
    for key, value in given.items():
        if key == GROUPS:
            if not isinstance(value, bool):
                raise BadInput(_refused(path, f"{where}.{key}", value, "true, false"))
        elif key == TARGET:
            if value not in TARGETS:
                raise BadInput(_refused(path, f"{where}.{key}", value, " or ".join(TARGETS)))
        elif not is_language(key):
            raise BadInput(_refused(path, where, key, f"codes of languages, {GROUPS}, {TARGET}"))
        elif not is_label(value):
            allowed = f"a text on one line of at most {MAX_LABEL} characters, without $"
            raise BadInput(_refused(path, f"{where}.{key}", value, allowed))
    labels = {key: value.strip() for key, value in given.items() if key not in (GROUPS, TARGET)}
    if "en" not in labels or not set(languages) & set(labels):
        raise BadInput(
            f"{path}, key `{where}`: a label is missing; expected {lines}, so that it is called in English and in its own language"
        )
    return Category(labels, given.get(GROUPS, True), given.get(TARGET, ""))


def _refused(path: Path, key: str, value: Any, allowed: str) -> str:
    return f"{path}, key `{key}`: {quoted(value)} is not allowed; expected {allowed}"


# By benchmark and category: the label in the data's own language, and the English one. The last that was told stands; where
# sets that are shown together do not call a category alike, `apart` finds it, and pages say so.
_told: dict[tuple[str, str], tuple[str, str]] = {}


class Apart(NamedTuple):
    """A category that two data sets call differently: both sets and their names of it, in its own language and in English."""

    benchmark: str
    category: str
    sets: tuple[str, str]
    names: tuple[tuple[str, str], tuple[str, str]]


def remember_names(benchmark: str, told: Any) -> None:
    """Take over what a data set says of its categories; what is no label is passed over, for runs may come from anywhere.

    Args:
        told: what `run.json` says of the data: `labels` by category and by the code of their language, and `language`.
    """
    for category, names in _names(told).items():
        _told[benchmark, category] = names


def differing_names(sets: Iterable[tuple[str, Any]]) -> list[Apart]:
    """The categories that data sets call differently; a set that says nothing of a released category calls it as the release.

    Args:
        sets: the benchmark of each, and what `run.json` says of it.
    """
    found: dict[tuple[str, str], Apart] = {}
    first: dict[tuple[str, str], tuple[str, tuple[str, str]]] = {}
    for benchmark, told in sets:
        name = str(told.get("name", "")) if isinstance(told, Mapping) else ""
        for category, names in {**_released(benchmark), **_names(told)}.items():
            key = benchmark, category
            other, theirs = first.setdefault(key, (name, names))
            if theirs != names:
                found.setdefault(key, Apart(*key, (other, name), (theirs, names)))
    return list(found.values())


def native_name(benchmark: str, category: str) -> str:
    """A category's name in the language of its data; "" where it has none but the English one."""
    return _known(benchmark, category)[0]


def english_name(benchmark: str, category: str) -> str:
    """A category's name in English."""
    return _known(benchmark, category)[1]


def _known(benchmark: str, category: str) -> tuple[str, str]:
    if (benchmark, category) in _told:
        return _told[benchmark, category]
    return module("data", benchmark).CATEGORY_LABELS.get(category, ""), category.replace("_", " ")


def _released(benchmark: str) -> dict[str, tuple[str, str]]:
    labels = module("data", benchmark).CATEGORY_LABELS
    return {name: (label, name.replace("_", " ")) for name, label in labels.items()}


def _names(told: Any) -> dict[str, tuple[str, str]]:
    """The labels of the categories of which a data set says any, in its own language and in English."""
    said = told if isinstance(told, Mapping) else {}
    labels, languages = said.get("labels"), str(said.get("language", "")).split(",")
    found = {}
    for category, some in labels.items() if isinstance(labels, Mapping) else ():
        fit = (
            {code: text for code, text in some.items() if is_label(text)}
            if isinstance(some, Mapping)
            else {}
        )
        own_label = next(
            (
                fit[code.strip()]
                for code in languages
                if code.strip() in fit and code.strip() != "en"
            ),
            "",
        )
        if "en" in fit:
            found[category] = (own_label, fit["en"])
    return found
