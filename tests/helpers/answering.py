"""A server of OpenAI's protocol for tests, which answers as a function of the test says."""

import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.scorers.endpoint.scorer import COUNTING
from bench.tasks.request import Key, Request

PLACES = {"/v1/chat/completions": "messages", "/v1/completions": "prompt"}
# What is answered to a request that meets a fault, and all that can happen to one.
BROKEN = {
    "busy": (429, {"Retry-After": "0.02"}, {"error": "slow down"}),
    "error": (500, {}, {"error": {"message": "oh"}}),
    "type": (200, {"Content-Type": "text/html"}, "<html>one moment</html>"),
}
KINDS = (*BROKEN, "reset", "hang", "cut", "drip")


class Server(ThreadingHTTPServer):
    """Speaks /v1/chat/completions and /v1/completions.

    Args:
        behave: returns the reply to a request's body: status, headers and body.
        able: the same for requests that find out what the server can do.

    Attributes:
        rate: the share of requests that meet a fault, all kinds alike.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behave, able=None):
        self.behave, self.able = behave, able or unable
        self.seen, self.tried, self.headers = [], [], []
        self.rate, self.places = 0.0, PLACES
        self.came, self.faults = Counter(), Counter()
        super().__init__(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server_port}"
        self.model = f"openai:some-model@http://{self.host}/v1"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def keys(self):
        """What requests had as a key."""
        return {headers.get("authorization") for headers in self.headers}

    def answer(self, asked):
        is_trial = prompt(asked).startswith(COUNTING)
        (self.tried if is_trial else self.seen).append(asked)
        return (self.able if is_trial else self.behave)(asked)

    def breaks(self, content):
        """Which fault a request meets, by its bytes and how often they came; "" for none."""
        self.came[content] += 1
        rng = random.Random(content + str(self.came[content]).encode())
        kind = rng.choice(KINDS) if rng.random() < self.rate else ""
        self.faults[kind] += bool(kind)
        return kind

    def handle_error(self, request, client_address):
        """Whoever asked has gone: nothing to say."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        asked, kind = json.loads(raw), self.server.breaks(raw)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.close_connection |= kind in ("hang", "reset")
        if kind == "hang":
            self.rfile.read(1)  # until whoever asked goes
            return
        known = self.server.places.get(self.path) in asked
        reply = BROKEN.get(kind) or (self.server.answer(asked) if known else (404, {}, {}))
        status, headers, content = reply
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        body = text.encode() if isinstance(text, str) else text
        half = body[: len(body) // 2]
        body = half if kind == "cut" else body
        self.send_response(status)
        usual = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if kind == "reset":
            self.wfile.write(half)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif kind == "drip":
            for k in range(len(body)):
                self.wfile.write(body[k : k + 1])
                time.sleep(0.02)
        else:
            self.wfile.write(body)


def said(text, reason="stop", usage=(0, 0), **more):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": reason, "message": message, **more}
    counts = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
    return 200, {}, {"object": "chat.completion", "choices": [choice], "usage": counts}


def fault(status, message, code="", **headers):
    return status, headers, {"error": {"message": message, "type": "error", "code": code}}


def prompt(asked):
    return str(asked["prompt"] if "prompt" in asked else asked["messages"][-1]["content"])


def unable(asked):
    """Chats without log-probabilities, and no completions."""
    return fault(404, "no such place") if "prompt" in asked else said("10")


def request(text="x", name="answer", request_type="generate", **more):
    """A request of no benchmark."""
    return Request("c", "t", "i", name, request_type, text, "v", Key(), **more)
