"""Changed files of runs, studies and data sets, a sample: `python -m tests.fuzz` makes more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import FAULTS


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_changed_file_is_refused_or_changes_nothing(count: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", str(count), "--seed", "41"]
    home, out = Path(__file__).parents[1], tmp_path / "outcomes.jsonl"
    subprocess.run([*command, "--out", out], cwd=home, check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == count
    assert not [row for row in rows if row["outcome"] in FAULTS]
