"""Options of how a language model generates replies, the same for local models and endpoints."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bench.core.errors import BadInput, expected

# Options of the command line that have another name there.
SPELLINGS = {"template_arguments": "--template", "request_fields": "--request-field"}


@dataclass(frozen=True)
class GenerationOptions:
    """How a language model generates replies. By default as the model itself does.

    Attributes:
        temperature: sampling temperature; 0 decodes greedily. Default: that of the model's
            generation configuration or of the server.
        top_p: share of the probability mass to sample from, above 0 and at most 1. Default: as
            for the temperature.
        system: text of a system message at the beginning of every conversation.
        thinking_tokens: tokens for a thought before the reply, in addition to those of the reply;
            0 switches thinking off. Default: thought and reply share the limit of the reply.
        template_arguments: arguments of the chat template, like `{"enable_thinking": False}`; an
            endpoint gets them as `chat_template_kwargs`.
        request_fields: further fields of an endpoint's request, like `{"reasoning_effort": "low"}`.
    """

    temperature: float | None = None
    top_p: float | None = None
    system: str = ""
    thinking_tokens: int | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    request_fields: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> "GenerationOptions":
        """Build the options from a mapping, as a study file or `run.json` has them.

        Raises:
            BadInput: an unknown name, or a value that is out of range.
        """
        for name in given or {}:
            if name not in GENERATION:
                raise BadInput(expected(name, GENERATION, "generation option"))
        options = cls(**dict(given or {}))
        for name in ("temperature", "top_p"):
            value = getattr(options, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadInput(f"{option(name)} {value}: is not a number")
            if not 0 <= value < math.inf:
                raise BadInput(f"{option(name)} {value}: has to be a number of at least 0")
        if options.top_p is not None and not 0 < options.top_p <= 1:
            raise BadInput(f"--top-p {options.top_p}: has to be above 0 and at most 1")
        tokens = options.thinking_tokens
        if tokens is not None and (type(tokens) is not int or tokens < 0):
            raise BadInput(
                f"--thinking-tokens {tokens}: expected a whole number of at least 1, or `off`"
            )
        return options

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as `run.json` keeps them."""
        defaults = asdict(GenerationOptions())
        return {name: value for name, value in vars(self).items() if value != defaults[name]}

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json`; none if all options are the model's own."""
        return {"generation": self.changed()} if self.changed() else {}

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Refuse those options of `names` that were given.

        Raises:
            BadInput: one of them was given.
        """
        for name in names:
            if name in self.changed():
                raise BadInput(f"{option(name)}: {reason}; leave it out")


GENERATION = tuple(attribute.name for attribute in fields(GenerationOptions))


def option(name: str) -> str:
    """Spell an option's name as the command line does."""
    return SPELLINGS.get(name, f"--{name.replace('_', '-')}")
