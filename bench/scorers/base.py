"""The base class of models. To add a kind of model, subclass `Model`; see docs/models.md."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.core.errors import BadInput
from bench.core.text import whole_characters
from bench.tasks.nli_labels import LABELS
from bench.tasks.request import Request, Turns, Until

if TYPE_CHECKING:
    import numpy as np

    from bench.config import Generation

REQUEST_TYPES: tuple[str, ...] = ("nll", "choose", "generate", "classify")
# Either one list of options shared by all prompts, or one equally long list per prompt.
Options = Sequence[str] | Sequence[Sequence[str]]
# Prefix of the errors of broken answers.
BROKEN_ANSWER = "the server answered with"
# Prefix of the errors of requests that a content filter, or the model itself, declined.
DECLINED_BY = "refused by "
# Answers of a local model are saved at least so often.
SAVE_SECONDS = 60.0
# Requests that a slow local model gets together in any case.
FEWEST_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request.

    Attributes:
        response: the reply, the chosen option, the label, or the mean negative log-likelihood.
        logprobs: of each predicted token (nll), each option (choose), or the labels (classify).
        error: the reason if there is no response, otherwise "".
        seconds: this request's share of the time of its batch.
        cut: whether the reply was truncated at its limit of tokens; None if unknown.

    Examples:
        >>> import numpy as np
        >>> Answer.of_probabilities(np.array([0.25, 0.75]), ["yes", "no"]).response
        'no'
    """

    response: str
    logprobs: tuple[float, ...] | None = None
    error: str = ""
    seconds: float = 0.0
    cut: bool | None = None

    @classmethod
    def of_probabilities(cls, probabilities: np.ndarray, labels: Sequence[str]) -> Answer:
        """Answer with the likeliest label, the first one if several are equal."""
        logprobs = tuple(
            math.log(p) if p > 0 else -math.inf if p == 0 else math.nan for p in probabilities
        )
        return cls(labels[int(probabilities.argmax())], logprobs)


@dataclass(slots=True)
class Tally:
    """Counts the tokens of all texts, and those that went through the model."""

    asked: int = 0
    computed: int = 0


class Decoding(NamedTuple):
    """How replies are generated."""

    max_new_tokens: int
    seeds: Sequence[int]  # of each prompt
    greedy: bool  # take the likeliest tokens; otherwise follow the model's configuration
    until: Until  # ends a reply if it returns True


class Unanswerable(BadInput):
    """Texts that a model cannot score; `reasons` are by position in the call."""

    def __init__(self, message: str, reasons: dict[int, str]) -> None:
        super().__init__(message)
        self.reasons = reasons

    @classmethod
    def check(cls, model: str, problems: Sequence[str]) -> None:
        """Raise this error if a text has a problem; "" is none."""
        reasons = {i: problem for i, problem in enumerate(problems) if problem}
        if reasons:
            first = min(reasons)
            position = f"(number {first + 1} of {len(problems)})"
            raise cls(f"{model}: {reasons[first]} {position}", reasons)


class Model:
    """A model with some of the four request types; a subclass defines a method for each.

    It is spelt `KIND:NAME`. `check`, `content`, `writes_replies` and the first six attributes are
    asked before a model is loaded. Its constructor takes NAME and the options in `takes`. The
    methods of the request types raise `Unanswerable` before they compute, so that `answer` can skip
    those texts.

    Attributes:
        request_types: request types that models of this kind may support.
        answer_modes: their answer modes of choices, the best first.
        takes: the options of `bench.load` that this kind understands. Other options that would
            change answers are refused.
        from_file: whether NAME is the path of recorded answers.
        is_free: whether a formula or a file answers at once.
        stays_here: whether the workers of a cluster never load it.
        loaded_as: the MODEL and the options of `bench.load`.
        weights: the name, the files and the options that decide its weights.
        remedy: the advice in messages about log-probabilities that are not finite.
        answered: an answered request of each type, which an endpoint may ask again.

    Examples:
        >>> import bench
        >>> model = bench.load("tiny:s")
        >>> model.choose(["2 + 2 = "], ["4", "5"]).shape
        (1, 2)
    """

    request_types: tuple[str, ...] = ()
    answer_modes: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    from_file = False
    is_free = False
    stays_here = False
    loaded_as: tuple[str, Mapping[str, Any]] = ("", {})
    weights: tuple[Any, ...] = ()
    remedy = ""
    answered: Mapping[str, Request] = {}

    @classmethod
    def check(cls, name: str) -> None:
        """Raise BadInput if there is no such model, without loading it."""

    @classmethod
    def content(cls, name: str) -> str | None:
        """Hash the files or the recipe that decide the answers; None if they are not here."""
        from bench.scorers.local.hub import fingerprint

        path = os.path.expanduser(name)
        return fingerprint(Path(path)) if os.path.exists(path) else None

    @classmethod
    def writes_replies(cls, name: str) -> bool:
        """Return whether the model follows options of generation, for example a temperature."""
        return "generation" in cls.takes

    @classmethod
    def load(cls, name: str, **options: Any) -> Model:
        return cls(name, **options)  # type: ignore[call-arg]  # a subclass has its own constructor

    @cached_property
    def tally(self) -> Tally:
        """The numbers of computed tokens."""
        return Tally()

    def describe(self) -> dict[str, Any]:
        """Return `kind`, `id`, `revision` and other entries of this model for `run.json`.

        Examples:
            >>> import bench
            >>> bench.load("simulated:bias=0.7").describe()["id"]
            'simulated:bias=0.7'
        """
        raise NotImplementedError

    def again(self, generation: Generation) -> Model | None:
        """Return a model with the same weights and its own tally; None to load it again."""
        return None

    def resume(self, described: Mapping[str, Any]) -> None:
        """Take over the date in the prompts of a run from the description of its model."""

    def cover(self, requests: Sequence[Request]) -> None:
        """Raise BadInput if an answer to a request is missing."""

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Return the log-probability of each token, in nats; `bos` puts a special token first."""
        raise NotImplementedError

    def choose(self, prompts: Sequence[Turns], options: Options) -> np.ndarray:
        """Return the log-probability of each option as the next answer: float64 [n, k].

        Examples:
            >>> import bench
            >>> bench.load("tiny:s").choose(["The sky is"], ["A", "B", "C"]).shape
            (1, 3)
        """
        raise NotImplementedError

    def replies(self, prompts: Sequence[Turns], decoding: Decoding) -> list[Answer]:
        """Generate a reply to each prompt, which depends on its prompt and seed only."""
        raise NotImplementedError

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return probabilities of entailment, contradiction, neutral: float64 [n, 3].

        Examples:
            >>> import bench
            >>> bench.load("tiny:s").classify([("A man reads.", "A man sleeps.")]).shape
            (1, 3)
        """
        raise NotImplementedError

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        """Answer requests with a known answer; rows have `expected` and `found`."""
        return []

    def generate(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int = 32,
        seed: int | Sequence[int] = 0,
        greedy: bool = False,
    ) -> list[str]:
        """Return the texts of replies; `seed` is for all prompts, or one each.

        Examples:
            >>> import bench
            >>> len(bench.load("tiny:s").generate(["Tea is"], max_new_tokens=4, greedy=True))
            1
        """
        seeds = [seed] * len(prompts) if isinstance(seed, int) else list(seed)
        decoding = Decoding(max_new_tokens, seeds, greedy, None)
        return [reply.response for reply in self.replies(prompts, decoding)]

    def nll(self, texts: Sequence[str]) -> np.ndarray:
        """Return the mean negative log-likelihood per token, NaN for none: float64 [n], nats.

        Examples:
            >>> import bench
            >>> bench.load("tiny:s").nll(["The tea is hot.", "Tea hot the is."]).shape
            (2,)
        """
        import numpy as np

        return np.array([-row.mean() if len(row) else np.nan for row in self.token_logprobs(texts)])

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer `requests`, in their order, with one call for each kind of request.

        If the model cannot answer a request, for example one that is too long, this answer has an
        error, and the other requests are not affected.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, request in enumerate(requests):
            limits = request.max_new_tokens, id(request.until), request.bos, request.of_judge
            groups.setdefault((request.request_type, len(request.options), *limits), []).append(i)
        answers: dict[int, Answer] = {}
        for positions in groups.values():
            start = time.perf_counter()
            new: list[Answer] = []
            while len(new) < len(positions):
                try:
                    new = list(self._ask([requests[i] for i in positions]))
                except Unanswerable as error:
                    answers |= {positions[k]: Answer("", error=e) for k, e in error.reasons.items()}
                    positions = [i for i in positions if i not in answers]
            seconds = (time.perf_counter() - start) / max(len(positions), 1)
            for i, answer in zip(positions, new, strict=True):
                answers[i] = replace(
                    checked(answer, requests[i].request_type, self.remedy), seconds=seconds
                )
        return [answers[i] for i in range(len(requests))]

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        """Yield the requests of some blocks with their answers, in any order, as they come.

        We split a block if we expect it to take longer than `SAVE_SECONDS`.
        """
        seconds: dict[str, float] = {}  # of a request by its type, in the last part
        for block in blocks:
            start = 0
            while start < len(block):
                request_type = block[start].request_type
                size = int(SAVE_SECONDS / max(seconds.get(request_type, 0), 1e-9))
                part = block[start : start + max(size, FEWEST_TOGETHER)]
                began = time.perf_counter()
                answers = self.answer(part)
                seconds[request_type] = (time.perf_counter() - began) / len(part)
                yield list(zip(part, answers, strict=True))
                start += len(part)

    def waiting(self) -> list[tuple[Request, Answer]]:
        """Return the answers that have come and that an interrupted `stream` did not yield."""
        return []

    def _ask(self, requests: Sequence[Request]) -> Iterator[Answer]:
        first = requests[0]
        prompts = [request.turns for request in requests]
        if first.request_type == "nll":
            for row in self.token_logprobs([request.prompt for request in requests], bos=first.bos):
                mean = repr(float(-row.mean())) if len(row) else "nan"
                yield Answer(mean, tuple(map(float, row)))
        elif first.request_type == "choose":
            options = [request.options for request in requests]
            for row, names in zip(self.choose(prompts, options), options, strict=True):
                yield Answer(names[int(row.argmax())], tuple(map(float, row)))
        elif first.request_type == "generate":
            seeds = [request.seed for request in requests]
            decoding = Decoding(first.max_new_tokens, seeds, first.of_judge, first.until)
            yield from self.replies(prompts, decoding)
        else:
            pairs = [(request.prompt, request.hypothesis) for request in requests]
            for row in self.classify(pairs):
                yield Answer.of_probabilities(row, LABELS)


def checked(answer: Answer, request_type: str, remedy: str = "") -> Answer:
    """Return `answer` in whole characters, or an error if its log-probabilities are not finite.

    An option or label can be impossible, with minus infinity, but not all of them. A token of a
    text cannot be impossible.
    """
    response, error = whole_characters(answer.response), whole_characters(answer.error)
    answer, values = replace(answer, response=response, error=error), answer.logprobs or ()
    possible = [value for value in values if value != -math.inf]
    too_few = request_type == "nll" or not possible
    if answer.error or (
        all(map(math.isfinite, possible)) and not (too_few and len(possible) < len(values))
    ):
        return answer
    return replace(answer, response="", logprobs=None, error=not_finite(values, remedy))


def not_finite(values: Sequence[float], remedy: str = "") -> str:
    """Return the message for log-probabilities that are not finite, with the remedy."""
    first = next(value for value in values if not math.isfinite(value))
    error = f"the model gave {first} in place of a log-probability"
    return f"{error}; {remedy}" if remedy else error


def messages(prompt: Turns, system: str = "") -> list[dict[str, str]]:
    """Return a prompt or conversation as messages, after a system message if there is one."""
    turns = [prompt] if isinstance(prompt, str) else prompt
    first = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return first + [{"role": roles[k % 2], "content": text} for k, text in enumerate(turns)]


def each(options: Options, n: int) -> list[tuple[str, ...]]:
    """Return the options of each of `n` prompts."""
    if options and isinstance(options[0], str):
        return [tuple(map(str, options))] * n
    return [tuple(row) for row in options]


def digest(value: object) -> str:
    """Return a short stable hash of a value that JSON can hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
