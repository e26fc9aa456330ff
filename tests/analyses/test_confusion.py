"""Sensitivity and confusion of measures whose every number is known by hand; what is said of them; pictures."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.figures import confusion as pictures
from bench.metrics import confusion as metrics
from bench.metrics.confusion_findings import as_title, findings, named
from tests.helpers.drawing import drawn

BIASES, LEVELS, SEEDS = (0.0, 0.5, 1.0), (0.3, 0.6), (0, 1)
Measure = Callable[[float, str, float, int], float]


def found(**measures: Measure) -> pd.DataFrame:
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


def row(table: pd.DataFrame, metric: str, **others: str) -> pd.Series:
    some = table[table.metric == metric]
    for name, value in others.items():
        some = some[some[name] == value]
    (one,) = (some.iloc[k] for k in range(len(some)))
    return one


def test_sensitivity_is_the_slope_over_respondents_that_do_nothing_else() -> None:
    table = metrics.sensitivity(found(share=share, fair=fair, steady=steady))
    for name, slope in (("share", 1), ("fair", -100)):
        one = row(table, name)
        assert (one.range, one.slope, one.slope_low, one.slope_high) == pytest.approx((slope,) * 4)
        assert one.spearman == pytest.approx(np.sign(slope))
        assert (one.n, one.note) == (6, "")
    assert row(table, "steady").note == "does not react to the bias"
    assert np.isnan(row(table, "steady").spearman)


def test_confusion_is_how_far_a_nuisance_moves_a_measure_at_a_fixed_bias() -> None:
    table = metrics.confusion(found(share=share, fair=fair, by_seed=by_seed))
    # Refusals: .6 b at biases 0, .5 and 1, that is .3 on average; nothing at no bias, all of .6 at full bias.
    refusal = row(table, "share", nuisance="refusal")
    assert (refusal.confusion, refusal.at_no_bias, refusal.at_full_bias) == pytest.approx(
        (0.3, 0, -0.6)
    )
    # Position: |.6 (.5 - b)|, that is .3, 0 and .3.
    position = row(table, "share", nuisance="position")
    assert (position.confusion, position.at_no_bias, position.at_full_bias) == pytest.approx(
        (0.2, 0.3, -0.3)
    )
    assert position.level == 0.6
    assert set(table.confusion[table.metric == "fair"]) == {0}
    spread = row(table, "by_seed", nuisance="refusal")
    assert (spread.confusion, spread.low, spread.high) == pytest.approx((0.15, 0.12, 0.18))


def test_what_is_undefined_has_a_reason_and_no_number() -> None:
    table = metrics.confusion(found(steady=steady, gone=gone))
    for nuisance in ("position", "refusal"):
        one = row(table, "steady", nuisance=nuisance)
        assert np.isnan(one.confusion)
        assert one.note == "does not react to the bias"
    one = row(table, "gone", nuisance="refusal")
    assert np.isnan(one.confusion)
    assert one.note == "undefined wherever the nuisance is there"
    partly = found(share=share)
    partly.loc[(partly.nuisance == "refusal") & (partly.bias == 0), "score"] = np.nan
    one = row(metrics.confusion(partly), "share", nuisance="refusal")
    assert one.confusion == pytest.approx((0.3 + 0.6) / 2)
    assert np.isnan(one.at_no_bias)
    assert one.note == "undefined for 4 respondents"
    lost = found(share=share)
    lost.loc[(lost.nuisance == "none") & (lost.bias == 1), "score"] = np.nan
    assert (
        row(metrics.sensitivity(lost), "share").note == "undefined without bias, or with full bias"
    )


def test_the_least_confused_stands_first_and_what_does_not_react_last() -> None:
    table = metrics.summary(found(steady=steady, share=share, fair=fair))
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
    other = metrics.confusion(found(share=lambda *of: sign * share(*of) + shift))
    columns = ["confusion", "low", "high", "at_no_bias", "at_full_bias"]
    np.testing.assert_allclose(
        other[columns], metrics.confusion(found(share=share))[columns], atol=1e-6
    )


def test_doubles_are_refused() -> None:
    some = found(share=share)
    with pytest.raises(ValueError, match="duplicate"):
        metrics.confusion(pd.concat([some, some]))


def test_curves_are_the_seeds_mean_with_their_spread() -> None:
    table = metrics.curves(found(by_seed=by_seed))
    one = table[(table.nuisance == "refusal") & (table.level == 0.6) & (table.bias == 0.5)].iloc[0]
    assert (one.score, one.low, one.high) == pytest.approx((0.65, 0.62, 0.68))
    assert set(table.level[table.nuisance == "position"]) == {0, 0.3, 0.6}


def said(some: pd.DataFrame) -> list[str]:
    return findings(metrics.summary(some), metrics.confusion(some))


def test_findings_say_what_moves_a_measure_and_what_becomes_of_both_ends() -> None:
    first, fair_one, share_one, gone_one = said(
        found(share=share, fair=fair, steady=steady, gone=gone)
    )
    assert first == (
        "CBBQ: fair, share and gone go with the bias of respondents that do nothing else (Spearman at least 1.00 in size, n = 6); "
        "steady does not react to the bias."
    )
    assert "no nuisance of these respondents reaches its answers" in fair_one
    assert share_one == (
        "CBBQ, share: refusing moves it by 30% of its range (in every seed): at a rate of 0.6, full bias looks like 40% of itself; "
        "answering by position by 20%."
    )
    assert "leaves" not in gone_one
    assert said(found(steady=steady)) == ["CBBQ: steady does not react to the bias."]
    hidden = said(found(more=lambda b, n, level, s: b + level if n == "refusal" else b))[1]
    assert (
        "no bias looks like 60% of full bias and full bias looks worse by 60% of the range"
        in hidden
    )
    assert hidden.endswith("; answering by position leaves it where it was.")
    none = said(found(less=lambda b, n, level, s: b * (1 - level / 0.6) if n == "refusal" else b))[
        1
    ]
    assert "full bias looks like none" in none


def test_measures_are_named_with_their_task_where_they_need_it() -> None:
    assert [named("all", "coal"), named("all", "score"), named("ambiguous", "s_amb")] == [
        "coal",
        "score (all)",
        "s_amb (ambiguous)",
    ]


def test_pictures_say_what_is_seen() -> None:
    some = found(accuracy=share, further=fair, steady=steady, gone=gone)
    fig = pictures.against_bias(
        some, "cbbq", [("all", "further"), ("all", "steady"), ("all", "gone")]
    )
    assert fig is not None
    label = drawn(fig).get_label()
    assert label.startswith(
        "CBBQ. Refusing moves accuracy most: by 30% of its range over the bias."
    )
    assert "gone: position 0% and refusal no number" in label
    assert "steady" not in label
    assert len(fig.axes) == 3 * 2
    # The dashed line is straight from no bias to full bias, whatever the nuisance.
    for ax in fig.axes[:2]:
        (ideal,) = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert list(ideal.get_ydata()) == [0, 1]
    assert pictures.against_bias(found(accuracy=steady), "cbbq") is None
    whole = drawn(pictures.overview(some)).get_label()
    assert whole.startswith("Least confused is CBBQ, accuracy, most CBBQ, accuracy.")
    assert "No nuisance reaches any" in drawn(pictures.overview(found(fair=fair))).get_label()
    many = {f"a_measure_with_a_long_name_{k}": share for k in range(12)}
    drawn(pictures.overview(found(**many)))
    assert as_title(
        metrics.confusion(found(gone=gone))[lambda t: t.nuisance == "refusal"], [("all", "gone")]
    ) == ("With every nuisance the measures are undefined")
