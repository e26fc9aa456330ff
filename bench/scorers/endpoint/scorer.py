"""A chat endpoint of OpenAI's protocol: `openai:NAME@URL`.

For example, vLLM, llama.cpp, Ollama and hosted services have one. The key comes from an environment
variable (see `bench.scorers.endpoint.keys`), and we send it only to the endpoint's own host.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench.config import Generation, Limits
from bench.core.errors import BadInput, RunFailed
from bench.core.progress import say
from bench.scorers.base import BROKEN_ANSWER, Answer, Model
from bench.scorers.endpoint import keys as key_names
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import UNCHANGED, Chat, thoughts_in
from bench.scorers.endpoint.responses import NO_LOGPROBS, Broken, Refusal, Unanswered, at
from bench.tasks.replies import THINKS
from bench.tasks.request import Key, Request

# Fields that request the probabilities of a prompt's tokens: vLLM's own, or OpenAI's. Some servers
# refuse a field that they do not know.
OF_PROMPT: tuple[dict[str, Any], ...] = ({"prompt_logprobs": 0}, {"echo": True})
# Entries of `run.json` about who answers: the service's name for the model, the host after
# redirects, the provider behind a router, and the state of the server.
ANSWERED = {
    "model": "answered_as",
    "host": "answered_by",
    "provider": "providers",
    "system fingerprint": "system_fingerprints",
}
# The most names that we record of each.
MOST_NAMES = 20
# A text with an obvious next token, and the tolerance for its log-probability.
COUNTING = "1 2 3 4 5 6 7 8 9"
TOLERANCE = 0.1
# A simple question, with enough tokens for a thought before the answer.
QUESTION = Request(
    category="",
    task="",
    item_id="",
    request="answer",
    request_type="generate",
    prompt=f"{COUNTING}\nWhich number comes next? Answer with this number alone.",
    prompt_version="",
    key=Key(),
    max_new_tokens=2048,
)


class Endpoint(Model):
    """Generates replies, and reads probabilities of letters and texts if the server reports them.

    When we load it, we ask a question to find out whether the model thinks first, and send a text
    to find out whether the server reports the probabilities of its tokens.
    """

    # A server may not support all of these.
    request_types: tuple[str, ...] = ("nll", "choose", "generate")
    answer_modes: tuple[str, ...] = ("text", "letters")
    takes = ("limits", "keys", "generation")
    stays_here = True

    def __init__(
        self,
        endpoint: str,
        generation: Generation,
        limits: Limits | Mapping[str, Any] | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        from bench.scorers.endpoint.client import Client  # this imports openai

        self.server, limits = key_names.Server.of(endpoint, keys or {}), Limits.of(limits)
        self._chat = Chat(self.server.model, generation, limits.leave_out)
        self._client = Client(self.server, limits)
        self.unsupported: dict[str, str] = {}
        self._of_prompt = OF_PROMPT[0]
        # Who answers, by the entries of `ANSWERED`; the first model and host are the run's.
        self._answered: dict[str, list[str]] = {role: [] for role in ANSWERED}
        self._client.call(self._find_abilities)
        types = self.request_types
        self.request_types = tuple(name for name in types if name not in self.unsupported)
        if "choose" in self.unsupported:
            self.answer_modes = ("text",)

    @classmethod
    def check(cls, name: str) -> None:
        key_names.parse(name)

    def describe(self) -> dict[str, Any]:
        server = self.server
        return {
            "kind": "chat endpoint (OpenAI's protocol)",
            "id": f"openai:{server.model}@{server.url}",
            "url": server.url,
            "host": server.host,
            **{field: list(self._answered[role]) for role, field in ANSWERED.items()},
            # The name of the environment variable, never the key.
            "key": server.variable if server.key else None,
            **self._chat.describe(),
            "nll_from": None if "nll" in self.unsupported else "its completions",
            "unsupported": self.unsupported,
        }

    def resume(self, described: Mapping[str, Any]) -> None:
        """Expect answers of the model and the host that began the run."""
        for role, field in ANSWERED.items():
            names = [*described.get(field, []), *self._answered[role]]
            self._answered[role] = list(dict.fromkeys(names))

    @property
    def spent(self) -> str:
        """The requests and tokens so far, in words."""
        bounded = "options not among the likeliest tokens, which stand with an upper bound"
        counts = {**self._client.counts, bounded: self._chat.bounded}
        return ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        """Yield each request with its answer, as answers come."""
        requests = [request for block in blocks for request in block]
        for request in requests:
            if request.bos:
                problem = "cannot put a special token before a text; leave out --set bos=forced"
                raise BadInput(f"{self.server.url}: {problem}")
        self.answered = answered = dict(self.answered)
        for request, answer in self._client.stream(requests, self._answer, answered):
            self._client.counts[responses.REFUSED] += answer.error == responses.REFUSED
            yield [(request, answer)]

    def waiting(self) -> list[tuple[Request, Answer]]:
        return self._client.waiting()

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer `requests`, several at once; the answers keep their order."""
        answers = {id(request): answer for ((request, answer),) in self.stream([requests])}
        return [answers[id(request)] for request in requests]

    async def _answer(self, request: Request) -> Answer:
        if request.request_type != "nll":
            return self._chat.read(request, await self._ask_chat(request))
        values = responses.prompt_logprobs(await self._complete(request.prompt))
        return Answer(repr(-float(np.mean(values))) if values else "nan", tuple(values))

    async def _complete(self, text: str) -> Any:
        # Some servers have to generate one more token.
        fields = UNCHANGED | {"prompt": text, "seed": 0, "logprobs": 1} | self._of_prompt
        return await self._send("completions", fields)

    async def _ask_chat(self, request: Request) -> dict[str, Any]:
        try:
            return await self._send("chat/completions", self._chat.body(request))
        except Refusal as refusal:
            if advice := self._chat.advice(request, refusal):
                refusal.args = (f"{refusal}; {advice}",)
            raise

    async def _send(self, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, again after failures, and return its answer, which has a choice."""
        response = await self._client.post(path, {"model": self.server.model, **fields})
        body: dict[str, Any] = response.extensions["body"]
        written = responses.token_count(body, "completion_tokens")
        counts = self._client.counts
        counts["tokens of prompts"] += responses.token_count(body, "prompt_tokens")
        counts["tokens of replies"] += written
        # The header is of the Hub's router.
        provider = response.extensions["headers"].get("x-inference-provider")
        self._note("host", response.url.netloc.decode())
        self._note("model", body.get("model"))
        self._note("provider", body.get("provider", provider))
        self._note("system fingerprint", body.get("system_fingerprint"))
        tokens = at(body, "choices", 0, "logprobs", "content")
        if isinstance(tokens, list) and 0 < written < len(tokens):
            raise Broken(
                f"{BROKEN_ANSWER} the log-probabilities of {len(tokens):,} tokens of a reply "
                f"of {written:,}"
            )
        return body

    def _note(self, role: str, answered: object) -> None:
        """Record who answers, and say if it changes; raise RunFailed for another model or host."""
        names = self._answered[role]
        name = responses.first_line(answered) if isinstance(answered, str) and answered else ""
        is_new = name and name not in names and len(names) < MOST_NAMES
        if is_new:
            names.append(name)
        if role in ("model", "host") and name and name != names[0]:
            raise RunFailed(
                f"{self.server.url}: the {role} that answers is {name}, and was {names[0]} before; "
                "a run has one: give another --out, or ask when that is back"
            )
        if is_new and len(names) == 2:
            say(f"{self.server.url}: the {role} of its answers changes: {', '.join(names)}")

    async def _find_abilities(self) -> None:
        """Find out the place of thoughts, and how the server reports a text's probabilities."""
        try:
            # A slow server can need long; then the first answers will show it.
            async with asyncio.timeout(self._client.limits.timeout / 2):
                body = await self._client.until_read(self._ask_chat, QUESTION)
            self._chat.thoughts = thoughts_in(body["choices"][0])
        except (TimeoutError, Broken, Unanswered):
            pass
        if self._chat.thoughts:
            self.unsupported["choose"] = THINKS
        for self._of_prompt in OF_PROMPT:
            try:
                await self._check_prompt()
                break
            except (Broken, Unanswered) as unanswered:
                reason = str(unanswered)
            except Refusal as refusal:
                if refusal.status < 400:  # it was not reached
                    raise
                reason = refusal.reason
        else:
            problem = "the server tells no probabilities of a text's tokens"
            self.unsupported["nll"] = f"{problem} ({reason})"

    async def _check_prompt(self) -> None:
        """Raise Broken if the server reports no right probabilities of a text's tokens.

        The token that it generates after a text must have the same probability as the last token of
        the text.
        """
        ask = partial(self._client.until_read, self._complete)
        body = await ask(COUNTING)
        logprobs = responses.prompt_logprobs(body)
        if not logprobs:
            raise Broken(NO_LOGPROBS)
        if token := responses.last_token(body):
            longer = responses.prompt_logprobs(await ask(COUNTING + token[0]))
            if len(longer) != len(logprobs) + 1 or abs(longer[-1] - token[1]) > TOLERANCE:
                raise Broken("its numbers do not agree with the probabilities of its replies")
