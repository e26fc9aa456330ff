"""Lines over sizes: by hand, and as SciPy has them."""

import numpy as np
import pytest
from scipy import stats

from bench.metrics.trend import slope_test, slopes


def test_slopes_are_those_of_least_squares() -> None:
    x, scores = np.log2([0.5, 1.5, 7, 32]), np.array([87.69, 80.49, 77.82, 77.11])
    assert slopes(x, scores[:, None]) == pytest.approx([stats.linregress(x, scores).slope])
    # By hand: 1, 2 and 4 are a doubling apart, and (0 - 1, 1 - 1, 2 - 1) . (3, 5, 9) / 2 = 3.
    assert slopes([0, 1, 2], np.array([[3.0], [5.0], [9.0]])) == pytest.approx([3.0])


def test_a_slope_is_tested_by_the_distances_from_its_line() -> None:
    # By hand: 1, 3, 2, 4 over 0, 1, 2, 3 have the slope 0.8 and the residuals -.3, .9, -.9, .3,
    # whose squares add to 1.8; the error is sqrt(1.8 / 2 / 5), and t = 0.8 / 0.4243 = 1.886.
    tested = slope_test([0, 1, 2, 3], np.array([1.0, 3, 2, 4]))
    assert (tested.difference, tested.p) == pytest.approx((0.8, 0.2))
    assert tested.ci_high - 0.8 == pytest.approx(4.3027 * np.sqrt(0.18), rel=1e-4)


def test_two_sizes_make_no_trend() -> None:
    assert np.isnan(slope_test([0, 1], np.array([1.0, 3])).p)
