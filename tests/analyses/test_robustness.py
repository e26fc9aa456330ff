"""Two wordings compared: by hand, against SciPy, and the McBE paper's printed numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.figures import robustness as two
from bench.metrics import robustness
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.mcbe import paper
from bench.metrics.robustness import Points
from bench.metrics.robustness_findings import by_model, findings, title
from bench.metrics.table import ALL, Headline
from tests.helpers.drawing import drawn, ticks, told

LONG = "simulated:competence=0.8,position=0.3,refuse=0.1,seed=3"

AMBIGUOUS = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
SCORE = Headline(
    "sc", "score", "Classification (100: all right)", "", False, False, (0, 100), worse="worse"
)


def made(
    values: dict[str, dict[str, tuple[float, float]]],
    spread: float = 0.01,
    headline: Headline = AMBIGUOUS,
    same: float = 0.5,
) -> Points:
    """Points from {model: {category: (first, second)}}, resampled with a standard deviation of `spread` of the difference."""
    dice, pairs = np.random.default_rng(0), {}
    for model, row in values.items():
        one, other = Replicates(headline.limits), Replicates(headline.limits)
        for category, (first, second) in row.items():
            place = (category, headline.task, headline.metric)
            one.add(place, np.full(1 + DRAWS, first), Sample(2000, 1))
            noise = np.concatenate([[0], dice.normal(0, spread, DRAWS)])
            other.add(place, second + noise, Sample(2000, 1))
        index = pd.MultiIndex.from_product([[c for c in row if c != ALL], [headline.task]])
        answered = pd.DataFrame(
            {"n": 10, "same": same, "valid_first": 1.0, "valid_second": 0.8}, index=index
        )
        pairs[model] = (one, other, answered)
    return robustness.points(pairs, [headline])


@pytest.fixture
def three() -> Points:
    return made(
        {
            "a": {"x": (0.1, 0.2), "y": (0.2, 0.2), ALL: (0.15, 0.20)},
            "b": {"x": (0.4, 0.3), "y": (0.5, 0.6), ALL: (0.45, 0.45)},
            "c": {"x": (0.3, 0.5), "y": (0.7, 0.9), ALL: (0.50, 0.70)},
        }
    )


def everything(found: Points, headline: Headline = AMBIGUOUS) -> list[str]:
    correlated, limits = robustness.correlated(found), robustness.limits(found)
    return findings(
        found.table, correlated, limits, robustness.rank_changes(found.table, [headline])
    )


def test_points_are_differences_with_intervals_and_counts(three: Points) -> None:
    row = three.table.set_index(["model", "category"]).loc["c", "x"]
    assert (row["first"], row.second, row.difference) == pytest.approx((0.3, 0.5, 0.2))
    assert (row.ci_low, row.ci_high) == pytest.approx((0.2 - 0.0196, 0.2 + 0.0196), abs=0.003)
    assert row.detectable == pytest.approx(0.028, rel=0.1)
    assert (row.n, row.valid_first, row.valid_second, row["higher"]) == (10, 1.0, 0.8, "more bias")
    assert three.table.set_index(["model", "category"]).n["c", ALL] == 20


def test_correlations_are_scipy_s_pooled_and_inside_each_category(three: Points) -> None:
    found = robustness.correlated(three).set_index("coefficient")
    first, second = [0.1, 0.2, 0.4, 0.5, 0.3, 0.7], [0.2, 0.2, 0.3, 0.6, 0.5, 0.9]
    for name, compute in (
        ("pearson", stats.pearsonr),
        ("spearman", stats.spearmanr),
        ("kendall", stats.kendalltau),
    ):
        should = compute(first, second)
        assert found.value[name] == pytest.approx(should.statistic)
        assert found.p[name] == pytest.approx(should.pvalue)
        inside = [
            compute([0.1, 0.4, 0.3], [0.2, 0.3, 0.5])[0],
            compute([0.2, 0.5, 0.7], [0.2, 0.6, 0.9])[0],
        ]
        assert found.within_category[name] == pytest.approx(np.mean(inside))
        assert (found.lowest[name], found.highest[name]) == pytest.approx(
            (min(inside), max(inside))
        )
    assert list(found.n) == [6, 6, 6]
    assert list(found.defined) == list(found.categories) == [2, 2, 2]


def test_limits_of_agreement_by_hand(three: Points) -> None:
    row = robustness.limits(three).iloc[0]
    differences = [0.1, 0, -0.1, 0.1, 0.2, 0.2]
    assert row["mean"] == pytest.approx(np.mean(differences))
    sd = np.std(differences, ddof=1)
    assert (row.limits_low, row.limits_high) == pytest.approx(
        (np.mean(differences) - 1.96 * sd, np.mean(differences) + 1.96 * sd)
    )
    assert (row.n, row.beyond_chance, row.of) == (6, 5, 6)
    assert row.most == pytest.approx(0.2)
    # Six independent differences: their mean is surer than each by the square root of six.
    assert row.ci_high - row.ci_low == pytest.approx(2 * 1.96 * 0.01 / math.sqrt(6), rel=0.12)


def test_ranks_follow_the_headline_s_direction(three: Points) -> None:
    found = robustness.rank_changes(three.table, [AMBIGUOUS])
    assert list(found.rank_first) == [1, 2, 3]
    assert list(found.change) == [0, 0, 0]
    points = made(
        {"a": {"x": (50, 60), ALL: (50, 60)}, "b": {"x": (40, 70), ALL: (40, 70)}}, 1, SCORE
    )
    found = robustness.rank_changes(points.table, [SCORE])
    assert found[["rank_first", "rank_second", "change"]].to_numpy().tolist() == [
        [1, 2, 1],
        [2, 1, -1],
    ]
    assert list(robustness.same_order(points.table)[["same", "categories"]].iloc[0]) == [0, 1]
    assert list(robustness.same_order(three.table)[["same", "categories"]].iloc[0]) == [1, 2]


def test_undefined_scores_are_kept_with_a_reason_and_count_nowhere() -> None:
    found = made(
        {
            name: {"x": (0.1 * k, 0.2 * k), "y": (0.1, math.nan), ALL: (0.1, math.nan)}
            for k, name in enumerate("abcd")
        }
    )
    assert set(found.table.note) == {"", "no score under the second wording"}
    correlated, limits = robustness.correlated(found), robustness.limits(found)
    assert set(correlated.n) == {4}
    assert (correlated.defined == 1).all()
    assert (correlated.categories == 2).all()
    assert limits.n[0] == 4
    assert robustness.rank_changes(found.table, [AMBIGUOUS]).empty
    assert (
        "a, Ambiguous: share: cannot be compared: no score under the second wording."
        in by_model(found.table)
    )


def test_sentences_are_never_stronger_than_the_intervals(three: Points) -> None:
    told = [text.replace("\u00a0", " ") for text in by_model(three.table)]
    assert told[0].startswith(
        "a, Ambiguous: share: 0.05 higher under the second wording (95 % interval +0.03"
    )
    assert told[1].startswith("b, Ambiguous: share: no difference could be shown: 0.00 (95 %")
    assert told[1].endswith("These data would have shown one of 0.03.")
    assert "50% of 20 questions were answered alike" in told[2]
    found = everything(three)
    assert "All 3 models keep their place." in found[0]
    assert "5 of 6 by more than chance (without any effect about 0 would)" in found[0]
    assert (
        "100% of its answers could be read under the first wording, 80% under the second"
        in found[1]
    )
    three.table.loc[three.table.category == ALL, "valid_first"] = 0.8
    assert "only 80% of its answers could be read under either wording." in everything(three)[1]
    alike = made({"a": {"x": (0.1, 0.1), "y": (0.3, 0.3), ALL: (0.2, 0.2)}}, 0.0, same=1.0)
    assert "the same answer to each of 20 questions" in by_model(alike.table)[0]
    one = three._replace(table=three.table[three.table.model != "c"])
    assert "within a category there are too few models" in everything(one)[0]
    assert "no correlation exists (2 points" in everything(one._replace(table=three.table[:3]))[0]


def test_the_title_claims_an_effect_only_where_there_is_one() -> None:
    def headed(found: Points) -> str:
        return title(robustness.correlated(found), robustness.limits(found))

    dice = np.random.default_rng(1)
    noise = {m: {f"c{k}": (0.5, 0.5 + dice.normal(0, 0.05)) for k in range(6)} for m in "abcd"}
    assert headed(made(noise, 0.05)).startswith("Too few scores")  # the first is constant
    noise = {
        m: {c: (v[0] + dice.normal(0, 0.02), v[1]) for c, v in row.items()}
        for m, row in noise.items()
    }
    assert headed(made(noise, 0.06)).startswith("No effect of the wording could be shown (ρ = ")
    assert headed(made(noise, 0.001)).startswith("Scores depend on the wording (ρ = ")
    order = {
        m: {f"c{k}": (0.1 * j + k, 0.1 * j + k + 0.01) for k in range(6)}
        for j, m in enumerate("abcd")
    }
    assert headed(made(order)).startswith("Both wordings order scores alike (ρ = 1.00)")


@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_nothing_moves_where_both_wordings_are_one(seed: int) -> None:
    values = np.random.default_rng(seed).random((3, 4))
    found = made(
        {"abc"[k]: {f"c{n}": (v, v) for n, v in enumerate(row)} for k, row in enumerate(values)},
        0.0,
    )
    limits, correlated = robustness.limits(found).iloc[0], robustness.correlated(found)
    assert (limits["mean"], limits.sd, limits.beyond_chance) == (0, 0, 0)
    assert correlated.value.tolist() == pytest.approx([1, 1, 1])
    assert robustness.same_order(found.table).same[0] == 4


def test_all_eight_numbers_of_the_paper_s_table_12() -> None:
    found = paper.table_12_recomputed()
    assert list(found.same) == ["yes"] * 4
    rows = found.set_index(["task", "coefficient"])
    printed = {
        ("sc", "spearman"): ("1", "0"),
        ("sc", "pearson"): ("0.999", "2.63e-10"),
        ("bs", "spearman"): ("0.967", "2.16e-5"),
        ("bs", "pearson"): ("0.999", "2.76e-11"),
    }
    for key, (value, p) in printed.items():
        assert tuple(rows.loc[key, ["printed", "printed_p"]]) == (value, p)
        assert round(float(rows.value[key]), 3) == float(value)
    table = paper.table_12().groupby("task")
    for (task, name), (value, p) in printed.items():
        some = table.get_group(task)
        should = (stats.spearmanr if name == "spearman" else stats.pearsonr)(
            some["first"], some.second
        )
        assert (round(should.statistic, 3), float(f"{should.pvalue:.2e}")) == (
            float(value),
            float(p),
        )
    table = paper.table_12()
    assert len(table) == 18
    assert robustness.same_order(table).same.tolist() == [3, 3]
    limits = robustness.limits(Points(table, {})).set_index("task")
    assert limits.most.round(2).tolist() == [1.47, 2.57]
    assert limits.ci_low.isna().all()
    assert (table[table.task == "bs"].difference < 0).all()


def test_no_other_cells_give_the_printed_numbers() -> None:
    table = paper.table_12()
    both = stats.pearsonr(table["first"], table.second)
    assert f"{both.pvalue:.2e}" not in ("2.63e-10", "2.76e-11")
    for _, some in table.groupby(["task", "category"]):
        assert stats.pearsonr(some["first"], some.second).pvalue > 1e-3


def test_two_wordings_of_the_paper_s_table() -> None:
    table = paper.table_12()
    found = robustness.correlated(Points(table, {})), robustness.limits(Points(table, {}))
    fig = drawn(two.agreement(table, *found))
    left, right = fig.axes[:2]
    marks = [line for line in left.lines if line.get_marker() != "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 3, 3]
    assert list(marks[0].get_xdata()) == [34.83, 38.15, 30.64]
    assert list(right.lines[0].get_ydata()) == pytest.approx([0.42, -1.47, 1.38])
    assert (
        fig.get_suptitle()
        == "Both wordings order scores alike (ρ = 0.97 to 1.00); single ones move by up to 2.6"
    )
    assert any(text.startswith("mean") for text in told(right))
    assert "better →" in left.get_xlabel()


@pytest.mark.parametrize("models", [["a"], ["a", LONG], [f"model-{k}" for k in range(12)]])
def test_differences_of_whole_scores_stand_beside_nought(models: list[str]) -> None:
    headline = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
    dice = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["x", "y", "z"], ["ambiguous"]])
    answered = pd.DataFrame(
        {"n": 9, "same": 0.5, "valid_first": 1.0, "valid_second": 1.0}, index=index
    )
    pairs = {}
    for model in models:
        one, other = Replicates(), Replicates()
        for category in ("x", "y", "z", "all"):
            place, values = (category, "ambiguous", "s_amb"), dice.normal(0.5, 0.02, 1001)
            one.add(place, values, Sample(1001, 1))
            other.add(place, values + dice.normal(0.3, 0.01, 1001), Sample(1001, 1))
        pairs[model] = (one, other, answered)
    found = robustness.points(pairs, [headline])
    fig = drawn(two.differences(found.table))
    assert fig.get_suptitle().startswith(f"{len(models)} of {len(models)} whole scores move")
    assert [name.replace("\n", "") for name in ticks(fig.axes[0].get_yticklabels())] == models[::-1]
    assert "more bias →" in fig.axes[0].get_xlabel()
    drawn(two.agreement(found.table, robustness.correlated(found), robustness.limits(found)))
