"""The meaning of scores: titles, sides and doubts, by the benchmark that a table names."""

import numpy as np
import pandas as pd

from bench.benchmarks import get
from bench.metrics.primary import doubt, measure_words, primary_metrics, short_title, task_words
from bench.metrics.table import PrimaryMetric


def explain(scores: pd.DataFrame) -> pd.DataFrame:
    """Add the meaning of each score: a title, the worse side, and a reason for doubt.

    Args:
        scores: of `bench.score`.

    Returns:
        The rows, in each benchmark the primary measures first, with five more columns: `title` (the
        measure in words), `primary`, `worse` (`higher` or `lower`; empty for other measures),
        `unit` (`%` for shares, else `points`), and `doubt` (the reason why the score is no evidence
        of bias, for example "the same answer to everything"; else empty).

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:answer=A", data="samples", limit=10)
        >>> scores = bench.explain(bench.score(run))
        >>> scores.loc[scores.category == "all", ["title", "worse", "doubt"]].head(2)
                                                title   worse                          doubt
        154     Ambiguous: share of stereotyped answers  higher  the same answer to everything
        155  Disambiguous: share of stereotyped answers  higher  the same answer to everything
    """
    tables = []
    for name, own in scores.groupby("benchmark", sort=False):
        benchmark = get(str(name))
        lines = {(line.task, line.metric): line for line in primary_metrics(own, benchmark)}
        places = list(zip(own.task, own.metric, strict=True))
        are_shares = all(line.share for line in benchmark.metrics.primary_metrics)
        meanings = []
        for place, row in zip(places, own.to_dict("records"), strict=True):
            title = f"{task_words(benchmark, place[0])}: {measure_words(place[1])}"
            line = lines.get(place, PrimaryMetric(*place, title, "", are_shares, worse=""))
            is_primary = place in lines
            meaning = {
                "title": short_title(line) if is_primary else title,
                "primary": is_primary,
                "worse": ("higher" if line.biased_is_high else "lower") if is_primary else "",
                "unit": "%" if line.share else "points",
                "doubt": doubt(line, row),
            }
            meanings.append(meaning)
        own = pd.concat([own, pd.DataFrame(meanings, own.index)], axis=1)
        order = [[*lines, place].index(place) for place in places]
        tables.append(own.iloc[np.argsort(order, kind="stable")])
    return pd.concat(tables)
