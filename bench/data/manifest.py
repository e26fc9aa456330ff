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

`prompts.toml` next to the manifest holds the prompts of a data set. If the manifest has a key
`wording`, these are the official prompts that `bench fetch` put there, and we use them only on
request. `glosses.jsonl` has the items in English.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from bench.core.errors import LONGEST, BadInput, explained, plain, quoted
from bench.core.files import file_name_error
from bench.data.readers import read_toml, toml_key

MANIFEST = "dataset.toml"
PROMPTS_FILE = "prompts.toml"
# One object per line: `english`, and as `id` an item or its cluster, term or frame.
GLOSSES = "glosses.jsonl"
# The key under which `bench fetch` keeps the version of official prompts.
FETCHED = "wording"
# A category's name becomes a part of file names, ids and lists with commas.
NAME = re.compile(r"[^\W_][\w+-]*")
# The most characters of this name.
MAX_NAME = 40
# The name of all categories together in tables, and the demonstration file of McBE's release.
RESERVED = ("all", "test")
MAX_LABEL = 60
TARGETS = ("NAME1", "NAME2")


def checked(test: Callable[[str], Any], allowed: str) -> AfterValidator:
    """Return a validator that raises unless a text passes `test`."""

    def check(text: str) -> str:
        if not test(text):
            raise ValueError(f"expected {allowed}")
        return text

    return AfterValidator(check)


def is_language(code: Any) -> bool:
    """Return whether `code` is a language: a code of two letters in CLDR, or any three letters.

    Examples:
        >>> is_language("zh"), is_language("xx"), is_language("yue")
        (True, False, True)
    """
    if not isinstance(code, str) or not re.fullmatch("[a-z]{2,3}", code):
        return False
    # Loading CLDR takes a tenth of a second.
    return len(code) == 3 or code in ("en", "zh") or bool(cldr_name(code, "en"))


def is_label(value: Any) -> bool:
    """Return whether a value can be shown as a name; in pictures, `$` would begin a formula."""
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= len(value) <= MAX_LABEL
        and value.isprintable()
        and "$" not in value
    )


def category_name_error(name: str) -> str:
    """Say why a category cannot have this name; "" if it can."""
    if name in RESERVED:
        return f"{' and '.join(RESERVED)} mean something else"
    if composed(name) != name:
        return "its letters and their accents stand apart (NFD); write it in NFC"
    # `\w` does not match combining marks, such as vowel signs.
    bare = "".join(char for char in name if unicodedata.category(char)[0] != "M")
    if len(name) > MAX_NAME or not NAME.fullmatch(bare):
        return "expected up to 40 letters, digits, `_`, `-` and `+`, a letter or a digit first"
    return file_name_error(bare)


def _codes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [code.strip() for code in value.split(",")] if value.strip() else []


Text = Annotated[str, Field(max_length=LONGEST), AfterValidator(plain)]
Code = Annotated[str, checked(is_language, "codes of languages such as zh, set apart by commas")]
Label = Annotated[
    str,
    checked(is_label, f"a text on one line of at most {MAX_LABEL} characters, without $"),
    AfterValidator(str.strip),
]


class Category(BaseModel):
    """A category in a manifest; its other keys are codes of languages with its labels."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[Code, Label] = Field(init=False)

    groups: StrictBool = True
    target: Literal["", "NAME1", "NAME2"] = ""


class Manifest(BaseModel):
    """The content of a manifest: texts, languages and categories."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Text = ""
    version: Text = ""
    licence: Text = ""
    note: Text = ""
    languages: Annotated[tuple[Code, ...], BeforeValidator(_codes)] = Field((), alias="language")
    categories: dict[str, Category] = {}

    @property
    def texts(self) -> dict[str, str]:
        """The texts that the manifest has."""
        return self.model_dump(exclude={"languages", "categories"}, exclude_unset=True)

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The labels of each category, by the code of their language."""
        return {
            name: dict(category.__pydantic_extra__) for name, category in self.categories.items()
        }

    @model_validator(mode="after")
    def _has_labels(self) -> Self:
        if self.categories and not self.languages:
            raise ValueError(
                "key `language` is missing beside [categories]; expected the code of the data "
                "set's language, such as zh"
            )
        codes = ["en", *(code for code in self.languages if code != "en")][:2]
        lines = ", ".join(f'{code} = "its label"' for code in codes)
        for name, labels in self.labels.items():
            if error := category_name_error(name):
                raise ValueError(f"key `categories.{name}`: {quoted(name)} is not allowed; {error}")
            if "en" not in labels or not set(self.languages) & set(labels):
                raise ValueError(
                    f"key `categories.{name}`: a label is missing; expected {lines}, so that it "
                    "has a name in English and in its own language"
                )
        return self


def home(data: Path) -> Path:
    """Return the folder of the manifest of a data folder, or of a single data file.

    A data set may keep its tables in a folder `data`, and its manifest beside this folder or in it.
    """
    folder = data.parent if data.is_file() else data
    beside = folder.parent if folder.name == "data" else folder
    for candidate in (folder, folder / "data", beside):
        if (candidate / MANIFEST).is_file():
            return candidate
    return folder


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a data folder or file; it is empty if there is none."""
    path = home(folder) / MANIFEST
    return parse_manifest(path, read_toml(path) if path.exists() else {})


def parse_manifest(path: Path, values: Mapping[str, Any]) -> Manifest:
    """Check the values of the manifest `path`; an error names the key."""
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
    keys = [str(part) for part in first["loc"] if part != "[key]" and not isinstance(part, int)]
    key = f", key `{'.'.join(keys)}`" if keys else ""
    raise BadInput(f"{path}{key}: {explained(first)}")


def manifest_tables(manifest: Manifest) -> dict[str, Any]:
    """Return the languages and categories of a manifest, in its form as TOML."""
    language = {"language": ", ".join(manifest.languages)} if manifest.languages else {}
    return language | manifest.model_dump(include={"categories"}, exclude_defaults=True)


def own_prompts(folder: Path) -> Path | None:
    """Return the file of a data set's own prompts, if it has one."""
    manifest = home(folder) / MANIFEST
    path = home(folder) / PROMPTS_FILE
    is_own = path.exists() and manifest.is_file() and FETCHED not in read_toml(manifest)
    return path if is_own else None


def unknown_category(
    path: Path, name: str, folder: Path, categories: Iterable[str], remedy: str = ""
) -> str:
    """Say that a category of the data in `path` is unknown, and how to add it to the manifest."""
    names = list(categories)
    if error := category_name_error(name):
        return f"{path}: {quoted(name)} cannot be a category's name: {error}"
    for other in names:
        if other.casefold() == name.casefold():
            problem = f"is unknown; if it is {other}, write its name so"
            return f"{path}: category {quoted(name)} {problem}"
    return (
        f"{path}: category {quoted(name)} is unknown; allowed: {', '.join(names)}; a new one "
        f'needs lines like these in {folder / MANIFEST}, below language = "zh" or another: '
        f'[categories.{toml_key(name)}], en = "its English label", zh = "its own label"{remedy}'
    )


def composed(name: str) -> str:
    """Return a name in NFC: each letter with its accents as one. Files of a Mac may be in NFD."""
    return unicodedata.normalize("NFC", name)


def category_of(path: Path) -> str:
    """Return the category that a file or folder is called after, as `age` of `age.csv.gz`."""
    stem = Path(path.name.removesuffix(".gz")).stem
    return composed(unquote(stem))  # a browser may keep the `%2B` of a link for `+`


# Languages


def cldr_name(code: str, language: str) -> str:
    """Return the name of the language `code` in another, by Unicode's CLDR; "" if it has none."""
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale(language).languages.get(code, ""))
    except UnknownLocaleError:
        return ""


def category_names(
    released: Mapping[str, str], labels: Mapping[str, Mapping[str, str]], language: str
) -> dict[str, str]:
    """Name categories in English, with the name in the language of the data in brackets.

    Args:
        released: the names of the release's categories in its language.
        labels, language: of a manifest, or of the data's part of a `run.json`. We skip labels that
            pictures cannot show, because runs can come from anywhere.

    Examples:
        >>> labels = {"sport": {"en": "Sports clubs", "zh": "体育"}}
        >>> category_names({"age": "年龄"}, labels, "zh")
        {'age': 'age (年龄)', 'sport': 'Sports clubs (体育)'}
    """
    names = {name: (name.replace("_", " "), native) for name, native in released.items()}
    codes = [code.strip() for code in language.split(",")]
    for category, table in labels.items():
        printable = {code: label for code, label in table.items() if is_label(label)}
        if "en" in printable:
            native = next(
                (printable[code] for code in codes if code in printable and code != "en"), ""
            )
            names[category] = (printable["en"], native)
    return {
        name: f"{english} ({native})" if native else english
        for name, (english, native) in names.items()
    }
