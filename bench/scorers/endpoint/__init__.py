"""Models behind an OpenAI-compatible server."""

from typing import Any

from bench.scorers.base import Backend, Model
from bench.scorers.endpoint import keys


class Service(Backend):
    """`NAME@URL`; see `bench.scorers.endpoint.scorer`."""

    # The server may not support all of these; we find out when we load it.
    request_types = ("nll", "choose", "generate")
    answer_modes = ("text", "letters")
    takes = ("limits", "keys", "generation")
    stays_here = True

    @classmethod
    def check(cls, name: str) -> None:
        keys.parse(name)

    @classmethod
    def load(cls, name: str, **options: Any) -> Model:
        from bench.scorers.endpoint.scorer import Endpoint  # this imports openai

        return Endpoint(name, **options)
