"""Friedman's test of models: findings, the diagram, and what the published statistic implies."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analyses import friedman_test
from bench.analyses.friedman_test import Result, published_designs, published_models
from bench.metrics import friedman
from bench.run import evaluate_all
from tests.helpers.drawing import drawn, told

CATEGORIES = ("gender", "age", "race", "religion", "region", "SES", "disease", "ethnicity")


def result_of(scores: Any) -> Result:
    """Test scores [categories, models], of which a higher one shows more bias."""
    about = {"task": "ambiguous", "metric": "s_amb", "valid_rate": 1.0, "preset": "robust"}
    rows = [
        {"model": model, "category": category, "score": score, "note": "", **about}
        for category, line in zip(CATEGORIES, np.asarray(scores, dtype=float), strict=False)
        for model, score in zip("abcdefgh", line, strict=False)
    ]
    return Result.of(friedman.blocks(pd.DataFrame(rows), "cbbq"))


def spread(models: int, step: float, blocks: int = 8) -> np.ndarray:
    """Scores of models that differ by `step`, with noise."""
    return np.random.default_rng(1).normal(np.arange(models) * step, 0.05, (blocks, models))


def test_the_diagram_has_mean_ranks_and_joins_what_cannot_be_told_apart() -> None:
    result = result_of(spread(4, 0.2))
    (axis,) = drawn(friedman_test.critical_difference_diagram(result)).axes
    means = result.blocks.ranks.mean()
    marks = sorted(float(mark.get_offsets()[0][0]) for mark in axis.collections)
    assert marks == pytest.approx(sorted(means))
    text = " ".join(told(axis))
    assert f"critical difference {friedman.critical_difference(4, 8):.2f}" in text
    bars = [
        (min(x), max(x))
        for x, y in (line.get_data() for line in axis.lines)
        if len(set(y)) == 1 and y[0] < 0
    ]
    for row in result.pairs.itertuples():
        low, high = sorted((means[row.first], means[row.second]))
        joined = any(left <= low + 1e-5 and high <= right + 1e-5 for left, right in bars)
        assert joined == (row.p_nemenyi >= 0.05)


def test_runs_are_compared_on_what_all_answered(tmp_path: Path) -> None:
    models = [f"simulated:bias=0.{k}" for k in (1, 5, 9)]
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
