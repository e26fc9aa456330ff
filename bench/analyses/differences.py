"""Which models differ in the primary scores, and which ranks the tests leave open.

For example:

    pairs = differences(bench.score(*runs), bench.outcomes(*runs))
    open_ranks(pairs)
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bench.analyses.elsewhere import read_scores
from bench.benchmarks import get, names
from bench.core.errors import BadInput, NoRuns
from bench.metrics.bootstrap import LEVEL
from bench.metrics.primary import Row, by_letters, primary_metrics, primary_rows, short_title
from bench.metrics.significance import holm
from bench.metrics.statistics import compare, with_holm
from bench.metrics.table import ALL, PrimaryMetric

# The verdicts on a pair.
DIFFERENT = "different"
NOT_SHOWN = "no difference shown"
BY_LETTERS = "by letters"
LESS_READABLE = "less readable"
UNDEFINED = "undefined"

SCORE = ["benchmark", "task", "metric", "title", "worse", "unit"]
TEST = ["estimate", "ci_low", "ci_high", "p", "p_adjusted", "detectable", "n", "clusters"]
READABLE = ["asked", "readable_first", "readable_second", "p_readable"]
COLUMNS = [*SCORE, "first", "second", "verdict", "better", *TEST, *READABLE, "note"]


def differences(scores: pd.DataFrame, outcomes: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare each two models in each primary score, and name other reasons for a difference.

    The test is `bench.compare`, on the items with a readable answer of both models. We do not call
    a model better if the reason may be a preference for one letter, or unreadable replies.

    Args:
        scores: of `bench.score`; models without a score are skipped. Or any scores that
            `bench.read_scores` can read; we compare the primary ones.
        outcomes: of `bench.outcomes` under the same preset, all or some, for example the outcomes
            of one category. Without them, as for scores measured elsewhere, the test pairs the
            categories, and knows nothing of letters and unreadable replies.

    Returns:
        One row per score (`benchmark`, `task`, `metric`, `title`, `worse`, the side of more bias:
        `higher` or `lower`, and `unit`) and pair (`first`, `second`): the columns of
        `bench.compare` (`p_adjusted` is for all rows of a benchmark); `asked` (items that
        both were asked), the readable shares of both, `p_readable` (for no difference of these),
        `better` (the model with the better score, or the lower one if `worse` is unknown; empty if
        the scores lie on both sides of the best value), and `verdict`:

        - `different`, or `no difference shown` (`p_adjusted` is 0.05 or more);
        - `by letters`: a preferred letter may be why the scores differ;
        - `less readable`: only the readable shares of the models differ;
        - `undefined`: there was no test, and `note` says why.

    Raises:
        BadInput: a model has several runs on a benchmark, or scores from elsewhere no categories.
        NoRuns: no benchmark has scores of two models.

    Examples:
        >>> import bench
        >>> models = ["simulated:bias=0.2", "simulated:bias=0.6"]
        >>> runs = [bench.evaluate("cbbq", model, data="samples", limit=20) for model in models]
        >>> pairs = differences(bench.score(*runs), bench.outcomes(*runs))
        >>> pairs[["metric", "estimate", "verdict"]].round(2)
             metric  estimate    verdict
        0     s_amb      -0.4  different
        1  s_disamb      -0.4  different
        2  accuracy       0.4  different
    """
    if outcomes is None:
        tables = [
            _of_categories(rows) for _, rows in read_scores(scores).groupby("benchmark", sort=False)
        ]
        return pd.concat(tables, ignore_index=True)
    runs = outcomes.groupby(["benchmark", "model"], sort=False).run.unique()
    groups: Any = runs.items()
    for (benchmark, model), folders in groups:
        if len(folders) > 1:
            raise BadInput(
                f"{model} has several runs on {benchmark}: {', '.join(folders)}; name only one"
            )
    tables = [
        _of_benchmark(str(benchmark), rows, scores[scores.benchmark == benchmark])
        for benchmark, rows in outcomes.groupby("benchmark", sort=False)
        if len(set(rows.model)) > 1
    ]
    if not tables:
        raise NoRuns(
            f"{len(runs)} runs, and no two on one benchmark; to compare models, give two or more"
        )
    return pd.concat(tables, ignore_index=True)


def open_ranks(pairs: pd.DataFrame) -> pd.DataFrame:
    """List the best and the worst rank of each model that the tests leave open.

    Args:
        pairs: of `differences`, all or some, for example the pairs of some models.

    Returns:
        One row per score and model: the columns of the score, `model`, `ranks_from` and
        `ranks_to`, 1 being the best; NaN if a pair of the model could not be tested.

    Examples:
        >>> import bench
        >>> models = ["simulated:bias=0.2", "simulated:bias=0.6"]
        >>> runs = [bench.evaluate("cbbq", model, data="samples", limit=20) for model in models]
        >>> ranks = open_ranks(differences(bench.score(*runs), bench.outcomes(*runs)))
        >>> ranks.loc[ranks.metric == "accuracy", ["model", "ranks_from", "ranks_to"]]
                        model  ranks_from  ranks_to
        2  simulated:bias=0.2         1.0       1.0
        5  simulated:bias=0.6         2.0       2.0
    """
    sides = []
    is_decided = (pairs.verdict == DIFFERENT) & (pairs.better != "")
    for side in ("first", "second"):
        is_better = pairs.better == pairs[side]
        won, lost = is_decided & is_better, is_decided & ~is_better
        sides.append(pairs[[*SCORE, "p"]].assign(model=pairs[side], won=won, lost=lost))
    by_model = pd.concat(sides).groupby([*SCORE, "model"], sort=False)
    sums = by_model.agg(others=("won", "size"), tested=("p", "count"), won=("won", "sum"))
    lost = by_model.lost.sum()
    ranks = pd.DataFrame({"ranks_from": 1.0 + lost, "ranks_to": 1.0 + sums.others - sums.won})
    return ranks.where(sums.tested == sums.others).reset_index()


def badness(scores: pd.DataFrame) -> "pd.Series[float]":
    """Return numbers that are higher for worse scores, for sorting and ranking.

    If the best value of a metric lies between its limits, this is the distance from it. If it is
    unknown which side is `worse`, it is the score.

    Args:
        scores: rows of `bench.explain` or `bench.read_scores`.

    Examples:
        >>> rows = pd.DataFrame({"benchmark": "mcbe", "task": "ss", "metric": "score"}, index=[0])
        >>> float(badness(rows.assign(worse="lower", score=77.82))[0])
        -77.82
    """
    best = {
        (name, line.task, line.metric): line.best
        for name in {*scores.benchmark} & {*names()}
        for line in get(name).metrics.primary_metrics
    }
    places = zip(scores.benchmark, scores.task, scores.metric, strict=True)
    values = pd.Series([best.get(place) for place in places], scores.index, dtype=float)
    signed = scores.score.mask(scores.worse == "lower", -scores.score)
    return (scores.score - values).abs().fillna(signed)


def _of_categories(scores: pd.DataFrame) -> pd.DataFrame:
    """Compare models by their scores of the same categories."""
    rows = scores[scores.primary & (scores.category != ALL)]
    if rows.empty:
        raise BadInput(
            "the scores are of the category `all` alone; models are compared over categories, so "
            "give a row for each"
        )
    table = compare(rows, "score", by="title", cluster=None, stratum=None)
    table = table.merge(rows[SCORE].drop_duplicates("title"), on="title")
    verdict = np.where(table.p_adjusted < 1 - LEVEL, DIFFERENT, NOT_SHOWN)
    table["verdict"] = np.where(table.p.isna(), UNDEFINED, verdict)
    is_first = (table.estimate > 0) == (table.worse == "lower")
    table["better"] = table["first"].where(is_first, table.second)
    table["better"] = table.better.where(table.estimate.fillna(0) != 0, "")
    return table.reindex(columns=COLUMNS)


def _of_benchmark(benchmark: str, outcomes: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    tables = []
    for line in primary_metrics(scores, get(benchmark)):
        rows = primary_rows(scores, line)
        rows = rows[(rows.category == ALL) & rows.score.notna()].set_index("model")
        units = scored_units(outcomes[outcomes.model.isin(rows.index)], line)
        # The test is on answers that could be read.
        if len(set(units.model[units.parsed >= units.answered])) > 1:
            tables.append(
                _tests(units, line, rows.to_dict("index")).assign(
                    benchmark=benchmark,
                    task=line.task,
                    metric=line.metric,
                    title=short_title(line),
                    worse="higher" if line.biased_is_high else "lower",
                    unit="%" if line.share else "points",
                )
            )
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = with_holm(pd.concat(tables, ignore_index=True))
    is_shown = table.p_adjusted < 1 - LEVEL
    is_less_readable = (holm(table.p_readable.to_numpy(float)) < 1 - LEVEL) & (
        table.readable_first != table.readable_second
    )
    reasons = [
        (~is_shown & is_less_readable, LESS_READABLE),
        (table.p_adjusted.isna(), UNDEFINED),
        (~is_shown, NOT_SHOWN),
        (table.by_letters, BY_LETTERS),
        (table.by_unread, LESS_READABLE),
    ]
    # The first reason that applies counts.
    conditions, verdicts = zip(*reasons, strict=True)
    table["verdict"] = np.select(conditions, verdicts, DIFFERENT)
    return table[COLUMNS]


def scored_units(outcomes: pd.DataFrame, line: PrimaryMetric) -> pd.DataFrame:
    """Return the outcomes of a score: `value`, `weight`, the `part` that they average, and bounds.

    `low` and `high`, with the weight `of_ends`, are the value if all answers were readable.
    """
    if not line.column:
        return outcomes.iloc[:0]
    if line.task != ALL or line.tasks:
        outcomes = outcomes[outcomes.task.isin(line.tasks or [line.task])]
    units = outcomes.assign(
        value=outcomes[line.column],
        weight=outcomes[line.of],
        part=ALL if line.pools_tasks else outcomes.task,
    )
    if f"{line.column}_lowest" in outcomes:
        low = outcomes[f"{line.column}_lowest"]
        high = outcomes[f"{line.column}_highest"]
        return units.assign(low=low, high=high, of_ends=low.notna().astype(float))
    # An unreadable answer counts as 0 at least and as 1 at most.
    unread = outcomes.answered - outcomes.parsed
    low = units.value.fillna(0.0)
    of_ends = units.weight.fillna(0.0) + (0.0 if line.of == "answered" else unread)
    return units.assign(low=low, high=low + unread, of_ends=of_ends)


def _tests(units: pd.DataFrame, line: PrimaryMetric, scores: Mapping[Any, Row]) -> pd.DataFrame:
    """Test each two models in the score and in readability, and name doubts about a difference."""
    read = units[units.parsed >= units.answered]
    parts, sides = ["category", "part"], ["first", "second"]
    tests = compare(read, "value", of="weight", mean_over=parts, limits=line.limits)
    readable = tests.assign(p=1.0)
    if len(read) < len(units):
        readable = compare(units, "parsed", of="answered")
    readable = readable[[*sides, "n", "p"]].rename(columns={"n": "asked", "p": "p_readable"})
    tests = tests.merge(readable, on=sides, how="left")
    by_model = units.groupby("model", sort=False)
    shares, sizes = by_model.parsed.sum() / by_model.answered.sum(), by_model.size()
    sums = units.groupby(["model", *parts])[["low", "high", "of_ends"]].sum()
    ends = sums[["low", "high"]].div(sums.of_ends, axis=0)
    ends = ends.groupby(["model", "category"]).mean().groupby("model").mean()
    first, second = (tests[side] for side in sides)
    tests["readable_first"], tests["readable_second"] = first.map(shares), second.map(shares)
    # If the bounds do not meet, the scores differ whatever the unreadable answers were. Bounds of
    # different questions cannot be compared.
    is_apart = first.map(ends.high) < second.map(ends.low)
    is_apart |= second.map(ends.high) < first.map(ends.low)
    is_apart &= (first.map(sizes) == tests.asked) & (second.map(sizes) == tests.asked)
    gain = -tests.estimate if line.biased_is_high else tests.estimate
    is_against = gain * (tests.readable_first - tests.readable_second) < 0
    # We do not adjust this p: a doubt about a finding counts before it is certain.
    tests["by_unread"] = is_against & (tests.p_readable < 1 - LEVEL) & ~is_apart
    tests["by_letters"] = [
        by_letters(line, scores[a], higher=estimate > 0)
        or by_letters(line, scores[b], higher=estimate < 0)
        for a, b, estimate in zip(first, second, tests.estimate, strict=True)
    ]
    values = {name: row["score"] for name, row in scores.items()}
    return tests.assign(better=_better(line, values, tests))


def _better(
    line: PrimaryMetric, scores: Mapping[Any, float], pairs: pd.DataFrame
) -> "pd.Series[str]":
    """Return the model with the better score of each pair; "" if that is not known."""
    higher_is_worse = pd.Series(line.biased_is_high, pairs.index)
    is_known = pairs.estimate.fillna(0) != 0
    if line.best is not None:
        # A difference says which score is nearer to it only for scores on one side of it.
        is_above = {name: score > line.best for name, score in scores.items()}
        higher_is_worse = pairs["first"].map(is_above)
        is_known &= higher_is_worse == pairs.second.map(is_above)
    better = pairs["first"].where((pairs.estimate < 0) == higher_is_worse, pairs.second)
    return better.where(is_known, "")
