"""What an endpoint says instead of an answer: about one text, for now, or for good."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bench.core.errors import RunFailed
from bench.scorers.endpoint.url import redacted
from bench.tasks.replies import unfinished_thought

REFUSED = "refused by the content filter"
TOO_LONG = "too long for the model"
# As OpenAI, Azure, Alibaba, DeepSeek, Moonshot, OpenRouter and Zhipu word it. A key's or an
# account's risk control is another matter.
FILTER_WORDS = re.compile(
    r"content.{0,2}(filter|policy|management)|inspection.?failed|inappropriate content"
    r"|sensitive content|敏感|moderation|\brisk(?!.control)",
    re.IGNORECASE,
)
FILTER_STATUSES = (400, 403, 422, 451)
FILTER_REASONS = ("content_filter", "sensitive")
# As those, vLLM, SGLang, llama.cpp, Anthropic and Google word it.
LENGTH_WORDS = re.compile(
    r"context.{0,2}(length|size|window)|too long|reduce the length|range of input length"
    r"|token limit|exceeds? (the )?max(imum)? (length|number of (input )?tokens)|超长",
    re.IGNORECASE,
)
LENGTH_STATUSES = (400, 413, 422)
# As OpenAI words it where all tokens went into a thought.
LIMIT_WORDS = re.compile(r"max_tokens or model output limit was reached", re.IGNORECASE)
MORE_TOKENS = "--thinking-tokens or --max-new-tokens"
# Sent with the status of a busy server, but the account has to be paid first.
UNPAID = re.compile(
    r"insufficient.{0,2}(quota|balance)|exceeded your current quota|余额不足|欠费", re.IGNORECASE
)
# Timeout, conflict, too early, too many; every 5xx is transient too.
TRANSIENT = (408, 409, 425, 429)
SURROGATES = re.compile("[\ud800-\udfff]")


class Retry(Exception):
    """A failure that may be over when the request is sent again.

    Attributes:
        status: 0 where there was none.
        after: seconds that the server asks to wait.
    """

    def __init__(self, message: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.after = status, after

    @property
    def busy(self) -> bool:
        """Whether the server works, and has too much to do."""
        return self.status == 429


class Refusal(RunFailed):
    """What a server answers to every request.

    Attributes:
        reason: the message without the server's name.
        status: 0 where there was none.
        body: the error as the server sent it, which may hold the key.
    """

    def __init__(self, message: str, reason: str, status: int, body: object = None) -> None:
        super().__init__(message)
        self.reason, self.status, self.body = reason, status, body


def is_transient(status: int, body: object) -> bool:
    """Tell whether the same request may get another answer later."""
    return (status in TRANSIENT or status >= 500) and not UNPAID.search(all_texts(body))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds that a server asks to wait; None if it does not say.

    `Retry-After` is a number of seconds or a date (RFC 9110, section 10.2.3).
    """
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return seconds if seconds > 0 else None


def root_cause(error: BaseException) -> str:
    """Describe the error at the root, in the system's own words if it is one of a connection."""
    cause: BaseException | None = error
    while cause:
        error, cause = cause, cause.__cause__ or cause.__context__
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number and number > 0 else str(error) or type(error).__name__


def error_texts(body: object) -> Iterator[str]:
    """Yield the texts of an error, message first, then its codes.

    Other fields may repeat the prompt, whose words mean nothing here.
    """
    if isinstance(body, str) and body.strip():
        yield body
    elif isinstance(body, list):
        for part in body:
            yield from error_texts(part)
    elif isinstance(body, dict):
        for name in ("error", "message", "detail", "msg", "code", "type"):
            yield from error_texts(body.get(name))


def all_texts(body: object) -> str:
    return "\n".join(error_texts(body))


class Redactor:
    """Makes texts of a server fit to be shown and kept."""

    def __init__(self, key: str) -> None:
        self._key = key

    def text(self, text: str) -> str:
        """Remove the key, and surrogates, which JSON can spell and no file can hold."""
        return SURROGATES.sub("\ufffd", redacted(text, self._key))

    def line(self, message: str) -> str:
        """Return the first line of a message, at most 200 characters."""
        first = (message.strip().splitlines() or ["no reason given"])[0]
        return self.text(first)[:200]

    def error_of_text(self, status: int, body: object) -> str:
        """Explain why the server refuses this text only; "" if it would refuse any other too."""
        texts = all_texts(body)
        if status in FILTER_STATUSES and FILTER_WORDS.search(texts):
            return REFUSED
        if status == 400 and LIMIT_WORDS.search(texts):
            return unfinished_thought("", opened=True, cut=True, option=MORE_TOKENS)
        if status in LENGTH_STATUSES and LENGTH_WORDS.search(texts):
            return f"{TOO_LONG}: {self.line(next(error_texts(body)))}"
        return ""
