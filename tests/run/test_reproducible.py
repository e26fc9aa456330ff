"""The same seed gives the same records; batches, shards, threads and dtype move numbers as documented."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from bench import run
from bench.run import repeating
from bench.scorers.local.device import threads
from tests.helpers.checkpoints import characters, save
from tests.helpers.recorded import columns

TABLE = (Path(__file__).parents[2] / "docs/runs.md").read_text("utf-8")
# Likelihoods, letters' probabilities, and sampled replies.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "likelihoods": ("mcbe", {"tasks": ["pc"], "limit": 3}),
    "letters": ("cbbq", {"read": "letters", "limit": 4}),
    "options": ("cbbq", {"read": "options", "limit": 2}),
    "replies": ("cbbq", {"read": "text", "limit": 4, "repeats": 2, "max_new_tokens": 6}),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    sampling = {"temperature": 0.8, "top_p": 0.9}
    folder, tokenizer = tmp_path_factory.mktemp("llama"), characters("[CLS] $A")
    return str(save(folder, LlamaForCausalLM, LlamaConfig, tokenizer, sampling))


@pytest.fixture(scope="module")
def first(model: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, run.Run]:
    """A run of each kind, computed as is the default on a CPU."""
    folder = tmp_path_factory.mktemp("first")
    return {kind: ask(model, kind, folder / kind) for kind in KINDS}


def ask(model: str, kind: str, out: Path, shard: int = 256, thread: int = 1, **how: Any) -> run.Run:
    benchmark, options = KINDS[kind]
    given = {"categories": ["gender"], "device": "cpu", "seed": 7, **options, **how}
    with threads(thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SHARD", shard)
        return run.evaluate(benchmark, model, out=out, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_records_to_the_byte(model, first, tmp_path, kind) -> None:
    again = ask(model, kind, tmp_path).folder
    pd.testing.assert_frame_equal(columns(again), columns(first[kind].folder), check_exact=True)
    items = [(folder / "items.parquet").read_bytes() for folder in (again, first[kind].folder)]
    assert items[0] == items[1]


def bounds(name: str) -> list[float]:
    """The numbers of a row of the documentation: log-probability, % of answers, score."""
    cells = re.search(rf"^\| {re.escape(name)}[^|]*\|([^|]+)\|([^|]+)\|([^|]+)\|$", TABLE, re.M)
    numbers = [re.search(r"[\d.]+", cell.replace(",", "")) for cell in cells.groups()]
    return [float(number[0]) for number in numbers if number]


def assert_within_bounds(name: str, before: run.Run, after: run.Run) -> repeating.Difference:
    difference = repeating.difference(before.records, after.records)
    assert difference.answers == before.about["requests"]
    keys = ["category", "task", "metric", "preset"]
    both = before.scores().merge(after.scores(), on=keys, suffixes=("", "_after"))
    assert len(both) == len(before.scores())
    logprob, percent, *score = bounds(name)
    assert max(difference.logprob, difference.nll) <= logprob
    assert 100 * difference.differ / difference.answers <= percent
    if difference.differ == 0 and score:
        assert (both.score - both.score_after).abs().max() <= score[0]
    return difference


# Nothing that decides what is asked; in float32 only the order of sums changes.
@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{"batch_tokens": 1}, {"batch_tokens": 100_000}, {"shard": 5}, {"thread": 2}], ids=str
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_otherwise_stays_within_the_bounds(
    model, first, tmp_path, kind, how
) -> None:
    after = ask(model, kind, tmp_path / "other", **how)
    assert_within_bounds("another batch size", first[kind], after)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihoods", "letters"])
def test_another_dtype_stays_within_the_bounds_and_is_no_repeat(
    model, first, tmp_path, kind
) -> None:
    after = ask(model, kind, tmp_path / "other", dtype="bfloat16")
    difference = assert_within_bounds("`bfloat16`", first[kind], after)
    assert max(difference.logprob, difference.nll) > 0
    with pytest.raises(Exception, match="give --dtype float32"):
        run.repeat(first[kind], tmp_path / "again", dtype="bfloat16")
