"""TOML that nobody vouches for, read within bounds; and written, so that people can read it and no character is lost."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput
from bench.data.text import read_text

# A wording file has some ten thousand bytes, and tables in tables in tables.
MAX_BYTES = 2**20
MAX_DEPTH = 16
# A key of many parts: to read it takes the square of their number in time and memory.
LONG_KEY = re.compile(
    rf"""^[ \t\[]*(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*\.[ \t]*){{{MAX_DEPTH}}}""",
    re.MULTILINE,
)


def read(path: Path) -> dict[str, Any]:
    """What a TOML file says.

    Raises:
        BadInput: it cannot be read, is not TOML, is larger than any of ours, or is nested deeper.
    """
    text = read_text(path, MAX_BYTES)
    long = LONG_KEY.search(text)
    if long:
        line = text.count("\n", 0, long.end()) + 1
        raise BadInput(
            f"{path}, line {line}: a key of more than {MAX_DEPTH} parts; expected few tables in tables"
        )
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML ({error})") from None
    except RecursionError:
        raise BadInput(f"{path}: is nested too deeply; expected few tables in tables") from None
    except ValueError:  # Python refuses to read a number of thousands of digits
        raise BadInput(f"{path}: holds a number of too many digits") from None
    _check(path, found)
    return found


def _check(path: Path, found: dict[str, Any]) -> None:
    """Refuse what TOML's own definition and our files have no use for, and later steps would stumble over.

    Raises:
        BadInput: deep tables, or a number of more than 64 bits.
    """
    level: list[Any] = [found]
    for _ in range(MAX_DEPTH):
        inner = [
            value for one in level for value in (one.values() if isinstance(one, dict) else one)
        ]
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in inner):
            raise BadInput(f"{path}: holds a number of too many digits")
        level = [value for value in inner if isinstance(value, dict | list)]
    if level:
        raise BadInput(
            f"{path}: is nested more than {MAX_DEPTH} deep; expected few tables in tables"
        )


def written(values: Mapping[str, Any]) -> str:
    """`values` as a TOML document: texts, numbers, truth values, tables, and lists that are of tables or hold none."""
    return "\n".join(_lines("", values)) + "\n"


def _lines(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in values.items() if _is_table(value)}
    # What follows a table's heading belongs to that table, so tables come last.
    yield from (
        f"{as_key(key)} = {_value(value)}" for key, value in values.items() if key not in tables
    )
    for key, value in tables.items():
        inner = f"{name}.{as_key(key)}".lstrip(".")
        heading = f"[{inner}]" if isinstance(value, Mapping) else f"[[{inner}]]"
        for entry in [value] if isinstance(value, Mapping) else value:
            yield f"\n{heading}"
            yield from _lines(inner, entry)


def _is_table(value: Any) -> bool:
    """Whether it is a table, or a list of tables."""
    several = value if isinstance(value, list) and value else [value]
    return all(isinstance(entry, Mapping) for entry in several)


def as_key(name: str) -> str:
    """A key as TOML writes it: in quotes where it holds anything but plain letters, digits, `_` and `-`."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _escaped(name)


def _value(value: Any) -> str:
    """A text with its lines on lines of their own; anything else as JSON, which TOML agrees with."""
    if not isinstance(value, str) or "\n" not in value:
        return _escaped(value)
    # A text that ends in a backslash before an n is `\\n` here, so the replacement looks at whole escapes.
    body = re.sub(
        r"\\(.)", lambda found: "\n" if found[1] == "n" else found[0], _escaped(value)[1:-1]
    )
    return f'"""\n{body}"""'


def _escaped(value: Any) -> str:
    # JSON's strings are TOML's but for DEL.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
