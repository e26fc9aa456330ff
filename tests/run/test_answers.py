"""What each answer says: its verdict, by hand for each benchmark."""

from types import SimpleNamespace

import bench
from bench.benchmarks import module
from bench.run import evaluate
from tests.helpers.cases import cases, pairs

ITEM = {"words": ["甲", "乙", "丙"], "subtype": "x"}


@cases(__file__, "verdicts.csv")
def test_verdicts_by_hand(case):
    # The stereotyped answer to the non-negative question is the other person.
    numbers = {name: int(case[name]) for name in ("target", "label")}
    item = SimpleNamespace(**ITEM, **numbers, polarity=case["polarity"])
    verdict_of = module("tasks", case["benchmark"]).verdict_of
    for parsed, verdict in pairs(case["verdicts"]).items():
        assert verdict_of(case["task"], case["request"], parsed, item) == verdict


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
