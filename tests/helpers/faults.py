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
from typing import Self

# What is answered to a request that meets a fault, without asking the server.
ANSWERS = {
    "busy": (b"429 Too Many Requests\r\nRetry-After: 0.02", b'{"error": "slow down"}'),
    "error": (b"500 Internal Server Error", b'{"error": {"message": "oh"}}'),
    "type": (b"200 OK", b"<html>one moment</html>"),
}
KINDS = (*ANSWERS, "reset", "hang", "cut", "drip")


class Faults:
    """`with Faults(port, seed) as proxy: ...proxy.port...`

    Args:
        port: the server's, on this machine.
        rate: the share of requests that meet a fault, all kinds alike.
    """

    def __init__(self, port: int, seed: int, rate: float = 0.3) -> None:
        self.upstream, self.seed, self.rate = port, seed, rate
        self.came: Counter[bytes] = Counter()
        self.faults: Counter[str] = Counter()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
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
        """Answer a request; returns whether another may follow on the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        content = await reader.readexactly(int(length[1]) if length else 0)
        self.came[content] += 1
        key = hashlib.sha256(content + f"{self.seed}:{self.came[content]}".encode()).digest()
        rng = random.Random(key)
        kind = rng.choice(KINDS) if rng.random() < self.rate else ""
        self.faults[kind] += bool(kind)
        if kind == "hang":
            await reader.read(1)  # until whoever asked goes
            return False
        status, answer = ANSWERS.get(kind) or await self._ask(head, content)
        if kind == "cut":
            answer = answer[: len(answer) // 2]
        media = b"text/html" if kind == "type" else b"application/json"
        start = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        writer.write(start % (status, media, len(answer)))
        if kind == "reset":
            writer.write(answer[: len(answer) // 2])
            await writer.drain()
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        for part in [answer[k : k + 1] for k in range(len(answer))] if kind == "drip" else [answer]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02 * (kind == "drip"))
        return True

    async def _ask(self, head: bytes, content: bytes) -> tuple[bytes, bytes]:
        """Return the server's own status and answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        closing = re.sub(rb"(?i)connection: *[^\r]*", b"Connection: close", head, count=1)
        writer.write(closing + content)
        await writer.drain()
        start, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return start.split(b"\r\n")[0].partition(b" ")[2], body
