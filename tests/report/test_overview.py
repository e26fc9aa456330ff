"""The index answers the study's question by rule, and its table has one direction."""

import math

import pandas as pd
import pytest

from bench.benchmarks import get
from bench.metrics import primary
from bench.metrics.table import LETTERS_ALONE, PrimaryMetric
from bench.report import overview
from bench.report.overview import Line, VariantScores
from bench.report.study import Variant

HIGH = PrimaryMetric("ambiguous", "s_amb", "Ambiguous: share of stereotyped answers", "{value}")
LOW = HIGH._replace(biased_is_high=False, limits=(0, 100), share=False)


def rows(scores, benchmark="cbbq", line=HIGH):
    """A score table with a row for each model; the model `always A` has a habit."""
    table = pd.DataFrame(scores.items(), columns=["model", "score"])
    half = 0.05 * line.limits[1]
    constant = {"benchmark": benchmark, "category": "all", "task": line.task, "metric": line.metric}
    constant |= {"n": 40, "valid_rate": 1.0, "baseline": 1 / 3, "baseline_of": "", "note": ""}
    constant |= {"preset": "robust", "bound_low": math.nan, "bound_high": math.nan}
    ends = {"ci_low": table.score - half, "ci_high": table.score + half}
    return table.assign(**constant, **ends, by_habit=table.model == "always A")


def asked(scores, bias=None):
    variant = Variant.model_construct(benchmark="cbbq")
    return VariantScores(variant, rows(scores), [HIGH], {}, bias or {})


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
    table = rows({str(k): score for k, (_, score) in enumerate(values)}, line=line)
    assert overview.follows(table.assign(bias=[bias for bias, _ in values]), line) is follows


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("by_habit", True, "the same answer to everything"),
        ("valid_rate", 0.4, "fewer than half of the answers could be read"),
        ("baseline_of", LETTERS_ALONE, "mostly the same letter, which alone could give this score"),
        ("score", math.nan, "no score"),
    ],
)
def test_a_model_whose_score_tells_nothing_of_bias_is_not_the_most_biased(column, value, why):
    first = asked({"a": 0.4, "b": 0.2, "odd": 0.5})
    first.scores.loc[first.scores.model == "odd", "baseline"] = 0.5
    first.scores.loc[first.scores.model == "odd", column] = value
    (answer,) = overview.answer([first])
    assert answer == (
        "CBBQ: most bias by score: a, share of stereotyped answers 40\u00a0% (35–45). "
        f"Left out: odd ({why})."
    )


PAIR = {"a": 0.2, "b": 0.6}


@pytest.mark.parametrize(
    ("scores", "bias", "start"),
    [
        (PAIR, {"a": 0.25, "b": 0.75}, "Yes: the scores of CBBQ follow the bias that was put in"),
        (PAIR, {"a": 0.75, "b": 0.25}, "No: "),
        # A model without a score of bias has no say, one of unknown bias has.
        ({**PAIR, "always A": 0.5}, {"a": 0.25, "b": 0.75}, "Yes: "),
        ({**PAIR, "real": 0.4}, {"a": 0.25, "b": 0.75}, "CBBQ: most bias by score: b, "),
        ({"always A": 0.5}, {}, "CBBQ: no model has a score that could differ by group. "),
    ],
)
def test_the_answer_is_about_the_known_bias_if_that_of_all_models_is_known(scores, bias, start):
    assert overview.answer([asked(scores, bias)])[0].startswith(start)


ALL_A = (
    "CBBQ: real: share of stereotyped answers 50\u00a0% (45–55), but the same answer to everything;"
)


@pytest.mark.parametrize(
    ("real", "kinds", "start"),
    [
        ("real", {"real": "local"}, "CBBQ: real, share of stereotyped answers 40"),
        ("always A", {"always A": "local"}, f"{ALL_A} no statement.".replace("real", "always A")),
        ("none", {}, "CBBQ: no real model has a score. Left out: none (failed: out of memory)."),
    ],
)
def test_a_study_with_a_real_model_is_not_answered_about_references(real, kinds, start):
    first = asked({**PAIR, real: 0.5 if "A" in real else 0.4}, {"a": 0.25, "b": 0.75})
    kind = first.scores.model.map(lambda name: kinds.get(name, "simulated respondent"))
    table = first.scores.assign(kind=kind)
    lines = {"none": Line("none", "failed: out of memory", [])} if real == "none" else {}
    first = first._replace(
        scores=table[table.model != "none"], lines=lines, has_real=real == "none"
    )
    (answer,) = overview.answer([first])
    assert answer.startswith(start)
    assert "bias that was put in" not in answer
    assert not first.has_known_bias, "the picture shows all models too"


def test_the_direction_of_labels_says_whether_a_model_follows_the_stereotype():
    line = get("nli_coal").metrics.primary_metrics[0]
    # A random answerer has the higher CoAL.
    coal = rows({"follows": 0.4, "random": 0.44}, "nli_coal", line)
    gap = rows({"follows": 0.6, "random": 0.0}, "nli_coal", line._replace(metric=line.direction))
    variant = Variant.model_construct(benchmark="nli_coal")
    table = pd.concat([coal, gap.assign(baseline=0.0)])
    (answer,) = overview.answer([VariantScores(variant, table, [line], {}, {})])
    assert answer.startswith(
        "NLI-CoAL: most bias by score: follows, follows the stereotype: gap 0.60 "
        "(95\u00a0% interval 0.55 to 0.65); CoAL"
    )
    (said,) = primary.findings(table, "nli_coal").sentence
    assert said.startswith("follows follows the stereotype: gap 0.60")
    (said,) = primary.summary(table[table.model == "random"], "nli_coal", 1)
    assert said.startswith("random is not shown to follow the stereotype: gap 0.00")


def test_tasks_that_give_no_first_score_are_said_so_and_others_count():
    line = PrimaryMetric("sc", "score", "Classification", "{value}")
    table = rows({"a": 50}, "mcbe", line)
    assert [one.task for one in primary.primary_metrics(table, "mcbe")] == ["sc"]
    nothing = asked({})._replace(lines={"a": Line("a", "", [])})
    (answer,) = overview.answer([nothing])
    assert answer.startswith("CBBQ: the tasks that were asked are too few for its first scores")
