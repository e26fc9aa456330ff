"""Forest plots and the index's pictures draw without warnings, with the numbers of their table."""

import matplotlib.pyplot as plt
import pytest

import bench
from bench import figures, run
from bench.benchmarks.cbbq.scores import PRIMARY_METRICS
from bench.figures import style
from bench.figures.forest import scores_beside, scores_by_bias
from bench.metrics.primary import primary_rows
from tests.helpers.drawing import drawn, ticks, told
from tests.helpers.recorded import cell

# A respondent with a bias, one with a habit, and one that refuses everything.
BIASED, HABIT = "simulated:bias=0.6", "simulated:answer=A,label=contradiction"
MODELS = [BIASED, HABIT, "simulated:refuse=1"]
OPTIONS = {
    "cbbq": {"categories": ["age", "gender"], "settings": {"option_order": "rotated"}, "limit": 3},
    "mcbe": {"categories": ["age", "race", "worldview"], "judge": "simulated:", "limit": 3},
    "nli_coal": {"data": "samples", "limit": 60},
}


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """Score tables by benchmark, and NLI-CoAL's shares by gender."""
    folder = tmp_path_factory.mktemp("runs")
    runs = {name: run.evaluate_all(name, MODELS, folder, **own) for name, own in OPTIONS.items()}
    tables = {name: bench.explain(bench.score(*some)) for name, some in runs.items()}
    outcomes = bench.outcomes(*runs["nli_coal"])
    shares = bench.share(outcomes, "biased", "parsed", by=["model", "set", "gender"])
    return {**tables, "shares": shares}


def score(scores, task, metric="score", category="all"):
    """Return a score of the biased respondent."""
    return float(cell(scores, metric, None, task=task, model=BIASED, category=category).score)


def overall(scores):
    return scores[(scores.category == "all") & scores.primary]


def by_bias(scores):
    """Rows of one panel, of two models of one bias; its metric; and a title."""
    rows = primary_rows(scores, PRIMARY_METRICS[0])
    rows = rows[(rows.category == "all") & rows.score.notna()]
    return rows.assign(bias=0.6, panel="CBBQ"), {"CBBQ": PRIMARY_METRICS[0]}, "Scores"


def forest(scores, **look):
    fig = figures.forest(scores, **look).figure
    fig.set_label("Scores.")
    plt.close(fig)
    return fig


PICTURES = [
    lambda scores: forest(overall(scores["cbbq"]), col="title", percent=True),
    lambda scores: forest(bench.measure(scores["cbbq"]), y="category", hue="model"),
    lambda scores: forest(overall(scores["mcbe"]), col="title", limits=(0, 100)),
    lambda scores: forest(scores["shares"], hue="gender", col="set"),
    lambda scores: scores_by_bias(*by_bias(scores["cbbq"])),
    lambda scores: scores_beside(*by_bias(scores["cbbq"])),
]


@pytest.mark.parametrize("has_chinese", [True, False])
@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_draws_without_warnings(picture, has_chinese, scores, monkeypatch):
    """Without a Chinese font, a name is a number or in English: a box would be a warning."""
    if not has_chinese:
        monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    figures.theme()
    drawn(picture(scores))


def test_dots_of_a_forest_plot_are_at_the_scores_and_the_most_biased_is_first(scores):
    rows = overall(scores["cbbq"])
    axes = drawn(forest(rows, col="title", percent=True)).axes
    first = rows[rows.metric == "s_amb"].set_index("model").score
    ordered = first.sort_values(ascending=False, na_position="last")
    assert ticks(axes[0].get_yticklabels()) == list(ordered.index)
    dots = [line.get_xdata() for line in axes[0].lines if line.get_marker() == "o"]
    assert {float(x) for own in dots for x in own} == set(first.dropna())
    assert "undefined" in told(axes[0])
    # The worse side is on the right, also of accuracy.
    assert [ax.get_xlim()[0] > ax.get_xlim()[1] for ax in axes] == [False, False, True]


def test_points_are_at_the_bias_that_was_put_in(scores):
    ax = drawn(scores_by_bias(*by_bias(scores["cbbq"]))).axes[0]
    points = {str(line.get_label()): tuple(line.get_xydata()[0]) for line in ax.lines}
    assert points[BIASED] == pytest.approx((0.6, score(scores["cbbq"], "ambiguous", "s_amb")))
    assert points[HABIT][0] == pytest.approx(0.63), "next to each other"


def test_models_differ_in_colour_or_mark_and_keep_these_if_another_is_left_out():
    models = [str(k) for k in range(30)]
    with style.use_models(models):
        every, some = style.colours(models), style.colours(models[:1:-1])
    assert some == {name: every[name] for name in models[:1:-1]}
    marks = style.markers(models)
    assert len({(every[model], marks[model]) for model in models}) == 30
