"""Token sequences as a tree, in which common beginnings are stored, and computed, once.

Nodes are numbered by a walk from the root, children by token, so that the nodes below one follow
it. Any stretch of that order can be computed in one pass, given the keys and values of the nodes
above its first one; those are in the pass before, or were given to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Part(NamedTuple):
    """A stretch of a tree.

    Attributes:
        nodes: the stretch itself.
        above: the nodes above the first of them, from the root.
        known: both, whose keys and values are there after the pass.
        ends: for each of `known`, the number after the last node below it.
    """

    nodes: np.ndarray
    above: np.ndarray
    known: np.ndarray
    ends: np.ndarray

    def sees(self, nodes: np.ndarray | None = None) -> np.ndarray:
        """Tell which known nodes each of `nodes` (default: all) sees: bool [nodes, known]."""
        column = (self.nodes if nodes is None else nodes)[:, None]
        return (self.known <= column) & (column < self.ends)


class Tree:
    """The tree of token sequences.

    Attributes:
        ids: the token of each node.
        depth: how many nodes are above it: its position in the text.
        end: the number after the last node below it.
        paths: the nodes of each sequence, in the order given.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        nothing = np.empty(0, np.int64)
        rows = [np.asarray(row, dtype=np.int64) for row in sequences]
        self.paths = [nothing] * len(rows)
        ids, depths, ended = [nothing], [nothing], []
        before, path, size = nothing, nothing, 0
        for i in sorted(range(len(rows)), key=lambda i: tuple(sequences[i])):
            shared = _shared(before, rows[i])
            ended.append((path[shared:], size))
            new = len(rows[i]) - shared
            path = np.concatenate([path[:shared], np.arange(size, size + new)])
            ids.append(rows[i][shared:])
            depths.append(np.arange(shared, shared + new))
            self.paths[i], before, size = path, rows[i], size + new
        ended.append((path, size))
        self.ids, self.depth = np.concatenate(ids), np.concatenate(depths)
        self.end = np.empty(size, np.int64)
        for nodes, end in ended:
            self.end[nodes] = end

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, first: int, size: int, before: Part | None) -> Part:
        """Return the stretch of at most `size` nodes from `first` on, after `before`."""
        above = np.empty(0, np.int64)
        if before is not None:
            # The last node of the stretch before, and those above it.
            above = before.known[before.sees(before.nodes[-1:])[0]][: self.depth[first]]
        nodes = np.arange(first, min(first + size, len(self)))
        known = np.concatenate([above, nodes])
        return Part(nodes, above, known, self.end[known])


def _shared(before: np.ndarray, row: np.ndarray) -> int:
    """Count how many tokens both begin with."""
    least = min(len(before), len(row))
    differ = np.flatnonzero(before[:least] != row[:least])
    return int(differ[0]) if len(differ) else least
