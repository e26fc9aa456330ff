"""Read prompts from the scripts of a release, by their syntax tree; the scripts are never run."""

import ast
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput
from bench.data.readers import read_bytes, to_toml


@dataclass(frozen=True)
class OfficialPrompts:
    """The prompts in the authors' scripts.

    Attributes:
        version: of the released ones.
        scripts: the names of the scripts, and `expected`, the same in words.
        address: of their download; empty if they come with the data.
        remedy: how to bring them by other means.
        find: finds the scripts in a folder, inside it, or above it too.
        read: reads scripts as TOML.
        choices: names the prompt sets among the tables of that.
    """

    version: str
    scripts: tuple[str, ...]
    expected: str
    address: str
    remedy: str
    find: Callable[[Path, bool], Path | None]
    read: Callable[[Path], str]
    choices: Callable[[Iterable[str]], tuple[str, ...]]


def read_script(path: Path, remedy: str) -> bytes:
    """Read a script; errors end with the remedy."""
    try:
        return read_bytes(path)
    except BadInput as error:
        raise BadInput(f"{error}; {remedy}") from None


def parse_script(path: Path, raw: bytes, remedy: str, encoding: str = "UTF-8") -> ast.Module:
    """Return the syntax tree of a script with the bytes `raw`, whatever encoding it declares."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(raw.decode(encoding).removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        what = f": is not {encoding}, at byte {error.start}"
    except SyntaxError as error:
        what = f", line {error.lineno or 1}: is not Python ({error.msg})"
    except (ValueError, RecursionError, MemoryError) as error:
        what = f": is not Python ({error})"
    raise BadInput(f"{path}{what}; {remedy}")


def summands(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a sum by `+` from left to right; `node` itself if it is not a sum."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            stack += [node.right, node.left]
        else:
            yield node


def escape_braces(text: str) -> str:
    """Return `text` as a part of a template, in which braces mean fields.

    Raises:
        ValueError: it has half a character, which no file can hold.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("expected text, found half a character (a lone surrogate)")
    return text.replace("{", "{{").replace("}", "}}")


def digest(tables: Mapping[str, Any]) -> str:
    """Return the SHA-256 of prompts, without `version` and `source`."""
    prompts = {name: table for name, table in tables.items() if isinstance(table, dict)}
    text = json.dumps(prompts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def prompts_toml(
    about: str, version: str, released: str, source: str, tables: Mapping[str, Any]
) -> str:
    """Write prompts as TOML, below a comment about them.

    Others than those with the digest `released` get `VERSION+changed`.
    """
    shown_version = version if digest(tables) == released else f"{version}+changed"
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    return f"{comment}\n{to_toml({'version': shown_version, 'source': source, **tables})}"
