"""Friedman's test of models: sentences, pictures, and what the published statistic implies."""

import math
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.analyses import friedman_test
from bench.analyses.friedman_test import Result, findings, published_designs, published_models
from bench.metrics import friedman
from bench.run import evaluate_all
from tests.helpers.drawing import drawn, ticks, told

LONG = "simulated:competence=0.8,position=0.3,refuse=0.1,seed=3"
CATEGORIES = ("gender", "age", "race", "religion", "region", "SES", "disease", "ethnicity")


def result_of(scores: Any, models: Any = "abcdefgh", categories: Any = CATEGORIES) -> Result:
    """Test scores [categories, models], of which a higher one shows more bias."""
    rows = [
        {
            "model": model,
            "category": category,
            "task": "ambiguous",
            "metric": "s_amb",
            "score": score,
            "valid_rate": 1.0,
            "preset": "robust",
            "note": "" if score == score else "no answer could be read",
        }
        for category, line in zip(categories, np.asarray(scores, dtype=float), strict=False)
        for model, score in zip(models, line, strict=False)
    ]
    return Result.of(friedman.blocks(pd.DataFrame(rows), "cbbq"))


def spread(models: int, step: float, blocks: int = 8, seed: int = 0) -> np.ndarray:
    """Scores of models that differ by `step`, with noise."""
    return np.random.default_rng(seed).normal(np.arange(models) * step, 0.05, (blocks, models))


def test_findings_are_never_stronger_than_the_test() -> None:
    clear, leader = findings(result_of(spread(4, 0.2)))
    assert clear.startswith("Ambiguous: share of stereotyped answers: 4 models differ over 8 cat")
    assert "(Friedman's Q = 24.0 with 3 degrees of freedom, p < 0.001; Kendall's W = 1.00)" in clear
    assert "has the first mean rank, 1.0 (1 is least bias)." in leader
    (unclear,) = findings(result_of(spread(4, 0, seed=1)))
    assert "No difference between 4 models could be shown over 8 categories" in unclear
    # With one pair of models, the least p is 2 / 2^n: 0.0625 in five blocks, 0.031 in six.
    two, few = findings(result_of(spread(2, 0.2, 5)))
    assert "2 models, ranked over 5 categories (2 models: 3" in two
    assert "too few for Wilcoxon's test" in few
    assert len(findings(result_of(spread(2, 0.2, 6)))) == 1
    scores = np.c_[spread(3, 0.2), np.full(8, math.nan)]
    scores[2, 1] = math.nan
    assert findings(result_of(scores))[-1].endswith("see the table: 1 models, 1 categories.")


@pytest.mark.parametrize("n", [2, 12])
def test_every_model_is_at_its_mean_rank(n: int) -> None:
    names = [LONG, *(f"model-{k}" for k in range(1, n))]
    result = result_of(spread(n, 0.2), names)
    fig = drawn(friedman_test.critical_difference_diagram(result))
    (axis,) = fig.axes
    marks = sorted(float(mark.get_offsets()[0][0]) for mark in axis.collections)
    assert marks == pytest.approx(sorted(result.blocks.ranks.mean()))
    text = " ".join(text.replace("\n", "") for text in told(axis))
    assert all(name in text for name in names)
    assert f"critical difference {friedman.critical_difference(n, 8):.2f}" in text
    # Nothing is cut off, and no two names overlap.
    boxes = [text.get_window_extent() for text in axis.texts]
    width, height = fig.canvas.get_width_height()
    assert all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes
    )
    inner = [box.padded(-1) for box in boxes]
    assert not [1 for k, box in enumerate(inner) for other in inner[:k] if box.overlaps(other)]


def test_a_bar_joins_those_that_cannot_be_told_apart() -> None:
    result = result_of(spread(4, 0.2))
    fig = drawn(friedman_test.critical_difference_diagram(result))
    pairs, means = result.pairs, result.blocks.ranks.mean()
    apart = int((pairs.p_nemenyi < 0.05).sum())
    assert fig.get_suptitle().endswith(f"8 categories; {apart} of 6 pairs can be told apart")
    bars = [
        (min(x), max(x))
        for x, y in (line.get_data() for line in fig.axes[0].lines)
        if len(set(y)) == 1 and y[0] < 0
    ]
    for row in pairs.itertuples():
        low, high = sorted((means[row.first], means[row.second]))
        joined = any(left <= low + 1e-5 and high <= right + 1e-5 for left, right in bars)
        assert joined == (row.p_nemenyi >= 0.05)


def test_ranks_by_block_are_printed_and_what_is_left_out_is_hatched() -> None:
    scores = spread(3, 0.2)
    scores[0, 0] = math.nan
    fig = drawn(friedman_test.ranks_by_block(result_of(scores, ["a", "b", LONG]), "cbbq"))
    axis = fig.axes[0]
    assert sorted(told(axis)) == ["1"] * 7 + ["2"] * 7 + ["3"] * 7
    assert sum(bool(patch.get_hatch()) for patch in axis.patches) == 3
    assert "hatched: 1 left out" in axis.get_title(loc="left")
    assert ticks(axis.get_xticklabels())[2].replace("\n", "") == LONG
    assert "gender" in ticks(axis.get_yticklabels())[-1]


def test_runs_are_compared_on_what_all_answered(tmp_path: Path) -> None:
    models = ["simulated:bias=0.1", "simulated:bias=0.5", LONG]
    runs = evaluate_all("cbbq", models, tmp_path, limit=4)
    result = friedman_test.compare(runs, "cbbq")
    assert result.test.models == 3
    tables = friedman_test.tables(result)
    assert tables["friedman"].p[0] == result.test.p
    assert len(tables["pairs"]) == len(friedman_test.overall(runs, result)) == 3


def test_the_published_statistic_fits_eleven_models_and_twelve_categories() -> None:
    table = published_models(range(3, 41))
    assert list(table.models[table.fits == "yes"]) == [11]
    designs = published_designs(11, {str(n): n for n in (5, 9, 10, 11, 12, 13, 14)})
    assert list(designs.fits) == ["no", "no", "yes", "no", "yes", "no", "yes"]
    twelve = designs[designs.blocks == 12].iloc[0]
    assert twelve.statistic == pytest.approx(927 / 11)
    assert twelve.p == "7.2613e-14"
    assert twelve.kendall_w == pytest.approx(0.702, abs=5e-4)
    assert designs.statistic[0] == 50  # five blocks cannot give more
    # From the rounded statistic one would print another p.
    by_models = published_models(range(10, 13))
    assert list(by_models.p) == ["2.28e-14", "7.27e-14", "2.19e-13"]


def test_no_value_that_ranks_can_have_is_ruled_out() -> None:
    # All ways to rank three models in four blocks, by their statistic.
    possible = set()
    for ranks in product(permutations((1, 2, 3)), repeat=4):
        possible.add(round(float(12 / 48 * (np.sum(ranks, axis=0) ** 2).sum() - 48), 6))
    for value in (0.5, 0.75, 2.0, 2.25, 3.5, 4.5, 6.0):
        p = f"{stats.chi2.sf(value, 2):.1e}"
        designs = published_designs(3, {"x": 4}, f"{value:.2f}", p)
        assert (designs.fits[0] == "yes") == (value in possible)
