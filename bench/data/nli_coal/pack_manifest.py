"""The manifest of a language pack, pack.toml: its keys, and which values they may have."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput, expected, plain
from bench.data import readers
from bench.data.dataset import is_language
from bench.data.nli_coal.frames import GENDERS, MATCHES, CaptionFilter, match_of

DESIGNS = ("window", "full")
# Where the frames of a controlled set begin, and how many each word gets (the release's train, dev and test).
SPLITS: Mapping[str, tuple[int, int]] = {"train": (300, 500), "dev": (330, 50), "test": (360, 50)}
# How the release departs from its own scheme; followed only when asked for.
QUIRKS = {
    "longest-occupation": "a row names the longest occupation that its premise holds, which may be one of the frame's",
    "dev-feminine-first": "in the dev sets the feminine row goes first for words that are against the stereotype",
}
# debiaswe's scores: the release takes |s1| < .5 and |s2| > .5 for a stereotype, both strictly.
THRESHOLD = 0.5
# More frames than any set can have.
MOST = 10**9


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_version(value: Any) -> bool:
    # It becomes a part of names of folders and files.
    return (
        _is_text(value)
        and len(value) <= 40
        and all(char.isalnum() or char in ".-" for char in value)
    )


def _is_splits(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        name in SPLITS
        and isinstance(pair, list)
        and [type(one) for one in pair] == [int, int]
        and MOST > pair[0] >= 0 < pair[1] < MOST
        for name, pair in value.items()
    )


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(allowed: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in allowed


# Key to (its test, what it allows), in words.
Rules = Mapping[str, tuple[Callable[[Any], bool], str]]
KEYS: Rules = {
    "language": (is_language, "a language's code of two or three small letters, such as zh"),
    "name": (_is_text, "a text on one line"),
    "licence": (_is_text, "a text on one line"),
    "version": (_is_version, "a text of letters, digits, dots and hyphens, such as 1.0"),
    "match": (_one_of(MATCHES), ", ".join(MATCHES)),
    "verbatim": (_is_bool, "true, false"),
    "design": (_one_of(DESIGNS), ", ".join(DESIGNS)),
    "frames_per_word": (_is_count, f"a whole number from 1, below {MOST:,}"),
    "first": (_one_of(GENDERS[:2]), ", ".join(GENDERS[:2])),
    "definitional": (_is_share, "a number from 0 to 1"),
    "stereotype": (_is_share, "a number from 0 to 1"),
    "shipped": (_is_texts, "a list of words"),
    "trained": (_is_texts, "a list of words"),
    "quirks": (
        lambda value: _is_texts(value) and set(value) <= set(QUIRKS),
        f"a list of {', '.join(QUIRKS)}",
    ),
    "splits": (
        _is_splits,
        f"{', '.join(SPLITS)}, each with [where its frames begin, how many a word gets]",
    ),
    "captions": (lambda value: isinstance(value, Mapping), "a table"),
}
CAPTION_KEYS: Rules = {
    "without": (_is_texts, "a list of words"),
    "blanks": (_is_bool, "true, false"),
    "lower": (_is_bool, "true, false"),
    "determiners": (
        lambda value: isinstance(value, Mapping) and all(map(_is_text, value.values())),
        "a table of words",
    ),
    "end": (lambda value: value == "" or _is_text(value), "a text on one line"),
    "skip_id": (_is_bool, "true, false"),
}
REQUIRED = ("language", "name", "licence", "version")
# Takes what is wrong: a loader refuses it, a checker writes it down and goes on.
Tell = Callable[[str], None]


def refuse(what: str) -> None:
    """Refuse a pack for the first thing that is wrong."""
    raise BadInput(what)


def read_manifest(path: Path, tell: Tell = refuse) -> dict[str, Any]:
    """What a pack's manifest says, by the names of `bench.data.nli_coal.language_pack.Pack`; without what is wrong, which `tell` is told.

    Raises:
        BadInput: not TOML, a key is missing or unknown, or its value is not allowed; unless `tell` goes on.
    """
    try:
        given = readers.read_toml(path)
    except BadInput as error:
        tell(str(error))
        given, missing = {}, []
    else:
        missing = [key for key in REQUIRED if key not in given]
    for key in missing:
        tell(f"{path}: key `{key}` is missing; a pack needs {', '.join(REQUIRED)}")
    found = _checked(path, given, KEYS, "key", tell)
    captions = _checked(path, found.get("captions", {}), CAPTION_KEYS, "key of [captions]", tell)
    found["captions"] = CaptionFilter(**captions)
    found["splits"] = {
        **SPLITS,
        **{name: tuple(pair) for name, pair in found.get("splits", {}).items()},
    }
    return {"match": match_of(found.get("language", "")), **found}


def _checked(
    path: Path, given: Mapping[str, Any], rules: Rules, what: str, tell: Tell
) -> dict[str, Any]:
    found = {}
    for key, value in given.items():
        if key not in rules:
            tell(f"{path}: " + expected(key, rules, what))
            continue
        test, allowed = rules[key]
        if not test(value):
            tell(
                f"{path}, {what} `{key}`: {plain(repr(value))[:80]} is not allowed; expected {allowed}"
            )
            continue
        found[key] = tuple(value) if isinstance(value, list) else value
    return found
