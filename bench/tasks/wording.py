"""Wording: the text around an item, read from TOML files with a version, ours or a release's own."""

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.benchmarks import resolve
from bench.errors import BadInput, expected

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Wording:
    """A wording file, and the name of the variant chosen in it (empty where a file is one wording)."""

    path: Path
    version: str
    source: str
    tables: Mapping[str, Any]
    variant: str = ""

    @property
    def label(self) -> str:
        """Version and variant, as records and reports name it."""
        return f"{self.version}#{self.variant}" if self.variant else self.version

    def table(self, name: str) -> Mapping[str, Any]:
        """The table `name` of the file.

        Raises:
            BadInput: the file has no such table.
        """
        if not name:
            raise BadInput(
                f"{self.path}: holds several wordings; choose one as FILE#NAME: {', '.join(self.tables)}"
            )
        value = self.tables.get(name)
        if not isinstance(value, dict):
            raise BadInput(
                f"{self.path}: table [{name}] is missing; found: {', '.join(self.tables) or 'none'}"
            )
        return value

    def prompt(self, name: str, fields: tuple[str, ...]) -> str:
        """The template `prompt` of table `name`, after checking that it uses `fields` and no other.

        Raises:
            BadInput: no prompt, broken braces, a field that is missing or unknown.
        """
        template = self.table(name).get("prompt")
        where = f"{self.path}, table [{name}], `prompt`"
        if not isinstance(template, str):
            raise BadInput(f"{where}: is missing or not a text")
        try:
            pieces = [piece[1:] for piece in string.Formatter().parse(template) if piece[1] is not None]
        except ValueError as error:
            raise BadInput(f"{where}: {error}; a brace that is meant as text is written twice") from None
        used = [field for field, _, _ in pieces]
        for field, spec, conversion in pieces:
            if field not in fields:
                raise BadInput(f"{where}: " + expected(field, fields, "field"))
            if spec or conversion:
                raise BadInput(f"{where}: field {field!r} has a format behind it; write {{{field}}} alone")
        for field in fields:
            if field not in used:
                raise BadInput(f"{where}: field {{{field}}} is missing")
        return template


def load(benchmark: str, choice: str | None = None) -> Wording:
    """The wording for `benchmark`: ours, or `choice`: a variant of ours, `FILE`, or `FILE#VARIANT`.

    Raises:
        BadInput: no such file or variant, or not a wording file.
    """
    own = PROMPTS / f"{resolve(benchmark)}.toml"
    if choice and not choice.partition("#")[0].endswith(".toml"):
        return _read(own, choice)
    path, _, variant = (choice or str(own)).partition("#")
    return _read(Path(path).expanduser(), variant)


def _read(path: Path, variant: str) -> Wording:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such wording file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, not a wording file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not a TOML file ({error})") from None
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    if not isinstance(content.get("version"), str) or not tables:
        raise BadInput(f'{path}: expected `version = "..."` and a table a prompt')
    variant = variant or str(content.get("default", ""))
    if variant and variant not in tables:
        raise BadInput(f"{path}: " + expected(variant, tables, "wording"))
    return Wording(path, content["version"], str(content.get("source", "")), tables, variant)
