"""Intervals: resampling against a slow loop and against SciPy, strata by themselves, and where there is no interval."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.metrics.bootstrap import (
    Sample,
    estimate,
    interval,
    replicate,
    resample,
    sample,
    scale_interval,
)

BOTH_WAYS = ("language", "column")


def frame(values):
    """Rows from {(stratum, cluster): values}."""
    rows = [(*key, value) for key, each in values.items() for value in each]
    return pd.DataFrame(rows, columns=["stratum", "cluster", "value"]).assign(one=1)


def each_alone(values, times=1):
    """Rows of one stratum in which each value is a cluster."""
    return frame({("a", str(k)): [value] * times for k, value in enumerate(values)})


def drawn(rows, **options):
    return resample(rows, "stratum", "cluster", ["value", "one"], **options)


def mean(sums):
    return sums[:, 0, 0] / sums[:, 0, 1]


def of_both(sums):
    return (sums[:, 0, 0] / sums[:, 0, 1] + sums[:, 1, 0] / sums[:, 1, 1]) / 2


@pytest.fixture
def uneven():
    """Thirty clusters of one to five rows in stratum `a`, and twelve in `b`."""
    rng = np.random.default_rng(5)
    clusters = [(name, k) for name, n in (("a", 30), ("b", 12)) for k in range(n)]
    return frame({(name, f"{name}{k}"): rng.normal(k % 3, 1, 1 + k % 5) for name, k in clusters})


def test_a_cluster_is_drawn_with_all_its_rows():
    # Clusters of 1, 10, 100 and 1,000 rows, three of four drawn and scaled by 4/3: a total is 4/3 of three powers of ten.
    rows = frame({("a", str(k)): [1.0] * 10**k for k in range(4)})
    sums = drawn(rows, draws=300).drawn[:, 0, 0] * 3 / 4
    assert all(sum(int(digit) for digit in str(round(total))) == 3 for total in sums)
    assert len(set(sums.round())) > 15


def test_an_interval_over_strata_agrees_with_a_slow_loop(uneven):
    result = estimate(drawn(uneven, draws=4000), of_both)
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


def test_intervals_of_a_mean_and_of_a_ratio_are_scipy_s(uneven):
    values = np.random.default_rng(1).gamma(2, 1, 60)
    first = uneven[uneven.stratum == "a"]
    sums = first.groupby("cluster")[["value", "one"]].sum().T.to_numpy()
    ratio = lambda value, one, axis: value.sum(axis) / one.sum(axis)  # noqa: E731
    for rows, data, statistic in ((each_alone(values), (values,), np.mean), (first, sums, ratio)):
        result = estimate(drawn(rows, draws=8000), mean)
        options = {"n_resamples": 8000, "paired": True, "method": "percentile", "rng": 3}
        wanted = scipy.stats.bootstrap(tuple(data), statistic, vectorized=True, **options)
        low, high = wanted.confidence_interval
        assert [result.low, result.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_many_clusters_or_strata_give_the_normal_interval():
    rng = np.random.default_rng(2)
    values = rng.normal(10, 3, 2000)
    result = estimate(drawn(each_alone(values), draws=8000), mean)
    arm = 1.96 * values.std() / np.sqrt(2000)
    ends = [values.mean() - arm, values.mean() + arm]
    assert [result.low, result.high] == pytest.approx(ends, abs=0.08 * arm)
    # A mean over 200 strata of two clusters each, as `--limit 2` makes them.
    pairs = rng.normal(0, 1, (200, 2))
    rows = frame({(f"s{i:03d}", str(j)): [pairs[i, j]] for i in range(200) for j in range(2)})
    result = estimate(drawn(rows, draws=4000), lambda sums: (sums[..., 0] / sums[..., 1]).mean(1))
    error = np.sqrt((pairs.var(axis=1, ddof=1) / 2).sum()) / 200
    assert result.high - result.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_rows_that_repeat_within_clusters_do_not_narrow_an_interval():
    values = np.random.default_rng(3).normal(0, 1, 40)
    once, often = (estimate(drawn(each_alone(values, times)), mean) for times in (1, 25))
    assert often == pytest.approx(once)


def test_without_several_clusters_values_or_resamples_there_is_no_interval(uneven):
    for result, value in (
        (estimate(drawn(frame({("a", "x"): [1.0, 2.0, 6.0]})), mean), 3),
        (estimate(drawn(uneven.assign(one=0, value=0.0)), mean), np.nan),
        (interval(3.0, np.empty(0), 4), 3),
        (interval(0.5, np.linspace(0, 1, 99), 0), 0.5),
    ):
        assert result == pytest.approx((value, np.nan, np.nan), nan_ok=True)


def test_resamples_without_a_value_are_left_out():
    # Two of three clusters are drawn; the ratio is undefined where z was drawn twice, in a ninth of the resamples.
    rows = each_alone([4.0, 4.0, 0.0]).assign(one=[1, 1, 0])
    totals = drawn(rows)
    assert np.isnan(replicate(totals, mean)).mean() == pytest.approx(1 / 9, abs=0.04)
    assert estimate(totals, mean, (0, 5)).value == 4
    # The others are all 4, and two identical ends are no interval.
    assert np.isnan(estimate(totals, mean)[1:]).all()


def test_draws_depend_on_the_seed_and_not_on_other_strata(uneven):
    first, again, other = (drawn(uneven, seed=seed).drawn for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    both, alone = drawn(uneven, draws=4000), drawn(uneven[uneven.stratum == "b"], draws=4000)
    assert (both.drawn[:, 1] == alone.drawn[:, 0]).all()
    assert drawn(uneven.iloc[::-1], draws=4000).drawn == pytest.approx(both.drawn)
    assert abs(np.corrcoef(both.drawn[:, :, 0].T)[0, 1]) < 0.06


def test_percentiles_of_few_clusters_are_taken_further_out():
    # By hand, with nine degrees of freedom: t is 2.262, and the normal distribution has 1.18 % below -2.262.
    values = np.arange(100_001) / 100_000
    assert interval(0.5, values, 9)[1:] == pytest.approx((0.01185, 0.98815), abs=1e-4)
    assert interval(0.5, values, np.inf)[1:] == pytest.approx((0.025, 0.975))


def test_a_statistic_rests_on_the_strata_that_it_looks_at(uneven):
    totals = drawn(uneven)
    assert totals.observed[0].tolist() == [
        pytest.approx([part.value.sum(), len(part)]) for _, part in uneven.groupby("stratum")
    ]
    assert sample(totals, mean) == (30, 1, pytest.approx(30), pytest.approx(1))
    assert sample(totals, of_both)[:2] == (42, 2)
    assert sample(totals, lambda sums: sums[:, 1, 0]).freedom == pytest.approx(11)


def test_clusters_of_unequal_size_count_for_fewer_and_widen():
    # By hand, of sizes 1, 1 and 2: shares 1/4, 1/4 and 1/2, whose squares add to 6/16.
    rows = frame({("a", "x"): [1], ("a", "y"): [1], ("a", "z"): [1, 1], ("a", "none"): [0]})
    rows.loc[rows.cluster == "none", "one"] = 0
    result = sample(drawn(rows), mean, "one")
    seen = (6 / 16 - 2 * (2 / 64 + 8 / 64) * 1 + (6 / 16) ** 2) * 3 / 2
    assert result == pytest.approx((3, 1, 16 / 6, np.sqrt(6 / 16 / seen)))
    assert result.freedom == pytest.approx(10 / 6)


def test_a_cluster_is_drawn_with_its_rows_in_all_parts():
    clusters = np.repeat(range(6), 2)
    rows = pd.DataFrame({"part": ["left", "right"] * 6, "cluster": clusters, "value": clusters})
    totals = resample(
        rows.assign(stratum="a"), "stratum", "cluster", ["value"], part="part", draws=50
    )
    assert totals.strata == ["left", "right"]
    assert (totals.drawn[:, 0] == totals.drawn[:, 1]).all()
    for statistic in (lambda sums: sums[:, 0, 0], lambda sums: sums.sum((1, 2))):
        assert sample(totals, statistic)[:2] == (6, 1)


def test_crossed_samples_agree_with_a_slow_loop():
    """Variances over lines, over columns and over cells, each by a loop that draws with replacement."""
    rng = np.random.default_rng(3)
    lines, columns = 14, 9
    table = rng.normal(size=(lines, 1)) + rng.normal(size=columns)
    table += rng.normal(size=(lines, columns))
    rows = pd.DataFrame(table).melt(ignore_index=False, var_name="column").reset_index(names="line")
    rows = rows.assign(stratum="s", language="all", one=1.0)
    totals = resample(rows, "stratum", "line", ["value", "one"], crossed=BOTH_WAYS, draws=6000)
    values = replicate(totals, mean)
    draws = {"line": [], "column": [], "cell": []}
    for _ in range(6000):
        draws["line"].append(table[rng.integers(0, lines, lines - 1)].mean())
        draws["column"].append(table[:, rng.integers(0, columns, columns - 1)].mean())
        draws["cell"].append(table.ravel()[rng.integers(0, table.size, table.size - 1)].mean())
    wanted = np.var(draws["line"]) + np.var(draws["column"]) - np.var(draws["cell"])
    assert values[0] == pytest.approx(table.mean())
    assert np.var(values[1:]) == pytest.approx(wanted, rel=0.1)


def test_sentences_of_their_own_add_nothing_to_occupations():
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"stratum": "s", "line": np.repeat(range(20), 6), "language": "all"})
    rows["value"] = np.repeat(rng.normal(size=20), 6) + rng.normal(size=120)
    rows["one"], rows["column"] = 1.0, range(120)
    one_way, crossed = (
        replicate(resample(rows, "stratum", "line", ["value", "one"], crossed=way), mean)
        for way in (None, BOTH_WAYS)
    )
    assert np.std(crossed[1:]) == pytest.approx(np.std(one_way[1:]), rel=0.1)


# None of 24 units is another: as likely as 0.025 where 14.25 % of all are, as 0.8575 ** 24 is.
UNSEEN = 0.1425
# A mean of 0.02 and a standard error of 0.01; t has 23 degrees of freedom.
T2 = 2.0686576**2 * 0.01**2 / (0.02 * 0.98)
ARM = np.sqrt(T2 * 0.02 * 0.98 + T2**2 / 4)
NEAR_0 = (0.02 + T2 / 2 - ARM) / (1 + T2), (0.02 + T2 / 2 + ARM) / (1 + T2)


@pytest.mark.parametrize(
    ("value", "deviations", "rests_on", "limits", "low", "high"),
    [
        (0, [0] * 9, Sample(24, 1), (0, 1), 0, UNSEEN),
        # Unequal in size, they count for as many as their effective number.
        (0, [0] * 9, Sample(48, 1, 24.0), (0, 1), 0, UNSEEN),
        (0.5, [0] * 9, Sample(24, 1), (0, 1), 0.5 - UNSEEN / 2, 0.5 + UNSEEN / 2),
        (100, [0] * 9, Sample(24, 1), (0, 100), 100 - 100 * UNSEEN, 100),
        (0.02, [-0.01, 0.01] * 500, Sample(24, 1), (0, 1), *NEAR_0),
    ],
)
def test_intervals_on_a_scale_by_hand(value, deviations, rests_on, limits, low, high):
    result = scale_interval(value, value + np.array(deviations), rests_on, limits)
    near = 1e-4 * limits[1]
    assert result == (value, pytest.approx(low, abs=near), pytest.approx(high, abs=near))
    assert str(scale_interval(-0.0, np.zeros(9), Sample(24, 1), (0, 1)).value) == "0.0"


def test_an_interval_on_a_scale_is_wilson_s_where_units_are_many():
    # 3,000 answers of which 30 % are yes: Wilson's interval is 0.2839 to 0.3166.
    values = np.random.default_rng(0).normal(0.3, np.sqrt(0.3 * 0.7 / 3000), 200_000)
    result = scale_interval(0.3, values, Sample(3000, 1), (0, 1))
    assert result[1:] == pytest.approx((0.2839, 0.3166), abs=3e-4)


def test_an_interval_holds_its_estimate():
    values = np.linspace(0.3, 0.4, 1000)
    for result in (interval(0.2, values, 29), scale_interval(0.2, values, Sample(30, 1), (0, 1))):
        assert result.low <= 0.2 <= result.high
