"""Limits of an endpoint: concurrent requests, time for an answer, and a budget."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from bench.core.errors import BadInput, expected


class Limits(NamedTuple):
    """The limits of an endpoint; a model and a judge have their own.

    Attributes:
        concurrency: concurrent requests.
        timeout: seconds for the complete answer to a request; then it is sent again.
        budget_requests: requests to send, repeated ones included; then the run ends.
        budget_tokens: tokens of prompts and replies, as the server counts them; then no more
            requests are sent. Those under way may exceed it.
    """

    concurrency: int = 8
    timeout: float = 120.0
    budget_requests: int | None = None
    budget_tokens: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, float | None] | None) -> "Limits":
        """Build limits by name, as a study file has them; None stands for the default.

        Raises:
            BadInput: an unknown name, or no number above 0.
        """
        known = {name: value for name, value in (given or {}).items() if value is not None}
        for name in given or {}:
            if name not in cls._fields:
                raise BadInput(expected(name, cls._fields, "limit"))
        for name, value in known.items():
            number, least = (
                ("number", "above 0") if name == "timeout" else ("whole number", "at least 1")
            )
            types = int | float if name == "timeout" else int
            if isinstance(value, bool) or not isinstance(value, types):
                raise BadInput(f"{name} {value!r}: is not a {number}")
            if not 0 < value < math.inf:
                raise BadInput(f"--{name.replace('_', '-')} {value}: has to be {least}")
        return cls(**known)  # type: ignore[arg-type]
