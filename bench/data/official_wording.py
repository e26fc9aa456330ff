"""What reading a wording from a release's scripts has in common: by the syntax tree, so that nothing is ever run."""

import ast
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput
from bench.data import readers
from bench.data.readers import read_bytes

# The scripts have a few thousand.
SCRIPT_BYTES = 2**20


def read_script(path: Path, remedy: str) -> bytes:
    """The bytes of a script.

    Raises:
        BadInput: it cannot be read.
    """
    if path.exists() and not path.is_file():  # a pipe would never end
        raise BadInput(f"{path}: cannot be read (it is no file); {remedy}")
    try:
        return read_bytes(path, SCRIPT_BYTES)
    except BadInput as error:
        raise BadInput(f"{error}; {remedy}") from None


def parse_script(path: Path, raw: bytes, remedy: str, encoding: str = "UTF-8") -> ast.Module:
    """The syntax tree of the script `path`, which holds `raw`; an encoding that the script names itself is not looked at.

    Raises:
        BadInput: not in this encoding, or not Python.
    """
    try:
        source = raw.decode(encoding).removeprefix("\ufeff")
        with warnings.catch_warnings():
            # Of an odd escape in a foreign script, nobody needs to hear.
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is not {encoding}, at byte {error.start}; {remedy}") from None
    except SyntaxError as error:
        raise BadInput(
            f"{path}, line {error.lineno or 1}: is not Python ({error.msg}); {remedy}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"{path}: is not Python ({error}); {remedy}") from None


def summands(node: ast.expr) -> Iterator[ast.expr]:
    """What `node` adds up by `+`, from left to right; `node` alone where it is no sum."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left += [node.right, node.left]
        else:
            yield node


def escape_braces(text: str) -> str:
    """`text` as it stands in a template, where braces have a meaning.

    Raises:
        ValueError: half a character, which cannot be written down.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("expected text, found half a character (a lone surrogate)")
    return text.replace("{", "{{").replace("}", "}}")


def show_code(node: ast.AST) -> str:
    """A piece of a script on one line, cut where it is long."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):  # f-strings that cannot be written back
        text = type(node).__name__
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def digest(tables: Mapping[str, Any]) -> str:
    """SHA-256 over the wording, whichever way its file is laid out; `version` and `source` are left out."""
    wording = {name: table for name, table in tables.items() if isinstance(table, dict)}
    return hashlib.sha256(
        json.dumps(wording, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def prompts_toml(
    about: str, version: str, released: str, source: str, tables: Mapping[str, Any]
) -> str:
    """A wording file. Tables with another digest than `released` do not bear the release's version."""
    told = version if digest(tables) == released else f"{version}+changed"
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    return f"{comment}\n{readers.to_toml({'version': told, 'source': source, **tables})}"
