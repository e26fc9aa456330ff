"""Read an endpoint's responses: a text, log-probabilities of tokens, or an error."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bench.core.errors import RunFailed
from bench.scorers.endpoint.keys import redacted
from bench.tasks.replies import unfinished_thought

NO_TEXT = "the server answered without a text"
NO_LOGPROBS = "the server answered without log-probabilities"
REFUSED = "refused by the content filter"
DECLINED = "refused by the model, in a field of its own"
MORE_TOKENS = "--thinking-tokens or --max-new-tokens"
# Why a server ended a reply early: vLLM and SGLang; Zhipu; DeepSeek; OpenRouter.
BROKEN_OFF = ("abort", "network_error", "insufficient_system_resource", "error")
FILTER_REASONS = ("content_filter", "sensitive")
# Spaces before a word, as tokens have them.
SPACES = ("", " ", "▁", "Ġ")
# As OpenAI, Azure, Alibaba, DeepSeek, Moonshot, OpenRouter and Zhipu word it. A key's or an
# account's risk control is another matter.
FILTER_WORDS = re.compile(
    r"content.{0,2}(filter|policy|management)|inspection.?failed|inappropriate content"
    r"|sensitive content|敏感|moderation|\brisk(?!.control)",
    re.IGNORECASE,
)
# As those, vLLM, SGLang, llama.cpp, Anthropic and Google word it.
LENGTH_WORDS = re.compile(
    r"context.{0,2}(length|size|window)|too long|reduce the length|range of input length"
    r"|token limit|exceeds? (the )?max(imum)? (length|number of (input )?tokens)|超长",
    re.IGNORECASE,
)
# As OpenAI words it where all tokens went into a thought.
LIMIT_WORDS = re.compile(r"max_tokens or model output limit was reached", re.IGNORECASE)
# Sent with the status of a busy server, but the account has to be paid first.
UNPAID = re.compile(
    r"insufficient.{0,2}(quota|balance)|exceeded your current quota|余额不足|欠费", re.IGNORECASE
)
# Timeout, conflict, too early, too many; every 5xx is transient too.
TRANSIENT = (408, 409, 425, 429)
SURROGATES = re.compile("[\ud800-\udfff]")


class Unanswered(Exception):
    """Why a server does not answer this one request, though it answers others."""


class Retry(Exception):
    """A failure that may be over when the request is sent again, `after` so many seconds."""

    def __init__(self, message: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.after = status, after


class Refusal(RunFailed):
    """What a server answers to every request.

    Attributes:
        reason: the message without the server's name.
        status: 0 where there was none.
        texts: the texts of the error, which may hold the key.
    """

    def __init__(self, message: str, reason: str, status: int, texts: str = "") -> None:
        super().__init__(message)
        self.reason, self.status, self.texts = reason, status, texts


def text_of(choice: dict[str, Any]) -> str:
    """Return the text of an answer, without its thought."""
    if choice.get("finish_reason") in FILTER_REASONS:
        raise Unanswered(REFUSED)
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else 0
    if not content and at(message, "refusal"):  # OpenAI
        raise Unanswered(DECLINED)
    if isinstance(content, list):
        content = "".join(map(_part, content))
    if content is None:  # as where all tokens went into thoughts
        return ""
    if not isinstance(content, str):
        raise Unanswered(NO_TEXT)
    return content


def first_tokens(choice: dict[str, Any]) -> dict[str, float]:
    """Return the log-probabilities of the likeliest first tokens that the server reports."""
    first = at(choice, "logprobs", "content", 0)
    top = at(first, "top_logprobs")
    logprobs: dict[str, float] = {}
    for entry in [*(top if isinstance(top, list) else []), first]:
        token, value = at(entry, "token"), _logprob(at(entry, "logprob"))
        if isinstance(token, str) and value is not None:
            logprobs.setdefault(token, value)
    return logprobs


def options(logprobs: dict[str, float], wanted: Sequence[str]) -> tuple[list[float], int]:
    """Return the log-probabilities of the `wanted` tokens, and how many are upper bounds.

    A token that the server does not report is no likelier than the least likely that it does. If
    none is there, they are looked for with a space before them; if none is there either, the list
    is empty.
    """
    for space in SPACES:
        tokens = [space + token for token in wanted]
        missing = sum(token not in logprobs for token in tokens)
        if missing < len(tokens):
            least = min(logprobs.values())
            return [logprobs.get(token, least) for token in tokens], missing
    return [], 0


def prompt_logprobs(body: dict[str, Any], how: str) -> list[float] | None:
    """Read a prompt's log-probabilities after the first token; None if they are not there.

    They are in vLLM's own field, or where `how` is `echo` in front of the reply's, of which there
    are as many as the server counts.
    """
    if how == "echo":
        reported = at(body, "choices", 0, "logprobs", "token_logprobs")
        written = at(body, "usage", "completion_tokens")
        if not isinstance(reported, list) or type(written) is not int:
            return None
        n = len(reported) - written
        reported = reported[:n] if 0 < n <= len(reported) else None
    else:
        entries = at(body, "choices", 0, "prompt_logprobs")
        # The request asks for no alternatives, so there is one entry per token.
        reported = isinstance(entries, list) and [
            at(list(entry.values()), 0, "logprob")
            if isinstance(entry, dict) and len(entry) == 1
            else None
            for entry in entries
        ]
    values = [_logprob(value) for value in reported[1:]] if reported else [None]
    return [value for value in values if value is not None] if None not in values else None


def last_token(body: dict[str, Any]) -> tuple[str, float] | None:
    """Return text and log-probability of a completion's last token; None if not reported."""
    tokens, values = (
        at(body, "choices", 0, "logprobs", name) for name in ("tokens", "token_logprobs")
    )
    if not (isinstance(tokens, list) and isinstance(values, list) and len(tokens) == len(values)):
        return None
    token, value = at(tokens, -1), _logprob(at(values, -1))
    return (token, value) if isinstance(token, str) and token and value is not None else None


def token_count(body: Any, name: str) -> int:
    """Return a number of tokens as the server counts them; 0 where it does not."""
    n = at(body, "usage", name)
    return n if isinstance(n, int) and n > 0 else 0


def at(value: Any, *path: str | int) -> Any:
    """Return what names and positions lead to; None where they lead nowhere."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds that a server asks to wait, or a date (RFC 9110); None if it does not."""
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


def error_texts(body: object) -> Iterator[str]:
    """Yield the texts of an error: message first, then its codes and the fields that it names.

    Other fields may repeat the prompt, whose words mean nothing here.
    """
    if isinstance(body, str) and body.strip():
        yield body
    elif isinstance(body, list):
        for part in body:
            yield from error_texts(part)
    elif isinstance(body, dict):
        for name in ("error", "message", "detail", "msg", "code", "type", "param", "loc"):
            yield from error_texts(body.get(name))


def check_refused_text(status: int, texts: str, key: str) -> None:
    """Raise Unanswered if an error of a status is about the text that was sent."""
    if status in (400, 403, 422, 451) and FILTER_WORDS.search(texts):
        raise Unanswered(REFUSED)
    if status == 400 and LIMIT_WORDS.search(texts):
        raise Unanswered(unfinished_thought("", opened=True, cut=True, option=MORE_TOKENS))
    if status in (400, 413, 422) and LENGTH_WORDS.search(texts):
        raise Unanswered(f"too long for the model: {first_line(texts, key)}")


def clean(text: str, key: str) -> str:
    """Remove the key, and surrogates, which JSON can spell and no file can hold."""
    return SURROGATES.sub("\ufffd", redacted(text, key))


def first_line(message: str, key: str) -> str:
    """Return the first line of a server's message, cleaned, at most 200 characters."""
    return clean((message.strip().splitlines() or ["no reason given"])[0], key)[:200]


def _part(part: object) -> str:
    """Return the text of a part of a message, "" for a part of another kind."""
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def _logprob(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and value <= 1e-3 else None
