"""The same seed gives the same records; batches, threads and dtype move numbers as documented."""

import re
from pathlib import Path

import pandas as pd
import pytest

from bench import run
from bench.run import execute, repeating
from bench.scorers.local.device import threads
from tests.helpers.checkpoints import characters, save
from tests.helpers.recorded import columns

TABLE = (Path(__file__).parents[2] / "docs/runs.md").read_text("utf-8")
# Likelihoods, letters' probabilities, and sampled replies.
KINDS = {
    "likelihoods": ("mcbe", {"tasks": ["pc"], "limit": 3}),
    "letters": ("cbbq", {"read": "letters", "limit": 4}),
    "options": ("cbbq", {"read": "options", "limit": 2}),
    "replies": ("cbbq", {"read": "text", "limit": 4, "repeats": 2, "max_new_tokens": 6}),
}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run of each kind, computed as is the default on a CPU."""
    sampling = {"temperature": 0.8, "top_p": 0.9}
    folder, tokenizer = tmp_path_factory.mktemp("llama"), characters("[CLS] $A")
    model = str(save(folder, "LlamaForCausalLM", tokenizer, sampling))
    return {kind: ask(model, kind, folder / "runs" / kind) for kind in KINDS}


def ask(model, kind, out, block=256, thread=1, **how):
    benchmark, options = KINDS[kind]
    given = {"categories": ["gender"], "device": "cpu", "seed": 7, **options, **how}
    with threads(thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "BLOCK_REQUESTS", block)
        return run.evaluate(benchmark, model, out=out, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_records_to_the_byte(first, tmp_path, kind):
    again = ask(first[kind].model, kind, tmp_path).folder
    pd.testing.assert_frame_equal(columns(again), columns(first[kind].folder), check_exact=True)


def within_bounds(name, before, after):
    """Compare two runs with the row `name` of the documentation: log-probability, %, score."""
    cells = re.search(rf"^\| {re.escape(name)}[^|]*\|([^|]+)\|([^|]+)\|([^|]+)\|$", TABLE, re.M)
    numbers = [re.search(r"[\d.]+", cell.replace(",", "")) for cell in cells.groups()]
    logprob, percent, *score = [float(number[0]) for number in numbers if number]
    difference = repeating.difference(before.records, after.records)
    assert difference.answers == before.metadata["requests"]
    assert difference.logprob <= logprob
    assert 100 * difference.differ / difference.answers <= percent
    if difference.differ == 0 and score:
        gaps = (before.scores().score - after.scores().score).abs()
        assert gaps.max() <= score[0]
    return difference


# Nothing that decides what is asked; in float32 only the order of sums changes.
@pytest.mark.slow
@pytest.mark.parametrize("how", [{"batch_tokens": 1}, {"block": 5}, {"thread": 2}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_otherwise_stays_within_the_bounds(first, tmp_path, kind, how):
    after = ask(first[kind].model, kind, tmp_path / "other", **how)
    within_bounds("another batch size", first[kind], after)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihoods", "letters"])
def test_another_dtype_stays_within_the_bounds_and_is_no_repeat(first, tmp_path, kind, refusal):
    after = ask(first[kind].model, kind, tmp_path / "other", dtype="bfloat16")
    difference = within_bounds("`bfloat16`", first[kind], after)
    assert difference.logprob > 0
    again = {"out": tmp_path / "again", "dtype": "bfloat16"}
    assert "give --dtype float32" in refusal(run.repeat, first[kind], **again)
