"""Scores of runs, observed and resampled, so that models can be compared item by item."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.metrics.bootstrap import DRAWS
from bench.metrics.table import ALL

HERE: dict[str, dict[str, Any]] = {
    "mcbe": {"judge": "simulated:"},
    "cbbq": {"categories": ["gender", "age"]},
    "nli_coal": {"categories": ["zh"]},
}


@pytest.mark.parametrize("benchmark", HERE)
def test_replicates_are_what_the_score_table_rests_on(benchmark: str, tmp_path: Path) -> None:
    one = run.evaluate(
        benchmark, "simulated:bias=0.6,seed=1", out=tmp_path / "a", **HERE[benchmark]
    )
    scores, found = one.scores(), one.replicates()
    shown = 0
    for row in scores[scores.preset == "robust"].itertuples():
        values = found.get((row.category, row.task, row.metric))
        if values is None or np.isnan(row.score):
            continue
        shown += 1
        assert values.shape == (1 + DRAWS,)
        assert values[0] == pytest.approx(row.score)
        if not np.isnan(row.ci_low):
            bounds = found.estimate((row.category, row.task, row.metric))[1:]
            assert bounds == pytest.approx([row.ci_low, row.ci_high])
            assert row.ci_low <= row.score <= row.ci_high
            # As wide as the standard error says, or wider: there are few units.
            assert row.ci_high - row.ci_low > 2 * 1.7 * np.nanstd(values[1:])
    assert shown > 3
    assert any(category == ALL for category, _, _ in found)


def test_resamples_of_the_same_answers_draw_the_same_items(tmp_path: Path, refusal: Any) -> None:
    model = "simulated:bias=0.6,seed=1"
    whole = run.evaluate("cbbq", model, out=tmp_path / "a", categories=["gender", "age"])
    part = run.evaluate("cbbq", model, out=tmp_path / "b", categories=["gender"])
    apart = run.evaluate("cbbq", model, out=tmp_path / "c", categories=["race"])
    place = ("gender", "ambiguous", "s_amb")
    for like in ([part], [part, whole]):
        np.testing.assert_array_equal(whole.replicates(like=like)[place], part.replicates()[place])
    assert set(whole.replicates(like=[part])) == set(part.replicates())
    assert "no answer could be read of it and of" in refusal(whole.replicates, like=[apart])


def test_a_score_table_holds_one_preset(tmp_path: Path) -> None:
    model = "simulated:bias=0.5,refuse=0.4"
    one = run.evaluate("cbbq", model, out=tmp_path, categories=["gender"], data="samples")
    assert set(one.scores().preset) == {"robust"}
    assert not one.scores().duplicated(["category", "task", "metric"]).any()
    assert set(one.scores("official").preset) == {"official"}
    beside = one.scores_beside()
    assert set(beside.preset) == {"robust", "official"}
    pd.testing.assert_frame_equal(beside.iloc[: len(one.scores())], one.scores())
