"""Weights are loaded once for several runs; each run has its own options, date and counts."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from bench import run
from bench.report import study, study_runs
from bench.scorers import Loaded, load
from bench.scorers.local import hub
from tests.helpers.checkpoints import characters, save

STUDY = """
title: Variants
models: ["MODEL"]
benchmarks:
  cbbq:
    - {name: a, categories: [gender], limit: 1, data: samples}
    - {name: b, categories: [gender], limit: 2, data: samples, temperature: 0}
  mcbe: {categories: [gender], limit: 1, data: samples, tasks: [ba], judge: JUDGE}
"""


@pytest.fixture
def llama(tmp_path):
    return str(save(tmp_path / "llama", "LlamaForCausalLM", characters("[CLS] $A")))


@pytest.fixture
def loads(monkeypatch):
    """The folders whose weights were loaded."""
    folders, load_weights = [], AutoModelForCausalLM.from_pretrained

    def count(path, **options):
        folders.append(path)
        return load_weights(path, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", count)
    return folders


def test_a_study_loads_a_model_and_its_judge_once(own_folder, llama, loads):
    judge = str(save(own_folder / "judge", "LlamaForCausalLM", characters("[CLS] $A")))
    Path("study.yml").write_text(STUDY.replace("MODEL", llama).replace("JUDGE", judge))
    plan, sent = study.load(Path("study.yml")), []
    pipe = type("Pipe", (), {"send": staticmethod(sent.append)})
    study_runs._work(pipe, plan, plan.models[0], Path("out"), 1, study_runs.budgets(plan))
    assert [cell.state for cell in sent] == ["done"] * 3
    assert loads == [llama, judge]


def test_replies_are_those_of_a_model_that_was_loaded_for_them(llama):
    greedy = {"temperature": 0}
    first = load(llama)
    loaded = Loaded(first)
    second = loaded.load("model", llama, generation=greedy)
    third = loaded.load("judge", llama)
    prompts = ["he is", "she is a doctor"]
    assert second.network is third.network
    assert second.generate(prompts) == load(llama, generation=greedy).generate(prompts)
    assert third.generate(prompts, seed=3) == load(llama).generate(prompts, seed=3)
    assert second.describe() == load(llama, generation=greedy).describe()
    assert third.describe() == first.describe()
    assert (first.tally.asked, second.tally.asked) == (0, third.tally.asked)


def test_other_weights_are_loaded(llama, loads):
    loaded = Loaded()
    for dtype in ("float32", "bfloat16", None, None):
        loaded.load("model", llama, dtype=dtype)
    assert len(loads) == 3
    config = Path(llama, "config.json")
    config.write_text(f"{config.read_text()} ")
    loaded.load("model", llama)
    assert len(loads) == 4


def test_a_loaded_model_can_be_evaluated(own_folder, llama, loads, refusal):
    model = load(llama, dtype="float32", generation={"temperature": 0})
    given = {"categories": ["gender"], "limit": 1}
    for benchmark in ("cbbq", "mcbe"):
        done = run.evaluate(benchmark, model, **given, partial=True)
        assert done.metadata["asked"]["model"] == llama
        assert done.metadata["asked"]["generation"] == {"temperature": 0}
    assert loads == [llama]
    named = run.evaluate("mcbe", llama, temperature=0, dtype="float32", **given, partial=True)
    assert named.folder == done.folder
    message = refusal(run.evaluate, "cbbq", type(model).__new__(type(model)))
    assert "Causal: was not loaded by bench.load" in message


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
