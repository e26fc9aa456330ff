"""Files are written complete or not at all, and by one process at a time."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.core.files import DRAFT, atomic_path, atomic_write, file_name_error
from bench.core.locks import Held, lock

fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
CODE = """
import fcntl, os, sys
from pathlib import Path
from bench.core.files import atomic_path as write
from bench.core.locks import lock

def refuse(*_):
    raise OSError(int(sys.argv[1]), os.strerror(int(sys.argv[1])))

if int(sys.argv[1]):
    fcntl.flock = refuse
with %s(Path("file")):
    print("ready", flush=True)
    sys.stdin.read()
"""


def start(folder, block, errno=0):
    """Start a process that is in a `with` block when it is ready; it ends with its input."""
    command = [sys.executable, "-c", CODE % block, str(errno)]
    process = subprocess.Popen(command, cwd=folder, stdin=-1, stdout=-1, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_killed_processes_left_is_removed_and_what_others_write_is_kept(tmp_path):
    alive = start(tmp_path, "write")
    (of_alive,) = os.listdir(tmp_path)
    assert of_alive.startswith(DRAFT)
    killed = start(tmp_path, "write")
    killed.kill()
    killed.wait()
    with atomic_path(tmp_path / "other") as draft:
        draft.touch()
    assert {*os.listdir(tmp_path)} == {of_alive, "other"}
    alive.communicate()
    assert {*os.listdir(tmp_path)} == {"file", "other"}


def test_threads_that_write_one_file_all_succeed(tmp_path):
    """Each thread writes a text of its own, and the file is one of these as a whole."""
    path, texts = tmp_path / "file", [letter * 100_000 for letter in "abcd"]
    with ThreadPoolExecutor(len(texts)) as pool:
        for _ in range(25):
            list(pool.map(lambda text: atomic_write(path, text), texts))
            assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["file"]


PLAIN = ["age", "年龄", "v1.0 b"]
OTHERS = ["", ".", "..", "../x", "/x", "a/b", "a\\b", "C:x", "a\0", "a\n", "nul", "COM1.csv", "x."]


@pytest.mark.parametrize("name", [*PLAIN, *OTHERS, "x" * 62])
def test_only_a_plain_name_can_name_a_file(name):
    assert (file_name_error(name) == "") is (name in PLAIN)


@pytest.mark.parametrize("errno", [0, 37, 95])
def test_a_lock_names_its_holder_and_ends_with_it(tmp_path, monkeypatch, errno):
    def refuse(*_):
        raise OSError(errno, os.strerror(errno))

    process = start(tmp_path, "lock", errno)
    if errno:
        monkeypatch.setattr("fcntl.flock", refuse)
    message = f"another process .{process.pid} on "
    with pytest.raises(Held, match=message), lock(tmp_path / "file"):
        pytest.fail("two processes hold one lock")
    process.kill()
    process.communicate()
    for _ in range(2):
        with lock(tmp_path / "file"):
            pass


def test_what_another_process_does_is_waited_for(tmp_path, monkeypatch):
    process = start(tmp_path, "lock")
    said = []
    # Ends the other process once this one has said that it waits.
    monkeypatch.setattr(
        "bench.core.locks.say", lambda text: (said.append(text), process.communicate())
    )
    with lock(tmp_path / "file", "training"):
        assert process.returncode == 0
    assert f"({process.pid} on " in said[0]
