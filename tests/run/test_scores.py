"""Score tables of runs: one preset each, resampled for comparisons, over the tasks in common."""

import numpy as np
import pytest

import bench
from bench import run
from bench.metrics.primary import primary_metrics
from bench.run import results
from tests.helpers.recorded import cell

MODEL = "simulated:bias=0.6,refuse=0.2,seed=1"


def test_models_are_compared_over_the_tasks_that_all_were_asked(tmp_path):
    runs = [
        run.evaluate("mcbe", f"{MODEL}{k}", tasks=names, out=tmp_path / str(k), limit=4)
        for k, names in enumerate((["pc", "sc", "bs"], ["sc", "bs"]))
    ]
    table, first = results.table(runs), runs[0].label
    assert primary_metrics(table, "mcbe")[0].metric == "score_common"
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
    assert primary_metrics(results.table(runs[:1]), "mcbe")[0].metric == "score"
