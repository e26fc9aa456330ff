"""What an endpoint says in place of an answer: about one text, for now, or for good."""

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
# As OpenAI words it where all tokens went into a thought.
MORE_TOKENS = "--thinking-tokens or --max-new-tokens"
LIMIT_WORDS = re.compile(r"max_tokens or model output limit was reached", re.IGNORECASE)
# Said with the status of a server that is busy, but waiting does not help: the account has to be paid.
UNPAID = re.compile(
    r"insufficient.{0,2}(quota|balance)|exceeded your current quota|余额不足|欠费", re.IGNORECASE
)
# A request that ran out of time, met another one, came too early or too often; every 5xx is such a status too.
PASSING = (408, 409, 425, 429)
SURROGATES = re.compile("[\ud800-\udfff]")


class Again(Exception):
    """A failure that may be over when the request is sent again, `after` so many seconds where the server says so."""

    def __init__(self, why: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(why)
        self.status, self.after = status, after

    @property
    def busy(self) -> bool:
        """Whether the server is well, and has too much to do."""
        return self.status == 429


class Refusal(RunFailed):
    """What a server answers to whatever it is asked.

    Attributes:
        why: the reason without the server's name.
        status: 0 where there was none.
        body: the error as the server sent it, which may hold the key.
    """

    def __init__(self, message: str, why: str, status: int, body: object = None) -> None:
        super().__init__(message)
        self.why, self.status, self.body = why, status, body


def passing(status: int, body: object) -> bool:
    """Whether an answer with this status may be another one when the request is sent again."""
    return (status in PASSING or status >= 500) and not UNPAID.search("\n".join(words(body)))


def wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait before a request is sent again; None where it does not say.

    `Retry-After` is a number of seconds or a date (RFC 9110, section 10.2.3).
    """
    said = headers.get("retry-after", "").strip()
    try:
        seconds = float(said)
    except ValueError:
        try:
            then = parsedate_to_datetime(said)
        except ValueError:
            return None
        seconds = (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return seconds if seconds > 0 else None


def root_cause(error: BaseException) -> str:
    """Say what an error goes back to: of a connection, in the system's own words where it has some."""
    root: BaseException | None = error
    while root:
        error, root = root, root.__cause__ or root.__context__
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number and number > 0 else str(error) or type(error).__name__


def words(body: object) -> Iterator[str]:
    """What an error says, message first, then its codes. The rest may repeat the prompt, whose words mean nothing here."""
    if isinstance(body, str) and body.strip():
        yield body
    elif isinstance(body, list):
        for part in body:
            yield from words(part)
    elif isinstance(body, dict):
        for name in ("error", "message", "detail", "msg", "code", "type"):
            yield from words(body.get(name))


class Plain:
    """Texts of a server as they can be shown and kept: without the key, and of whole characters."""

    def __init__(self, key: str) -> None:
        self._key = key

    def whole(self, text: str) -> str:
        """`text` without the key, and without halves of characters, which JSON can spell and no file can hold."""
        return SURROGATES.sub("\ufffd", redacted(text, self._key))

    def line(self, message: str) -> str:
        """The first line of a message."""
        first = (message.strip().splitlines() or ["no reason given"])[0]
        return self.whole(first)[:200]

    def of_this_text(self, status: int, body: object) -> str:
        """Why the server will not answer this one text; "" where it would answer no other either."""
        said = list(words(body))
        if status in FILTER_STATUSES and FILTER_WORDS.search("\n".join(said)):
            return REFUSED
        if status == 400 and LIMIT_WORDS.search("\n".join(said)):
            return unfinished_thought("", opened=True, cut=True, option=MORE_TOKENS)
        if status in LENGTH_STATUSES and LENGTH_WORDS.search("\n".join(said)):
            return f"{TOO_LONG}: {self.line(said[0])}"
        return ""
