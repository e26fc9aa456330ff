"""McBE's pictures show the numbers of the table, leave gaps open, and say in words what they show."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from bench import run
from bench.figures import mcbe
from bench.metrics.mcbe import severities
from tests.helpers.drawing import drawn, told

NAMES = ["simulated:bias=0.2,seed=1", "simulated:bias=0.9,seed=1", "simulated:answer=A"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return run.evaluate_all(
        "mcbe", NAMES, folder, judge="simulated:", categories=["age", "race", "worldview"], limit=6
    )


@pytest.fixture(scope="module")
def scores(runs):
    return run.table(runs)


def test_tasks_by_model_prints_the_means_over_categories(scores):
    axis = drawn(mcbe.tasks_by_model(scores)).axes[0]
    assert [tick.get_text().split("(")[-1] for tick in axis.get_yticklabels()] == [
        "pc)",
        "sc)",
        "ss)",
        "ba)",
        "bs)",
    ]
    row = scores[
        (scores.category == "all")
        & (scores.task == "bs")
        & (scores.metric == "score")
        & (scores.preset == "robust")
    ]
    assert f"{row.score.iloc[0]:.0f}" in told(axis)
    # The respondent that always says A names no label, which is wrong, and no severity: a hatched gap.
    assert sum(patch.get_hatch() == "///" for patch in axis.patches) == 1
    assert "0*" in told(axis)


def test_what_has_no_place_in_a_category_is_hatched(scores):
    axis = drawn(mcbe.categories_by_task(scores, NAMES[0])).axes[0]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == [
        "pc",
        "sc",
        "ss",
        "ba",
        "bs",
        "all",
    ]
    # Worldview in pc and ss.
    assert sum(patch.get_hatch() == "///" for patch in axis.patches) == 2
    assert len(told(axis)) == 3 * 6 - 2


def test_radars_have_a_spoke_a_category_and_a_task_and_a_line_a_model(scores):
    fig = drawn(mcbe.radars(scores))
    by_category, by_task = fig.axes
    assert len(by_category.get_xticks()) == 3
    assert [tick.get_text() for tick in by_task.get_xticklabels()] == ["PC", "SC", "SS", "BA", "BS"]
    assert len(by_task.lines) == 3
    one = scores[
        (scores.model == NAMES[0])
        & (scores.category == "all")
        & (scores.metric == "score")
        & (scores.preset == "robust")
    ]
    wanted = [one[one.task == task].score.iloc[0] for task in ("pc", "sc", "ss", "ba", "bs")]
    assert by_task.lines[0].get_ydata()[:5] == pytest.approx(wanted)
    # A gap stays a gap.
    assert np.isnan(by_task.lines[2].get_ydata()).any()
    assert by_category.get_ylim() == (0, 100)


def test_one_task_alone_makes_no_radar(tmp_path):
    few = run.evaluate_all("mcbe", NAMES[:1], tmp_path, tasks=["bs"], categories=["age"], limit=2)
    assert mcbe.radars(run.table(few)) is None
    assert mcbe.list_lengths(run.table(few)) is None
    assert mcbe.marks(run.table(few)) is None


def test_an_interval_by_resamples_need_not_hold_the_score(scores):
    odd = scores.copy()
    here = odd.metric.str.endswith("_words") & odd.score.notna()
    assert here.any()
    odd.loc[here, ["score", "ci_low", "ci_high"]] = [100.0, 40.0, 90.0]
    axis = drawn(mcbe.list_lengths(odd)).axes[0]
    ends = {
        float(y)
        for lines in axis.collections
        for path in lines.get_paths()
        for y in path.vertices[:, 1]
    }
    assert {40.0, 90.0} <= ends


def test_list_lengths_stand_above_the_lowest_possible_score(scores):
    axis = drawn(mcbe.list_lengths(scores)).axes[0]
    floor = next(line for line in axis.lines if line.get_linestyle() == ":")
    # Two groups: a variance of 1, times 0.156810.
    assert floor.get_ydata()[0] == pytest.approx(85.487, abs=1e-3)
    assert list(floor.get_xdata()) == sorted(set(floor.get_xdata()))


def test_severities_are_people_s_against_the_model_s(runs):
    answers = {one.label: severities(one.records, one.items) for one in runs}
    assert answers[NAMES[2]].empty
    some = answers[NAMES[0]]
    # At a bias of 0.2 the respondent gives people's severity or, where it follows the stereotype, 0.
    assert set(some.model - some.people) <= {0.0, *(-some.people)}
    fig = drawn(mcbe.severities(answers))
    assert len([axis for axis in fig.axes if axis.get_visible()]) == 2
    assert mcbe.severities({"none": pd.DataFrame({"people": [], "model": []})}) is None
    constant = mcbe.severities({"five": pd.DataFrame({"people": [1.0, 9.0], "model": [5.0, 5.0]})})
    assert "none: a constant" in constant.get_label()


def test_marks_are_in_percent_of_the_highest_and_colours_are_the_models(scores):
    axis = drawn(mcbe.marks(scores)).axes[0]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [
        "accuracy",
        "underlying meaning",
        "cultural difference",
        "highlights",
    ]
    radar = mcbe.radars(scores).axes[1]
    assert [
        same_color(a.get_color(), b.get_color())
        for a, b in zip(axis.lines, radar.lines, strict=False)
    ] == [True] * 3
