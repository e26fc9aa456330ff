"""What an endpoint's answers hold: a text, the probabilities of its first token, or those of a prompt's tokens."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from bench.scorers.endpoint.errors import FILTER_REASONS, REFUSED

NO_TEXT = "the server answered without a text"
NO_LOGPROBS = "the server answered without log-probabilities"
# Why a server ended a reply that it would have written on: vLLM and SGLang; Zhipu; DeepSeek; OpenRouter.
BROKEN_OFF = ("abort", "network_error", "insufficient_system_resource", "error")
# Blanks before a word, as tokens have them.
BEFORE = (" ", "▁", "Ġ")


def choice(body: Any) -> dict[str, Any] | None:
    """The answer in the body of a response; None where there is none."""
    choices = body.get("choices") if isinstance(body, dict) else None
    found = choices[0] if isinstance(choices, list) and choices else None
    return found if isinstance(found, dict) else None


def text(answer: dict[str, Any]) -> tuple[str, str]:
    """The text of an answer, and why there is none. What the model thought before it is no part of it."""
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
    """Log-probabilities of the likeliest first tokens of a reply, as far as the server tells them."""
    content = _at(answer, "logprobs", "content")
    first = content[0] if isinstance(content, list) and content else None
    others = _at(first, "top_logprobs")
    found: dict[str, float] = {}
    for one in [*(others if isinstance(others, list) else []), first]:
        token, value = _at(one, "token"), _number(_at(one, "logprob"))
        if isinstance(token, str) and value is not None:
            found.setdefault(token, value)
    return found


def options(found: dict[str, float], wanted: Sequence[str]) -> tuple[list[float], int]:
    """Log-probabilities of the `wanted` tokens, in their order, and how many of them are upper bounds.

    A server tells only the likeliest tokens. One that is not among them is no likelier than the least likely that is.
    They are looked for as they are spelt; where none is there, with a blank before them, as some tokenizers have it.

    Returns:
        An empty list where none of them is among the likeliest.
    """
    for before in ("", *BEFORE):
        spelt = [before + one for one in wanted]
        if any(token in found for token in spelt):
            least = min(found.values())
            return [found.get(token, least) for token in spelt], sum(
                token not in found for token in spelt
            )
    return [], 0


def by_prompt_logprobs(body: dict[str, Any]) -> list[float] | None:
    """Log-probabilities of a prompt's tokens after the first, in vLLM's own field; None where they are not told."""
    told = _at(choice(body), "prompt_logprobs")
    if not isinstance(told, list):
        return None
    # Asked for no others, the server tells the token that stands there alone.
    alone = [
        next(iter(one.values())) if isinstance(one, dict) and len(one) == 1 else None
        for one in told
    ]
    return _after_the_first([_at(one, "logprob") for one in alone])


def by_echo(body: dict[str, Any]) -> list[float] | None:
    """The same where the prompt is repeated before the reply, as OpenAI's completions had it.

    The reply's own tokens stand behind, as many as the server counts.
    """
    told, written = (
        _at(choice(body), "logprobs", "token_logprobs"),
        _at(body, "usage", "completion_tokens"),
    )
    if not isinstance(told, list) or not isinstance(written, int) or isinstance(written, bool):
        return None
    return _after_the_first(told[: len(told) - written]) if 0 <= written < len(told) else None


OF_PROMPT: dict[str, Callable[[dict[str, Any]], list[float] | None]] = {
    "prompt_logprobs": by_prompt_logprobs,
    "echo": by_echo,
}


def last_token(body: dict[str, Any]) -> tuple[str, float] | None:
    """The text and log-probability of the last token of a completion; None where they are not told."""
    tokens, told = (_at(choice(body), "logprobs", name) for name in ("tokens", "token_logprobs"))
    if not (
        isinstance(tokens, list) and isinstance(told, list) and tokens and len(tokens) == len(told)
    ):
        return None
    value = _number(told[-1])
    return (
        (tokens[-1], value)
        if isinstance(tokens[-1], str) and tokens[-1] and value is not None
        else None
    )


def tokens(body: Any) -> tuple[int, int]:
    """Tokens of the prompt and of the reply, as the server counts them; 0 where it does not."""
    counts = [_at(body, "usage", name) for name in ("prompt_tokens", "completion_tokens")]
    read, written = (n if isinstance(n, int) and n > 0 else 0 for n in counts)
    return read, written


def _after_the_first(told: Sequence[Any]) -> list[float] | None:
    """The first token follows nothing, so it has none; one that is missing elsewhere makes the rest useless."""
    values = [_number(value) for value in told[1:]]
    known = [value for value in values if value is not None]
    return known if told and len(known) == len(values) else None


def _part(part: object) -> str:
    """The text of a part of a message, "" of a part of another kind."""
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def _at(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(value: object) -> float | None:
    """A log-probability; None for anything else."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable and value <= 1e-3 else None  # type: ignore[operator, arg-type]
