"""Send requests to an endpoint: several at once, again after failures, within a budget.

All requests run in one asyncio loop in a thread of its own, so that each can be cancelled at any
moment, notebooks keep their own loop, and Ctrl-C reaches whoever waits for the answers.

The retries are not those of openai's client, which ignores a `Retry-After` of more than a minute,
cannot stop at a budget, and takes an unpaid account or a reply that broke off for something else.
"""

import asyncio
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import openai

from bench.core.errors import RunFailed
from bench.core.progress import say
from bench.scorers.endpoint.errors import Refusal, Retry
from bench.scorers.endpoint.limits import Limits

# A request that failed TRIES times in a row waits until all others were sent; ROUNDS times in all.
# A busy server's request to come later is no failure.
TRIES, ROUNDS = 6, 3
# Seconds before the second try, which double from try to try, and the longest; a server may ask for
# more, up to an hour, as where a quota is renewed.
FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED = 0.5, 30.0, 3600.0
# A server that has answered nothing for so many seconds is given up.
PATIENCE = 300.0
# The headers of a request besides its key.
HEADERS = (
    "accept accept-encoding connection content-length content-type host transfer-encoding "
    "user-agent x-stainless-raw-response"  # openai's client knows its own requests by the last
)

T = TypeVar("T")
# Sends the request at a position once; raises `Retry` or `RunFailed`.
Send = Callable[[openai.AsyncOpenAI, int], Awaitable[T]]


def make_client(url: str, key: str, timeout: float) -> openai.AsyncOpenAI:
    """Make a client that tries everything once, and sends the key to its own host only.

    openai's client takes headers from the environment: an organisation, a project, and whatever
    OPENAI_CUSTOM_HEADERS holds. None of them is sent.

    Args:
        key: "" for a host that takes requests without one.
    """

    async def keep_headers(request: Any) -> None:
        # Redirected requests come through here too; httpx has removed the key from those to
        # another origin.
        to_own_host = "authorization" in request.headers
        for name in set(request.headers) - set(HEADERS.split()):
            del request.headers[name]
        if to_own_host and key:
            request.headers["authorization"] = f"Bearer {key}"

    return openai.AsyncOpenAI(
        base_url=url,
        api_key="none",  # it needs one; `keep_headers` decides what is sent
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [keep_headers]}),
    )


@dataclass(slots=True)
class Usage:
    """What an endpoint was sent, and what came back.

    Attributes:
        requests: all that were sent.
        resent: those of them that were sent after a failure.
        prompt_tokens, reply_tokens: as the server counts them.
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
        again = f", {self.resent:,} of them again" if self.resent else ""
        parts = [f"{self.requests:,} requests sent{again}"]
        if self.tokens:
            parts.append(
                f"{self.prompt_tokens:,} tokens of prompts and {self.reply_tokens:,} of replies"
            )
        if self.refused:
            parts.append(f"{self.refused:,} refused by the content filter")
        if self.bounded:
            parts.append(
                f"{self.bounded:,} options not among the likeliest tokens, "
                "which stand with an upper bound"
            )
        return "; ".join(parts)


class Client:
    """Sends requests to one endpoint, and counts them.

    Args:
        name: the endpoint's, for messages.
        connect: makes an `openai.AsyncOpenAI` that tries everything once.
    """

    def __init__(
        self, name: str, connect: Callable[[], openai.AsyncOpenAI], limits: Limits
    ) -> None:
        self.name, self.connect, self.limits = name, connect, limits
        self.usage = Usage()

    def stream(self, n: int, send: Send[T]) -> Iterator[tuple[int, T]]:
        """Yield the answers to `n` requests with their positions, as they come.

        Raises:
            RunFailed: some could not be answered; raised after all answers that came.
        """
        call = _Call(self, n, send)
        thread = threading.Thread(target=call.run, daemon=True, name=f"asking {self.name}")
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
            raise RunFailed(f"{failure}; {answered:,} of {n:,} requests were answered") from None

    def check_budget(self) -> None:
        """Refuse to send more than the budget allows.

        Raises:
            RunFailed: the budget is spent.
        """
        for name in ("requests", "tokens"):
            budget = getattr(self.limits, f"budget_{name}")
            if budget is not None and getattr(self.usage, name) >= budget:
                raise RunFailed(
                    f"{self.name}: the budget of {budget:,} {name} is spent ({self.usage}); "
                    f"give more by --budget-{name}"
                )


class _Call(Generic[T]):
    """One call of `Client.stream`; all but `results` and `cancel` belongs to its thread."""

    def __init__(self, client: Client, n: int, send: Send[T]) -> None:
        self.client, self.limits, self.send = client, client.limits, send
        self.results: SimpleQueue[Any] = SimpleQueue()
        self._n = n
        self._waiting = deque(range(n))
        self._failures = Counter[int]()
        self._given_up: list[Retry] = []
        self._end: RunFailed | None = None
        self._last_answer, self._longest_asked = time.monotonic(), 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Send all requests; put answers with their positions, and at last None, on `results`."""
        try:
            asyncio.run(self._send_all())
        except BaseException as error:
            self.results.put(error)
        else:
            self.results.put(None)

    def cancel(self) -> None:
        """Cancel what is under way, and send no more."""
        if self._loop and self._task:
            with suppress(RuntimeError):  # it is over
                self._loop.call_soon_threadsafe(self._task.cancel)

    def failure(self) -> RunFailed | None:
        """Explain why not all requests were answered; None if they were."""
        if self._end or not self._given_up:
            return self._end
        n, last = len(self._given_up), self._given_up[-1]
        requests = "a request" if n == 1 else f"{n:,} requests"
        message = f"{self.client.name}: {requests} failed each time ({last})"
        return Refusal(message, str(last), last.status)

    async def _send_all(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._ended = asyncio.Event()
        async with self.client.connect() as connection:
            workers = min(self.limits.concurrency, self._n)
            await asyncio.gather(*(self._work(connection) for _ in range(workers)))

    async def _work(self, connection: openai.AsyncOpenAI) -> None:
        """Send waiting requests, one after the other."""
        rounds = ROUNDS if self._n > 1 else 1
        while self._waiting and not self._end:
            k = self._waiting.popleft()
            try:
                answer = await self._try(connection, k)
            except Retry as failure:
                self._failures[k] += not failure.busy
                if self._silent():
                    self._stop(
                        RunFailed(f"{self.client.name}: answers nothing any more ({failure})")
                    )
                elif self._failures[k] < rounds:
                    self._waiting.append(k)
                else:
                    self._given_up.append(failure)
            except RunFailed as failure:
                self._stop(failure)
            else:
                self._last_answer, self._longest_asked = time.monotonic(), 0.0
                self.results.put((k, answer))

    async def _try(self, connection: openai.AsyncOpenAI, k: int) -> T:
        """Send a request up to TRIES times."""
        for number in range(TRIES):
            if self._end:
                raise self._end
            self.client.check_budget()
            self.client.usage.requests += 1
            self.client.usage.resent += number > 0 or k in self._failures
            failure = Retry(f"no complete answer within {self.limits.timeout:g} s")
            try:
                async with asyncio.timeout(self.limits.timeout):
                    return await self.send(connection, k)
            except TimeoutError:
                pass
            except Retry as error:
                failure = error
            if self._end or number == TRIES - 1 or self._silent():
                break
            await self._wait(failure, number)
        raise failure

    async def _wait(self, failure: Retry, number: int) -> None:
        """Wait as long as the server asks, or longer from try to try, or until the end."""
        seconds = min(FIRST_WAIT * 2**number, LONGEST_WAIT) * random.uniform(0.75, 1)
        if failure.after is not None:
            seconds = failure.after
            message = f"{self.client.name}: asks to wait {seconds:,.0f} s ({failure})"
            if seconds > LONGEST_ASKED:
                raise RunFailed(message)
            if seconds > max(LONGEST_WAIT, self._longest_asked):
                say(message)
            self._longest_asked = max(self._longest_asked, seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _silent(self) -> bool:
        """Tell whether the last answer is longer ago than a slow or busy server could need."""
        patience = max(PATIENCE, 2 * self.limits.timeout) + 2 * self._longest_asked
        return time.monotonic() - self._last_answer > patience

    def _stop(self, reason: RunFailed) -> None:
        """Send no more; what is under way may still be answered."""
        self._end = self._end or reason
        self._ended.set()
