"""What every scorer shares: the answer, and how requests are dealt out to the four verbs."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bench.core.errors import BadInput
from bench.tasks.nli_labels import LABELS
from bench.tasks.request import Request, Turns, Until

if TYPE_CHECKING:
    import numpy as np

VERBS: tuple[str, ...] = ("nll", "choose", "generate", "classify")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a request.

    Attributes:
        response: the reply, the chosen option, the label, or the mean negative log-likelihood as text.
        logprobs: of each predicted token (nll), of each option (choose), or of the three labels (classify).
        error: why there is no response, or "".
        seconds: this request's share of the time its batch took.
        cut: whether the reply ended because it had reached its limit of tokens; None where that is not known.
    """

    response: str
    logprobs: tuple[float, ...] | None = None
    error: str = ""
    seconds: float = 0.0
    cut: bool | None = None


@runtime_checkable
class Scorer(Protocol):
    """Something that answers requests.

    `verbs` says which kinds, `reads` how its choices can be read, the best way first; `describe` what it is, for
    `run.json`.
    """

    verbs: tuple[str, ...]
    reads: tuple[str, ...]

    def describe(self) -> dict[str, Any]: ...

    def answer(self, requests: Sequence[Request]) -> list[Answer]: ...


@dataclass(slots=True)
class Tally:
    """Tokens of the texts that a model was asked about, tokens that went through it, and those that met the output matrix."""

    asked: int = 0
    computed: int = 0
    read: int = 0


class TooLong(BadInput):
    """Texts that a model cannot read whole; `why` says so of each, by its position among the texts of the call."""

    def __init__(self, message: str, why: dict[int, str]) -> None:
        super().__init__(message)
        self.why = why


class Model:
    """A model with some of the four verbs. A subclass defines those of them that it names in `verbs`.

    A verb raises `TooLong` before it computes anything, so that `answer` can ask for the other texts alone.
    """

    verbs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    tally: Tally

    def describe(self) -> dict[str, Any]:
        """What the model is, for `run.json`."""
        raise NotImplementedError

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Log-probability of each predicted token of each text, float64, nats; with `bos` after a first special token."""
        raise NotImplementedError

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Log-probability of each option as the next answer: float64 [n, k].

        `options` are the same for all prompts, or k for each prompt.
        """
        raise NotImplementedError

    def generate(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int = 32,
        seed: int | Sequence[int] = 0,
        greedy: bool = False,
        until: Until = None,
    ) -> list[str]:
        """A reply to each prompt, decoded as the model's own configuration says, or always the likeliest token (greedy).

        A prompt's reply depends on itself and the seed, not on its neighbours. Each prompt may have a seed of its own.
        No more is written of a reply of which `until` is true.
        """
        replies = self.replies(
            prompts, max_new_tokens=max_new_tokens, seed=seed, greedy=greedy, until=until
        )
        return [reply.response for reply in replies]

    def replies(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int,
        seed: int | Sequence[int],
        greedy: bool,
        until: Until,
    ) -> list[Answer]:
        """Write a reply to each prompt as `generate` does, with what is known of how it ended."""
        raise NotImplementedError

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities of entailment, contradiction, neutral: float64 [n, 3]."""
        raise NotImplementedError

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        """What it says of requests whose answer is beyond doubt, a row each with `expected` and `found`; none for most."""
        return []

    def nll(self, texts: Sequence[str]) -> np.ndarray:
        """Mean negative log-likelihood per predicted token, nats: float64 [n]; NaN where nothing is predicted."""
        import numpy as np

        return np.array([-row.mean() if len(row) else np.nan for row in self.token_logprobs(texts)])

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers to `requests`, in their order, a call of a verb for each kind of request among them.

        What is too long for the model has an error for an answer, and the others are answered as if it were not there.
        """
        answers: dict[int, Answer] = {}
        for numbers in _alike(requests):
            start = time.perf_counter()
            try:
                some = list(self._ask([requests[i] for i in numbers]))
            except TooLong as refusal:
                answers |= {numbers[k]: Answer("", error=why) for k, why in refusal.why.items()}
                numbers = [i for i in numbers if i not in answers]
                some = list(self._ask([requests[i] for i in numbers]))
            seconds = (time.perf_counter() - start) / max(len(numbers), 1)
            for i, answer in zip(numbers, some, strict=True):
                answers[i] = replace(answer, seconds=seconds)
        return [answers[i] for i in range(len(requests))]

    def _ask(self, requests: Sequence[Request]) -> Iterable[Answer]:
        if not requests:
            return
        first = requests[0]
        prompts = [request.turns for request in requests]
        if first.verb == "nll":
            for row in self.token_logprobs([request.prompt for request in requests], bos=first.bos):
                mean = repr(float(-row.mean())) if len(row) else "nan"
                yield Answer(mean, tuple(map(float, row)))
        elif first.verb == "choose":
            options = [request.options for request in requests]
            for row, some in zip(self.choose(prompts, options), options, strict=True):
                yield Answer(some[int(row.argmax())], tuple(map(float, row)))
        elif first.verb == "generate":
            seeds = [request.seed for request in requests]
            yield from self.replies(
                prompts,
                max_new_tokens=first.max_new_tokens,
                seed=seeds,
                greedy=first.of_judge,
                until=first.until,
            )
        else:
            for row in self.classify(
                [(request.prompt, request.hypothesis) for request in requests]
            ):
                logprobs = tuple(math.log(p) if p > 0 else -math.inf for p in row)
                yield Answer(LABELS[int(row.argmax())], logprobs)


def messages(prompt: Turns, system: str = "") -> list[dict[str, str]]:
    """Write a prompt or conversation, behind a `system` message if any, as chat templates take it."""
    turns = [prompt] if isinstance(prompt, str) else prompt
    first = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return first + [{"role": roles[k % 2], "content": text} for k, text in enumerate(turns)]


def each(options: Sequence[str] | Sequence[Sequence[str]], n: int) -> list[tuple[str, ...]]:
    """The options of each of `n` prompts, of which each may have its own."""
    if options and isinstance(options[0], str):
        return [tuple(map(str, options))] * n
    return [tuple(some) for some in options]


def option_matrix(
    values: Sequence[Sequence[float]], prompts: Sequence[Turns], options: Sequence[Any]
) -> np.ndarray:
    """Return what `choose` does: float64 [n, k], also where there are no prompts."""
    import numpy as np

    columns = -1 if prompts else len(options)
    return np.array(values, dtype=np.float64).reshape(len(prompts), columns)


def each_seed(seed: int | Sequence[int], n: int) -> list[int]:
    """The seed of each of `n` prompts, of which each may have its own."""
    return [seed] * n if isinstance(seed, int) else list(seed)


def _alike(requests: Sequence[Request]) -> Iterable[list[int]]:
    """Positions of requests that one call of a verb can answer together."""

    def kind(i: int) -> tuple[Any, ...]:
        request = requests[i]
        return (
            request.verb,
            len(request.options),
            request.max_new_tokens,
            id(request.until),
            request.bos,
            request.of_judge,
        )

    for _, group in groupby(sorted(range(len(requests)), key=kind), key=kind):
        yield list(group)


def digest(value: object) -> str:
    """A short stable hash of anything JSON can hold."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode()
    ).hexdigest()[:16]
