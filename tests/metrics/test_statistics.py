"""Statistics of frames: equal to SciPy's and to printed numbers, and a sentence for bad input."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

import bench
from bench import Metric
from bench.analyses.printed import numbers
from bench.metrics.significance import holm
from tests.helpers.cases import cases

PAIRED = pd.DataFrame(
    {
        "model": ["a"] * 40 + ["b"] * 40,
        "item_id": [*range(40)] * 2,
        "scene": [k // 4 for k in range(40)] * 2,
        "half": ["first"] * 20 + ["second"] * 20 + ["first"] * 20 + ["second"] * 20,
        "chosen": np.random.default_rng(0).integers(0, 2, 80),
    }
)
SCENES = {"cluster": "scene", "stratum": None}
ROWS = {"cluster": None, "stratum": None}


def test_table_12_of_mcbe_comes_out_to_the_printed_digits():
    scores = numbers("Table 12").dropna(subset="model")
    sides = [part for _, part in scores.groupby("setting", sort=False)]
    table = bench.correlate(*sides, by="task").set_index(["task", "coefficient"])
    found = {
        key: (f"{row.estimate:.3f}", f"{row.p:.2e}", row.n)
        for key, row in table.iterrows()
        if key[0] in ("sc", "bs") and key[1] != "kendall"
    }
    # The paper prints p = 0 and 2.16e-05 for Spearman's, by the t distribution. Of the 9! orders of
    # nine scores, two are as extreme as the first.
    assert found == {
        ("sc", "pearson"): ("0.999", "2.63e-10", 9),
        ("sc", "spearman"): ("1.000", f"{2 / math.factorial(9):.2e}", 9),
        ("bs", "pearson"): ("0.999", "2.76e-11", 9),
        ("bs", "spearman"): ("0.967", "1.65e-04", 9),
    }
    pearson = table.xs("pearson", level="coefficient")
    assert list(pearson.p_adjusted) == pytest.approx(list(holm(pearson.p)))


def correlated(x, y):
    """Correlate two lists of scores."""
    sides = [
        pd.DataFrame({"item_id": range(len(x)), "score": values, "note": "-"}) for values in (x, y)
    ]
    return bench.correlate(*sides, on="item_id").set_index("coefficient")


def test_coefficients_by_hand():
    # Means 2.5 and 2.5; products of deviations 4 of 5; one pair of six is in the wrong order.
    table = correlated([1, 2, 3, 4], [1, 3, 2, 4])
    assert list(table.estimate) == pytest.approx([0.8, 0.8, 4 / 6])
    # t = .8 sqrt(2 / .36) with 2 degrees of freedom, for which p has a closed form.
    t = 0.8 * np.sqrt(2 / 0.36)
    # Of the 24 orders of four, 8 have as many or more pairs in order or in disorder.
    assert [table.p["pearson"], table.p["kendall"]] == pytest.approx(
        [1 - t / np.sqrt(2 + t * t), 8 / 24]
    )
    # Fisher's z = atanh r has a standard error of 1 / sqrt(n - 3).
    ends = [np.tanh(np.arctanh(0.8) + sign * 1.959964) for sign in (-1, 1)]
    assert list(table.loc["pearson", ["ci_low", "ci_high"]]) == pytest.approx(ends, abs=1e-6)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4, 5], [2, 1, 3, 5, 5]), (range(7), [3, 1, 1, 0, 5, 4, 6])],
)
def test_p_of_spearman_is_exact_for_few_points(x, y):
    ranks = map(stats.rankdata, (x, y))
    wanted = stats.pearsonr(*ranks, method=stats.PermutationMethod(n_resamples=np.inf))
    assert correlated(x, y).p["spearman"] == pytest.approx(wanted.pvalue)


def test_p_of_spearman_is_exact_for_nine_points():
    # One order agrees fully with the first, and 8 more differ by one exchange of neighbours.
    assert correlated(range(9), [1, 0, *range(2, 9)]).p["spearman"] == pytest.approx(
        2 * 9 / math.factorial(9)
    )


def test_p_of_spearman_is_by_the_t_distribution_for_ten_points():
    x, y = range(10), [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]
    assert correlated(x, y).p["spearman"] == pytest.approx(stats.spearmanr(x, y).pvalue)


def test_p_of_spearman_is_never_below_that_of_one_order_of_all():
    assert correlated(range(12), range(12)).p["spearman"] == pytest.approx(2 / math.factorial(12))


@pytest.mark.parametrize(
    ("x", "y", "n", "reason"),
    [
        ([0, 0.5, 1], [2 / 3, 1 - 1 / 3, 0.6666666666666667], 3, "the second score is 0.667 at"),
        ([1, 1, 1], [0, 1, 2], 3, "the first score is 1 at every point"),
        ([0, 1, 2], [0, np.nan, 1], 2, "2 points; 3 are needed at least; 1 of 3 points without"),
    ],
)
def test_an_undefined_coefficient_has_a_reason(x, y, n, reason):
    table = correlated(x, y)
    assert table[["estimate", "ci_low", "ci_high", "p"]].isna().all(axis=None)
    assert (table.n == n).all()
    assert table.note.str.startswith(reason).all()


def test_a_slope_is_tested_by_the_distances_from_its_line():
    # By hand: 1, 3, 2, 4 over 0, 1, 2, 3 have the slope 0.8 and the residuals -.3, .9, -.9, .3,
    # whose squares add to 1.8; the error is sqrt(1.8 / 2 / 5), and t = 0.8 / 0.4243 = 1.886.
    rows = pd.DataFrame({"billions": [1, 2, 4, 8], "score": [1, 3, 2, 4]})
    plain = bench.trend(rows.assign(billions=range(4)), per_doubling=False)
    for table in (bench.trend(rows), plain):
        assert table[["estimate", "p"]].to_numpy()[0] == pytest.approx([0.8, 0.2])
        assert table.ci_high[0] - 0.8 == pytest.approx(4.3027 * np.sqrt(0.18), rel=1e-4)
    assert np.isnan(bench.trend(rows[:2]).p[0])


def test_models_without_a_score_are_left_out_of_a_trend_and_counted():
    rows = pd.DataFrame({"model": [*"abcd"], "billions": [1, 2, 4, 8], "score": [1, 2, np.nan, 4]})
    (row,) = bench.trend(rows.assign(note="no answer could be read")).itertuples()
    assert (row.n, row.note) == (3, "1 of 4 models without a score are left out")
    assert row.estimate == pytest.approx(1)


def test_items_that_one_model_lacks_are_left_out_and_p_is_adjusted():
    three = pd.concat([PAIRED, PAIRED[:30].assign(model="c", chosen=1)])
    table = bench.compare(three, "chosen", **SCENES)
    assert list(table["first"] + table.second) == ["ab", "ac", "bc"]
    assert list(table.n) == [40, 30, 30]
    alone = "10 rows of only one of the two are left out"
    assert [alone in note for note in table.note] == [False, True, True]
    assert list(table.p_adjusted) == pytest.approx(list(holm(table.p)))


@pytest.mark.parametrize("half", ["first", "second"])
def test_a_comparison_by_group_is_that_of_the_group_alone(half):
    both = bench.compare(PAIRED, "chosen", by="half", **SCENES)
    alone = bench.compare(PAIRED[PAIRED.half == half], "chosen", **SCENES)
    columns = ["estimate", "ci_low", "p", "n"]
    assert both.loc[both.half == half, columns].to_numpy() == pytest.approx(
        alone[columns].to_numpy(), nan_ok=True
    )


PLAIN = pd.DataFrame({"model": np.repeat(["m00", "m01", "m02"], 4), "category": [*"abcd"] * 3})
PLAIN = PLAIN.assign(score=range(12), billions=7.0, kind="x").astype(object)


@cases(__file__, "bad_input.csv")
def test_bad_input_is_named_in_one_sentence(case, refusal):
    table = PLAIN.copy()
    if case["column"]:
        table.loc[1, case["column"]] = case["value"]
    options = json.loads(case["options"] or "{}")
    text = refusal(getattr(bench, case["function"]), table, **options)
    assert text.startswith(("frame", "scores", "ratings"))
    assert case["message"] in text


def test_a_mistake_in_a_file_names_its_row(tmp_path, refusal):
    path = tmp_path / "scores.csv"
    PLAIN.replace({"score": {1: "many"}}).to_csv(path, index=False)
    assert refusal(bench.friedman, path).startswith(f"{path}, row 2, column `score`: 'many'")


NUMBERS = ["score", "ci_low", "ci_high", "n", "valid_rate", "baseline", "bound_low", "bound_high"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    options = {"categories": ["age", "gender"], "limit": 30, "out": tmp_path_factory.mktemp("run")}
    return bench.evaluate("cbbq", "simulated:bias=0.5,refuse=0.3", data="samples", **options)


@pytest.mark.parametrize(
    ("metric", "own"),
    [
        ("s_amb", Metric("own", "ambiguous", "stereotyped", "answered", baseline=1 / 3)),
        ("s_disamb", Metric("own", "disambiguous", "stereotyped", "names_person", baseline=1 / 2)),
        ("unknown", Metric("own", "ambiguous", "says_unknown", "parsed", baseline=1 / 3)),
    ],
)
def test_a_ratio_of_outcomes_has_the_row_of_the_benchmark_s_metric(asked, metric, own):
    table = bench.score(asked, metrics=[own])
    table = table[table.task == own.task]
    rows = [table[table.metric == name].set_index("category")[NUMBERS] for name in (metric, "own")]
    assert len(rows[1]) == 3
    pd.testing.assert_frame_equal(*rows)


def test_a_metric_that_pools_categories_has_its_bounds(asked):
    own = Metric("own", "ambiguous", "says_unknown", "parsed", mean_over=())
    table = bench.score(asked, metrics=[own])
    row = table[table.metric == "own"].iloc[0]
    rows = bench.outcomes(asked).query("task == 'ambiguous'")
    unread = (1 - rows.parsed).sum()
    assert row.score == rows.says_unknown.sum() / rows.parsed.sum()
    assert row.bound_low == rows.says_unknown.sum() / len(rows)
    assert row.bound_high == (rows.says_unknown.sum() + unread) / len(rows)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Metric("own", "ambiguous", "says_unkown", "parsed"), "column 'says_unkown' is unknown"),
        (Metric("own", of=lambda sums: sums["length"]), "column 'length' is unknown; allowed: "),
        (Metric("own", "ambigous", "says_unknown", "parsed"), "task 'ambigous' is unknown; allow"),
    ],
)
def test_an_unknown_column_or_task_is_named_with_those_that_there_are(
    asked, metric, message, refusal
):
    assert message in refusal(bench.score, asked, metrics=[metric])


def difference(first, second):
    """Compare two models' scores of the same items, in the same order."""
    items = pd.DataFrame({"item_id": range(len(first))})
    sides = [items.assign(model=name, score=s) for name, s in (("a", first), ("b", second))]
    (row,) = bench.compare(pd.concat(sides), "score", cluster=None, stratum=None).itertuples()
    return row


@pytest.mark.parametrize(("n", "near"), [(6, 0.08), (30, 0.08), (200, 0.05)])
def test_a_difference_of_means_is_the_paired_t_test(n, near):
    # The bootstrap's standard error is that of the mean but for the chance of a thousand resamples.
    rng = np.random.default_rng(n)
    first, second = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
    result, t = difference(first, second), stats.ttest_rel(first, second)
    low, high = t.confidence_interval()
    assert result.estimate == pytest.approx(np.mean(first - second))
    assert stats.t.isf(result.p / 2, n - 1) == pytest.approx(abs(t.statistic), rel=near)
    assert result.ci_high - result.ci_low == pytest.approx(high - low, rel=near)
    assert result.clusters == n
    assert (result.p < 0.05) == (result.ci_low > 0 or result.ci_high < 0)
    # The shifted t makes it a little more than statsmodels' power, by the noncentral one.
    power = TTestPower().solve_power(nobs=n, power=0.8, alpha=0.05)
    wanted = power * np.std(first - second, ddof=1)
    assert result.detectable == pytest.approx(wanted, rel=near + 0.03)


@pytest.mark.parametrize(
    ("differing", "alike", "p", "note"),
    [
        # As in a sign test, which has 2 ** -4 for five that agree, whatever their spread.
        (5, 0, 1 / 16, "5 units differ, all alike: too few to show a difference"),
        (6, 0, 1 / 32, ""),
        (500, 0, 0, ""),
        (4, 396, 1 / 8, "4 units differ, all alike: too few to show a difference"),
        (1, 9, 1, "1 unit differs: too few to show a difference"),
        (0, 400, 1, ""),
    ],
)
def test_units_that_differ_alike_are_tested_as_by_a_sign_test(differing, alike, p, note):
    first = np.repeat([1, 0], [differing, alike])
    result = difference(first, np.zeros(differing + alike))
    exact = stats.binomtest(differing, differing).pvalue if differing else 1.0
    assert exact == pytest.approx(p, abs=1e-9)
    assert p <= result.p <= max(p, 0.04)
    assert result.ci_low <= 0 or result.p < 0.05
    assert -1 <= result.ci_low < result.estimate <= result.ci_high <= 1
    assert result.note.startswith(note)


def test_a_unit_counts_in_a_mean_over_parts_with_their_weights():
    # In half of the scenes the models differ in x, which is half of the mean, in the others in both
    # tasks of y. So each scene differs by 0.5.
    rows = [
        {
            "model": model,
            "scene": scene,
            "category": category,
            "task": task,
            "item_id": f"{scene} {category} {task}",
            "hit": float(model == "a" and (category == "x") == (scene < 3)),
        }
        for model in "ab"
        for scene in range(6)
        for category, task in (("x", "t"), ("y", "t"), ("y", "u"))
    ]
    (result,) = bench.compare(
        pd.DataFrame(rows), "hit", mean_over=["category", "task"], **SCENES
    ).itertuples()
    alike = difference(np.full(6, 0.5), np.zeros(6))
    found = [result.estimate, result.ci_low, result.ci_high, result.p]
    assert found == pytest.approx([0.5, alike.ci_low, alike.ci_high, alike.p])


def test_equal_replies_leave_open_what_a_share_of_unseen_units_leaves_open():
    result = difference(np.ones(400), np.ones(400))
    upper = stats.binomtest(0, 400).proportion_ci(method="exact").high
    assert [result.estimate, result.p] == [0, 1]
    assert [-result.ci_low, result.ci_high] == pytest.approx([upper, upper])
    t = stats.t(399)
    assert result.detectable == pytest.approx(upper * (1 + t.ppf(0.8) / t.ppf(0.975)))
    result = difference([0.5, 0.25], [0.5, 0.25])
    assert (result.p, np.isnan(result.ci_low)) == (1, True)
    assert "give limits=" in result.note


@pytest.mark.parametrize("clusters", [3, 5, 8, 14])
def test_an_interval_holds_0_if_and_only_if_p_is_not_below_5_percent(clusters):
    rng, frames = np.random.default_rng(clusters), []
    for study in range(25):
        shares, size = rng.choice([0.0, 0.03, 0.3, 1.0], 2), rng.choice([1, 2, 8])
        scene = np.repeat(range(clusters), size)
        for name, share in zip("ab", shares, strict=True):
            frame = pd.DataFrame({"model": name, "scene": scene, "item_id": range(len(scene))})
            frames.append(frame.assign(study=study, hit=rng.random(len(scene)) < share))
    table = bench.compare(pd.concat(frames), "hit", by="study", **SCENES)
    holds_0 = (table.ci_low <= 0) & (table.ci_high >= 0)
    assert holds_0.equals(table.p >= 0.05)
    assert ((table.ci_low >= -1) & (table.ci_high <= 1)).all()
    assert ((table.detectable > 0) | table.detectable.isna()).all()
    assert (table.note[table.detectable.isna()] != "").all()


def test_so_large_a_difference_is_shown_among_many_pairs():
    scores = [
        (f"m{model}", category, measure, 50 + 2 * model + noise)
        for measure in range(5)
        for model in range(11)
        for category, noise in enumerate(np.random.default_rng([measure, model]).normal(0, 3, 11))
    ]
    table = pd.DataFrame(scores, columns=["model", "category", "measure", "score"])
    table = bench.compare(table, "score", by="measure", cluster=None, stratum=None)
    ends = table[(table["first"] == "m0") & (table.second == "m10")]
    assert len(table) == 275
    assert (ends.p_adjusted < 0.05).all()
    is_open = (table.p < 0.05) & (table.p_adjusted >= 0.05)
    assert is_open.any()
    assert table.note.str.contains("not adjusted for all tests").equals(is_open)


def test_what_one_of_the_two_has_no_value_of_is_left_out_and_named():
    rows = PAIRED.assign(chosen=PAIRED.chosen.where(PAIRED.half == "first"))
    table = bench.compare(rows, "chosen", mean_over="half", **SCENES)
    assert (table.n[0], table.clusters[0]) == (20, 5)
    assert table.note[0].startswith("left out, because the divisor is 0: second")
    assert bench.share(rows, "chosen", mean_over="half", **SCENES).note[0].startswith("left out")


SCALED = pd.DataFrame(
    {
        "model": np.repeat([*"abcd"], 9),
        "category": [*range(9)] * 4,
        "score": np.random.default_rng(4).normal([[0.1], [0.2], [0.2], [0.5]], 0.1, (4, 9)).ravel(),
    }
)
SCALED.loc[[3, 12], "score"] = [0.1 + 0.2, 0.3]
SIZES = [0.5, 1.5, 7, 32]


@pytest.mark.parametrize("unit", [1e-9, 1e12])
@pytest.mark.parametrize(
    ("statistic", "same", "scaled"),
    [
        (
            lambda rows: bench.compare(rows, "score", cluster=None, stratum=None),
            ["p", "note"],
            ["estimate", "ci_low", "ci_high", "detectable"],
        ),
        (
            lambda rows: bench.share(rows, "score", by="model", cluster=None, stratum=None),
            ["note"],
            ["estimate", "ci_low", "ci_high"],
        ),
        (
            lambda rows: bench.trend(rows[rows.category == 3].assign(billions=SIZES)),
            ["p", "note"],
            ["estimate", "ci_low", "ci_high", "detectable"],
        ),
        (lambda rows: bench.correlate(rows, SCALED.assign(score=range(36))), ["estimate", "p"], []),
        (lambda rows: bench.friedman(rows).test, ["estimate", "p"], []),
        (lambda rows: bench.friedman(rows).pairs, ["estimate", "p_wilcoxon", "blocks_apart"], []),
    ],
)
def test_the_unit_of_scores_does_not_matter(statistic, same, scaled, unit):
    plain, other = (statistic(SCALED.assign(score=SCALED.score * by)) for by in (1, unit))
    pd.testing.assert_frame_equal(plain[same], other[same])
    pd.testing.assert_frame_equal(plain[scaled], other[scaled] / unit, check_exact=False)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_x_does_not_matter_to_a_trend(unit):
    rows = SCALED[SCALED.category == 3].assign(billions=SIZES)
    wanted = stats.linregress(SIZES, rows.score)
    (row,) = bench.trend(
        rows.assign(billions=rows.billions * unit), per_doubling=False
    ).itertuples()
    assert [row.estimate * unit, row.p] == pytest.approx([wanted.slope, wanted.pvalue])


def test_a_trend_of_equal_scores_says_why_there_is_no_interval():
    rows = SCALED[:4].assign(billions=SIZES, score=0.1 + 0.2, model=[*"abcd"])
    (row,) = bench.trend(rows).itertuples()
    assert (row.estimate, row.p, np.isnan(row.ci_low)) == (0, 1, True)
    assert row.note == "no interval: all scores are the same"


DATES = pd.to_datetime(["2021-01-05", "2021-09-01", "2023-03-01", "2025-01-01"])


@pytest.mark.parametrize(
    "dates",
    [DATES, DATES.tz_localize("Asia/Shanghai"), DATES.date, DATES - DATES[0]],
    ids=["datetime", "with a zone", "date", "timedelta"],
)
def test_dates_and_durations_count_in_days(dates):
    rows = pd.DataFrame({"model": [*"abcd"], "released": dates, "score": [9, 7, 6, 2]})
    wanted = stats.linregress((DATES - DATES[0]).days, rows.score)
    (row,) = bench.trend(rows, "released", per_doubling=False).itertuples()
    assert [row.estimate, row.p] == pytest.approx([wanted.slope, wanted.pvalue])


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (bench.trend, {"x": "released"}, "scores, column `released`: dates do not double; give"),
        (
            bench.share,
            {"column": "released", **ROWS},
            "frame, column `released`: holds dates; give num",
        ),
        (
            bench.share,
            {"column": "took", **ROWS},
            "frame, column `took`: holds durations; give numbers",
        ),
    ],
)
def test_dates_and_durations_are_no_other_numbers(function, options, message, refusal):
    rows = pd.DataFrame({"model": [*"abcd"], "released": DATES, "took": DATES - DATES[1]})
    assert refusal(function, rows.assign(score=range(4)), **options).startswith(message)


def test_numbers_beyond_the_given_ends_of_a_scale_are_refused(refusal):
    text = refusal(bench.share, PLAIN, "score", cluster=None, stratum=None, limits=(0, 1))
    assert text == "frame, row 2, column `score`: 2 is not within limits=(0, 1)"


def test_numbers_below_1_are_no_shares_if_they_count_nothing():
    rows = pd.DataFrame({"seconds": np.random.default_rng(1).exponential(size=40) / 10})
    (row,) = bench.share(rows, "seconds", cluster=None, stratum=None).itertuples()
    (of_scale,) = bench.share(
        rows, "seconds", cluster=None, stratum=None, limits=(0, 1)
    ).itertuples()
    assert row.estimate == of_scale.estimate
    assert row.ci_high != of_scale.ci_high


def test_a_single_unit_has_no_test():
    result = difference([1.0], [0.0])
    assert np.isnan([result.p, result.ci_low]).all()
    assert result.note == "no interval: too few units in a stratum"


def groups(first, second, cluster=None):
    """Compare the numbers of two groups that have no item in common."""
    rows = pd.DataFrame(
        {"group": ["a"] * len(first) + ["b"] * len(second), "value": [*first, *second]}
    )
    table = bench.compare(rows, "value", between="group", cluster=cluster, stratum=None, **UNPAIRED)
    return table.iloc[0]


UNPAIRED = {"paired": False, "limits": (-20, 20)}


def test_groups_of_items_are_compared_as_by_welch():
    rng = np.random.default_rng(1)
    first, second = rng.normal(1, 1, 40), rng.normal(2, 2, 25)
    row, expected = groups(first, second), stats.ttest_ind(first, second, equal_var=False)
    low, high = expected.confidence_interval()
    assert row.estimate == pytest.approx(first.mean() - second.mean())
    assert [row.ci_low, row.ci_high] == pytest.approx([low, high], abs=0.1)
    assert (row.p, row.n, row.clusters) == (pytest.approx(expected.pvalue, rel=0.3), 65, 65)


def test_a_group_of_equal_items_leaves_open_what_unseen_items_leave_open():
    rows = pd.DataFrame({"group": ["a"] * 40 + ["b"] * 40, "value": [0] * 40 + [1] * 40})
    row = bench.compare(
        rows, "value", between="group", cluster=None, stratum=None, paired=False
    ).iloc[0]
    # The share of unseen units (Clopper and Pearson) in both groups, as independent errors.
    unseen = 1 - 0.025 ** (1 / 40)
    arm = unseen / stats.t.ppf(0.975, 39) * math.sqrt(2) * stats.t.ppf(0.975, 78)
    assert (row.estimate, row.ci_high) == (-1, pytest.approx(-1 + arm))


def test_clusters_with_items_of_both_groups_are_resampled_together():
    # In each occupation women and men differ by 0.1, and occupations differ much more.
    levels = np.repeat(np.linspace(0, 10, 12), 2)
    rows = pd.DataFrame({"gender": ["woman", "man"] * 12, "value": levels})
    rows["occupation"] = np.arange(24) // 2
    rows["value"] += np.where(rows.gender == "woman", 0.1, 0.0) + np.tile([0.02, 0, 0, 0.02], 6)
    together, apart = (
        bench.compare(
            rows, "value", between="gender", cluster=cluster, stratum=None, paired=False
        ).iloc[0]
        for cluster in ("occupation", None)
    )
    assert together.estimate == apart.estimate == pytest.approx(0.1)
    assert (together.p < 0.001, together.clusters, apart.p > 0.9) == (True, 12, True)


def test_pairs_of_groups_are_adjusted_for_all_models_together():
    outcomes = pd.concat([PAIRED.assign(model=model) for model in "cd"], ignore_index=True)
    table = bench.compare(
        outcomes, "chosen", between="half", by="model", cluster="scene", stratum=None, paired=False
    )
    assert table[["model", "first", "second"]].drop_duplicates().shape == (2, 3)
    assert list(table.p_adjusted) == pytest.approx(list(np.minimum(2 * table.p, 1)))
