"""Send requests to an endpoint: several at once, again after failures, within a budget.

openai's client connects, keeps connections and reads answers. We let it try each request once,
because its own retries know no budget and ignore a long `Retry-After`.

All requests run in one asyncio loop in a thread of its own, so that we can cancel each at any
moment, notebooks keep their own loop, and Ctrl-C reaches the thread that waits for answers.
"""

import asyncio
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import openai

from bench.config import Limits
from bench.core.errors import BadInput, BudgetSpent, RunFailed
from bench.core.progress import say
from bench.scorers.base import BROKEN_ANSWER
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint.responses import Broken, Refusal, Retry, Unanswered

# We give up a request after so many failures.
TRIES = 10
TRIES_OF_ONE = 6  # for a single request, before a run
# After so many broken answers, a request has an error.
TRIES_OF_BROKEN = 3
# Exponential backoff: seconds before the second try, doubled for each further try.
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
# Seconds that a server may request us to wait, for example until a quota is renewed.
LONGEST_ASKED = 3600.0
# We give up a server after so many seconds without any answer.
PATIENCE = 300.0
# After so many seconds without an answer we report the reason; the next report comes after twice
# this time, and so on.
SILENCE = 5.0
# Maximum size of an unpacked answer.
MOST_BYTES = 32 << 20
# The headers of a request besides its key.
HEADERS = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    "user-agent",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")

# Sends the request at a position once, and returns its answer.
Send = Callable[[openai.AsyncOpenAI, int], Awaitable[Any]]


class Client:
    """Sends requests to one endpoint, with its key if any, and counts requests and tokens."""

    def __init__(self, url: str, key: str, limits: Limits) -> None:
        self.url, self.limits, self._key = url, limits, key
        self.requests = self.prompt_tokens = self.reply_tokens = 0
        self.budgets = budgets_of(limits)

    def connect(self) -> openai.AsyncOpenAI:
        """Make a client of openai that tries once, and sends no header of the environment."""

        async def keep_headers(request: Any) -> None:
            # This also sees redirected requests. If they go to another host, httpx has removed the
            # key.
            to_own_host = "authorization" in request.headers
            for name in set(request.headers) - HEADERS:
                del request.headers[name]
            request.headers["accept-encoding"] = "gzip"
            if to_own_host and self._key:
                request.headers["authorization"] = f"Bearer {self._key}"

        options: dict[str, Any] = {}
        is_here = urlsplit(self.url).hostname in LOOPBACK
        if is_here:
            # No proxy can reach a server on this machine; certificates are the environment's.
            options = {"trust_env": False, "verify": ssl.create_default_context()}
        try:
            http_client = openai.DefaultAsyncHttpxClient(
                event_hooks={"request": [keep_headers], "response": [_read]}, **options
            )
        except Exception:  # its kind depends on the proxy, and its message may hold a password
            if is_here:
                raise
            raise BadInput(
                f"{self.url}: HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a proxy that cannot be "
                "used; allowed are http:// and https://, and after `pip install socksio` "
                "socks5:// and socks5h://; change or unset it"
            ) from None
        return openai.AsyncOpenAI(
            base_url=self.url,
            api_key="none",  # a required argument; `keep_headers` sets the key
            max_retries=0,
            timeout=None,  # `_Call` limits the time of the whole answer
            http_client=http_client,
        )

    def stream(self, n: int, send: Send) -> Iterator[tuple[int, Any]]:
        """Yield the answers to `n` requests with their positions, as they come.

        If a request has an error, its answer is an `Unanswered`.
        """
        call = _Call(self, n, send)
        thread = threading.Thread(target=call.run, daemon=True, name=f"asking {self.url}")
        thread.start()
        try:
            while (item := call.results.get()) is not None:
                if isinstance(item, BaseException):
                    raise item from None
                yield item
        finally:
            call.cancel()
            thread.join(1)

    def count_tokens(self, prompt: int, reply: int) -> None:
        """Count the tokens that the server read and wrote."""
        self.prompt_tokens += prompt
        self.reply_tokens += reply
        for budget in self.budgets:
            budget.add_tokens(prompt + reply)


class _Call:
    """One call of `Client.stream`; other threads use only `results` and `cancel`."""

    def __init__(self, client: Client, n: int, send: Send) -> None:
        self.client, self.send, self.timeout = client, send, client.limits.timeout
        self.results: SimpleQueue[Any] = SimpleQueue()
        self._n, self._waiting, self._answered = n, deque(range(n)), 0
        self._given_up: list[Retry] = []
        # The reasons for sending requests again, the latest reason last.
        self._reasons: dict[int, str] = {}
        self._end: RunFailed | None = None
        self._last_answer, self._longest_asked = time.monotonic(), 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        """Put answers with their positions on `results`, and finally None or an exception."""
        try:
            asyncio.run(self._send_all())
            self.results.put(self._failure())
        except BaseException as error:
            self.results.put(error)

    def cancel(self) -> None:
        if self._loop:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _failure(self) -> RunFailed | None:
        """Explain a missing answer; None if all requests have answers."""
        failure = self._end
        if self._given_up and not failure:
            n, last = len(self._given_up), self._given_up[-1]
            requests = "a request" if n == 1 else f"{n:,} requests"
            message = f"{self.client.url}: {requests} failed each time ({last})"
            failure = Refusal(message, str(last), last.status)
        if not failure or self._n == 1:
            return failure
        kind = BudgetSpent if isinstance(failure, BudgetSpent) else RunFailed
        return kind(f"{failure}; {self._answered:,} of {self._n:,} requests were answered")

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
        """Report the reason if there is no answer for some seconds."""
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
        """Send waiting requests one after the other, each until it has an answer or fails."""
        while self._waiting and not self._ended.is_set():
            k = self._waiting.popleft()
            try:
                answer = await self._answer(connection, k)
            except Retry as failure:
                self._given_up.append(failure)
            except RunFailed as failure:  # other requests may still get answers
                self._end = self._end or failure
                self._ended.set()
            else:
                self._answered += 1
                self.results.put((k, answer))
            self._reasons.pop(k, None)

    async def _answer(self, connection: openai.AsyncOpenAI, k: int) -> Any:
        """Send a request until it has an answer or fails; a failure means:

        - `Unanswered`: this error is the answer.
        - `Broken`: try again soon; after `TRIES_OF_BROKEN` this error is the answer.
        - `Retry`, or no complete answer in time: try again later; after `TRIES` raise it. For a
          busy server (429) the number of tries is not limited.
        - `RunFailed`: the end of the run.
        """
        tries = broken = failures = 0
        while True:
            for budget in self.client.budgets:
                budget.take_request()
            self.client.requests += 1
            tries += 1
            failure: Retry | None = None
            try:
                async with asyncio.timeout(self.timeout):
                    answer = await self.send(connection, k)
            except TimeoutError:
                failure = Retry(f"no complete answer within {self.timeout:g} s")
            except Retry as error:
                failure = error
            except Unanswered as error:
                answer, broken = error, broken + isinstance(error, Broken)
                if isinstance(error, Broken) and broken < TRIES_OF_BROKEN:
                    await asyncio.sleep(FIRST_WAIT)
                    continue
            if not failure:
                self._last_answer, self._longest_asked = time.monotonic(), 0.0
                return answer
            failures += failure.status != 429
            if failures == (TRIES if self._n > 1 else TRIES_OF_ONE):
                raise failure
            await self._wait(k, failure, tries)
            if self._ended.is_set():
                raise failure

    async def _wait(self, k: int, failure: Retry, tries: int) -> None:
        """Wait before sending a request again; raise RunFailed to give up the server."""
        reason = str(failure)
        seconds = min(FIRST_WAIT * 2 ** min(tries - 1, 9), LONGEST_WAIT) * random.uniform(0.75, 1)
        if failure.after is not None:
            seconds = failure.after
            reason = f"asks to wait {seconds:,.0f} s ({failure})"
            if seconds > LONGEST_ASKED:
                raise RunFailed(f"{self.client.url}: {reason}")
            self._longest_asked = max(self._longest_asked, seconds)
        # A slow or busy server can need this time for an answer.
        patience = max(PATIENCE, 2 * self.timeout) + 2 * self._longest_asked
        if time.monotonic() - self._last_answer > patience:
            raise RunFailed(f"{self.client.url}: answers nothing any more ({failure})")
        self._reasons.pop(k, None)
        self._reasons[k] = reason
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)


async def _read(response: Any) -> None:
    """Read the body of an answer; raise Broken if it exceeds `MOST_BYTES`.

    httpx unpacks up to 64 KiB at once, at most 66 MiB for gzip. Other compressions, or two of them,
    could exceed the memory.
    """
    packed = response.headers.get("content-encoding", "").lower()
    if "," in packed or packed in ("br", "zstd"):
        raise Broken(f"{BROKEN_ANSWER} a body packed as {packed[:40]}, not as asked")
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise Broken(f"{BROKEN_ANSWER} more than {MOST_BYTES >> 20} MiB")
    response._content = bytes(body)  # `aread` would read it without a limit
