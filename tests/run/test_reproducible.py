"""The same seed gives the same records; batch size, shards, threads and dtype move numbers no further than the documentation says."""

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
# Nothing that decides what is asked; in float32 only the order of sums changes.
COMPUTED_OTHERWISE: dict[str, dict[str, Any]] = {
    "small batches": {"batch_tokens": 1},
    "large batches": {"batch_tokens": 100_000},
    "small shards": {"shard": 5},
    "two threads": {"threads": 2},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    sampling = {"temperature": 0.8, "top_p": 0.9}
    coder = characters("[CLS] $A")
    return str(
        save(tmp_path_factory.mktemp("llama"), LlamaForCausalLM, LlamaConfig, coder, sampling)
    )


@pytest.fixture(scope="module")
def first(model: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, run.Run]:
    """A run of each kind, computed as is the default on a CPU."""
    folder = tmp_path_factory.mktemp("first")
    return {kind: ask(model, kind, folder / kind) for kind in KINDS}


def ask(model: str, kind: str, out: Path, shard: int = 256, thread: int = 1, **how: Any) -> run.Run:
    benchmark, options = KINDS[kind]
    with threads(thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SHARD", shard)
        return run.evaluate(
            benchmark, model, categories=["gender"], out=out, device="cpu", seed=7, **options, **how
        )


def bounds(of: str) -> list[float]:
    """The numbers of a row of the documentation's table: log-probability, share of answers, score."""
    row = re.search(rf"^\| {re.escape(of)}[^|]*\|([^|]+)\|([^|]+)\|([^|]+)\|$", TABLE, re.MULTILINE)
    assert row, of
    found = [re.search(r"[\d.]+", cell.replace(",", "")) for cell in row.groups()]
    return [float(one[0]) for one in found if one]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_records_to_the_byte(
    model: str, first: dict[str, run.Run], tmp_path: Path, kind: str
) -> None:
    for out in ("again", "and again"):
        ask(model, kind, tmp_path / out)
        pd.testing.assert_frame_equal(
            columns(tmp_path / out), columns(first[kind].folder), check_exact=True
        )
    ids = [
        path.read_bytes()
        for path in (first[kind].folder / "items.parquet", tmp_path / "again/items.parquet")
    ]
    assert ids[0] == ids[1]


def apart(one: run.Run, other: run.Run) -> tuple[float, float, float]:
    """The largest difference of a log-probability, the share of other answers, the largest difference of a headline score."""
    found = repeating.difference(one.records, other.records)
    assert found.answers == one.about["requests"]
    keys = ["category", "task", "metric", "preset"]
    both = one.scores().merge(other.scores(), on=keys, suffixes=("", "_other"))
    assert len(both) == len(one.scores())
    scores = float((both.score - both.score_other).abs().max())
    return max(found.logprob, found.nll), found.differ / found.answers, scores


@pytest.mark.slow
@pytest.mark.parametrize("how", COMPUTED_OTHERWISE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_otherwise_stays_within_the_stated_bounds(
    model: str, first: dict[str, run.Run], tmp_path: Path, kind: str, how: str
) -> None:
    options = dict(COMPUTED_OTHERWISE[how])
    other = ask(
        model,
        kind,
        tmp_path / "other",
        options.pop("shard", 256),
        options.pop("threads", 1),
        **options,
    )
    logprob, share, score = apart(first[kind], other)
    most = bounds("another batch size")
    assert logprob <= most[0]
    assert share <= most[1] / 100
    if share == 0:
        assert score <= most[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihoods", "letters"])
def test_another_dtype_stays_within_the_stated_bounds(
    model: str, first: dict[str, run.Run], tmp_path: Path, kind: str
) -> None:
    """And is no repeat: the documentation says which dtype a number rests on."""
    logprob, share, _ = apart(first[kind], ask(model, kind, tmp_path / "other", dtype="bfloat16"))
    most = bounds("`bfloat16`")
    assert 0 < logprob <= most[0]
    assert share <= most[1] / 100
    with pytest.raises(Exception, match="give --dtype float32"):
        run.repeat(first[kind], tmp_path / "again", dtype="bfloat16")
