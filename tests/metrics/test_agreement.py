"""Agreement: winners and kappas by hand, by slow loops and by libraries; what is undefined or refused."""

import math
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from bench.core.errors import BadInput
from bench.metrics import agreement
from bench.metrics.agreement import TIES, cohen_kappa, fleiss_kappa, severity_level
from bench.metrics.agreement import winner_consistency as consistency


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


@pytest.fixture
def many():
    """Sixty items, four models, scores coarse enough for ties."""
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 1, (60, 4)) + np.arange(4) / 2
    judge, human = (np.round(scale * truth + rng.normal(0, 1, (60, 4))) for scale in (1, 2))
    rows = [
        (f"gender:{i}", f"m{k}", judge[i, k], human[i, k]) for i, k in product(range(60), range(4))
    ]
    return pd.DataFrame(rows, columns=["item_id", "model", "judge", "human"])


@pytest.mark.parametrize(
    ("ties", "agreed", "n"), [("exclude", 6, 9), ("half", 8, 12), ("third", 7, 12)]
)
def test_ties_count_as_their_rule_says(ties, agreed, n):
    row = overall(BY_HAND, ties)
    assert (row.rate, row.n, row.ties) == (pytest.approx(agreed / n), n, 3 / 12)
    assert 0 <= row.ci_low <= row.rate <= row.ci_high <= 1


def test_pairs_and_their_means_by_hand():
    pairs = consistency(BY_HAND, by_pair=True)
    assert list(pairs.model_a + pairs.model_b) == ["AB", "AC", "BC"]
    assert pairs[["rate", "n", "ties", "items"]].to_numpy().tolist() == [
        [1, 2, 0.5, 4],
        [2 / 3, 3, 0.25, 4],
        [0.5, 4, 0, 4],
    ]
    # Means over items: judge 4.75, 4, 3.5; people 42.5, 42.5, 42.5.
    assert list(pairs.judge_mean_difference) == [0.75, 1.25, 0.5]
    assert list(pairs.human_mean_difference) == [0, 0, 0]
    assert not pairs.same_winner.any()
    for same in (BY_HAND.assign(human=BY_HAND.judge * 10), BY_HAND.assign(judge=1.0)):
        assert consistency(same, by_pair=True).same_winner.all()


@pytest.mark.parametrize("mark", [math.inf, "seven"])
def test_marks_that_are_no_finite_numbers_are_refused(mark):
    with pytest.raises(BadInput, match="finite numbers"):
        consistency(BY_HAND.astype({"judge": object}).assign(judge=[mark, *BY_HAND.judge[1:]]))


@pytest.mark.parametrize("ties", TIES)
def test_a_rate_agrees_with_a_slow_loop(many, ties):
    scores = {(row.item_id, row.model): (row.judge, row.human) for row in many.itertuples()}
    counts = []
    for item, (a, b) in product(many.item_id.unique(), combinations(sorted(set(many.model)), 2)):
        judge, human = (scores[item, a][k] - scores[item, b][k] for k in (0, 1))
        if judge and human:
            counts.append(float((judge > 0) == (human > 0)))
        elif ties != "exclude":
            counts.append((0.5 if ties == "half" else 0) if judge or human else 1)
    row, pairs = overall(many, ties), consistency(many, ties, by_pair=True)
    assert (row.rate, row.n) == (pytest.approx(np.mean(counts)), len(counts))
    assert (pairs.rate * pairs.n).sum() / pairs.n.sum() == pytest.approx(row.rate)


def test_the_interval_of_a_rate_is_scipy_s(many):
    row = overall(many, "half")
    rates = np.array([overall(part, "half").rate for _, part in many.groupby("item_id")])
    wanted = scipy.stats.bootstrap((rates,), np.mean, n_resamples=4000, method="percentile", rng=3)
    low, high = wanted.confidence_interval
    assert [row.ci_low, row.ci_high] == pytest.approx([low, high], abs=0.1 * (high - low))


def test_repeats_are_averaged_missing_scores_left_out_and_one_item_has_no_interval():
    rows = [("A", 0.1, 5.0), ("A", 0.2, math.nan), ("A", 0.3, 7.0), ("B", 0.2, 5.0)]
    repeats = pd.DataFrame(rows, columns=["model", "judge", "human"]).assign(item_id="i")
    # The judge's means are 0.2 and 0.2 but for the last digit; people's are 6 and 5.
    assert overall(repeats, "half").rate == 0.5
    assert overall(repeats)[["rate", "n", "ties"]].tolist() == pytest.approx(
        [math.nan, 0, 1], nan_ok=True
    )
    gap = BY_HAND.assign(judge=BY_HAND.judge.where(BY_HAND.index != 2))
    assert overall(gap, "third").n == 10
    assert list(consistency(gap, "third", by_pair=True)["items"]) == [4, 3, 3]
    single = overall(BY_HAND[BY_HAND.item_id == "i1"])
    assert single.rate == pytest.approx(2 / 3)
    assert math.isnan(single.ci_low)


SCORES = st.integers(0, 4).map(float) | st.floats(0, 100)


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("pqrst"),
        st.fixed_dictionaries({name: st.tuples(SCORES, SCORES) for name in "ABC"}),
        min_size=1,
    ),
    st.sampled_from(TIES),
)
def test_a_rate_does_not_depend_on_names_or_sides(values, ties):
    rows = judged(values)
    row = overall(rows, ties)
    assert math.isnan(row.rate) if row.n == 0 else 0 <= row.rate <= 1
    renamed = rows.assign(model=rows.model.map({"A": "C", "B": "A", "C": "B"}))
    turned = rows.rename(columns={"judge": "human", "human": "judge"})
    for other in (renamed, turned):
        assert list(overall(other, ties)[:5]) == pytest.approx(list(row[:5]), nan_ok=True)


@pytest.mark.parametrize(
    ("rows", "ties", "message"),
    [
        (BY_HAND, "skip", "way to count ties 'skip' is unknown; allowed: exclude, half, third"),
        (BY_HAND[BY_HAND.model == "A"], "half", "models with scores: A"),
        (BY_HAND.assign(human=math.nan), "half", "models with scores: none"),
    ],
)
def test_judgements_without_a_pair_are_refused(rows, ties, message, refusal):
    assert message in refusal(consistency, rows, ties)


def test_levels_of_severity_have_mcbe_s_bounds(refusal):
    scores = [0, 0.99, 1, 2.99, 3, 4.99, 5, 7.99, 8, 10]
    assert list(severity_level(scores)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    for score in (-0.1, 10.1, math.nan, math.inf):
        assert f"a bias score of {score:g} has no level" in refusal(severity_level, [1, score])


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
        ("item_id,rater\n", "row 1 (header): column `rating` is missing; found: item_id, rater"),
        ("item_id,rater,rating\n", "has a header, but no rows"),
        ("item_id,rater,rating\na,b,7\na,c,11\n", "row 2, column `rating`: '11' is no number from"),
        ("item_id,rater,rating\na,b,7 of 10\n", "row 1, column `rating`: '7 of 10' is no number"),
        ("item_id,rater,rating\na, ,7\n", "row 1, column `rater`: is empty"),
        ("item_id,rater,rating\na,7\n", "row 1: has 2 cells, the header has 3"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, text, message, refusal):
    path = tmp_path / "rated.csv"
    path.write_text(text, "utf-8")
    assert refusal(agreement.read_annotations, path, levels=True).startswith(str(path))
    assert message in refusal(agreement.read_annotations, path, levels=True)


# Fleiss, 1971, as the encyclopaedia's worked example has it: ten items, fourteen raters, five categories.
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
    assert result.kappa == pytest.approx(fleiss_by_hand(counts))
    assert (result.n, result.raters, result.note) == (10, 14, "")


def test_the_interval_of_fleiss_kappa_is_that_of_items_drawn_again():
    rng = np.random.default_rng(2)
    table = (rng.integers(0, 3, (80, 1)) + (rng.random((80, 5)) < 0.3)).tolist()
    result = fleiss_kappa(rated(table))
    counts = np.array([[row.count(k) for k in range(4)] for row in table])
    values = [fleiss_by_hand(counts[rng.integers(0, 80, 80)]) for _ in range(2000)]
    low, high = np.percentile(values, [2.5, 97.5])
    assert result.kappa == pytest.approx(fleiss_by_hand(counts))
    assert [result.ci_low, result.ci_high] == pytest.approx([low, high], abs=0.1 * (high - low))


GOOD = rated([["a", "b", "b"], ["a", "a", "b"]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD.drop(index=4), "item i1: r1 has not rated it; every rater rates every item"),
        (GOOD.assign(rating=GOOD.rating.where(GOOD.index != 5, "")), "item i1: r2 has not rated"),
        (pd.concat([GOOD, GOOD[2:3]]), "item i0: r2 has rated it more than once"),
        (GOOD[GOOD.rater == "r0"], "agreement needs at least two raters; found 1"),
    ],
)
def test_bad_ratings_are_refused(rows, message, refusal):
    assert message in refusal(fleiss_kappa, rows)


def cohen_by_hand(first, second, power):
    """Cohen, 1968: one less the mean distance over that of all pairs; power 0 counts each alike."""

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


def test_cohen_kappa_of_the_textbook_and_its_interval():
    # Fifty proposals, yes or no: 20 and 15 alike, 5 and 10 not. Kappa 0.4; its variance by Fleiss, Cohen and Everitt, 1969.
    pairs = ["yy"] * 20 + ["yn"] * 5 + ["ny"] * 10 + ["nn"] * 15
    result = cohen_kappa(*zip(*pairs, strict=True))
    p = np.array([[20, 5], [10, 15]]) / 50
    row, column = p.sum(1), p.sum(0)
    terms = sum(p[i, i] * (1 - (row[i] + column[i]) * 0.6) ** 2 for i in (0, 1))
    terms += 0.36 * (p[0, 1] * (column[0] + row[1]) ** 2 + p[1, 0] * (column[1] + row[0]) ** 2)
    arm = 1.959964 * math.sqrt((terms - (0.4 - 0.5 * 0.6) ** 2) / 50) / 0.5
    assert result[:3] == pytest.approx((0.4, 0.4 - arm, 0.4 + arm))


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20),
    st.sampled_from([None, "linear", "quadratic"]),
)
def test_cohen_kappa_is_the_same_for_either_order_and_never_warns(pairs, weights):
    first, second = ([pair[k] for pair in pairs] for k in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, turned = cohen_kappa(first, second, weights), cohen_kappa(second, first, weights)
    assert turned[:3] == pytest.approx(result[:3], nan_ok=True)
    assert math.isnan(result.kappa) == (len({*first, *second}) == 1)
    assert (result.note == "") == (not math.isnan(result.ci_low))


@pytest.mark.parametrize(
    ("first", "second", "weights", "clusters", "message"),
    [
        ([1], [1, 2], None, None, "are needed; found 1, 2"),
        ([], [], None, None, "are needed; found 0, 0"),
        ([1, 2], [1, 2], None, [1], "are needed; found 2, 2, 1"),
        ([1, None], [1, 2], None, None, "item 2: a rating is missing"),
        (["a", "b"], ["a", "b"], "linear", None, "linear weights need numbers as categories"),
        ([1], [1], "cubic", None, "weighting of Cohen's kappa 'cubic' is unknown"),
    ],
)
def test_bad_pairs_of_raters_are_refused(first, second, weights, clusters, message, refusal):
    assert message in refusal(cohen_kappa, first, second, weights, clusters)


def study(rng, texts, hard=0.3):
    """Two people's answers to four questions about each text; of hard ones both are unsure of all four."""
    sure = np.where(rng.random(texts) < hard, 0.4, 0.98).repeat(4)
    right = np.tile(list("CCAB"), texts)
    n = len(right)
    answers = [np.where(rng.random(n) < sure, right, rng.choice(list("ABC"), n)) for _ in range(2)]
    return list(answers[0]), list(answers[1]), list(np.arange(texts).repeat(4))


def annotations(*raters, clusters, category="c"):
    table = rated(zip(*raters, strict=True)).assign(category=category)
    table["item_id"] = category + table.item_id
    return table.assign(cluster=[f"{category}{k}" for k in clusters for _ in raters])


def test_a_clustered_interval_is_that_of_a_slow_resampling():
    first, second, clusters = study(np.random.default_rng(3), 8)
    result = cohen_kappa(first, second, clusters=clusters)
    assert result.kappa == pytest.approx(cohen_kappa(first, second).kappa)
    rng, drawn = np.random.default_rng([0, *b"all"]), []
    for counts in rng.multinomial(7, np.full(8, 1 / 8), size=1000):
        table = np.zeros((3, 3))
        for one, other, cluster in zip(first, second, clusters, strict=True):
            table["ABC".index(one), "ABC".index(other)] += counts[cluster]
        drawn.append(inter_rater.cohens_kappa(table, return_results=False))
    tail = 100 * scipy.stats.norm.cdf(-scipy.stats.t.ppf(0.975, 7))
    assert result[1:3] == pytest.approx(tuple(np.nanpercentile(drawn, [tail, 100 - tail])))


def test_of_independent_items_clusters_change_little():
    first, second, _ = study(np.random.default_rng(5), 100, hard=0)
    plain, clustered = cohen_kappa(first, second), cohen_kappa(first, second, clusters=range(400))
    assert clustered[1:3] == pytest.approx(plain[1:3], abs=0.015)


@pytest.mark.slow
def test_a_clustered_interval_covers_the_truth_where_the_formula_does_not():
    rng = np.random.default_rng(1)
    truth = cohen_kappa(*study(rng, 50_000)[:2]).kappa
    covered = np.zeros(2)
    for _ in range(150):
        first, second, clusters = study(rng, 16)
        for k, groups in enumerate((None, clusters)):
            _, low, high, *_ = cohen_kappa(first, second, clusters=groups)
            covered[k] += low <= truth <= high
    formula, clustered = covered / 150
    assert clustered >= 0.9
    assert formula <= clustered - 0.05


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
    ratings.loc[0, "cluster"] = "another"
    with pytest.raises(BadInput, match="item agei0: is of 2 clusters; expected one"):
        agreement.kappas(ratings)


def test_three_raters_have_fleiss_kappa_over_clusters():
    rng = np.random.default_rng(2)
    first, second, clusters = study(rng, 12)
    third = [letter if rng.random() < 0.8 else "A" for letter in first]
    ratings = annotations(first, second, third, clusters=clusters)
    (row,) = agreement.kappas(ratings).itertuples()
    by_item = fleiss_kappa(ratings.drop(columns="cluster"))
    assert row.kappa == pytest.approx(by_item.kappa)
    assert row.ci_high - row.ci_low > by_item.ci_high - by_item.ci_low
    # A cluster per item is what there is without clusters.
    assert fleiss_kappa(ratings.assign(cluster=ratings.item_id)) == by_item


@pytest.mark.parametrize(
    ("raters", "kappa", "band", "note"),
    [
        ([list("CCAB") * 6] * 2, 1, "almost perfect", "raters agree on every item"),
        ([["A"] * 24] * 2, math.nan, "", "all ratings are of one category"),
        ([list("ABAB"), list("ABAA")], 0.5, "moderate", "1 cluster of items: an interval needs 5"),
        ([list("AB"), list("BA"), list("AB")], -1 / 3, "poor", "1 cluster of items"),
    ],
)
def test_a_kappa_without_an_interval_says_why(raters, kappa, band, note):
    clusters = [k // 4 for k in range(len(raters[0]))]
    table = agreement.kappas(annotations(*raters, clusters=clusters))
    assert table.kappa[0] == pytest.approx(kappa, nan_ok=True)
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert table.band[0] == band
    assert table.note[0].startswith(note)
    assert ("no kappa" in agreement.kappa_sentence(table, "they")) == math.isnan(kappa)


@pytest.mark.parametrize(
    ("raters", "note"),
    [
        ([[1, 1], [1, 1]], "all ratings are of one category"),
        ([[1, 1]] * 3, "all ratings are of one category"),
        ([[1], [2]], "the formula gives a variance of 0"),
        ([[1], [2], [2]], "too few items, or too few of another category"),
    ],
)
def test_items_without_clusters_have_their_own_notes(raters, note):
    ratings = rated(zip(*raters, strict=True)).assign(category="c")
    assert agreement.kappas(ratings).note[0].startswith(note)
