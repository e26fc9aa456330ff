"""Send requests to a server: several at once, within a budget, and again after failures.

openai's client waits and tries again. `_Http` sends one try, within the limits of requests, time
and size, and answers with status 503 if another try may help.
"""

import asyncio
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import openai
from anyio.from_thread import start_blocking_portal

from bench.config import Limits
from bench.core.errors import BadInput, BudgetSpent, RunFailed
from bench.core.progress import say
from bench.scorers.base import BROKEN_ANSWER, Answer
from bench.scorers.endpoint import keys, responses
from bench.scorers.endpoint.responses import Broken, Refusal, Unanswered
from bench.tasks.request import Request

# openai's client waits 0.5 s before the second try, then twice as long each time, up to 8 s. If the
# server asks for a longer wait, it waits for that time, up to LONGEST_WAIT.
RETRIES = 15
RETRIES_BEFORE_RUN = 5
LONGEST_WAIT = 120.0
# Tries for an answer that we cannot read, and the seconds between them.
TRIES_OF_BROKEN = 3
BROKEN_WAIT = 1.0
# After this many refused requests, we repeat an answered one, to see whether all are refused now.
MOST_REFUSED = 10
# Seconds without any answer until we give up a server.
PATIENCE = 600.0
# Seconds without an answer until we report the reason. Each next report takes twice as long.
SILENCE = 5.0
# The largest unpacked answer, and the most values in it: ten million empty lists have only 30 MiB,
# but would need 1 GiB of memory.
MOST_BYTES = 16 << 20
MOST_VALUES = 500_000
# The headers that we send besides the key.
HEADERS = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    "user-agent",
}
PATHS = ("chat/completions", "completions")
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class Client:
    """Sends requests to one server by its `connection`; `counts` has requests and tokens."""

    connection: openai.AsyncOpenAI

    def __init__(self, server: keys.Server, limits: Limits) -> None:
        self.server, self.limits, self.budgets = server, limits, limits.shared()
        self.counts = Counter[str]()
        self.last_answer, self.reason = time.monotonic(), ""
        self.answers: SimpleQueue[tuple[Request, Answer] | None] = SimpleQueue()

    def connect(self, retries: int) -> openai.AsyncOpenAI:
        """Make a client of openai; refuse a proxy of the environment that cannot be used."""
        address = urlsplit(self.server.url)
        try:
            # No proxy can reach a server here; certificates are still the environment's.
            is_elsewhere = address.hostname not in LOOPBACK
            http = _Http(self, trust_env=is_elsewhere, verify=httpx2.create_ssl_context())
        except Exception:  # its kind depends on the proxy, and its message may hold a password
            raise BadInput(
                f"{self.server.url}: HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a proxy that "
                "cannot be used; allowed are http:// and https://, and after `pip install socksio` "
                "socks5:// and socks5h://; change or unset it"
            ) from None
        return openai.AsyncOpenAI(
            base_url=self.server.url.partition("?")[0],
            default_query=dict(parse_qsl(address.query)),
            api_key="none",  # a required argument; `_Http` sends the key
            max_retries=retries,
            timeout=None,  # `_Http` limits the time of the whole answer
            http_client=http,
        )

    def call(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a coroutine that sends a few requests before a run."""

        async def connected() -> Any:
            async with self.connect(RETRIES_BEFORE_RUN) as self.connection:
                return await function()

        with start_blocking_portal() as portal:
            return portal.call(connected)

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        """Return the response to a request, which openai's client sends again after failures."""
        try:
            content = await self.connection.post(
                f"/{path}", cast_to=openai.HttpxBinaryResponseContent, body=body
            )
        except openai.APIStatusError as error:
            raise error.response.extensions["refusal"] from None
        return content.response

    async def until_read(self, ask: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Return an answer; ask again if it cannot be read, and at last raise `Broken`."""
        for _ in range(TRIES_OF_BROKEN - 1):
            try:
                return await ask(*arguments)
            except Broken as error:
                self.wait(str(error))
            await asyncio.sleep(BROKEN_WAIT)
        return await ask(*arguments)

    def stream(
        self,
        requests: Sequence[Request],
        ask: Callable[[Request], Awaitable[Answer]],
        answered: dict[str, Request],
    ) -> Iterator[tuple[Request, Answer]]:
        """Yield requests with their answers, as they come.

        All requests run in one asyncio loop in a thread of its own, so that notebooks keep their
        loop, and Ctrl-C reaches the thread that waits for answers.

        Args:
            requests: of one or more types.
            ask: sends a request, again after failures; raises `Broken` for an answer that it
                cannot read, and other `Unanswered` if this error is the answer.
            answered: a request of each type that the server has answered; we add to it.
        """
        self.last_answer, self.reason = time.monotonic(), ""
        self.answers = SimpleQueue()
        self._ask, self._answered = ask, answered
        self._failure: RunFailed | None = None
        self._refused: dict[str, list[tuple[Request, Refusal]]] = defaultdict(list)
        yielded = 0
        with start_blocking_portal() as portal:
            task = portal.start_task_soon(self._run, requests)
            task.add_done_callback(lambda _: self.answers.put(None))
            while pair := self._next():
                yielded += 1
                yield pair
            task.result()
        if self._failure:
            counts = f"; {yielded:,} of {len(requests):,} requests were answered"
            kind = BudgetSpent if isinstance(self._failure, BudgetSpent) else RunFailed
            raise kind(f"{self._failure}{counts if len(requests) > 1 else ''}")

    def waiting(self) -> list[tuple[Request, Answer]]:
        """Return the answers that have come and that an interrupted `stream` did not yield."""
        pairs = [self.answers.get() for _ in range(self.answers.qsize())]
        return [pair for pair in pairs if pair]

    def _next(self) -> tuple[Request, Answer] | None:
        """Wait for the next answer, and report the reason if this takes long."""
        silence = SILENCE
        while True:
            try:
                return self.answers.get(timeout=silence)
            except Empty:
                seconds = time.monotonic() - self.last_answer
                reason = self.reason or f"each request may take {self.limits.timeout:g} s"
                say(f"{self.server.url}: no answer for {seconds:.0f} s ({reason})")
                silence *= 2

    def wait(self, reason: str) -> None:
        """Note why a request has to be sent again; raise RunFailed to give up the server."""
        self.reason = reason
        if time.monotonic() - self.last_answer > max(PATIENCE, 2 * self.limits.timeout):
            raise RunFailed(f"{self.server.url}: answers nothing any more ({reason})")

    async def _run(self, requests: Sequence[Request]) -> None:
        """Put requests with their answers on the queue; `_failure` is why some miss."""
        waiting = iter(requests)
        async with self.connect(RETRIES) as self.connection:
            workers = min(self.limits.concurrency, len(requests))
            await asyncio.gather(*(self._send_each(waiting) for _ in range(workers)))
            for request_type in list(self._refused):
                await self._check_refused(request_type)

    async def _send_each(self, waiting: Iterator[Request]) -> None:
        for request in waiting:
            answer = await self._answer(request)
            request_type = request.request_type
            if isinstance(answer, Answer):
                self.answers.put((request, answer))
                if not answer.error or request_type not in self._answered:
                    self._answered[request_type] = request
            elif isinstance(answer, Refusal) and not answer.is_general:
                self._refused[request_type].append((request, answer))
                if len(self._refused[request_type]) >= MOST_REFUSED:
                    await self._check_refused(request_type)
            else:
                self._failure = self._failure or answer
            if self._failure:  # what is under way may still get answers
                return

    async def _check_refused(self, request_type: str) -> None:
        """Find out whether the server refuses these requests, or all of their type.

        We keep refusals, for example of prompts that are too long, until a request that had an
        answer shows which it is.
        """
        if self._failure:
            return
        refused = self._refused.pop(request_type)
        answered = self._answered.get(request_type)
        if not answered or not isinstance(await self._answer(answered), Answer):
            self._failure = refused[-1][1]
            return
        for request, refusal in refused:
            self.answers.put((request, Answer("", error=refusal.reason)))

    async def _answer(self, request: Request) -> Answer | RunFailed:
        """Return the answer to a request, or the reason why there is none."""
        start = time.perf_counter()
        try:
            answer = await self.until_read(self._ask, request)
        except Broken as error:
            return Refusal(self.server.url, str(error))
        except Unanswered as error:
            answer = Answer("", error=str(error))
        except RunFailed as failure:
            return failure
        self.last_answer, self.reason = time.monotonic(), ""
        return replace(answer, seconds=time.perf_counter() - start)


class _Http(openai.DefaultAsyncHttpxClient):
    """Sends a request once, and reads its answer."""

    def __init__(self, client: Client, **options: Any) -> None:
        super().__init__(event_hooks={"request": [self._set_headers]}, **options)
        self._client, self._server = client, client.server

    async def _set_headers(self, request: httpx2.Request) -> None:
        """Keep the usual headers, and the key for its own host; this sees redirected requests."""
        url, server = urlsplit(str(request.url)), urlsplit(self._server.url)
        if request.method == "GET":  # after some statuses httpx makes a POST a GET
            target = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
            for path in PATHS:
                target = target.removesuffix(f"/{path}")
            reason = f"redirects to {target}, and drops what is asked; give {target} instead"
            raise Refusal(self._server.url, reason, is_general=True)
        for name in set(request.headers) - HEADERS:
            del request.headers[name]
        request.headers["accept-encoding"] = "gzip"
        is_own = (url.hostname, url.port) == (server.hostname, server.port)
        if self._server.key and is_own and url.scheme in (server.scheme, "https"):
            # Services with a version in the address, as Azure, have a header of their own.
            name, start = ("api-key", "") if server.query else ("authorization", "Bearer ")
            request.headers[name] = start + self._server.key

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request once; the parsed answer is in the extensions of the response.

        If another try may help, they hold the error for the case that it does not; other errors are
        raised.
        """
        for budget in self._client.budgets:
            budget.take_request()
        self._client.counts["requests sent"] += 1
        try:
            async with asyncio.timeout(self._client.limits.timeout):
                response = await super().send(request, **{**options, "stream": True})
                try:
                    content = await _read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            reason = f"no complete answer within {self._client.limits.timeout:g} s"
            return self._passing(request, reason)
        except httpx2.DecodingError:
            raise Broken(f"{BROKEN_ANSWER} a body that cannot be unpacked") from None
        except (httpx2.RequestError, ssl.SSLError) as error:
            return self._passing(request, self._why_unreached(error))
        body = responses.parsed(content, self._server.key)
        status, texts = response.status_code, "\n".join(responses.error_texts(body))
        label = f"status {status}"
        if status < 400:
            status, texts = responses.error_in(body)
        if not status:
            answer = {"body": body, "headers": response.headers}
            return httpx2.Response(200, request=response.request, extensions=answer)
        responses.check_refused_text(status, texts)
        after = responses.retry_after(response.headers)
        may_pass = status in responses.TRANSIENT or status >= 500
        if not may_pass or (responses.is_unpaid(texts) and not after):
            raise Refusal.of_status(self._server, label, status, texts)
        reason = f"{label}: {responses.first_line(texts or response.reason_phrase)}"
        if isinstance(after, float) and after > LONGEST_WAIT:
            reason = f"asks to wait {after:,.0f} s ({reason})"
            raise Refusal(self._server.url, reason, status, is_general=True)
        return self._passing(request, reason, status, after)

    def _passing(
        self,
        request: httpx2.Request,
        reason: str,
        status: int = 0,
        after: float | str | None = None,
    ) -> httpx2.Response:
        """Return the response for which openai's client waits and tries again."""
        self._client.wait(reason)
        # The next run asks again.
        each_time = f"{BROKEN_ANSWER} a failure each time ({reason})"
        refusal = Refusal(self._server.url, each_time, status)
        headers, extensions = {"retry-after": str(after or "")}, {"refusal": refusal}
        return httpx2.Response(503, request=request, headers=headers, extensions=extensions)

    def _why_unreached(self, error: BaseException) -> str:
        """Explain why no answer came; raise Refusal if another try cannot help."""
        cause, url = error, self._server.url
        while deeper := cause.__cause__ or cause.__context__:
            cause = deeper
        words = responses.first_line(str(cause) or type(cause).__name__)
        words = keys.redacted(words, self._server.key)
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = (
                f"its certificate is not accepted ({cause.verify_message}); if you trust it, give "
                "its file, or that of your institution, by the variable SSL_CERT_FILE=FILE.pem"
            )
        elif isinstance(cause, ssl.SSLError):
            reason = f"does not speak https ({words}); give http{url.removeprefix('https')}"
        elif isinstance(error, httpx2.TooManyRedirects):
            reason = "redirects in a circle"
        else:
            return f"cannot be reached ({words}); is the server running, at {url}?"
        raise Refusal(url, reason, is_general=True)


async def _read(response: httpx2.Response) -> str:
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
    return body.decode(errors="replace").strip()
