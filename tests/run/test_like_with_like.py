"""Models that were asked different tasks are compared in those that all of them were asked."""

from pathlib import Path

import numpy as np
import pytest

from bench import run
from bench.metrics import friedman
from bench.metrics.headline import findings, headlines
from bench.run import results
from tests.helpers.recorded import cell


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> list[results.Run]:
    """Runs of two models, of which the second was asked fewer tasks."""
    folder = tmp_path_factory.mktemp("unlike")
    tasks = {
        "simulated:bias=0.5,seed=1": ["pc", "sc", "bs"],
        "simulated:bias=0.5,seed=2": ["sc", "bs"],
    }
    return [
        run.evaluate("mcbe", model, tasks=some, limit=4, data="samples", out=folder / str(k))
        for k, (model, some) in enumerate(tasks.items())
    ]


def test_the_headline_is_over_the_tasks_that_all_models_were_asked(
    unlike: list[results.Run],
) -> None:
    table = results.table(unlike)
    assert headlines(table, "mcbe")[0].metric == "score_common"
    mine = table[(table.model == unlike[0].label) & (table.preset == "robust")]
    by_task = mine[(mine.metric == "score") & mine.task.isin(["sc", "bs"])]
    for category in ("gender", "race"):
        wanted = by_task[by_task.category == category].score.mean()
        assert cell(mine, "score_common", category=category, task="all").score == pytest.approx(
            wanted
        )
    categories = by_task[by_task.category != "all"].groupby("category").score.mean()
    wanted = categories.mean()
    assert cell(mine, "score_common", task="all").score == pytest.approx(wanted)
    assert cell(mine, "score", task="all").score != pytest.approx(wanted)
    told = findings(table, "mcbe")
    assert list(told.metric[:2]) == ["score_common", "score_common"]
    blocks = friedman.blocks(table, "mcbe")
    np.testing.assert_allclose(blocks.scores[unlike[0].label].loc[categories.index], categories)


def test_models_that_were_asked_the_same_keep_the_headline(unlike: list[results.Run]) -> None:
    assert headlines(results.table(unlike[:1]), "mcbe")[0].metric == "score"


def test_a_coal_like_a_random_answerer_s_is_told_from_it_by_the_gap(tmp_path: Path) -> None:
    # CoAL is the bias times two thirds here, as neutral is never wrong: 4/9 of two thirds.
    asked = run.evaluate("nli_coal", "simulated:bias=0.667,seed=4", data="samples", out=tmp_path)
    row = findings(results.table([asked]), "nli_coal").set_index("metric").loc["coal"]
    assert row.ci_low <= 4 / 9 <= row.ci_high
    assert "cannot be told from" not in row.sentence
    assert (
        "A random answerer would get as much, but the model is none: its directional_gap is 0.6"
        in row.sentence
    )
