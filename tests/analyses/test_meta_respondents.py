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
from bench.analyses import meta_respondents
from bench.analyses.meta_respondents import Respondent
from bench.scorers.stand_ins.simulated import parse
from tests.helpers.drawing import drawn

ENDS: dict[str, Any] = {"biases": [0, 1], "levels": [1], "seeds": [0], "carried": False}


def score(found: pd.DataFrame, metric: str, bias: float, nuisance: str = "none") -> float:
    some = found[(found.metric == metric) & (found.bias == bias) & (found.nuisance == nuisance)]
    return float(some.score.iloc[0])


def ends(found: pd.DataFrame, metric: str, nuisance: str) -> tuple[float, float]:
    table = meta_respondents.confusion(found)
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
def test_carried_scores_equal_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
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


BIASES, LEVELS, SEEDS = (0.0, 0.5, 1.0), (0.3, 0.6), (0, 1)
Measure = Callable[[float, str, float, int], float]


def respondents(**measures: Measure) -> pd.DataFrame:
    """As respondents would have it: a measure is a function of bias, nuisance, level and seed."""
    grid = [("none", 0.0), *((name, level) for name in ("position", "refusal") for level in LEVELS)]
    return pd.DataFrame(
        [
            {
                "benchmark": "cbbq",
                "task": "all",
                "metric": name,
                "headline": name != "further",
                "bias": bias,
                "nuisance": nuisance,
                "level": level,
                "seed": seed,
                "score": of(bias, nuisance, level, seed),
            }
            for name, of in measures.items()
            for seed in SEEDS
            for nuisance, level in grid
            for bias in BIASES
        ]
    )


def share(bias: float, nuisance: str, level: float, seed: int) -> float:
    """Stereotyped answers among all: a refusal is one that is not stereotyped, and who answers by position hits half."""
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


def row_of(table: pd.DataFrame, metric: str, **others: str) -> pd.Series:
    some = table[table.metric == metric]
    for name, value in others.items():
        some = some[some[name] == value]
    (one,) = (some.iloc[k] for k in range(len(some)))
    return one


def test_sensitivity_is_the_slope_over_respondents_that_do_nothing_else() -> None:
    table = meta_respondents.sensitivity(respondents(share=share, fair=fair, steady=steady))
    for name, slope in (("share", 1), ("fair", -100)):
        one = row_of(table, name)
        assert (one.range, one.slope, one.slope_low, one.slope_high) == pytest.approx((slope,) * 4)
        assert one.spearman == pytest.approx(np.sign(slope))
        assert (one.n, one.note) == (6, "")
    assert row_of(table, "steady").note == "does not react to the bias"
    assert np.isnan(row_of(table, "steady").spearman)


def test_confusion_is_how_far_a_nuisance_moves_a_measure_at_a_fixed_bias() -> None:
    table = meta_respondents.confusion(respondents(share=share, fair=fair, by_seed=by_seed))
    # Refusals: .6 b at biases 0, .5 and 1, that is .3 on average; nothing at no bias, all of .6 at full bias.
    refusal = row_of(table, "share", nuisance="refusal")
    assert (refusal.confusion, refusal.at_no_bias, refusal.at_full_bias) == pytest.approx(
        (0.3, 0, -0.6)
    )
    # Position: |.6 (.5 - b)|, that is .3, 0 and .3.
    position = row_of(table, "share", nuisance="position")
    assert (position.confusion, position.at_no_bias, position.at_full_bias) == pytest.approx(
        (0.2, 0.3, -0.3)
    )
    assert position.level == 0.6
    assert set(table.confusion[table.metric == "fair"]) == {0}
    spread = row_of(table, "by_seed", nuisance="refusal")
    assert (spread.confusion, spread.low, spread.high) == pytest.approx((0.15, 0.12, 0.18))


def test_what_is_undefined_has_a_reason_and_no_number() -> None:
    table = meta_respondents.confusion(respondents(steady=steady, gone=gone))
    for nuisance in ("position", "refusal"):
        one = row_of(table, "steady", nuisance=nuisance)
        assert np.isnan(one.confusion)
        assert one.note == "does not react to the bias"
    one = row_of(table, "gone", nuisance="refusal")
    assert np.isnan(one.confusion)
    assert one.note == "undefined wherever the nuisance is there"
    partly = respondents(share=share)
    partly.loc[(partly.nuisance == "refusal") & (partly.bias == 0), "score"] = np.nan
    one = row_of(meta_respondents.confusion(partly), "share", nuisance="refusal")
    assert one.confusion == pytest.approx((0.3 + 0.6) / 2)
    assert np.isnan(one.at_no_bias)
    assert one.note == "undefined for 4 respondents"
    lost = respondents(share=share)
    lost.loc[(lost.nuisance == "none") & (lost.bias == 1), "score"] = np.nan
    assert (
        row_of(meta_respondents.sensitivity(lost), "share").note
        == "undefined without bias, or with full bias"
    )


def test_the_least_confused_stands_first_and_what_does_not_react_last() -> None:
    table = meta_respondents.summary(respondents(steady=steady, share=share, fair=fair))
    assert list(table.metric) == ["fair", "share", "steady"]
    assert list(table.worst)[:2] == pytest.approx([0, 0.3])
    assert {"position", "refusal"} <= set(table)


@settings(max_examples=20)
@given(st.floats(0.1, 100), st.floats(-50, 50), st.booleans())
def test_scale_and_direction_of_a_measure_do_not_matter(
    factor: float, shift: float, turned: bool
) -> None:
    """McBE's scores fall from 100 and CBBQ's rise to 1; their confusions can be compared."""
    sign = -factor if turned else factor
    other = meta_respondents.confusion(respondents(share=lambda *of: sign * share(*of) + shift))
    columns = ["confusion", "low", "high", "at_no_bias", "at_full_bias"]
    np.testing.assert_allclose(
        other[columns], meta_respondents.confusion(respondents(share=share))[columns], atol=1e-6
    )


def test_doubles_are_refused() -> None:
    some = respondents(share=share)
    with pytest.raises(ValueError, match="duplicate"):
        meta_respondents.confusion(pd.concat([some, some]))


def test_curves_are_the_seeds_mean_with_their_spread() -> None:
    table = meta_respondents.curves(respondents(by_seed=by_seed))
    one = table[(table.nuisance == "refusal") & (table.level == 0.6) & (table.bias == 0.5)].iloc[0]
    assert (one.score, one.low, one.high) == pytest.approx((0.65, 0.62, 0.68))
    assert set(table.level[table.nuisance == "position"]) == {0, 0.3, 0.6}


def test_findings_say_how_a_measure_follows_the_bias_and_what_moves_it() -> None:
    scores = respondents(share=share, fair=fair, steady=steady, gone=gone)
    table, confused = meta_respondents.summary(scores), meta_respondents.confusion(scores)
    texts = {
        text.partition(":")[0]: text.partition(": ")[2]
        for text in meta_respondents.findings(table, confused)
    }
    assert texts["CBBQ, steady"] == "does not react to the bias."
    assert texts["CBBQ, share"] == (
        "its rank correlation with the bias is 1.00 (n = 6 respondents); at a fixed bias it is "
        "moved by answering by position 20% and refusing 30% of its range."
    )
    assert "refusing (undefined)" in texts["CBBQ, gone"]


def test_measures_are_named_with_their_task_where_they_need_it() -> None:
    assert [
        meta_respondents.measure_name("all", "coal"),
        meta_respondents.measure_name("all", "score"),
        meta_respondents.measure_name("ambiguous", "s_amb"),
    ] == [
        "coal",
        "score (all)",
        "s_amb (ambiguous)",
    ]


def test_pictures_say_what_is_seen() -> None:
    some = respondents(accuracy=share, further=fair, steady=steady, gone=gone)
    fig = meta_respondents.plot_bias(
        some, "cbbq", [("all", "further"), ("all", "steady"), ("all", "gone")]
    )
    assert fig is not None
    label = drawn(fig).get_label()
    assert label.startswith(
        "CBBQ. accuracy is moved most, by refusing: 30% of its range over the bias."
    )
    assert "gone: answering by position 0% and refusing (undefined)" in label
    assert "steady" not in label
    assert len(fig.axes) == 3 * 2
    # The dashed line is straight from no bias to full bias, whatever the nuisance.
    for ax in fig.axes[:2]:
        (ideal,) = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert list(ideal.get_ydata()) == [0, 1]
    assert meta_respondents.plot_bias(respondents(accuracy=steady), "cbbq") is None
    whole = drawn(meta_respondents.plot_overview(some)).get_label()
    assert whole.startswith("Least confused is CBBQ, accuracy, most CBBQ, accuracy.")
    assert (
        "No nuisance reaches any"
        in drawn(meta_respondents.plot_overview(respondents(fair=fair))).get_label()
    )
    many = {f"a_measure_with_a_long_name_{k}": share for k in range(12)}
    drawn(meta_respondents.plot_overview(respondents(**many)))
    hidden = respondents(accuracy=gone).query("nuisance != 'position'")
    label = str(drawn(meta_respondents.plot_bias(hidden, "cbbq")).get_label())
    assert label.startswith("CBBQ. With every nuisance the measures are undefined.")
