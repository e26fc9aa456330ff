"""Runs belong to the files that answered: any changed byte of them makes another run."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from bench import records, run, scorers
from bench.core.errors import AnotherRun
from bench.scorers.local import file_hash
from tests.helpers.checkpoints import characters, save

MIB = 1 << 20
ASKED: dict[str, Any] = {"categories": ["gender"], "tasks": ["ambiguous"], "read": "letters"}


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


def test_a_merged_adapter_does_not_get_the_answers_of_its_base(own_folder: Path) -> None:
    """Same sizes and the same first mebibyte: the embeddings, which an adapter leaves alone."""
    shape, coder = {"hidden_size": 1024, "num_hidden_layers": 1}, characters("[CLS] $A")
    model = save(own_folder / "model", LlamaForCausalLM, LlamaConfig, coder, **shape)
    before = run.evaluate("cbbq", "model", limit=2, **ASKED)
    weights = model / "model.safetensors"
    start = weights.read_bytes()[:MIB]
    tensors, size = load_file(weights), weights.stat().st_size
    rng = np.random.default_rng(1)
    up, down = rng.normal(size=(1024, 4)), rng.normal(size=(4, 1024))
    tensors["model.layers.0.self_attn.v_proj.weight"] += (0.1 * up @ down).astype(np.float32)
    save_file(tensors, weights, {"format": "pt"})
    assert (weights.read_bytes()[:MIB], weights.stat().st_size) == (start, size)

    after = run.evaluate("cbbq", "model", limit=2, **ASKED)
    assert after.folder != before.folder
    old, new = (np.concatenate(done.records.logprobs) for done in (before, after))
    assert new != pytest.approx(old, abs=1e-3)
    with pytest.raises(AnotherRun, match="model_content"):
        run.evaluate("cbbq", "model", limit=2, out=before.folder, **ASKED)


def test_an_adapter_is_another_model_where_its_local_base_is(own_folder: Path) -> None:
    for name in ("base", "adapter"):
        (own_folder / name).mkdir()
    config = own_folder / "adapter" / "adapter_config.json"
    config.write_text('{"base_model_name_or_path": "base"}')
    weights = own_folder / "base" / "model.safetensors"
    weights.write_bytes(b"old")
    before = scorers.content("adapter")
    weights.write_bytes(b"new")
    assert scorers.content("adapter") != before
    config.write_text('{"base_model_name_or_path": "acme/tiny"}')
    assert scorers.content("adapter") not in (None, before)


@pytest.mark.parametrize(("name", "usual", "other"), [("answer", "A", "B"), ("judge", "无", "有")])
def test_every_recorded_answer_counts(own_folder: Path, name: str, usual: str, other: str) -> None:
    """A quarter of the answers change, which stand behind more than a mebibyte of others."""
    items = run.evaluate("cbbq", "simulated:bias=1", limit=8, **ASKED).records.item_id
    asked = {**ASKED, "read": None, "limit": 8}
    model = "replay:replies.jsonl"
    if name == "judge":
        asked |= {"judge": model, "settings": {"explanation": "yes"}}
        model = "simulated:bias=1"
    usuals = dict.fromkeys(items[:6], usual) | {f"unused:{k}": "A" * 4096 for k in range(300)}
    counts = []
    for last in (usual, other):
        lines = [
            {"task": "ambiguous", "item_id": item, "request": name, "response": reply}
            for item, reply in (usuals | dict.fromkeys(items[6:], last)).items()
        ]
        Path("replies.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
        done = run.evaluate("cbbq", model, **asked).records
        counts.append((done[done.request == name].response == last).sum())
    assert counts == [8, 2]


def test_every_byte_of_a_file_counts(settled_file: Path) -> None:
    known = {file_hash.fingerprint(settled_file)}
    for place in (0, MIB, file_hash.PART - 1, file_hash.PART, 2 * file_hash.PART + 12_344):
        with settled_file.open("rb+") as stream:
            stream.seek(place)
            byte = stream.read(1)
            stream.seek(place)
            stream.write(bytes([byte[0] ^ 1]))
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


def test_a_file_that_keeps_its_size_and_time_is_read_again(settled_file: Path) -> None:
    first, before = file_hash.fingerprint(settled_file), settled_file.stat()
    content = bytearray(settled_file.read_bytes())
    content[-1] ^= 1
    settled_file.write_bytes(content)
    os.utime(settled_file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = settled_file.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert file_hash.fingerprint(settled_file) != first


def test_a_file_that_is_being_changed_is_not_kept(tmp_path: Path, cache: Path) -> None:
    """Two changes within one tick of the clock leave the same times."""
    path = tmp_path / "fresh.gguf"
    path.write_bytes(bytes(2 * MIB))
    file_hash.fingerprint(path)
    assert not cache.exists()


def test_small_files_keep_their_hash(tmp_path: Path) -> None:
    """By which runs of recorded answers have been named; computed with sha256sum."""
    path = tmp_path / "said.jsonl"
    path.write_bytes(b'{"prompt": "?", "response": "A"}\n')
    assert file_hash.fingerprint(path) == "sha256:bce968b84a6a2cfb"


def test_a_run_of_an_earlier_version_says_why_it_does_not_go_on(
    own_folder: Path, refusal: Callable[..., str]
) -> None:
    path = own_folder / "said.jsonl"
    keys = {"task": "ambiguous", "item_id": "gender:ambiguous:1", "request": "answer"}
    answer = {**keys, "response": "A"}
    unused = {"prompt": "unused", "response": "A" * 2 * MIB}
    path.write_text(json.dumps(answer) + "\n" + json.dumps(unused) + "\n")
    asked = {**ASKED, "read": None, "limit": 1}
    done = run.evaluate("cbbq", "replay:said.jsonl", out=own_folder / "run", **asked)
    about = records.read_run_json(done.folder)
    about["asked"]["model_content"] = "sha256:0123456789abcdef"
    records.write_run_json(done.folder, about)
    with pytest.raises(AnotherRun, match="first mebibyte"):
        run.evaluate("cbbq", "replay:said.jsonl", out=done.folder, **asked)
    assert "first mebibyte" in refusal(run.repeat, done.folder)
