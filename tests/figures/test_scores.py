"""Pictures: what is drawn where, in which order, with which words; and Chinese that is never boxes."""

import math
import warnings
from itertools import pairwise

import pandas as pd
import pytest

from bench import figures
from bench.figures import style
from bench.metrics.headline import findings, sentence, top_findings
from bench.metrics.table import Headline
from tests.helpers.drawing import drawn


def test_thirty_models_differ_in_colour_or_mark():
    models = [str(k) for k in range(30)]
    colours, marks = figures.style.colours(models), figures.style.markers(models)
    assert len({(colours[model], marks[model]) for model in models}) == 30
    assert figures.style.colours(models[:10]) == {model: colours[model] for model in models[:10]}
    assert len({marks[model] for model in models[:10]}) == 1
    # Those of one shade, in which darker colours are more alike, have different marks beside each other.
    assert all(marks[a] != marks[b] for a, b in pairwise(models[10:]))


@pytest.fixture
def scores():
    """Three models on two categories of CBBQ, one of them undefined."""
    rows = []
    for model, value in (("low", 0.1), ("high", 0.8), ("none", math.nan)):
        for category in ("gender", "household_registration", "all"):
            for task, metric in (
                ("ambiguous", "s_amb"),
                ("disambiguous", "s_disamb"),
                ("all", "accuracy"),
                ("ambiguous", "first_option"),
            ):
                undefined = math.isnan(value)
                rows.append(
                    {
                        "model": model,
                        "benchmark": "cbbq",
                        "category": category,
                        "task": task,
                        "metric": metric,
                        "score": value,
                        "ci_low": value - 0.05,
                        "ci_high": value + 0.05,
                        "n": 0 if undefined else 40,
                        "valid_rate": 0.0 if undefined else 1.0,
                        "baseline": 1 / 3,
                        "preset": "robust",
                        "note": "no answer could be read" if undefined else "",
                    }
                )
    return pd.DataFrame(rows)


def test_dots_are_sorted_and_the_random_answerer_is_a_line(scores):
    fig = figures.scores_by_model(scores, "cbbq")
    ambiguous = fig.axes[0]
    assert [tick.get_text() for tick in ambiguous.get_yticklabels()] == ["high", "low", "none"]
    assert "undefined" in [text.get_text() for text in ambiguous.texts]
    lines = [line.get_xdata() for line in ambiguous.lines]
    assert [0.8] in [list(x) for x in lines if len(x) == 1]
    assert any(list(x) == pytest.approx([1 / 3, 1 / 3]) for x in lines if len(x) == 2)
    assert (
        "high answered 80\u00a0% of the ambiguous questions with the stereotype" in fig.get_label()
    )


def test_the_heatmap_prints_values_and_hatches_gaps(scores):
    headline = Headline("ambiguous", "s_amb", "Ambiguous", "", True, True, (0, 1))
    axis = figures.categories_by_model(scores, "cbbq", headline).axes[0]
    assert sorted(text.get_text() for text in axis.texts) == ["0.10", "0.10", "0.80", "0.80"]
    assert sum(bool(patch.get_hatch()) for patch in axis.patches) == 2


@pytest.mark.parametrize("font", [True, False])
def test_labels_are_chinese_where_a_font_can_show_it_and_never_boxes(scores, monkeypatch, font):
    if not font:
        monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    headline = Headline("ambiguous", "s_amb", "Ambiguous", "", True, True, (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that the font lacks
        fig = drawn(figures.categories_by_model(scores, "cbbq", headline))
    labels = [tick.get_text() for tick in fig.axes[0].get_yticklabels()]
    assert labels == (
        ["性别 (gender)", "户籍 (household registration)"]
        if font
        else ["gender", "household registration"]
    )


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (
            {"score": 0.61, "ci_low": 0.52, "ci_high": 0.70, "n": 1200, "valid_rate": 1.0},
            ["m chose it in 61 % (95 % interval 52 to 70; a random answerer 33; n = 1,200)."],
        ),
        (
            {"score": 0.4, "ci_low": 0.3, "ci_high": 0.5, "n": 9, "valid_rate": 0.5},
            [
                "cannot be told from a random answerer.",
                "Only 50% of its answers could be read.",
            ],
        ),
    ],
)
def test_a_sentence_is_as_strong_as_its_interval(row, parts):
    headline = Headline(
        "ambiguous", "s_amb", "Ambiguous", "chose it in {value}", True, True, (0, 1)
    )
    told = sentence(headline, {"model": "m", "baseline": 1 / 3, "note": "", **row})
    told = told.replace("\u00a0", " ")
    assert all(part in told for part in parts)


def test_an_undefined_score_is_told_with_its_reason(scores):
    found = findings(scores, "cbbq")
    assert "none: ambiguous is undefined: no answer could be read." in list(found.sentence)
    assert list(top_findings(found, "cbbq").model) == [
        "high",
        "high",
        "low",
    ]  # accuracy: the lowest is the worst
