"""Respondents of known character: their grid, what measures have to say of them by hand, and what the package carries."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import data
from bench.analyses import meta_respondents
from bench.analyses.meta_respondents import Respondent
from bench.metrics import confusion
from bench.scorers.stand_ins.simulated import parse

ENDS: dict[str, Any] = {"biases": [0, 1], "levels": [1], "seeds": [0], "carried": False}


def score(found: pd.DataFrame, metric: str, bias: float, nuisance: str = "none") -> float:
    some = found[(found.metric == metric) & (found.bias == bias) & (found.nuisance == nuisance)]
    return float(some.score.iloc[0])


def ends(found: pd.DataFrame, metric: str, nuisance: str) -> tuple[float, float]:
    table = confusion.confusion(found)
    one = table[(table.metric == metric) & (table.nuisance == nuisance)].iloc[0]
    return float(one.at_no_bias), float(one.at_full_bias)


def test_the_grid_has_every_bias_with_every_nuisance_at_every_level(refusal: Any) -> None:
    every = list(meta_respondents.grid())
    assert len(every) == len(set(every)) == 5 * (1 + 3 * 2) * 3
    specs = [parse(one.spec) for one in every]
    assert {one["competence"] for one in specs} == {1, 0.7, 0.4}
    assert {one["position"] for one in specs} == {one["refuse"] for one in specs} == {0, 0.3, 0.6}
    # One nuisance at a time.
    assert all(
        (one["position"] > 0) + (one["refuse"] > 0) + (one["competence"] < 1) <= 1 for one in specs
    )
    assert "levels: 2 is outside 0 to 1" in refusal(list, meta_respondents.grid(levels=[2]))
    assert "at least two biases" in refusal(list, meta_respondents.grid(biases=[0.5, 0.5]))


@pytest.mark.slow
def test_cbbq_of_whoever_says_a_always_is_how_often_the_stereotyped_person_stands_there() -> None:
    found = meta_respondents.evaluate(["cbbq"], limit=4, **ENDS)
    source = data.find("cbbq", data.SAMPLES / "cbbq")
    by_category: dict[str, list[Any]] = {}
    for item in data.load(source):
        if item.condition == "ambiguous":
            by_category.setdefault(item.category, []).append(item)
    taken = {name: data.spread_evenly(some, 4) for name, some in by_category.items()}
    first = float(
        np.mean([np.mean([item.biased == 0 for item in some]) for some in taken.values()])
    )
    assert score(found, "s_amb", 0) == 0
    assert score(found, "s_amb", 1) == 1
    assert score(found, "s_amb", 0, "position") == pytest.approx(first)
    assert ends(found, "s_amb", "position") == pytest.approx((first, first - 1))
    # Nothing can be read of whoever refuses everything, and competence is of no use to full bias.
    assert np.isnan(score(found, "s_amb", 0, "refusal"))
    assert ends(found, "s_amb", "incompetence")[1] == 0
    assert ends(found, "s_amb", "incompetence")[0] == pytest.approx(1 / 3, abs=0.15)
    assert set(found.source) == {"asked now"}


@pytest.mark.slow
def test_nli_of_whoever_says_entailment_always() -> None:
    found = meta_respondents.evaluate(["nli_coal"], limit=8, **ENDS)
    # CoAL of full bias is (1 + 1 + 0) / 3, of entailment alone (1 + 0 + 1) / 3.
    assert score(found, "coal", 1) == pytest.approx(2 / 3)
    assert ends(found, "coal", "position") == pytest.approx((1, 0))
    # The gap looks at the direction, which one label has not.
    assert ends(found, "directional_gap", "position") == pytest.approx((0, -1))
    # All pairs get a label other than neutral; full bias has those of PS and AS, two sets of three.
    assert score(found, "fn", 1) == pytest.approx(2 / 3)
    assert ends(found, "fn", "position") == pytest.approx((1.5, 0.5))
    assert set(found.metric[found.headline]) == {"coal", "fn"}


@pytest.mark.slow
def test_mcbe_s_scenarios_are_even_for_whoever_says_a_always() -> None:
    found = meta_respondents.evaluate(["mcbe"], limit=2, **ENDS)
    some = (
        found[(found.task == "ss") & (found.metric == "score")]
        .set_index(["bias", "nuisance"])
        .score
    )
    assert some[0.0, "position"] == some[1.0, "position"] == 100
    assert some[1.0, "none"] < some[0.0, "none"] < 100
    pc = found[(found.task == "pc") & (found.metric == "score")]
    assert (pc.groupby("bias").score.agg(np.ptp) == 0).all(), "likelihoods know no nuisance"
    # Replies are marked: the reference itself gets all points, a refusal next to none.
    ba = (
        found[(found.task == "ba") & (found.metric == "score")]
        .set_index(["bias", "nuisance"])
        .score
    )
    assert ba[0.0, "none"] == 100
    assert ba[0.0, "refusal"] < 20


@pytest.mark.slow
def test_settings_and_folders_reach_the_run(tmp_path: Path) -> None:
    rotated = {"cbbq": {"option_order": "rotated"}}
    found = meta_respondents.evaluate(["cbbq"], limit=1, settings=rotated, **ENDS)
    # Each option stands first once: that is a random answerer's share.
    assert ends(found, "s_amb", "position") == pytest.approx((1 / 3, -2 / 3))
    assert "one_place" in set(found.metric)
    with pytest.raises(meta_respondents.BadInput, match=str(tmp_path)):
        meta_respondents.evaluate(["cbbq"], folders={"cbbq": tmp_path}, **ENDS)


@pytest.mark.slow
def test_what_is_carried_is_what_is_asked_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measure that changes needs `carry` again; a respondent with a nuisance tells, and one without."""
    two = [Respondent(0.75, "none", 0, 1), Respondent(0.25, "incompetence", 0.6, 2)]
    monkeypatch.setattr(meta_respondents, "grid", lambda *_: iter(two))
    carried, now = meta_respondents.evaluate(), meta_respondents.evaluate(carried=False)
    assert set(carried.source) == {"carried by the package"}
    keys = ["benchmark", "task", "metric", "headline", "bias", "nuisance", "level", "seed", "key"]
    both = carried.merge(now, on=keys, how="outer", suffixes=("", "_now"), validate="one_to_one")
    assert len(both) == len(carried) == len(now)
    np.testing.assert_allclose(both.score, both.score_now, atol=1e-5)


def test_the_default_call_asks_nobody() -> None:
    found = meta_respondents.evaluate()
    table = meta_respondents.origin(found)
    assert list(table.respondents) == [105, 105, 105]
    assert set(table.source) == {"carried by the package"}
    assert table.level[0] == "0, 0.3, 0.6"


@pytest.mark.slow
def test_results_are_carried_as_they_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"benchmarks": ["nli_coal", "cbbq"], "limit": 1, **ENDS}
    found = meta_respondents.evaluate(**options)
    meta_respondents.carry(found, tmp_path / "carried.csv")
    monkeypatch.setattr(meta_respondents, "CARRIED", tmp_path / "carried.csv")
    again = meta_respondents.evaluate(**(options | {"carried": True}))
    assert set(again.source) == {"carried by the package"}
    np.testing.assert_allclose(again.score, found.score, atol=1e-6)
    # Another number of items was not asked.
    other = meta_respondents.evaluate(
        **(options | {"carried": True, "limit": 2, "benchmarks": ["nli_coal"]})
    )
    assert set(other.source) == {"asked now"}
