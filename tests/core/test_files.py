"""Files are written complete or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from bench.core.files import DRAFT, atomic_path, file_name_error

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
