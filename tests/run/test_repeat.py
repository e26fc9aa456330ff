"""Repeating a run: the same records, or records that differ by little."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from bench import records
from bench.benchmarks import get
from bench.run import ask as asking
from bench.run import evaluate, repeat, run_json
from bench.scorers.local.device import threads
from tests.helpers.checkpoints import characters, save
from tests.helpers.recorded import columns

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
OPTIONS = {"categories": ["gender", "age"], "limit": 6, "seed": 3, "repeats": 2}
OPTIONS |= {"settings": {"prompting": "Q+IF"}, "prompts": "bare"}


@pytest.fixture
def first(own_folder):
    return evaluate("cbbq", MODEL, out="first", **OPTIONS)


def assert_repeated(folder="again", of="first"):
    pd.testing.assert_frame_equal(columns(folder), columns(of), check_exact=True)


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("cbbq", OPTIONS),
        ("nli_coal", {"categories": ["zh"], "limit": 2}),
        (
            "mcbe",
            {"judge": "simulated:bias=0.2", "settings": {"context_order": "judge"}, "limit": 2},
        ),
    ],
)
def test_run_json_gives_the_same_records(own_folder, capsys, benchmark, options):
    first = evaluate(benchmark, MODEL, out="first", partial=True, **options)
    repeat("first/run.json", "again")
    assert_repeated()
    n = first.metadata["requests"]
    assert f"again: 0 of {n} answers differ from first" in capsys.readouterr().err
    place = f"reports/runs/{MODEL.replace(':', '_')}/{benchmark}-{first.metadata['identity']}"
    assert repeat(first).folder == Path.cwd() / f"{place}-repeat"


def test_another_option_takes_the_place_of_the_recorded_one_and_answers_that_differ_are_counted(
    first, capsys, refusal
):
    again = repeat(first, "again", model="simulated:bias=0,seed=4")
    differ = (again.records.response.to_numpy() != first.records.response.to_numpy()).sum()
    assert f"again: {differ} of 48 answers differ from first" in capsys.readouterr().err
    assert "--out first: is the run itself" in refusal(repeat, first, "first")


def test_the_data_of_a_folder_are_asked_again(own_folder, refusal):
    shutil.copytree(get("cbbq").metadata.samples, "data")
    evaluate("cbbq", MODEL, out="first", categories=["age"], limit=2, data="data")
    repeat("first", "again")
    assert_repeated()
    Path("data").rename("moved")
    assert "data: no such folder or file (--data)" in refusal(repeat, "first", "third")
    repeat("first", "third", data="moved")
    assert_repeated("third")


def test_nothing_that_can_run_code_or_send_a_key_is_taken_from_a_run_json(first):
    foreign = {"trust_remote_code": True, "keys": {"host": "KEY"}, "scheduler": "tcp://host"}
    asked = {**first.metadata["asked"], **foreign, "generation": foreign}
    assert not foreign.keys() & run_json.options({**first.metadata, "asked": asked}).keys()


# Local models: the same seed gives the same bytes, and otherwise the bounds of docs/runs.md hold.

KINDS = {
    "likelihoods": ("mcbe", {"tasks": ["pc"], "limit": 3}),
    "letters": ("cbbq", {"answer_mode": "letters", "limit": 4}),
    "options": ("cbbq", {"answer_mode": "options", "limit": 2}),
    "replies": ("cbbq", {"answer_mode": "text", "limit": 4, "repeats": 2, "max_new_tokens": 6}),
}


@pytest.fixture(scope="module")
def of_kinds(tmp_path_factory):
    """A run of each kind by a checkpoint that samples, computed as is the default on a CPU."""
    sampling = {"temperature": 0.8, "top_p": 0.9}
    folder, tokenizer = tmp_path_factory.mktemp("llama"), characters("[CLS] $A")
    model = str(save(folder, "LlamaForCausalLM", tokenizer, sampling))
    return {kind: ask(model, kind, folder / "runs" / kind) for kind in KINDS}


def ask(model, kind, out, block=256, thread=1, **how):
    benchmark, options = KINDS[kind]
    given = {"categories": ["gender"], "device": "cpu", "seed": 7, **options, **how}
    with threads(thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "BLOCK_REQUESTS", block)
        return evaluate(benchmark, model, out=out, **given)


def test_a_folder_is_the_same_model_by_whatever_path(of_kinds, own_folder, monkeypatch):
    model = shutil.copytree(of_kinds["letters"].model, own_folder / "models" / "mine")
    first = evaluate("cbbq", "models/mine", tasks=["ambiguous"], answer_mode="letters", limit=1)
    (own_folder / "notebooks").mkdir()
    monkeypatch.chdir(own_folder / "notebooks")
    monkeypatch.setenv("BENCH_REPORTS", str(own_folder / "reports"))
    monkeypatch.setattr("bench.run.ask_requests", Mock(side_effect=AssertionError("asked")))
    for path in ("../models/mine", str(model)):
        again = evaluate("cbbq", path, tasks=["ambiguous"], answer_mode="letters", limit=1)
        assert again.folder.resolve() == first.folder.resolve()
    (model / "config.json").write_text((model / "config.json").read_text() + "\n")
    with pytest.raises(AssertionError, match="asked"):
        evaluate("cbbq", "../models/mine", tasks=["ambiguous"], answer_mode="letters", limit=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_records_to_the_byte(of_kinds, tmp_path, kind):
    assert_repeated(ask(of_kinds[kind].model, kind, tmp_path).folder, of_kinds[kind].folder)


def differences(before, after):
    """Return the share of answers that differ, and the largest difference in nats."""
    before, after = before.records, after.records
    assert before[records.KEYS].equals(after[records.KEYS])
    is_likelihood = before.task == "pc"
    pairs = zip(before.logprobs.dropna(), after.logprobs.dropna(), strict=True)
    nats = [np.nanmax(np.abs(old - new), initial=0) for old, new in pairs if len(old) == len(new)]
    return ((before.response != after.response) & ~is_likelihood).mean(), max(nats, default=0)


# Nothing that decides what is asked; in float32 only the order of sums changes.
@pytest.mark.slow
@pytest.mark.parametrize("how", [{"batch_tokens": 1}, {"block": 5}, {"thread": 2}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_otherwise_stays_within_the_bounds(of_kinds, tmp_path, kind, how):
    after = ask(of_kinds[kind].model, kind, tmp_path / "other", **how)
    share, nats = differences(of_kinds[kind], after)
    assert share <= 0.01
    assert nats <= 1e-4
    gaps = (of_kinds[kind].scores().score - after.scores().score).abs()
    assert share or gaps.max() <= 0.001


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihoods", "letters"])
def test_another_dtype_stays_within_the_bounds(of_kinds, tmp_path, kind):
    after = ask(of_kinds[kind].model, kind, tmp_path / "other", dtype="bfloat16")
    share, nats = differences(of_kinds[kind], after)
    assert share <= 0.1
    assert 0 < nats <= 0.5
