"""Forest plots and the index's pictures draw without warnings, with the numbers of their table."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import bench
from bench import figures, run
from bench.analyses.kinds import KINDS, answer_kinds, often, stacked
from bench.figures import style
from tests.helpers.drawing import drawn, ticks, told

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
    return {**tables, "shares": shares, "outcomes": bench.outcomes(*runs["cbbq"])}


def overall(scores):
    return scores[(scores.category == "all") & scores.primary]


def labelled(fig):
    fig.set_label("Scores.")
    plt.close(fig)
    return fig


PICTURES = [
    lambda scores: labelled(figures.forest(overall(scores["cbbq"]), col="title", percent=True)),
    lambda scores: labelled(
        figures.forest(bench.measure(scores["cbbq"]), y="category", hue="model")
    ),
    lambda scores: labelled(figures.forest(overall(scores["mcbe"]), col="title", limits=(0, 100))),
    lambda scores: labelled(figures.forest(scores["shares"], hue="gender", col="set")),
    lambda scores: labelled(stacked(answer_kinds(scores["outcomes"]))),
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
    axes = drawn(labelled(figures.forest(rows, col="title", percent=True))).axes
    first = rows[rows.metric == "s_amb"].set_index("model").score
    ordered = first.sort_values(ascending=False, na_position="last")
    assert ticks(axes[0].get_yticklabels()) == list(ordered.index)
    dots = [line.get_xdata() for line in axes[0].lines if line.get_marker() in style.MARKS]
    assert {float(x) for own in dots for x in own} == set(first.dropna())
    assert "undefined" in told(axes[0])
    # The worse side is on the right, also of accuracy.
    assert [ax.get_xlim()[0] > ax.get_xlim()[1] for ax in axes] == [False, False, True]


def test_the_dots_of_a_line_stand_around_it_within_its_share_of_the_height():
    rows = pd.DataFrame({"model": ["a", "a", "b", "b"], "set": ["x", "y"] * 2})
    rows = rows.assign(score=[0.1, 0.2, 0.3, 0.4], ci_low=0.0, ci_high=0.5)
    ax = drawn(labelled(figures.forest(rows, hue="set"))).axes[0]
    dots = [line for line in ax.lines if line.get_marker() in style.MARKS and len(line.get_xdata())]
    heights = [float(dot.get_ydata()[0]) for dot in dots]
    # Two dots share 0.7 of a line, so that each has its middle a quarter of this from the line.
    assert heights == pytest.approx([-0.175, 0.175, 0.825, 1.175])


def test_models_differ_in_colour_or_mark_and_keep_these_if_another_is_left_out():
    models = [str(k) for k in range(30)]
    with style.use_models(models):
        every, some = style.colours(models), style.colours(models[:1:-1])
    assert some == {name: every[name] for name in models[:1:-1]}
    marks = style.markers(models)
    assert len({(every[model], marks[model]) for model in models}) == 30


def test_references_are_grey_beside_real_models_and_have_colours_among_themselves():
    grey = (138 / 255,) * 3
    palette = style.colours(["real", "simulated:bias=0.5"])
    assert (palette["real"] == grey, palette["simulated:bias=0.5"]) == (False, grey)
    assert grey not in style.colours(["simulated:bias=0.5", "tiny:s"]).values()
    with style.use_models(["real", "always A"], references=["always A"]):
        assert style.colours(["always A"]) == {"always A": grey}


def test_each_answer_is_of_one_kind():
    columns = ["answered", "parsed", "refused", "stereotyped", "correct", "says_unknown"]
    answers = {
        "refused": (1, 0, 1, 0, 0, 0),
        "unreadable": (1, 0, 0, 0, 0, 0),
        "unknown": (1, 1, 0, 0, 1, 1),
        "stereotyped": (1, 1, 0, 1, 0, 0),
        "right": (1, 1, 0, 0, 1, 0),
        "other": (1, 1, 0, 0, 0, 0),
    }
    rows = pd.DataFrame(answers.values(), columns=columns)
    for kind in answers:
        (row,) = answer_kinds(
            rows[[name == kind for name in answers]].assign(benchmark="b", task="t", model="m")
        ).to_dict("records")
        assert {name for name in KINDS if row[name]} == {kind}
    assert answer_kinds(rows.drop(columns="correct")).empty


def test_models_that_often_say_unknown_or_refuse_are_named_with_their_shares():
    shares = {"unknown": [0.51, 0.5, 0], "refused": [0, 0.1, 0.16], "model": ["a", "b", "c"]}
    kinds = pd.DataFrame({"benchmark": "cbbq", "task": "t", **shares})
    unknown, refused = often(kinds)
    assert "unknown: a (51\u00a0%)." in unknown
    assert "refuse to answer: c (16\u00a0%)." in refused
