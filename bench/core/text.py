"""Prepare text of data and models for terminals, pages and tables; records keep it unchanged."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.core.errors import BadInput, quoted

# Control characters, escapes of terminals, changes of direction, halves of characters, codes that
# are no characters, and tags that spell words invisibly; not line breaks and tabs.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Keeps Jupyter and browsers from setting $...$ as mathematics.
PLAIN = "tex2jax_ignore mathjax_ignore"


def repeated(key: str) -> str:
    """Return the message for a key that occurs twice, because one of its values would be lost."""
    return f"the key {quoted(key)} occurs twice; remove one of them"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object of its keys and values."""
    value: dict[str, Any] = {}
    for key, member in pairs:
        if key in value:
            raise BadInput(repeated(key))
        value[key] = member
    return value


# Reads JSON, and refuses objects with a repeated key.
STRICT_JSON = json.JSONDecoder(object_pairs_hook=_distinct)


def reveal_invisible(text: object) -> str:
    """Escape invisible characters: for example \\x1b, or \\u202e for a changed direction."""
    return INVISIBLE.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), str(text))


def read_list(value: object, *, name: str = "value") -> Any:
    """Read a list or a mapping from a text: JSON, or names with commas between them.

    Args:
        value: this text; None is an empty list, and we return other values unchanged.
        name: of the option, for the error message.

    Examples:
        >>> read_list("gender, age")
        ['gender', 'age']
        >>> read_list("simulated:bias=0.2,refuse=0.1,tiny:s")  # the options of a model belong to it
        ['simulated:bias=0.2,refuse=0.1', 'tiny:s']
        >>> read_list('{"limit": 20}')
        {'limit': 20}
    """
    if not isinstance(value, str):
        return [] if value is None else value
    if not value.lstrip().startswith(("[", "{")):
        parts = re.split(r",(?!\s*[\w-]+=)", value)
        return [part.strip() for part in parts if part.strip()]
    try:
        return STRICT_JSON.decode(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    except ValueError:
        raise BadInput(
            f"{name} {quoted(value)}: expected names with commas between them, or JSON like "
            """'["first", "second"]' or '{"name": "value"}'"""
        ) from None


def read_mapping(value: object, *, name: str = "value") -> Mapping[str, Any]:
    """Read a mapping as `read_list` does; anything else is refused.

    Examples:
        >>> read_mapping('{"limit": 20}')
        {'limit': 20}
    """
    values = read_list(value, name=name) or {}
    if not isinstance(values, Mapping):
        example = """{"name": "value"}"""
        raise BadInput(f"{name} {quoted(value)}: expected a mapping, in JSON like '{example}'")
    return values


def whole_characters(text: str) -> str:
    """Join halves of characters (surrogates), and replace those that have lost their other half.

    Halves come from code that cuts or splits an emoji; a file cannot hold them.

    Examples:
        >>> whole_characters("A\\ud83d\\ude00, B\\ud83d") == "A\\U0001f600, B\\ufffd"
        True
    """
    # This calls no method of a subclass of `str`.
    return str.encode(text, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shortened(text: object, limit: int) -> str:
    """Return the first `limit` characters of a text, revealed, and its length."""
    full = str(text)
    if len(full) <= limit:
        return reveal_invisible(full)
    more = f"the first {limit:,} of {len(full):,} characters"
    return f"{reveal_invisible(full[:limit])} … ({more})"


def truncate(text: object, limit: int) -> str:
    """Return the beginning of a text on one line, revealed."""
    full = str(text)
    line = " ".join(full[: 4 * limit].split())
    return reveal_invisible(
        line if len(line) <= limit and len(full) <= 4 * limit else f"{line[:limit]} …"
    )


def distinct_lines(texts: Sequence[str]) -> list[str]:
    """Return one line per text, with its lines that are not common to all texts."""
    lines = [text.splitlines() for text in texts]
    shared = set.intersection(*map(set, lines)) if len(lines) > 1 else set()
    return [" ".join(line for line in text_lines if line not in shared) for text_lines in lines]


def as_html(text: object) -> str:
    """Return a text for HTML, revealed and escaped."""
    return html.escape(reveal_invisible(text))


def as_json(document: str) -> str:
    """Return a JSON document with escapes for invisible characters."""
    return INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], document)


def column(name: str) -> str:
    return name.replace("_", " ")


def sentences(parts: Iterable[str]) -> str:
    return " ".join(filter(None, parts))
