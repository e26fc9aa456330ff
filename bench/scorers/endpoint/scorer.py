"""A chat endpoint of OpenAI's protocol: `openai:NAME@URL`.

vLLM, llama.cpp, Ollama and hosted services have one. The key comes from an environment variable
(see `bench.scorers.endpoint.keys`) and is sent to the endpoint's own host only.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import openai

from bench.core.errors import BadInput
from bench.core.progress import say
from bench.scorers.base import Answer, Model, Tally, each, each_seed, messages, option_matrix
from bench.scorers.endpoint import keys, responses
from bench.scorers.endpoint.client import Client, make_client
from bench.scorers.endpoint.errors import (
    MORE_TOKENS,
    REFUSED,
    Redactor,
    Refusal,
    Retry,
    error_texts,
    is_transient,
    retry_after,
    root_cause,
)
from bench.scorers.endpoint.fields import ChatFields
from bench.scorers.endpoint.limits import Limits
from bench.scorers.endpoint.url import parse
from bench.scorers.generation_options import GenerationOptions
from bench.tasks.replies import unfinished_thought
from bench.tasks.request import Key, Request, Turns, Until

DEFAULT_LIMITS = Limits()
# How many likeliest tokens to ask for: as many as OpenAI's protocol allows, or as some servers do.
LIKELIEST = (20, 5)
# The model's own probabilities: no temperature, nothing cut away.
UNCHANGED: dict[str, Any] = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0}
# How to ask for the probabilities of a prompt's tokens: by vLLM's own field, or as in OpenAI's
# completions. Not every server can do without generating one token more.
OF_PROMPT: dict[str, dict[str, Any]] = {
    "prompt_logprobs": {**UNCHANGED, "logprobs": 1, "extra_body": {"prompt_logprobs": 0}},
    "echo": {**UNCHANGED, "logprobs": 1, "echo": True},
}
# Statuses of servers for an unknown field, and where they have no completions.
UNKNOWN_FIELD, NO_SUCH_PLACE = (400, 422, 500, 501), (404, 405)
# A text whose next token is beyond doubt, and how far two probabilities of it may differ, in nats.
COUNTING, TOLERANCE = "1 2 3 4 5 6 7 8 9", 0.1

# A response's body, and why the server refused this one text.
Response = tuple[dict[str, Any], str]


class Endpoint(Model):
    """Generates replies, and reads probabilities of letters and texts if the server reports them.

    A few requests find out what the server can do when the scorer is made.

    Attributes:
        lacks: the verbs that the server cannot do, and why.
    """

    verbs: tuple[str, ...]
    reads: tuple[str, ...]

    def __init__(
        self,
        rest: str,
        limits: Limits = DEFAULT_LIMITS,
        key_variables: Mapping[str, str] | None = None,
        generation: GenerationOptions | None = None,
    ) -> None:
        self.name, self.url = parse(rest)
        self.host = keys.host_of(f"openai:{rest}")
        keys.check_set(key_variables or {})
        self._variable = keys.variable(self.host, key_variables or {})
        self._key = keys.key_in(self._variable)
        self._generation = generation or GenerationOptions()
        self._fields = ChatFields(self._generation)
        self._redactor = Redactor(self._key)
        self._client = Client(
            self.url, lambda: make_client(self.url, self._key, limits.timeout), limits
        )
        self.tally = Tally()  # nothing is computed here
        self.lacks: dict[str, str] = {}
        self._likeliest = self._find_likeliest()
        self._of_prompt = self._find_of_prompt()
        self.verbs = tuple(verb for verb in ("nll", "choose", "generate") if verb not in self.lacks)
        self.reads = ("text",) if "choose" in self.lacks else ("text", "letters")

    def describe(self) -> dict[str, Any]:
        options = self._generation
        sampling = {"temperature": options.temperature, "top_p": options.top_p}
        values = [f"{name} {value:g}" for name, value in sampling.items() if value is not None]
        asked_with = self._fields.asked_with
        letters_from = (
            f"the {self._likeliest} likeliest first tokens; one that is not among them stands with "
            "the probability of the least likely, an upper bound"
        )
        return {
            "kind": "chat endpoint (OpenAI's protocol)",
            "id": f"openai:{self.name}@{self.url}",
            "url": self.url,
            "host": self.host,
            # The name of the environment variable, never the key.
            "key": self._variable if self._key else None,
            "prompted_as": "chat turn of the endpoint",
            "decoding": ", ".join(values) or "the server's own",
            **options.describe(),
            **({"asked_with": dict(asked_with)} if asked_with else {}),
            "letters_from": letters_from if self._likeliest else None,
            "nll_from": f"{self._of_prompt} of its completions" if self._of_prompt else None,
            "lacks": self.lacks,
        }

    @property
    def spent(self) -> str:
        """What was sent and what came back, in words."""
        return str(self._client.usage)

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        """Yield the answers with the requests' positions, as they come.

        Raises:
            BadInput: a request that no endpoint can answer; none is sent then.
            RunFailed: the server does not answer all of them; raised after all answers that came.
        """
        for request in requests:
            self._check(request)

        async def send(connection: openai.AsyncOpenAI, k: int) -> Answer:
            start = time.perf_counter()
            answer = await self._answer(connection, requests[k])
            self._client.usage.refused += answer.error == REFUSED
            return replace(answer, seconds=time.perf_counter() - start)

        yield from self._client.stream(len(requests), send)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer `requests`, several at once; the answers keep their order."""
        answers = dict(self.stream(requests))
        return [answers[k] for k in range(len(requests))]

    def generate(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int = 32,
        seed: int | Sequence[int] = 0,
        greedy: bool = False,
        until: Until = None,
    ) -> list[str]:
        """Generate a reply to each prompt, "" where there is none; at temperature 0 if `greedy`.

        `until` is not used, because the server decides where a reply ends.
        """
        seeds = each_seed(seed, len(prompts))
        requests = [
            _request("generate", prompt, max_new_tokens=max_new_tokens, seed=number, greedy=greedy)
            for prompt, number in zip(prompts, seeds, strict=True)
        ]
        return [answer.response for answer in self.answer(requests)]

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Return the log-probability of each letter as a reply's first token: float64 [n, k].

        One that is not among the likeliest gets an upper bound; NaN where none of a prompt's is.
        """
        choices = each(options, len(prompts))
        requests = [
            _request("choose", prompt, options=row)
            for prompt, row in zip(prompts, choices, strict=True)
        ]
        rows = [
            answer.logprobs or [np.nan] * len(row)
            for answer, row in zip(self.answer(requests), choices, strict=True)
        ]
        return option_matrix(rows, prompts, options)

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Return the log-probability of each token after the first, none of a refused text."""
        answers = self.answer([_request("nll", text, bos=bos) for text in texts])
        return [np.array(answer.logprobs or (), dtype=np.float64) for answer in answers]

    def _check(self, request: Request) -> None:
        reason = ""
        if request.verb in self.lacks:
            reason = f"cannot do {request.verb}: {self.lacks[request.verb]}"
        elif request.bos:
            reason = "cannot put a special token before a text; leave out --set bos=forced"
        elif long := [option for option in request.options if len(option) > 1]:
            reason = (
                "reports the probabilities of a reply's first token only, which "
                f"{long[0]!r} may exceed; give --read text"
            )
        if reason:
            raise BadInput(f"{self.url}: {reason}")

    async def _answer(self, connection: openai.AsyncOpenAI, request: Request) -> Answer:
        if request.verb == "nll":
            return await self._score_text(connection, request.prompt)
        if request.verb == "choose":
            return await self._choose_letter(connection, request)
        fields = self._fields.of_reply(request.max_new_tokens, request.seed, request.of_judge)
        system = self._fields.system(request.of_judge)
        body, error = await self._chat(connection, request.turns, fields, system)
        if error:
            return Answer("", error=error)
        answer = responses.choice(body) or {}
        text, error = responses.text(answer)
        reason = answer.get("finish_reason")
        cut = reason == "length" if isinstance(reason, str) else None
        # Where a server keeps the thought apart, a reply that was cut off in it is empty.
        in_thought = bool(cut) and not text.strip()
        error = error or unfinished_thought(text, in_thought, cut, MORE_TOKENS)
        return Answer(self._redactor.text(text), error=error, cut=cut)

    async def _choose_letter(self, connection: openai.AsyncOpenAI, request: Request) -> Answer:
        fields = self._first_token_fields(self._likeliest, seed=request.seed)
        system = self._fields.system(of_judge=False)
        body, error = await self._chat(connection, request.turns, fields, system)
        answer = responses.choice(body) or {}
        error = error or responses.text(answer)[1]
        logprobs = responses.first_tokens(answer)
        if error or not logprobs:
            return Answer("", error=error or responses.NO_LOGPROBS)
        values, bounded = responses.options(logprobs, request.options)
        if not values:
            likeliest = self._redactor.line(repr(max(logprobs, key=lambda token: logprobs[token])))
            error = "no option is among the likeliest first tokens of the reply, which is "
            return Answer("", error=error + likeliest)
        self._client.usage.bounded += bounded
        return Answer(request.options[int(np.argmax(values))], tuple(values))

    async def _score_text(self, connection: openai.AsyncOpenAI, text: str) -> Answer:
        body, error = await self._complete(connection, text, self._of_prompt)
        values = None if error else responses.OF_PROMPT[self._of_prompt](body)
        if values is None:
            return Answer("", error=error or responses.NO_LOGPROBS)
        return Answer(repr(-float(np.mean(values))) if values else "nan", tuple(values))

    def _first_token_fields(self, likeliest: int, **more: int) -> dict[str, Any]:
        return self._fields.of_letter(
            {**UNCHANGED, **more, "logprobs": True, "top_logprobs": likeliest}
        )

    async def _chat(
        self, connection: openai.AsyncOpenAI, turns: Turns, fields: dict[str, Any], system: str = ""
    ) -> Response:
        """Send a chat request, and again where the server names fields to be sent differently."""
        conversation = messages(turns, system)
        while True:  # each time there is one field less to be refused
            sent = self._fields.accepted(fields)
            try:
                return await self._send(
                    connection.chat.completions,
                    "a chat endpoint",
                    messages=conversation,
                    extra_body=sent,
                )
            except Refusal as refusal:
                known = set(self._fields.asked_with)
                label = self._fields.learn(sent, refusal)
                if not label:
                    raise
                if label not in known:
                    how = self._fields.asked_with[label]
                    say(f"{self.url}: does not take {label}, which is {how}")
                self._client.usage.requests += 1
                self._client.usage.resent += 1

    async def _complete(self, connection: openai.AsyncOpenAI, text: str, how: str) -> Response:
        return await self._send(
            connection.completions, "completions", prompt=text, seed=0, **OF_PROMPT[how]
        )

    async def _send(self, place: Any, kind: str, **given: Any) -> Response:
        """Send a request once.

        Raises:
            Retry: it may be answered another time.
            RunFailed: the server would answer no other request either.
        """
        not_as_expected = Retry(f"did not answer as {kind} of OpenAI's protocol does")
        try:
            # Raw, because the client takes anything for a completion.
            answer = await place.with_raw_response.create(model=self.name, **given)
            body = json.loads(answer.content.decode(errors="replace"))
        except openai.APIStatusError as error:
            if reason := self._redactor.error_of_text(error.status_code, error.body):
                return {}, reason
            raise self._failure(error) from None  # the original may hold the key
        except openai.APITimeoutError:
            raise Retry("no answer in time") from None
        except openai.APIConnectionError as error:
            cause = self._redactor.line(root_cause(error))
            raise Retry(f"cannot be reached ({cause}); is the server running?") from None
        except (openai.OpenAIError, ValueError, RecursionError):
            raise not_as_expected from None
        prompt_tokens, reply_tokens = responses.token_counts(body)
        self._client.usage.prompt_tokens += prompt_tokens
        self._client.usage.reply_tokens += reply_tokens
        choice = responses.choice(body)
        if choice is not None:
            if choice.get("finish_reason") in responses.BROKEN_OFF:
                raise Retry(f"broke off its reply ({choice['finish_reason']})")
            return body, ""
        # Some servers and relays send an error with the status of an answer.
        if isinstance(body, dict) and (
            error_text := self._redactor.error_of_text(400, body.get("error"))
        ):
            return {}, error_text
        raise not_as_expected

    def _failure(self, error: openai.APIStatusError) -> Retry | Refusal:
        """Turn a status into an exception whose message does not hold the key."""
        status = error.status_code
        message = self._redactor.line(next(error_texts(error.body), error.message))
        if is_transient(status, error.body):
            return Retry(f"status {status}: {message}", status, retry_after(error.response.headers))
        prefix = f"{self.url}: answered with status {status}"
        if status in (401, 403):  # some servers repeat part of the key in the message
            reason = f"the environment variable {self._variable} is wrong"
            if not self._key:
                reason = (
                    f"it was asked without a key: the environment variable {self._variable} "
                    f"is not set; set it, or name another by --key {self.host}=NAME"
                )
            return Refusal(f"{prefix}; {reason}", reason, status)
        return Refusal(f"{prefix} ({message})", f"status {status}: {message}", status, error.body)

    def _find_likeliest(self) -> int:
        """Find out how many likeliest tokens the server reports; 0 for none, as `lacks` says.

        Raises:
            RunFailed: it does not answer at all.
        """
        reason = responses.NO_LOGPROBS
        for n in LIKELIEST:
            fields = self._first_token_fields(n)
            try:
                body, _ = self._try(self._chat, COUNTING, fields)
            except Refusal as refusal:
                if refusal.status not in UNKNOWN_FIELD:
                    raise
                reason = refusal.reason
                continue
            if len(responses.first_tokens(responses.choice(body) or {})) > 1:
                return n
            break
        self.lacks["choose"] = f"the server tells no probabilities of letters ({reason})"
        return 0

    def _find_of_prompt(self) -> str:
        """Find out how the server reports a prompt's probabilities; "" if not, as `lacks` says.

        Not every server reports the right ones: the token that it generates after a text must have
        the same probability when it stands at the end of the text.
        """
        reason = responses.NO_LOGPROBS
        for how, read in responses.OF_PROMPT.items():
            try:
                body, _ = self._try(self._complete, COUNTING, how)
                values, written = read(body), responses.last_token(body)
                if not values:
                    reason = responses.NO_LOGPROBS
                    continue
                if written:
                    longer_body, _ = self._try(self._complete, COUNTING + written[0], how)
                    longer = read(longer_body) or []
                    one_more = len(longer) == len(values) + 1
                    if one_more and abs(longer[-1] - written[1]) > TOLERANCE:
                        reason = (
                            f"the server's {how} do not agree with the probabilities of what it "
                            "writes"
                        )
                        continue
            except Refusal as refusal:
                reason = refusal.reason
                if refusal.status in NO_SUCH_PLACE:
                    break
                continue
            return how
        self.lacks["nll"] = f"the server tells no probabilities of a text's tokens ({reason})"
        return ""

    def _try(self, send: Callable[..., Awaitable[Response]], *given: Any) -> Response:
        """Send one request, to find out something."""

        async def once(connection: openai.AsyncOpenAI, _: int) -> Response:
            return await send(connection, *given)

        return dict(self._client.stream(1, once))[0]


def _request(verb: str, turns: Turns, greedy: bool = False, **given: Any) -> Request:
    """Make a request of no benchmark."""
    *earlier, prompt = [turns] if isinstance(turns, str) else turns
    name = "judge" if greedy else "answer"
    return Request("", "", "", name, verb, prompt, "", Key(), earlier=tuple(earlier), **given)
