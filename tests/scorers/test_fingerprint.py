"""Runs belong to the files that answered: any changed byte of them makes another run."""

import hashlib
import os

import numpy as np
import pytest

from bench.scorers.local import hub

MIB = 1 << 20


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A file of three parts."""
    monkeypatch.setattr(hub, "PART_BYTES", 2 * MIB)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(np.random.default_rng(0).bytes(2 * hub.PART_BYTES + 12_345))
    return path


def test_every_byte_of_a_file_counts(weights):
    known = {hub.fingerprint(weights)}
    for time, place in enumerate((0, MIB, 2 * MIB - 1, 2 * MIB, 4 * MIB + 12_344), start=1):
        content = bytearray(weights.read_bytes())
        content[place] ^= 1
        weights.write_bytes(content)
        os.utime(weights, ns=(time, time))  # of a clock that ticks between two changes
        known.add(hub.fingerprint(weights))
    assert len(known) == 6


def test_the_fingerprint_of_a_file_stays_the_same_over_versions(weights):
    content = weights.read_bytes()
    parts = [content[start : start + 2 * MIB] for start in range(0, len(content), 2 * MIB)]
    large = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
    total = hashlib.sha256(f"weights.safetensors:{len(content)}".encode() + large).hexdigest()
    assert hub.fingerprint(weights) == f"sha256-parts:{total[:16]}"
    weights.write_bytes(b"small")
    total = hashlib.sha256(b"weights.safetensors:5small").hexdigest()
    assert hub.fingerprint(weights) == f"sha256:{total[:16]}"
