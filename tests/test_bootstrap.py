"""Intervals: resampling against a slow loop and against SciPy, strata by themselves, and where there is no interval."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.metrics.bootstrap import Totals, estimate, interval, resample, sample


def frame(values: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    """Rows with a stratum, a cluster and a value."""
    rows = [(*key, value) for key, some in values.items() for value in some]
    return pd.DataFrame(rows, columns=["stratum", "cluster", "value"]).assign(one=1)


def drawn(rows: pd.DataFrame, **options: int) -> Totals:
    return resample(rows, "stratum", "cluster", ["value", "one"], **options)


def mean(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0, 0] / sums[:, 0, 1]


@pytest.fixture
def uneven() -> pd.DataFrame:
    """Thirty clusters of one to five rows in stratum `a`, and twelve in `b`."""
    dice = np.random.default_rng(5)
    return frame({
        (name, f"{name}{k}"): list(dice.normal(k % 3, 1, 1 + k % 5)) for name, n in (("a", 30), ("b", 12)) for k in range(n)
    })  # fmt: skip


def test_the_observed_sums_are_those_of_the_strata(uneven: pd.DataFrame) -> None:
    totals = drawn(uneven)
    assert totals.strata == ["a", "b"]
    for k, name in enumerate("ab"):
        some = uneven[uneven.stratum == name]
        assert totals.observed[0, k] == pytest.approx([some.value.sum(), len(some)])


def test_a_cluster_is_drawn_with_all_its_rows() -> None:
    # Clusters of 1, 10, 100 and 1,000 rows, three of four drawn and scaled by 4/3: a total is 4/3 of three powers of ten.
    rows = frame({("a", str(k)): [1.0] * 10**k for k in range(4)})
    sums = drawn(rows, draws=300).drawn[:, 0, 0] * 3 / 4
    assert all(sum(int(digit) for digit in str(round(total))) == 3 for total in sums)
    assert len(set(sums.round())) > 15


def test_an_interval_agrees_with_a_slow_loop(uneven: pd.DataFrame) -> None:
    totals = drawn(uneven, draws=4000)

    def both(sums: np.ndarray) -> np.ndarray:
        return (sums[:, 0, 0] / sums[:, 0, 1] + sums[:, 1, 0] / sums[:, 1, 1]) / 2

    found = estimate(totals, both)
    dice = np.random.default_rng(99)
    clusters = {name: [some.value.to_numpy() for _, some in part.groupby("cluster")] for name, part in uneven.groupby("stratum")}  # fmt: skip
    values = []
    for _ in range(4000):
        means = []
        for parts in clusters.values():
            again = [parts[i] for i in dice.integers(0, len(parts), len(parts))]
            means.append(sum(part.sum() for part in again) / sum(len(part) for part in again))
        values.append(np.mean(means))
    low, high = np.percentile(values, [2.5, 97.5])
    assert found.value == pytest.approx(
        np.mean([uneven[uneven.stratum == name].value.mean() for name in "ab"])
    )
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_an_interval_of_a_mean_agrees_with_scipy_s_bootstrap() -> None:
    values = np.random.default_rng(1).gamma(2, 1, 60)
    rows = frame({("a", str(k)): [value] for k, value in enumerate(values)})
    found = estimate(drawn(rows, draws=8000), mean)
    wanted = scipy.stats.bootstrap((values,), np.mean, n_resamples=8000, method="percentile", rng=3)
    low, high = wanted.confidence_interval
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_an_interval_of_a_ratio_agrees_with_scipy_s_paired_bootstrap(uneven: pd.DataFrame) -> None:
    some = uneven[uneven.stratum == "a"]
    sums = some.groupby("cluster").agg(value=("value", "sum"), one=("one", "sum"))
    found = estimate(drawn(some, draws=8000), mean)
    wanted = scipy.stats.bootstrap(
        (sums.value.to_numpy(), sums.one.to_numpy()),
        lambda value, one, axis: value.sum(axis) / one.sum(axis),
        n_resamples=8000, paired=True, method="percentile", vectorized=True, rng=3,
    )  # fmt: skip
    low, high = wanted.confidence_interval
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_an_interval_of_many_clusters_is_the_normal_one() -> None:
    values = np.random.default_rng(2).normal(10, 3, 2000)
    rows = frame({("a", str(k)): [value] for k, value in enumerate(values)})
    found = estimate(drawn(rows, draws=8000), mean)
    half = 1.96 * values.std() / np.sqrt(2000)
    assert [found.low, found.high] == pytest.approx(
        [values.mean() - half, values.mean() + half], abs=0.08 * half
    )


def test_rows_that_repeat_within_clusters_do_not_narrow_an_interval() -> None:
    values = np.random.default_rng(3).normal(0, 1, 40)
    once, often = (estimate(drawn(frame({("a", str(k)): [value] * times for k, value in enumerate(values)})), mean) for times in (1, 25))  # fmt: skip
    assert often == pytest.approx(once)


def test_a_stratum_of_one_cluster_has_no_interval() -> None:
    found = estimate(drawn(frame({("a", "x"): [1.0, 2.0, 6.0]})), mean)
    assert found.value == 3
    assert np.isnan([found.low, found.high]).all()


def test_a_statistic_without_a_value_has_no_interval(uneven: pd.DataFrame) -> None:
    found = estimate(drawn(uneven.assign(one=0, value=0.0)), mean)
    assert np.isnan(found).all()


def test_resamples_without_a_value_are_left_out() -> None:
    # Two of three clusters are drawn; the ratio is undefined where z was drawn twice, in a ninth of the resamples.
    rows = frame({("a", "x"): [4.0], ("a", "y"): [4.0], ("a", "z"): [0.0]})
    rows["one"] = [1, 1, 0]
    found = estimate(drawn(rows), mean)
    assert found == (4, 4, 4)


def test_a_seed_fixes_the_draws_and_another_one_changes_them(uneven: pd.DataFrame) -> None:
    one, again, other = (drawn(uneven, seed=seed).drawn for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


def test_a_stratum_s_draws_do_not_depend_on_the_others(uneven: pd.DataFrame) -> None:
    both, alone = drawn(uneven), drawn(uneven[uneven.stratum == "b"])
    assert (both.drawn[:, 1] == alone.drawn[:, 0]).all()
    assert (drawn(uneven.iloc[::-1]).drawn == both.drawn).mean() > 0.2
    assert drawn(uneven.iloc[::-1]).drawn == pytest.approx(both.drawn)


def test_strata_are_drawn_independently_of_each_other() -> None:
    values = np.random.default_rng(4).normal(0, 1, 50)
    rows = frame({(name, str(k)): [value] for name in "ab" for k, value in enumerate(values)})
    sums = drawn(rows, draws=4000).drawn[:, :, 0]
    assert abs(np.corrcoef(sums[:, 0], sums[:, 1])[0, 1]) < 0.06


def test_an_interval_over_strata_of_two_clusters_is_as_wide_as_its_standard_error_says() -> None:
    # A mean over 200 strata of two clusters each, as `--limit 2` makes them.
    values = np.random.default_rng(8).normal(0, 1, (200, 2))
    rows = frame({(f"s{i:03d}", str(j)): [values[i, j]] for i in range(200) for j in range(2)})
    found = estimate(drawn(rows, draws=4000), lambda sums: (sums[:, :, 0] / sums[:, :, 1]).mean(1))
    error = np.sqrt((values.var(axis=1, ddof=1) / 2).sum()) / 200
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_a_value_that_was_never_drawn_again_has_no_interval() -> None:
    found = interval(3.0, np.empty(0))
    assert found.value == 3
    assert np.isnan([found.low, found.high]).all()


def test_percentiles_of_few_clusters_are_taken_further_out() -> None:
    # By hand, with nine degrees of freedom: t is 2.262, and the normal distribution has 1.18 % below -2.262.
    values = np.arange(100_001) / 100_000
    found = interval(0.5, values, 9)
    assert (found.low, found.high) == pytest.approx((0.01185, 0.98815), abs=1e-4)
    assert interval(0.5, values)[1:] == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(0.5, values, 0).low)


def test_a_statistic_rests_on_the_strata_that_it_looks_at(uneven: pd.DataFrame) -> None:
    totals = drawn(uneven)
    assert sample(totals, mean) == (30, 1)
    assert sample(totals, lambda sums: (sums[:, 0, 0] + sums[:, 1, 0]) / sums[:, :, 1].sum(1)) == (42, 2)
    assert sample(totals, lambda sums: sums[:, 1, 0]).freedom == 11
