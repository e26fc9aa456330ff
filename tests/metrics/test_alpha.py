"""Krippendorff's alpha: against the package, against published values, and of panels whose reliability is known."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from bench.core.errors import BadInput
from bench.metrics import agreement, alpha
from bench.metrics.agreement import fleiss_kappa, severity_level

NAN = np.nan
# Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C): 4 observers, 12 units.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def tall(matrix):
    return pd.DataFrame(
        [
            {"item_id": i, "rater": r, "rating": value}
            for r, row in enumerate(matrix)
            for i, value in enumerate(row)
        ]
    )


@pytest.mark.parametrize(
    ("measurement", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_published_values_with_gaps(measurement, value):
    found = alpha.krippendorff_alpha(tall(PUBLISHED), measurement)
    assert found.alpha == pytest.approx(value, abs=5e-4)
    # The twelfth unit has one rating.
    assert (found.n, found.raters, found.ratings, found.note) == (11, 4, 40, "")
    assert found.ci_low < found.alpha < found.ci_high <= 1


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=3, max_size=3),
        min_size=2,
        max_size=12,
    ),
    st.sampled_from(alpha.MEASUREMENTS),
)
@settings(max_examples=20, deadline=None)
def test_its_value_is_that_of_the_krippendorff_package(rows, measurement):
    matrix = np.array([[NAN if cell is None else cell for cell in row] for row in rows]).T
    if (~np.isnan(matrix)).any(1).sum() < 2:
        return
    found = alpha.krippendorff_alpha(tall(matrix), measurement)
    paired = matrix[:, (~np.isnan(matrix)).sum(0) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(found.alpha)
        assert found.note
        return
    expected = krippendorff.alpha(paired, level_of_measurement=measurement)
    assert found.alpha == pytest.approx(expected, abs=1e-9)


def test_an_interval_far_from_nought_loses_no_digits():
    near, far = np.array(PUBLISHED), np.array(PUBLISHED) + 1e7
    one, other = (alpha.krippendorff_alpha(tall(some), "interval") for some in (near, far))
    assert (one.ci_low, one.ci_high) == pytest.approx((other.ci_low, other.ci_high), abs=1e-6)


@pytest.mark.parametrize("raters", [3, 5])
def test_a_panel_of_known_reliability_gives_the_kappa_that_it_must(raters):
    dice = np.random.default_rng(4)
    truth = pd.DataFrame(
        {
            "category": "diet",
            "item_id": [f"diet:{k}" for k in range(1500)],
            "topic": dice.choice(list("abcd"), 1500),
        }
    )
    panel = agreement.SimulatedAnnotators(0.8, raters, seed=2)
    assert panel.kappa == pytest.approx(0.64)
    ratings = panel.annotate(truth)
    kappa, found = fleiss_kappa(ratings), alpha.krippendorff_alpha(ratings, "nominal")
    for low, high in ((kappa.ci_low, kappa.ci_high), (found.ci_low, found.ci_high)):
        assert low < panel.kappa < high
        assert high - low < 0.08
    # Over many items the two are the same but for chance's correction of n.
    assert found.alpha == pytest.approx(kappa.kappa, abs=1e-3)
    # Alpha holds where a fifth of the ratings is missing; kappa cannot be had there.
    gaps = ratings.assign(rating=ratings.rating.where(dice.random(len(ratings)) > 0.2))
    some = alpha.krippendorff_alpha(gaps, "nominal")
    assert some.ci_low < panel.kappa < some.ci_high


def test_kappa_of_levels_is_statsmodels():
    dice = np.random.default_rng(1)
    scores = np.clip(dice.normal(5, 2, (40, 1)) + dice.normal(0, 1, (40, 6)), 0, 10)
    levels = severity_level(scores)
    expected = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(levels)[0])
    assert fleiss_kappa(tall(levels.T)).kappa == pytest.approx(expected, abs=1e-12)


def test_by_category_and_over_all():
    ratings = tall(PUBLISHED).assign(category=lambda rows: np.where(rows.item_id < 6, "one", "two"))
    found = alpha.alphas(ratings, "interval").set_index("category")
    assert list(found.index) == ["all", "one", "two"]
    assert found.alpha["all"] == pytest.approx(0.849, abs=5e-4)
    assert found.n.to_dict() == {"all": 11, "one": 6, "two": 5}


@pytest.mark.parametrize(
    ("ratings", "measurement", "message"),
    [
        (tall(PUBLISHED), "ratio", "allowed: nominal, ordinal, interval"),
        (tall([[1, 2]]), "nominal", "at least two raters; found 1"),
        (tall([["a", "b"], ["a", "a"]]), "interval", "is no number"),
        (tall([list(range(70))] * 2), "ordinal", "at most 60"),
        (pd.concat([tall(PUBLISHED)] * 2), "nominal", "more than once"),
        (pd.DataFrame({"item_id": []}), "nominal", "column `rater` is missing"),
    ],
)
def test_what_has_no_alpha_is_refused(ratings, measurement, message):
    with pytest.raises(BadInput, match=message):
        alpha.krippendorff_alpha(ratings, measurement)


def test_ratings_that_are_all_alike_have_none_and_say_why():
    found = alpha.krippendorff_alpha(tall([[3, 3, 3], [3, 3, 3]]), "interval")
    assert np.isnan(found.alpha)
    assert found.note.startswith("all ratings are alike")
