"""Names of models, in tables and as folders, and parameters in them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PureWindowsPath
from typing import Any

from bench.core.errors import BadInput, expected
from bench.scorers.base import digest
from bench.scorers.local import hub


def short_name(model: str) -> str:
    """Shorten a model's name to its last part, and a commit in it to its first digits."""
    if reference := hub.parse(model):
        name, revision = reference
        if not revision:
            return name.rpartition("/")[2]
        revision = revision[:7] if hub.COMMIT.fullmatch(revision) else revision
        return f"{name.rpartition('/')[2]}@{revision}"
    if model.partition(":")[0] in ("tiny", "simulated", "openai"):
        return model.partition("@")[0]
    return PureWindowsPath(model).name.removesuffix(".gguf").removesuffix(".jsonl")


def path_slug(model: str) -> str:
    """Turn a model's name into the name of a folder."""
    name = re.sub(r"[^\w.,=+-]+", "_", model).strip("._") or "model"
    return name if len(name) <= 80 else f"{name[-72:]}-{digest(model)[:7]}"


def parse_parameters(
    model: str, parts: Iterable[str], defaults: Mapping[str, float | str]
) -> dict[str, Any]:
    """Read parts like `bias=0.7` over `defaults`, with the same types; floats are rates."""
    values: dict[str, Any] = dict(defaults)
    for part in parts:
        name, equals, value = part.partition("=")
        if name not in defaults or not equals:
            raise BadInput(f"model {model}: " + expected(name, defaults, "parameter"))
        try:
            values[name] = type(defaults[name])(value)
        except ValueError:
            raise BadInput(f"model {model}: {name}={value!r} is not a number") from None
        if isinstance(values[name], float) and not 0 <= values[name] <= 1:
            raise BadInput(f"model {model}: {name}={value} is outside 0 to 1")
    return values
