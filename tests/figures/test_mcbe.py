"""McBE's pictures show the numbers of the table, and leave gaps open."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from bench import run
from bench.figures import mcbe
from bench.metrics.mcbe import severities
from tests.helpers.drawing import drawn, ticks, told
from tests.helpers.recorded import cell

NAMES = ["simulated:bias=0.2,seed=1", "simulated:bias=0.9,seed=1", "simulated:answer=A"]
TASKS = ["pc", "sc", "ss", "ba", "bs"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    options = {"judge": "simulated:", "categories": ["age", "race", "worldview"], "limit": 6}
    return run.evaluate_all("mcbe", NAMES, tmp_path_factory.mktemp("runs"), **options)


@pytest.fixture(scope="module")
def scores(runs):
    return run.table(runs)


def hatched(axis):
    return sum(patch.get_hatch() == "///" for patch in axis.patches)


def score(scores, task):
    return cell(scores, "score", "robust", task=task, model=NAMES[0]).score


def test_heatmaps_have_a_cell_for_each_score(scores):
    axis = drawn(mcbe.tasks_by_model(scores)).axes[0]
    names = [name.split("(")[-1] for name in ticks(axis.get_yticklabels())]
    assert names == [f"{task})" for task in TASKS]
    assert f"{score(scores, 'bs'):.0f}" in told(axis)
    # The respondent that always says A names no label, which is wrong, and no severity: a hatched gap.
    assert hatched(axis) == 1
    assert "0*" in told(axis)
    axis = drawn(mcbe.categories_by_task(scores, NAMES[0])).axes[0]
    assert ticks(axis.get_xticklabels()) == [*TASKS, "all"]
    # Worldview has no place in pc and ss.
    assert hatched(axis) == 2
    assert len(told(axis)) == 3 * 6 - 2


def test_radars_have_a_spoke_per_category_and_task_and_a_line_per_model(scores):
    by_category, by_task = drawn(mcbe.radars(scores)).axes
    assert len(by_category.get_xticks()) == 3
    assert by_category.get_ylim() == (0, 100)
    assert ticks(by_task.get_xticklabels()) == [task.upper() for task in TASKS]
    assert len(by_task.lines) == 3
    wanted = [score(scores, task) for task in TASKS]
    assert by_task.lines[0].get_ydata()[:5] == pytest.approx(wanted)
    assert np.isnan(by_task.lines[2].get_ydata()).any(), "a gap stays a gap"


def test_one_task_alone_makes_no_radar(tmp_path):
    few = run.evaluate_all("mcbe", NAMES[:1], tmp_path, tasks=["bs"], categories=["age"], limit=2)
    for picture in (mcbe.radars, mcbe.list_lengths, mcbe.marks):
        assert picture(run.table(few)) is None


def test_list_lengths_stand_above_the_lowest_possible_score(scores):
    axis = drawn(mcbe.list_lengths(scores)).axes[0]
    floor = next(line for line in axis.lines if line.get_linestyle() == ":")
    # Two groups: a variance of 1, times 0.156810.
    assert floor.get_ydata()[0] == pytest.approx(85.487, abs=1e-3)
    assert list(floor.get_xdata()) == sorted(set(floor.get_xdata()))
    # An interval by resamples need not hold the score.
    odd = scores.copy()
    by_length = odd.metric.str.endswith("_words") & odd.score.notna()
    odd.loc[by_length, ["score", "ci_low", "ci_high"]] = [100.0, 40.0, 90.0]
    paths = [p for c in drawn(mcbe.list_lengths(odd)).axes[0].collections for p in c.get_paths()]
    assert {40.0, 90.0} <= {float(y) for path in paths for y in path.vertices[:, 1]}


def test_severities_are_people_s_against_the_model_s(runs):
    answers = {each.label: severities(each.records, each.items) for each in runs}
    assert answers[NAMES[2]].empty
    some = answers[NAMES[0]]
    # At a bias of 0.2 the respondent gives people's severity or, where it follows the stereotype, 0.
    assert set(some.model - some.people) <= {0.0, *(-some.people)}
    fig = drawn(mcbe.severities(answers))
    assert len([axis for axis in fig.axes if axis.get_visible()]) == 2
    assert mcbe.severities({"none": pd.DataFrame({"people": [], "model": []})}) is None
    constant = mcbe.severities({"five": pd.DataFrame({"people": [1.0, 9.0], "model": [5.0, 5.0]})})
    assert "none: a constant" in constant.axes[0].get_title(loc="left")


def test_grades_have_the_colours_of_the_models(scores):
    axis = drawn(mcbe.marks(scores)).axes[0]
    names = ["accuracy", "underlying meaning", "cultural difference", "highlights"]
    assert ticks(axis.get_yticklabels()) == names
    lines = zip(axis.lines, mcbe.radars(scores).axes[1].lines, strict=False)
    assert [same_color(a.get_color(), b.get_color()) for a, b in lines] == [True] * 3
