"""Prompt sets: the texts around an item, read from versioned TOML files."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import BadInput, expected, quoted
from bench.data import readers, user_folder
from bench.data.manifest import PROMPTS_FILE, is_language, own_prompts
from bench.data.readers import as_path

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark

# The released prompt set. We have this after `bench fetch`.
OFFICIAL = "official"
# Ours, also for data that bring their own.
OURS = "ours"
# The language of the released prompt sets; their files do not name it.
RELEASED_IN = ("zh",)
# The language of our NLI-CoAL prompt for pairs in a language that has none.
INSTEAD = "en"
LONGEST = 200


@dataclass(frozen=True)
class PromptSet:
    """A file of prompts, and the variant that was chosen in it.

    Attributes:
        tables: the file's tables, with the variant's in their place.
        variant: empty if the file is one prompt set.
        languages: codes of the languages that the file names; empty if it names none.
    """

    path: Path
    version: str
    source: str
    tables: Mapping[str, Any]
    variant: str = ""
    languages: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Version and variant, as in records and reports."""
        return f"{self.version}#{self.variant}" if self.variant else self.version

    @property
    def unbiased_instruction(self) -> bool:
        """Whether the variant's prompts ask for an unbiased answer."""
        names = [name for name in self.tables if f"{name}-".startswith(f"{self.variant}-")]
        return bool(self.variant) and any(
            self.tables[name].get("unbiased_instruction") for name in names
        )

    def table(self, name: str) -> Mapping[str, Any]:
        """Return a table of the file; a dot leads into a table in a table."""
        names = ", ".join(self.tables) or "none"
        if not name:
            raise BadInput(
                f"{self.path}: holds several prompt sets; choose one as FILE#NAME: {names}"
            )
        value: Any = self.tables
        # A variant's name may hold a dot, like `gpt-3.5`.
        for part in [name] if name in self.tables else name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            raise BadInput(f"{self.path}: table [{name}] is missing; found: {names}")
        return value

    def prompt(self, name: str, fields: tuple[str, ...], optional: tuple[str, ...] = ()) -> str:
        """Return the template `prompt` of a table; it uses all `fields`, perhaps `optional`."""
        template = self.table(name).get("prompt")
        where = f"{self.path}, table [{name}], `prompt`"
        if not isinstance(template, str):
            raise BadInput(f"{where}: is missing or not a text")
        try:
            pieces = list(string.Formatter().parse(template))
        except ValueError as error:
            raise BadInput(f"{where}: {error}; write a brace that is text twice") from None
        for _text, field, spec, conversion in pieces:
            if field is not None and field not in fields + optional:
                raise BadInput(f"{where}: " + expected(field, fields + optional, "field"))
            if spec or conversion:
                raise BadInput(f"{where}: field {field!r} has a format; write {{{field}}} alone")
        for field in fields:
            if field not in [piece[1] for piece in pieces]:
                raise BadInput(f"{where}: field {{{field}}} is missing")
        return template


def load(benchmark: "Benchmark", choice: str | None = None, data: Path | None = None) -> PromptSet:
    """Load a prompt set: by default the data's own, else ours.

    Args:
        choice: `ours`, `official`, `FILE` or `FILE#VARIANT`, or a variant of the data's own prompt
            set if that has it, else of ours.
        data: folder of the data set, which may have its own or the released prompt set.
    """
    ours = benchmark.metadata.prompts
    brought = own_prompts(data) if data else None
    name, _, variant = (choice or "").partition("#")
    if name == OFFICIAL:
        # They are next to the data, or in the user's folder.
        places = [data] if data and not brought else []
        for folder in (*places, user_folder() / benchmark.name):
            path = folder / PROMPTS_FILE
            if path.is_file() and own_prompts(folder) is None:
                return _read(path, variant, RELEASED_IN)
        raise BadInput(
            f"{path}: the released prompts are missing; `bench fetch {benchmark.name}` brings "
            "them, or give --prompts FILE"
        )
    if name.endswith(".toml"):
        return _read(as_path(name), variant)
    if name == OURS:
        return _read(ours, variant)
    if brought:
        content = readers.read_toml(brought) if choice else {}
        variants = content.get("variants", content)
        if not choice or (isinstance(variants, dict) and choice in variants):
            return _read(brought, choice or "")
    return _read(ours, choice or "")


def foreign(
    benchmark: "Benchmark", prompts: PromptSet, language: str, categories: Sequence[str]
) -> dict[str, list[str]]:
    """Return the languages of data and prompts, as `data` and `prompts`, if they differ.

    Args:
        language: codes of the data's languages with commas, from their manifest; the release's if
            empty.
        categories: the categories that are asked in words.
    """
    theirs = language or benchmark.metadata.language
    if not prompts.languages or not categories:
        return {}
    if not benchmark.metadata.language:  # each category is a language; English is a fallback
        lacking = [code for code in categories if code not in prompts.tables]
        return {"data": lacking, "prompts": [INSTEAD]} if lacking else {}
    spoken = [code.strip() for code in theirs.split(",")]
    if set(spoken) & set(prompts.languages):
        return {}
    return {"data": spoken, "prompts": list(prompts.languages)}


def _read(path: Path, variant: str, languages: tuple[str, ...] = ()) -> PromptSet:
    content = readers.read_toml(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    version = content.get("version")
    # We show the version in terminals and pages, and it is in every record.
    is_line = str(version).isprintable() and 0 < len(str(version)) <= LONGEST
    if not isinstance(version, str) or not is_line or not tables:
        raise BadInput(
            f'{path}: expected `version = "..."`, a line of at most {LONGEST} characters, and a '
            "table a prompt"
        )
    if "language" in content:
        languages = tuple(code.strip() for code in str(content["language"]).split(","))
        if not all(map(is_language, languages)):
            raise BadInput(
                f"{path}, key `language`: {quoted(content['language'])} is not allowed; expected "
                "codes of languages such as zh, separated by commas"
            )
    variant = variant or str(content.get("default", ""))
    # A file is a list of prompt sets, or one prompt set with variants that replace some tables.
    variants = tables.pop("variants", None)
    choices = tables
    if variants is not None:
        choices = {name: table for name, table in variants.items() if isinstance(table, dict)}
    # A prompt set may be there once per task, as NAME-TASK.
    by_task = variants is None and any(name.startswith(f"{variant}-") for name in tables)
    if variant and variant not in choices and not by_task:
        raise BadInput(f"{path}: " + expected(variant, choices, "prompt set"))
    if variant and variants is not None:
        tables = _over(tables, choices[variant])
    return PromptSet(path, version, str(content.get("source", "")), tables, variant, languages)


def _over(tables: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables; `other` takes precedence, table by table."""
    return {
        name: _over(tables[name], value)
        if isinstance(value, dict) and isinstance(tables.get(name), dict)
        else value
        for name, value in {**tables, **other}.items()
    }
