"""The index answers the study's question by rule, and its table has one direction."""

import math

import pandas as pd
import pytest

from bench.analyses import compare_models
from bench.metrics import headline
from bench.metrics.table import Headline
from bench.report import overview
from bench.report.overview import Asked, Line
from bench.report.study import Variant
from bench.run import evaluate, results, score

HIGH = Headline("ambiguous", "s_amb", "Ambiguous: share of stereotyped answers", "{value}")
LOW = HIGH._replace(biased_is_high=False, limits=(0, 100), share=False)


def rows(*scores, benchmark="cbbq", line=HIGH):
    """A score table: model, score and half of its interval's length, by habit or not."""
    table = pd.DataFrame(
        [(name, score, score - half, score + half, habit) for name, score, half, habit in scores],
        columns=["model", "score", "ci_low", "ci_high", "by_habit"],
    )
    constant = {"benchmark": benchmark, "category": "all", "task": line.task, "metric": line.metric}
    constant |= {"n": 40, "valid_rate": 1.0, "baseline": 1 / 3, "baseline_of": "", "note": ""}
    return table.assign(**constant, preset="robust", bound_low=math.nan, bound_high=math.nan)


def asked(*scores, bias=None):
    return Asked(Variant("cbbq"), rows(*scores), [HIGH], [], None, bias or {})


@pytest.mark.parametrize(
    ("line", "values", "follows"),
    [
        (HIGH, [(0.25, 0.2), (0.75, 0.6), (0.75, 0.5)], True),
        (LOW, [(0.25, 60), (0.5, 55), (0.75, 30)], True),
        # More bias scores better, and the intervals are apart.
        (HIGH, [(0.25, 0.2), (0.5, 0.8), (0.75, 0.6)], False),
        (LOW, [(0.25, 30), (0.75, 60)], False),
        # Intervals overlap; one level only.
        (HIGH, [(0.25, 0.2), (0.5, 0.7), (0.75, 0.65)], None),
        (HIGH, [(0.25, 0.2), (0.75, 0.25)], None),
        (HIGH, [(0.5, 0.2), (0.5, 0.9)], None),
    ],
)
def test_a_score_follows_a_bias_if_it_is_in_order_and_its_ends_are_apart(line, values, follows):
    half = 0.05 * line.limits[1]
    table = rows(*((str(k), score, half, False) for k, (_, score) in enumerate(values)), line=line)
    assert overview.follows(table.assign(bias=[bias for bias, _ in values]), line) is follows


def test_the_answer_is_about_the_known_bias_where_there_is_one():
    scores = ("a", 0.2, 0.05, False), ("b", 0.6, 0.05, False)
    seen = overview.answer([asked(*scores, bias={"a": 0.25, "b": 0.75})])
    assert seen[0] == "Yes: the scores of CBBQ follow the bias that was put in."
    assert seen[1].startswith("CBBQ: b is the most biased")
    assert seen[1].endswith("20\u00a0% at 0.25 and 60\u00a0% at 0.75.")
    unseen = overview.answer([asked(*scores, bias={"a": 0.75, "b": 0.25})])
    assert unseen[0].startswith("No: ")


def test_a_model_that_always_answers_alike_is_not_the_most_biased():
    first = asked(("a", 0.4, 0.05, False), ("b", 0.2, 0.05, False), ("always A", 0.5, 0.05, True))
    answer, habit = overview.answer([first])
    assert answer == "CBBQ: a is the most biased, share of stereotyped answers 40\u00a0% (35–45)."
    assert habit.startswith("always A gave the same answer to everything in CBBQ")
    (alone, _habit) = overview.answer([asked(("always A", 0.5, 0.05, True))])
    assert alone == "CBBQ: no model has a score that could differ by group."
    first.scores.loc[first.scores.model == "a", "valid_rate"] = 0.4
    answer, unread, _habit = overview.answer([first])
    assert answer.startswith("CBBQ: b, ")
    assert unread.startswith("Fewer than half of the answers of a could be read in CBBQ")


def test_the_worst_category_is_named_and_whether_it_may_be_chance():
    def in_categories(score):
        parts = [(name, value) for name, value in (("age", score), ("gender", 0.3))]
        tables = [rows(("a", value, 0.1, False)).assign(category=name) for name, value in parts]
        table = pd.concat([rows(("a", 0.4, 0.02, False)), *tables], ignore_index=True)
        return overview.answer([asked()._replace(scores=table)])[0]

    assert "category is 年龄 (age), 45\u00a0% (35–55), which may be chance." in in_categories(0.45)
    assert "Its worst category is 年龄 (age), 80\u00a0% (70–90)." in in_categories(0.8)


def test_released_code_numbers_and_no_rank_of_constant_answerers_stand_in_the_table(tmp_path):
    specs = ("simulated:bias=0.2,refuse=0.2", "simulated:bias=0.9", "simulated:answer=A")
    options = {"categories": ["gender", "age"], "limit": 40, "data": "samples"}
    runs = [
        evaluate("cbbq", spec, out=tmp_path / str(k), **options) for k, spec in enumerate(specs)
    ]
    compared = compare_models.compare(runs)
    scores, line = results.table(runs), results.module("metrics", "cbbq").HEADLINES[0]
    low, high, constant = (overview._number(scores, line, name, compared) for name in specs)
    assert (low.rank, high.rank, constant.rank, constant.by_habit) == ("1", "2", "", True)
    official = score(runs[0], preset="official")
    row = official[(official.category == "all") & (official.metric == "s_amb")].iloc[0]
    assert low.official == f"{100 * row.score:.0f}\u00a0%" != low.text


@pytest.mark.parametrize(
    ("line", "score", "share"), [(HIGH, 0.25, 0.25), (LOW, 25, 0.75), (LOW, 100, 0.0)]
)
def test_a_bar_is_longer_where_a_score_is_worse(line, score, share):
    assert line.badness(score) == pytest.approx(share)


def test_tasks_that_give_no_first_score_are_said_so_and_others_count():
    asked_for = Headline("sc", "score", "Classification", "{value}")
    table = rows(("a", 50, 5, False), benchmark="mcbe", line=asked_for)
    (first,) = headline.asked_headlines(table, "mcbe")
    assert (first.task, headline.most_biased(table, "mcbe")) == ("sc", "a")
    done = Line("a", "a", is_done=True, why="", numbers=[])
    nothing = asked()._replace(scores=rows().iloc[:0], lines=[done])
    (answer,) = overview.answer([nothing])
    assert answer.startswith("CBBQ: the tasks that were asked are too few for its first scores")
