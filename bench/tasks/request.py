"""What is asked: one request of the model or of the judge, named as in the records; and what can be set about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# A user's turn; or a conversation of turns by user and model, which the user begins and ends.
Turns = str | tuple[str, ...]
# Whether a reply in the making says enough already; None where it is to be written to its end.
Until = Callable[[str], bool] | None


@dataclass(frozen=True, slots=True)
class Key:
    """What respondents of known character answer; a simulated respondent reads it, a real model never sees it.

    Attributes:
        answers: every answer that counts as one, in the order in which they are offered.
        biased: the answer that follows the stereotype, empty where none does.
        correct: the right answer, empty where no answer is right or wrong.
        rank: for likelihoods, how close the text is to the stereotype, 0 (closest) to 1.
    """

    answers: tuple[str, ...] = ()
    biased: str = ""
    correct: str = ""
    rank: float = 0.0


class Way(NamedTuple):
    """How a task is asked: by which verb, and how a choice is read (`text`, `letters` or `options`)."""

    verb: str
    read: str = "text"


@dataclass(frozen=True, slots=True)
class Request:
    """One request of one item.

    Attributes:
        verb: `nll`, `choose`, `generate` or `classify`.
        prompt: the text (nll), the user turn (choose, generate), or the premise (classify); empty until `then` writes it.
        earlier: what was said before the prompt, user and model by turns, the user first (choose, generate).
        hypothesis: the second sentence (classify).
        options: what to choose from (choose).
        until: whether a reply in the making says enough already; None where it is to be written to its end (generate).
        bos: put a beginning-of-sequence token before the text, also where the tokenizer would not (nll).
        after: name of the request, of the same item and repeat, whose reply this one needs; empty where it needs none.
        then: this request finished, given that reply (None where none came), or None where it cannot be asked.
    """

    category: str
    task: str
    item_id: str
    request: str
    verb: str
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
        """Asked of the judge, who answers without sampling."""
        return of_judge(self.request)

    @property
    def text(self) -> str:
        """All that the model is shown, as records keep it: turn after turn; premise and hypothesis on a line each."""
        if self.verb == "classify":
            return f"{self.prompt}\n{self.hypothesis}"
        return "\n\n".join([*self.earlier, self.prompt])

    @property
    def turns(self) -> Turns:
        """The prompt, or the conversation that ends with it, as the verbs take it."""
        return (*self.earlier, self.prompt) if self.earlier else self.prompt


def of_judge(name: str) -> bool:
    """Whether a request of that name is asked of the judge, as records name them."""
    return name.partition(":")[0] in ("judge", "order")


@dataclass(frozen=True, slots=True)
class Setting:
    """Something about the asking that can be chosen: the allowed values, the first the default.

    Attributes:
        by_preset: the value that a preset asks with, where that is not the default.
        task: the task that it is about, empty where it is about all.
    """

    allowed: tuple[str, ...]
    by_preset: Mapping[str, str] = field(default_factory=dict)
    task: str = ""

    def under(self, preset: str) -> str:
        """The value where none was given."""
        return self.by_preset.get(preset, self.allowed[0])
