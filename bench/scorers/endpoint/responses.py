"""Read the answers of servers: a text, and log-probabilities of tokens."""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.scorers.base import BROKEN_ANSWER, DECLINED_BY
from bench.scorers.endpoint.failures import (
    REFUSED,
    Broken,
    Unanswered,
    at,
    error_texts,
    status_in,
)
from bench.scorers.endpoint.keys import redacted
from bench.tasks.replies import plain

NO_PROTOCOL = "something other than OpenAI's protocol"
NO_LOGPROBS = f"{BROKEN_ANSWER}out log-probabilities"
# Finish reasons of vLLM and SGLang, Zhipu, DeepSeek and OpenRouter for a reply that broke off.
BROKEN_OFF = ("abort", "network_error", "insufficient_system_resource", "error")
# Finish reasons for a limit of tokens: length, model_length, MAX_TOKENS, max_output_tokens.
CUT_REASON = re.compile(r"length|max_?(output_?)?tokens|limit|window|truncated", re.IGNORECASE)
# Finish reasons of content filters: content_filter, sensitive, SAFETY, RECITATION, refusal.
FILTER_REASON = re.compile(
    r"filter|sensitive|safety|recitation|prohibited|blocklist|spii|refus|guardrail|inspection"
    r"|moderat|toxic|censor",
    re.IGNORECASE,
)
# Fields of MiniMax and Baidu, true if their filter has refused a text.
FILTER_FIELDS = ("input_sensitive", "output_sensitive", "need_clear_history")
# The most likeliest tokens that OpenAI's protocol allows.
MOST_LIKELIEST = 20
# How tokens write the space before a word.
SPACES = " \n▁Ġ"
# Fields of servers and relays for a thought apart from the reply.
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
# Beginnings of server-sent events.
STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")
# We ignore larger counts of tokens as impossible.
MOST_TOKENS = 10**9


def text_of(choice: dict[str, Any]) -> str:
    """Return the text of an answer, without its thought."""
    if FILTER_REASON.search(str(choice.get("finish_reason"))):
        raise Unanswered(REFUSED)
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else 0
    if not content and at(message, "refusal"):  # OpenAI
        raise Unanswered(f"{DECLINED_BY}the model, in a field of its own")
    if isinstance(content, list):
        is_text = (None, "text", "output_text")
        texts = [at(part, "text") or part for part in content if at(part, "type") in is_text]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is None and (was_cut(choice) or keeps_thought_apart(choice)):
        return ""  # all tokens went into a thought
    if not isinstance(content, str):
        raise Broken(f"{BROKEN_ANSWER}out a text")
    return content


def was_cut(choice: dict[str, Any]) -> bool | None:
    """Return whether a reply was cut off at a limit; None if the server does not say."""
    reason = choice.get("finish_reason")
    return bool(CUT_REASON.search(reason)) if isinstance(reason, str) else None


def keeps_thought_apart(choice: dict[str, Any]) -> bool:
    """Return whether an answer has a thought in a separate field or part."""
    message = at(choice, "message")
    content = at(message, "content")
    parts = content if isinstance(content, list) else []
    thoughts = [at(message, name) for name in THOUGHT_FIELDS]
    thoughts += [part for part in parts if at(part, "type") in ("thinking", "reasoning")]
    return any(thought.strip() if isinstance(thought, str) else thought for thought in thoughts)


def first_tokens(choice: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the likeliest first tokens with their log-probabilities; a text can appear twice."""
    first = at(choice, "logprobs", "content", 0)
    top = at(first, "top_logprobs")
    top = top if isinstance(top, list) else []
    if len(top) > MOST_LIKELIEST + 1:  # servers may add the generated token
        raise Broken(f"{BROKEN_ANSWER} {len(top):,} likeliest tokens in place of {MOST_LIKELIEST}")
    if at(first, "token") not in [at(entry, "token") for entry in top]:
        top = [*top, first]
    entries = [entry for entry in top if isinstance(at(entry, "token"), str)]
    return list(dict.fromkeys((at(e, "token"), _logprob(at(e, "logprob"))) for e in entries))


def options(tokens: Sequence[tuple[str, float]], wanted: Sequence[str]) -> tuple[list[float], int]:
    """Return the log-probabilities of the `wanted` options, and the number of upper bounds.

    We sum an option over its spellings: "A", " A", "Ａ". If none of these is among the `tokens`,
    the probability of the least likely token is an upper bound. The list is empty if this holds for
    all options.
    """
    spelt = [(plain(token).strip(SPACES), value) for token, value in tokens]
    values = [[value for token, value in spelt if token == option] for option in wanted]
    if not any(values):
        return [], 0
    least = min(value for _, value in tokens)
    sums = [float(np.logaddexp.reduce(row)) if row else least for row in values]
    missing = [option for option, row in zip(wanted, values, strict=True) if not row]
    if missing and max(sums) <= least:
        raise Unanswered(
            f"{', '.join(missing)} is not among the likeliest first tokens of the reply, and "
            "could be as likely as the likeliest option; give --answer-mode text"
        )
    return sums, len(missing)


def prompt_logprobs(body: dict[str, Any]) -> list[float]:
    """Read a prompt's log-probabilities after the first token."""
    entries = at(body, "choices", 0, "prompt_logprobs")
    reported = at(body, "choices", 0, "logprobs", "token_logprobs")
    if isinstance(entries, list):
        # The request asks for no alternatives, so there is one entry per token.
        by_token = [list(entry.values()) if isinstance(entry, dict) else [] for entry in entries]
        reported = [at(values, 0, "logprob") if len(values) == 1 else None for values in by_token]
    else:  # with the tokens of the reply
        written = at(body, "usage", "completion_tokens")
        is_known = isinstance(reported, list) and type(written) is int
        n = len(reported) - written if is_known else 0
        reported = reported[:n] if 0 < n <= len(reported) else []
    if not reported:
        raise Broken(NO_LOGPROBS)
    n_prompt = token_count(body, "prompt_tokens")
    if n_prompt and len(reported) != n_prompt:
        raise Broken(
            f"{BROKEN_ANSWER} the log-probabilities of {len(reported):,} tokens of a prompt of "
            f"{n_prompt:,}"
        )
    return list(map(_logprob, reported[1:]))


def last_token(body: dict[str, Any]) -> tuple[str, float] | None:
    """Return text and log-probability of a completion's last token, or None."""
    logprobs = at(body, "choices", 0, "logprobs")
    token, value = at(logprobs, "tokens", -1), at(logprobs, "token_logprobs", -1)
    is_known = isinstance(token, str) and token and value is not None
    return (token, _logprob(value)) if is_known else None


def token_count(body: Any, name: str) -> int:
    """Return a server's count of tokens; 0 for none, or an impossible number."""
    n = at(body, "usage", name)
    return n if type(n) is int and 0 < n <= MOST_TOKENS else 0


def parsed(content: str, key: str) -> Any:
    """Parse an answer: JSON, server-sent events, or else its text; `key` becomes `[key]`."""
    try:
        # Some servers send events although not asked to.
        is_stream = content.startswith(STREAM_STARTS)
        return redacted(joined(content) if is_stream else json.loads(content), key)
    except (ValueError, TypeError, RecursionError):
        return redacted(content, key)


def first_choice(body: Any) -> dict[str, Any] | None:
    """Return the first choice of an answer, if any."""
    if any(at(body, name) is True for name in FILTER_FIELDS):
        raise Unanswered(REFUSED)
    choice = at(body, "choices", 0)
    return choice if isinstance(choice, dict) else None


def error_in(body: Any) -> tuple[int, str]:
    """Return the status and the texts of an error that came with status 200; 0 for no error."""
    if isinstance(body, str):  # a page, or an answer that was cut
        return 502, NO_PROTOCOL
    choice = first_choice(body)
    has_failed = not choice or at(body, "base_resp", "status_code")
    problem = at(choice, "error") or (body if has_failed else None)
    texts = "\n".join(error_texts(problem))
    if not choice and not texts:
        raise Broken(f"{BROKEN_ANSWER} {NO_PROTOCOL}")
    end = str(at(choice, "finish_reason"))
    if not texts and end.lower() in BROKEN_OFF:
        return 503, f"broke off its reply ({end})"
    return (status_in(problem, texts) if texts else 0), texts


def joined(stream: str) -> dict[str, Any]:
    """Join the server-sent events of a reply; raise ValueError if there are none."""
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    tokens: list[Any] = []
    for line in re.split("[\r\n]+", stream):
        piece = line.removeprefix("data:").strip()
        if not line.startswith("data:") or piece == "[DONE]":
            continue
        event = json.loads(piece)
        part = first_choice(event) or {}
        for old, new in ((body, event), (choice, part)):
            old |= {name: value for name, value in dict(new).items() if value is not None}
        for name, text in dict(part.get("delta") or part.get("message") or {}).items():
            if isinstance(text, str) and name != "role":
                message[name] = message.get(name, "") + text
        tokens += list(at(part, "logprobs", "content") or [])
    if choice:
        logprobs = {"content": tokens} if tokens else None
        is_cut = {"finish_reason": "network_error"}  # unless the last piece says another reason
        body["choices"] = [{**is_cut, **choice, "message": message, "logprobs": logprobs}]
    return body


def _logprob(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Python compares even integers that are too large for a float.
    if is_number and -sys.float_info.max <= value <= 1e-3:
        return float(value)
    raise Broken(f"{BROKEN_ANSWER} a log-probability that is not a number of at most 0")
