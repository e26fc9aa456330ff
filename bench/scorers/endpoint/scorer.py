"""A chat endpoint of OpenAI's protocol: `openai:NAME@URL`.

For example, vLLM, llama.cpp, Ollama and hosted services have one. The key comes from an environment
variable (see `bench.scorers.endpoint.keys`), and we send it only to the endpoint's own host.
"""

import asyncio
import json
import re
import ssl
import time
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import openai
from openai import HttpxBinaryResponseContent

from bench.config import Generation, Limits
from bench.core.errors import BadInput, RunFailed
from bench.core.progress import say
from bench.scorers.base import BROKEN_ANSWER, Answer, Model
from bench.scorers.endpoint import keys as key_names
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import UNCHANGED, Chat, thoughts_in
from bench.scorers.endpoint.client import TRIES_OF_BROKEN, Client
from bench.scorers.endpoint.responses import NO_LOGPROBS, Broken, Refusal, Retry, Unanswered, at
from bench.tasks.replies import THINKS
from bench.tasks.request import Key, Request

# Fields that request the probabilities of a prompt's tokens: vLLM's own, or OpenAI's completions.
# Some servers have to generate one more token.
OF_PROMPT: dict[str, dict[str, Any]] = {
    "prompt_logprobs": {**UNCHANGED, "seed": 0, "logprobs": 1, "prompt_logprobs": 0},
    "echo": {**UNCHANGED, "seed": 0, "logprobs": 1, "echo": True},
}
# Servers' words for a wrong key; status 403 can also be about models, fields and regions.
KEY_WORDS = re.compile(r"key|credential|authenti|unauthori|signature|密钥|鉴权", re.IGNORECASE)
# Entries of `run.json` on who answers: the service's name of the model, the host after
# redirections, the provider behind a router, and the state of the server.
ANSWERED = {
    "model": "answered_as",
    "host": "answered_by",
    "provider": "providers",
    "system fingerprint": "system_fingerprints",
}
# We record so many of each.
MOST_NAMES = 20
# Beginnings of server-sent events.
STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")
# Seconds for finding out whether a server speaks https.
TLS_TIMEOUT = 5.0
# Statuses of servers for an unknown field or value.
BAD_FIELD = (400, 422, 500, 501)
# A text with an obvious next token, and the maximum difference of two probabilities of it, in nats.
COUNTING = "1 2 3 4 5 6 7 8 9"
TOLERANCE = 0.1
# A simple question, and enough tokens for a thought before the answer.
QUESTION = f"{COUNTING}\nWhich number comes next? Answer with this number alone."
QUESTION_TOKENS = 2048


class Endpoint(Model):
    """Generates replies, and reads probabilities of letters and texts if the server reports them.

    When we load it, a few requests find out the unsupported request types, and the reasons.
    """

    def __init__(
        self,
        rest: str,
        generation: Generation,
        limits: Limits | Mapping[str, Any] | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.url = key_names.parse(rest)
        self.host = key_names.host_of(f"openai:{rest}")
        key_names.check_set(keys or {})
        self._variable = key_names.variable(self.host, keys or {})
        self._key = key_names.key_in(self._variable)
        self._chat = Chat(self.name, generation)
        self._client = Client(self.url, self._key, Limits.of(limits))
        self.unsupported: dict[str, str] = {}
        # Who answers, by the entries of `ANSWERED`; the first model and host are the run's.
        self._answered: dict[str, list[str]] = {role: [] for role in ANSWERED}
        self._refused = 0
        self._chat.thoughts = self._find_thoughts()
        self._chat.likeliest = self._find_likeliest()
        self._of_prompt = self._find_of_prompt()
        types = ("nll", "choose", "generate")
        self.request_types = tuple(name for name in types if name not in self.unsupported)
        self.answer_modes = ("text",) if "choose" in self.unsupported else ("text", "letters")

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "chat endpoint (OpenAI's protocol)",
            "id": f"openai:{self.name}@{self.url}",
            "url": self.url,
            "host": self.host,
            **{field: list(self._answered[role]) for role, field in ANSWERED.items()},
            # The name of the environment variable, never the key.
            "key": self._variable if self._key else None,
            **self._chat.describe(),
            "nll_from": f"{self._of_prompt} of its completions" if self._of_prompt else None,
            "lacks": self.unsupported,
        }

    def resume(self, described: Mapping[str, Any]) -> None:
        """Require the model and the host from the beginning of the run."""
        for role, field in ANSWERED.items():
            known = self._answered[role]
            self._answered[role] = list(dict.fromkeys([*described.get(field, []), *known]))

    @property
    def spent(self) -> str:
        """The requests and tokens so far, in words."""
        bounded = "options not among the likeliest tokens, which stand with an upper bound"
        counts = {
            "requests sent": self._client.requests,
            "tokens of prompts": self._client.prompt_tokens,
            "tokens of replies": self._client.reply_tokens,
            responses.REFUSED: self._refused,
            bounded: self._chat.bounded,
        }
        return ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        """Yield each request with its answer, as answers come."""
        requests = [request for block in blocks for request in block]
        for request in requests:
            if request.request_type in self.unsupported:
                kind = request.request_type
                raise BadInput(f"{self.url}: cannot do {kind}: {self.unsupported[kind]}")
            if request.bos:
                problem = "cannot put a special token before a text; leave out --set bos=forced"
                raise BadInput(f"{self.url}: {problem}")

        # Requests with an answer show whether the server refuses every request of their form.
        asked = [*requests, *self.answered.values()]
        controls = {form: len(requests) + k for k, form in enumerate(self.answered)}

        async def send(connection: openai.AsyncOpenAI, k: int) -> Answer:
            start = time.perf_counter()
            answer = await self._answer(connection, asked[k])
            return replace(answer, seconds=time.perf_counter() - start)

        forms = [request.request_type for request in requests]
        for k, answer in self._client.stream(forms, send, controls):
            if isinstance(answer, Unanswered):
                answer = Answer("", error=str(answer))
            self._refused += answer.error == responses.REFUSED
            yield [(requests[k], answer)]
        self.answered = {form: asked[k] for form, k in controls.items()}

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer `requests`, several at once; the answers keep their order."""
        answers = {id(request): answer for ((request, answer),) in self.stream([requests])}
        return [answers[id(request)] for request in requests]

    async def _answer(self, connection: openai.AsyncOpenAI, request: Request) -> Answer:
        if request.request_type != "nll":
            return self._chat.read(request, await self._ask_chat(connection, request))
        body = await self._complete(connection, request.prompt, self._of_prompt)
        values = responses.prompt_logprobs(body, self._of_prompt)
        if values is None:
            raise Broken(NO_LOGPROBS)
        return Answer(repr(-float(np.mean(values))) if values else "nan", tuple(values))

    async def _complete(self, connection: openai.AsyncOpenAI, text: str, how: str) -> Any:
        return await self._send(connection, "completions", {"prompt": text, **OF_PROMPT[how]})

    async def _ask_chat(self, connection: openai.AsyncOpenAI, request: Request) -> dict[str, Any]:
        """Send a chat request, with fields in the form that the server accepts."""
        chat = self._chat
        sent = chat.accepted(chat.body(request))
        try:
            return await self._send(connection, "chat/completions", sent)
        except Refusal as refusal:
            known = set(chat.asked_with)
            label = chat.learn(sent, refusal)
            if not label:
                raise
            if label not in known:
                say(f"{self.url}: does not take {label}, which is {chat.asked_with[label]}")
            raise Retry(f"does not take {label}", after=0) from None

    async def _send(
        self, connection: openai.AsyncOpenAI, place: str, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Send a request once, and return the body of the answer, which has a choice."""
        kind = "a chat endpoint" if "messages" in fields else place
        reason = f"did not answer as {kind} of OpenAI's protocol does"
        try:
            response = await connection.post(
                f"/{place}", cast_to=HttpxBinaryResponseContent, body={"model": self.name, **fields}
            )
            text = response.content.decode(errors="replace").strip()
            is_stream = text.startswith(STREAM_STARTS)  # some servers stream although not asked to
            body = responses.joined(text) if is_stream else json.loads(text)
            body = key_names.redacted(body, self._key)  # some servers repeat it
        except openai.APIStatusError as error:
            headers = error.response.headers
            failure = self._failure(error.status_code, error.body, error.message, headers)
            raise failure from None  # the original may hold the key
        except openai.APIConnectionError as error:
            raise await self._no_connection(error) from None
        except (openai.OpenAIError, ValueError, TypeError, RecursionError):
            raise Retry(reason) from None
        written = responses.token_count(body, "completion_tokens")
        self._client.count_tokens(responses.token_count(body, "prompt_tokens"), written)
        choice = responses.first_choice(body)
        # Some servers and relays send an error with status 200.
        has_failed = not choice or at(body, "base_resp", "status_code")
        problem = at(choice, "error") or (body if has_failed else None)
        if texts := "\n".join(responses.error_texts(problem)):
            raise self._failure(responses.status_in(problem, texts), problem)
        if not choice:
            raise Retry(reason, tries=TRIES_OF_BROKEN)
        end = choice.get("finish_reason")
        if str(end).lower() in responses.BROKEN_OFF or (is_stream and not end):
            raise Retry(f"broke off its reply ({end})")
        self._check_same("host", response.response.url.netloc.decode())
        if isinstance(name := body.get("model"), str) and name:
            self._check_same("model", responses.first_line(name))
        by_header = response.response.headers.get("x-inference-provider")  # of the Hub's router
        self._note("provider", body.get("provider", by_header))
        self._note("system fingerprint", body.get("system_fingerprint"))
        tokens = at(choice, "logprobs", "content")
        if isinstance(tokens, list) and 0 < written < len(tokens):
            raise Broken(
                f"{BROKEN_ANSWER} the log-probabilities of {len(tokens):,} tokens of a reply "
                f"of {written:,}"
            )
        return {**body, "choices": [choice]}

    def _check_same(self, role: str, answered: str) -> None:
        """Record the model or host that answers; raise RunFailed if another one did before."""
        known = self._answered[role]
        if answered not in known:
            known.append(answered)
        if answered != known[0]:
            raise RunFailed(
                f"{self.url}: the {role} that answers is {answered}, and was {known[0]} before; a "
                "run has one: give another --out, or ask when that is back"
            )

    def _note(self, role: str, answered: object) -> None:
        """Record the provider behind a router, or a fingerprint; say so if it changes."""
        known = self._answered[role]
        name = responses.first_line(answered) if isinstance(answered, str) else ""
        if name and name not in known and len(known) < MOST_NAMES:
            known.append(name)
            if len(known) == 2:
                say(f"{self.url}: the {role} of its answers changes: {', '.join(known)}")

    async def _no_connection(self, error: BaseException) -> Exception:
        """Explain why no answer came from a server."""
        cause = error
        while deeper := cause.__cause__ or cause.__context__:
            cause = deeper
        if isinstance(cause, Broken | Refusal):
            return cause
        if isinstance(cause, zlib.error):
            return Broken(f"{BROKEN_ANSWER} a body that cannot be unpacked")
        words = responses.first_line(str(cause) or type(cause).__name__)
        words = key_names.redacted(words, self._key)
        reason = ""
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = (
                f"its certificate is not accepted ({cause.verify_message}); if you trust it, give "
                "its file, or that of your institution, by the variable SSL_CERT_FILE=FILE.pem"
            )
        elif isinstance(cause, ssl.SSLError):
            reason = f"does not speak https ({words}); give http{self.url.removeprefix('https')}"
        elif self.url.startswith("http:") and not self._answered["host"] and await self._has_tls():
            reason = f"speaks https only; give https{self.url.removeprefix('http')}"
        if reason:
            return Refusal(f"{self.url}: {reason}", reason, is_general=True)
        return Retry(f"cannot be reached ({words}); is the server running?")

    async def _has_tls(self) -> bool:
        """Return whether the server speaks https at this address."""
        address = urlsplit(self.url)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with suppress(OSError, TimeoutError, EOFError):
            async with asyncio.timeout(TLS_TIMEOUT):
                port = address.port or 80
                _, writer = await asyncio.open_connection(address.hostname, port, ssl=context)
                writer.close()
                return True
        return False

    def _failure(
        self, status: int, body: Any, message: str = "", headers: Mapping[str, str] | None = None
    ) -> Retry | Refusal:
        """Turn an error into an exception without the key in its message."""
        texts = "\n".join(responses.error_texts(body))
        texts, message = key_names.redacted([texts, message], self._key)
        responses.check_refused_text(status, texts)
        label = "status 200 and an error" if headers is None else f"status {status}"
        words = responses.first_line(texts or message)
        reason = f"{label}: {words}"
        after = responses.retry_after(headers or {}, texts)
        # Some services use these words for a limit per minute.
        unpaid = responses.UNPAID.search(texts) and not responses.RATE_WORDS.search(texts)
        if (status in responses.TRANSIENT or status >= 500) and (after or not unpaid):
            return Retry(reason, status, after)
        # Status 403 is about the key if its texts are, or without a text. Some servers repeat part
        # of the key, and then we leave out their texts.
        repeats_key = any(part in texts for part in (self._key[:4], self._key[-4:]) if part)
        blames_key = status == 403 and (not texts or KEY_WORDS.search(texts) or repeats_key)
        message = f"{self.url}: answered with {label} ({words})"
        if status != 401 and not blames_key:
            is_general = bool(unpaid) or status in responses.GENERAL
            return Refusal(message, reason, status, texts, is_general)
        if repeats_key or not texts:
            message = f"{self.url}: answered with {label}"
        reason = f"the environment variable {self._variable} is wrong"
        if not self._key:
            reason = (
                f"it was asked without a key: the environment variable {self._variable} "
                f"is not set; set it, or name another by --key {self.host}=NAME"
            )
        return Refusal(f"{message}; {reason}", reason, status, is_general=True)

    def _find_thoughts(self) -> str:
        """Find out the place of thoughts in replies; "" without thoughts, or if unknown."""

        async def ask(connection: openai.AsyncOpenAI) -> dict[str, Any]:
            request = _request("generate", QUESTION, max_new_tokens=QUESTION_TOKENS)
            with suppress(TimeoutError):  # a slow server; the first answers will show it
                async with asyncio.timeout(self._client.limits.timeout / 2):
                    return await self._ask_chat(connection, request)
            return {"choices": [{}]}

        try:
            return thoughts_in(self._try(ask)["choices"][0])
        except Unanswered:
            return ""

    def _find_likeliest(self) -> int:
        """Find out the number of likeliest tokens that the server reports; if 0, note why."""
        reason = THINKS if self._chat.thoughts else NO_LOGPROBS
        for n in () if self._chat.thoughts else responses.LIKELIEST:
            self._chat.likeliest = n
            try:
                # Status 403: the key has no permission for log-probabilities.
                tolerated = (*BAD_FIELD, 403)
                body = self._try(self._ask_chat, _request("choose", COUNTING), tolerated=tolerated)
                choice = body["choices"][0]
                tokens = responses.first_tokens(choice)
                if responses.begins_thought(choice, tokens):
                    reason = THINKS
                elif len(tokens) > 1:
                    return n
                break
            except Unanswered as failure:
                reason = str(failure)
        no_letters = f"the server tells no probabilities of letters ({reason})"
        self.unsupported["choose"] = THINKS if reason == THINKS else no_letters
        return 0

    def _find_of_prompt(self) -> str:
        """Find out how the server reports a prompt's probabilities; `unsupported` explains "".

        The token that it generates after a text must have the same probability as the last token of
        the text.
        """
        reason = NO_LOGPROBS
        for how in OF_PROMPT:
            try:
                values, written = self._of_text(COUNTING, how)
                if not values:
                    raise Unanswered(NO_LOGPROBS)
                again, _ = self._of_text(COUNTING + written[0], how) if written else ([], None)
                apart = abs(again[-1] - written[1]) if written and again else 0
                if len(again) != len(values) + 1 or apart <= TOLERANCE:
                    return how
                reason = f"the server's {how} do not agree with the probabilities of what it writes"
            except Unanswered as failure:
                reason = str(failure)
        self.unsupported["nll"] = f"the server tells no probabilities of a text's tokens ({reason})"
        return ""

    def _of_text(self, text: str, how: str) -> tuple[list[float], tuple[str, float] | None]:
        """Request the log-probabilities of a text's tokens, and of the next token."""
        body = self._try(self._complete, text, how, tolerated=range(400, 600))
        return responses.prompt_logprobs(body, how) or [], responses.last_token(body)

    def _try(self, send: Any, *given: Any, tolerated: Container[int] = BAD_FIELD) -> dict[str, Any]:
        """Send one request; raise Unanswered if the server refuses it by a tolerated status."""

        async def once(connection: openai.AsyncOpenAI, _: int) -> Any:
            return await send(connection, *given)

        try:
            ((_, answer),) = self._client.stream([""], once, {})
        except Refusal as refusal:
            if refusal.status not in tolerated:
                raise
            raise Unanswered(refusal.reason) from None
        if isinstance(answer, Unanswered):
            raise answer
        return dict(answer)


def _request(request_type: str, prompt: str, **given: Any) -> Request:
    return Request("", "", "", "answer", request_type, prompt, "", Key(), **given)
