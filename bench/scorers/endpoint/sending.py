"""Sending requests to an endpoint: some at a time, again where that may help, and no more than was allowed.

All in one loop of `asyncio` in a thread of its own, so that a request can be given up at any moment, notebooks have
their own loop, and Ctrl-C reaches whoever waits for the answers.
"""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import openai

from bench.core.errors import RunFailed
from bench.core.progress import say
from bench.scorers.endpoint.errors import Again, Refusal
from bench.scorers.endpoint.limits import Limits

# A request that failed so often in a row waits until all others were asked, and is then tried once more as often...
TRIES = 6
# ...so many times in all. To be told to come later is no failure of the request.
ROUNDS = 3
# The wait before the second try, which doubles from try to try, and the longest; the server may ask for more.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
# What a server may ask to wait at most: an hour, as where a quota is renewed.
LONGEST_ASKED = 3600.0
# A server that has answered nothing for so long is not waited for any more.
PATIENCE = 300.0

T = TypeVar("T")
# Sends the request at a position once: its answer, or `Again`, or `RunFailed`.
Once = Callable[[openai.AsyncOpenAI, int], Awaitable[T]]


@dataclass(slots=True)
class Spent:
    """What an endpoint was sent, and what came back.

    Attributes:
        requests: sent, with those `again` sent after a failure.
        read, written: tokens of prompts and replies, as far as the server tells.
        refused: by a content filter.
        bounded: probabilities of options that are upper bounds.
    """

    requests: int = 0
    again: int = 0
    read: int = 0
    written: int = 0
    refused: int = 0
    bounded: int = 0

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def __str__(self) -> str:
        parts = [
            f"{self.requests:,} requests sent"
            + (f", {self.again:,} of them again" if self.again else "")
        ]
        if self.tokens:
            parts.append(f"{self.read:,} tokens of prompts and {self.written:,} of replies")
        for n, what in (
            (self.refused, "refused by the content filter"),
            (
                self.bounded,
                "options not among the likeliest tokens, which stand with an upper bound",
            ),
        ):
            parts += [f"{n:,} {what}"] if n else []
        return "; ".join(parts)


class Sender:
    """Sends requests to one endpoint, and keeps count.

    Args:
        name: the endpoint's, for messages.
        client: makes a client, which does not try again by itself.
    """

    def __init__(self, name: str, client: Callable[[], openai.AsyncOpenAI], limits: Limits) -> None:
        self.name, self.client, self.limits = name, client, limits
        self.spent = Spent()

    def stream(self, n: int, once: Once[T]) -> Iterator[tuple[int, T]]:
        """The answers to `n` requests by position, as they come.

        Raises:
            RunFailed: some could not be answered, after all answers that came.
        """
        work = _Work(self, n, once)
        thread = threading.Thread(target=work.run, daemon=True, name=f"asking {self.name}")
        thread.start()
        answered = 0
        try:
            while (item := work.came.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                answered += 1
                yield item
        finally:
            work.cancel()
            thread.join(1)
        if (why := work.why_not_all()) and n == 1:
            raise why from None
        if why:
            raise RunFailed(f"{why}; {answered:,} of {n:,} requests were answered") from None

    def over_budget(self) -> RunFailed | None:
        """Why no more may be sent, if so."""
        for name, spent in (("requests", self.spent.requests), ("tokens", self.spent.tokens)):
            budget = getattr(self.limits, f"budget_{name}")
            if budget is not None and spent >= budget:
                return RunFailed(
                    f"{self.name}: the budget of {budget:,} {name} is spent ({self.spent}); give more by --budget-{name}"
                )
        return None


class _Work(Generic[T]):
    """One call of `Sender.stream`. All but `came` and `cancel` is touched in the thread alone."""

    def __init__(self, sender: Sender, n: int, once: Once[T]) -> None:
        self.sender, self.once = sender, once
        # A request alone has no others to wait for.
        self._rounds = ROUNDS if n > 1 else 1
        self.came: SimpleQueue[Any] = SimpleQueue()
        self._at_once = min(sender.limits.concurrency, n)
        self._waiting = deque(range(n))
        self._failed: dict[int, int] = {}
        self._given_up: list[Again] = []
        self._end: RunFailed | None = None
        self._heard, self._granted = time.monotonic(), 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:
            self.came.put(error)
        else:
            self.came.put(None)

    def cancel(self) -> None:
        """Give up what is under way, and send no more."""
        if self._loop and self._task:
            with suppress(RuntimeError):  # it is over
                self._loop.call_soon_threadsafe(self._task.cancel)

    def why_not_all(self) -> RunFailed | None:
        if self._end or not self._given_up:
            return self._end
        last = self._given_up[-1]
        what = "a request" if len(self._given_up) == 1 else f"{len(self._given_up):,} requests"
        return Refusal(
            f"{self.sender.name}: {what} failed each time ({last})", str(last), last.status
        )

    async def _all(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._ended = asyncio.Event()
        async with self.sender.client() as client:
            await asyncio.gather(*(self._some(client) for _ in range(self._at_once)))

    async def _some(self, client: openai.AsyncOpenAI) -> None:
        """One of those that ask side by side."""
        while self._waiting and not self._end:
            k = self._waiting.popleft()
            try:
                answer = await self._tried(client, k)
            except Again as failure:
                self._failed[k] = self._failed.get(k, 0) + (not failure.busy)
                if self._silent():
                    self._stop(
                        RunFailed(f"{self.sender.name}: answers nothing any more ({failure})")
                    )
                elif self._failed[k] < self._rounds:
                    self._waiting.append(k)
                else:
                    self._given_up.append(failure)
            except RunFailed as failure:
                self._stop(failure)
            else:
                self._heard, self._granted = time.monotonic(), 0.0
                self.came.put((k, answer))

    async def _tried(self, client: openai.AsyncOpenAI, k: int) -> T:
        spent, limits = self.sender.spent, self.sender.limits
        for number in range(TRIES):
            if self._end:
                raise self._end
            if over := self.sender.over_budget():
                raise over
            spent.requests += 1
            spent.again += number > 0 or k in self._failed
            failure = Again(f"no whole answer within {limits.timeout:g} s")
            try:
                async with asyncio.timeout(limits.timeout):
                    return await self.once(client, k)
            except TimeoutError:
                pass
            except Again as error:
                failure = error
            # Under way beside others that have come to an end, or the last of its tries.
            if self._end or number == TRIES - 1 or self._silent():
                break
            await self._wait(failure, number)
        raise failure

    async def _wait(self, failure: Again, number: int) -> None:
        """Wait as long as the server asks, or longer from try to try; until all has come to an end at most."""
        seconds = min(FIRST_WAIT * 2**number, LONGEST_WAIT) * random.uniform(0.75, 1)
        if failure.after is not None:
            if failure.after > LONGEST_ASKED:
                raise RunFailed(
                    f"{self.sender.name}: asks to wait {failure.after:,.0f} s ({failure})"
                )
            if failure.after > max(LONGEST_WAIT, self._granted):
                say(f"{self.sender.name}: asks to wait {failure.after:,.0f} s ({failure})")
            seconds = failure.after
            self._granted = max(self._granted, seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _silent(self) -> bool:
        """Whether nothing was answered for longer than a slow or a busy server could need."""
        patience = max(PATIENCE, 2 * self.sender.limits.timeout) + 2 * self._granted
        return time.monotonic() - self._heard > patience

    def _stop(self, why: RunFailed) -> None:
        """Send no more. What is under way may still be answered."""
        self._end = self._end or why
        self._ended.set()
