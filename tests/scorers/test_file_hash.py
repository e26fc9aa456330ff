"""Runs belong to the files that answered: any changed byte of them makes another run."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.scorers.local import file_hash

MIB = 1 << 20


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bias-workbench" / "file-hashes"


@pytest.fixture
def settled_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three parts, hashed as if nobody had changed it for a while."""
    monkeypatch.setattr(file_hash, "PART", 2 * MIB)
    monkeypatch.setattr(file_hash, "SETTLED_NS", -1)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(np.random.default_rng(0).bytes(2 * file_hash.PART + 12_345))
    return path


def test_every_byte_of_a_file_counts_also_where_size_and_time_stay(settled_file: Path) -> None:
    known, before = {file_hash.fingerprint(settled_file)}, settled_file.stat()
    for place in (0, MIB, file_hash.PART - 1, file_hash.PART, 2 * file_hash.PART + 12_344):
        content = bytearray(settled_file.read_bytes())
        content[place] ^= 1
        settled_file.write_bytes(content)
        os.utime(settled_file, ns=(before.st_atime_ns, before.st_mtime_ns))
        known.add(file_hash.fingerprint(settled_file))
    assert len(known) == 6


def test_a_large_file_is_read_once(settled_file: Path, cache: Path, monkeypatch: Any) -> None:
    first, read, part = file_hash.fingerprint(settled_file), [], file_hash._hash_part
    counted = lambda file, start: (read.append(start), part(file, start))[1]  # noqa: E731
    monkeypatch.setattr(file_hash, "_hash_part", counted)
    assert file_hash.fingerprint(settled_file) == first
    assert read == []
    next(cache.iterdir()).write_text("[]")
    assert file_hash.fingerprint(settled_file) == first, "a damaged cache costs time alone"
    assert len(read) == 3
