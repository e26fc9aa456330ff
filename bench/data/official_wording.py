"""Read the prompts of a release from its scripts, by their syntax tree. We never run the scripts.

The commit of a release is pinned, and so is the hash of its prompts: we refuse other prompts.
"""

import ast
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput
from bench.data.readers import read_bytes, to_toml


@dataclass(frozen=True)
class OfficialPrompts:
    """The prompts in the scripts of a release.

    Attributes:
        scripts: the names of the scripts.
        folders: names of their folder.
        address: of their download; empty if they come with the data.
        choices: the names of the prompt sets; none if there is one.
        remedy: how to bring the scripts by other means.
        read: returns the prompts of a folder of scripts as TOML.
    """

    version: str
    scripts: Sequence[str]
    folders: Sequence[str]
    address: str
    choices: Sequence[str]
    remedy: str
    read: Callable[[Path], str]


def find(
    folder: Path, scripts: Sequence[str], folders: Sequence[str] = ("",), above: bool = False
) -> Path | None:
    """Find the folder with all scripts: `folder`, one inside it, or with `above` its parent.

    Args:
        folders: names of the folder of scripts within any of these.
    """
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    places = [folder, *inside, *([folder.parent] if above else [])]
    candidates = [place / name for place in places for name in folders]
    return next((c for c in candidates if all((c / name).is_file() for name in scripts)), None)


def parse_script(path: Path) -> ast.Module:
    """Return the syntax tree of a script in UTF-8, or else in GBK."""
    raw = read_bytes(path)
    try:
        text = raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = raw.decode("gbk")
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(text)


def parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a sum (`+`) of texts and f-strings from left to right."""
    if isinstance(node, ast.BinOp):
        yield from parts(node.left)
        yield from parts(node.right)
    elif isinstance(node, ast.JoinedStr):
        yield from node.values
    else:
        yield node


def template(node: ast.expr, fields: Mapping[str, str]) -> str:
    """Return a sum or f-string as a template with named fields.

    Args:
        fields: names of fields by their expression in the code; others are named as in the code.
    """
    text = ""
    for part in parts(node):
        if isinstance(part, ast.Constant):
            text += str(part.value).replace("{", "{{").replace("}", "}}")
        else:
            code = ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part)
            text += f"{{{fields.get(code, code)}}}"
    return text


def digest(tables: Mapping[str, Any]) -> str:
    """Return the SHA-256 of prompts, without `version` and `source`."""
    prompts = {name: table for name, table in tables.items() if isinstance(table, dict)}
    text = json.dumps(prompts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def prompts_toml(metadata: str, version: str, source: str, tables: Mapping[str, Any]) -> str:
    """Write prompts as TOML, below a comment about them."""
    comment = "".join(f"# {line}\n" for line in metadata.splitlines())
    return f"{comment}\n{to_toml({'version': version, 'source': source, **tables})}"


def other_scripts(scripts: Path, remedy: str) -> BadInput:
    """Return the error of scripts with other prompts than the released ones."""
    return BadInput(f"{scripts}: the prompts in the scripts are not the released ones; {remedy}")
