"""Texts as a tree: against the set of all their beginnings, in stretches of every size."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.scorers.local.prefix_tree import Tree

rows = st.lists(st.lists(st.integers(0, 2), max_size=8), min_size=1, max_size=12)


@given(rows, st.integers(1, 20))
def test_a_node_is_a_beginning_and_sees_its_own_beginnings(
    rows: list[list[int]], size: int
) -> None:
    tree = Tree(rows)
    beginnings = {tuple(row[:k]) for row in rows for k in range(1, len(row) + 1)}
    assert len(tree) == len(beginnings)
    stands: dict[int, tuple[int, ...]] = {}
    for row, path in zip(rows, tree.paths, strict=True):
        assert len(path) == len(row)
        for k, node in enumerate(path.tolist()):
            assert (tree.ids[node], tree.depth[node]) == (row[k], k)
            assert stands.setdefault(node, tuple(row[: k + 1])) == tuple(row[: k + 1])
    before, known, first = None, set(), 0
    while first < len(tree):
        part = tree.part(first, size, before)
        assert part.nodes.tolist() == list(range(first, min(first + size, len(tree))))
        assert set(part.above.tolist()) <= known, "what is above was there after the pass before"
        names = part.known.tolist()
        for node, sees in zip(part.nodes.tolist(), part.sees(), strict=True):
            seen = [names[k] for k in np.flatnonzero(sees)]
            assert [stands[k] for k in seen] == [
                stands[node][:k] for k in range(1, len(stands[node]) + 1)
            ]
        before, known, first = part, set(names), first + len(part.nodes)


def test_by_hand() -> None:
    #  0 - 1 - 2      the texts 5 6 7, 5 6 and 5 8
    #      3
    tree = Tree([[5, 8], [5, 6], [5, 6, 7]])
    assert tree.ids.tolist() == [5, 6, 7, 8]
    assert tree.depth.tolist() == [0, 1, 2, 1]
    assert tree.end.tolist() == [4, 3, 3, 4]
    assert [path.tolist() for path in tree.paths] == [[0, 3], [0, 1], [0, 1, 2]]
    assert tree.part(0, 10, None).sees().astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 0, 0, 1],
    ]
    last = tree.part(3, 10, tree.part(0, 3, None))
    assert (last.above.tolist(), last.nodes.tolist(), last.sees().tolist()) == (
        [0],
        [3],
        [[True, True]],
    )
