"""Intervals: resampling against a slow loop and against SciPy, strata by themselves, and where there is no interval."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.metrics.bootstrap import (
    Sample,
    Totals,
    estimate,
    interval,
    replicate,
    resample,
    sample,
    scale_interval,
)


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
    return frame(
        {
            (name, f"{name}{k}"): list(dice.normal(k % 3, 1, 1 + k % 5))
            for name, n in (("a", 30), ("b", 12))
            for k in range(n)
        }
    )


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
    clusters = {
        name: [some.value.to_numpy() for _, some in part.groupby("cluster")]
        for name, part in uneven.groupby("stratum")
    }
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
        n_resamples=8000,
        paired=True,
        method="percentile",
        vectorized=True,
        rng=3,
    )
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
    once, often = (
        estimate(
            drawn(frame({("a", str(k)): [value] * times for k, value in enumerate(values)})), mean
        )
        for times in (1, 25)
    )
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
    totals = drawn(rows)
    assert np.isnan(replicate(totals, mean)).mean() == pytest.approx(1 / 9, abs=0.04)
    assert estimate(totals, mean, (0, 5)).value == 4
    # The others are all 4, and two identical ends are no interval.
    assert np.isnan(estimate(totals, mean)[1:]).all()


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
    found = interval(3.0, np.empty(0), 4)
    assert found.value == 3
    assert np.isnan([found.low, found.high]).all()


def test_percentiles_of_few_clusters_are_taken_further_out() -> None:
    # By hand, with nine degrees of freedom: t is 2.262, and the normal distribution has 1.18 % below -2.262.
    values = np.arange(100_001) / 100_000
    found = interval(0.5, values, 9)
    assert (found.low, found.high) == pytest.approx((0.01185, 0.98815), abs=1e-4)
    assert interval(0.5, values, np.inf)[1:] == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(0.5, values, 0).low)


def test_a_statistic_rests_on_the_strata_that_it_looks_at(uneven: pd.DataFrame) -> None:
    totals = drawn(uneven)
    assert sample(totals, mean) == (30, 1, pytest.approx(30), pytest.approx(1))
    assert sample(totals, lambda sums: (sums[:, 0, 0] + sums[:, 1, 0]) / sums[:, :, 1].sum(1))[
        :2
    ] == (42, 2)
    assert sample(totals, lambda sums: sums[:, 1, 0]).freedom == pytest.approx(11)


def test_clusters_of_unequal_size_count_for_fewer_and_widen() -> None:
    # By hand, of sizes 1, 1 and 2: shares 1/4, 1/4 and 1/2, whose squares add to 6/16.
    rows = frame(
        {("a", "x"): [1.0], ("a", "y"): [1.0], ("a", "z"): [1.0, 1.0], ("a", "none"): [0.0]}
    )
    rows.loc[rows.cluster == "none", "one"] = 0
    found = sample(drawn(rows), mean, "one")
    assert (found.units, found.strata) == (3, 1)
    assert found.effective == pytest.approx(16 / 6)
    assert found.freedom == pytest.approx(10 / 6)
    seen = (6 / 16 - 2 * (2 / 64 + 8 / 64) * 1 + (6 / 16) ** 2) * 3 / 2
    assert found.widening == pytest.approx(np.sqrt(6 / 16 / seen))


def test_a_cluster_is_drawn_with_its_rows_in_all_parts() -> None:
    rows = pd.DataFrame(
        {
            "stratum": "a",
            "part": ["left", "right"] * 6,
            "cluster": np.repeat(range(6), 2),
            "value": np.repeat(range(6), 2) * 1.0,
        }
    )
    totals = resample(rows, "stratum", "cluster", ["value"], part="part", draws=50)
    assert totals.strata == ["left", "right"]
    assert (totals.drawn[:, 0] == totals.drawn[:, 1]).all()
    assert sample(totals, lambda sums: sums[:, 0, 0])[:2] == (6, 1)
    assert sample(totals, lambda sums: sums.sum((1, 2)))[:2] == (6, 1)


def test_crossed_samples_agree_with_a_slow_loop() -> None:
    """Variances over lines, over columns and over cells, each by a loop that draws with replacement."""
    dice = np.random.default_rng(3)
    lines, columns = 14, 9
    table = (
        dice.normal(size=(lines, 1))
        + dice.normal(size=columns)
        + dice.normal(size=(lines, columns))
    )
    rows = pd.DataFrame(
        [
            ("s", f"l{i}", "all", f"c{j}", table[i, j], 1.0)
            for i in range(lines)
            for j in range(columns)
        ],
        columns=["stratum", "line", "language", "column", "value", "one"],
    )
    totals = resample(
        rows, "stratum", "line", ["value", "one"], crossed=("language", "column"), draws=6000
    )
    values = replicate(totals, mean)
    means = {"line": [], "column": [], "cell": []}  # type: ignore[var-annotated]
    for _ in range(6000):
        means["line"].append(table[dice.integers(0, lines, lines - 1)].mean())
        means["column"].append(table[:, dice.integers(0, columns, columns - 1)].mean())
        means["cell"].append(table.ravel()[dice.integers(0, table.size, table.size - 1)].mean())
    wanted = np.var(means["line"]) + np.var(means["column"]) - np.var(means["cell"])
    assert values[0] == pytest.approx(table.mean())
    assert np.var(values[1:]) == pytest.approx(wanted, rel=0.1)


def test_sentences_of_their_own_add_nothing_to_occupations() -> None:
    dice = np.random.default_rng(4)
    rows = pd.DataFrame({"stratum": "s", "line": np.repeat(range(20), 6), "language": "all"})
    rows["value"] = np.repeat(dice.normal(size=20), 6) + dice.normal(size=120)
    rows["one"], rows["column"] = 1.0, range(120)
    one_way, crossed = (
        replicate(resample(rows, "stratum", "line", ["value", "one"], crossed=way), mean)
        for way in (None, ("language", "column"))
    )
    assert np.std(crossed[1:]) == pytest.approx(np.std(one_way[1:]), rel=0.1)


def test_an_interval_at_the_end_of_a_scale_by_hand() -> None:
    # None of 24 units is another: as likely as 0.025 where 14.25 % of all are, as 0.8575 ** 24 is.
    found = scale_interval(0.0, np.zeros(1000), Sample(24, 1), (0, 1))
    assert found == (0, 0, pytest.approx(0.1425, abs=1e-4))
    # Unequal in size, they count for as many as their effective number.
    assert scale_interval(0.0, np.zeros(9), Sample(48, 1, 24.0), (0, 1)).high == pytest.approx(
        found.high
    )
    half = scale_interval(0.5, np.full(9, 0.5), Sample(24, 1), (0, 1))
    assert half == (0.5, pytest.approx(0.5 - found.high / 2), pytest.approx(0.5 + found.high / 2))
    mirror = scale_interval(100.0, np.full(1000, 100.0), Sample(24, 1), (0, 100))
    assert mirror == (100, pytest.approx(100 - 100 * found.high), 100)
    assert str(scale_interval(-0.0, np.zeros(9), Sample(24, 1), (0, 1)).value) == "0.0"


def test_an_interval_on_a_scale_is_wilson_s_where_units_are_many() -> None:
    # 3,000 answers of which 30 % are yes: Wilson's interval is 0.2839 to 0.3166.
    values = np.random.default_rng(0).normal(0.3, np.sqrt(0.3 * 0.7 / 3000), 200_000)
    found = scale_interval(0.3, values, Sample(3000, 1), (0, 1))
    assert (found.low, found.high) == pytest.approx((0.2839, 0.3166), abs=3e-4)


def test_wilson_s_interval_near_an_end_by_hand() -> None:
    # 24 units with a mean of 0.02 and a standard error of 0.01; t has 23 degrees of freedom.
    found = scale_interval(0.02, 0.02 + np.array([-0.01, 0.01] * 500), Sample(24, 1), (0, 1))
    t2 = 2.0686576**2 * 0.01**2 / (0.02 * 0.98)
    middle, arm = (0.02 + t2 / 2) / (1 + t2), np.sqrt(t2 * 0.02 * 0.98 + t2**2 / 4) / (1 + t2)
    assert (found.low, found.high) == pytest.approx((middle - arm, middle + arm), rel=1e-6)


def test_an_interval_holds_its_estimate() -> None:
    values = np.linspace(0.3, 0.4, 1000)
    for found in (interval(0.2, values, 29), scale_interval(0.2, values, Sample(30, 1), (0, 1))):
        assert found.low <= 0.2 <= found.high
