"""Stand-ins for a model: recorded answers, simulated respondents, and the package's own models."""

from collections.abc import Iterable, Mapping
from typing import Any

from bench.core.errors import BadInput, expected


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
