"""A page in headless Chromium over its debugging protocol: what it shows, logs and asks for."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = "--headless=new --disable-gpu --no-first-run --disable-background-networking --disable-sync"
FLAGS += " --disable-component-update --remote-debugging-port=0 --remote-allow-origins=*"


@dataclass
class Visit:
    """What happened on a page."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    value: Any = None
    is_loaded: bool = False

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        self.is_loaded |= method == "Page.loadEventFired"
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.console.append(json.dumps(parameters))


def visit(page, script, width, *, dark):
    """Open a file, evaluate `script` in it, and return what it logged and asked for.

    Args:
        dark: as a reader's dark screen shows it.
    """
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    websocket = pytest.importorskip("websocket", reason="websocket-client is not installed")
    seen, session, number = Visit(), "", 0

    def call(method, **parameters):
        nonlocal number
        number += 1
        message = {"id": number, "method": method, "params": parameters}
        line.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while (answer := json.loads(line.recv())).get("id") != number:
            seen.note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [PROGRAM, *FLAGS.split(), *sandbox, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            found = (re.search(r"ws:\S+", text) for text in browser.stderr or ())
            line = websocket.create_connection(next(filter(None, found))[0], timeout=300)
            target = call("Target.createTarget", url="about:blank")["targetId"]
            session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                call(f"{domain}.enable")
            # A window has a least width; a screen that is made believe has none.
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            call("Emulation.setDeviceMetricsOverride", **screen)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
            call("Page.navigate", url=page.resolve().as_uri())
            while not seen.is_loaded:
                seen.note(json.loads(line.recv()))
            how = {"returnByValue": True, "awaitPromise": True}
            answer = call("Runtime.evaluate", expression=script, **how)
            assert "exceptionDetails" not in answer, answer
            seen.value = answer["result"].get("value")
            return seen
        finally:
            browser.kill()
            browser.wait()


def axe():
    """Return the script of axe-core, which looks for what shuts readers out; skip without it."""
    found = find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed (pip install axe-core-python)")
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")
