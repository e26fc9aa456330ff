"""How an endpoint may be asked: how much at a time, how long an answer may take, how much in all."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from bench.core.errors import BadInput, expected


class Limits(NamedTuple):
    """The limits of an endpoint; a model and a judge have them each.

    Attributes:
        concurrency: so many requests are under way at a time.
        timeout: seconds within which the whole answer to a request has to be there; else it is sent again.
        budget_requests: so many requests are sent, those that are sent again included; then the run ends.
        budget_tokens: so many tokens of prompts and replies, as the server counts them. They are looked at before a
            request is sent, so that those under way may go beyond.
    """

    concurrency: int = 8
    timeout: float = 120.0
    budget_requests: int | None = None
    budget_tokens: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, float | None] | None) -> "Limits":
        """Limits by name, as a study file has them; those that are not given or None stay as they are by default.

        Raises:
            BadInput: an unknown name, or no number above 0.
        """
        for name, value in (given or {}).items():
            if name not in cls._fields:
                raise BadInput(expected(name, cls._fields, "limit"))
            whole = name != "timeout"
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise BadInput(f"{name} {value!r}: is not a {'whole ' if whole else ''}number")
            if not 0 < value < math.inf:
                raise BadInput(
                    f"--{name.replace('_', '-')} {value}: has to be {'at least 1' if whole else 'above 0'}"
                )
        known = {name: value for name, value in (given or {}).items() if value is not None}
        return cls(**known)  # type: ignore[arg-type]
