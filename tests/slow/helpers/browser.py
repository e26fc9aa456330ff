"""Open a page in headless Chromium over its debugging protocol."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = "--headless=new --disable-gpu --no-first-run --disable-background-networking --disable-sync"
FLAGS += " --disable-component-update --remote-debugging-port=0 --remote-allow-origins=*"
CONSOLE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")


def visit(page, script, width, *, dark):
    """Open a file on a light or dark screen, and evaluate `script` in it.

    Return its value, the entries of the console, and the URLs that were loaded.
    """
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    websocket = pytest.importorskip("websocket", reason="websocket-client is not installed")
    events, session, number = [], {}, 0

    def call(method, **parameters):
        nonlocal number
        number += 1
        line.send(json.dumps({"id": number, "method": method, "params": parameters, **session}))
        while (answer := json.loads(line.recv())).get("id") != number:
            events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def parameters_of(*methods):
        return [event["params"] for event in events if event["method"] in methods]

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [PROGRAM, *FLAGS.split(), *sandbox, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            found = (re.search(r"ws:\S+", text) for text in browser.stderr or ())
            line = websocket.create_connection(next(filter(None, found))[0], timeout=300)
            target = call("Target.createTarget", url="about:blank")["targetId"]
            attached = call("Target.attachToTarget", targetId=target, flatten=True)
            session["sessionId"] = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                call(f"{domain}.enable")
            # A window has a least width; a screen that is made believe has none.
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            call("Emulation.setDeviceMetricsOverride", **screen)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
            call("Page.navigate", url=page.resolve().as_uri())
            while not parameters_of("Page.loadEventFired"):
                events.append(json.loads(line.recv()))
            how = {"returnByValue": True, "awaitPromise": True}
            answer = call("Runtime.evaluate", expression=script, **how)
            assert "exceptionDetails" not in answer, answer
        finally:
            browser.kill()
            browser.wait()
    requests = parameters_of("Network.requestWillBeSent")
    urls = [request["request"]["url"] for request in requests]
    return answer["result"]["value"], parameters_of(*CONSOLE), urls


def axe():
    """Return the script of axe-core, which finds barriers for readers."""
    package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")
