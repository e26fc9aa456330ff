"""Write numbers for reading, all with one rounding: decimal, halves away from zero.

Python rounds the binary number, so that .475 would be 48 % and 0.47. Files keep all digits.
"""

import math
from decimal import ROUND_HALF_UP, Decimal

# A score is a mean of many numbers: digits after these are of computing, and make no half.
DIGITS = 12
# Numbers from here on have no decimals.
WHOLE = 2.0**53


def half_up(value: float, digits: int = 0) -> Decimal:
    """Round to so many decimals; a zero has no sign."""
    if not abs(value) < WHOLE:  # nor has NaN, or an infinite number
        return Decimal(value)
    exact = Decimal(f"{value:.{DIGITS}g}")
    return exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0


def decimals(value: float, digits: int = 0) -> str:
    """Write a number with so many decimals; NaN is a dash."""
    if math.isnan(value):
        return "—"
    return f"{half_up(value, digits):,}".replace("-", "−").replace("Infinity", "∞")
