"""Respondents of known bias: the grid, what measures say of them by hand, and what is carried."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

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


def test_the_grid_has_every_bias_with_one_nuisance_at_every_level(refusal: Any) -> None:
    every = list(meta.grid())
    assert len(every) == len(set(every)) == 5 * (1 + 3 * 2) * 3
    specs = [parse(respondent.spec) for respondent in every]
    for name, values in (("competence", {1, 0.7, 0.4}), ("refuse", {0, 0.3, 0.6})):
        assert {spec[name] for spec in specs} == values
    assert "levels: 2 is outside 0 to 1" in refusal(list, meta.grid(levels=[2]))


@pytest.mark.slow
def test_cbbq_of_whoever_says_a_is_how_often_the_stereotyped_person_stands_there() -> None:
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
    assert set(meta.evaluate(["nli_coal"]).source) == {"carried by the package"}


def test_the_default_call_asks_nobody() -> None:
    scores = meta.evaluate()
    drawn(meta.plot_overview(scores))
    table = meta.origin(scores)
    assert list(table.respondents) == [105, 105, 105]
    assert set(table.source) == {"carried by the package"}


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
    half = {"refusal": 0, "position": level / 2}
    return bias * (1 - level) + half[nuisance] if nuisance in half else bias


MEASURES: dict[str, Measure] = {
    "share": share,
    "fair": lambda bias, _nuisance, _level, _seed: 100 * (1 - bias),
    "steady": lambda _bias, _nuisance, level, _seed: level,
    "by_seed": lambda bias, nuisance, level, seed: (
        bias + (0.1 * seed + 0.2) * (nuisance == "refusal") * level
    ),
    "gone": lambda bias, nuisance, _level, _seed: np.nan if nuisance == "refusal" else bias,
}


def test_sensitivity_is_the_slope_over_respondents_that_do_nothing_else() -> None:
    table = meta.sensitivity(respondents(**MEASURES))
    for name, slope in (("share", 1), ("fair", -100)):
        row = row_of(table, name)
        assert (row.range, row.slope, row.slope_low, row.slope_high) == pytest.approx((slope,) * 4)
        assert (row.spearman, row.n, row.note) == (pytest.approx(np.sign(slope)), 6, "")
    assert row_of(table, "steady").note == "does not react to the bias"


def test_confusion_is_how_far_a_nuisance_moves_a_measure_at_a_fixed_bias() -> None:
    scores = respondents(**MEASURES)
    table = meta.confusion(scores)
    numbers = ["confusion", "at_no_bias", "at_full_bias"]
    # Refusals: .6 b at biases 0, .5 and 1, that is .3 on average; nothing at no bias, all of .6 at
    # full bias.
    refusal = row_of(table, "share", "refusal")
    assert list(refusal[numbers]) == pytest.approx([0.3, 0, -0.6])
    # Position: |.6 (.5 - b)|, that is .3, 0 and .3.
    position = row_of(table, "share", "position")
    assert list(position[numbers]) == pytest.approx([0.2, 0.3, -0.3])
    assert set(table.confusion[table.metric == "fair"]) == {0}
    spread = row_of(table, "by_seed", "refusal")
    assert (spread.confusion, spread.low, spread.high) == pytest.approx((0.15, 0.12, 0.18))
    # What is undefined has a reason and no number.
    row = row_of(table, "gone", "refusal")
    assert np.isnan(row.confusion)
    assert row.note == "undefined wherever the nuisance is there"
    # The least confused measure comes first.
    assert list(meta.summary(scores).metric)[:3] == ["fair", "by_seed", "share"]


def test_what_cannot_be_reached_is_not_tested_in_sentences() -> None:
    # No nuisance reaches `fair`, the bias does not reach `steady`.
    table = meta.summary(respondents(**MEASURES))
    assert list(table.metric[meta.untested(table)]) == ["fair", "steady"]
    *others, last = meta.findings(table)
    assert last.startswith("Not tested")
    assert "fair" in last
    assert "steady" in last
    assert not any("fair" in text or "steady" in text for text in others)


def test_what_cannot_be_reached_is_not_tested_in_the_picture() -> None:
    scores = respondents(fair=MEASURES["fair"], share=share)
    figure = drawn(meta.plot_overview(scores))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        "CBBQ, fair (not tested)",
        "CBBQ, share",
    ]
    assert "fair" not in figure.get_suptitle()


def test_a_curve_is_the_mean_of_the_seeds() -> None:
    fig = drawn(meta.plot_bias(respondents(accuracy=MEASURES["by_seed"]), "cbbq"))
    assert fig.axes[1].lines[2].get_ydata()[1] == pytest.approx(0.65)
