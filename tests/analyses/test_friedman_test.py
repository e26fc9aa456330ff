"""Friedman's test of models: findings, the diagram, and what the published statistic implies."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analyses import friedman_test
from bench.analyses.friedman_test import Result, published_designs, published_models
from bench.metrics import friedman
from bench.run import evaluate, evaluate_all
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


def test_categories_that_not_all_models_were_asked_are_named(tmp_path: Path) -> None:
    every = ["age", "gender", "race"]
    categories = (every, [*every, "region"], every)
    runs = [
        evaluate("cbbq", f"simulated:bias=0.{k}", out=tmp_path / str(k), categories=own, limit=4)
        for k, own in enumerate(categories)
    ]
    result = friedman_test.compare(runs, "cbbq")
    assert list(result.blocks.scores.index) == every
    without = f"not asked of {runs[0].label} and {runs[2].label}"
    assert result.blocks.left_out[["name", "why"]].to_numpy().tolist() == [["region", without]]
    assert friedman_test.findings(result)[-1] == f"Left out: region ({without})."


def test_models_that_answer_by_letter_are_not_ranked(tmp_path: Path) -> None:
    models = ["bias=0.2", "bias=0.5", "bias=0.9", "answer=A", "bias=0.2,position=0.7"]
    runs = [evaluate("cbbq", f"simulated:{name}", out=tmp_path / name, limit=20) for name in models]
    result = friedman_test.compare(runs, "cbbq")
    assert list(result.blocks.ranks) == [f"simulated:{name}" for name in models[:3]]
    why = dict(zip(result.blocks.left_out.name, result.blocks.left_out.why, strict=True))
    assert why == {
        "simulated:answer=A": "the same answer to everything",
        "simulated:bias=0.2,position=0.7": "mostly the same letter, which alone could give this "
        "score",
    }


def test_fewer_than_two_models_that_can_be_ranked_are_refused(tmp_path: Path, refusal: Any) -> None:
    runs = evaluate_all("cbbq", ["simulated:answer=A", "simulated:bias=0.5"], tmp_path, limit=8)
    text = refusal(friedman_test.compare, runs, "cbbq")
    assert "fewer than two models can be ranked (simulated:answer=A: the same answer" in text


def test_the_published_statistic_fits_eleven_models_and_twelve_categories() -> None:
    table = published_models(range(3, 41))
    assert list(table.models[table.fits == "yes"]) == [11]
    designs = published_designs(11, {str(n): n for n in (5, 9, 10, 11, 12, 13, 14)})
    assert list(designs.fits) == ["no", "no", "yes", "no", "yes", "no", "yes"]
    twelve = designs[designs.blocks == 12].iloc[0]
    assert twelve.statistic == pytest.approx(927 / 11)
    assert twelve.p == "7.2613e-14"
