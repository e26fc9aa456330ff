"""The entries of `run.json` that the package reads, their kinds, and their names of earlier."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bench.config import Preset
from bench.core.errors import explained

Texts = dict[str, str]
Count = Annotated[int, Field(ge=0, lt=10**18)]
Time = Annotated[str, AfterValidator(lambda text: text if datetime.fromisoformat(text) else "")]


class _Entries(BaseModel):
    """Entries by name; there can be others, which we only keep."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Asked(_Entries):
    model: str
    judge: str | None
    as_model: str | None = None
    as_judge: str | None = None
    base: str | None = None
    settings: Texts
    prompts: str
    seed: int
    repeats: Count
    generation: dict[str, Any] = {}


class _Layers(_Entries):
    hidden: Count = 0
    layers: Count = 0


class _Base(_Entries):
    id: str
    revision: str


class _Model(_Entries):
    kind: str
    id: str
    parameters: Count | _Layers | None = None
    base: _Base | None = None
    prompted_as: str = ""
    providers: list[str] = []
    system_fingerprints: list[str] = []
    asked_with: Texts = {}
    unsupported: Texts = {}


class _Effect(_Entries):
    category: str
    task: str
    why: str
    items: Count


class _Probed(_Entries):
    language: str
    premise: str
    hypothesis: str
    expected: str
    found: str


class _Data(_Entries):
    folder: str
    found: str
    name: str
    version: str
    licence: str
    note: str
    language: str
    labels: dict[str, Texts]
    sha256: str


class _Prompts(_Entries):
    variant: str
    source: str
    file: str
    foreign: dict[str, list[str]]
    unbiased_instruction: bool


class _RunJson(_Entries):
    benchmark: str
    asked: _Asked
    identity: str
    model: _Model
    judge: _Model | None
    request_types: list[str]
    answer_modes: list[str]
    judge_request_types: list[str]
    answer_mode: Texts
    skipped: Texts
    excluded: list[_Effect]
    modified: list[_Effect]
    probe: list[_Probed]
    requests: Count
    data: _Data
    prompts: _Prompts
    preset: Preset
    name: str | None = None
    packages: Texts
    when: Time
    files: Texts = {}


# Earlier names of entries.
RENAMED = {
    "verbs": "request_types",
    "reads": "answer_modes",
    "judge_verbs": "judge_request_types",
    "read": "answer_mode",
    "left_out": "skipped",
    "unfit": "excluded",
    "touched": "modified",
    "wording": "prompts",
    "wording_hash": "prompts_hash",
    "lacks": "unsupported",
}


def with_names_of_today(metadata: Any) -> Any:
    """Rename the entries of an older `run.json`."""
    if not isinstance(metadata, Mapping):
        return metadata  # which `wrong_entry` explains
    current = _renamed(metadata)
    for name in ("asked", "model", "judge"):
        if isinstance(current.get(name), Mapping):
            current[name] = _renamed(current[name])
    prompts = current.get("prompts")
    if isinstance(prompts, Mapping) and isinstance(prompts.get("foreign"), Mapping):
        current["prompts"] = {**prompts, "foreign": _renamed(prompts["foreign"])}
    return current


def _renamed(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in entries.items()}


def wrong_entry(metadata: Mapping[str, Any]) -> str:
    """Describe the first entry that is missing or of another kind; "" if there is none."""
    try:
        _RunJson.model_validate(metadata)
    except ValidationError as failure:
        first = failure.errors()[0]
        return f"entry `{'.'.join(map(str, first['loc']))}`: {explained(first)}"
    return ""
