"""Runs belong to the files that answered: any changed byte of them makes another run."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import scorers
from bench.scorers.local import file_hash

MIB = 1 << 20
ASKED: dict[str, Any] = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 1}


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


def test_an_adapter_is_another_model_where_its_local_base_is(own_folder: Path) -> None:
    for name in ("base", "adapter"):
        (own_folder / name).mkdir()
    config = own_folder / "adapter" / "adapter_config.json"
    known = set()
    for base, content in (("base", b"old"), ("base", b"new"), ("acme/tiny", b"new")):
        config.write_text(json.dumps({"base_model_name_or_path": base}))
        (own_folder / "base" / "model.safetensors").write_bytes(content)
        known.add(scorers.content("adapter"))
    assert len(known - {None}) == 3


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
    # A cache that is damaged or cannot be written costs time alone.
    next(cache.iterdir()).write_text("[]")
    assert file_hash.fingerprint(settled_file) == first
    shutil.rmtree(cache)
    cache.write_text("no folder")
    assert file_hash.fingerprint(settled_file) == first
    assert len(read) == 6


def test_a_file_that_is_being_changed_is_not_kept_and_small_ones_keep_their_hash(
    tmp_path: Path, cache: Path
) -> None:
    """Two changes within one tick of the clock leave the same times."""
    path = tmp_path / "fresh.gguf"
    path.write_bytes(bytes(2 * MIB))
    file_hash.fingerprint(path)
    assert not cache.exists()
    path = tmp_path / "said.jsonl"
    path.write_bytes(b'{"prompt": "?", "response": "A"}\n')
    assert file_hash.fingerprint(path) == "sha256:bce968b84a6a2cfb", "computed with sha256sum"
