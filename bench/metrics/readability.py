"""Whether two respondents differ in how often they can be read, rather than in how they answer.

One rule for models against each other, for prompt settings of one model, and for sizes.
"""

import numpy as np
import pandas as pd

from bench.metrics.bootstrap import LEVEL
from bench.metrics.significance import Comparison, paired

LESS_READABLE = "less readable"


def difference(rows: pd.DataFrame) -> Comparison:
    """Compare the shares of readable answers of two respondents to the same questions.

    Args:
        rows: one per question, with columns `stratum`, `unit` (what is drawn again), and `first`
            and `second`: whether each respondent's answer could be read.
    """
    columns = ["first", "n", "second", "n_second"]
    counted = rows.assign(n=1.0, n_second=1.0).astype(dict.fromkeys(columns, float))
    return paired(
        counted,
        "stratum",
        "unit",
        columns[:2],
        columns[2:],
        lambda strata: lambda sums: sums[..., 0].sum(-1) / sums[..., 1].sum(-1),
    )


def differs(readable: float, p: float) -> bool:
    """Tell whether two respondents can be read unequally often.

    p is not adjusted: what speaks against a finding is heard before it is sure.
    """
    return bool(abs(readable) > 0 and p < 1 - LEVEL)


def favours_less_readable(gain: float, readable: float, p: float) -> bool:
    """Tell whether a difference speaks for the respondent that can be read less often.

    Args:
        gain: above 0 where the first is the better one, below 0 where the second is.
        readable, p: readable share of the first less that of the second, and its p value.
    """
    return gain * readable < 0 and differs(readable, p)


def apart(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Tell whether bounds do not meet: whatever the unreadable answers were, the scores differ."""
    known = np.isfinite([*first, *second]).all()
    return bool(known and (first[1] < second[0] or second[1] < first[0]))
