"""The benchmarks' pictures draw without warnings, and show the numbers of the table they got."""

import math

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import bench
from bench import figures, run
from bench.benchmarks.cbbq import figures as cbbq
from bench.benchmarks.cbbq.scores import PRIMARY_METRICS, by_name_and_topic
from bench.benchmarks.mcbe import figures as mcbe
from bench.benchmarks.nli_coal import figures as nli_coal
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
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: run.evaluate_all(name, MODELS, folder, **options) for name, options in OPTIONS.items()
    }


@pytest.fixture(scope="module")
def scores(runs):
    return {name: bench.explain(bench.score(*some)) for name, some in runs.items()}


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


def names_by_topic(_scores, runs):
    return cbbq.names_by_topic(by_name_and_topic(runs[0].records, runs[0].items), "gender")


def forest_of_shares(_scores, runs):
    keys = ["model", "set", "gender"]
    shares = bench.share(bench.outcomes(*runs), "biased", "parsed", by=keys)
    return forest(shares, hue="gender", col="set")


# Of each picture how it is drawn from scores and runs.
PICTURES = {
    "cbbq category_heatmaps": lambda scores, _: cbbq.category_heatmaps(scores),
    "cbbq names_by_topic": names_by_topic,
    "mcbe tasks_by_model": lambda scores, _: mcbe.tasks_by_model(scores),
    "mcbe categories_by_model": lambda scores, _: mcbe.categories_by_model(bench.measure(scores)),
    "nli_coal labels_by_set": lambda scores, _: nli_coal.labels_by_set(scores),
    "cbbq forest": lambda scores, _: forest(overall(scores), col="title", percent=True),
    "cbbq categories": lambda scores, _: forest(bench.measure(scores), y="category", hue="model"),
    "mcbe forest": lambda scores, _: forest(overall(scores), col="title", limits=(0, 100)),
    "nli_coal forest of shares": forest_of_shares,
    "cbbq scores_by_bias": lambda scores, _: scores_by_bias(*by_bias(scores)),
    "cbbq scores_beside": lambda scores, _: scores_beside(*by_bias(scores)),
}
WITHOUT_FONT = ["cbbq category_heatmaps", "cbbq names_by_topic", "nli_coal labels_by_set"]


@pytest.mark.parametrize(
    ("name", "font"), [(name, True) for name in PICTURES] + [(name, False) for name in WITHOUT_FONT]
)
def test_a_picture_draws_without_warnings(name, font, runs, scores, monkeypatch):
    """Where no font has Chinese, a name is a number or in English: a box would be a warning."""
    if not font:
        monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    figures.theme()
    benchmark = name.partition(" ")[0]
    drawn(PICTURES[name](scores[benchmark], runs[benchmark]))


def hatched(ax):
    return sum(bool(patch.get_hatch()) for patch in ax.patches)


def test_heatmaps_print_the_scores_and_leave_gaps_open(scores):
    left, right = drawn(cbbq.category_heatmaps(scores["cbbq"])).axes
    first = "age" if "age" in ticks(left.get_yticklabels())[0] else "gender"
    for ax, task, metric in ((left, "ambiguous", "s_amb"), (right, "disambiguous", "s_disamb")):
        wanted = f"{100 * score(scores['cbbq'], task, metric, first):.0f}"
        assert told(ax)[0] == wanted, "the first model's, in the first row"
        assert hatched(ax) == 2, "who refuses has no number, and not a 0"
    ax = drawn(mcbe.tasks_by_model(scores["mcbe"])).axes[0]
    assert f"{score(scores['mcbe'], 'bs'):.0f}" in told(ax)


def test_labels_are_the_paper_s_table(scores):
    english = drawn(nli_coal.labels_by_set(scores["nli_coal"])).axes[0]
    numbers = [float(text) for text in told(english) if text not in ("PS", "AS", "NS")]
    sets = [(task, label) for task in ("ps", "as", "ns") for label in nli_coal.LABELS]
    places = [*sets, ("all", "fn"), ("all", "coal")]
    wanted = [score(scores["nli_coal"], *place, "en") for place in places]
    assert numbers[:11] == pytest.approx(wanted, abs=0.00051)
    assert hatched(english) == 11


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


def test_a_cell_is_a_name_in_a_topic_with_its_score_and_answers():
    columns = ["name", "topic", "s_amb", "s_disamb", "n_amb", "n_disamb"]
    rows = [
        ("甲", "职场", 0.25, 0.5, 8, 6),
        ("乙", "职场", 1.0, 1.0, 4, 4),
        ("乙", "家庭", 0.5, math.nan, 4, 0),
    ]
    table = pd.DataFrame(rows, columns=columns).assign(category="gender")
    table["s_total"] = 0.4 * table.s_amb + 0.6 * table.s_disamb
    ax = drawn(cbbq.names_by_topic(table, "gender")).axes[0]
    assert ticks(ax.get_yticklabels()) == ["甲", "乙"]
    assert [text for text in told(ax) if text] == ["40\n14", "100\n8"]
    # 乙 in 家庭 was asked and has no S_total; 甲 in 家庭 has no template, and stays blank.
    assert hatched(ax) == 1


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
