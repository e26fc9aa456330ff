"""Folders and streams that cannot be written: a command works without, or ends in a sentence."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import __main__
from bench.core.errors import BadInput
from bench.report.build import make
from bench.report.study import load

VARIABLES = ("MPLCONFIGDIR", "IPYTHONDIR")


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where no folder can be made, for root either: it is a file."""
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: place / "cache")
    yield place
    for name in VARIABLES:
        os.environ.pop(name, None)


def test_without_a_home_matplotlib_and_ipython_get_a_temporary_folder(sealed, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(sealed.parent))
        __main__._use_writable_folders()
    assert "MPLCONFIGDIR" not in os.environ
    __main__._use_writable_folders()
    assert all(Path(os.environ[name]).is_dir() for name in VARIABLES)


def test_what_cannot_be_kept_says_where_it_may_lie(sealed, caplog) -> None:
    with pytest.raises(BadInput, match="--out"):
        make(load(), str(sealed / "report"))
    assert not caplog.records


GONE = "bench: the working folder is gone; change to another one"
FULL, CLOSED = "(No space left on device)", "(Bad file descriptor)"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">/dev/full", 1, f"bench: standard output: cannot be written {FULL}"),
        (">&-", 1, f"bench: standard output: cannot be written {CLOSED}"),
        ("2>/dev/full", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
        ("| true", 141, ""),
        ("", 2, GONE),
    ],
)
def test_a_stream_or_a_folder_that_is_gone_is_a_sentence_and_a_status(
    redirected: str, status: int, said: str, tmp_path: Path
) -> None:
    call = f"{sys.executable} -m bench data mcbe"
    command = f"set -o pipefail; {call} {redirected}"
    if said == GONE:
        command = f"mkdir gone; cd gone; rmdir ../gone; {call}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == status
    assert done.stderr.strip() == said
