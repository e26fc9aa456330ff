"""A chat endpoint that speaks OpenAI's protocol: `openai:NAME@URL`, as vLLM, llama.cpp, Ollama and hosted services do.

The key comes from an environment variable (see `bench.scorers.endpoint.keys`) and goes nowhere but into
requests to the endpoint's own host.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import openai

from bench.core.errors import BadInput
from bench.core.progress import say
from bench.scorers.base import Answer, Model, Tally, each, each_seed, messages
from bench.scorers.endpoint import keys
from bench.scorers.endpoint import responses as replies
from bench.scorers.endpoint.client import make_client
from bench.scorers.endpoint.errors import (
    MORE_TOKENS,
    REFUSED,
    Again,
    Plain,
    Refusal,
    passing,
    root_cause,
    wait,
    words,
)
from bench.scorers.endpoint.fields import ChatFields
from bench.scorers.endpoint.limits import Limits
from bench.scorers.endpoint.sending import Sender
from bench.scorers.endpoint.url import parse
from bench.scorers.generation_options import GenerationOptions
from bench.tasks.replies import unfinished_thought
from bench.tasks.request import Key, Request, Turns, Until

BY_DEFAULT = Limits()
# Likeliest tokens to be told of: as many as OpenAI's protocol allows, or as some servers do.
LIKELIEST = (20, 5)
# Probabilities as the model has them: not sharpened, nothing cut away.
AS_IT_IS: dict[str, Any] = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0}
# How a server is asked for the probabilities of a prompt's tokens: by vLLM's own field, or as OpenAI's completions had it.
# One token more has to be written, because not every server can do without.
OF_PROMPT: dict[str, dict[str, Any]] = {
    "prompt_logprobs": {**AS_IT_IS, "logprobs": 1, "extra_body": {"prompt_logprobs": 0}},
    "echo": {**AS_IT_IS, "logprobs": 1, "echo": True},
}
# What servers answer to a field that they do not know, and where they have no completions.
UNKNOWN_FIELD, NO_SUCH_PLACE = (400, 422, 500, 501), (404, 405)
# A text whose next token is beyond doubt, and how far its probability may be from that in the text with it, in nats.
COUNTING, NEAR = "1 2 3 4 5 6 7 8 9", 0.1
CHAT = "a chat endpoint"


class Endpoint(Model):
    """Generates replies to chats; tells probabilities of letters, and of a text's tokens, where the server does.

    What it can do is found out by a request or two when it is made.

    Attributes:
        lacks: the verbs that the server has not, and why.
    """

    verbs: tuple[str, ...]
    reads: tuple[str, ...]

    def __init__(
        self,
        rest: str,
        limits: Limits = BY_DEFAULT,
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
        self._plain = Plain(self._key)
        self._sender = Sender(self.url, self._client, limits)
        self.tally = Tally()  # nothing is computed here
        self.lacks: dict[str, str] = {}
        self._likeliest = self._find_likeliest()
        self._of_prompt = self._find_of_prompt()
        self.verbs = tuple(verb for verb in ("nll", "choose", "generate") if verb not in self.lacks)
        self.reads = ("text",) if "choose" in self.lacks else ("text", "letters")

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "chat endpoint (OpenAI's protocol)",
            "id": f"openai:{self.name}@{self.url}",
            "url": self.url,
            "host": self.host,
            # The name of the environment variable, never the key.
            "key": self._variable if self._key else None,
            "prompted_as": "chat turn of the endpoint",
            "decoding": self._decoding(),
            **self._generation.describe(),
            **({"asked_with": dict(self._fields.asked_with)} if self._fields.asked_with else {}),
            "letters_from": f"the {self._likeliest} likeliest first tokens; one that is not among them stands with the probability "
            "of the least likely, an upper bound"
            if self._likeliest
            else None,
            "nll_from": f"{self._of_prompt} of its completions" if self._of_prompt else None,
            "lacks": self.lacks,
        }

    @property
    def spent(self) -> str:
        """What it was sent and what came back, in words."""
        return str(self._sender.spent)

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        """The answers by the requests' positions, as they come.

        Raises:
            BadInput: a request that no endpoint can answer; nobody is asked then.
            RunFailed: the server does not answer all of them; those that were answered have come before.
        """
        for request in requests:
            self._check(request)

        async def once(client: openai.AsyncOpenAI, k: int) -> Answer:
            start = time.perf_counter()
            answer = await self._ask_one(client, requests[k])
            self._sender.spent.refused += answer.error == REFUSED
            return replace(answer, seconds=time.perf_counter() - start)

        yield from self._sender.stream(len(requests), once)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers to `requests`, in their order, asked several at a time."""
        found = dict(self.stream(requests))
        return [found[k] for k in range(len(requests))]

    def generate(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int = 32,
        seed: int | Sequence[int] = 0,
        greedy: bool = False,
        until: Until = None,
    ) -> list[str]:
        """A reply to each prompt, "" where there is none; at temperature 0 where it is to be greedy.

        Where a reply is written to is the server's to say, so `until` is not looked at.
        """
        seeds = each_seed(seed, len(prompts))
        requests = [
            _request("generate", prompt, max_new_tokens=max_new_tokens, seed=one, greedy=greedy)
            for prompt, one in zip(prompts, seeds, strict=True)
        ]
        return [answer.response for answer in self.answer(requests)]

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Log-probability of each option, a letter, as the first token of the reply: float64 [n, k].

        One that is not among the likeliest stands with an upper bound; NaN where none of a prompt's is.
        """
        choices = each(options, len(prompts))
        found = self.answer(
            [
                _request("choose", one, options=some)
                for one, some in zip(prompts, choices, strict=True)
            ]
        )
        rows = [
            answer.logprobs or [np.nan] * len(some)
            for answer, some in zip(found, choices, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(
            len(prompts), -1 if prompts else len(options)
        )

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Log-probability of each token after the first, float64; none of a text that the server does not take."""
        found = self.answer([_request("nll", text, bos=bos) for text in texts])
        return [np.array(answer.logprobs or (), dtype=np.float64) for answer in found]

    def _check(self, request: Request) -> None:
        if request.verb in self.lacks:
            raise BadInput(f"{self.url}: cannot do {request.verb}: {self.lacks[request.verb]}")
        if request.bos:
            raise BadInput(
                f"{self.url}: takes texts, in which no special token can stand first; leave out --set bos=forced"
            )
        if long := [option for option in request.options if len(option) > 1]:
            raise BadInput(
                f"{self.url}: tells the probabilities of a reply's first token alone, which {long[0]!r} need not be; give --read text"
            )

    async def _ask_one(self, client: openai.AsyncOpenAI, request: Request) -> Answer:
        if request.verb == "nll":
            return await self._read(client, request.prompt)
        if request.verb == "choose":
            return await self._letter(client, request)
        fields = self._fields.of_reply(request.max_new_tokens, request.seed, request.of_judge)
        system = self._fields.system(request.of_judge)
        body, why = await self._chat(client, request.turns, fields, system)
        if why:
            return Answer("", error=why)
        answer = replies.choice(body) or {}
        text, why = replies.text(answer)
        reason = answer.get("finish_reason")
        cut = reason == "length" if isinstance(reason, str) else None
        # Where a server keeps the thought apart, a reply that was cut off in it is empty.
        in_thought = bool(cut) and not text.strip()
        why = why or unfinished_thought(text, in_thought, cut, MORE_TOKENS)
        return Answer(self._plain.whole(text), error=why, cut=cut)

    async def _letter(self, client: openai.AsyncOpenAI, request: Request) -> Answer:
        fields = self._of_first_token(self._likeliest, seed=request.seed)
        system = self._fields.system(of_judge=False)
        body, why = await self._chat(client, request.turns, fields, system)
        answer = replies.choice(body) or {}
        why = why or replies.text(answer)[1]
        found = replies.first_tokens(answer)
        if why or not found:
            return Answer("", error=why or replies.NO_LOGPROBS)
        values, bounded = replies.options(found, request.options)
        if not values:
            likeliest = self._plain.line(repr(max(found, key=lambda token: found[token])))
            return Answer(
                "",
                error=f"no option is among the likeliest first tokens of the reply, which is {likeliest}",
            )
        self._sender.spent.bounded += bounded
        return Answer(request.options[int(np.argmax(values))], tuple(values))

    async def _read(self, client: openai.AsyncOpenAI, text: str) -> Answer:
        body, why = await self._complete(client, text, self._of_prompt)
        values = None if why else replies.OF_PROMPT[self._of_prompt](body)
        if values is None:
            return Answer("", error=why or replies.NO_LOGPROBS)
        return Answer(repr(-float(np.mean(values))) if values else "nan", tuple(values))

    def _of_first_token(self, likeliest: int, **more: int) -> dict[str, Any]:
        fields = {**AS_IT_IS, **more, "logprobs": True, "top_logprobs": likeliest}
        return self._fields.of_letter(fields)

    async def _chat(
        self, client: openai.AsyncOpenAI, turns: Turns, fields: dict[str, Any], system: str
    ) -> tuple[dict[str, Any], str]:
        """Send a chat request, and again where the server names fields that it wants otherwise.

        Each time is a field fewer that can be refused, so there is an end to it.
        """
        place, turns_sent = client.chat.completions, messages(turns, system)
        while True:
            sent = self._fields.as_taken(fields)
            try:
                return await self._send(place, CHAT, messages=turns_sent, extra_body=sent)
            except Refusal as refusal:
                known = set(self._fields.asked_with)
                label = self._fields.learn(sent, refusal)
                if not label:
                    raise
                if label not in known:
                    way = self._fields.asked_with[label]
                    say(f"{self.url}: does not take {label}, which is {way}")
                self._sender.spent.requests += 1
                self._sender.spent.again += 1

    async def _complete(
        self, client: openai.AsyncOpenAI, text: str, how: str
    ) -> tuple[dict[str, Any], str]:
        return await self._send(
            client.completions, "completions", prompt=text, seed=0, **OF_PROMPT[how]
        )

    async def _send(self, place: Any, what: str, **given: Any) -> tuple[dict[str, Any], str]:
        """Send a request once: the body of its response, and why the server will not answer this one text.

        Raises:
            Again: it may be answered another time.
            RunFailed: the server would answer no other request either.
        """
        try:
            # Raw, because the client takes anything for a completion.
            answer = await place.with_raw_response.create(model=self.name, **given)
            body = json.loads(answer.content.decode(errors="replace"))
        except openai.APIStatusError as error:
            if why := self._plain.of_this_text(error.status_code, error.body):
                return {}, why
            if passing(error.status_code, error.body):
                raise self._later(error) from None
            raise self._why_not(error) from None  # the original may hold the key
        except openai.APITimeoutError:
            raise Again("no answer in time") from None
        except openai.APIConnectionError as error:
            reason = self._plain.line(root_cause(error))
            raise Again(f"cannot be reached ({reason}); is the server running?") from None
        except (openai.OpenAIError, ValueError, RecursionError):
            raise Again(f"did not answer as {what} of OpenAI's protocol does") from None
        read, written = replies.tokens(body)
        self._sender.spent.read += read
        self._sender.spent.written += written
        answered = replies.choice(body)
        if answered is not None:
            if (ended := answered.get("finish_reason")) in replies.BROKEN_OFF:
                raise Again(f"broke off its reply ({ended})")
            return body, ""
        # Some servers and relays send an error with the status of an answer.
        if isinstance(body, dict) and (why := self._plain.of_this_text(400, body.get("error"))):
            return {}, why
        raise Again(f"did not answer as {what} of OpenAI's protocol does")

    def _client(self) -> openai.AsyncOpenAI:
        # When to try again is the sender's to say, which sees all requests.
        return make_client(self.url, self._key, self._sender.limits.timeout)

    def _later(self, error: openai.APIStatusError) -> Again:
        why = f"status {error.status_code}: {self._plain.line(next(words(error.body), error.message))}"
        return Again(why, error.status_code, wait(error.response.headers))

    def _why_not(self, error: openai.APIStatusError) -> Refusal:
        status = f"{self.url}: answered with status {error.status_code}"
        if error.status_code in (401, 403):  # some servers repeat part of the key in the message
            why = f"the environment variable {self._variable} is wrong"
            if not self._key:
                why = (
                    f"it was asked without a key: the environment variable {self._variable} "
                    f"is not set; set it, or name another by --key {self.host}=NAME"
                )
            return Refusal(f"{status}; {why}", why, error.status_code)
        why = self._plain.line(next(words(error.body), error.message))
        reason = f"status {error.status_code}: {why}"
        return Refusal(f"{status} ({why})", reason, error.status_code, error.body)

    def _decoding(self) -> str:
        options = self._generation
        chosen = {"temperature": options.temperature, "top_p": options.top_p}
        values = [f"{name} {value:g}" for name, value in chosen.items() if value is not None]
        return ", ".join(values) or "the server's own"

    def _find_likeliest(self) -> int:
        """How many likeliest tokens the server tells, 0 where it tells none, which `lacks` then says.

        Raises:
            RunFailed: it does not answer at all.
        """
        why = replies.NO_LOGPROBS
        for n in LIKELIEST:
            try:
                fields = self._of_first_token(n)
                chat = partial(self._chat, turns=COUNTING, fields=fields, system="")
                body, _ = self._try(chat)
            except Refusal as refusal:
                if refusal.status not in UNKNOWN_FIELD:
                    raise
                why = refusal.why
                continue
            if len(replies.first_tokens(replies.choice(body) or {})) > 1:
                return n
            break
        self.lacks["choose"] = f"the server tells no probabilities of letters ({why})"
        return 0

    def _find_of_prompt(self) -> str:
        """How the server tells the probabilities of a prompt's tokens, "" where it does not, which `lacks` then says.

        Not every server that tells some tells the right ones: that of the token which it writes behind a text has to be
        the same when this token stands at the end of the text.
        """
        why = replies.NO_LOGPROBS
        for how, read in replies.OF_PROMPT.items():
            try:
                body, _ = self._try(lambda client, how=how: self._complete(client, COUNTING, how))
                values, written = read(body), replies.last_token(body)
                if not values:
                    why = replies.NO_LOGPROBS
                    continue
                if written:
                    again, _ = self._try(
                        lambda client, how=how, more=written[0]: self._complete(
                            client, COUNTING + more, how
                        )
                    )
                    longer = read(again) or []
                    if len(longer) == len(values) + 1 and abs(longer[-1] - written[1]) > NEAR:
                        why = f"the server's {how} do not agree with the probabilities of what it writes"
                        continue
            except Refusal as refusal:
                why = refusal.why
                if refusal.status in NO_SUCH_PLACE:
                    break
                continue
            return how
        self.lacks["nll"] = f"the server tells no probabilities of a text's tokens ({why})"
        return ""

    def _try(self, once: Any) -> Any:
        """The answer to one request that finds out something."""

        async def call(client: openai.AsyncOpenAI, _: int) -> Any:
            return await once(client)

        return dict(self._sender.stream(1, call))[0]


def _request(verb: str, turns: Turns, greedy: bool = False, **given: Any) -> Request:
    """A request that is of no benchmark."""
    *earlier, prompt = [turns] if isinstance(turns, str) else turns
    name = "judge" if greedy else "answer"
    return Request("", "", "", name, verb, prompt, "", Key(), earlier=tuple(earlier), **given)
