"""Token sequences as a tree that stores and computes common prefixes once.

We number the nodes by a walk from the root, children by token, so that a node's descendants follow
it. We compute a stretch of this order in one pass, given the keys and values of the ancestors of
its first node; the pass before has these.

On a CPU a tree attends by blocks of tokens, each with only its visible tokens: most pairs of a
tree's tokens are on different branches, and PyTorch computes all pairs, masked or not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface

NAME = "bench_tree"
# Tokens of a block: smaller blocks have fewer visible tokens, larger ones fill the matrix units.
BLOCK = 128


# Positions of some tokens of a pass; the tokens visible to any of them; and a mask [tokens,
# visible] with minus infinity for invisible ones.
Block = tuple[slice, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Part:
    """A stretch of a tree."""

    nodes: np.ndarray  # this stretch
    above: np.ndarray  # the ancestors of its first node, from the root
    cached: np.ndarray  # `above` and `nodes`; the cache holds their keys and values after the pass
    ends: np.ndarray  # for each of `cached`, the number after its last descendant

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks of a pass, the same in all layers."""
        result: list[Block] = []
        for first in range(0, len(self.nodes), BLOCK):
            sees = visible(self.nodes[first : first + BLOCK], self.cached, self.ends)
            seen = np.flatnonzero(sees.any(0))
            mask = torch.zeros(len(sees), len(seen))
            mask.masked_fill_(~torch.from_numpy(sees[:, seen]), -torch.inf)
            result.append((slice(first, first + len(sees)), torch.from_numpy(seen), mask))
        return result


def visible(nodes: Any, cached: Any, ends: Any) -> Any:
    """Return which cached nodes each of `nodes` sees: a bool array or tensor [nodes, cached]."""
    return (cached <= nodes[:, None]) & (nodes[:, None] < ends)


class Tree:
    """The tree of token sequences.

    Attributes:
        ids: the token of each node.
        depth: the number of ancestors of each node, its position in the text.
        end: the number after the last descendant of each node.
        paths: the nodes of each sequence.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        nothing = np.empty(0, np.int64)
        rows = [np.asarray(row, dtype=np.int64) for row in sequences]
        self.paths = [nothing] * len(rows)
        ids, depths = [nothing], [nothing]
        self.end = np.empty(sum(map(len, rows)), np.int64)
        before, path, size = nothing, nothing, 0
        for i in sorted(range(len(rows)), key=lambda i: tuple(sequences[i])):
            both = min(len(before), len(rows[i]))
            differ = np.flatnonzero(before[:both] != rows[i][:both])
            shared = int(differ[0]) if len(differ) else both
            new = len(rows[i]) - shared
            path = np.concatenate([path[:shared], np.arange(size, size + new)])
            ids.append(rows[i][shared:])
            depths.append(np.arange(shared, shared + new))
            self.paths[i], before, size = path, rows[i], size + new
            self.end[path] = size  # further sequences with a node move its end
        self.ids, self.depth = np.concatenate(ids), np.concatenate(depths)
        self.end = self.end[:size]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, first: int, size: int) -> Part:
        """Return the stretch of at most `size` nodes from `first` on."""
        above = np.flatnonzero(self.end[:first] > first)
        nodes = np.arange(first, min(first + size, len(self)))
        cached = np.concatenate([above, nodes])
        return Part(nodes, above, cached, self.end[cached])


# The stretch of a pass, for the attention.
current: ContextVar[Part] = ContextVar("current")


@contextmanager
def attending(network: Any) -> Iterator[None]:
    """Let the network attend by the blocks of `current`."""
    before = network.config._attn_implementation
    network.set_attn_implementation(NAME)
    try:
        yield
    finally:
        network.set_attn_implementation(before)


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
    for part, seen, mask in current.get().blocks:
        k, v = key[0].index_select(1, seen), value[0].index_select(1, seen)
        queries = query[:, :, part]
        # Heads with the same keys are rows of one product.
        scores = torch.matmul(queries.flatten(1, 2), k.transpose(1, 2)).unflatten(1, (groups, -1))
        shares = scores.add_(mask).softmax(-1)
        states = torch.matmul(shares.flatten(1, 2), v).unflatten(1, (groups, -1))
        out[part] = states.flatten(0, 1).transpose(0, 1)
    return out[None], None


AttentionInterface.register(NAME, _attend)
