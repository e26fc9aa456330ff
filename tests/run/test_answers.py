"""What each answer says: its verdict, by hand for each benchmark."""

import math
from types import SimpleNamespace

import pytest

import bench
from bench.benchmarks import get
from bench.run import evaluate
from tests.helpers.answering import said, unable
from tests.helpers.cases import cases, pairs

ITEM = {"words": ["甲", "乙", "丙"], "subtype": "x", "labels": ["x", "y"]}


@cases(__file__, "verdicts.csv")
def test_verdicts_by_hand(case):
    # The stereotyped answer to the non-negative question is the other person.
    numbers = {name: int(case[name]) for name in ("target", "label")}
    item = SimpleNamespace(**ITEM, **numbers, polarity=case["polarity"])
    values = get(case["benchmark"]).values(case["task"], case["request"], item)
    for parsed, verdict in pairs(case["verdicts"]).items():
        assert values.verdict(parsed) == verdict


def test_a_run_is_shown_by_its_headline_scores(own_folder):
    asked = {"categories": ["gender"], "limit": 4, "name": "<b>\x1b", "out": "one"}
    run = bench.evaluate("cbbq", "simulated:bias=1", **asked)
    assert repr(run) == r"<Run cbbq, <b>\x1b, 8 answers, one>"
    shown = run._repr_html_()
    assert shown.startswith(r"<p>cbbq, &lt;b&gt;\x1b, 8 answers</p>")
    # Scores, upper ends and valid rates of two tasks; accuracy is 0.
    assert shown.count("<td>1.000</td>") == 2 * 3 + 1
    (run.folder / "records/answers.parquet").unlink()
    assert repr(bench.open("one")) == r"<Run cbbq, <b>\x1b, 0 of 8 answers, one>"
    assert run._repr_html_() is None


def test_runs_of_several_benchmarks_are_scored_together(own_folder):
    runs = [
        bench.evaluate(name, f"simulated:bias={bias}", limit=2, categories=[part])
        for name, part in (("cbbq", "age"), ("nli_coal", "en"))
        for bias in (0, 1)
    ]
    scores = bench.score(runs[0], *(run.folder for run in runs[1:]), preset="official")
    assert set(scores.preset) == {"official"}
    assert scores.groupby("benchmark").model.nunique().to_dict() == {"cbbq": 2, "nli_coal": 2}


def letters(**probabilities):
    """A server that reports these probabilities of first tokens."""
    top = [{"token": token, "logprob": math.log(p)} for token, p in probabilities.items()]
    logprobs = {"content": [{**top[0], "top_logprobs": top}]}
    return lambda asked: said("10", logprobs=logprobs if "top_logprobs" in asked else None)


NOTE = "the letters had a median probability mass of {}: the model would rather write something "
NOTE += "else; ask it with --read text"


@pytest.mark.parametrize(
    ("probabilities", "mass", "note"),
    [
        ({"The": 0.9, "A": 0.01, "B": 0.004, "C": 0.006}, 0.02, NOTE.format(0.02)),
        ({"The": 0.6, "A": 0.1, " A": 0.1, "B": 0.05, "C": 0.05}, 0.3, ""),
    ],
)
def test_answers_by_letters_have_their_mass_and_a_small_one_is_noted(
    serve, own_folder, probabilities, mass, note
):
    behave = letters(**probabilities)
    model = serve(behave, lambda asked: unable(asked) if "prompt" in asked else behave(asked)).model
    run = evaluate("cbbq", model, categories=["age"], limit=2, read="letters", out="out")
    assert run.answers().mass.to_numpy() == pytest.approx(mass)
    table = run.scores()
    notes = table[table.note.str.contains("probability mass", regex=False)]
    if note:
        assert set(notes.category) == {"all"}
        assert set(notes.task) == {"ambiguous", "disambiguous"}
        assert all(note in text for text in notes.note)
    else:
        assert notes.empty
