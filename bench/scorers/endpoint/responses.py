"""Read what servers answer: a text, log-probabilities of tokens, or an error.

An error is of one request or of every request, or it passes by itself.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bench.core.errors import RunFailed
from bench.core.text import whole_characters
from bench.scorers.base import BROKEN_ANSWER, DECLINED_BY
from bench.scorers.endpoint.keys import Server, redacted
from bench.tasks.replies import plain, unfinished_thought

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
REFUSED = f"{DECLINED_BY}the content filter"
MORE_TOKENS = "--thinking-tokens or --max-new-tokens"
# Words of content filters, and codes of MiniMax, Zhipu and iFlytek. The risk control of an account
# is no content filter.
FILTER_WORDS = re.compile(
    r"content.{0,2}(filter|policy|management|moderation|exists)|inspection.?failed|moderat(ed|ion)"
    r"|(inappropriate|harmful|unsafe|prohibited|illegal).{0,2}(content|text)"
    r"|(?<!case.)sensitive|\brisk(?!.control)|(?<!thread.)(un)?safety|responsible.?ai|guardrail"
    r"|usage.(polic|guideline)|violat\w+ .{0,40}(polic|guideline|terms|practices)|censor|blocklist"
    r"|prohibited_content|recitation|(prompt|content|input|text|output|response) .{0,12}\bblocked"
    r"|敏感|违规|不合规|不安全|审核|风险|\baudit|^code (102[67]|1301|1001[34])$",
    re.IGNORECASE | re.MULTILINE,
)
# Words about the account: its refusal concerns every request.
ACCOUNT_WORDS = re.compile(r"\b(account|organi[sz]ation)|账[号户]|实名", re.IGNORECASE)
# What OpenAI writes if the thought has used up all tokens.
LIMIT_WORDS = re.compile(r"max_tokens or model output limit was reached", re.IGNORECASE)
# The fields of an error that we read, in small letters and without underscores.
ERROR_FIELDS = (
    *("error", "errors", "message", "detail", "msg", "code", "type", "param", "loc", "raw"),
    *("baseresp", "statusmsg", "errormsg", "errormessage", "errmsg", "metadata"),
    *("promptfeedback", "blockreason", "innererror", "reasons"),
)
# The fields of a status in an error that comes with status 200.
STATUS_FIELDS = ("code", "status", "status_code", "error_code")
# Words about an unpaid account. Services send them with the status of a busy server.
UNPAID = re.compile(
    r"insufficient.{0,2}(quota|balance|credit|fund)|exceeded your current quota|payment required"
    r"|arrear|good standing|余额不足|欠费",
    re.IGNORECASE,
)
# Words for a failure that may pass.
PASSING = re.compile(
    r"rate.{0,2}limit|too many requests|throttl|time.?out|timed out|overload|busy|unavailable"
    r"|internal|unknown error|try again|later|速率|频率|限流|繁忙|超时|稍后|过载",
    re.IGNORECASE,
)
# Words about limits per minute or day. Some services mix them with the words of an unpaid account.
RATE_WORDS = re.compile(
    r"(rate|token|request)s?.{0,2}limit|per.(second|minute|hour|day)|retry (in|after)|try again in"
    r"|throttl|速率|频率",
    re.IGNORECASE,
)
# Words about a wrong key, because status 403 can also be about models, fields and regions.
KEY_WORDS = re.compile(r"key|credential|authenti|unauthori|signature|密钥|鉴权", re.IGNORECASE)
# Timeout, conflict, too early, too many requests; also all 5xx.
TRANSIENT = (408, 409, 425, 429)
# Of a wrong key, an unpaid account, and a wrong name or place.
GENERAL = (401, 402, 404)
# No content filter answers with these.
UNFILTERED = (*GENERAL, *TRANSIENT, 503)


class Unanswered(Exception):
    """The reason why a server does not answer this request, although it answers others."""


class Broken(Exception):
    """The reason why we cannot read an answer; another try may help."""


class Refusal(RunFailed):
    """An error of the server at `url` to a request, or to every request.

    Attributes:
        reason: the message without the server's address.
        status: 0 if there is none.
        texts: of the error.
        is_general: whether it holds for every request, as that of a wrong key does.
    """

    def __init__(
        self, url: str, reason: str, status: int = 0, texts: str = "", is_general: bool = False
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.reason, self.status, self.texts = reason, status, texts
        self.is_general = is_general

    @classmethod
    def of_status(cls, server: Server, label: str, status: int, texts: str) -> "Refusal":
        """Return the error of a request that another try would not answer.

        Status 403 can also be about models and regions. If a server repeats a part of the key, we
        leave out its texts.
        """
        key = server.key
        repeats_key = bool(key) and (key[:4] in texts or key[-4:] in texts)
        is_withheld = repeats_key or not texts
        reason = f"{label}: {first_line(texts)}"
        if status != 401 and not (status == 403 and (is_withheld or KEY_WORDS.search(texts))):
            is_general = status in GENERAL or is_unpaid(texts)
            return cls(server.url, reason, status, texts, is_general)
        problem = f"the environment variable {server.variable} is wrong"
        if not key:
            problem = (
                f"it was asked without a key: the environment variable {server.variable} is not "
                f"set; set it, or name another by --key {server.host}=NAME"
            )
        reason = label if is_withheld else reason
        return cls(server.url, f"{reason}; {problem}", status, is_general=True)


def is_unpaid(texts: str) -> bool:
    """Return whether an error is about money, and not about a limit of a minute or a day."""
    return bool(UNPAID.search(texts)) and not RATE_WORDS.search(texts)


def retry_after(headers: Mapping[str, str]) -> float | str | None:
    """Return how long a server asks us to wait, in seconds or as a date.

    None means our usual wait, also if a server asks for less than a second.
    """
    value = headers.get("retry-after", "").strip()
    try:
        return float(value) if float(value) >= 1 else None
    except ValueError:
        return value or None


def error_texts(body: object, deepest: int = 9) -> Iterator[str]:
    """Yield the texts of an error, without fields that may repeat the prompt."""
    text = re.sub(r"<[^<>]{0,200}>", "\n", body).strip() if isinstance(body, str) else ""
    if text:  # without the tags of a page
        yield text
    parts = body
    if isinstance(body, dict):
        named = {str(name).lower().replace("_", ""): value for name, value in body.items()}
        parts = [named[name] for name in ERROR_FIELDS if name in named]
        codes = [str(value) for name, value in named.items() if name.endswith("code")]
        parts += [f"code {code}" for code in codes if code.isdecimal()]
    for part in parts if deepest and isinstance(parts, list) else ():
        yield from error_texts(part, deepest - 1)


def check_refused_text(status: int, texts: str) -> None:
    """Raise Unanswered if an error is about the text of the request."""
    is_filtered = FILTER_WORDS.search(texts) and not ACCOUNT_WORDS.search(texts)
    if status == 451 or (status not in UNFILTERED and is_filtered):
        raise Unanswered(REFUSED)
    if status == 400 and LIMIT_WORDS.search(texts):
        raise Unanswered(unfinished_thought("", opened=True, cut=True, option=MORE_TOKENS))


def status_in(error: object, texts: str) -> int:
    """Return the status of an error that came with status 200: its own, or by its words."""
    for part in (at(error, "error"), error):
        for code in (at(part, name) for name in STATUS_FIELDS):
            if re.fullmatch("[45][0-9]{2}", str(code)):
                return int(str(code))
    if is_unpaid(texts):
        return 402
    return 503 if PASSING.search(texts) else 400


def first_line(message: str) -> str:
    """Return the first line of a server's message, cleaned, at most 200 characters."""
    return whole_characters((message.strip().splitlines() or ["no reason given"])[0])[:200]


def at(value: Any, *path: str | int) -> Any:
    """Follow names and positions into JSON; None if one is missing."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


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
