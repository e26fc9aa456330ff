"""Score tables of runs: one preset each, resampled for comparisons, over the tasks in common."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bench
from bench import run
from bench.metrics.headline import headlines
from bench.run import results
from tests.helpers.recorded import cell

OPTIONS: dict[str, dict[str, Any]] = {
    "mcbe": {"judge": "simulated:"},
    "cbbq": {"categories": ["gender", "age"]},
    "nli_coal": {"categories": ["zh"]},
}
MODEL = "simulated:bias=0.6,refuse=0.2,seed=1"


@pytest.mark.parametrize("benchmark", OPTIONS)
def test_replicates_give_the_scores_and_intervals_of_the_table(benchmark, tmp_path: Path) -> None:
    asked = run.evaluate(benchmark, MODEL, out=tmp_path / "a", **OPTIONS[benchmark])
    scores, replicates = asked.scores(), asked.replicates()
    assert not scores.duplicated(["category", "task", "metric"]).any()
    pd.testing.assert_frame_equal(asked.scores_beside().iloc[: len(scores)], scores)
    n_compared = 0
    for row in scores.itertuples():
        key = row.category, row.task, row.metric
        values = replicates.get(key)
        if values is None or np.isnan(row.score):
            continue
        n_compared += 1
        assert values[0] == pytest.approx(row.score)
        if not np.isnan(row.ci_low):
            assert replicates.estimate(key)[1:] == pytest.approx([row.ci_low, row.ci_high])
            # As wide as the standard error says, or wider: there are few units.
            assert row.ci_high - row.ci_low > 2 * 1.7 * np.nanstd(values[1:])
    assert n_compared > 3


def test_resamples_of_the_same_answers_draw_the_same_items(tmp_path: Path, refusal: Any) -> None:
    both, part, other = (
        run.evaluate("cbbq", MODEL, out=tmp_path / "-".join(names), categories=names)
        for names in (["gender", "age"], ["gender"], ["race"])
    )
    key = ("gender", "ambiguous", "s_amb")
    for like in ([part], [part, both]):
        values = part.replicates(like=[part])[key]
        np.testing.assert_array_equal(both.replicates(like=like)[key], values)
    assert set(both.replicates(like=[part])) == set(part.replicates())
    assert "no answer could be read of it and of" in refusal(both.replicates, like=[other])


def test_models_are_compared_over_the_tasks_that_all_were_asked(tmp_path: Path) -> None:
    runs = [
        run.evaluate("mcbe", f"{MODEL}{k}", tasks=names, out=tmp_path / str(k), limit=4)
        for k, names in enumerate((["pc", "sc", "bs"], ["sc", "bs"]))
    ]
    table, first = results.table(runs), runs[0].label
    assert headlines(table, "mcbe")[0].metric == "score_common"
    own = table[(table.model == first) & (table.preset == "robust")]
    common = own[(own.metric == "score") & own.task.isin(["sc", "bs"]) & (own.category != "all")]
    by_category = common.groupby("category").score.mean()
    for category, expected in (("gender", by_category["gender"]), ("all", by_category.mean())):
        score = cell(own, "score_common", category=category, task="all").score
        assert score == pytest.approx(expected)
    ranked = bench.measure(bench.explain(bench.score(*runs)))
    ranked = ranked.query("model == @first and category != 'all'")
    ranked = ranked.set_index("category").score[by_category.index]
    np.testing.assert_allclose(ranked, by_category)
    assert headlines(results.table(runs[:1]), "mcbe")[0].metric == "score"
