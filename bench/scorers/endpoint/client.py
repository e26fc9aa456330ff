"""Send requests to an endpoint: several at once, again after failures, within a budget.

openai's client tries each request once, because its own retries know no budget and ignore a long
`Retry-After`. All requests run in one asyncio loop in a thread of its own, so that notebooks keep
their loop, and Ctrl-C reaches the thread that waits for answers.
"""

import asyncio
import random
import ssl
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import openai
from anyio.from_thread import start_blocking_portal

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
# After so many refused requests without an answer, we ask one again that had an answer.
MOST_REFUSED = 10
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
# Maximum size of an unpacked answer, and of the number of its values: ten million empty lists have
# 30 MiB, and would take 1 GiB of memory.
MOST_BYTES = 16 << 20
MOST_VALUES = 500_000
# The headers of a request besides its key.
HEADERS = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    "user-agent",
}
PLACES = ("chat/completions", "completions")
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
        address = urlsplit(self.url)
        query = dict(parse_qsl(address.query))

        async def check_request(request: Any) -> None:
            # This also sees redirected requests; after some statuses, httpx makes them GETs.
            url = urlsplit(str(request.url))
            if request.method == "GET":
                place = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
                for ending in PLACES:
                    place = place.removesuffix(f"/{ending}")
                reason = f"redirects to {place}, and drops what is asked; give {place} instead"
                raise Refusal(f"{self.url}: {reason}", reason)
            for name in set(request.headers) - HEADERS:
                del request.headers[name]
            request.headers["accept-encoding"] = "gzip"
            is_own = (url.hostname, url.port) == (address.hostname, address.port)
            if self._key and is_own and url.scheme in (address.scheme, "https"):
                # Services with a version in the address, as Azure, have a header of their own.
                name, start = ("api-key", "") if query else ("authorization", "Bearer ")
                request.headers[name] = start + self._key

        options: dict[str, Any] = {}
        is_here = address.hostname in LOOPBACK
        if is_here:
            # No proxy can reach a server on this machine; certificates are the environment's.
            options = {"trust_env": False, "verify": ssl.create_default_context()}
        try:
            http_client = openai.DefaultAsyncHttpxClient(
                event_hooks={"request": [check_request], "response": [_read]}, **options
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
            base_url=self.url.partition("?")[0],
            default_query=query,
            api_key="none",  # a required argument; `check_request` sets the key
            max_retries=0,
            timeout=None,  # `_Call` limits the time of the whole answer
            http_client=http_client,
        )

    def stream(
        self, forms: Sequence[str], send: Send, controls: dict[str, int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield positions and answers of requests as they come; an error is an `Unanswered`.

        Args:
            forms: the form of each request. A server can refuse one request, for example a prompt
                that is too long, or every request of a form.
            controls: by form, a position that the server has answered; we add to it.
        """
        call, n, answered = _Call(self, forms, send, controls), len(forms), 0
        with start_blocking_portal() as portal:
            task = portal.start_task_soon(call.run)
            task.add_done_callback(lambda _: call.results.put(None))
            while (answer := call.next_answer()) is not None:
                answered += 1
                yield answer
            failure = task.result()
        if failure and n > 1:
            kind = BudgetSpent if isinstance(failure, BudgetSpent) else RunFailed
            failure = kind(f"{failure}; {answered:,} of {n:,} requests were answered")
        if failure:
            raise failure from None

    def count_tokens(self, prompt: int, reply: int) -> None:
        """Count the tokens that the server read and wrote."""
        self.prompt_tokens += prompt
        self.reply_tokens += reply


class _Call:
    """One call of `Client.stream`; its coroutines run in the thread of the asyncio loop."""

    def __init__(
        self, client: Client, forms: Sequence[str], send: Send, controls: dict[str, int]
    ) -> None:
        self.client, self.send, self.timeout = client, send, client.limits.timeout
        self.connection = client.connect()
        self.results: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._forms, self._waiting, self._controls = forms, iter(range(len(forms))), controls
        # By form: the refused requests, and how many of them are known to be at fault themselves.
        self._refused: dict[str, list[tuple[int, Refusal]]] = defaultdict(list)
        self._at_fault: dict[str, int] = defaultdict(int)
        self._checking = asyncio.Lock()
        self._failure: RunFailed | None = None
        self._ended = asyncio.Event()
        self._reason = self._waits = f"each request may take {self.timeout:g} s"
        self._last_answer, self._longest_asked = time.monotonic(), 0.0

    def next_answer(self) -> tuple[int, Any] | None:
        """Wait for the next answer, and report the reason if this takes long."""
        silence = SILENCE
        while True:
            try:
                return self.results.get(timeout=silence)
            except Empty:
                seconds = time.monotonic() - self._last_answer
                say(f"{self.client.url}: no answer for {seconds:.0f} s ({self._reason})")
                silence *= 2

    async def run(self) -> RunFailed | None:
        """Put answers with their positions on `results`; return the reason if some are missing."""
        async with self.connection:
            workers = min(self.client.limits.concurrency, len(self._forms))
            await asyncio.gather(*(self._work() for _ in range(workers)))
            for form in self._refused:
                await self._check_refused(form, 1)
        return self._failure

    async def _work(self) -> None:
        """Send waiting requests one after the other, each until it has an answer or fails."""
        for k in self._waiting:
            await self._ask(k, self._forms[k])
            await self._check_refused(self._forms[k], MOST_REFUSED)
            if self._ended.is_set():
                break

    async def _ask(self, k: int, form: str, is_control: bool = False) -> None:
        """Send a request, and put its answer on `results`.

        An answer shows that the requests of its form that were refused before are at fault.
        """
        refused = self._refused[form]
        before = len(refused)
        try:
            answer = await self._answer(k)
        except Refusal as refusal:
            if is_control or refusal.is_general:
                self._end(refusal)
            else:
                refused.append((k, refusal))
            return
        except RunFailed as failure:
            self._end(failure)
            return
        self._last_answer, self._longest_asked = time.monotonic(), 0.0
        self._reason = self._waits
        if not is_control:
            self.results.put((k, answer))
        if isinstance(answer, Broken):
            return
        self._controls[form] = k
        for position, earlier in refused[self._at_fault[form] : before]:
            self.results.put((position, Unanswered(earlier.reason)))
        self._at_fault[form] = max(self._at_fault[form], before)

    async def _check_refused(self, form: str, most: int) -> None:
        """Find out whose fault it is if so many requests were refused since the last answer.

        We ask a request again that had an answer. If this is refused too, or if there is none, the
        server refuses everything, and the run ends.
        """
        async with self._checking:  # one worker at a time
            refused = list(self._refused[form])
            if len(refused) - self._at_fault[form] < most or self._ended.is_set():
                return
            if form in self._controls:
                await self._ask(self._controls[form], form, is_control=True)
            if self._at_fault[form] < len(refused):
                self._end(refused[-1][1])

    def _end(self, failure: RunFailed) -> None:
        self._failure = self._failure or failure  # other requests may still get answers
        self._ended.set()

    async def _answer(self, k: int) -> Any:
        """Send a request until it has an answer or fails; a failure means:

        - `Unanswered`: this error is the answer.
        - `Broken`: try again soon; after `TRIES_OF_BROKEN` this error is the answer.
        - `Retry`, or no complete answer in time: try again later; after `TRIES` raise a `Refusal`.
          For a busy server (429) the number of tries is not limited.
        - `Refusal`: of this request, or of every request.
        - `RunFailed`: the end of the run.
        """
        tries = broken = failures = 0
        while True:
            for budget in self.client.budgets:
                budget.take_request()
            self.client.requests += 1
            tries += 1
            try:
                async with asyncio.timeout(self.timeout):
                    return await self.send(self.connection, k)
            except Broken as error:
                broken += 1
                if broken == TRIES_OF_BROKEN:
                    return error
                await asyncio.sleep(FIRST_WAIT)
                continue
            except Unanswered as error:
                return error
            except TimeoutError:
                failure = Retry(f"no complete answer within {self.timeout:g} s")
            except Retry as error:
                failure = error
            failures += failure.status != 429
            most = failure.tries or (TRIES if len(self._forms) > 1 else TRIES_OF_ONE)
            if failures < most:
                await self._wait(failure, tries)
            if failures >= most or self._ended.is_set():
                message = f"{self.client.url}: a request failed each time ({failure})"
                reason = f"{BROKEN_ANSWER} a failure each time ({failure})"
                raise Refusal(message, reason, failure.status)

    async def _wait(self, failure: Retry, tries: int) -> None:
        """Wait before sending a request again; raise RunFailed to give up the server."""
        self._reason = str(failure)
        seconds = min(FIRST_WAIT * 2 ** min(tries - 1, 9), LONGEST_WAIT) * random.uniform(0.75, 1)
        if failure.after == 0:  # the next try differs
            return
        if failure.after:
            seconds = max(failure.after, seconds)
            self._reason = f"asks to wait {seconds:,.0f} s ({failure})"
            if seconds > LONGEST_ASKED:
                raise RunFailed(f"{self.client.url}: {self._reason}")
            self._longest_asked = max(self._longest_asked, seconds)
        # A slow or busy server can need this time for an answer.
        patience = max(PATIENCE, 2 * self.timeout) + 2 * self._longest_asked
        if time.monotonic() - self._last_answer > patience:
            raise RunFailed(f"{self.client.url}: answers nothing any more ({failure})")
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
    if sum(map(body.count, b",[{")) > MOST_VALUES:
        raise Broken(f"{BROKEN_ANSWER} more than {MOST_VALUES:,} values")
    response._content = bytes(body)  # `aread` would read it without a limit
