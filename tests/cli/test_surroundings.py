"""Folders and streams that cannot be written: a command works without, or ends in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.core.errors import BadInput
from bench.report.build import make
from bench.report.study import load


def test_a_report_that_cannot_be_written_names_the_option(tmp_path, caplog):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="--out"):
        make(load(), str(tmp_path / "file" / "report"))
    assert not caplog.records


GONE = "bench: the working folder is gone; change to another one"
FULL, CLOSED = "(No space left on device)", "(it is closed)"


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
    redirected, status, said, tmp_path
):
    call = f"{sys.executable} -m bench data mcbe"
    command = f"set -o pipefail; {call} {redirected}"
    if said == GONE:
        command = f"mkdir gone; cd gone; rmdir ../gone; {call}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == status
    assert done.stderr.strip() == said
