"""Pictures of ranks and of two wordings: what is drawn where, with which words."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.figures import ranks as pictures
from bench.figures import robustness as two
from bench.metrics import friedman, robustness
from bench.metrics.bootstrap import Replicates, Sample
from bench.metrics.mcbe import paper
from bench.metrics.robustness import Points
from bench.metrics.table import Headline
from tests.helpers.drawing import drawn, ticks, told

LONG = "simulated:competence=0.8,position=0.3,refuse=0.1,seed=3"
CATEGORIES = ("gender", "age", "race", "religion", "region", "SES", "disease", "ethnicity")


def blocks(
    models: list[str], step: float = 0.2, gap: bool = False, seed: int = 0
) -> friedman.Blocks:
    dice = np.random.default_rng(seed)
    rows = [
        {
            "model": model,
            "category": category,
            "task": "ambiguous",
            "metric": "s_amb",
            "score": step * k + dice.normal(0, 0.05),
            "preset": "robust",
            "note": "",
        }
        for k, model in enumerate(models)
        for category in CATEGORIES
    ]
    if gap:
        rows[0] |= {"score": np.nan, "note": "no answer could be read"}
    return friedman.blocks(pd.DataFrame(rows), "cbbq")


def diagram(found: friedman.Blocks) -> Any:
    return drawn(
        pictures.critical_difference_diagram(found, friedman.test(found), friedman.pairs(found))
    )


@pytest.mark.parametrize("n", [2, 3, 12])
def test_every_model_stands_at_its_mean_rank(n: int) -> None:
    found = blocks([LONG, *(f"model-{k}" for k in range(1, n))])
    fig = diagram(found)
    (axis,) = fig.axes
    marks = sorted(float(one.get_offsets()[0][0]) for one in axis.collections)
    assert marks == pytest.approx(sorted(found.ranks.mean()))
    words = " ".join(text.replace("\n", "") for text in told(axis))
    assert all(model in words for model in found.ranks)
    assert f"critical difference {friedman.critical_difference(n, 8):.2f}" in words
    assert "least bias" in fig.get_label()
    # Nothing is cut off, and no two names overlap.
    boxes = [text.get_window_extent() for text in axis.texts]
    width, height = fig.canvas.get_width_height()
    assert all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes
    )
    names = [box.padded(-1) for box in boxes]
    assert not [1 for k, one in enumerate(names) for other in names[:k] if one.overlaps(other)]


def test_a_bar_joins_those_that_cannot_be_told_apart() -> None:
    found = blocks(["a", "b", "c"], step=0.0, seed=2)
    title = diagram(found).get_suptitle()
    assert title == "No difference between 3 models could be shown over 8 categories"
    found = blocks(["a", "b", "c", "d"])
    pairs = friedman.pairs(found)
    apart = int((pairs.p_nemenyi < 0.05).sum())
    fig = diagram(found)
    assert (
        fig.get_suptitle()
        == f"4 models differ over 8 categories; {apart} of 6 pairs can be told apart"
    )
    means = found.ranks.mean()
    level = {
        (round(min(x), 6), round(max(x), 6))
        for line in fig.axes[0].lines
        for x, y in [line.get_data()]
        if len(set(y)) == 1 and y[0] < 0
    }
    for row in pairs[pairs.p_nemenyi >= 0.05].itertuples():
        low, high = sorted((means[row.first], means[row.second]))
        assert any(a <= low + 1e-5 and high <= b + 1e-5 for a, b in level)
    for row in pairs[pairs.p_nemenyi < 0.05].itertuples():
        low, high = sorted((means[row.first], means[row.second]))
        assert not any(a <= low + 1e-5 and high <= b + 1e-5 for a, b in level)


def test_ranks_by_block_are_printed_and_what_is_left_out_is_hatched() -> None:
    found = blocks(["a", "b", LONG], gap=True)
    fig = drawn(pictures.ranks_by_block(found, "cbbq"))
    (axis,) = fig.axes
    assert sorted(told(axis)) == ["1"] * 7 + ["2"] * 7 + ["3"] * 7
    assert sum(bool(patch.get_hatch()) for patch in axis.patches) == 3
    assert "hatched: 1 left out" in axis.get_title(loc="left")
    assert ticks(axis.get_xticklabels())[2].replace("\n", "") == LONG
    assert "gender" in ticks(axis.get_yticklabels())[-1]


def test_names_are_folded_and_lose_nothing() -> None:
    for name in (LONG, "a", "x" * 60, "Qwen/Qwen2.5-0.5B-Instruct", "--", ""):
        folded = pictures.folded(name)
        assert folded.replace("\n", "") == name
        assert max(map(len, folded.split("\n"))) <= pictures.LINE + 1


def test_two_wordings_of_the_paper_s_table() -> None:
    table = paper.table_12()
    found = robustness.correlated(Points(table, {})), robustness.limits(Points(table, {}))
    fig = drawn(two.agreement(table, *found))
    left, right = fig.axes[:2]
    marks = [line for line in left.lines if line.get_marker() != "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 3, 3]
    assert list(marks[0].get_xdata()) == [34.83, 38.15, 30.64]
    assert list(right.lines[0].get_ydata()) == pytest.approx([0.42, -1.47, 1.38])
    assert (
        fig.get_suptitle()
        == "Both wordings order scores alike (ρ = 0.97 to 1.00); single ones move by up to 2.6"
    )
    assert any(text.startswith("mean") for text in told(right))
    assert "better →" in left.get_xlabel()


@pytest.mark.parametrize("models", [["a"], ["a", LONG], [f"model-{k}" for k in range(12)]])
def test_differences_of_whole_scores_stand_beside_nought(models: list[str]) -> None:
    headline = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
    dice = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["x", "y", "z"], ["ambiguous"]])
    answered = pd.DataFrame(
        {"n": 9, "same": 0.5, "valid_first": 1.0, "valid_second": 1.0}, index=index
    )
    pairs = {}
    for model in models:
        one, other = Replicates(), Replicates()
        for category in ("x", "y", "z", "all"):
            place, values = (category, "ambiguous", "s_amb"), dice.normal(0.5, 0.02, 1001)
            one.add(place, values, Sample(1001, 1))
            other.add(place, values + dice.normal(0.3, 0.01, 1001), Sample(1001, 1))
        pairs[model] = (one, other, answered)
    found = robustness.points(pairs, [headline])
    fig = drawn(two.differences(found.table))
    assert fig.get_suptitle().startswith(f"{len(models)} of {len(models)} whole scores move")
    assert [name.replace("\n", "") for name in ticks(fig.axes[0].get_yticklabels())] == models[::-1]
    assert "more bias →" in fig.axes[0].get_xlabel()
    drawn(two.agreement(found.table, robustness.correlated(found), robustness.limits(found)))
