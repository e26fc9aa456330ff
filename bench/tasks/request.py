"""Requests to a model or a judge, and the settings of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# A user's turn, or a conversation that the user begins and ends.
Turns = str | tuple[str, ...]
# Whether generation can stop at a text; None if a reply is generated to its end.
Until = Callable[[str], bool] | None


@dataclass(frozen=True, slots=True)
class Key:
    """The answers of simulated respondents; a real model never sees them.

    Attributes:
        answers: every valid answer, in the order in which they are offered.
        biased: the stereotyped answer; empty if there is none.
        correct: the right answer; empty if no answer is right or wrong.
        rank: for likelihoods, how close the text is to the stereotype, 0 (closest) to 1.
    """

    answers: tuple[str, ...] = ()
    biased: str = ""
    correct: str = ""
    rank: float = 0.0


class AnswerMode(NamedTuple):
    """The request type of a task, and its answer mode: `text`, `letters` or `options`."""

    request_type: str
    name: str = "text"


@dataclass(frozen=True, slots=True)
class Request:
    """One request of one item.

    Attributes:
        request_type: `nll`, `choose`, `generate` or `classify`.
        prompt: the text (nll), the user's turn (choose, generate), or the premise (classify); empty
            if `then` writes it.
        earlier: earlier turns, by user and model in turn (choose, generate).
        hypothesis: the second sentence (classify).
        options: the answers to choose from (choose).
        until: stops generation (generate).
        bos: add a beginning-of-sequence token, also if the tokenizer would not (nll).
        after: name of the request, of the same item and repeat, with the reply that this one needs.
        then: finishes this request with that reply (None if none came); returns None if the request
            cannot be made.
    """

    category: str
    task: str
    item_id: str
    request: str
    request_type: str
    prompt: str
    prompt_version: str
    key: Key
    earlier: tuple[str, ...] = ()
    hypothesis: str = ""
    options: tuple[str, ...] = ()
    max_new_tokens: int = 32
    until: Until = None
    repeat: int = 0
    seed: int = 0
    bos: bool = False
    after: str = ""
    then: Callable[[Request, str | None], Request | None] | None = None

    @property
    def of_judge(self) -> bool:
        """Whether the judge is asked."""
        return of_judge(self.request)

    @property
    def text(self) -> str:
        """All turns, or premise and hypothesis, as one text for the records."""
        if self.request_type == "classify":
            return f"{self.prompt}\n{self.hypothesis}"
        return "\n\n".join([*self.earlier, self.prompt])

    @property
    def turns(self) -> Turns:
        """The prompt, or the conversation that ends with it."""
        return (*self.earlier, self.prompt) if self.earlier else self.prompt


def of_judge(name: str) -> bool:
    """Whether a request of this name is for the judge."""
    return name.partition(":")[0] in ("judge", "order")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a benchmark: its allowed values, the default first.

    Attributes:
        of_data: whether it is a setting of the loader; else of the requests.
        by_preset: values of presets that differ from the default.
        task: the task that it is about; empty for all.
    """

    allowed: tuple[str, ...]
    by_preset: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    of_data: bool = False

    def under(self, preset: str) -> str:
        """Return the default under a preset."""
        return self.by_preset.get(preset, self.allowed[0])
