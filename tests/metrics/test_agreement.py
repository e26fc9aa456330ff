"""Agreement: winners and coefficients by hand and by libraries; notes and refusals."""

import math

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

import bench
from bench.metrics import agreement
from bench.metrics.agreement import severity_level
from bench.metrics.agreement import winner_consistency as consistency

NAN = math.nan


def judged(values):
    """Judgements from {item: {model: (judge, human)}}."""
    rows = [(item, name, *both) for item, each in values.items() for name, both in each.items()]
    return pd.DataFrame(rows, columns=["item_id", "model", "judge", "human"])


# Of the three pairs of an item in turn (A B, A C, B C): judge and people name the same winner (+),
# another one (-), or one side (1) or both (2) name none.
BY_HAND = judged(
    {
        "i1": {"A": (9, 80), "B": (5, 60), "C": (1, 70)},  # + + -
        "i2": {"A": (5, 50), "B": (5, 60), "C": (2, 50)},  # 1 1 +
        "i3": {"A": (4, 30), "B": (4, 30), "C": (8, 20)},  # 2 - -
        "i4": {"A": (1, 10), "B": (2, 20), "C": (3, 30)},  # + + +
    }
)


def overall(judgements, ties="exclude"):
    return consistency(judgements, ties).iloc[0]


@pytest.mark.parametrize(
    ("ties", "agreed", "n"), [("exclude", 6, 9), ("half", 8, 12), ("third", 7, 12)]
)
def test_ties_by_hand(ties, agreed, n):
    row = overall(BY_HAND, ties)
    assert (row.rate, row.n, row.ties) == (pytest.approx(agreed / n), n, 3 / 12)
    assert 0 <= row.ci_low <= row.rate <= row.ci_high <= 1


def test_pairs_and_their_means_by_hand():
    pairs = consistency(BY_HAND, by_pair=True)
    assert pairs.drop(columns=["ci_low", "ci_high"]).to_numpy().tolist() == [
        # Means over items: judge 4.75, 4, 3.5; people 42.5, 42.5, 42.5.
        ["A", "B", 1, 2, 0.5, 4, 0.75, 0, False],
        ["A", "C", 2 / 3, 3, 0.25, 4, 1.25, 0, False],
        ["B", "C", 0.5, 4, 0, 4, 0.5, 0, False],
    ]
    same = BY_HAND.assign(human=BY_HAND.judge * 10)
    assert consistency(same, by_pair=True).same_winner.all()


def test_repeats_are_averaged_missing_scores_left_out_and_one_item_has_no_interval():
    rows = [("A", 0.1, 5.0), ("A", 0.2, NAN), ("A", 0.3, 7.0), ("B", 0.2, 5.0)]
    repeats = pd.DataFrame(rows, columns=["model", "judge", "human"]).assign(item_id="i")
    # The judge's means are 0.2 and 0.2 but for the last digit; people's are 6 and 5.
    for marks in (repeats, repeats.astype({"judge": object, "human": "str"}).replace("nan", NAN)):
        assert overall(marks, "half").rate == 0.5
        row = overall(marks)
        assert (row.n, row.ties, math.isnan(row.rate)) == (0, 1, True)
    gap = BY_HAND.assign(judge=BY_HAND.judge.where(BY_HAND.index != 2))
    assert overall(gap, "third").n == 10
    assert list(consistency(gap, "third", by_pair=True)["items"]) == [4, 3, 3]
    single = overall(BY_HAND[BY_HAND.item_id == "i1"])
    assert single[["rate", "ci_low"]].tolist() == pytest.approx([2 / 3, NAN], nan_ok=True)


def test_people_s_scores_and_annotations_are_read(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("item_id,model,human,who\ng:1, a ,69.5,x\ng:1,b,0,x\n", "utf-8-sig")
    table = agreement.read_human(path)
    assert list(table) == ["item_id", "model", "human"]
    assert table.to_numpy().tolist() == [["g:1", "a", 69.5], ["g:1", "b", 0]]
    path.write_text("item_id,rater,rating,category\ng:1,x,4,\ng:2, y ,9.5,own\n", "utf-8")
    rows = agreement.read_annotations(path, levels=True).to_numpy().tolist()
    assert rows == [["g", "g:1", "x", "level 3"], ["own", "g:2", "y", "level 5"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,rater,rating\n", "has no rows"),
        (
            "item_id,rater,rating\na,b,7\na,c,11\n",
            "row 2, column `rating`: '11' is not a number from 0 to 10",
        ),
        ("item_id,rater,rating\na, ,7\n", "row 1, column `rater`: is empty"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, text, message, refusal):
    path = tmp_path / "rated.csv"
    path.write_text(text, "utf-8")
    found = refusal(agreement.read_annotations, path, levels=True)
    assert found.startswith(str(path))
    assert message in found


# Fleiss, 1971, as the encyclopaedia's worked example has it: ten items, fourteen raters, five
# categories.
FLEISS = """0 0 0 0 14; 0 2 6 4 2; 0 0 3 5 6; 0 3 9 2 0; 2 2 8 1 1;
            7 7 0 0 0; 3 2 6 3 0; 2 5 3 2 2; 6 5 2 1 0; 0 2 2 3 7"""


def rated(table):
    """Ratings from rows of items and columns of raters."""
    rows = [(f"i{i}", f"r{k}", value) for i, row in enumerate(table) for k, value in enumerate(row)]
    return pd.DataFrame(rows, columns=["item_id", "rater", "rating"])


def alpha(ratings, measurement):
    return bench.agreement(ratings, measurement=measurement).iloc[0]


def kappa(ratings):
    return bench.agreement(ratings).iloc[1]


def test_fleiss_kappa_of_the_textbook():
    counts = np.array([row.split() for row in FLEISS.split(";")], int)
    result = kappa(rated([np.repeat(range(5), row) for row in counts]))
    assert round(result.estimate, 3) == 0.210
    assert (result.coefficient, result.n, result.raters, result.note) == ("Fleiss", 10, 14, "")
    assert result.estimate == pytest.approx(inter_rater.fleiss_kappa(counts))
    assert result.ci_low < result.estimate < result.ci_high


# Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C): 4
# observers, 12 units. The twelfth unit has one rating.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


@pytest.mark.parametrize(
    ("measurement", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_published_values_of_alpha_with_gaps(measurement, value):
    result = alpha(rated(zip(*PUBLISHED, strict=True)), measurement)
    assert result.estimate == pytest.approx(value, abs=5e-4)
    assert (result.n, result.raters, result.note) == (11, 4, "")
    assert result.ci_low < result.estimate < result.ci_high <= 1


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=3, max_size=3), min_size=2),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
@settings(max_examples=20, deadline=None)
def test_alpha_is_that_of_the_krippendorff_package(rows, measurement):
    matrix = np.array([[NAN if cell is None else cell for cell in row] for row in rows])
    assume((~np.isnan(matrix)).any(0).sum() >= 2)
    result = alpha(rated(matrix), measurement)
    paired = matrix[(~np.isnan(matrix)).sum(1) >= 2].T
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(result.estimate)
        assert result.note.startswith(("all ratings are alike", "no item has two ratings"))
        return
    expected = krippendorff.alpha(paired, level_of_measurement=measurement)
    assert result.estimate == pytest.approx(expected, abs=1e-9)


GOOD = rated([["a", "b", "b"], ["a", "a", "b"]])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (consistency, (BY_HAND, "skip"), "'skip' is unknown; allowed: exclude, half, third"),
        (consistency, (BY_HAND.assign(human=NAN),), "models with scores: none"),
        (consistency, (BY_HAND.assign(judge=math.inf),), "inf is not a number"),
        (severity_level, ([1, 10.1],), "a bias score of 10.1 has no level"),
        (severity_level, ([1, NAN],), "a bias score of nan has no level"),
        (bench.agreement, (pd.concat([GOOD, GOOD[2:3]]),), "the same item_id 'i0', rater 'r2'"),
        (bench.agreement, (GOOD.assign(cluster=[*"xyxzzz"]),), "item i0: is of 2 clusters"),
        (bench.agreement, (GOOD[GOOD.rater == "r0"],), "at least two raters; found 1"),
        (bench.agreement, (GOOD, None, "ratio"), "allowed: nominal, ordinal, interval"),
        (bench.agreement, (GOOD, None, "interval"), "column `rating`: 'a' is not a number"),
        (bench.agreement, (rated([[k, k] for k in range(70)]), None, "ordinal"), "at most 60"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, arguments, message, refusal):
    assert message in refusal(call, *arguments)


def study(rng, texts, hard=0.3):
    """Two people's answers to four questions a text; of hard texts both are unsure of all four."""
    sure = np.where(rng.random(texts) < hard, 0.4, 0.98).repeat(4)
    right = np.tile(list("CCAB"), texts)
    n = len(right)
    return [np.where(rng.random(n) < sure, right, rng.choice(list("ABC"), n)) for _ in range(2)]


def annotations(*raters, per_cluster):
    table = rated(zip(*raters, strict=True))
    if not per_cluster:
        return table
    clusters = [k // per_cluster for k in range(len(raters[0])) for _ in raters]
    return table.assign(cluster=clusters)


def test_cohen_s_kappa_is_statsmodels_with_and_without_clusters():
    raters = study(np.random.default_rng(12), 12)
    plain, clustered = (kappa(annotations(*raters, per_cluster=n)) for n in (0, 4))
    expected = inter_rater.cohens_kappa(pd.crosstab(*raters).to_numpy())
    numbers = plain[["estimate", "ci_low", "ci_high"]].tolist()
    assert numbers == pytest.approx([expected.kappa, expected.kappa_low, expected.kappa_upp])
    assert clustered.estimate == pytest.approx(expected.kappa)
    assert clustered.ci_low < clustered.estimate < clustered.ci_high


ALIKE, ONE_CLUSTER = "all ratings are of one category", "1 cluster of items: an interval needs 5"


@pytest.mark.parametrize(
    ("raters", "per_cluster", "value", "note"),
    [
        ([list("CCAB") * 6] * 2, 4, 1, "raters agree on every item"),
        ([["A"] * 24] * 2, 4, NAN, ALIKE),
        ([list("ABAB"), list("ABAA")], 4, 0.5, ONE_CLUSTER),
        ([list("AB"), list("BA"), list("AB")], 4, -1 / 3, ONE_CLUSTER),
        ([[1, 1]] * 3, 0, NAN, ALIKE),
        ([[1], [2]], 0, 0, "the formula gives a variance of 0"),
        ([[1], [2], [2]], 0, -1 / 2, "too few items, or too few of another category"),
    ],
)
def test_a_kappa_without_an_interval_says_why(raters, per_cluster, value, note):
    result = kappa(annotations(*raters, per_cluster=per_cluster))
    assert result.estimate == pytest.approx(value, nan_ok=True)
    assert np.isnan([result.ci_low, result.ci_high]).all()
    assert result.note.startswith(note)
