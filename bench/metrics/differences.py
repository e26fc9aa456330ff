"""Which models differ in the primary scores, and which ranks the tests leave open.

For example:

    pairs = differences(bench.score(*runs), bench.outcomes(*runs))
    open_ranks(pairs)
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from bench.benchmarks import get
from bench.core.errors import BadInput, NoRuns
from bench.metrics.bootstrap import LEVEL
from bench.metrics.primary import Row, by_letters, primary_metrics, primary_rows, short_title
from bench.metrics.significance import holm
from bench.metrics.statistics import compare
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
COLUMNS = [*SCORE, "first", "second", "verdict", *TEST, *READABLE, "note"]


def differences(scores: pd.DataFrame, outcomes: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare each two models in each primary score, and name other reasons for a difference.

    The test is `bench.compare`, on the items with a readable answer of both models. We do not call
    a model better if the reason may be a preference for one letter, or unreadable replies.

    Args:
        scores: of `bench.score`, or of `bench.read_scores`; models without a score are skipped.
        outcomes: of `bench.outcomes` under the same preset, all or some, for example the outcomes
            of one category. Without them, as for scores measured elsewhere, the test pairs the
            categories, and knows nothing of letters and unreadable replies.

    Returns:
        One row per score (`benchmark`, `task`, `metric`, `title`, `worse`, the side of more bias:
        `higher` or `lower`, and `unit`) and pair (`first`, `second`): the columns of
        `bench.compare`, of which `p_adjusted` is for all rows of a benchmark; `asked` (items that
        both were asked), the readable shares of both, `p_readable` (for no difference of these),
        and `verdict`:

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
        0     s_amb     -0.38  different
        1  s_disamb     -0.38  different
        2  accuracy      0.38  different
    """
    if outcomes is None:
        return _of_categories(scores)
    runs = outcomes.groupby(["benchmark", "model"], sort=False).run.unique()
    groups: Any = runs.items()
    for (benchmark, model), folders in groups:
        if len(folders) > 1:
            raise BadInput(
                f"{model} has several runs on {benchmark}: {', '.join(folders)}; name only one"
            )
    tables = [
        _of_benchmark(str(benchmark), own, scores[scores.benchmark == benchmark])
        for benchmark, own in outcomes.groupby("benchmark", sort=False)
        if len(own.model.unique()) > 1
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
    for own, sign in (("first", 1), ("second", -1)):
        lead = sign * pairs.estimate * np.where(pairs.worse == "lower", 1, -1)
        is_different = pairs.verdict == DIFFERENT
        won, lost = is_different & (lead > 0), is_different & (lead < 0)
        sides.append(pairs[[*SCORE, "p"]].assign(model=pairs[own], won=won, lost=lost))
    by_model = pd.concat(sides).groupby([*SCORE, "model"], sort=False)
    sums = by_model.agg(others=("won", "size"), tested=("p", "count"), won=("won", "sum"))
    lost = by_model.lost.sum()
    ranks = pd.DataFrame({"ranks_from": 1.0 + lost, "ranks_to": 1.0 + sums.others - sums.won})
    return ranks.where(sums.tested == sums.others).reset_index()


def _of_categories(scores: pd.DataFrame) -> pd.DataFrame:
    """Compare models by their scores of the same categories."""
    rows = scores[scores.category != ALL]
    if rows.empty:
        raise BadInput(
            "the scores are of the category `all` alone; models are compared over categories, so "
            "give a row for each"
        )
    table = compare(rows, "score", by="title", cluster=None, stratum=None)
    table = table.merge(rows[SCORE].drop_duplicates("title"), on="title")
    verdict = np.where(table.p_adjusted < 1 - LEVEL, DIFFERENT, NOT_SHOWN)
    table["verdict"] = np.where(table.p.isna(), UNDEFINED, verdict)
    return table.reindex(columns=COLUMNS)


def _of_benchmark(benchmark: str, outcomes: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    every = get(benchmark).metrics.primary_metrics
    rows: list[dict[str, Any]] = []
    for line, primary in zip(every, primary_metrics(scores, benchmark), strict=True):
        own = primary_rows(scores, primary)
        own = own[(own.category == ALL) & own.score.notna()]
        by_model = {row["model"]: row for row in own.to_dict("records")}
        score = {
            "benchmark": benchmark,
            "task": primary.task,
            "metric": primary.metric,
            "title": short_title(primary),
            "worse": "higher" if line.biased_is_high else "lower",
            "unit": "%" if line.share else "points",
        }
        units = _units(outcomes[outcomes.model.isin(by_model)], line)
        rows += ({**score, **row, "line": line, "own": by_model} for row in _tests(units, line))
    table = pd.DataFrame(rows, columns=[*COLUMNS, "line", "own", "bounds"])
    table["p_adjusted"] = holm(table.p.to_numpy(float))
    p_readable = holm(table.p_readable.to_numpy(float))
    table["verdict"] = [
        _verdict(row, p) for row, p in zip(table.to_dict("records"), p_readable, strict=True)
    ]
    return table[COLUMNS]


def _units(outcomes: pd.DataFrame, line: PrimaryMetric) -> pd.DataFrame:
    """Return the outcomes of a score: `value` and `weight`, and the `part` that they average."""
    if not line.column:
        return outcomes.iloc[:0]
    if line.task != ALL or line.tasks:
        outcomes = outcomes[outcomes.task.isin(line.tasks or [line.task])]
    return outcomes.assign(
        value=outcomes[line.column],
        weight=outcomes[line.of],
        part=ALL if line.pools_tasks else outcomes.task,
    )


def _tests(units: pd.DataFrame, line: PrimaryMetric) -> Iterator[dict[str, Any]]:
    """Yield the tests of each two models, of the score and of their readable shares."""
    read = units[units.parsed >= units.answered]
    if len(read.model.unique()) < 2:
        return
    parts = ["category", "part"]
    tests = compare(read, "value", of="weight", mean_over=parts, limits=line.limits)
    sides = ["first", "second"]
    readable = tests.set_index(sides)[["n"]].assign(p=1.0)
    if len(read) < len(units):
        readable = compare(units, "parsed", of="answered").set_index(sides)
    by_model = units.groupby("model", sort=False)
    shares, sizes = by_model.parsed.sum() / by_model.answered.sum(), by_model.size()
    bounds = _bounds(units, line)
    rows: Any = tests.to_dict("records")
    for row in rows:
        first, second = (row[side] for side in sides)
        other = readable.loc[(first, second)]
        # Bounds of different questions cannot be compared.
        is_same = other.n == sizes[first] == sizes[second]
        yield {
            **row,
            "asked": int(other.n),
            "readable_first": shares[first],
            "readable_second": shares[second],
            "p_readable": other.p,
            "bounds": (bounds[first], bounds[second]) if is_same else None,
        }


def _bounds(units: pd.DataFrame, line: PrimaryMetric) -> dict[str, tuple[float, float]]:
    """Return the least and the most that each model's score could be, were all answers readable.

    An unreadable answer counts as 0 at least and as 1 at most, or as the outcomes themselves say.
    """
    unread = units.answered - units.parsed
    low = units.value.fillna(0.0)
    high, weight = low + unread, units.weight.fillna(0.0)
    if line.of != "answered":
        weight = weight + unread
    if f"{line.column}_lowest" in units:
        low, high = units[f"{line.column}_lowest"], units[f"{line.column}_highest"]
        weight = low.notna().astype(float)
    sums = units[["model", "category", "part"]].assign(low=low, high=high, weight=weight)
    sums = sums.groupby(["model", "category", "part"])[["low", "high", "weight"]].sum()
    ends = sums[["low", "high"]].div(sums.weight, axis=0)
    means = ends.groupby(["model", "category"]).mean().groupby("model").mean()
    return {str(model): (row.low, row.high) for model, row in means.iterrows()}


def _verdict(row: Row, p_readable: float) -> str:
    """Judge a pair: no model is better because of its letters, or because it was read less often.

    Args:
        row: with the score's primary metric as `line`, the models' own scores as `own`, and their
            `bounds`, None if these are of different questions.
        p_readable: adjusted for all pairs.
    """
    line: PrimaryMetric = row["line"]
    difference, readable = row["estimate"], row["readable_first"] - row["readable_second"]
    if not row["p_adjusted"] < 1 - LEVEL:
        if readable != 0 and p_readable < 1 - LEVEL:
            return LESS_READABLE
        return UNDEFINED if math.isnan(row["p_adjusted"]) else NOT_SHOWN
    for side, is_higher in (("first", difference > 0), ("second", difference < 0)):
        if by_letters(line, row["own"][row[side]], higher=is_higher):
            return BY_LETTERS
    gain = -difference if line.biased_is_high else difference
    # We do not adjust this p: a doubt about a finding counts before it is certain.
    if gain * readable >= 0 or row["p_readable"] >= 1 - LEVEL:
        return DIFFERENT
    # If their bounds do not meet, the scores differ whatever the unreadable answers were.
    (low, high), (other_low, other_high) = row["bounds"] or ((math.nan,) * 2,) * 2
    return DIFFERENT if high < other_low or other_high < low else LESS_READABLE
