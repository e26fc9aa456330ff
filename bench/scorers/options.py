"""Options of language models: how they generate replies, and the limits of endpoints."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, Self

from bench.core.errors import BadInput, expected
from bench.scorers.budget import Budget

# Options of the command line that have another name there.
SPELLINGS = {"template_arguments": "--template", "request_fields": "--request-field"}
# The types of numbers, whether they may be 0, and the largest.
NUMBERS: dict[str, tuple[Any, bool, float]] = {
    "temperature": (int | float, True, math.inf),
    "top_p": (int | float, False, 1),
    "thinking_tokens": (int, True, math.inf),
    "concurrency": (int, False, math.inf),
    "timeout": (int | float, False, math.inf),
    "budget_requests": (int, False, math.inf),
    "budget_tokens": (int, False, math.inf),
}


@dataclass(frozen=True)
class GenerationOptions:
    """How a language model generates replies, by default as the model itself does.

    `bench.config.RunConfig` says what each option is. 0 `thinking_tokens` switch thinking off.
    """

    temperature: float | None = None
    top_p: float | None = None
    system: str = ""
    thinking_tokens: int | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    request_fields: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Self:
        """Build the options from a mapping, as a study file or `run.json` has them."""
        return cls(**_checked(given, GENERATION, "generation option"))

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as `run.json` keeps them."""
        defaults = asdict(GenerationOptions())
        return {name: value for name, value in vars(self).items() if value != defaults[name]}

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json`; none if all options are the model's own."""
        return {"generation": self.changed()} if self.changed() else {}

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Raise BadInput if one of `names` was given."""
        for name in names:
            if name in self.changed():
                raise BadInput(f"{option(name)}: {reason}; leave it out")


GENERATION = tuple(attribute.name for attribute in fields(GenerationOptions))


class Limits(NamedTuple):
    """The limits of an endpoint; a run's model and judge share its budgets.

    Attributes:
        concurrency: concurrent requests.
        timeout: seconds for the complete answer to a request; then it is sent again.
        budget_requests: requests to send, repeated ones included; then the run ends.
        budget_tokens: tokens of prompts and replies, as the server counts them; then no more
            requests are sent. Those under way may exceed it.
        budgets: those from which requests are taken; by default one of the numbers above.
    """

    concurrency: int = 8
    timeout: float = 120.0
    budget_requests: int | None = None
    budget_tokens: int | None = None
    budgets: tuple[Budget, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, owner: str = "", places: int = 1) -> Self:
        """Build limits by name, as a study file has them; None stands for the default.

        Args:
            owner, places: of the budget; see `Budget`.
        """
        numbers = dict(given or {})
        # A study file cannot name them: what it has is never a tuple.
        budgets = numbers.pop("budgets") if isinstance(numbers.get("budgets"), tuple) else ()
        limits = cls(**_checked(numbers, cls._fields[:-1], "limit"))
        most = limits.budget_requests, limits.budget_tokens
        if not budgets and most != (None, None):
            budgets = (Budget(*most, owner, places),)
        return limits._replace(budgets=budgets)


def option(name: str) -> str:
    """Spell an option's name as the command line does."""
    return SPELLINGS.get(name, f"--{name.replace('_', '-')}")


def _checked(given: Mapping[str, Any] | None, allowed: tuple[str, ...], kind: str) -> Any:
    """Return the options that are given, after a check of names and numbers."""
    values = {name: value for name, value in (given or {}).items() if value is not None}
    for name in given or {}:
        if name not in allowed:
            raise BadInput(expected(name, allowed, kind))
    for name, (types, zero, largest) in NUMBERS.items():
        if name not in values:
            continue
        value, is_int = values[name], types is int
        if isinstance(value, bool) or not isinstance(value, types):
            raise BadInput(f"{option(name)} {value!r}: is not a {'whole ' * is_int}number")
        above_least = value >= 0 if zero else value > 0
        if not (above_least and value <= largest and value < math.inf):
            least = "at least 0" if zero else "at least 1" if is_int else "above 0"
            most = f" and at most {largest:g}" if largest < math.inf else ""
            off = ", or `off`" if name == "thinking_tokens" else ""
            raise BadInput(f"{option(name)} {value}: has to be {least}{most}{off}")
    return values
