"""Choose the device, dtype and batch size of local models."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import torch

from bench.core.errors import BadInput, expected
from bench.core.progress import say

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# More processes than this per processor want to run: some are not ours.
BUSY = 1.5


@dataclass(frozen=True)
class Placement:
    """Device, precision and batch sizes of a model."""

    device: torch.device  # of the first layer
    dtype: torch.dtype
    batch_tokens: int  # in a batch, padding included
    tree_tokens: int  # of a pass over a prefix tree; its cost is quadratic
    spread: bool = False  # whether accelerate distributes the model over all devices

    @property
    def device_map(self) -> str | dict[str, str]:
        """Where transformers puts the weights."""
        return "auto" if self.spread else {"": str(self.device)}

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json`."""
        return {
            "device": "auto" if self.spread else str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
            "batch_tokens": self.batch_tokens,
        }


def placement(device: str | None, dtype: str | None, batch_tokens: int | None) -> Placement:
    """Choose the device and precision; by default an accelerator in bfloat16, or the CPU."""
    spread = device == "auto"
    if device is None or spread:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        where = torch.device(device)
        torch.empty(1, device=where)
    except (RuntimeError, AssertionError):  # the latter if torch was built without CUDA
        devices = "allowed: cpu, cuda, cuda:N, auto"
        raise BadInput(f"--device {device}: is not available here; {devices}") from None
    if dtype is not None and dtype not in DTYPES:
        raise BadInput("--dtype: " + expected(dtype, DTYPES, "dtype"))
    if batch_tokens is not None and batch_tokens < 1:
        raise BadInput(f"--batch-tokens {batch_tokens}: a batch holds at least one token")
    on_cpu = where.type == "cpu"
    precision = DTYPES[dtype] if dtype else (torch.float32 if on_cpu else torch.bfloat16)
    # Larger batches are no faster on a CPU.
    size, tree = (4096, 256) if on_cpu else (32768, 4096)
    return Placement(
        where, precision, batch_tokens or size, min(tree, batch_tokens or tree), spread
    )


def yield_to_others(where: Placement) -> None:
    """Run torch on one thread if other programs keep all processors busy.

    Several threads would wait for each other, which takes many times as long.
    """
    processors = psutil.cpu_count() or 1
    is_busy = psutil.getloadavg()[0] > BUSY * processors
    is_ours = where.device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ
    if is_busy and is_ours and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
        say("this machine is busy: torch runs on one thread (OMP_NUM_THREADS sets another number)")


def free_memory(device: torch.device) -> float:
    """Return the free bytes on `device`; infinite if unknown."""
    if device.type == "cpu":
        return float(psutil.virtual_memory().available)
    if device.type != "cuda":
        return math.inf
    # torch can reuse the memory that it has reserved.
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(torch.cuda.mem_get_info(device)[0] + unused)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Run torch on `n` threads; small models are faster on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batch_size(lengths: Sequence[int], budget: int) -> int:
    """Return the number of first texts that fit into a batch of `budget` tokens, at least one."""
    longest = 0
    for n, length in enumerate(lengths):
        longest = max(longest, length)
        if n and longest * (n + 1) > budget:
            return n
    return len(lengths)


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group positions, longest first, so that a batch stays within `budget` tokens."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    while order:
        size = batch_size([lengths[i] for i in order], budget)
        yield order[:size]
        order = order[size:]
