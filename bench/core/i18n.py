"""The interface language of pages, tables and pictures: English as in the code, or Chinese.

_("n = {n}", n=12)            # in the language that $BENCH_LANGUAGE names; English by default
with use_language("zh"): ...  # also in the processes that are started in the block

The English text is the key, so a text without a translation stays English. Translations are in
`bench/locale/LANGUAGE/LC_MESSAGES/bench.po`, the format of gettext, and a test compares them with
the texts in the code. Mark a text that is stored now and translated later with `N_(...)`.
Data are always English: column names, notes and names of metrics in files.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bench.core.errors import BadInput, expected

LOCALE = Path(__file__).parents[1] / "locale"
LANGUAGES = ("en", "zh")
ENVIRONMENT = "BENCH_LANGUAGE"
# Names of the languages in HTML.
TAGS = {"en": "en", "zh": "zh-CN"}
# Contexts of the catalogue; all other texts have none.
COLUMN, NOTEBOOK, PROSE, NOTE = "column", "notebook", "prose", "note"
# English headings of columns whose names are codes.
HEADINGS = {
    "p_adjusted": "adjusted p",
    "p_holm": "adjusted p",
    "p_items": "p over items",
    "per_doubling": "change per doubling",
}
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
# The value of a placeholder in a note: anything but the end of the note.
_VALUE = "((?:(?!; ).)+?)"


def language() -> str:
    """Return the interface language, `en` or `zh`."""
    return check(os.environ.get(ENVIRONMENT) or LANGUAGES[0])


def check(name: str) -> str:
    """Return `name` if it is an interface language."""
    if name not in LANGUAGES:
        raise BadInput(expected(name, LANGUAGES, "language"))
    return name


@contextmanager
def use_language(name: str) -> Iterator[None]:
    """Set the interface language of this process, and of those that it starts, for a block."""
    before = os.environ.get(ENVIRONMENT, "")
    os.environ[ENVIRONMENT] = check(name)
    try:
        yield
    finally:
        os.environ[ENVIRONMENT] = before


def tag() -> str:
    """Return the interface language as HTML names it, like `zh-CN`."""
    return TAGS[language()]


def _(text: str, /, **values: object) -> str:
    """Translate `text` into the interface language and fill in its placeholders."""
    translation = catalogue().get(text, text)
    return translation.format(**values) if values else translation


def N_(text: str) -> str:
    """Mark `text` for translation and return it as it is."""
    return text


def column(name: str) -> str:
    """Return the heading of a table's column."""
    return catalogue(COLUMN).get(name) or HEADINGS.get(name) or name.replace("_", " ")


def notebook(name: str) -> str:
    """Return a notebook's name for the navigation."""
    title = name.replace("_", " ")
    return catalogue(NOTEBOOK).get(title) or title.capitalize()


def prose(text: str) -> str:
    """Translate the text of a notebook, paragraph by paragraph; the unknown ones stay English."""
    known = catalogue(PROSE)
    if not known:
        return text
    return "\n\n".join(known.get(part.strip(), part) for part in text.split("\n\n"))


def sentences(parts: Iterable[str]) -> str:
    """Join sentences, with a space between them where the language has one."""
    return ("" if language() == "zh" else " ").join(filter(None, parts))


def note(text: str) -> str:
    """Translate the note of a score, which is data and so English.

    A note can hold several, joined by semicolons, and a semicolon can be part of one: the longest
    known ones are taken.
    """
    if language() == LANGUAGES[0] or not text:
        return text
    parts, translated, start = text.split("; "), [], 0
    while start < len(parts):
        for end in range(len(parts), start, -1):
            translation = _translate_note("; ".join(parts[start:end]))
            if translation:
                break
        translated.append(translation or parts[start])
        start = end if translation else start + 1
    return "；".join(translated)


def catalogue(context: str | None = None) -> dict[str, str]:
    """Return the translations in a context into the interface language; empty for English."""
    return {} if language() == LANGUAGES[0] else _read(language()).get(context, {})


@cache
def _read(name: str) -> dict[str | None, dict[str, str]]:
    """Read the catalogue of a language, by context."""
    from babel.messages.pofile import read_po

    texts: dict[str | None, dict[str, str]] = {}
    with (LOCALE / name / "LC_MESSAGES" / "bench.po").open("rb") as stream:
        for message in filter(lambda message: message.id, read_po(stream)):
            texts.setdefault(message.context, {})[str(message.id)] = str(message.string)
    return texts


@cache
def _patterns(name: str) -> list[tuple[re.Pattern[str], list[str], str]]:
    """Return each note with placeholders as a pattern, with their names and its translation."""
    return [
        (
            re.compile(_VALUE.join(map(re.escape, _PLACEHOLDER.split(key)[::2])), re.DOTALL),
            _PLACEHOLDER.findall(key),
            text,
        )
        for key, text in _read(name)[NOTE].items()
        if _PLACEHOLDER.search(key)
    ]


def _translate_note(text: str) -> str:
    """Translate one note; return "" if the catalogue does not have it."""
    if translation := catalogue(NOTE).get(text):
        return translation
    for pattern, names, translation in _patterns(language()):
        if match := pattern.fullmatch(text):
            values = [_translate_note(value) or value for value in match.groups()]
            return translation.format(**dict(zip(names, values, strict=True)))
    return ""
