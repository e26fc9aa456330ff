"""Attention in a tree on a CPU, a block of tokens at a time with only the tokens that it sees.

PyTorch's attention on a CPU computes all pairs, masked or not, and is slower than two products and
a softmax. Most pairs of a tree's tokens are on different branches.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AttentionInterface

NAME = "bench_tree"
# Tokens of a block: fewer see fewer others, more fill the matrix units.
BLOCK = 128


class Block(NamedTuple):
    """Some tokens of a pass.

    Attributes:
        first, last: their positions.
        seen: the tokens that any of them sees.
        mask: minus infinity where a token does not see another: [tokens, seen].
    """

    first: int
    last: int
    seen: torch.Tensor
    mask: torch.Tensor


_blocks: ContextVar[Sequence[Block]] = ContextVar("blocks")


def blocks(sees: np.ndarray, dtype: torch.dtype) -> list[Block]:
    """Split a pass in which token i sees those where `sees[i]` holds."""
    result = []
    for first in range(0, len(sees), BLOCK):
        rows = sees[first : first + BLOCK]
        seen = np.flatnonzero(rows.any(0))
        mask = torch.zeros(len(rows), len(seen), dtype=dtype)
        mask.masked_fill_(~torch.from_numpy(rows[:, seen]), -torch.inf)
        result.append(Block(first, first + len(rows), torch.from_numpy(seen), mask))
    return result


@contextmanager
def attending(network: Any, pass_blocks: Sequence[Block]) -> Iterator[None]:
    """Let the network attend by blocks."""
    token = _blocks.set(pass_blocks)
    before = network.config._attn_implementation
    network.set_attn_implementation(NAME)
    try:
        yield
    finally:
        network.set_attn_implementation(before)
        _blocks.reset(token)


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attend to states [1, heads, tokens, size]; keys and values may have fewer heads."""
    for name in ("softcap", "s_aux"):
        if options.get(name) is not None:
            raise ValueError(f"attention with {name}")
    _, heads, tokens, width = query.shape
    groups = heads // key.shape[1]
    query = (query[0] * (width**-0.5 if scaling is None else scaling)).unflatten(0, (-1, groups))
    out = torch.empty(tokens, heads, value.shape[-1], dtype=query.dtype)
    for block in _blocks.get():
        k, v = key[0].index_select(1, block.seen), value[0].index_select(1, block.seen)
        some = query[:, :, block.first : block.last]
        # Heads that share keys are rows of one product.
        scores = torch.matmul(some.flatten(1, 2), k.transpose(1, 2)).unflatten(1, (groups, -1))
        shares = scores.add_(block.mask).softmax(-1)
        states = torch.matmul(shares.flatten(1, 2), v).unflatten(1, (groups, -1))
        out[block.first : block.last] = states.flatten(0, 1).transpose(0, 1)
    return out[None], None


AttentionInterface.register(NAME, _attend)
