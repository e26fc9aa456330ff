"""Options of how a language model writes its replies, the same for local models and endpoints."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bench.core.errors import BadInput, expected

# How the command line spells the options that it does not call by their own names.
SPELLINGS = {"template_arguments": "--template", "request_fields": "--request-field"}


@dataclass(frozen=True)
class GenerationOptions:
    """How a language model writes its replies. Every default is what the model itself does.

    Attributes:
        temperature: sampling temperature; 0 decodes greedily. None: as the model's generation
            configuration or the server has it.
        top_p: share of the probability mass that is sampled from, above 0 and at most 1. None: as
            for the temperature.
        system: text of a system message at the beginning of every conversation; empty for none.
        thinking_tokens: tokens for a thought before the reply, in addition to those of the reply;
            0 switches thinking off. None: thought and reply share the limit of the reply.
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
        names = [attribute.name for attribute in fields(cls)]
        for name in given or {}:
            if name not in names:
                raise BadInput(expected(name, names, "generation option"))
        options = cls(**dict(given or {}))
        options._check()
        return options

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, as `run.json` keeps them."""
        defaults = GenerationOptions()
        return {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if getattr(self, attribute.name) != getattr(defaults, attribute.name)
        }

    def describe(self) -> dict[str, Any]:
        """Say in `run.json` which options were given; nothing where all are the model's own."""
        return {"generation": self.changed()} if self.changed() else {}

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse those options of `names` that were given; `why` says who cannot follow them.

        Raises:
            BadInput: one of them was given.
        """
        for name in names:
            if name in self.changed():
                raise BadInput(f"{option(name)}: {why}; leave it out")

    def _check(self) -> None:
        for name in ("temperature", "top_p"):
            value = getattr(self, name)
            if value is None:
                continue
            given = f"{option(name)} {value}"
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadInput(f"{given}: is not a number")
            if not math.isfinite(value) or value < 0:
                raise BadInput(f"{given}: has to be a number of at least 0")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise BadInput(f"--top-p {self.top_p}: has to be above 0 and at most 1")
        tokens = self.thinking_tokens
        whole = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0
        if tokens is not None and not whole:
            raise BadInput(
                f"--thinking-tokens {tokens}: expected a whole number of at least 1, or `off`"
            )


GENERATION = tuple(attribute.name for attribute in fields(GenerationOptions))


def option(name: str) -> str:
    """Spell an option's name as the command line does."""
    return SPELLINGS.get(name, f"--{name.replace('_', '-')}")
