"""Repeating a run: the same records, or records that differ by little, and no other run."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from bench import records
from bench.benchmarks import get
from bench.run import evaluate, execute, repeat, repeating
from bench.scorers.local.device import threads
from tests.helpers.checkpoints import characters, save
from tests.helpers.recorded import columns

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
OPTIONS = {"categories": ["gender", "age"], "limit": 6, "seed": 3, "repeats": 2}
OPTIONS |= {"settings": {"prompting": "Q+IF"}, "prompts": "bare"}


@pytest.fixture
def first(own_folder):
    return evaluate("cbbq", MODEL, out="first", **OPTIONS)


def edited(run, folder, **metadata):
    """A copy of a run's `run.json` alone, with other entries."""
    records.write_run_json(Path(folder), {**run.metadata, **metadata})
    return Path(folder) / records.RUN_JSON


def assert_repeated(folder="again", of="first"):
    pd.testing.assert_frame_equal(columns(folder), columns(of), check_exact=True)


def test_run_json_alone_gives_the_same_records(first, capsys, monkeypatch):
    # Data that were found in a usual place are found there again.
    shutil.copytree(get("cbbq").metadata.samples, "other/cbbq")
    monkeypatch.setenv("BENCH_DATA", "other")
    found = {"found": "$BENCH_DATA", "folder": "no/longer/there"}
    repeat(edited(first, "alone", data={**first.metadata["data"], **found}), out="again")
    assert_repeated()
    repeat("first", out="again", seed=3, categories=["gender", "age"])
    assert "all 48 answers are the same" in capsys.readouterr().err
    place = f"reports/runs/{MODEL.replace(':', '_')}/cbbq-{first.metadata['identity']}-repeat"
    assert repeat(first).folder == Path.cwd() / place


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("nli_coal", {"categories": ["zh"]}),
        ("mcbe", {"judge": "simulated:bias=0.2", "settings": {"context_order": "judge"}}),
    ],
)
def test_any_benchmark_is_repeated(own_folder, benchmark, options):
    evaluate(benchmark, MODEL, out="first", partial=True, limit=2, **options)
    repeat("first", "again")
    assert_repeated()


def test_a_model_or_data_that_moved_are_the_same_and_changed_ones_are_refused(own_folder, refusal):
    shutil.copytree(get("cbbq").metadata.samples, "data")
    options = {"categories": ["age"], "limit": 2, "data": "data"}
    rows = evaluate("cbbq", MODEL, out="asked", **options).records
    answers = rows[["prompt", "response"]]
    answers.to_json("said.jsonl", orient="records", lines=True)
    evaluate("cbbq", "replay:said.jsonl", out="first", **options)
    repeat("first", "again")
    assert_repeated()
    Path("data").rename("moved")
    assert "data: no such folder or file (--data)" in refusal(repeat, "first", "moved again")
    Path("said.jsonl").rename("moved/said.jsonl")
    moved = {"model": "replay:moved/said.jsonl", "data": "moved"}
    repeat("first", "moved again", **moved)
    assert_repeated("moved again")
    answers[:-1].to_json("moved/said.jsonl", orient="records", lines=True)
    assert "--from: model-content was " in refusal(repeat, "first", "another", **moved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "seed was 3, now 4; give the options, the data and the files of that run"),
        ({"benchmark": "mcbe"}, "is a run of cbbq, not of mcbe"),
        ({"model": "simulated:bias=1"}, f"--from: model was {MODEL}, now simulated:bias=1;"),
        ({"preset": "official"}, "preset was robust, now official"),
        ({"out": "first"}, "is the run itself"),
        ({"data": "data"}, "--from: data-sha256 was "),
    ],
)
def test_what_would_ask_something_else_is_refused(first, refusal, options, message):
    shutil.copytree(get("cbbq").metadata.samples, "data")
    file = Path("data/age/ambiguous/templates_generate_neg.csv")
    file.write_text(file.read_text("utf-8").replace("谁", "哪位", 1), "utf-8")
    assert message in refusal(repeat, first, **{"out": "again", **options})
    assert not Path("again").exists()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"revision": "2"}, "the model is another one (revision was 2, now 1)"),
        # Code is never run because a file says so.
        ({"trust_remote_code": True}, "add --trust-remote-code"),
    ],
)
def test_another_model_or_code_of_its_own_is_refused(first, refusal, metadata, message):
    path = edited(first, "other", model={**first.metadata["model"], **metadata})
    assert message in refusal(repeat, path, "again")
    assert not Path("again").exists(), "nothing is written"


def test_nothing_that_can_run_code_or_send_a_key_is_taken_from_a_run_json(first):
    foreign = {"trust_remote_code": True, "keys": {"host": "KEY"}, "scheduler": "tcp://host"}
    asked = {**first.metadata["asked"], **foreign, "generation": foreign}
    assert not foreign.keys() & repeating.options({**first.metadata, "asked": asked}).keys()


def test_other_versions_are_reported(first, capsys):
    repeat(edited(first, "old", packages={"torch": "1.0"}), "again")
    assert "not as in old: torch was 1.0, now " in capsys.readouterr().err


# Local models: the same seed gives the same bytes, and otherwise the bounds of docs/runs.md hold.

KINDS = {
    "likelihoods": ("mcbe", {"tasks": ["pc"], "limit": 3}),
    "letters": ("cbbq", {"read": "letters", "limit": 4}),
    "options": ("cbbq", {"read": "options", "limit": 2}),
    "replies": ("cbbq", {"read": "text", "limit": 4, "repeats": 2, "max_new_tokens": 6}),
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
        patch.setattr(execute, "BLOCK_REQUESTS", block)
        return evaluate(benchmark, model, out=out, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_records_to_the_byte(of_kinds, tmp_path, kind):
    assert_repeated(ask(of_kinds[kind].model, kind, tmp_path).folder, of_kinds[kind].folder)


def differences(before, after):
    """Return the share of answers that differ, and the nats between the others."""
    sentence = repeating.difference(before.records, after.records)
    found = re.match(r"(?:(\d+) of|all) (\d+) answers (?:.* (\S+) nats)?", sentence)
    n, total, nats = (float(number or 0) for number in found.groups())
    assert total == before.metadata["requests"]
    return n / total, nats


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
def test_another_dtype_stays_within_the_bounds_and_is_no_repeat(of_kinds, tmp_path, kind, refusal):
    after = ask(of_kinds[kind].model, kind, tmp_path / "other", dtype="bfloat16")
    share, nats = differences(of_kinds[kind], after)
    assert share <= 0.1
    assert 0 < nats <= 0.5
    again = {"out": tmp_path / "again", "dtype": "bfloat16"}
    assert "give --dtype float32" in refusal(repeat, of_kinds[kind], **again)
