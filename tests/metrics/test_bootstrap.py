"""Intervals: resampling against slow loops and SciPy, by hand, and where there is none."""

import numpy as np
import pandas as pd
import pytest

from bench.metrics.bootstrap import (
    Sample,
    count_clusters,
    interval,
    replicate,
    resample,
)
from tests.helpers.cases import cases


def frame(values):
    """Rows from {(stratum, cluster): values}."""
    rows = [(*key, value) for key, each in values.items() for value in each]
    return pd.DataFrame(rows, columns=["stratum", "cluster", "value"]).assign(one=1)


def totals_of(rows, **options):
    return resample(rows, "stratum", "cluster", ["value", "one"], **options)


def estimate(totals, statistic, limits=None):
    (rests_on,) = count_clusters(totals)
    return interval(replicate(totals, statistic), rests_on, limits)


def mean(sums):
    return sums[:, 0, 0] / sums[:, 0, 1]


def of_both(sums):
    return (sums[:, 0, 0] / sums[:, 0, 1] + sums[:, 1, 0] / sums[:, 1, 1]) / 2


@pytest.fixture(scope="module")
def uneven():
    """Thirty clusters of one to five rows in stratum `a`, and twelve in `b`."""
    rng = np.random.default_rng(5)
    clusters = [(name, k) for name, n in (("a", 30), ("b", 12)) for k in range(n)]
    return frame({(name, f"{name}{k}"): rng.normal(k % 3, 1, 1 + k % 5) for name, k in clusters})


@pytest.fixture(scope="module")
def uneven_totals(uneven):
    return totals_of(uneven, draws=4000)


def test_an_interval_over_strata_agrees_with_a_slow_loop(uneven, uneven_totals):
    result = estimate(uneven_totals, of_both)
    rng = np.random.default_rng(99)
    clusters = [
        [rows.value.to_numpy() for _, rows in part.groupby("cluster")]
        for _, part in uneven.groupby("stratum")
    ]
    values = []
    for _ in range(4000):
        again = [[parts[i] for i in rng.integers(0, len(parts), len(parts))] for parts in clusters]
        values.append(np.mean([np.concatenate(parts).mean() for parts in again]))
    low, high = np.percentile(values, [2.5, 97.5])
    assert result.value == pytest.approx(uneven.groupby("stratum").value.mean().mean())
    assert [result.low, result.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_a_cluster_without_the_divisor_leaves_two_equal_ends_and_no_interval():
    rows = frame({("a", "x"): [4], ("a", "y"): [4], ("a", "z"): [0]}).assign(one=[1, 1, 0])
    totals = totals_of(rows)
    # Two of three clusters are drawn: z twice in a ninth of the resamples, which have no ratio.
    assert np.isnan(replicate(totals, mean)).mean() == pytest.approx(1 / 9, abs=0.04)
    assert estimate(totals, mean) == pytest.approx((4, np.nan, np.nan), nan_ok=True)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (estimate(totals_of(frame({("a", "x"): [1.0, 2.0, 6.0]})), mean), 3),
        (estimate(totals_of(frame({("a", k): [0.0] for k in "xyz"}).assign(one=0)), mean), np.nan),
        (interval(np.array([3.0]), Sample(5, 1, 5)), 3),
        (interval(np.array([0.5, 0, 1]), Sample(1, 1, 1)), 0.5),
        (interval(np.array([0.5, 0, 1]), Sample(1, 1, 1), (0, 1)), 0.5),
    ],
)
def test_without_several_clusters_values_or_resamples_there_is_no_interval(result, value):
    assert result == pytest.approx((value, np.nan, np.nan), nan_ok=True)


def test_draws_depend_on_no_other_strata_or_rows_of_a_cluster(uneven, uneven_totals):
    both, alone = uneven_totals.resamples, totals_of(uneven[uneven.stratum == "b"], draws=4000)
    assert (both[:, 1] == alone.resamples[:, 0]).all()
    assert totals_of(uneven.iloc[::-1], draws=4000).resamples == pytest.approx(both)
    assert abs(np.corrcoef(both[:, :, 0].T)[0, 1]) < 0.06
    # Rows that repeat within clusters do not narrow an interval.
    often = estimate(totals_of(pd.concat([uneven] * 25), draws=4000), of_both)
    assert often == pytest.approx(estimate(uneven_totals, of_both))


def test_a_score_rests_on_the_strata_and_the_sizes_that_it_looks_at(uneven):
    totals = totals_of(uneven)
    of_a, of_both_strata, of_b = count_clusters(totals, np.array([[1, 0], [1, 1], [0, 1]]) > 0)
    assert of_a == (30, 1, pytest.approx(30), pytest.approx(1))
    assert of_both_strata[:2] == (42, 2)
    assert of_b.freedom == pytest.approx(11)
    # By hand, of sizes 1, 1 and 2: shares 1/4, 1/4 and 1/2, whose squares add to 6/16.
    rows = frame({("a", "x"): [1], ("a", "y"): [1], ("a", "z"): [1, 1], ("a", "none"): [0]})
    totals = totals_of(rows.assign(one=[1, 1, 1, 1, 0]))
    (result,) = count_clusters(totals, np.array([[True]]), "one")
    seen = (6 / 16 - 2 * (2 / 64 + 8 / 64) * 1 + (6 / 16) ** 2) * 3 / 2
    assert result == pytest.approx((3, 1, 16 / 6, np.sqrt(6 / 16 / seen)))
    assert result.freedom == pytest.approx(10 / 6)


def test_crossed_samples_agree_with_a_slow_loop():
    # Variances over lines, over columns and over cells, by a loop that draws with replacement.
    rng = np.random.default_rng(3)
    lines, columns = 14, 9
    table = rng.normal(size=(lines, 1)) + rng.normal(size=columns)
    table += rng.normal(size=(lines, columns))
    rows = pd.DataFrame(table).melt(ignore_index=False, var_name="column").reset_index()
    rows = rows.rename(columns={"index": "cluster"}).assign(stratum="s", language="all", one=1.0)
    values = replicate(totals_of(rows, crossed=("language", "column"), draws=6000), mean)
    draws = [
        (
            table[rng.integers(0, lines, lines - 1)].mean(),
            table[:, rng.integers(0, columns, columns - 1)].mean(),
            table.ravel()[rng.integers(0, table.size, table.size - 1)].mean(),
        )
        for _ in range(6000)
    ]
    assert values[0] == pytest.approx(table.mean())
    assert np.var(values[1:]) == pytest.approx(np.var(draws, axis=0) @ [1, 1, -1], rel=0.1)


# By name, how resamples differ from the value. Of 3,000 answers 30 % are yes.
DEVIATIONS = {
    "alike": [0] * 9,
    "two values": [-0.01, 0.01] * 500,
    "binomial": np.random.default_rng(0).normal(0, np.sqrt(0.3 * 0.7 / 3000), 200_000),
    "above": np.linspace(0.1, 0.2, 999),
}


@cases(__file__, "intervals.csv")
def test_intervals_on_a_scale_by_hand(case):
    deviations = DEVIATIONS[case.pop("deviations")]
    case.pop("why")
    value, units, effective, length, *ends = (float(cell or "nan") for cell in case.values())
    limits = None if np.isnan(length) else (0, length)
    result = interval(value + np.array([0, *deviations]), Sample(units, 1, effective), limits)
    assert result.value == value
    assert [result.low, result.high] == pytest.approx(ends, abs=3e-4 * (limits or (0, 1))[1])


def test_a_zero_has_no_sign():
    assert str(interval(np.full(9, -0.0), Sample(24, 1, 24), (0, 1)).value) == "0.0"
