"""What `bench` says on pages, in the reader's language: English as it stands in the code, Chinese from the files in `zh`.

words.tell("n = {n}", n=12)     # in the language that $BENCH_LANGUAGE names, English without it
with words.spoken("zh"): ...    # kernels that are started meanwhile speak it too

The English phrase is the key, so that code reads as it speaks and a phrase without a translation is English still. A test
holds the catalogue to the code: no phrase that is told may lack, no entry may be left over, placeholders are the same. A
phrase that is kept in a table and told later stands there as `words.phrase(...)`, so that the test finds it.
Data stay English: columns, notes and names of metrics in files are the same whatever a page says.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bench.core.errors import BadInput, expected

LOCALE = Path(__file__).parents[1] / "locale"
LANGUAGES = ("en", "zh")
ENVIRONMENT = "BENCH_LANGUAGE"
# As pages name them to browsers and screen readers.
TAGS = {"en": "en", "zh": "zh-CN"}
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
# What may stand in a placeholder of a note: not the end of another note.
_VALUE = "((?:(?!; ).)+?)"


def language() -> str:
    """The language that is spoken now.

    Raises:
        BadInput: the environment names one that there is none of.
    """
    return check(os.environ.get(ENVIRONMENT) or LANGUAGES[0])


def check(name: str) -> str:
    """`name`, if it is a language that pages can be in.

    Raises:
        BadInput: it is not.
    """
    if name not in LANGUAGES:
        raise BadInput(expected(name, LANGUAGES, "language"))
    return name


@contextmanager
def use_language(name: str) -> Iterator[None]:
    """Speak a language in this process, and in those that it starts, until the block ends."""
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = check(name)
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before


def tag() -> str:
    """The language that is spoken now, as HTML names it."""
    return TAGS[language()]


def tell(phrase: str, **values: object) -> str:
    """`phrase` in the language that is spoken, with `values` in the place of its placeholders."""
    found = catalogue("phrases").get(phrase, phrase)
    return found.format(**values) if values else found


def phrase(text: str) -> str:
    """`text` as it is: a phrase that is told where it is used, and needs its translation all the same."""
    return text


def column(name: str) -> str:
    """A column's name as a heading."""
    return catalogue("columns").get(name) or name.replace("_", " ")


def notebook(name: str) -> str:
    """A notebook's name in the navigation."""
    return catalogue("notebooks").get(shown := name.replace("_", " ")) or shown


def heading(text: str) -> str:
    """A heading of a notebook, whose other text is English in every language."""
    return catalogue("headings").get(text, text)


def sentences(parts: Iterable[str]) -> str:
    """Sentences one after the other; Chinese has no blank between them."""
    return ("" if language() == "zh" else " ").join(filter(None, parts))


def note(text: str) -> str:
    """Reasons and warnings beside a score, which are data and so English, as a page says them.

    Several stand with semicolons between them, and one may hold a semicolon itself: the longest that is known is taken.
    """
    if language() == LANGUAGES[0] or not text:
        return text
    parts, found, start = text.split("; "), [], 0
    while start < len(parts):
        for end in range(len(parts), start, -1):
            told = _translated("; ".join(parts[start:end]))
            if told:
                break
        found.append(told or parts[start])
        start = end if told else start + 1
    return "；".join(found)


def catalogue(section: str) -> dict[str, str]:
    """A section of the catalogue of the language that is spoken; nothing for English, which needs none."""
    return {} if language() == LANGUAGES[0] else _read(language())[section]


@cache
def _read(name: str) -> dict[str, dict[str, str]]:
    """The catalogue of a language, of all its files; each phrase stands in one of them."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((LOCALE / name).glob("*.toml")):
        for section, told in tomllib.loads(path.read_text("utf-8")).items():
            found.setdefault(section, {}).update(told)
    return found


@cache
def _patterns(name: str) -> list[tuple[re.Pattern[str], str]]:
    """Each note that has placeholders as a pattern, and what it is in that language."""
    return [
        (re.compile(_VALUE.join(map(re.escape, _PLACEHOLDER.split(key)[::2])), re.DOTALL), told)
        for key, told in _read(name)["notes"].items()
        if _PLACEHOLDER.search(key)
    ]


def _translated(text: str) -> str:
    """A note in the language that is spoken; "" where the catalogue does not know it."""
    notes = catalogue("notes")
    if text in notes:
        return notes[text]
    for (pattern, told), key in zip(_patterns(language()), filter(_PLACEHOLDER.search, notes), strict=True):
        if found := pattern.fullmatch(text):
            values = [_translated(value) or value for value in found.groups()]
            return told.format(**dict(zip(_PLACEHOLDER.findall(key), values, strict=True)))
    return ""
