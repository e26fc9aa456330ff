"""Files are written complete or not at all, and by one process at a time."""

import os
import signal
import subprocess
import sys

import pytest

from bench.core.files import DRAFT, atomic_path, file_name_error
from bench.core.locks import Held, lock

WRITE = """
import sys
from pathlib import Path
from bench.core.files import atomic_path
with atomic_path(Path("file")) as draft:
    draft.write_text("half")
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no such locks")
def test_what_killed_processes_left_is_removed_and_what_others_write_is_kept(tmp_path):
    killed, alive = (
        subprocess.Popen(
            [sys.executable, "-c", WRITE], cwd=tmp_path, stdin=-1, stdout=-1, text=True
        )
        for _ in range(2)
    )
    for process in (killed, alive):
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with atomic_path(tmp_path / "other") as draft:
        draft.touch()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"{DRAFT}{alive.pid}-file", "other"]
    alive.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "other"]


PLAIN = ["age", "年龄", "v1.0 b"]
OTHER_PATHS = ["", ".", "..", "../x", "/x", "a/b", "a\\b", "C:x"]
OTHER_PATHS += ["a\0", "a\n", "nul", "COM1.csv", "x."]


@pytest.mark.parametrize("name", [*PLAIN, *OTHER_PATHS, "x" * 62])
def test_only_a_plain_name_can_name_a_file(name):
    assert (file_name_error(name) == "") is (name in PLAIN)


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
