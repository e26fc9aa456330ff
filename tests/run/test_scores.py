"""Score tables of runs: one preset each, resampled for comparisons, over the tasks in common."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.metrics import friedman
from bench.metrics.bootstrap import DRAWS
from bench.metrics.headline import findings, headlines
from bench.metrics.table import ALL
from bench.run import results
from tests.helpers.recorded import cell

OPTIONS: dict[str, dict[str, Any]] = {
    "mcbe": {"judge": "simulated:"},
    "cbbq": {"categories": ["gender", "age"]},
    "nli_coal": {"categories": ["zh"]},
}
MODEL = "simulated:bias=0.6,seed=1"


@pytest.mark.parametrize("benchmark", OPTIONS)
def test_replicates_give_the_scores_and_intervals_of_the_table(
    benchmark: str, tmp_path: Path
) -> None:
    asked = run.evaluate(benchmark, MODEL, out=tmp_path / "a", **OPTIONS[benchmark])
    scores, replicates = asked.scores(), asked.replicates()
    n_compared = 0
    for row in scores[scores.preset == "robust"].itertuples():
        key = row.category, row.task, row.metric
        values = replicates.get(key)
        if values is None or np.isnan(row.score):
            continue
        n_compared += 1
        assert values.shape == (1 + DRAWS,)
        assert values[0] == pytest.approx(row.score)
        if not np.isnan(row.ci_low):
            assert replicates.estimate(key)[1:] == pytest.approx([row.ci_low, row.ci_high])
            assert row.ci_low <= row.score <= row.ci_high
            # As wide as the standard error says, or wider: there are few units.
            assert row.ci_high - row.ci_low > 2 * 1.7 * np.nanstd(values[1:])
    assert n_compared > 3
    assert any(category == ALL for category, _, _ in replicates)


def test_resamples_of_the_same_answers_draw_the_same_items(tmp_path: Path, refusal: Any) -> None:
    both, part, other = (
        run.evaluate("cbbq", MODEL, out=tmp_path / "-".join(names), categories=names)
        for names in (["gender", "age"], ["gender"], ["race"])
    )
    key = ("gender", "ambiguous", "s_amb")
    for like in ([part], [part, both]):
        np.testing.assert_array_equal(both.replicates(like=like)[key], part.replicates()[key])
    assert set(both.replicates(like=[part])) == set(part.replicates())
    assert "no answer could be read of it and of" in refusal(both.replicates, like=[other])


def test_a_score_table_has_one_preset_and_official_rows_come_after_it(tmp_path: Path) -> None:
    model, options = "simulated:bias=0.5,refuse=0.4", {"categories": ["gender"], "data": "samples"}
    asked = run.evaluate("cbbq", model, out=tmp_path, **options)
    scores = asked.scores()
    assert set(scores.preset) == {"robust"}
    assert not scores.duplicated(["category", "task", "metric"]).any()
    assert set(asked.scores("official").preset) == {"official"}
    beside = asked.scores_beside()
    assert set(beside.preset) == {"robust", "official"}
    pd.testing.assert_frame_equal(beside.iloc[: len(scores)], scores)


def test_models_are_compared_over_the_tasks_that_all_were_asked(tmp_path: Path) -> None:
    options = {"limit": 4, "data": "samples"}
    runs = [
        run.evaluate("mcbe", f"{MODEL}{k}", tasks=names, out=tmp_path / str(k), **options)
        for k, names in enumerate((["pc", "sc", "bs"], ["sc", "bs"]))
    ]
    table, first = results.table(runs), runs[0].label
    assert headlines(table, "mcbe")[0].metric == "score_common"
    own = table[(table.model == first) & (table.preset == "robust")]
    common = own[(own.metric == "score") & own.task.isin(["sc", "bs"]) & (own.category != "all")]
    by_category = common.groupby("category").score.mean()
    for category in ("gender", "race"):
        score = cell(own, "score_common", category=category, task="all").score
        assert score == pytest.approx(by_category[category])
    score = cell(own, "score_common", task="all").score
    assert score == pytest.approx(by_category.mean())
    assert score != pytest.approx(cell(own, "score", task="all").score)
    assert list(findings(table, "mcbe").metric[:2]) == ["score_common", "score_common"]
    blocks = friedman.blocks(table, "mcbe").scores[first].loc[by_category.index]
    np.testing.assert_allclose(blocks, by_category)
    assert headlines(results.table(runs[:1]), "mcbe")[0].metric == "score"
