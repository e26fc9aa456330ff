"""A proxy that breaks some of the requests to an HTTP server.

Which requests meet which fault follows from a seed, the request's bytes and how often they came,
not from the order in which requests happen to arrive.
"""

import asyncio
import hashlib
import random
import re
import socket
import struct
import threading
from collections import Counter
from contextlib import suppress

KINDS = ("busy", "error", "reset", "hang", "cut", "type", "drip")


class Faults:
    """`with Faults(port) as proxy: ...proxy.port...`

    Args:
        port: the server's, on this machine.
        rate: the share of requests that meet a fault, all kinds alike.
        retry_after: what a `busy` answer asks to wait, seconds.
        pause: seconds between two bytes of a `drip`.
    """

    def __init__(
        self,
        port: int,
        rate: float = 0.3,
        seed: int = 0,
        retry_after: str = "0.02",
        pause: float = 0.05,
    ) -> None:
        self.upstream, self.rate, self.seed = port, rate, seed
        self.retry_after, self.pause = retry_after, pause
        self.came: Counter[bytes] = Counter()
        self.faults: Counter[str] = Counter()
        self.whole = 0
        self.port = 0
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> "Faults":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=128)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._over.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):  # whoever asked has gone
            while await self._request(reader, writer):
                pass
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether another may follow on the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        content = await reader.readexactly(int(length[1]) if length else 0)
        self.came[content] += 1
        kind = self._kind(content)
        if kind:
            self.faults[kind] += 1
        if kind == "busy":
            wait = f"Retry-After: {self.retry_after}\r\n".encode()
            return await self._send(
                writer, b"429 Too Many Requests", b'{"error": "slow down"}', wait
            )
        if kind == "error":
            return await self._send(
                writer, b"500 Internal Server Error", b'{"error": {"message": "oh"}}'
            )
        if kind == "type":
            return await self._send(
                writer, b"200 OK", b"<html>one moment</html>", kind=b"text/html"
            )
        if kind == "hang":
            await reader.read(1)  # until whoever asked goes
            return False
        status, answer = await self._ask(head, content)
        if kind == "cut":
            return await self._send(writer, status, answer[: len(answer) // 2])
        start = (
            b"HTTP/1.1 "
            + status
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        if kind == "reset":
            writer.write(start % len(answer) + answer[: len(answer) // 2])
            await writer.drain()
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        if kind == "drip":
            writer.write(start % len(answer))
            for byte in answer:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(self.pause)
            return True
        self.whole += 1
        return await self._send(writer, status, answer)

    def _kind(self, content: bytes) -> str:
        """The fault of this coming of a request, "" for none."""
        key = hashlib.sha256(content + f"{self.seed}:{self.came[content]}".encode()).digest()
        dice = random.Random(key)
        return dice.choice(KINDS) if dice.random() < self.rate else ""

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        status: bytes,
        content: bytes,
        more: bytes = b"",
        kind: bytes = b"application/json",
    ) -> bool:
        length = b"Content-Length: %d\r\n" % len(content)
        writer.write(
            b"HTTP/1.1 "
            + status
            + b"\r\nContent-Type: "
            + kind
            + b"\r\n"
            + length
            + more
            + b"\r\n"
            + content
        )
        await writer.drain()
        return True

    async def _ask(self, head: bytes, content: bytes) -> tuple[bytes, bytes]:
        """The server's own status and answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        writer.write(
            re.sub(rb"(?i)connection: *[^\r]*", b"Connection: close", head, count=1) + content
        )
        await writer.drain()
        answer = await reader.read()
        writer.close()
        start, _, body = answer.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in start.lower():
            body = b"".join(re.findall(rb"[0-9a-fA-F]+\r\n(.*?)\r\n", body, re.DOTALL))
        return start.split(b"\r\n")[0].partition(b" ")[2], body
