"""A page in headless Chromium over its debugging protocol: what it shows, logs and asks for."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    *("--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*"),
)
KEYS = {"Tab": 9, "Enter": 13}


@dataclass
class Visit:
    """What happened on a page."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    value: Any = None


def visit(
    page: Path,
    script: str,
    width: int = 1200,
    *,
    dark: bool = False,
    media: str = "screen",
    keys: Sequence[str] = (),
    picture: Path | None = None,
    height: int = 900,
) -> Visit:
    """Open a file, evaluate `script` in it, and return what it logged and asked for.

    Args:
        dark: as a reader's dark screen shows it.
        media: `screen`, or `print` for what is printed.
        keys: pressed one after the other before the script.
        picture: where to keep what is seen, PNG.
    """
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    websocket = pytest.importorskip(
        "websocket", reason="websocket-client, which comes with JupyterLab, is not installed"
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [PROGRAM, *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            address = next(
                found for line in browser.stderr if (found := re.search(r"ws:\S+", line))
            )
            session = _Session(websocket.create_connection(address[0], timeout=300))
            session.open(page.resolve().as_uri(), width, height, dark, media)
            for key in keys:
                key_event = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
                for kind in ("rawKeyDown", "keyUp"):
                    session.call("Input.dispatchKeyEvent", type=kind, **key_event)
            how = {"returnByValue": True, "awaitPromise": True}
            answer = session.call("Runtime.evaluate", expression=script, **how)
            assert "exceptionDetails" not in answer, answer
            session.seen.value = answer["result"].get("value")
            if picture:
                shown = session.call("Page.captureScreenshot", format="png")
                picture.write_bytes(base64.b64decode(shown["data"]))
            return session.seen
        finally:
            browser.kill()
            browser.wait()


def axe() -> str:
    """The script of axe-core, which looks for what shuts readers out; skips without it."""
    found = find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed (pip install axe-core-python)")
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")


class _Session:
    def __init__(self, line: Any) -> None:
        self.line, self.number, self.seen, self.session = line, 0, Visit(), None
        self.loaded = False

    def open(self, url: str, width: int, height: int, dark: bool, media: str) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # A window has a least width; a screen that is made believe has none.
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self._note(json.loads(self.line.recv()))

    def call(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.line.send(json.dumps(message))
        while (answer := json.loads(self.line.recv())).get("id") != self.number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        self.loaded |= method == "Page.loadEventFired"
        if method == "Network.requestWillBeSent":
            self.seen.requests.append(parameters["request"]["url"])
        elif method in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.seen.console.append(json.dumps(parameters))
