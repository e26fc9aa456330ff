"""What each answer says: its verdict, by hand for each benchmark, and the mass of its letters."""

import math
from types import SimpleNamespace

import pytest

import bench
from bench.benchmarks import get
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


@pytest.mark.parametrize(
    ("probabilities", "mass", "is_noted"),
    [
        ({"The": 0.9, "A": 0.01, "B": 0.004, "C": 0.006}, 0.02, True),
        ({"The": 0.6, "A": 0.1, " A": 0.1, "B": 0.05, "C": 0.05}, 0.3, False),
    ],
)
def test_answers_by_letters_have_their_mass_and_a_small_one_is_noted(
    serve, own_folder, probabilities, mass, is_noted
):
    """A server reports these probabilities of first tokens."""
    top = [{"token": token, "logprob": math.log(p)} for token, p in probabilities.items()]
    logprobs = {"content": [{**top[0], "top_logprobs": top}]}

    def reply(asked):
        return said("10", logprobs=logprobs if "top_logprobs" in asked else None)

    model = serve(reply, lambda asked: unable(asked) if "prompt" in asked else reply(asked)).model
    options = {"categories": ["age"], "limit": 2, "read": "letters", "out": "out"}
    run = bench.evaluate("cbbq", model, **options)
    assert run.answers().mass.to_numpy() == pytest.approx(mass)
    note = (
        f"the letters had a median probability mass of {mass}: the model would rather write "
        "something else; ask it with --read text"
    )
    table = run.scores()
    rows = table[table.note.str.contains("probability mass")]
    assert all(note in text for text in rows.note)
    assert set(rows.category) == ({"all"} if is_noted else set())
    assert set(rows.task) == ({"ambiguous", "disambiguous"} if is_noted else set())
