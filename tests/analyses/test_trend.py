"""Trends over size: slopes as SciPy has them, intervals by resamples, sentences that are no stronger than the test."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.metrics.bootstrap import Replicates, Sample
from bench.metrics.cbbq import HEADLINES
from bench.metrics.table import ALL
from bench.metrics.trend import Sized, band, gains, ordered, over_models, size, slopes, trends
from bench.metrics.trend_findings import findings, shown

QWEN, SS = [0.5, 1.5, 7, 32], [87.69, 80.49, 77.82, 77.11]
PLACE = (ALL, "ambiguous", "s_amb")
DICE = np.random.default_rng(0)


def sized(values: dict[float, np.ndarray], place: tuple[str, str, str] = PLACE) -> list[Sized]:
    found = []
    for b, v in values.items():
        replicates = Replicates()
        replicates.add(place, np.asarray(v, float), Sample(1001, 1))
        found.append(Sized(f"m-{b:g}B", b, "its name", replicates))
    return found


def noisy(value: float, spread: float = 0.01) -> np.ndarray:
    return np.concatenate([[value], value + spread * DICE.standard_normal(1000)])


def points(models: list[Sized], **more: float) -> pd.DataFrame:
    beside = {"valid_rate": 1.0, "position": 0.5, "baseline": np.nan, "n": 9} | more
    return pd.DataFrame(
        [
            {
                "series": "s",
                "model": one.model,
                "billions": one.billions,
                "category": c,
                "task": t,
                "metric": m,
                "score": v[0],
                "ci_low": v[0] - 0.01,
                "ci_high": v[0] + 0.01,
                **beside,
            }
            for one in models
            for (c, t, m), v in one.replicates.items()
        ]
    )


def test_the_slope_is_that_of_least_squares_over_doublings() -> None:
    values = np.array([SS, SS[::-1]]).T
    found = slopes(QWEN, values)
    for k in (0, 1):
        assert found[k] == pytest.approx(stats.linregress(np.log2(QWEN), values[:, k]).slope)
    # By hand: 1, 2 and 4 are a doubling apart, and (0 - 1, 1 - 1, 2 - 1) . (3, 5, 9) / 2 = 3.
    assert slopes([1, 2, 4], np.array([[3.0], [5.0], [9.0]])) == pytest.approx([3.0])


@given(
    st.lists(
        st.floats(0.001, 1000), min_size=2, max_size=6, unique_by=lambda x: round(np.log2(x), 2)
    ),
    st.floats(-5, 5),
    st.floats(0.1, 10),
)
def test_a_line_is_found_whatever_the_unit_of_size(
    billions: list[float], slope: float, unit: float
) -> None:
    values = (slope * np.log2(billions) + 7)[:, None]
    assert slopes(billions, values) == pytest.approx([slope], abs=1e-6)
    assert slopes(np.array(billions) * unit, values) == pytest.approx([slope], abs=1e-6)


def test_the_slope_over_models_is_tested_by_distances_from_the_line() -> None:
    # By hand: 1, 3, 2, 4 over 0, 1, 2, 3 have the slope 0.8 and the residuals -.3, .9, -.9, .3,
    # whose squares add to 1.8; the standard error is sqrt(1.8 / 2 / 5), and t = 0.8 / 0.4243 = 1.886.
    found = over_models([1, 2, 4, 8], np.array([1.0, 3, 2, 4]))
    assert found.difference == pytest.approx(0.8)
    assert found.p == pytest.approx(0.2)
    assert found.ci_high - 0.8 == pytest.approx(4.3027 * np.sqrt(0.18), rel=1e-4)
    two = over_models([1, 2], np.array([1.0, 3]))
    assert two.difference == 2
    assert np.isnan([two.p, two.ci_low, two.ci_high]).all()
    assert two.note == "two sizes make no trend"


def test_a_band_goes_along_the_line_and_is_its_percentiles() -> None:
    values = np.array([noisy(1), noisy(2), noisy(4)])
    line, low, high = band([1, 2, 4], values, np.array([1.0, 2, 4, 8]))
    fit = stats.linregress([0, 1, 2], values[:, 0])
    assert line == pytest.approx(fit.intercept + fit.slope * np.arange(4))
    assert (low < line).all()
    assert (line < high).all()
    every = [stats.linregress([0, 1, 2], values[:, k]) for k in range(1, 1001)]
    ends = np.percentile([one.intercept + 3 * one.slope for one in every], [2.5, 97.5])
    assert [low[3], high[3]] == pytest.approx(list(ends))


def test_trends_and_gains_are_paired_over_resamples() -> None:
    common = 0.2 * DICE.standard_normal(1000)  # what makes all sizes' scores rise and fall together
    models = sized(
        {b: np.concatenate([[s], s + common]) for b, s in ((1, 0.2), (4, 0.4), (8, 0.9))}
    )
    (row,) = trends({"s": models}).to_dict("records")
    slope = stats.linregress([0, 2, 3], [0.2, 0.4, 0.9]).slope
    assert row["per_doubling"] == pytest.approx(slope)
    # Unpaired, the spread would be tenths; it cancels out, and no spread makes no interval.
    assert row["p_items"] < 1e-6
    assert np.isnan([row["items_low"], row["items_high"]]).all()
    # Over models, as SciPy tests a slope: three models leave one degree of freedom.
    fit = stats.linregress([0, 2, 3], [0.2, 0.4, 0.9])
    arm = stats.t.ppf(0.975, 1) * fit.stderr
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((slope - arm, slope + arm))
    assert row["p"] == pytest.approx(fit.pvalue)
    steps = gains({"s": models})
    assert list(steps.gain) == pytest.approx([0.1, 0.5])
    assert list(steps.step) == ["1B to 4B", "4B to 8B"]
    assert list(steps.doublings) == [2, 1]


def test_a_size_without_a_number_is_left_out_and_named() -> None:
    models = sized({1: noisy(0.2), 2: np.full(1001, np.nan), 4: noisy(0.4)})
    (row,) = trends({"s": models}).to_dict("records")
    assert row["sizes"] == 2
    assert row["note"] == "two sizes make no trend; no number for m-2B"
    assert row["per_doubling"] == pytest.approx(0.1)
    (alone,) = trends({"s": models[:2]}).to_dict("records")
    assert np.isnan(alone["per_doubling"])
    assert alone["note"] == "fewer than two sizes have a number"


def test_a_mean_over_other_categories_is_told() -> None:
    models = sized({1: noisy(0.2), 2: noisy(0.4), 4: noisy(0.5)})
    for one, value in zip(models, (noisy(0.1), noisy(0.2), np.full(1001, np.nan)), strict=True):
        one.replicates.add(("age", "ambiguous", "s_amb"), value, Sample(1001, 1))
    table = trends({"s": models}).set_index("category")
    assert table.note["all"].startswith("age: without a number at some sizes")


def test_p_is_adjusted_for_the_other_categories() -> None:
    models = sized({1: noisy(0.2), 2: noisy(0.21), 4: noisy(0.2)}, ("a", "ambiguous", "s_amb"))
    for one, value in zip(models, (0.2, 0.235, 0.26), strict=True):
        one.replicates.add(("b", "ambiguous", "s_amb"), noisy(value), Sample(1001, 1))
    a, b = trends({"s": models}).sort_values("category").itertuples()
    assert b.p_holm == pytest.approx(2 * b.p)
    assert a.p_holm == pytest.approx(min(1, a.p))


def test_sizes_that_make_no_trend_are_refused(refusal) -> None:  # type: ignore[no-untyped-def]
    two = sized({7: noisy(0.1)}) * 2
    assert "both of 7 billion" in refusal(ordered, two, "x")
    assert "two different ones" in refusal(slopes, [2, 2], np.zeros((2, 3)))
    assert "above 0" in refusal(slopes, [0, 2], np.zeros((2, 3)))
    assert "a row a size" in refusal(slopes, [1, 2], np.zeros((3, 3)))


def test_a_sentence_is_no_stronger_than_the_test() -> None:
    def told(values: dict[float, np.ndarray], **more: float) -> str:
        models = sized(values)
        (sentence,) = findings(
            trends({"s": models}), points(models, **more), HEADLINES[:1]
        ).sentence
        return str(sentence).replace("\u00a0", " ")

    rises = told({1: noisy(0.2), 2: noisy(0.31), 4: noisy(0.39), 8: noisy(0.5)})
    assert rises.startswith(
        "s, Ambiguous, share of stereotyped answers: rises with size (worse), +9.8 points of 100 a doubling"
    )
    assert "4 sizes, 1B to 8B" in rises
    flat = told({1: noisy(0.2), 2: noisy(0.203), 4: noisy(0.201)})
    assert "no change with size could be shown" in flat
    assert "would have shown one of" in flat
    assert "These models differ" not in flat
    # Surely different on any items, and no nearer to a line than by chance.
    luck = told({1: noisy(0.2), 2: noisy(0.6), 4: noisy(0.3), 8: noisy(0.5)})
    assert "no change with size could be shown" in luck
    assert "These models differ (p < 0.001 over items), but not as their sizes do." in luck
    two = told({1: noisy(0.2), 2: noisy(0.4)})
    assert "two sizes make no trend. These models differ, by +20.0 points of 100 a doubling" in two
    assert "No difference between these models could be shown" in told(
        {1: noisy(0.2), 2: noisy(0.2)}
    )
    assert "the same at every size" in told({b: np.full(1001, 0.3) for b in (1, 2, 4)})
    assert "m-1B and m-2B cannot be told from a random answerer." in told(
        {1: noisy(0.2), 2: noisy(0.2)}, baseline=0.2
    )
    assert "Readable answers go from 50% to 50%" in told(
        {1: noisy(0.2), 2: noisy(0.4)}, valid_rate=0.5
    )


def test_what_is_shown_has_an_interval_that_leaves_out_nought() -> None:
    row = {"p_holm": 0.01, "ci_low": 0.1, "ci_high": 0.3}
    assert shown(row)
    assert not shown(row | {"p_holm": 0.06})
    assert not shown(row | {"ci_low": 0.0})
    assert not shown(row | {"ci_low": np.nan, "ci_high": np.nan})
    assert shown(row | {"ci_low": -0.3, "ci_high": -0.1})


def test_a_fall_by_position_is_told_as_chance() -> None:
    from bench.metrics.mcbe import HEADLINES as MCBE

    models = sized({0.5: noisy(90, 1), 7: noisy(70, 1)}, (ALL, "ss", "score"))
    table = points(models)
    table["position"] = [0.8, 0.3]
    ss = [one for one in MCBE if one.task == "ss"]
    (sentence,) = findings(trends({"s": models}), table, ss).sentence
    assert "goes from 0.80 to 0.30" in sentence
    assert "can be chance, not fairness" in sentence
    table["position"] = [0.3, 0.3]
    assert "chance" not in findings(trends({"s": models}), table, ss).sentence[0]


@pytest.mark.parametrize(
    ("billions", "text"),
    [(32, "32B"), (0.5, "0.5B"), (0.335, "335M"), (3.29e-4, "329K"), (9.27e-5, "92.7K")],
)
def test_sizes_are_written_as_people_do(billions: float, text: str) -> None:
    assert size(billions) == text
