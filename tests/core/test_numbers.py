"""Numbers for reading: halves are rounded away from zero."""

import math

import numpy as np
import pytest

from bench.core.numbers import decimals


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.475, 2, "0.48"),
        (0.125, 2, "0.13"),
        (2.5, 0, "3"),
        (100 * 0.285, 0, "29"),  # 28.499999999999996
        (0.1 + 0.2 + 0.175, 2, "0.48"),  # 0.47500000000000003
        (0.4749, 2, "0.47"),
        (-0.475, 2, "−0.48"),
        (-0.001, 2, "0.00"),
        (1234567.5, 0, "1,234,568"),
        (np.float64(0.005), 2, "0.01"),
        (math.nan, 2, "—"),
        (-math.inf, 3, "−∞"),
    ],
)
def test_halves_are_rounded_away_from_zero(value, digits, text):
    assert decimals(value, digits) == text
