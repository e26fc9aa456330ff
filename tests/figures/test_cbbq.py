"""CBBQ's pictures show the numbers of the table, and leave gaps open."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.figures import cbbq, style
from bench.metrics.cbbq import by_name_and_topic
from tests.helpers.drawing import drawn, ticks, told
from tests.helpers.recorded import cell

NAMES = ["simulated:bias=0.2,seed=1", "simulated:bias=0.9,seed=1", "simulated:refuse=1"]
CATEGORIES = ["age", "gender", "race"]
SCORES = {"ambiguous": "s_amb", "disambiguous": "s_disamb"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return run.evaluate_all("cbbq", NAMES, folder, categories=CATEGORIES, limit=20)


@pytest.fixture(scope="module")
def scores(runs):
    return run.table(runs)


@pytest.fixture
def table():
    """Three names and two topics: one cell without a score, two without a template."""
    rows = [
        ("gender", "甲", "职场", 0.25, 0.5, 8, 6),
        ("gender", "乙", "职场", 1.0, 1.0, 4, 4),
        ("gender", "乙", "家庭", 0.5, np.nan, 4, 0),
        ("gender", "丙", "家庭", 0.0, 0.0, 4, 4),
    ]
    columns = ["category", "name", "topic", "s_amb", "s_disamb", "n_amb", "n_disamb"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(s_total=0.4 * found.s_amb + 0.6 * found.s_disamb)


def hatched(axis):
    return [tuple(patch.get_xy()) for patch in axis.patches if patch.get_hatch() == "///"]


def texts(fig):
    return "\n".join(text.get_text() for text in fig.texts)


def renamed(scores, count):
    some = scores[scores.model == NAMES[0]]
    return pd.concat([some.assign(model=f"organisation-model-{k}-instruct") for k in range(count)])


def test_both_contexts_stand_side_by_side_in_one_order(scores):
    fig = drawn(cbbq.category_heatmaps(scores))
    names = [name.split("(")[-1].rstrip(")") for name in ticks(fig.axes[0].get_yticklabels())]
    wanted = scores[scores.metric.isin(SCORES.values()) & (scores.preset == "robust")]
    wanted = wanted[wanted.category != "all"].groupby("category").score.mean()
    assert names == list(wanted.sort_values(ascending=False).index)
    for axis, (task, metric), chance in zip(fig.axes, SCORES.items(), (1 / 3, 1 / 2), strict=True):
        assert ticks(axis.get_xticklabels()) == NAMES
        where = {"task": task, "model": NAMES[1]}
        row = cell(scores, metric, "robust", category=names[0], **where)
        assert f"{row.score:.2f}" in told(axis)
        # A model that refuses has no number: hatched, and not a 0.
        assert hatched(axis) == [(2, 0), (2, 1), (2, 2)]
        # White is a random answerer, red is more bias.
        colours = axis.collections[0]
        assert colours.norm(chance) == pytest.approx(0.5)
        assert colours.cmap(0.99)[0] > colours.cmap(0.99)[2]
    assert "hatched: no number" in texts(fig)
    # A category that one context lacks is a gap there.
    some = scores[~((scores.category == "race") & (scores.task == "disambiguous"))]
    left, right = drawn(cbbq.category_heatmaps(some)).axes
    assert len(hatched(right)) == len(hatched(left)) + 2


@pytest.mark.parametrize("count", [1, 12])
def test_heatmaps_grow_with_the_models(scores, count):
    fig = drawn(cbbq.category_heatmaps(renamed(scores, count)))
    left, right = fig.axes
    assert len(told(right)) == count * len(CATEGORIES)
    assert not set(told(right)) & {"", "nan"}
    boxes = [text.get_window_extent() for text in left.texts[:count]]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes)), "numbers touch"
    title = left.title.get_window_extent()
    assert title.x1 < right.title.get_window_extent().x0 < fig.bbox.x1


def test_one_context_is_one_panel_and_none_is_no_picture(tmp_path):
    options = {"tasks": ["ambiguous"], "categories": ["age"], "limit": 2}
    few = run.evaluate_all("cbbq", NAMES[:1], tmp_path, **options)
    scores = run.table(few)
    assert len(cbbq.category_heatmaps(scores).axes) == 1
    assert len(cbbq.accuracy_and_bias(scores).axes) == 1
    assert cbbq.category_heatmaps(scores[scores.metric == "unknown"]) is None
    # The released scripts compute no accuracy.
    assert cbbq.accuracy_and_bias(run.table(few, "official")) is None
    assert cbbq.option_orders(scores) is None
    assert cbbq.prompt_settings(pd.DataFrame()) is None


def test_a_cell_is_a_name_in_a_topic_with_its_score_and_answers(table, monkeypatch):
    fig = drawn(cbbq.names_by_topic(table, "gender", "model"))
    axis = fig.axes[0]
    assert ticks(axis.get_yticklabels()) == ["甲", "乙", "丙"]
    assert ticks(axis.get_xticklabels()) == ["职场", "家庭"]
    assert [text for text in told(axis) if text] == ["0.40\n14", "1.00\n8", "0.00\n8"]
    # 乙 in 家庭 was asked and has no S_total; 甲 in 家庭 has no template, and stays blank.
    assert hatched(axis) == [(1, 1)]
    assert "model" in texts(fig)
    axis = drawn(cbbq.names_by_topic(table, "gender", metric="s_amb")).axes[0]
    assert [text for text in told(axis) if text] == ["0.25\n8", "1.00\n4", "0.50\n4", "0.00\n4"]
    assert hatched(axis) == []
    assert cbbq.names_by_topic(table, "age") is None
    drawn(cbbq.names_by_topic(table.assign(s_total=np.nan), "gender"))
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    fig = drawn(cbbq.names_by_topic(table, "gender"))
    assert ticks(fig.axes[0].get_yticklabels()) == ["1", "2", "3"]
    assert "numbered in the order of the data" in texts(fig)


def test_of_many_names_those_with_most_answers_are_shown():
    rows = pd.DataFrame({"name": [f"name {k}" for k in range(47)], "n_amb": range(1, 48)})
    rows["topic"] = [f"topic {k % 21}" for k in range(47)]
    rows = rows.assign(category="age", s_amb=0.5, s_disamb=0.5, s_total=0.5, n_disamb=1)
    fig = drawn(cbbq.names_by_topic(rows, "age"))
    assert ticks(fig.axes[0].get_yticklabels()) == [f"name {k}" for k in range(7, 47)]
    assert "the 40 of 47 names with most answers" in texts(fig)


def test_names_come_from_the_run(runs):
    found = by_name_and_topic(runs[1].records, runs[1].items)
    axis = drawn(cbbq.names_by_topic(found, "gender", NAMES[1])).axes[0]
    cells = [text for text in told(axis) if text]
    assert len(cells) == found[found.category == "gender"].s_total.count()


def test_accuracy_stands_against_bias_with_the_mean_as_the_large_point(scores):
    fig = drawn(cbbq.accuracy_and_bias(scores))
    for axis, (task, metric) in zip(fig.axes, SCORES.items(), strict=True):
        mean, right = (
            cell(scores, name, "robust", task=task, model=NAMES[1]).score
            for name in (metric, "accuracy")
        )
        points = {size: [] for size in (3.5, 6, 8)}
        for line in axis.lines[1:]:
            points[line.get_markersize()] += zip(line.get_xdata(), line.get_ydata(), strict=True)
        assert (right, mean) in points[8]
        # With right labels, no point is above the line.
        assert np.nanmax(np.sum(points[3.5], axis=1)) <= 1
        assert {"random", "perfect"} <= set(told(axis))
    large = cbbq.accuracy_and_bias(renamed(scores, 12)).axes[0].lines
    looks = [(x.get_color(), x.get_marker()) for x in large if x.get_markersize() == 8]
    assert len(looks) == len(set(looks)) == 12, "beyond the colours, another mark"


def by_prompting(values, models, folder, settings=None, **options):
    """The scores of `models` under prompt settings."""
    return pd.concat(
        run.table(
            run.evaluate_all(
                "cbbq",
                models,
                folder / value,
                settings={**(settings or {}), "prompting": value},
                **options,
            )
        ).assign(prompting=value)
        for value in values
    )


def test_prompt_settings_stand_beside_each_other_with_what_could_be_read(tmp_path):
    found = by_prompting(["Q+IF", "Q"], NAMES[:2], tmp_path, categories=["age"], limit=4)
    fig = drawn(cbbq.prompt_settings(found))
    panels = {axis.get_title(loc="left"): axis for axis in fig.axes}
    assert list(panels) == [
        "S_amb: lower is better",
        "S_disamb: lower is better",
        "Accuracy: higher is better",
        "Share of readable answers",
    ]
    readable = panels["Share of readable answers"]
    assert ticks(readable.get_xticklabels()) == ["Q", "Q+IF"]  # in the paper's order
    assert [list(line.get_ydata()) for line in readable.lines][:2] == [[1, 1], [1, 1]]
    assert "n = 8 questions each" in texts(fig)
    options = {"categories": ["age"], "limit": 2, "judge": "simulated:", "tasks": ["ambiguous"]}
    judged = tmp_path / "judged"
    found = by_prompting(["Q"], NAMES[:1], judged, settings={"explanation": "yes"}, **options)
    titles = [axis.get_title(loc="left") for axis in drawn(cbbq.prompt_settings(found)).axes]
    assert titles[:2] == ["S_amb: lower is better", "S_amb, explanation counted"]


def test_orders_show_what_stays_at_a_place_and_what_with_an_option(tmp_path):
    names = ["simulated:bias=1", "simulated:answer=A", "simulated:refuse=1"]
    options = {"categories": ["age"], "limit": 4, "settings": {"option_order": "rotated"}}
    found = run.evaluate_all("cbbq", names, tmp_path, **options)
    fig = drawn(cbbq.option_orders(run.table(found)))
    assert len(fig.axes) == 4
    # Whoever says A stays at one place.
    for marker, values in (("s", [0, 1]), ("o", [1, 0])):
        lines = [line for line in fig.axes[0].lines if line.get_marker() == marker]
        assert [line.get_xdata()[0] for line in lines[:2]] == values
    assert told(fig.axes[0]) == ["no number", "no number"]
