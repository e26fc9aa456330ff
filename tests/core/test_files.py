"""Files are written complete or not at all."""

import os
import signal
import subprocess
import sys
from pathlib import Path

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
def test_what_killed_processes_left_is_removed_and_what_others_write_is_kept(
    tmp_path: Path,
) -> None:
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


@pytest.mark.parametrize(
    ("name", "is_fine"),
    [
        ("age", True),
        ("年龄", True),
        ("v1.0 b", True),
        ("", False),
        (".", False),
        ("..", False),
        ("../x", False),
        ("/x", False),
        ("a/b", False),
        ("a\\b", False),
        ("C:x", False),
        ("a\0", False),
        ("a\n", False),
        ("nul", False),
        ("COM1.csv", False),
        ("x.", False),
        ("x" * 62, False),
    ],
)
def test_a_name_that_could_be_another_path_cannot_name_a_file(name: str, is_fine: bool) -> None:
    assert (file_name_error(name) == "") is is_fine
