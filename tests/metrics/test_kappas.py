"""Kappas of items that are not independent: intervals by bootstrap over clusters, against a slow one and in simulated studies."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats import inter_rater

from bench.core.errors import BadInput
from bench.metrics import agreement
from bench.metrics.agreement import clustered_kappa, cohen_kappa, fleiss_kappa

LABELS = np.array(list("CCAB"))


def study(dice, templates, hard=0.3):
    """Two people's answers to four forms of each template; in hard ones both are unsure of all four."""
    sure = np.where(dice.random(templates) < hard, 0.4, 0.98).repeat(4)
    right = np.tile(LABELS, templates)
    given = [
        np.where(dice.random(len(right)) < sure, right, dice.choice(list("ABC"), len(right)))
        for _ in range(2)
    ]
    return list(given[0]), list(given[1]), list(np.arange(templates).repeat(4))


def tall(*raters, clusters, category="c"):
    rows = [
        {
            "category": category,
            "item_id": f"{category}{k}",
            "rater": f"r{who}",
            "rating": rating,
            "cluster": f"{category}{clusters[k]}",
        }
        for who, given in enumerate(raters)
        for k, rating in enumerate(given)
    ]
    return pd.DataFrame(rows)


def slow(first, second, clusters, draws=1000):
    """Clusters drawn one by one with the bootstrap's own dice, kappa of each resample by statsmodels, percentiles by Student's t."""
    names = sorted(set(clusters))
    n = len(names)
    dice = np.random.default_rng([0, *b"all"])
    found = []
    for counts in dice.multinomial(n - 1, np.full(n, 1 / n), size=draws):
        table = np.zeros((3, 3))
        for name, count in zip(names, counts, strict=True):
            for one, other, cluster in zip(first, second, clusters, strict=True):
                table["ABC".index(one), "ABC".index(other)] += count * (cluster == name)
        found.append(inter_rater.cohens_kappa(table, return_results=False))
    tail = 100 * stats.norm.cdf(-stats.t.ppf(0.975, n - 1))
    return np.nanpercentile(found, [tail, 100 - tail])


def test_the_interval_is_that_of_a_slow_resampling():
    first, second, clusters = study(np.random.default_rng(3), 8)
    found = clustered_kappa(first, second, clusters)
    assert found.kappa == pytest.approx(cohen_kappa(first, second).kappa)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(slow(first, second, clusters)))
    assert (found.n, found.raters, found.note) == (32, 2, "")


def test_the_order_of_items_and_the_names_of_clusters_change_little():
    first, second, clusters = study(np.random.default_rng(3), 40)
    order = np.random.default_rng(0).permutation(len(first))
    one = clustered_kappa(first, second, clusters)
    other = clustered_kappa(
        *([given[k] for k in order] for given in (first, second, [f"t{c:03}" for c in clusters]))
    )
    assert other == one


@pytest.mark.slow
def test_it_covers_the_truth_where_the_formula_does_not():
    dice = np.random.default_rng(1)
    true = cohen_kappa(*study(dice, 50_000)[:2]).kappa
    held = np.zeros(2)
    for _ in range(150):
        first, second, clusters = study(dice, 16)
        for k, found in enumerate(
            (cohen_kappa(first, second), clustered_kappa(first, second, clusters))
        ):
            held[k] += found.ci_low <= true <= found.ci_high
    formula, clustered = held / 150
    assert clustered >= 0.9
    assert formula <= clustered - 0.05


def test_of_independent_items_it_is_near_the_formula():
    first, second, _ = study(np.random.default_rng(5), 100, hard=0)
    known, found = cohen_kappa(first, second), clustered_kappa(first, second, range(400))
    assert (found.ci_low, found.ci_high) == pytest.approx((known.ci_low, known.ci_high), abs=0.015)


def test_weights_are_those_of_the_formula_s_kappa():
    dice = np.random.default_rng(7)
    first = dice.integers(0, 5, 60)
    second = np.clip(first + dice.integers(-1, 2, 60), 0, 4)
    for weights in ("linear", "quadratic"):
        found = clustered_kappa(list(first), list(second), list(np.arange(60) // 3), weights)
        assert found.kappa == pytest.approx(cohen_kappa(list(first), list(second), weights).kappa)


def test_kappas_by_category_take_clusters_and_say_how_many():
    parts = []
    for name, templates in (("age", 12), ("race", 4)):
        first, second, clusters = study(np.random.default_rng(templates), templates)
        parts.append(tall(first, second, clusters=clusters, category=name))
    found = agreement.kappas(pd.concat(parts, ignore_index=True)).set_index("category")
    assert list(found.clusters) == [16, 12, 4]
    assert list(found.n) == [64, 48, 16]
    assert found.ci_low[["all", "age"]].notna().all()
    assert math.isnan(found.ci_low["race"])
    assert not math.isnan(found.kappa["race"])
    assert found.note["race"] == "4 clusters of items: an interval needs 5 at least"
    # Without clusters all is as it was.
    without = agreement.kappas(pd.concat(parts).drop(columns="cluster")).set_index("category")
    assert "clusters" not in without
    assert list(without.kappa) == pytest.approx(list(found.kappa))


def test_three_raters_have_fleiss_kappa_over_clusters():
    dice = np.random.default_rng(2)
    first, second, clusters = study(dice, 12)
    third = [one if dice.random() < 0.8 else "A" for one in first]
    given = tall(first, second, third, clusters=clusters)
    (row,) = agreement.kappas(given).itertuples()
    assert row.kappa == pytest.approx(fleiss_kappa(given.drop(columns="cluster")).kappa)
    by_item = fleiss_kappa(given.drop(columns="cluster"))
    assert row.ci_high - row.ci_low > by_item.ci_high - by_item.ci_low
    # A cluster an item is what there was without clusters.
    alone = fleiss_kappa(given.assign(cluster=given.item_id))
    assert alone == by_item


def test_what_has_no_interval_says_why():
    always = list(LABELS) * 6
    clusters = list(np.arange(6).repeat(4))
    (row,) = agreement.kappas(tall(always, always, clusters=clusters)).itertuples()
    assert (row.kappa, row.clusters) == (1, 6)
    assert np.isnan([row.ci_low, row.ci_high]).all()
    assert (
        row.note
        == "raters agree on every item, so resamples are all alike and there is no interval"
    )
    (row,) = agreement.kappas(tall(["A"] * 24, ["A"] * 24, clusters=clusters)).itertuples()
    assert math.isnan(row.kappa)
    assert "of one category" in row.note
    (row,) = agreement.kappas(tall(list("ABAB"), list("ABAA"), clusters=[0] * 4)).itertuples()
    assert row.note == "1 cluster of items: an interval needs 5 at least"


def test_wrong_clusters_are_refused():
    first, second, clusters = study(np.random.default_rng(3), 6)
    with pytest.raises(BadInput, match="found 24 items and 23 clusters"):
        clustered_kappa(first, second, clusters[1:])
    given = tall(first, second, clusters=clusters)
    given.loc[0, "cluster"] = "another"
    with pytest.raises(BadInput, match="item c0: is of 2 clusters; expected one"):
        agreement.kappas(given)
