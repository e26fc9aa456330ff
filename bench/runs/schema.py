"""The entries of `run.json` that we read, their kinds, and their names in older versions."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from bench.config import Preset
from bench.core.errors import explained

Texts = dict[str, str]
Count = Annotated[int, Field(ge=0, lt=10**18)]
Time = Annotated[str, AfterValidator(lambda text: text if datetime.fromisoformat(text) else "")]


def _mapping(optional: Mapping[str, Any] | None = None, **required: Any) -> Any:
    """Describe a mapping by the kinds of its entries; other entries are kept as they are."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in required.items()}
    fields |= {name: (kind, None) for name, kind in (optional or {}).items()}
    return create_model("Entries", __config__=ConfigDict(strict=True, extra="allow"), **fields)


ASKED = _mapping(
    {"as_model": str | None, "as_judge": str | None, "base": str | None, "generation": dict},
    model=str,
    judge=str | None,
    settings=Texts,
    prompts=str,
    seed=int,
    repeats=Count,
)
MODEL = _mapping(
    {
        "parameters": Count | _mapping({"hidden": Count, "layers": Count}) | None,
        "base": _mapping(id=str, revision=str) | None,
        "prompted_as": str,
        "providers": list[str],
        "system_fingerprints": list[str],
        "asked_with": Texts,
        "unsupported": Texts,
    },
    kind=str,
    id=str,
)
EFFECT = _mapping(category=str, task=str, why=str, items=Count)
PROBED = _mapping(language=str, premise=str, hypothesis=str, expected=str, found=str)
DATA = _mapping(
    folder=str,
    found=str,
    name=str,
    version=str,
    licence=str,
    note=str,
    language=str,
    labels=dict[str, Texts],
    sha256=str,
)
PROMPTS = _mapping(
    variant=str,
    source=str,
    file=str,
    foreign=dict[str, list[str]],
    unbiased_instruction=bool,
)
ENTRIES: type[BaseModel] = _mapping(
    {"name": str | None, "files": Texts},
    benchmark=str,
    asked=ASKED,
    identity=str,
    model=MODEL,
    judge=MODEL | None,
    request_types=list[str],
    answer_modes=list[str],
    judge_request_types=list[str],
    answer_mode=Texts,
    skipped=Texts,
    excluded=list[EFFECT],  # type: ignore[valid-type]
    modified=list[EFFECT],  # type: ignore[valid-type]
    probe=list[PROBED],  # type: ignore[valid-type]
    requests=Count,
    data=DATA,
    prompts=PROMPTS,
    preset=Preset,
    packages=Texts,
    when=Time,
)

# Names of entries in older versions, and the names of today.
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
# The mappings that have such entries.
RENAMED_WITHIN = {"asked", "model", "judge", "prompts", "foreign"}


def with_names_of_today(entries: Any) -> Any:
    """Rename the entries of an older `run.json`."""
    if not isinstance(entries, Mapping):
        return entries  # which `wrong_entry` explains
    renamed = {RENAMED.get(name, name): value for name, value in entries.items()}
    for name in RENAMED_WITHIN & renamed.keys():
        renamed[name] = with_names_of_today(renamed[name])
    return renamed


def wrong_entry(metadata: Mapping[str, Any]) -> str:
    """Describe the first entry that is missing or of another kind; "" if there is none."""
    try:
        ENTRIES.model_validate(metadata)
    except ValidationError as failure:
        first = failure.errors()[0]
        return f"entry `{'.'.join(map(str, first['loc']))}`: {explained(first)}"
    return ""
