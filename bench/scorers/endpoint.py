"""A chat endpoint that speaks OpenAI's protocol: `openai:NAME@URL`, as vLLM, llama.cpp, Ollama and hosted services do.

The key comes from the environment variable OPENAI_API_KEY and goes nowhere but into the requests.
"""

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import openai

from bench.errors import BadInput, RunFailed
from bench.scorers.base import Answer, Model
from bench.tasks.request import Request

KEY = "OPENAI_API_KEY"
AT_ONCE = 8
RETRIES = 4
TIMEOUT = 120.0
REFUSED = "refused by the content filter"
# As OpenAI, Azure, Alibaba, DeepSeek and Zhipu word it.
FILTER_WORDS = re.compile(
    r"content.{0,2}(filter|policy|management)|inspection.?failed|inappropriate content|content exists risk"
    r"|sensitive content|敏感",
    re.IGNORECASE,
)
FILTER_REASONS = ("content_filter", "sensitive")


class Endpoint(Model):
    """Generates replies; each prompt is a chat's one user turn."""

    verbs: tuple[str, ...] = ("generate",)

    def __init__(self, rest: str) -> None:
        self.name, _, address = rest.partition("@http")
        self.url = "http" + address
        try:
            parts = urlsplit(self.url)
            usable = self.name and parts.hostname and parts.port != 0
        except ValueError:  # a port that is no number, a broken address
            usable = False
        if not usable:
            raise BadInput(
                f"model openai:{rest}: expected openai:NAME@URL, URL like http://localhost:8000/v1"
            )
        if "@" in parts.netloc:
            raise BadInput(f"model openai:{self.name}: the URL may hold no password; put the key into {KEY}")
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
        self, prompts: Sequence[str], *, max_new_tokens: int = 32, seed: int = 0, greedy: bool = False
    ) -> list[str]:
        """A reply to each prompt, "" where the content filter refused; at temperature 0 where it is to be greedy."""
        answers = self._all([(prompt, max_new_tokens, seed, greedy) for prompt in prompts])
        return [answer.response for answer in answers]

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers to `requests`, in their order, asked several at a time."""
        return self._all(
            [(request.prompt, request.max_new_tokens, request.seed, request.of_judge) for request in requests]
        )

    def _all(self, asked: Sequence[tuple[str, int, int, bool]]) -> list[Answer]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda one: self._one(*one), asked))

    def _one(self, prompt: str, max_new_tokens: int, seed: int, greedy: bool) -> Answer:
        start = time.perf_counter()
        response, error = self._reply(prompt, max_new_tokens, seed, greedy)
        return Answer(response, error=error, seconds=time.perf_counter() - start)

    def _reply(self, prompt: str, max_new_tokens: int, seed: int, greedy: bool) -> tuple[str, str]:
        """The reply's text, and why there is none.

        Raises:
            RunFailed: the server cannot be reached or does not answer.
        """
        try:
            completion = self.client.chat.completions.create(
                model=self.name,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=max_new_tokens,
                seed=seed,
                temperature=0.0 if greedy else openai.omit,
            )
        except openai.APIStatusError as error:
            if error.status_code == 400 and FILTER_WORDS.search(str(error)):
                return "", REFUSED
            raise RunFailed(self._why_not(error)) from None  # the original may hold the key
        except openai.APIConnectionError as error:
            reason = self._plain(str(error.__cause__ or error))
            raise RunFailed(f"{self.url}: cannot be reached ({reason}); is the server running?") from None
        except (openai.OpenAIError, ValueError):
            completion = None
        # A server of another kind may answer anything.
        choices = getattr(completion, "choices", None)
        if not choices:
            raise RunFailed(f"{self.url}: did not answer as a chat endpoint of OpenAI's protocol does")
        if choices[0].finish_reason in FILTER_REASONS:
            return "", REFUSED
        return choices[0].message.content or "", ""

    def _why_not(self, error: openai.APIStatusError) -> str:
        status = f"{self.url}: answered with status {error.status_code}"
        if error.status_code in (401, 403):  # some servers repeat part of the key in the message
            return f"{status}; the environment variable {KEY} {'is wrong' if self._key else 'is not set'}"
        return f"{status} ({self._plain(error.message)})"

    def _plain(self, message: str) -> str:
        """The first line of a message, without the key."""
        first = (message.strip().splitlines() or ["no reason given"])[0]
        return (first.replace(self._key, "[key]") if self._key else first)[:200]
