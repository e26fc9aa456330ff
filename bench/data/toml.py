"""Writing TOML, which the standard library only reads: so that people can read it, and a machine gets back every character."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def written(values: Mapping[str, Any]) -> str:
    """`values` as a TOML document: texts, numbers, truth values, tables, and lists that are of tables or hold none."""
    return "\n".join(_lines("", values)) + "\n"


def _lines(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in values.items() if _is_table(value)}
    # What follows a table's heading belongs to that table, so tables come last.
    yield from (f"{_key(key)} = {_value(value)}" for key, value in values.items() if key not in tables)
    for key, value in tables.items():
        inner = f"{name}.{_key(key)}".lstrip(".")
        heading = f"[{inner}]" if isinstance(value, Mapping) else f"[[{inner}]]"
        for entry in [value] if isinstance(value, Mapping) else value:
            yield f"\n{heading}"
            yield from _lines(inner, entry)


def _is_table(value: Any) -> bool:
    """Whether it is a table, or a list of tables."""
    several = value if isinstance(value, list) and value else [value]
    return all(isinstance(entry, Mapping) for entry in several)


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _escaped(name)


def _value(value: Any) -> str:
    """A text with its lines on lines of their own; anything else as JSON, which TOML agrees with."""
    if not isinstance(value, str) or "\n" not in value:
        return _escaped(value)
    # A text that ends in a backslash before an n is `\\n` here, so the replacement looks at whole escapes.
    body = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[0], _escaped(value)[1:-1])
    return f'"""\n{body}"""'


def _escaped(value: Any) -> str:
    # JSON's strings are TOML's but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
