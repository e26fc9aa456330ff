"""Findings about primary metric scores are as strong as their intervals, the most biased first."""

import math

import pandas as pd
import pytest

from bench.benchmarks import get
from bench.metrics import primary
from bench.metrics.primary import findings, sentence, summary
from bench.metrics.table import LETTERS_ALONE, PrimaryMetric
from tests.helpers.cases import cases

AMBIGUOUS = PrimaryMetric("ambiguous", "s_amb", "Ambiguous", "chose {value}")


def table(*rows):
    """A score table in which nothing is odd but the columns of `rows`."""
    plain = {"benchmark": "cbbq", "category": "all", "task": "ambiguous", "metric": "s_amb"}
    plain |= {"model": "m", "n": 40, "valid_rate": 1.0, "note": "", "preset": "robust"}
    plain |= {"score": 0.5, "baseline": 1 / 3, "baseline_of": "", "by_habit": False}
    scores = pd.DataFrame([plain | row for row in rows])
    return scores.assign(ci_low=scores.score - 0.05, ci_high=scores.score + 0.05)


@cases(__file__, "sentences.csv")
def test_a_sentence_is_as_strong_as_its_interval(case):
    (row,) = table({}).to_dict("records")
    row |= {name: float(case[name] or math.nan) for name in case if name not in ("part", "why")}
    assert case["part"] in sentence(AMBIGUOUS, row).replace("\u00a0", " ")


def test_the_most_biased_come_first_and_the_undefined_have_a_reason():
    metrics = (("ambiguous", "s_amb"), ("disambiguous", "s_disamb"), ("all", "accuracy"))
    models = (("low", 0.1, ""), ("high", 0.8, ""), ("none", math.nan, "no answer could be read"))
    scores = table(
        *(
            {"model": model, "task": task, "metric": metric, "score": value, "note": note}
            for model, value, note in models
            for task, metric in metrics
        )
    )
    undefined = summary(scores[scores.model == "none"], get("cbbq"), 3)
    assert "none: ambiguous is undefined: no answer could be read." in undefined
    # The lowest accuracy is the worst.
    assert list(findings(scores, get("cbbq")).model) == ["high", "high", "low"]


@pytest.mark.parametrize(
    ("kinds", "first"),
    [
        (("simulated respondent", "demonstration model"), "a"),
        (("simulated respondent", "local"), "b"),
        (("demonstration model", "openai"), "b"),
        (("local", "openai"), "a"),
    ],
)
def test_reference_models_are_the_most_biased_only_among_themselves(kinds, first):
    models = zip("ab", kinds, (0.9, 0.4), strict=True)
    scores = table(
        *({"model": model, "kind": kind, "score": score} for model, kind, score in models)
    )
    assert list(findings(scores, get("cbbq")).model) == [first]


HIGH = get("cbbq").metrics.primary_metrics[0]


def rows(scores, benchmark="cbbq", line=HIGH):
    """A score table with a row for each model; the model `always A` has a habit."""
    table = pd.DataFrame(scores.items(), columns=["model", "score"])
    half = 0.05 * line.limits[1]
    constant = {"benchmark": benchmark, "category": "all", "task": line.task, "metric": line.metric}
    constant |= {"n": 40, "valid_rate": 1.0, "baseline": 1 / 3, "baseline_of": "", "note": ""}
    constant |= {"preset": "robust", "bound_low": math.nan, "bound_high": math.nan}
    ends = {"ci_low": table.score - half, "ci_high": table.score + half}
    return table.assign(**constant, **ends, by_habit=table.model == "always A")


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
    table = rows({"a": 0.4, "b": 0.2, "odd": 0.5})
    table.loc[table.model == "odd", "baseline"] = 0.5
    table.loc[table.model == "odd", column] = value
    assert primary.findings(table, get("cbbq")).model.tolist() == ["a"]
    (odd,) = table[table.model == "odd"].to_dict("records")
    assert primary.doubt(HIGH, odd) == why


def test_the_direction_of_labels_says_whether_a_model_follows_the_stereotype():
    line = get("nli_coal").metrics.primary_metrics[0]
    # A random answerer has the higher CoAL.
    coal = rows({"follows": 0.4, "random": 0.44}, "nli_coal", line)
    gap = rows({"follows": 0.6, "random": 0.0}, "nli_coal", line._replace(metric=line.direction))
    table = pd.concat([coal, gap.assign(baseline=0.0)])
    (said,) = primary.findings(table, get("nli_coal")).sentence
    assert said.startswith("follows follows the stereotype: gap 0.60")
    (said,) = primary.summary(table[table.model == "random"], get("nli_coal"), 1)
    assert said.startswith("random is not shown to follow the stereotype: gap 0.00")


def test_tasks_that_give_no_first_score_are_said_so_and_others_count():
    line = PrimaryMetric("sc", "score", "Classification", "{value}")
    table = rows({"a": 50}, "mcbe", line)
    assert [one.task for one in primary.primary_metrics(table, get("mcbe"))] == ["sc"]
