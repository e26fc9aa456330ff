"""Scores: pure functions from data frames to data frames or NamedTuples, without torch or models.

A benchmark's metrics module offers what `Metrics` lists.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics.engine import Scoring
    from bench.metrics.table import Card, Headline


class Metrics(Protocol):
    """The metrics module of a benchmark.

    Attributes:
        CARDS: what each metric means.
        HEADLINES: the scores that reports and comparisons show first.
        UNITS: what the bootstrap resamples, as a plural noun: scenes, instances.
        ROUNDING: by task, how far the released code's numbers are off because it rounds.
    """

    CARDS: Sequence["Card"]
    HEADLINES: tuple["Headline", ...]
    UNITS: str
    ROUNDING: Mapping[str, float]

    def scoring(self, records: "pd.DataFrame", items: "pd.DataFrame", preset: str) -> "Scoring":
        """Prepare the scores of a run."""

    def outcomes(
        self, records: "pd.DataFrame", items: "pd.DataFrame", preset: str
    ) -> "pd.DataFrame":
        """List the outcomes of a run, a row per scored unit.

        Returns:
            `category`, `task`, `item_id`, `repeat`, `cluster` and `stratum` (the bootstrap
            resamples clusters within strata), and numbers, such as 0 or 1, whose sums make scores.
        """
