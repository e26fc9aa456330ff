"""Token sequences as a tree that stores and computes common prefixes once.

We number the nodes by a walk from the root, children by token, so that a node's descendants follow
it. We compute a stretch of this order in one pass, given the keys and values of the ancestors of
its first node; the pass before has these.
"""

from collections.abc import Sequence

import numpy as np


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
