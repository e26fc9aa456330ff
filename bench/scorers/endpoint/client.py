"""Send requests to an endpoint: several at once, again after failures, within a budget.

All requests run in one asyncio loop in a thread of its own, so that each can be cancelled at any
moment, notebooks keep their own loop, and Ctrl-C reaches whoever waits for the answers.

The retries are not those of openai's client, which ignores a `Retry-After` of more than a minute,
cannot stop at a budget, and takes an unpaid account or a reply that broke off for something else.
"""

import asyncio
import ipaddress
import os
import random
import ssl
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import openai

from bench.config import Limits
from bench.core.errors import BadInput, BudgetSpent, RunFailed
from bench.core.progress import say
from bench.scorers.base import BROKEN_ANSWER
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint.responses import Broken, Refusal, Retry

# Seconds before the second try. They double from try to try, and begin anew after TRIES; after
# ROUNDS of them a request is given up. A busy server's request to come later is no failure.
FIRST_WAIT, TRIES, ROUNDS = 0.5, 6, 3
# A server may ask for up to an hour, as where a quota is renewed.
LONGEST_ASKED = 3600.0
# Seconds without an answer after which we say why; twice as many before the same is said again.
SILENCE = 5.0
# The longest body of an answer, packed or not.
MOST_BYTES = 32 << 20
# How a body can be packed; we ask for gzip.
PACKED = ("gzip", "x-gzip", "deflate", "compress", "br", "zstd")
# A server that has answered nothing for so many seconds is given up.
PATIENCE = 300.0
# The headers of a request besides its key.
HEADERS = (
    "accept accept-encoding connection content-length content-type host transfer-encoding "
    "user-agent"
)

T = TypeVar("T")
# Sends the request at a position once; raises `Retry` or `RunFailed`.
Send = Callable[[openai.AsyncOpenAI, int], Awaitable[T]]


@dataclass(slots=True)
class Usage:
    """What an endpoint was sent, and what came back; tokens are as the server counts them.

    Attributes:
        resent: requests that were sent after a failure.
        refused: replies refused by a content filter.
        bounded: probabilities of options that are upper bounds.
    """

    requests: int = 0
    resent: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    refused: int = 0
    bounded: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.reply_tokens

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} tokens of prompts and {self.reply_tokens:,} of replies"
        bounded = "options not among the likeliest tokens, which stand with an upper bound"
        again = f", {self.resent:,} of them again" * bool(self.resent)
        parts = {
            f"{self.requests:,} requests sent{again}": True,
            tokens: self.tokens,
            f"{self.refused:,} refused by the content filter": self.refused,
            f"{self.bounded:,} {bounded}": self.bounded,
        }
        return "; ".join(text for text, shown in parts.items() if shown)


class Client:
    """Sends requests to one endpoint, and counts them in `usage`.

    Attributes:
        by_proxy: for messages about failures, which variable names a proxy; "" without one.

    Args:
        key: sent to the endpoint's own host only; "" for one that takes requests without.
    """

    def __init__(self, url: str, key: str, limits: Limits) -> None:
        self.url, self.limits, self.usage = url, limits, Usage()
        self.budgets = budgets_of(limits)
        proxy = proxy_variable(url)
        self.by_proxy = f"; the environment variable {proxy} names a proxy" if proxy else ""
        self._key = key

    def connect(self) -> openai.AsyncOpenAI:
        """Make a client that tries everything once, and sends nothing of the environment.

        openai's client takes headers from there: an organisation, a project, and any other.
        """

        async def keep_headers(request: Any) -> None:
            # Redirected requests come through here too; httpx has removed the key from those to
            # another origin.
            request.headers["accept-encoding"] = "gzip"  # which `_read` unpacks
            to_own_host = "authorization" in request.headers
            for name in set(request.headers) - set(HEADERS.split()):
                del request.headers[name]
            if to_own_host and self._key:
                request.headers["authorization"] = f"Bearer {self._key}"

        options: dict[str, Any] = {}
        if is_loopback(self.url):
            # Without the proxies of the environment, but with its certificates.
            options = {"trust_env": False, "verify": ssl.create_default_context()}
        try:
            http_client = openai.DefaultAsyncHttpxClient(
                event_hooks={"request": [keep_headers], "response": [_read]}, **options
            )
        except Exception:  # whose kind depends on the proxy, and whose message may hold a password
            if not (variable := _unusable_proxy()):
                raise
            raise BadInput(
                f"{self.url}: the environment variable {variable} names a proxy that cannot be "
                "used; allowed are http:// and https://, and after `pip install socksio` "
                "socks5:// and socks5h://; change or unset it"
            ) from None
        return openai.AsyncOpenAI(
            base_url=self.url,
            api_key="none",  # it needs one; `keep_headers` decides what is sent
            max_retries=0,
            timeout=self.limits.timeout,
            http_client=http_client,
        )

    def stream(self, n: int, send: Send[T]) -> Iterator[tuple[int, T]]:
        """Yield the answers to `n` requests with their positions, as they come.

        Raises:
            RunFailed: some could not be answered; raised after all answers that came.
        """
        call = _Call(self, n, send)
        thread = threading.Thread(target=call.run, daemon=True, name=f"asking {self.url}")
        thread.start()
        answered = 0
        try:
            while (item := call.results.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                answered += 1
                yield item
        finally:
            call.cancel()
            thread.join(1)
        if (failure := call.failure()) and n == 1:
            raise failure from None
        if failure:
            message = f"{failure}; {answered:,} of {n:,} requests were answered"
            raise (BudgetSpent if isinstance(failure, BudgetSpent) else RunFailed)(
                message
            ) from None

    def count_request(self, again: bool) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetSpent: a budget is spent.
        """
        try:
            for budget in self.budgets:
                budget.take_request()
        except BudgetSpent as spent:
            raise BudgetSpent(f"{spent} ({self.url}: {self.usage})") from None
        self.usage.requests += 1
        self.usage.resent += again

    def count_tokens(self, prompt: int, reply: int) -> None:
        """Count the tokens that the server read and wrote."""
        self.usage.prompt_tokens += prompt
        self.usage.reply_tokens += reply
        for budget in self.budgets:
            budget.add_tokens(prompt + reply)


def is_loopback(url: str) -> bool:
    """Tell whether a URL is on this machine, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_variable(url: str) -> str:
    """Return the environment variable with the proxy for a URL; "" without one."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.netloc):
        return ""
    return next(iter(_set_variables(f"{parts.scheme}_proxy", "all_proxy")), "")


def _unusable_proxy() -> str:
    """Return the environment variable with a proxy that is not of HTTP; "" without one."""
    for name in _set_variables("all_proxy", "https_proxy", "http_proxy"):
        proxy = os.environ[name]
        try:
            parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
            if parts.scheme not in ("http", "https") or parts.port == 0:
                return name
        except ValueError:  # a port that is no number, a broken address
            return name
    return ""


def _set_variables(*names: str) -> list[str]:
    """Return which of these environment variables, or of their capitals, are set."""
    return [name for pair in names for name in (pair, pair.upper()) if os.environ.get(name)]


async def _read(response: Any) -> None:
    """Read the body of an answer, and unpack it; raise Broken if it exceeds `MOST_BYTES`.

    httpx unpacks whatever it gets, and a short body can unpack to more than the memory.
    """
    named = response.headers.get("content-encoding", "").lower().split(",")
    packed = [name.strip() for name in named if name.strip() in PACKED]
    if packed not in ([], ["gzip"]):
        raise Broken(f"{BROKEN_ANSWER} a body packed as {', '.join(packed)[:40]}, not as asked")
    unpacker = zlib.decompressobj(31) if packed else None
    parts: list[bytes] = []
    size = read = 0
    async for chunk in response.aiter_raw():
        read += len(chunk)
        try:
            part = unpacker.decompress(chunk, MOST_BYTES - size + 1) if unpacker else chunk
        except zlib.error:
            raise Broken(f"{BROKEN_ANSWER} a body that cannot be unpacked") from None
        size += len(part)
        if max(size, read) > MOST_BYTES:
            raise Broken(f"{BROKEN_ANSWER} more than {MOST_BYTES >> 20} MiB")
        parts.append(part)
    response._content = b"".join(parts)  # which `aread` would make without a limit


class _Call(Generic[T]):
    """One call of `Client.stream`; all but `results` and `cancel` belongs to its thread."""

    def __init__(self, client: Client, n: int, send: Send[T]) -> None:
        self.client, self.send, self.timeout = client, send, client.limits.timeout
        self.results: SimpleQueue[Any] = SimpleQueue()
        self._n, self._waiting = n, deque(range(n))
        self._tries, self._failures = Counter[int](), Counter[int]()
        self._given_up: list[Retry] = []
        # Why requests have to be sent again, the latest reason last.
        self._reasons: dict[int, str] = {}
        self._end: RunFailed | None = None
        self._last_answer, self._longest_asked = time.monotonic(), 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        """Send all requests; put answers with their positions, and at last None, on `results`."""
        try:
            asyncio.run(self._send_all())
            self.results.put(None)
        except BaseException as error:
            self.results.put(error)

    def cancel(self) -> None:
        """Cancel what is under way, and send no more."""
        if self._loop:
            with suppress(RuntimeError):  # it is over
                self._loop.call_soon_threadsafe(self._task.cancel)

    def failure(self) -> RunFailed | None:
        """Explain why not all requests were answered; None if they were."""
        if self._end or not self._given_up:
            return self._end
        n, last = len(self._given_up), self._given_up[-1]
        requests = "a request" if n == 1 else f"{n:,} requests"
        message = f"{self.client.url}: {requests} failed each time ({last})"
        return Refusal(message, str(last), last.status)

    async def _send_all(self) -> None:
        self._task: Any = asyncio.current_task()
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with self.client.connect() as connection:
            workers = min(self.client.limits.concurrency, self._n)
            watch = asyncio.create_task(self._say_why())
            try:
                await asyncio.gather(*(self._work(connection) for _ in range(workers)))
            finally:
                watch.cancel()

    async def _say_why(self) -> None:
        """Say why no answer comes, if none does for some seconds."""
        waiting = f"each request may take {self.timeout:g} s"
        seconds: dict[str, float] = {}
        said = 0.0
        while True:
            await asyncio.sleep(SILENCE / 5)
            now = time.monotonic()
            reason = next(reversed(self._reasons.values()), waiting)
            if now - max(said, self._last_answer) >= seconds.get(reason, SILENCE):
                say(f"{self.client.url}: no answer for {now - self._last_answer:.0f} s ({reason})")
                said, seconds[reason] = now, 2 * seconds.get(reason, SILENCE)

    async def _work(self, connection: openai.AsyncOpenAI) -> None:
        """Send waiting requests, one after the other."""
        while self._waiting and not self._end:
            k = self._waiting.popleft()
            try:
                self.client.count_request(again=k in self._tries)
                async with asyncio.timeout(self.timeout):
                    answer = await self.send(connection, k)
                self._last_answer, self._longest_asked = time.monotonic(), 0.0
                self._reasons.pop(k, None)
                self.results.put((k, answer))
            except TimeoutError:
                late = Retry(f"no complete answer within {self.timeout:g} s")
                await self._put_back(k, late)
            except Retry as failure:
                await self._put_back(k, failure)
            except RunFailed as failure:
                self._stop(failure)

    async def _put_back(self, k: int, failure: Retry) -> None:
        """Wait before a failed request is sent again, after the others; or give it up."""
        self._failures[k] += failure.status != 429
        self._reasons.pop(k, None)
        # A slow or busy server could need so long for an answer.
        patience = max(PATIENCE, 2 * self.timeout) + 2 * self._longest_asked
        if time.monotonic() - self._last_answer > patience:
            self._stop(RunFailed(f"{self.client.url}: answers nothing any more ({failure})"))
        elif self._failures[k] >= TRIES * (ROUNDS if self._n > 1 else 1):
            self._given_up.append(failure)
        elif not self._end:
            seconds = FIRST_WAIT * 2 ** (self._tries[k] % TRIES) * random.uniform(0.75, 1)
            self._tries[k] += 1
            reason = str(failure)
            if failure.after is not None:
                seconds = failure.after
                reason = f"asks to wait {seconds:,.0f} s ({failure})"
                if seconds > LONGEST_ASKED:
                    self._stop(RunFailed(f"{self.client.url}: {reason}"))
                self._longest_asked = max(self._longest_asked, seconds)
            self._reasons[k] = reason
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), seconds)
            self._waiting.append(k)

    def _stop(self, reason: RunFailed) -> None:
        """Send no more; what is under way may still be answered."""
        self._end = self._end or reason
        self._ended.set()
