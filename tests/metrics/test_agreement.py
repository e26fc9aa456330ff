"""Agreement: coefficients by hand and by libraries; notes and refusals."""

import math
from pathlib import Path

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
from tests.helpers.cases import cases

HERE = Path(__file__).parent
NAN = math.nan


def test_annotations_are_read(tmp_path, refusal):
    path = tmp_path / "people.csv"
    path.write_text("item_id,rater,rating,category\ng:1,x,4,\ng:2, y ,9.5,own\n", "utf-8")
    rows = agreement.read_annotations(path, levels=True).to_numpy().tolist()
    assert rows == [["g", "g:1", "x", "level 3"], ["own", "g:2", "y", "level 5"]]
    path.write_text("item_id,rater,rating\na,b,7\na,c,11\n", "utf-8")
    message = refusal(agreement.read_annotations, path, levels=True)
    assert message == f"{path}, row 2, column `rating`: '11' is not a number from 0 to 10"


def rated(table):
    """Ratings from rows of items and columns of raters."""
    rows = [(f"i{i}", f"r{k}", value) for i, row in enumerate(table) for k, value in enumerate(row)]
    return pd.DataFrame(rows, columns=["item_id", "rater", "rating"])


def alpha(ratings, measurement):
    return bench.agreement(ratings, measurement=measurement).iloc[0]


def kappa(ratings):
    return bench.agreement(ratings).iloc[1]


def test_fleiss_kappa_of_the_textbook():
    # Fleiss, 1971, as the encyclopaedia's worked example has it: ten items, fourteen raters, five
    # categories.
    counts = pd.read_csv(HERE / "fleiss.csv", header=None).to_numpy()
    result = kappa(rated([np.repeat(range(5), row) for row in counts]))
    assert round(result.estimate, 3) == 0.210
    assert result.estimate == pytest.approx(inter_rater.fleiss_kappa(counts))
    assert (result.coefficient, result.n, result.raters, result.note) == ("Fleiss", 10, 14, "")
    assert result.ci_low < result.estimate < result.ci_high


@pytest.mark.parametrize(
    ("measurement", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_published_values_of_alpha_with_gaps(measurement, value):
    # Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C): 12
    # units, of which the last has one rating, and 4 observers.
    units = pd.read_csv(HERE / "krippendorff.csv", header=None).to_numpy()
    result = alpha(rated(units), measurement)
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


def test_groups_are_apart_and_kappa_needs_categories_and_every_rating():
    ratings = rated(zip([1, 2, 3, 3, 2, 1, 4, 1], [1, 2, 3, 3, 2, 2, 4, 1], strict=True))
    halves = bench.agreement(ratings.assign(half=["a"] * 8 + ["b"] * 8), by="half")
    assert list(halves.half) == ["a", "a", "b", "b"]
    assert list(halves.estimate[:2]) == [1, 1]
    of_alpha, of_kappa = bench.agreement(ratings.assign(rating=ratings.rating[1:])).itertuples()
    assert of_alpha.estimate < 1
    assert np.isnan(of_kappa.estimate)
    assert of_kappa.note == "kappa needs a rating of every item by every rater"
    (only,) = bench.agreement(ratings, measurement="interval").coefficient
    assert only == "Krippendorff, interval"


GOOD = rated([["a", "b", "b"], ["a", "a", "b"]])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (severity_level, ([1, 10.1],), "a bias score of 10.1 has no level"),
        (severity_level, ([1, NAN],), "a bias score of nan has no level"),
        (bench.agreement, (GOOD[:0],), "ratings: has no rows"),
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


def in_clusters(raters, size):
    """Ratings of items that are in clusters of this size; 0 for items without a cluster."""
    table = rated(zip(*raters, strict=True))
    if not size:
        return table
    return table.assign(cluster=table.item_id.str[1:].astype(int) // size)


def test_cohen_s_kappa_is_statsmodels_with_and_without_clusters():
    rng = np.random.default_rng(12)
    first, other = rng.choice(list("ABC"), (2, 48))
    raters = first, np.where(rng.random(48) < 0.5, first, other)
    plain, clustered = (kappa(in_clusters(raters, size)) for size in (0, 4))
    expected = inter_rater.cohens_kappa(pd.crosstab(*raters).to_numpy())
    numbers = plain[["estimate", "ci_low", "ci_high"]].tolist()
    assert numbers == pytest.approx([expected.kappa, expected.kappa_low, expected.kappa_upp])
    assert clustered.estimate == pytest.approx(expected.kappa)
    assert clustered.ci_low < clustered.estimate < clustered.ci_high
    assert clustered.ci_low != pytest.approx(plain.ci_low)


def in_categories():
    """Ratings by two people of four items in each of two categories."""
    rated_items = [rated(["AA", "AB", "BB", "BA"]), rated(["AA", "AA", "BB", "BA"])]
    parts = zip(("age", "race"), rated_items, strict=True)
    return pd.concat([part.assign(category=name) for name, part in parts], ignore_index=True)


def test_a_category_with_one_rater_is_undefined_and_named(refusal):
    ratings = in_categories()
    few = ratings[(ratings.category == "age") | (ratings.rater == ratings.rater[0])]
    table = bench.agreement(few, "category")
    assert table[:2].equals(bench.agreement(ratings, "category")[:2])
    assert table.estimate[2:].isna().all()
    assert set(table.note[2:]) == {"race: agreement needs at least two raters; found 1"}
    assert "found 1" in refusal(bench.agreement, few[few.category == "race"], "category")


def test_ratings_in_columns_of_categories_count_as_others():
    ratings = in_categories()
    expected = bench.agreement(ratings, "category")
    categorical = ratings.astype("category")
    categorical["rater"] = categorical.rater.cat.add_categories("nobody")
    pd.testing.assert_frame_equal(
        bench.agreement(categorical, "category"), expected, check_dtype=False
    )


@cases(__file__, "kappas.csv")
def test_a_kappa_without_an_interval_says_why(case):
    raters = [list(case[name]) for name in ("first", "second", "third") if case[name]]
    result = kappa(in_clusters(raters, int(case["size"])))
    assert result.estimate == pytest.approx(float(case["value"] or NAN), nan_ok=True)
    assert np.isnan([result.ci_low, result.ci_high]).all()
    assert result.note.startswith(case["note"])
