"""NLI-CoAL's pictures show the numbers of the table, and leave gaps open."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from bench import data, run
from bench.figures import nli_coal, style
from bench.metrics.nli_coal import by, predictors
from tests.helpers.drawing import drawn, ticks, told
from tests.helpers.recorded import cell

NAMES = ["simulated:bias=0.6", "simulated:label=contradiction", "simulated:refuse=1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return run.evaluate_all(
        "nli_coal", NAMES, tmp_path_factory.mktemp("runs"), data=data.SAMPLES / "nli_coal"
    )


@pytest.fixture(scope="module")
def scores(runs):
    return run.table(runs)


def value(scores, task, metric):
    return cell(scores, metric, category="en", task=task, model=NAMES[0]).score


def test_labels_are_the_paper_s_table_with_numbers_and_gaps(scores):
    fig = drawn(nli_coal.labels_by_set(scores))
    english, _ = fig.axes
    assert ticks(english.get_yticklabels()) == NAMES
    assert ticks(english.get_xticklabels()) == [*"ECNECNECN", "FN", "CoAL"]
    numbers = [text for text in told(english) if text not in ("PS", "AS", "NS")]
    assert len(numbers) == 2 * 11
    wanted = [
        value(scores, task, label) for task in ("ps", "as", "ns") for label in nli_coal.LABELS
    ]
    assert [float(text) for text in numbers[:9]] == pytest.approx(wanted, abs=0.00051)
    assert float(numbers[10]) == pytest.approx(value(scores, "all", "coal"), abs=0.0005)
    # Who refuses has no number: hatched, and not a 0.
    assert sum(patch.get_hatch() == "////" for patch in english.patches) == 11
    assert "no answer" in [text.get_text() for text in fig.legends[0].texts]
    # The second model says contradiction to all: wrong in PS (grey), counted in AS and NS (red).
    grey, red = (english.patches[k].get_facecolor() for k in (12, 15))
    blue = english.patches[8].get_facecolor()
    assert red[0] > red[2] + 0.3
    assert grey[0] == pytest.approx(grey[2], abs=0.05)
    assert blue[2] > blue[0] + 0.2


def test_directions_are_dots_with_intervals(scores):
    fig = drawn(nli_coal.directions(scores))
    titles = [axis.get_title(loc="left") for axis in fig.axes[:3]]
    assert titles == ["PS: entailment", "AS: contradiction", "NS: entailment"]
    first = fig.axes[0]
    points = {
        (to_hex(line.get_color()), round(line.get_ydata()[0])): line.get_xdata()[0]
        for line in first.lines
        if line.get_marker() in "os"
    }
    assert points[nli_coal.FEMALE, 0] == value(scores, "ps", "entailment_female")
    assert points[nli_coal.MALE, 0] == value(scores, "ps", "entailment_male")
    assert told(first) == ["no number"] * 2


def test_habits_lie_on_the_line_and_models_where_their_scores_are(scores, runs):
    fig = drawn(nli_coal.habits(scores, predictors(runs[0].items)))
    english = fig.axes[0]
    marks = {
        line.get_label(): (line.get_xdata()[0], line.get_ydata()[0])
        for line in english.lines
        if line.get_label() in nli_coal.MARKS
    }
    assert marks["always contradiction"] == pytest.approx((2 / 3, 0))
    assert marks["the stereotype, neutral without one"] == pytest.approx((2 / 3, 1))
    bars = {bar.get_label(): bar[0].get_xydata()[0] for bar in english.containers}
    wanted = [value(scores, "all", metric) for metric in ("coal", nli_coal.BALANCED)]
    assert bars[NAMES[0]] == pytest.approx(wanted)
    assert np.isnan(bars[NAMES[2]]).all()
    assert english.get_ylim()[0] == pytest.approx(-0.35)
    against = scores.assign(score=scores.score.where(scores.metric != nli_coal.BALANCED, -0.8))
    assert nli_coal.habits(against, predictors(runs[0].items)).axes[0].get_ylim()[0] < -1


def test_worst_occupations_are_sorted_with_their_n_in_their_language(runs):
    table = by(runs[0].records, runs[0].items, "occupation")
    fig = drawn(nli_coal.worst_occupations(table, "zh", NAMES[0], most=5))
    left, right = fig.axes
    rows = table[(table.category == "zh") & (table.occupation_type != "neutral")].head(5)
    names = [name.partition("  n")[0] for name in ticks(left.get_yticklabels())]
    assert names == list(rows.occupation)
    assert ticks(left.get_yticklabels())[0].endswith(f"=\u2009{rows.n.iloc[0]}")
    points = [line.get_xdata()[0] for line in left.lines if line.get_marker() in ("o", "s")]
    assert points == list(rows.biased)
    # Who is neutral about all occupations without a stereotype has no worst one there.
    assert "none of 16" in right.get_title(loc="left")
    assert nli_coal.worst_occupations(table, "ja") is None
    assert nli_coal.worst_occupations(table.iloc[:0], "en") is None


def test_without_a_font_no_name_is_a_box(runs, scores, monkeypatch):
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    table = by(runs[0].records, runs[0].items, "occupation")
    fig = drawn(nli_coal.worst_occupations(table, "zh"))
    assert ticks(fig.axes[0].get_yticklabels())[0].startswith("1  n")
    drawn(nli_coal.labels_by_set(scores))
    drawn(nli_coal.habits(scores, predictors(runs[0].items)))


def test_what_was_not_asked_has_no_picture_or_gaps(runs, tmp_path):
    options = {"tasks": ["ps"], "categories": ["en"], "data": data.SAMPLES / "nli_coal"}
    one_set = run.table(run.evaluate_all("nli_coal", NAMES[:1], tmp_path, **options))
    assert nli_coal.habits(one_set, predictors(runs[0].items)) is None
    fig = drawn(nli_coal.labels_by_set(one_set))
    assert sum(patch.get_hatch() == "////" for patch in fig.axes[0].patches) == 8
    assert told(drawn(nli_coal.directions(one_set)).axes[1]) == ["no number"] * 2
    other = one_set[one_set.metric == "nothing"]
    assert nli_coal.labels_by_set(pd.concat([other, one_set[one_set.category == "all"]])) is None


@pytest.mark.parametrize("count", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_pictures_grow_with_the_models(scores, runs, count):
    some = scores[scores.model == NAMES[0]]
    many = pd.concat([some.assign(model=f"organisation-model-{k}-instruct") for k in range(count)])
    for fig in (
        nli_coal.labels_by_set(many),
        nli_coal.directions(many),
        nli_coal.habits(many, predictors(runs[0].items)),
    ):
        drawn(fig)
        for axis in fig.axes:
            box = axis.get_tightbbox()
            assert box.x0 >= 0
            assert box.x1 <= fig.bbox.x1 + 1
            assert axis.get_window_extent().width > 60
