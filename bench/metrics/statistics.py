"""Statistics of frames: shares, differences, trends, ranks, correlations and agreement.

Each function takes a frame, or the CSV file that holds one, and returns a frame. We use the same
names of columns in all of these: `estimate`, `ci_low`, `ci_high` (a 95 % interval), `n`, `p`,
`p_adjusted`, and `note`, the reason why a number is undefined. Frames are of two kinds:

- Outcomes, a row per scored unit, as `bench.outcomes` returns them: `share` and `compare`.
- Scores, a row per model and measure (`model`, `category`, `task`, `metric`, `score`), as
  `bench.score` and `share` return them, or as you have them from elsewhere: `trend`, `friedman` and
  `correlate`.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import scipy

from bench.core.errors import BadInput, expected
from bench.metrics.bootstrap import (
    LEVEL,
    NOISE,
    Limits,
    Totals,
    Weights,
    count_clusters,
    interval,
    replicate,
    resample,
)
from bench.metrics.engine import averages, mean_weights
from bench.metrics.significance import (
    Comparison,
    compare_groups,
    compare_resamples,
    holm,
    slope_test,
    tied,
)
from bench.metrics.table import ALL, join_notes
from bench.metrics.user_tables import Frame, Table, as_list

# The columns that name a question, or a score.
KEYS = ("model", "benchmark", "category", "task", "metric", "item_id", "request", "repeat")
INTERVAL = ["estimate", "ci_low", "ci_high"]
# The function of `scipy.stats` for each coefficient. p of Pearson's is by the t distribution with
# n - 2 degrees of freedom, of Kendall's tau-b exact for few points without ties.
COEFFICIENTS = {"pearson": "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}
# With two points every coefficient is 1 or -1.
LEAST_POINTS = 3
# Up to this many points, p of Spearman's coefficient is exact; above, it is by the t distribution.
MOST_EXACT = 9
# The sums of a unit, and of a second side that it is compared with.
SUMS = ["top", "bottom", "second top", "second bottom"]
OF_SECOND = dict(zip(SUMS[:2], SUMS[2:], strict=True))
# The note on a row that differs by its own p, and not by the adjusted one.
ADJUSTED = "p is below 0.05 alone, but not adjusted for all tests"
# Joins the values of several columns that name a part together.
SEPARATOR = "\x1f"


def share(
    frame: Frame,
    column: str,
    of: str | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | None = "cluster",
    stratum: str | None = "stratum",
    *,
    mean_over: str | Sequence[str] | None = None,
    tasks: str | Sequence[str] | None = None,
    limits: Limits | None = None,
    crossed: str = "crossed",
    alike: bool = False,
) -> pd.DataFrame:
    """Compute the sum of a column divided by the sum of another, with a 95 % interval.

    This makes the interval as in the score tables: we resample clusters, for example scenes, with
    all their rows, within strata.

    Args:
        frame: outcomes, or any frame with these columns.
        column: the numbers to add up, for example `stereotyped`. A row without one does not count.
        of: the column to divide by, for example `answered`. Default: the number of rows.
        by: the columns that name a group, for example `["model", "category"]`. Default: one group.
        cluster: the column of the unit that was sampled; None if this is the row.
        stratum: the column with the part of the data of a cluster; None for one part.
        mean_over: a column such as `category`: the estimate is then the unweighted mean of the
            shares of its values, as benchmarks average over categories. Of several, such as
            `["category", "task"]`, it is the mean over categories of their means over tasks; a
            category without a share in one of its tasks is left out.
        tasks: the tasks whose rows count. The clusters of the other rows were sampled too, so that
            the interval is that of the score table; a frame of these tasks alone may differ.
        limits: the ends of the scale. Default: 0 and 1 if each row is a count out of `of`, else
            none.
        crossed: the column of a second thing that was sampled across the clusters, such as
            NLI-CoAL's sentences; if the frame has no such column, the clusters are all.
        alike: whether all clusters have the same weight in the sample size, as McBE's instances do,
            whose number of readable answers differs. Else the weight is the sum of `of`. Clusters
            of a frame with a column `crossed` always have the same weight.

    Returns:
        The columns of `by`, `estimate`, `ci_low`, `ci_high`, `n` (the sum of `of`, without
        what is left out), and `note`.

    Examples:
        >>> import pandas as pd
        >>> replies = pd.DataFrame({
        ...     "model": ["a"] * 6 + ["b"] * 6,
        ...     "scene": [1, 1, 2, 2, 3, 3] * 2,
        ...     "stereotyped": [1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
        ... })
        >>> table = share(replies, "stereotyped", by="model", cluster="scene", stratum=None)
        >>> table.drop(columns="note").round(2)
          model  estimate  ci_low  ci_high  n
        0     a      0.50    0.04     0.96  6
        1     b      0.17    0.01     0.85  6
    """
    table = Table(frame)
    groups = as_list(by)
    units = _units(table, column, of, cluster, stratum, mean_over, crossed)
    limits = _limits(table, column, units, limits)
    counts = pd.Series(True, units.index)
    if tasks is not None:
        table.check_columns("task")
        counts = table.rows.task.isin(as_list(tasks))
        names = list(table.rows.task.unique())
        if unknown := [name for name in as_list(tasks) if name not in names]:
            raise BadInput(f"{table.name}: {expected(unknown[0], names, 'task')}")
        units.loc[~counts, ["top", "bottom"]] = 0.0
        units["missing"] &= counts
    weights = Weights()
    rows = []
    for keys, index in table.groups(groups):
        part = units.loc[index]
        if not counts[index].any():
            continue
        # Rows of other tasks may be in any part, because their sums are 0.
        part = part.assign(part=part.part.where(counts[index], part.part[counts[index]].iloc[0]))
        totals = _resampled(part, SUMS[:2], weights)
        in_mean = _weights_of_parts(totals, [1])
        (rests_on,) = count_clusters(totals, in_mean[None] > 0, "bottom", alike=alike)
        if totals.second is not None:
            (rests_on,) = count_clusters(totals)
        value = interval(replicate(totals, partial(_mean_ratio, in_mean)), rests_on, limits)
        missing = _left_out(
            part.missing.sum(), f"of {counts[index].sum()} rows have no `{column}` and"
        )
        reason = join_notes(_without_parts(totals, in_mean, [1]), missing)
        if math.isnan(value.value):
            reason = join_notes("undefined: the divisor is 0", reason)
        elif math.isnan(value.low):
            reason = join_notes("no interval: too few clusters, or all alike", reason)
        n = totals.observed[0, (in_mean > 0) | ~in_mean.any(), 1].sum()
        estimate = dict(zip(INTERVAL, value, strict=True))
        rows.append(keys | estimate | {"n": round(n), "note": reason})
    return pd.DataFrame(rows, columns=[*groups, *INTERVAL, "n", "note"])


def compare(
    frame: Frame,
    column: str,
    of: str | None = None,
    between: str = "model",
    by: str | Sequence[str] | None = None,
    cluster: str | None = "cluster",
    stratum: str | None = "stratum",
    *,
    mean_over: str | Sequence[str] | None = None,
    limits: Limits | None = None,
    crossed: str = "crossed",
    paired: bool = True,
) -> pd.DataFrame:
    """Compare a share between each two models, on the items that both have, or two groups of items.

    The test of models is paired: both models' rows of a cluster are resampled together. Groups of
    items, such as languages, categories, or women and men, have other items; they are compared
    with `paired=False`. Clusters with items of both groups are then resampled together, too.

    Args:
        between: the column that names the two sides: `model` or `prompts`, for example; with
            `paired=False`, `category`.
        by: the columns that name a group; pairs are of rows of one group.
        paired: whether both sides have the same items.
        frame, column, of, cluster, stratum, mean_over, limits, crossed: as in `share`.

    Returns:
        The columns of `by`, `first` and `second` (two values of `between`), `estimate` (the share
        of the first less the share of the second) with `ci_low` and `ci_high`, `p` (for no
        difference, two-sided), `p_adjusted` (for all rows, by Holm's method), `detectable` (the
        difference that such data show in four of five samples), `n` (items of both that count),
        `clusters` and `note`. The interval, `p` and `detectable` are one test, for this row alone:
        the interval holds 0 if and only if `p` is 0.05 or more.

    Examples:
        >>> import pandas as pd
        >>> replies = pd.DataFrame({
        ...     "model": ["a"] * 8 + ["b"] * 8,
        ...     "item_id": list("12345678") * 2,
        ...     "stereotyped": [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0],
        ... })
        >>> test = compare(replies, "stereotyped", cluster=None, stratum=None)
        >>> test[["first", "second", "estimate", "ci_low", "ci_high", "p_adjusted", "n"]].round(2)
          first second  estimate  ci_low  ci_high  p_adjusted  n
        0     a      b      0.75    0.06      1.0        0.04  8
    """
    table = Table(frame)
    groups = as_list(by)
    units = _units(table, column, of, cluster, stratum, mean_over, crossed)
    table.check_filled(between)
    if paired:
        names = [name for name in KEYS if name in table.rows and name != between]
        if not names:
            raise BadInput(
                f"{table.name}: has none of the columns {', '.join(KEYS)}, by which rows are "
                "paired; give the items a column `item_id`, or paired=False"
            )
        keys = list(dict.fromkeys(groups + names))
        advice = "name in by=[...] the column in which these rows differ"
        table.check_unique([between, *keys], advice)
        units["item"] = table.rows.groupby(keys, sort=False, dropna=False).ngroup()
    if table.rows[between].nunique() < 2:
        raise BadInput(
            f"{table.name}, column `{between}`: holds {table.rows[between].iloc[0]!r} alone; "
            "two are needed to compare them"
        )
    units["side"] = table.rows[between]
    length = float(np.ptp(_limits(table, column, units, limits) or (0, math.inf)))
    weights = Weights()
    rows = []
    for group, index in table.groups(groups):
        sides = units.loc[index].groupby("side", sort=False, observed=True)
        for (first, units_of_first), (second, units_of_second) in combinations(sides, 2):
            test = _compare_items if paired else _compare_groups
            tested, n = test(units_of_first, units_of_second, length, weights, column)
            pair = {"first": first, "second": second}
            rows.append(group | pair | tested._asdict() | {"n": n})
    columns = [*groups, "first", "second", *INTERVAL, "p", "detectable", "n", "clusters", "note"]
    return with_holm(pd.DataFrame(rows, columns=columns))


def _compare_groups(
    first: pd.DataFrame, second: pd.DataFrame, length: float, weights: Weights, column: str
) -> tuple[Comparison, int]:
    """Compare two sides that have different items; return the test and the number of items."""
    both = pd.concat([first, second.rename(columns=OF_SECOND)])
    both[SUMS] = both[SUMS].fillna(0.0)
    totals = _resampled(both, SUMS, weights)
    values = []
    samples = []
    for at in (0, 2):
        in_mean = _weights_of_parts(totals, [at + 1])
        values.append(replicate(totals, partial(_mean_ratio, in_mean, at=at)))
        samples += count_clusters(totals, in_mean[None] > 0, SUMS[at + 1])
    tested = compare_groups(values, samples, length)
    (of_both,) = count_clusters(totals, None, SUMS[1], SUMS[3])
    missing = int(both.missing.sum())
    lost = _left_out(missing, f"of {len(both)} rows have no `{column}` and")
    note = join_notes(tested.note, lost)
    return tested._replace(clusters=of_both.units, note=note), len(both) - missing


def _compare_items(
    first: pd.DataFrame, second: pd.DataFrame, length: float, weights: Weights, column: str
) -> tuple[Comparison, int]:
    """Compare two sides on the items that both have; return the test and the number of items."""
    numbers = second[["item", "top", "bottom", "missing"]].rename(columns=OF_SECOND)
    both = first.merge(numbers, on="item", suffixes=("", " of second"))
    if both.empty:
        return Comparison(note="no item in common"), 0
    # A unit without a value of one of the two does not count for the other.
    missing = both.missing | both["missing of second"]
    both.loc[missing, SUMS] = 0.0
    totals = _resampled(both, SUMS, weights)
    tested, in_mean = _test(totals, length)
    unused = [
        name for name, w in zip(totals.strata, in_mean, strict=True) if w == 0 < in_mean.max()
    ]
    note = join_notes(
        tested.note,
        _without_parts(totals, in_mean, [1, 3]),
        _left_out(missing.sum(), f"of {len(both)} rows have no `{column}` and"),
        _left_out(len(first) + len(second) - 2 * len(both), "rows of only one of the two"),
    )
    return tested._replace(note=note), int((~missing & ~both.part.isin(unused)).sum())


def _test(totals: Totals, length: float) -> tuple[Comparison, np.ndarray]:
    """Test the difference of the ratios of two sides; return the weights of the parts, too."""
    in_mean = _weights_of_parts(totals, [1, 3])

    def less(sums: np.ndarray) -> np.ndarray:
        return _mean_ratio(in_mean, sums) - _mean_ratio(in_mean, sums, at=2)

    # The smaller sample counts.
    rests_on = min(count_clusters(totals, in_mean[None] > 0, SUMS[k])[0] for k in (1, 3))
    by_cluster = _differences_by_cluster(totals, in_mean)
    return compare_resamples(replicate(totals, less), rests_on, by_cluster, length), in_mean


def _differences_by_cluster(totals: Totals, weights: np.ndarray) -> np.ndarray:
    """Compute the difference in each cluster; their weighted mean is the whole difference."""
    clusters = totals.clusters
    in_mean = weights[clusters.part] > 0
    part = clusters.part[in_mean]
    of_both = totals.observed[0][part][:, [1, 1, 3, 3]]
    shares = clusters.sums[in_mean] / of_both * weights[part, None]
    sums = np.zeros((len(clusters.stratum), 4))
    np.add.at(sums, clusters.cluster[in_mean], shares)
    weight = sums[:, [1, 3]].mean(1)
    scores = sums[weight > 0][:, [0, 2]] / weight[weight > 0, None]
    return tied(scores[:, 0] - scores[:, 1], float(np.abs(scores).max(initial=0)))


def trend(
    scores: Frame,
    x: str = "billions",
    by: str | Sequence[str] | None = None,
    *,
    per_doubling: bool = True,
) -> pd.DataFrame:
    """Fit a line to the scores of models: how a score changes with each doubling of their size.

    The models are the sample: the slope is tested by how far they lie from the line, with n - 2
    degrees of freedom. Two models always lie on a line, so they make no trend.

    Args:
        scores: a row per model: `score` (or `estimate`) and `x`.
        x: the column of the size, for example billions of parameters. Dates and durations count in
            days.
        by: the columns that name a score, for example `["category", "task", "metric"]`, or a series
            of models. Default: all rows are of one score.
        per_doubling: whether the slope is over the base 2 logarithm of `x`; else over `x` itself,
            as for dates.

    Returns:
        The columns of `by`, `estimate` (the slope) with `ci_low` and `ci_high`, `p`, `p_adjusted`
        (for all rows, by Holm's method), `detectable` (the slope that such data show in four of
        five samples), `n` (models) and `note`.

    Examples:
        >>> import pandas as pd
        >>> figure_7 = pd.DataFrame({  # scenario selection of Qwen2.5 in the McBE paper
        ...     "model": ["0.5B", "1.5B", "7B", "32B"],
        ...     "billions": [0.5, 1.5, 7, 32],
        ...     "score": [87.69, 80.49, 77.82, 77.11],
        ... })
        >>> trend(figure_7)[["estimate", "ci_low", "ci_high", "p", "n"]].round(3)
           estimate  ci_low  ci_high      p  n
        0     -1.64  -4.218    0.938  0.112  4
    """
    table = Table(scores, "scores")
    groups = as_list(by)
    table.check_filled(x)
    kind = table.kind_of_time(x)
    values = table.scores()
    sizes = table.days(x) if kind else table.numbers(x)
    if per_doubling and kind == "dates":
        raise BadInput(
            f"{table.name}, column `{x}`: dates do not double; give per_doubling=False, for a "
            "slope per day"
        )
    if per_doubling and (sizes <= 0).any():
        row = int((sizes <= 0).argmax())
        raise BadInput(
            f"{table.place(row, x)}: {sizes[row]:g} has no logarithm; give sizes above 0, or "
            "per_doubling=False"
        )
    if "model" in table.rows:
        table.check_unique(
            [*groups, "model"],
            "name in by=[...] the columns in which these rows differ, such as task and metric",
        )
    rows = []
    for keys, index in table.groups(groups):
        with_score = index[values[index].notna()]
        at = np.log2(sizes[with_score]) if per_doubling else sizes[with_score]
        tested = Comparison(note=f"fewer than two values of {x}")
        if len(with_score) and np.ptp(at) > NOISE * np.abs(at).max():
            tested = slope_test(at.to_numpy(), values[with_score].to_numpy())
        missing = len(index) - len(with_score)
        lost = _left_out(missing, f"of {len(index)} models without a score")
        note = join_notes(tested.note, lost)
        rows.append({**keys, **tested._asdict(), "n": len(with_score), "note": note})
    columns = [*groups, *INTERVAL, "p", "detectable", "n", "note"]
    return with_holm(pd.DataFrame(rows, columns=columns))


def correlate(
    a: Frame,
    b: Frame,
    by: str | Sequence[str] | None = None,
    on: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Correlate two frames of scores: Pearson's, Spearman's and Kendall's coefficients.

    Averages (rows with `all` beside other values) are left out.

    Args:
        a, b: frames of scores, for example under two prompt sets.
        by: the columns that name a group, for example `task`. Default: one group.
        on: the columns by which rows are paired. Default: all of `model`, `benchmark`, `category`,
            `task`, `metric`, `item_id`, `request` and `repeat` that both frames have.

    Returns:
        The columns of `by`, `coefficient`, `estimate`, `ci_low` and `ci_high` (Pearson's, by
        Fisher's z), `p` (two-sided; Spearman's is exact for up to 9 points), `p_adjusted` (for the
        other groups, by Holm's method), `n` (points) and `note`.

    Examples:
        >>> import pandas as pd
        >>> first = pd.DataFrame({"model": list("abcde"), "score": [0.1, 0.2, 0.4, 0.5, 0.9]})
        >>> second = pd.DataFrame({"model": list("abcde"), "score": [0.2, 0.1, 0.4, 0.6, 0.8]})
        >>> correlate(first, second)[["coefficient", "estimate", "p", "n"]].round(3)
          coefficient  estimate      p  n
        0     pearson     0.947  0.014  5
        1    spearman     0.900  0.083  5
        2     kendall     0.800  0.083  5
    """
    tables = [Table(a, "first frame"), Table(b, "second frame")]
    groups = as_list(by)
    common = [name for name in KEYS if name in tables[0].rows and name in tables[1].rows]
    keys = list(dict.fromkeys([*groups, *(as_list(on) or common)]))
    if not keys:
        raise BadInput(
            f"{tables[0].name} and {tables[1].name}: have none of the columns {', '.join(KEYS)} "
            "in common; name others in on=[...]"
        )
    sides = []
    for table in tables:
        table.check_filled(*keys)
        table.check_unique(keys, "name in on=[...] the column in which these rows differ")
        rows = table.texts(*keys).assign(score=table.scores())
        sides.append(rows[table.is_single(keys)])
    both = sides[0].merge(sides[1], on=keys, suffixes=("_a", "_b"))
    if both.empty:
        raise BadInput(
            f"{tables[0].name} and {tables[1].name}: no two rows have the same {', '.join(keys)}; "
            "name fewer columns in on=[...]"
        )
    alone = len(sides[0]) + len(sides[1]) - 2 * len(both)
    lost = _left_out(alone, "rows without a partner")
    results = []
    for keys_of_group, index in Table(both).groups(groups):
        points = both.loc[index, ["score_a", "score_b"]].dropna()
        n = len(points)
        reason = ""
        without = _left_out(len(index) - n, f"of {len(index)} points without a score")
        spread = points.max() - points.min()
        constant = list(points.columns[spread <= NOISE * points.abs().max()])
        if n < LEAST_POINTS:
            reason = f"{n} point{'' if n == 1 else 's'}; {LEAST_POINTS} are needed at least"
        elif constant:
            name = "first" if constant[0] == "score_a" else "second"
            value = points[constant[0]].iloc[0]
            reason = f"the {name} score is {value:.3g} at every point, so nothing can go with it"
        for name, function in COEFFICIENTS.items():
            undefined = dict.fromkeys((*INTERVAL, "p"), math.nan)
            result = undefined if reason else _correlation(points, function)
            note = join_notes(reason, without, lost)
            results.append({**keys_of_group, "coefficient": name, **result, "n": n, "note": note})
    columns = [*groups, "coefficient", *INTERVAL, "p", "n", "note"]
    return with_holm(pd.DataFrame(results, columns=columns), "coefficient")


def _correlation(points: pd.DataFrame, function: str) -> dict[str, float]:
    """Compute a coefficient, Pearson's interval by Fisher's z, and p."""
    is_pearson = function == "pearsonr"
    sides = [points[name].to_numpy() for name in points]
    if not is_pearson:
        # Equal scores that were computed in two ways differ in the last digit; they are ties.
        sides = [scipy.stats.rankdata(tied(side, np.abs(side).max())) for side in sides]
    result = getattr(scipy.stats, function)(*sides)
    low = high = math.nan
    p = float(result.pvalue)
    if is_pearson and len(points) > LEAST_POINTS:
        low, high = map(float, result.confidence_interval())
    if function == "spearmanr":
        # p cannot be smaller than the probability of one order, in both directions.
        is_small = len(points) <= MOST_EXACT
        p = _exact_p(*sides) if is_small else max(p, 2 / math.factorial(len(points)))
    return {"estimate": float(result.statistic), "ci_low": low, "ci_high": high, "p": p}


def _exact_p(first: np.ndarray, second: np.ndarray) -> float:
    """Compute p of Spearman's coefficient over all orders of the points, two-sided.

    (scipy's `PermutationMethod` gives the same p and takes ten seconds for nine points.)
    """
    # Twice the ranks, which are whole numbers also for ties.
    first, second = (np.rint(2 * ranks).astype(int) for ranks in (first, second))
    orders = np.fromiter(permutations(second.tolist()), np.dtype((int, len(second))))
    products = orders @ first
    observed = first @ second
    tails = np.mean(products <= observed), np.mean(products >= observed)
    return float(min(1.0, 2 * min(tails)))


def _units(
    table: Table,
    column: str,
    of: str | None,
    cluster: str | None,
    stratum: str | None,
    mean_over: str | Sequence[str] | None,
    crossed: str,
) -> pd.DataFrame:
    """Return the sums and units of each row; a row without a number is `missing`, its sums 0."""
    for name, value in (("cluster", cluster), ("stratum", stratum)):
        if value and value not in table.rows:
            have = ", ".join(map(str, table.rows.columns))
            raise BadInput(
                f"{table.name}: has no column `{value}`; it has {have}; give the column in "
                f"{name}=, or {name}=None if there is none"
            )
    parts = as_list(mean_over)
    table.check_filled(*filter(None, [cluster, stratum, *parts]))
    top = table.numbers(column)
    missing = top.isna()
    bottom = pd.Series(1.0, table.rows.index)
    if of:
        bottom = table.numbers(of, least=0)
        table.check_filled(of, rows=~missing)
    units = pd.DataFrame({"top": top.fillna(0.0), "bottom": bottom.where(~missing, 0.0)})
    units["missing"] = missing & (bottom != 0)
    units["cluster"] = table.rows[cluster] if cluster else table.rows.index
    units["stratum"] = table.rows[stratum] if stratum else ALL
    names = table.rows[parts].astype(str)
    units["part"] = names[parts[0]].str.cat(names[parts[1:]], SEPARATOR) if parts else ALL
    if crossed in table.rows:
        units["crossed"] = table.rows[crossed]
        units["within"] = table.rows.get("category", ALL)
    return units


def _limits(table: Table, column: str, units: pd.DataFrame, limits: Limits | None) -> Limits | None:
    """Check the rows against the scale; without one, return 0 and 1 if all rows are counts."""
    low, high = limits or (0, 1)
    noise = NOISE * (high - low) * units.bottom
    beyond = (units.top < low * units.bottom - noise) | (units.top > high * units.bottom + noise)
    if not limits:
        # Other numbers may be of any unit, such as seconds, although none exceeds 1.
        is_count = not beyond.any() and bool((units.top % 1 == 0).all())
        return (0, 1) if is_count else None
    if beyond.any():
        row = int(beyond.argmax())
        value = table.rows[column].iloc[row]
        raise BadInput(f"{table.place(row, column)}: {value} is not within limits={low, high}")
    return limits


def _resampled(units: pd.DataFrame, sums: list[str], weights: Weights) -> Totals:
    """Sum columns by part, as observed and resampled."""
    has_crossed = "crossed" in units and bool(units.crossed.notna().all())
    crossed = ("within", "crossed") if has_crossed else None
    return resample(
        units, "stratum", "cluster", sums, part="part", crossed=crossed, weights=weights
    )


def _weights_of_parts(totals: Totals, bottoms: Sequence[int]) -> np.ndarray:
    """Return the weights in a mean over the parts in which the sums `bottoms` are above 0."""
    defined = (totals.observed[0][:, bottoms] > 0).all(1)
    return mean_weights([str(name).split(SEPARATOR) for name in totals.strata], defined)


def _mean_ratio(weights: np.ndarray, sums: np.ndarray, at: int = 0) -> np.ndarray:
    """Average, over parts, the sum in column `at` divided by the sum in the next column."""
    in_mean = weights > 0
    ratios = sums[:, in_mean, at] / sums[:, in_mean, at + 1]
    return averages(ratios, weights[None, in_mean])[:, 0]


def _without_parts(totals: Totals, weights: np.ndarray, bottoms: Sequence[int]) -> str:
    """Say which parts are left out because their divisor, or that of a related part, is 0."""
    defined = (totals.observed[0][:, bottoms] > 0).all(1)
    if not defined.any():
        return ""
    names = np.array([str(name).replace(SEPARATOR, ", ") for name in totals.strata])
    empty = "; ".join(names[~defined])
    related = "; ".join(names[defined & (weights == 0)])
    return join_notes(
        f"left out, because the divisor is 0: {empty}" if empty else "",
        f"left out with these: {related}" if related else "",
    )


def _left_out(n: float, rows: str) -> str:
    """Say how many rows are left out; "" if all are there."""
    return f"{n} {rows} are left out" if n else ""


def with_holm(results: pd.DataFrame, by: str = "") -> pd.DataFrame:
    """Add `p_adjusted` after `p`, for all rows together, or for each value of `by`.

    A `note` marks rows whose p is below 0.05 only before the adjustment, because the interval and
    `detectable` are not adjusted.
    """
    results = results.drop(columns="p_adjusted", errors="ignore")
    families = results[by] if by else pd.Series(0, results.index)
    adjusted = results.p.groupby(families).transform(lambda p: holm(p.to_numpy(float)))
    results.insert(list(results).index("p") + 1, "p_adjusted", adjusted)
    is_open = (results.p < 1 - LEVEL) & (adjusted >= 1 - LEVEL)
    results["note"] = [
        join_notes(note, ADJUSTED) if open_row and ADJUSTED not in note else note
        for note, open_row in zip(results.note, is_open, strict=True)
    ]
    return results
