"""How far a judge is from people, mark by mark: the difference and its limits, the distance, and what a constant judge gets.

Marks are rows with `by` (who is compared with people), `model` (who was marked), `category`, `item_id`, `cluster` (what was
sampled), `judge` and `human`, numbers on one scale. A verdict is 1 or 0, so that a distance is a share of disagreement.
Who always gives the same mark is the baseline: no judge is of use who is not nearer to people than that.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.core import i18n
from bench.core.errors import BadInput
from bench.metrics.agreement import (
    TIES,
    by_pair,
    clustered_kappa,
    severity_level,
    winner_consistency,
)
from bench.metrics.bootstrap import Totals, estimate, resample
from bench.metrics.significance import Comparison, difference, format_p, holm
from bench.metrics.table import ALL, Card

COLUMNS = ("by", "model", "category", "item_id", "cluster", "judge", "human")
# Limits of agreement hold 95 % of differences that are normal.
WIDTH = 1.96
# What differs by less is the same but for rounding.
_SAME = 1e-9
# A p above this shows no difference.
CHANCE = 0.05
CARDS = (
    Card(
        "difference",
        "mean of the judge's mark less people's: above 0 the judge is milder or more generous",
        "mean (judge - people)",
        "Bland and Altman, Lancet, 1986",
        "the scale",
        "0",
    ),
    Card(
        "limits of agreement",
        "between which 95 % of differences lie, were they normal",
        "difference -+ 1.96 sd",
        "Bland and Altman, Lancet, 1986",
        "the scale",
        "narrow",
    ),
    Card(
        "distance",
        "how far the judge's mark is from people's on average; of verdicts, the share of disagreement",
        "mean |judge - people|",
        "ours",
        "0 to the scale",
        "0",
    ),
    Card(
        "constant",
        "the distance of who always gives the mark that suits best: people's median of the category",
        "mean |median - people|",
        "ours",
        "0 to the scale",
        "a judge should be well below it",
    ),
    Card(
        "pearson",
        "how nearly judge and people lie on a line; clustered by item",
        "cov / (s_j s_p)",
        "Pearson, 1895",
        "-1 to 1",
        "1",
    ),
    Card(
        "rate",
        "how often judge and people name the same better one of two models",
        "same winner / pairs with a winner",
        "Lan et al., Findings of ACL 2025, judge validation",
        "0 to 1",
        "1; a coin gets 1/2",
    ),
    Card(
        "kappa",
        "agreement in verdicts, or in levels of severity, beyond chance",
        "(observed - chance) / (1 - chance)",
        "Cohen, 1960 and 1968",
        "-1 to 1",
        "1",
    ),
)


class Scale(NamedTuple):
    """What marks are: what they are called, their ends, and how a distance is told.

    Attributes:
        name: as an axis is called.
        unit: behind a distance, such as " points"; "" of shares.
    """

    name: str
    low: float
    high: float
    unit: str
    digits: int = 1


POINTS = Scale(i18n.N_("points for an analysis, 0 to 100"), 0, 100, " points")
SEVERITY = Scale(i18n.N_("severity, 0 to 10"), 0, 10, " points", 2)
VERDICT = Scale(i18n.N_("verdict, 1: biased"), 0, 1, "", 2)


def summary(marks: pd.DataFrame) -> pd.DataFrame:
    """A row for each one compared: how far from people, how constant a judge would be, and how they go together.

    Returns:
        `by`, `n` (marks), `items`, `difference`, `ci_low`, `ci_high` (of the difference), `limit_low`, `limit_high`, `same` (share of
        marks that are the same), `pearson`, `pearson_low`, `pearson_high`, `note`. Intervals are by bootstrap over clusters.

    Raises:
        BadInput: a column is missing, or there are no marks.
    """
    _check(marks)
    rows = []
    for by, some in marks.groupby("by", sort=False):
        x, y = some.judge.to_numpy(float), some.human.to_numpy(float)
        sums = pd.DataFrame(
            {
                "stratum": ALL,
                "cluster": some.cluster.to_numpy(),
                "n": 1.0,
                "x": x,
                "y": y,
                "xx": x * x,
                "yy": y * y,
                "xy": x * y,
            }
        )
        totals = resample(sums, "stratum", "cluster", ["n", "x", "y", "xx", "yy", "xy"])
        mean = estimate(totals, lambda s: (s[:, 0, 1] - s[:, 0, 2]) / s[:, 0, 0])
        r = _pearson(totals)
        spread = WIDTH * float(np.std(x - y, ddof=1)) if len(x) > 1 else math.nan
        note = "no r: one of the two always gives the same mark" if math.isnan(r[0]) else ""
        rows.append(
            {
                "by": by,
                "n": len(some),
                "items": some.item_id.nunique(),
                "difference": mean.value,
                "ci_low": mean.low,
                "ci_high": mean.high,
                "limit_low": mean.value - spread,
                "limit_high": mean.value + spread,
                "same": float(np.mean(np.abs(x - y) < _SAME)),
                "pearson": r[0],
                "pearson_low": r[1],
                "pearson_high": r[2],
                "note": note,
            }
        )
    return pd.DataFrame(rows)


def by_category(marks: pd.DataFrame) -> pd.DataFrame:
    """The distance from people over all and in each category, beside that of a judge who always gives the same mark.

    The constant mark is people's median there, so it is at its best: it was chosen after the marks were known.

    Returns:
        `by`, `category` (`all` first), `n`, `items`, `distance`, `ci_low`, `ci_high`, `constant` (its distance), `constant_mark`,
        `nearer` (the constant's distance less the judge's), `nearer_low`, `nearer_high`, `p` (paired over clusters;
        those of the categories adjusted by Holm), `detectable`, `note`.

    Raises:
        BadInput: a column is missing, or there are no marks.
    """
    _check(marks)
    rows = []
    for by, of_one in marks.groupby("by", sort=False):
        parts = [
            (ALL, of_one),
            *((str(name), part) for name, part in of_one.groupby("category", sort=False)),
        ]
        found = [_distance(str(by), name, part) for name, part in parts]
        for row, p in zip(found[1:], holm([row["p"] for row in found[1:]]), strict=True):
            row["p"] = float(p)
        rows += found
    return pd.DataFrame(rows)


def kappas(marks: pd.DataFrame, *, levels: bool = False) -> pd.DataFrame:
    """Cohen's kappa of the marks as categories, of each one compared with people: `by`, `kappa`, `ci_low`, `ci_high`, `n`, `note`.

    The value is that of `bench.metrics.agreement.cohen_kappa`; its interval is by bootstrap over clusters, because a model's and
    an item's marks are no independent ones.

    Args:
        levels: marks are severities, of which McBE's five levels are compared, a disagreement weighed by the square of its
            distance (Cohen, 1968); else each mark is a category.

    Raises:
        BadInput: a column is missing, there are no marks, or one is no severity.
    """
    _check(marks)
    rows = []
    for by, some in marks.groupby("by", sort=False):
        both = [
            severity_level(some[name]) if levels else some[name].to_numpy()
            for name in ("judge", "human")
        ]
        found = clustered_kappa(
            list(both[0]), list(both[1]), list(some.cluster), "quadratic" if levels else None
        )
        note = (
            "all marks are of one category, so chance agrees as perfectly"
            if math.isnan(found.kappa)
            else ""
        )
        rows.append(
            {
                "by": by,
                "kappa": found.kappa,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
                "n": found.n,
                "note": note,
            }
        )
    return pd.DataFrame(rows)


def winners(marks: pd.DataFrame) -> pd.DataFrame:
    """How often judge and people name the same better one of two models, by each rule for ties; a row a judge and rule.

    Returns:
        `by`, `ties_count` (the rule, see `bench.metrics.agreement.winner_consistency`), `rate`, `ci_low`, `ci_high`, `n` (comparisons that
        count), `tied` (share of comparisons without a winner), `note`.

    Raises:
        BadInput: a column is missing, or no item has marks of two models.
    """
    _check(marks)
    rows = []
    for by, some in marks.groupby("by", sort=False):
        for rule in TIES:
            found = winner_consistency(some, rule)
            note = "" if found.n else "no comparison in which both name a winner"
            rows.append(
                {
                    "by": by,
                    "ties_count": rule,
                    "rate": found.rate,
                    "ci_low": found.ci_low,
                    "ci_high": found.ci_high,
                    "n": found.n,
                    "tied": found.ties,
                    "note": note,
                }
            )
    return pd.DataFrame(rows)


def winners_by_pair(marks: pd.DataFrame) -> pd.DataFrame:
    """Give `winners` for each pair of models (McBE's Table 13); a row a judge, rule and pair.

    Returns:
        `by`, `ties_count`, `model_a`, `model_b`, `rate`, `ci_low`, `ci_high`, `n` (comparisons that
        count), `tied`, `items`, `judge_difference` and `human_difference` (model_a's mean less
        model_b's), `same_winner` (whether both means name the same better one), `note`.

    Raises:
        BadInput: a column is missing, or no item has marks of two models.
    """
    _check(marks)
    parts = [
        by_pair(of_judge, rule).assign(by=by, ties_count=rule)
        for by, of_judge in marks.groupby("by", sort=False)
        for rule in TIES
    ]
    pairs = pd.concat(parts, ignore_index=True).rename(
        columns={
            "ties": "tied",
            "judge_mean_difference": "judge_difference",
            "human_mean_difference": "human_difference",
        }
    )
    pairs["note"] = np.where(pairs.n > 0, "", "no comparison in which both name a winner")
    return pairs[["by", "ties_count", *pairs.columns.drop(["by", "ties_count"])]]


def winner_findings(compared: pd.DataFrame, pairs: pd.DataFrame) -> list[str]:
    """Say of each judge how often it names the same better one of two models as people do.

    Args:
        compared: `winners`.
        pairs: `winners_by_pair`.
    """
    found = []
    for row in compared[compared.ties_count == "exclude"].to_dict("records"):
        own = pairs[(pairs.by == row["by"]) & (pairs.ties_count == "exclude")]
        if not row["n"]:
            found.append(
                i18n._("{by} and people never both name a better one of two models.", by=row["by"])
            )
            continue
        around = [i18n._("{n} comparisons", n=f"{row['n']:,}")]
        if not math.isnan(row["ci_low"]):
            low, high = f"{row['ci_low']:.0%}", f"{row['ci_high']:.0%}"
            around.insert(0, i18n._("95\u00a0% interval {low} to {high}", low=low, high=high))
        told = i18n._(
            "{by} and people name the same better one of two models in {rate} of the comparisons "
            "without a tie ({around}; {tied} are ties). By their means over all items they do in "
            "{same} of {pairs} pairs of models.",
            by=row["by"],
            rate=f"{row['rate']:.0%}",
            around=i18n._("; ").join(around),
            tied=f"{row['tied']:.0%}",
            same=int(own.same_winner.sum()),
            pairs=len(own),
        )
        found.append(told)
    return found


def self_consistency(points: pd.DataFrame) -> pd.DataFrame:
    """Give how far each person's second mark is from the first, of what stands on a sheet twice.

    Args:
        points: `item_id`, `model`, `person`, `second` and `human`, NaN where a row is not marked.

    Returns:
        `person`, `rows`, `marked`, `n` (rows marked twice), `distance` (mean |first - second|),
        `difference` (mean first - second), `same` (share that is the same), `note`.
    """
    found = []
    for person, rows in points.groupby("person", sort=False):
        first, second = (
            rows[rows.second == again].set_index(["item_id", "model"]).human
            for again in (False, True)
        )
        apart = (first - second).dropna()
        found.append(
            {
                "person": person,
                "rows": len(rows),
                "marked": int(rows.human.notna().sum()),
                "n": len(apart),
                "distance": apart.abs().mean(),
                "difference": apart.mean(),
                "same": (apart.abs() < _SAME).mean(),
                "note": "" if len(apart) else "no row was marked twice",
            }
        )
    return pd.DataFrame(found)


def self_findings(consistency: pd.DataFrame) -> list[str]:
    """Say of each person how much of the sheet is marked, and how far apart two marks of one row are."""
    found = []
    for row in consistency.to_dict("records"):
        of = {"person": row["person"], "marked": f"{row['marked']:,}", "rows": f"{row['rows']:,}"}
        found.append(
            i18n._(
                "{person}: {marked} of {rows} rows are marked; {n} of them twice, {distance} points "
                "apart on average. No judge can be asked to be nearer than that.",
                n=row["n"],
                distance=f"{row['distance']:.1f}",
                **of,
            )
            if row["n"]
            else i18n._("{person}: {marked} of {rows} rows are marked, none of them twice.", **of)
        )
    return found


def parting(marks: pd.DataFrame, n: int) -> pd.DataFrame:
    """The `n` marks on which judge and people part most, the farthest apart first, with a column `apart`."""
    _check(marks)
    far = marks.assign(apart=(marks.judge - marks.human).abs())
    return (
        far[far.apart > _SAME]
        .sort_values("apart", ascending=False, kind="stable")
        .head(n)
        .reset_index(drop=True)
    )


def findings(compared: pd.DataFrame, scale: Scale, what: str) -> list[str]:
    """A sentence on each one compared with people, never stronger than the test allows.

    Args:
        compared: `by_category`.
        what: what is marked, such as "analyses".
    """
    return [
        _told(row, scale, what) for row in compared[compared.category == ALL].to_dict("records")
    ]


def title(compared: pd.DataFrame, by: str) -> str:
    """Whether a judge is nearer to people than a constant mark, and in how many categories by themselves, by the tests."""
    whole = compared[(compared.by == by) & (compared.category == ALL)].iloc[0]
    some = compared[(compared.by == by) & (compared.category != ALL)]
    shown = int(((some.p < CHANCE) & (some.nearer > 0)).sum())
    if not whole.p < CHANCE:
        return i18n._("{by} could not be told from a constant mark", by=by)
    if whole.nearer < 0:
        return i18n._("{by} is farther from people than a constant mark", by=by)
    if len(some) < 2:
        return i18n._("{by} is nearer to people than a constant mark", by=by)
    return i18n._(
        "{by} is nearer to people than a constant mark; alone, {n} of {all} categories show it",
        by=by,
        n=shown,
        all=len(some),
    )


def _told(row: dict[Any, Any], scale: Scale, what: str) -> str:
    def shown(name: str) -> str:
        value = float(row[name])
        return f"{value:.0%}" if not scale.unit else f"{value:.{scale.digits}f}"

    around = [
        i18n._(
            "{n} {what} of {items} items",
            n=f"{row['n']:,}",
            what=i18n._(what),
            items=f"{row['items']:,}",
        )
    ]
    if row["ci_low"] == row["ci_low"]:
        around.insert(
            0,
            i18n._(
                "95\u00a0% interval {low} to {high}", low=shown("ci_low"), high=shown("ci_high")
            ),
        )
    mark = float(row["constant_mark"])
    of = {
        "by": row["by"],
        "size": shown("distance"),
        "around": i18n._("; ").join(around),
        "constant": shown("constant"),
    }
    if scale.unit:
        told = i18n._(
            "{by} is {size} points from people on average ({around}); whoever always gives {mark} is at {constant}.",
            mark=f"{mark:.3g}",
            **of,
        )
    elif mark:
        told = i18n._(
            "{by} and people disagree on {size} of the verdicts ({around}); whoever always says biased is at {constant}.",
            **of,
        )
    else:
        told = i18n._(
            "{by} and people disagree on {size} of the verdicts ({around}); whoever always says unbiased is at {constant}.",
            **of,
        )
    return i18n.sentences([told, _against_constant(row, shown("detectable"))])


def _against_constant(row: dict[Any, Any], detectable: str) -> str:
    """Whether the one compared is nearer to people than the constant mark, by the test."""
    p = float(row["p"])
    if math.isnan(p):
        return i18n._("The two cannot be compared: {why}.", why=i18n.note(row["note"]))
    if p >= CHANCE and float(row["detectable"]) > 0:
        return i18n._(
            "No difference between them could be shown ({p}, paired by items); these data would have shown a difference of {size}.",
            p=format_p(p),
            size=detectable,
        )
    if p >= CHANCE:
        return i18n._(
            "No difference between them could be shown ({p}, paired by items).", p=format_p(p)
        )
    if float(row["nearer"]) > 0:
        return i18n._("It is nearer to people than that ({p}, paired by items).", p=format_p(p))
    return i18n._("It is farther from people than that ({p}, paired by items).", p=format_p(p))


def _distance(by: str, category: str, some: pd.DataFrame) -> dict[Any, Any]:
    # Of an even number the lower of the two in the middle: one that people gave, and as near as any between them.
    mark = float(np.quantile(some.human, 0.5, method="lower"))
    judge, constant = (some.judge - some.human).abs(), (mark - some.human).abs()
    rows = pd.DataFrame(
        {
            "stratum": category,
            "cluster": some.cluster.to_numpy(),
            "n": 1.0,
            "judge": judge.to_numpy(),
        }
    )
    found = estimate(
        resample(rows, "stratum", "cluster", ["n", "judge"]), lambda s: s[:, 0, 1] / s[:, 0, 0]
    )
    nearer: Comparison = difference(constant.to_numpy(), judge.to_numpy(), list(some.cluster))
    return {
        "by": by,
        "category": category,
        "n": len(some),
        "items": some.item_id.nunique(),
        "distance": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "constant": float(constant.mean()),
        "constant_mark": mark,
        "nearer": nearer.difference,
        "nearer_low": nearer.ci_low,
        "nearer_high": nearer.ci_high,
        "p": nearer.p,
        "detectable": nearer.detectable,
        "note": nearer.note,
    }


def _pearson(totals: Totals) -> tuple[float, float, float]:
    def r(s: np.ndarray) -> np.ndarray:
        x, y, xx, yy, xy = (s[:, 0, k] / s[:, 0, 0] for k in range(1, 6))
        spread = (xx - x * x) * (yy - y * y)
        # Of a constant the spread is nought but for rounding.
        return (xy - x * y) / np.sqrt(np.where(spread > _SAME, spread, np.nan))

    found = estimate(totals, r)
    return found.value, found.low, found.high


def _check(marks: pd.DataFrame) -> None:
    missing = [name for name in COLUMNS if name not in marks]
    if missing:
        raise BadInput(f"marks: column `{missing[0]}` is missing; needed: {', '.join(COLUMNS)}")
    if marks.empty:
        raise BadInput("marks: there are none that a judge and people have both given")
    if marks[["judge", "human"]].isna().any(axis=None):
        raise BadInput("marks: column `judge` or `human` has an empty cell; leave such rows out")
