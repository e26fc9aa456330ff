"""What each answer says: its verdict, by hand for each benchmark."""

from types import SimpleNamespace

import pytest

import bench
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


def test_a_run_is_shown_by_its_headline_scores_and_scored_with_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"categories": ["gender"], "limit": 4, "name": "<b>\x1b"}
    run = bench.evaluate("cbbq", "simulated:bias=1", **asked, out=tmp_path / "one")
    assert repr(run) == r"<Run cbbq, <b>\x1b, 8 answers, one>"
    shown = run._repr_html_()
    assert shown.startswith(r"<p>cbbq, &lt;b&gt;\x1b, 8 answers</p>")
    # Scores, upper ends and valid rates of two tasks; accuracy is 0.
    assert shown.count("<td>1.000</td>") == 2 * 3 + 1
    (run.folder / "records" / "000000.parquet").unlink()
    assert repr(bench.open("one")) == r"<Run cbbq, <b>\x1b, 0 of 8 answers, one>"
    assert run._repr_html_() is None
    others = [
        bench.evaluate(name, f"simulated:bias={bias}", limit=2, categories=[part])
        for name, part in (("cbbq", "age"), ("nli_coal", "en"))
        for bias in (0, 1)
    ]
    scores = bench.score(others[0], *(one.folder for one in others[1:]), preset="official")
    assert set(scores.preset) == {"official"}
    assert scores.groupby("benchmark").model.nunique().to_dict() == {"cbbq": 2, "nli_coal": 2}
