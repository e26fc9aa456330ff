"""Files that nobody vouches for: each is read, or refused with one line that names the file; nothing else may happen.

The quick profile runs with every test. `pytest -m slow tests/test_hostile_files.py -s` tries 500 files a reader and prints
what became of them; HOSTILE_FILES sets another number.
"""

import os
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.slow.helpers import hostile_curate, hostile_readers
from tests.slow.helpers.hostile import names, read_spoilt, spoiling

pytestmark = pytest.mark.slow

QUICK, MANY = 12, int(os.environ.get("HOSTILE_FILES", "500"))
CHECKS = list(HealthCheck)
READERS = hostile_readers.READERS | hostile_curate.READERS


def fuzz(name: str, folder: Path, examples: int) -> Counter[str]:
    """Let a reader read so many spoilt files; how many of them it took."""
    reader = READERS[name]
    files, found = names(reader), Counter[str]()

    @settings(
        max_examples=examples,
        suppress_health_check=CHECKS,
        database=None,
        derandomize=examples == QUICK,
    )
    @given(st.sampled_from(files), spoiling)
    def one(file: str, changes: list) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            message = read_spoilt(reader, folder, file, changes)
        assert message.isprintable(), "a message is one line"
        assert len(message) <= 2100
        # Names of files and folders stand in it as they are, which here are plain.
        assert not message or str(folder) in message, message
        found["refused" if message else "read"] += 1

    one()
    return found


@pytest.mark.parametrize("name", READERS)
def test_a_sample_that_is_not_spoilt_is_read(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    message = read_spoilt(reader, tmp_path / "here", names(reader)[0], [])
    allowed = ("holds a formula without a value",) if "xlsx" in name else ()
    assert not message or any(text in message for text in allowed), message


@pytest.mark.parametrize("name", READERS)
def test_a_spoilt_file_is_read_or_refused_in_one_line_that_names_it(
    tmp_path: Path, name: str
) -> None:
    assert fuzz(name, tmp_path / "here", QUICK).total() >= QUICK // 2


@pytest.mark.parametrize("name", READERS)
def test_many_spoilt_files(tmp_path: Path, name: str) -> None:
    found = fuzz(name, tmp_path / "here", MANY)
    print(
        f"\n{name}: {found.total():,} files, {found['refused']:,} refused, {found['read']:,} read"
    )
    assert found["refused"]
