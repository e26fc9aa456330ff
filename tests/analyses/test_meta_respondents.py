"""Respondents of known bias: the grid, what measures say of them by hand, and what is carried."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import data
from bench.analyses import meta_respondents as meta
from bench.analyses.meta_respondents import Respondent
from bench.scorers.stand_ins.simulated import parse
from tests.benchmarks.carried import carry_respondents
from tests.helpers.drawing import drawn

ENDS: dict[str, Any] = {"biases": [0, 1], "levels": [1], "seeds": [0], "carried": False}
Measure = Callable[[float, str, float, int], float]


def row_of(table: pd.DataFrame, metric: str, nuisance: str = "", **others: Any) -> pd.Series:
    if nuisance:
        others["nuisance"] = nuisance
    for name, value in {"metric": metric, **others}.items():
        table = table[table[name] == value]
    return table.iloc[0]


def score(found: pd.DataFrame, metric: str, bias: float, nuisance: str = "none") -> float:
    return float(row_of(found, metric, nuisance, bias=bias).score)


def ends(found: pd.DataFrame, metric: str, nuisance: str) -> tuple[float, float]:
    row = row_of(meta.confusion(found), metric, nuisance)
    return float(row.at_no_bias), float(row.at_full_bias)


def test_the_grid_has_every_bias_with_every_nuisance_at_every_level(refusal: Any) -> None:
    every = list(meta.grid())
    assert len(every) == len(set(every)) == 5 * (1 + 3 * 2) * 3
    specs = [parse(respondent.spec) for respondent in every]
    assert {spec["competence"] for spec in specs} == {1, 0.7, 0.4}
    for name in ("position", "refuse"):
        assert {spec[name] for spec in specs} == {0, 0.3, 0.6}
    for spec in specs:
        nuisances = (spec["position"] > 0, spec["refuse"] > 0, spec["competence"] < 1)
        assert sum(nuisances) <= 1, "one nuisance at a time"
    assert "levels: 2 is outside 0 to 1" in refusal(list, meta.grid(levels=[2]))
    assert "at least two biases" in refusal(list, meta.grid(biases=[0.5, 0.5]))


@pytest.mark.slow
def test_cbbq_of_whoever_says_a_always_is_how_often_the_stereotyped_person_stands_there(
    tmp_path: Path,
) -> None:
    found = meta.evaluate(["cbbq"], limit=4, **ENDS)
    items = data.load(data.find("cbbq", data.SAMPLES / "cbbq"))
    items = [item for item in items if item.condition == "ambiguous"]
    stands_first = pd.Series([item.biased == 0 for item in items])
    by_category = stands_first.groupby([item.category for item in items])
    first = by_category.agg(lambda values: np.mean(data.spread_evenly(list(values), 4))).mean()
    assert (score(found, "s_amb", 0), score(found, "s_amb", 1)) == (0, 1)
    assert score(found, "s_amb", 0, "position") == pytest.approx(first)
    assert ends(found, "s_amb", "position") == pytest.approx((first, first - 1))
    # Nothing can be read of whoever refuses everything, and competence is of no use to full bias.
    assert np.isnan(score(found, "s_amb", 0, "refusal"))
    assert ends(found, "s_amb", "incompetence") == pytest.approx((1 / 3, 0), abs=0.15)
    # Settings and folders reach the run. Each option stands first once: a random answerer's share.
    rotated = {"cbbq": {"option_order": "rotated"}}
    found = meta.evaluate(["cbbq"], limit=1, settings=rotated, **ENDS)
    assert ends(found, "s_amb", "position") == pytest.approx((1 / 3, -2 / 3))
    with pytest.raises(meta.BadInput, match=str(tmp_path)):
        meta.evaluate(["cbbq"], folders={"cbbq": tmp_path}, **ENDS)


@pytest.mark.slow
def test_nli_of_whoever_says_entailment_always() -> None:
    found = meta.evaluate(["nli_coal"], limit=8, **ENDS)
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
    found = meta.evaluate(["mcbe"], limit=2, **ENDS)
    found = found[found.metric == "score"].set_index(["task", "bias", "nuisance"]).score
    assert found["ss", 0.0, "position"] == found["ss", 1.0, "position"] == 100
    assert found["ss", 1.0, "none"] < found["ss", 0.0, "none"] < 100
    assert (found["pc"].groupby("bias").agg(np.ptp) == 0).all(), "likelihoods know no nuisance"
    # Replies are graded: the reference itself gets all points, a refusal next to none.
    assert found["ba", 0.0, "none"] == 100
    assert found["ba", 0.0, "refusal"] < 20


@pytest.mark.slow
def test_carried_scores_equal_new_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A measure that changes needs tests/benchmarks/carried.py again; two respondents tell."""
    two = [Respondent(0.75, "none", 0, 1), Respondent(0.25, "incompetence", 0.6, 2)]
    monkeypatch.setattr(meta, "grid", lambda *_: iter(two))
    carried, now = meta.evaluate(), meta.evaluate(carried=False)
    keys = ["benchmark", "task", "metric", "headline", "bias", "nuisance", "level", "seed", "key"]
    both = carried.merge(now, on=keys, how="outer", suffixes=("", "_now"), validate="one_to_one")
    assert len(both) == len(carried) == len(now)
    np.testing.assert_allclose(both.score, both.score_now, atol=1e-5)
    carry_respondents(now, tmp_path / "carried.csv")
    monkeypatch.setattr(meta, "CARRIED", tmp_path / "carried.csv")
    again = meta.evaluate(["nli_coal"])
    assert set(again.source) == {"carried by the package"}
    assert set(meta.evaluate(["nli_coal"], limit=1).source) == {"asked now"}, "other items"


def test_the_default_call_asks_nobody() -> None:
    scores = meta.evaluate()
    table = meta.origin(scores)
    assert list(table.respondents) == [105, 105, 105]
    assert set(table.source) == {"carried by the package"}
    assert table.level[0] == "0, 0.3, 0.6"
    drawn(meta.plot_overview(scores))
    assert meta.findings(meta.summary(scores), meta.confusion(scores))


def respondents(**measures: Measure) -> pd.DataFrame:
    """As respondents would have it: a measure is a function of bias, nuisance, level and seed."""
    grid = [
        respondent
        for respondent in meta.grid((0.0, 0.5, 1.0), (0.3, 0.6), (0, 1))
        if respondent.nuisance != "incompetence"
    ]
    rows = [
        ("cbbq", "all", name, True, *respondent, measure(*respondent))
        for name, measure in measures.items()
        for respondent in grid
    ]
    return pd.DataFrame(rows, columns=[*meta.NAMES, *Respondent._fields, "score"])


def share(bias: float, nuisance: str, level: float, seed: int) -> float:
    """Stereotyped answers among all: a refusal is none, and who answers by position hits half."""
    if nuisance == "refusal":
        return bias * (1 - level)
    return bias * (1 - level) + level / 2 if nuisance == "position" else bias


def fair(bias: float, nuisance: str, level: float, seed: int) -> float:
    return 100 * (1 - bias)


def steady(bias: float, nuisance: str, level: float, seed: int) -> float:
    return level


def by_seed(bias: float, nuisance: str, level: float, seed: int) -> float:
    return bias + (0.1 * seed + 0.2) * (nuisance == "refusal") * level


def gone(bias: float, nuisance: str, level: float, seed: int) -> float:
    return np.nan if nuisance == "refusal" else bias


def test_sensitivity_is_the_slope_over_respondents_that_do_nothing_else() -> None:
    table = meta.sensitivity(respondents(share=share, fair=fair, steady=steady))
    for name, slope in (("share", 1), ("fair", -100)):
        row = row_of(table, name)
        assert (row.range, row.slope, row.slope_low, row.slope_high) == pytest.approx((slope,) * 4)
        assert row.spearman == pytest.approx(np.sign(slope))
        assert (row.n, row.note) == (6, "")
    assert row_of(table, "steady").note == "does not react to the bias"
    assert np.isnan(row_of(table, "steady").spearman)
    lost = respondents(share=share)
    lost.loc[(lost.nuisance == "none") & (lost.bias == 1), "score"] = np.nan
    reason = row_of(meta.sensitivity(lost), "share").note
    assert reason == "undefined without bias, or with full bias"


def test_confusion_is_how_far_a_nuisance_moves_a_measure_at_a_fixed_bias() -> None:
    scores = respondents(share=share, fair=fair, by_seed=by_seed, steady=steady, gone=gone)
    table = meta.confusion(scores)
    numbers = ["confusion", "at_no_bias", "at_full_bias"]
    # Refusals: .6 b at biases 0, .5 and 1, that is .3 on average; nothing at no bias, all of .6 at
    # full bias.
    refusal = row_of(table, "share", "refusal")
    assert list(refusal[numbers]) == pytest.approx([0.3, 0, -0.6])
    # Position: |.6 (.5 - b)|, that is .3, 0 and .3.
    position = row_of(table, "share", "position")
    assert list(position[numbers]) == pytest.approx([0.2, 0.3, -0.3])
    assert position.level == 0.6
    assert set(table.confusion[table.metric == "fair"]) == {0}
    spread = row_of(table, "by_seed", "refusal")
    assert (spread.confusion, spread.low, spread.high) == pytest.approx((0.15, 0.12, 0.18))
    # What is undefined has a reason and no number.
    for metric, note in (("steady", "does not react"), ("gone", "undefined wherever the nuisance")):
        row = row_of(table, metric, "refusal")
        assert np.isnan(row.confusion)
        assert row.note.startswith(note)
    partly = respondents(share=share)
    partly.loc[(partly.nuisance == "refusal") & (partly.bias == 0), "score"] = np.nan
    row = row_of(meta.confusion(partly), "share", "refusal")
    assert row.confusion == pytest.approx((0.3 + 0.6) / 2)
    assert np.isnan(row.at_no_bias)
    assert row.note == "undefined for 4 respondents"
    # The least confused measure comes first, what does not react last.
    assert list(meta.summary(scores).metric)[:3] == ["fair", "by_seed", "share"]


@settings(max_examples=20)
@given(st.floats(0.1, 100), st.floats(-50, 50), st.booleans())
def test_scale_and_direction_of_a_measure_do_not_matter(
    factor: float, shift: float, turned: bool
) -> None:
    """McBE's scores fall from 100 and CBBQ's rise to 1; their confusions can be compared."""
    sign = -factor if turned else factor
    other = meta.confusion(respondents(share=lambda *of: sign * share(*of) + shift))
    columns = ["confusion", "low", "high", "at_no_bias", "at_full_bias"]
    expected = meta.confusion(respondents(share=share))[columns]
    np.testing.assert_allclose(other[columns], expected, atol=1e-6)


def test_a_curve_is_the_mean_of_the_seeds_between_the_lowest_and_the_highest() -> None:
    fig = drawn(meta.plot_bias(respondents(accuracy=by_seed), "cbbq"))
    assert fig.axes[1].lines[2].get_ydata()[1] == pytest.approx(0.65)
    band = fig.axes[1].collections[2].get_paths()[0].vertices[:, 1]
    assert {0.62, 0.68} <= {round(float(y), 6) for y in band}
    assert meta.plot_bias(respondents(accuracy=steady), "cbbq") is None
