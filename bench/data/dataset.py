"""The manifest of a data folder, `dataset.toml`, and the names of its categories and languages.

    name = "Our set"
    version = "1"
    licence = "CC-BY-4.0"
    language = "zh"

    [categories.sport]
    en = "Sport"
    zh = "体育"

A category of the release needs no table; if it has one, these are its labels. `groups = false`
means that a category of McBE compares ways of living, as worldview does, and not groups.
`target = "NAME1"` or `"NAME2"` names the slot that holds the stereotyped group of a category of
CBBQ, for rows that do not show it.

A data set is asked with the prompts in `prompts.toml` next to its manifest, unless the manifest has
a key `wording`: then `bench fetch` put the official prompts there. Its items in English are
in `glosses.jsonl`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

from bench.benchmarks import get
from bench.core.errors import LONGEST, BadInput, plain, quoted
from bench.core.files import file_name_error
from bench.data.readers import read_toml, toml_key

MANIFEST = "dataset.toml"
PROMPTS_FILE = "prompts.toml"
# One object per line: `english`, and as `id` an item or its cluster, term or frame.
GLOSSES = "glosses.jsonl"
# The key under which `bench fetch` keeps the version of official prompts.
FETCHED = "wording"
TEXTS = ("name", "version", "licence", "note")
# Names of categories become parts of file names, of ids and of lists with commas.
NAME, MAX_NAME = re.compile(r"[^\W_][\w+-]*"), 40
# The name of all categories together in tables, and the demonstration file of McBE's release.
RESERVED = ("all", "test")
MAX_LABEL = 60
GROUPS = "groups"
TARGET, TARGETS = "target", ("NAME1", "NAME2")
LABEL_RULE = f"a text on one line of at most {MAX_LABEL} characters, without $"
LANGUAGE_RULE = "codes of languages such as zh, set apart by commas"


class Category(NamedTuple):
    """A category in a manifest: its labels by language, and whether it compares groups.

    `target` is the slot with the stereotyped group, one of `TARGETS`; "" if it is not given.
    """

    labels: dict[str, str]
    groups: bool = True
    target: str = ""


class Manifest(NamedTuple):
    """A manifest: its `TEXTS`, codes of languages, and categories by name."""

    texts: dict[str, str]
    languages: tuple[str, ...]
    categories: dict[str, Category]

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The labels of each category, by the code of their language."""
        return {name: dict(category.labels) for name, category in self.categories.items()}


def home(data: Path) -> Path:
    """Return the folder of the manifest: the data folder, or the folder of a single data file."""
    return data.parent if data.is_file() else data


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a data folder or file; it is empty if there is none."""
    path = home(folder) / MANIFEST
    return parse_manifest(path, read_toml(path)) if path.exists() else Manifest({}, (), {})


def parse_manifest(path: Path, values: Mapping[str, Any]) -> Manifest:
    """Check the values of the manifest `path`; an error names the key."""

    def check(key: str, value: Any, is_allowed: bool, allowed: str) -> None:
        if not is_allowed:
            problem = f"{quoted(value)} is not allowed; expected {allowed}"
            raise BadInput(f"{path}, key `{key}`: {problem}")

    given = {key: values[key] for key in TEXTS if key in values}
    for key, value in given.items():
        is_text = isinstance(value, str | int | float) and len(str(value)) <= LONGEST
        check(key, value, is_text, f"a text of at most {LONGEST} characters")
    codes = values.get("language", "")
    check("language", codes, isinstance(codes, str) and len(codes) <= LONGEST, LANGUAGE_RULE)
    languages = tuple(code.strip() for code in codes.split(",")) if codes.strip() else ()
    for code in languages:
        check("language", code, is_language(code), LANGUAGE_RULE)
    tables = values.get("categories", {})
    check("categories", tables, isinstance(tables, dict), "a table for each category")
    if tables and not languages:
        raise BadInput(
            f"{path}: key `language` is missing beside [categories]; expected the code of the data "
            "set's language, such as zh"
        )
    own = next((code for code in languages if code != "en"), "")
    lines = ", ".join(f'{code} = "its label"' for code in ("en", own) if code)
    categories = {}
    for name, table in tables.items():
        key = f"categories.{name}"
        if error := category_name_error(name):
            problem = f"{quoted(name)} cannot be a category's name: {error}"
            raise BadInput(f"{path}, key `categories`: {problem}")
        check(key, table, isinstance(table, Mapping), f"a table with {lines}")
        labels = {code: label for code, label in table.items() if code not in (GROUPS, TARGET)}
        groups, target = table.get(GROUPS, True), table.get(TARGET, "")
        check(f"{key}.{GROUPS}", groups, isinstance(groups, bool), "true, false")
        is_slot = TARGET not in table or target in TARGETS
        check(f"{key}.{TARGET}", target, is_slot, " or ".join(TARGETS))
        for code, label in labels.items():
            check(key, code, is_language(code), f"codes of languages, {GROUPS}, {TARGET}")
            check(f"{key}.{code}", label, is_label(label), LABEL_RULE)
        if "en" not in labels or not set(languages) & set(labels):
            raise BadInput(
                f"{path}, key `{key}`: a label is missing; expected {lines}, so that it has a name "
                "in English and in its own language"
            )
        labels = {code: label.strip() for code, label in labels.items()}
        categories[name] = Category(labels, groups, target)
    return Manifest({key: plain(str(given[key])) for key in given}, languages, categories)


def manifest_tables(manifest: Manifest) -> dict[str, Any]:
    """Return the languages and categories of a manifest as it is written."""
    categories = {
        name: category.labels
        | ({} if category.groups else {GROUPS: False})
        | ({TARGET: category.target} if category.target else {})
        for name, category in manifest.categories.items()
    }
    tables = {"language": ", ".join(manifest.languages), "categories": categories}
    return {key: value for key, value in tables.items() if value}


def own_prompts(folder: Path) -> Path | None:
    """Return the file of a data set's own prompts, if it has one."""
    folder = home(folder)
    path = folder / PROMPTS_FILE
    if not path.exists() or not (folder / MANIFEST).is_file():
        return None
    return None if FETCHED in read_toml(folder / MANIFEST) else path


def unknown_category(
    place: Path, name: str, folder: Path, known: Iterable[str], remedy: str = ""
) -> str:
    """Say that the data in `place` are of a category that nobody knows, and how to add it.

    The manifest of `folder` can add it; another `remedy` begins with a comma.
    """
    known = list(known)
    if error := category_name_error(name):
        return f"{place}: {quoted(name)} cannot be a category's name: {error}"
    for other in known:
        if other.casefold() == name.casefold():
            problem = f"is unknown; if it is {other}, write its name so"
            return f"{place}: category {quoted(name)} {problem}"
    return (
        f"{place}: category {quoted(name)} is unknown; allowed: {', '.join(known)}; a new one "
        f'needs lines like these in {folder / MANIFEST}, below language = "zh" or another: '
        f'[categories.{toml_key(name)}], en = "its English label", zh = "its own label"{remedy}'
    )


def category_name_error(name: str) -> str:
    """Say why a category cannot have this name; "" if it can."""
    if name in RESERVED:
        return f"{' and '.join(RESERVED)} mean something else"
    if composed(name) != name:
        return "its letters and their accents stand apart (NFD); write it in NFC"
    # Vowel signs and accents are no letters of their own.
    bare = "".join(char for char in name if unicodedata.category(char)[0] != "M")
    if len(name) > MAX_NAME or not NAME.fullmatch(bare):
        return "expected up to 40 letters, digits, `_`, `-` and `+`, a letter or a digit first"
    return file_name_error(bare)


def composed(name: str) -> str:
    """Return a name with each letter and its accents as one (NFC); files of a Mac may have NFD."""
    return unicodedata.normalize("NFC", name)


def category_of(path: Path) -> str:
    """Return the category that a file or folder is called after."""
    return composed(unquote(path.stem))  # a browser may keep the `%2B` of a link for `+`


def is_label(value: Any) -> bool:
    """Tell whether a value can be shown as a name; in pictures, `$` would begin a formula."""
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= len(value) <= MAX_LABEL
        and value.isprintable()
        and "$" not in value
    )


# Languages


def is_language(code: Any) -> bool:
    """Tell whether `code` is a language: one of two letters in CLDR, or any three letters."""
    if not isinstance(code, str) or not re.fullmatch("[a-z]{2,3}", code):
        return False
    # Loading CLDR takes a tenth of a second.
    return len(code) == 3 or code in ("en", "zh") or bool(cldr_name(code, "en"))


def cldr_name(code: str, language: str) -> str:
    """Return the name of the language `code` in another, by Unicode's CLDR; "" if it has none."""
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale(language).languages.get(code, ""))
    except UnknownLocaleError:
        return ""


def language_name(code: str) -> str:
    """Return the English name of a language, or else its code."""
    return cldr_name(code, "en") or code


# Names of categories


class CategoryName(NamedTuple):
    """A category's name in the language of the data, empty if it has none, and in English."""

    native: str
    english: str


# Names that are not the release's, of the data sets and runs that were opened; the last ones count.
_own_names: ContextVar[Mapping[tuple[str, str], CategoryName]] = ContextVar(
    "own_names", default=MappingProxyType({})
)


def remember_names(benchmark: str, description: Mapping[str, Any]) -> None:
    """Use the names of categories in the description of a data set from now on.

    The description is the data's part of `run.json`, with `labels` by category and language and
    `language`. Labels that cannot be shown are left out, because runs can come from anywhere.
    """
    names = {(benchmark, category): name for category, name in _labelled(description).items()}
    _own_names.set({**_own_names.get(), **names})


def native_name(benchmark: str, category: str) -> str:
    """Return a category's name in the language of its data; "" if it has none of its own."""
    return _name(benchmark, category).native


def english_name(benchmark: str, category: str) -> str:
    """Return a category's English name."""
    return _name(benchmark, category).english


def _name(benchmark: str, category: str) -> CategoryName:
    if name := _own_names.get().get((benchmark, category)):
        return name
    labels = get(benchmark).metadata.categories
    return CategoryName(labels.get(category, ""), category.replace("_", " "))


def _labelled(description: Mapping[str, Any]) -> dict[str, CategoryName]:
    """Return the names of the categories that have an English label in a description."""
    codes = [code.strip() for code in description["language"].split(",")]
    names = {}
    for category, table in description["labels"].items():
        labels = {code: label for code, label in table.items() if is_label(label)}
        native = next((labels[code] for code in codes if code in labels and code != "en"), "")
        if "en" in labels:
            names[category] = CategoryName(native, labels["en"])
    return names
