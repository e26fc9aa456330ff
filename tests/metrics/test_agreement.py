"""Agreement: winners and kappas by hand, by slow loops and by libraries; notes and refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats import inter_rater

from bench.metrics import agreement
from bench.metrics.agreement import cohen_kappa, fleiss_kappa, severity_level
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


def test_ties_pairs_and_their_means_by_hand():
    for ties, agreed, n in (("exclude", 6, 9), ("half", 8, 12), ("third", 7, 12)):
        row = overall(BY_HAND, ties)
        assert (row.rate, row.n, row.ties) == (pytest.approx(agreed / n), n, 3 / 12)
        assert 0 <= row.ci_low <= row.rate <= row.ci_high <= 1
    pairs = consistency(BY_HAND, by_pair=True)
    assert pairs.drop(columns=["ci_low", "ci_high"]).to_numpy().tolist() == [
        # Means over items: judge 4.75, 4, 3.5; people 42.5, 42.5, 42.5.
        ["A", "B", 1, 2, 0.5, 4, 0.75, 0, False],
        ["A", "C", 2 / 3, 3, 0.25, 4, 1.25, 0, False],
        ["B", "C", 0.5, 4, 0, 4, 0.5, 0, False],
    ]
    for same in (BY_HAND.assign(human=BY_HAND.judge * 10), BY_HAND.assign(judge=1.0)):
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
        ("item_id,rater,rating\n", "has a header, but no rows"),
        ("item_id,rater,rating\na,b,7\na,c,11\n", "row 2, column `rating`: '11' is no number from"),
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


def fleiss_by_hand(counts):
    """Fleiss, 1971, equations 2 to 7."""
    n, raters = len(counts), counts[0].sum()
    agreed = [sum(c * (c - 1) for c in row) / (raters * (raters - 1)) for row in counts]
    chance = sum((counts[:, k].sum() / (n * raters)) ** 2 for k in range(counts.shape[1]))
    return (sum(agreed) / n - chance) / (1 - chance)


def test_fleiss_kappa_of_the_textbook():
    counts = np.array([row.split() for row in FLEISS.split(";")], int)
    result = fleiss_kappa(rated([np.repeat(range(5), row) for row in counts]))
    assert round(result.kappa, 3) == 0.210
    assert (result.n, result.raters, result.note) == (10, 14, "")
    assert result.kappa == pytest.approx(fleiss_by_hand(counts))
    assert result.ci_low < result.kappa < result.ci_high


def cohen_by_hand(first, second, power):
    """Cohen, 1968: one less the mean distance over that of all pairs; power 0: each alike."""

    def distance(a, b):
        return float(a != b) * abs(a - b) ** power

    observed = np.mean([distance(a, b) for a, b in zip(first, second, strict=True)])
    return 1 - observed / np.mean([distance(a, b) for a in first for b in second])


@pytest.mark.parametrize(("weights", "power"), [(None, 0), ("linear", 1), ("quadratic", 2)])
def test_cohen_kappa_agrees_with_its_formula(weights, power):
    rng = np.random.default_rng(4)
    # Level 2 is never given, so that the distance of 1 and 3 must still be 2.
    first = rng.choice([0, 1, 3, 4], 60)
    second = np.where(rng.random(60) < 0.6, first, rng.choice([0, 1, 3, 4], 60))
    plain = cohen_kappa(first, second, weights)
    clustered = cohen_kappa(first, second, weights, list(np.arange(60) // 3))
    for result in (plain, clustered):
        assert result.kappa == pytest.approx(cohen_by_hand(first, second, power))
        assert result.ci_low < result.kappa < result.ci_high
        assert (result.n, result.raters, result.note) == (60, 2, "")


GOOD = rated([["a", "b", "b"], ["a", "a", "b"]])
CLUSTERED = GOOD.assign(category="c", cluster=["x", "y", "x", "z", "z", "z"])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (consistency, (BY_HAND, "skip"), "'skip' is unknown; allowed: exclude, half, third"),
        (consistency, (BY_HAND.assign(human=NAN),), "models with scores: none"),
        (consistency, (BY_HAND.assign(judge=math.inf),), "finite numbers"),
        (severity_level, ([1, 10.1],), "a bias score of 10.1 has no level"),
        (severity_level, ([1, NAN],), "a bias score of nan has no level"),
        (fleiss_kappa, (GOOD.replace({"rating": {"b": ""}}),), "item i0: r1 has not rated"),
        (fleiss_kappa, (pd.concat([GOOD, GOOD[2:3]]),), "item i0: r2 has rated it more than once"),
        (agreement.kappas, (CLUSTERED,), "item i0: is of 2 clusters; expected one"),
        (cohen_kappa, ([1, 2], [1, 2], None, [1]), "are needed; found 2, 2, 1"),
        (cohen_kappa, ([1, None], [1, 2]), "item 2: a rating is missing"),
        (cohen_kappa, (["a"], ["b"], "linear"), "linear weights need numbers as categories"),
        (cohen_kappa, ([1], [1], "cubic"), "weighting of Cohen's kappa 'cubic' is unknown"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, arguments, message, refusal):
    assert message in refusal(call, *arguments)


def study(rng, texts, hard=0.3):
    """Two people's answers to four questions a text; of hard texts both are unsure of all four."""
    sure = np.where(rng.random(texts) < hard, 0.4, 0.98).repeat(4)
    right = np.tile(list("CCAB"), texts)
    n = len(right)
    answers = [np.where(rng.random(n) < sure, right, rng.choice(list("ABC"), n)) for _ in range(2)]
    return list(answers[0]), list(answers[1]), list(np.arange(texts).repeat(4))


def annotations(*raters, clusters, category="c"):
    table = rated(zip(*raters, strict=True)).assign(category=category)
    table["item_id"] = category + table.item_id
    return table.assign(cluster=[f"{category}{k}" for k in clusters for _ in raters])


def test_kappas_by_category_are_statsmodels_and_take_clusters():
    parts = []
    for name, texts in (("age", 12), ("race", 4)):
        *answers, clusters = study(np.random.default_rng(texts), texts)
        parts.append(annotations(*answers, clusters=clusters, category=name))
    ratings = pd.concat(parts, ignore_index=True)
    table = agreement.kappas(ratings).set_index("category")
    assert table[["n", "clusters"]].to_numpy().tolist() == [[64, 16], [48, 12], [16, 4]]
    assert table.ci_low.notna().tolist() == [True, True, False]
    assert table.note["race"] == "4 clusters of items: an interval needs 5 at least"
    counts = pd.crosstab(*(part.rating.to_numpy() for _, part in parts[0].groupby("rater")))
    assert table.kappa["age"] == pytest.approx(inter_rater.cohens_kappa(counts.to_numpy()).kappa)
    without = agreement.kappas(ratings.drop(columns="cluster")).set_index("category")
    assert "clusters" not in without
    assert list(without.kappa) == pytest.approx(list(table.kappa))
    other = agreement.kappas(ratings.assign(rater=ratings.rater + ratings.category))
    assert other.note[0] == "categories have other raters, so there is no kappa over all of them"
    # Three raters have Fleiss' kappa; a cluster per item is what there is without clusters.
    third = parts[0].assign(rater="r2").drop_duplicates("item_id")
    three = pd.concat([parts[0], third])
    by_item = fleiss_kappa(three.drop(columns="cluster"))
    (row,) = agreement.kappas(three).itertuples()
    assert row.kappa == pytest.approx(by_item.kappa)
    assert row.ci_high - row.ci_low > by_item.ci_high - by_item.ci_low
    assert fleiss_kappa(three.assign(cluster=three.item_id)) == by_item


ALIKE, ONE_CLUSTER = "all ratings are of one category", "1 cluster of items: an interval needs 5"


@pytest.mark.parametrize(
    ("raters", "per_cluster", "kappa", "band", "note"),
    [
        ([list("CCAB") * 6] * 2, 4, 1, "almost perfect", "raters agree on every item"),
        ([["A"] * 24] * 2, 4, NAN, "", ALIKE),
        ([list("ABAB"), list("ABAA")], 4, 0.5, "moderate", ONE_CLUSTER),
        ([list("AB"), list("BA"), list("AB")], 4, -1 / 3, "poor", ONE_CLUSTER),
        ([[1, 1]] * 3, 0, NAN, "", ALIKE),
        ([[1], [2]], 0, 0, "poor", "the formula gives a variance of 0"),
        ([[1], [2], [2]], 0, -1 / 2, "poor", "too few items, or too few of another category"),
    ],
)
def test_a_kappa_without_an_interval_says_why(raters, per_cluster, kappa, band, note):
    ratings = annotations(
        *raters, clusters=[k // (per_cluster or 1) for k in range(len(raters[0]))]
    )
    table = agreement.kappas(ratings if per_cluster else ratings.drop(columns="cluster"))
    assert table.kappa[0] == pytest.approx(kappa, nan_ok=True)
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert table.band[0] == band
    assert table.note[0].startswith(note)
