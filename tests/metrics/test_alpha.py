"""Krippendorff's alpha: against the package, against published values, and of panels whose reliability is known."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.metrics import agreement, alpha
from bench.metrics.alpha import krippendorff_alpha

NAN = np.nan
# Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C): 4 observers, 12 units.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def ratings_of(matrix):
    """Ratings from rows of raters and columns of items."""
    rows = [(i, r, value) for r, row in enumerate(matrix) for i, value in enumerate(row)]
    return pd.DataFrame(rows, columns=["item_id", "rater", "rating"])


@pytest.mark.parametrize(
    ("measurement", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_published_values_with_gaps(measurement, value):
    # The twelfth unit has one rating.
    result = krippendorff_alpha(ratings_of(PUBLISHED), measurement)
    assert result.alpha == pytest.approx(value, abs=5e-4)
    assert result[3:] == (11, 4, 40, "")
    assert result.ci_low < result.alpha < result.ci_high <= 1


CELL = st.one_of(st.none(), st.integers(0, 4))


@given(
    st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=2, max_size=12),
    st.sampled_from(alpha.MEASUREMENTS),
)
@settings(max_examples=20, deadline=None)
def test_its_value_is_that_of_the_krippendorff_package(rows, measurement):
    matrix = np.array([[NAN if cell is None else cell for cell in row] for row in rows]).T
    if (~np.isnan(matrix)).any(1).sum() < 2:
        return
    result = krippendorff_alpha(ratings_of(matrix), measurement)
    paired = matrix[:, (~np.isnan(matrix)).sum(0) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(result.alpha)
        assert result.note
        return
    expected = krippendorff.alpha(paired, level_of_measurement=measurement)
    assert result.alpha == pytest.approx(expected, abs=1e-9)


def test_an_interval_far_from_zero_loses_no_digits():
    near, far = (
        krippendorff_alpha(ratings_of(np.array(PUBLISHED) + shift), "interval")
        for shift in (0, 1e7)
    )
    assert near[1:3] == pytest.approx(far[1:3], abs=1e-6)


@pytest.mark.parametrize("raters", [3, 5])
def test_a_panel_of_known_reliability_has_its_kappa_and_its_alpha(raters):
    rng = np.random.default_rng(4)
    items = {"item_id": [f"diet:{k}" for k in range(1500)], "topic": rng.choice(list("abcd"), 1500)}
    panel = agreement.SimulatedAnnotators(0.8, raters, seed=2)
    assert panel.kappa == pytest.approx(0.64)
    ratings = panel.annotate(pd.DataFrame(items).assign(category="diet"))
    # Alpha holds where a fifth of the ratings is missing; kappa cannot be had there.
    gaps = ratings.assign(rating=ratings.rating.where(rng.random(len(ratings)) > 0.2))
    kappa, whole, part = (
        agreement.fleiss_kappa(ratings),
        krippendorff_alpha(ratings, "nominal"),
        krippendorff_alpha(gaps, "nominal"),
    )
    for _value, low, high, *_ in (kappa, whole, part):
        assert low < panel.kappa < high
        assert high - low < 0.1
    # Over many items the two are the same but for chance's correction of n.
    assert whole.alpha == pytest.approx(kappa.kappa, abs=1e-3)


def test_by_category_and_over_all():
    ratings = ratings_of(PUBLISHED)
    ratings["category"] = np.where(ratings.item_id < 6, "one", "two")
    table = alpha.alphas(ratings, "interval").set_index("category")
    assert table.alpha["all"] == pytest.approx(0.849, abs=5e-4)
    assert table.n.to_dict() == {"all": 11, "one": 6, "two": 5}


@pytest.mark.parametrize(
    ("ratings", "measurement", "message"),
    [
        (ratings_of(PUBLISHED), "ratio", "allowed: nominal, ordinal, interval"),
        (ratings_of([[1, 2]]), "nominal", "at least two raters; found 1"),
        (ratings_of([["a", "b"], ["a", "a"]]), "interval", "of 0, 'a', is no number"),
        (ratings_of([list(range(70))] * 2), "ordinal", "at most 60"),
        (pd.concat([ratings_of(PUBLISHED)] * 2), "nominal", "more than once"),
    ],
)
def test_what_has_no_alpha_is_refused(ratings, measurement, message, refusal):
    assert message in refusal(krippendorff_alpha, ratings, measurement)


def test_ratings_that_are_all_alike_have_none_and_say_why():
    result = krippendorff_alpha(ratings_of([[3, 3, 3], [3, 3, 3]]), "interval")
    assert np.isnan(result.alpha)
    assert result.note.startswith("all ratings are alike")
