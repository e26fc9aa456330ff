"""A chat endpoint that speaks OpenAI's protocol: `openai:NAME@URL`, as vLLM, llama.cpp, Ollama and hosted services do.

The key comes from the environment variable OPENAI_API_KEY and goes nowhere but into the requests.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

from bench.errors import BadInput, RunFailed
from bench.scorers.address import KEY, parse, redacted
from bench.scorers.base import Answer, Model, Tally, each_seed, messages
from bench.tasks.request import Request, Turns, Until

AT_ONCE = 8
RETRIES = 4
TIMEOUT = 120.0
REFUSED = "refused by the content filter"
TOO_LONG = "too long for the model"
NO_TEXT = "the server answered without a text"
# As OpenAI, Azure, Alibaba, DeepSeek, Moonshot, OpenRouter and Zhipu word it. A key's or an account's risk control is
# another matter.
FILTER_WORDS = re.compile(
    r"content.{0,2}(filter|policy|management)|inspection.?failed|inappropriate content|sensitive content|敏感"
    r"|moderation|\brisk(?!.control)",
    re.IGNORECASE,
)
FILTER_STATUSES = (400, 403, 422, 451)
FILTER_REASONS = ("content_filter", "sensitive")
# As those, vLLM, SGLang, llama.cpp, Anthropic and Google word it.
LENGTH_WORDS = re.compile(
    r"context.{0,2}(length|size|window)|too long|reduce the length|range of input length|token limit"
    r"|exceeds? (the )?max(imum)? (length|number of (input )?tokens)|超长",
    re.IGNORECASE,
)
LENGTH_STATUSES = (400, 413, 422)
SURROGATES = re.compile("[\ud800-\udfff]")


class Endpoint(Model):
    """Generates replies; each prompt is a chat's one user turn."""

    verbs: tuple[str, ...] = ("generate",)
    reads: tuple[str, ...] = ("text",)

    def __init__(self, rest: str) -> None:
        self.name, self.url = parse(rest)
        self.tally = Tally()  # tokens that others compute are not counted
        self._key = os.environ.get(KEY, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise BadInput(f"the environment variable {KEY}: holds characters that no key has")
        self.client = openai.OpenAI(
            base_url=self.url, api_key=self._key or "none", max_retries=RETRIES, timeout=TIMEOUT
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "chat endpoint (OpenAI's protocol)",
            "id": f"openai:{self.name}@{self.url}",
            "url": self.url,
            "prompted_as": "chat turn of the endpoint",
            "decoding": "the server's own",
        }

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
        answers = self._all(
            [
                (prompt, max_new_tokens, one, greedy)
                for prompt, one in zip(prompts, each_seed(seed, len(prompts)), strict=True)
            ]
        )
        return [answer.response for answer in answers]

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers to `requests`, in their order, asked several at a time."""
        return self._all(
            [(request.turns, request.max_new_tokens, request.seed, request.of_judge) for request in requests]
        )

    def _all(self, asked: Sequence[tuple[Turns, int, int, bool]]) -> list[Answer]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda one: self._one(*one), asked))

    def _one(self, prompt: Turns, max_new_tokens: int, seed: int, greedy: bool) -> Answer:
        start = time.perf_counter()
        response, error = self._reply(prompt, max_new_tokens, seed, greedy)
        return Answer(response, error=error, seconds=time.perf_counter() - start)

    def _reply(self, prompt: Turns, max_new_tokens: int, seed: int, greedy: bool) -> tuple[str, str]:
        """The reply's text, and why there is none.

        Raises:
            RunFailed: the server cannot be reached or does not answer.
        """
        try:
            # Raw, because the client takes anything for a completion.
            answer = self.client.chat.completions.with_raw_response.create(
                model=self.name,
                messages=messages(prompt),  # type: ignore[arg-type]
                max_tokens=max_new_tokens,
                seed=seed,
                temperature=0.0 if greedy else openai.omit,
            )
            body = json.loads(answer.content.decode(errors="replace"))
        except openai.APIStatusError as error:
            if why := self._of_this_text(error.status_code, error.body):
                return "", why
            raise RunFailed(self._why_not(error)) from None  # the original may hold the key
        except openai.APIConnectionError as error:
            reason = self._plain(str(error.__cause__ or error))
            raise RunFailed(f"{self.url}: cannot be reached ({reason}); is the server running?") from None
        except (openai.OpenAIError, ValueError, RecursionError):
            body = None
        choices = body.get("choices") if isinstance(body, dict) else None
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            text, why = _text(choices[0])
            return redacted(text, self._key), why
        # Some servers and relays send an error with the status of an answer.
        if isinstance(body, dict) and (why := self._of_this_text(400, body.get("error"))):
            return "", why
        raise RunFailed(f"{self.url}: did not answer as a chat endpoint of OpenAI's protocol does")

    def _of_this_text(self, status: int, body: object) -> str:
        """Why the server will not answer this one text; "" where it would answer no other either."""
        words = list(_words(body))
        said = "\n".join(words)
        if status in FILTER_STATUSES and FILTER_WORDS.search(said):
            return REFUSED
        if status in LENGTH_STATUSES and LENGTH_WORDS.search(said):
            return f"{TOO_LONG}: {self._plain(words[0])}"
        return ""

    def _why_not(self, error: openai.APIStatusError) -> str:
        status = f"{self.url}: answered with status {error.status_code}"
        if error.status_code in (401, 403):  # some servers repeat part of the key in the message
            return f"{status}; the environment variable {KEY} {'is wrong' if self._key else 'is not set'}"
        return f"{status} ({self._plain(next(_words(error.body), error.message))})"

    def _plain(self, message: str) -> str:
        """The first line of a message, without the key."""
        first = (message.strip().splitlines() or ["no reason given"])[0]
        return _writable(first.replace(self._key, "[key]") if self._key else first)[:200]


def _words(body: object) -> Iterator[str]:
    """What an error says, message first, then its codes. The rest may repeat the prompt, whose words mean nothing here."""
    if isinstance(body, str) and body.strip():
        yield body
    elif isinstance(body, list):
        for part in body:
            yield from _words(part)
    elif isinstance(body, dict):
        for name in ("error", "message", "detail", "msg", "code", "type"):
            yield from _words(body.get(name))


def _text(choice: dict[str, Any]) -> tuple[str, str]:
    """The text of a choice, and why there is none. What the model thought before it is no part of it."""
    if choice.get("finish_reason") in FILTER_REASONS:
        return "", REFUSED
    message = choice.get("message")
    if not isinstance(message, dict):
        return "", NO_TEXT
    content = message.get("content")
    if content is None:  # as where all tokens went into thoughts
        return "", ""
    if isinstance(content, list):
        content = "".join(map(_part, content))
    return (_writable(content), "") if isinstance(content, str) else ("", NO_TEXT)


def _part(part: object) -> str:
    """The text of a part of a message, "" of a part of another kind."""
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def _writable(text: str) -> str:
    """`text` without halves of characters, which JSON can spell and no file can hold."""
    return SURROGATES.sub("\ufffd", text)
