"""A page in headless Chromium over its debugging protocol: what it shows, logs and asks for. Test support."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
FLAGS = (
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--remote-debugging-port=0", "--remote-allow-origins=*",
)  # fmt: skip


@dataclass
class Visit:
    """What happened on a page."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    value: object = None


def visit(page: Path, script: str, width: int = 1200) -> Visit:
    """Open a file, evaluate `script` in it, and tell what it logged and asked for; skips without a browser."""
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    websocket = pytest.importorskip(
        "websocket", reason="websocket-client, which comes with JupyterLab, is not installed"
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = subprocess.Popen(
            [PROGRAM, *FLAGS, *sandbox, f"--window-size={width},900", f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            address = _address(browser)
            line = websocket.create_connection(address, timeout=60)
            return _Session(line).visit(page.resolve().as_uri(), script)
        finally:
            browser.kill()
            browser.wait()


def _address(browser: subprocess.Popen) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(r"ws://\S+", browser.stderr.readline())
        if found:
            return found[0]
    raise TimeoutError("Chromium did not start")


class _Session:
    def __init__(self, line) -> None:
        self.line, self.number, self.seen, self.session = line, 0, Visit(), None
        self.loaded = False

    def visit(self, url: str, script: str) -> Visit:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self._note(json.loads(self.line.recv()))
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        self.seen.value = answer["result"].get("value")
        return self.seen

    def call(self, method: str, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.line.send(json.dumps(message))
        while True:
            answer = json.loads(self.line.recv())
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _note(self, event) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.seen.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.seen.console.append(parameters["entry"]["text"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.seen.console.append(json.dumps(parameters))
