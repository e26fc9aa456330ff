"""Read the prompts of a release from its scripts, by their syntax tree. We never run the scripts.

The commit of a release is pinned, and so is the hash of its prompts: we refuse other prompts.
"""

import ast
import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from bench.core.errors import BadInput
from bench.data.readers import read_bytes, to_toml


@dataclass
class OfficialPrompts:
    """The prompts in the scripts of a release.

    Attributes:
        source: the repository and commit of the scripts.
        scripts: the names of the scripts.
        address: of their download; empty if they come with the data.
        choices: the names of the prompt sets; none if there is one.
        remedy: how to bring the scripts by other means.
        comment: about the prompts.
        tables: returns the prompts of a folder of scripts.
        sha256: the hash of the released prompts, see `digest`.
    """

    version: str
    source: str
    scripts: Sequence[str]
    address: str
    choices: Sequence[str]
    remedy: str
    comment: str
    tables: Callable[[Path], Mapping[str, Any]]
    sha256: str

    def find(self, folder: Path) -> Path | None:
        """Find the folder of the scripts within a folder, or beside it."""
        first = self.scripts[0]
        beside = [*folder.parent.glob(first), *sorted(folder.parent.glob(f"*/{first}"))]
        for path in [*sorted(folder.rglob(first)), *beside]:
            root = path.parents[len(PurePath(first).parts) - 1]
            if all((root / script).is_file() for script in self.scripts):
                return root
        return None

    def read(self, scripts: Path) -> str:
        """Write the prompts of a folder of scripts as TOML.

        Raises:
            BadInput: these are not the released scripts.
        """
        try:
            tables = self.tables(scripts)
            is_released = digest(tables) == self.sha256
        except (LookupError, ValueError, SyntaxError):
            is_released = False
        if not is_released:
            raise BadInput(
                f"{scripts}: the prompts in the scripts are not the released ones; {self.remedy}"
            )
        comment = "".join(f"# {line}\n" for line in self.comment.splitlines())
        return comment + "\n" + to_toml({"version": self.version, "source": self.source, **tables})


def parse_script(path: Path) -> ast.Module:
    """Return the syntax tree of a script in UTF-8, or else in GBK."""
    raw = read_bytes(path)
    try:
        text = raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = raw.decode("gbk")
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(text)


def template(node: ast.expr, fields: Mapping[str, str]) -> str:
    """Return a sum (`+`) of texts or an f-string as a template with named fields.

    Args:
        fields: names of fields by their expression in the code; others are named as in the code.
    """
    if isinstance(node, ast.BinOp):
        return template(node.left, fields) + template(node.right, fields)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part, fields) for part in node.values)
    if isinstance(node, ast.Constant):
        return str(node.value).replace("{", "{{").replace("}", "}}")
    code = ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)
    return f"{{{fields.get(code, code)}}}"


def digest(tables: Mapping[str, Any]) -> str:
    """Return the SHA-256 of prompts, without `version` and `source`."""
    prompts = {name: table for name, table in tables.items() if isinstance(table, dict)}
    text = json.dumps(prompts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
