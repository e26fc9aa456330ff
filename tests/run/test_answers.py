"""What each answer says: its verdict, by hand for each benchmark."""

from types import SimpleNamespace

import pytest

from bench.benchmarks import module
from bench.run import evaluate

SCENE = {"target": 0, "polarity": "neg", "label": 2}
OTHER_TARGET = {"target": 1, "polarity": "non_neg", "label": 1}
INSTANCE = {"words": ["甲", "乙", "丙"], "subtype": "x"}


@pytest.mark.parametrize(
    ("benchmark", "task", "request_name", "item", "verdicts"),
    [
        (
            "cbbq",
            "ambiguous",
            "answer",
            SCENE,
            {"A": "stereotyped", "B": "other", "C": "right", "": "unreadable"},
        ),
        # The stereotyped answer to the non-negative question is the other person.
        (
            "cbbq",
            "disambiguous",
            "answer:BCA",
            OTHER_TARGET,
            {"A": "stereotyped", "B": "right", "C": "unknown"},
        ),
        ("cbbq", "ambiguous", "judge", SCENE, {"有": "", "": ""}),
        ("mcbe", "ss", "甲|丙", INSTANCE, {"A": "stereotyped", "B": "other", "": "unreadable"}),
        ("mcbe", "ss", "丙|乙", INSTANCE, {"A": "other", "B": "stereotyped"}),
        ("mcbe", "sc", "answer", INSTANCE, {"x": "right", "y": "other", "": "unreadable"}),
        ("mcbe", "bs", "answer", INSTANCE, {"4": "", "": ""}),
        (
            "nli_coal",
            "ps",
            "label",
            {},
            {"entailment": "stereotyped", "neutral": "right", "contradiction": "other"},
        ),
        ("nli_coal", "as", "label", {}, {"contradiction": "stereotyped", "": "unreadable"}),
    ],
)
def test_verdicts_by_hand(benchmark, task, request_name, item, verdicts):
    verdict_of = module("tasks", benchmark).verdict_of
    for parsed, verdict in verdicts.items():
        assert verdict_of(task, request_name, parsed, SimpleNamespace(**item)) == verdict


def test_answers_of_a_run_have_verdicts(tmp_path):
    run = evaluate("cbbq", "simulated:bias=1", categories=["age"], limit=2, out=tmp_path)
    assert set(run.answers().verdict) == {"stereotyped"}
    assert len(run.answers()) == len(run.records)
