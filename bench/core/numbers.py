"""Write numbers for reading, all with one rounding: decimal, halves away from zero.

Python rounds the binary number: for example, it writes 0.475 as 0.47, but as 48 %. Files keep all
digits.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

# A score is a mean of many numbers: later digits are floating-point noise.
DIGITS = 12
# Larger floats have no decimals.
WHOLE = 2.0**53


def half_up(value: float, digits: int = 0) -> Decimal:
    """Round to a number of decimals; a zero has no sign."""
    if not abs(value) < WHOLE:  # also NaN and infinite numbers
        return Decimal(value)
    exact = Decimal(f"{value:.{DIGITS}g}")
    return exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0


def decimals(value: float, digits: int = 0) -> str:
    """Write a number with this number of decimals; NaN is a dash."""
    if math.isnan(value):
        return "—"
    return f"{half_up(value, digits):,}".replace("-", "−").replace("Infinity", "∞")


def signed(value: float) -> str:
    """Write a difference with its sign and two digits, and at most three decimals.

    Examples:
        >>> signed(48.61), signed(-2.44), signed(0.031)
        ('+49', '−2.4', '+0.031')
    """
    digits = sum(float(abs(value)) < size for size in (10, 1, 0.1))
    text = decimals(value, digits if value else 0)
    return f"+{text}" if value > 0 else text


def change_in_points(row: Mapping[str, Any]) -> tuple[str, str]:
    """Write the difference in a row of `bench.compare` or `bench.trend`, and its interval.

    Examples:
        >>> change_in_points({"estimate": 0.02, "ci_low": 0.009, "ci_high": 0.03, "unit": "%"})
        ('+2.0 points', '95 % interval +0.90 to +3.0')
    """
    scale = 100 if row["unit"] == "%" else 1
    change, low, high = (signed(scale * row[name]) for name in ("estimate", "ci_low", "ci_high"))
    return f"{change} points", f"95 % interval {low} to {high}"


def with_unit(score: float, unit: str) -> str:
    """Write a score in the column `unit` of score tables: a share in per cent, or points.

    Examples:
        >>> with_unit(0.1523, "%"), with_unit(92.68, "points"), with_unit(0.523, "points")
        ('15\xa0%', '92.7', '0.52')
    """
    if unit == "%":
        return f"{decimals(100 * score)}\u00a0%"
    return decimals(score, 1 if abs(score) >= 10 else 2)


def p_value(p: float) -> str:
    """Write a p value: three decimals, and "< 0.001" below.

    Examples:
        >>> p_value(0.0123), p_value(3e-9)
        ('0.012', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else decimals(p, 3)


def p_words(p: float) -> str:
    """Write a p value for a sentence.

    Examples:
        >>> p_words(0.0123), p_words(3e-9)
        ('p = 0.012', 'p < 0.001')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
