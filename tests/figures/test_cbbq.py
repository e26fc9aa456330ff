"""CBBQ's pictures show the numbers of the table, leave gaps open, and say in words what they show."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.figures import cbbq, style
from bench.metrics.cbbq import by_name_and_topic
from tests.helpers.drawing import drawn, ticks, told

NAMES = ["simulated:bias=0.2,seed=1", "simulated:bias=0.9,seed=1", "simulated:refuse=1"]
CATEGORIES = ["age", "gender", "race"]


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
    found = pd.DataFrame(
        rows, columns=["category", "name", "topic", "s_amb", "s_disamb", "n_amb", "n_disamb"]
    )
    return found.assign(s_total=0.4 * found.s_amb + 0.6 * found.s_disamb)


def hatched(axis):
    return [tuple(patch.get_xy()) for patch in axis.patches if patch.get_hatch() == "///"]


def one(scores, **wanted):
    rows = scores[scores.preset == "robust"]
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows.iloc[0]


def test_both_contexts_stand_side_by_side_in_one_order(scores):
    fig = drawn(cbbq.category_heatmaps(scores))
    left, right = fig.axes
    names = [name.split("(")[-1].rstrip(")") for name in ticks(left.get_yticklabels())]
    wanted = scores[scores.metric.isin(["s_amb", "s_disamb"]) & (scores.preset == "robust")]
    wanted = wanted[wanted.category != "all"].groupby("category").score.mean()
    assert names == list(wanted.sort_values(ascending=False).index)
    for axis, task, metric in ((left, "ambiguous", "s_amb"), (right, "disambiguous", "s_disamb")):
        assert ticks(axis.get_xticklabels()) == NAMES
        row = one(scores, category=names[0], task=task, metric=metric, model=NAMES[1])
        assert f"{row.score:.2f}" in told(axis)
        # A model that refuses has no number: hatched, and not a 0.
        assert hatched(axis) == [(2, 0), (2, 1), (2, 2)]
    assert "Most stereotyped on average in " + names[0] in fig.get_label()
    assert any("hatched: no number" in text.get_text() for text in fig.texts)


def test_white_is_what_a_random_answerer_gets(scores):
    left, right = cbbq.category_heatmaps(scores).axes
    for axis, chance in ((left, 1 / 3), (right, 1 / 2)):
        assert axis.collections[0].norm(chance) == pytest.approx(0.5)
        assert (
            axis.collections[0].cmap(0.99)[0] > axis.collections[0].cmap(0.99)[2]
        )  # more bias is red


@pytest.mark.parametrize("count", [1, 12])
def test_heatmaps_grow_with_the_models(scores, count):
    some = scores[scores.model == NAMES[0]]
    many = pd.concat([some.assign(model=f"organisation-model-{k}-instruct") for k in range(count)])
    fig = drawn(cbbq.category_heatmaps(many))
    left, right = fig.axes
    assert len(told(right)) == count * len(CATEGORIES)
    assert not set(told(right)) & {"", "nan"}
    boxes = [text.get_window_extent() for text in left.texts[:count]]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes)), "numbers touch"
    title = left.title.get_window_extent()
    assert title.x1 < right.title.get_window_extent().x0 < fig.bbox.x1


def test_one_context_is_one_panel_and_none_is_no_picture(tmp_path):
    few = run.evaluate_all(
        "cbbq", NAMES[:1], tmp_path, tasks=["ambiguous"], categories=["age"], limit=2
    )
    scores = run.table(few)
    assert len(cbbq.category_heatmaps(scores).axes) == 1
    assert len(cbbq.accuracy_and_bias(scores).axes) == 1
    assert cbbq.category_heatmaps(scores[scores.metric == "unknown"]) is None
    # The released scripts compute no accuracy.
    assert cbbq.accuracy_and_bias(run.table(few, "official")) is None


def test_a_cell_is_a_name_in_a_topic_with_its_score_and_answers(table):
    fig = drawn(cbbq.names_by_topic(table, "gender", "model"))
    axis = fig.axes[0]
    assert ticks(axis.get_yticklabels()) == ["甲", "乙", "丙"]
    assert ticks(axis.get_xticklabels()) == ["职场", "家庭"]
    assert [text for text in told(axis) if text] == ["0.40\n14", "1.00\n8", "0.00\n8"]
    # 乙 in 家庭 was asked and has no S_total; 甲 in 家庭 has no template, and stays blank.
    assert hatched(axis) == [(1, 1)]
    assert "丙 in 家庭 (0.00, n = 8) and 乙 in 职场 (1.00, n = 8)" in fig.get_label()
    assert any("model" in text.get_text() for text in fig.texts)


def test_the_score_can_be_chosen_and_a_category_that_was_not_asked_has_no_picture(table):
    axis = drawn(cbbq.names_by_topic(table, "gender", metric="s_amb")).axes[0]
    assert [text for text in told(axis) if text] == ["0.25\n8", "1.00\n4", "0.50\n4", "0.00\n4"]
    assert hatched(axis) == []
    assert cbbq.names_by_topic(table, "age") is None
    nothing = table.assign(s_total=np.nan)
    assert (
        drawn(cbbq.names_by_topic(nothing, "gender"))
        .get_label()
        .endswith("Lowest and highest: none.")
    )


def test_of_many_names_those_with_most_answers_are_shown_and_it_is_said():
    rows = pd.DataFrame(
        {
            "category": "age",
            "name": [f"name {k}" for k in range(47)],
            "topic": [f"topic {k % 21}" for k in range(47)],
            "s_amb": 0.5,
            "s_disamb": 0.5,
            "s_total": 0.5,
            "n_amb": range(1, 48),
            "n_disamb": 1,
        }
    )
    fig = drawn(cbbq.names_by_topic(rows, "age"))
    names = ticks(fig.axes[0].get_yticklabels())
    assert len(names) == 40
    assert names == [f"name {k}" for k in range(7, 47)]
    assert any("the 40 of 47 names with most answers" in text.get_text() for text in fig.texts)


def test_without_a_font_names_are_numbers_and_never_boxes(table, monkeypatch):
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig = drawn(cbbq.names_by_topic(table, "gender"))
    assert ticks(fig.axes[0].get_yticklabels()) == ["1", "2", "3"]
    assert any("numbered in the order of the data" in text.get_text() for text in fig.texts)


def test_names_come_from_the_run(runs):
    found = by_name_and_topic(runs[1].records, runs[1].items)
    axis = drawn(cbbq.names_by_topic(found, "gender", NAMES[1])).axes[0]
    assert (
        len([text for text in told(axis) if text])
        == found[found.category == "gender"].s_total.count()
    )


def test_accuracy_stands_against_bias_with_the_mean_as_the_large_point(scores):
    fig = drawn(cbbq.accuracy_and_bias(scores))
    for axis, task, metric in zip(
        fig.axes, ("ambiguous", "disambiguous"), ("s_amb", "s_disamb"), strict=True
    ):
        mean = one(scores, category="all", task=task, metric=metric, model=NAMES[1])
        right = one(scores, category="all", task=task, metric="accuracy", model=NAMES[1])
        large = [line for line in axis.lines if line.get_markersize() == 8]
        assert (right.score, mean.score) in [
            (*line.get_xdata(), *line.get_ydata()) for line in large
        ]
        assert {"random", "perfect"} <= set(told(axis))
        small = [line for line in axis.lines if line.get_markersize() == 3.5]
        # With right labels, nobody is above the line.
        assert (
            max(np.nansum([line.get_xdata(), line.get_ydata()], axis=0).max() for line in small)
            <= 1
        )
    assert f"{NAMES[2]}, ambiguous: accuracy 0.00" in fig.get_label()


def test_models_beyond_the_colours_have_another_mark(scores):
    some = scores[scores.model == NAMES[0]]
    many = pd.concat([some.assign(model=f"model {k}") for k in range(12)])
    large = [
        line for line in cbbq.accuracy_and_bias(many).axes[0].lines if line.get_markersize() == 8
    ]
    looks = [(line.get_color(), line.get_marker()) for line in large]
    assert len(looks) == len(set(looks)) == 12


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
    assert any("n = 8 questions each" in text.get_text() for text in fig.texts)
    assert cbbq.prompt_settings(pd.DataFrame()) is None


def test_prompt_settings_count_explanations_where_they_were_judged(tmp_path):
    options = {"categories": ["age"], "limit": 2, "judge": "simulated:", "tasks": ["ambiguous"]}
    found = by_prompting(["Q"], NAMES[:1], tmp_path, settings={"explanation": "yes"}, **options)
    titles = [axis.get_title(loc="left") for axis in drawn(cbbq.prompt_settings(found)).axes]
    assert titles[:2] == ["S_amb: lower is better", "S_amb, explanation counted"]


def test_orders_show_what_stays_at_a_place_and_what_with_an_option(tmp_path, scores):
    names = ["simulated:bias=1", "simulated:answer=A", "simulated:refuse=1"]
    found = run.evaluate_all(
        "cbbq", names, tmp_path, categories=["age"], limit=4, settings={"option_order": "rotated"}
    )
    fig = drawn(cbbq.option_orders(run.table(found)))
    assert len(fig.axes) == 4
    stays = fig.axes[0]
    squares = [line for line in stays.lines if line.get_marker() == "s"]
    circles = [line for line in stays.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in squares[:2]] == [
        0,
        1,
    ]  # whoever says A stays at one place
    assert [line.get_xdata()[0] for line in circles[:2]] == [1, 0]
    assert told(stays) == ["no number", "no number"]
    assert "simulated:answer=A, ambiguous: one place 100%" in fig.get_label()
    assert cbbq.option_orders(scores) is None


def test_a_category_that_one_context_lacks_is_a_gap_there(scores):
    some = scores[~((scores.category == "race") & (scores.task == "disambiguous"))]
    left, right = drawn(cbbq.category_heatmaps(some)).axes
    assert len(hatched(right)) == len(hatched(left)) + 2
