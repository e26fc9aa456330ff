"""Measuring in turns: who did how much in how many seconds, with how many tokens and how much memory, and whether rightly."""

import ctypes
import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from threading import Event, Thread
from typing import Any

import numpy as np
import psutil
import torch

from bench.analyses.speed_peers import OURS, WHOLE, Contestant, Run, Said, encoded, turn
from bench.data import spread_evenly
from bench.scorers.local.causal import Causal
from bench.scorers.local.checkpoint import threads
from bench.tasks.choices import letter
from bench.tasks.request import Request

# How many times as fast, and in how many times less memory, the workbench is meant to work.
FASTER = {
    ("nll", "authors' loop"): 5.0,
    ("nll", "lm-eval"): 3.0,
    ("letters", "lm-eval"): 4.0,
    ("letters", "authors' 8 tokens"): 12.0,
    ("ss", f"authors' {WHOLE} tokens"): 200.0,
    ("generate", "one by one"): 4.0,
}
SMALLER = {("nll", "lm-eval"): 3.0, ("letters", "lm-eval"): 3.0}
# Items of a first turn, which is not timed.
WARM = 4
# Seconds between two looks at the memory of the process, and bytes below which it says nothing.
LOOK, LEAST = 0.004, 1 << 20
# Side of the matrices whose product is timed.
SIDE = {"cpu": 1024, "cuda": 8192}

clock = time.perf_counter


@dataclass
class Watch:
    """What a turn took.

    Attributes:
        tokens: that went through the network, padding included.
        read: of those, the ones that met the output matrix.
        peak: bytes beyond what lay there before.
    """

    seconds: float = 0.0
    tokens: int = 0
    read: int = 0
    peak: float = 0.0


Done = list[tuple[Watch, Said]]


def in_turns(
    model: Causal,
    work: str,
    requests: Sequence[Request],
    whom: Sequence[Contestant],
    *,
    few: int = 8,
    turns: int = 3,
    use_threads: int = 1,
) -> list[dict[str, Any]]:
    """A row for each of `whom`, the workbench first, who all do the same work, one after the other, `turns` times.

    Who is not installed, or breaks, has a row that says so.

    Args:
        few: items, evenly spread, for those who can do no more.
    """
    places = {
        one.who: spread_evenly(range(len(requests)), few if one.few else None) for one in whom
    }
    wrong = {
        one.who: "not installed: pip install 'bias-workbench[peers]'" for one in whom if one.missing
    }
    runs: dict[str, Run] = {}
    done: dict[str, Done] = {one.who: [] for one in whom}
    rates = []
    with threads(use_threads), _frozen():
        for k in range(turns + 1):
            rates.append(matmul_rate(model.where.device, model.network.dtype))
            for one in (one for one in whom if one.who not in wrong):
                asked = [requests[i] for i in places[one.who]]
                try:
                    if k == 0:
                        runs[one.who] = one.make(model)
                        runs[one.who](asked[:WARM])
                    else:
                        done[one.who].append(timed(model, runs[one.who], asked))
                except Exception as error:  # what others have written can break in any way
                    if one.who == OURS:
                        raise
                    wrong[one.who] = f"broke: {[*str(error).strip().splitlines(), repr(error)][0]}"
    lengths = tokens(model, work, requests)
    rows: list[dict[str, Any]] = []
    for who, mine in done.items():
        if who in wrong:
            rows.append({"work": work, "who": who, "note": wrong[who]})
        else:
            rows += _rows(model, work, who, lengths, places[who], mine, done[OURS], median(rates))
    return rows


def timed(model: Causal, run: Run, asked: Sequence[Request]) -> tuple[Watch, Said]:
    """What a turn took, and what came of it."""
    computed, read = model.tally.computed, model.tally.read
    with watched(model.network) as watch:
        said = run(asked)
    # The workbench counts for itself, too, what it computes where no watch sees it.
    watch.tokens = max(watch.tokens, model.tally.computed - computed)
    watch.read = max(watch.read, model.tally.read - read)
    return watch, said


def tokens(model: Causal, work: str, requests: Sequence[Request]) -> np.ndarray:
    """Tokens of the text of each request, as everybody has to read it."""
    coder = model.tokenizer
    texts = (
        encoded(coder, one.prompt) if work == "nll" else turn(coder, one.turns)[1]
        for one in requests
    )
    return np.array([len(ids) for ids in texts])


def _rows(
    model: Causal,
    work: str,
    who: str,
    lengths: np.ndarray,
    places: Sequence[int],
    mine: Done,
    ours: Done,
    rate: float,
) -> list[dict[str, Any]]:
    table = model.network.get_input_embeddings().weight.numel()
    body = sum(some.numel() for some in model.network.base_model.parameters()) - table
    head = model.network.get_output_embeddings().weight.numel()
    last = mine[-1][0]
    needed = 2 * (body * last.tokens + head * last.read)
    asked = int(lengths[places].sum())
    peak, least = (max(watch.peak for watch, _ in some) for some in (mine, ours))
    same, agree = differing(work, ours[-1][1], mine[-1][1], places, lengths)
    row = {
        "work": work,
        "who": who,
        "items": len(places),
        "tokens_asked": asked,
        "same": same,
        "agree": agree,
    }
    row |= _pace(row, [watch.seconds for watch, _ in mine], len(lengths), ours)
    seconds = median(watch.seconds for watch, _ in mine)
    rows = [
        {
            **row,
            "tokens_computed": last.tokens,
            "tokens_read": last.read,
            "tokens_per_second": last.tokens / seconds,
            "matmul_gflops": rate / 1e9,
            "share_of_matmul": needed / seconds / rate,
            "peak_mib": peak / 2**20,
            "memory_times": peak / least if who != OURS and least >= LEAST else np.nan,
            "memory_at_least": SMALLER.get((work, who), np.nan),
            "note": "",
        }
    ]
    whole = [said.whole for _, said in mine]
    if whole[-1] == whole[-1]:
        row |= {"who": f"authors' {WHOLE} tokens", "note": mine[-1][1].note}
        rows.append(row | _pace(row, whole, len(lengths), ours))
    return rows


def _pace(row: Mapping[str, Any], seconds: Sequence[float], n: int, ours: Done) -> dict[str, Any]:
    """Items a second, and how many times as many ours are, of which there are `n`, turn by turn: median, least and most."""
    found: dict[str, Any] = {
        "seconds": " ".join(f"{one:.4g}" for one in seconds),
        "items_per_second": row["items"] / median(seconds),
    }
    if row["who"] != OURS:
        times = [
            n / watch.seconds / (row["items"] / one)
            for (watch, _), one in zip(ours, seconds, strict=True)
        ]
        found |= {"times": median(times), "times_low": min(times), "times_high": max(times)}
        found["at_least"] = FASTER.get((row["work"], row["who"]), np.nan)
    return found


def differing(
    work: str, ours: Said, theirs: Said, places: Sequence[int], lengths: np.ndarray
) -> tuple[float, float]:
    """Largest difference to our numbers, nats a token, and the share of items with the same answer; NaN where undefined.

    Options are compared by what sets them apart, which is all that a choice rests on: whoever puts the last blank of a
    prompt before the letter has its probability in every option.
    """
    if ours.replies is not None and theirs.replies is not None:
        pairs = zip((ours.replies[i] for i in places), theirs.replies, strict=True)
        return np.nan, float(np.mean([a == b for a, b in pairs]))
    if ours.values is None:
        return np.nan, np.nan
    own = ours.values[list(places)]
    if theirs.values is None:
        letters = "ABCDEFGH"[: own.shape[1]]
        read = [letter(reply, letters) for reply in theirs.replies or []]
        return np.nan, float(
            np.mean([letters[k] == one for k, one in zip(own.argmax(1), read, strict=True)])
        )
    if own.ndim == 1:
        return float(np.max(np.abs(own - theirs.values) / (lengths[list(places)] - 1))), np.nan
    a, b = (
        some - np.logaddexp.reduce(some, axis=1, keepdims=True) for some in (own, theirs.values)
    )
    return float(np.abs(a - b).max()), float(np.mean(a.argmax(1) == b.argmax(1)))


@contextmanager
def watched(network: Any) -> Iterator[Watch]:
    """A watch over what is done with `network` in the block.

    On a CPU the memory is that of the process, looked at all the time; what was free already is given back before.
    """
    watch, device = Watch(), network.device

    def count(body: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = named.get("input_ids", given[0] if given else None)
        watch.tokens += 0 if ids is None else ids.numel()

    def count_read(head: Any, given: tuple[Any, ...]) -> None:
        watch.read += given[0].numel() // given[0].shape[-1]

    hooks = [
        network.base_model.register_forward_pre_hook(count, with_kwargs=True),
        network.get_output_embeddings().register_forward_pre_hook(count_read),
    ]
    gc.collect()
    try:
        with _on_cuda(watch, device) if device.type == "cuda" else _on_cpu(watch):
            start = clock()
            yield watch
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            watch.seconds = clock() - start
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _on_cuda(watch: Watch, device: torch.device) -> Iterator[None]:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    yield
    watch.peak = torch.cuda.max_memory_allocated(device) - before


@contextmanager
def _on_cpu(watch: Watch) -> Iterator[None]:
    with suppress(AttributeError, OSError, TypeError):  # not every C library keeps what was freed
        ctypes.CDLL(None).malloc_trim(0)
    process = psutil.Process()
    before, over = process.memory_info().rss, Event()

    def look() -> None:
        while True:
            watch.peak = max(watch.peak, process.memory_info().rss - before)
            if over.wait(LOOK):
                return

    looking = Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


@contextmanager
def _frozen() -> Iterator[None]:
    """What lies in memory already is not looked through for garbage, which takes longer than a small turn."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def matmul_rate(device: torch.device, dtype: torch.dtype, repeats: int = 3) -> float:
    """Floating-point operations a second in a product of two large matrices: the median of `repeats`."""
    side = SIDE["cuda" if device.type == "cuda" else "cpu"]
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(repeats + 1):
        start = clock()
        torch.matmul(a, b)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(clock() - start)
    return 2 * side**3 / median(seconds[1:])  # the first is not counted
