"""One process at a time, on file systems without locks too."""

import os
import subprocess
import sys

import pytest

from bench.core.locks import Held, lock

HOLD = """
import fcntl, os, sys
from pathlib import Path
from bench.core.locks import lock

def refuse(*_):
    raise OSError(int(sys.argv[1]), os.strerror(int(sys.argv[1])))

if int(sys.argv[1]):
    fcntl.flock = refuse
with lock(Path("file")):
    print("held", flush=True)
    sys.stdin.read()
"""


def refuse_to_lock(errno):
    """Return what stands for flock on a file system without locks."""

    def flock(*_):
        raise OSError(errno, os.strerror(errno))

    return flock


def holder(folder, errno=0):
    """Start a process that holds the lock of a folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(errno)], cwd=folder, stdin=-1, stdout=-1, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no such locks")
@pytest.mark.parametrize("errno", [0, 37, 95])
def test_a_lock_names_its_holder_and_ends_with_it(tmp_path, monkeypatch, errno):
    process = holder(tmp_path, errno)
    if errno:
        monkeypatch.setattr("fcntl.flock", refuse_to_lock(errno))
    message = f"another process .{process.pid} on "
    with pytest.raises(Held, match=message), lock(tmp_path / "file"):
        pytest.fail("two processes hold one lock")
    process.kill()
    process.communicate()
    for _ in range(2):
        with lock(tmp_path / "file"):
            pass


def test_what_another_process_does_is_waited_for(tmp_path, monkeypatch):
    process = holder(tmp_path)
    said = []
    # Ends the other process once this one has said that it waits.
    monkeypatch.setattr(
        "bench.core.locks.say", lambda text: (said.append(text), process.communicate())
    )
    with lock(tmp_path / "file", "training"):
        assert process.returncode == 0
    assert f"({process.pid} on " in said[0]
