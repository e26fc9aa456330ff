"""Read an endpoint's responses: a text, or log-probabilities of its first token or of a prompt."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from bench.scorers.endpoint.errors import FILTER_REASONS, REFUSED

NO_TEXT = "the server answered without a text"
NO_LOGPROBS = "the server answered without log-probabilities"
# Why a server ended a reply early: vLLM and SGLang; Zhipu; DeepSeek; OpenRouter.
BROKEN_OFF = ("abort", "network_error", "insufficient_system_resource", "error")
# Spaces before a word, as tokens have them.
SPACES = ("", " ", "▁", "Ġ")


def choice(body: Any) -> dict[str, Any] | None:
    """Return the answer in the body of a response; None if there is none."""
    choices = _at(body, "choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def text(answer: dict[str, Any]) -> tuple[str, str]:
    """Return the text of an answer, without its thought, and why there is none."""
    if answer.get("finish_reason") in FILTER_REASONS:
        return "", REFUSED
    message = answer.get("message")
    if not isinstance(message, dict):
        return "", NO_TEXT
    content = message.get("content")
    if content is None:  # as where all tokens went into thoughts
        return "", ""
    if isinstance(content, list):
        content = "".join(map(_part, content))
    return (content, "") if isinstance(content, str) else ("", NO_TEXT)


def first_tokens(answer: dict[str, Any]) -> dict[str, float]:
    """Return the log-probabilities of the likeliest first tokens that the server reports."""
    content = _at(answer, "logprobs", "content")
    first = content[0] if isinstance(content, list) and content else None
    top = _at(first, "top_logprobs")
    logprobs: dict[str, float] = {}
    for entry in [*(top if isinstance(top, list) else []), first]:
        token, value = _at(entry, "token"), _logprob(_at(entry, "logprob"))
        if isinstance(token, str) and value is not None:
            logprobs.setdefault(token, value)
    return logprobs


def options(logprobs: dict[str, float], wanted: Sequence[str]) -> tuple[list[float], int]:
    """Return the log-probabilities of the `wanted` tokens, and how many are upper bounds.

    A token that the server does not report is no likelier than the least likely that it does. They
    are looked for as they are; if none is there, with a space before them.

    Returns:
        An empty list if none of them is among the likeliest.
    """
    for space in SPACES:
        tokens = [space + token for token in wanted]
        missing = sum(token not in logprobs for token in tokens)
        if missing < len(tokens):
            least = min(logprobs.values())
            return [logprobs.get(token, least) for token in tokens], missing
    return [], 0


def by_prompt_logprobs(body: dict[str, Any]) -> list[float] | None:
    """Read a prompt's log-probabilities after the first token from vLLM's own field.

    Returns:
        None if they are not there.
    """
    reported = _at(choice(body), "prompt_logprobs")
    if not isinstance(reported, list):
        return None
    # The request asks for no alternatives, so there is one entry per token.
    single = [
        next(iter(entry.values())) if isinstance(entry, dict) and len(entry) == 1 else None
        for entry in reported
    ]
    return _after_the_first([_at(entry, "logprob") for entry in single])


def by_echo(body: dict[str, Any]) -> list[float] | None:
    """Read the same where the prompt is repeated before the reply, as in OpenAI's completions.

    The reply's own tokens follow, as many as the server counts.
    """
    reported = _at(choice(body), "logprobs", "token_logprobs")
    written = _at(body, "usage", "completion_tokens")
    if not isinstance(reported, list) or type(written) is not int:
        return None
    n = len(reported) - written
    return _after_the_first(reported[:n]) if 0 < n <= len(reported) else None


OF_PROMPT: dict[str, Callable[[dict[str, Any]], list[float] | None]] = {
    "prompt_logprobs": by_prompt_logprobs,
    "echo": by_echo,
}


def last_token(body: dict[str, Any]) -> tuple[str, float] | None:
    """Return text and log-probability of a completion's last token; None if not reported."""
    tokens, values = (_at(choice(body), "logprobs", name) for name in ("tokens", "token_logprobs"))
    if not (isinstance(tokens, list) and isinstance(values, list) and len(tokens) == len(values)):
        return None
    token, value = (tokens[-1], _logprob(values[-1])) if tokens else ("", None)
    return (token, value) if isinstance(token, str) and token and value is not None else None


def token_counts(body: Any) -> tuple[int, int]:
    """Return the tokens of prompt and reply as the server counts them; 0 where it does not."""
    counts = [_at(body, "usage", name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, reply = (n if isinstance(n, int) and n > 0 else 0 for n in counts)
    return prompt, reply


def _after_the_first(reported: Sequence[Any]) -> list[float] | None:
    """Drop the first token, which has no probability; None if another one is missing."""
    values = [_logprob(value) for value in reported[1:]]
    known = [value for value in values if value is not None]
    return known if reported and len(known) == len(values) else None


def _part(part: object) -> str:
    """Return the text of a part of a message, "" for a part of another kind."""
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def _at(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _logprob(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and value <= 1e-3 else None
