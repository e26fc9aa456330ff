"""Check the content of `run.json`: kinds of entries, older names, the hash and the identity."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from bench.config import Preset
from bench.core.errors import explained
from bench.scorers import split_kind
from bench.scorers.base import digest

# The entry with the hash of the other entries.
HASH = "hash"
# The kinds of models that are files; "" is the kind of checkpoints.
KINDS_OF_FILES = ("", "replay", "predictions")
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


def read(content: Any) -> dict[str, Any]:
    """Check the content of a `run.json`, and give its entries the names of today.

    Raises:
        ValueError: an entry is missing or of another kind, or was changed since we wrote it.
    """
    metadata = _with_names_of_today(content)
    try:
        ENTRIES.model_validate(metadata)
    except ValidationError as failure:
        first = failure.errors()[0]
        entry = ".".join(map(str, first["loc"]))
        raise ValueError(f"entry `{entry}`: {explained(first)}") from None
    # Runs of version 0.2 have no hash.
    metadata.pop(HASH, None)
    hash, now = content.pop(HASH, ""), digest(content)
    benchmark, asked = content["benchmark"], content["asked"]
    # Earlier versions identified files by their paths, and recorded half of the hash.
    identities = identity(benchmark, asked), digest([benchmark, asked])
    is_ours = any(text.startswith(content["identity"]) for text in identities)
    if hash not in ("", now) or not is_ours:
        raise ValueError("its content was changed")
    return {**metadata, "identity": identity(benchmark, metadata["asked"])}


def _with_names_of_today(entries: Any) -> Any:
    """Rename the entries of an older `run.json`."""
    if not isinstance(entries, Mapping):
        return entries  # which `ENTRIES` refuses
    renamed = {RENAMED.get(name, name): value for name, value in entries.items()}
    for name in RENAMED_WITHIN & renamed.keys():
        renamed[name] = _with_names_of_today(renamed[name])
    return renamed


def identity(benchmark: str, asked: Mapping[str, Any]) -> str:
    """Hash what decides the requests and the answers; files count by content, not by path."""
    roles = [role for role in ("model", "judge", "base") if file_hash(asked, role)]
    return digest([benchmark, {**asked, **{role: split_kind(asked[role])[0] for role in roles}}])


def file_hash(asked: Mapping[str, Any], role: str) -> str:
    """Return the hash of a model that is a file or a folder; "" for other models."""
    is_file = split_kind(asked.get(role) or "")[0] in KINDS_OF_FILES
    return (is_file and asked.get(f"{role}_content")) or ""
