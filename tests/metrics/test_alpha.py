"""Krippendorff's alpha: of the package, of published tables, and of panels of known reliability."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.metrics import alpha
from bench.metrics.alpha import krippendorff_alpha

NAN = np.nan
# Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C): 4
# observers, 12 units.
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
    assume((~np.isnan(matrix)).any(1).sum() >= 2)
    result = krippendorff_alpha(ratings_of(matrix), measurement)
    paired = matrix[:, (~np.isnan(matrix)).sum(0) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(result.alpha)
        assert result.note.startswith(("all ratings are alike", "no item has two ratings"))
        return
    expected = krippendorff.alpha(paired, level_of_measurement=measurement)
    assert result.alpha == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("matrix", "measurement", "message"),
    [
        (PUBLISHED, "ratio", "allowed: nominal, ordinal, interval"),
        ([[1, 2]], "nominal", "at least two raters; found 1"),
        ([["a", "b"], ["a", "a"]], "interval", "of 0, 'a', is no number"),
        ([list(range(70))] * 2, "ordinal", "at most 60"),
    ],
)
def test_what_has_no_alpha_is_refused(matrix, measurement, message, refusal):
    assert message in refusal(krippendorff_alpha, ratings_of(matrix), measurement)
