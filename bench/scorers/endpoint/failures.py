"""Read the errors of servers: of one request, of every request, or that pass by themselves."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.core.errors import RunFailed
from bench.core.text import whole_characters
from bench.scorers.base import DECLINED_BY
from bench.scorers.endpoint.keys import Server
from bench.tasks.replies import unfinished_thought

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
